//! The league in the manager's terminal: who registers, the rounds, the results, the table, the
//! champion. A thread prints what is new in the order in which it happened. It only reads, so the
//! league is played the same without it.

use super::Manager;
use super::league::{League, Match};
use crate::games::game_result;
use crate::net::sync::{lock, spawn_needed};
use crate::program::terminal::{describe_result, pad, plural, print_line, sanitize, width};
use crate::protocol::{AgentKind, Standing};
use crate::values::{Timestamp, truncate};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of rows of the table that are shown while the league is played.
pub const LEADERS: usize = 16;
/// Maximum length of a name in the table.
const MAX_NAME: usize = 31;
/// Maximum time until the league is read again.
const READ_INTERVAL: Duration = Duration::from_secs(5);

/// The part of a league that has been printed.
pub struct Screen {
    /// The time of registration of each printed agent.
    registered: BTreeMap<String, Timestamp>,
    round: u32,
    results: usize,
    has_ended: bool,
}

/// Starts a thread that prints what happens in a manager's league from now on.
pub fn follow(manager: &Arc<Manager>) {
    let screen = manager.store.read(Screen::new);
    *lock(&manager.screen) = Some(screen);
    let manager = Arc::clone(manager);
    spawn_needed("screen", move || {
        while let Some(version) = manager.print_news() {
            (manager.store).wait(READ_INTERVAL, |league| league.version != version);
        }
    });
}

impl Manager {
    /// Prints what is new in the league, and at its end the table and the champion. Returns the
    /// number of events; `None` if the end has been printed, or if nothing is to be printed.
    pub fn print_news(&self) -> Option<u64> {
        let mut screen = lock(&self.screen);
        let screen = screen.as_mut().filter(|screen| !screen.has_ended)?;
        let (version, lines, end) = self.store.read(|league| {
            let lines = screen.news(self, league);
            (league.version, lines, screen.final_lines(league))
        });

        for line in lines {
            self.terminal.print_line(&line);
        }
        if let Some(end) = end {
            print_line(&end); // also with --quiet
        }
        (!screen.has_ended).then_some(version)
    }
}

impl Screen {
    /// Returns a screen for which the present agents and results are not new.
    fn new(league: &League) -> Screen {
        let mut screen = Screen {
            registered: BTreeMap::new(),
            round: 0,
            results: league.played.len(),
            has_ended: league.closed,
        };
        screen.arrivals(league, |_| false);
        screen
    }

    /// Returns the lines for what is new.
    fn news(&mut self, manager: &Manager, league: &League) -> Vec<String> {
        let mut lines = self.arrivals(league, |line| manager.program.may_print(line));
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

    /// Returns a line for each agent that has registered since the last time; or has done so again,
    /// if its line may be printed.
    fn arrivals(&mut self, league: &League, may_print: impl Fn(&str) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        for member in league.members.values() {
            let (id, time) = (&member.id, member.registered_at);
            if self.registered.get(id) == Some(&time) {
                continue;
            }
            let is_first = self.registered.insert(id.clone(), time).is_none();

            let mut line = format!("{} is here", sanitize(&member.name_and_id()));
            let mut others = league.members.values();
            let name = &member.meta.display_name;
            if member.kind == AgentKind::Player
                && let Some(other) = others.find(|o| o.id != *id && o.meta.display_name == *name)
            {
                line += &format!("; {} has the same name", other.id);
            }
            if is_first || may_print(&line) {
                lines.push(line);
            }
        }
        lines
    }

    /// Returns the final table and the champion when the league is over.
    fn final_lines(&mut self, league: &League) -> Option<String> {
        if !league.is_over() {
            return None; // The table of a running league is not made each time.
        }

        self.has_ended = true;
        let table = grid(&league.table(), &league.ranks(), usize::MAX);
        Some(format!("\n{table}\n\n{}", result(league)))
    }
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
