//! The invitations, moves and lines of a player without a network: `tests/scripts/invitations`, and
//! repeated and failed calls of `choose`.

use super::support::{fake::message_of_line, golden, json_of};
use league::json::decode;
use league::player::display;
use league::player::invitations::{Invitations, Moves};
use league::program::terminal::describe_refusal;
use league::protocol::{
    GameError, IncomingMessage, LeagueCompleted, PlayerRequest, ProtocolError, parse,
};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Returns `ok` or the code of a refusal.
fn code<T>(outcome: Result<T, ProtocolError>) -> String {
    outcome.map_or_else(|refusal| refusal.code.to_string(), |_| "ok".into())
}

/// Does what a line says: a verb, the match, the token (`-`: none) and the conversation, like
/// `invites R1M1 true b`. Returns the outcome. A token is announced next to the matches, or, with
/// the verb `inside`, as other managers do, in the match.
/// `is_proved`: the manager proves itself.
fn done(invitations: &mut Invitations, line: &str, is_proved: bool) -> String {
    let mut words = line.split(' ').chain(["-"; 3]);
    let [verb, id, token, conversation] = [(); 4].map(|()| words.next().unwrap());
    let token = match token {
        "-" => "null".into(),
        token => format!("\"{token}\""),
    };
    let conversation = conversation.replace('-', "a");
    let player = if verb == "others" { "P02" } else { "P01" };
    let place = match verb {
        "inside" => "/matches/0/match_token",
        "announces" | "others" => "match_token",
        _ => "auth_token",
    };
    let line = match verb {
        "invites" => format!("true invites {id}"),
        "speaks" => format!("true asks {id}"),
        _ => format!(
            "manager announces {id} /matches/0/player_A_id=P03 /matches/0/player_B_id={player}"
        ),
    };
    let line = format!("{line} {place}={token} conversation_id={conversation}");
    let parsed: IncomingMessage<PlayerRequest> = parse(&message_of_line(&line)).unwrap();
    match parsed.message {
        PlayerRequest::GameInvitation(invitation) => {
            code(invitations.join(&parsed.envelope, invitation, is_proved))
        }
        PlayerRequest::RoundAnnouncement(round) => {
            invitations.announce("P01", round);
            String::new()
        }
        _ => code(invitations.find(&parsed.envelope, id)),
    }
}

/// Returns the line in the terminal of the player about a GAME_ERROR, the result of a match of Ada (P01) and
/// Bob (P02), a LEAGUE_COMPLETED, or a message that is refused for a reason.
fn output(command: &str) -> String {
    let (refused, message) = command.split_once(": ").unwrap();
    let message: Value = json_of(&message.replace("LONG", &"\\u001b[2J".repeat(9_000)));
    match refused {
        "error" => display::game_error(&decode::<GameError>(&message).unwrap()),
        "result" => {
            let names = ["P01 Ada", "P02 Bob"].map(|pair| pair.split_once(' ').unwrap());
            let names = names.map(|(id, name)| (id.to_string(), name.to_string()));
            display::result(&decode(&message).unwrap(), "P01", "P02", &names.into())
        }
        "end" => display::league_over("P01", &decode::<LeagueCompleted>(&message).unwrap()),
        reason => {
            let [code, field, problem] = reason.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{reason}")
            };
            let refusal = ProtocolError::field(code.to_string().into(), field, problem);
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
    let (moves, [begun, both]) = (Moves::default(), [2, 2].map(Barrier::new));
    let [even, odd] = ["even", "odd"].map(|choice| Ok(choice.to_string()));
    let get = |number, choice: &str| moves.get_or_choose(number, || choice.into());
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            moves.get_or_choose(1, || {
                begun.wait();
                both.wait(); // the other call has begun, or begins now
                "odd".into()
            })
        });
        begun.wait();
        let second = scope.spawn(|| {
            both.wait();
            get(1, "even")
        });
        let answers = [first, second].map(|call| call.join().unwrap());
        assert_eq!(answers, [odd.clone(), odd.clone()]);
    });
    assert_eq!(get(1, "even"), odd);
    assert_eq!(get(2, "even"), even, "another move");
    assert!(get(100_000, "even").is_err(), "more moves than a game has");
}

#[test]
fn choose_is_called_again_after_a_panic() {
    let (moves, calls) = (Moves::default(), AtomicUsize::new(0));
    let choose = || match calls.fetch_add(1, Ordering::SeqCst) {
        0 => panic!("the player's mistake"),
        _ => "odd".into(),
    };
    let get = || moves.get_or_choose(1, choose);
    assert!(catch_unwind(AssertUnwindSafe(get)).is_err());
    let odd = Ok("odd".to_string());
    assert_eq!([get(), get()], [odd.clone(), odd]);
    assert_eq!(calls.into_inner(), 2);
}
