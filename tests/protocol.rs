//! The wire: every example of the documents is read and written back, every fault is refused by code and path,
//! the schema says what the reader does, and what a real league sends passes the same reader.

mod support;

use league::{
    clock::Timestamp,
    endpoint::Endpoint,
    log,
    protocol::{self, CATALOGUE, Code, Entry, GetMatchState, Message, Nothing, Refusal, StartMatch, TOOLS},
    wire::Wire,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use support::{World, check_no_token, message, pointer};

/// An example of the documents: where it stands, and the message with what its envelope lacks.
fn examples() -> Vec<(String, Value)> {
    let all: Vec<Value> = serde_json::from_str(include_str!("examples.json")).unwrap();
    let filled = |example: Value| {
        let place = format!("{} line {}", example["source"].as_str().unwrap(), example["line"]);
        let shell = &example["json"];
        let inside = ["params", "result"].iter().find_map(|key| shell.get(key));
        let bare = inside.filter(|_| shell.get("jsonrpc").is_some()).unwrap_or(shell);
        let whole = message(example["message_type"].as_str().unwrap(), "player:P01", bare.clone());
        (place, whole)
    };
    all.into_iter().map(filled).collect()
}

fn read(whole: &Value) -> Result<Message, Refusal> {
    protocol::read(whole.as_object().unwrap(), |_| None).map(|(_, message)| message)
}

/// `E003 referee_meta.version`, or `ok`.
fn verdict<T>(read: Result<T, Refusal>) -> String {
    let field = |refusal: &Refusal| refusal.context["field"].as_str().unwrap().to_string();
    read.map_or_else(|refusal| format!("{} {}", refusal.code, field(&refusal)), |_| "ok".into())
}

/// The value with one field changed, or left out.
fn with(whole: &Value, path: &str, value: Option<Value>) -> Value {
    let (mut whole, pointer) = (whole.clone(), pointer(path));
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match (whole.pointer_mut(parent).unwrap_or_else(|| panic!("{path}")), value) {
        (Value::Object(object), None) => drop(object.remove(key).unwrap_or_else(|| panic!("{path}"))),
        (Value::Object(object), Some(value)) => drop(object.insert(key.into(), value)),
        (Value::Array(items), Some(value)) => items[key.parse::<usize>().unwrap()] = value,
        (other, _) => panic!("{path}: {other}"),
    }
    whole
}

#[test]
fn of_106_examples_103_are_read_and_written_back() {
    let examples = examples();
    let (mut same, mut refused) = (0, Vec::new());
    for (place, whole) in &examples {
        match protocol::read(whole.as_object().unwrap(), |_| None) {
            Err(refusal) => refused.push(format!("{place}: {}", verdict::<()>(Err(refusal)))),
            Ok((envelope, message)) => {
                let written = Value::Object(protocol::write(&envelope, &message));
                assert_eq!(normal(written), normal(whole.clone()), "{place}");
                same += 1;
            }
        }
    }
    assert_eq!((examples.len(), same), (106, 103), "{refused:#?}");
    let expected = ["002 line 61: E021 timestamp", "002 line 861: E003 match_id", "004 line 78: E003 message_type"];
    assert_eq!(refused, expected);
}

/// Dates with hyphens, and the reason where we write it: inside `game_result`.
fn normal(mut whole: Value) -> Value {
    let reason = whole.as_object_mut().unwrap().remove("reason").filter(|_| whole["message_type"] == "GAME_OVER");
    if let Some(reason) = reason {
        whole["game_result"]["reason"] = reason;
    }
    hyphens(&mut whole);
    whole
}

fn hyphens(value: &mut Value) {
    match value {
        Value::String(text) => *text = Timestamp::parse(text).map_or(text.clone(), |time| time.to_string()),
        Value::Array(items) => items.iter_mut().for_each(hyphens),
        Value::Object(object) => object.values_mut().for_each(hyphens),
        _ => {}
    }
}

/// A field of a sample: its path, its schema, and whether it must be there (an array's item is neither).
struct Place {
    path: String,
    schema: Value,
    required: Option<bool>,
}

/// Every place in a sample that its schema knows.
fn places(schema: &Value, sample: &Value, path: &str, found: &mut Vec<Place>) {
    let mut take = |path: String, schema: &Value, required, sample| {
        found.push(Place { path: path.clone(), schema: schema.clone(), required });
        places(schema, sample, &path, found);
    };
    let schema = schema.get("anyOf").map_or(schema, |either| &either[0]);
    let dot = if path.is_empty() { "" } else { "." };
    match sample {
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            let required = schema["required"].as_array().map(|names| names.contains(&json!(key)));
            let known = schema["properties"].get(key).or(schema.get("additionalProperties"));
            known.into_iter().for_each(|schema| take(format!("{path}{dot}{key}"), schema, required, value));
        }),
        Value::Array(items) if !items.is_empty() => take(format!("{path}[0]"), &schema["items"], None, &items[0]),
        _ => {}
    }
}

/// Whether the schema takes the value; as much of JSON schema as ours use.
fn legal(schema: &Value, value: &Value) -> bool {
    if let Some(either) = schema["anyOf"].as_array() {
        return either.iter().any(|schema| legal(schema, value));
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.contains(value);
    }
    let bound = |key: &str, open: f64| schema[key].as_f64().unwrap_or(open);
    let within = |n: f64| (bound("minimum", f64::NEG_INFINITY)..=bound("maximum", f64::INFINITY)).contains(&n);
    let is_time = || value.as_str().is_some_and(|text| Timestamp::parse(text).is_some());
    match schema["type"].as_str() {
        None => schema["const"] == *value,
        Some("string") => value.is_string() && (schema["format"] != "date-time" || is_time()),
        Some("integer") => (value.is_i64() || value.is_u64()) && within(value.as_f64().unwrap()),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.as_array().is_some_and(|items| items.iter().all(|item| legal(&schema["items"], item))),
        Some("object") => value.as_object().is_some_and(|object| {
            let required = schema["required"].as_array().into_iter().flatten();
            required.into_iter().all(|name| object.contains_key(name.as_str().unwrap()))
                && object.iter().all(|(key, value)| {
                    let known = schema["properties"].get(key).or(schema.get("additionalProperties"));
                    known.is_none_or(|schema| legal(schema, value))
                })
        }),
        other => panic!("{other:?}"),
    }
}

/// A value that the schema takes: with all that may be left out, or with nothing of it.
fn sample(schema: &Value, whole: bool) -> Value {
    let chosen = schema.get("const").or(schema.get("anyOf").map(|either| &either[0]));
    match schema["type"].as_str().unwrap_or_default() {
        "string" if schema["format"] == "date-time" => json!("2025-01-15T10:30:00Z"),
        "string" => schema["enum"].get(0).cloned().unwrap_or(json!("text")),
        "integer" | "number" => json!(1),
        "boolean" => json!(true),
        "array" => json!([sample(&schema["items"], whole)]),
        "object" => {
            let wanted = |key: &&String| whole || schema["required"].as_array().unwrap().contains(&json!(key));
            let named = schema["properties"].as_object().into_iter().flat_map(|known| known.iter());
            let named = named.filter(|(key, _)| wanted(key)).map(|(key, schema)| (key.clone(), sample(schema, whole)));
            let any = schema.get("additionalProperties").map(|schema| ("P01".to_string(), sample(schema, whole)));
            Value::Object(named.chain(any).collect())
        }
        _ if schema.get("const").is_some() => chosen.unwrap().clone(),
        _ => sample(chosen.unwrap(), whole),
    }
}

/// Of each kind one, and what lies just outside a kind's bounds.
fn any_values() -> [Value; 15] {
    let (small, large) = (i64::from(i32::MIN), i64::from(i32::MAX));
    let time = "2025-01-15T10:30:00+02:00";
    [
        json!(null),
        json!(true),
        json!(7),
        json!(-7),
        json!(small - 1),
        json!(large),
        json!(large + 1),
        json!(u64::MAX),
        json!(1.5),
        json!("x"),
        json!(time),
        json!([]),
        json!([7]),
        json!({}),
        json!({"x": 7}),
    ]
}

/// R7 and R10: the reader lets these through as they come, for a better refusal by whoever judges them.
const UNREAD: &[&str] = &["parity_choice", "query_type", "query_params"];

/// Leaves out every place of a valid sample, and puts any value there: the reader refuses what the schema
/// refuses, with the right code and the exact path, and takes all else. Returns how many rows there were.
fn agree(entry: &Entry, valid: &Value) -> usize {
    let read = |value: &Value| match entry.tool {
        _ if entry.message_type.is_some() => verdict(read(value)),
        "start_match" => verdict(StartMatch::read(value).map_err(Refusal::from)),
        "get_match_state" => verdict(GetMatchState::read(value).map_err(Refusal::from)),
        _ => verdict(Nothing::read(value).map_err(Refusal::from)),
    };
    assert_eq!(read(valid), "ok", "{valid}");
    let (mut found, mut rows) = (Vec::new(), 0);
    places(&entry.schema(), valid, "", &mut found);
    for Place { path, schema, required } in found.iter().filter(|it| !it.path.starts_with("query_params.")) {
        let name = |row: &dyn std::fmt::Display| format!("{} {path}: {row}", entry.message_type.unwrap_or(entry.tool));
        if let Some(required) = *required {
            let expected = if required { format!("E003 {path}") } else { "ok".into() };
            assert_eq!(read(&with(valid, path, None)), expected, "{}", name(&"left out"));
            rows += 1;
        }
        for value in any_values().into_iter().filter(|_| !UNREAD.contains(&path.as_str())) {
            let came = read(&with(valid, path, Some(value.clone())));
            rows += 1;
            if legal(schema, &value) || value.is_null() && *required == Some(false) {
                assert_eq!(came, "ok", "{}", name(&value));
                continue;
            }
            let code = match value.is_string() {
                true if path == "protocol" => "E018",
                true if schema["format"] == "date-time" => "E021",
                _ => "E003",
            };
            let deeper = came.strip_prefix(&format!("{code} {path}"));
            let exact = deeper.is_some_and(|rest| {
                rest.is_empty() || !(value.is_null() || value.is_string()) && rest.starts_with(['.', '['])
            });
            assert!(exact, "{}: {came}", name(&value));
        }
    }
    rows
}

#[test]
fn every_fault_in_an_example_is_refused_by_code_and_path() {
    let readable = examples().into_iter().map(|(_, whole)| whole).filter(|whole| read(whole).is_ok());
    let of_type = |whole: &Value| Entry::of_message(whole["message_type"].as_str().unwrap()).unwrap();
    let rows: usize = readable.map(|whole| agree(of_type(&whole), &whole)).sum();
    assert!(rows > 10_000, "{rows}");
}

#[test]
fn the_schema_takes_what_the_reader_takes() {
    for entry in CATALOGUE.iter().chain(TOOLS) {
        let schema = entry.schema();
        let samples = [true, false].map(|whole| sample(&schema, whole));
        assert!(samples.iter().all(|sample| legal(&schema, sample)), "{samples:?}");
        let rows: usize = samples.iter().map(|sample| agree(entry, sample)).sum();
        assert!(rows > 0 || entry.schema()["properties"] == json!({}), "{}", entry.tool);
    }
}

/// The rows that matter most, by hand: message type, path, what stands there (nothing: left out), verdict.
#[test]
fn faults_by_hand() {
    let valid: BTreeMap<String, Value> = examples()
        .into_iter()
        .filter(|(_, whole)| read(whole).is_ok())
        .map(|(_, whole)| (whole["message_type"].as_str().unwrap().to_string(), whole))
        .collect();
    assert_eq!(valid.len(), CATALOGUE.len());
    let rows = [
        ("GAME_INVITATION", "protocol", None, "E003 protocol"),
        ("GAME_INVITATION", "protocol", Some(json!("league.v1")), "E018 protocol"),
        ("GAME_INVITATION", "message_type", None, "E003 message_type"),
        ("GAME_INVITATION", "message_type", Some(json!("GAME_INVITE")), "E003 message_type"),
        ("GAME_INVITATION", "sender", Some(json!(null)), "E003 sender"),
        ("GAME_INVITATION", "timestamp", Some(json!(1736937000)), "E003 timestamp"),
        ("GAME_INVITATION", "timestamp", Some(json!("yesterday")), "E021 timestamp"),
        ("GAME_INVITATION", "conversation_id", None, "E003 conversation_id"),
        ("GAME_INVITATION", "auth_token", Some(json!(7)), "E003 auth_token"),
        ("GAME_INVITATION", "round_id", Some(json!("1")), "E003 round_id"),
        ("GAME_INVITATION", "role_in_match", Some(json!("player_a")), "E003 role_in_match"),
        ("GAME_INVITATION", "surplus", Some(json!(1)), "ok"),
        ("REFEREE_REGISTER_REQUEST", "referee_meta", None, "E003 referee_meta"),
        ("REFEREE_REGISTER_REQUEST", "referee_meta.contact_endpoint", None, "E003 referee_meta.contact_endpoint"),
        ("REFEREE_REGISTER_REQUEST", "referee_meta.max_concurrent_matches", Some(json!(-1)), "ok"), // rejected later
        ("LEAGUE_REGISTER_REQUEST", "player_meta.game_types", Some(json!("even_odd")), "E003 player_meta.game_types"),
        ("LEAGUE_REGISTER_REQUEST", "player_meta.game_types[0]", Some(json!(1)), "E003 player_meta.game_types[0]"),
        ("LEAGUE_REGISTER_RESPONSE", "reason", None, "ok"),
        ("ROUND_ANNOUNCEMENT", "matches[0].match_id", None, "E003 matches[0].match_id"),
        ("ROUND_ANNOUNCEMENT", "matches[1].player_B_id", Some(json!(2)), "E003 matches[1].player_B_id"),
        ("GAME_JOIN_ACK", "accept", Some(json!("true")), "E003 accept"),
        ("GAME_JOIN_ACK", "arrival_timestamp", Some(json!("10:30")), "E021 arrival_timestamp"),
        ("CHOOSE_PARITY_CALL", "deadline", None, "E003 deadline"),
        ("CHOOSE_PARITY_CALL", "deadline", Some(json!("2025-01-15T10:30:30+02:00")), "E021 deadline"),
        ("CHOOSE_PARITY_CALL", "context", None, "ok"),
        ("CHOOSE_PARITY_RESPONSE", "parity_choice", None, "E003 parity_choice"),
        ("CHOOSE_PARITY_RESPONSE", "parity_choice", Some(json!(null)), "ok"),
        ("CHOOSE_PARITY_RESPONSE", "parity_choice", Some(json!("Even")), "ok"),
        ("GAME_OVER", "game_result.winner_player_id", None, "E003 game_result.winner_player_id"),
        ("GAME_OVER", "game_result.winner_player_id", Some(json!(null)), "ok"),
        ("GAME_OVER", "game_result.choices.P01", Some(json!("EVEN")), "E003 game_result.choices.P01"),
        ("GAME_OVER", "game_result.choices.P01", Some(json!(null)), "ok"),
        ("MATCH_RESULT_REPORT", "result.winner", None, "E003 result.winner"),
        ("MATCH_RESULT_REPORT", "result.winner", Some(json!(null)), "ok"),
        ("MATCH_RESULT_REPORT", "result.score.P01", Some(json!("3")), "E003 result.score.P01"),
        ("MATCH_RESULT_REPORT", "result.details.drawn_number", None, "E003 result.details.drawn_number"),
        ("LEAGUE_STANDINGS_UPDATE", "standings[1].rank", Some(json!(null)), "E003 standings[1].rank"),
        ("ROUND_COMPLETED", "next_round_id", None, "ok"),
        ("LEAGUE_COMPLETED", "champion.points", None, "E003 champion.points"),
        ("LEAGUE_QUERY", "query_type", None, "E003 query_type"),
        ("LEAGUE_QUERY", "query_type", Some(json!(null)), "ok"),
        ("LEAGUE_QUERY", "query_params", None, "ok"),
    ];
    for (message_type, path, value, expected) in rows {
        let row = format!("{message_type} {path} {value:?}");
        assert_eq!(verdict(read(&with(&valid[message_type], path, value))), expected, "{row}");
    }
    let wrong = read(&with(&valid["GAME_JOIN_ACK"], "accept", Some(json!("true")))).unwrap_err();
    assert_eq!(wrong.explain(), "accept: got \"true\", expected true or false");
}

#[test]
fn times_are_utc_or_refused() {
    let at = |text: &str| Timestamp::parse(text).map(|time| time.to_string());
    let same = Some("2025-01-15T10:30:00Z".to_string());
    for text in [
        "2025-01-15T10:30:00Z",
        "2025-01-15T10:30:00+00:00",
        "2025-01-15T10:30:00.5Z",
        "2025-01-15T10:30:00.123456Z",
        "2025-01-15T10:30:00.123456789+00:00",
        "20250115T10:30:00Z",
        "20250115T10:30:00.5+00:00",
    ] {
        assert_eq!(at(text), same, "{text}");
    }
    for text in [
        "",
        "now",
        "Z",
        "2025-01-15",
        "2025-01-15T10:30:00",
        "2025-01-15T10:30Z",
        "2025-01-15T10:30:00+02:00",
        "2025-01-15T10:30:00-05:00",
        "2025-01-15T10:30:00+00",
        "2025-01-15T10:30:00z",
        "2025-01-15t10:30:00Z",
        "2025-01-15 10:30:00Z",
        " 2025-01-15T10:30:00Z",
        "2025-01-15T10:30:00Z ",
        "2025-01-15T10:30:00ZZ",
        "2025-01-15T10:30:00.Z",
        "2025-0115T10:30:00Z",
        "2025-1-15T10:30:00Z",
        "2025-02-30T10:30:00Z",
        "2025-13-01T10:30:00Z",
        "2025-01-15T24:00:00Z",
        "2025-01-15T10:60:00Z",
        "+2025-01-15T10:30:00Z",
        "-2025-01-15T10:30:00Z",
        "1736937000",
    ] {
        assert_eq!(at(text), None, "{text}");
    }
}

#[test]
fn without_a_strict_envelope_three_faults_are_mended() {
    let valid = message(
        "GAME_JOIN_ACK",
        "player:P01",
        json!({"match_id": "R1M1", "player_id": "P01", "arrival_timestamp": support::now(), "accept": true}),
    );
    let rows = [
        ("sender", None, "ok"),
        ("timestamp", None, "ok"),
        ("timestamp", Some(json!("2025-01-15T10:30:00+02:00")), "ok"),
        ("conversation_id", None, "ok"),
        ("protocol", None, "E003 protocol"),
        ("protocol", Some(json!("league.v1")), "E018 protocol"),
        ("message_type", None, "E003 message_type"),
        ("match_id", None, "E003 match_id"),
        ("arrival_timestamp", Some(json!("2025-01-15T10:30:00+02:00")), "E021 arrival_timestamp"),
    ];
    for (path, value, expected) in rows {
        let packet = with(&valid, path, value.clone());
        let mended = protocol::read(packet.as_object().unwrap(), |_| Some(json!("2025-01-15T10:30:00Z")));
        assert_eq!(verdict(mended), expected, "{path} {value:?}");
    }
}

#[test]
fn these_are_the_error_codes() {
    let all: Vec<(&str, &str)> = Code::ALL.iter().map(|code| (code.code(), code.name())).collect();
    let expected = [
        ("E001", "TIMEOUT_ERROR"),
        ("E003", "MISSING_REQUIRED_FIELD"),
        ("E004", "INVALID_PARITY_CHOICE"),
        ("E005", "PLAYER_NOT_REGISTERED"),
        ("E009", "CONNECTION_ERROR"),
        ("E011", "AUTH_TOKEN_MISSING"),
        ("E012", "AUTH_TOKEN_INVALID"),
        ("E013", "REFEREE_NOT_REGISTERED"),
        ("E015", "MATCH_ID_MISMATCH"),
        ("E018", "PROTOCOL_VERSION_MISMATCH"),
        ("E019", "LATE_REGISTRATION"),
        ("E021", "INVALID_TIMESTAMP"),
    ];
    assert_eq!(all, expected);
}

#[test]
fn tokens_are_masked_by_their_looks() {
    let secret = "0123456789abcdef0123456789abcdef";
    for (text, expected) in [
        (format!("tok-p01-{secret}"), "tok-p01-***"),
        (format!("got \"tok-ref01-{secret}\", expected"), "got \"tok-ref01-***\", expected"),
        (format!("tok-p01-{secret},tok-p02-{secret}"), "tok-p01-***,tok-p02-***"),
        (format!("xtok-operator-{secret}x!"), "xtok-operator-***!"),
        (format!("TOK tok-tok-p01-{secret}"), "TOK tok-tok-p01-***"),
        (format!("cut off: tok-p01-{}…", &secret[..8]), "cut off: tok-p01-***…"),
        ("tok-{agent_id}-{hash}, tok-p01-***, tok-, token".into(), "tok-{agent_id}-{hash}, tok-p01-***, tok-, token"),
    ] {
        assert_eq!(log::masked(&text), expected);
    }
}

#[test]
fn tokens_are_masked_by_their_key() {
    let ours = "tok-p01-0123456789abcdef0123456789abcdef";
    for (value, expected) in [
        (json!({"auth_token": ours}), json!({"auth_token": "tok-p01-***"})),
        (json!({"auth_token": "hunter2"}), json!({"auth_token": "***"})),
        (json!({"context": {"provided_token": "x"}}), json!({"context": {"provided_token": "***"}})),
        (json!({"matches": [{"player_A_token": ours}]}), json!({"matches": [{"player_A_token": "tok-p01-***"}]})),
        (json!({"auth_token": [ours]}), json!({"auth_token": ["tok-p01-***"]})),
        (json!({"auth_token": null, "sender": ours}), json!({"auth_token": null, "sender": "tok-p01-***"})),
        (json!({"auth_token": "", "token_length": 32}), json!({"auth_token": "", "token_length": 32})),
        (json!([7, true, "tok"]), json!([7, true, "tok"])),
    ] {
        let mut masked = value;
        log::mask(&mut masked);
        assert_eq!(masked, expected);
    }
}

#[test]
fn tokens_are_masked_in_every_field_of_a_line() {
    let (world, ours) = (World::new(&[]), Some("tok-p01-0123456789abcdef0123456789abcdef"));
    let log = log::Log::new(&world.folder, "P01");
    log.open("P01", "P01.log.jsonl");
    log.write("event", log::Line { peer: ours, conversation_id: ours, match_id: ours, ..Default::default() });
    let lines = support::json_lines(&world.folder.join("P01.log.jsonl"));
    for key in ["peer", "conversation_id", "match_id"] {
        assert_eq!(lines[0][key], "tok-p01-***");
    }
}

#[test]
fn endpoints_are_compared_normalised() {
    for (url, expected) in [
        ("http://localhost:8101/mcp", "http://127.0.0.1:8101/mcp"),
        ("HTTP://LocalHost:8101/mcp", "http://127.0.0.1:8101/mcp"),
        ("http://Example.org/mcp", "http://example.org:80/mcp"),
        ("http://example.org", "http://example.org:80/"),
        ("http://example.org:80/", "http://example.org:80/"),
        ("http://[::1]/MCP", "http://[::1]:80/MCP"),
        ("http://[::1]:8101/mcp?a=b", "http://[::1]:8101/mcp?a=b"),
        ("http://10.0.0.7:08101/mcp", "http://10.0.0.7:8101/mcp"),
    ] {
        assert_eq!(Endpoint::parse(url).map(|endpoint| endpoint.to_string()).as_deref(), Ok(expected), "{url}");
        assert!(Endpoint::same(url, expected), "{url}");
    }
    for url in [
        "",
        "localhost:8101/mcp",
        "/mcp",
        "ftp://localhost/mcp",
        "http://",
        "http:///mcp",
        "http://localhost:0/mcp",
        "http://localhost:65536/mcp",
        "http://localhost:/mcp",
        "http://user@localhost/mcp",
        "http://local host/mcp",
        "http://localhost/m cp",
        "http://localhost/mcp\n",
        "http://localhost/#mcp",
        "http://[::1/mcp",
        "http://[localhost]/mcp",
    ] {
        assert!(Endpoint::parse(url).is_err(), "{url}");
        assert!(!Endpoint::same(url, url), "{url}");
    }
    let https = Endpoint::parse("https://localhost/mcp");
    assert_eq!(https.is_ok(), cfg!(feature = "https"));
    assert!(!Endpoint::same("http://localhost:8101/mcp", "http://localhost:8102/mcp"));
}

/// The lines of one conversation: who, what happened, which message.
type Lines = BTreeMap<(String, String, String), usize>;

#[test]
fn a_real_league_sends_nothing_else() {
    let world = World::new(&[]);
    let mut league = world.start("league_manager", &["local", "--fresh"]);
    assert!(league.wait().success());
    let mut types = BTreeSet::new();
    let mut conversations = BTreeMap::<String, Lines>::new();
    for line in world.logs() {
        let Some(name) = line["message"]["message_type"].as_str() else { continue };
        assert_eq!(verdict(read(&line["message"])), "ok", "{line}");
        let word = |key: &str| line[key].as_str().unwrap().to_string();
        let lines = conversations.entry(word("conversation_id")).or_default();
        *lines.entry((word("component"), word("event_type"), name.to_string())).or_default() += 1;
        types.insert(name.to_string());
    }
    let only_faults_and_questions =
        ["GAME_ERROR", "LEAGUE_ERROR", "LEAGUE_QUERY", "LEAGUE_QUERY_RESPONSE", "LEAGUE_STATUS", "START_LEAGUE"];
    let all = CATALOGUE.iter().map(|entry| entry.message_type.unwrap().to_string());
    assert_eq!(types, all.filter(|name| !only_faults_and_questions.contains(&name.as_str())).collect());
    check_matches(&conversations);
    let shown = [league.output(), league.stderr.lock().unwrap().clone(), format!("{:?}", world.logs())];
    shown.iter().for_each(|text| check_no_token(text));
    assert!(shown[2].contains("tok-p01-***"));
}

/// Whoever greps a match's conversation sees it whole, from both sides.
fn check_matches(conversations: &BTreeMap<String, Lines>) {
    let matches: Vec<&Lines> =
        conversations.iter().filter(|(id, _)| id.starts_with("conv-r")).map(|(_, lines)| lines).collect();
    let started = |lines: &&&Lines| lines.keys().any(|(_, _, name)| name == "GAME_INVITATION");
    let matches: Vec<&&Lines> = matches.iter().filter(started).collect();
    assert_eq!(matches.len(), 6);
    for lines in matches {
        let who = |prefix: &str| -> Vec<&str> {
            let named = lines.keys().map(|(who, _, _)| who.as_str()).filter(|who| who.starts_with(prefix));
            named.collect::<BTreeSet<_>>().into_iter().collect()
        };
        let (referees, players) = (who("REF"), who("P"));
        let (&[referee], &[one, other]) = (&referees[..], &players[..]) else { panic!("{lines:?}") };
        let mut expected = Lines::new();
        let mut row = |who: &str, event: &str, name: &str, times| {
            expected.insert((who.into(), event.into(), name.into()), times);
        };
        for (asked, answered) in
            [("GAME_INVITATION", "GAME_JOIN_ACK"), ("CHOOSE_PARITY_CALL", "CHOOSE_PARITY_RESPONSE")]
        {
            row(referee, "message_sent", asked, 2);
            row(referee, "reply_received", answered, 2);
            for player in [one, other] {
                row(player, "message_received", asked, 1);
                row(player, "message_sent", answered, 1);
            }
        }
        row(referee, "message_sent", "GAME_OVER", 2);
        row(one, "message_received", "GAME_OVER", 1);
        row(other, "message_received", "GAME_OVER", 1);
        row(referee, "message_sent", "MATCH_RESULT_REPORT", 1);
        row("league_manager", "message_received", "MATCH_RESULT_REPORT", 1);
        row("league_manager", "message_sent", "MATCH_RESULT_ACK", 1);
        row(referee, "reply_received", "MATCH_RESULT_ACK", 1);
        assert_eq!(*lines, &expected);
    }
}
