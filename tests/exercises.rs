//! The exercises of the guide (`src/guide/exercises.md`): one test for each. They fail until
//! somebody has solved them, so `make test` leaves them out. One of them: `cargo test --test
//! exercises memory`.

mod support;

use league::games::{self, TieBreak};
use league::json::decode;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::Path;
use std::process::Command;
use support::*;

/// The matches of a local league that was played to its end; `folder` is where it is kept.
fn matches(test: &TestLeague, folder: &str) -> Vec<Value> {
    let document = test.data(&format!("{folder}/league.json"));
    let rounds = list_of(&document["rounds"]).iter();
    let matches = rounds.flat_map(|item| list_of(&item["matches"]));
    matches.cloned().collect()
}

/// The player that `MINE` names, or `ada`, differs from whoever can be predicted.
#[test]
fn memory() {
    let finished = executable("league").display().to_string();
    let mine = env::var("MINE").unwrap_or("ada".into());
    let rivals = ["even", "odd", "alternate"];
    let rivals = rivals.map(|name| format!("{finished} play {name}"));
    let all = format!("{mine},{}", rivals.join(","));
    let test = TestLeague::new("");
    test.local(&format!("--players 4 --cycles 40 --mine `{all}`"));
    let mut differed = BTreeMap::from([("P02", 0), ("P03", 0), ("P04", 0)]);
    for game in matches(&test, "practice/leagues/league_2025_even_odd") {
        let choices = &game["choices"];
        for (rival, count) in &mut differed {
            let [ours, theirs] = [&choices["P01"], &choices[*rival]];
            *count += u32::from(ours.is_string() && theirs.is_string() && ours != theirs);
        }
    }
    for (rival, count) in differed {
        assert!(
            count >= 32,
            "{mine} differed from {rival} in {count} of 40 matches"
        );
    }
}

/// Of two players with as many points, the one that lost technically stands lower.
#[test]
fn tie() {
    let tie = decode::<TieBreak>(&json!("technical_losses")).expect("a word of TieBreak");
    // P01 does not choose, and P02 loses as one loses.
    let mut league = offline::told("P04!P01 P03>P02");
    league.config.league.scoring.tiebreakers = vec![tie];
    let table = league.table();
    let ids: Vec<&str> = table.iter().map(|row| &*row.player_id).collect();
    assert_eq!(ids, ["P03", "P04", "P02", "P01"]);
}

/// GAME_OVER says how long the match took, and the player shows it.
#[test]
fn field() {
    let (test, mut manager) = with_manager("serve --players 2 --lead-sec 0");
    let _referee = test.agent(&manager, "REF01", "");
    let mut player = test.agent(&manager, "P01", "");
    let _other = test.agent(&manager, "P02", "");
    manager.wait_for_success();
    player.wait_for_success();
    let told = received(&test, "P01", "GAME_OVER");
    let duration = &told[0]["duration_ms"];
    assert!(
        duration.is_u64(),
        "GAME_OVER has no duration_ms: {}",
        told[0]
    );
    let (words, output) = (format!(", after {duration} ms"), player.output());
    let is_shown = output.contains(&words);
    assert!(is_shown, "the player does not show {words:?}: {output}");
}

/// All players hear of every break, and of none when the league is over.
#[test]
fn pause() {
    let test = TestLeague::new("");
    test.local("--players 4");
    for player in ["P01", "P02", "P03", "P04"] {
        let told = received(&test, player, "BREAK_ANNOUNCEMENT");
        let rounds: Vec<&Value> = told.iter().map(|item| &item["round_id"]).collect();
        assert_eq!(
            rounds,
            [1, 2],
            "{player} was told of breaks after these rounds"
        );
    }
}

/// Rock, paper, scissors is a game: what is legal, who wins, and a league of it.
#[test]
fn game() {
    const NAME: &str = "rock_paper_scissors";
    let game = games::find(NAME).expect("a game of that name");
    assert!(game.simultaneous && game.number_range.is_none());
    let all = ["rock", "paper", "scissors"];
    let legal: BTreeSet<&str> = (game.legal_moves)(&[]).into_iter().collect();
    assert_eq!(legal, BTreeSet::from(all));
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
            let winner = winner.as_deref();
            assert_eq!(winner, expected, "{a} against {b}");
        }
    }
    let test = TestLeague::new("");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(shipped).arg(&test.folder);
    assert!(copy.status().unwrap().success());
    test.edit("league", "game_type", json!(NAME));
    test.local("--players 4");
    for game in matches(&test, "leagues/league_2025_even_odd") {
        let ending = text_of(&game["ending"]);
        assert!(["WIN", "DRAW"].contains(&ending), "{game}");
    }
}

/// What a player was sent, by its own log.
fn received(test: &TestLeague, player: &str, message_type: &str) -> Vec<Value> {
    let is_that = |line: &Value| {
        line["component"] == player
            && line["event_type"] == "message_received"
            && line["message_type"] == message_type
    };
    let lines = test.logs().into_iter().filter(is_that);
    lines.map(|line| line["message"].clone()).collect()
}
