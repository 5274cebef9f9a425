//! What a browser makes of the page: it says the same as the document, while the league runs and
//! afterwards. Where there is no browser the test says so.

use super::support::{seen::*, *};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

/// What a browser makes of a page once its script has run, without the script; nothing where there
/// is no browser. Fails if its console says anything.
fn browse(world: &World, url: &str) -> Option<String> {
    const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let profile = format!("--user-data-dir={}", world.folder.join("browser").display());
    let options = "--headless=new --no-sandbox --disable-gpu --enable-logging=stderr \
        --virtual-time-budget=3000 --dump-dom";
    let run = |name: &&str| {
        let mut command = Command::new(name);
        let output = command
            .args(options.split(' '))
            .args([&profile, url])
            .output();
        output.ok().filter(|it| it.status.success())
    };
    let Some(output) = BROWSERS.iter().find_map(run) else {
        let names = BROWSERS.join(", ");
        let words = format!("LEFT OUT: the page in a browser; there is none here ({names})\n");
        let _ = io::stderr().write_all(words.as_bytes()); // not through the capture of passing tests
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains(":CONSOLE"), "{url}: {said}");
    let page = String::from_utf8(output.stdout).unwrap();
    page.split("<script").next().map(String::from)
}

/// Serves a page, and to whoever asks on that document: so a page sees it that stays open.
fn serve(page: String, newest: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut asked = [0; 4096];
            let _ = stream.read(&mut asked);
            let is_page = asked.starts_with(b"GET / ");
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

/// A text without tags.
fn text(html: &str) -> String {
    let pieces = html.split('<');
    let plain: String = pieces
        .map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text))
        .collect();
    let plain = plain.replace("&lt;", "<").replace("&gt;", ">");
    plain.replace("&amp;", "&")
}

/// The text of the cells of a table of a page, by row.
fn table(page: &str, id: &str) -> Vec<Vec<String>> {
    let table = between(page, &format!("<table id=\"{id}\""), "</table>");
    let cells = |row: &str| {
        let cells = row.split("</t").filter_map(|cell| cell.split_once('>'));
        let cells = cells.map(|(_, cell)| text(cell));
        cells.filter(|cell| !cell.is_empty()).collect()
    };
    table.split("<tr").skip(1).map(cells).collect()
}

/// The table as the page shows it says what the document says.
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
fn a_browser_shows_what_the_document_says_while_the_league_runs_and_afterwards() {
    let (world, mut manager) = with_manager("serve --lead-sec 0");
    let url = manager.url();
    let root = url.replace("/mcp", "/");
    let Some(lobby) = browse(&world, &root) else {
        return;
    };
    let line = format!(
        "player.py --manager {} --display-name NAME --stay",
        root.trim_end_matches('/')
    );
    check_words(&lobby, &[&line, "Nobody is here yet"], &[]);
    let gate = Gate::default();
    // The league gives the ids: the first is P01, whatever it calls itself.
    for (name, id, choice) in [
        ("</script><b>eleven", "P01", "odd"),
        ("P12", "P12", "even"),
        ("P13", "P13", "odd"),
        ("P14", "P14", "odd"),
    ] {
        let peer = slow_player(id, choice, &gate, |it| asks(it) && it["match_id"] == "R2M1");
        register_player(&url, name, &peer.url);
    }
    let _referee = start(&world, &manager);
    let order = |words: &str| world.order(words, &url);
    let done = until("R2M2 is over", || {
        Some(document(&url)).filter(|it| it["rounds"][1]["matches"][1]["ending"].is_string())
    });
    let removed = text_of(&done["rounds"][1]["matches"][1]["player_B_id"]);
    order(&format!("remove {removed}"));
    order("pause");
    let now = until("the page would show all of it", || {
        let now = document(&url);
        let is_removed = agent(&now, removed)?["removed"] == true;
        (is_removed && now["paused"] == true).then_some(now)
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
    check_words(&page, &wanted, &["href=\"#R2M1\"", "<b>eleven"]);
    let drawn = between(&page, "<pre id=\"diagram\" aria-hidden=\"true\">", "</pre>");
    let said = get(&url, "/trace/R1M1").2;
    assert_eq!(
        text(drawn),
        said,
        "the match that the address names is open"
    );
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
    check_words(&page, &["Round 1"], &["Round 3"]); // another league is played there by now
    gate.open();
    order(&format!("restore {removed}"));
    order("resume");
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
