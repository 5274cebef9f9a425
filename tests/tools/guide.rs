//! The README and the pages of the guide agree with the project: quoted code stands in the source, and
//! named files, commands, options and keys exist.

use super::support::pages::between;
use super::support::{executable, files};
use league::manager::league::Event;
use league::player::display;
use league::protocol::{GameResult, Parity, ResultStatus};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: [&str; 3] = ["league_manager", "referee", "player"];
/// Files that a reader of the pages makes.
const READERS_OWN: &str = "bin/ada.rs bin/eve.py src/games/rock_paper_scissors.rs";
/// Options that no help of these programs lists: those of Cargo, the Inspector, `unshare` and
/// `player.py`, and two that programs give to programs.
const UNLISTED_OPTIONS: &str = "--example --bin --cli --features --fork --ignored --method --mount-proc \
    --locked --nocapture --of --open --path --player --referee --relay --release --restarted --test --transport \
    --until-stdin-closes";
/// The programs whose options are checked.
const OURS: &str = "league referee player cargo";
/// The longest README that a newcomer reads.
const LONGEST_README: usize = 180;

/// A page of the guide: its path from the root of the project, and its text.
struct Page {
    path: PathBuf,
    text: String,
}

/// Reads a file of the project.
fn read(path: impl AsRef<Path>) -> String {
    let whole = root().join(&path);
    fs::read_to_string(whole).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Checks all pages, and prints what is wrong in which of them.
fn check_pages(faults: impl Fn(&Page) -> Vec<String>) {
    let guide = fs::read_dir(root().join("src/guide")).unwrap();
    let guide = guide.map(|entry| Path::new("src/guide").join(entry.unwrap().file_name()));
    let others = ["README.md", "src/protocol.md", "tests/README.md"].map(PathBuf::from);
    let mut all = String::new();
    for path in others.into_iter().chain(guide) {
        let text = read(&path);
        let page = Page { path, text };
        for fault in faults(&page) {
            all += &format!("{}: {fault}\n", page.path.display());
        }
    }
    assert!(all.is_empty(), "{all}");
}

impl Page {
    /// Returns the blocks of code: the words behind the first fence, and the lines.
    fn blocks(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        let blocks = self.text.split("```").skip(1).step_by(2);
        let blocks = blocks.filter_map(|block| block.split_once('\n'));
        blocks.map(|(info, lines)| (info, lines.lines().collect()))
    }

    /// Returns the lines outside of blocks.
    fn prose(&self) -> impl Iterator<Item = &str> {
        self.text.split("```").step_by(2).flat_map(str::lines)
    }

    /// Returns the texts between backticks.
    fn spans(&self) -> Vec<&str> {
        let spans = self.prose().map(|line| line.split('`').skip(1).step_by(2));
        spans.flatten().collect()
    }

    /// Returns the lines that a reader may type: code spans, and blocks for a terminal.
    fn typed(&self) -> Vec<&str> {
        let mut lines = self.spans();
        for (info, block) in self.blocks() {
            if ["", "sh", "text"].contains(&info) {
                lines.extend(block);
            }
        }
        lines
    }
}

/// Returns the help text of a program, or of a command of the tool.
fn help(program: &str, command: Option<&str>) -> String {
    let mut help = Command::new(executable(program));
    let output = help.args(command).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the names in the first column of a section of a help text.
fn listed(help: &str, section: &str) -> BTreeSet<String> {
    let lines = help.lines().skip_while(|line| *line != section).skip(1);
    let rows = lines.take_while(|line| line.starts_with("  "));
    let names = rows.filter_map(|row| row.split_whitespace().next());
    names.map(String::from).collect()
}

/// Returns the words that follow `name` in a line, perhaps behind `--`.
fn after<'a>(line: &'a str, name: &str) -> Vec<&'a str> {
    let is_sign = |c: char| !c.is_ascii_lowercase() && !"_-".contains(c);
    let words: Vec<&str> = line.split(' ').filter(|word| *word != "--").collect();
    let pairs = words.windows(2);
    let pairs = pairs.filter(|pair| pair[0].rsplit(is_sign).next() == Some(name));
    let next = pairs.filter_map(|pair| pair[1].split(is_sign).next());
    next.filter(|word| !word.is_empty() && !word.starts_with('-'))
        .collect()
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn help_of_each_program_fits_one_screen() {
    for program in PROGRAMS {
        let help = help(program, None);
        let widest = help.lines().map(|line| line.chars().count()).max();
        let is_small = help.lines().count() <= 24 && widest <= Some(80);
        assert!(is_small, "{program}: {help}");
    }
    for command in listed(&help("league", None), "commands:") {
        let help = help("league", Some(&command));
        assert!(
            help.lines().all(|line| line.chars().count() <= 80),
            "{help}"
        );
    }
}

#[test]
fn menu_of_make_fits_eighty_columns() {
    let makefile = read("Makefile");
    let menu = makefile.lines().filter(|line| !line.starts_with('\t'));
    let mut items = menu.filter_map(|line| line.split_once("## "));
    assert!(items.all(|(_, text)| text.chars().count() <= 62));
}

/// Returns the parts of the quotes of a page that are no longer in the source. A line `// …` in a quote
/// stands for lines that are left out.
fn stale_quotes(page: &Page) -> Vec<String> {
    let mut stale = Vec::new();
    for (info, lines) in page.blocks() {
        let first = lines.first().copied().unwrap_or_default();
        let path = first.strip_prefix("// ").unwrap_or_default().trim();
        if !info.starts_with("rust") || !path.ends_with(".rs") {
            continue;
        }
        let source = squeezed(&read(path));
        let mut rest = &source[..];
        for part in lines[1..].split(|line| line.trim().starts_with("// …")) {
            let wanted = squeezed(&part.join("\n"));
            match rest.split_once(&wanted) {
                Some((_, after)) => rest = after,
                None => stale.push(format!("not in {path}:\n{}", part.join("\n"))),
            }
        }
    }
    stale
}

#[test]
fn quoted_code_is_in_the_source() {
    assert!(
        read("src/guide/tour.md").contains("\n// src/"),
        "the pages quote no code"
    );
    check_pages(stale_quotes);
}

#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= LONGEST_README, "README.md has {lines} lines");
}

/// Returns the links and named files of a page that lead nowhere.
fn missing_files(page: &Page) -> Vec<String> {
    let mut missing = Vec::new();
    if !page.text.matches("```").count().is_multiple_of(2) {
        missing.push("the end of a block".into());
    }
    let folder = root().join(page.path.parent().unwrap());
    let links = page.prose().flat_map(|line| line.split("](").skip(1));
    for link in links.filter_map(|link| link.split(')').next()) {
        let is_elsewhere = link.contains("://") || link.contains("::") || link.starts_with('#');
        if !is_elsewhere && !folder.join(link).exists() {
            missing.push(format!("no file {link}"));
        }
    }
    for span in page.spans() {
        let folders = ["src/", "bin/", "tests/", "config/", ".ci/"];
        let is_path = folders.iter().any(|folder| span.starts_with(folder));
        let is_path = is_path && !span.contains("ID"); // a place for any id
        let is_readers = READERS_OWN.split(' ').any(|path| path == span);
        if is_path && !is_readers && !root().join(span).exists() {
            missing.push(format!("no file {span}"));
        }
    }
    missing
}

#[test]
fn links_and_paths_exist() {
    check_pages(missing_files);
}

#[test]
fn commands_and_options_exist() {
    let makefile = read("Makefile");
    let targets = makefile.lines().filter_map(|line| line.split_once(':'));
    let targets: BTreeSet<&str> = targets.map(|(target, _)| target).collect();
    let words = listed(&help("league", None), "commands:");
    let mut options = BTreeSet::new();
    for program in PROGRAMS {
        options.extend(listed(&help(program, None), "options:"));
    }
    for word in &words {
        options.extend(listed(&help("league", Some(word)), "options:"));
    }
    assert!(words.len() > 5 && options.len() > 20, "{words:?}");

    check_pages(|page| {
        let mut unknown = Vec::new();
        for line in page.typed() {
            for target in after(line, "make") {
                if !targets.contains(target) {
                    unknown.push(format!("no target in {line}"));
                }
            }
            let is_ours =
                |start: &&str| line.starts_with(start) || line.contains(&format!("'{start}"));
            let is_tool = ["league ", "cargo run --bin league "].iter().any(is_ours);
            for word in after(line, "league").into_iter().filter(|_| is_tool) {
                if !words.contains(word) {
                    unknown.push(format!("no word {word} in {line}"));
                }
            }
            let is_ours = OURS.split(' ').any(|name| line.contains(name));
            if !is_ours && !line.starts_with("--") {
                continue; // a batch engine's, or a shell's
            }
            let tokens = line.split(|c: char| !c.is_ascii_lowercase() && c != '-');
            let named = tokens.filter(|token| token.starts_with("--") && token.len() > 3);
            for option in named.filter(|option| !option.ends_with('-')) {
                let is_unlisted = UNLISTED_OPTIONS.split(' ').any(|other| other == option);
                if !options.contains(option) && !is_unlisted {
                    unknown.push(format!("no option {option} in {line}"));
                }
            }
        }
        unknown
    });
    options.retain(|option| !["--help", "--version"].contains(&&**option));
    check_explained(options.iter().map(String::as_str));
}

/// Checks that the page about the configuration has these words.
fn check_explained<'a>(words: impl Iterator<Item = &'a str>) {
    let page = read("src/guide/configuration.md");
    for word in words {
        assert!(page.contains(word), "configuration.md has no {word}");
    }
}

#[test]
fn labs_are_the_faults_of_the_suite() {
    let suite = read("tests/faults.py");
    let (_, list) = suite.split_once("\nFAULTS = {").unwrap();
    let list = between(list, "in (", ")");
    let names = list.split(',').map(|name| name.trim().replace('_', "-"));
    let faults: Vec<String> = names.filter(|name| !name.is_empty()).collect();
    assert_eq!(faults.len(), 12);

    let page = read("src/guide/labs.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    assert_eq!(rows, faults);
    let headings = page.lines().filter(|line| line.starts_with("## "));
    let headings: Vec<&str> = headings.filter_map(|line| line.split('`').nth(1)).collect();
    assert_eq!(headings, faults);
    for file in files(&root().join("tests/solutions/labs")) {
        let name = file.file_stem().unwrap().to_string_lossy();
        assert!(page.contains(&format!("`{name}`")), "{name} is no lab");
    }
}

#[test]
fn keys_of_the_files_are_explained() {
    let config: String = files(&root().join("config")).iter().map(read).collect();
    let parts: Vec<&str> = config.split('"').collect();
    let keys = parts.windows(2).filter(|pair| pair[1].starts_with(':'));
    let keys: BTreeSet<&str> = keys.map(|pair| pair[0]).collect();
    assert!(keys.len() > 40, "{keys:?}");
    check_explained(keys.into_iter());
}

/// The samples of the guide are what the programs print: a line of the journal, and a player's line
/// about its match, which an exercise makes longer.
#[test]
fn samples_are_what_the_programs_print() {
    let configuration = read("src/guide/configuration.md");
    let mut lines = configuration.lines();
    let recorded = lines.find_map(|line| line.strip_prefix(r#"{"line":12,"#));
    let recorded = format!("{{{}", recorded.unwrap());
    let event: Event = serde_json::from_str(&recorded).unwrap();
    assert_eq!(serde_json::to_string(&event).unwrap(), recorded);

    let choices = [("P01", Some(Parity::Even)), ("P02", Some(Parity::Odd))];
    let result = GameResult {
        status: ResultStatus::Win,
        winner_player_id: Some("P01".into()),
        drawn_number: Some(4),
        number_parity: Some(Parity::Even),
        choices: choices
            .map(|(id, choice)| (id.into(), choice))
            .into_iter()
            .collect(),
        reason: None,
        moves: None,
    };
    let line = display::about_match("R1M1", &display::result(&result, "P01", "P02", "odd"));
    let sample = format!("\n{line}, after 17 ms\n");
    assert!(read("src/guide/exercises.md").contains(&sample), "{sample}");
}
