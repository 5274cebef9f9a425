//! Whole leagues as real processes: what a student and a teacher see, and what everybody is told,
//! in which order.

use super::support::*;
use std::collections::BTreeSet;
use std::time::Instant;

/// The log of an agent, by its file below `logs`.
fn log(test: &TestLeague, path: &str) -> Vec<Value> {
    json_lines(&test.folder.join("logs").join(path))
}

/// How many matches a referee had in play at once: between its first invitation and its end.
fn most_at_once(test: &TestLeague, referee: usize) -> usize {
    let (mut playing, mut most) = (BTreeSet::new(), 0);
    for line in log(test, &format!("agents/REF0{referee}.log.jsonl")) {
        let match_id = line["match_id"].to_string();
        match (line["event_type"].as_str(), line["message_type"].as_str()) {
            (Some("message_sent"), Some("GAME_INVITATION")) => drop(playing.insert(match_id)),
            (Some("message_sent"), Some("GAME_OVER")) => drop(playing.remove(&match_id)),
            _ => {}
        }
        most = most.max(playing.len());
    }
    most
}

#[test]
fn local_leagues_of_many_sizes_are_played_to_the_end() {
    for (players, referees) in [(2, 1), (3, 2), (4, 2), (5, 3), (8, 1)] {
        let test = TestLeague::new("");
        let arguments = format!("local --players {players} --referees {referees}");
        let mut league = test.manager(&arguments);
        league.wait_for_success();
        let (output, table) = (league.output(), test.table());
        let rounds = players - 1 + players % 2;
        assert!(output.starts_with("listening on "), "{output}");
        let last_round = format!("Round {rounds} of {rounds}");
        let [name, id] = ["display_name", "player_id"].map(|key| table[0][key].as_str().unwrap());
        let champion = format!("Champion: {name} ({id})");
        assert!(
            output.contains(&last_round) && output.contains(&champion),
            "{output}"
        );
        test.check_played(players);
        let pages = files(&test.folder.join("data/matches")).len();
        assert_eq!(pages, players * (players - 1) / 2);
        let most = (1..=referees).map(|n| most_at_once(&test, n)).max();
        assert!((1..=2).contains(&most.unwrap()), "{most:?} matches at once");
    }
}

/// Plays a league of scripted players: what each was sent, with its token.
fn told(test: &TestLeague, players: u64) -> Vec<(String, Vec<Value>)> {
    let mut manager = test.manager(&format!("--players {players} --referees 2"));
    let url = manager.url();
    let mut referees =
        ["REF01", "REF02"].map(|id| test.agent(&manager, id, "--max-concurrent-matches 4"));
    let start = |n: u64| {
        let id = format!("P{:02}", 10 + n); // nobody's place in the list
        let own = id.clone();
        let choice = ["even", "odd"][n as usize % 2];
        let peer = FakeAgent::new(move |request| valid_reply(&own, choice, request));
        let token = token_of(&register_player(&url, &id, &peer.url));
        (token, peer)
    };
    let peers: Vec<(String, FakeAgent)> = (1..=players).map(start).collect();
    manager.wait_for_success();
    referees.iter_mut().for_each(TestProcess::wait_for_success);
    let shown = manager.output()
        + &referees.each_ref().map(TestProcess::output).concat()
        + &json!(test.logs()).to_string();
    check_no_token(&shown);
    let sent = |peer: FakeAgent| {
        let requests = peer.requests.lock().unwrap();
        requests
            .iter()
            .map(|request| request["params"].clone())
            .collect()
    };
    peers
        .into_iter()
        .map(|(token, peer)| (token, sent(peer)))
        .collect()
}

#[test]
fn agents_receive_all_notifications_in_order() {
    for players in [4, 18] {
        let (test, begun) = (TestLeague::new(""), Instant::now());
        let rounds = players - 1;
        let all_told = told(&test, players);
        // Above sixteen players one table stands for many: a round's end has one, and else there is
        // one in 90 ms at most.
        let paced = 2 + rounds + begun.elapsed().as_millis() as u64 / 90;
        let most = (players * rounds / 2).min(if players > 16 { paced } else { u64::MAX });
        for (token, requests) in all_told {
            let (mut played, mut tables, mut ends, mut over) = (0, 0, Vec::new(), 0);
            let mut promised = Value::Null;
            for asked in &requests {
                match asked["message_type"].as_str() {
                    Some("ROUND_ANNOUNCEMENT") => promised = asked["match_token"].clone(),
                    Some("GAME_INVITATION") => assert_eq!(asked["auth_token"], promised),
                    Some("LEAGUE_STANDINGS_UPDATE") => {
                        let rows = asked["standings"].as_array().unwrap();
                        let sum = rows.iter().map(|row| row["played"].as_u64().unwrap()).sum();
                        assert!(sum > played && over == 0, "an old table: {asked}");
                        (played, tables) = (sum, tables + 1);
                    }
                    Some("ROUND_COMPLETED") => {
                        ends.push(asked["round_id"].as_u64().unwrap());
                        let least = ends.len() as u64 * players;
                        assert!(played >= least, "before its last table: {asked}");
                    }
                    Some("LEAGUE_COMPLETED") => {
                        let all = (players * rounds, rounds);
                        assert_eq!((played, ends.len() as u64), all, "too early: {asked}");
                        over += 1;
                    }
                    _ => {}
                }
                let is_own = asked["auth_token"] == json!(token);
                let from_manager = asked["sender"].is_null() || asked["sender"] == "league_manager";
                assert_eq!(is_own, from_manager, "a token in the wrong hands: {asked}");
            }
            assert_eq!(
                (ends, over),
                ((1..=rounds).collect(), 1),
                "once each, in their order"
            );
            // Every result has a table of its own, unless a newer one was there before it was sent.
            let is_told = (rounds..=most).contains(&tables);
            assert!(is_told, "{tables} tables in a league of {players}");
        }
        for id in ["REF01", "REF02"] {
            let mut lines = log(&test, &format!("agents/{id}.log.jsonl"));
            lines.retain(|line| line["event_type"] == "message_received");
            let count = |name: &str| {
                let come = lines.iter().filter(|line| line["message_type"] == name);
                come.count() as u64
            };
            let came = [count("ROUND_COMPLETED"), count("LEAGUE_COMPLETED")];
            assert_eq!(came, [rounds, 1], "{id}");
        }
    }
}

/// A player that sends exactly what the shortest description of the messages prints: no envelope,
/// no token, arrival and choice and no more.
fn bare_player() -> FakeAgent {
    FakeAgent::new(|request| {
        let FakeReply::Answer(Value::Object(mut answer)) = valid_reply("P01", "even", request)
        else {
            return FakeReply::Close;
        };
        let printed = "message_type match_id player_id arrival_timestamp accept parity_choice";
        answer.retain(|key, _| printed.contains(key));
        FakeReply::Answer(answer.into())
    })
}

#[test]
fn player_without_envelopes_plays() {
    {
        let test = TestLeague::new("");
        let mut manager = test.manager("--players 2");
        let bare = bare_player();
        let mut request = application("Agent Alpha", &bare.url);
        request["message_type"] = json!("LEAGUE_REGISTER_REQUEST");
        let answer = send(&manager.url(), &request);
        assert_eq!(answer["player_id"], "P01", "{answer}"); // a registration proves nothing anyway
        let _real = test.agent(&manager, "P02", "play odd");
        let _referee = test.agent(&manager, "REF01", "");
        manager.wait_for_success();
        let choices = test.events("Recorded")[0]["result"]["details"]["choices"].take();
        assert_eq!(choices, json!({"P01": "even", "P02": "odd"}));
        assert_eq!(bare.received("GAME_OVER").len(), 1);
    }
}
