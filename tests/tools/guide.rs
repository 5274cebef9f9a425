//! The README and the pages of the guide agree with the project: quoted code stands in the source, and
//! named files, commands, options and keys exist.

use super::support::{executable, files};
use league::manager::league::Event;
use league::player::display;
use league::protocol::{GameResult, Parity, ResultStatus};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
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

/// A page of the guide.
struct Page {
    path: PathBuf,
    text: String,
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
    /// Returns the blocks of code: the words behind the first fence, and the lines.
    fn blocks(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        let blocks = self.text.split("```").skip(1).step_by(2);
        let blocks = blocks.filter_map(|block| block.split_once('\n'));
        blocks.map(|(info, lines)| (info, lines.lines().collect()))
    }

    /// Returns the lines outside of blocks.
    fn prose(&self) -> impl Iterator<Item = &str> {
        let prose = self.text.split("```").step_by(2);
        prose.flat_map(str::lines)
    }

    /// Returns the texts between backticks.
    fn spans(&self) -> impl Iterator<Item = &str> {
        self.prose()
            .flat_map(|line| line.split('`').skip(1).step_by(2))
    }

    /// Returns the lines that a reader may type: code spans, and blocks for a terminal.
    fn typed(&self) -> impl Iterator<Item = &str> {
        let for_terminal = |info: &str| ["", "sh", "text"].contains(&info);
        let blocks = self.blocks().filter(move |(info, _)| for_terminal(info));
        blocks.flat_map(|(_, lines)| lines).chain(self.spans())
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
    let menu = include_str!("../../Makefile").lines();
    let menu = menu.filter(|line| !line.starts_with('\t'));
    let mut items = menu.filter_map(|line| line.split_once("## "));
    assert!(items.all(|(_, text)| text.chars().count() <= 62));
}

#[test]
fn quoted_code_is_in_the_source() {
    let mut quotes = 0;
    let mut stale = Vec::new();
    for page in pages() {
        for (info, lines) in page.blocks() {
            let first = lines.first().copied().unwrap_or_default();
            let path = first.strip_prefix("// ").unwrap_or_default().trim();
            if !info.starts_with("rust") || !path.ends_with(".rs") {
                continue;
            }
            quotes += 1;
            let shown = page.path.display();
            let source = fs::read_to_string(root().join(path));
            let source = source.unwrap_or_else(|error| panic!("{shown}: {path}: {error}"));
            let source = squeezed(&source);
            let mut rest = &source[..];
            // A line `// …` stands for lines that are left out.
            for part in lines[1..].split(|line| line.trim().starts_with("// …")) {
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
fn links_and_paths_exist() {
    for page in pages() {
        let shown = page.path.display();
        let fences = page.text.matches("```").count();
        assert_eq!(fences % 2, 0, "{shown}: a fence is open");
        let links = page.prose().flat_map(|line| line.split("](").skip(1));
        for link in links.filter_map(|link| link.split(')').next()) {
            let is_elsewhere = link.contains("://") || link.contains("::") || link.starts_with('#');
            let path = page.path.parent().unwrap().join(link);
            assert!(is_elsewhere || path.exists(), "{shown}: no file {link}");
        }
        for span in page.spans() {
            let folders = ["src/", "bin/", "tests/", "config/", ".ci/"];
            let is_path = folders.iter().any(|folder| span.starts_with(folder));
            let is_path = is_path && !span.contains("ID"); // a place for any id
            let is_there =
                READERS_OWN.split(' ').any(|path| path == span) || root().join(span).exists();
            assert!(!is_path || is_there, "{shown}: no file {span}");
        }
    }
}

#[test]
fn commands_and_options_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
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

    for page in pages() {
        let shown = page.path.display();
        for line in page.typed() {
            for target in after(line, "make") {
                assert!(targets.contains(target), "{shown}: no target in {line}");
            }
            let is_ours =
                |start: &&str| line.starts_with(start) || line.contains(&format!("'{start}"));
            let is_tool = ["league ", "cargo run --bin league "].iter().any(is_ours);
            for word in after(line, "league").into_iter().filter(|_| is_tool) {
                assert!(words.contains(word), "{shown}: no word {word} in {line}");
            }
            let is_ours = OURS.split(' ').any(|name| line.contains(name));
            if !is_ours && !line.starts_with("--") {
                continue; // a batch engine's, or a shell's
            }
            let tokens = line.split(|c: char| !c.is_ascii_lowercase() && c != '-');
            let named = tokens.filter(|token| token.starts_with("--") && token.len() > 3);
            for option in named.filter(|option| !option.ends_with('-')) {
                let mut others = UNLISTED_OPTIONS.split(' ');
                let is_known = options.contains(option) || others.any(|other| other == option);
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
fn labs_are_the_faults_of_the_suite() {
    let suite = fs::read_to_string(root().join("tests/faults.py")).unwrap();
    let (_, list) = suite.split_once("\nFAULTS = {").unwrap();
    let (_, list) = list.split_once("in (").unwrap();
    let (list, _) = list.split_once(')').unwrap();
    let names = list.split(',').map(|name| name.trim().replace('_', "-"));
    let faults: Vec<String> = names.filter(|name| !name.is_empty()).collect();
    assert_eq!(faults.len(), 12);

    let page = fs::read_to_string(root().join("src/guide/labs.md")).unwrap();
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
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap();
    let config: String = files(&root().join("config")).iter().map(text).collect();
    let parts: Vec<&str> = config.split('"').collect();
    let keys = parts.windows(2).filter(|pair| pair[1].starts_with(':'));
    let keys: BTreeSet<&str> = keys.map(|pair| pair[0]).collect();
    assert!(keys.len() > 40, "{keys:?}");
    let page = fs::read_to_string(root().join("src/guide/configuration.md")).unwrap();
    for key in keys {
        assert!(
            page.contains(key),
            "configuration.md does not explain {key}"
        );
    }
}

/// The samples of the guide are what the programs print: a line of the journal, and a player's line
/// about its match, which an exercise makes longer.
#[test]
fn samples_are_what_the_programs_print() {
    let text = |name: &str| fs::read_to_string(root().join("src/guide").join(name)).unwrap();
    let configuration = text("configuration.md");
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
    assert!(text("exercises.md").contains(&sample), "{sample}");
}
