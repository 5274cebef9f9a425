//! Stories about a league on paper: the files in `tests/scripts`, each a list of commands with what came of them.
//!
//! A line `> command` is done; the indented lines below it are what the league said. Whatever else stands there tells
//! the story to the reader. A test does all commands anew and compares every word. Who wants other words runs it once
//! with LEAGUE_TEST_REWRITE=1, which writes what came of the commands into the file, and reads the difference.
//!
//! After each command the manager dies: what its journal gives must be the same league, to the last field.

use super::paper::{self, Caller, caller, gathered, meta, seeded};
use league::games::{Outcome, forfeit, judge};
use league::manager::league::{Event, League, Match};
use league::manager::registration::Admission;
use league::protocol::{
    AgentMeta, Kind, LeagueControl, LeagueQuery, MatchResultReport, Parity, Refusal, Standing,
};
use league::wire::{Timestamp, Wire};
use serde_json::{Map, Value, json};
use std::{fs, path::Path, time::Duration};

/// Does every command of a script; fails where something else comes of it than what stands there.
pub fn play(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let path = folder.join(name);
    let text = fs::read_to_string(&path).unwrap();
    let mut story = Story::new(gathered(0, &[]));
    let mut came = String::new();
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        came += line;
        came += "\n";
        if let Some(command) = line.strip_prefix("> ") {
            let said = story.does(&Command::new(command));
            said.lines().for_each(|it| came += &format!("  {it}\n"));
        }
    }
    if std::env::var_os("LEAGUE_TEST_REWRITE").is_some() {
        return fs::write(&path, &came).unwrap();
    }
    let mut lines = (1..).zip(text.lines().chain([""]).zip(came.lines().chain([""])));
    if let Some((n, (expected, came))) = lines.find(|(_, (expected, came))| expected != came) {
        let cure = "LEAGUE_TEST_REWRITE=1 takes what came";
        panic!("tests/scripts/{name}, line {n}\nexpected: {expected}\ncame:     {came}\n{cure}");
    }
}

/// A command: words, and options like `at=9001`. Text in single quotes keeps its blanks.
struct Command {
    words: Vec<String>,
    options: Map<String, Value>,
}

impl Command {
    fn new(line: &str) -> Command {
        let mut is_quoted = false;
        let parts = line.split(|sign| {
            is_quoted ^= sign == '\'';
            sign == ' ' && !is_quoted
        });
        let parts = parts.map(|part| part.replace('\'', ""));
        let (options, words): (Vec<String>, _) = parts.partition(|part| part.contains('='));
        let option = |part: &String| {
            let (key, value) = part.split_once('=').unwrap();
            (key.to_string(), value_of(value))
        };
        Command {
            words,
            options: options.iter().map(option).collect(),
        }
    }

    fn word(&self, place: usize) -> &str {
        self.words.get(place).map_or("", String::as_str)
    }

    fn number(&self, place: usize) -> u32 {
        self.word(place).parse().unwrap()
    }

    fn option(&self, key: &str) -> Option<&str> {
        self.options.get(key)?.as_str()
    }
}

/// JSON, or a text; `x*51` is 51 times x.
fn value_of(text: &str) -> Value {
    match text
        .rsplit_once('*')
        .map(|(part, times)| (part, times.parse::<usize>()))
    {
        Some((part, Ok(times))) => {
            let (rest, last) = part.split_at(part.char_indices().last().unwrap().0);
            format!("{rest}{}", last.repeat(times)).into()
        }
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

/// Writes options over the fields of an object; `result/winner` is a field of a field.
fn changed<T: Wire>(whole: Value, options: &Map<String, Value>) -> T {
    let mut whole = whole;
    for (path, value) in options {
        let mut place = &mut whole;
        for step in path.split('/') {
            place = &mut place[step];
        }
        *place = value.clone();
    }
    T::read(&whole).unwrap()
}

/// An answer as JSON: a line for each element where there is a list in it.
fn shown(answer: &Value) -> String {
    let line = |(key, value): (&String, &Value)| match value {
        Value::Array(list) if !list.is_empty() => {
            list.iter().map(|it| format!("{key}: {it}\n")).collect()
        }
        other => format!("{key}: {other}\n"),
    };
    match answer {
        Value::Object(fields) if fields.values().any(Value::is_array) => {
            fields.iter().map(line).collect()
        }
        other => other.to_string(),
    }
}

/// A league, its journal as it is on the disk, and the time.
#[derive(Clone)]
struct Story {
    league: League,
    journal: String,
    now: Timestamp,
    registrations: u32,
}

impl Story {
    fn new(league: League) -> Story {
        Story {
            league,
            journal: String::new(),
            now: paper::at("10:00:00"),
            registrations: 0,
        }
    }

    /// Does a command; says what came of it.
    fn does(&mut self, command: &Command) -> String {
        let said = match command.word(0) {
            "league" => self.begin(command),
            "try" => {
                let rest = command.words[1..].to_vec();
                let options = command.options.clone();
                let command = Command {
                    words: rest,
                    options,
                };
                return self.clone().does(&command); // and nothing has happened
            }
            "rules" => {
                let rules = &mut self.league.rules;
                let number = |key: &str| command.options.get(key).and_then(Value::as_u64);
                rules.max_players = number("max_players").map_or(1000, |most| most as usize);
                rules.tokens = command.option("tokens") != Some("off");
                let inactive = command.option("inactive").unwrap_or_default();
                rules
                    .listed
                    .iter_mut()
                    .for_each(|it| it.active = it.id != inactive);
                return String::new(); // of what happened before, the journal knows only what came of it
            }
            "wait" => {
                let seconds = Duration::from_secs(command.number(1).into());
                self.now = self.now.plus(seconds);
                String::new()
            }
            "register" => self.register(command),
            "who" => self.who(command),
            "start" => match self.league.start(Some(7), self.league.pairings()) {
                Ok(event) => self.happens(event, "started"),
                Err(lacks) => lacks,
            },
            "assign" => {
                let event = paper::assignment(&self.league, command.number(1), &command.words[2..]);
                let before = self.league.clone();
                self.happens(event, "");
                self.moved(&before)
            }
            "report" => self.report(command),
            "round" => {
                let how = ends(command.word(2));
                let before = self.league.changes;
                let round = command.number(1);
                let referees = paper::referees(&self.league);
                let event = paper::assignment(&self.league, round, &referees);
                self.happens(event, "");
                let ids = self.league.open_matches(round).map(|game| game.id.clone());
                for id in ids.collect::<Vec<_>>() {
                    let outcome = how(self.league.find(&id).unwrap());
                    let event = paper::judged(&self.league, &id, &outcome);
                    self.happens(event, "");
                }
                format!("{} events", self.league.changes - before)
            }
            "operator" => self.operator(command),
            "walkovers" => self.walkovers(command.number(1)),
            "closed" => self.happens(Some(Event::Closed), "closed"),
            question => self.answers(question, command),
        };
        let mut again = League::new(self.league.rules.clone());
        let events = self.journal.lines();
        events.for_each(|line| again.apply(&serde_json::from_str(line).unwrap()));
        assert_eq!(again.table(), self.league.table());
        assert_eq!(again, self.league, "what the journal gives");
        said
    }

    fn happens(&mut self, event: Option<Event>, words: &str) -> String {
        let is_new = event.is_some();
        if let Some(event) = event {
            self.journal += &(serde_json::to_string(&event).unwrap() + "\n");
            self.league.apply(&event);
        }
        let but = if is_new { "" } else { "nothing new: " };
        format!("{but}{words}")
    }

    /// `league players=4 capacities=2,2 cycles=1`: agents have registered, with the tokens `tok-p01-first` and so on.
    fn begin(&mut self, command: &Command) -> String {
        let number = |key: &str| command.options.get(key).and_then(Value::as_u64);
        let referees = command.options.get("capacities").map(Value::to_string);
        let referees = referees.unwrap_or_default().replace('"', "");
        let capacities: Vec<u32> = referees.split(',').flat_map(str::parse).collect();
        let gathered = gathered(number("players").unwrap_or(0) as u32, &capacities);
        *self = Story::new(League::new(paper::rules()));
        self.league.rules.cycles = number("cycles").unwrap_or(1) as u32;
        for kind in [Kind::Referee, Kind::Player] {
            for member in gathered.members(kind) {
                self.happens(Some(Event::Registered(member.clone())), "");
            }
        }
        String::new()
    }

    /// `register player P07 at=9001 from=elsewhere token=… key=…`; `sender`, `untrusted`, `wanted`, fields of the meta.
    fn register(&mut self, command: &Command) -> String {
        self.registrations += 1;
        let mut options = command.options.clone();
        let mut take = |key: &str| options.remove(key);
        let text = |value: Value| value.as_str().map(String::from);
        let name = command.word(2);
        let kind = command.word(1);
        let sender = take("sender").and_then(text);
        let is_elsewhere = take("from").is_some();
        let from = Caller {
            kind: Kind::read(&json!(kind)).unwrap(),
            token: take("token").and_then(text),
            trusted: !command.words.contains(&"untrusted".into()),
            referee_wanted: command.words.contains(&"wanted".into()),
            peer: [paper::HERE, paper::ELSEWHERE][usize::from(is_elsewhere)],
            secret: self.registrations.to_string(),
            now: self.now,
            ..caller(&sender.unwrap_or(format!("{kind}:{name}")))
        };
        let endpoint = match take("at").unwrap_or_default() {
            Value::Number(port) => paper::local(port.as_u64().unwrap() as u32),
            other => text(other).unwrap_or_default(),
        };
        let key = take("key");
        let mut meta = json!(meta(from.kind, &endpoint));
        meta["registration_key"] = key.unwrap_or_default();
        let meta: AgentMeta = changed(meta, &options);
        match paper::register(&self.league, &meta, &from) {
            Admission::Rejected { reason, code } => match code {
                Some(code) => format!("rejected, {code}: {reason}"),
                None => format!("rejected: {reason}"),
            },
            Admission::Accepted { member, event } => {
                let old = self.league.members.get(&member.id).cloned();
                let said = self.happens(event, &format!("{} {}", member.id, member.token));
                assert_eq!(
                    self.league.members[&member.id], *member,
                    "what was answered"
                );
                let void = old.filter(|old| old.token != member.token).map(|old| {
                    let who = self.league.identify("", Some(&old.token), self.now);
                    assert!(who.is_err(), "the old token of {} is good", old.id);
                    format!(", {} is void", old.token)
                });
                format!("{said}{}", void.unwrap_or_default())
            }
        }
    }

    fn who(&self, command: &Command) -> String {
        let found = self
            .league
            .identify(command.word(1), command.option("token"), self.now);
        found.map_or_else(refused, |member| member.id.clone())
    }

    /// Which matches have another referee than before, and whether their tokens are new too.
    fn moved(&self, before: &League) -> String {
        let pairs = before.matches.iter().zip(&self.league.matches);
        let moved = pairs.filter(|(old, new)| old.assignment != new.assignment);
        let line = |(old, new): (&Match, &Match)| {
            let tokens = |game: &Match| game.assignment.clone().map(|it| it.tokens);
            assert_ne!(tokens(old), tokens(new), "{}", new.id);
            format!("{} {}\n", new.id, new.referee().unwrap())
        };
        moved.map(line).collect()
    }

    /// `report R1M1 wins by=REF02 conversation=conv-1 result/winner=P04`: true but for the fields named.
    fn report(&mut self, command: &Command) -> String {
        let mut options = command.options.clone();
        let by = options.remove("by");
        let conversation = options.remove("conversation");
        let game = self.league.find(command.word(1)).unwrap();
        let outcome = ends(command.word(2))(game);
        let result = outcome.for_manager(&self.league.rules.scoring);
        let report = json!(paper::report(&self.league, game, result));
        let report: MatchResultReport = changed(report, &options);
        let referee = by.as_ref().map_or(game.referee(), Value::as_str).unwrap();
        let conversation = conversation.as_ref().and_then(Value::as_str);
        let request = paper::request(referee, conversation.unwrap_or("conv-first"));
        let sender = &self.league.members[referee];
        match self.league.judge(sender, &request, &report, self.now) {
            Ok(event) => self.happens(event, "recorded"),
            Err(refusal) => refused(refusal),
        }
    }

    /// `operator remove P04`; `operator replay R1M1`.
    fn operator(&mut self, command: &Command) -> String {
        let about = (!command.word(2).is_empty()).then(|| command.word(2).to_string());
        let order = json!({"league_id": "paper", "action": command.word(1), "player_id": about, "match_id": about});
        let order = LeagueControl::read(&order).unwrap();
        match self.league.control(&order, self.now) {
            Ok((event, words)) => self.happens(event, &words),
            Err(refusal) => refused(refusal),
        }
    }

    /// What is recorded for the removed.
    fn walkovers(&mut self, round: u32) -> String {
        let mut said = String::new();
        while let Some(Event::Recorded(it)) = self.league.walkover(round, self.now) {
            let reason = it.result.details.reason.as_deref().unwrap_or("no reason");
            said += &format!("{} {:?}, {reason}\n", it.match_id, it.result.score);
            self.happens(Some(Event::Recorded(it)), "");
        }
        said
    }

    /// What anybody may ask.
    fn answers(&self, question: &str, command: &Command) -> String {
        let league = &self.league;
        let reader = command.word(2);
        let answer = match question {
            "status" => {
                let waiting = command.option("waiting").map(String::from);
                json!(league.status(waiting))
            }
            "table" => {
                let row = |it: &Standing| {
                    let [won, drawn, lost] = [it.wins, it.draws, it.losses];
                    let score = format!("{won} won, {drawn} drawn, {lost} lost");
                    format!("{}. {}: {}, {score}\n", it.rank, it.player_id, it.points)
                };
                return league.table().iter().map(row).collect();
            }
            "states" => {
                let all = league.members.values();
                let states = all.map(|it| (it.id.clone(), json!(league.state_of(it))));
                Value::Object(states.collect())
            }
            "announcement" => {
                let referee = league.members.get(reader);
                json!(league.announcement(command.number(1), referee))
            }
            "match_token" => json!(league.match_token(command.number(1), reader)),
            "round_completed" => json!(league.round_completed(command.number(1))),
            "completed" => json!(league.completed()),
            "ask" => {
                let mut query =
                    json!({"league_id": "paper", "query_type": command.options["type"]});
                let mut params = command.options.clone();
                params.remove("type");
                if let Some(whole) = params.remove("query_params") {
                    query["query_params"] = whole;
                } else if !params.is_empty() {
                    query["query_params"] = params.into();
                }
                let query = LeagueQuery::read(&query).unwrap();
                match league.answer(&query, &league.members[command.word(1)]) {
                    Ok(answer) => answer.data.map_or(json!(answer.error), Value::Object),
                    Err(refusal) => return refused(refusal),
                }
            }
            other => panic!("{other}: no such command"),
        };
        shown(&answer)
    }
}

fn refused(refusal: Refusal) -> String {
    format!("refused: {refusal}")
}

/// How a match ends: player A `wins`, nobody does (`drawn`), one or both fail (`A-fails`, `B-fails`, `both-fail`); else
/// as it happens.
fn ends(how: &str) -> impl Fn(&Match) -> Outcome {
    let late = |fails: bool| fails.then(|| "came late".to_string());
    let both = how == "both-fail";
    let failures = [
        late(both || how == "A-fails"),
        late(both || how == "B-fails"),
    ];
    let choices = match how {
        "wins" => Some([Parity::Even, Parity::Odd]),
        "drawn" => Some([Parity::Odd, Parity::Odd]),
        _ => None,
    };
    move |game| {
        let players = game.players.clone();
        match choices {
            Some(choices) => judge(players, choices, 8),
            None if failures == [None, None] => seeded(7, game),
            None => forfeit(players, Vec::new(), failures.clone()),
        }
    }
}
