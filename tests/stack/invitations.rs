//! What a player believes, chooses and shows, without a network: `tests/scripts/invitations`,
//! and what no story tells.

use super::support::{fake::message_of_line, golden};
use league::json::decode;
use league::player::Turn;
use league::player::display;
use league::player::invitations::{Invitations, Moves};
use league::program::terminal::describe_refusal;
use league::protocol::{
    ErrorCode, GameError, IncomingMessage, LeagueCompleted, PlayerRequest, ProtocolError, parse,
};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What a refusal is, in short.
fn code<T>(outcome: Result<T, ProtocolError>) -> String {
    outcome.map_or_else(|refusal| refusal.code.to_string(), |_| "ok".into())
}

/// Does what a line says, `invites R1M1 true b` for instance: who does what, the match, the token
/// (`-` for none), and the conversation. Says what comes of it. A token is announced beside the
/// matches, or `inside`, as by other managers. `is_proved` if the manager proves itself.
fn done(invitations: &mut Invitations, line: &str, is_proved: bool) -> String {
    let mut words = line.split(' ').chain(["-"]);
    let [verb, id, token] = [(); 3].map(|()| words.next().unwrap());
    let token = match token {
        "-" => "null".into(),
        token => format!("\"{token}\""),
    };
    let conversation = words.next().filter(|item| *item != "-").unwrap_or("a");
    let player = if verb == "others" { "P02" } else { "P01" };
    let place = match verb {
        "inside" => "/matches/0/match_token",
        "announces" | "others" => "match_token",
        _ => "auth_token",
    };
    let output = match verb {
        "invites" => format!("true invites {id}"),
        "speaks" => format!("true asks {id}"),
        _ => format!(
            "manager announces {id} /matches/0/player_A_id=P03 /matches/0/player_B_id={player}"
        ),
    };
    let output = format!("{output} {place}={token} conversation_id={conversation}");
    let IncomingMessage {
        envelope, message, ..
    } = parse(&message_of_line(&output)).unwrap();
    match message {
        PlayerRequest::GameInvitation(invitation) => {
            code(invitations.join(&envelope, invitation, is_proved))
        }
        PlayerRequest::RoundAnnouncement(round) => {
            invitations.announce("P01", round);
            String::new()
        }
        _ => code(invitations.find(&envelope, id)),
    }
}

/// What the player's terminal says: of a GAME_ERROR or a LEAGUE_COMPLETED, or of a message that is
/// refused for a reason.
fn output(command: &str) -> String {
    let (refused, message) = command.split_once(": ").unwrap();
    let message: Value =
        serde_json::from_str(&message.replace("LONG", &"\\u001b[2J".repeat(9_000))).unwrap();
    match refused {
        "error" => display::game_error(&decode::<GameError>(&message).unwrap()),
        "end" => display::league_over("P01", &decode::<LeagueCompleted>(&message).unwrap()),
        reason => {
            let [code, field, problem] = reason.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{reason}")
            };
            let code = ErrorCode::from(code.to_string());
            let refusal = ProtocolError::field(code, field, problem);
            describe_refusal(&message, "192.0.2.7".parse().unwrap(), &refusal)
        }
    }
}

#[test]
fn invitations_golden() {
    golden::run_scripts("invitations", || {
        let mut state = (Invitations::new(true), false);
        move |command: &str| run_command(&mut state, command)
    });
}

fn run_command((invitations, is_proved): &mut (Invitations, bool), command: &str) -> String {
    match command.split_once(' ').unwrap_or((command, "")) {
        ("fresh", manager) => {
            *invitations = Invitations::new(manager != "unchecked");
            *is_proved = manager == "proved";
        }
        ("says", message) => return output(message),
        ("hundred", _) => {
            let lines = (1..=100).map(|n| format!("invites S{n} strange a"));
            lines.for_each(|line| assert_eq!(done(invitations, &line, false), "ok", "{line}"));
        }
        ("announced", id) => return invitations.is_announced(id).to_string(),
        _ => return done(invitations, command, *is_proved),
    }
    String::new()
}

#[test]
fn repeated_call_gets_the_same_answer() {
    let (decision, [begun, both]) = (Moves::default(), [2, 2].map(Barrier::new));
    let [even, odd] = ["even", "odd"].map(|choice| Ok(choice.to_string()));
    let make = |number, choice: &str| decision.get_or_choose(number, || choice.into());
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            decision.get_or_choose(1, || {
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
fn choose_is_called_again_after_a_panic() {
    let (decision, asked) = (Moves::default(), AtomicUsize::new(0));
    let choose = |turn: &Turn| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => turn.history[7].match_id.clone(),
        _ => "odd".into(),
    };
    let turn = Turn::sample();
    let make = || decision.get_or_choose(1, || choose(&turn));
    assert!(catch_unwind(AssertUnwindSafe(make)).is_err());
    let odd = Ok("odd".to_string());
    assert_eq!([make(), make()], [odd.clone(), odd]);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}
