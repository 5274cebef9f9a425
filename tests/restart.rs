//! The manager dies, is started twice, finds its journal damaged or its disk full; the launcher dies: nothing is
//! lost, nothing counts twice, nothing is left behind.

mod support;

use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Output},
};
use support::*;

const LEAGUE: &str = "leagues/league_2025_even_odd";

fn count(world: &World, event: &str) -> usize {
    world.journal().iter().filter(|line| line["event"] == event).count()
}

fn league_file(world: &World, name: &str) -> PathBuf {
    world.folder.join("data").join(LEAGUE).join(name)
}

/// Every pair has met once, every match is recorded once, and the table adds up.
fn check_record(world: &World, players: usize) {
    let journal = world.journal();
    let recorded = journal.iter().filter(|line| line["event"] == "Recorded");
    let ids: Vec<&str> = recorded.map(|line| line["match_id"].as_str().unwrap()).collect();
    let matches = players * (players - 1) / 2;
    assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (matches, matches), "{ids:?}");
    assert_eq!(journal.last().unwrap()["event"], "Closed");
    let table = world.table();
    let n = |row: &Value, key: &str| row[key].as_u64().unwrap();
    for row in &table {
        assert_eq!(n(row, "played"), n(row, "wins") + n(row, "draws") + n(row, "losses"), "{row}");
        assert_eq!(n(row, "played") as usize, players - 1, "{row}");
        assert_eq!(n(row, "points"), 3 * n(row, "wins") + n(row, "draws"), "{row}");
    }
    assert_eq!(table.len(), players);
}

/// When the manager is killed, and which request the scripted player holds back so that the moment can be seen.
type Point = (&'static str, fn(&World) -> bool, fn(&Value) -> bool);

const POINTS: [Point; 5] = [
    ("the last registration", |world| count(world, "Registered") == 6, |asked| is(asked, "CHOOSE_PARITY_CALL", "R1")),
    ("the start", |world| count(world, "Started") == 1, |asked| is(asked, "CHOOSE_PARITY_CALL", "R1")),
    ("the assignment of round 1", |world| count(world, "Assigned") == 1, |asked| is(asked, "CHOOSE_PARITY_CALL", "R1")),
    ("a result in mid-league", |world| count(world, "Recorded") == 3, |asked| is(asked, "CHOOSE_PARITY_CALL", "R2")),
    ("the last result", |world| count(world, "Recorded") == 6, |asked| is(asked, "LEAGUE_COMPLETED", "")),
];

fn is(asked: &Value, message_type: &str, round: &str) -> bool {
    asked["message_type"] == message_type && asked["match_id"].as_str().unwrap_or_default().starts_with(round)
}

#[test]
fn a_manager_killed_at_any_point_resumes_and_everybody_is_told() {
    for (point, reached, held) in POINTS {
        let world = World::new(&[]);
        let arguments = ["--players", "4", "--referees", "2"];
        let (mut manager, gate) = (world.manager(&arguments), Gate::default());
        let door = gate.clone();
        let last = Peer::new(move |request| {
            if held(&request["params"]) {
                door.pass();
            }
            good_player("P04", "even", request)
        });
        register_player(&manager.url(), "player:P04", &last.url);
        let mut others: Vec<Agent> = ["P01", "P02", "P03"].map(|id| world.player(&manager, id, &[])).into();
        others.extend(["REF01", "REF02"].map(|id| world.referee(&manager, id, &[])));
        until(point, || reached(&world).then_some(()));
        manager.restart(&world, &arguments);
        gate.open();
        manager.line("an unfinished league was found");
        assert!(manager.wait().success(), "after {point}: {:?}", manager.stderr);
        assert!(others.iter_mut().all(|agent| agent.wait().success()), "after {point}");
        last.first("LEAGUE_COMPLETED");
        check_record(&world, 4);
        assert!(files(&world.folder.join("data/referees")).is_empty(), "an outbox is not empty after {point}");
    }
}

/// Runs the manager where it must not start: its exit code and what it says.
fn refused(world: &World, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = world.command("league_manager", arguments).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    (status.code(), said)
}

/// Three have registered, then the manager dies.
fn begun() -> World {
    let world = World::new(&[]);
    let manager = world.manager(&[]);
    (1..=3).for_each(|n| drop(register_player(&manager.url(), &format!("player:P0{n}"), &dead(n))));
    world
}

/// An endpoint where nobody answers.
fn dead(n: u32) -> String {
    format!("http://127.0.0.1:{n}/mcp")
}

#[test]
fn a_second_manager_on_the_same_data_does_not_start() {
    let world = World::new(&[]);
    let first = world.manager(&[]);
    for arguments in [&["--port", "0"][..], &["--port", "0", "--fresh"]] {
        let (code, said) = refused(&world, arguments);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("journal.jsonl: another league manager is running on it"), "{said}");
    }
    assert_eq!(register_player(&first.url(), "player:P01", &dead(1))["status"], "ACCEPTED", "the first goes on");
}

#[test]
fn damage_is_refused_with_its_line_a_torn_end_is_not_and_fresh_loses_nothing() {
    let world = begun();
    let path = league_file(&world, "journal.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{whole}{{\"event\":\"Regis")).unwrap();
    drop(world.manager(&[]));
    assert_eq!(fs::read_to_string(&path).unwrap(), whole, "only the torn end is cut off");
    let damaged = whole.replacen("\"P02\"", "\"P02", 1);
    fs::write(&path, &damaged).unwrap();
    let (code, said) = refused(&world, &["--port", "0"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("journal.jsonl: line 2 is damaged"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged, "nothing is mended behind anybody's back");
    drop(world.manager(&["--fresh"]));
    check_set_aside(&world, &damaged);
}

#[test]
fn an_unfinished_league_goes_on_and_a_closed_one_is_set_aside() {
    let world = begun();
    let path = league_file(&world, "journal.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let manager = world.manager(&[]);
    manager.line("an unfinished league was found");
    let again = register_player(&manager.url(), "player:P09", &dead(2));
    assert_eq!(again["player_id"], "P02", "it is the same league: {again}");
    drop(manager);
    let closed = fs::read_to_string(&path).unwrap() + "{\"event\":\"Closed\"}\n";
    assert!(closed.starts_with(&whole));
    fs::write(&path, &closed).unwrap();
    drop(world.manager(&[]));
    check_set_aside(&world, &closed);
}

/// The old journal stands whole in a folder of its own, and the new one is empty.
fn check_set_aside(world: &World, old: &str) {
    assert_eq!(fs::read_to_string(league_file(world, "journal.jsonl")).unwrap(), "");
    let all = files(&world.folder.join("data/leagues"));
    let journals = all.iter().filter(|path| path.ends_with("journal.jsonl")).map(fs::read_to_string);
    assert!(journals.map(Result::unwrap).any(|journal| journal == old), "{all:?}");
}

/// A manager for which every file is full at so many KiB.
fn on_a_full_disk(world: &World, kib: u64, arguments: &[&str]) -> Agent {
    let free = world.command("league_manager", arguments);
    let mut limited = Command::new("bash");
    limited.args(["-c", "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"", &kib.to_string()]);
    let agent =
        Agent::new(limited.arg(free.get_program()).args(free.get_args()).args(["--port", "0", "--until-stdin-closes"]));
    agent.line("listening on ");
    agent
}

#[test]
fn what_a_full_disk_does_not_take_is_not_acknowledged() {
    let world = World::new(&[]);
    let arguments = ["--players", "2"];
    let path = league_file(&world, "journal.jsonl");
    let agents = [listener(), listener(), listener()];
    let register = |manager: &Agent| {
        let referee = register_referee(&manager.url(), "referee:REF01", &agents[0].url, 1);
        let players = [1, 2].map(|n| register_player(&manager.url(), &format!("player:P0{n}"), &agents[n].url));
        [referee, players[0].clone(), players[1].clone()]
    };
    let broken = |answer: &Value| {
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("the journal cannot be written"), "{answer}");
    };
    let manager = on_a_full_disk(&world, 1, &arguments);
    let answers = register(&manager);
    broken(&answers[2]);
    let accepted = answers.iter().filter(|answer| answer["status"] == "ACCEPTED").count();
    assert_eq!(world.journal().len(), accepted, "what was answered is what is kept");
    assert!(fs::read_to_string(&path).unwrap().ends_with('\n'));
    drop(manager);

    let manager = world.manager(&arguments);
    let token = token_of(&register(&manager)[0]);
    until("it is assigned", || (count(&world, "Assigned") == 1).then_some(()));
    drop(manager);
    let before = fs::read(&path).unwrap();
    let mut long = report("referee:REF01", Some(&token), "R1M1", ["P01", "P02"]);
    long["result"]["details"]["reason"] = "because ".repeat(400).into();
    let manager = on_a_full_disk(&world, before.len() as u64 / 1024 + 1, &arguments);
    broken(&send(&manager.url(), &long));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(world.table()[0]["played"], 0);
    drop(manager);

    let mut manager = world.manager(&arguments);
    assert_eq!(send(&manager.url(), &long)["status"], "recorded");
    assert!(manager.wait().success());
    check_record(&world, 2);
}

#[test]
fn a_page_that_cannot_be_written_is_named_and_the_league_goes_on_later() {
    let world = World::new(&[]);
    let arguments = ["--players", "8"];
    let (manager, agent) = (world.manager(&arguments), listener());
    (1..=8).for_each(|n| drop(register_player(&manager.url(), &format!("player:P0{n}"), &dead(n))));
    register_referee(&manager.url(), "referee:REF01", &agent.url, 1);
    until("it is assigned", || (count(&world, "Assigned") == 1).then_some(()));
    drop(manager);
    let manager = on_a_full_disk(&world, 1, &arguments);
    manager.line(".json: File too large");
    drop(manager);
    world.manager(&arguments).line("an unfinished league was found");
    assert_eq!(world.table().len(), 8);
}

/// Runs a word of the manager's program: its exit code and all it says.
fn word(world: &World, word: &str, manager: &str) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        world.command("league_manager", &[word, "--manager", manager]).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

#[test]
fn the_words_start_and_status_say_how_it_is() {
    let world = World::new(&[]);
    let manager = world.manager(&[]);
    let url = manager.url();
    let agents = [listener(), listener(), listener()];
    let says = |command: &str, code: i32, words: &[&str]| {
        let (came, said) = word(&world, command, &url);
        assert_eq!(came, Some(code), "{command}: {said}");
        words.iter().for_each(|words| assert!(said.contains(words), "{command}: no {words:?} in {said}"));
    };
    let none = "0 of at least 2 players and 0 of at least 1 referee have registered";
    says("status", 0, &["status   waiting", "round    0 of 0", none]);
    says("start", 1, &["status   waiting", none]);
    register_player(&url, "player:P01", &agents[0].url);
    register_referee(&url, "referee:REF01", &agents[1].url, 1);
    says("start", 1, &["1 of at least 2 players and 1 of at least 1 referee have registered"]);
    register_player(&url, "player:P02", &agents[2].url);
    says("status", 0, &["status   waiting"]); // an early START_LEAGUE is not remembered
    assert_eq!(count(&world, "Started"), 0);
    says("start", 0, &["status   running", "round    1 of 1", "matches  0 completed"]);
    says("start", 0, &["status   running"]);
    says("status", 0, &["status   running"]);
    assert_eq!(count(&world, "Started"), 1);
    let warning = "scheduling.matches_per_round says 2, but 2 players make 1";
    until("the warning", || world.logs().iter().any(|line| line["message"] == warning).then_some(()));
    drop(manager);
    says("start", 1, &["no league manager at http://localhost:"]);
    says("status", 1, &["no league manager at http://localhost:"]);
}

#[test]
fn whoever_registers_before_its_server_is_up_is_asked_again() {
    let world = World::new(&[]);
    let manager = world.manager(&["--players", "2"]);
    let slow = Peer::new(|_| Does::Close);
    register_player(&manager.url(), "player:P01", &slow.url);
    until("it is asked again", || (slow.requests.lock().unwrap().len() >= 2).then_some(()));
}

#[test]
fn secrets_are_for_their_owner_alone() {
    let world = World::new(&[]);
    let mut league = world.start("league_manager", &["local", "--players", "2", "--referees", "1", "--stay"]);
    league.line("still serving");
    let operator = fs::read_to_string(league_file(&world, "operator.token")).unwrap();
    let cards = files(&world.folder.join("data/agents"));
    assert_eq!(cards.len(), 3);
    for path in cards.iter().chain(&[league_file(&world, "operator.token"), league_file(&world, "journal.jsonl")]) {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    league.kill();
    let shown = league.output() + &league.stderr.lock().unwrap();
    let logs = files(&world.folder.join("logs")).into_iter().map(|path| fs::read_to_string(path).unwrap());
    let everything = shown + &logs.collect::<String>();
    let ids = ["REF01", "P01", "P02"].map(|id| world.data(&format!("agents/{id}.json"))["token"].clone());
    for secret in ids.iter().map(|token| token.as_str().unwrap()).chain([operator.trim()]) {
        let (_, secret) = secret.rsplit_once('-').unwrap();
        assert!(secret.len() >= 32 && !everything.contains(secret), "a token is shown");
    }
}

#[test]
fn a_wrong_token_reports_and_asks_nothing() {
    let world = World::new(&[]);
    let manager = world.manager(&["--players", "2", "--referees", "2"]);
    let url = manager.url();
    let agents = [listener(), listener(), listener(), listener()];
    let referee = |n: usize| register_referee(&url, &format!("referee:REF0{n}"), &agents[n - 1].url, 1);
    let player = |n: usize| register_player(&url, &format!("player:P0{n}"), &agents[n + 1].url);
    let tokens = [referee(1), referee(2), player(1), player(2)].map(|answer| token_of(&answer));
    let [first, second, alpha, beta] = tokens.each_ref().map(|token| Some(token.as_str()));
    until("R1M1 is assigned", || (count(&world, "Assigned") == 1).then_some(()));
    world.table(); // the page is there
    let bytes = || ["journal.jsonl", "standings.json"].map(|name| fs::read(league_file(&world, name)).unwrap());
    let before = bytes();
    let altered = format!("{}x", &tokens[0][..tokens[0].len() - 1]);
    let rows = [
        ("referee:REF01", None, "E011"),
        ("referee:REF01", Some("tok-ref01-0000"), "E012"),
        ("referee:REF01", Some(&altered), "E012"),
        ("referee:REF01", second, "E012"),
        ("referee:REF01", alpha, "E012"),
        ("referee:REF09", first, "E013"),
        ("player:P01", None, "E011"),
        ("player:P01", beta, "E012"),
        ("player:P01", first, "E012"),
        ("player:P09", alpha, "E005"),
    ];
    for (sender, token, code) in rows {
        for asked in [report(sender, token, "R1M1", ["P01", "P02"]), query(sender, token, "GET_STANDINGS")] {
            let answer = send(&url, &asked);
            assert_eq!(answer["message_type"], "LEAGUE_ERROR", "{sender} {token:?}: {answer}");
            assert_eq!(answer["error_code"], code, "{sender} {token:?}: {answer}");
        }
    }
    assert_eq!(bytes(), before);
    assert_eq!(send(&url, &report("referee:REF01", first, "R1M1", ["P01", "P02"]))["status"], "recorded");
}

fn query(sender: &str, token: Option<&str>, query_type: &str) -> Value {
    let body = json!({"auth_token": token, "league_id": "league_2025_even_odd", "query_type": query_type});
    message("LEAGUE_QUERY", sender, body)
}

#[test]
fn an_expired_token_is_wrong_until_its_owner_registers_again() {
    let world = World::new(&[("system.json", "/security/token_ttl_hours", json!(0.0003))]); // a good second
    let manager = world.manager(&[]);
    let mut token = token_of(&register_player(&manager.url(), "player:P01", &dead(1)));
    until("the token expires", || {
        let answer = send(&manager.url(), &query("player:P01", Some(&token), "GET_STANDINGS"));
        let problem = answer["context"]["problem"].as_str().unwrap_or_default().to_string();
        (answer["error_code"] == "E012" && problem.starts_with("expired at")).then_some(())
    });
    let meta = json!({
        "display_name": "Alpha", "version": "1.0.0", "game_types": ["even_odd"], "contact_endpoint": dead(1),
    });
    let again = message("LEAGUE_REGISTER_REQUEST", "player:P01", json!({"player_meta": meta, "auth_token": token}));
    let answer = send(&manager.url(), &again);
    assert_eq!(answer["player_id"], "P01", "{answer}");
    let old = std::mem::replace(&mut token, token_of(&answer));
    assert_ne!(old, token);
    assert_eq!(send(&manager.url(), &query("player:P01", Some(&token), "GET_STANDINGS"))["success"], true);
}

#[test]
fn queries_are_answered_before_during_and_after() {
    let world = World::new(&[]);
    let manager = world.manager(&["--players", "2", "--stay"]);
    let url = manager.url();
    let agents = [listener(), listener(), listener()];
    let token = token_of(&register_player(&url, "player:P01", &agents[0].url));
    let ask = |query_type: &str| {
        let answer = send(&url, &query("player:P01", Some(&token), query_type));
        assert_eq!((&answer["success"], &answer["query_type"]), (&json!(true), &json!(query_type)), "{answer}");
        answer["data"].clone()
    };
    let expect = |state: &str, status: Value, next: Value, played: u32| {
        assert_eq!(ask("GET_PLAYER_STATS")["state"], state);
        assert_eq!(ask("GET_SCHEDULE")["rounds"][0]["matches"][0]["status"], status, "{state}");
        assert_eq!(ask("GET_NEXT_MATCH")["next_match"]["referee_endpoint"], next, "{state}");
        assert_eq!(ask("GET_STANDINGS")["standings"][0]["played"], played, "{state}");
        assert_eq!(call(&url, "get_standings", json!({}))["result"], ask("GET_STANDINGS"), "{state}");
    };
    expect("REGISTERED", Value::Null, Value::Null, 0);
    let referee = token_of(&register_referee(&url, "referee:REF01", &agents[1].url, 1));
    register_player(&url, "player:P02", &agents[2].url);
    until("R1M1 is assigned", || (count(&world, "Assigned") == 1).then_some(()));
    expect("ACTIVE", json!("assigned"), json!(agents[1].url), 0);
    send(&url, &report("referee:REF01", Some(&referee), "R1M1", ["P01", "P02"]));
    manager.line("still serving");
    expect("SHUTDOWN", json!("completed"), Value::Null, 1);
}

#[test]
fn however_the_launcher_ends_no_process_is_left() {
    let interrupt: fn(&mut Agent) = |launcher| {
        Command::new("kill").args(["-INT", &launcher.child.id().to_string()]).status().unwrap();
    };
    let ends =
        [("kill -9", Agent::kill as fn(&mut Agent)), ("closed input", Agent::close_stdin), ("Ctrl-C", interrupt)];
    for (end, act) in ends {
        let world = World::new(&[]);
        let mut launcher = world.start("league_manager", &["local", "--lead-sec", "60"]);
        until("the league starts", || (count(&world, "Started") == 1).then_some(()));
        assert_eq!(processes(&world).len(), 7, "{end}");
        act(&mut launcher);
        until(&format!("all processes end after {end}"), || processes(&world).is_empty().then_some(()));
    }
}

/// The processes whose command line names the folder of this world.
fn processes(world: &World) -> Vec<String> {
    let folder = world.folder.to_string_lossy().into_owned() + "/";
    let all = fs::read_dir("/proc").unwrap().flatten();
    let commands = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let commands = commands.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    commands.filter(|command| command.contains(&folder)).collect()
}

#[test]
fn a_port_in_use_is_said_in_one_line() {
    let world = World::new(&[]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (code, said) = refused(&world, &["local", "--port", &port.to_string()]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&format!("port {port} is in use")) && said.contains("--port N"), "{said}");
    assert!(processes(&world).is_empty());
    // Now the manager takes any port, and of its children only P01 has one of its own, which is taken.
    let listed = json!([{
        "player_id": "P01", "display_name": "Alpha", "version": "1.0.0", "game_types": ["even_odd"], "active": true,
        "default_endpoint": format!("http://localhost:{port}/mcp"),
    }]);
    let agents = "agents/agents_config.json";
    world.edit(agents, "/players", listed);
    world.edit(agents, "/referees", json!([]));
    world.edit("system.json", "/network/default_league_manager_port", json!(0));
    for range in ["/network/default_player_port_range", "/network/default_referee_port_range"] {
        world.edit("system.json", range, json!([20000, 65535]));
    }
    let mut launcher = Agent::new(&mut world.command("league_manager", &["local"]));
    assert_eq!(launcher.wait().code(), Some(1));
    for words in ["player P01 could not start".to_string(), format!("port {port} is in use")] {
        until(&words, || launcher.stderr.lock().unwrap().contains(&words).then_some(()));
    }
    until("all processes end", || processes(&world).is_empty().then_some(()));
}

#[test]
fn local_leagues_of_many_sizes_play_every_match_and_no_referee_more_than_it_can() {
    for (players, referees) in [(2, 1), (3, 2), (5, 3), (8, 1)] {
        let world = World::new(&[]);
        let size = [players, referees].map(|n| n.to_string());
        let mut league =
            world.start("league_manager", &["local", "--players", &size[0], "--referees", &size[1], "--quiet"]);
        assert!(league.wait().success(), "{size:?}: {}", league.stderr.lock().unwrap());
        check_record(&world, players);
        let most = (1..=referees).map(|n| most_at_once(&world, n)).max().unwrap();
        assert!((1..=2).contains(&most), "{size:?}: {most} matches at once");
    }
}

/// How many matches a referee had in play at once: between its first invitation and its report.
fn most_at_once(world: &World, referee: usize) -> usize {
    let lines = json_lines(&world.folder.join(format!("logs/agents/REF0{referee}.log.jsonl")));
    let (mut playing, mut most) = (BTreeSet::new(), 0);
    for line in lines.iter().filter(|line| line["event_type"] == "message_sent") {
        match line["message_type"].as_str() {
            Some("GAME_INVITATION") => drop(playing.insert(line["match_id"].as_str())),
            Some("GAME_OVER") => drop(playing.remove(&line["match_id"].as_str())),
            _ => {}
        }
        most = most.max(playing.len());
    }
    most
}

#[test]
fn with_a_seed_two_runs_end_alike() {
    let run = || {
        let world = World::new(&[]);
        let mut league = world.start("league_manager", &["local", "--seed", "7", "--quiet"]);
        assert!(league.wait().success());
        let mut page = world.data(&format!("{LEAGUE}/standings.json"));
        page["last_updated"].take();
        page
    };
    assert_eq!(run(), run());
}
