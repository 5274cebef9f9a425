//! What a person sees of a league in the terminal. It follows the league from outside: it looks what is new, and says
//! it in the order in which it happened.

use crate::extras::columns::{bold, columns, pad};
use crate::manager::Manager;
use crate::manager::league::{League, Match, Member};
use crate::manager::results::LONGEST_REASON;
use crate::manager::standings::ending;
use crate::net::sync::spawn;
use crate::program::terminal::{Terminal, counted, say, shown};
use crate::protocol::{Ending, GAME, Kind, Progress, Standing};
use crate::wire::cut;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

/// How often it looks without being called.
const LOOK: Duration = Duration::from_secs(1);

/// The heads of a table as people read it.
pub const HEADS: [&str; 8] = [
    "Rank", "Id  ", "Player", "Played", "Wins", "Draws", "Losses", "Points",
];

/// A row of it.
pub fn cells(row: &Standing) -> [String; 8] {
    let [rank, played, wins, draws, losses] =
        [row.rank, row.played, row.wins, row.draws, row.losses].map(|n| n.to_string());
    [
        rank,
        row.player_id.clone(),
        row.display_name.clone(),
        played,
        wins,
        draws,
        losses,
        row.points.to_string(),
    ]
}

/// So many rows of the table are shown between the rounds.
const LEADERS: usize = 16;

/// How many registrations that were not accepted are shown within `AWHILE`.
const TURNED_AWAY: usize = 20;
/// How long such a line is not repeated.
const AWHILE: Duration = Duration::from_secs(60);

/// Registrations that were not accepted: none is shown twice in a while, and no more than a person can read, for
/// whoever is turned away may come again in a loop.
#[derive(Default)]
pub struct TurnedAway {
    lines: BTreeSet<String>,
    since: Option<Instant>,
}

impl TurnedAway {
    /// The line to be shown for one more, if any.
    pub fn line(&mut self, words: String, now: Instant) -> Option<String> {
        if self
            .since
            .is_none_or(|since| now.duration_since(since) >= AWHILE)
        {
            *self = TurnedAway {
                lines: BTreeSet::new(),
                since: Some(now),
            };
        }
        if self.lines.len() > TURNED_AWAY || !self.lines.insert(words.clone()) {
            return None;
        }
        let all = self.lines.len() > TURNED_AWAY;
        Some(if all {
            "more registrations are not accepted; the log tells of them".into()
        } else {
            words
        })
    }
}

/// How much of a league has been shown.
struct Shown {
    /// So many players and referees are waited for.
    awaited: Option<(usize, usize)>,
    title: String,
    /// Between a round's announcement and its matches.
    lead: Duration,
    /// How often each agent had registered when it was last greeted.
    greeted: BTreeMap<String, (Kind, u32)>,
    started: bool,
    round: u32,
    results: usize,
    /// How often a match was shown to be played again.
    voids: BTreeMap<String, usize>,
}

/// Shows from now on what happens in a manager's league, until the league is completed, and `luck` at its end; what comes back
/// breaks off then. Agents and results that are there already are known.
pub fn follow(
    manager: &Manager,
    terminal: Terminal,
    luck: impl FnOnce() -> Option<String> + Send + 'static,
) -> Receiver<()> {
    let store = &manager.store;
    let mut shown = Shown::of(manager);
    let (line, out) = channel();
    let store = Arc::clone(store);
    spawn("screen", move || {
        let _line = line;
        loop {
            let look = |league: &League| {
                (
                    league.changes,
                    league.progress(),
                    shown.news(league),
                    progress(league),
                )
            };
            let (changes, how, lines, progress) = store.read(look);
            lines.iter().for_each(|line| terminal.say(line));
            match how {
                Progress::Waiting => {}
                Progress::Running => terminal.progress(&progress),
                Progress::Completed => {
                    store.read(end).iter().for_each(|line| say(line)); // the result, also where it is quiet
                    luck().iter().for_each(|sentence| terminal.say(sentence));
                    return;
                }
            }
            store.wait(LOOK, |league| league.changes != changes);
        }
    });
    out
}

impl Shown {
    /// What is there already is taken as shown.
    fn of(manager: &Manager) -> Shown {
        let heading = &manager.document.newest().league;
        let name = heading.name.as_ref().unwrap_or(&heading.display_name);
        let title = format!("{}: {}", shown(name), shown(&heading.game));
        manager.store.read(|league| Shown {
            awaited: manager.awaited,
            title,
            lead: manager.lead,
            greeted: league.members.values().map(greeting).collect(),
            started: false,
            round: 0,
            results: league.played.len(),
            voids: voids(league),
        })
    }

    /// The lines for what is new.
    fn news(&mut self, league: &League) -> Vec<String> {
        let mut lines = self.arrivals(league);
        if league.started && !self.started {
            self.started = true;
            let (players, rounds) = (league.members(Kind::Player).len(), league.rounds());
            let rounds = counted(rounds, "round") + &self.least_time(rounds);
            lines.push(format!("\n{}, {players} players, {rounds}", self.title));
        }
        for game in league.matches.iter().filter(|game| !game.voided.is_empty()) {
            if self.voids.insert(game.id.clone(), game.voided.len()) != Some(game.voided.len()) {
                lines.push(format!(
                    "  {:<7} does not count, and is played again",
                    game.id
                ));
                self.results = self.results.saturating_sub(1);
            }
        }
        for game in league.played[self.results.min(league.played.len())..]
            .iter()
            .filter_map(|id| league.find(id))
        {
            self.begin(game.round, league, &mut lines);
            lines.push(result_line(league, game, ""));
        }
        self.results = league.played.len();
        league
            .open_round()
            .into_iter()
            .for_each(|round| self.begin(round, league, &mut lines));
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
        if round > self.round {
            if self.round > 0 {
                let table = league.table();
                let leaders = table.get(..LEADERS).unwrap_or(table);
                lines.push(format!("\n{}", grid(leaders)));
                lines.extend(
                    (leaders.len() < table.len())
                        .then(|| format!("      … and {} more", table.len() - LEADERS)),
                );
            }
            self.round = round;
            lines.push(format!(
                "\n{}",
                bold(&format!("Round {round} of {}", league.rounds()))
            ));
        }
    }

    /// Greets whoever has registered since the last time.
    fn arrivals(&mut self, league: &League) -> Vec<String> {
        self.greeted.retain(|id, _| league.members.contains_key(id)); // before the start one may have been removed
        let is_new = |it: &&Member| {
            self.greeted
                .get(&it.id)
                .is_none_or(|(_, times)| *times != it.registrations)
        };
        let arrived: Vec<&Member> = league.members.values().filter(is_new).collect();
        let mut lines = Vec::new();
        for member in arrived {
            let (id, times) = greeting(member);
            let again = self.greeted.insert(id, times).is_some();
            let count = self
                .greeted
                .values()
                .filter(|(kind, _)| *kind == member.kind)
                .count();
            let is_player = member.kind == Kind::Player;
            let of = self
                .awaited
                .map(|(players, referees)| if is_player { players } else { referees });
            let said = match (again, of) {
                (true, _) => "is back".into(),
                (false, Some(of)) => format!("is {} {count} of {of}", member.kind),
                (false, None) => format!("is {} {count}", member.kind),
            };
            lines.push(format!(
                "{:<5} {} {said}",
                member.id,
                pad(&shown(&member.display_name), 16)
            ));
        }
        lines
    }
}

/// How often each match was voided.
fn voids(league: &League) -> BTreeMap<String, usize> {
    let matches = league.matches.iter();
    matches
        .map(|game| (game.id.clone(), game.voided.len()))
        .collect()
}

fn greeting(member: &Member) -> (String, (Kind, u32)) {
    (member.id.clone(), (member.kind, member.registrations))
}

/// How far the open round is.
fn progress(league: &League) -> String {
    let Some(round) = league.open_round() else {
        return String::new();
    };
    let (all, open) = (
        league.round(round).len(),
        league.open_matches(round).count(),
    );
    format!(
        "  round {round} of {}: {} of {} matches played",
        league.rounds(),
        all - open,
        all
    )
}

/// The table with aligned columns.
fn grid(table: &[Standing]) -> String {
    columns(&HEADS, 2, table.iter().map(|row| cells(row).to_vec()))
}

/// The final table and the champion.
fn end(league: &League) -> Vec<String> {
    let table = league.table();
    let mut lines = vec![format!("\n{}", grid(table))];
    if let Some(first) = table.first() {
        let name = shown(&first.display_name);
        let words = format!(
            "Champion: {name} ({}) with {}",
            first.player_id,
            counted(first.points, "point")
        );
        lines.push(format!("\n{}", bold(&words)));
    }
    lines
}

/// `R1M1   Agent Alpha (even) beat Agent Beta (odd): the number was 8`; where no number was drawn, the sentence that says
/// how. `logs` is what `make trace` must be told of the folder of the logs, ` LOGS=logs/practice` for instance.
pub fn result_line(league: &League, game: &Match, logs: &str) -> String {
    let Some(recorded) = &game.recorded else {
        return String::new();
    };
    let result = &recorded.result;
    let who = |id: &String| {
        let name = league
            .player(id)
            .map_or_else(|| id.clone(), |player| shown(&player.display_name));
        match result.details.choices.get(id).copied().flatten() {
            Some(choice) => format!("{name} ({choice})"),
            None => name,
        }
    };
    let [a, b] = &game.players;
    let (first, second) = if result.winner.as_ref() == Some(b) {
        (b, a)
    } else {
        (a, b)
    };
    let why = match (result.details.drawn_number, &result.details.reason) {
        (Some(number), _) => format!(": the number was {number}"),
        (None, Some(why)) => format!(": {}", sentence(why, first, second)),
        (None, None) => String::new(),
    };
    let more = match recorded.referee_id == Kind::Manager.word() {
        true => String::new(), // no log tells of what the manager itself recorded
        false => format!(" (make trace MATCH={}{}{logs})", game.id, of_game(league)),
    };
    let told = match (ending(result), &result.winner) {
        (Ending::Draw, _) => format!("{} and {} drew{why}", who(first), who(second)),
        (Ending::TechnicalLoss, None) => format!(
            "{} and {} both lost technically{why}{more}",
            who(first),
            who(second)
        ),
        (Ending::TechnicalLoss, _) => format!(
            "{} won, {} lost technically{why}{more}",
            who(first),
            who(second)
        ),
        (Ending::Win, _) => format!("{} beat {}{why}", who(first), who(second)),
    };
    format!("  {:<7} {told}", game.id)
}

/// What `make trace` must be told of the game.
fn of_game(league: &League) -> String {
    match league.rules.game_type.as_str() {
        GAME => String::new(),
        other => format!(" GAME={other}"),
    }
}

/// What a referee says of a technical loss, without what the line says anyway: who lost, and who won.
fn sentence(reason: &str, winner: &str, loser: &str) -> String {
    let reason = cut(&shown(reason), LONGEST_REASON);
    let reason = reason.strip_prefix(&format!("{loser} ")).unwrap_or(&reason);
    let ends = [&*format!(" - {winner} wins by default"), " - nobody wins"];
    ends.iter()
        .find_map(|end| reason.strip_suffix(end))
        .unwrap_or(reason)
        .into()
}
