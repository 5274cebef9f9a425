//! What a person sees of a league in the terminal. The screen follows the league from outside, in a
//! thread of its own: it looks what is new, and says it in the order in which it happened. What it
//! shows it only reads, so the league is played the same without it.

use crate::columns::{LEADERS, grid, pad};
use crate::view::LeagueView;
use league::manager::journal::Store;
use league::manager::league::{League, Match, Member};
use league::manager::standings::ending;
use league::net::sync::spawn;
use league::program::terminal::{Terminal, plural, print_line, sanitize};
use league::protocol::{AgentKind, GAME, ResultStatus};
use league::values::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How often it looks without being called.
const LOOK: Duration = Duration::from_secs(5);
/// How much of a league has been shown.
struct Shown {
    title: String,
    /// Between a round's announcement and its matches.
    lead: Duration,
    /// When each agent had registered when it was last greeted.
    greeted: BTreeMap<String, Timestamp>,
    round: u32,
    results: usize,
}

/// Shows from now on what happens in a manager's league, until the league is completed; what comes
/// back breaks off then. Agents and results that are there already are known.
pub fn follow(
    store: &Arc<Store>,
    view: &LeagueView,
    lead: Duration,
    terminal: Terminal,
) -> Receiver<()> {
    let mut shown = store.read(|league| Shown::of(league, view, lead));
    let (line, out) = channel();
    let store = Arc::clone(store);
    spawn("screen", move || {
        let _line = line;
        loop {
            let mut look = |league: &League| (league.version, shown.news(league), end(league));
            let (changes, lines, end) = store.read(&mut look);
            lines.iter().for_each(|line| terminal.print_line(line));
            if let Some(end) = end {
                return print_line(&end); // also where it is quiet
            }
            store.wait(LOOK, |league| league.version != changes);
        }
    });
    out
}

impl Shown {
    /// What is there already is taken as shown.
    fn of(league: &League, view: &LeagueView, lead: Duration) -> Shown {
        let heading = &view.league;
        let greeting = |it: &Member| (it.id.clone(), it.registered_at);
        Shown {
            title: sanitize(&format!("{}: {}", heading.called(), heading.game)),
            lead,
            greeted: league.members.values().map(greeting).collect(),
            round: 0,
            results: league.played.len(),
        }
    }

    /// The lines for what is new.
    fn news(&mut self, league: &League) -> Vec<String> {
        let mut lines = self.arrivals(league);
        if league.started && self.round == 0 {
            let (players, rounds) = (league.members(AgentKind::Player).len(), league.rounds());
            let rounds = plural(rounds, "round") + &self.least_time(rounds);
            lines.push(format!("\n{}, {players} players, {rounds}", self.title));
        }
        let played = league.played.iter().skip(self.results);
        for game in played.filter_map(|id| league.find(id)) {
            self.begin(game.round, league, &mut lines);
            lines.push(result_line(league, game, ""));
        }
        self.results = league.played.len();
        if let Some(round) = league.open_round() {
            self.begin(round, league, &mut lines);
        }
        lines
    }

    /// How long so many rounds take at least, because of the lead before each.
    fn least_time(&self, rounds: u32) -> String {
        let lead = self.lead.as_secs();
        match u64::from(rounds) * lead {
            0 => String::new(),
            time @ 1..120 => format!(", at least {time} s with a lead of {lead} s"),
            time => format!(", at least {} minutes with a lead of {lead} s", time / 60),
        }
    }

    /// The head of a round, once; before it the table after the last one.
    fn begin(&mut self, round: u32, league: &League, lines: &mut Vec<String>) {
        if round <= self.round {
            return;
        }
        if self.round > 0 {
            lines.push(format!("\n{}", grid(&league.table(), LEADERS)));
        }
        self.round = round;
        lines.push(format!("\nRound {round} of {}", league.rounds()));
    }

    /// Greets whoever has registered, or has come back, since the last time.
    fn arrivals(&mut self, league: &League) -> Vec<String> {
        let mut lines = Vec::new();
        for member in league.members.values() {
            let (id, at) = (&member.id, member.registered_at);
            if self.greeted.insert(id.clone(), at) != Some(at) {
                let name = pad(&sanitize(&member.meta.display_name), 16);
                lines.push(format!("{id:<5} {name} is here"));
            }
        }
        lines
    }
}

/// The final table and the champion, once the league is completed.
fn end(league: &League) -> Option<String> {
    // a running league is not sorted at each look
    let table = league.is_over().then(|| league.table())?;
    let first = table.first()?;
    let (name, id) = (sanitize(&first.display_name), &first.player_id);
    let points = plural(first.points, "point");
    let table = grid(&table, usize::MAX);
    Some(format!(
        "\n{table}\n\nChampion: {name} ({id}) with {points}"
    ))
}

/// How each player first lost technically, and how to see what was said then; nothing where nobody
/// did. `logs` is the folder of the referees' logs.
pub fn first_losses(league: &League, logs: &Path) -> Vec<String> {
    let logs = format!(" LOGS={}", logs.display());
    let mut lines = BTreeSet::new(); // both may have failed in the same match
    for player in league.members(AgentKind::Player) {
        let is_lost = |game: &&Match| {
            let recorded = game.recorded.as_ref();
            recorded.is_some_and(|it| {
                let is_technical = ending(&it.result) == ResultStatus::TechnicalLoss;
                is_technical && it.result.winner.as_ref() != Some(&player.id)
            })
        };
        let first = league.matches_of(&player.id).find(is_lost);
        lines.extend(first.map(|game| result_line(league, game, &logs)));
    }
    let head = "\nThe first technical loss of each:".to_string();
    let head = Some(head).filter(|_| !lines.is_empty());
    head.into_iter().chain(lines).collect()
}

/// `R1M1   Agent Alpha (even) beat Agent Beta (odd): the number was 8`; where no number was drawn,
/// the sentence that says how. `logs` is what `make trace` must be told of the folder of the logs,
/// ` LOGS=logs/practice` for instance.
fn result_line(league: &League, game: &Match, logs: &str) -> String {
    let Some(recorded) = &game.recorded else {
        return String::new();
    };
    let result = &recorded.result;
    let who = |id: &String| {
        let name = league
            .player(id)
            .map(|player| sanitize(&player.meta.display_name));
        let name = name.unwrap_or_default();
        match result.details.choices.get(id).copied().flatten() {
            Some(choice) => format!("{name} ({choice})"),
            None => name,
        }
    };
    let [a, b] = &game.players;
    let (first, second) = match result.winner.as_ref() == Some(b) {
        true => (b, a),
        false => (a, b),
    };
    let why = match (result.details.drawn_number, &result.details.reason) {
        (Some(number), _) => format!(": the number was {number}"),
        (None, Some(why)) => format!(": {}", sanitize(why)),
        (None, None) => String::new(),
    };
    let trace = match recorded.referee_id == AgentKind::Manager.to_string() {
        true => String::new(), // no log tells of what the manager itself recorded
        false => format!(" (make trace MATCH={}{}{logs})", game.id, of_game(league)),
    };
    let (first, second) = (who(first), who(second));
    let told = match (ending(result), &result.winner) {
        (ResultStatus::Draw, _) => format!("{first} and {second} drew{why}"),
        (ResultStatus::Win, _) => format!("{first} beat {second}{why}"),
        (_, None) => format!("{first} and {second} both lost technically{why}{trace}"),
        (_, Some(_)) => format!("{first} won, {second} lost technically{why}{trace}"),
    };
    format!("  {:<7} {told}", game.id)
}

/// What `make trace` must be told of the game.
fn of_game(league: &League) -> String {
    match league.config.league.game_type.as_str() {
        GAME => String::new(),
        other => format!(" GAME={other}"),
    }
}
