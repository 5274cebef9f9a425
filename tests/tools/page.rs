//! The document of a league, the page that shows it, the report, and the tables as CSV. `browser.rs`
//! runs the page in a browser.

use super::matches_of;
use super::support::pages::{agent, between, document, get, start};
use super::support::*;
use league::program::terminal::width;
use std::fs;

/// Returns a header of a response.
fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let mut lines = head.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value.unwrap_or_else(|| panic!("no {name}: {head}"))
}

/// Waits until the manager could reach an agent, or could not.
fn wait_for_status(url: &str, id: &str, reachable: bool) -> Value {
    until(&format!("{id} is reachable: {reachable}"), || {
        agent(&document(url), id).filter(|agent| agent["reachable"] == reachable)
    })
}

#[test]
fn document_follows_the_league_and_shows_no_choice_before_the_result() {
    let (test, manager) = with_manager("serve --stay --lead-sec 0");
    let url = manager.url();
    let empty = document(&url);
    let fields = ["status", "agents", "champion"].map(|key| empty[key].clone());
    assert_eq!(fields, [json!("waiting"), json!([]), Value::Null]);
    assert_eq!(empty["league"]["register_at"], json!(url));
    let gate = Gate::default();
    let peers = [
        FakeAgent::new(|request| valid_reply("P11", "even", request)),
        slow_player("P12", "even", &gate, is_parity_call),
    ];
    for (id, peer) in ["P11", "P12"].iter().zip(&peers) {
        register_player(&url, id, &peer.url);
    }
    register_player(&url, "P13", "http://127.0.0.1:9/mcp");
    let silent = wait_for_status(&url, "P13", false);
    let trouble = text_of(&silent["trouble"]);
    assert!(trouble.contains("could not be reached"), "{silent}");
    let alive = wait_for_status(&url, "P11", true);
    assert_eq!(
        [&alive["endpoint"], &alive["trouble"]],
        [&json!(peers[0].url), &Value::Null]
    );

    let _referee = start(&test, &manager);
    peers[1].first("CHOOSE_PARITY_CALL"); // the other has chosen, this one has not
    let expected = json!({"match_id": "R3M1", "player_A_id": "P11", "player_B_id": "P12", "status": "assigned", "referee_id": "REF01"});
    let playing = until("R3M1 is in play", || {
        let now = document(&url);
        let third = matches_of(&now).nth(2)?;
        (third["status"] == "assigned").then(|| now.clone())
    });
    let third = matches_of(&playing).nth(2);
    assert_eq!(third, Some(&expected), "no choice before the result");
    check_no_token(&playing.to_string());
    let (status, _, text) = get(&url, "/trace/R3M1");
    let problem = "this match has no result yet; then it can be seen";
    assert_eq!((status, &*text), (404, problem), "no choice here either");
    gate.open();
    let over = until("it is over", || {
        Some(document(&url)).filter(|now| now["status"] == "completed")
    });
    let standings = list_of(&over["standings"]);
    wait_until("standings.json says the same", || standings == test.table());
    assert_eq!(over["champion"]["player_id"], standings[0]["player_id"]);
    for row in standings {
        let id = text_of(&row["player_id"]);
        let scores = matches_of(&over).filter_map(|played| played["score"][id].as_i64());
        assert_eq!(Some(scores.sum::<i64>()), row["points"].as_i64(), "{over}");
    }
    let lost = matches_of(&over).filter(|played| played["ending"] == "TECHNICAL_LOSS");
    let reasons: Vec<&str> = lost.map(|lost| text_of(&lost["reason"])).collect();
    assert!(
        reasons.len() == 2 && reasons.iter().all(|reason| reason.starts_with("P13 ")),
        "{reasons:?}"
    );
    let (status, head, diagram) = get(&url, "/trace/r3m1");
    let kind = header(&head, "Content-Type");
    assert_eq!((status, kind), (200, "text/plain; charset=utf-8"));
    for text in ["\n          conv-r3m1-", "CHOOSE_PARITY_RESPONSE \"even\""] {
        check_contains(&diagram, text);
    }
    for secret in ["tok-", "http", "\x1b"] {
        assert!(!diagram.contains(secret), "{diagram}");
    }
    assert_eq!(get(&url, "/trace/R9M9").2, "the league has no such match");
}

#[test]
fn page_runs_only_its_own_script_and_has_its_data() {
    let (_world, manager) = with_manager("serve --name `10b, </script>`");
    let url = manager.url();
    // A browser at /mcp is redirected to the page.
    for (accepted, status) in [("text/html,*/*", 303), ("application/json", 405)] {
        let response = http("GET", &url, &format!("Accept: {accepted}\r\n"), b"");
        assert_eq!(response.0, status, "{accepted}");
    }
    let nonces = [(), ()].map(|()| {
        let (status, head, page) = get(&url, "/");
        let frame_policy = header(&head, "Content-Security-Policy");
        assert_eq!(frame_policy, "frame-ancestors 'none'");
        let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
        let nonce = between(policy, "'nonce-", "'").to_string();
        assert!(status == 200 && nonce.len() >= 32 && !policy.contains("unsafe"));
        assert!(policy.starts_with("default-src 'none'"));
        let own_nonce = format!("nonce=\"{nonce}\"");
        for (text, count) in [(&*own_nonce, 2), ("<script nonce", 1)] {
            assert_eq!(page.matches(text).count(), count, "script and style");
        }
        for forbidden in ["{{", "innerHTML", "https://"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert_eq!(data(&page)["league"]["name"], "10b, </script>");
        nonce
    });
    assert_ne!(nonces[0], nonces[1], "a new one each time");
    let posted = http("POST", &url.replace("/mcp", "/league.json"), "", b"");
    assert_eq!(posted.0, 405);
    for (path, kind) in [
        ("/report.html", "text/html"),
        ("/results.csv", "text/csv"),
        ("/standings.csv", "text/csv"),
    ] {
        let (status, head, _) = get(&url, path);
        let disposition = header(&head, "Content-Disposition");
        assert_eq!((status, disposition), (200, "attachment"), "{path}");
        assert!(header(&head, "Content-Type").starts_with(kind), "{path}");
    }
    for (path, text) in [
        ("/player.py", "def choose("),
        ("/league_player.py", "class Player"),
        ("/protocol", "league.v2"),
    ] {
        assert!(get(&url, path).2.contains(text), "{path}");
    }
}

/// Returns the data in a page.
fn data(page: &str) -> Value {
    let script = between(page, "<script type=\"application/json\"", "</script>");
    let (_, data) = script.split_once('>').unwrap();
    assert!(!data.contains('<'), "no name ends the script: {data}");
    json_of(data)
}

/// Returns the document for a page that has a version.
fn changes_since(url: &str, version: &Value) -> Value {
    let (_, _, body) = get(url, &format!("/league.json?since={version}"));
    json_of(&body)
}

fn round_ids(document: &Value) -> Vec<Value> {
    let rounds = list_of(&document["rounds"]).iter();
    rounds.map(|round| round["round_id"].clone()).collect()
}

#[test]
fn document_since_a_version_has_only_the_changed_rounds() {
    let (test, manager) = with_manager("serve --lead-sec 5");
    let url = manager.url();
    let gate = Gate::default();
    for id in ["P11", "P12", "P13", "P14"] {
        let peer = slow_player(id, "even", &gate, |call| {
            is_parity_call(call) && call["match_id"] == "R1M2"
        });
        register_player(&url, id, &peer.url);
    }
    assert!(
        round_ids(&document(&url)).is_empty(),
        "before the start there are no rounds"
    );
    let _referee = start(&test, &manager);
    let announced = until("the first round is announced", || {
        Some(document(&url)).filter(|now| now["next_at"].is_string())
    });
    assert_eq!(round_ids(&announced), [1, 2, 3]);
    assert_eq!(announced["matches_completed"], 0);
    let begun = until("R1M1 is over", || {
        let now = changes_since(&url, &announced["version"]);
        (now["matches_completed"] == 1).then_some(now)
    });
    assert_eq!(
        (round_ids(&begun), &begun["next_at"]),
        (vec![json!(1)], &Value::Null)
    );
    assert_eq!(
        list_of(&begun["standings"]).len(),
        4,
        "everything except rounds is complete"
    );
    assert!(
        round_ids(&changes_since(&url, &begun["version"])).is_empty(),
        "nothing has changed"
    );
    for unknown in [json!(0), json!("x"), json!(u64::MAX)] {
        let all = round_ids(&changes_since(&url, &unknown));
        assert_eq!(all, [1, 2, 3], "{unknown} is no version of this league");
    }
    gate.open();
}

#[test]
fn get_league_returns_the_open_round_and_endpoints_only_to_this_machine() {
    let (_world, manager) =
        with_manager("serve --host 0.0.0.0 --contact-endpoint http://localhost:1/mcp");
    let url = format!("http://127.0.0.1:{}/mcp", manager.port());
    let peer = idle_agent();
    for id in ["P11", "P12", "P13", "P14"] {
        register_player(&url, id, &format!("{}{id}", peer.url));
    }
    for (arguments, matches) in [
        (json!({}), "R1M1 R1M2"),
        (json!({"round_id": 2}), "R2M1 R2M2"),
        (json!({"rounds": "all"}), "R1M1 R1M2 R2M1 R2M2 R3M1 R3M2"),
    ] {
        wait_until("all agents are in the answer", || {
            let answer = call(&url, "get_league", arguments.clone())["result"].take();
            let ids = matches_of(&answer).map(|the_match| text_of(&the_match["match_id"]));
            let ids = ids.collect::<Vec<_>>().join(" ");
            ids == matches && list_of(&answer["agents"]).len() == 4
        });
    }
    let Some(own_address) = own_address() else {
        return;
    };
    let local = document(&url);
    assert!(local["agents"][0]["endpoint"].is_string(), "{local}");
    let remote = document(&url.replace("127.0.0.1", &own_address.to_string()));
    assert!(!remote["agents"][0]["endpoint"].is_string(), "{remote}");
    assert!(!remote.to_string().contains(&peer.url), "{remote}");
}

/// The names of five players: they look like formulas, end a script, or are the same.
const NAMES: [&str; 5] = [
    "</script><script>alert(1)</script>",
    "=1+1,\"x\"",
    "-cmd|' /C calc'!A0",
    "Twin",
    "Twin",
];

/// Plays a league of these players, in which all choose even and draw.
fn drawn_league(test: &TestLeague, draw_points: u32) {
    test.edit("league", "scoring.draw_points", json!(draw_points));
    let mut manager = test.serve("--players 5 --lead-sec 0");
    let mut referee = test.agent(&manager, "REF01", "");
    let mut players = [0, 1, 2, 3, 4].map(|n| {
        let arguments = format!("play even --display-name `{}`", NAMES[n]);
        test.agent(&manager, &format!("P1{n}"), &arguments)
    });
    for agent in [&mut manager, &mut referee].into_iter().chain(&mut players) {
        agent.wait_for_success();
    }
    let text = "to keep: report.html, results.csv and standings.csv in ";
    assert!(manager.output().contains(text));
}

fn read_file(test: &TestLeague, name: &str) -> String {
    fs::read_to_string(test.league_file(name)).unwrap()
}

#[test]
fn exported_files_agree_and_escape_names() {
    let test = TestLeague::new("");
    assert_eq!(test.run_tool("season").0, Some(1), "nothing was played yet");
    drawn_league(&test, 1);
    drawn_league(&test, 2);
    let report = read_file(&test, "report.html");
    let data = data(&report);
    assert_eq!(data["standings"], json!(test.table()));
    assert!(report.contains("http-equiv=\"Content-Security-Policy\""));
    let mut agents = list_of(&data["agents"]).iter();
    assert!(
        agents.all(|agent| agent["endpoint"].is_null()),
        "no endpoints"
    );
    let results = read_file(&test, "results.csv");
    assert_eq!(results.lines().count(), 11);
    let standings = read_file(&test, "standings.csv");
    assert_eq!(standings.lines().count(), 6);
    let escaped = ["\"'=1+1,\"\"x\"\"\"", "\"'-cmd|' /C calc'!A0\""];
    for cell in escaped {
        assert!(
            results.contains(cell) && standings.contains(cell),
            "{standings}"
        );
    }
    let season = test.run_tool("season").1;
    let squeezed = season.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
    let rows = squeezed.matches(" 8 12 1.50 12.0 ").count();
    assert_eq!(
        rows, 3,
        "8 draws, of 1 point in one league and of 2 in the other: {season}"
    );
    check_contains(&season, "Twin");
}

#[test]
fn terminal_shows_tables_between_rounds_or_quietly_the_result() {
    const HEADS: [&str; 4] = ["Rank  Id   Player", "Round ", "Champion", "to keep: "];
    let output = TestLeague::new("").local("");
    let has_control_characters = output.contains(['\x1b', '\r']);
    assert!(!has_control_characters, "it is no terminal: {output}");
    for (head, expected) in HEADS.into_iter().zip([3, 3, 1, 1]) {
        let count = output.lines().filter(|line| line.starts_with(head)).count();
        assert_eq!(count, expected, "{head}: {output}");
    }

    // A league that is quiet prints one line, also with players that are started by a command.
    let test = TestLeague::new("");
    let file = test.folder.join("entrants.txt");
    let player = executable("player");
    let entrants = format!("Ada\t{}\nBob\teven\n", player.display());
    fs::write(&file, entrants).unwrap();
    let line = format!("local --quiet --port 0 --entrants {}", file.display());
    let data = test.folder.join("data");
    let (code, output) = test.run_tool(&line);
    let end = format!("{}: Champion", data.display());
    assert!(code == Some(0) && output.starts_with(&end), "{output}");
    assert_eq!(output.lines().count(), 1, "{output}");
    let (code, output) = test.run_tool(&line);
    let over = format!("{}: this league is over", data.display());
    assert!(code == Some(0) && output.contains(&over), "{output}");
    assert_eq!(output.lines().count(), 1, "{output}");
    for (text, columns) in [("abc", 3), ("日本", 4), ("🎲", 2), ("אבג", 3)] {
        assert_eq!(width(text), columns, "{text}");
    }
}
