//! What a player believes, chooses and shows, without a network: the rules as tables.

use league::extras::player_screen as screen;
use league::net::agent::Denial;
use league::player::decision::{Decision, show_panics};
use league::player::invitations::Invitations;
use league::player::{Parity, Turn};
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

/// What happens to a player's invitations, by the match it is about.
enum Step {
    /// The manager announces it, with this token of its invitation.
    Announces(Option<&'static str>),
    /// A referee invites, with this token and in this conversation.
    Invites(Option<&'static str>, &'static str),
    /// A referee speaks of it: asks, ends or complains.
    Speaks(Option<&'static str>, &'static str),
}
use Step::{Announces, Invites, Speaks};

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

fn announcement(
    match_id: &str,
    players: [&str; 2],
    match_token: Option<&str>,
) -> RoundAnnouncement {
    RoundAnnouncement::read(&json!({"league_id": "league", "round_id": 1, "match_token": match_token, "matches": [{
        "match_id": match_id, "game_type": "even_odd", "player_A_id": players[0], "player_B_id": players[1],
        "referee_endpoint": "http://localhost:8001/mcp",
    }]}))
    .unwrap()
}

/// What a refusal is, in short.
fn code<T>(outcome: Result<T, Refusal>) -> &'static str {
    outcome.map_or_else(|refusal| refusal.code.code(), |_| "ok")
}

fn done(invitations: &mut Invitations, match_id: &str, what: &Step) -> &'static str {
    match what {
        Announces(token) => {
            invitations.announce("P01", announcement(match_id, ["P03", "P01"], *token));
            "ok"
        }
        Invites(token, conversation) => {
            code(invitations.accept(&envelope(*token, conversation), invitation(match_id)))
        }
        Speaks(token, conversation) => {
            code(invitations.joined(&envelope(*token, conversation), match_id))
        }
    }
}

#[test]
fn a_promised_token_decides_else_the_newest_invitation() {
    let (yes, no) = (Some("tok-true"), Some("tok-strange"));
    let promised: &[(Step, &str)] = &[
        (Invites(no, "a"), "ok"), // not announced yet: anybody may
        (Announces(yes), "ok"),
        (Invites(no, "b"), "E012"),
        (Invites(None, "b"), "E012"),
        (Speaks(yes, "b"), "E012"),
        (Invites(yes, "b"), "ok"),
        (Speaks(no, "b"), "E012"),
        (Speaks(None, "b"), "E012"),
        (Speaks(yes, "a"), "E015"),
        (Speaks(yes, "b"), "ok"),
        (Invites(yes, "b"), "ok"), // the same again
        (Invites(yes, "c"), "ok"), // a replay
        (Speaks(yes, "b"), "E015"),
        (Speaks(yes, "c"), "ok"),
        (Announces(no), "ok"), // another referee, with a token of its own
        (Speaks(yes, "c"), "ok"),
        (Invites(yes, "d"), "E012"),
        (Invites(no, "d"), "ok"),
        (Speaks(yes, "c"), "E012"),
        (Speaks(no, "d"), "ok"),
    ];
    let unpromised: &[(Step, &str)] = &[
        (Announces(None), "ok"),
        (Speaks(yes, "a"), "E015"),
        (Invites(yes, "a"), "ok"),
        (Invites(no, "b"), "ok"),
        (Speaks(yes, "a"), "E012"),
        (Speaks(no, "b"), "ok"),
        (Invites(None, "c"), "ok"),
        (Speaks(no, "c"), "E012"),
        (Speaks(None, "c"), "ok"),
    ];
    let unchecked: &[(Step, &str)] = &[
        (Announces(yes), "ok"),
        (Invites(None, "a"), "ok"),
        (Speaks(no, "a"), "ok"),
        (Speaks(yes, "b"), "E015"),
    ];
    for (name, checks_tokens, rows) in [
        ("promised", true, promised),
        ("unpromised", true, unpromised),
        ("unchecked", false, unchecked),
    ] {
        let mut invitations = Invitations::new(checks_tokens);
        for (n, (what, expected)) in rows.iter().enumerate() {
            assert_eq!(
                done(&mut invitations, "R1M1", what),
                *expected,
                "{name}, row {n}"
            );
        }
    }
}

#[test]
fn a_hundred_matches_that_nobody_announced_and_no_more() {
    let mut invitations = Invitations::new(true);
    let strange = Invites(Some("tok-strange"), "a");
    for n in 1..=100 {
        assert_eq!(
            done(&mut invitations, &format!("S{n}"), &strange),
            "ok",
            "{n}"
        );
    }
    assert_eq!(done(&mut invitations, "S101", &strange), "E015");
    assert_eq!(
        done(&mut invitations, "S1", &Invites(Some("tok-strange"), "b")),
        "ok",
        "joined already"
    );
    invitations.announce("P01", announcement("R1M1", ["P02", "P03"], None));
    assert_eq!(
        done(&mut invitations, "R1M1", &strange),
        "E015",
        "not our match"
    );
    for (match_id, expected) in [("R1M2", "ok"), ("S2", "ok")] {
        assert_eq!(done(&mut invitations, match_id, &Announces(None)), "ok");
        assert_eq!(
            done(&mut invitations, match_id, &strange),
            expected,
            "announced"
        );
        assert!(invitations.is_announced(match_id));
    }
    assert_eq!(
        done(&mut invitations, "S101", &strange),
        "ok",
        "S2 is announced now: there is room for one more"
    );
    assert!(!invitations.is_announced("S101"));
}

#[test]
fn the_same_call_again_gets_the_same_answer_and_thinks_once() {
    let (decision, asked, both) = (Decision::default(), AtomicUsize::new(0), Barrier::new(2));
    let think = || {
        asked.fetch_add(1, Ordering::SeqCst);
        both.wait(); // the other call is there too, or about to be
        Parity::Odd
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| decision.make(think));
        while !decision.is_open() {
            thread::yield_now();
        }
        let second = scope.spawn(|| {
            both.wait();
            decision.make(|| Parity::Even)
        });
        assert_eq!(
            [first.join().unwrap(), second.join().unwrap()],
            [Ok(Parity::Odd), Ok(Parity::Odd)]
        );
    });
    assert_eq!(
        (decision.make(|| Parity::Even), asked.load(Ordering::SeqCst)),
        (Ok(Parity::Odd), 1)
    );
}

#[test]
fn a_choose_that_panics_is_asked_again() {
    show_panics();
    let (decision, asked) = (Decision::default(), AtomicUsize::new(0));
    let choose = |turn: &Turn| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => turn.history[7].result.choices["P02"].unwrap(),
        _ => Parity::Odd,
    };
    let turn = Turn::sample();
    let Err(Denial::Broken(why)) = decision.make(|| choose(&turn)) else {
        panic!("it has chosen")
    };
    assert!(
        why.contains("`choose` panicked") && !why.contains("index"),
        "{why}"
    );
    assert!(!decision.is_open());
    assert_eq!(
        [(); 2].map(|()| decision.make(|| choose(&turn))),
        [Ok(Parity::Odd), Ok(Parity::Odd)]
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
    let line = screen::refusal(
        packet.as_object().unwrap(),
        "192.0.2.7".parse().unwrap(),
        &refusal,
    );
    let why = "E012 auth_token: got \"tok-p01-***\" (AUTH_TOKEN_INVALID)";
    assert_eq!(
        line,
        format!("refused GAME_OVER of R1M1 from tok-p01-*** at 192.0.2.7: {why}")
    );
    let league = json!({
        "league_id": "league", "total_rounds": 1, "total_matches": 1,
        "champion": {"player_id": "P02", "display_name": "Bob", "points": 1},
        "final_standings": [{"rank": 1, "player_id": "P02", "points": 1}, {"rank": 2, "player_id": "P01", "points": 1}],
    });
    let end = screen::end("P01", &LeagueCompleted::read(&league).unwrap());
    assert_eq!(end, "Champion: Bob (P02) with 1 point; P01 is 2 of 2");
}
