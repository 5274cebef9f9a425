//! What a person sees of a league in the terminal.

use crate::{
    journal::Record,
    league::{League, Match, Member},
    protocol::{Ending, Kind, Standing},
    standings::ending,
    threads::lock,
};
use std::{collections::BTreeMap, io::Write, sync::Mutex};

/// The terminal, or silence. One thread writes to it, so that lines come in the order in which things happened.
pub struct Screen {
    quiet: bool,
    /// Each agent's kind, and how often it had registered when it was last greeted.
    greeted: Mutex<BTreeMap<String, (Kind, u32)>>,
}

/// A name as it can be shown: nothing in it moves the cursor or turns the text around.
pub fn shown(name: &str) -> String {
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    name.chars().map(|c| if harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// A line on standard output. A terminal that is gone stops nothing.
pub fn say(words: &str) {
    let _ = writeln!(std::io::stdout(), "{words}");
}

/// `1 point`, `2 points`.
pub fn counted(number: impl Into<i64>, what: &str) -> String {
    match number.into() {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

impl Screen {
    /// A screen on which the agents known so far need no greeting; a `quiet` one prints nothing.
    pub fn new(quiet: bool, record: &Record) -> Screen {
        let known = record.read(|league| league.members.values().map(greeting).collect());
        Screen { quiet, greeted: Mutex::new(known) }
    }

    /// Greets whoever has registered since the last time; so many players and referees are `awaited`.
    pub fn arrivals(&self, record: &Record, awaited: Option<(usize, usize)>) {
        let mut greeted = lock(&self.greeted);
        let arrived: Vec<Member> = record.read(|league| {
            let news = |it: &&Member| greeted.get(&it.id).is_none_or(|(_, times)| *times != it.registrations);
            league.members.values().filter(news).cloned().collect()
        });
        for member in arrived {
            let (id, times) = greeting(&member);
            let again = greeted.insert(id, times).is_some();
            let count = greeted.values().filter(|(kind, _)| *kind == member.kind).count();
            let of = awaited.map(|(players, referees)| if member.kind == Kind::Player { players } else { referees });
            let said = match (again, of) {
                (true, _) => "is back".into(),
                (false, Some(of)) => format!("is {} {count} of {of}", member.kind),
                (false, None) => format!("is {} {count}", member.kind),
            };
            self.say(&format!("{:<5} {:<16} {said}", member.id, shown(&member.display_name)));
        }
    }

    /// A line.
    pub fn say(&self, words: &str) {
        if !self.quiet {
            say(words);
        }
    }

    /// A round begins.
    pub fn round(&self, record: &Record, round: u32) {
        let rounds = record.read(League::rounds);
        self.say(&format!("\nRound {round} of {rounds}"));
    }

    /// The results since the last time, a line each.
    pub fn results(&self, record: &Record, told: usize) {
        let lines: Vec<String> = record.read(|league| {
            let games = league.played[told..].iter().filter_map(|id| league.find(id));
            games.map(|game| line(league, game)).collect()
        });
        lines.iter().for_each(|line| self.say(line));
    }

    /// The final table and the champion.
    pub fn end(&self, record: &Record) {
        let table = record.read(League::table);
        self.say(&format!("\n{}", grid(&table)));
        if let Some(first) = table.first() {
            let name = shown(&first.display_name);
            self.say(&format!("\nChampion: {name} ({}) with {}", first.player_id, counted(first.points, "point")));
        }
    }
}

fn greeting(member: &Member) -> (String, (Kind, u32)) {
    (member.id.clone(), (member.kind, member.registrations))
}

/// `R1M1   Agent Alpha (even) beat Agent Beta (odd): the number was 8`
fn line(league: &League, game: &Match) -> String {
    let Some(recorded) = &game.recorded else { return String::new() };
    let result = &recorded.result;
    let who = |id: &String| {
        let name = league.player(id).map_or_else(|| id.clone(), |player| shown(&player.display_name));
        match result.details.choices.get(id).copied().flatten() {
            Some(choice) => format!("{name} ({choice})"),
            None => name,
        }
    };
    let [a, b] = &game.players;
    let (first, second) = if result.winner.as_ref() == Some(b) { (b, a) } else { (a, b) };
    let number = result.details.drawn_number.map_or(String::new(), |number| format!(": the number was {number}"));
    let told = match (ending(result), &result.winner) {
        (Ending::Draw, _) => format!("{} and {} drew{number}", who(first), who(second)),
        (Ending::TechnicalLoss, None) => format!("{} and {} both lost technically", who(first), who(second)),
        (Ending::TechnicalLoss, _) => format!("{} won: {} lost technically", who(first), who(second)),
        (Ending::Win, _) => format!("{} beat {}{number}", who(first), who(second)),
    };
    format!("  {:<7} {told}", game.id)
}

/// The table with aligned columns.
fn grid(table: &[Standing]) -> String {
    let names: Vec<String> = table.iter().map(|row| shown(&row.display_name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("Player".len());
    let head = format!("Rank  Id    {:<width$}  Played  Wins  Draws  Losses  Points", "Player");
    let row = |(row, name): (&Standing, &String)| {
        format!(
            "{:>4}  {:<4}  {name:<width$}  {:>6}  {:>4}  {:>5}  {:>6}  {:>6}",
            row.rank, row.player_id, row.played, row.wins, row.draws, row.losses, row.points
        )
    };
    [head].into_iter().chain(table.iter().zip(&names).map(row)).collect::<Vec<_>>().join("\n")
}
