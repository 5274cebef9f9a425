//! What a referee does with what it is sent: one `match` over all messages, and its two tools. Every request but a look
//! at a match must prove the manager, by the referee's own token.

use crate::net::agent::{Agent, Denial, Request};
use crate::net::client::ok;
use crate::net::retry::SHOWN;
use crate::object;
use crate::program::terminal::{complain, say};
use crate::protocol::*;
use crate::referee::Referee;
use crate::wire::{Wire, cut};
use serde_json::Value;
use std::net::IpAddr;

object! {
    /// What `get_match_state` shows: choices and result only after the draw.
    MatchShown {
        match_id: String, round_id: u32, player_A_id: String, player_B_id: String, state: MatchState,
        result: Option<GameResult>,
    }
}

impl Agent for Referee {
    fn kind(&self) -> Kind {
        Kind::Referee
    }

    fn handle(&self, request: &Request, message: Message) -> Result<Option<Message>, Denial> {
        self.session.check_manager(request)?;
        match message {
            Message::RoundAnnouncement(round) => {
                let our_endpoint = &self.session.program.endpoint;
                self.assignments.announced(round, our_endpoint)?;
            }
            Message::LeagueCompleted(_) => {
                self.assignments.league_is_over();
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

    fn tool(&self, tool: Tool, arguments: &Value, _: IpAddr) -> Result<Value, Denial> {
        match tool {
            Tool::StartMatch => {
                let given = StartMatch::read(arguments).map_err(Refusal::from)?;
                self.start_match(given)
            }
            Tool::GetMatchState => {
                let asked = GetMatchState::read(arguments).map_err(Refusal::from)?;
                self.match_state(asked.match_id)
            }
            _ => {
                let words = format!("Method not found: a referee does not take {tool}");
                Err(Denial::rpc(-32601, words))
            }
        }
    }

    fn answer_schema(&self, tool: Tool) -> Option<Value> {
        (tool == Tool::GetMatchState).then(MatchShown::schema)
    }

    fn health(&self) -> Value {
        self.session.health()
    }

    fn instructions(&self) -> &'static str {
        "This is a referee of the AI Agent League: it plays matches between two players and reports them to the league \
         manager. get_match_state only looks: it shows how far a match has come, and after the draw its choices and \
         result. Everything else is for the league manager alone and needs the referee's own token. A refusal comes as \
         a tool error that says what is wrong."
    }
}

impl Referee {
    /// One match, handed over without an announcement.
    fn start_match(&self, given: StartMatch) -> Result<Value, Denial> {
        self.session.check_token(given.auth_token.as_deref())?;
        let ours = self.session.wait_for_card()?.league_id;
        if given.league_id != ours {
            let but = format_args!("expected {ours:?}");
            return Err(Refusal::got(Code::E003, "league_id", &given.league_id, but).into());
        }
        let announcement = RoundAnnouncement {
            league_id: given.league_id,
            round_id: given.round_id,
            matches: vec![given.r#match],
            match_token: None,
        };
        let our_endpoint = &self.session.program.endpoint;
        self.assignments.announced(announcement, our_endpoint)?;
        Ok(ok())
    }

    fn match_state(&self, match_id: String) -> Result<Value, Denial> {
        let Some(assignment) = self.assignments.find(&match_id) else {
            let but = "which is not a match of this referee";
            return Err(Refusal::got(Code::E015, "match_id", &match_id, but).into());
        };
        let entry = assignment.given.r#match.clone();
        let live = assignment.live().clone();
        Ok(serde_json::to_value(MatchShown {
            match_id,
            round_id: assignment.given.round_id,
            player_A_id: entry.player_A_id,
            player_B_id: entry.player_B_id,
            state: live.state,
            result: live.result,
        })?)
    }
}
