//! What we send. Some of it is wrong on purpose: so it is no `Message` but JSON, in which ' stands for ". The envelope is
//! that of all our messages, signed by the league manager, unless a body says otherwise. The agent is P90 or REF90: no
//! league gives these ids, so it finds none of its old files, and spoils none. A player meets P91, whom nobody plays.

use super::*;

/// The body of a message, by its type.
macro_rules! bodies {
    ($type:ident: $($name:ident $body:literal;)*) => { match $type { $($name::NAME => format!($body),)* _ => String::new() } };
}

impl Exam {
    /// A message of ours in the n-th match, with more fields, or with others.
    pub fn message(&self, message_type: &str, n: u32, more: &str) -> Value {
        let ([manager, p91, p92], agent, [conversation, token]) =
            (&self.urls, self.endpoint(), self.game(n));
        let [own, of_p91, of_p92] =
            [&*self.kind().numbered(90), "P91", "P92"].map(|id| self.token(id));
        let (now, none) = (Timestamp::now(), "{'wins': 0, 'losses': 0, 'draws': 0}");
        let deadline = now.plus(self.program.config.system.timeouts.move_timeout_sec.0);
        let is_in = format!(
            "'status': 'ACCEPTED', 'auth_token': '{own}', 'reason': null, 'proves_itself': true"
        );
        let of_match = format!(
            "'round_id': {n}, 'match_id': 'R{n}M1', 'conversation_id': '{conversation}', 'auth_token': '{token}'"
        );
        let game = format!("'sender': 'referee:REF91', {of_match}");
        let a = format!(
            "'player_A_id': 'P91', 'player_A_endpoint': '{p91}', 'player_A_token': '{of_p91}', 'player_A_standings': {none}"
        );
        let b = format!(
            "'player_B_id': 'P92', 'player_B_endpoint': '{p92}', 'player_B_token': '{of_p92}', 'player_B_standings': {none}"
        );
        let entry = match self.kind() {
            Kind::Referee => format!("'referee_endpoint': '{agent}', {a}, {b}"),
            _ => format!(
                "'referee_endpoint': '{manager}', 'player_A_id': 'P90', 'player_B_id': 'P91'"
            ),
        };
        let row = "'player_id': 'P90', 'display_name': 'Agent', 'points': 3";
        let body = bodies! { message_type:
            RefereeRegisterResponse "{is_in}, 'referee_id': 'REF90'";
            LeagueRegisterResponse  "{is_in}, 'player_id': 'P90'";
            LeagueQueryResponse     "'success': false, 'error': {{'error_code': 'E003', 'error_name': 'MISSING_REQUIRED_FIELD', 'error_description': 'no league'}}";
            RoundAnnouncement       "'auth_token': '{own}', 'round_id': {n}, 'match_token': '{token}', 'matches': [{{'match_id': 'R{n}M1', 'game_type': 'even_odd', {entry}}}]";
            GameInvitation          "{game}, 'player_id': 'P90', 'opponent_id': 'P91', 'role_in_match': 'PLAYER_A', 'game_type': 'even_odd'";
            GameJoinAck             "'accept': true, 'arrival_timestamp': '{now}'";
            ChooseParityCall        "{game}, 'player_id': 'P90', 'game_type': 'even_odd', 'deadline': '{deadline}', 'context': {{'opponent_id': 'P91', 'round_id': {n}}}";
            ChooseParityResponse    "'parity_choice': 'even'";
            GameError               "{game}, 'player_id': 'P90', 'affected_player': 'P90', 'action_required': 'CHOOSE_PARITY_RESPONSE', 'error_code': 'E001', 'error_description': 'TIMEOUT_ERROR', 'consequence': 'none: an examination'";
            GameOver                "{game}, 'game_type': 'even_odd', 'game_result': {{'status': 'WIN', 'winner_player_id': 'P90', 'drawn_number': 8, 'number_parity': 'even', 'choices': {{'P90': 'even', 'P91': 'odd'}}, 'reason': 'P90 chose even, number was 8 (even)'}}";
            MatchResultAck          "'status': 'recorded'";
            LeagueStandingsUpdate   "'auth_token': '{own}', 'round_id': 1";
            RoundCompleted          "'auth_token': '{own}', 'round_id': 1, 'matches_completed': 1, 'next_round_id': null, 'summary': {{'total_matches': 1, 'wins': 1, 'draws': 0, 'technical_losses': 0}}";
            LeagueCompleted         "'auth_token': '{own}', 'total_rounds': 1, 'total_matches': 1, 'champion': {{{row}}}, 'final_standings': [{{'rank': 1, {row}}}]";
        };
        let about = About {
            conversation_id: "conv-check".into(),
            ..About::default()
        };
        let mut whole = serde_json::to_value(self.program.client.envelope(message_type, &about))
            .unwrap_or_default();
        let body: Packet = serde_json::from_str(&format!("{{{body}{more}}}").replace('\'', "\""))
            .unwrap_or_default();
        body.into_iter().for_each(|(key, value)| whole[key] = value);
        whole
    }

    /// The token that somebody has of us.
    pub fn token(&self, id: &str) -> String {
        token(id, &self.secret)
    }

    /// The conversation and the token of a player's n-th match.
    pub fn game(&self, n: u32) -> [String; 2] {
        [
            format!("conv-r{n}m1-{}", &self.secret[..8]),
            token("P90", &format!("{}{n}", self.secret)),
        ]
    }
}
