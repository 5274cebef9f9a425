//! Configuration and command line: each fault is one line that names file and key, what came and what is legal,
//! and ends the program with 2; each key does what it says.

mod support;

use league::{config::Config, game::Scoring, protocol::MatchResult, standings, wire::Wire};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, net::TcpListener, time::Duration};
use support::{Agent, World, call, http, message, pointer, register_player, until};

const SYSTEM: &str = "system.json";
const AGENTS: &str = "agents/agents_config.json";
const LEAGUE: &str = "leagues/league_2025_even_odd.json";
const GAMES: &str = "games/games_registry.json";
const REFEREE: &str = "defaults/referee.json";
const PLAYER: &str = "defaults/player.json";
const PROGRAMS: [&str; 3] = ["league_manager", "referee", "player"];

/// What loading says of the shipped files with one place changed; null leaves it out.
fn loaded(world: &World, file: &str, path: &str, value: Value) -> Result<Config, String> {
    let whole = world.folder.join("config").join(file);
    let before = fs::read(&whole).unwrap();
    world.edit(file, &pointer(path), value);
    let loaded = Config::load(&world.folder.join("config"), None);
    fs::write(&whole, before).unwrap();
    loaded
}

/// One line, with all these words in it.
fn check_line(line: &str, words: &[&str]) {
    assert!(!line.trim_end().contains('\n'), "{line:?}");
    words.iter().for_each(|word| assert!(line.contains(word), "no {word:?} in {line:?}"));
}

fn base_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap()
}

/// Every key of a file: objects and the first of each array included.
fn keys(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    let dot = if path.is_empty() { "" } else { "." };
    let below: Vec<(String, &Value)> = match value {
        Value::Object(object) => object.iter().map(|(key, value)| (format!("{path}{dot}{key}"), value)).collect(),
        Value::Array(items) => items.iter().take(1).map(|item| (format!("{path}[0]"), item)).collect(),
        _ => Vec::new(),
    };
    for (path, value) in below {
        found.push((path.clone(), value.clone()));
        keys(value, &path, found);
    }
}

#[test]
fn every_key_is_needed_typed_and_known() {
    let world = World::new(&[]);
    let mut optional = BTreeSet::new();
    for file in [SYSTEM, AGENTS, LEAGUE, GAMES, REFEREE, PLAYER] {
        let whole = fs::read(world.folder.join("config").join(file)).unwrap();
        let mut found = Vec::new();
        keys(&serde_json::from_slice(&whole).unwrap(), "", &mut found);
        for (path, value) in found {
            let wrong = if value.is_boolean() { json!("true") } else { json!(true) };
            let line = loaded(&world, file, &path, wrong.clone()).unwrap_err();
            check_line(&line, &[base_name(file), &format!("{path}: got {wrong}, expected ")]);
            if value.is_object() {
                let line = loaded(&world, file, &format!("{path}.colour"), json!("red")).unwrap_err();
                let known = value.as_object().unwrap().keys().next().unwrap();
                check_line(&line, &[base_name(file), &format!("{path}.colour: unknown key, expected one of "), known]);
            }
            if !path.ends_with(']') {
                match loaded(&world, file, &path, Value::Null) {
                    Ok(_) => drop(optional.insert(path)),
                    Err(line) => check_line(&line, &[base_name(file), &format!("{path}: missing")]),
                }
            }
        }
        let line = loaded(&world, file, "colour", json!("red")).unwrap_err();
        check_line(&line, &[base_name(file), ": colour: unknown key"]);
    }
    let expected = [
        "limits",
        "limits.max_message_bytes",
        "scheduling.cycles",
        "scheduling.round_announcement_lead_sec",
        "security.strict_envelope",
        "timeouts.game_over_timeout_sec",
    ];
    assert_eq!(optional, expected.map(String::from).into());
}

#[test]
fn bad_values_are_refused() {
    let world = World::new(&[]);
    let rows = [
        (SYSTEM, "protocol_version", json!("league.v1"), "league.v2"),
        (SYSTEM, "default_league_id", json!("../x"), "letters, digits, _ and -"),
        (SYSTEM, "network.base_host", json!("my host"), "a host name"),
        (SYSTEM, "network.default_league_manager_port", json!(65_536), "0 to 65535"),
        (SYSTEM, "network.default_referee_port_range", json!([8001]), "[first, last]"),
        (SYSTEM, "network.default_player_port_range", json!([8199, 8101]), "[first, last]"),
        (SYSTEM, "security.token_length", json!(31), "32 to 256"),
        (SYSTEM, "security.token_ttl_hours", json!(0), "more than 0"),
        (SYSTEM, "timeouts.move_timeout_sec", json!(0), "more than 0 seconds"),
        (SYSTEM, "timeouts.game_join_ack_timeout_sec", json!(-1.5), "seconds from 0"),
        (SYSTEM, "timeouts.generic_response_timeout_sec", json!("10"), "a number"),
        (SYSTEM, "timeouts.register_player_timeout_sec", json!(1e300), "seconds from 0"),
        (SYSTEM, "timeouts.register_referee_timeout_sec", json!(0), "more than 0 seconds"),
        (SYSTEM, "timeouts.game_over_timeout_sec", json!(0), "more than 0 seconds"),
        (SYSTEM, "retry_policy.max_retries", json!(0), "1 to 100"),
        (SYSTEM, "retry_policy.max_retries", json!(2.5), "a whole number"),
        (SYSTEM, "retry_policy.base_delay_sec", json!(-2), "seconds from 0"),
        (SYSTEM, "retry_policy.backoff_strategy", json!("linear"), "\"exponential\" or \"fixed\""),
        (SYSTEM, "limits.max_message_bytes", json!(1023), "1024 to 1048576"),
        (AGENTS, "league_manager.endpoint", json!("localhost:8000"), "http://"),
        (AGENTS, "referees[0].endpoint", json!("http://127.0.0.1:8000/mcp"), "an endpoint of its own"),
        (AGENTS, "referees[0].referee_id", json!("REF1"), "REF01, REF02"),
        (AGENTS, "referees[1].referee_id", json!("REF01"), "each once"),
        (AGENTS, "referees[0].max_concurrent_matches", json!(11), "1 to 10"),
        (AGENTS, "players[0].player_id", json!("alpha"), "P01, P02"),
        (AGENTS, "players[3].player_id", json!("P01"), "each once"),
        (AGENTS, "players[1].default_endpoint", json!("ftp://localhost/mcp"), "http://"),
        (AGENTS, "players[1].active", json!("yes"), "true or false"),
        (LEAGUE, "league_id", json!("league_2026"), "league_2025_even_odd"),
        (LEAGUE, "game_type", json!("chess"), "games_registry.json"),
        (LEAGUE, "status", json!("PAUSED"), "ACTIVE"),
        (LEAGUE, "scoring.win_points", json!(2_147_483_648_u32), "32-bit"),
        (LEAGUE, "scoring.tiebreakers[1]", json!("goals"), "\"wins\" or \"head_to_head\" or \"draws\""),
        (LEAGUE, "scheduling.format", json!("knockout"), "round_robin"),
        (LEAGUE, "scheduling.cycles", json!(0), "1 to 100"),
        (LEAGUE, "scheduling.round_announcement_lead_sec", json!(-1), "seconds from 0"),
        (LEAGUE, "participants.min_players", json!(1), "at least 2"),
        (LEAGUE, "participants.max_players", json!(1), "at least min_players"),
        (GAMES, "games[0].game_type", json!("chess"), "even_odd"),
        (GAMES, "games[0].players", json!(3), "2"),
        (GAMES, "games[0].choices", json!(["odd", "even"]), "[\"even\", \"odd\"]"),
        (GAMES, "games[0].number_range", json!([1, 6]), "[1, 10]"),
        (REFEREE, "max_concurrent_matches", json!(0), "1 to 10"),
    ];
    for (file, path, value, legal) in rows {
        let line = loaded(&world, file, path, value.clone()).expect_err(path);
        let came = value.as_str().map_or(value.to_string(), String::from).replace(',', ", ");
        let came = if value.is_array() || value == json!(1e300) { "got " } else { &came };
        check_line(&line, &[base_name(file), path, came, legal]);
    }
    // Points must fall from win to technical loss; the line shows all four.
    for (path, value) in [
        ("scoring.win_points", json!(1)),
        ("scoring.draw_points", json!(0)),
        ("scoring.technical_loss_points", json!(1)),
        ("scoring.win_points", json!(1001)),
    ] {
        let line = loaded(&world, LEAGUE, path, value).expect_err(path);
        check_line(&line, &[base_name(LEAGUE), "scoring: got [", "win > draw > loss >= technical loss"]);
    }
}

/// A command that must end by itself with 2 and one line.
fn check_refused(world: &World, program: &str, arguments: &[&str], words: &[&str]) {
    let mut agent = Agent::new(&mut world.command(program, arguments));
    assert_eq!(agent.wait().code(), Some(2), "{program} {arguments:?}");
    let line = until("it says why", || Some(agent.stderr.lock().unwrap().clone()).filter(|text| text.ends_with('\n')));
    check_line(&line, words);
    assert_eq!(agent.output(), "");
}

#[test]
fn programs_end_with_2_and_one_line() {
    for (program, file, path, value, words) in [
        ("league_manager", SYSTEM, "security.token_length", json!(8), ["system.json", "security.token_length", "32"]),
        ("league_manager", LEAGUE, "colour", json!(1), [LEAGUE, "colour: unknown key", "expected one of"]),
        ("referee", SYSTEM, "timeouts.move_timeout_sec", Value::Null, [SYSTEM, "move_timeout_sec", "missing"]),
        ("player", AGENTS, "players[1].active", json!("yes"), [AGENTS, "players[1].active: got", "true or false"]),
        ("player", PLAYER, "strategy", json!("wild"), [PLAYER, "strategy: got \"wild\"", "random, even, odd"]),
    ] {
        check_refused(&World::new(&[(file, &pointer(path), value)]), program, &["--port", "0"], &words);
    }
    for program in PROGRAMS {
        for file in [SYSTEM, AGENTS, LEAGUE, GAMES, REFEREE, PLAYER] {
            let world = World::new(&[]);
            let path = world.folder.join("config").join(file);
            fs::write(&path, "{not JSON").unwrap();
            check_refused(&world, program, &["--port", "0"], &[file, "not JSON"]);
            fs::remove_file(&path).unwrap();
            check_refused(&world, program, &["--port", "0"], &[file, "No such file", "--config DIR"]);
        }
    }
}

#[test]
fn wrong_use_ends_with_2_and_one_line() {
    let world = World::new(&[]);
    for program in PROGRAMS {
        for (arguments, words) in [
            (&["--colour", "red"][..], ["--colour", "--help"]),
            (&["red"], ["red", "--help"]),
            (&["--port"], ["--port", "needs a value"]),
            (&["--help=yes"], ["--help", "takes no value"]),
            (&["--port", "many"], ["--port", "many"]),
            (&["--port", "65536"], ["--port", "65536"]),
            (&["--port", "0", "--host", "0.0.0.0"], ["0.0.0.0", "--contact-endpoint"]),
            (&["--host", "203.0.113.9"], ["203.0.113.9", "--host is an address of this machine"]),
            (&["--port", "0", "--contact-endpoint", "here"], ["--contact-endpoint", "here"]),
            (&["--port", "0", "--league-id", "chess"], ["leagues/chess.json", "No such file"]),
            (&["--port", "0", "--league-id", "../x"], ["--league-id", "letters, digits"]),
            (&["--port", "0", "--seed", "x"], ["--seed", "x"]),
        ] {
            check_refused(&world, program, arguments, &words);
        }
    }
    for (program, arguments, words) in [
        ("league_manager", ["--players", "1"], ["--players", "2 to 100"]),
        ("league_manager", ["--players", "two"], ["--players", "two"]),
        ("league_manager", ["--lead-sec", "-1"], ["--lead-sec", "-1"]),
        ("player", ["--strategy", "wild"], ["--strategy", "contrary"]),
        ("player", ["--manager", "here"], ["--manager", "http://"]),
        ("referee", ["--max-concurrent-matches", "11"], ["--max-concurrent-matches", "1 to 10"]),
        ("referee", ["--max-concurrent-matches", "x"], ["--max-concurrent-matches", "x"]),
    ] {
        check_refused(&world, program, &[&["--port", "0"][..], &arguments].concat(), &words);
    }
}

#[test]
fn a_port_in_use_is_named_with_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let world = World::new(&[(SYSTEM, "/network/default_league_manager_port", json!(port.parse::<u16>().unwrap()))]);
    for program in PROGRAMS {
        check_refused(&world, program, &["--port", &port], &[&port, "--port"]);
    }
    check_refused(&world, "league_manager", &[], &[&port, "--port"]);
    check_refused(&world, "league_manager", &["local", "--fresh"], &[&port, "--port"]);
}

#[test]
fn help_lists_every_option_and_version_says_which() {
    let common = "--help --version --host --port --config --data --logs --league-id --contact-endpoint \
        --until-stdin-closes --operator-token-file --seed";
    let own = [
        "--players --referees --lead-sec --stay --fresh --quiet start status local",
        "--manager --display-name --referee-id --max-concurrent-matches",
        "--manager --display-name --player-id --strategy",
    ];
    let world = World::new(&[]);
    for (program, own) in PROGRAMS.into_iter().zip(own) {
        let shown = |option: &str| {
            let mut agent = Agent::new(&mut world.command(program, &[option]));
            assert!(agent.wait().success(), "{program} {option}");
            agent.output()
        };
        let help = shown("--help");
        for option in [common, own].iter().flat_map(|names| names.split_whitespace()) {
            let listed = help.lines().any(|line| line.trim_start().starts_with(&format!("{option} ")));
            assert!(listed, "{program} {option}: {help}");
        }
        assert_eq!(shown("--version"), format!("{program} {}", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn seconds_may_be_fractions() {
    let world = World::new(&[]);
    let quarter = |file: &str, path: &str| loaded(&world, file, path, json!(0.25)).expect(path);
    let limits = [
        quarter(SYSTEM, "timeouts.register_referee_timeout_sec").register_referee_limit,
        quarter(SYSTEM, "timeouts.register_player_timeout_sec").register_player_limit,
        quarter(SYSTEM, "timeouts.game_join_ack_timeout_sec").join_limit,
        quarter(SYSTEM, "timeouts.move_timeout_sec").choice_limit,
        quarter(SYSTEM, "timeouts.game_over_timeout_sec").game_over_limit,
        quarter(SYSTEM, "timeouts.generic_response_timeout_sec").generic_limit,
        quarter(SYSTEM, "retry_policy.base_delay_sec").retry.base_delay,
        quarter(LEAGUE, "scheduling.round_announcement_lead_sec").lead,
    ];
    assert_eq!(limits, [Duration::from_millis(250); 8]);
    assert_eq!(quarter(SYSTEM, "security.token_ttl_hours").rules.token_lifetime, Duration::from_secs(900));
}

#[test]
fn what_may_be_absent_has_its_default() {
    let world = World::new(&[]);
    let without = |file: &str, path: &str| loaded(&world, file, path, Value::Null).expect(path);
    assert_eq!(without(SYSTEM, "limits").max_message_bytes, 10_240);
    assert!(without(SYSTEM, "security.strict_envelope").strict_envelope);
    assert_eq!(without(SYSTEM, "timeouts.game_over_timeout_sec").game_over_limit, Duration::from_secs(5));
    assert_eq!(without(LEAGUE, "scheduling.cycles").rules.cycles, 1);
    assert_eq!(without(LEAGUE, "scheduling.round_announcement_lead_sec").lead, Duration::from_secs(60));
}

#[test]
fn attempts_wait_as_the_backoff_says() {
    let world = World::new(&[(SYSTEM, "/retry_policy/base_delay_sec", json!(2))]);
    for (backoff, expected) in [("exponential", [2, 4, 8]), ("fixed", [2, 2, 2])] {
        let config = loaded(&world, SYSTEM, "retry_policy.backoff_strategy", json!(backoff)).unwrap();
        assert_eq!([1, 2, 3].map(|failed| config.retry.delay(failed).as_secs()), expected);
    }
}

#[test]
fn tiebreakers_decide_in_their_order() {
    // A has two wins and lost to B, B one win and three draws: six points each.
    let game = |players: [&'static str; 2], winner: Option<usize>| {
        let winner = winner.map(|seat| players[seat]);
        let details = json!({"drawn_number": 4, "choices": {}});
        let result = MatchResult::read(&json!({"winner": winner, "score": {}, "details": details})).unwrap();
        (players, result)
    };
    let games = [
        game(["A", "X"], Some(0)),
        game(["A", "Y"], Some(0)),
        game(["A", "B"], Some(1)),
        game(["B", "X"], None),
        game(["B", "Y"], None),
        game(["Z", "B"], None),
    ];
    let played: Vec<_> =
        games.iter().map(|(players, result)| standings::Played { players: *players, result }).collect();
    let world = World::new(&[]);
    for (order, expected) in [
        (json!(["wins", "head_to_head"]), "A"),
        (json!(["head_to_head", "wins"]), "B"),
        (json!(["draws"]), "A"),
        (json!([]), "A"),
    ] {
        let rules = loaded(&world, LEAGUE, "scoring.tiebreakers", order.clone()).unwrap().rules;
        let players = ["B", "A", "X", "Y", "Z"].map(|id| (id, id));
        let table = standings::table(&players, &played, &rules.scoring, &rules.tiebreakers);
        assert_eq!((&*table[0].player_id, table[0].points), (expected, 6), "{order}");
    }
}

#[test]
fn a_league_goes_by_its_keys() {
    let world = World::new(&[
        (LEAGUE, "/scoring/win_points", json!(7)),
        (LEAGUE, "/scoring/draw_points", json!(4)),
        (LEAGUE, "/scoring/loss_points", json!(2)),
        (LEAGUE, "/scoring/technical_loss_points", json!(1)),
        (LEAGUE, "/scheduling/cycles", json!(2)),
        (AGENTS, "/league_manager/agent_id", json!("LM07")),
        (SYSTEM, "/network/base_host", json!("127.0.0.1")),
        (SYSTEM, "/security/token_length", json!(40)),
    ]);
    let scoring = Scoring { win: 7, draw: 4, loss: 2, technical_loss: 1 };
    assert_eq!(Config::load(&world.folder.join("config"), None).unwrap().rules.scoring, scoring);
    let mut league = world.start("league_manager", &["local", "--fresh", "--players", "3", "--referees", "1"]);
    assert!(league.wait().success());
    let table = world.table();
    for row in &table {
        let n = |key: &str| row[key].as_i64().unwrap();
        assert_eq!((n("played"), n("points")), (4, 7 * n("wins") + 4 * n("draws") + 2 * n("losses")), "{row}");
    }
    assert_eq!(table.len(), 3);
    let card = world.data("agents/P01.json");
    let secret = card["token"].as_str().unwrap().strip_prefix("tok-p01-").unwrap();
    assert_eq!(secret.len(), 40);
    assert!(card["endpoint"].as_str().unwrap().starts_with("http://127.0.0.1:"));
    let logs = world.logs();
    let mut sent =
        logs.iter().filter(|line| line["component"] == "league_manager" && line["event_type"] == "message_sent");
    assert!(sent.all(|line| line["message"]["sender"] == "league_manager:LM07"));
    let warned = |line: &&Value| line["message"].as_str().is_some_and(|words| words.contains("matches_per_round"));
    assert_eq!(logs.iter().filter(warned).count(), 1);
}

#[test]
fn a_manager_goes_by_its_keys() {
    let world = World::new(&[
        (SYSTEM, "/security/enable_auth_tokens", json!(false)),
        (SYSTEM, "/security/strict_envelope", json!(false)),
        (SYSTEM, "/limits/max_message_bytes", json!(1024)),
        (LEAGUE, "/participants/max_players", json!(2)),
        (AGENTS, "/players/3/active", json!(false)),
    ]);
    let manager = world.manager(&[]);
    let url = manager.url();
    let exactly = |bytes: usize| http("POST", &url, "", format!("{:<bytes$}", "{}").as_bytes()).0;
    assert_eq!((exactly(1024), exactly(1025)), (200, 413));
    let register = |sender: &str, endpoint: &str| {
        let reply = register_player(&url, sender, endpoint);
        (reply["status"].as_str().unwrap().to_string(), reply["player_id"].clone(), reply["reason"].to_string())
    };
    let inactive = register("player:P04", "http://127.0.0.1:8104/mcp");
    assert!(inactive.0 == "REJECTED" && inactive.2.contains("inactive"), "{inactive:?}");
    for id in ["P01", "P02"] {
        let endpoint = format!("http://localhost:81{}/mcp", &id[1..]);
        assert_eq!(register(&format!("player:{id}"), &endpoint).1, json!(id));
    }
    assert!(register("player:P03", "http://localhost:8103/mcp").2.contains("Maximum players reached"));
    // Neither a token nor a time: answered, with a warning.
    let body = json!({"league_id": "league_2025_even_odd", "query_type": "GET_STANDINGS"});
    let mut query = message("LEAGUE_QUERY", "player:P01", body);
    query.as_object_mut().unwrap().remove("timestamp");
    assert_eq!(call(&url, "league_query", query)["result"]["success"], json!(true));
    assert!(world.logs().iter().any(|line| line["level"] == "WARNING" && line["event_type"] == "envelope_mended"));
}
