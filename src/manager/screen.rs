//! The league in the manager's terminal: who registers, the rounds, the results, the table, the
//! champion. A thread prints what is new in the order in which it happened. It only reads, so the
//! league is played the same without it.

use super::Manager;
use super::league::{League, Match, Member};
use crate::games::game_result;
use crate::net::sync::{lock, spawn_needed};
use crate::program::terminal::{describe_result, pad, plural, print_line, sanitize, width};
use crate::protocol::{AgentKind, Standing};
use crate::values::truncate;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of rows of the table that are shown while the league is played.
pub const LEADERS: usize = 16;
/// Maximum length of a name in the table.
const MAX_NAME: usize = 31;
/// Maximum time until the league is read again.
const READ_INTERVAL: Duration = Duration::from_secs(5);

/// The rounds and results of a league that have been printed.
pub struct Screen {
    round: u32,
    results: usize,
}

/// Starts a thread that prints what happens in a manager's league from now on.
pub fn follow(manager: &Arc<Manager>) {
    *lock(&manager.screen) =
        (manager.store).read(|league| (!league.closed).then(|| Screen::new(league)));
    let manager = Arc::clone(manager);
    spawn_needed("screen", move || {
        while let Some(version) = manager.print_news() {
            (manager.store).wait(READ_INTERVAL, |league| league.version != version);
        }
    });
}

impl Manager {
    /// Prints that an agent has registered; or has done so again, if its line may be printed.
    pub fn print_arrival(&self, member: &Member) {
        let (id, name) = (&member.id, &member.meta.display_name);
        let mut line = format!("{} is here", sanitize(&member.name_and_id()));
        self.store.read(|league| {
            let mut players = league.members(AgentKind::Player).into_iter();
            let other = players.find(|other| other.id != *id && other.meta.display_name == *name);
            if let Some(other) = other.filter(|_| member.kind == AgentKind::Player) {
                line += &format!("; {} has the same name", other.id);
            }
        });

        let is_first = self.contacts.with(|table| table.registrations(id)) == 1;
        if lock(&self.screen).is_some() && (is_first || self.program.may_print(&line)) {
            self.terminal.print_line(&line);
        }
    }

    /// Prints what is new in the league, and at its end the table and the champion. Returns the
    /// number of events; `None` if the end has been printed, or if nothing is to be printed.
    pub fn print_news(&self) -> Option<u64> {
        let mut shown = lock(&self.screen);
        let screen = shown.as_mut()?;
        let (version, lines, end) = self.store.read(|league| {
            let end = league.is_over().then(|| final_lines(league));
            (league.version, screen.news(self, league), end)
        });

        for line in lines {
            self.terminal.print_line(&line);
        }
        if let Some(end) = end {
            print_line(&end); // also with --quiet
            *shown = None;
            return None;
        }
        Some(version)
    }
}

impl Screen {
    /// Returns a screen for which the present results are not new.
    fn new(league: &League) -> Screen {
        Screen {
            round: 0,
            results: league.played.len(),
        }
    }

    /// Returns the lines for what is new.
    fn news(&mut self, manager: &Manager, league: &League) -> Vec<String> {
        let mut lines = Vec::new();
        if league.started && self.round == 0 {
            let name = manager.program.args.text("--name");
            let name = sanitize(name.unwrap_or(&league.config.league.display_name));
            lines.push(format!("\n{name}"));
        }

        let new = league.played[self.results..].iter();
        for the_match in new.filter_map(|id| league.find(id)) {
            self.add_round(the_match.round, league, &mut lines);
            let line = result_line(league, the_match);
            lines.extend(line.map(|line| line + &manager.hooks.hint(league, the_match)));
        }
        self.results = league.played.len();

        if let Some(round) = league.open_round() {
            self.add_round(round, league, &mut lines);
        }
        lines
    }

    /// Adds a line with the matches of a new round, and before it the table after the last one.
    fn add_round(&mut self, round: u32, league: &League, lines: &mut Vec<String>) {
        if round <= self.round {
            return;
        }
        if self.round > 0 {
            lines.push(format!(
                "\n{}",
                grid(&league.table(), &league.ranks(), LEADERS)
            ));
        }
        self.round = round;

        let mut pairs = Vec::new();
        for the_match in league.matches_of_round(round) {
            let names = the_match.players.each_ref().map(|id| name(league, id));
            pairs.push(names.join(" meets "));
        }
        lines.push(format!(
            "\nRound {round} of {}: {}",
            league.rounds(),
            pairs.join(", ")
        ));
    }
}

/// Returns the final table and the champion.
fn final_lines(league: &League) -> String {
    let table = grid(&league.table(), &league.ranks(), usize::MAX);
    format!("\n{table}\n\n{}", result(league))
}

/// Returns `R1M1   Agent Alpha (even) beat Agent Beta (odd): the number was 8`.
pub fn result_line(league: &League, the_match: &Match) -> Option<String> {
    let result = game_result(&the_match.recorded.as_ref()?.result);
    let outcome = describe_result(&result, &the_match.players, |id| name(league, id));
    Some(format!("  {:<7} {outcome}", the_match.id))
}

fn name(league: &League, player_id: &str) -> String {
    sanitize(&league.members[player_id].meta.display_name)
}

/// Returns how a league has ended: `Champion: Ada (P01) with 7 points`.
pub fn result(league: &League) -> String {
    let (table, ranks) = (league.table(), league.ranks());
    let points = table.first().map_or(0, |best| best.points);
    let points = plural(points, "point");
    format!("{} with {points}", champions(&table, &ranks))
}

/// Returns `Champion: Ada (P01)`, or all players that share the first rank.
pub fn champions(standings: &[Standing], ranks: &[String]) -> String {
    let mut names = Vec::new();
    for (row, rank) in standings.iter().zip(ranks) {
        if *rank == ranks[0] {
            names.push(format!(
                "{} ({})",
                sanitize(&row.display_name),
                row.player_id
            ));
        }
    }
    format!("Champion: {}", names.join(" and "))
}

/// Returns the first rows of a league's table, with the ranks for people.
pub fn grid(standings: &[Standing], ranks: &[String], max_rows: usize) -> String {
    let shown = &standings[..standings.len().min(max_rows)];
    let name = |row: &Standing| truncate(&sanitize(&row.display_name), MAX_NAME);
    let widths = shown.iter().map(|row| width(&name(row)));
    let columns = widths.fold(width("Player"), usize::max);

    let player = pad("Player", columns);
    let mut table = format!("Rank  Id   {player}  Played  Wins  Draws  Losses  Points");
    for (row, rank) in shown.iter().zip(ranks) {
        table += &format!(
            "\n{rank:>4}  {:<4} {}  {:>6}  {:>4}  {:>5}  {:>6}  {:>6}",
            row.player_id,
            pad(&name(row), columns),
            row.played,
            row.wins,
            row.draws,
            row.losses,
            row.points
        );
    }
    let more = standings.len() - shown.len();
    if more > 0 {
        table += &format!("\n… and {more} more: standings.json has all");
    }
    table
}
