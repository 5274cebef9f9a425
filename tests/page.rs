//! What a person sees of a league, and keeps: the document and the page that shows it, the report, the tables as CSV. One
//! test looks at the page with a browser, and says so where there is none; whether it is good
//! to look at is judged by eye.

mod support;

use league::extras::columns::{pad, width};
use serde_json::{Value, json};
use std::{
    fs,
    io::{self, Write},
    process::Command,
};
use support::*;

const LEAGUE: &str = "leagues/league_2025_even_odd";

/// A GET: the status, the head and the body.
fn get(url: &str, path: &str) -> (u16, String, String) {
    let host = url.split('/').nth(2).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = raw(url, request.as_bytes(), PATIENCE);
    let (status, body) = parted(&answer);
    (
        status,
        String::from_utf8(answer).unwrap().replace(&body, ""),
        body,
    )
}

fn document(url: &str) -> Value {
    serde_json::from_str(&get(url, "/league.json").2).unwrap()
}

/// What stands between two words of a text.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap();
    rest.split(after).next().unwrap()
}

/// A header of a head.
fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let found = head
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no {name}: {head}"))
}

fn matches_of(document: &Value) -> impl Iterator<Item = &Value> {
    document["rounds"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|round| round["matches"].as_array().unwrap())
}

#[test]
fn the_document_follows_the_league_and_tells_no_choice_before_the_draw() {
    let world = World::new(&[]);
    let manager = world.manager(&["--lead-sec", "0"]);
    let url = manager.url();
    let empty = document(&url);
    assert_eq!(
        (&empty["status"], &empty["agents"], &empty["champion"]),
        (&json!("waiting"), &json!([]), &Value::Null)
    );
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
    let agent = |id: &str| {
        document(&url)["agents"]
            .as_array()?
            .iter()
            .find(|it| it["id"] == id)
            .cloned()
    };
    let silent = until("P13 is known not to answer", || {
        agent("P13").filter(|it| it["reachable"] == false)
    });
    assert!(
        silent["trouble"]
            .as_str()
            .unwrap()
            .contains("could not be reached"),
        "{silent}"
    );
    let alive = until("P11 is known to answer", || {
        agent("P11").filter(|it| it["reachable"] == true)
    });
    assert_eq!(
        (&alive["endpoint"], &alive["trouble"]),
        (&json!(peers[0].url), &Value::Null)
    );
    assert!(alive["answers_in_ms"].is_u64(), "{alive}");

    let referee = world.referee(&manager, "REF01", &[]);
    referee.line(" is REF01");
    world.word(&["start", "--manager", &url]);
    peers[1].first("CHOOSE_PARITY_CALL"); // the other has chosen, this one has not
    let plain = json!({"match_id": "R3M1", "player_A_id": "P11", "player_B_id": "P12", "status": "assigned", "referee_id": "REF01"});
    let playing = until("R3M1 is in play", || {
        let now = document(&url);
        let game = matches_of(&now).nth(2)?;
        (game["status"] == "assigned").then(|| now.clone())
    });
    let game = matches_of(&playing).nth(2);
    assert_eq!(game, Some(&plain), "no choice before the result");
    assert!(!playing.to_string().contains("tok-"), "a token: {playing}");
    let (status, _, why) = get(&url, "/trace/R3M1");
    assert_eq!(
        (status, &*why),
        (404, "this match has no result yet; then it can be seen"),
        "no choice here either"
    );
    gate.open();
    let over = until("it is over", || {
        Some(document(&url)).filter(|it| it["status"] == "completed")
    });
    wait_until("standings.json says the same", || {
        over["standings"] == json!(world.table())
    });
    assert_eq!(
        over["champion"]["player_id"],
        over["standings"][0]["player_id"]
    );
    for row in over["standings"].as_array().unwrap() {
        let scores = matches_of(&over)
            .filter_map(|game| game["score"][row["player_id"].as_str().unwrap()].as_i64());
        assert_eq!(Some(scores.sum::<i64>()), row["points"].as_i64(), "{over}");
    }
    let lost: Vec<&Value> = matches_of(&over)
        .filter(|game| game["ending"] == "TECHNICAL_LOSS")
        .collect();
    let is_told = |game: &&Value| game["reason"].as_str().unwrap().starts_with("P13 ");
    assert!(lost.len() == 2 && lost.iter().all(is_told), "{lost:?}");
    assert!(
        over["luck"].as_str().unwrap().starts_with("Luck: "),
        "{over}"
    );
    let (status, head, diagram) = get(&url, "/trace/r3m1");
    assert_eq!(
        (status, header(&head, "Content-Type")),
        (200, "text/plain; charset=utf-8")
    );
    assert!(
        diagram.contains("\n          conv-r3m1-")
            && diagram.contains("CHOOSE_PARITY_RESPONSE \"even\""),
        "{diagram}"
    );
    assert!(
        ["tok-", "http", "\x1b"]
            .iter()
            .all(|secret| !diagram.contains(secret)),
        "{diagram}"
    );
    assert_eq!(get(&url, "/trace/R9M9").2, "the league has no such match");
}

#[test]
fn the_page_is_safe_and_has_its_data_inside() {
    let world = World::new(&[]);
    let manager = world.manager(&["--name", "10b, </script>"]);
    let url = manager.url();
    let (status, led) = http("GET", &url, "Accept: text/html,*/*\r\n", b"");
    assert_eq!(
        (status, led.as_str()),
        (303, ""),
        "a browser at /mcp is led to the page"
    );
    assert_eq!(
        http("GET", &url, "Accept: application/json\r\n", b"").0,
        405
    );
    let nonces = [(), ()].map(|()| {
        let (status, head, page) = get(&url, "/");
        let policy = header(&head, "Content-Security-Policy");
        let nonce = between(policy, "'nonce-", "'").to_string();
        assert!(status == 200 && nonce.len() >= 32 && !policy.contains("unsafe"));
        assert!(policy.starts_with("default-src 'none'") && !page.contains("{{"));
        let own = page.matches(&format!("nonce=\"{nonce}\"")).count();
        let scripts = page.matches("<script nonce").count();
        assert_eq!((own, scripts), (2, 1), "script and style");
        assert!(!page.contains("innerHTML") && !page.contains("https://"));
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
        assert_eq!(
            (status, header(&head, "Content-Disposition")),
            (200, "attachment")
        );
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
    serde_json::from_str(inside).unwrap()
}

#[test]
fn a_page_gets_only_the_rounds_that_have_changed_since_its_version() {
    let world = World::new(&[]);
    let manager = world.manager(&["--lead-sec", "3"]);
    let url = manager.url();
    let since = |version: &Value| -> Value {
        let (status, _, body) = get(&url, &format!("/league.json?since={version}"));
        assert_eq!(status, 200);
        serde_json::from_str(&body).unwrap()
    };
    let rounds = |document: &Value| -> Vec<u64> {
        let rounds = document["rounds"].as_array().unwrap();
        rounds
            .iter()
            .map(|round| round["round_id"].as_u64().unwrap())
            .collect()
    };
    let gate = Gate::default();
    let peers = ["P11", "P12", "P13", "P14"].map(|id| {
        let gate = gate.clone();
        Peer::new(move |request| {
            let asked = &request["params"];
            if asked["message_type"] == "CHOOSE_PARITY_CALL" && asked["match_id"] == "R1M2" {
                gate.pass();
            }
            good_player(id, "even", request)
        })
    });
    for (peer, id) in peers.iter().zip(["P11", "P12", "P13", "P14"]) {
        register_player(&url, &format!("player:{id}"), &peer.url);
    }
    assert_eq!(
        rounds(&document(&url)),
        [0; 0],
        "before the start there are no rounds"
    );
    let referee = world.referee(&manager, "REF01", &[]);
    referee.line(" is REF01");
    world.word(&["start", "--manager", &url]);
    let announced = until("the first round is announced", || {
        Some(document(&url)).filter(|it| it["next_at"].is_string())
    });
    assert_eq!(
        (rounds(&announced), &announced["matches_completed"]),
        (vec![1, 2, 3], &json!(0))
    );
    let begun = until("R1M1 is over", || {
        Some(since(&announced["version"])).filter(|it| it["matches_completed"] == 1)
    });
    assert_eq!((rounds(&begun), &begun["next_at"]), (vec![1], &Value::Null));
    assert_eq!(
        begun["standings"].as_array().unwrap().len(),
        4,
        "what is no round comes whole"
    );
    assert_eq!(rounds(&since(&begun["version"])), [0; 0], "nothing is new");
    for unknown in [json!(0), json!("x"), json!(u64::MAX)] {
        assert_eq!(
            rounds(&since(&unknown)),
            [1, 2, 3],
            "{unknown} is no version of this league"
        );
    }
    gate.open();
}

#[test]
fn the_tool_gives_a_round_unless_asked_for_more_and_endpoints_to_this_machine_alone() {
    let world = World::new(&[]);
    let manager = world.start(
        "league_manager",
        &[
            "--host",
            "0.0.0.0",
            "--contact-endpoint",
            "http://localhost:1/mcp",
        ],
    );
    let url = manager.url().replace("0.0.0.0", "127.0.0.1");
    let peer = listener();
    for id in ["P11", "P12", "P13", "P14"] {
        register_player(&url, &format!("player:{id}"), &format!("{}{id}", peer.url));
    }
    let rows = [
        (json!({}), "R1M1 R1M2"),
        (json!({"round_id": 2}), "R2M1 R2M2"),
        (json!({"rounds": "all"}), "R1M1 R1M2 R2M1 R2M2 R3M1 R3M2"),
    ];
    for (asked, matches) in rows {
        until("everybody is in the answer", || {
            let answer = call(&url, "get_league", asked.clone())["result"].take();
            let ids = matches_of(&answer).map(|game| game["match_id"].as_str().unwrap());
            let ids = ids.collect::<Vec<_>>().join(" ");
            (ids == matches && answer["agents"].as_array()?.len() == 4).then_some(())
        });
    }
    let Some(own) = own_address() else { return };
    let (here, there) = (
        document(&url),
        document(&url.replace("127.0.0.1", &own.to_string())),
    );
    assert!(
        here["agents"][0]["endpoint"].is_string() && there["agents"][0]["endpoint"].is_null(),
        "{there}"
    );
    assert!(!there.to_string().contains(&peer.url), "{there}");
}

#[test]
fn what_is_kept_says_the_same_and_names_do_no_harm() {
    let world = World::new(&[]);
    assert_eq!(world.word(&["season"]).0, Some(1), "nothing was played yet");
    let names = [
        "</script><script>alert(1)</script>",
        "=1+1,\"x\"",
        "-cmd|' /C calc'!A0",
        "Twin",
        "Twin",
    ];
    for run in 1..=2 {
        world.edit(
            "leagues/league_2025_even_odd.json",
            "/scoring/draw_points",
            json!(run),
        ); // all say even, and draw
        let mut manager = world.manager(&["--players", "5", "--lead-sec", "0"]);
        let mut referee = world.referee(&manager, "REF01", &[]);
        let mut player = |n: usize| {
            world.player(
                &manager,
                &format!("P1{n}"),
                &["--display-name", names[n], "--strategy", "even"],
            )
        };
        let mut players = [0, 1, 2, 3, 4].map(&mut player);
        assert!(
            manager.wait().success() && referee.wait().success(),
            "run {run}"
        );
        players
            .iter_mut()
            .for_each(|player| assert!(player.wait().success()));
        assert!(
            manager
                .output()
                .contains("to keep: report.html, results.csv and standings.csv in ")
        );
    }
    let read =
        |name: &str| fs::read_to_string(world.folder.join("data").join(LEAGUE).join(name)).unwrap();
    let report = read("report.html");
    let kept = data(&report);
    assert_eq!(
        kept["standings"],
        json!(world.table()),
        "the report says what standings.json says"
    );
    assert!(report.contains("http-equiv=\"Content-Security-Policy\""));
    assert!(
        kept["agents"]
            .as_array()
            .unwrap()
            .iter()
            .all(|agent| agent["endpoint"].is_null()),
        "no endpoints"
    );
    let (results, standings) = (read("results.csv"), read("standings.csv"));
    assert_eq!(
        (results.lines().count(), standings.lines().count()),
        (11, 6)
    );
    let harmless = ["\"'=1+1,\"\"x\"\"\"", "\"'-cmd|' /C calc'!A0\""];
    assert!(
        harmless
            .iter()
            .all(|cell| results.contains(cell) && standings.contains(cell)),
        "{standings}"
    );
    let (season, csv) = (
        world.word(&["season"]).1,
        read("../league_2025_even_odd.season.csv"),
    );
    assert!(season.starts_with("2 leagues, "), "{season}");
    let row = |line: &&str| line.contains(names[0]) && line.contains("12.0");
    let first = season.lines().find(row).unwrap();
    let numbers: Vec<&str> = first.split_whitespace().rev().collect();
    assert_eq!(
        numbers[..6],
        ["12.0", "1.50", "12", "0", "8", "0"],
        "8 draws, of 1 point in one league and of 2 in the other: {season}"
    );
    let wanted = ["Twin (P13)", "Twin (P14)"];
    assert!(
        wanted.iter().all(|wanted| season.contains(wanted)),
        "{season}"
    );
    assert!(
        csv.lines().count() == 6 && csv.contains(harmless[0]),
        "{csv}"
    );
}

/// What a browser makes of a page once its script has run, without the script; nothing where there is no browser. Fails
/// if its console says anything.
fn browse(world: &World, url: &str) -> Option<String> {
    const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let profile = format!("--user-data-dir={}", world.folder.join("browser").display());
    let options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
    ];
    let shown = ["--virtual-time-budget=3000", "--dump-dom", &profile, url];
    let run = |name: &&str| {
        Command::new(name)
            .args(options)
            .args(shown)
            .output()
            .ok()
            .filter(|it| it.status.success())
    };
    let Some(output) = BROWSERS.iter().find_map(run) else {
        let words = format!(
            "LEFT OUT: the page in a browser; there is none here ({})\n",
            BROWSERS.join(", ")
        );
        let _ = io::stderr().write_all(words.as_bytes()); // not through the capture of passing tests
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains(":CONSOLE"), "{url}: {said}");
    let page = String::from_utf8(output.stdout).unwrap();
    let before_data = page.split("<script").next();
    before_data.map(String::from)
}

/// The text of the cells of a table of a page, by row.
fn table(page: &str, id: &str) -> Vec<Vec<String>> {
    let table = between(page, &format!("<table id=\"{id}\""), "</table>");
    let text = |html: &str| {
        let pieces = html
            .split('<')
            .map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
        pieces
            .collect::<String>()
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&")
    };
    let cells = |row: &str| {
        let cells = row
            .split("</t")
            .filter_map(|cell| cell.split_once('>'))
            .map(|(_, cell)| text(cell));
        cells.filter(|cell| !cell.is_empty()).collect()
    };
    table.split("<tr").skip(1).map(cells).collect()
}

/// The table as the page shows it says what the document says.
fn check_table(page: &str, standings: &Value, removed: &str) {
    let shown = table(page, "standings");
    let rows = standings.as_array().unwrap();
    assert_eq!(shown.len(), rows.len() + 1, "a head, and a row for each");
    for (row, shown) in rows.iter().zip(&shown[1..]) {
        let [name, id] = ["display_name", "player_id"].map(|key| row[key].as_str().unwrap());
        let tag = if id == removed { "removed" } else { "" };
        let record = ["wins", "draws", "losses"].map(|key| row[key].to_string());
        let wanted = [
            format!("{name}{tag}"),
            id.to_string(),
            row["points"].to_string(),
            record.join("-"),
        ];
        assert!(
            wanted.iter().all(|cell| shown.contains(cell)),
            "{wanted:?}: {shown:?}"
        );
    }
}

#[test]
fn a_browser_shows_what_the_document_says_while_the_league_runs_and_afterwards() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--lead-sec", "0"]);
    let url = manager.url();
    let root = url.replace("/mcp", "/");
    let Some(lobby) = browse(&world, &root) else {
        return;
    };
    let line = format!(
        "player.py --manager {} --display-name NAME",
        url.replace("/mcp", "")
    );
    assert!(
        lobby.contains(&line) && lobby.contains("Nobody is here yet"),
        "{lobby}"
    );
    let gate = Gate::default();
    let names = [
        "player:</script><b>eleven",
        "player:P12",
        "player:P13",
        "player:P14",
    ];
    let peers = names.map(|name| {
        let slow = gate.clone();
        Peer::new(move |request| {
            let asked = &request["params"];
            if asked["message_type"] == "CHOOSE_PARITY_CALL" && asked["match_id"] == "R2M1" {
                slow.pass();
            }
            let own = asked["player_id"].as_str().unwrap_or_default();
            let choice = if name == "player:P12" { "even" } else { "odd" };
            good_player(own, choice, request)
        })
    });
    for (name, peer) in names.iter().zip(&peers) {
        register_player(&url, name, &peer.url);
    }
    let referee = world.referee(&manager, "REF01", &[]);
    referee.line(" is REF01");
    let order = |words: &[&str]| {
        let (code, said) = world.word(&[words, &["--manager", &url]].concat());
        assert_eq!(code, Some(0), "{words:?}: {said}");
    };
    order(&["start"]);
    let done = until("R2M2 is over", || {
        Some(document(&url)).filter(|it| it["rounds"][1]["matches"][1]["ending"].is_string())
    });
    let removed = done["rounds"][1]["matches"][1]["player_B_id"]
        .as_str()
        .unwrap();
    order(&["remove", removed]);
    order(&["pause"]);
    let now = until("the page would show all of it", || {
        let removed = |agent: &Value| agent["removed"] == true;
        Some(document(&url)).filter(|it| {
            it["paused"] == true && it["agents"].as_array().unwrap().iter().any(removed)
        })
    });
    let page = browse(&world, &format!("{root}#R1M1")).unwrap();
    check_table(&page, &now["standings"], removed);
    let wanted = [
        "paused by the operator",
        "class=\"paused\"",
        "loses without playing until restored: \u{2068}",
        "<dialog id=\"talk\" aria-labelledby=\"h-talk\" open=\"\">",
        " ms, REF01 to P1",
        "href=\"#R1M2\"",
        &format!("href=\"#{removed}\""),
    ];
    for wanted in wanted {
        assert!(page.contains(wanted), "no {wanted}: {page}");
    }
    let drawn = between(&page, "<pre id=\"diagram\" aria-hidden=\"true\">", "</pre>");
    let drawn = drawn.replace("&lt;", "<").replace("&gt;", ">");
    let said = get(&url, "/trace/R1M1").2;
    assert_eq!(drawn, said, "the match that the address names is open");
    assert!(
        !page.contains("href=\"#R2M1\"") && !page.contains("<b>eleven"),
        "{page}"
    );
    let wall = browse(&world, &format!("{root}#wall")).unwrap();
    assert!(
        wall.contains("<body class=\"wall\">") && wall.contains("Round 2: who plays whom"),
        "{wall}"
    );
    let sheet = browse(&world, &format!("{root}?me={removed}#{removed}")).unwrap();
    assert_eq!(
        table(&sheet, "player-matches").len(),
        4,
        "a head and three matches: {sheet}"
    );
    gate.open();
    order(&["restore", removed]);
    order(&["resume"]);
    assert!(manager.wait().success());
    let report = world.folder.join("data").join(LEAGUE).join("report.html");
    let page = browse(&world, &format!("file://{}#R1M1", report.display())).unwrap();
    check_table(&page, &json!(world.table()), "");
    for gone in ["until restored", "in play", "href=\"#R1M1\"", "shutdown"] {
        assert!(
            !page.contains(gone),
            "a league that is over says {gone}: {page}"
        );
    }
}

#[test]
fn the_terminal_shows_tables_between_rounds_and_quiet_shows_the_result() {
    let heads = |args: &[&str]| {
        let world = World::new(&[]);
        let mut league = world.start("league_manager", &[&["local"], args].concat());
        assert!(league.wait().success());
        let output = league.output();
        assert!(
            !output.contains('\x1b') && !output.contains('\r'),
            "plain where it is no terminal: {output}"
        );
        let count = |text: &str| output.lines().filter(|line| line.starts_with(text)).count();
        [
            count("Rank  Id    Player"),
            count("Round "),
            count("Champion: "),
            count("Luck: "),
            count("to keep: "),
        ]
    };
    assert_eq!(
        (heads(&[]), heads(&["--quiet"])),
        ([3, 3, 1, 1, 1], [1, 0, 1, 0, 0])
    );
    for (text, columns) in [
        ("abc", 3),
        ("日本", 4),
        ("e\u{301}", 1),
        ("🎲", 2),
        ("אבג", 3),
    ] {
        assert_eq!((width(text), width(&pad(text, 9))), (columns, 9), "{text}");
    }
}
