//! What a person sees of a league, and keeps: the document and the page that shows it, the report,
//! the tables as CSV. `browser.rs` looks at the page; whether it is good to look at is judged by
//! eye.

use super::support::{seen::*, *};
use crate::tables::{pad, width};
use std::fs;

/// A header of a head.
fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let found = head
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no {name}: {head}"))
}

fn matches_of(document: &Value) -> impl Iterator<Item = &Value> {
    let rounds = list_of(&document["rounds"]).iter();
    rounds.flat_map(|round| list_of(&round["matches"]))
}

#[test]
fn the_document_follows_the_league_and_tells_no_choice_before_the_draw() {
    let (world, manager) = with_manager("serve --stay --lead-sec 0");
    let url = manager.url();
    let empty = document(&url);
    let told = ["status", "agents", "champion"].map(|key| empty[key].clone());
    assert_eq!(told, [json!("waiting"), json!([]), Value::Null]);
    assert_eq!(empty["league"]["register_at"], json!(url));
    let gate = Gate::default();
    let peers = [
        Peer::new(|request| good_player("P11", "even", request)),
        slow_player("P12", "even", &gate, asks),
    ];
    for (id, peer) in ["P11", "P12"].iter().zip(&peers) {
        register_player(&url, id, &peer.url);
    }
    register_player(&url, "P13", "http://127.0.0.1:9/mcp");
    let heard = |id: &str, reachable: bool| {
        until(&format!("{id} is reachable: {reachable}"), || {
            agent(&document(&url), id).filter(|it| it["reachable"] == reachable)
        })
    };
    let silent = heard("P13", false);
    let trouble = text_of(&silent["trouble"]);
    assert!(trouble.contains("could not be reached"), "{silent}");
    let alive = heard("P11", true);
    assert_eq!(
        [&alive["endpoint"], &alive["trouble"]],
        [&json!(peers[0].url), &Value::Null]
    );
    assert!(alive["answers_in_ms"].is_u64(), "{alive}");

    let _referee = start(&world, &manager);
    peers[1].first("CHOOSE_PARITY_CALL"); // the other has chosen, this one has not
    let plain = json!({"match_id": "R3M1", "player_A_id": "P11", "player_B_id": "P12", "status": "assigned", "referee_id": "REF01"});
    let playing = until("R3M1 is in play", || {
        let now = document(&url);
        let game = matches_of(&now).nth(2)?;
        (game["status"] == "assigned").then(|| now.clone())
    });
    let game = matches_of(&playing).nth(2);
    assert_eq!(game, Some(&plain), "no choice before the result");
    check_no_token(&playing.to_string());
    let (status, _, why) = get(&url, "/trace/R3M1");
    let words = "this match has no result yet; then it can be seen";
    assert_eq!((status, &*why), (404, words), "no choice here either");
    gate.open();
    let over = until("it is over", || {
        Some(document(&url)).filter(|it| it["status"] == "completed")
    });
    let standings = list_of(&over["standings"]);
    wait_until("standings.json says the same", || {
        standings == world.table()
    });
    assert_eq!(over["champion"]["player_id"], standings[0]["player_id"]);
    for row in standings {
        let id = text_of(&row["player_id"]);
        let scores = matches_of(&over).filter_map(|game| game["score"][id].as_i64());
        assert_eq!(Some(scores.sum::<i64>()), row["points"].as_i64(), "{over}");
    }
    let lost = matches_of(&over).filter(|game| game["ending"] == "TECHNICAL_LOSS");
    let lost: Vec<&str> = lost.map(|game| text_of(&game["reason"])).collect();
    assert!(
        lost.len() == 2 && lost.iter().all(|it| it.starts_with("P13 ")),
        "{lost:?}"
    );
    assert!(text_of(&over["luck"]).starts_with("Luck: "), "{over}");
    let (status, head, diagram) = get(&url, "/trace/r3m1");
    let kind = header(&head, "Content-Type");
    assert_eq!((status, kind), (200, "text/plain; charset=utf-8"));
    for shown in ["\n          conv-r3m1-", "CHOOSE_PARITY_RESPONSE \"even\""] {
        check_says(&diagram, shown);
    }
    for secret in ["tok-", "http", "\x1b"] {
        assert!(!diagram.contains(secret), "{diagram}");
    }
    assert_eq!(get(&url, "/trace/R9M9").2, "the league has no such match");
}

#[test]
fn the_page_is_safe_and_has_its_data_inside() {
    let (_world, manager) = with_manager("serve --name `10b, </script>`");
    let url = manager.url();
    // A browser at /mcp is led to the page.
    for (accepts, status) in [("text/html,*/*", 303), ("application/json", 405)] {
        let came = http("GET", &url, &format!("Accept: {accepts}\r\n"), b"");
        assert_eq!(came.0, status, "{accepts}");
    }
    let nonces = [(), ()].map(|()| {
        let (status, head, page) = get(&url, "/");
        let framed = header(&head, "Content-Security-Policy");
        assert_eq!(framed, "frame-ancestors 'none'");
        let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
        let nonce = between(policy, "'nonce-", "'").to_string();
        assert!(status == 200 && nonce.len() >= 32 && !policy.contains("unsafe"));
        assert!(policy.starts_with("default-src 'none'"));
        let count = |words: &str| page.matches(words).count();
        let own = format!("nonce=\"{nonce}\"");
        assert_eq!(
            [count(&own), count("<script nonce")],
            [2, 1],
            "script and style"
        );
        assert_eq!(["{{", "innerHTML", "https://"].map(count), [0; 3]);
        assert_eq!(data(&page)["league"]["name"], "10b, </script>");
        nonce
    });
    assert_ne!(nonces[0], nonces[1], "fresh each time");
    let posted = http("POST", &url.replace("/mcp", "/league.json"), "", b"");
    assert_eq!(posted.0, 405);
    for (path, kind) in [
        ("/report.html", "text/html"),
        ("/results.csv", "text/csv"),
        ("/standings.csv", "text/csv"),
    ] {
        let (status, head, _) = get(&url, path);
        let way = header(&head, "Content-Disposition");
        assert_eq!((status, way), (200, "attachment"), "{path}");
        assert!(header(&head, "Content-Type").starts_with(kind), "{path}");
    }
    for (path, words) in [("/player.py", "def choose("), ("/protocol", "league.v2")] {
        assert!(get(&url, path).2.contains(words), "{path}");
    }
}

/// The data inside a page.
fn data(page: &str) -> Value {
    let inside = between(page, "<script type=\"application/json\"", "</script>");
    let inside = inside.split_once('>').unwrap().1;
    assert!(!inside.contains('<'), "no name ends the script: {inside}");
    json_of(inside)
}

#[test]
fn a_page_gets_only_the_rounds_that_have_changed_since_its_version() {
    let (world, manager) = with_manager("serve --lead-sec 5");
    let url = manager.url();
    let since = |version: &Value| -> Value {
        let (_, _, body) = get(&url, &format!("/league.json?since={version}"));
        json_of(&body)
    };
    let rounds = |document: &Value| -> Vec<Value> {
        let rounds = list_of(&document["rounds"]).iter();
        rounds.map(|round| round["round_id"].clone()).collect()
    };
    let gate = Gate::default();
    for id in ["P11", "P12", "P13", "P14"] {
        let peer = slow_player(id, "even", &gate, |it| asks(it) && it["match_id"] == "R1M2");
        register_player(&url, id, &peer.url);
    }
    assert!(
        rounds(&document(&url)).is_empty(),
        "before the start there are no rounds"
    );
    let _referee = start(&world, &manager);
    let announced = until("the first round is announced", || {
        Some(document(&url)).filter(|it| it["next_at"].is_string())
    });
    assert_eq!(rounds(&announced), [1, 2, 3]);
    assert_eq!(announced["matches_completed"], 0);
    let begun = until("R1M1 is over", || {
        Some(since(&announced["version"])).filter(|it| it["matches_completed"] == 1)
    });
    assert_eq!(
        (rounds(&begun), &begun["next_at"]),
        (vec![json!(1)], &Value::Null)
    );
    assert_eq!(
        list_of(&begun["standings"]).len(),
        4,
        "what is no round comes whole"
    );
    assert!(
        rounds(&since(&begun["version"])).is_empty(),
        "nothing is new"
    );
    for unknown in [json!(0), json!("x"), json!(u64::MAX)] {
        let all = rounds(&since(&unknown));
        assert_eq!(all, [1, 2, 3], "{unknown} is no version of this league");
    }
    gate.open();
}

#[test]
fn the_tool_gives_a_round_unless_asked_for_more_and_endpoints_to_this_machine_alone() {
    let (_world, manager) =
        with_manager("serve --host 0.0.0.0 --contact-endpoint http://localhost:1/mcp");
    let url = format!("http://127.0.0.1:{}/mcp", manager.port());
    let peer = listener();
    for id in ["P11", "P12", "P13", "P14"] {
        register_player(&url, id, &format!("{}{id}", peer.url));
    }
    for (asked, matches) in [
        (json!({}), "R1M1 R1M2"),
        (json!({"round_id": 2}), "R2M1 R2M2"),
        (json!({"rounds": "all"}), "R1M1 R1M2 R2M1 R2M2 R3M1 R3M2"),
    ] {
        wait_until("everybody is in the answer", || {
            let answer = call(&url, "get_league", asked.clone())["result"].take();
            let ids = matches_of(&answer).map(|game| text_of(&game["match_id"]));
            let ids = ids.collect::<Vec<_>>().join(" ");
            ids == matches && list_of(&answer["agents"]).len() == 4
        });
    }
    let Some(own) = own_address() else { return };
    let here = document(&url);
    let there = document(&url.replace("127.0.0.1", &own.to_string()));
    let endpoints = [here, there.clone()].map(|it| it["agents"][0]["endpoint"].is_string());
    assert_eq!(endpoints, [true, false], "{there}");
    assert!(!there.to_string().contains(&peer.url), "{there}");
}

/// The names of five players, which would be formulas or end a script.
const NAMES: [&str; 5] = [
    "</script><script>alert(1)</script>",
    "=1+1,\"x\"",
    "-cmd|' /C calc'!A0",
    "Twin",
    "Twin",
];

/// A league of them in which all say even, and draw.
fn drawn_league(world: &World, draw_points: u32) {
    world.edit("league", "scoring.draw_points", json!(draw_points));
    let mut manager = world.serve("--players 5 --lead-sec 0");
    let mut referee = world.agent(&manager, "REF01", "");
    let mut players = [0, 1, 2, 3, 4].map(|n| {
        let own = format!("play even --display-name `{}`", NAMES[n]);
        world.agent(&manager, &format!("P1{n}"), &own)
    });
    for agent in [&mut manager, &mut referee].into_iter().chain(&mut players) {
        agent.ends_well();
    }
    let kept = "to keep: report.html, results.csv and standings.csv in ";
    assert!(manager.output().contains(kept));
}

#[test]
fn what_is_kept_says_the_same_and_names_do_no_harm() {
    let world = World::new("");
    assert_eq!(world.word("season").0, Some(1), "nothing was played yet");
    drawn_league(&world, 1);
    drawn_league(&world, 2);
    let read = |name: &str| fs::read_to_string(world.league_file(name)).unwrap();
    let report = read("report.html");
    let kept = data(&report);
    assert_eq!(kept["standings"], json!(world.table()));
    assert!(report.contains("http-equiv=\"Content-Security-Policy\""));
    let mut agents = list_of(&kept["agents"]).iter();
    assert!(
        agents.all(|agent| agent["endpoint"].is_null()),
        "no endpoints"
    );
    let (results, standings) = (read("results.csv"), read("standings.csv"));
    assert_eq!([&results, &standings].map(|it| it.lines().count()), [11, 6]);
    let harmless = ["\"'=1+1,\"\"x\"\"\"", "\"'-cmd|' /C calc'!A0\""];
    for cell in harmless {
        assert!(
            results.contains(cell) && standings.contains(cell),
            "{standings}"
        );
    }
    let season = world.word("season").1;
    let squeezed = season.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
    let rows = squeezed.matches(" 0 8 0 12 1.50 12.0 ").count();
    assert_eq!(
        rows, 5,
        "8 draws, of 1 point in one league and of 2 in the other: {season}"
    );
    check_words(&season, &["2 leagues, ", "Twin (P13)", "Twin (P14)"], &[]);
    let csv = read("../league_2025_even_odd.season.csv");
    assert!(
        csv.lines().count() == 6 && csv.contains(harmless[0]),
        "{csv}"
    );
}

#[test]
fn the_terminal_shows_tables_between_rounds_and_quiet_shows_the_result() {
    const HEADS: [&str; 5] = [
        "Rank  Id   Player",
        "Round ",
        "Champion: ",
        "Luck: ",
        "to keep: ",
    ];
    for (options, expected) in [("", [3, 3, 1, 1, 1]), ("--quiet", [1, 0, 1, 0, 0])] {
        let output = World::new("").local(options);
        let is_plain = !output.contains(['\x1b', '\r']);
        assert!(is_plain, "plain where it is no terminal: {output}");
        let count = |text| output.lines().filter(|line| line.starts_with(text)).count();
        assert_eq!(HEADS.map(count), expected, "{output}");
    }
    for (text, columns) in [("abc", 3), ("日本", 4), ("🎲", 2), ("אבג", 3)] {
        assert_eq!((width(text), width(&pad(text, 9))), (columns, 9), "{text}");
    }
}
