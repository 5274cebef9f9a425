//! Plays a match again without a league: `ada --again R3M2` calls `choose` with every turn that the
//! player had in that match, as its history has it. So a wrong choice can be examined, also in a
//! debugger.

use crate::games;
use crate::player::Strategy;
use crate::player::history::HistoryFile;
use crate::player::turn::{Turn, record};
use crate::program::args::{Args, Exit};
use crate::program::terminal::print_line;
use crate::program::{self, storage};
use std::sync::Arc;

/// Calls `choose` with every turn of a match.
pub fn run(args: &Args, match_id: &str, strategy: &Strategy) -> Result<(), Exit> {
    // Find the match in the history.
    let player_id = args.text("--player-id").unwrap_or("P01");
    let path = program::data(args).join(format!("players/{player_id}/history.json"));
    let history: HistoryFile = storage::read_json(&path).unwrap_or_default();
    let match_id = match_id.to_uppercase();
    let Some(n) = history
        .matches
        .iter()
        .position(|past| past.match_id == match_id)
    else {
        let hint = "--player-id and --data name others, --data data/practice those of a practice";
        let path = path.display();
        return Err(Exit::failed(format!(
            "{path} has no match {match_id}; {hint}"
        )));
    };
    let past = &history.matches[n];
    let earlier = history.matches[..n].to_vec();
    let Some(game) = games::find(&past.game_type) else {
        return Err(Exit::failed(format!(
            "the game {:?} is unknown",
            past.game_type
        )));
    };

    // The player that moved first has seat 0.
    let mut players = [player_id.to_string(), past.opponent_id.clone()];
    if let Some([first, ..]) = past.result.moves.as_deref()
        && first.player_id != player_id
    {
        players.reverse();
    }
    let seat = usize::from(players[0] != player_id);
    let moves = games::moves_by_seat(&players, &past.result.choices, &past.result.moves);
    let moves = moves.map_err(Exit::failed)?;

    // Call `choose` whenever it was our turn.
    let last = if game.simultaneous { 0 } else { moves.len() };
    for n in 0..=last {
        let before = &moves[..n];
        if !game.players_to_move(before).contains(&seat) {
            continue;
        }
        let legal_moves = (game.legal_moves)(before);
        let turn = Turn {
            player_id: player_id.into(),
            opponent_id: past.opponent_id.clone(),
            match_id: match_id.clone(),
            round_id: past.round_id,
            game_type: past.game_type.clone(),
            move_number: n as u32 + 1,
            position: (game.position)(before),
            legal_moves: legal_moves.into_iter().map(String::from).collect(),
            standings: Some(record(player_id, &earlier)),
            history: Arc::new(earlier.clone()),
            seed: args.value("--seed")?,
            ..Turn::sample()
        };
        let chosen = (strategy.choose)(&turn);

        // Compare it with the move that was played.
        let then = match moves[n..].iter().find(|played| played.seat == seat) {
            Some(played) => format!("it was {}", played.text),
            None => "there was no answer".into(),
        };
        let (position, opponent_id) = (&turn.position, &past.opponent_id);
        let turn = format!("{match_id} against {opponent_id}, move {}", n + 1);
        print_line(&format!(
            "{position}\n{turn}: choose says {chosen}; in the match {then}"
        ));
    }
    Ok(())
}
