//! The contacts of the manager in time that a script makes: `tests/scripts/contacts`. One agent, its
//! calls and its health; or a league, in which each command decides as the round loop does.

use super::rules::policy;
use super::support::golden;
use super::support::offline::{ends, happen, lobby, report, rules, start};
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
        "cut_off" => CallError::Broken("it is over 10 bytes".into()),
        "gone" => CallError::Unreachable("refused".into()),
        "closed" | "refused" => CallError::Unreachable("connection refused".into()),
        "local_fault" => CallError::Local("no thread".into()),
        "wrong" | "wrong_answer" => {
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

/// An agent of the manager, in time that the script makes.
struct Story {
    contact: Contact,
    published: Published,
    begun: Moment,
    now: Moment,
    call: Option<Call>,
}

impl Story {
    fn new(kind: AgentKind) -> Story {
        let mut system = rules().system;
        system.retry_policy = policy(3, "exponential");
        let begun = Moment::now();
        Story {
            contact: Contact::new(kind, &system),
            published: Published::default(),
            begun,
            now: begun,
            call: None,
        }
    }

    /// Runs a command. Returns the health of the agent, and what it needs next.
    fn run(&mut self, command: &str) -> String {
        let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
        let seconds = || Duration::from_secs(rest.parse().unwrap());
        match name {
            "player" => *self = Story::new(AgentKind::Player),
            "referee" => *self = Story::new(AgentKind::Referee),
            "news" => self.publish(progress(rest), progress(rest)),
            "players_first" => {
                let referees = self.published.referees;
                self.publish(progress(rest), referees);
            }
            "wait" => self.now = self.now.plus(seconds()),
            "begin" => self.begin(),
            "end" => self.end(rest),
            "calls" => {
                for result in rest.split(' ') {
                    if let Next::Wait(time) = self.contact.next_call(self.published, self.now) {
                        self.now = self.now.plus(time);
                    }
                    self.begin();
                    self.end(result);
                }
            }
            "registers" => self.contact.revive(self.now),
            "restored" => self.contact.reset(self.now),
            "matches" => self
                .contact
                .check_deadline(seconds(), self.published, self.now),
            other => panic!("{other}: no such command"),
        }
        self.describe()
    }

    fn publish(&mut self, players: Progress, referees: Progress) {
        let referees = Progress {
            tables: 0,
            ..referees
        };
        self.published = Published { players, referees };
    }

    fn begin(&mut self) {
        let Next::Call(call) = self.contact.next_call(self.published, self.now) else {
            panic!("no call is due");
        };
        self.contact.begin(&call);
        self.call = Some(call);
    }

    fn end(&mut self, result: &str) {
        let result = match result {
            "not_registered" => {
                let error = ProtocolError::new(ErrorCode::PlayerNotRegistered, "");
                let mut answer = json!(error.league_error(""));
                answer["message_type"] = "LEAGUE_ERROR".into();
                Ok(answer)
            }
            word => self::result(word).map(|()| Value::Null),
        };
        let call = self.call.take().unwrap();
        self.contact.record(&call, &result, self.now);
    }

    fn describe(&self) -> String {
        let seconds = self.now.time_left(self.begun).as_secs();
        let agent = describe(&self.contact, self.published, self.begun, self.now);
        format!("{seconds} s: {agent}")
    }
}

/// Returns the health of an agent, what it needs next, and until when it must report: in seconds
/// since the script has begun.
fn describe(contact: &Contact, published: Published, begun: Moment, now: Moment) -> String {
    let health = match &contact.health {
        Health::Answering => "answers".into(),
        Health::Late(_) => "late".into(), // its text has the time of day
        Health::Failing(_) | Health::Refusing(_) => contact.health.problem(),
    };
    let is_referee = contact.kind == AgentKind::Referee;
    let is_out = is_referee && !contact.health.may_play();
    let play = ["", "; gets no match"][usize::from(is_out)];
    let next = match contact.next_call(published, now) {
        Next::Wait(time) => {
            let until = now.plus(time).time_left(begun);
            format!("a call at {} s", until.as_secs())
        }
        Next::Call(call) => match call.notification {
            Some(notification) => format!("{notification:?}"),
            None => "ping".into(),
        },
    };
    let deadline = contact.report_by.map(|time| time.time_left(begun));
    let deadline = deadline.map_or(String::new(), |time| {
        format!("; must report until {} s", time.as_secs())
    });
    let gone = ["", "; no program is there"][usize::from(contact.is_gone())];
    format!("{health}{play}; next: {next}{deadline}{gone}")
}

/// A league, and its agents as the manager knows them.
struct World {
    league: League,
    table: Table,
    begun: Moment,
    now: Moment,
    /// What was printed last of each agent.
    printed: BTreeMap<String, String>,
}

impl World {
    fn new(players: u32, referees: usize) -> World {
        let mut lobby = lobby(players, &vec![2; referees]);
        lobby.config.system.retry_policy = policy(3, "exponential");
        let (league, begun) = (start(lobby), Moment::now());
        let table = Table::new(&league, begun);
        World {
            league,
            table,
            begun,
            now: begun,
            printed: BTreeMap::new(),
        }
    }

    /// Runs a command. Returns a line for each agent of which something has changed.
    fn run(&mut self, command: &str) -> String {
        let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
        let said = match name {
            "wait" => {
                let seconds = rest.parse().unwrap();
                self.now = self.now.plus(Duration::from_secs(seconds));
                String::new()
            }
            "step" => self.step().into(),
            "registers" => {
                let member = &self.league.members[rest];
                self.table.record_registration(member, self.now);
                String::new()
            }
            "report" => self.report(rest),
            id => {
                self.call(id, rest);
                String::new()
            }
        };
        let mut output = said;
        let seconds = self.now.time_left(self.begun).as_secs();
        for (id, contact) in &self.table.contacts {
            let line = describe(contact, self.table.published, self.begun, self.now);
            if self.printed.insert(id.clone(), line.clone()).as_ref() != Some(&line) {
                output += &format!("{seconds} s: {id} {line}\n");
            }
        }
        let published = self.table.published;
        let is_over = published.players.is_over;
        let limit = Duration::from_secs(46);
        if is_over && self.table.may_end(limit, self.now) {
            output += &format!("{seconds} s: the manager may end\n");
        }
        output
    }

    /// The step of the round loop.
    fn step(&mut self) -> &'static str {
        let available = self.table.available_referees(&self.league);
        if let Some(round) = self.league.open_round() {
            if self.league.assigned_matches(round).next().is_none() {
                self.table.pace.begin(round, false, self.now);
            }
            let event = self.league.assign_open_matches(
                round,
                &available,
                &self.table.unannounced,
                |player| format!("{player}-{}", self.league.version),
            );
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

    /// Ends the next calls to an agent with these results.
    fn call(&mut self, id: &str, results: &str) {
        let published = self.table.published;
        let contact = self.table.contacts.get_mut(id).unwrap();
        for result in results.split(' ') {
            let call = loop {
                match contact.next_call(published, self.now) {
                    Next::Wait(time) => self.now = self.now.plus(time),
                    Next::Call(call) => break call,
                }
            };
            contact.begin(&call);
            let result = self::result(result).map(|()| Value::Null);
            contact.record(&call, &result, self.now);
        }
    }

    /// `R1M1 B-fails`: the referee of the match reports this result. With `1` behind it the report is of
    /// the first time that the match was played.
    fn report(&mut self, text: &str) -> String {
        let (id, how) = text.split_once(' ').unwrap();
        let the_match = self.league.find(id).unwrap();
        let newest = the_match.assignments.len().to_string();
        let (how, conversation) = how.split_once(' ').unwrap_or((how, &newest));
        let report = report(&self.league, the_match, &ends(how)(the_match));
        let referee = &self.league.members[the_match.referee().unwrap()];
        let event = self
            .league
            .check_report(referee, &report, self.now.timestamp)
            .unwrap();
        if let Some(Event::Recorded(new)) = &event
            && let Err(refusal) = self.table.check_loser(the_match, new, conversation)
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
        let mut story = Story::new(AgentKind::Player);
        let mut world = None;
        move |command: &str| {
            if let Some(rest) = command.strip_prefix("league ") {
                let (players, referees) = rest.split_once(' ').unwrap();
                let new = World::new(players.parse().unwrap(), referees.parse().unwrap());
                world = Some(new);
                return String::new();
            }
            match &mut world {
                Some(world) => world.run(command),
                None => story.run(command),
            }
        }
    });
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
