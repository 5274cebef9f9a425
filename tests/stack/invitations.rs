//! The decisions, moves and lines of a player without a network: `tests/scripts/player` and
//! `tests/scripts/invitations`, and repeated and failed calls of `choose`.

use super::support::fake::{message_of_line, notice, told};
use super::support::{TestLeague, golden, json_of};
use league::json::decode;
use league::net::agent::HandlerError;
use league::player::display;
use league::player::history::History;
use league::player::invitations::Moves;
use league::player::state::{Pause, PlayerState, Sender, Step};
use league::program::credentials::Credentials;
use league::program::terminal::describe_refusal;
use league::protocol::{
    GameError, IncomingMessage, LeagueCompleted, PlayerRequest, ProtocolError, parse, to_json,
};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Returns the line in the terminal of the player about a GAME_ERROR, the result of a match of Ada (P01) and
/// Bob (P02), a LEAGUE_COMPLETED, or a message that is refused for a reason.
fn output(command: &str) -> String {
    let (refused, message) = command.split_once(": ").unwrap();
    let message: Value = json_of(&message.replace("LONG", &"\\u001b".repeat(9_000)));
    match refused {
        "error" => display::game_error(&decode::<GameError>(&message).unwrap()),
        "result" => display::result(&decode(&message).unwrap(), "P01", "P02", "Bob"),
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
fn player_golden() {
    for folder in ["invitations", "player"] {
        golden::run_scripts(folder, || {
            let mut story = Story::new(Arc::new(TestLeague::new("")), "proved");
            move |command: &str| story.run(command)
        });
    }
}

/// A player, and its manager: a `proved` one proves itself, with an `unchecked` one tokens are not
/// checked. The time passes only where a line says so.
struct Story {
    test: Arc<TestLeague>,
    state: PlayerState,
    proves_itself: bool,
    begun: Instant,
    /// The messages that have no answer yet.
    waiting: Vec<(Sender, PlayerRequest)>,
}

impl Story {
    fn new(test: Arc<TestLeague>, manager: &str) -> Story {
        let mut state = PlayerState::new(manager != "unchecked");
        state.history = History::open(&test.folder.join("P01"), "P01", "league", false).unwrap();
        Story {
            test,
            state,
            proves_itself: manager == "proved",
            begun: Instant::now(),
            waiting: Vec::new(),
        }
    }

    fn run(&mut self, command: &str) -> String {
        let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
        match word {
            "says" => return golden::with_repeats_folded(&output(rest)),
            "fresh" => *self = Story::new(Arc::clone(&self.test), rest),
            "registers" => self.state.table.clear(),
            "restart" => {
                self.state.history.write().unwrap();
                *self = Story::new(Arc::clone(&self.test), "proved");
            }
            "hundred" => {
                let line = |n: u32| format!("strange invites S{n}");
                let replies = (1..=100).map(|n| self.handle(&line(n), self.begun));
                assert!(replies.into_iter().all(|reply| reply == "joins"));
            }
            "remembers" => {
                let matches = self.state.history.matches();
                let lines = matches.iter().map(|past| {
                    let winner = past.result.winner_player_id.as_deref();
                    format!("{}: {} has won\n", past.match_id, winner.unwrap())
                });
                return lines.collect();
            }
            "learns" => {
                let data = match rest.split(' ').collect::<Vec<_>>()[..] {
                    [id, token] => json!({"next_match": {"match_id": id, "match_token": token}}),
                    [winner, "has", "won", id] => json!({"matches": [recorded(id, winner)]}),
                    _ => panic!("{command}"),
                };
                let lines = self.state.learn("P01", data.as_object().unwrap());
                return lines.join("\n");
            }
            word => {
                let (line, seconds) = word.parse().map_or((command, 0.0), |time| (rest, time));
                return self.handle(line, self.begun + Duration::from_secs_f64(seconds));
            }
        }
        String::new()
    }

    /// Handles a message, or the waiting one again.
    fn handle(&mut self, line: &str, now: Instant) -> String {
        let (mut from, mut message) = match line {
            "again" if self.waiting.is_empty() => return "nothing waits".into(),
            "again" => self.waiting.remove(0),
            _ => incoming(line, now, self.proves_itself),
        };
        let text = match self.state.handle(&mut from, &mut message, now) {
            Ok(Step::Reply(None)) => return "ok".into(),
            Ok(Step::Reply(Some(reply))) => {
                return told(&to_json(&from.envelope, &reply)).into();
            }
            Ok(Step::Print(line) | Step::Warn(line) | Step::End(line)) => return line,
            Ok(Step::Choose(turn, _)) => return format!("chooses in {}", turn.match_id),
            Err(Pause::Refuse(HandlerError::Refused(refusal))) => return refusal.code.to_string(),
            Err(Pause::Refuse(error)) => panic!("{error:?}"),
            Err(Pause::Wait(time)) => format!("waits {time:?}"),
            Err(Pause::Ask(query_type)) => {
                format!("asks {}", json!(query_type).as_str().unwrap())
            }
        };
        self.waiting.push((from, message));
        text
    }
}

/// Returns a message that comes now: `true invites R1M1`, or `table 1 0` with our victories and defeats.
fn incoming(line: &str, now: Instant, proves_itself: bool) -> (Sender, PlayerRequest) {
    let packet = match line.split(' ').collect::<Vec<_>>()[..] {
        ["table", wins, losses] => {
            let [wins, losses] = [wins, losses].map(|text| text.parse::<u32>().unwrap());
            let row = json!({"rank": 1, "player_id": "P01", "display_name": "Ada", "played": wins + losses,
                "wins": wins, "draws": 0, "losses": losses, "points": 3 * wins});
            let body = json!({"round_id": 1, "standings": [row]});
            notice("LEAGUE_STANDINGS_UPDATE", Some("tok-own"), body)
        }
        _ => message_of_line(line),
    };
    let parsed: IncomingMessage<PlayerRequest> = parse(&packet).unwrap();
    let from = Sender {
        has_own_token: parsed.envelope.auth_token.as_deref() == Some("tok-own"),
        envelope: parsed.envelope,
        credentials: Arc::new(Credentials {
            agent_id: "P01".into(),
            registration_key: String::new(),
            league_id: "league".into(),
            manager: String::new(),
            endpoint: String::new(),
            token: Some("tok-own".into()),
            proves_itself,
            is_over: false,
            folder: "".into(),
        }),
        received_at: now,
        has_asked: false,
    };
    (from, parsed.message)
}

/// Returns a recorded result as the manager tells it.
fn recorded(match_id: &str, winner: &str) -> Value {
    let over = message_of_line(&format!("true ends {match_id} {winner}"));
    let round_id: u32 = match_id[1..2].parse().unwrap();
    json!({"match_id": match_id, "round_id": round_id, "game_type": "even_odd", "opponent_id": "P02",
        "result": over["game_result"]})
}

#[test]
fn repeated_call_gets_the_same_answer() {
    let (moves, [begun, both]) = (Moves::default(), [2, 2].map(Barrier::new));
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
        assert_eq!(answers, ["odd", "odd"]);
    });
    assert_eq!(get(1, "even"), "odd");
    assert_eq!(get(2, "even"), "even", "another move");
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
    assert_eq!([get(), get()], ["odd", "odd"]);
    assert_eq!(calls.into_inner(), 2);
}
