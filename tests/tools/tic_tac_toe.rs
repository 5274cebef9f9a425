//! Tic-tac-toe from end to end: the finished players against each other, what a player answers to
//! its referee, and leagues over real processes, some of which are killed. What a referee makes of
//! illegal, late and wrong moves is told in `scripts/match.txt`, what the manager believes in
//! `scripts/results.txt`; who wins is tabled in `games.rs`.

use super::support::stand_in::{self, converse, spoken};
use super::support::*;
use crate::strategies::{self, Turn};
use league::games::{Game, Move, alternating, tic_tac_toe};
use league::protocol::{GameResult, ResultStatus};
use std::collections::BTreeSet;
use std::fs;

const GAME: &Game = &tic_tac_toe::GAME;

/// The turn of whoever moves next.
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

/// A game between two of the finished players.
fn played(players: [&str; 2], seed: u64) -> GameResult {
    let mut made = Vec::new();
    while let [seat] = GAME.players_to_move(&made)[..] {
        let choose = strategies::find(GAME.game_type, players[seat]).unwrap();
        let chosen = choose(&turn(&made, seed));
        let text = GAME.parse_move(&made, &json!(chosen)).unwrap().to_string();
        made.push(Move { seat, text });
    }
    GAME.judge(&["P01".into(), "P02".into()], &made, None)
}

/// Moves written as one digit each.
fn made(text: &str) -> Vec<Move> {
    let texts: Vec<&str> = text.split_terminator("").skip(1).collect();
    alternating(&texts)
}

#[test]
fn the_perfect_player_never_loses_and_against_itself_always_draws() {
    for seed in 0..25 {
        let itself = played(["perfect", "perfect"], seed);
        assert_eq!(itself.status, ResultStatus::Draw, "{itself:?}");
    }
    let mut won = [0, 0];
    for seed in 0..250 {
        for (rival, name) in ["random", "blocks"].into_iter().enumerate() {
            let [first, second] = [["perfect", name], [name, "perfect"]].map(|it| played(it, seed));
            assert!(
                first.winner_player_id.as_deref() != Some("P02")
                    && second.winner_player_id.as_deref() != Some("P01"),
                "{name} {seed}"
            );
            let winners = [&first, &second].map(|it| usize::from(it.winner_player_id.is_some()));
            won[rival] += winners.iter().sum::<usize>();
        }
    }
    assert!(won[0] > 350 && won[1] < won[0], "it wins, too: {won:?}");
}

#[test]
fn blocks_wins_where_it_can_and_else_blocks() {
    let rows = [
        ("152", "3"),   // O blocks
        ("1425", "3"),  // X wins
        ("15934", "7"), // O wins
        ("1524", "3"),  // X wins rather than blocking 6
        ("51927", "3"), // O wins rather than blocking 8
    ];
    for (text, wanted) in rows {
        for name in ["blocks", "perfect"] {
            let chosen = strategies::find(GAME.game_type, name).unwrap()(&turn(&made(text), 1));
            assert_eq!(chosen, wanted, "{name} after {text}");
        }
    }
}

/// What it is asked, and what it answers: each move once, and only to its referee.
const ASKED: &str = "
true invites R1M1: joins
true asks R1M1 move_number=1 FIRST: 9
true asks R1M1 move_number=3 legal_moves=[\"3\"]: 3
true asks R1M1 move_number=1 legal_moves=[\"3\"]: 9
true asks R9M1 move_number=1 FIRST: E015
strange asks R1M1 move_number=5 FIRST: E012
true asks R1M1 move_number=5 FIRST player_id=P02: E012
true asks R1M1 move_number=5: E003
true asks R1M1 move_number=9999 FIRST: E015";

#[test]
fn a_player_answers_each_move_once_and_only_to_its_referee() {
    let (world, manager) = (World::new(""), stand_in::manager());
    let start = |strategy| {
        let arguments = format!("play {strategy} --manager {}", manager.url);
        let player = world.start("player", &arguments);
        player.line("is P01");
        player
    };
    let kind = "message_type=CHOOSE_MOVE_CALL game_type=tic_tac_toe position=";
    let first = "legal_moves=[\"9\"]";
    let asked = ASKED.replace(" asks ", &format!(" asks {kind} "));
    let player = start("random");
    converse(&player.url(), &asked.replace("FIRST", first));
    drop(player);

    let player = start("even"); // it plays only Even/Odd
    let asked = spoken(&format!("true asks R1M1 move_number=1 {kind} {first}"));
    let refused = call(&player.url(), "choose_move", asked);
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}

/// A world whose league plays tic-tac-toe.
fn world(edits: &str) -> World {
    let world = World::new(edits);
    world.play(GAME.game_type);
    world
}

/// All results, each of which must follow from its moves; how often somebody lost technically.
fn check_results(world: &World, matches: usize) -> usize {
    let recorded = world.events("Recorded");
    assert_eq!(recorded.len(), matches);
    let mut ids = BTreeSet::new();
    let document = world.data("leagues/league_2025_even_odd/league.json");
    let mut technical = 0;
    for event in &recorded {
        let (result, id) = (&event["result"], text_of(&event["match_id"]));
        assert!(ids.insert(id), "{id} has two results");
        if result["details"]["status"] == "TECHNICAL_LOSS" {
            technical += 1;
            continue;
        }
        let made = list_of(&result["details"]["moves"]);
        let texts: Vec<&str> = made.iter().map(|it| text_of(&it["move"])).collect();
        let players = [0, 1].map(|n| text_of(&made[n]["player_id"]).to_string());
        let moves = alternating(&texts);
        let outcome = GAME.replay(&players, &moves, None).unwrap();
        assert_eq!(json!(outcome.winner_player_id), result["winner"], "{event}");
        let position = (GAME.position)(&moves);
        assert_eq!(document["positions"][id], position, "the page shows it");
    }
    technical
}

#[test]
fn a_league_is_played_by_the_finished_players_and_the_python_template() {
    let world = world("");
    let mut names = "perfect,perfect,blocks".to_string();
    if has_python() {
        let template = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/player.py");
        names = format!("{names},python3 {template}");
    }
    let players = names.split(',').count();
    let output = world.local(&format!("--players {players} --cycles 2 --mine `{names}`"));
    check_says(&output, "is what the average player gets)");
    let data = world.folder.join("data");
    fs::rename(data.join("practice/leagues"), data.join("leagues")).unwrap();
    assert_eq!(check_results(&world, players * (players - 1)), 0);
    let mut table = world.table();
    table.retain(|row| row["player_id"] == "P01" || row["player_id"] == "P02");
    let losses = table.iter().map(|row| row["losses"].clone());
    let losses: Vec<Value> = losses.collect();
    assert_eq!(losses, [0, 0], "the perfect player loses no match");
}

#[test]
fn agents_that_are_killed_in_a_match_lose_nothing_but_time() {
    let world = world("system timeouts.move_timeout_sec=60");
    let mut manager = world.serve("");
    let gate = Gate::default();
    let slow = gate.clone();
    let is_late = |call: &Value| call["move_number"].as_u64() > Some(2);
    let peer = Peer::new(move |request| {
        if is_late(&request["params"]) {
            slow.pass();
        }
        good_player("P01", "", request)
    });
    let url = manager.url();
    register_player(&url, "P01", &peer.url);
    let others = ["P02", "P03", "P04"].map(|id| world.agent(&manager, id, "play blocks"));
    let [mut first, second] = ["REF01", "REF02"].map(|id| world.agent(&manager, id, ""));
    for agent in others.iter().chain([&first, &second]) {
        agent.line(" is ");
    }
    world.order("start", &url);
    wait_until("a match is in the middle", || {
        peer.received("CHOOSE_MOVE_CALL").iter().any(is_late)
    });
    first.kill();
    manager.restart(&world, "serve");
    let _first = world.agent(&manager, "REF01", "");
    gate.open();
    let [mut player, _third, _fourth] = others;
    player.kill(); // it forfeits from now on
    manager.ends_well();
    check_results(&world, 6); // each match once
}
