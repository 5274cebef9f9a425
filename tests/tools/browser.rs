//! The page in a browser: it shows the same as the document, while the league runs and afterwards.
//! Without a browser the test prints that it is left out.

use super::matches_of;
use super::support::pages::{agent, between, check_words, document, get, start};
use super::support::*;
use crate::show::render;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

/// Opens a page in a browser of another time zone with these options, and returns its output; none if
/// there is no browser. Fails if there is a message on its console.
fn open_page(test: &TestLeague, options: &str, url: &str) -> Option<String> {
    const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let profile = format!("--user-data-dir={}", test.folder.join("browser").display());
    let options = format!(
        "--headless=new --no-sandbox --disable-gpu --enable-logging=stderr \
         --virtual-time-budget=3000 {options}"
    );
    for name in BROWSERS {
        let mut command = Command::new(name);
        command.args(options.split(' ')).args([&profile, url]);
        if let Ok(output) = command.env("TZ", "Asia/Tokyo").output()
            && output.status.success()
        {
            let messages = String::from_utf8_lossy(&output.stderr);
            assert!(!messages.contains(":CONSOLE"), "{url}: {messages}");
            return String::from_utf8(output.stdout).ok();
        }
    }
    let names = BROWSERS.join(", ");
    let text = format!("LEFT OUT: the page in a browser; there is none here ({names})\n");
    let _ = io::stderr().write_all(text.as_bytes()); // the output of passing tests is hidden
    None
}

/// Returns the HTML of a page after its script has run, without the script; none if there is no
/// browser.
fn browse(test: &TestLeague, url: &str) -> Option<String> {
    let page = open_page(test, "--dump-dom", url)?;
    page.split("<script").next().map(String::from)
}

/// Returns the number of sheets of paper for a page.
fn count_sheets(test: &TestLeague, url: &str) -> usize {
    let file = test.folder.join("page.pdf");
    let option = format!("--no-pdf-header-footer --print-to-pdf={}", file.display());
    open_page(test, &option, url).unwrap();
    let pdf = fs::read(file).unwrap();
    let pdf = String::from_utf8_lossy(&pdf);
    pdf.matches("/Type /Page").count() - pdf.matches("/Type /Pages").count()
}

/// Serves a page, and a newer document for the requests of the open page.
fn serve(page: String, newest: String) -> String {
    let idle_agent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", idle_agent.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in idle_agent.incoming().flatten() {
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
    let (test, mut manager) = with_manager("serve --lead-sec 0");
    let url = manager.url();
    let root = url.replace("/mcp", "/");
    let Some(lobby) = browse(&test, &root) else {
        return;
    };
    let command = format!(
        "player.py --manager {} --display-name NAME --stay",
        root.trim_end_matches('/')
    );
    check_words(&lobby, &[&command, "No agent is here yet"], &[]);
    let gate = Gate::default();
    // The league gives the ids: the first player is P01, for every name.
    for (name, id, choice) in [
        ("</script><b>eleven", "P01", "odd"),
        ("P12", "P12", "even"),
        ("P13", "P13", "odd"),
        ("P14", "P14", "odd"),
    ] {
        let peer = slow_player(id, choice, &gate, |call| {
            is_parity_call(call) && call["match_id"] == "R2M1"
        });
        register_player(&url, name, &peer.url);
    }
    let _referee = start(&test, &manager);
    let done = until("R2M2 is over", || {
        Some(document(&url)).filter(|now| now["rounds"][1]["matches"][1]["ending"].is_string())
    });
    let removed = text_of(&done["rounds"][1]["matches"][1]["player_B_id"]);
    test.order(&format!("remove {removed}"), &url);
    test.order("pause", &url);
    let now = until("the page would show all of it", || {
        let now = document(&url);
        let is_removed = agent(&now, removed)?["removed"] == true;
        (is_removed && now["paused"] == true).then_some(now)
    });
    let page = browse(&test, &format!("{root}#R1M1")).unwrap();
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
    let wall = browse(&test, &format!("{root}#wall")).unwrap();
    check_words(
        &wall,
        &["<body class=\"wall\">", "Round 2: who plays whom"],
        &[],
    );
    let sheet = browse(&test, &format!("{root}?me={removed}#{removed}")).unwrap();
    let rows = table(&sheet, "player-matches").len();
    assert_eq!(rows, 4, "a head and three matches: {sheet}");
    let mut fewer = document(&url);
    fewer["version"] = json!(fewer["version"].as_u64().unwrap() + 1);
    fewer["total_rounds"] = json!(1);
    fewer["rounds"].as_array_mut().unwrap().truncate(1);
    let html = get(&url, "/").2;
    check_words(&browse(&test, &root).unwrap(), &["Round 3"], &[]);
    let page = browse(&test, &serve(html, fewer.to_string())).unwrap();
    check_words(&page, &["Round 1"], &["Round 3"]); // a new league with fewer rounds
    gate.open();
    test.order(&format!("restore {removed}"), &url);
    test.order("resume", &url);
    manager.wait_for_success();
    let report = test.league_file("report.html");
    let page = browse(&test, &format!("file://{}#R1M1", report.display())).unwrap();
    check_table(&page, &json!(test.table()), "");
    check_words(
        &page,
        &[],
        &["until restored", "in play", "href=\"#R1M1\"", "shutdown"],
    );
}

/// Returns the URL of a report, and its data.
fn report(test: &TestLeague, folder: &str) -> (String, Value) {
    let path = test
        .folder
        .join(folder)
        .join("leagues/league_2025_even_odd");
    let url = format!("file://{}", path.join("report.html").display());
    let data = fs::read_to_string(path.join("league.json")).unwrap();
    (url, json_of(&data))
}

/// Returns the texts in a picture of the page.
fn labels(page: &str, id: &str) -> Vec<String> {
    let picture = between(page, &format!("<svg id=\"{id}\""), "</svg>");
    let texts = picture.split("<text").skip(1);
    texts
        .map(|part| text(&format!("<{}", part.split("</text>").next().unwrap())))
        .collect()
}

/// Returns the expected points of a player in its matches against a rival, or against all.
fn expected_points(data: &Value, id: &str, rival: Option<&str>) -> Vec<f64> {
    let mut values = Vec::new();
    for played in matches_of(data) {
        let choices = played["choices"].as_object().unwrap();
        let is_wanted = rival.is_none_or(|rival| choices.contains_key(rival));
        if choices.contains_key(id) && is_wanted {
            let mut chosen = choices.values();
            let is_equal = chosen.next() == chosen.next();
            values.push(if is_equal { 1.0 } else { 1.5 });
        }
    }
    values
}

/// Returns the mean of some numbers.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Checks that texts are these numbers with two digits, rounded in either direction.
fn check_rounded<'a>(texts: impl IntoIterator<Item = &'a String>, numbers: &[f64], what: &str) {
    let texts: Vec<_> = texts.into_iter().collect();
    assert_eq!(texts.len(), numbers.len(), "{what}: {texts:?}");
    for (text, number) in texts.into_iter().zip(numbers) {
        let shown: f64 = text.parse().unwrap();
        assert!(
            text.len() == 4 && (shown - number).abs() < 0.005_001,
            "{what}: {text} for {number}"
        );
    }
}

#[test]
fn report_of_a_practice_shows_means_with_errors_and_a_heat_map() {
    let test = TestLeague::new("");
    test.local("--players 3 --cycles 40 --quiet");
    let (url, data) = report(&test, "data/practice");
    let Some(page) = browse(&test, &url) else {
        return;
    };

    // The picture has the mean of each player, the best first, and the line of a coin.
    let ids = list_of(&data["standings"]).iter();
    let ids: Vec<&str> = ids.map(|row| text_of(&row["player_id"])).collect();
    let mut means: Vec<f64> = ids
        .iter()
        .map(|id| mean(&expected_points(&data, id, None)))
        .collect();
    means.sort_by(|one, other| other.total_cmp(one));
    let shown = labels(&page, "means-chart");
    assert_eq!(shown[0], "a coin: 1.25");
    check_rounded(shown[2..].iter().step_by(2), &means, "means");

    // The heat map has the mean of each pair.
    let rows = table(&page, "cross");
    for (row, id) in rows[1..].iter().zip(&ids) {
        let rivals = ids.iter().filter(|rival| *rival != id);
        let means: Vec<f64> = rivals
            .map(|rival| mean(&expected_points(&data, id, Some(rival))))
            .collect();
        check_rounded(&row[2..], &means, id);
    }

    // A long schedule has its last rounds, and the numbers below the chart have room.
    check_words(
        &page,
        &["Ten of 120 rounds", "Round 111:", "Round 120:"],
        &["Round 110:"],
    );
    let chart = labels(&page, "chart");
    let axis = ["20", "40", "60", "80", "100", "120"].map(String::from);
    assert!(chart.windows(6).any(|labels| labels == axis), "{chart:?}");
}

/// Returns a document as the server has it.
fn decode_view(document: &Value) -> crate::show::view::LeagueView {
    serde_json::from_value(document.clone()).unwrap()
}

/// Returns the document of a running league that differs in these fields.
fn running(data: &Value, changes: Value) -> Value {
    let mut document = data.clone();
    document["now"] = json!("2026-11-23T02:30:00Z");
    document["status"] = json!("running");
    for (key, value) in changes.as_object().unwrap() {
        document[key] = value.clone();
    }
    document
}

#[test]
fn report_of_a_class_shows_luck_on_at_most_six_sheets() {
    let test = TestLeague::new("");
    test.local("--players 13 --quiet");
    let (url, data) = report(&test, "data");
    let Some(page) = browse(&test, &url) else {
        return;
    };
    let rows = list_of(&data["standings"]);
    let mut luck = Vec::new();
    for row in rows {
        let id = text_of(&row["player_id"]);
        let worth: f64 = expected_points(&data, id, None).iter().sum();
        let luck_of_player = row["points"].as_f64().unwrap() - worth;
        luck.push(
            format!("{luck_of_player:+}")
                .replace("+0", "0")
                .replace("-0", "0"),
        );
    }
    let shown = labels(&page, "luck-chart");
    let numbers: Vec<String> = shown.into_iter().skip(1).step_by(2).collect();
    assert_eq!(numbers, luck);
    let sheet = browse(&test, &format!("{url}#{}", text_of(&rows[0]["player_id"]))).unwrap();
    check_words(
        &sheet,
        &[&format!("<dt>Luck</dt><dd>{}</dd>", luck[0])],
        &[],
    );
    assert!(count_sheets(&test, &url) <= 6, "two columns on paper");
}

#[test]
fn page_shows_ranks_changes_reasons_and_the_loss_of_the_manager() {
    let test = TestLeague::new("");
    test.local("--players 5 --quiet");
    let (url, data) = report(&test, "data");
    if browse(&test, &url).is_none() {
        return;
    }

    // Players that have not played are equal to those that have lost.
    let rows = list_of(&data["standings"]);
    let mut begun = rows.to_vec();
    for row in &mut begun[2..] {
        row["points"] = json!(0);
        row["played"] = json!(0);
    }
    let mut ranks = vec!["3="; begun.len()];
    ranks[..2].copy_from_slice(&["1", "2"]);
    let begun = running(&data, json!({"standings": begun, "ranks": ranks}));
    let show = |document: &Value, newest: &str, view: &str| {
        let page = render::page(&decode_view(document), &document.to_string());
        let url = serve(page, newest.to_string());
        browse(&test, &format!("{url}{view}")).unwrap()
    };
    let page = show(&begun, &begun.to_string(), "#league");
    check_words(
        &page,
        &["In the lead"],
        &["<h2 id=\"h-champion\">Champion</h2>"],
    );
    let ranks = table(&page, "standings")
        .into_iter()
        .map(|row| row[0].clone());
    let ranks: Vec<String> = ranks.skip(1).collect();
    assert_eq!(ranks[..3], ["1", "2", "3="]);
    assert!(ranks[3..].iter().all(|rank| rank == "3="), "{ranks:?}");

    // A row that has changed is marked.
    let mut newest = begun.clone();
    newest["version"] = json!(begun["version"].as_u64().unwrap() + 1);
    newest["standings"][4]["played"] = json!(1);
    let wall = show(&begun, &newest.to_string(), "#wall");
    assert_eq!(wall.matches("class=\"changed\"").count(), 1, "{wall}");
    check_words(&wall, &["Results of round 5", "all is well"], &[]);

    // The manager is lost: nothing moves, and all is not well.
    let announced = running(&begun, json!({"next_at": "2026-11-23T02:30:00Z"}));
    let lost = show(&announced, "no document", "#wall");
    let wrong = ["all is well", "begins now"];
    check_words(&lost, &["the manager does not answer"], &wrong);

    // A reason names players, and until when they may play; equal names have ids.
    let (mut rounds, mut agents) = (data["rounds"].clone(), data["agents"].clone());
    let open = rounds[4]["matches"][0].as_object_mut().unwrap();
    open.remove("ending");
    let names = ["player_A_id", "player_B_id"].map(|key| {
        let mut agents = agents.as_array_mut().unwrap().iter_mut();
        let agent = agents.find(|agent| agent["id"] == open[key]).unwrap();
        agent["display_name"] = json!("Ada");
        format!("\u{2068}Ada\u{2069} ({})", text_of(&agent["id"]))
    });
    let reason =
        "waiting for Agent One (REF01) to report R5M1 of A (P01) and B (P02) (until 11:30:51)";
    let waits = running(
        &data,
        json!({"rounds": rounds, "reason": reason, "agents": agents}),
    );
    let page = show(&waits, &waits.to_string(), "#wall");
    let notice = text(between(&page, "<p id=\"notice\"", "</p>"));
    check_words(&notice, &[&names.join(" – "), "11:30:51"], &["REF01", "Z"]);

    // In the lobby the reason stands below the names.
    let mut agents = data["agents"].clone();
    agents[3]["display_name"] = agents[2]["display_name"].clone();
    agents[4]["reachable"] = json!(false);
    agents[4]["trouble"] = json!("answered HTTP 500 with <a href=\"x\"> in 3 attempts");
    let lobby = running(&data, json!({"status": "waiting", "agents": agents}));
    let page = show(&lobby, &lobby.to_string(), "#wall");
    let trouble = "does not answer: it answered HTTP 500 with &lt;a href=\"x\"&gt; in 3 attempts";
    check_words(
        &page,
        &[
            "<body class=\"lobby\">",
            trouble,
            "5 players, 2 referees",
            " has the name of ",
        ],
        &[],
    );

    // Two players that are compared never meet.
    let mut rounds = data["rounds"].clone();
    for round in rounds.as_array_mut().unwrap() {
        let matches = round["matches"].as_array_mut().unwrap();
        matches.retain(|played| played["player_A_id"] != "P01" || played["player_B_id"] != "P02");
        matches.retain(|played| played["player_A_id"] != "P02" || played["player_B_id"] != "P01");
    }
    let compared = running(&data, json!({"rounds": rounds, "total_matches": 1000}));
    let page = show(&compared, &compared.to_string(), "#league");
    assert_eq!(
        labels(&page, "means-chart").len(),
        5,
        "a line, and two players"
    );
    assert_eq!(table(&page, "cross").len(), 3, "a head, and two rows");
}
