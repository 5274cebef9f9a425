//! `verify`: checks that the files of a league agree. Tests run this program after their leagues.
//!
//! The journal has the results that count. Each must be one that its referee has written into its
//! outbox, and the result that both players remember in their histories. No log and no text that a
//! program has printed may show a token or a key. Files that lie elsewhere, with an agent of
//! another machine, are not missed: the summary says how many were seen.

use league::games::{game_result, match_result};
use league::manager::league::{Event, League, Member};
use league::player::history::HistoryFile;
use league::program::args::{Args, COMMON, Exit, Usage, exit_code};
use league::program::config::Config;
use league::program::credentials::Credentials;
use league::program::terminal::{plural, print_error, print_line};
use league::program::{self, storage};
use league::protocol::{AgentKind, MatchResult};
use league::referee::tasks::Task;
use league::values::redact_tokens;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

const USAGE: Usage = Usage {
    name: "verify [FILE…]",
    about: "check that all files agree, and no log or FILE has a token",
    options: &[COMMON],
};

/// Maximum number of differences that are printed.
const MAX_PRINTED: usize = 20;

fn main() -> ExitCode {
    exit_code("verify", run(std::env::args().skip(1).collect()))
}

/// Checks the league that the command line names, and prints what was found. The words before the
/// options are files with what its programs have printed.
fn run(arguments: Vec<String>) -> Result<(), Exit> {
    let is_file = |argument: &&String| !argument.starts_with("--");
    let count = arguments.iter().take_while(is_file).count();
    let (printed, options) = arguments.split_at(count);
    let args = USAGE.parse(options.to_vec())?;

    let mut checked = Checked::new(program::load_config(&args)?, &args)?;
    for file in printed {
        checked.check_secrets(Path::new(file))?;
    }
    print_line(&checked.summary());
    if checked.print_differences() {
        return Ok(());
    }
    Err(Exit::failure(""))
}

/// The files of a league, and in which points they differ.
struct Checked {
    league: League,
    /// The registration keys of all agents.
    keys: Vec<String>,
    outboxes: usize,
    histories: usize,
    logs: usize,
    /// The number of results that a player does not remember.
    forgotten: u32,
    /// Names the players of this machine that have no history.
    missing: String,
    /// One sentence for each difference.
    differences: Vec<String>,
}

impl Checked {
    /// Reads the files of a league in the folders of a command line.
    fn new(config: Config, args: &Args) -> Result<Checked, Exit> {
        let data = &program::data_folder(args);
        let mut checked = Checked {
            league: League::new(config),
            keys: Vec::new(),
            outboxes: 0,
            histories: 0,
            logs: 0,
            forgotten: 0,
            missing: String::new(),
            differences: Vec::new(),
        };

        checked.read_journal(data)?;
        checked.check_results();
        for member in checked.league.clone().members.values() {
            checked.check_member(data, member);
        }
        checked.check_logs(&program::log_folder(args))?;
        Ok(checked)
    }

    /// Prints the differences, one a line. Returns true if there are none.
    fn print_differences(&self) -> bool {
        for difference in self.differences.iter().take(MAX_PRINTED) {
            print_error(difference);
        }
        if self.differences.len() > MAX_PRINTED {
            print_error(&format!(
                "and {} more",
                self.differences.len() - MAX_PRINTED
            ));
        }
        self.differences.is_empty()
    }

    /// Describes in one line what agrees, or how much does not.
    fn summary(&self) -> String {
        let league = &self.league;
        let id = &league.config.league.league_id;
        let (results, matches) = (league.played.len(), league.matches.len());
        let referees = league.members(AgentKind::Referee).len();
        let players = league.members(AgentKind::Player).len();
        let (outboxes, histories, logs) = (self.outboxes, self.histories, self.logs);
        let all_logs = self.own_logs().len();
        let found = match self.differences.len() {
            0 => "all agree, and no log shows a token or a key".to_string(),
            differences => plural(differences as u32, "difference"),
        };

        format!(
            "{id}: {results} of {matches} results in the journal; outboxes: {outboxes} of {referees}, \
             histories: {histories} of {players} (they lack {}{}), \
             logs: {logs} of {all_logs}; {found}",
            plural(self.forgotten, "result"),
            self.missing
        )
    }

    /// Applies the events of the journal. A match that is recorded twice is a difference.
    fn read_journal(&mut self, data: &Path) -> Result<(), Exit> {
        let folder = storage::league_folder(data, &self.league.config.league.league_id);
        for event in read_lines(&folder.join("journal.jsonl"), 1)? {
            let event: Event = event;
            match &event {
                Event::Recorded(recorded) if self.league.played.contains(&recorded.match_id) => {
                    let text = format!("{} is recorded twice", recorded.match_id);
                    self.differences.push(text);
                }
                Event::Registered(member) => self.keys.extend(member.meta.registration_key.clone()),
                _ => {}
            }
            self.league.apply(&event);
        }

        Ok(())
    }

    /// Checks that each match has a result, from a referee that had the match. A comparison that is
    /// decided ends between two rounds: the rounds that have not begun have no results.
    fn check_results(&mut self) {
        let league = &self.league;
        if !league.started {
            self.differences.push("the league has not begun".into());
        }
        let mut latest_first = league.matches.iter().rev();
        let last_begun = latest_first.find(|m| m.referee().is_some() || m.recorded.is_some());
        let last_round = match last_begun {
            Some(the_match) if league.closed => the_match.round,
            _ => league.rounds(),
        };

        let mut unknown = BTreeSet::new();
        for the_match in &league.matches {
            let players = the_match.players.iter();
            unknown.extend(players.filter(|id| league.player(id).is_none()));

            let id = &the_match.id;
            let Some(recorded) = &the_match.recorded else {
                if the_match.round <= last_round {
                    self.differences.push(format!("{id} has no result"));
                }
                continue;
            };
            let referee = &recorded.referee_id;
            let mut assignments = the_match.assignments.iter();
            let is_walkover = *referee == AgentKind::Manager.to_string();
            if !is_walkover && !assignments.any(|given| given.referee_id == *referee) {
                let text = format!("{id} has a result of {referee}, which did not have it");
                self.differences.push(text);
            }
        }
        for id in unknown {
            let text = format!("{id} plays, but has not registered");
            self.differences.push(text);
        }
    }

    /// Checks the outbox or the history of an agent, unless it lies elsewhere.
    fn check_member(&mut self, data: &Path, member: &Member) {
        if !is_here(data, member) {
            return;
        }
        let id = &member.id;
        let checked = if member.kind == AgentKind::Referee {
            let path = data.join("referees").join(id).join("outbox.jsonl");
            read_lines(&path, 0).map(|lines| self.check_outbox(id, lines))
        } else {
            let path = data.join("players").join(id).join("history.json");
            let is_ours = matches!(Credentials::load(data, id), Ok(Some(_)));
            storage::read_json(&path).map(|history| match history {
                Some(history) => self.check_history(id, &history),
                None if is_ours => {
                    self.missing += &format!("; {id} has no file");
                    self.count_forgotten(id, &BTreeSet::new());
                }
                None => {}
            })
        };

        if let Err(error) = checked
            && !storage::is_missing(&error)
        {
            self.differences.push(error.to_string());
        }
    }

    /// Checks that each result is one that its referee has written down, and that the journal lacks
    /// none of these.
    fn check_outbox(&mut self, id: &str, lines: Vec<Value>) {
        let results = lines.into_iter().map(serde_json::from_value);
        let written: Vec<Task> = results.filter_map(Result::ok).collect();
        self.outboxes += 1;

        for task in &written {
            let match_id = &task.assignment.match_id;
            let the_match = self.league.find(match_id);
            if the_match.is_none_or(|the_match| the_match.recorded.is_none()) {
                let text = format!("{id} has decided {match_id}, which has no result");
                self.differences.push(text);
            }
        }
        for the_match in &self.league.matches {
            let Some(recorded) = &the_match.recorded else {
                continue;
            };
            let result = game_result(&recorded.result);
            let is_written = written.iter().any(|task| {
                task.assignment.match_id == the_match.id && task.result.as_ref() == Some(&result)
            });
            if recorded.referee_id == id && !is_written {
                let text = format!("{} is not in the outbox of {id}", the_match.id);
                self.differences.push(text);
            }
        }
    }

    /// Checks that a player remembers no other result than the recorded one, and counts the results
    /// that it does not remember.
    fn check_history(&mut self, id: &str, history: &HistoryFile) {
        let rules = &self.league.config.league;
        self.histories += 1;
        if history.player_id != id || history.league_id != rules.league_id {
            let (other, league_id) = (&history.player_id, &history.league_id);
            let text = format!("the history of {id} is that of {other} in {league_id}");
            self.differences.push(text);
            return;
        }

        let mut remembered = BTreeSet::new();
        for past in history.matches.iter() {
            let result = without_reason(&match_result(&past.result, &rules.scoring));
            let mut matches = self.league.matches_of(id);
            let is_same = matches.any(|the_match| {
                let mut recorded = the_match.recorded.iter();
                the_match.id == past.match_id
                    && the_match.opponent(id) == past.opponent_id
                    && recorded.any(|recorded| without_reason(&recorded.result) == result)
            });
            let problem = if !is_same {
                "otherwise than the journal has it"
            } else if !remembered.insert(past.match_id.clone()) {
                "twice"
            } else {
                continue;
            };
            let text = format!("{id} remembers {} {problem}", past.match_id);
            self.differences.push(text);
        }

        self.count_forgotten(id, &remembered);
    }

    /// Counts the results of a player that it does not remember.
    fn count_forgotten(&mut self, id: &str, remembered: &BTreeSet<String>) {
        let played = self.league.matches_of(id);
        let forgotten = played.filter(|m| m.recorded.is_some() && !remembered.contains(&m.id));
        self.forgotten += forgotten.count() as u32;
    }

    /// Returns the names of the logs of the league and its agents, in the folder of logs.
    fn own_logs(&self) -> Vec<String> {
        let id = &self.league.config.league.league_id;
        let members = self.league.members.keys();
        let mut names: Vec<String> = members.map(|id| format!("agents/{id}.log.jsonl")).collect();
        names.push(format!("league/{id}/league.log.jsonl"));
        names.push("system/orchestrator.log.jsonl".into());
        names
    }

    /// Checks all files in the folder of logs.
    fn check_logs(&mut self, folder: &Path) -> io::Result<()> {
        let names = self.own_logs();
        self.logs = names
            .iter()
            .filter(|name| folder.join(name).is_file())
            .count();
        for path in files(folder) {
            self.check_secrets(&path)?;
        }
        Ok(())
    }

    /// Checks that a file shows no token and no registration key.
    fn check_secrets(&mut self, path: &Path) -> io::Result<()> {
        let text = fs::read(path).map_err(|error| storage::with_path(path, error))?;
        let text = String::from_utf8_lossy(&text);
        if redact_tokens(&text) != text {
            self.differences
                .push(format!("{} shows a token", path.display()));
        }
        if self.keys.iter().any(|key| text.contains(key)) {
            let text = format!("{} shows a registration key", path.display());
            self.differences.push(text);
        }
        Ok(())
    }
}

/// Returns false if the folder has the credentials of another agent with that id: its files are
/// those of another league.
fn is_here(data: &Path, member: &Member) -> bool {
    match Credentials::load(data, &member.id) {
        Ok(Some(saved)) => Some(saved.registration_key) == member.meta.registration_key,
        _ => true,
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
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {} // a link or a device is none of our files
        }
    }

    found
}

/// Returns the records of a file of JSON lines, without the first ones. A last line that was cut
/// off by a kill is left out.
fn read_lines<T: DeserializeOwned>(path: &Path, skipped: usize) -> io::Result<Vec<T>> {
    let text = storage::read_text(path)?;
    let (complete, _) = text.rsplit_once('\n').unwrap_or_default();

    let mut records = Vec::new();
    for line in complete.lines().skip(skipped) {
        let record = serde_json::from_str(line);
        records.push(record.map_err(|error| storage::with_path(path, error.into()))?);
    }

    Ok(records)
}
