//! Plays a match again without a league: `ada --again R3M2` calls `choose` with every turn that the
//! player had in that match, as its history has it. So a wrong choice can be examined, also in a
//! debugger.

use super::Options;
use super::history::HistoryFile;
use super::turn::{PastMatch, Turn, record};
use crate::games::{self, Game, Move};
use crate::program::args::{Args, Exit};
use crate::program::terminal::print_line;
use crate::program::{self, storage};
use std::sync::Arc;

/// Calls `choose` with every turn of a match.
pub fn run(args: &Args, match_id: &str, options: &Options) -> Result<(), Exit> {
    let played = PlayedMatch::find(args, &match_id.to_uppercase())?;
    let (game, moves) = (played.game, &played.moves);

    let last = if game.simultaneous { 0 } else { moves.len() };
    for n in 0..=last {
        if !game.players_to_move(&moves[..n]).contains(&played.seat) {
            continue;
        }
        let turn = played.turn(n);
        let chosen = (options.choose)(&turn);

        // Compare it with the move that was played.
        let then = match moves[n..]
            .iter()
            .find(|played_move| played_move.seat == played.seat)
        {
            Some(played) => format!("it was {}", played.text),
            None => "there was no answer".into(),
        };
        print_line(&format!(
            "{}\n{} against {}, move {}: choose says {chosen}; in the match {then}",
            turn.position, turn.match_id, turn.opponent_id, turn.move_number
        ));
    }
    Ok(())
}

/// A match of the history, as its moves were played.
struct PlayedMatch {
    player_id: String,
    past: PastMatch,
    /// The matches before it.
    earlier: Arc<Vec<PastMatch>>,
    game: &'static Game,
    /// The player's seat: the player that moved first has seat 0.
    seat: usize,
    moves: Vec<Move>,
    seed: Option<u64>,
}

impl PlayedMatch {
    /// Finds a match in the history of the player that the arguments name.
    fn find(args: &Args, match_id: &str) -> Result<PlayedMatch, Exit> {
        let player_id = args.text("--player-id").unwrap_or("P01");
        let path = program::data_folder(args).join(format!("players/{player_id}/history.json"));
        let history: HistoryFile = storage::read_json(&path).unwrap_or_default();
        let position = history
            .matches
            .iter()
            .position(|past| past.match_id == match_id);
        let Some(index) = position else {
            let hint =
                "--player-id and --data name others, --data data/practice those of a practice";
            let path = path.display();
            return Err(Exit::failed(format!(
                "{path} has no match {match_id}; {hint}"
            )));
        };

        let past = history.matches[index].clone();
        let Some(game) = games::find(&past.game_type) else {
            return Err(Exit::failed(format!(
                "the game {:?} is unknown",
                past.game_type
            )));
        };
        let mut players = [player_id.to_string(), past.opponent_id.clone()];
        if let Some([first, ..]) = past.result.moves.as_deref()
            && first.player_id != player_id
        {
            players.reverse();
        }
        let moves = games::moves_by_seat(&players, &past.result.choices, &past.result.moves);
        Ok(PlayedMatch {
            player_id: player_id.into(),
            earlier: Arc::new(history.matches[..index].to_vec()),
            game,
            seat: usize::from(players[0] != player_id),
            moves: moves.map_err(Exit::failed)?,
            past,
            seed: args.number("--seed", 0..=u64::MAX)?,
        })
    }

    /// Returns the turn after `n` moves.
    fn turn(&self, n: usize) -> Turn {
        let (game, past, before) = (self.game, &self.past, &self.moves[..n]);
        let legal_moves = (game.legal_moves)(before);
        Turn {
            player_id: self.player_id.clone(),
            opponent_id: past.opponent_id.clone(),
            match_id: past.match_id.clone(),
            round_id: past.round_id,
            game_type: past.game_type.clone(),
            move_number: n as u32 + 1,
            position: (game.position)(before),
            legal_moves: legal_moves.into_iter().map(String::from).collect(),
            standings: Some(record(&self.player_id, &self.earlier)),
            history: Arc::clone(&self.earlier),
            seed: self.seed,
            ..Turn::sample()
        }
    }
}
