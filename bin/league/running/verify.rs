//! `league verify`: checks that the files of a league agree.
//!
//! The journal has the results that count. Each must be one that its referee has written into its
//! outbox, and the result that both players remember in their histories. No log may show a token.

use crate::files::{read_journal, read_lines};
use league::games::match_result;
use league::manager::league::{Event, League};
use league::player::history::HistoryFile;
use league::program::args::{Args, COMMON, Exit, Usage};
use league::program::config::Config;
use league::program::terminal::{plural, print_line};
use league::program::{self, storage};
use league::protocol::{AgentKind, MatchResult};
use league::referee::outbox::PendingResult;
use league::values::redact_tokens;
use std::fs;
use std::path::{Path, PathBuf};

pub const USAGE: Usage = Usage {
    name: "league verify",
    about: "check that journal, outboxes and histories agree, and no log has a token",
    options: &[COMMON],
};

/// Checks the league that the command line names, and prints what was found.
pub fn run(args: &Args) -> Result<(), Exit> {
    let checked = Checked::new(program::load_config(args)?, args)?;
    print_line(&checked.summary());
    checked.check()
}

/// The files of a league, and in which points they differ.
pub struct Checked {
    league: League,
    outboxes: usize,
    histories: usize,
    logs: usize,
    /// One sentence for each difference.
    differences: Vec<String>,
}

impl Checked {
    /// Reads the files of a league in the folders of a command line.
    pub fn new(config: Config, args: &Args) -> Result<Checked, Exit> {
        let data = &program::data_folder(args);
        let mut checked = Checked {
            league: League::new(config),
            outboxes: 0,
            histories: 0,
            logs: 0,
            differences: Vec::new(),
        };

        checked.read_journal(data)?;
        checked.check_outboxes(data);
        checked.check_histories(data);
        checked.check_logs(&program::log_folder(args));
        Ok(checked)
    }

    /// Fails with the differences, if there are any.
    pub fn check(&self) -> Result<(), Exit> {
        if self.differences.is_empty() {
            return Ok(());
        }
        Err(Exit::failure(self.differences.join("\n")))
    }

    /// Describes in one line what agrees, or how much does not.
    fn summary(&self) -> String {
        let league = &self.league.config.league.league_id;
        let results = plural(self.league.played.len() as u32, "result");
        let (outboxes, histories, logs) = (self.outboxes, self.histories, self.logs);
        let differences = plural(self.differences.len() as u32, "difference");
        let found = match self.differences.len() {
            0 => "all agree, and no log shows a token".to_string(),
            _ => differences,
        };

        format!(
            "{league}: {results} in the journal; outboxes: {outboxes}, histories: {histories}, \
             logs: {logs}; {found}"
        )
    }

    /// Applies the events of the journal. A match that is recorded twice is a difference.
    fn read_journal(&mut self, data: &Path) -> Result<(), Exit> {
        let folder = storage::league_folder(data, &self.league.config.league.league_id);
        for event in read_journal(&folder)? {
            if let Event::Recorded(recorded) = &event
                && self.league.played.contains(&recorded.match_id)
            {
                let text = format!("{} is recorded twice", recorded.match_id);
                self.differences.push(text);
            }
            self.league.apply(&event);
        }

        Ok(())
    }

    /// Checks that each result is one that its referee has written down.
    fn check_outboxes(&mut self, data: &Path) {
        for referee in self.league.members(AgentKind::Referee) {
            let path = data.join("referees").join(&referee.id).join("outbox.jsonl");
            let written: Vec<PendingResult> = read_lines(&path, 0).unwrap_or_default();
            self.outboxes += 1;

            for the_match in &self.league.matches {
                let Some(recorded) = &the_match.recorded else {
                    continue;
                };
                let is_written = written.iter().any(|pending| {
                    pending.report.match_id == the_match.id
                        && pending.report.result == recorded.result
                });
                if recorded.referee_id == referee.id && !is_written {
                    let text = format!("{} is not in the outbox of {}", the_match.id, referee.id);
                    self.differences.push(text);
                }
            }
        }
    }

    /// Checks that no player remembers another result than the recorded one.
    fn check_histories(&mut self, data: &Path) {
        let scoring = &self.league.config.league.scoring;
        for player in self.league.members(AgentKind::Player) {
            let path = data.join("players").join(&player.id).join("history.json");
            let history: Option<HistoryFile> = storage::read_json(&path).unwrap_or_default();
            let league_id = &self.league.config.league.league_id;
            let Some(history) = history.filter(|history| history.league_id == *league_id) else {
                continue; // a player of another machine, or one that keeps no history
            };
            self.histories += 1;

            for past in history.matches.iter() {
                let recorded = self.league.find(&past.match_id);
                let recorded = recorded.and_then(|the_match| the_match.recorded.as_ref());
                let remembered = match_result(&past.result, scoring);
                let is_same = recorded.is_some_and(|recorded| {
                    without_reason(&recorded.result) == without_reason(&remembered)
                });
                if !is_same {
                    let text = format!(
                        "{} remembers {} otherwise than the journal has it",
                        player.id, past.match_id
                    );
                    self.differences.push(text);
                }
            }
        }
    }

    /// Checks that no log shows a token.
    fn check_logs(&mut self, folder: &Path) {
        for path in files(folder) {
            let text = fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            self.logs += 1;
            if redact_tokens(&text) != text {
                let text = format!("{} shows a token", path.display());
                self.differences.push(text);
            }
        }
    }
}

/// Returns a result without its reason, which a player may have cut.
fn without_reason(result: &MatchResult) -> MatchResult {
    let mut result = result.clone();
    result.details.reason = None;
    result
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }

    found
}
