//! Tic-tac-toe from end to end: the finished strategies against each other, a player's answers to its
//! referee, and leagues of real processes, some of which are killed. `scripts/match` has illegal,
//! late and wrong moves, `scripts/results` the manager's checks, and `games.rs` the winners.

use super::support::fake::{self, converse, message_of_line};
use super::support::*;
use crate::players::strategies::{self, Turn};
use league::games::{Game, Move, alternating, tic_tac_toe};
use league::protocol::{GameResult, ResultStatus};
use std::collections::BTreeSet;
use std::fs;

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
    for seed in 0..250 {
        for (rival, name) in ["random", "blocks"].into_iter().enumerate() {
            for (players, rival_id) in [(["perfect", name], "P02"), ([name, "perfect"], "P01")] {
                let winner = play(players, seed).winner_player_id;
                assert_ne!(winner.as_deref(), Some(rival_id), "{name} {seed}");
                won[rival] += usize::from(winner.is_some());
            }
        }
    }
    assert!(
        won[0] > 350 && won[1] < won[0],
        "wins against random and blocks: {won:?}"
    );
}

#[test]
fn blocks_strategy_completes_a_line_or_blocks_one() {
    let rows = [
        ("152", "3"),   // O blocks
        ("1425", "3"),  // X wins
        ("15934", "7"), // O wins
        ("1524", "3"),  // X wins rather than blocking 6
        ("51927", "3"), // O wins rather than blocking 8
    ];
    for (text, expected) in rows {
        for name in ["blocks", "perfect"] {
            let choose = strategies::find(GAME.game_type, name).unwrap();
            assert_eq!(
                choose(&turn(&moves(text), 1)),
                expected,
                "{name} after {text}"
            );
        }
    }
}

/// The calls of a referee, and the answers.
const ASKED: &str = "
manager announces R1M1: ok
true invites R1M1: joins
true asks R1M1 move_number=1 FIRST: 9
true asks R1M1 move_number=3 legal_moves=[\"3\"]: 3
true asks R1M1 move_number=1 legal_moves=[\"3\"]: 9
true asks R9M1 move_number=1 FIRST: E015
strange asks R1M1 move_number=5 FIRST: E012
true asks R1M1 move_number=5 FIRST player_id=P02: E012
true asks R1M1 move_number=5: E003";

#[test]
fn player_answers_each_move_once_and_only_to_its_referee() {
    let (test, manager) = (TestLeague::new(""), fake::manager());
    let kind = "message_type=CHOOSE_MOVE_CALL game_type=tic_tac_toe position=";
    let first = "legal_moves=[\"9\"]";
    let asked = ASKED.replace(" asks ", &format!(" asks {kind} "));
    let player = start_player(&test, &manager, "random");
    converse(&player.url(), &asked.replace("FIRST", first));
    drop(player);

    let player = start_player(&test, &manager, "even"); // it plays only Even/Odd
    converse(
        &player.url(),
        "manager announces R1M1: ok\ntrue invites R1M1: joins",
    );
    let asked = message_of_line(&format!("true asks R1M1 move_number=1 {kind} {first}"));
    let refused = call(&player.url(), "choose_move", asked);
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}

fn start_player(test: &TestLeague, manager: &FakeAgent, strategy: &str) -> TestProcess {
    let arguments = format!("play {strategy} --manager {}", manager.url);
    let player = test.start("player", &arguments);
    player.line("is P01");
    player
}

/// Returns a test league whose league plays tic-tac-toe.
fn test(edits: &str) -> TestLeague {
    let test = TestLeague::new(edits);
    test.play(GAME.game_type);
    test
}

/// Checks that each result follows from its moves. Returns the number of technical losses.
fn check_results(test: &TestLeague, matches: usize) -> usize {
    let recorded = test.events("Recorded");
    assert_eq!(recorded.len(), matches);
    let mut ids = BTreeSet::new();
    let document = test.data("leagues/league_2025_even_odd/league.json");
    let mut technical = 0;
    for event in &recorded {
        let (result, id) = (&event["result"], text_of(&event["match_id"]));
        assert!(ids.insert(id), "{id} has two results");
        if result["details"]["status"] == "TECHNICAL_LOSS" {
            technical += 1;
            continue;
        }
        let played = list_of(&result["details"]["moves"]);
        let texts: Vec<&str> = played.iter().map(|made| text_of(&made["move"])).collect();
        let players = [0, 1].map(|n| text_of(&played[n]["player_id"]).to_string());
        let moves = alternating(&texts);
        let outcome = GAME.replay(&players, &moves, None).unwrap();
        assert_eq!(json!(outcome.winner_player_id), result["winner"], "{event}");
        let position = (GAME.position)(&moves);
        assert_eq!(document["positions"][id], position, "the page shows it");
    }
    technical
}

#[test]
fn finished_players_and_the_python_template_play_a_league() {
    let test = test("");
    let mut names = "perfect,perfect,blocks".to_string();
    if has_python() {
        let template = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/player.py");
        names = format!("{names},{PYTHON} {template}");
    }
    let players = names.split(',').count();
    let output = test.local(&format!("--players {players} --cycles 2 --mine `{names}`"));
    check_contains(&output, "the average player, which gets");
    let data = test.folder.join("data");
    fs::rename(data.join("practice/leagues"), data.join("leagues")).unwrap();
    assert_eq!(check_results(&test, players * (players - 1)), 0);
    let mut table = test.table();
    table.retain(|row| row["player_id"] == "P01" || row["player_id"] == "P02");
    let losses: Vec<Value> = table.iter().map(|row| row["losses"].clone()).collect();
    assert_eq!(losses, [0, 0], "the perfect player loses no match");
}

/// Returns true for a call after the second move.
fn is_later_move(call: &Value) -> bool {
    call["move_number"].as_u64() > Some(2)
}

#[test]
fn killed_agents_lose_no_results() {
    let test = test("system timeouts.move_timeout_sec=60");
    let mut manager = test.serve("");
    let gate = Gate::default();
    let slow = gate.clone();
    let peer = FakeAgent::new(move |request| {
        if is_later_move(&request["params"]) {
            slow.pass();
        }
        valid_reply("P01", "", request)
    });
    let url = manager.url();
    register_player(&url, "P01", &peer.url);
    let others = ["P02", "P03", "P04"].map(|id| test.agent(&manager, id, "play blocks"));
    let [mut first, second] = ["REF01", "REF02"].map(|id| test.agent(&manager, id, ""));
    for agent in others.iter().chain([&first, &second]) {
        agent.line(" is ");
    }
    test.order("start", &url);
    wait_until("a match is in the middle", || {
        peer.received("CHOOSE_MOVE_CALL").iter().any(is_later_move)
    });
    first.kill();
    manager.restart(&test, "serve");
    let _first = test.agent(&manager, "REF01", "");
    gate.open();
    let [mut player, _third, _fourth] = others;
    player.kill(); // it loses technically from now on
    manager.wait_for_success();
    check_results(&test, 6); // each match once
}
