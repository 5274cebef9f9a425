//! Rules without processes: the schedule as laws that hold for every number of players; standings,
//! retries and the order of notifications as golden scripts of `tests/scripts/rules`.

use super::support::offline::{league_with, rules, scoring};
use super::support::{golden, offline_league};
use league::games::Scoring;
use league::manager::contact::{Call, Contact, Health, Next};
use league::manager::notifications::{Progress, Published};
use league::manager::schedule::round_robin;
use league::net::call_error::CallError;
use league::program::attempts::Attempts;
use league::program::config::{RetryPolicy, Seconds};
use league::protocol::{AgentKind, ErrorCode, ProtocolError};
use league::values::Moment;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[test]
fn schedule_has_every_pair_once_with_balanced_roles() {
    for (n, cycles) in (2..=12).flat_map(|n| (1..=3).map(move |cycles| (n, cycles))) {
        let row = format!("{n} players, {cycles} cycles");
        let players: Vec<String> = (1..=n).map(|n| format!("P{n:02}")).collect();
        let rounds = round_robin(&players, cycles as u32);
        // With an odd number of players each one rests once in a cycle.
        assert_eq!(rounds.len(), cycles * (n - (n + 1) % 2), "{row}: rounds");
        let mut met = BTreeMap::<_, Vec<bool>>::new();
        for round in &rounds {
            let busy: BTreeSet<&String> = round.iter().flatten().collect();
            assert_eq!(busy.len(), 2 * round.len(), "{row}: twice in {round:?}");
            for [a, b] in round {
                met.entry((a.min(b), a.max(b))).or_default().push(a < b);
            }
        }
        assert_eq!(met.len(), n * (n - 1) / 2, "{row}: pairs");
        for (pair, lower_is_a) in &met {
            // A pair meets once in a cycle, and changes roles.
            assert_eq!(lower_is_a.len(), cycles, "{row}: {pair:?}");
            let alternates = lower_is_a.windows(2).all(|two| two[0] != two[1]);
            assert!(alternates, "{row}: {pair:?}");
        }
        for player in &players {
            let [as_a, as_b] = [0, 1].map(|seat| {
                let pairs = rounds.iter().flatten();
                pairs.filter(|pair| pair[seat] == *player).count()
            });
            assert!(as_a.abs_diff(as_b) <= 1, "{row}: {player}, {as_a}, {as_b}");
        }
    }
    for few in [vec![], vec!["P01".into()]] {
        assert!(round_robin(&few, 1).concat().is_empty());
    }
}

/// `3,1,0,0 wins,draws P01>P02 P03`: returns the table after these matches. The points are for a
/// match won, drawn, lost and technically lost; then come the tie-breaks.
fn table(row: &str) -> String {
    let [points, ties, script] = row.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{row}")
    };
    let points: Vec<i32> = points.split(',').flat_map(str::parse).collect();
    let ties = ties.split(',').filter(|word| *word != "-");
    let ties = ties.map(|word| serde_json::from_value(word.into()).unwrap());
    let mut rules = rules();
    rules.league.scoring = Scoring {
        tiebreakers: ties.collect(),
        ..scoring(points.try_into().unwrap())
    };
    offline_league::table(&league_with(rules, script))
}

/// Returns the result of a call that a word names.
fn result(word: &str) -> Result<(), CallError> {
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

fn policy(max_retries: u32, strategy: &str) -> RetryPolicy {
    RetryPolicy {
        max_retries,
        base_delay_sec: Seconds(Duration::from_secs(2)),
        backoff_strategy: serde_json::from_value(strategy.into()).unwrap(),
    }
}

/// `3 exponential late gone`: at most three attempts, of which the first two fail so. Returns their
/// result, and the pauses between them in seconds.
fn retried(row: &str) -> String {
    let words: Vec<&str> = row.split(' ').collect();
    let policy = policy(words[0].parse().unwrap(), words[1]);
    let mut attempts = Attempts::new(policy);
    let (mut pauses, mut made) = (Vec::new(), 0);
    let end = loop {
        made += 1;
        let Err(error) = result(words.get(made + 1).unwrap_or(&"answer")) else {
            break "done".to_string();
        };
        match attempts.next_delay() {
            Some(delay) if error.is_retryable() => pauses.push(delay.as_secs()),
            _ => break error.explain(),
        }
    };
    let longest = policy.max_total_time(Duration::from_secs(30)).as_secs();
    format!("{made} attempts, pauses {pauses:?}: {end}; at most {longest} s")
}

/// An agent of the manager, in time that the script makes.
struct Story {
    contact: Contact,
    published: Published,
    now: Moment,
    call: Option<Call>,
}

impl Story {
    fn new(kind: AgentKind) -> Story {
        let mut system = rules().system;
        system.retry_policy = policy(3, "exponential");
        Story {
            contact: Contact::new(kind, &system),
            published: Published::default(),
            now: Moment::now(),
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
            "registers" => self.contact.revive(),
            "restored" => self.contact.reset(),
            "matches" => self
                .contact
                .check_deadline(seconds(), self.published, self.now),
            other => panic!("{other}: no such command"),
        }
        self.describe()
    }

    fn publish(&mut self, players: Progress, referees: Progress) {
        let referees = Progress {
            results: 0,
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
        let result = self::result(result).map(|()| Value::Null);
        let call = self.call.take().unwrap();
        self.contact.record(&call, &result, self.now);
    }

    fn describe(&self) -> String {
        let health = match &self.contact.health {
            Health::Answering => "answers".into(),
            Health::Late(_) => "late".into(), // its text has the time of day
            Health::Failing(_) | Health::Refusing(_) => self.contact.health.problem(),
        };
        let is_referee = self.contact.kind == AgentKind::Referee;
        let is_out = is_referee && !self.contact.health.may_play();
        let play = ["", "; gets no match"][usize::from(is_out)];
        let next = match self.contact.next_call(self.published, self.now) {
            Next::Wait(time) => format!("wait {} s", time.as_secs()),
            Next::Call(call) => match call.notification {
                Some(notification) => format!("{notification:?}"),
                None => "ping".into(),
            },
        };
        let deadline = self.contact.report_by.map(|time| time.time_left(self.now));
        let deadline = deadline.map_or(String::new(), |left| {
            format!("; must report in {} s", left.as_secs())
        });
        let gone = ["", "; no program is there"][usize::from(self.contact.is_gone())];
        format!("{health}{play}; next: {next}{deadline}{gone}")
    }
}

/// `8,4,9,over`: the number of results, the number of rounds, the announcement; the league is over.
fn progress(text: &str) -> Progress {
    let parts: Vec<&str> = text.split(',').collect();
    Progress {
        results: parts[0].parse().unwrap(),
        rounds: parts[1].parse().unwrap(),
        announcement: parts[2].parse().unwrap(),
        is_over: parts.get(3) == Some(&"over"),
    }
}

/// Returns all notifications that an agent with this progress is sent, one after the other.
fn lacking(mut received: Progress, newest: Progress) -> String {
    let mut lines = String::new();
    while let Some((notification, next)) = received.next_notification(newest) {
        lines += &format!("{notification:?}\n");
        received = next;
    }
    lines
}

#[test]
fn rules_golden() {
    golden::run_scripts("rules", || {
        let mut story = Story::new(AgentKind::Player);
        move |command: &str| match command.split_once(' ').unwrap_or((command, "")) {
            ("table", row) => table(row),
            ("lacks", row) => {
                let (received, newest) = row.split_once(" of ").unwrap();
                lacking(progress(received), progress(newest))
            }
            ("again", newest) => {
                let newest = progress(newest);
                lacking(newest.before_last_round(), newest)
            }
            ("retry", row) => retried(row),
            _ => story.run(command),
        }
    });
}
