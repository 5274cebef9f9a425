//! What a player believes, chooses and shows, without a network: `tests/scripts/invitations.txt`, and what no story tells.

mod support;

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
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use support::golden;

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
    let words: Vec<&str> = line.split(' ').collect();
    let token = words.get(2).copied().filter(|token| *token != "-");
    let envelope = envelope(token, words.get(3).unwrap_or(&"a"));
    match words[0] {
        "invites" => code(invitations.accept(&envelope, invitation(words[1]))),
        "speaks" => code(invitations.joined(&envelope, words[1])),
        other => {
            let player = if other == "others" { "P02" } else { "P01" };
            let round = announcement(words[1], player, token, other == "inside");
            invitations.announce("P01", round);
            ""
        }
    }
}

/// What the player's terminal says: of a GAME_ERROR or a LEAGUE_COMPLETED, or of a message that is refused for a reason.
fn said(command: &str) -> String {
    let (refused, message) = command.split_once(": ").unwrap();
    let message: Value =
        serde_json::from_str(&message.replace("LONG", &"\\u001b[2J".repeat(9_000))).unwrap();
    match refused {
        "error" => screen::error(&GameError::read(&message).unwrap()),
        "end" => screen::end("P01", &LeagueCompleted::read(&message).unwrap()),
        reason => {
            let [code, field, problem] = reason.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{reason}")
            };
            let code = Code::read(&code.into()).unwrap();
            let refusal = Refusal::field(code, field, problem);
            screen::refusal(&message, "192.0.2.7".parse().unwrap(), &refusal)
        }
    }
}

#[test]
fn the_story_of_invitations() {
    let mut invitations = Invitations::new(true);
    golden::play("invitations.txt", |command| {
        match command.split_once(' ').unwrap_or((command, "")) {
            ("fresh", checked) => invitations = Invitations::new(checked.is_empty()),
            ("says", message) => return said(message),
            ("hundred", _) => {
                let lines = (1..=100).map(|n| format!("invites S{n} strange a"));
                lines.for_each(|line| assert_eq!(done(&mut invitations, &line), "ok", "{line}"));
            }
            ("announced", id) => return invitations.is_announced(id).to_string(),
            _ => return done(&mut invitations, command).into(),
        }
        String::new()
    });
}

#[test]
fn the_same_call_again_gets_the_same_answer_and_thinks_once() {
    let (decision, [begun, both]) = (Decision::default(), [2, 2].map(Barrier::new));
    let [even, odd] = ["even", "odd"].map(|choice| Ok(choice.to_string()));
    let make = |number, choice: &str| decision.make(number, || choice.into());
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            decision.make(1, || {
                begun.wait();
                both.wait(); // the other call is there too, or about to be
                "odd".into()
            })
        });
        begun.wait();
        let second = scope.spawn(|| {
            both.wait();
            make(1, "even")
        });
        let made = [first, second].map(|call| call.join().unwrap());
        assert_eq!(made, [odd.clone(), odd.clone()]);
    });
    assert_eq!(make(1, "even"), odd);
    assert_eq!(make(2, "even"), even, "another move");
    assert!(make(100_000, "even").is_err(), "nobody fills our memory");
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
