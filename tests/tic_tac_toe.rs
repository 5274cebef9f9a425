//! Tic-tac-toe from end to end: the finished players against each other, what a player answers to its referee, what the
//! manager believes, and leagues over real processes, some of which are killed. What a referee makes of illegal, late
//! and wrong moves is tabled in `match.rs`; who wins, in `games.rs`.

mod support;

use league::extras::strategies::{Turn, named};
use league::games::{self, Game, Move, Outcome, moves, tic_tac_toe};
use league::manager::league::{League, Rules};
use league::protocol::{Details, Ending, Kind, MatchResult, MatchResultReport};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::{env, fs, process::Command};
use support::stand_in::{self, Referee};
use support::*;

const GAME: &Game = &tic_tac_toe::GAME;

// ---------------------------------------------------------------------------------------------- in memory

/// The turn of whoever moves next.
fn turn(moves: &[Move], seed: u64) -> Turn {
    Turn {
        game_type: GAME.game_type.into(),
        player_id: ["P01", "P02"][moves.len() % 2].into(),
        move_number: moves.len() as u32 + 1,
        position: (GAME.position)(moves),
        legal_moves: (GAME.legal)(moves).into_iter().map(String::from).collect(),
        seed: Some(seed),
        ..Turn::sample()
    }
}

/// A game between two of the finished players.
fn played(players: [&str; 2], seed: u64) -> Outcome {
    let mut made = Vec::new();
    while let [seat] = GAME.asked(&made)[..] {
        let choose = named(GAME.game_type, players[seat]).unwrap();
        let chosen = choose(&turn(&made, seed));
        let text = GAME.check(&made, &json!(chosen)).unwrap().to_string();
        made.push(Move { seat, text });
    }
    GAME.judge(players.map(String::from), made, None)
}

#[test]
fn the_perfect_player_never_loses_and_against_itself_always_draws() {
    let mut won = [0, 0];
    for seed in 0..250 {
        let itself = played(["perfect", "perfect"], seed);
        assert_eq!(itself.ending, Ending::Draw, "{itself:?}");
        for (rival, name) in ["random", "blocks"].into_iter().enumerate() {
            for (seat, players) in [["perfect", name], [name, "perfect"]]
                .into_iter()
                .enumerate()
            {
                let outcome = played(players, seed);
                assert_ne!(outcome.winner, Some(1 - seat), "{outcome:?}");
                won[rival] += usize::from(outcome.winner == Some(seat));
            }
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
        let texts: Vec<&str> = text.split_terminator("").skip(1).collect();
        let made = moves(&texts);
        for name in ["blocks", "perfect"] {
            let chosen = named(GAME.game_type, name).unwrap()(&turn(&made, 1));
            assert_eq!(chosen, wanted, "{name} after {text}");
        }
    }
}

// ------------------------------------------------------------------------------------------ the manager

/// A league of two on paper, whose only match is with REF01.
fn league() -> League {
    let mut league = League::new(Rules {
        game_type: GAME.game_type.into(),
        ..paper::rules()
    });
    for (kind, port) in [
        (Kind::Referee, 8001),
        (Kind::Player, 8101),
        (Kind::Player, 8102),
    ] {
        let mut meta = paper::meta(kind, &paper::local(port));
        meta.game_types.push(GAME.game_type.into());
        paper::enter(&mut league, &meta, &paper::caller(&format!("{kind}:new")));
    }
    let event = league.start(None, league.pairings()).unwrap();
    paper::happen(&mut league, event);
    paper::assign(&mut league, 1, &["REF01"]);
    league
}

#[test]
fn a_result_that_does_not_follow_from_its_moves_is_refused() {
    let league = league();
    let match_ = league.find("R1M1").unwrap();
    let [a, b] = &match_.players;
    // The moves, who is said to have won, the status, and what the answer says.
    let rows = [
        ("14253", "A", "WIN", ""),
        ("123546879", "-", "DRAW", ""),
        ("14", "B", "TECHNICAL_LOSS", ""),
        ("", "-", "TECHNICAL_LOSS", ""),
        (
            "14253",
            "B",
            "WIN",
            "got winner P02 and WIN, but P01 has three in a row",
        ),
        ("14253", "-", "DRAW", "got winner nobody and DRAW"),
        ("1425", "A", "WIN", "the game is not over: P01 is to move"),
        ("11", "A", "WIN", "move 2: move: got \"1\""),
        ("142536", "A", "WIN", "move 6: it is not P02's turn"),
        ("", "A", "WIN", "the game is not over"),
        ("14253", "A", "", "result.details.status: missing"),
    ];
    for (text, winner, status, problem) in rows {
        let texts: Vec<&str> = text.split_terminator("").skip(1).collect();
        let winner = ["A", "B"].iter().position(|seat| *seat == winner);
        let outcome = Outcome {
            players: [a.clone(), b.clone()],
            moves: moves(&texts),
            number: None,
            ending: Ending::Win,
            winner,
            reason: "so it was".into(),
        };
        let status = [Ending::Win, Ending::Draw, Ending::TechnicalLoss]
            .into_iter()
            .find(|it| it.word() == status);
        let told = outcome.for_manager(&league.rules.scoring);
        let points = games::score(status.unwrap_or(Ending::Win), winner, &league.rules.scoring);
        let report = MatchResultReport {
            league_id: league.rules.league_id.clone(),
            round_id: 1,
            match_id: "R1M1".into(),
            game_type: GAME.game_type.into(),
            result: MatchResult {
                score: [(a.clone(), points[0]), (b.clone(), points[1])].into(),
                details: Details {
                    status,
                    ..told.details
                },
                ..told
            },
        };
        let referee = &league.members["REF01"];
        let request = paper::request("REF01", "conv-r1m1");
        let answer = league.judge(referee, &request, &report, paper::at("11:00:00"));
        match answer {
            Ok(event) => assert!(problem.is_empty() && event.is_some(), "{text} {problem}"),
            Err(refusal) => {
                let told = refusal.to_string();
                let is_told = !problem.is_empty() && told.contains(problem);
                assert!(is_told, "{text}: {told}, expected {problem:?}");
            }
        }
    }
}

// ------------------------------------------------------------------------------------------- one player

const TRUE: Referee = Referee("tok-true", "conv-true");

/// A call for a move of P01.
fn asks(match_id: &str, number: u32, position: &str, legal: &[&str]) -> Value {
    let mut call = TRUE.asks(match_id);
    call["message_type"] = "CHOOSE_MOVE_CALL".into();
    call["game_type"] = GAME.game_type.into();
    call["move_number"] = number.into();
    call["position"] = position.into();
    call["legal_moves"] = json!(legal);
    call
}

#[test]
fn a_player_answers_each_move_once_and_only_to_its_referee() {
    let (world, manager) = (World::new(&[]), stand_in::manager());
    let start = |strategy| {
        let own = [
            "--manager",
            &manager.url,
            "--player-id",
            "P01",
            "--strategy",
            strategy,
        ];
        let player = world.start("player", &own);
        player.line("is P01");
        player
    };
    let player = start("random");
    send(&player.url(), &TRUE.invites("R1M1"));
    let fields = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let empty = "1 2 3\n4 5 6\n7 8 9";
    let first = send(&player.url(), &asks("R1M1", 1, empty, &fields));
    assert_eq!(first["message_type"], "CHOOSE_MOVE_RESPONSE", "{first}");
    assert!(fields.iter().any(|it| first["move"] == *it), "{first}");
    assert_eq!(
        (&first["move_number"], &first["auth_token"]),
        (&json!(1), &json!("tok-true"))
    );
    let third = send(
        &player.url(),
        &asks("R1M1", 3, "X O 3\n4 5 6\n7 8 9", &["3"]),
    );
    assert_eq!(
        (&third["move"], &third["move_number"]),
        (&json!("3"), &json!(3))
    );
    for _ in 0..5 {
        let again = send(&player.url(), &asks("R1M1", 1, empty, &fields));
        assert_eq!(again["move"], first["move"], "each move stays");
    }
    let refused = |call: Value, code: &str| {
        let reply = send(&player.url(), &call);
        assert_eq!(reply["error_code"], code, "{reply}");
    };
    refused(asks("R9M1", 1, empty, &fields), "E015"); // it has not joined that one
    refused(
        but(&asks("R1M1", 5, "", &["5"]), "auth_token", json!("tok-x")),
        "E012",
    );
    refused(
        but(&asks("R1M1", 5, "", &["5"]), "player_id", json!("P02")),
        "E012",
    );
    refused(
        but(&asks("R1M1", 5, "", &["5"]), "legal_moves", Value::Null),
        "E003",
    );
    refused(asks("R1M1", 9_999, "", &["5"]), "E015");
    drop(player);

    let player = start("even"); // it plays only Even/Odd
    let request = call(
        &player.url(),
        "choose_move",
        asks("R1M1", 1, empty, &fields),
    );
    assert_eq!(request["error"]["code"], -32601, "{request}");
}

// --------------------------------------------------------------------------------- over real processes

/// A world whose league plays tic-tac-toe.
fn world(edits: &[(&str, &str, Value)]) -> World {
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
        let (result, id) = (&event["result"], event["match_id"].as_str().unwrap());
        assert!(ids.insert(id), "{id} has two results");
        if result["details"]["status"] == "TECHNICAL_LOSS" {
            technical += 1;
            continue;
        }
        let made = result["details"]["moves"].as_array().unwrap();
        let texts: Vec<&str> = made.iter().map(|it| it["move"].as_str().unwrap()).collect();
        let players = [0, 1].map(|n| made[n]["player_id"].as_str().unwrap().to_string());
        let outcome = GAME.replay(players.clone(), moves(&texts), None).unwrap();
        let winner = outcome.winner.map(|seat| players[seat].clone());
        assert_eq!(json!(winner), result["winner"], "{event}");
        let shown = document["positions"][id].as_str().unwrap();
        assert_eq!(shown, (GAME.position)(&outcome.moves), "the page shows it");
    }
    technical
}

#[test]
fn a_league_is_played_by_the_finished_players_and_the_python_template() {
    let world = world(&[]);
    let mut names = "perfect,perfect,blocks".to_string();
    let python = Command::new("python3").arg("--version").output();
    if python.is_ok_and(|it| it.status.success()) {
        let template = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/player.py");
        names = format!("{names},python3 {template}");
    }
    let players = names.split(',').count();
    let count = players.to_string();
    let arguments = [
        "local",
        "--players",
        &count,
        "--cycles",
        "2",
        "--mine",
        &names,
    ];
    let mut league = world.start("league_manager", &arguments);
    assert!(league.wait().success(), "{}", league.stderr.lock().unwrap());
    let output = league.output();
    assert!(
        output.contains("is what the average player gets)"),
        "{output}"
    );
    let data = world.folder.join("data");
    fs::rename(data.join("practice/leagues"), data.join("leagues")).unwrap();
    assert_eq!(check_results(&world, players * (players - 1)), 0);
    let table = world.data("leagues/league_2025_even_odd/league.json")["standings"].clone();
    for row in table
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["player_id"] == "P01" || it["player_id"] == "P02")
    {
        assert_eq!(row["losses"], 0, "the perfect player loses no match: {row}");
    }
}

#[test]
fn whoever_calls_the_tools_plays_a_match_move_by_move() {
    let world = world(&[]);
    let mut manager = world.manager(&["--players", "2"]);
    let by_hand = world.player(&manager, "P01", &["--strategy", "mcp"]);
    let _other = world.player(&manager, "P02", &["--strategy", "blocks"]);
    let _referee = world.referee(&manager, "REF01", &[]);
    let tool = |name: &str, arguments: Value| {
        let wanted = json!({"name": name, "arguments": arguments});
        call(&by_hand.url(), "tools/call", wanted)["result"].clone()
    };
    let mut asked = 0;
    loop {
        let offer = tool("next_turn", json!({}))["structuredContent"].clone();
        match offer["status"].as_str().unwrap() {
            "over" => break,
            "wait" => continue,
            _ => asked += 1,
        }
        let position = offer["position"].as_str().unwrap();
        assert_eq!(position.lines().count(), 3, "{offer}");
        let legal = offer["legal_moves"].as_array().unwrap();
        let (id, number) = (offer["match_id"].clone(), offer["move_number"].clone());
        let choose = |choice: Value, number: Value| {
            let made = json!({"match_id": id, "choice": choice, "move_number": number});
            tool("make_choice", made)
        };
        let taken = position.find('O').map_or("X", |_| "O");
        assert_eq!(choose(json!(taken), number.clone())["isError"], true);
        assert_eq!(choose(legal[0].clone(), json!(99))["isError"], true);
        let chosen = choose(legal[0].clone(), number);
        assert_eq!(chosen["structuredContent"]["choice"], legal[0], "{chosen}");
    }
    assert!(asked >= 3, "a match has several moves: {asked}");
    assert!(manager.wait().success());
    assert_eq!(check_results(&world, 1), 0);
}

#[test]
fn agents_that_are_killed_in_a_match_lose_nothing_but_time() {
    let world = world(&[("system.json", "/timeouts/move_timeout_sec", json!(60))]);
    let mut manager = world.manager(&[]);
    let gate = Gate::default();
    let slow = gate.clone();
    let peer = Peer::new(move |request| {
        let asked = &request["params"];
        if asked["message_type"] != "CHOOSE_MOVE_CALL" {
            return good_player("P01", "", request);
        }
        if asked["move_number"].as_u64() > Some(2) {
            slow.pass();
        }
        let mut answer = message(
            "CHOOSE_MOVE_RESPONSE",
            "player:P01",
            json!({"player_id": "P01", "move": asked["legal_moves"][0]}),
        );
        for echoed in ["conversation_id", "auth_token", "match_id", "move_number"] {
            answer[echoed] = asked[echoed].clone();
        }
        Does::Answer(answer)
    });
    let url = manager.url();
    let mut meta =
        json!({"display_name": "Slow", "version": "1.0.0", "contact_endpoint": peer.url});
    meta["game_types"] = json!([GAME.game_type]);
    let body = json!({"player_meta": meta});
    send(
        &url,
        &message("LEAGUE_REGISTER_REQUEST", "player:P01", body),
    );
    let others =
        ["P02", "P03", "P04"].map(|id| world.player(&manager, id, &["--strategy", "blocks"]));
    let [mut first, second] = ["REF01", "REF02"].map(|id| world.referee(&manager, id, &[]));
    for agent in others.iter().chain([&first, &second]) {
        agent.line(" is ");
    }
    world.word(&["start", "--manager", &url]);
    let moves = || peer.received("CHOOSE_MOVE_CALL");
    until("a match is in the middle", || {
        moves()
            .iter()
            .any(|it| it["move_number"].as_u64() > Some(2))
            .then_some(())
    });
    first.kill();
    manager.kill();
    manager.restart(&world, &[]);
    let _first = world.referee(&manager, "REF01", &[]);
    gate.open();
    let [mut player, _third, _fourth] = others;
    player.kill(); // it forfeits from now on
    assert!(manager.wait().success());
    check_results(&world, 6); // each match once
}

#[test]
fn check_examines_the_game_of_the_league() {
    for (program, id) in [("player", "P01"), ("referee", "REF01")] {
        let world = world(&[]);
        let mut check = world.start("league_manager", &["check"]);
        let kind = format!("--{program}-id");
        let mut own = vec!["--manager".into(), check.url(), kind, id.into()];
        if program == "player" {
            own.extend(["--strategy", "random"].map(String::from));
        }
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let _agent = world.start(program, &own);
        let code = check.wait().code();
        let output = check.output();
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("0 FAIL, 0 warn"), "{output}");
        assert!(output.contains("CHOOSE_MOVE_CALL is"), "{output}");
        assert!(!output.contains("PARITY"), "{output}");
    }
}
