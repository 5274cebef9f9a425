//! Who referees which match, and what is recorded for a player whom the operator removed.
//!
//! Both are decisions of the league, as all the others are: they read the state and give an event.
//! The round loop (`rounds.rs`) asks for them whenever something has changed.

use crate::games;
use crate::manager::league::{Event, League, Match, MatchAssignment, Member, Recorded};
use crate::protocol::Kind;
use crate::wire::Timestamp;

impl League {
    /// Gives the open matches of a round to the referees that are there, by their capacity. Matches
    /// whose referee is among `present` stay where they are. `token` makes a fresh match token for
    /// a player.
    pub fn assign(
        &self,
        round: u32,
        present: &[String],
        mut token: impl FnMut(&str) -> String,
    ) -> Option<Event> {
        let referees = present.iter().filter_map(|id| self.members.get(id));
        let mut load: Vec<(&Member, u32)> = referees.map(|referee| (referee, 0)).collect();
        let mut orphans = Vec::new();
        for game in self.open_matches(round) {
            let own = |(referee, _): &&mut (&Member, u32)| game.referee() == Some(&referee.id);
            match load.iter_mut().find(own) {
                Some((_, matches)) => *matches += 1,
                None => orphans.push(game),
            }
        }
        let mut assignments = Vec::new();
        for game in orphans {
            let (referee, matches) = load.iter_mut().min_by_key(|(referee, matches)| {
                // How full the referee would be, without fractions: 2520 can be divided by each
                // capacity, 1 to 10.
                (*matches + 1) * 2520 / referee.max_concurrent_matches.max(1)
            })?;
            *matches += 1;
            let tokens = game.players.each_ref().map(|player| {
                let ours = referee.uses_match_tokens;
                if ours { token(player) } else { String::new() }
            });
            assignments.push(MatchAssignment {
                match_id: game.id.clone(),
                referee_id: referee.id.clone(),
                tokens,
            });
        }
        (!assignments.is_empty()).then_some(Event::Assigned { assignments })
    }

    /// The next match of a round in which somebody plays whom the operator removed: it is recorded
    /// without being played. The other player wins; if both were removed, nobody does.
    pub fn walkover(&self, round: u32, at: Timestamp) -> Option<Event> {
        let gone = |player: &String| {
            let is_gone = self.removed.contains(player);
            is_gone.then(|| "was removed by the operator".to_string())
        };
        let lacks = |game: &&Match| game.players.iter().any(|player| gone(player).is_some());
        let game = self.open_matches(round).find(lacks)?;
        let failures = game.players.each_ref().map(gone);
        let outcome = games::forfeit(game.players.clone(), Vec::new(), failures);
        Some(Event::Recorded(Recorded {
            match_id: game.id.clone(),
            referee_id: Kind::Manager.word().into(),
            conversation_id: String::new(),
            result: outcome.for_manager(&self.config.league.scoring),
            at,
        }))
    }
}
