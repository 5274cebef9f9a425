//! Outputs of a script that repeat what stands above in it.

/// Returns an output without lines that stand in an earlier output too: three or more, one after the
/// other, are counted.
pub fn counted(earlier: &mut Vec<String>, output: &str) -> String {
    let lines: Vec<String> = output.lines().map(String::from).collect();
    let mut shown = String::new();
    let mut rest = &lines[..];
    while !rest.is_empty() {
        let is_earlier =
            |count: &usize| earlier.windows(*count).any(|part| part == &rest[..*count]);
        let (line, count) = match (3..=rest.len()).rev().find(is_earlier) {
            Some(count) => (format!("({count} lines as above)"), count),
            None => (rest[0].clone(), 1),
        };
        shown += &(line + "\n");
        rest = &rest[count..];
    }
    earlier.extend(lines);
    shown
}
