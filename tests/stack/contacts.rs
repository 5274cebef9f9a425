//! The contacts of the manager in time that a script makes: `tests/scripts/contacts`. One agent, its
//! calls and its health; or a league, in which `step` decides as the round loop does.

use super::rules::policy;
use super::support::golden::{self, Command};
use super::support::offline::{ends, happen, lobby, result_event, start};
use league::manager::contact::{Call, Contact, Health, Next, Table};
use league::manager::league::{Event, League};
use league::manager::notifications::{Progress, Published};
use league::net::call_error::CallError;
use league::protocol::{AgentKind, ErrorCode, ProtocolError};
use league::values::{Moment, Timestamp, clock};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// Returns the result of a call that a word names.
pub fn result(word: &str) -> Result<(), CallError> {
    Err(match word {
        "answer" => return Ok(()),
        "json_rpc_error" => CallError::JsonRpc(-32603, "it crashed".into()),
        "http_500" => CallError::HttpStatus(500, "Oh".into()),
        "late" => CallError::Timeout(Duration::from_secs(30)),
        "hung_up" => CallError::Broken("connection reset".into()),
        "gone" => CallError::Unreachable("refused".into()),
        "refused" => CallError::Unreachable("connection refused".into()),
        "local_fault" => CallError::Local("no thread".into()),
        "wrong_answer" => {
            let error = ProtocolError::new(ErrorCode::MissingField, "nonsense");
            CallError::wrong(error, "")
        }
        other => panic!("{other}: no such result"),
    })
}

/// `8,4,9,over`: the number of results, the number of rounds, the announcement; the league is over.
pub fn progress(text: &str) -> Progress {
    let parts: Vec<&str> = text.split(',').collect();
    Progress {
        tables: parts[0].parse().unwrap(),
        rounds: parts[1].parse().unwrap(),
        announcement: parts[2].parse().unwrap(),
        is_over: parts.get(3) == Some(&"over"),
    }
}

/// Returns what an agent needs next, its health, and until when it must report: in seconds since the
/// script has begun.
fn describe(contact: &Contact, published: Published, begun: Moment, now: Moment) -> String {
    let next = match contact.next_call(published, now) {
        Next::Wait(time) if time == Duration::from_secs(60) => "idle".into(),
        Next::Wait(time) => format!("next at {}s", now.plus(time).time_left(begun).as_secs()),
        Next::Call(call) => match call.notification {
            Some(notification) => format!("next {notification:?}"),
            None => "next ping".into(),
        },
    };
    let health = match &contact.health {
        Health::Answering => String::new(),
        Health::Late(_) => "; late".into(), // its text has the time of day
        Health::Failing(_) | Health::Refusing(_) => format!("; {}", contact.health.problem()),
    };
    let deadline = contact.report_by.map_or(String::new(), |time| {
        format!("; must report until {}s", time.time_left(begun).as_secs())
    });
    let is_referee = contact.kind == AgentKind::Referee;
    let is_out = is_referee && !contact.health.may_play();
    let play = ["", "; gets no match"][usize::from(is_out)];
    let gone = ["", "; no program is there"][usize::from(contact.is_gone())];
    format!("{next}{health}{play}{deadline}{gone}")
}

/// A league, and its agents as the manager knows them, in time that the script makes.
struct World {
    league: League,
    table: Table,
    begun: Moment,
    now: Moment,
    /// The call that has begun.
    call: Option<Call>,
    /// What was printed last of each agent.
    printed: BTreeMap<String, String>,
}

impl World {
    /// Makes a world with so many players and referees. A league of both starts.
    fn new(players: u32, referees: usize) -> World {
        let mut league = lobby(players, &vec![2; referees]);
        league.config.system.retry_policy = policy(3, "exponential");
        if players > 1 {
            league = start(league);
        }
        let now = Moment::now();
        World {
            table: Table::new(&league, now),
            league,
            begun: now,
            now,
            call: None,
            printed: BTreeMap::new(),
        }
    }

    /// Runs commands. Returns a line for each agent of which something has changed.
    fn run(&mut self, line: &str) -> String {
        let mut output = String::new();
        for command in line.split("; ") {
            output += &self.run_command(&Command::new(command));
        }
        let seconds = self.now.time_left(self.begun).as_secs();
        let published = self.table.published;
        for (id, contact) in &self.table.contacts {
            let line = describe(contact, published, self.begun, self.now);
            if self.printed.insert(id.clone(), line.clone()).as_ref() != Some(&line) {
                output += &format!("{seconds}s {id} {line}\n");
            }
        }
        let limit = Duration::from_secs(46);
        if published.players.is_over && self.table.may_end(limit, self.now) {
            output += &format!("{seconds}s the manager may end\n");
        }
        output
    }

    fn run_command(&mut self, command: &Command) -> String {
        let seconds = || Duration::from_secs(command.number(1).into());
        match command.word(0) {
            "player" => *self = World::new(1, 0),
            "referee" => *self = World::new(0, 1),
            "league" => *self = World::new(command.number(1), command.number(2) as usize),
            "restart" => self.table = Table::new(&self.league, self.now),
            "wait" => self.now = self.now.plus(seconds()),
            "step" => return self.step().into(),
            "news" => {
                let players = progress(command.word(1));
                let referees = Progress {
                    tables: 0,
                    ..players
                };
                self.table.published.players = players;
                if command.word(2) != "for_players" {
                    self.table.published.referees = referees;
                }
            }
            "matches" => {
                for contact in self.table.contacts.values_mut() {
                    contact.check_deadline(seconds(), self.table.published, self.now);
                }
            }
            "registers" => {
                let member = &self.league.members[command.word(1)];
                self.table.record_registration(member, self.now);
            }
            "restored" => self.table.resend(command.word(1), self.now),
            "report" => return self.report(command.word(1), command.word(2), command.word(3)),
            id => command.words[1..]
                .iter()
                .for_each(|result| self.call(id, result)),
        }
        String::new()
    }

    /// The step of the round loop.
    fn step(&mut self) -> &'static str {
        let available = self.table.available_referees(&self.league);
        self.table.pace.begin(&self.league, self.now);
        if let Some(round) = self.league.open_round() {
            let unannounced = &self.table.unannounced;
            let token = |player: &str| format!("{player}-{}", self.league.version);
            let event = (self.league).assign_open_matches(round, &available, unannounced, token);
            if let Some(Event::Assigned { assignments }) = &event {
                let lead = Duration::ZERO;
                self.table.record_assignment(assignments, lead, self.now);
            }
            happen(&mut self.league, event);
        }
        let may_begin = !available.is_empty();
        self.table.publish(&self.league, may_begin, self.now);
        ["no referee is left\n", ""][usize::from(may_begin)]
    }

    /// Ends the next call to an agent, or that which has begun, with a result. `begin` begins one.
    fn call(&mut self, id: &str, word: &str) {
        let published = self.table.published;
        let contact = self.table.contacts.get_mut(id).unwrap();
        let call = self.call.take().unwrap_or_else(|| {
            if let Next::Wait(time) = contact.next_call(published, self.now) {
                self.now = self.now.plus(time);
            }
            let Next::Call(call) = contact.next_call(published, self.now) else {
                panic!("no call to {id} is due");
            };
            contact.begin(&call);
            call
        });
        if word == "begin" {
            self.call = Some(call);
            return;
        }
        let answer = match word {
            "not_registered" => {
                let error = ProtocolError::new(ErrorCode::PlayerNotRegistered, "");
                let mut answer = json!(error.league_error(""));
                answer["message_type"] = "LEAGUE_ERROR".into();
                Ok(answer)
            }
            word => result(word).map(|()| Value::Null),
        };
        contact.record(&call, &answer, self.now);
    }

    /// The referee of a match reports how it has ended, or a copy of the report of an earlier `play` comes.
    fn report(&mut self, id: &str, how: &str, play: &str) -> String {
        let game = self.league.find(id).unwrap();
        let newest = game.assignments.len().to_string();
        let conversation = if play.is_empty() { &newest } else { play };
        let event = result_event(&self.league, id, &ends(how)(game));
        if let Some(Event::Recorded(new)) = &event
            && let Err(refusal) = self.table.check_loser(game, new, conversation)
        {
            return format!("refused: {refusal}\n");
        }
        happen(&mut self.league, event);
        "recorded\n".into()
    }
}

#[test]
fn contacts_golden() {
    golden::run_scripts("contacts", || {
        let mut world = World::new(1, 0);
        move |command: &str| world.run(command)
    });
}

#[test]
fn table_after_a_result_is_held_back_in_a_large_league() {
    for (players, expected) in [(16, [1, 2, 2]), (17, [1, 1, 2])] {
        let mut world = World::new(players, 1);
        let tables = ["step", "report R1M1 wins; step", "wait 1; step"].map(|commands| {
            world.run(commands);
            world.table.published.players.tables
        });
        assert_eq!(tables, expected, "{players} players");
    }
}

#[test]
fn clocks_of_a_thread_can_be_set() {
    let (now, later) = (Instant::now(), Duration::from_secs(90));
    let utc = OffsetDateTime::UNIX_EPOCH;
    clock::set(now, utc);
    let before = Moment::now();
    assert_eq!(Timestamp::now().to_string(), "1970-01-01T00:00:00Z");
    clock::set(now + later, utc + later);
    assert_eq!(Moment::now(), before.plus(later));
    let other = std::thread::spawn(|| Timestamp::now().to_string());
    assert!(!other.join().unwrap().starts_with("1970"));
}
