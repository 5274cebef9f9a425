//! What a referee is examined in: it is given four matches, one after the other, between two players whom we play. In
//! the first both are good, and the first report is not heard; then one player is slow, one is silent, one lies.

use crate::check::exchange::{Came, Exchange, Inbox, Seen, text, until, worst, write};
use crate::check::{Board, COMMON, Examinee, REGISTRATION, envelope};
use crate::game::{self, NUMBERS};
use crate::net::client::ok;
use crate::net::http;
use crate::net::retry::pause;
use crate::program::args::Stop;
use crate::protocol::{self, *};
use crate::wire::{Timestamp, Wire, token};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// The matches, by what their first player does.
const GOOD: u32 = 1;
const SLOW: u32 = 2;
const SILENT: u32 = 3;
const LYING: u32 = 4;
/// The players of every match, by seat, and what they choose.
const PLAYERS: [&str; 2] = ["P91", "P92"];
const CHOICES: [Parity; 2] = [Parity::Even, Parity::Odd];

/// The referee, the players whom it is given, and what it answered to the first announcement.
pub struct RefereeExam {
    agent: Examinee,
    seats: [Arc<Inbox>; 2],
    announced: Option<Exchange>,
}

/// Makes all checks of a referee.
pub fn examine(agent: Examinee, board: &mut Board) -> Result<(), Stop> {
    board.run(REGISTRATION, &agent);
    let seats = [seat(&agent, 0)?, seat(&agent, 1)?];
    let mut referee = RefereeExam { agent, seats, announced: None };
    referee.announced = referee.play(GOOD);
    if referee.over(GOOD).is_some() {
        [SLOW, SILENT, LYING].into_iter().for_each(|n| drop(referee.play(n)));
    }
    board.run(CHECKS, &referee);
    board.run(COMMON, &referee.agent);
    Ok(())
}

/// How long our good players hold their first answers back: whatever comes within is at once.
fn hold(agent: &Examinee) -> Duration {
    let timeouts = &agent.config.system.timeouts;
    (timeouts.game_join_ack_timeout_sec.0.min(timeouts.move_timeout_sec.0) / 2).min(Duration::from_millis(500))
}

/// A player of ours, on any free port.
fn seat(agent: &Examinee, seat: usize) -> Result<Arc<Inbox>, Stop> {
    let (timeouts, hold, league_id) =
        (&agent.config.system.timeouts, hold(agent), agent.config.league.league_id.clone());
    let silence = timeouts.game_join_ack_timeout_sec.0 * 2;
    let slowness = (timeouts.move_timeout_sec.0 / 2).min(Duration::from_secs(2));
    let script = move |request: &Value, _| {
        let (name, match_id) = (text(request, "message_type"), text(request, "match_id"));
        let is = |n: u32, message_type| name == message_type && match_id == format!("R{n}M1");
        let (invitation, call) = (GameInvitation::NAME, ChooseParityCall::NAME);
        let rows = [
            (is(GOOD, invitation) || is(GOOD, call), hold),
            (is(SLOW, call) && seat == 0, slowness),
            (is(SILENT, invitation) && seat == 0, silence),
        ];
        rows.iter().for_each(|(is_so, time)| pause(if *is_so { *time } else { Duration::ZERO }));
        let choice = if is(LYING, call) && seat == 0 { "Even" } else { CHOICES[seat].word() };
        let (message_type, body) = match name.as_str() {
            GameInvitation::NAME => {
                (GameJoinAck::NAME, format!("'accept': true, 'arrival_timestamp': '{}'", Timestamp::now()))
            }
            ChooseParityCall::NAME => (ChooseParityResponse::NAME, format!("'parity_choice': '{choice}'")),
            _ => return Some(ok()),
        };
        let (sender, conversation) = (format!("player:{}", PLAYERS[seat]), text(request, "conversation_id"));
        let auth_token = Some(text(request, "auth_token"));
        let envelope = envelope(&sender, message_type, &league_id, &conversation);
        let envelope = Envelope { auth_token, match_id: Some(match_id.clone()), ..envelope };
        Some(write(&envelope, &format!("{body}, 'player_id': '{}'", PLAYERS[seat])))
    };
    Inbox::open(http::listen("127.0.0.1", 0).map_err(Stop::failed)?, "127.0.0.1", script)
}

checks! { CHECKS of RefereeExam:
    Must "Registration" "max_concurrent_matches" |it| {
        let good = |it: &Value| it.as_u64().is_some_and(|n| (1..=10).contains(&n));
        it.agent.registration.field("referee_meta.max_concurrent_matches", "1 to 10", good)
    };
    Must "Rounds" "ROUND_ANNOUNCEMENT with a match of its own is taken" |it| it.announced.as_ref()?.taken();
    Must "A match" "both players are invited" |it| {
        it.announced.as_ref()?.reply()?;
        let [a, b] = [0, 1].map(|seat| it.all(GameInvitation::NAME, GOOD, seat).len());
        Some(it.seen(GOOD, format!("{a} and {b} invitations"), "one for each", a > 0 && b > 0))
    };
    Must "A match" "both are invited at once" |it| it.at_once(GameInvitation::NAME);
    Must "Invitation" "GAME_INVITATION is exact" |it| it.exact(GameInvitation::NAME, |message, seat| {
        matches!(message, Message::GameInvitation(it) if it.opponent_id == PLAYERS[1 - seat] && it.game_type == GAME)
    });
    Must "A match" "both are asked at once" |it| it.at_once(ChooseParityCall::NAME);
    Must "Choice" "CHOOSE_PARITY_CALL is exact" |it| it.exact(ChooseParityCall::NAME, |message, seat| {
        matches!(message, Message::ChooseParityCall(it) if it.player_id == PLAYERS[seat] && it.game_type == GAME)
    });
    Must "Envelope" "its messages have a whole envelope" |it| {
        let sender = format!("referee:{}", it.agent.id);
        it.messages(|message| match Envelope::read(message) {
            Ok(it) if it.protocol == PROTOCOL && it.sender == sender => (sender.clone(), true),
            Ok(it) => (format!("{:?} from {:?}", it.protocol, it.sender), false),
            Err(fault) => (fault.to_string(), false),
        })
    };
    Must "Envelope" "one match is one conversation" |it| {
        let first = it.first(GameInvitation::NAME, GOOD, 0)?["conversation_id"].clone();
        it.messages(|it| {
            let came = &it["conversation_id"];
            (came.to_string(), *came == first || came.is_null())
        })
    };
    Ours "Tokens" "players are shown their match's token, never its own" |it| {
        let ours = it.agent.registration.result()["referee_meta"]["uses_match_tokens"] == true;
        worst([0, 1].into_iter().filter_map(|seat| {
            let came = it.first(GameInvitation::NAME, GOOD, seat)?["auth_token"].clone();
            let good = if ours { came == *it.token(seat) } else { came.is_string() && came != *it.agent.token };
            Some(it.seen(GOOD, came, "the token that was announced for this player", good))
        }))
    };
    Must "Result" "GAME_OVER is told to both alike" |it| {
        it.first(ChooseParityCall::NAME, GOOD, 0)?;
        let [a, b] = [0, 1].map(|seat| it.first(GameOver::NAME, GOOD, seat).unwrap_or_default()["game_result"].clone());
        Some(it.seen(GOOD, format!("{a} and {b}"), "the same result for both", a == b && !a.is_null()))
    };
    Must "Result" "GAME_OVER names the right winner" |it| it.exact(GameOver::NAME, |message, _| match message {
        Message::GameOver(GameOver { game_result: came, .. }) => {
            let number = came.drawn_number.unwrap_or(0);
            let right = game::judge(PLAYERS.map(String::from), CHOICES, number).for_players();
            NUMBERS.contains(&number) && came == GameResult { reason: came.reason.clone(), ..right }
        }
        _ => false,
    });
    Must "Reporting" "MATCH_RESULT_REPORT says the same, with the league's points" RefereeExam::report;
    Must "Tokens" "MATCH_RESULT_REPORT carries its own token" |it| {
        let came = text(&it.reports().first()?.1, "auth_token");
        Some(it.seen(GOOD, format!("{came:?}"), "the token of its registration", came == it.agent.token))
    };
    Must "Reporting" "MATCH_RESULT_REPORT is repeated until it is acknowledged" |it| {
        let count = it.reports().len();
        (count > 0).then(|| it.seen(GOOD, count, "another one, since the first was answered HTTP 503", count > 1))
    };
    Must "Deadlines and retries" "a slow player's choice counts" |it| {
        it.over(GOOD)?;
        let over = it.over(SLOW).unwrap_or_default();
        Some(it.seen(SLOW, &over, "a result with a number", over["drawn_number"].is_u64()))
    };
    Must "Invitation" "a silent player loses technically" |it| it.forfeited(SILENT);
    Must "Choice" "a player who chooses \"Even\" is told E004" |it| {
        it.first(ChooseParityCall::NAME, LYING, 0)?;
        let errors = || it.all(GameError::NAME, LYING, 0);
        until(it.agent.config.game_over_limit(), || !errors().is_empty());
        let came = errors().first().map_or("no GAME_ERROR".into(), |(_, it)| text(it, "error_code"));
        Some(it.seen(LYING, &came, "GAME_ERROR with E004", came == "E004"))
    };
    Must "Choice" "and is asked again" |it| {
        let count = it.all(ChooseParityCall::NAME, LYING, 0).len();
        (count > 0).then(|| it.seen(LYING, format!("{count} calls"), "more than one", count > 1))
    };
    Must "Choice" "and loses technically in the end" |it| it.forfeited(LYING);
}

impl RefereeExam {
    /// Gives it a match, and waits until that is played, or will not be: what did not come, the checks will find.
    fn play(&self, n: u32) -> Option<Exchange> {
        let more = |seat: usize, name| {
            let (url, token) = (&self.seats[seat].url, self.token(seat));
            let standings = format!("'player_{name}_standings': {{'wins': 0, 'losses': 0, 'draws': 0}}");
            format!("'player_{name}_endpoint': '{url}', 'player_{name}_token': '{token}', {standings}")
        };
        let more = [more(0, "A"), more(1, "B")].join(", ");
        let exchange = self.agent.announce(n, PLAYERS, &self.agent.endpoint, &more)?;
        let (config, wanted) = (&self.agent.config, if n == GOOD { 2 } else { 1 });
        let came = |name, seat| !self.all(name, n, seat).is_empty();
        let either = |name| came(name, 0) || came(name, 1);
        let reports = || self.agent.manager.all(MatchResultReport::NAME, &format!("R{n}M1")).len();
        let _ = exchange.reply().is_some()
            && until(config.generic_limit(), || either(GameInvitation::NAME))
            && until(config.match_limit(), || either(GameOver::NAME) || reports() > 0)
            && until(config.generic_limit(), || {
                came(GameOver::NAME, 0) && came(GameOver::NAME, 1) && reports() >= wanted
            });
        Some(exchange)
    }

    fn token(&self, seat: usize) -> String {
        token(PLAYERS[seat], &self.agent.secret)
    }

    /// What a seat was sent of a type in a match.
    fn all(&self, message_type: &str, n: u32, seat: usize) -> Vec<Came> {
        self.seats[seat].all(message_type, &format!("R{n}M1"))
    }

    /// The first of them.
    fn first(&self, message_type: &str, n: u32, seat: usize) -> Option<Value> {
        self.all(message_type, n, seat).first().map(|(_, request)| Exchange::of_request(request).result().clone())
    }

    fn reports(&self) -> Vec<Came> {
        self.agent.manager.all(MatchResultReport::NAME, "R1M1")
    }

    /// How a match ended, as its second player was told, who was always good.
    fn over(&self, n: u32) -> Option<Value> {
        self.first(GameOver::NAME, n, 1).map(|over| over["game_result"].clone())
    }

    fn forfeited(&self, n: u32) -> Option<Seen> {
        self.over(GOOD)?;
        let over = self.over(n).unwrap_or_default();
        let good = over["status"] == Ending::TechnicalLoss.word() && over["winner_player_id"] == PLAYERS[1];
        let expected = "TECHNICAL_LOSS without a number, and P92 as the winner";
        Some(self.seen(n, &over, expected, good && over["drawn_number"].is_null()))
    }

    fn seen(&self, n: u32, came: impl ToString, expected: &str, good: bool) -> Seen {
        let sent = format!("ROUND_ANNOUNCEMENT of R{n}M1");
        Seen { sent, ..self.agent.registration.seen(came, expected, good) }
    }

    /// Whether the second message came before the first was answered.
    fn at_once(&self, message_type: &str) -> Option<Seen> {
        let [a, b] = [0, 1].map(|seat| self.all(message_type, GOOD, seat).first().map(|(at, _)| *at));
        let apart = a?.max(b?) - a?.min(b?);
        let came = format!("one {} ms after the other", apart.as_millis());
        Some(self.seen(GOOD, came, "both before one is answered", apart < hold(&self.agent)))
    }

    /// Judges all its messages of the first match, the report included.
    fn messages(&self, judge: impl Fn(&Value) -> (String, bool)) -> Option<Seen> {
        let names = [GameInvitation::NAME, ChooseParityCall::NAME, GameOver::NAME];
        let told = names.iter().flat_map(|name| [0, 1].map(|seat| self.all(name, GOOD, seat))).flatten();
        worst(told.chain(self.reports()).map(|(_, request)| {
            let (came, good) = judge(Exchange::of_request(&request).result());
            let came = format!("{} with {came}", text(&request, "message_type"));
            self.seen(GOOD, came, "all five fields, and the same conversation throughout", good)
        }))
    }

    /// Judges the body of a message to both seats.
    fn exact(&self, message_type: &str, good: impl Fn(Message, usize) -> bool) -> Option<Seen> {
        worst([0, 1].into_iter().filter_map(|seat| {
            let came = self.first(message_type, GOOD, seat)?;
            Some(match body(&came) {
                Ok(message) => self.seen(GOOD, &came, "what is true of this match", good(message, seat)),
                Err(refusal) => self.seen(GOOD, refusal, "the fields of protocol.md", false),
            })
        }))
    }

    fn report(&self) -> Option<Seen> {
        let told = self.over(GOOD)?["drawn_number"].clone();
        let came = self.reports().first().map(|(_, it)| Exchange::of_request(it).result().clone()).unwrap_or_default();
        let result = match body(&came) {
            Ok(Message::MatchResultReport(report)) => report.result,
            Ok(_) => return None,
            Err(refusal) => return Some(self.seen(GOOD, refusal, "the fields of protocol.md", false)),
        };
        let number = result.details.drawn_number.unwrap_or(0);
        let scoring = &self.agent.config.league.scoring;
        let mut right = game::judge(PLAYERS.map(String::from), CHOICES, number).for_manager(scoring);
        right.details.reason = result.details.reason.clone();
        right.details.status = right.details.status.filter(|_| result.details.status.is_some());
        let expected = serde_json::to_string(&right).unwrap_or_default();
        Some(self.seen(GOOD, &came["result"], &expected, result == right && told == number))
    }
}

/// A message read strictly, but for its envelope, which is another check's business.
fn body(came: &Value) -> Result<Message, Refusal> {
    let (message_type, mut whole) = (came["message_type"].as_str().unwrap_or_default(), came.clone());
    let good = serde_json::to_value(envelope("referee:REF90", message_type, "", "conv")).unwrap_or_default();
    ["protocol", "sender", "timestamp", "conversation_id"].iter().for_each(|key| whole[*key] = good[*key].clone());
    protocol::read(&whole, Given::new).map(|understood| understood.message)
}
