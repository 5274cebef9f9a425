//! Running a class: what the operator may do to a league, on paper and with `kill -9` of the manager between each.

mod support;

use league::games::judge;
use league::manager::control::REMOVED;
use league::manager::league::{Event, League, Match};
use league::protocol::{Action, Kind, LeagueControl, Parity, Progress, Refusal};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::paper::*;
use support::*;

fn order(league: &League, action: Action, about: &str) -> Result<Option<Event>, Refusal> {
    let about = Some(about.to_string()).filter(|about| !about.is_empty());
    let (player_id, match_id) = if action == Action::Replay {
        (None, about)
    } else {
        (about, None)
    };
    league.control(&LeagueControl {
        league_id: "paper".into(),
        action,
        player_id,
        match_id,
    })
}

fn control(league: &mut League, action: Action, about: &str) {
    let event = order(league, action, about)
        .unwrap_or_else(|refusal| panic!("{action} {about}: {refusal}"));
    assert!(event.is_some(), "{action} {about} is nothing new");
    happen(league, event);
}

/// The first player of a match wins it.
fn first_wins(game: &Match) -> league::games::Outcome {
    judge(game.players.clone(), [Parity::Even, Parity::Odd], 2)
}

/// Records all walkovers of a round: which matches, and their scores.
fn walkovers(league: &mut League, round: u32) -> Vec<(String, Vec<i32>)> {
    let mut all = Vec::new();
    while let Some(Event::Recorded(recorded)) = league.walkover(round, at("11:00:00")) {
        all.push((
            recorded.match_id.clone(),
            recorded.result.score.values().copied().collect(),
        ));
        league.apply(&Event::Recorded(recorded));
    }
    all
}

#[test]
fn orders_that_cannot_be_are_refused() {
    let mut league = started(4, &[2]);
    for (action, about, why) in [
        (Action::Remove, "", "E003 player_id: missing"),
        (Action::Remove, "P09", "E005 player_id: got \"P09\""),
        (Action::Remove, "REF01", "E005 player_id: got \"REF01\""),
        (Action::Restore, "P09", "E005 player_id: got \"P09\""),
        (Action::Replay, "", "E003 match_id: missing"),
        (Action::Replay, "R9M9", "E015 match_id: got \"R9M9\""),
        (
            Action::Replay,
            "R1M1",
            "E015 match_id: R1M1 has no result yet",
        ),
        (
            Action::Again,
            "",
            "E003 action: got again, but the league is not over yet",
        ),
    ] {
        let refusal = order(&league, action, about).unwrap_err().to_string();
        assert!(refusal.starts_with(why), "{action} {about}: {refusal}");
    }
    play_round(&mut league, 1, first_wins);
    control(&mut league, Action::Remove, "P04");
    assert!(
        order(&league, Action::Replay, "R1M1")
            .unwrap_err()
            .to_string()
            .contains("P04 is removed; restore it")
    );
    assert_eq!(
        [
            order(&league, Action::Remove, "P04"),
            order(&league, Action::Resume, "")
        ],
        [Ok(None), Ok(None)]
    );
}

#[test]
fn a_paused_league_ends_what_has_begun_and_begins_nothing() {
    let mut league = started(4, &[2, 2]);
    assign(&mut league, 1, &["REF01"]);
    control(&mut league, Action::Pause, "");
    assert!(!league.rests());
    assert!(
        assignment(&league, 1, &["REF02"]).is_some(),
        "a lost referee's matches go on"
    );
    ["R1M1", "R1M2"]
        .iter()
        .for_each(|id| play(&mut league, id, first_wins));
    assert!(league.rests() && assignment(&league, 2, &["REF01"]).is_none());
    control(&mut league, Action::Resume, "");
    assert!(!league.rests() && assignment(&league, 2, &["REF01"]).is_some());
}

#[test]
fn a_removed_player_loses_from_the_next_round_on_until_it_is_restored() {
    let mut league = started(6, &[3]);
    assign(&mut league, 1, &["REF01"]);
    control(&mut league, Action::Remove, "P01");
    assert_eq!(walkovers(&mut league, 1), [], "it plays what it has begun");
    play_round(&mut league, 1, first_wins);
    control(&mut league, Action::Remove, "P02");
    let lost = walkovers(&mut league, 2);
    assert!(
        lost.iter()
            .all(|(_, score)| score.iter().sum::<i32>() % 3 == 0)
            && !lost.is_empty(),
        "{lost:?}"
    );
    play_round(&mut league, 2, first_wins);
    let removed = |league: &League, id: &str| {
        register(league, &meta(Kind::Player, &local(8101)), &caller(id))
    };
    assert!(format!("{:?}", removed(&league, "player:P01")).contains(REMOVED));
    control(&mut league, Action::Restore, "P01");
    for round in 3..=5 {
        let lost = walkovers(&mut league, round);
        assert_eq!(lost.len(), 1, "P02 alone: {lost:?}");
        assert!(lost[0].1 == [3, 0] || lost[0].1 == [0, 3]);
        play_round(&mut league, round, first_wins);
    }
    assert_eq!(league.progress(), Progress::Completed);
    assert!(league.table().iter().all(|row| row.played == 5));
    // Both gone: nobody wins.
    let mut league = started(2, &[1]);
    ["P01", "P02"]
        .iter()
        .for_each(|id| control(&mut league, Action::Remove, id));
    assert_eq!(
        walkovers(&mut league, 1),
        [("R1M1".to_string(), vec![0, 0])]
    );
    // Before the start it is gone.
    let mut league = gathered(3, &[1]);
    control(&mut league, Action::Remove, "P02");
    assert_eq!(league.members(Kind::Player).len(), 2);
}

#[test]
fn an_agent_without_its_card_is_let_in_once_it_is_restored() {
    let mut league = started(2, &[1]);
    let lost = Caller {
        peer: ELSEWHERE,
        secret: "second".into(),
        ..caller("player:P02")
    };
    let moved = meta(Kind::Player, "http://10.0.0.7:9000/mcp");
    let is_in =
        |league: &League| !format!("{:?}", register(league, &moved, &lost)).starts_with("Rejected");
    assert!(!is_in(&league));
    control(&mut league, Action::Restore, "P02");
    let member = enter(&mut league, &moved, &lost);
    assert_eq!(
        (&*member.id, &*member.token, &*member.endpoint),
        ("P02", "tok-p02-second", "http://10.0.0.7:9000/mcp")
    );
    let thief = Caller {
        secret: "third".into(),
        ..lost.clone()
    };
    let other = register(
        &league,
        &meta(Kind::Player, "http://10.0.0.7:9001/mcp"),
        &thief,
    );
    assert!(
        format!("{other:?}").starts_with("Rejected"),
        "once only: {other:?}"
    );
}

#[test]
fn a_voided_result_counts_nothing_and_the_match_is_played_again() {
    let (mut league, mut other) = (started(4, &[2]), started(4, &[2]));
    for league in [&mut league, &mut other] {
        play_round(league, 1, first_wins);
        play_round(league, 2, first_wins);
    }
    let (tables, news) = (league.tables(), league.newest_announcement());
    control(&mut league, Action::Replay, "R1M1");
    assert_eq!(
        (league.open_round(), league.tables()),
        (Some(1), tables + 1)
    );
    assert!(
        league.newest_announcement() > news
            && league.table().iter().map(|row| row.played).sum::<u32>() == 6
    );
    play_round(&mut league, 1, first_wins);
    assert_eq!(
        (league.open_round(), league.table()),
        (Some(3), other.table())
    );
    assert_eq!(league.tables(), tables + 2);
}

/// Gives a running manager an order, as the operator does; what it says.
fn say(world: &World, manager: &Agent, words: &[&str]) -> String {
    let (code, text) = world.word(&[words, &["--manager", &manager.url()]].concat());
    assert_eq!(code, Some(0), "{words:?}: {text}");
    text
}

#[test]
fn every_order_survives_the_death_of_the_manager() {
    let world = World::new(&[]);
    let run = ["--stay", "--lead-sec", "0"];
    let mut manager = world.manager(&run);
    let _referee = world.referee(&manager, "REF01", &["--stay"]);
    let gates: [Gate; 3] = Default::default();
    let doors = gates.clone();
    // P01 thinks about each round until its gate is open.
    let thinks = Peer::new(move |request| {
        let asked = &request["params"];
        if asked["message_type"] == "CHOOSE_PARITY_CALL" {
            doors[asked["match_id"].as_str().unwrap()[1..2]
                .parse::<usize>()
                .unwrap()
                - 1]
            .pass();
        }
        good_player("P01", "even", request)
    });
    let others = ["P02", "P03", "P04", "P05"]
        .map(|id| Peer::new(move |request| good_player(id, "odd", request)));
    for (id, peer) in ["P01", "P02", "P03", "P04", "P05"]
        .iter()
        .zip([&thinks].into_iter().chain(&others))
    {
        assert_eq!(
            register_player(&manager.url(), &format!("player:{id}"), &peer.url)["player_id"],
            *id
        );
    }
    let order = |manager: &mut Agent, words: &[&str]| {
        let said = say(&world, manager, words);
        manager.restart(&world, &run);
        said
    };
    let recorded = |id: &str, times: usize| {
        until(&format!("{id} is recorded {times} times"), || {
            let mut found = world.events("Recorded");
            found.retain(|line| line["match_id"] == id);
            found.pop().filter(|_| found.len() + 1 == times)
        })
    };
    order(&mut manager, &["remove", "P05"]);
    order(&mut manager, &["start"]);
    thinks.first("CHOOSE_PARITY_CALL");
    recorded("R1M2", 1);
    order(&mut manager, &["pause"]);
    gates[0].open();
    recorded("R1M1", 1);
    wait_until("the league rests", || {
        say(&world, &manager, &["status"]).contains("is paused until")
    });
    order(&mut manager, &["replay", "R1M2"]);
    order(&mut manager, &["remove", "P04"]);
    assert!(
        !world
            .journal()
            .iter()
            .any(|line| line["assignments"][0]["match_id"] == "R2M1"),
        "round 2 has begun"
    );
    order(&mut manager, &["resume"]);
    recorded("R1M2", 2);
    let invited = others[0]
        .received("GAME_INVITATION")
        .iter()
        .filter(|asked| asked["match_id"] == "R1M2")
        .count();
    assert_eq!(invited, 2, "played again, not reported again");
    let lost = recorded("R2M1", 1);
    assert_eq!(
        (&lost["result"]["winner"], &lost["referee_id"]),
        (&json!("P02"), &json!("league_manager")),
        "{lost}"
    );
    order(&mut manager, &["restore", "P04"]);
    gates[1..].iter().for_each(Gate::open);
    assert_ne!(recorded("R3M1", 1)["referee_id"], "league_manager");
    manager.line("the league is over");
    let table = world.table();
    assert!(
        table.len() == 4 && table.iter().all(|row| row["played"] == 3),
        "{table:?}"
    );
    let said = say(&world, &manager, &["again"]);
    assert!(said.contains("completed"), "{said}");
    wait_until("a new lobby is open", || {
        world
            .word(&["status", "--manager", &manager.url()])
            .1
            .contains("waiting")
    });
}

/// What the ends of rounds said that a peer was told: which round, and how many draws.
fn ends(peer: &Peer) -> Vec<String> {
    let told = peer.received("ROUND_COMPLETED");
    told.iter()
        .map(|end| format!("{}: {} drawn", end["round_id"], end["summary"]["draws"]))
        .collect()
}

#[test]
fn a_match_played_again_ends_its_rounds_again_and_its_trace_has_both() {
    let world = World::new(&[(
        "leagues/league_2025_even_odd.json",
        "/scheduling/cycles",
        json!(3),
    )]);
    let mut manager = world.manager(&["--players", "2", "--lead-sec", "0"]);
    let gates: [Gate; 2] = Default::default();
    // Both say even; in R1M1, when it is played again, P02 says odd. That one and R3M1 wait for their gates.
    let peers = ["P01", "P02"].map(|id| {
        let (doors, calls) = (gates.clone(), AtomicUsize::new(0));
        Peer::new(move |request| {
            let asked = &request["params"];
            let is_call = asked["message_type"] == "CHOOSE_PARITY_CALL";
            let is_again =
                is_call && asked["match_id"] == "R1M1" && calls.fetch_add(1, Ordering::SeqCst) > 0;
            if is_again {
                doors[0].pass();
            } else if is_call && asked["match_id"] == "R3M1" {
                doors[1].pass();
            }
            let choice = if is_again && id == "P02" {
                "odd"
            } else {
                "even"
            };
            good_player(id, choice, request)
        })
    });
    for (id, peer) in ["P01", "P02"].iter().zip(&peers) {
        register_player(&manager.url(), &format!("player:{id}"), &peer.url);
    }
    let mut referee = world.referee(&manager, "REF01", &[]);
    let called = |id: &str, times: usize| {
        until(&format!("{id} is played {times} times"), || {
            let calls = peers.iter().map(|peer| peer.received("CHOOSE_PARITY_CALL"));
            calls
                .map(|calls| calls.iter().filter(|call| call["match_id"] == id).count())
                .min()
                .filter(|n| *n == times)
        })
    };
    let page = || {
        http(
            "GET",
            &manager.url().replace("/mcp", "/trace/R1M1"),
            "",
            b"",
        )
    };
    called("R3M1", 1);
    assert_eq!(page().1.matches("conv-r1m1-").count(), 1);
    say(&world, &manager, &["replay", "R1M1"]);
    called("R1M1", 2);
    assert_eq!(
        page(),
        (
            404,
            "this match has no result yet; then it can be seen".into()
        ),
        "no choice is shown"
    );
    gates[0].open();
    let told = ["1: 1 drawn", "2: 1 drawn", "1: 0 drawn", "2: 1 drawn"];
    wait_until("both rounds end again", || ends(&peers[0]) == told);
    let (_, drawn) = page();
    let wanted = [
        ("conv-r1m1-", 2),
        ("GAME_OVER DRAW", 2),
        ("GAME_OVER WIN", 2),
        ("MATCH_RESULT_REPORT", 2),
    ];
    assert!(
        wanted
            .iter()
            .all(|(what, times)| drawn.matches(what).count() == *times),
        "{drawn}"
    );
    gates[1].open();
    assert!(manager.wait().success() && referee.wait().success());
    assert_eq!(ends(&peers[1]), [&told[..], &["3: 1 drawn"]].concat());
    assert_eq!(world.word(&["trace", "R1M1"]).1.trim_end(), drawn);
}

/// Who plays.
fn ids(world: &World) -> Vec<String> {
    let mut ids: Vec<String> = world
        .table()
        .iter()
        .map(|row| row["player_id"].as_str().unwrap().to_string())
        .collect();
    ids.sort();
    ids
}

/// How many leagues there are, set aside or not, and the last line of the one that is not.
fn leagues(world: &World) -> (usize, String) {
    let folders = std::fs::read_dir(world.folder.join("data/leagues"))
        .unwrap()
        .flatten();
    let last = world
        .journal()
        .last()
        .map_or(String::new(), |line| line["event"].to_string());
    (
        folders.filter(|entry| entry.path().is_dir()).count(),
        last.trim_matches('"').into(),
    )
}

#[test]
fn a_local_league_that_stays_plays_another_one() {
    let world = World::new(&[]);
    let manager = world.start("league_manager", &["local", "--stay", "--fresh"]);
    for n in 1..=3 {
        wait_until(&format!("league {n} is over"), || {
            leagues(&world) == (n, "Closed".into())
        });
        world.check_played(4);
        say(&world, &manager, &["again"]);
    }
}

#[test]
fn a_class_of_eight_on_as_many_addresses_plays_two_leagues_and_nobody_is_started_again() {
    let world = World::new(&[]);
    let manager = world.manager(&["--players", "8", "--stay", "--lead-sec", "0"]);
    let referee = world.referee(
        &manager,
        "REF01",
        &["--stay", "--max-concurrent-matches", "4"],
    );
    let class = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| {
        let (id, host) = (format!("P{n:02}"), format!("127.0.0.{n}"));
        let free = std::net::TcpListener::bind((&*host, 0))
            .unwrap()
            .local_addr()
            .unwrap();
        let (port, endpoint) = (free.port().to_string(), format!("http://{free}/mcp"));
        world.player(
            &manager,
            &id,
            &[
                "--stay",
                "--host",
                &host,
                "--port",
                &port,
                "--contact-endpoint",
                &endpoint,
            ],
        )
    });
    let mut played = Vec::new();
    for n in 1..=2 {
        wait_until(&format!("league {n} is over"), || {
            leagues(&world) == (n, "Closed".into())
        });
        world.check_played(8);
        played.push(ids(&world));
        say(&world, &manager, &["again"]);
    }
    assert_eq!(played[0], played[1]);
    for mut agent in class.into_iter().chain([referee, manager]) {
        assert!(
            agent.child.try_wait().unwrap().is_none(),
            "somebody has ended"
        );
    }
}

#[test]
fn a_player_that_comes_too_late_waits_for_the_next_league() {
    let world = World::new(&[]);
    let manager = world.manager(&["--stay", "--lead-sec", "0"]);
    let gate = Gate::default();
    let slow = gate.clone();
    let first = Peer::new(move |request| {
        slow.pass();
        good_player("P01", "even", request)
    });
    register_player(&manager.url(), "player:P01", &first.url);
    let _second = world.player(&manager, "P02", &["--stay"]);
    let _referee = world.referee(&manager, "REF01", &["--stay"]);
    wait_until("two are here", || world.journal().len() == 4);
    say(&world, &manager, &["start"]);
    let late = world.player(&manager, "P03", &["--stay"]);
    late.line("league already started: waiting for the next league (--stay)");
    gate.open();
    wait_until("it is over", || leagues(&world).1 == "Closed");
    say(&world, &manager, &["again"]);
    late.line("is P03 in league_2025_even_odd");
    wait_until("the others are here", || {
        leagues(&world).0 == 2 && world.journal().len() == 4
    });
    say(&world, &manager, &["start"]);
    wait_until("another is over", || {
        leagues(&world) == (2, "Closed".into())
    });
    assert_eq!(ids(&world), ["P02", "P03"]);
}

#[test]
fn a_manager_that_dies_between_again_and_the_new_lobby_opens_it_when_it_is_back() {
    let world = World::new(&[]);
    let run = ["--players", "2", "--stay", "--lead-sec", "0"];
    let mut manager = world.manager(&run);
    let players = ["P01", "P02"].map(|id| world.player(&manager, id, &["--stay"]));
    let referee = world.referee(&manager, "REF01", &["--stay"]);
    wait_until("it is over", || leagues(&world).1 == "Closed");
    http(
        "GET",
        &manager.url().replace("/mcp", "/league.json"),
        "",
        b"",
    ); // whoever looks is waited for
    say(&world, &manager, &["again"]);
    assert_eq!(
        leagues(&world),
        (1, "Again".into()),
        "nothing is set aside yet"
    );
    manager.restart(&world, &run);
    wait_until("another is over", || {
        leagues(&world) == (2, "Closed".into())
    });
    world.check_played(2);
    assert_eq!(ids(&world), ["P01", "P02"], "they keep their ids");
    let pages = std::fs::read_dir(world.folder.join("data/matches"))
        .unwrap()
        .count();
    assert_eq!(pages, 2, "with its matches");
    for mut agent in players.into_iter().chain([referee]) {
        assert!(
            agent.child.try_wait().unwrap().is_none(),
            "somebody has ended"
        );
    }
}
