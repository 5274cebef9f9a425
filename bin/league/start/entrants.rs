//! Entrants. A file of entrants has a line for each player: its name, a tab, and the command that
//! starts the player. A URL in the place of the command stands for a player of another machine,
//! which registers by itself.

use crate::players::strategies;
use league::program::args::Exit;
use league::program::storage;
use league::values::{check_display_name, truncate};
use std::collections::BTreeMap;
use std::path::Path;

/// The file in a league's folder with its entrants.
pub const FILE: &str = "entrants.txt";
/// Maximum length of a name that is made from a command, in characters.
const MAX_NAME: usize = 30;

/// A player that enters a league.
#[derive(Debug, Clone, PartialEq)]
pub struct Entrant {
    /// The name in the tables.
    pub name: String,
    /// The command that starts it here: the name of a strategy, or a program with its options; or
    /// the URL of a player that is started on another machine.
    pub command: String,
}

impl Entrant {
    /// Returns the player of a command, with the name of its last word that is no option.
    pub fn of(command: &str) -> Entrant {
        let mut words = words(command).into_iter();
        let last = words.rfind(|word| !word.starts_with('-'));
        let name = last.and_then(|last| last.rsplit(['/', '\\']).next());
        Entrant {
            name: truncate(name.unwrap_or_default(), MAX_NAME),
            command: command.into(),
        }
    }

    /// Returns true for a program of the user: neither a strategy nor a player of another machine.
    pub fn is_own(&self) -> bool {
        !self.is_remote() && strategies::all_names().all(|name| name != self.command)
    }

    /// Returns true if the player is started on another machine.
    pub fn is_remote(&self) -> bool {
        self.command.starts_with("http://") || self.command.starts_with("https://")
    }
}

/// Returns the words of a command. A word that begins with a quotation mark ends with the next one,
/// so the path of a program may have a blank.
pub fn words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = command.trim_start();
    while !rest.is_empty() {
        let split = match rest.strip_prefix(['"', '\'']) {
            Some(quoted) => quoted.split_once(&rest[..1]).unwrap_or((quoted, "")),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(split.0);
        rest = split.1.trim_start();
    }

    words
}

/// Returns the commands of a list with commas between them, which may have commas in quotation
/// marks.
pub fn commands(list: &str) -> Vec<&str> {
    let (mut quote, mut last) = (None, ',');
    let commands = list.split(|c: char| {
        let is_start = last == ',' || last.is_whitespace();
        match quote {
            None if is_start && matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
        last = c;
        c == ',' && quote.is_none()
    });
    commands
        .map(str::trim)
        .filter(|command| !command.is_empty())
        .collect()
}

/// Returns entrants as the lines of a file.
pub fn text(entrants: &[Entrant]) -> String {
    let mut text = String::new();
    for Entrant { name, command } in entrants {
        text += &format!("{name}\t{command}\n");
    }

    text
}

/// Reads a file of entrants. Each name enters once.
pub fn read(path: &Path) -> Result<Vec<Entrant>, Exit> {
    let text = storage::read_text(path).map_err(|error| Exit::usage(error.to_string()))?;
    parse(&text).map_err(|problem| Exit::usage(format!("{}: {problem}", path.display())))
}

fn parse(text: &str) -> Result<Vec<Entrant>, String> {
    let mut entrants = Vec::new();
    let mut lines = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }

        let (name, command) = line.split_once('\t').unwrap_or_default();
        let (name, command) = (name.trim(), command.trim());
        if check_display_name(name).is_err() || command.is_empty() {
            let expected = "a name of 1 to 50 characters, a tab, and a command or a URL";
            return Err(format!("line {number}: got {line:?}, expected {expected}"));
        }
        if let Some(first) = lines.insert(name, number) {
            return Err(format!(
                "line {number}: {name} enters in line {first} already"
            ));
        }
        entrants.push(Entrant {
            name: name.into(),
            command: command.into(),
        });
    }

    Ok(entrants)
}
