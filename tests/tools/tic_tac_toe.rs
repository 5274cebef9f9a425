//! Tic-tac-toe from end to end: the finished strategies against each other; a player's answers to its
//! referee and leagues of real processes are scripts (`tests/scripts/tic_tac_toe`). `scripts/match`
//! has illegal, late and wrong moves, `scripts/results` the manager's checks, and `games.rs` the
//! winners.

use super::support::{json, rows, story};
use crate::players::strategies::{self, Turn};
use league::games::{Game, Move, alternating, tic_tac_toe};
use league::protocol::{GameResult, ResultStatus};

const GAME: &Game = &tic_tac_toe::GAME;

/// Returns the turn of the player to move.
fn turn(moves: &[Move], seed: u64) -> Turn {
    Turn {
        game_type: GAME.game_type.into(),
        player_id: ["P01", "P02"][moves.len() % 2].into(),
        move_number: moves.len() as u32 + 1,
        position: (GAME.position)(moves),
        legal_moves: (GAME.legal_moves)(moves)
            .into_iter()
            .map(String::from)
            .collect(),
        seed: Some(seed),
        ..Turn::sample()
    }
}

/// Plays a game between two finished strategies.
fn play(players: [&str; 2], seed: u64) -> GameResult {
    let mut moves = Vec::new();
    while let [seat] = GAME.players_to_move(&moves)[..] {
        let choose = strategies::find(GAME.game_type, players[seat]).unwrap();
        let choice = json!(choose(&turn(&moves, seed)));
        let text = GAME.parse_move(&moves, &choice).unwrap().to_string();
        moves.push(Move { seat, text });
    }
    GAME.judge(&["P01".into(), "P02".into()], &moves, None)
}

/// Returns moves that are written as one digit each.
fn moves(text: &str) -> Vec<Move> {
    let texts: Vec<&str> = text.split_terminator("").skip(1).collect();
    alternating(&texts)
}

#[test]
fn perfect_strategy_never_loses_and_draws_against_itself() {
    for seed in 0..25 {
        let result = play(["perfect", "perfect"], seed);
        assert_eq!(result.status, ResultStatus::Draw, "{result:?}");
    }
    let mut won = [0, 0];
    for seed in 0..60 {
        for (rival, name) in ["random", "blocks"].into_iter().enumerate() {
            for (players, rival_id) in [(["perfect", name], "P02"), ([name, "perfect"], "P01")] {
                let winner = play(players, seed).winner_player_id;
                assert_ne!(winner.as_deref(), Some(rival_id), "{name} {seed}");
                won[rival] += usize::from(winner.is_some());
            }
        }
    }
    assert!(
        won[0] > 84 && won[1] < won[0],
        "wins against random and blocks: {won:?}"
    );
}

/// Moves, and the next one.
const LINES: &str = "
152 | 3 | O blocks
1425 | 3 | X wins
15934 | 7 | O wins
1524 | 3 | X wins rather than blocking 6
51927 | 3 | O wins rather than blocking 8";

#[test]
fn blocks_strategy_completes_a_line_or_blocks_one() {
    for [text, expected, _] in rows(LINES) {
        for name in ["blocks", "perfect"] {
            let choose = strategies::find(GAME.game_type, name).unwrap();
            let choice = choose(&turn(&moves(text), 1));
            assert_eq!(choice, expected, "{name} after {text}");
        }
    }
}

#[test]
fn tic_tac_toe_golden() {
    story::run("tic_tac_toe");
}
