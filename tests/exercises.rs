//! The exercises of the guide (`src/guide/exercises.md`): one test for each. They fail until
//! they are solved, so `make test` leaves them out. One of them: `cargo test --test
//! exercises memory`.

mod support;

use league::games::{self, Move, TieBreak};
use league::json::decode;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use std::{env, fs, thread};
use support::*;

/// Returns the matches of a finished local league in a folder.
fn matches(test: &TestLeague, folder: &str) -> Vec<Value> {
    let document = test.data(&format!("{folder}/league.json"));
    let rounds = list_of(&document["rounds"]).iter();
    let matches = rounds.flat_map(|round| list_of(&round["matches"]));
    matches.cloned().collect()
}

/// The player that `MINE` names, or `ada`, differs from predictable rivals.
#[test]
fn memory() {
    let finished = executable("league").display().to_string();
    let mine = env::var("MINE").unwrap_or("ada".into());
    for file in mine.split_whitespace().filter(|word| word.ends_with(".py")) {
        assert!(Path::new(file).exists(), "there is no file {file}");
    }
    assert!(
        mine != "ada" || executable("ada").exists(),
        "there is no bin/ada.rs, or it is not built: make agent NAME=ada, cargo build"
    );
    let names = ["even", "odd", "alternate"];
    let rivals = names.map(|name| format!("{finished} play {name}"));
    let all = format!("{mine},{}", rivals.join(","));
    let test = TestLeague::new("");
    test.local(&format!("--players 4 --cycles 40 --mine `{all}`"));
    let mut differed = BTreeMap::from([("P02", 0), ("P03", 0), ("P04", 0)]);
    for game in matches(&test, "practice/leagues/league_2025_even_odd") {
        let choices = &game["choices"];
        for (rival, count) in &mut differed {
            let [ours, theirs] = [&choices["P01"], &choices[*rival]];
            *count += u32::from(ours.is_string() && theirs.is_string() && ours != theirs);
            let (match_id, reason) = (&game["match_id"], &game["reason"]);
            let is_silent = choices.get("P01").is_some_and(Value::is_null);
            assert!(!is_silent, "{mine} made no choice in {match_id}: {reason}");
        }
    }
    for (name, count) in names.iter().zip(differed.into_values()) {
        assert!(
            count >= 32,
            "{mine} chose otherwise than {name} in {count} of 40 matches, expected at least 32"
        );
    }
}

/// Of two players with as many points, the one that lost technically stands lower.
#[test]
fn tie() {
    let tie = decode::<TieBreak>(&json!("technical_losses"));
    let tie = tie.unwrap_or_else(|error| panic!("TieBreak has no such variant: {error}"));
    // P01 does not choose, and P02 loses as one loses.
    let mut league = offline::told("P04!P01 P03>P02");
    league.config.league.scoring.tiebreakers = vec![tie];
    let table = league.table();
    let ids: Vec<&str> = table.iter().map(|row| &*row.player_id).collect();
    let expected = ["P03", "P04", "P02", "P01"];
    let text = "P01 and P02 have no points, and only P01 has lost technically";
    assert!(
        ids == expected,
        "{text}: got {ids:?}, expected {expected:?}"
    );
}

/// GAME_OVER says how long the match took, and the player shows it. The opponent takes its time in the
/// first of two matches.
#[test]
fn field() {
    const SLOW: u64 = 300;
    let test = TestLeague::new("league scheduling.cycles=2");
    let mut manager = test.serve("--players 2 --lead-sec 0");
    let _referee = test.agent(&manager, "REF01", "");
    let mut player = test.agent(&manager, "P01", "");
    let opponent = FakeAgent::new(|request| {
        let asked = &request["params"];
        if is_parity_call(asked) && asked["match_id"] == "R1M1" {
            thread::sleep(Duration::from_millis(SLOW));
        }
        valid_reply("P02", "odd", request)
    });
    register_player(&manager.url(), "P02", &opponent.url);
    manager.wait_for_success();
    player.wait_for_success();

    let messages = received(&test, "P01", "GAME_OVER");
    let output = player.output();
    let mut durations = Vec::new();
    for message in &messages {
        let duration = &message["duration_ms"];
        let number = duration.as_u64();
        durations.push(number.unwrap_or_else(|| panic!("no duration_ms in GAME_OVER: {message}")));
        let words = format!(", after {duration} ms");
        assert!(
            output.contains(&words),
            "the player does not show {words:?}: {output}"
        );
    }
    assert!(
        durations[0] >= SLOW && durations[1] < durations[0],
        "the first match took {SLOW} ms longer than the second, but duration_ms is {durations:?}"
    );
}

/// All players receive every break before the next round, and none when the league is over; referees
/// receive none.
#[test]
fn pause() {
    let test = TestLeague::new("");
    test.local("--players 4");
    for player in ["P01", "P02", "P03", "P04"] {
        let breaks = received(&test, player, "BREAK_ANNOUNCEMENT");
        let rounds: Vec<&Value> = breaks.iter().map(|message| &message["round_id"]).collect();
        assert!(
            rounds == [1, 2],
            "{player} received breaks after the rounds {}, expected [1,2] of three",
            json!(rounds)
        );

        // The log has the messages in their order.
        let mut order = Vec::new();
        for line in received_lines(&test, player) {
            match line["message_type"].as_str() {
                Some("ROUND_ANNOUNCEMENT") => order.push("round"),
                Some("BREAK_ANNOUNCEMENT") => order.push("break"),
                _ => {}
            }
        }
        let expected = ["round", "break", "round", "break", "round"];
        assert!(
            order == expected,
            "{player} received {order:?}, expected {expected:?}"
        );
    }
    for line in test.logs() {
        let text = line.to_string();
        let is_break = text.contains("BREAK_ANNOUNCEMENT");
        let is_for_referee = text.contains("referee:REF") || text.contains("\"REF0");
        assert!(
            !(is_break && is_for_referee),
            "a referee needs no break: {line}"
        );
        let is_refused = is_break && !line["error_code"].is_null();
        assert!(!is_refused, "a break was refused: {line}");
    }

    // A break whose token is not the player's own is refused.
    let manager = test.serve("--players 4");
    let player = test.agent(&manager, "P01", "");
    let body = json!({"league_id": "league_2025_even_odd", "round_id": 1, "auth_token": "x"});
    let answer = send(
        &player.url(),
        &message("BREAK_ANNOUNCEMENT", "league_manager", body),
    );
    assert_eq!(answer["error_code"], "E012", "{answer}");
}

/// Rock, paper, scissors is a game: what is legal, who wins, and a league of it.
#[test]
fn game() {
    const NAME: &str = "rock_paper_scissors";
    let game = games::find(NAME).unwrap_or_else(|| panic!("GAMES has no {NAME}"));
    assert!(game.simultaneous, "both players move at the same time");
    assert!(game.number_range.is_none(), "no number is drawn");
    let all = ["rock", "paper", "scissors"];
    let legal: BTreeSet<&str> = (game.legal_moves)(&[]).into_iter().collect();
    assert!(
        legal == BTreeSet::from(all),
        "legal are {legal:?}, expected {all:?}"
    );
    for (one, a) in all.iter().enumerate() {
        for (other, b) in all.iter().enumerate() {
            let moves = games::alternating(&[a, b]);
            assert!(
                (game.legal_moves)(&moves).is_empty(),
                "it goes on after {a} and {b}"
            );
            let players = ["P01", "P02"].map(String::from);
            let winner = game.judge(&players, &moves, None).winner_player_id;
            let expected = [None, Some("P01"), Some("P02")][(3 + one - other) % 3];
            check_winner(&format!("P01 {a}, P02 {b}"), winner.as_deref(), expected);

            // The moves of simultaneous players may come in either order.
            let reversed: Vec<Move> = moves.into_iter().rev().collect();
            let winner = game.judge(&players, &reversed, None).winner_player_id;
            let moves = format!("P01 {a}, P02 {b}, of which {b} came first");
            check_winner(&moves, winner.as_deref(), expected);
        }
    }
    let test = TestLeague::new("");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in files(&root.join("config")) {
        fs::copy(&file, test.folder.join(file.strip_prefix(root).unwrap())).unwrap();
    }
    test.edit("league", "game_type", json!(NAME));
    test.local("--players 4");
    for game in matches(&test, "leagues/league_2025_even_odd") {
        let ending = text_of(&game["ending"]);
        assert!(["WIN", "DRAW"].contains(&ending), "{game}");
    }
}

fn check_winner(moves: &str, winner: Option<&str>, expected: Option<&str>) {
    let [winner, expected] = [winner, expected].map(|id| id.unwrap_or("no player"));
    assert!(
        winner == expected,
        "{moves}: {winner} wins, expected {expected}"
    );
}

/// Returns the messages of a type that a player has received, from its log.
fn received(test: &TestLeague, player: &str, message_type: &str) -> Vec<Value> {
    let mut lines = received_lines(test, player);
    lines.retain(|line| line["message_type"] == message_type);
    lines.iter().map(|line| line["message"].clone()).collect()
}

/// Returns the lines of a player's log about received messages.
fn received_lines(test: &TestLeague, player: &str) -> Vec<Value> {
    let mut lines = test.logs();
    lines.retain(|line| line["component"] == player && line["event_type"] == "message_received");
    lines
}
