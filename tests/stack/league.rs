//! Whole leagues of real processes: by hand (`tests/scripts/league`), of many sizes, and the
//! notifications to every agent in their order.

use super::support::*;
use league::program::terminal::LineLimit;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

#[test]
fn leagues_golden() {
    story::run("league");
}

/// Returns the log of an agent.
fn log(test: &TestLeague, id: &str) -> Vec<Value> {
    json_lines(&test.folder.join(format!("logs/agents/{id}.log.jsonl")))
}

/// Returns the maximum number of matches that a referee played at once, from the first invitation to
/// the end of each.
fn most_at_once(test: &TestLeague, id: &str) -> usize {
    let (mut playing, mut most) = (BTreeSet::new(), 0);
    let mut lines = log(test, id);
    lines.retain(|line| line["event_type"] == "message_sent");
    for line in lines {
        let match_id = line["match_id"].to_string();
        match line["message_type"].as_str() {
            Some("GAME_INVITATION") => drop(playing.insert(match_id)),
            Some("GAME_OVER") => drop(playing.remove(&match_id)),
            _ => {}
        }
        most = most.max(playing.len());
    }
    most
}

#[test]
fn local_leagues_of_many_sizes_are_played_to_the_end() {
    for (players, referees) in [(2, 1), (5, 3), (8, 1)] {
        let test = TestLeague::new("");
        let output = test.local(&format!("--players {players} --referees {referees}"));
        let rounds = players - 1 + players % 2;
        check_contains(&output, &format!("Round {rounds} of {rounds}"));
        test.check_played(players);
        let most = most_at_once(&test, "REF01");
        assert!((1..=2).contains(&most), "{most} matches at once");
    }
}

/// Plays a league of fake players. Returns the token of each, and the messages that it received.
fn play(test: &TestLeague, players: u64) -> Vec<(String, Vec<Value>)> {
    let mut manager = test.manager(&format!("--players {players} --referees 2"));
    let url = manager.url();
    let mut referees =
        ["REF01", "REF02"].map(|id| test.agent(&manager, id, "--max-concurrent-matches 4"));
    let start = |n: u64| {
        let id = format!("P{:02}", 10 + n); // an id that no listed player has
        let own = id.clone();
        let choice = ["even", "odd"][n as usize % 2];
        let player = FakeAgent::new(move |request| valid_reply(&own, choice, request));
        let token = token_of(&register_player(&url, &id, &player.url));
        (token, player)
    };
    let players: Vec<(String, FakeAgent)> = (1..=players).map(start).collect();
    wait_for_all(&mut manager, &mut referees);
    let outputs = referees.each_ref().map(TestProcess::output).concat();
    check_no_token(&(manager.output() + &outputs + &json!(test.logs()).to_string()));
    let messages = |player: FakeAgent| {
        let requests = player.requests.lock().unwrap();
        let messages = requests.iter().map(|request| request["params"].clone());
        messages.collect()
    };
    let with_messages = |(token, player)| (token, messages(player));
    players.into_iter().map(with_messages).collect()
}

#[test]
fn agents_receive_all_notifications_in_order() {
    for players in [4, 18] {
        let (test, begun) = (TestLeague::new(""), Instant::now());
        let rounds = players - 1;
        let all = play(&test, players);
        // The start and every result have a table, except when a newer one is made before it is sent.
        // Above sixteen players the end of a round has a table, and the results have one in 90 ms at
        // most.
        let limited = 3 + rounds + begun.elapsed().as_millis() as u64 / 90;
        let most = (1 + players * rounds / 2).min(if players > 16 { limited } else { u64::MAX });
        for (token, messages) in all {
            let (mut played, mut tables, mut ends, mut is_over) = (0, 0, 0, false);
            // On a busy machine an invitation may overtake its announcement: the referees are told a
            // second after the players, also if one of these has not answered yet.
            let announced: Vec<&Value> = (messages.iter())
                .filter(|asked| asked["message_type"] == "ROUND_ANNOUNCEMENT")
                .map(|asked| &asked["match_token"])
                .collect();
            for asked in &messages {
                match asked["message_type"].as_str() {
                    Some("GAME_INVITATION") => assert!(announced.contains(&&asked["auth_token"])),
                    Some("ROUND_ANNOUNCEMENT") => assert!(tables > 0, "no names before {asked}"),
                    Some("LEAGUE_STANDINGS_UPDATE") => {
                        let rows = list_of(&asked["standings"]).iter();
                        let sum = rows.map(|row| row["played"].as_u64().unwrap()).sum();
                        let is_new = sum > played || tables == 0;
                        assert!(is_new && !is_over, "an old table: {asked}");
                        (played, tables) = (sum, tables + 1);
                    }
                    Some("ROUND_COMPLETED") => {
                        ends += 1;
                        assert_eq!(asked["round_id"], ends);
                        assert!(played >= ends * players, "before its last table: {asked}");
                    }
                    Some("LEAGUE_COMPLETED") => {
                        let is_early = (played, ends) != (players * rounds, rounds);
                        assert!(!is_early && !is_over, "too early, or again: {asked}");
                        is_over = true;
                    }
                    _ => {}
                }
                let is_own = asked["auth_token"] == json!(token);
                let from_manager = asked["sender"].is_null() || asked["sender"] == "league_manager";
                assert_eq!(is_own, from_manager, "the token of another agent: {asked}");
            }
            assert_eq!((ends, is_over), (rounds, true));
            let is_limited = (rounds..=most).contains(&tables);
            assert!(is_limited, "{tables} tables in a league of {players}");
        }
        for id in ["REF01", "REF02"] {
            let mut lines = log(&test, id);
            lines.retain(|line| line["event_type"] == "message_received");
            let counts = ["ROUND_COMPLETED", "LEAGUE_COMPLETED"].map(|name| {
                let lines = lines.iter().filter(|line| line["message_type"] == name);
                lines.count() as u64
            });
            assert_eq!(counts, [rounds, 1], "{id}");
        }
    }
}

#[test]
fn twenty_lines_are_printed_in_two_minutes_and_none_twice() {
    let (mut limit, start) = (LineLimit::default(), Instant::now());
    let mut admit = |line: &str, seconds| limit.allow(line, start + Duration::from_secs(seconds));
    for n in 0..19 {
        assert!(admit(&format!("first {n}"), 100), "{n}");
    }
    assert!(!admit("first 0", 101));
    assert!(admit("one more", 102));
    assert!(!admit("another", 219), "two minutes have not passed");
    assert!(admit("first 0", 220));
    for n in 0..20 {
        assert_eq!(admit(&format!("second {n}"), 220), n < 18, "{n}");
    }
}
