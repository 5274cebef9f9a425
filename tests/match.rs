//! One match over a scripted line (R7): no socket, no waiting. The script has a clock of its own, on which silence
//! costs its whole limit and a wrong answer a second. What a player goes through is written down as one line.

mod support;

use league::{
    clock::Timestamp,
    config::RetryPolicy,
    config_files::Backoff,
    failure::Failure,
    game::{Outcome, Scoring},
    http::Trouble,
    protocol::*,
    referee::{Game, Limits, Line, Seat, play},
    wire::Unread,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Condvar, Mutex},
    time::{Duration, Instant},
};
use support::PATIENCE;

/// What a player does when it is asked.
#[derive(Clone, PartialEq)]
enum Does {
    /// Joins, or chooses: P01 even, P02 odd.
    Well,
    Says(Message),
    Fails(Failure),
}
use Does::{Fails, Says, Well};

const SILENT: Does = Fails(Failure::Trouble(Trouble::Late));

fn refused() -> Does {
    Fails(Failure::Trouble(Trouble::Unreachable("connection refused".into())))
}

fn ours() -> Does {
    Fails(Failure::Trouble(Trouble::Ours("no descriptor".into())))
}

fn rpc() -> Does {
    Fails(Failure::Rpc(-32603, "it crashed".into()))
}

/// What the reader says of an answer that it cannot take.
fn unreadable(code: Code) -> Does {
    Fails(Failure::Wrong(Refusal::field(code, "timestamp", "got \"noon\", expected a UTC time")))
}

fn ack(match_id: &str, player_id: &str, accept: bool) -> Does {
    let (match_id, player_id, arrival_timestamp) = (match_id.into(), player_id.into(), zero());
    Says(GameJoinAck { match_id, player_id, arrival_timestamp, accept, auth_token: None }.into())
}

fn choice(match_id: &str, player_id: &str, parity: Value) -> Does {
    let (match_id, player_id, parity_choice) = (match_id.into(), player_id.into(), Unread::new(parity));
    Says(ChooseParityResponse { match_id, player_id, parity_choice, auth_token: None }.into())
}

/// When the script's clock stands at 0.
fn zero() -> Timestamp {
    Timestamp::parse("2025-01-15T10:30:00Z").unwrap()
}

/// A line to two players who do what a script says, and then play well.
struct Script {
    scripts: [Mutex<VecDeque<Does>>; 2],
    began: Instant,
    passed: Mutex<Duration>,
    /// What each player went through.
    story: [Mutex<Vec<String>>; 2],
    /// What each player was told.
    errors: [Mutex<Vec<GameError>>; 2],
    overs: Mutex<Vec<Message>>,
    kept: Mutex<Vec<Outcome>>,
    /// Whether the outcome can be kept.
    keeps: bool,
    /// The state at which the match is taken away.
    taken_at: Option<MatchState>,
    /// If set, nobody answers before the other has been asked the same: how many were asked what.
    asked: Option<(Mutex<BTreeMap<&'static str, u32>>, Condvar)>,
    backoff: Backoff,
}

impl Script {
    fn new(a: &[Does], b: &[Does]) -> Script {
        Script {
            scripts: [a, b].map(|script| Mutex::new(script.iter().cloned().collect())),
            began: Instant::now(),
            passed: Mutex::default(),
            story: Default::default(),
            errors: Default::default(),
            overs: Mutex::default(),
            kept: Mutex::default(),
            keeps: true,
            taken_at: None,
            asked: None,
            backoff: Backoff::Exponential,
        }
    }

    /// Plays the match: R1M1 of P01 and P02; 7 is drawn.
    fn play(&self) -> Option<Outcome> {
        let seat = |id: &str, role| Seat { player_id: id.into(), role, standings: None };
        let seats = [seat("P01", Role::PlayerA), seat("P02", Role::PlayerB)];
        let game = Game { league_id: "league".into(), round_id: 1, match_id: "R1M1".into(), seats };
        let retry = RetryPolicy { attempts: 3, base_delay: Duration::from_secs(2), backoff: self.backoff };
        let [join, choice, game_over] = [5, 30, 5].map(Duration::from_secs);
        let limits = Limits { join, choice, game_over, retry, own_faults: Duration::from_secs(100) };
        play(
            &game,
            self,
            &limits,
            || 7,
            |outcome| {
                self.kept.lock().unwrap().push(outcome.clone());
                self.keeps
            },
        )
    }

    fn story(&self, seat: usize) -> String {
        self.story[seat].lock().unwrap().join(", ")
    }

    fn now(&self) -> u64 {
        self.passed.lock().unwrap().as_secs()
    }

    fn passes(&self, time: Duration) {
        *self.passed.lock().unwrap() += time;
    }

    fn note(&self, seat: usize, what: String) {
        let now = self.now();
        self.story[seat].lock().unwrap().push(format!("{now} {what}"));
    }

    fn wait_for_the_other(&self, question: &'static str) {
        let Some((asked, bell)) = &self.asked else { return };
        let mut asked = asked.lock().unwrap();
        *asked.entry(question).or_default() += 1;
        bell.notify_all();
        let waited = bell.wait_timeout_while(asked, PATIENCE, |asked| asked[question] < 2).unwrap();
        assert!(!waited.1.timed_out(), "the other is not sent {question} at the same time");
    }
}

/// Seconds from the script's beginning.
fn at(time: Timestamp) -> u64 {
    time.distance(zero()).as_secs()
}

impl Line for Script {
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, Failure> {
        let limit_sec = limit.as_secs();
        self.note(
            seat,
            match message {
                Message::GameInvitation(_) => format!("invited for {limit_sec}"),
                Message::ChooseParityCall(call) => format!("asked for {limit_sec} until {}", at(call.deadline)),
                _ => "over".into(),
            },
        );
        self.wait_for_the_other(message.name());
        let id = ["P01", "P02"][seat];
        if let Message::GameOver(_) = message {
            assert!(self.kept.lock().unwrap().len() == 1 && self.keeps, "told before it is kept");
            self.overs.lock().unwrap().push(message.clone());
            return Ok(message.clone());
        }
        let (does, takes) = match (self.scripts[seat].lock().unwrap().pop_front().unwrap_or(Well), message) {
            (Well, Message::GameInvitation(_)) => (ack("R1M1", id, true), 0),
            (Well, _) => (choice("R1M1", id, json!(["even", "odd"][seat])), 0),
            (SILENT, _) => (SILENT, limit_sec),
            (broken @ Fails(Failure::Trouble(_)), _) => (broken, 0),
            (wrong, _) => (wrong, 1),
        };
        self.passes(Duration::from_secs(takes));
        match does {
            Says(message) => Ok(message),
            Fails(failure) => Err(failure),
            Well => unreachable!("said above what that is"),
        }
    }

    fn tell(&self, seat: usize, message: Message) {
        let Message::GameError(error) = message else { panic!("{message:?}") };
        let retry = error.retry_info.as_ref().map(|retry| {
            let again = retry.next_retry_at.map(|time| format!("again at {}", at(time)));
            let left = retry.time_remaining.map(|left| format!("{left} left"));
            format!("{}/{} {}", retry.retry_count, retry.max_retries, again.or(left).unwrap())
        });
        self.note(seat, format!("{} {}", error.error_code, retry.as_ref().unwrap_or(&error.action_required)));
        self.errors[seat].lock().unwrap().push(error);
    }

    fn pause(&self, delay: Duration) {
        self.passes(delay);
    }

    fn now(&self) -> Instant {
        self.began + *self.passed.lock().unwrap()
    }

    fn clock(&self) -> Timestamp {
        zero().plus(*self.passed.lock().unwrap())
    }

    fn reached(&self, state: MatchState) -> bool {
        self.taken_at != Some(state)
    }
}

/// Ending, winner and reason in one line.
fn told(outcome: Option<&Outcome>) -> String {
    let Some(outcome) = outcome else { return "nothing".into() };
    let GameResult { status, winner_player_id, .. } = outcome.for_players();
    format!("{status} {}: {}", winner_player_id.unwrap_or("nobody".into()), outcome.reason)
}

const PLAYED: &str = "WIN P02: P02 chose odd, number was 7 (odd)";
const LATE: &str = "TECHNICAL_LOSS P01: P02 failed to respond within timeout - P01 wins by default";
const GONE: &str = "TECHNICAL_LOSS P01: P02 could not be reached - P01 wins by default";
const WRONG: &str = "TECHNICAL_LOSS P01: P02 gave no valid answer";

/// Plays P02's script against a good player: its story, the outcome in one line, and what it was told.
fn against_a_good_player(b: &[Does]) -> (String, String, Vec<GameError>) {
    let script = Script::new(&[], b);
    let outcome = script.play();
    let errors = script.errors[1].lock().unwrap().clone();
    for error in &errors {
        assert!(error.consequence.as_ref().is_some_and(|text| !text.is_empty()), "{error:?}");
        assert!(Code::ALL.iter().any(|code| code.code() == error.error_code && code.name() == error.error_description));
        assert_eq!((&*error.match_id, &*error.affected_player), ("R1M1", "P02"));
    }
    assert!(script.errors[0].lock().unwrap().is_empty());
    (script.story(1), told(outcome.as_ref()), errors)
}

/// Plays rows of (name, P02's script, its story, the beginning of the outcome).
fn check(rows: &[(&str, &[Does], &str, &str)]) {
    for (name, script, expected, ending) in rows {
        let (story, told, _) = against_a_good_player(script);
        assert_eq!(story, *expected, "{name}");
        assert!(told.starts_with(ending), "{name}: {told}");
    }
}

#[test]
fn an_invitation_is_joined_or_the_match_is_forfeited() {
    let refusals = [
        ("accept: false", ack("R1M1", "P02", false), "E003"),
        ("no GAME_JOIN_ACK", choice("R1M1", "P02", json!("odd")), "E003"),
        ("another match", ack("R9M9", "P02", true), "E015"),
        ("another player", ack("R1M1", "P01", true), "E012"),
        ("a missing field", unreadable(Code::E003), "E003"),
        ("another time zone", unreadable(Code::E021), "E021"),
        ("a JSON-RPC error", rpc(), "E003"),
    ];
    for (name, does, code) in refusals {
        let story = format!("0 invited for 5, 1 {code} GAME_JOIN_ACK, 1 over");
        check(&[(name, &[does], &story, WRONG)]);
    }
    check(&[
        ("silence", &[SILENT], "0 invited for 5, 5 E001 GAME_JOIN_ACK, 5 over", LATE),
        (
            "no connection at first",
            &[refused()],
            "0 invited for 5, 2 invited for 5, 2 asked for 30 until 32, 2 over",
            PLAYED,
        ),
        (
            "no connection, then silence",
            &[refused(), SILENT],
            "0 invited for 5, 2 invited for 5, 7 E001 GAME_JOIN_ACK, 7 over",
            LATE,
        ),
        (
            "never a connection",
            &[refused(), refused(), refused()],
            "0 invited for 5, 2 invited for 5, 6 invited for 5, 6 E009 GAME_JOIN_ACK, 6 over",
            GONE,
        ),
    ]);
}

#[test]
fn a_player_that_is_silent_or_away_is_asked_again_with_a_fresh_deadline() {
    check(&[
        (
            "late, then in time",
            &[Well, SILENT],
            "0 invited for 5, 0 asked for 30 until 30, 30 E001 1/3 again at 32, 32 asked for 30 until 62, 32 over",
            PLAYED,
        ),
        (
            "silent three times",
            &[Well, SILENT, SILENT, SILENT],
            "0 invited for 5, 0 asked for 30 until 30, 30 E001 1/3 again at 32, 32 asked for 30 until 62, \
             62 E001 2/3 again at 66, 66 asked for 30 until 96, 96 E001 3/3 0 left, 96 over",
            LATE,
        ),
        (
            "away, then back",
            &[Well, refused()],
            "0 invited for 5, 0 asked for 30 until 30, 0 E009 1/3 again at 2, 2 asked for 30 until 32, 2 over",
            PLAYED,
        ),
        (
            "away three times",
            &[Well, refused(), refused(), refused()],
            "0 invited for 5, 0 asked for 30 until 30, 0 E009 1/3 again at 2, 2 asked for 30 until 32, \
             2 E009 2/3 again at 6, 6 asked for 30 until 36, 6 E009 3/3 0 left, 6 over",
            GONE,
        ),
    ]);
    let script = Script { backoff: Backoff::Fixed, ..Script::new(&[], &[Well, SILENT, SILENT, SILENT]) };
    script.play();
    assert!(
        script.story(1).contains("30 E001 1/3 again at 32,") && script.story(1).contains("62 E001 2/3 again at 64,")
    );
}

/// Every wrong answer to the call, its code, and what its GAME_ERROR must show of what came and what is legal.
fn wrong_answers() -> Vec<(Does, &'static str, [&'static str; 2])> {
    let illegal = ["Even", "EVEN", ""].map(Value::from).into_iter().chain([json!(0), json!(true), json!(null)]);
    let shown = ["\\\"Even\\\"", "\\\"EVEN\\\"", "\\\"\\\"", "got 0", "got true", "got null"];
    let illegal = illegal.zip(shown);
    let legal = "\"valid_choices\":[\"even\",\"odd\"]";
    let mut all: Vec<_> = illegal.map(|(came, shown)| (choice("R1M1", "P02", came), "E004", [shown, legal])).collect();
    all.extend([
        (choice("R9M9", "P02", json!("odd")), "E015", ["R9M9", "R1M1"]),
        (choice("R1M1", "P01", json!("odd")), "E012", ["P01", "P02"]),
        (ack("R1M1", "P02", true), "E003", ["GAME_JOIN_ACK", "CHOOSE_PARITY_RESPONSE"]),
        (unreadable(Code::E003), "E003", ["noon", "a UTC time"]),
        (unreadable(Code::E021), "E021", ["noon", "a UTC time"]),
        (rpc(), "E003", ["-32603: it crashed", "CHOOSE_PARITY_RESPONSE"]),
    ]);
    all
}

#[test]
fn a_wrong_choice_may_be_mended_under_the_same_deadline() {
    for (wrong, code, shows) in wrong_answers() {
        let asked = "0 invited for 5, 0 asked for 30 until 30";
        let again = format!("{asked}, 1 {code} 1/3 29 left, 1 asked for 29 until 30");
        let third = format!("{again}, 2 {code} 2/3 28 left, 2 asked for 28 until 30");
        let w = || wrong.clone();
        check(&[
            ("then right", &[Well, w()], &format!("{again}, 1 over"), PLAYED),
            ("then silent", &[Well, w(), SILENT], &format!("{again}, 30 E001 2/3 0 left, 30 over"), LATE),
            ("thrice", &[Well, w(), w(), w()], &format!("{third}, 3 {code} 3/3 0 left, 3 over"), WRONG),
        ]);
        let (_, _, errors) = against_a_good_player(&[Well, w()]);
        let context = Value::from(errors[0].context.clone().unwrap()).to_string();
        assert!(shows.iter().all(|text| context.contains(text)), "{shows:?} in {context}");
    }
}

#[test]
fn our_own_faults_are_not_held_against_a_player() {
    let away = "0 invited for 5, 0 asked for 30 until 30, 0 E009 1/3 again at 2";
    check(&[
        (
            "at the invitation",
            &[ours(), ours()],
            "0 invited for 5, 2 invited for 5, 4 invited for 5, 4 asked for 30 until 34, 4 over",
            PLAYED,
        ),
        (
            "at the choice",
            &[Well, ours(), ours()],
            "0 invited for 5, 0 asked for 30 until 30, 2 asked for 30 until 32, 4 asked for 30 until 34, 4 over",
            PLAYED,
        ),
        (
            "not an attempt",
            &[Well, refused(), ours(), refused(), ours()],
            &format!(
                "{away}, 2 asked for 30 until 32, 4 asked for 30 until 34, 4 E009 2/3 again at 8, \
                 8 asked for 30 until 38, 10 asked for 30 until 40, 10 over"
            ),
            PLAYED,
        ),
    ]);
    for persisting in [vec![ours(); 100], [vec![Well], vec![ours(); 100]].concat()] {
        let (story, told, errors) = against_a_good_player(&persisting);
        assert!(told == "nothing" && errors.is_empty() && !story.contains("over"), "{story}");
    }
}

/// A way to fail, and whether it happens at the invitation.
fn failures() -> Vec<(Vec<Does>, bool)> {
    let at_invitation = [SILENT, ack("R1M1", "P09", true), rpc(), unreadable(Code::E021)].map(|does| vec![does]);
    let at_choice = [SILENT, refused(), rpc(), choice("R1M1", "P09", json!("odd"))];
    let at_choice = at_choice.map(|does| vec![Well, does.clone(), does.clone(), does]);
    let away = vec![refused(); 3];
    let early = at_invitation.into_iter().chain([away]).map(|script| (script, true));
    early.chain(at_choice.into_iter().map(|script| (script, false))).collect()
}

#[test]
fn if_both_fail_nobody_wins_and_who_failed_first_loses() {
    let scoring = Scoring { win: 3, draw: 1, loss: 0, technical_loss: 0 };
    for (a, a_is_early) in failures() {
        for (b, b_is_early) in failures() {
            let outcome = Script::new(&a, &b).play().expect("every match ends");
            let (winner, points) = match (a_is_early, b_is_early) {
                (true, false) => (Some("P02"), [0, 3]),
                (false, true) => (Some("P01"), [3, 0]),
                _ => (None, [0, 0]),
            };
            let result = outcome.for_players();
            assert_eq!((result.status, result.winner_player_id.as_deref()), (Ending::TechnicalLoss, winner));
            assert_eq!((result.drawn_number, result.number_parity), (None, None));
            assert_eq!(result.choices, [("P01".into(), None), ("P02".into(), None)].into());
            let score = [("P01".into(), points[0]), ("P02".into(), points[1])].into();
            assert_eq!(outcome.for_manager(&scoring).score, score);
        }
    }
    // Who has chosen, and wins by default, is shown with its choice.
    let outcome = Script::new(&[], &[Well, SILENT, SILENT, SILENT]).play().unwrap();
    assert_eq!(outcome.for_players().choices["P01"], Some(Parity::Even));
    assert_eq!(outcome.for_manager(&scoring).score, [("P01".into(), 3), ("P02".into(), 0)].into());
}

#[test]
fn both_players_are_invited_asked_and_told_at_the_same_time() {
    let script = Script { asked: Some(Default::default()), ..Script::new(&[], &[]) };
    assert_eq!(told(script.play().as_ref()), PLAYED);
}

#[test]
fn both_hear_the_same_and_only_after_it_is_kept() {
    for b in [vec![], vec![SILENT]] {
        let script = Script::new(&[], &b);
        let outcome = script.play().unwrap();
        let overs = script.overs.lock().unwrap();
        let [Message::GameOver(one), Message::GameOver(other)] = &overs[..] else { panic!("{overs:?}") };
        assert!(one == other && one.game_result == outcome.for_players(), "{overs:?}");
        assert_eq!(*script.kept.lock().unwrap(), [outcome]);
        let script = Script { keeps: false, ..Script::new(&[], &b) };
        assert!(script.play().is_none() && script.overs.lock().unwrap().is_empty());
    }
}

#[test]
fn a_match_that_is_taken_away_goes_no_further() {
    let rows = [
        (MatchState::WaitingForPlayers, ""),
        (MatchState::CollectingChoices, "0 invited for 5"),
        (MatchState::DrawingNumber, "0 invited for 5, 0 asked for 30 until 30"),
    ];
    for (state, story) in rows {
        let script = Script { taken_at: Some(state), ..Script::new(&[], &[]) };
        assert!(script.play().is_none() && script.kept.lock().unwrap().is_empty(), "{state}");
        assert_eq!([script.story(0), script.story(1)], [story, story], "{state}");
    }
}
