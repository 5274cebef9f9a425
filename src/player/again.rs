//! Plays a match again without a league: `ada --again R3M2` calls `choose` with every turn that the
//! player had in that match, as its history has it. So a wrong choice can be examined, also in a
//! debugger.

use super::Options;
use super::history::HistoryFile;
use super::turn::{PastMatch, Turn, record};
use crate::games::{self, Move};
use crate::program::args::{Args, Exit};
use crate::program::terminal::print_line;
use crate::program::{self, storage};
use std::sync::Arc;

/// Calls `choose` with every turn of a match, and prints its choices.
pub fn run(args: &Args, match_id: &str, options: &Options) -> Result<(), Exit> {
    let player_id = args.text("--player-id").unwrap_or("P01");
    let (past, earlier) = find_match(args, player_id, &match_id.to_uppercase())?;
    let Some(game) = games::find(&past.game_type) else {
        let problem = format!("the game {:?} is unknown", past.game_type);
        return Err(Exit::failure(problem));
    };
    let (seat, moves) = seat_and_moves(player_id, &past)?;

    let first_turn = Turn {
        player_id: player_id.into(),
        opponent_id: past.opponent_id,
        match_id: past.match_id,
        round_id: past.round_id,
        game_type: past.game_type,
        standings: Some(record(player_id, &earlier)),
        history: Arc::new(earlier),
        seed: args.number("--seed", 0..=u64::MAX)?,
        ..Turn::sample()
    };

    // Call `choose` whenever it was our turn.
    let last = if game.simultaneous { 0 } else { moves.len() };
    for n in 0..=last {
        let (before, rest) = moves.split_at(n);
        if !game.players_to_move(before).contains(&seat) {
            continue;
        }

        let legal_moves = (game.legal_moves)(before);
        let turn = Turn {
            move_number: n as u32 + 1,
            position: (game.position)(before),
            legal_moves: legal_moves.into_iter().map(String::from).collect(),
            ..first_turn.clone()
        };

        let choice = (options.choose)(&turn);
        print_choice(
            &turn,
            &choice,
            rest.iter().find(|played| played.seat == seat),
        );
    }
    Ok(())
}

/// Returns a match of the player's history, and the matches before it.
fn find_match(
    args: &Args,
    player_id: &str,
    match_id: &str,
) -> Result<(PastMatch, Vec<PastMatch>), Exit> {
    let path = program::data_folder(args)
        .join("players")
        .join(player_id)
        .join("history.json");
    let history: HistoryFile = storage::read_json(&path).unwrap_or_default();
    for (n, past) in history.matches.iter().enumerate() {
        if past.match_id == match_id {
            return Ok((past.clone(), history.matches[..n].to_vec()));
        }
    }

    let hint = "--player-id and --data name others, --data data/practice those of a practice";
    let problem = format!("{} has no match {match_id}; {hint}", path.display());
    Err(Exit::failure(problem))
}

/// Returns the player's seat and all moves of a match. The player that moved first has seat 0.
fn seat_and_moves(player_id: &str, past: &PastMatch) -> Result<(usize, Vec<Move>), Exit> {
    let mut players = [player_id.to_string(), past.opponent_id.clone()];
    if let Some([first, ..]) = past.result.moves.as_deref()
        && first.player_id != player_id
    {
        players.reverse();
    }

    let moves = games::moves_by_seat(&players, &past.result.choices, &past.result.moves);
    let seat = usize::from(players[0] != player_id);
    Ok((seat, moves.map_err(Exit::failure)?))
}

/// Prints a choice, and the move that was played in the match.
fn print_choice(turn: &Turn, choice: &str, played: Option<&Move>) {
    let played = match played {
        Some(played) => format!("it was {}", played.text),
        None => "there was no answer".into(),
    };

    print_line(&format!(
        "{}\n{} against {}, move {}: choose says {choice}; in the match {played}",
        turn.position, turn.match_id, turn.opponent_id, turn.move_number
    ));
}
