//! The page in a browser: it shows the same as the document, while the league runs and afterwards.
//! Without a browser the test prints that it is left out.

use super::support::{seen::*, *};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

/// Returns the HTML of a page after its script has run, without the script; none if there is no
/// browser. Fails if there is a message on its console.
fn browse(world: &World, url: &str) -> Option<String> {
    const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let profile = format!("--user-data-dir={}", world.folder.join("browser").display());
    let options = "--headless=new --no-sandbox --disable-gpu --enable-logging=stderr \
        --virtual-time-budget=3000 --dump-dom";
    for name in BROWSERS {
        let mut command = Command::new(name);
        command.args(options.split(' ')).args([&profile, url]);
        if let Ok(output) = command.output()
            && output.status.success()
        {
            let messages = String::from_utf8_lossy(&output.stderr);
            assert!(!messages.contains(":CONSOLE"), "{url}: {messages}");
            let page = String::from_utf8(output.stdout).unwrap();
            return page.split("<script").next().map(String::from);
        }
    }
    let names = BROWSERS.join(", ");
    let text = format!("LEFT OUT: the page in a browser; there is none here ({names})\n");
    let _ = io::stderr().write_all(text.as_bytes()); // the output of passing tests is hidden
    None
}

/// Serves a page, and a newer document for the requests of the open page.
fn serve(page: String, newest: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let is_page = request.starts_with(b"GET / ");
            let body = if is_page { &page } else { &newest };
            let (status, length) = ("200 OK\r\nConnection: close", body.len());
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    url
}

/// Returns a text without tags.
fn text(html: &str) -> String {
    let mut plain = String::new();
    for piece in html.split('<') {
        plain += piece.split_once('>').map_or(piece, |(_, text)| text);
    }
    plain
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// Returns the texts of the cells of a table, by row.
fn table(page: &str, id: &str) -> Vec<Vec<String>> {
    let table = between(page, &format!("<table id=\"{id}\""), "</table>");
    let mut rows = Vec::new();
    for row in table.split("<tr").skip(1) {
        let cells = row.split("</t").filter_map(|cell| cell.split_once('>'));
        let mut texts: Vec<String> = cells.map(|(_, cell)| text(cell)).collect();
        texts.retain(|text| !text.is_empty());
        rows.push(texts);
    }
    rows
}

/// Checks that the table of the page shows the standings.
fn check_table(page: &str, standings: &Value, removed: &str) {
    let shown = table(page, "standings");
    let rows = list_of(standings);
    assert_eq!(shown.len(), rows.len() + 1, "a head, and a row for each");
    for (row, shown) in rows.iter().zip(&shown[1..]) {
        let [name, id] = ["display_name", "player_id"].map(|key| text_of(&row[key]));
        let tag = if id == removed { "removed" } else { "" };
        let record = ["wins", "draws", "losses"].map(|key| row[key].to_string());
        let points = row["points"].to_string();
        for cell in [format!("{name}{tag}"), id.into(), points, record.join("-")] {
            assert!(shown.contains(&cell), "no {cell}: {shown:?}");
        }
    }
}

#[test]
fn page_in_a_browser_shows_the_document_of_running_and_finished_leagues() {
    let (world, mut manager) = with_manager("serve --lead-sec 0");
    let url = manager.url();
    let root = url.replace("/mcp", "/");
    let Some(lobby) = browse(&world, &root) else {
        return;
    };
    let command = format!(
        "player.py --manager {} --display-name NAME --stay",
        root.trim_end_matches('/')
    );
    check_words(&lobby, &[&command, "Nobody is here yet"], &[]);
    let gate = Gate::default();
    // The league gives the ids: the first player is P01, for every name.
    for (name, id, choice) in [
        ("</script><b>eleven", "P01", "odd"),
        ("P12", "P12", "even"),
        ("P13", "P13", "odd"),
        ("P14", "P14", "odd"),
    ] {
        let peer = slow_player(id, choice, &gate, |call| {
            asks(call) && call["match_id"] == "R2M1"
        });
        register_player(&url, name, &peer.url);
    }
    let _referee = start(&world, &manager);
    let done = until("R2M2 is over", || {
        Some(document(&url)).filter(|now| now["rounds"][1]["matches"][1]["ending"].is_string())
    });
    let removed = text_of(&done["rounds"][1]["matches"][1]["player_B_id"]);
    world.order(&format!("remove {removed}"), &url);
    world.order("pause", &url);
    let now = until("the page would show all of it", || {
        let now = document(&url);
        let is_removed = agent(&now, removed)?["removed"] == true;
        (is_removed && now["paused"] == true).then_some(now)
    });
    let page = browse(&world, &format!("{root}#R1M1")).unwrap();
    check_table(&page, &now["standings"], removed);
    let expected = [
        "paused by the operator",
        "class=\"paused\"",
        "loses without playing until restored: \u{2068}",
        "<dialog id=\"talk\" aria-labelledby=\"h-talk\" open=\"\">",
        " ms, REF01 to P1",
        "href=\"#R1M2\"",
        &format!("href=\"#{removed}\""),
    ];
    check_words(&page, &expected, &["href=\"#R2M1\"", "<b>eleven"]);
    let diagram = between(&page, "<pre id=\"diagram\" aria-hidden=\"true\">", "</pre>");
    let trace = get(&url, "/trace/R1M1").2;
    let message = "the match that the address names is open";
    assert_eq!(text(diagram), trace, "{message}");
    let wall = browse(&world, &format!("{root}#wall")).unwrap();
    check_words(
        &wall,
        &["<body class=\"wall\">", "Round 2: who plays whom"],
        &[],
    );
    let sheet = browse(&world, &format!("{root}?me={removed}#{removed}")).unwrap();
    let rows = table(&sheet, "player-matches").len();
    assert_eq!(rows, 4, "a head and three matches: {sheet}");
    let mut fewer = document(&url);
    fewer["version"] = json!(fewer["version"].as_u64().unwrap() + 1);
    fewer["total_rounds"] = json!(1);
    fewer["rounds"].as_array_mut().unwrap().truncate(1);
    let html = get(&url, "/").2;
    check_words(&browse(&world, &root).unwrap(), &["Round 3"], &[]);
    let page = browse(&world, &serve(html, fewer.to_string())).unwrap();
    check_words(&page, &["Round 1"], &["Round 3"]); // a new league with fewer rounds
    gate.open();
    world.order(&format!("restore {removed}"), &url);
    world.order("resume", &url);
    manager.ends_well();
    let report = world.league_file("report.html");
    let page = browse(&world, &format!("file://{}#R1M1", report.display())).unwrap();
    check_table(&page, &json!(world.table()), "");
    check_words(
        &page,
        &[],
        &["until restored", "in play", "href=\"#R1M1\"", "shutdown"],
    );
}
