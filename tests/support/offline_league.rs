//! An offline league that is run by golden scripts.
//!
//! After each command the manager dies: its journal must give the same league, to the last field.

use super::offline::{self, Caller, caller, ends, lobby, meta};
use super::{golden, json_of};
use league::json::{decode, remove_absent};
use league::manager::contact::Table;
use league::manager::league::{Event, League, Match, Member};
use league::manager::registration::registration_reply;
use league::program::config::Config;
use league::protocol::{
    AgentKind, AgentMeta, EVEN_ODD, LeagueControl, LeagueQuery, MatchResultReport, Message,
    ProtocolError,
};
use league::values::{Moment, Timestamp};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Runs the scripts of a folder, each with a league of its own.
pub fn play(folder: &str) {
    golden::run_scripts(folder, || {
        let mut story = OfflineLeague::new(offline::rules());
        move |command: &str| with_repeats_folded(&story.does(command))
    });
}

/// Returns the text with `x*51` in place of 51 times x, as `value_of` reads it.
fn with_repeats_folded(text: &str) -> String {
    let signs: Vec<char> = text.chars().collect();
    let runs = signs.chunk_by(|one, other| one == other);
    let fold = |run: &[char]| match run.len() {
        0..20 => run.iter().collect(),
        times => format!("{}*{times}", run[0]),
    };
    runs.map(fold).collect()
}

/// A command: words, and options like `at=9001`. Text in single quotes keeps its blanks.
struct Command {
    words: Vec<String>,
    options: BTreeMap<String, String>,
}

impl Command {
    fn new(line: &str) -> Command {
        let mut is_quoted = false;
        let parts = line.split(|sign| {
            is_quoted ^= sign == '\'';
            sign == ' ' && !is_quoted
        });
        let mut command = Command {
            words: Vec::new(),
            options: BTreeMap::new(),
        };
        for part in parts.map(|part| part.replace('\'', "")) {
            match part.split_once('=') {
                Some((key, value)) => drop(command.options.insert(key.into(), value.into())),
                None => command.words.push(part),
            }
        }
        command
    }

    fn word(&self, place: usize) -> &str {
        self.words.get(place).map_or("", String::as_str)
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|own| own == word)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    fn number(&self, key: &str) -> Option<u32> {
        self.text(key)?.parse().ok()
    }

    fn round(&self) -> u32 {
        self.word(1).parse().unwrap()
    }

    /// Returns an object with the options as its fields, except those that are `used`;
    /// `result/winner` is a field of a field.
    fn changes<T: serde::de::DeserializeOwned>(&self, object: impl Serialize, used: &[&str]) -> T {
        let mut whole = json!(object);
        for (path, text) in &self.options {
            if !used.contains(&&**path) {
                let steps = path.split('/');
                *steps.fold(&mut whole, |place, step| &mut place[step]) = value_of(text);
            }
        }
        decode::<T>(&whole).unwrap()
    }
}

/// Reads JSON, or else a text; `x*51` is 51 times x.
fn value_of(text: &str) -> Value {
    let repeated = text.rsplit_once('*');
    let repeated = repeated.and_then(|(part, times)| Some((part, times.parse().ok()?)));
    let Some((part, times)) = repeated else {
        return serde_json::from_str(text).unwrap_or_else(|_| text.into());
    };
    let (rest, last) = part.split_at(part.char_indices().last().unwrap().0);
    format!("{rest}{}", last.repeat(times)).into()
}

/// Returns a reply as JSON: one line for each element if it contains a list.
fn shown(reply: &Value) -> String {
    let line = |(key, value): (&String, &Value)| match value {
        Value::Array(list) if !list.is_empty() => {
            let lines = list.iter().map(|element| format!("{key}: {element}\n"));
            lines.collect()
        }
        other => format!("{key}: {other}\n"),
    };
    match reply {
        Value::Object(fields) if fields.values().any(Value::is_array) => {
            fields.iter().map(line).collect()
        }
        other => other.to_string(),
    }
}

/// Returns the table of a league, a line for each player.
pub fn table(league: &League) -> String {
    let mut output = String::new();
    for row in league.table() {
        let [won, drawn, lost] = [row.wins, row.draws, row.losses];
        assert_eq!(row.played, won + drawn + lost);
        let (rank, id, points) = (row.rank, row.player_id, row.points);
        output += &format!("{rank}. {id}: {points}, {won} won, {drawn} drawn, {lost} lost\n");
    }
    output
}

/// A league, its journal as it is on the disk, and the time.
#[derive(Clone)]
pub struct OfflineLeague {
    pub league: League,
    pub journal: String,
    now: Timestamp,
    registrations: u32,
}

impl OfflineLeague {
    pub fn new(rules: Config) -> OfflineLeague {
        OfflineLeague {
            league: League::new(rules),
            journal: String::new(),
            now: offline::at("10:00:00"),
            registrations: 0,
        }
    }

    /// Does a command, after which the manager dies. Returns the output of the command.
    pub fn does(&mut self, line: &str) -> String {
        if let Some(rest) = line.strip_prefix("try ") {
            return self.clone().does(rest); // the league stays as it was
        }
        let output = self.run(&Command::new(line));
        let mut again = League::new(self.league.config.clone());
        let events = self.journal.lines();
        events.for_each(|line| again.apply(&json_of(line)));
        assert_eq!(again.table(), self.league.table());
        assert_eq!(again, self.league, "the journal gives another league");
        output
    }

    fn run(&mut self, command: &Command) -> String {
        match command.word(0) {
            "league" => self.begin(command),
            "rules" => {
                let config = &mut self.league.config;
                let room = command.number("max_players").unwrap_or(1000);
                config.league.participants.max_players = room;
                config.system.security.enable_auth_tokens = command.text("tokens") != Some("off");
                for listed in &mut config.agents.players {
                    listed.active = Some(command.text("inactive") != Some(&*listed.id));
                }
                String::new()
            }
            "wait" => {
                let seconds = command.word(1).parse().unwrap();
                self.now = self.now.plus(Duration::from_secs(seconds));
                String::new()
            }
            "register" => self.register(command),
            "who" => {
                let member = self.authenticate(command.word(1), command.text("token"));
                member.map_or_else(refused, |member| member.id.clone())
            }
            "start" => match self.league.missing_to_start() {
                None => {
                    let event = self.league.start_event(Some(7), self.league.pairings());
                    self.happens(event, "started")
                }
                Some(missing) => missing,
            },
            "assign" => self.assign(command.round(), &command.words[2..]),
            "report" => self.report(command),
            "round" => self.play_round(command),
            "operator" => self.operator(command),
            "walkovers" => self.walkovers(command.round()),
            "journal" => self.journal.lines().last().unwrap().into(),
            "closed" => self.happens(Some(Event::Closed), "closed"),
            question => self.answers(question, command),
        }
    }

    fn happens(&mut self, event: Option<Event>, words: &str) -> String {
        let Some(event) = event else {
            return format!("nothing new: {words}");
        };
        self.journal += &(serde_json::to_string(&event).unwrap() + "\n");
        self.league.apply(&event);
        words.into()
    }

    /// `league players=4 capacities=2,2 cycles=1 game=tic_tac_toe`: a lobby whose agents have the
    /// tokens `tok-p01-first` and so on.
    fn begin(&mut self, command: &Command) -> String {
        let capacities = command.text("capacities").unwrap_or_default();
        let capacities: Vec<u32> = capacities.split(',').flat_map(str::parse).collect();
        let lobby = lobby(command.number("players").unwrap_or(0), &capacities);
        *self = OfflineLeague::new(offline::rules());
        let file = &mut self.league.config.league;
        file.scheduling.cycles = command.number("cycles");
        file.game_type = command.text("game").unwrap_or(EVEN_ODD).into();
        for member in lobby.members.into_values() {
            self.happens(Some(Event::Registered(member)), "");
        }
        String::new()
    }

    /// `register player P07 at=9001 from=elsewhere token=… key=…`; `sender`, `untrusted`, `wanted`,
    /// `unanswered` (no member answers), fields of the meta; `whole`: the reply, and nothing is
    /// applied.
    fn register(&mut self, command: &Command) -> String {
        self.registrations += 1;
        let (kind, name) = (command.word(1), command.word(2));
        let sender = format!("{kind}:{name}");
        let is_elsewhere = command.text("from").is_some();
        let from = Caller {
            kind: decode::<AgentKind>(&kind.into()).unwrap(),
            token: command.text("token").map(String::from),
            trusted: !command.has("untrusted"),
            referee_wanted: command.has("wanted"),
            unanswered: command.has("unanswered"),
            peer: [offline::HERE, offline::ELSEWHERE][usize::from(is_elsewhere)],
            secret: self.registrations.to_string(),
            now: self.now,
            ..caller(command.text("sender").unwrap_or(&sender))
        };
        let endpoint = match value_of(command.text("at").unwrap_or_default()) {
            Value::Number(port) => offline::local(port.as_u64().unwrap() as u32),
            text => text.as_str().unwrap_or_default().into(),
        };
        let mut meta = meta(from.kind, &endpoint);
        meta.registration_key = command.text("key").map(String::from);
        let meta: AgentMeta = command.changes(meta, &["at", "from", "token", "key", "sender"]);
        let (event, admission) = offline::register(&self.league, &meta, &from);
        if command.has("whole") {
            return body(registration_reply(from.kind, admission, "paper")).to_string();
        }
        let member = match admission {
            Ok(member) => member,
            Err(rejection) => {
                let code = rejection.code;
                let code = code.map_or(String::new(), |code| format!(", {code}"));
                return format!("rejected{code}: {}", rejection.reason);
            }
        };
        let old = self.league.members.get(&member.id).cloned();
        let output = self.happens(event, &format!("{} {}", member.id, member.token));
        assert_eq!(self.league.members[&member.id], member);
        let Some(old) = old.filter(|old| old.token != member.token) else {
            return output;
        };
        let sender = self.authenticate("", Some(&old.token));
        assert!(sender.is_err(), "the old token of {} is valid", old.id);
        format!("{output}, {} is void", old.token)
    }

    fn authenticate(&self, sender: &str, token: Option<&str>) -> Result<&Member, ProtocolError> {
        let request = offline::request(sender, token);
        self.league.authenticate(&request.envelope, self.now)
    }

    /// Assigns the open matches. Returns those whose referee is another one than before.
    fn assign(&mut self, round: u32, referees: &[String]) -> String {
        let before = self.league.matches.clone();
        let event = offline::assignment(&self.league, round, referees);
        self.happens(event, "");
        let mut output = String::new();
        for (old, new) in before.iter().zip(&self.league.matches) {
            if old.assignment() != new.assignment() {
                let tokens = |game: &Match| game.assignment().map(|own| own.tokens.clone());
                assert_ne!(tokens(old), tokens(new), "the tokens of {}", new.id);
                output += &format!("{} {}\n", new.id, new.referee().unwrap());
            }
        }
        output
    }

    /// Plays the open matches of a round.
    fn play_round(&mut self, command: &Command) -> String {
        let (round, before) = (command.round(), self.league.version);
        let how = ends(command.word(2));
        self.assign(round, &offline::referees(&self.league));
        let ids = self.league.open_matches(round).map(|game| game.id.clone());
        for id in ids.collect::<Vec<_>>() {
            let outcome = how(self.league.find(&id).unwrap());
            let event = offline::result_event(&self.league, &id, &outcome);
            self.happens(event, "");
        }
        format!("{} events", self.league.version - before)
    }

    /// `report R1M1 wins by=REF02 conversation=conv-1 result/winner=P04`: a true report, except for
    /// the fields in the options.
    fn report(&mut self, command: &Command) -> String {
        let game = self.league.find(command.word(1)).unwrap();
        let report = offline::report(&self.league, game, &ends(command.word(2))(game));
        let report: MatchResultReport = command.changes(report, &["by", "conversation"]);
        let referee = command.text("by").or(game.referee()).unwrap();
        let sender = &self.league.members[referee];
        match self.league.check_report(sender, &report, self.now) {
            Ok(event) => self.happens(event, "recorded"),
            Err(refusal) => refused(refusal),
        }
    }

    /// `operator remove P04`, `operator restore P04 address=10.0.0.7`.
    fn operator(&mut self, command: &Command) -> String {
        let about = (!command.word(2).is_empty()).then(|| command.word(2).to_string());
        let order = json!({"league_id": "paper", "action": command.word(1), "player_id": about,
            "address": command.text("address")});
        let order = decode::<LeagueControl>(&order).unwrap();
        match self.league.decide_order(&order, self.now) {
            Ok(event) => self.happens(event, "done"),
            Err(refusal) => refused(refusal),
        }
    }

    /// Records the matches of removed players.
    fn walkovers(&mut self, round: u32) -> String {
        let mut output = String::new();
        while let Some(event) = self.league.walkover(round, self.now) {
            if let Event::Recorded(recorded) = &event {
                let result = &recorded.result;
                let reason = result.details.reason.as_deref().unwrap_or("no reason");
                output += &format!("{} {:?}, {reason}\n", recorded.match_id, result.score);
            }
            self.happens(Some(event), "");
        }
        output
    }

    /// Answers a question about the league.
    fn answers(&self, question: &str, command: &Command) -> String {
        let league = &self.league;
        let reader = command.word(2);
        let reply = match question {
            "status" => {
                let now = Moment::now();
                let waiting = Table::new(league, now).waiting(league, now);
                body(league.status(waiting.reason))
            }
            "table" => return table(league),
            "states" => {
                let all = league.members.values();
                let states = all.map(|member| (member.id.clone(), json!(league.state_of(member))));
                Value::Object(states.collect())
            }
            "announcement" => {
                let referee = Some(reader).filter(|id| league.members.contains_key(*id));
                body(league.announcement(command.round(), referee))
            }
            "match_token" => json!(league.match_token(command.round(), reader)),
            "round_completed" => body(league.round_completed(command.round())),
            "completed" => league.league_completed().map_or(Value::Null, body),
            "ask" => {
                let mut query = json!({"league_id": "paper"});
                query["query_type"] = value_of(command.text("type").unwrap());
                if let Some(params) = command.text("query_params") {
                    query["query_params"] = value_of(params);
                } else if command.options.len() > 1 {
                    let params: Map<String, Value> = command.changes(json!({}), &["type"]);
                    query["query_params"] = params.into();
                }
                let query = decode::<LeagueQuery>(&query).unwrap();
                match league.answer_query(&query, &league.members[command.word(1)]) {
                    Ok(answer) => answer.data.map_or(json!(answer.error), Value::Object),
                    Err(refusal) => return refused(refusal),
                }
            }
            other => panic!("{other}: no such command"),
        };
        shown(&reply)
    }
}

/// Returns the body of a message as it is sent.
fn body(message: impl Message) -> Value {
    let mut body = json!(message);
    remove_absent(&mut body, &message.spec().schema);
    body
}

/// Returns a refusal, and the result that the league has recorded already.
fn refused(refusal: ProtocolError) -> String {
    match refusal.context.get("recorded_result") {
        Some(recorded) => format!("refused: {refusal}\nrecorded: {recorded}"),
        None => format!("refused: {refusal}"),
    }
}
