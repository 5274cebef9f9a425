//! A match once more, into one's own `choose`: `ada --again R3M2` builds the turns of a match that
//! was played from the player's history, and calls `choose` with each, without a league. So a
//! choice that was wrong, or that panicked, can be looked at as often as one likes, also under a
//! debugger. Of the past the turn shows what was known then.

use crate::games::{self, Game, Move};
use crate::player::history::HistoryFile;
use crate::player::turn::{Past, Turn, record};
use crate::program;
use crate::program::args::{Args, Stop};
use crate::program::config::Config;
use crate::program::storage::read_json;
use crate::program::terminal::say;
use std::sync::Arc;
use std::time::Instant;

/// The id of the first player of `--mine`.
const FIRST: &str = "P01";

/// Calls `choose` with every turn that the player had in a match.
pub fn run(args: &Args, match_id: &str, choose: impl Fn(&Turn) -> String) -> Result<(), Stop> {
    let match_id = match_id.to_uppercase();
    let (history, at) = find(args, &match_id)?;
    let mut args = args.clone();
    args.set("--league-id", &history.league_id);
    let config = program::load(&args)?;
    let game = games::named(&config.league.game_type);
    let game = game.ok_or_else(|| Stop::failed("the game of its league is unknown here"))?;
    let (seat, moves) = moves(&history.player_id, &history.matches[at])?;
    let last = if game.at_once { 0 } else { moves.len() };
    let is_asked = |n: &usize| game.asked(&moves[..*n]).contains(&seat);
    for n in (0..=last).filter(is_asked) {
        let turn = Turn {
            seed: args.value("--seed")?,
            ..turn(&config, game, &history, at, &moves[..n])
        };
        if !game.at_once {
            say(&turn.position);
        }
        let chosen = choose(&turn);
        let made = moves[n..].iter().find(|made| made.seat == seat);
        let then = made.map_or("there was no answer".into(), |made| {
            format!("it was {}", made.text)
        });
        let is_legal = turn.legal_moves.contains(&chosen);
        let note = if is_legal { "" } else { ", which is not legal" };
        let (number, opponent) = (turn.move_number, &turn.opponent_id);
        say(&format!(
            "{match_id} against {opponent}, move {number}: choose says {chosen}{note}; in the match {then}"
        ));
    }
    Ok(())
}

/// The player's history, and the place of that match in it.
fn find(args: &Args, match_id: &str) -> Result<(HistoryFile, usize), Stop> {
    let id = args.text("--player-id").unwrap_or(FIRST);
    let file = program::data(args).join(format!("players/{id}/history.json"));
    let history: Option<HistoryFile> = read_json(&file);
    let found = history.and_then(|history| {
        let mut matches = history.matches.iter();
        let at = matches.position(|it| it.match_id == match_id)?;
        Some((history, at))
    });
    found.ok_or_else(|| {
        let words = format!("{} has no match {match_id}", file.display());
        let cure = "--player-id and --data name others, --data data/practice those of a practice";
        Stop::failed(format!("{words}; {cure}"))
    })
}

/// The moves of a match, and the seat of the player. In a game by turns whoever moved first has the
/// first seat.
fn moves(player_id: &str, past: &Past) -> Result<(usize, Vec<Move>), Stop> {
    let mut players = [player_id.to_string(), past.opponent_id.clone()];
    let first = past.result.moves.iter().flatten().next();
    let is_second = first.is_some_and(|made| made.player_id != player_id);
    if is_second {
        players.reverse();
    }
    let moves = games::reported(&players, &past.result.choices, &past.result.moves);
    Ok((usize::from(is_second), moves.map_err(Stop::failed)?))
}

/// The turn after these moves.
fn turn(config: &Config, game: &Game, history: &HistoryFile, at: usize, moves: &[Move]) -> Turn {
    let past = &history.matches[at];
    let before = history.matches[..at].to_vec();
    let round = past.match_id.trim_start_matches('R').split('M').next();
    Turn {
        player_id: history.player_id.clone(),
        opponent_id: past.opponent_id.clone(),
        match_id: past.match_id.clone(),
        round_id: round.and_then(|round| round.parse().ok()).unwrap_or(1),
        game_type: game.game_type.into(),
        move_number: moves.len() as u32 + 1,
        position: (game.position)(moves),
        legal_moves: (game.legal)(moves).into_iter().map(String::from).collect(),
        standings: Some(record(&history.player_id, &before)),
        history: Arc::new(before),
        seed: None,
        deadline: Instant::now() + config.system.timeouts.move_timeout_sec,
    }
}
