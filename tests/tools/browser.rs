//! The page in a browser: what a person sees of running and finished leagues. Without a browser the
//! tests print that they are left out.

use super::matches_of;
use super::support::pages::{agent, between, check_words, document, get, start};
use super::support::*;
use crate::show::render;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

/// A page with another page in frames as wide as a phone, a laptop and a projector. It writes what
/// a person sees in each: the text, how much is hidden at the right edge, and the boxes of elements.
const FRAMES: &str = "<pre></pre><script>
    const loaded = [[390, 844], [1366, 768], [1920, 1080]].map(([width, height]) => {
        const frame = document.createElement('iframe');
        Object.assign(frame, { src: '/' + location.hash, width, height });
        document.body.append(frame);
        return new Promise(done => { frame.onload = done; });
    });
    const box = element => {
        const box = element.getBoundingClientRect();
        const middle = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
        const covered = element.ownerDocument.elementFromPoint(...middle) !== element;
        const cut = element.scrollWidth > element.clientWidth;
        return { ...box.toJSON(), covered, cut };
    };
    const look = ({ contentDocument: page, width, height }) => ({
        text: page.body.innerText, width: +width, height: +height,
        hidden: page.documentElement.scrollWidth - page.documentElement.clientWidth,
        clipped: [...page.querySelectorAll('section')].some(it => it.scrollHeight > it.clientHeight),
        names: [...page.querySelectorAll('.names bdi')].map(box),
        steps: [...page.querySelectorAll('.podium b')].map(box),
    });
    const write = () => {
        const seen = [...document.querySelectorAll('iframe')].map(look);
        document.querySelector('pre').textContent = JSON.stringify(seen);
    };
    Promise.all(loaded).then(() => setTimeout(write, 3500));
    </script>";

/// Opens a page in a browser of another time zone with these options, and returns its output; none if
/// there is no browser. Fails if there is a message on its console, except that a trace is busy.
fn open_page(test: &TestLeague, options: &str, url: &str) -> Option<String> {
    const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let profile = format!("--user-data-dir={}", test.folder.join("browser").display());
    let options = format!(
        "--headless=new --no-sandbox --disable-gpu --enable-logging=stderr \
         --virtual-time-budget=9000 {options}"
    );
    for name in BROWSERS {
        let mut command = Command::new(name);
        command.args(options.split(' ')).args([&profile, url]);
        if let Ok(output) = command.env("TZ", "Asia/Tokyo").output()
            && output.status.success()
        {
            let errors = String::from_utf8_lossy(&output.stderr);
            let mut messages = errors.lines().filter(|line| line.contains(":CONSOLE"));
            let is_quiet = messages.all(|line| line.contains("status of 503"));
            assert!(is_quiet, "{url}: {errors}");
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

/// Returns what a person sees on the page of a document with three sizes of the window, if `newest`
/// is the newest document.
fn look(test: &TestLeague, document: &Value, newest: &str, view: &str) -> Vec<Value> {
    let decoded = serde_json::from_value(document.clone()).unwrap();
    let page = render::page(&decoded, &document.to_string());
    let url = serve(page, newest.to_string());
    let page = open_page(test, "--dump-dom", &format!("{url}frames{view}")).unwrap();
    let seen = json_of(&text(between(&page, "<pre>", "</pre>")));
    for frame in list_of(&seen) {
        assert_eq!(frame["hidden"], 0, "at the right edge: {frame}");
    }
    list_of(&seen).to_vec()
}

/// Returns the text of what is seen in the middle size.
fn seen_text(test: &TestLeague, document: &Value, newest: &str, view: &str) -> String {
    text_of(&look(test, document, newest, view)[1]["text"]).into()
}

/// Serves a page, and a newer document for the requests of the open page. The first traces are busy.
fn serve(page: String, newest: String) -> String {
    let idle_agent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", idle_agent.local_addr().unwrap());
    thread::spawn(move || {
        let mut traces = 0;
        for mut stream in idle_agent.incoming().flatten() {
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..length]);
            traces += u32::from(request.starts_with("GET /trace"));
            let (status, body) = match request.split(' ').nth(1).unwrap_or_default() {
                "/" => ("200 OK", &*page),
                "/frames" => ("200 OK", FRAMES),
                "/trace/R1M1" if traces <= 3 => ("503 Service Unavailable", ""),
                "/trace/R1M1" => ("200 OK", "ms manager REF01\n       7   |<--------|  HELLO"),
                _ => ("200 OK", &*newest),
            };
            let head = format!("{status}\r\nConnection: close\r\nContent-Type: text/html");
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    url
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

/// Checks that the table of the page shows the standings.
fn check_table(page: &str, standings: &Value, removed: &str) {
    let table = between(page, "aria-label=\"The table", "</table>");
    let shown: Vec<&str> = table.split("<tr").skip(2).collect();
    assert_eq!(shown.len(), list_of(standings).len());
    for (row, shown) in list_of(standings).iter().zip(shown) {
        let id = text_of(&row["player_id"]);
        let record = ["wins", "draws", "losses"].map(|key| row[key].to_string());
        let name = text_of(&row["display_name"]);
        let points = format!("{}{}", row["points"], record.join("-"));
        check_words(&text(shown), &[name, &points], &[]);
        check_words(shown, &[&format!("href=\"#{id}\"")], &[]);
        assert_eq!(shown.contains("removed"), id == removed, "{shown}");
    }
}

#[test]
fn page_shows_running_and_finished_leagues() {
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
    check_words(&text(&lobby), &[&command, "0 players, 0 referees"], &[]);

    // The league gives the ids: the first player is P01, for every name.
    let gate = Gate::default();
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

    // The address names a match, whose messages are shown as arrows.
    let page = browse(&test, &format!("{root}#R1M1")).unwrap();
    check_table(&page, &now["standings"], removed);
    check_words(&page, &["href=\"#R1M2\""], &["href=\"#R2M1\"", "<b>eleven"]);
    let arrows = page.matches("class=\"arrow").count();
    let trace = get(&url, "/trace/R1M1").2;
    assert_eq!(
        arrows,
        trace.lines().filter(|row| row.contains(['<', '>'])).count()
    );
    let expected = [
        "paused by the operator",
        "What was said in R1M1",
        "to player:</script><b>eleven: ",
    ];
    check_words(&text(&page), &expected, &[]);
    check_words(
        &get(&url, "/").2,
        &["<td>player:&lt;/script>&lt;b>eleven"],
        &["<b>eleven"],
    );
    let sheet = browse(&test, &format!("{root}#{removed}")).unwrap();
    assert_eq!(sheet.matches("<a class=\"meeting").count(), 3, "{sheet}");

    // A new league may have fewer rounds.
    let mut fewer = document(&url);
    fewer["version"] = json!(fewer["version"].as_u64().unwrap() + 1);
    fewer["total_rounds"] = json!(1);
    fewer["rounds"].as_array_mut().unwrap().truncate(1);
    let before = document(&url);
    let page = seen_text(&test, &before, &fewer.to_string(), "");
    check_words(&page, &["Round 1:"], &["Round 3:"]);

    gate.open();
    test.order(&format!("restore {removed}"), &url);
    test.order("resume", &url);
    manager.wait_for_success();
    let report = test.league_file("report.html");
    let page = browse(&test, &format!("file://{}#R1M1", report.display())).unwrap();
    check_table(&page, &json!(test.table()), "");
    check_words(&page, &["all is played"], &["in play", "href=\"#R1M1\""]);
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

/// Returns the numbers beside the rows of each picture of a page.
fn numbers(page: &str) -> Vec<Vec<f64>> {
    let pictures = page.split("<ol class=\"picture\"").skip(1);
    let rows = pictures.map(|picture| between(picture, ">", "</ol>").split("<b>").skip(1));
    rows.map(|rows| {
        rows.map(|row| between(row, "", "<").parse().unwrap())
            .collect()
    })
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

/// Checks that numbers with two digits are the means of values, rounded in either direction.
fn check_means(shown: &[f64], values: &[Vec<f64>]) {
    assert_eq!(shown.len(), values.len(), "{shown:?}");
    for (shown, values) in shown.iter().zip(values) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!((shown - mean).abs() < 0.005_001, "{shown} for {mean}");
    }
}

#[test]
fn report_of_a_practice_shows_means_against_all_and_each_rival() {
    let test = TestLeague::new("");
    test.local("--mine even --players 3 --cycles 40 --quiet");
    let (url, data) = report(&test, "data/practice");
    let Some(page) = browse(&test, &url) else {
        return;
    };
    let own = list_of(&data["agents"]).iter();
    let mut own = own.filter(|agent| agent["display_name"] == data["league"]["practice"]["own"][0]);
    let own = text_of(&own.next().unwrap()["id"]);
    let ids = list_of(&data["standings"]).iter();
    let ids = ids.map(|row| text_of(&row["player_id"]));
    let rivals = ids.filter(|id| *id != own);
    let rivals = rivals.map(|rival| expected_points(&data, own, Some(rival)));
    let shown = numbers(&page);
    check_means(&shown[0], &[expected_points(&data, own, None)]);
    check_means(&shown[1], &rivals.collect::<Vec<_>>());
    check_words(&text(&page), &["a coin (1.25)"], &["In numbers"]);
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
fn report_of_a_class_shows_luck_on_at_most_five_sheets() {
    let test = TestLeague::new("");
    test.local("--players 13 --quiet");
    let (url, data) = report(&test, "data");
    let Some(page) = browse(&test, &url) else {
        return;
    };
    let luck = list_of(&data["standings"]).iter().map(|row| {
        let worth = expected_points(&data, text_of(&row["player_id"]), None);
        row["points"].as_f64().unwrap() - worth.iter().sum::<f64>()
    });
    assert_eq!(numbers(&page)[0], luck.collect::<Vec<_>>());
    assert!(count_sheets(&test, &url) <= 5, "two columns on paper");
}

#[test]
fn page_shows_champions_reasons_the_lobby_and_the_loss_of_the_manager() {
    let test = TestLeague::new("");
    test.local("--players 5 --quiet");
    let (url, data) = report(&test, "data");
    if browse(&test, &url).is_none() {
        return;
    }
    let see =
        |document: &Value, view: &str| seen_text(&test, document, &document.to_string(), view);

    // Players that are equal in everything are champions together, on steps of one height.
    let names = list_of(&data["standings"]).iter();
    let names: Vec<&str> = names.map(|row| text_of(&row["display_name"])).collect();
    let ranks = json!(["1=", "1=", "3", "4=", "4="]);
    let equal = running(&data, json!({"status": "completed", "ranks": ranks}));
    for frame in look(&test, &equal, &equal.to_string(), "#wall") {
        check_words(text_of(&frame["text"]), &names[..3], &[]);
        let [first, second, third] = [0, 1, 2].map(|n| frame["steps"][n]["top"].as_f64());
        assert!(first == second && second < third, "{frame}");
    }
    let ranks = json!(["1", "2", "3=", "3=", "3="]);
    let begun = running(&data, json!({"ranks": ranks}));
    check_words(
        &see(&begun, "#league"),
        &["In the lead", "3="],
        &["Champion"],
    );

    // The trace of a match is busy at first.
    check_words(
        &see(&begun, "#R1M1"),
        &["What was said in R1M1", "HELLO"],
        &[],
    );

    // The manager is lost: nothing moves, and all is not well.
    let announced = running(&begun, json!({"next_at": "2026-11-23T02:30:00Z"}));
    let lost = seen_text(&test, &announced, "no document", "#wall");
    let wrong = ["All is well", "begins now"];
    check_words(&lost, &["The manager does not answer"], &wrong);

    // Until when the open matches may be played; equal names have ids.
    let mut agents = data["agents"].clone();
    for agent in agents.as_array_mut().unwrap() {
        agent["display_name"] = json!("Ada");
    }
    let reason = "waiting for Ada (REF01) to report R5M1 of A (P01) and B (P02) (until 11:30:51)";
    let waits = running(&data, json!({"reason": reason, "agents": agents}));
    let expected = ["In play until 11:30:51 at most", "Ada (P01)"];
    check_words(&see(&waits, "#wall"), &expected, &["REF01"]);

    // The lobby shows each name of usual length whole, as text, and what is wrong below.
    let hostile = [
        "<img src=x onerror=alert(1)>",
        "</script>",
        "{{data}}",
        "\u{202e}nap",
        "W",
    ];
    let mut agents = data["agents"].clone();
    let players = agents.as_array_mut().unwrap().iter_mut();
    let players = players.filter(|agent| agent["kind"] == "player");
    for (agent, name) in players.zip(hostile) {
        agent["display_name"] = json!(name);
        agent["reachable"] = json!(name != "W");
        agent["trouble"] = json!("answered HTTP 500 with <a href=\"x\">");
    }
    let mut lobby = running(&data, json!({"status": "waiting", "agents": agents}));
    let address = format!("http://{}example.org:8000/mcp", "long-name.".repeat(7));
    lobby["league"]["register_at"] = json!(address);
    for frame in look(&test, &lobby, &lobby.to_string(), "#wall") {
        assert_eq!(frame["clipped"], false, "the commands: {frame}");
        let trouble = "W\u{2069} does not answer: it answered HTTP 500 with <a href=\"x\">";
        let mut expected = hostile.to_vec();
        expected[3] = "\u{fffd}nap";
        expected.extend([trouble, "5 players, 2 referees"]);
        check_words(text_of(&frame["text"]), &expected, &[]);
        let names = list_of(&frame["names"]);
        assert_eq!(names.len(), 5);
        for (n, name) in names.iter().enumerate() {
            assert_eq!(name["cut"], n == 0, "only the longest is cut: {frame}");
            let [left, right, top, bottom] =
                ["left", "right", "top", "bottom"].map(|side| name[side].as_f64().unwrap());
            let [width, height] = ["width", "height"].map(|key| frame[key].as_f64().unwrap());
            let is_phone = width < 400.0; // it scrolls
            assert!(left >= 0.0 && left < right && right <= width, "{frame}");
            assert!(top < bottom, "{frame}");
            let is_whole = bottom <= height && name["covered"] == false;
            assert!(is_whole || is_phone, "{frame}");
        }
    }
}
