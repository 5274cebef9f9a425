//! Configuration and command line: each fault ends the program with 2 and one line, which names file
//! and key, the value and the legal values. Each key takes effect.

use super::support::*;
use league::program::config::Config;
use std::{fs, net::TcpListener, process::Command};

const PROGRAMS: [&str; 3] = ["league_manager", "referee", "player"];

/// Loads the files with one value changed; a null removes the key. An error must name the file.
fn loaded(test: &TestLeague, file: &str, path: &str, value: Value) -> Result<Config, String> {
    let changed = test.config(file);
    let name = changed.file_name().unwrap().to_string_lossy();
    let before = fs::read(&changed).unwrap();
    test.edit(file, path, value);
    let loaded = Config::load(&test.folder.join("config"), None);
    fs::write(&changed, before).unwrap();
    loaded.inspect_err(|line| check_line(line, &[&name]))
}

/// Checks that a text is one line with all these words.
fn check_line(line: &str, words: &[&str]) {
    assert!(!line.trim_end().contains('\n'), "{line:?}");
    words.iter().for_each(|word| check_contains(line, word));
}

/// Adds the path of every key in a value, and of every element of a list.
pub fn add_paths(value: &Value, path: &str, all: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(object) => {
            let keys = object.iter();
            keys.map(|(key, value)| (format!("{path}.{key}"), value))
                .collect()
        }
        Value::Array(list) => {
            let elements = list.iter().enumerate();
            elements
                .map(|(n, value)| (format!("{path}[{n}]"), value))
                .collect()
        }
        _ => Vec::new(),
    };
    for (path, value) in inner {
        all.push(path.trim_start_matches('.').into());
        add_paths(value, &path, all);
    }
}

#[test]
fn missing_wrong_and_unknown_keys_are_refused() {
    let test = TestLeague::new("");
    let (mut optional, mut count) = (Vec::new(), 0);
    for file in ["system", "agents", "league", "referee", "player"] {
        let whole: Value = json_of(&fs::read_to_string(test.config(file)).unwrap());
        let refused = |path: &str, value: Value, words: &str| {
            let line = loaded(&test, file, path, value).expect_err(path);
            check_line(&line, &[words, "line ", "column "]);
        };
        refused("colour", json!(1), "unknown field `colour`, expected ");
        let mut paths = Vec::new();
        add_paths(&whole, "", &mut paths);
        for path in paths {
            let value = whole.pointer(&pointer(&path)).unwrap();
            let other = [json!(true), json!("true")][usize::from(value.is_boolean())].take();
            refused(&path, other, "expected ");
            count += 1;
            if value.is_object() {
                let unknown = format!("{path}.colour");
                refused(&unknown, json!("red"), "unknown field `colour`, expected ");
            }
            if path.ends_with(']') {
                continue;
            }
            match loaded(&test, file, &path, Value::Null) {
                Ok(_) => optional.push(path),
                Err(line) => check_line(&line, &[path.rsplit('.').next().unwrap()]),
            }
        }
    }
    let expected = "limits timeouts.game_over_timeout_sec \
        players[0].active players[0].game_types players[1].active players[1].game_types \
        players[2].active players[2].game_types players[3].active players[3].game_types \
        referees[0].active referees[0].game_types referees[0].max_concurrent_matches \
        referees[1].active referees[1].game_types referees[1].max_concurrent_matches \
        scheduling.cycles scheduling.round_announcement_lead_sec \
        game_types max_concurrent_matches game_types";
    assert_eq!(optional.join(" "), expected);
    assert!(count > 80, "{count} wrong values");
}

/// The limits that follow from a configuration: of the games, of calls, of tokens, of matches with one
/// move and with nine, of reports, which a referee waits for at the end, and of messages.
fn limits(config: &Config) -> String {
    let (times, retries) = (&config.system.timeouts, &config.system.retry_policy);
    let [choice, ping] = [times.move_timeout_sec.0, times.ping_interval_sec.0];
    let [over, reply] = [config.game_over_limit(), config.generic_limit()];
    let [one, nine] = [1, 9].map(|moves| config.match_limit(moves));
    format!(
        "choice {choice:?}, over {over:?}, reply {reply:?}, ping {ping:?}, delay {:?}, token {:?}, \
         match {one:?}, nine moves {nine:?}, report {:?}, {} bytes",
        retries.base_delay_sec.0,
        config.token_lifetime(),
        config.report_limit(),
        config.max_message_bytes(),
    )
}

/// File, key, value (null: none), and words of the limits; or, if the value is illegal though its
/// type is right, of the line.
const VALUES: &str = r#"
    system | timeouts.move_timeout_sec | 0.25 | choice 250ms, over 5s
    system | timeouts.game_over_timeout_sec | 0.25 | over 250ms, reply 10s
    system | timeouts.generic_response_timeout_sec | 0.25 | reply 250ms, ping 60s
    system | timeouts.ping_interval_sec | 0.25 | ping 250ms, delay 100ms
    system | retry_policy.base_delay_sec | 0.25 | delay 250ms, token 86400s
    system | security.token_ttl_hours | 0.25 | token 900s
    system | retry_policy.base_delay_sec | 2 | match 158s, nine moves 926s, report 41s
    system | timeouts.game_over_timeout_sec | null | over 5s
    system | timeouts.ping_interval_sec | null | ping 60s
    system | limits.max_message_bytes | 1024 | 1024 bytes
    system | limits | null | 10240 bytes
    system | network.default_player_port_range | [1, 1] | choice 30s
    system | protocol_version | "league.v3" | protocol_version: got league.v3, expected league.v2
    system | default_league_id | "../x" | default_league_id: got ../x, expected letters, digits, _ and -
    system | network.default_referee_port_range | [8001] | an array of length 2
    system | network.default_referee_port_range | [8001, 65536] | invalid value: integer `65536`, expected u16
    system | security.token_length | 31 | security.token_length: got 31, expected 32 to 256
    system | security.token_length | 257 | security.token_length: got 257, expected 32 to 256
    system | security.token_ttl_hours | 0 | security.token_ttl_hours: got 0, expected more than 0
    system | security.token_ttl_hours | 87601 | at most 87600 hours
    system | timeouts.move_timeout_sec | 0 | got 0, expected more than 0 seconds
    system | timeouts.game_join_ack_timeout_sec | -1.5 | got -1.5, expected more than 0 seconds
    system | timeouts.generic_response_timeout_sec | "10" | invalid type: string "10", expected f64
    system | timeouts.register_player_timeout_sec | 1e300 | at most 86400
    system | retry_policy.max_retries | 2.5 | expected u32
    system | retry_policy.max_retries | 0 | retry_policy.max_retries: got 0, expected 1 to 100
    system | retry_policy.max_retries | 101 | retry_policy.max_retries: got 101, expected 1 to 100
    system | retry_policy.base_delay_sec | -2 | got -2, expected more than 0 seconds
    system | retry_policy.backoff_strategy | "odd" | unknown variant `odd`, expected `exponential` or `fixed`
    system | limits.max_message_bytes | 1023 | limits.max_message_bytes: got 1023, expected 1024 to 1048576
    system | limits.max_message_bytes | 1048577 | got 1048577, expected 1024 to 1048576
    agents | league_manager.endpoint | "localhost:8000" | league_manager.endpoint: got localhost:8000, expected an absolute URL
    agents | league_manager.agent_id | "a:b" | league_manager.agent_id: got a:b, expected letters, digits, _ and -
    agents | referees[0].referee_id | "REF1" | referee_id: got REF1, expected REF01, REF02
    agents | players[0].player_id | "alpha" | player_id: got alpha, expected P01, P02
    agents | players[1].default_endpoint | "ftp://localhost/mcp" | P02: endpoint (default_endpoint): got ftp://localhost/mcp, expected an absolute URL
    league | league_id | "league_2026" | league_id: got league_2026, expected league_2025_even_odd
    league | game_type | "chess" | game_type: got chess, expected a game that this program can play
    league | status | "odd" | status: got odd, expected ACTIVE
    league | scheduling.format | "odd" | scheduling.format: got odd, expected round_robin
    league | scheduling.cycles | 0 | scheduling.cycles: got 0, expected 1 to 400
    league | scheduling.cycles | 401 | scheduling.cycles: got 401, expected 1 to 400
    league | scheduling.round_announcement_lead_sec | -1 | expected u32
    league | scheduling.round_announcement_lead_sec | 86401 | got 86401, expected 0 to 86400
    league | participants.min_players | 1 | participants.min_players: got 1, expected 2 to 200
    league | participants.max_players | 1 | participants.max_players: got 1, expected 2 to 200
    league | participants | {"min_players": 5, "max_players": 4} | participants.max_players: got 4, expected 5 to 200
    league | participants.max_players | 201 | participants.max_players: got 201, expected 2 to 200
    league | scoring.tiebreakers | ["odd"] | unknown variant `odd`, expected one of
    league | scoring.win_points | 1 | scoring: got [1,1,0,0], expected win > draw > loss >= technical loss
    league | scoring.draw_points | 0 | scoring: got [3,0,0,0], expected win > draw > loss >= technical loss
    league | scoring.technical_loss_points | 1 | expected win > draw > loss >= technical loss
    league | scoring.win_points | 1001 | each within 1000
    league | scoring.technical_loss_points | -1001 | each within 1000"#;

#[test]
fn values_take_effect_or_are_refused() {
    let test = TestLeague::new("");
    for [file, path, value, words] in rows(VALUES) {
        let loaded = loaded(&test, file, path, json_of(value));
        check_line(
            &loaded.map_or_else(|line| line, |config| limits(&config)),
            &[words],
        );
    }
}

/// Checks that a command ends by itself with 2 and one line with these words.
fn check_refused(mut command: Command, words: &[&str]) {
    let mut agent = TestProcess::new(&mut command);
    assert_eq!(agent.wait().code(), Some(2), "{command:?}");
    check_line(&agent.errors(), words);
    assert_eq!(agent.output(), "");
}

#[test]
fn faulty_file_ends_the_program_with_one_line() {
    let files = ["system", "agents", "league", "referee", "player"];
    for (program, file) in PROGRAMS.into_iter().cycle().zip(files) {
        let test = TestLeague::new(&format!("{file} colour=1"));
        let path = test.config(file);
        let file = &*path.to_string_lossy();
        let refused = |words: &[&str]| check_refused(test.command(program, "--port 0"), words);
        refused(&[file, "unknown field `colour`", "expected "]);
        fs::write(&path, "{not JSON").unwrap();
        refused(&[file, "line 1 column 2"]);
        fs::write(&path, [0xff, 0xfe]).unwrap();
        refused(&[file, "save it as UTF-8"]);
        fs::remove_file(&path).unwrap();
        refused(&[file, "(os error 2)", "--config DIR"]);
    }
}

/// Program (`all`: each), arguments, and words of the line.
const WRONG_USE: &str = "
    all | --colour red | --colour --help
    all | red | red --help
    all | --port | --port needs a value
    all | --port many | --port many
    all | --port 0099999 | --port 99999
    all | --port 65536 | --port 65536
    all | --port 0 --host 0.0.0.0 | 0.0.0.0 --contact-endpoint
    all | --host 203.0.113.9 | 203.0.113.9 --host is an address of this machine
    all | --port 0 --contact-endpoint here | --contact-endpoint here
    all | --port 0 --league-id chess | chess.json (os error 2)
    all | --port 0 --league-id ../x | --league-id letters, digits
    league_manager | --port 0 --seed x | --seed x
    all | --port TAKEN | TAKEN --port
    all | --prot 0 | did you mean --port?
    all | --data-dir x | --data-dir --help lists all
    league | strat | did you mean start?
    player | --port TAKEN --seed x | --seed x
    league | play wild --port TAKEN | wild contrary
    player | --port TAKEN --display-nam x | did you mean --display-name?
    player | --port TAKEN --player-id a:b | --player-id letters, digits
    referee | --port TAKEN --max-concurrent-matches 11 | --max-concurrent-matches 1 to 10
    referee | --port TAKEN --seed x | --seed x
    league | local --fresh --port TAKEN | TAKEN --port
    league | local --fresh | TAKEN --port
    league_manager | --port 0 --players 1 | --players 2 to 100
    league_manager | --port 0 --players two | --players two
    league_manager | --port 0 --players 2 --referees 0 | --referees 1 to 100
    league_manager | --port 0 --lead-sec -1 | --lead-sec -1
    league_manager | --port 0 --cycles 101 | --cycles
    league_manager | --port 0 --stay | --stay --help
    player | --strategy even | --strategy --help
    league | local --cycles 401 | --cycles 1 to 400
    league | play | NAME --help
    league | trace R1M1 R1M2 | R1M2 MATCH
    league | status now | now [OPTIONS]
    player | --port 0 --manager here | --manager http://
    referee | --port 0 --max-concurrent-matches x | --max-concurrent-matches x";

#[test]
fn wrong_options_end_the_program_with_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let test = TestLeague::new(&format!(
        "system network.default_league_manager_port={port}"
    ));
    let text = WRONG_USE.replace("TAKEN", &port.to_string());
    for [wanted, arguments, words] in rows(&text) {
        let words: Vec<&str> = words.split(' ').collect();
        let programs = match wanted {
            "all" => &PROGRAMS[..],
            _ => &[wanted],
        };
        for program in programs {
            check_refused(test.command(program, arguments), &words);
        }
    }
}

#[test]
fn version_is_printed() {
    for program in PROGRAMS {
        let mut agent = TestProcess::new(&mut TestLeague::new("").command(program, "--version"));
        agent.wait_for_success();
        let version = format!("{program} {}", env!("CARGO_PKG_VERSION"));
        assert_eq!(agent.output(), version);
    }
}

#[test]
fn config_golden() {
    story::run("config");
}
