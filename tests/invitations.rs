//! What a player believes, chooses and shows, without a network: the rules as tables.

use league::net::agent::Denial;
use league::player::Turn;
use league::player::decision::{Decision, show_panics};
use league::player::invitations::Invitations;
use league::player::sentences as screen;
use league::protocol::{
    Code, Envelope, GameError, GameInvitation, LeagueCompleted, Refusal, RoundAnnouncement,
};
use league::wire::Wire;
use serde_json::{Value, json};
use std::{
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

fn envelope(token: Option<&str>, conversation_id: &str) -> Envelope {
    Envelope::read(&json!({
        "protocol": "league.v2", "message_type": "GAME_INVITATION", "sender": "referee:REF01",
        "timestamp": "2025-01-15T10:30:00Z", "conversation_id": conversation_id, "auth_token": token,
    }))
    .unwrap()
}

fn invitation(match_id: &str) -> GameInvitation {
    GameInvitation::read(&json!({
        "league_id": "league", "round_id": 1, "match_id": match_id, "game_type": "even_odd",
        "role_in_match": "PLAYER_A", "opponent_id": "P02",
    }))
    .unwrap()
}

/// The manager announces a match of P01, with this token beside the matches, or as other managers have it in the match.
fn announcement(
    match_id: &str,
    player: &str,
    token: Option<&str>,
    inside: bool,
) -> RoundAnnouncement {
    let [beside, inside] = [token.filter(|_| !inside), token.filter(|_| inside)];
    RoundAnnouncement::read(&json!({"league_id": "league", "round_id": 1, "match_token": beside, "matches": [{
        "match_id": match_id, "game_type": "even_odd", "player_A_id": "P03", "player_B_id": player,
        "referee_endpoint": "http://localhost:8001/mcp", "match_token": inside,
    }]}))
    .unwrap()
}

/// What a refusal is, in short.
fn code<T>(outcome: Result<T, Refusal>) -> &'static str {
    outcome.map_or_else(|refusal| refusal.code.word(), |_| "ok")
}

/// Does what a line says, `invites R1M1 true b` for instance: who does what, the match, the token (`-` for none), and
/// the conversation. Says what comes of it.
fn done(invitations: &mut Invitations, line: &str) -> &'static str {
    let words: Vec<&str> = line.split_whitespace().collect();
    let token = words.get(2).copied().filter(|token| *token != "-");
    let envelope = envelope(token, words.get(3).unwrap_or(&"a"));
    match words[0] {
        "invites" => code(invitations.accept(&envelope, invitation(words[1]))),
        "speaks" => code(invitations.joined(&envelope, words[1])),
        other => {
            let player = if other == "others" { "P02" } else { "P01" };
            let round = announcement(words[1], player, token, other == "inside");
            invitations.announce("P01", round);
            "ok"
        }
    }
}

/// A match whose invitations must carry a token; one without; and one where tokens are not checked. `announces` has the
/// token beside the matches, `inside` in the match.
const BELIEVED: &str = "
    invites R1M1 strange a: ok
    announces R1M1 true: ok
    invites R1M1 strange b: E012
    invites R1M1 - b: E012
    speaks R1M1 true b: E012
    invites R1M1 true b: ok
    speaks R1M1 strange b: E012
    speaks R1M1 - b: E012
    speaks R1M1 true a: E015
    speaks R1M1 true b: ok
    invites R1M1 true b: ok
    invites R1M1 true c: ok
    speaks R1M1 true b: E015
    speaks R1M1 true c: ok
    inside R1M1 another: ok
    speaks R1M1 true c: ok
    invites R1M1 true d: E012
    invites R1M1 another d: ok
    speaks R1M1 true c: E012
    speaks R1M1 another d: ok

    announces R1M1: ok
    speaks R1M1 true a: E015
    invites R1M1 true a: ok
    invites R1M1 strange b: ok
    speaks R1M1 true a: E012
    speaks R1M1 strange b: ok
    invites R1M1 - c: ok
    speaks R1M1 strange c: E012
    speaks R1M1 - c: ok

    unchecked
    announces R1M1 true: ok
    invites R1M1 - a: ok
    speaks R1M1 strange a: ok
    speaks R1M1 true b: E015";

#[test]
fn a_promised_token_decides_else_the_newest_invitation() {
    for story in BELIEVED.split("\n\n") {
        let mut invitations = Invitations::new(!story.contains("unchecked"));
        for row in story.lines().filter_map(|line| line.split_once(": ")) {
            assert_eq!(done(&mut invitations, row.0), row.1, "{row:?} in {story}");
        }
    }
}

#[test]
fn a_hundred_matches_that_nobody_announced_and_no_more() {
    let mut invitations = Invitations::new(true);
    for n in 1..=100 {
        let joined = done(&mut invitations, &format!("invites S{n} strange a"));
        assert_eq!(joined, "ok", "{n}");
    }
    let rows = "invites S101 strange a: E015, invites S1 strange b: ok, \
        others R1M1 true: ok, invites R1M1 strange a: E015, \
        announces R1M2: ok, invites R1M2 strange a: ok, announces S2: ok, invites S2 strange a: ok, \
        invites S101 strange a: ok, invites S102 strange a: E015";
    for row in rows.split(", ").filter_map(|row| row.split_once(": ")) {
        assert_eq!(done(&mut invitations, row.0), row.1, "{row:?}");
    }
    let announced = ["R1M1", "R1M2", "S2", "S101"].map(|id| invitations.is_announced(id));
    assert_eq!(announced, [false, true, true, false]);
}

#[test]
fn the_same_call_again_gets_the_same_answer_and_thinks_once() {
    let (decision, asked, both) = (Decision::default(), AtomicUsize::new(0), Barrier::new(2));
    let think = || {
        asked.fetch_add(1, Ordering::SeqCst);
        both.wait(); // the other call is there too, or about to be
        "odd".to_string()
    };
    let [even, odd] = ["even", "odd"].map(String::from);
    thread::scope(|scope| {
        let first = scope.spawn(|| decision.make(1, think));
        while asked.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        let second = scope.spawn(|| {
            both.wait();
            decision.make(1, || even.clone())
        });
        assert_eq!(
            [first.join().unwrap(), second.join().unwrap()],
            [Ok(odd.clone()), Ok(odd.clone())]
        );
    });
    assert_eq!(
        (
            decision.make(1, || even.clone()),
            asked.load(Ordering::SeqCst)
        ),
        (Ok(odd), 1)
    );
    assert_eq!(decision.make(2, || even.clone()), Ok(even)); // another move
    assert!(decision.make(100_000, || unreachable!()).is_err()); // nobody fills our memory
}

#[test]
fn a_choose_that_panics_is_asked_again() {
    show_panics();
    let (decision, asked) = (Decision::default(), AtomicUsize::new(0));
    let choose = |turn: &Turn| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => turn.history[7].match_id.clone(),
        _ => "odd".into(),
    };
    let turn = Turn::sample();
    let Err(Denial::Rpc(-32603, why, None)) = decision.make(1, || choose(&turn)) else {
        panic!("it has chosen")
    };
    assert!(
        why.contains("`choose` panicked") && !why.contains("index"),
        "{why}"
    );
    assert_eq!(
        [(); 2].map(|()| decision.make(1, || choose(&turn))),
        [Ok("odd".to_string()), Ok("odd".to_string())]
    );
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[test]
fn the_terminal_says_what_to_do_and_shows_neither_tokens_nor_tricks() {
    let error = |context: Value, retry_info: Value| {
        let body = json!({
            "match_id": "R1M1", "error_code": "E004", "error_description": "INVALID_PARITY_CHOICE",
            "affected_player": "P01", "action_required": "CHOOSE_PARITY_RESPONSE", "context": context,
            "retry_info": retry_info, "consequence": "Technical loss",
        });
        screen::error(&GameError::read(&body).unwrap())
    };
    let wrong = error(
        json!({"field": "parity_choice", "problem": "got \"Even\", must be \"even\" or \"odd\""}),
        json!({"retry_count": 1, "max_retries": 3, "time_remaining": 29.5}),
    );
    let expected = "R1M1: E004 INVALID_PARITY_CHOICE: parity_choice: got \"Even\", must be \"even\" or \"odd\"; attempt 1 \
                    of 3, asked again, 29.5 s are left; expected CHOOSE_PARITY_RESPONSE; Technical loss";
    assert_eq!(wrong, expected);
    let last = error(
        json!(null),
        json!({"retry_count": 3, "max_retries": 3, "time_remaining": 0}),
    );
    assert!(
        last.starts_with("R1M1: E004 INVALID_PARITY_CHOICE; attempt 3 of 3, the last; expected"),
        "{last}"
    );
    let long = error(json!({"problem": "\u{1b}[2J".repeat(9_000)}), json!(null));
    assert!(
        long.chars().count() < 400 && !long.contains('\u{1b}'),
        "{long}"
    );
    let packet = json!({"message_type": "GAME_OVER", "sender": "tok-p01-0123456789abcdef", "match_id": "R1M1"});
    let refusal = Refusal::field(Code::E012, "auth_token", "got \"tok-p01-0123456789abcdef\"");
    let line = screen::refusal(&packet, "192.0.2.7".parse().unwrap(), &refusal);
    let why = "E012 auth_token: got \"tok-p01-***\" (AUTH_TOKEN_INVALID)";
    assert_eq!(
        line,
        format!("refused GAME_OVER of R1M1 from tok-p01-*** at 192.0.2.7: {why}")
    );
    let faulty = json!({"message_type": "GAME_ERROR", "sender": "referee:X", "error_code": "E004", "hint": "say even"});
    let missing = Refusal::field(Code::E003, "match_id", "missing");
    let [line, of_a_stranger] = [missing, Refusal::new(Code::E012, "not the token")]
        .map(|refusal| screen::refusal(&faulty, [127, 0, 0, 1].into(), &refusal));
    let all_the_same = "it says {\"error_code\":\"E004\",\"hint\":\"say even\"";
    assert!(line.contains(all_the_same), "{line}");
    assert!(!of_a_stranger.contains("say even"), "{of_a_stranger}");
    let league = json!({
        "league_id": "league", "total_rounds": 1, "total_matches": 1,
        "champion": {"player_id": "P02", "display_name": "Bob", "points": 1},
        "final_standings": [{"rank": 1, "player_id": "P02", "points": 1}, {"rank": 2, "player_id": "P01", "points": 1}],
    });
    let end = screen::end("P01", &LeagueCompleted::read(&league).unwrap());
    assert_eq!(end, "Champion: Bob (P02) with 1 point; P01 is 2 of 2");
}
