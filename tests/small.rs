//! The small league (`bin/small`): it plays, alone and together with the programs of the stack and
//! with the player in Python; it refuses faulty and unauthenticated requests; and it shows no token.

mod support;

use league::protocol::MessageSpec;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{fs, thread};
use support::*;

/// The player in Python.
const PYTHON_PLAYER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/player.py");

/// A folder in which programs of the small league run, and the URL at which they look for the manager.
struct SmallLeague {
    test: TestLeague,
    manager: String,
}

impl SmallLeague {
    /// Makes the folder with these edits of the configuration.
    fn new(edits: &str) -> SmallLeague {
        let test = TestLeague::new(edits);
        let manager = format!("http://localhost:{}/mcp", free_port());
        test.edit("agents", "league_manager.endpoint", json!(manager));
        SmallLeague { test, manager }
    }

    /// Starts a program of the small league, or the tool, in the folder.
    fn spawn(&self, program: &str, options: &str) -> TestProcess {
        let mut command = Command::new(executable(program));
        command.args(options.split_whitespace());
        TestProcess::new(command.current_dir(&self.test.folder))
    }

    /// Starts the small manager and waits until it listens.
    fn start_manager(&self, options: &str) -> TestProcess {
        let manager = self.spawn("small_manager", options);
        manager.line(" at http://");
        manager
    }

    /// Starts an agent: `small P01`, `big REF01` or `python P02`.
    fn start_agent(&self, agent: &str) -> TestProcess {
        let (league, id) = agent.split_once(' ').unwrap();
        let kind = if id.starts_with('R') {
            "referee"
        } else {
            "player"
        };
        let options = format!("--{kind}-id {id}");
        match league {
            "small" => {
                let options = format!("--port {} {options}", free_port());
                self.spawn(&format!("small_{kind}"), &options)
            }
            "big" => {
                let options = format!("{options} --manager {}", self.manager);
                self.test.start(kind, &options)
            }
            _ => self.test.python(PYTHON_PLAYER, &self.manager, &options),
        }
    }

    /// Checks that no program has shown a token or logged a failed call.
    fn check_logs(&self, processes: &[TestProcess]) {
        let mut shown = json!(self.test.logs()).to_string();
        assert!(shown.contains("tok-"), "tokens are masked, not absent");
        assert!(!shown.contains("delivery_failed"), "{shown}");
        for process in processes {
            shown += &(process.output() + &process.errors());
        }
        check_no_token(&shown);
    }
}

/// Returns the rows of the table that a manager has printed: id, played, wins, draws, losses, points.
fn printed_table(output: &str) -> Vec<(String, [u32; 5])> {
    let mut rows = Vec::new();
    for line in output
        .lines()
        .skip_while(|line| !line.starts_with("Rank"))
        .skip(1)
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() < 8 {
            break;
        }
        let numbers = &words[words.len() - 5..];
        let numbers = numbers.iter().map(|number| number.parse().unwrap());
        let numbers: Vec<u32> = numbers.collect();
        rows.push((words[1].to_string(), numbers.try_into().unwrap()));
    }
    rows
}

/// Checks that each player has played each other once, and that the table adds up.
fn check_table(output: &str, players: u32) {
    let rows = printed_table(output);
    assert_eq!(rows.len() as u32, players, "{output}");
    let (mut wins, mut losses, mut last) = (0, 0, u32::MAX);
    for (id, [played, won, drawn, lost, points]) in &rows {
        assert_eq!(
            [*played, won + drawn + lost],
            [players - 1; 2],
            "{id}: {output}"
        );
        assert_eq!(*points, 3 * won + drawn, "{id}: {output}");
        assert!(*points <= last, "{id}: {output}");
        (wins, losses, last) = (wins + won, losses + lost, *points);
    }
    assert_eq!(wins, losses, "{output}");
    let champion = format!(" with {} points", rows[0].1[4]);
    let line = output.lines().find(|line| line.starts_with("Champion: "));
    check_contains(line.unwrap(), &champion);
}

/// Checks that each match was one conversation, the same as in a league of the stack.
fn check_conversations(logs: &[Value], matches: usize) {
    let golden = include_str!("scripts/league/conversation_of_a_match.txt");
    let expected: Vec<&str> = golden
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .collect();
    let mut conversations = BTreeMap::<&str, BTreeMap<String, u32>>::new();
    for line in logs {
        let keys = ["conversation_id", "message_type", "component", "event_type"];
        let [Some(conversation), Some(name), Some(who), Some(event)] =
            keys.map(|key| line[key].as_str())
        else {
            continue;
        };
        let who = who.trim_end_matches(|c: char| c.is_ascii_digit());
        let who = who
            .strip_prefix("player:")
            .or(who.strip_prefix("referee:"))
            .unwrap_or(who);
        let lines = conversations.entry(conversation).or_default();
        *lines.entry(format!("{name} {who} {event}")).or_default() += 1;
    }
    conversations.retain(|_, lines| lines.keys().any(|line| line.starts_with("GAME_INVITATION")));
    assert_eq!(conversations.len(), matches);
    for (conversation, lines) in conversations {
        let lines: Vec<String> = lines
            .iter()
            .map(|(line, n)| format!("{line} x{n}"))
            .collect();
        assert_eq!(lines, expected, "{conversation}");
    }
}

#[test]
fn sources_use_protocol_games_and_values_only() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bin/small");
    for name in ["player", "referee", "manager", "state", "net", "config"] {
        let text = fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
        for path in text.split("league::").skip(1) {
            let module = path
                .split(|c: char| !c.is_ascii_alphanumeric())
                .next()
                .unwrap();
            assert!(
                ["protocol", "games", "values"].contains(&module),
                "{name}: {module}"
            );
        }
        assert!(text.lines().count() <= 400, "{name}");
    }
    assert_eq!(fs::read_dir(folder).unwrap().count(), 6);
}

#[test]
fn tool_copies_the_small_league() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let small = SmallLeague::new("");
    let folder = &small.test.folder;
    fs::create_dir_all(folder.join("bin/small")).unwrap();
    fs::write(folder.join("Cargo.toml"), "[package]\n").unwrap();
    let sources = fs::read_dir(project.join("bin/small")).unwrap();
    let sources: Vec<_> = sources.map(|file| file.unwrap().file_name()).collect();
    for name in &sources {
        let source = Path::new("bin/small").join(name);
        fs::copy(project.join(&source), folder.join(&source)).unwrap();
    }

    small.spawn("league", "new mine --small").wait_for_success();
    for name in &sources {
        let read =
            |copy: &str| fs::read_to_string(folder.join("bin").join(copy).join(name)).unwrap();
        assert_eq!(read("mine"), read("small"));
    }
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for kind in ["manager", "referee", "player"] {
        let bin = format!("[[bin]]\nname = \"mine_{kind}\"\npath = \"bin/mine/{kind}.rs\"\n");
        check_contains(&manifest, &bin);
    }

    // A name that is taken, or that no program can have, changes nothing.
    for (name, code, problem) in [
        ("mine", 1, "bin/mine: "),
        ("../mine", 2, "expected small letters"),
    ] {
        let mut refused = small.spawn("league", &format!("new {name} --small"));
        assert_eq!(refused.wait().code(), Some(code));
        check_contains(&refused.errors(), problem);
        assert_eq!(
            fs::read_to_string(folder.join("Cargo.toml")).unwrap(),
            manifest
        );
    }
}

#[test]
fn tool_plays_a_small_league() {
    for players in [2, 5] {
        let small = SmallLeague::new("");
        for kind in ["referee", "player"] {
            let first = free_ports(players as u16);
            let key = format!("network.default_{kind}_port_range");
            small.test.edit("system", &key, json!([first, first + 99]));
        }
        let mut league = small.spawn("league", &format!("small --players {players}"));
        league.wait_for_success();
        let output = league.output();
        check_table(&output, players);
        let rounds = players - 1 + players % 2;
        check_contains(&output, &format!("\nRound {rounds} of {rounds}\n"));
        check_contains(&output, "\n            all Agent ");
        let trace = small.spawn("league", "trace R1M1");
        trace.line("MATCH_RESULT_ACK");
        let logs = small.test.logs();
        check_conversations(&logs, (players * (players - 1) / 2) as usize);
        small.check_logs(&[league]);
        for line in logs.iter().filter(|line| line["message_type"].is_string()) {
            let spec = MessageSpec::by_type(text_of(&line["message_type"])).unwrap();
            let schema = &spec.schema;
            let findings = league::json::check(&mut line["message"].clone(), schema);
            assert!(
                findings.errors.is_empty() && findings.ignored.is_empty(),
                "{line}"
            );
        }
    }
}

#[test]
fn same_seed_is_the_same_league() {
    let outputs = [(); 2].map(|()| {
        let small = SmallLeague::new("");
        for kind in ["referee", "player"] {
            let first = free_ports(5);
            let key = format!("network.default_{kind}_port_range");
            small.test.edit("system", &key, json!([first, first + 99]));
        }
        let mut league = small.spawn("league", "small --players 5 --seed 7");
        league.wait_for_success();
        league.output()
    });
    let [one, other] = outputs
        .each_ref()
        .map(|output| output[output.find("\nRound 1 of 5").unwrap()..].trim_end());
    assert_eq!(one, other);
    assert!(one.ends_with("The league was played to its end."), "{one}");
    check_contains(one, " even P02 ");
}

/// The manager, the referee, and the players of a league; three of them have a bye in each round.
const COMBINATIONS: &str = "
small | small REF01 | big P01, python P02, small P03
big | big REF01 | small P01, small P02, small P03
small | big REF01 | small P01, big P02, small P03
big | small REF01 | small P01, big P02, python P03";

#[test]
fn small_and_big_programs_play_together() {
    thread::scope(|scope| {
        rows(COMBINATIONS).for_each(|row| drop(scope.spawn(move || play_together(row))));
    });
}

fn play_together([manager, referee, players]: [&str; 3]) {
    let small = SmallLeague::new("");
    let mut players: Vec<&str> = players.split(", ").collect();
    players.retain(|player| !player.starts_with("python") || has_python());
    let count = players.len() as u32;
    let options = format!("--players {count}");
    let process = match manager {
        "small" => small.start_manager(&options),
        _ => small
            .test
            .manager(&format!("{options} --port {}", port_of(&small.manager))),
    };
    let mut processes = vec![process, small.start_agent(referee)];
    processes.extend(players.iter().map(|player| small.start_agent(player)));
    processes.iter_mut().for_each(TestProcess::wait_for_success);
    match manager {
        "small" => check_table(&processes[0].output(), count),
        _ => small.test.check_played(count as usize),
    }
    if players.iter().all(|player| !player.starts_with("python")) {
        check_conversations(&small.test.logs(), (count * (count - 1) / 2) as usize);
    }
    small.check_logs(&processes);
}

/// Returns the port of a URL like `http://localhost:8000/mcp`.
fn port_of(url: &str) -> &str {
    url.trim_end_matches("/mcp").rsplit(':').next().unwrap()
}

/// The manager and the referee of a league with a silent player; and the message to which it is
/// silent.
const SILENCES: &str = "
small | small REF01 | CHOOSE_PARITY_CALL
small | small REF01 | GAME_INVITATION
small | big REF01 | CHOOSE_PARITY_CALL
big | small REF01 | CHOOSE_PARITY_CALL";

#[test]
fn silent_player_loses_and_the_league_ends() {
    thread::scope(|scope| {
        rows(SILENCES).for_each(|row| drop(scope.spawn(move || play_with_silent_player(row))));
    });
}

fn play_with_silent_player([manager, referee, silent_at]: [&'static str; 3]) {
    let small = SmallLeague::new(
        "system timeouts.move_timeout_sec=0.4; system timeouts.game_join_ack_timeout_sec=0.4",
    );
    let process = match manager {
        "small" => small.start_manager("--players 3"),
        _ => {
            let options = format!("--players 3 --port {}", port_of(&small.manager));
            small.test.manager(&options)
        }
    };
    let silent = FakeAgent::new(move |request| match &request["params"]["message_type"] {
        name if *name == silent_at => FakeReply::Silence,
        _ => valid_reply("P03", "odd", request),
    });
    register(&small.manager, "P03", &silent.url);
    let mut processes = vec![process];
    processes.extend([referee, "small P01", "small P02"].map(|agent| small.start_agent(agent)));
    processes.iter_mut().for_each(TestProcess::wait_for_success);

    // The player lost both of its matches, and was told so after each attempt.
    let losses: Vec<Value> = silent.received("GAME_OVER");
    assert_eq!(losses.len(), 2, "{losses:?}");
    for over in &losses {
        let result = &over["game_result"];
        assert_eq!(result["status"], "TECHNICAL_LOSS", "{over}");
        assert_ne!(result["winner_player_id"], "P03", "{over}");
        assert!(text_of(&result["reason"]).starts_with("P03 "), "{over}");
    }
    let errors = silent.received("GAME_ERROR");
    let attempts = if silent_at == "GAME_INVITATION" { 2 } else { 6 };
    assert_eq!(errors.len(), attempts, "{errors:?}");
    assert!(
        errors.iter().all(|error| error["error_code"] == "E001"),
        "{errors:?}"
    );
    if manager == "small" {
        let rows = printed_table(&processes[0].output());
        let last = rows.last().unwrap();
        assert_eq!(*last, ("P03".to_string(), [2, 0, 0, 2, 0]));
    }
}

/// The code with which a player refuses its call, and the code that it is told afterwards: a code
/// that the protocol does not have is not passed on.
const REFUSALS: [(&str, &str); 2] = [("E015", "E015"), ("E999", "E003")];

#[test]
fn refusal_keeps_its_code() {
    let small = SmallLeague::new("");
    let mut manager = small.start_manager("--players 2");
    let mut referee = small.start_agent("small REF01");
    let players = REFUSALS.map(|(code, _)| {
        let player = FakeAgent::new(move |request| {
            if request["params"]["message_type"] != "CHOOSE_PARITY_CALL" {
                return valid_reply("P01", "odd", request);
            }
            let body = json!({"error_code": code, "error_description": "no"});
            FakeReply::Answer(message("LEAGUE_ERROR", "player:P01", body))
        });
        register(&small.manager, "P01", &player.url);
        player
    });
    for process in [&mut manager, &mut referee] {
        process.wait_for_success();
    }
    for (player, (_, told)) in players.iter().zip(REFUSALS) {
        let call = player.first("CHOOSE_PARITY_CALL");
        let standings = json!({"wins": 0, "losses": 0, "draws": 0});
        assert_eq!(call["context"]["your_standings"], standings, "{call}");
        assert_eq!(player.received("GAME_ERROR").len(), 3);
        for error in player.received("GAME_ERROR") {
            assert_eq!(error["error_code"], told, "{error}");
        }
    }
}

/// A program, its options, an edit of the configuration, and what it says before it ends with code 1.
const FAULTS: &str = r#"
small_manager | --port x | | --port x: unknown option or wrong value; options: --port N
small_player | --sed 7 | | --sed 7: unknown option or wrong value; options: --port N
small_manager | | system default_league_id="none" | config/leagues/none.json: 
small_referee | | | --port N is missing
small_referee | | system timeouts=5 | config/system.json: invalid type
small_manager | | agents league_manager.endpoint=5 | league_manager.endpoint is , expected an absolute URL"#;

#[test]
fn faults_of_the_start_are_one_sentence() {
    for [program, options, edit, sentence] in rows(FAULTS) {
        let small = SmallLeague::new("");
        if let Some((file, edit)) = edit.split_once(' ') {
            let (path, value) = edit.split_once('=').unwrap();
            small.test.edit(file, path, json_of(value));
        }
        check_end(small.spawn(program, options), sentence);
    }
    let mut help = SmallLeague::new("").spawn("small_player", "--help");
    help.wait_for_success();
    check_contains(&help.output(), "options: --port N");
}

/// Checks that a program fails with one line on standard error.
fn check_end(mut process: TestProcess, sentence: &str) {
    assert_eq!(process.wait().code(), Some(1), "{sentence}");
    let errors = process.errors();
    assert!(
        errors.starts_with(sentence) && errors.lines().count() == 1,
        "{errors}"
    );
}

#[test]
fn occupied_port_and_absent_manager_are_one_sentence() {
    let small = SmallLeague::new("system retry_policy.base_delay_sec=0.01");
    let port = free_port();
    let lost = small.spawn("small_player", &format!("--port {port}"));
    check_end(lost, &format!("the manager at {}: E009", small.manager));
    let _manager = small.start_manager("");
    let sentence = format!("port {}: ", port_of(&small.manager));
    check_end(small.spawn("small_manager", ""), &sentence);
}

#[test]
fn failed_program_ends_the_league_of_the_tool() {
    let small = SmallLeague::new("");
    small
        .test
        .edit("league", "participants.max_players", json!(2));
    for (kind, first) in [("referee", free_port()), ("player", free_ports(3))] {
        let key = format!("network.default_{kind}_port_range");
        small.test.edit("system", &key, json!([first, first + 99]));
    }
    let mut league = small.spawn("league", "small --players 3");
    assert_eq!(league.wait().code(), Some(1));
    let errors = league.errors();
    check_contains(&errors, "rejected: Maximum players reached\n");
    check_contains(&errors, "the league was not played to its end: P0");
    let url = small.manager.replace("localhost", "127.0.0.1");
    wait_until("the manager has ended", || {
        connect(&url, TIME_LIMIT).is_err()
    });
}

/// Sends a message under its method. Returns the result, or the whole reply if it is an error.
fn send_by_method(url: &str, message: &Value) -> Value {
    let spec = MessageSpec::by_type(text_of(&message["message_type"])).unwrap();
    let mut reply = call(url, spec.method, message.clone());
    match reply["error"].is_null() {
        true => reply["result"].take(),
        false => reply,
    }
}

/// Registers a scripted agent: a player, or a referee. Returns the manager's answer.
fn register(manager: &str, id: &str, endpoint: &str) -> Value {
    let meta = json!({"display_name": id, "version": "1.0.0", "game_types": ["even_odd"],
        "contact_endpoint": endpoint, "max_concurrent_matches": 1});
    let registration = if id.starts_with('R') {
        let body = json!({"referee_meta": meta});
        message("REFEREE_REGISTER_REQUEST", &format!("referee:{id}"), body)
    } else {
        let body = json!({"player_meta": meta});
        message("LEAGUE_REGISTER_REQUEST", &format!("player:{id}"), body)
    };
    send_by_method(manager, &registration)
}

/// A message and its sender, its body, and the answer of the manager. MY is the token of P01.
const REQUESTS: &str = r#"
LEAGUE_QUERY player:P01 | {"auth_token": "MY", "query_type": "GET_STANDINGS"} | success standings
LEAGUE_QUERY player:P01 | {"auth_token": "MY", "query_type": "GET_SCHEDULE"} | success rounds
LEAGUE_QUERY player:P01 | {"auth_token": "MY", "query_type": "GET_NEXT_MATCH"} | success next_match
LEAGUE_QUERY player:P01 | {"auth_token": "MY", "query_type": "GET_PLAYER_STATS"} | success player_id
LEAGUE_QUERY player:P01 | {"auth_token": "MY", "query_type": "GET_NEXT_MATCH", "query_params": {"player_id": "P99"}} | E005
LEAGUE_QUERY player:P01 | {"auth_token": "MY", "query_type": "GET_ALL"} | E003
LEAGUE_QUERY player:P01 | {"query_type": "GET_STANDINGS"} | E011
LEAGUE_QUERY player:P02 | {"auth_token": "MY", "query_type": "GET_STANDINGS"} | E012
LEAGUE_QUERY player:P09 | {"auth_token": "MY", "query_type": "GET_STANDINGS"} | E005
LEAGUE_QUERY referee:REF09 | {"auth_token": "MY", "query_type": "GET_STANDINGS"} | E013
LEAGUE_QUERY player:P01 | {"auth_token": "MY"} | E003
LEAGUE_QUERY player:P01 | {"auth_token": "MY", "query_type": "GET_STANDINGS", "protocol": "league.v1"} | E018
LEAGUE_QUERY player:P01 | {"auth_token": "MY", "query_type": "GET_STANDINGS", "timestamp": "now"} | E021
MATCH_RESULT_REPORT player:P01 | REPORT | E015
LEAGUE_REGISTER_REQUEST player:P07 | {"player_meta": {"display_name": "", "version": "1.0.0", "game_types": ["even_odd"], "contact_endpoint": "http://localhost:1/mcp"}} | REJECTED display_name: must be 1 to 50 characters, and not NAME
LEAGUE_REGISTER_REQUEST player:P07 | {"player_meta": {"display_name": "A", "version": "1", "game_types": ["even_odd"], "contact_endpoint": "http://localhost:1/mcp"}} | REJECTED version: must be MAJOR.MINOR.PATCH, like 1.0.0
LEAGUE_REGISTER_REQUEST player:P07 | {"player_meta": {"display_name": "A", "version": "1.0.0", "game_types": ["chess"], "contact_endpoint": "http://localhost:1/mcp"}} | REJECTED Unsupported game type: this league plays even_odd
START_LEAGUE launcher | {} | waiting 2 of at least 2 players and 0 of at least 1 referee are here
LEAGUE_CONTROL launcher | {"action": "pause"} | E003
GAME_INVITATION referee:REF01 | {} | -32601"#;

#[test]
fn manager_answers_queries_and_refuses_faulty_requests() {
    let small = SmallLeague::new("");
    let manager = small.start_manager("--players 3");
    let peer = FakeAgent::new(|request| valid_reply("P01", "even", request));
    let token = token_of(&register(&small.manager, "P01", &peer.url));
    register(&small.manager, "P02", &peer.url);
    for [what, body, expected] in rows(REQUESTS) {
        let (name, sender) = what.split_once(' ').unwrap();
        let mut body = match body {
            "REPORT" => report(sender, Some(&token), "R1M1", ["P01", "P02"]),
            body => json_of(&body.replace("MY", &token)),
        };
        body["league_id"] = json!("league_2025_even_odd");
        let answer = send_by_method(&small.manager, &message(name, sender, body));
        assert_eq!(summary(&answer), expected, "{what}: {answer}");
        check_no_token(&answer.to_string());
    }

    let (_, answer) = http("POST", &small.manager, "", b"{");
    check_contains(&answer, "\"code\":-32700");

    // With a referee the league can start. After the start no agent may register.
    register(&small.manager, "REF01", &peer.url);
    let launch = message(
        "START_LEAGUE",
        "launcher",
        json!({"league_id": "league_2025_even_odd"}),
    );
    assert_eq!(
        summary(&send_by_method(&small.manager, &launch)),
        "running "
    );
    let late = register(&small.manager, "P08", &peer.url);
    assert_eq!(late["error_code"], "E019", "{late}");
    manager.line("Round 1 of 1");
    drop(manager);
}

/// Returns the summary of an answer: its code, or its status with a word about its content.
fn summary(answer: &Value) -> String {
    let text = |key: &str| answer[key].as_str().unwrap_or_default().to_string();
    if let Some(code) = answer["error"]["code"].as_i64() {
        return code.to_string();
    }
    match text("message_type").as_str() {
        "LEAGUE_ERROR" => text("error_code"),
        "LEAGUE_QUERY_RESPONSE" if answer["success"] == true => {
            let data = answer["data"].as_object().unwrap();
            let known = ["standings", "rounds", "next_match", "player_id"];
            let key = known.iter().find(|key| data.contains_key(**key)).unwrap();
            format!("success {key}")
        }
        "LEAGUE_QUERY_RESPONSE" => text_of(&answer["error"]["error_code"]).into(),
        _ => format!("{} {}", text("status"), text("reason")),
    }
}

#[test]
fn agents_show_their_token_to_no_stranger() {
    let small = SmallLeague::new("");
    let manager = fake::manager();
    small
        .test
        .edit("agents", "league_manager.endpoint", json!(manager.url));
    for kind in ["referee", "player"] {
        let port = free_port();
        let agent = small.spawn(&format!("small_{kind}"), &format!("--port {port}"));
        let url = format!("http://127.0.0.1:{port}/mcp");
        let registration = ["REFEREE_REGISTER_REQUEST", "LEAGUE_REGISTER_REQUEST"];
        manager.first(registration[usize::from(kind == "player")]);
        for (token, code) in [(json!(null), "E011"), (json!("tok-p01-0"), "E012")] {
            let end = message(
                "LEAGUE_COMPLETED",
                "player:P02",
                fake::completed(token.as_str()),
            );
            assert_eq!(
                send_by_method(&url, &end)["error_code"],
                code,
                "{kind}: a false end"
            );
            let body =
                json!({"league_id": "league", "round_id": 1, "matches": [], "auth_token": token});
            let announcement = message("ROUND_ANNOUNCEMENT", "league_manager", body);
            let answer = send_by_method(&url, &announcement);
            assert_eq!(answer["error_code"], code, "{kind}: {answer}");
            check_no_token(&answer.to_string());
        }
        check_no_token(&agent.errors());
    }
}
