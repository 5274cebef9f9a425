//! What a person sees of a league, and keeps: the document and the page that shows it, the report, the tables as CSV,
//! the season, the luck. How the page looks is judged by eye: no browser is needed here.

mod support;

use league::game::Scoring;
use league::manager::luck::Lottery;
use league::program::terminal::{pad, width};
use serde_json::{Value, json};
use std::fs;
use support::*;

const LEAGUE: &str = "leagues/league_2025_even_odd";

/// A GET: the status, the head and the body. `headers` end with a line break each.
fn get(url: &str, path: &str, headers: &str) -> (u16, String, String) {
    let host = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
    let answer = String::from_utf8(raw(url, request.as_bytes(), PATIENCE)).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.into(), body.into())
}

fn document(url: &str) -> Value {
    serde_json::from_str(&get(url, "/league.json", "").2).unwrap()
}

/// A header of a head.
fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let found = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no {name}: {head}"))
}

fn matches_of(document: &Value) -> impl Iterator<Item = &Value> {
    document["rounds"].as_array().unwrap().iter().flat_map(|round| round["matches"].as_array().unwrap())
}

#[test]
fn the_document_follows_the_league_and_is_sent_once() {
    let world = World::new(&[]);
    let manager = world.manager(&["--lead-sec", "0"]);
    let url = manager.url();
    let empty = document(&url);
    assert_eq!((&empty["status"], &empty["agents"], &empty["champion"]), (&json!("waiting"), &json!([]), &Value::Null));
    assert_eq!(empty["league"]["register_at"], json!(url));
    let gate = Gate::default();
    let peers = ["P11", "P12"].map(|id| {
        let slow = gate.clone();
        let peer = Peer::new(move |request| {
            if request["params"]["message_type"] == "CHOOSE_PARITY_CALL" && id == "P12" {
                slow.pass();
            }
            good_player(id, "even", request)
        });
        register_player(&url, &format!("player:{id}"), &peer.url);
        peer
    });
    register_player(&url, "player:P13", "http://127.0.0.1:9/mcp");
    let agent = |id: &str| document(&url)["agents"].as_array()?.iter().find(|it| it["id"] == id).cloned();
    let silent = until("P13 is known not to answer", || agent("P13").filter(|it| it["reachable"] == false));
    assert!(silent["trouble"].as_str().unwrap().contains("could not be reached"), "{silent}");
    let alive = until("P11 is known to answer", || agent("P11").filter(|it| it["reachable"] == true));
    assert_eq!((&alive["endpoint"], &alive["trouble"]), (&json!(peers[0].url), &Value::Null));
    assert!(alive["answers_in_ms"].is_u64(), "{alive}");

    let referee = world.referee(&manager, "REF01", &[]);
    referee.line(" is REF01");
    send(&url, &message("START_LEAGUE", "launcher", json!({"league_id": "league_2025_even_odd"})));
    peers[1].first("CHOOSE_PARITY_CALL"); // the other has chosen, this one has not
    let plain = json!({"match_id": "R3M1", "player_A_id": "P11", "player_B_id": "P12", "status": "assigned", "referee_id": "REF01"});
    let playing = until("R3M1 is in play", || {
        Some(document(&url)).filter(|it| matches_of(it).nth(2).is_some_and(|game| game["status"] == "assigned"))
    });
    assert_eq!(matches_of(&playing).nth(2), Some(&plain), "no choice before the result");
    assert!(!playing.to_string().contains("tok-"), "a token: {playing}");
    gate.open();
    let over = until("it is over", || Some(document(&url)).filter(|it| it["status"] == "completed"));
    until("standings.json says the same", || (over["standings"] == json!(world.table())).then_some(()));
    assert_eq!(over["champion"]["player_id"], over["standings"][0]["player_id"]);
    for row in over["standings"].as_array().unwrap() {
        let points = over["points_per_round"][row["player_id"].as_str().unwrap()].as_array().unwrap();
        assert_eq!((points.len(), points.last()), (3, Some(&row["points"])), "{over}");
    }
    let lost: Vec<&Value> = matches_of(&over).filter(|game| game["ending"] == "TECHNICAL_LOSS").collect();
    let is_told = |game: &&Value| game["reason"].as_str().unwrap().starts_with("P13 ");
    assert!(lost.len() == 2 && lost.iter().all(is_told), "{lost:?}");
    assert!(over["luck"].as_str().unwrap().starts_with("Luck: "), "{over}");
}

#[test]
fn the_page_is_safe_and_the_document_conditional() {
    let world = World::new(&[]);
    let manager = world.manager(&[]);
    let url = manager.url();
    let nonces = [(), ()].map(|()| {
        let (status, head, page) = get(&url, "/", "");
        let policy = header(&head, "Content-Security-Policy");
        let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_string();
        assert!(status == 200 && nonce.len() >= 32 && !policy.contains("unsafe"), "{policy}");
        assert!(policy.starts_with("default-src 'none'") && !page.contains("{{"), "{policy}");
        let own = format!("nonce=\"{nonce}\"");
        assert_eq!((page.matches(&own).count(), page.matches("<script nonce").count()), (2, 1), "script and style");
        assert!(!page.contains("innerHTML") && !page.contains("https://"), "all is text, and from here");
        nonce
    });
    assert_ne!(nonces[0], nonces[1], "fresh each time");
    let (_, head, _) = get(&url, "/league.json", "");
    let tag = header(&head, "ETag");
    for (asked, status) in [(tag.to_string(), 304), (format!("\"x\", W/{tag}"), 304), ("\"x\"".into(), 200)] {
        let (came, _, body) = get(&url, "/league.json", &format!("If-None-Match: {asked}\r\n"));
        assert_eq!((came, body.is_empty()), (status, status == 304), "{asked}");
    }
    assert_eq!(http("POST", &url.replace("/mcp", "/league.json"), "", b"").0, 405);
}

#[test]
fn the_tool_gives_a_round_unless_asked_for_more_and_endpoints_to_this_machine_alone() {
    let world = World::new(&[]);
    let manager = world.start("league_manager", &["--host", "0.0.0.0", "--contact-endpoint", "http://localhost:1/mcp"]);
    let url = manager.url().replace("0.0.0.0", "127.0.0.1");
    let peer = listener();
    for id in ["P11", "P12", "P13", "P14"] {
        register_player(&url, &format!("player:{id}"), &format!("{}{id}", peer.url));
    }
    let rows = [(json!({}), "R1M1 R1M2"), (json!({"round_id": 2}), "R2M1 R2M2")];
    for (asked, matches) in rows.into_iter().chain([(json!({"rounds": "all"}), "R1M1 R1M2 R2M1 R2M2 R3M1 R3M2")]) {
        let answer = call(&url, "get_league", asked)["result"].take();
        let came: Vec<&str> = matches_of(&answer).map(|game| game["match_id"].as_str().unwrap()).collect();
        assert_eq!((came.join(" "), answer["agents"].as_array().unwrap().len()), (matches.into(), 4));
    }
    // Which of our addresses a call to elsewhere would have; nothing is sent.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|it| it.connect("192.0.2.1:9").and(it.local_addr()));
    let Some(address) = probe.ok().map(|it| it.ip().to_string()).filter(|it| !it.starts_with("127.")) else {
        return eprintln!("left out: this machine has no other address");
    };
    let (here, there) = (document(&url), document(&url.replace("127.0.0.1", &address)));
    assert!(here["agents"][0]["endpoint"].is_string() && there["agents"][0]["endpoint"].is_null(), "{there}");
    assert!(!there.to_string().contains(&peer.url), "{there}");
}

#[test]
fn what_is_kept_says_the_same_and_names_do_no_harm() {
    let world = World::new(&[]);
    let season = || world.command("league_manager", &["season"]).output().unwrap();
    assert_eq!(season().status.code(), Some(1), "nothing was played yet");
    let names = ["</script><script>alert(1)</script>", "=1+1,\"x\"", "-cmd|' /C calc'!A0", "Twin", "Twin"];
    for run in 1..=2 {
        let mut manager = world.manager(&["--players", "5", "--lead-sec", "0"]);
        let mut referee = world.referee(&manager, "REF01", &[]);
        let mut player = |n: usize| world.player(&manager, &format!("P1{n}"), &["--display-name", names[n]]);
        let mut players = [0, 1, 2, 3, 4].map(&mut player);
        assert!(manager.wait().success() && referee.wait().success(), "run {run}");
        players.iter_mut().for_each(|player| assert!(player.wait().success()));
        assert!(manager.output().contains("to keep: report.html, results.csv and standings.csv in "));
    }
    let read = |name: &str| fs::read_to_string(world.folder.join("data").join(LEAGUE).join(name)).unwrap();
    let report = read("report.html");
    let data = report.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let kept: Value = serde_json::from_str(data).unwrap();
    assert_eq!(kept["standings"], json!(world.table()), "the report says what standings.json says");
    assert!(!data.contains('<') && report.contains("http-equiv=\"Content-Security-Policy\""));
    assert!(kept["agents"].as_array().unwrap().iter().all(|agent| agent["endpoint"].is_null()), "no endpoints");
    let (results, standings) = (read("results.csv"), read("standings.csv"));
    assert_eq!((results.lines().count(), standings.lines().count()), (11, 6));
    let harmless = ["\"'=1+1,\"\"x\"\"\"", "\"'-cmd|' /C calc'!A0\""];
    assert!(harmless.iter().all(|cell| results.contains(cell) && standings.contains(cell)), "{standings}");
    let (season, csv) = (String::from_utf8(season().stdout).unwrap(), read("../league_2025_even_odd.season.csv"));
    assert!(season.starts_with("2 leagues, "), "{season}");
    let first = season.lines().find(|line| line.contains(names[0])).unwrap();
    assert_eq!(first.split_whitespace().rev().nth(4), Some("8"), "played: {season}");
    let wanted = ["Twin (P13)", "Twin (P14)", "the same name: they are kept apart by their ids"];
    assert!(wanted.iter().all(|wanted| season.contains(wanted)), "{season}");
    assert!(csv.lines().count() == 6 && csv.contains(harmless[0]), "{csv}");
}

#[test]
fn luck_is_exact_where_few_tables_are_possible_and_close_elsewhere() {
    let (tiebreakers, loss_points, technical_loss_points) = (Vec::new(), 0, 0);
    let scoring = Scoring { win_points: 3, draw_points: 1, loss_points, technical_loss_points, tiebreakers };
    let lottery = |players, games| Lottery { players, games, scoring: scoring.clone() };
    // Two players: one match ends 1 : 1 with chance 1/2; of two matches somebody wins both with 1/8, and so on.
    let rows = [(1, 1, 1.0), (1, 3, 0.5), (1, 4, 0.0), (2, 2, 1.0), (2, 3, 0.75), (2, 4, 0.625), (2, 6, 0.125)];
    for (matches, points, chance) in rows {
        let came = lottery(2, vec![[0, 1]; matches]).chance(points);
        assert!((came - chance).abs() < 1e-12, "{matches} matches, {points} points: {came}, expected {chance}");
    }
    let four = lottery(4, vec![[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]]);
    for points in 3..=9 {
        let (exact, simulated) = (four.exact(points).unwrap(), four.simulated(points, 1_000_000));
        assert!((exact - simulated).abs() < 0.002, "{points} points: {exact}, simulated {simulated}");
    }
    let pairs = (0..20).flat_map(|a| (0..a).map(move |b| [a, b]));
    let large = lottery(20, pairs.collect());
    assert_eq!((large.exact(40), large.chance(40).to_bits()), (None, large.chance(40).to_bits()), "always the same");
}

#[test]
fn the_terminal_shows_tables_between_rounds_and_quiet_shows_the_result() {
    let heads = |args: &[&str]| {
        let world = World::new(&[]);
        let mut league = world.start("league_manager", &[&["local"], args].concat());
        assert!(league.wait().success());
        let output = league.output();
        assert!(!output.contains('\x1b') && !output.contains('\r'), "plain where it is no terminal: {output}");
        let count = |text: &str| output.lines().filter(|line| line.starts_with(text)).count();
        [count("Rank  Id    Player"), count("Round "), count("Champion: "), count("Luck: "), count("to keep: ")]
    };
    assert_eq!((heads(&[]), heads(&["--quiet"])), ([3, 3, 1, 1, 1], [1, 0, 1, 0, 0]));
    for (text, columns) in [("abc", 3), ("日本", 4), ("e\u{301}", 1), ("🎲", 2), ("אבג", 3)] {
        assert_eq!((width(text), width(&pad(text, 9))), (columns, 9), "{text}");
    }
}
