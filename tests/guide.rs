//! The README and the pages of the guide are true: what they quote stands in the source, what they name is there.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files that a reader of the pages makes.
const READERS_OWN: [&str; 3] = [
    "bin/ada.rs",
    "bin/eve.py",
    "src/games/rock_paper_scissors.rs",
];
/// Options of other programs: Cargo, the Inspector and `unshare`.
const OPTIONS_OF_OTHERS: &[&str] = &[
    "--bin",
    "--cli",
    "--features",
    "--fork",
    "--method",
    "--mount-proc",
    "--no-default-features",
    "--open",
    "--path",
    "--release",
    "--test",
    "--transport",
];
/// What our own options stand behind.
const OURS: [&str; 4] = ["league_manager", "referee", "player", "cargo"];
/// The longest README that a newcomer reads.
const LONGEST_README: usize = 250;

/// A page: where it is, and what it says.
struct Page {
    path: PathBuf,
    text: String,
}

/// A block between two fences: the words behind the first fence, and the lines.
struct Block<'a> {
    info: &'a str,
    lines: Vec<&'a str>,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<Page> {
    let guide = fs::read_dir(root().join("src/guide")).unwrap();
    let guide = guide.map(|entry| entry.unwrap().path());
    let others = ["README.md", "src/protocol.md"].map(|name| root().join(name));
    let page = |path: PathBuf| Page {
        text: fs::read_to_string(&path).unwrap(),
        path,
    };
    others.into_iter().chain(guide).map(page).collect()
}

impl Page {
    /// Its blocks, and the lines outside of them.
    fn parts(&self) -> (Vec<Block<'_>>, Vec<&str>) {
        let mut blocks: Vec<Block> = Vec::new();
        let mut prose = Vec::new();
        let mut is_inside = false;
        for line in self.text.lines() {
            match line.trim_start().strip_prefix("```") {
                Some(info) => {
                    is_inside = !is_inside;
                    if is_inside {
                        let lines = Vec::new();
                        blocks.push(Block { info, lines });
                    }
                }
                None if is_inside => blocks.last_mut().unwrap().lines.push(line),
                None => prose.push(line),
            }
        }
        assert!(!is_inside, "{}: a fence is open", self.path.display());
        (blocks, prose)
    }

    /// What is written between backticks.
    fn spans(&self) -> Vec<&str> {
        let (_, prose) = self.parts();
        let spans = prose
            .into_iter()
            .map(|line| line.split('`').skip(1).step_by(2));
        spans.flatten().collect()
    }

    /// The lines that somebody may type: code spans, and blocks for a terminal.
    fn typed(&self) -> Vec<&str> {
        let (blocks, _) = self.parts();
        let for_terminal = |block: &Block| ["", "sh", "text"].contains(&block.info);
        let blocks = blocks.into_iter().filter(for_terminal);
        let lines = blocks.flat_map(|block| block.lines);
        lines.chain(self.spans()).collect()
    }
}

/// What a program says of itself.
fn help(program: &str) -> String {
    let output = Command::new(program).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The names in the first column of a section of a program's help.
fn listed(help: &str, section: &str) -> BTreeSet<String> {
    let lines = help.lines().skip_while(|line| *line != section).skip(1);
    let rows = lines.take_while(|line| line.starts_with("  "));
    let names = rows.filter_map(|row| row.split_whitespace().next());
    names.map(String::from).collect()
}

/// The words that follow `name` in a line, perhaps behind `--`.
fn after<'a>(line: &'a str, name: &str) -> Vec<&'a str> {
    let rests = line
        .match_indices(name)
        .map(|(at, _)| (at, &line[at + name.len()..]));
    let begins = |at: usize| !line[..at].ends_with(|it: char| it.is_alphanumeric() || it == '_');
    let rests = rests.filter(|(at, _)| begins(*at));
    let words = rests.filter_map(|(_, rest)| {
        let rest = rest.strip_prefix(' ')?;
        let rest = rest.strip_prefix("-- ").unwrap_or(rest);
        let end = rest.find(|it: char| !it.is_ascii_lowercase() && it != '_');
        Some(&rest[..end.unwrap_or(rest.len())])
    });
    words.filter(|word| !word.is_empty()).collect()
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn quoted_code_is_in_the_source() {
    let mut quotes = 0;
    let mut stale = Vec::new();
    for page in pages() {
        for block in page.parts().0 {
            let first = block.lines.first().copied().unwrap_or_default();
            let path = first.strip_prefix("// ").unwrap_or_default().trim();
            if !block.info.starts_with("rust") || !path.ends_with(".rs") {
                continue;
            }
            quotes += 1;
            let shown = page.path.display();
            let source = fs::read_to_string(root().join(path));
            let source = source.unwrap_or_else(|error| panic!("{shown}: {path}: {error}"));
            let source = squeezed(&source);
            let mut rest = &source[..];
            // A line `// …` stands for lines that are left out.
            for part in block.lines[1..].split(|line| line.trim().starts_with("// …")) {
                let wanted = squeezed(&part.join("\n"));
                match rest.find(&wanted) {
                    Some(at) => rest = &rest[at + wanted.len()..],
                    None => stale.push(format!("{shown}: {path}:\n{}", part.join("\n"))),
                }
            }
        }
    }
    assert!(quotes > 0, "the pages quote no code");
    assert!(
        stale.is_empty(),
        "no longer in the source:\n{}",
        stale.join("\n")
    );
}

#[test]
fn the_readme_is_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap();
    let lines = lines.lines().count();
    assert!(lines <= LONGEST_README, "README.md has {lines} lines");
}

#[test]
fn links_and_paths_lead_somewhere() {
    for page in pages() {
        let shown = page.path.display();
        let (_, prose) = page.parts();
        let links = prose.iter().flat_map(|line| line.split("](").skip(1));
        for link in links.filter_map(|link| link.split(')').next()) {
            let is_elsewhere = link.contains("://") || link.contains("::") || link.starts_with('#');
            let path = page.path.parent().unwrap().join(link);
            assert!(is_elsewhere || path.exists(), "{shown}: no file {link}");
        }
        for span in page.spans() {
            let folders = ["src/", "bin/", "tests/", "config/", ".ci/"];
            let is_path = folders.iter().any(|folder| span.starts_with(folder));
            let is_path = is_path && !span.contains("ID"); // a place for any id
            let is_there = READERS_OWN.contains(&span) || root().join(span).exists();
            assert!(!is_path || is_there, "{shown}: no file {span}");
        }
    }
}

#[test]
fn commands_words_and_options_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let targets = makefile.lines().filter_map(|line| line.split_once(':'));
    let targets: BTreeSet<&str> = targets.map(|(target, _)| target).collect();
    let manager = help(env!("CARGO_BIN_EXE_league_manager"));
    let words = listed(&manager, "words:");
    let mut options = listed(&manager, "options:");
    options.extend(listed(&help(env!("CARGO_BIN_EXE_referee")), "options:"));
    options.extend(listed(&help(env!("CARGO_BIN_EXE_player")), "options:"));
    assert!(words.len() > 5 && options.len() > 20, "{manager}");

    for page in pages() {
        let shown = page.path.display();
        for line in page.typed() {
            for target in after(line, "make") {
                assert!(targets.contains(target), "{shown}: no target in {line}");
            }
            for word in after(line, "league_manager") {
                assert!(words.contains(word), "{shown}: no word {word} in {line}");
            }
            let is_ours = OURS.iter().any(|name| line.contains(name));
            if !is_ours && !line.starts_with("--") {
                continue; // a batch engine's, or a shell's
            }
            let tokens = line.split(|it: char| !it.is_ascii_lowercase() && it != '-');
            let named = tokens.filter(|it| it.starts_with("--") && it.len() > 3);
            for option in named.filter(|it| !it.ends_with('-')) {
                let is_known = options.contains(option) || OPTIONS_OF_OTHERS.contains(&option);
                assert!(is_known, "{shown}: no option {option} in {line}");
            }
        }
    }
    let page = fs::read_to_string(root().join("src/guide/configuration.md")).unwrap();
    options.retain(|option| !["--help", "--version"].contains(&&**option));
    for option in options {
        assert!(page.contains(&option), "configuration.md has no {option}");
    }
}

#[test]
fn every_key_of_the_files_is_explained() {
    fn keys(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
            Value::Object(fields) => {
                found.extend(fields.keys().cloned());
                fields.values().for_each(|value| keys(value, found));
            }
            _ => {}
        }
    }
    fn read(folder: &Path, found: &mut BTreeSet<String>) {
        for path in fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
            if path.is_dir() {
                read(&path, found);
            } else {
                let file = fs::read(&path).unwrap();
                keys(&serde_json::from_slice(&file).unwrap(), found);
            }
        }
    }
    let mut found = BTreeSet::new();
    read(&root().join("config"), &mut found);
    let page = fs::read_to_string(root().join("src/guide/configuration.md")).unwrap();
    for key in found {
        assert!(
            page.contains(&key),
            "configuration.md does not explain {key}"
        );
    }
}
