//! A player: what stands behind `run(choose)`, so that a student writes nothing but `choose`.
//!
//! The league manager announces rounds; a referee then invites us, asks for our choice, and tells how the match
//! ended. `handle` is the whole of it: a row for each message. What goes wrong is shown in the player's own terminal.
//! Read next: `player/invitations.rs`, whom we believe; then `decision.rs`, `history.rs` and `strategies.rs` there.

pub mod decision;
pub mod history;
pub mod invitations;

pub use crate::extras::strategies::{Past, Turn};
pub use crate::protocol::Parity;

use crate::extras::by_hand::{ByHand, MakeChoice, NextTurn};
use crate::extras::{by_hand, player_screen as screen, strategies};
use crate::net::agent::{Agent, Denial, Nothing, Request, Tool, Toolbox};
use crate::net::log::Level;
use crate::net::retry::{SHOWN, seconds};
use crate::net::sync::lock;
use crate::object;
use crate::player::history::History;
use crate::player::invitations::{Invitations, Joined};
use crate::program::args::{Args, Stop, Usage};
use crate::program::card::Card;
use crate::program::registration;
use crate::program::session::{self, Participant, Session};
use crate::program::terminal::{complain, say};
use crate::protocol::*;
use crate::wire::{Timestamp, Unread, cut, equal};
use serde_json::Value;
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const USAGE: Usage = Usage {
    name: "player",
    about: "A player of the AI Agent League: joins matches of Even/Odd and chooses.",
    words: &[],
    options: &[
        (
            "--manager",
            "URL",
            "the league manager [as listed in agents_config.json]",
        ),
        (
            "--display-name",
            "NAME",
            "shown in the table [as listed, or defaults/player.json]",
        ),
        (
            "--player-id",
            "ID",
            "the id to ask for, and whose card to use [any]",
        ),
        (
            "--strategy",
            "NAME",
            "an example, or mcp:NAME: by hand, and NAME if nobody chooses [the program's `choose`]",
        ),
        ("--seed", "N", "make random choices repeatable"),
    ],
};

/// What a model should know of a player before it calls a tool.
const INSTRUCTIONS: &str = "A player of the AI Agent League: it plays Even/Odd matches that a referee conducts. \
    get_player_state shows its id, record and results, and needs no arguments. The other tools are messages of a \
    league: handle_game_invitation, then choose_parity and notify_match_result come from a referee, with the same \
    match_id, conversation_id and auth_token; the rest comes from the league manager.";

/// What a player is called to do with a turn.
type Choose = dyn Fn(&Turn) -> Parity + Send + Sync;

/// Times in messages are in whole seconds: a choice that is later than this is late by any clock.
const WHOLE_SECOND: Duration = Duration::from_secs(1);

/// A player's program: joins the league, answers its referees, remembers its matches, and ends when the league is over.
/// `choose` is called once in each match, in a thread of its own; it must not take longer than `turn.time_left()`.
/// With `--strategy` on the command line that example plays instead.
pub fn run(choose: impl Fn(&Turn) -> Parity + Send + Sync + 'static) -> ExitCode {
    USAGE.main(|args| {
        let stays = by_hand(&args).0; // so that whoever plays by hand can read how it ended
        session::run(args, Kind::Player, |session| {
            Player::new(session, Box::new(choose))
        })?;
        if stays {
            say("the league is over; still serving");
            loop {
                thread::park();
            }
        }
        Ok(())
    })
}

/// Whether the choice is left to whoever calls our tools, and the example that `--strategy` names, or the fallback.
fn by_hand(args: &Args) -> (bool, Option<&str>) {
    match args.text("--strategy") {
        Some("mcp") => (true, Some("random")),
        Some(name) => name
            .strip_prefix("mcp:")
            .map_or((false, Some(name)), |fallback| (true, Some(fallback))),
        None => (false, None),
    }
}

struct Player {
    session: Arc<Session>,
    choose: Box<Choose>,
    /// The example that plays in the place of `choose`, or where nobody chooses by hand.
    strategy: Option<String>,
    /// Who is asked first, with `--strategy mcp`.
    by_hand: Option<ByHand>,
    seed: Option<u64>,
    invitations: Mutex<Invitations>,
    /// There once we are registered.
    history: Mutex<Option<History>>,
}

object! {
    /// What `get_player_state` shows.
    PlayerState {
        display_name: String, state: AgentState, strategy: String, record: Tally, matches: Vec<Past>,
        player_id: Option<String>,
    }
}

impl Player {
    fn new(session: Arc<Session>, choose: Box<Choose>) -> Result<Arc<Player>, Stop> {
        let (args, config) = (&session.program.args, &session.program.config);
        let (seed, (is_by_hand, strategy)) = (args.number("--seed")?, by_hand(args));
        let strategy = strategy.map(String::from);
        if let Some(unknown) = strategy
            .as_deref()
            .filter(|name| strategies::named(name).is_none())
        {
            let all: Vec<&str> = strategies::ALL.iter().map(|(name, _)| *name).collect();
            let all = all.join(", ");
            return Err(Stop::usage(format!(
                "--strategy: got {unknown:?}, expected mcp, or one of {all}"
            )));
        }
        let choose = if strategy.is_some() {
            Box::new(Turn::example)
        } else {
            choose
        };
        let invitations = Mutex::new(Invitations::new(config.system.security.enable_auth_tokens));
        let by_hand = is_by_hand.then(ByHand::default);
        Ok(Arc::new(Player {
            session,
            choose,
            strategy,
            by_hand,
            seed,
            invitations,
            history: Mutex::new(None),
        }))
    }

    fn matches(&self) -> Arc<Vec<Past>> {
        lock(&self.history)
            .as_ref()
            .map(History::matches)
            .unwrap_or_default()
    }

    /// The match that a referee speaks of, if we believe it.
    fn joined(&self, request: &Request, match_id: &str) -> Result<Joined, Refusal> {
        lock(&self.invitations)
            .joined(&request.envelope, match_id)
            .cloned()
    }

    /// We come to every match that we are truly invited to.
    fn join(
        &self,
        card: &Card,
        request: &Request,
        invitation: GameInvitation,
    ) -> Result<Message, Denial> {
        let (match_id, player_id) = (invitation.match_id.clone(), card.agent_id.clone());
        is_for_us(card, invitation.player_id.as_ref())?;
        lock(&self.invitations).accept(&request.envelope, invitation)?;
        let (arrival_timestamp, auth_token) =
            (Timestamp::now(), request.envelope.auth_token.clone());
        Ok(GameJoinAck {
            match_id,
            player_id,
            arrival_timestamp,
            accept: true,
            auth_token,
        }
        .into())
    }

    /// Our choice: the same whenever it is asked for again. No lock is held while we think.
    fn answer(
        &self,
        card: &Card,
        request: &Request,
        call: ChooseParityCall,
    ) -> Result<Message, Denial> {
        let joined = self.joined(request, &call.match_id)?;
        is_for_us(card, Some(&call.player_id))?;
        // Both are by the referee's clock, which may be another than ours.
        let (written, deadline) = (request.envelope.timestamp, call.deadline);
        let time = if deadline > written {
            deadline.distance(written)
        } else {
            Duration::ZERO
        };
        let turn = Turn {
            player_id: call.player_id.clone(),
            opponent_id: joined.opponent_id,
            match_id: call.match_id.clone(),
            round_id: joined.round_id,
            standings: call.context.and_then(|context| context.your_standings),
            history: self.matches(),
            strategy: self.strategy.clone().unwrap_or("random".into()),
            seed: self.seed,
            deadline: Instant::now() + time,
        };
        let parity = joined.decision.make(|| {
            let parity = self.think(&turn);
            let late = turn.deadline.elapsed();
            if late >= WHOLE_SECOND {
                let words = format!("your choice came too late, by {} s", seconds(late));
                self.warn(&screen::about(&turn.match_id, &words));
            }
            parity
        })?;
        let (match_id, player_id, auth_token) = (call.match_id, call.player_id, joined.token);
        Ok(ChooseParityResponse {
            match_id,
            player_id,
            parity_choice: Unread::new(parity.word()),
            auth_token,
        }
        .into())
    }

    /// Asks by hand, if it is to be so and the match is a true one; else, and if nobody answers, our strategy.
    fn think(&self, turn: &Turn) -> Parity {
        let by_hand = self
            .by_hand
            .as_ref()
            .filter(|_| lock(&self.invitations).is_announced(&turn.match_id));
        let Some(by_hand) = by_hand else {
            return (self.choose)(turn);
        };
        by_hand.ask(turn).unwrap_or_else(|| {
            let parity = (self.choose)(turn);
            let words = format!("nobody chose in time; {} chose {parity}", turn.strategy);
            let words = screen::about(&turn.match_id, &words);
            self.warn(&words);
            by_hand.note(&words);
            parity
        })
    }

    /// Whether somebody may choose for us: from this machine, or with our own token. Strangers do not wait.
    fn check_hand(&self, token: Option<&str>, peer: IpAddr) -> Result<&ByHand, Denial> {
        let own = self
            .session
            .card_now()
            .map(|card| card.token)
            .filter(|own| !own.is_empty());
        let is_owner = own
            .zip(token)
            .is_some_and(|(own, token)| equal(token, &own));
        let by_hand = self
            .by_hand
            .as_ref()
            .ok_or_else(|| Denial::rpc(-32601, "this player chooses by itself"))?;
        match token {
            _ if is_owner || peer.is_loopback() => Ok(by_hand),
            Some(_) => {
                Err(Refusal::field(Code::E012, "auth_token", "not this player's own").into())
            }
            None => Err(Refusal::field(
                Code::E011,
                "auth_token",
                "missing; this player's own, from its card",
            )
            .into()),
        }
    }

    /// A match is over. One that no announcement named is a stranger's, where the manager has shown how it announces.
    fn remember(&self, card: &Card, request: &Request, over: GameOver) -> Result<(), Denial> {
        let joined = self.joined(request, &over.match_id)?;
        let counts = card.proves_itself != Some(true)
            || lock(&self.invitations).is_announced(&over.match_id);
        let reason = over
            .game_result
            .reason
            .clone()
            .or(over.reason)
            .map(|reason| cut(&reason, 3 * SHOWN)); // two failures
        let Joined {
            opponent_id,
            conversation_id,
            decision,
            ..
        } = joined;
        let note = if counts {
            ""
        } else {
            " (not announced by the manager, so not remembered)"
        };
        let words = format!("{}{note}", reason.as_deref().unwrap_or("is over"));
        let line = screen::about(&over.match_id, &words);
        let open = screen::about(&over.match_id, "it was over before your choice came");
        let result = GameResult {
            reason,
            ..over.game_result
        };
        let past = Past {
            match_id: over.match_id,
            conversation_id,
            opponent_id,
            result,
        };
        if lock(&self.history)
            .as_mut()
            .filter(|_| counts)
            .is_none_or(|it| it.remember(past))
        {
            say(&line);
        }
        if decision.is_open() {
            self.warn(&open);
        }
        self.write_page(false);
        Ok(())
    }

    /// `get_player_state`: open to everybody; it shows no token, and a choice only when its match is over.
    fn state(&self) -> PlayerState {
        let (player_id, matches) = (
            self.session.card_now().map(|card| card.agent_id),
            self.matches().to_vec(),
        );
        let mut record = Tally {
            wins: 0,
            draws: 0,
            losses: 0,
        };
        for past in &matches {
            match past.result.status {
                Ending::Draw => record.draws += 1,
                _ if past.result.winner_player_id == player_id => record.wins += 1,
                _ => record.losses += 1,
            }
        }
        let (display_name, state) = (
            registration::display_name(&self.session.program),
            self.session.state(),
        );
        let strategy = self.strategy.clone().unwrap_or("choose".into());
        let strategy = if self.by_hand.is_some() {
            format!("mcp:{strategy}")
        } else {
            strategy
        };
        PlayerState {
            display_name,
            state,
            strategy,
            record,
            player_id,
            matches,
        }
    }

    /// The page for people. One that cannot be written stops nothing.
    fn write_page(&self, at_once: bool) {
        let written = lock(&self.history)
            .as_mut()
            .map_or(Ok(()), |history| history.write(at_once));
        if let Err(error) = written {
            self.session
                .program
                .log()
                .say(Level::Warning, "page", error.to_string());
        }
    }

    /// Something went wrong in a match of ours. It is shown even where we do not believe it: the refusal is shown too.
    fn show_error(&self, request: &Request, error: &GameError) -> Result<(), Refusal> {
        self.warn(&screen::error(error));
        let is_open = self.joined(request, &error.match_id)?.decision.is_open();
        if is_open && error.error_code == Code::E001.code() {
            self.warn(&screen::about(
                &error.match_id,
                "your `choose` is still thinking",
            ));
        }
        Ok(())
    }

    /// What the manager tells.
    fn hear(&self, card: &Card, notice: Message) {
        match notice {
            Message::RoundAnnouncement(round) => {
                lock(&self.invitations).announce(&card.agent_id, round)
            }
            Message::RoundCompleted(_) => self.write_page(false),
            Message::LeagueCompleted(league) => self.end(card, &league),
            Message::LeagueError(error) => {
                self.warn(&screen::about(
                    "the league manager says",
                    &cut(&error.explain(), SHOWN),
                ));
            }
            _ => {} // the table, for information
        }
    }

    /// The league is over, and so are we.
    fn end(&self, card: &Card, league: &LeagueCompleted) {
        self.write_page(true);
        if self.session.league_is_over() {
            let words = screen::end(&card.agent_id, league);
            say(&words); // once, though the notice may come twice
            self.by_hand.iter().for_each(|by_hand| by_hand.end(&words));
        }
    }

    /// A line about something that our person should look at. Who we are is said too: players may share a terminal.
    fn warn(&self, words: &str) {
        let name = self
            .session
            .card_now()
            .map_or("player".into(), |card| card.agent_id);
        complain(&format!("{name}: {words}"));
    }
}

/// Refuses what names another player.
fn is_for_us(card: &Card, player_id: Option<&String>) -> Result<(), Refusal> {
    let but = format_args!("but this is {}", card.agent_id);
    match player_id {
        Some(id) if *id != card.agent_id => Err(Refusal::got(Code::E012, "player_id", id, but)),
        _ => Ok(()),
    }
}

impl Agent for Player {
    fn kind(&self) -> Kind {
        Kind::Player
    }

    fn handle(&self, request: &Request, message: Message) -> Result<Option<Message>, Denial> {
        let card = self.session.wait_for_card()?;
        match message {
            // From a referee.
            Message::GameInvitation(invitation) => {
                return self.join(&card, request, invitation).map(Some);
            }
            Message::ChooseParityCall(call) => return self.answer(&card, request, call).map(Some),
            Message::GameOver(over) => self.remember(&card, request, over)?,
            Message::GameError(error) => self.show_error(request, &error)?,
            Message::ChooseMoveCall(_) => {
                return Err(Denial::not_taken(self.kind(), "another game"));
            }
            // From the manager.
            notice @ (Message::RoundAnnouncement(_)
            | Message::LeagueStandingsUpdate(_)
            | Message::RoundCompleted(_)
            | Message::LeagueCompleted(_)
            | Message::LeagueError(_)) => {
                self.session.check_manager(request)?;
                self.hear(&card, notice);
            }
            other @ (Message::RefereeRegisterRequest(_)
            | Message::RefereeRegisterResponse(_)
            | Message::LeagueRegisterRequest(_)
            | Message::LeagueRegisterResponse(_)
            | Message::StartLeague(_)
            | Message::LeagueStatus(_)
            | Message::LeagueControl(_)
            | Message::GameJoinAck(_)
            | Message::ChooseParityResponse(_)
            | Message::ChooseMoveResponse(_)
            | Message::MatchResultReport(_)
            | Message::MatchResultAck(_)
            | Message::LeagueQuery(_)
            | Message::LeagueQueryResponse(_)) => {
                return Err(Denial::not_taken(self.kind(), other.name()));
            }
        }
        Ok(None)
    }

    fn refused(&self, packet: &Packet, peer: IpAddr, refusal: &Refusal) {
        self.warn(&screen::refusal(packet, peer, refusal));
    }

    fn toolbox(&self) -> Toolbox<'_> {
        let mut tools = vec![Tool::shows(
            "get_player_state",
            "The player's id, state, strategy, record and all its results so far.",
            |_: Nothing, _| Ok(self.state()),
        )];
        if self.by_hand.is_some() {
            tools.push(Tool::shows(
                "next_turn",
                by_hand::NEXT_TURN,
                |asked: NextTurn, peer| {
                    let by_hand = self.check_hand(asked.auth_token.as_deref(), peer)?;
                    Ok(by_hand.next_turn())
                },
            ));
            tools.push(Tool::does(
                "make_choice",
                by_hand::MAKE_CHOICE,
                |made: MakeChoice, peer| {
                    let by_hand = self.check_hand(made.auth_token.as_deref(), peer)?;
                    Ok(by_hand.make_choice(&made.match_id, &made.choice.0)?)
                },
            ));
        }
        let instructions = match self.by_hand {
            Some(_) => by_hand::INSTRUCTIONS,
            None => INSTRUCTIONS,
        };
        Toolbox {
            instructions,
            lists_messages: self.by_hand.is_none(),
            tools,
        }
    }

    fn health(&self) -> Value {
        self.session.health()
    }
}

impl Participant for Player {
    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop> {
        decision::show_panics();
        if fresh {
            let checks_tokens = self
                .session
                .program
                .config
                .system
                .security
                .enable_auth_tokens;
            *lock(&self.invitations) = Invitations::new(checks_tokens); // those of an older league are nothing
        }
        let folder = self
            .session
            .program
            .data
            .join("players")
            .join(&card.agent_id);
        *lock(&self.history) = Some(History::open(
            &folder,
            &card.agent_id,
            &card.league_id,
            fresh,
        )?);
        Ok(())
    }
}
