//! One match over a script, without waiting or a socket. The script has a clock of its own, on which silence costs its
//! whole limit and a wrong answer a second. What a player goes through is written down as one line, and how it failed
//! as the sentence that everybody is told. How bytes become an answer is tabled in `http.rs`.

#[path = "support/paper.rs"]
mod paper;

use league::games::{self, Game, Outcome, even_odd, moves, tic_tac_toe};
use league::net::retry::{Backoff, CallError, RetryPolicy};
use league::protocol::*;
use league::referee::match_play::{Limits, Venue, play};
use league::wire::Timestamp;
use paper::usual;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// What a player does when it is asked.
#[derive(Clone)]
enum Does {
    /// Joins, or chooses: P01 even, P02 odd, in another game the first legal move.
    Well,
    Silence,
    Says(Message),
    Fails(CallError),
}
use Does::{Fails, Says, Silence, Well};

fn refused() -> Does {
    Fails(CallError::Unreachable("connection refused".into()))
}

fn ours() -> Does {
    Fails(CallError::Ours("no descriptor".into()))
}

fn not_json(came: &str) -> Does {
    let refusal = Refusal::new(Code::E003, "that is not JSON");
    Fails(CallError::wrong(refusal, came))
}

fn rpc() -> Does {
    Fails(CallError::Rpc(-32603, "it crashed".into()))
}

/// An answer that arrives as JSON, read by the reader that reads players' answers: the envelope is known.
fn says(answer: Value) -> Does {
    let time = "2025-01-15T10:30:00Z";
    let known = json!({
        "protocol": PROTOCOL, "sender": "known", "conversation_id": "known",
        "timestamp": time, "arrival_timestamp": time,
    });
    let mut completed = answer.clone();
    complete(&mut completed, known);
    match read(&completed) {
        Ok(understood) => Says(understood.message),
        Err(refusal) => Fails(CallError::wrong(refusal, &answer)),
    }
}

fn ack(id: &str) -> Value {
    json!({"message_type": "GAME_JOIN_ACK", "match_id": "R1M1", "player_id": id, "accept": true})
}

fn choice(id: &str, parity: &str) -> Value {
    json!({"message_type": "CHOOSE_PARITY_RESPONSE", "match_id": "R1M1", "player_id": id, "parity_choice": parity})
}

fn made(id: &str, number: u32, text: &str) -> Value {
    json!({"message_type": "CHOOSE_MOVE_RESPONSE", "match_id": "R1M1", "player_id": id, "move_number": number,
        "move": text})
}

/// The same with edits: `field=JSON`, `field>other name`, `-field`.
fn edited(mut answer: Value, edits: &str) -> Value {
    let fields = answer.as_object_mut().unwrap();
    for edit in edits.split(';').filter(|edit| !edit.is_empty()) {
        if let Some((field, json)) = edit.split_once('=') {
            fields.insert(field.into(), serde_json::from_str(json).unwrap());
        } else if let Some((field, name)) = edit.split_once('>') {
            let value = fields.remove(field).unwrap();
            fields.insert(name.into(), value);
        } else {
            fields.remove(edit.trim_start_matches('-')).unwrap();
        }
    }
    answer
}

/// When the script's clock stands at 0.
fn zero() -> Timestamp {
    Timestamp::parse("2025-01-15T10:30:00Z").unwrap()
}

/// A match between two players who do what a script says, and then play well.
struct Script {
    game: &'static Game,
    backoff: Backoff,
    /// Whether the outcome can be kept.
    keeps: bool,
    /// The state at which the match is taken away.
    taken_at: Option<MatchState>,
    seen: Mutex<Seen>,
}

/// What has happened in it.
#[derive(Default)]
struct Seen {
    scripts: [VecDeque<Does>; 2],
    passed: Duration,
    /// What each player went through.
    story: [Vec<String>; 2],
    /// What each player was told.
    errors: [Vec<GameError>; 2],
    overs: Vec<Message>,
    kept: Vec<Outcome>,
    /// How many were asked at the same time, each time.
    at_once: Vec<usize>,
}

impl Script {
    fn new(a: &[Does], b: &[Does]) -> Script {
        Script {
            game: &even_odd::GAME,
            backoff: Backoff::Exponential,
            keeps: true,
            taken_at: None,
            seen: Mutex::new(Seen {
                scripts: [a, b].map(|script| script.to_vec().into()),
                ..Seen::default()
            }),
        }
    }

    /// Plays the match: R1M1 of P01 and P02; 7 is drawn.
    fn play(&self) -> Option<Outcome> {
        let entry = json!({"match_id": "R1M1", "game_type": self.game.game_type, "player_A_id": "P01",
            "player_B_id": "P02", "referee_endpoint": "http://localhost:8001/mcp"});
        let given = json!({"league_id": "league", "round_id": 1, "match": entry});
        let limits = Limits {
            join: Duration::from_secs(5),
            choice: Duration::from_secs(30),
            retry: RetryPolicy {
                attempts: 3,
                base_delay: Duration::from_secs(2),
                backoff: self.backoff,
            },
        };
        let given = serde_json::from_value(given).unwrap();
        play(&given, self, &limits)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    fn story(&self, seat: usize) -> String {
        self.seen().story[seat].join(", ")
    }

    fn note(&self, seat: usize, what: &str) {
        let now = self.now().as_secs();
        self.seen().story[seat].push(format!("{now} {what}"));
    }
}

/// Seconds from the script's beginning.
fn at(time: Timestamp) -> u64 {
    time.distance(zero()).as_secs()
}

impl Venue for Script {
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, CallError> {
        let limit_sec = limit.as_secs();
        let question = match message {
            Message::ChooseParityCall(call) => {
                format!("asked for {limit_sec} until {}", at(call.deadline))
            }
            Message::ChooseMoveCall(call) => {
                let position = call.position.replace('\n', "/");
                format!("move {} of {position}", call.move_number)
            }
            _ => format!("invited for {limit_sec}"),
        };
        self.note(seat, &question);
        let id = ["P01", "P02"][seat];
        let does = self.seen().scripts[seat].pop_front().unwrap_or(Well);
        let (does, takes) = match (does, message) {
            (Well, Message::GameInvitation(_)) => (says(ack(id)), 0),
            (Well, Message::ChooseMoveCall(call)) => {
                (says(made(id, call.move_number, &call.legal_moves[0])), 0)
            }
            (Well, _) => (says(choice(id, ["even", "odd"][seat])), 0),
            (Silence, _) => (Fails(CallError::Late(limit)), limit_sec),
            (Fails(broken), _) if broken.is_silence() => (Fails(broken), 0),
            (answer, _) => (answer, 1),
        };
        self.pause(Duration::from_secs(takes));
        match does {
            Says(message) => Ok(message),
            Fails(error) => Err(error),
            Well | Silence => unreachable!("said above what that is"),
        }
    }

    fn tell_both(&self, message: Message) {
        let is_kept = self.seen().kept.len() == 1 && self.keeps;
        assert!(is_kept, "told before it is kept");
        self.note(0, "over");
        self.note(1, "over");
        self.seen().overs.push(message);
    }

    fn each<T: Send>(
        &self,
        seats: &[usize],
        act: impl Fn(usize) -> Option<T> + Sync,
    ) -> Option<Vec<(usize, T)>> {
        self.seen().at_once.push(seats.len());
        seats
            .iter()
            .map(|seat| Some((*seat, act(*seat)?)))
            .collect()
    }

    fn tell(&self, seat: usize, message: Message) {
        let Message::GameError(error) = message else {
            panic!("{message:?}")
        };
        let next = error.retry_info.as_ref().map(|retry| {
            let again = retry
                .next_retry_at
                .map(|time| format!("again at {}", at(time)));
            let left = retry.time_remaining.map(|left| format!("{left} left"));
            let next = again.or(left).unwrap();
            format!("{}/{} {next}", retry.retry_count, retry.max_retries)
        });
        let next = next.unwrap_or(error.action_required.clone());
        self.note(seat, &format!("{} {next}", error.error_code));
        self.seen().errors[seat].push(error);
    }

    fn pause(&self, delay: Duration) {
        self.seen().passed += delay;
    }

    fn now(&self) -> Duration {
        self.seen().passed
    }

    fn clock(&self) -> Timestamp {
        zero().plus(self.now())
    }

    fn reached(&self, state: MatchState) -> Option<()> {
        (self.taken_at != Some(state)).then_some(())
    }

    fn draw(&self, game: &Game) -> Option<u32> {
        game.draws.as_ref().map(|_| 7)
    }

    fn keep(&self, outcome: &Outcome) -> Option<()> {
        self.seen().kept.push(outcome.clone());
        self.keeps.then_some(())
    }
}

/// Ending, winner and reason in one line.
fn told(outcome: Option<&Outcome>) -> String {
    let Some(outcome) = outcome else {
        return "nothing".into();
    };
    let winner = outcome
        .winner
        .map_or("nobody", |seat| &outcome.players[seat]);
    format!("{} {winner}: {}", outcome.ending, outcome.reason)
}

const PLAYED: &str = "WIN P02: P02 chose odd, number was 7 (odd)";

/// How the match ends if P02 fails so.
fn lost(how: &str) -> String {
    format!("TECHNICAL_LOSS P01: P02 {how} - P01 wins by default")
}

/// Plays P02's script against a good player: its story, the outcome in one line, and what it was told.
fn against_a_good_player(b: &[Does]) -> (String, String, Vec<GameError>) {
    let script = Script::new(&[], b);
    let outcome = script.play();
    let errors = script.seen().errors[1].clone();
    for error in &errors {
        assert!(error.consequence.is_some(), "{error:?}");
        let named = (&*error.error_code, &*error.error_description);
        assert!(
            Code::ALL
                .iter()
                .any(|code| (code.code(), code.name()) == named)
        );
        assert_eq!((&*error.match_id, &*error.affected_player), ("R1M1", "P02"));
    }
    assert!(script.seen().errors[0].is_empty());
    (script.story(1), told(outcome.as_ref()), errors)
}

/// Plays rows of (P02's script, its story, the outcome).
fn check(rows: &[(&[Does], &str, &str)]) {
    for (script, expected, ending) in rows {
        let (story, told, _) = against_a_good_player(script);
        assert_eq!((&*story, &*told), (*expected, *ending));
    }
}

/// Edits of a good answer after which it still counts.
const COUNT: &str = "|timestamp=\"2025-01-15T12:30:00+02:00\"|timestamp=7|arrival_timestamp=\"noon\"|sender=null|\
    protocol=null|auth_token=\"tok-p02-whatever\"|conversation_id=\"another\"|round_id=\"one\"|unknown=[1]";

/// Edits after which it does not, the code that its player is told, and what is wrong, where the referee says so and
/// not the reader.
const WRONG: &[(&str, Code, &str)] = &[
    ("protocol=\"league.v1\"", Code::E018, ""),
    (
        "match_id=\"R9M9\"",
        Code::E015,
        "got \"R9M9\", expected \"R1M1\"",
    ),
    (
        "player_id=\"P01\"",
        Code::E012,
        "got \"P01\", expected \"P02\"",
    ),
    ("-match_id", Code::E003, ""),
    ("match_id>matchId", Code::E003, ""),
];
const WRONG_ACK: &[(&str, Code, &str)] = &[
    ("accept=false", Code::E003, "got false, expected true"),
    ("accept=\"true\"", Code::E003, ""),
];
const WRONG_CHOICE: &[(&str, Code, &str)] = &[
    ("-parity_choice", Code::E003, ""),
    (
        "parity_choice=\"Even\"",
        Code::E004,
        "got \"Even\", must be \"even\" or \"odd\"",
    ),
    (
        "parity_choice=null",
        Code::E004,
        "got null, must be \"even\" or \"odd\"",
    ),
];

/// All answers to a question, and what is wrong with each; nothing where it counts.
fn answers(good: &Value, own: &[(&str, Code, &str)]) -> Vec<(Does, Option<CallError>)> {
    let refusal = json!({
        "message_type": "GAME_ERROR", "match_id": "R1M1", "error_code": "E012", "affected_player": "P02",
        "error_description": "AUTH_TOKEN_INVALID", "action_required": "X", "context": {"problem": "not mine"},
    });
    let unexpected = CallError::wrong(
        Refusal::field(Code::E003, "message_type", "got GAME_ERROR"),
        "GAME_ERROR (E012 AUTH_TOKEN_INVALID: not mine)",
    );
    let mut all = vec![(says(refusal), Some(unexpected))];
    let no_messages = [
        says(json!({"status": "ok"})),
        says(json!({"message_type": "JOINED"})),
        says(Value::Null),
        rpc(),
        not_json(""),
        not_json("<p>Hi"),
    ];
    for does in no_messages {
        let Fails(error) = does.clone() else {
            panic!("it was read")
        };
        assert_eq!(error.code(), Code::E003);
        all.push((does, Some(error)));
    }
    for edit in COUNT.split('|') {
        all.push((says(edited(good.clone(), edit)), None));
    }
    for (edit, code, problem) in WRONG.iter().chain(own) {
        let does = says(edited(good.clone(), edit));
        let field = edit.split('=').next().unwrap();
        let error = match &does {
            Fails(error) => error.clone(),
            _ => CallError::wrong(Refusal::field(*code, field, *problem), ""),
        };
        assert_eq!(error.code(), *code, "{edit}");
        all.push((does, Some(error)));
    }
    all
}

/// How P02 failed, so many times.
fn how(error: &CallError, wanted: &str, times: &str) -> String {
    let tool = Entry::of_message(wanted).unwrap().tool;
    error.told(tool, times, wanted)
}

#[test]
fn an_invitation_is_joined_or_the_match_is_forfeited() {
    for (does, wrong) in answers(&ack("P02"), WRONG_ACK) {
        let Some(error) = wrong else {
            let story = "0 invited for 5, 1 asked for 30 until 31, 1 over";
            check(&[(&[does], story, PLAYED)]);
            continue;
        };
        let story = format!("0 invited for 5, 1 {} GAME_JOIN_ACK, 1 over", error.code());
        check(&[(&[does], &story, &lost(&how(&error, GameJoinAck::NAME, "")))]);
    }
    let late = "gave no answer to handle_game_invitation within 5 s";
    let gone =
        lost("could not be reached (connection refused) for handle_game_invitation, three times");
    let missing = "answered HTTP 404 \"Method not found\" to handle_game_invitation, three times, expected GAME_JOIN_ACK";
    let away = "0 invited for 5, 2 invited for 5, 6 invited for 5, 6 E009 GAME_JOIN_ACK, 6 over";
    let again = "0 invited for 5, 2 invited for 5";
    let status = vec![Fails(CallError::Status(404, "Method not found".into())); 3];
    check(&[
        (
            &[Silence],
            "0 invited for 5, 5 E001 GAME_JOIN_ACK, 5 over",
            &lost(late),
        ),
        (
            &[refused()],
            &format!("{again}, 2 asked for 30 until 32, 2 over"),
            PLAYED,
        ),
        (
            &[refused(), Silence],
            &format!("{again}, 7 E001 GAME_JOIN_ACK, 7 over"),
            &lost(&format!("{late}, at the last of 2 attempts")),
        ),
        (&[refused(), refused(), refused()], away, &gone),
        (&status, away, &lost(missing)),
    ]);
}

#[test]
fn a_player_that_is_silent_or_away_is_asked_again_with_a_fresh_deadline() {
    let asked = "0 invited for 5, 0 asked for 30 until 30";
    let late = format!("{asked}, 30 E001 1/3 again at 32, 32 asked for 30 until 62");
    let away = format!("{asked}, 0 E009 1/3 again at 2, 2 asked for 30 until 32");
    let thrice = "62 E001 2/3 again at 66, 66 asked for 30 until 96, 96 E001 3/3 0 left, 96 over";
    let gone = "2 E009 2/3 again at 6, 6 asked for 30 until 36, 6 E009 3/3 0 left, 6 over";
    let silent = lost("gave no answer to choose_parity within 30 s, three times");
    check(&[
        (&[Well, Silence], &format!("{late}, 32 over"), PLAYED),
        (
            &[Well, Silence, Silence, Silence],
            &format!("{late}, {thrice}"),
            &silent,
        ),
        (&[Well, refused()], &format!("{away}, 2 over"), PLAYED),
        (
            &[Well, refused(), refused(), refused()],
            &format!("{away}, {gone}"),
            &lost("could not be reached (connection refused) for choose_parity, three times"),
        ),
    ]);
    let script = Script {
        backoff: Backoff::Fixed,
        ..Script::new(&[], &[Well, Silence, Silence, Silence])
    };
    script.play();
    let story = script.story(1);
    assert!(
        story.contains("30 E001 1/3 again at 32,") && story.contains("62 E001 2/3 again at 64,"),
        "{story}"
    );
}

#[test]
fn a_wrong_choice_may_be_mended_under_the_same_deadline() {
    for (does, wrong) in answers(&choice("P02", "odd"), WRONG_CHOICE) {
        let asked = "0 invited for 5, 0 asked for 30 until 30";
        let Some(error) = wrong else {
            check(&[(&[Well, does], &format!("{asked}, 1 over"), PLAYED)]);
            continue;
        };
        let code = error.code();
        let again = format!("{asked}, 1 {code} 1/3 29 left, 1 asked for 29 until 30");
        let third = format!(
            "{again}, 2 {code} 2/3 28 left, 2 asked for 28 until 30, 3 {code} 3/3 0 left, 3 over"
        );
        let late = lost("gave no answer to choose_parity within 29 s, at the last of 2 attempts");
        check(&[
            (&[Well, does.clone()], &format!("{again}, 1 over"), PLAYED),
            (
                &[Well, does.clone(), Silence],
                &format!("{again}, 30 E001 2/3 0 left, 30 over"),
                &late,
            ),
        ]);
        let (story, told, errors) =
            against_a_good_player(&[Well, does.clone(), does.clone(), does]);
        let thrice = how(&error, ChooseParityResponse::NAME, ", three times");
        assert_eq!((story, told), (third, lost(&thrice)));
        let context = errors[0].context.clone().unwrap();
        let shown = Value::from(context.clone()).to_string();
        let says_what_came = ["came", "answered ", "got ", "missing", "-32603", "not JSON"];
        assert!(
            says_what_came.iter().any(|text| shown.contains(text)),
            "{shown}"
        );
        assert_eq!(context["expected"], "CHOOSE_PARITY_RESPONSE");
        assert!(code != Code::E004 || context["valid_choices"] == json!(["even", "odd"]));
    }
}

#[test]
fn what_others_say_is_cut_wherever_it_is_passed_on() {
    let long = "\u{1b}[31m\"\\".repeat(1500);
    let (good, quoted) = (choice("P02", "odd"), json!(long).to_string());
    let fields = "match_id player_id message_type protocol parity_choice sender conversation_id";
    let wrong = |field| says(edited(good.clone(), &format!("{field}={quoted}")));
    let mut all: Vec<Does> = fields.split(' ').map(wrong).collect();
    let field = "error_code error_description affected_player action_required match_id".split(' ');
    let mut error: serde_json::Map<String, Value> =
        field.map(|name| (name.into(), json!(long))).collect();
    error.extend([
        ("message_type".into(), json!("GAME_ERROR")),
        ("context".into(), json!({"problem": long})),
    ]);
    all.extend([
        says(edited(
            good.clone(),
            &format!("parity_choice>parity_choice{long}"),
        )),
        says(json!(long)),
        says(Value::Object(error)),
        not_json(&long),
        Fails(CallError::Status(500, long.clone())),
        Fails(CallError::Rpc(1, long.clone())),
        Fails(CallError::Unreachable(long.clone())),
    ]);
    for does in all {
        let fails = [Well, does.clone(), does.clone(), does];
        let script = Script::new(&fails, &fails);
        let report = script.play().unwrap().for_manager(&usual());
        let errors = script.seen().errors[1].clone();
        let mut texts = vec![serde_json::to_string(&report).unwrap()];
        texts.extend(errors.iter().map(|it| serde_json::to_string(it).unwrap()));
        for text in texts {
            assert!(text.len() < 5000, "{} bytes: {}…", text.len(), &text[..500]);
        }
    }
}

#[test]
fn a_fault_of_our_own_ends_the_match_without_an_outcome() {
    for script in [
        vec![ours()],
        vec![refused(), ours()],
        vec![Well, ours()],
        vec![Well, rpc(), ours()],
    ] {
        let (story, told, errors) = against_a_good_player(&script);
        let are_others = errors.iter().all(|it| it.error_code == "E003");
        assert!(
            told == "nothing" && !story.contains("over") && are_others,
            "{story}"
        );
    }
    for script in [[Well, ours()], [refused(), ours()]] {
        let script = Script::new(&script, &[Well, Silence, Silence, Silence]);
        assert!(
            script.play().is_none(),
            "nor if the other has failed by its own doing"
        );
    }
}

/// A way to fail, and whether it happens at the invitation.
fn failures() -> Vec<(Vec<Does>, bool)> {
    let at_invitation = [Silence, says(ack("P09")), rpc()].map(|does| vec![does]);
    let at_choice = [Silence, refused(), rpc(), says(choice("P09", "odd"))];
    let at_choice = at_choice.map(|does| vec![Well, does.clone(), does.clone(), does]);
    let mut all: Vec<_> = at_invitation.map(|script| (script, true)).into();
    all.push((vec![refused(); 3], true));
    all.extend(at_choice.map(|script| (script, false)));
    all
}

#[test]
fn if_both_fail_nobody_wins_and_who_failed_first_loses() {
    let scoring = usual();
    for (a, a_is_early) in failures() {
        for (b, b_is_early) in failures() {
            let outcome = Script::new(&a, &b).play().expect("every match ends");
            let (winner, points) = match (a_is_early, b_is_early) {
                (true, false) => (Some("P02"), [0, 3]),
                (false, true) => (Some("P01"), [3, 0]),
                _ => (None, [0, 0]),
            };
            let result = outcome.for_players();
            assert_eq!(
                (result.status, result.winner_player_id.as_deref()),
                (Ending::TechnicalLoss, winner)
            );
            assert_eq!((result.drawn_number, result.number_parity), (None, None));
            assert_eq!(
                result.choices,
                [("P01".into(), None), ("P02".into(), None)].into()
            );
            let score = [("P01".into(), points[0]), ("P02".into(), points[1])].into();
            assert_eq!(outcome.for_manager(&scoring).score, score);
        }
    }
    // Who has chosen, and wins by default, is shown with its choice.
    let outcome = Script::new(&[], &[Well, Silence, Silence, Silence])
        .play()
        .unwrap();
    assert_eq!(outcome.for_players().choices["P01"], Some(Parity::Even));
    assert_eq!(
        outcome.for_manager(&scoring).score,
        [("P01".into(), 3), ("P02".into(), 0)].into()
    );
}

#[test]
fn both_are_asked_at_the_same_time_and_hear_the_same_only_after_it_is_kept() {
    for b in [vec![], vec![Silence]] {
        let script = Script::new(&[], &b);
        let outcome = script.play().unwrap();
        let times = if b.is_empty() { 2 } else { 1 }; // invited, asked; or nobody is asked
        assert_eq!(script.seen().at_once, vec![2; times]);
        let overs = script.seen().overs.clone();
        let [Message::GameOver(over)] = &overs[..] else {
            panic!("{overs:?}")
        };
        assert_eq!(over.game_result, outcome.for_players());
        assert_eq!(script.seen().kept, [outcome]);
        let script = Script {
            keeps: false,
            ..Script::new(&[], &b)
        };
        assert!(script.play().is_none() && script.seen().overs.is_empty());
    }
}

#[test]
fn a_match_that_is_taken_away_goes_no_further() {
    let rows = [
        (MatchState::WaitingForPlayers, ""),
        (MatchState::CollectingChoices, "0 invited for 5"),
        (
            MatchState::DrawingNumber,
            "0 invited for 5, 0 asked for 30 until 30",
        ),
    ];
    for (state, story) in rows {
        let script = Script {
            taken_at: Some(state),
            ..Script::new(&[], &[])
        };
        assert!(
            script.play().is_none() && script.seen().kept.is_empty(),
            "{state}"
        );
        assert_eq!(
            [script.story(0), script.story(1)],
            [story, story],
            "{state}"
        );
    }
}

/// A match of tic-tac-toe between players who take the first free field, but for what P02 does at first.
fn tic_tac_toe(b: &[Does]) -> (Script, Option<Outcome>) {
    let script = Script {
        game: &tic_tac_toe::GAME,
        ..Script::new(&[], b)
    };
    let outcome = script.play();
    (script, outcome)
}

#[test]
fn by_turns_each_move_is_asked_for_under_the_rules_of_a_choice() {
    let (script, outcome) = tic_tac_toe(&[]);
    let asked = "0 invited for 5, 0 move 2 of X 2 3/4 5 6/7 8 9, 0 move 4 of X O X/4 5 6/7 8 9";
    assert!(script.story(1).starts_with(asked), "{}", script.story(1));
    assert_eq!(script.seen().at_once, [2, 1, 1, 1, 1, 1, 1, 1]);
    let outcome = outcome.unwrap();
    let won = "WIN P01: P01 has three in a row: 3, 5, 7";
    assert_eq!(told(Some(&outcome)), won);
    let details = outcome.for_manager(&usual()).details;
    assert_eq!(details.moves.as_ref().unwrap().len(), 7);
    let players = outcome.players.clone();
    let named = games::reported(&players, &details.choices, &details.moves).unwrap();
    assert_eq!(named, moves(&["1", "2", "3", "4", "5", "6", "7"]));
    assert_eq!(script.game.replay(players, named, None).unwrap(), outcome);

    let wanted = ChooseMoveResponse::NAME;
    let wrong = |code, field: &str, problem: &str| {
        let error = CallError::wrong(Refusal::field(code, field, problem), "");
        lost(&how(&error, wanted, ", three times"))
    };
    let free = "must be \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\" or \"9\"";
    let illegal = wrong(Code::E004, "move", &format!("got \"1\", {free}"));
    let other = wrong(Code::E015, "move_number", "got 4, expected 2");
    let late = "gave no answer to choose_move within 30 s";
    let taken = || says(made("P02", 2, "1"));
    let rows = [
        (vec![taken()], "1 E004 1/3 29 left", won.into()),
        (vec![taken(); 3], "3 E004 3/3 0 left, 3 over", illegal),
        (vec![Silence], "30 E001 1/3 again at 32", won.into()),
        (
            vec![Silence; 3],
            "96 E001 3/3 0 left, 96 over",
            lost(&format!("{late}, three times")),
        ),
        (
            vec![taken(), Silence],
            "30 E001 2/3 0 left, 30 over",
            lost("gave no answer to choose_move within 29 s, at the last of 2 attempts"),
        ),
        (vec![says(made("P02", 4, "2")); 3], "E015 3/3", other),
        (
            vec![says(choice("P02", "odd"))],
            "1 E003 1/3 29 left",
            won.into(),
        ),
        (vec![ours()], "", "nothing".into()),
    ];
    for (does, story, ending) in rows {
        let (script, outcome) = tic_tac_toe(&[vec![Well], does].concat());
        assert!(script.story(1).contains(story), "{}", script.story(1));
        assert_eq!(told(outcome.as_ref()), ending);
        let made = outcome.map_or(1, |it| it.moves.len());
        assert!(made == 1 || made == 7, "what was played stays: {made}");
    }
}
