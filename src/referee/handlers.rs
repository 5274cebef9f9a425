//! What a referee does with what it is sent: one `match` over all messages, and its two tools.
//! Every request but a look at a match must prove the manager, by the referee's own token. A
//! handler only hands a match over (`assignments.rs`): it is played in another thread
//! (`src/referee.rs`).

use crate::net::agent::{Agent, Denial, Done, Request, Tool, Toolbox};
use crate::net::retry::SHOWN;
use crate::object;
use crate::program::server::FAREWELL;
use crate::program::terminal::{complain, say};
use crate::protocol::*;
use crate::referee::Referee;
use crate::referee::assignments::Assignment;
use crate::wire::cut;
use serde_json::Value;

/// What a model should know of a referee before it calls a tool.
const INSTRUCTIONS: &str = "This is a referee of the AI Agent League: it plays matches between two \
    players and reports them to the league manager. get_match_state only looks: it shows how far a \
    match has come, and after the draw its choices and result. Everything else is for the league \
    manager alone and needs the referee's own token. A refusal comes as a tool error that says \
    what is wrong.";

object! {
    /// The arguments of `get_match_state`.
    GetMatchState { match_id: String, }
    /// What `get_match_state` shows: choices and result only after the draw.
    MatchShown {
        match_id: String, round_id: u32, player_A_id: String, player_B_id: String,
        state: MatchState,
        result: Option<GameResult>,
    }
}

impl Agent for Referee {
    fn kind(&self) -> Kind {
        Kind::Referee
    }

    fn handle(&self, request: &Request, message: Message) -> Result<Option<Message>, Denial> {
        let token = request.envelope.auth_token.as_deref();
        self.session.check_manager(token)?;
        match message {
            Message::RoundAnnouncement(round) => {
                let here = &self.session.program.endpoint;
                self.assignments.change(|all| all.announced(round, here))?;
            }
            Message::LeagueCompleted(_) => {
                self.assignments.lock().outbox.clear();
                // The manager has recorded the last report, but its answer may still be on the way.
                drop(self.is_reporting.wait_until(FAREWELL, |is| !is));
                if self.session.league_is_over() {
                    say("the league is over"); // once, though the notice may come twice
                }
            }
            Message::LeagueError(error) => {
                let words = cut(&error.explain(), SHOWN);
                complain(&format!("the league manager says: {words}"));
            }
            // For information only.
            Message::RoundCompleted(_) | Message::GameError(_) => {}
            // Not sent to a referee: refused before.
            Message::RefereeRegisterRequest(_)
            | Message::RefereeRegisterResponse(_)
            | Message::LeagueRegisterRequest(_)
            | Message::LeagueRegisterResponse(_)
            | Message::StartLeague(_)
            | Message::LeagueStatus(_)
            | Message::LeagueControl(_)
            | Message::GameInvitation(_)
            | Message::GameJoinAck(_)
            | Message::ChooseParityCall(_)
            | Message::ChooseParityResponse(_)
            | Message::ChooseMoveCall(_)
            | Message::ChooseMoveResponse(_)
            | Message::GameOver(_)
            | Message::MatchResultReport(_)
            | Message::MatchResultAck(_)
            | Message::LeagueStandingsUpdate(_)
            | Message::LeagueQuery(_)
            | Message::LeagueQueryResponse(_) => {}
        }
        Ok(None)
    }

    fn toolbox(&self) -> Toolbox<'_> {
        Toolbox {
            instructions: INSTRUCTIONS,
            lists_messages: true,
            tools: vec![
                Tool {
                    only_shows: false,
                    ..Tool::new(
                        "start_match",
                        "The manager hands one match to the referee, with the referee's own token. \
                            Answered {\"status\":\"ok\"}.",
                        |given, _| self.start_match(given),
                    )
                },
                Tool::new(
                    "get_match_state",
                    "How far a match of this referee has come; choices and result only after the draw.",
                    |asked: GetMatchState, _| self.match_state(asked.match_id),
                ),
            ],
        }
    }

    fn health(&self) -> Value {
        self.session.health()
    }
}

impl Referee {
    /// One match, handed over without an announcement.
    fn start_match(&self, given: StartMatch) -> Result<Done, Denial> {
        self.session.check_manager(given.auth_token.as_deref())?;
        let ours = self.session.wait_for_card()?.league_id;
        if given.league_id != ours {
            let but = format_args!("expected {ours:?}");
            return Err(Refusal::got(Code::E003, "league_id", &given.league_id, but).into());
        }
        let taken = Assignment::new(&given.league_id, given.round_id, given.r#match);
        let new = taken.map_err(|fault| Refusal::from(fault.under("match")))?;
        self.assignments.change(|all| all.take(new));
        let status = "ok".into();
        Ok(Done { status })
    }

    fn match_state(&self, match_id: String) -> Result<MatchShown, Denial> {
        let all = self.assignments.lock();
        let Some(known) = all.known.get(&match_id) else {
            let but = "which is not a match of this referee";
            return Err(Refusal::got(Code::E015, "match_id", &match_id, but).into());
        };
        let [a, b] = known.players.clone();
        Ok(MatchShown {
            match_id,
            round_id: known.round_id,
            player_A_id: a,
            player_B_id: b,
            state: known.state,
            result: known.result.clone(),
        })
    }
}
