//! The league in the manager's terminal. A thread follows the league, and prints what is new in the
//! order in which it happened. It only reads, so the league is played the same without it.

use crate::tables::{LEADERS, grid, pad};
use crate::view::LeagueView;
use league::games::result_status;
use league::manager::journal::Store;
use league::manager::league::{League, Match};
use league::net::sync::spawn;
use league::program::terminal::{Terminal, plural, print_line, sanitize};
use league::protocol::{AgentKind, GAME, MatchResult, ResultStatus};
use league::values::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Maximum time until the league is read again.
const READ_INTERVAL: Duration = Duration::from_secs(5);

/// The part of a league that has been printed.
struct Screen {
    title: String,
    /// The time between a round's announcement and its matches.
    lead: Duration,
    /// The time of registration of each printed agent.
    registered: BTreeMap<String, Timestamp>,
    round: u32,
    results: usize,
}

/// Starts a thread that prints what happens in a manager's league from now on; of a practice it prints
/// only how far it is. The receiver is disconnected when the league is over and the champion printed.
pub fn follow(
    store: &Arc<Store>,
    view: &LeagueView,
    lead: Duration,
    terminal: Terminal,
    is_practice: bool,
) -> Receiver<()> {
    let started = Instant::now();
    let mut screen = store.read(|league| Screen::new(league, view, lead));
    let (sender, receiver) = channel();
    let store = Arc::clone(store);
    spawn("screen", move || {
        let _sender = sender;
        loop {
            let (version, lines, end) =
                store.read(|league| (league.version, screen.news(league), end(league)));
            for line in lines {
                terminal.print_line(&line);
            }
            if let Some(end) = end {
                if !is_practice {
                    print_line(&end); // also with --quiet
                }
                return;
            }
            if is_practice {
                store.wait(READ_INTERVAL, League::is_over);
                if let Some(line) = store.read(|league| progress(league, started.elapsed())) {
                    print_line(&line);
                }
            } else {
                store.wait(READ_INTERVAL, |league| league.version != version);
            }
        }
    });

    receiver
}

/// Returns how far a practice is: `cycle 133 of 400, about 2 min left`.
pub fn progress(league: &League, elapsed: Duration) -> Option<String> {
    let cycles = league.config.league.scheduling.cycles?;
    let round = league.open_round()?;
    let cycle = (round - 1) * cycles / league.rounds() + 1;
    let (played, all) = (league.played.len(), league.matches.len());
    let left = elapsed.as_secs_f64() * (all - played) as f64 / played.max(1) as f64;

    let left = match left as u64 {
        seconds @ 0..90 => format!("{seconds} s"),
        seconds => format!("{} min", (seconds + 30) / 60),
    };
    Some(format!("cycle {cycle} of {cycles}, about {left} left"))
}

impl Screen {
    /// Returns a screen for which the present agents and results are not new.
    fn new(league: &League, view: &LeagueView, lead: Duration) -> Screen {
        let mut registered = BTreeMap::new();
        for member in league.members.values() {
            registered.insert(member.id.clone(), member.registered_at);
        }
        Screen {
            title: sanitize(&format!("{}: {}", view.league.called(), view.league.game)),
            lead,
            registered,
            round: 0,
            results: league.played.len(),
        }
    }

    /// Returns the lines for what is new.
    fn news(&mut self, league: &League) -> Vec<String> {
        let mut lines = self.arrivals(league);
        if league.started && self.round == 0 {
            let players = league.members(AgentKind::Player).len();
            let (title, duration) = (&self.title, self.least_duration(league.rounds()));
            let rounds = plural(league.rounds(), "round");
            lines.push(format!("\n{title}, {players} players, {rounds}{duration}"));
        }

        for match_id in &league.played[self.results..] {
            if let Some(the_match) = league.find(match_id) {
                self.open_round(the_match.round, league, &mut lines);
                lines.extend(result_line(league, the_match, ""));
            }
        }

        self.results = league.played.len();
        if let Some(round) = league.open_round() {
            self.open_round(round, league, &mut lines);
        }
        lines
    }

    /// Says how long so many rounds take at least with the lead before each.
    fn least_duration(&self, rounds: u32) -> String {
        let lead = self.lead.as_secs();
        match u64::from(rounds) * lead {
            0 => String::new(),
            time @ 1..120 => format!(", at least {time} s with a lead of {lead} s"),
            time => format!(", at least {} minutes with a lead of {lead} s", time / 60),
        }
    }

    /// Adds the heading of a new round, and before it the table after the last one.
    fn open_round(&mut self, round: u32, league: &League, lines: &mut Vec<String>) {
        if round <= self.round {
            return;
        }
        if self.round > 0 {
            lines.push(format!("\n{}", grid(&league.table(), LEADERS)));
        }
        self.round = round;

        lines.push(format!("\nRound {round} of {}", league.rounds()));
    }

    /// Returns a line for each agent that has registered since the last time, or has done so again.
    fn arrivals(&mut self, league: &League) -> Vec<String> {
        let mut lines = Vec::new();
        for member in league.members.values() {
            let (id, time) = (&member.id, member.registered_at);
            if self.registered.insert(id.clone(), time) != Some(time) {
                let name = &member.meta.display_name;
                let mut line = format!("{id:<5} {} is here", pad(&sanitize(name), 16));
                let mut others = league.members.values().filter(|other| other.id != *id);
                if member.kind == AgentKind::Player
                    && let Some(other) = others.find(|other| other.meta.display_name == *name)
                {
                    line += &format!("; {} has the same name", other.id);
                }
                lines.push(line);
            }
        }

        lines
    }
}

/// Returns the final table and the champion if the league is over.
fn end(league: &League) -> Option<String> {
    if !league.is_over() {
        return None; // The table of a running league is not made each time.
    }
    let table = league.table();
    let champion = table.first()?;
    let (name, id) = (sanitize(&champion.display_name), &champion.player_id);
    let points = plural(champion.points, "point");
    let table = grid(&table, usize::MAX);

    Some(format!(
        "\n{table}\n\nChampion: {name} ({id}) with {points}"
    ))
}

/// Returns a line for the first technical loss of each player, with the command that shows what was
/// said. `logs` is the folder of the referees' logs.
pub fn first_losses(league: &League, logs: &Path) -> Vec<String> {
    let logs = format!(" LOGS={}", logs.display());
    let mut losses = BTreeSet::new(); // both players may have lost the same match
    for player in league.members(AgentKind::Player) {
        let mut matches = league.matches_of(&player.id);
        if let Some(lost) = matches.find(|the_match| has_failed(the_match, &player.id)) {
            losses.extend(result_line(league, lost, &logs));
        }
    }

    let mut lines = Vec::new();
    if !losses.is_empty() {
        lines.push("\nThe first technical loss of each:".into());
        lines.extend(losses);
    }

    lines
}

/// Returns the names of the players that have lost all their matches technically.
pub fn players_without_a_match(league: &League) -> Vec<String> {
    let mut names = Vec::new();
    for player in league.members(AgentKind::Player) {
        let mut matches = league.matches_of(&player.id).peekable();
        if matches.peek().is_some() && matches.all(|the_match| has_failed(the_match, &player.id)) {
            names.push(sanitize(&player.name_and_id()));
        }
    }
    names
}

/// Returns true if a player has lost a match technically.
fn has_failed(the_match: &Match, player_id: &str) -> bool {
    the_match.recorded.as_ref().is_some_and(|recorded| {
        let result = &recorded.result;
        result_status(result) == ResultStatus::TechnicalLoss
            && result.winner.as_deref() != Some(player_id)
    })
}

/// Returns `R1M1   Agent Alpha (even) beat Agent Beta (odd): the number was 8`; where no number was
/// drawn, the reason stands in its place. `logs` is the argument of `make trace` for the folder of the
/// logs: ` LOGS=logs/practice`.
fn result_line(league: &League, the_match: &Match, logs: &str) -> Option<String> {
    let recorded = the_match.recorded.as_ref()?;
    let result = &recorded.result;
    let [a, b] = &the_match.players;
    let (first, second) = if result.winner.as_ref() == Some(b) {
        (b, a)
    } else {
        (a, b)
    };

    let first = name_and_choice(league, result, first);
    let second = name_and_choice(league, result, second);
    let reason = match (result.details.drawn_number, &result.details.reason) {
        (Some(number), _) => format!(": the number was {number}"),
        (None, Some(reason)) => format!(": {}", sanitize(reason)),
        (None, None) => String::new(),
    };

    // No log has a match that the manager itself has recorded.
    let id = &the_match.id;
    let trace = if recorded.referee_id == AgentKind::Manager.to_string() {
        String::new()
    } else {
        format!(" (make trace MATCH={id}{}{logs})", game_argument(league))
    };

    let outcome = match (result_status(result), &result.winner) {
        (ResultStatus::Draw, _) => format!("{first} and {second} drew{reason}"),
        (ResultStatus::Win, _) => format!("{first} beat {second}{reason}"),
        (_, None) => format!("{first} and {second} both lost technically{reason}{trace}"),
        (_, Some(_)) => format!("{first} won, {second} lost technically{reason}{trace}"),
    };

    Some(format!("  {id:<7} {outcome}"))
}

fn name_and_choice(league: &League, result: &MatchResult, id: &str) -> String {
    let name = match league.player(id) {
        Some(player) => sanitize(&player.meta.display_name),
        None => String::new(),
    };

    match result.details.choices.get(id) {
        Some(Some(choice)) => format!("{name} ({choice})"),
        _ => name,
    }
}

/// Returns the argument of `make trace` for the game: ` GAME=tic_tac_toe`.
fn game_argument(league: &League) -> String {
    match league.config.league.game_type.as_str() {
        GAME => String::new(),
        other => format!(" GAME={other}"),
    }
}
