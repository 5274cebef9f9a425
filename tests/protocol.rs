//! The wire: every example of the documents is read and written back, every fault is refused by code and path,
//! the schema says what the reader does, and what a real league sends passes the same reader.

mod support;

use league::net::client::Client;
use league::net::log::{self, Body};
use league::program::terminal::shown;
use league::protocol;
use league::protocol::{CATALOGUE, Code, Entry, Refusal, StartMatch, Understood};
use league::wire::{Endpoint, Timestamp, Wire, cut};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use support::{World, check_no_token, message, pointer};

/// An example of the documents: where it stands, and the message with what its envelope lacks.
fn examples() -> Vec<(String, Value)> {
    let all: Vec<Value> = serde_json::from_str(include_str!("examples.json")).unwrap();
    let filled = |example: Value| {
        let place = format!(
            "{} line {}",
            example["source"].as_str().unwrap(),
            example["line"]
        );
        let shell = &example["json"];
        let inside = ["params", "result"].iter().find_map(|key| shell.get(key));
        let bare = inside
            .filter(|_| shell.get("jsonrpc").is_some())
            .unwrap_or(shell);
        let whole = message(
            example["message_type"].as_str().unwrap(),
            "player:P01",
            bare.clone(),
        );
        (place, whole)
    };
    all.into_iter().map(filled).collect()
}

fn read(whole: &Value) -> Result<Understood, Refusal> {
    protocol::read(whole)
}

/// `E003 referee_meta.version`, or `ok`.
fn verdict<T>(read: Result<T, Refusal>) -> String {
    let field = |refusal: &Refusal| refusal.context["field"].as_str().unwrap().to_string();
    read.map_or_else(
        |refusal| format!("{} {}", refusal.code, field(&refusal)),
        |_| "ok".into(),
    )
}

/// The value with one field changed, or left out.
fn with(whole: &Value, path: &str, value: Option<Value>) -> Value {
    let (mut whole, pointer) = (whole.clone(), pointer(path));
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match (
        whole
            .pointer_mut(parent)
            .unwrap_or_else(|| panic!("{path}")),
        value,
    ) {
        (Value::Object(object), None) => {
            drop(object.remove(key).unwrap_or_else(|| panic!("{path}")))
        }
        (Value::Object(object), Some(value)) => drop(object.insert(key.into(), value)),
        (Value::Array(items), Some(value)) => items[key.parse::<usize>().unwrap()] = value,
        (other, _) => panic!("{path}: {other}"),
    }
    whole
}

/// Reads a message and writes it again: the same, or the refusal.
fn again(whole: &Value) -> Result<Value, Refusal> {
    read(whole).map(|it| protocol::write(&it.envelope, &it.message))
}

#[test]
fn of_106_examples_103_are_read_and_written_back() {
    let examples = examples();
    let mut refused = Vec::new();
    for (place, whole) in &examples {
        match again(whole) {
            Err(refusal) => refused.push(format!("{place}: {}", verdict::<()>(Err(refusal)))),
            Ok(written) => assert_eq!(normal(written), normal(whole.clone()), "{place}"),
        }
    }
    assert_eq!(examples.len(), 106);
    let expected = [
        "002 line 61: E021 timestamp",
        "002 line 861: E003 match_id, affected_player, action_required",
        "004 line 78: E003 message_type",
    ];
    assert_eq!(refused, expected);
}

#[test]
fn the_page_says_what_the_code_does() {
    let page = include_str!("../src/protocol.md");
    let blocks = page
        .split("```json\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0);
    let mut types = BTreeSet::new();
    for block in blocks {
        let block: Value =
            serde_json::from_str(block).unwrap_or_else(|error| panic!("{error}: {block}"));
        let inside = ["params", "result"].iter().find_map(|key| block.get(key));
        let whole = inside
            .filter(|_| block["jsonrpc"] == "2.0")
            .unwrap_or(&block);
        if let Some(name) = whole["message_type"].as_str() {
            types.insert(name.to_string());
            assert_eq!(
                again(whole).map(normal),
                Ok(normal(whole.clone())),
                "{whole}"
            );
            let entry = Entry::of_message(name).unwrap();
            assert!(
                block["method"].is_null() || block["method"] == entry.tool,
                "{block}"
            );
        }
    }
    for entry in CATALOGUE {
        let name = entry.message_type;
        assert!(types.contains(name), "no example of {name}");
        let row = format!("| {name} | `{}` |", entry.tool);
        assert!(
            entry.receivers.is_empty() || page.contains(&row),
            "no row {row}"
        );
    }
    for row in Code::ALL
        .iter()
        .map(|code| format!("| {code} | {} | ", code.name()))
    {
        assert!(page.contains(&row), "no row {row}");
    }
}

/// Dates with hyphens, and the reason where we write it: inside `game_result`.
fn normal(mut whole: Value) -> Value {
    let reason = whole
        .as_object_mut()
        .unwrap()
        .remove("reason")
        .filter(|_| whole["message_type"] == "GAME_OVER");
    if let Some(reason) = reason {
        whole["game_result"]["reason"] = reason;
    }
    hyphens(&mut whole);
    whole
}

fn hyphens(value: &mut Value) {
    match value {
        Value::String(text) => {
            *text = Timestamp::parse(text).map_or(text.clone(), |time| time.to_string())
        }
        Value::Array(items) => items.iter_mut().for_each(hyphens),
        Value::Object(object) => object.values_mut().for_each(hyphens),
        _ => {}
    }
}

/// A field of a sample: its path, its schema, whether it must be there (an array's item is neither), and whether it,
/// or what it is a part of, only informs.
struct Place {
    path: String,
    schema: Value,
    required: Option<bool>,
    informs: bool,
}

/// Every place in a sample that its schema knows.
fn places(schema: &Value, sample: &Value, path: &str, informs: bool, found: &mut Vec<Place>) {
    let mut take = |path: String, schema: &Value, required, sample| {
        let informs = informs || required == Some(false);
        found.push(Place {
            path: path.clone(),
            schema: schema.clone(),
            required,
            informs,
        });
        places(schema, sample, &path, informs, found);
    };
    let schema = schema.get("anyOf").map_or(schema, |either| &either[0]);
    let dot = if path.is_empty() { "" } else { "." };
    match sample {
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            let required = schema["required"]
                .as_array()
                .map(|names| names.contains(&json!(key)));
            let known = schema["properties"]
                .get(key)
                .or(schema.get("additionalProperties"));
            known
                .into_iter()
                .for_each(|schema| take(format!("{path}{dot}{key}"), schema, required, value));
        }),
        Value::Array(items) if !items.is_empty() => {
            take(format!("{path}[0]"), &schema["items"], None, &items[0])
        }
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
    let within = |n: f64| {
        (bound("minimum", f64::NEG_INFINITY)..=bound("maximum", f64::INFINITY)).contains(&n)
    };
    let is_time = || {
        value
            .as_str()
            .is_some_and(|text| Timestamp::parse(text).is_some())
    };
    match schema["type"].as_str() {
        None => schema["const"] == *value,
        Some("string") => value.is_string() && (schema["format"] != "date-time" || is_time()),
        Some("integer") => (value.is_i64() || value.is_u64()) && within(value.as_f64().unwrap()),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value
            .as_array()
            .is_some_and(|items| items.iter().all(|item| legal(&schema["items"], item))),
        Some("object") => value.as_object().is_some_and(|object| {
            let required = schema["required"].as_array().into_iter().flatten();
            required
                .into_iter()
                .all(|name| object.contains_key(name.as_str().unwrap()))
                && object.iter().all(|(key, value)| {
                    let known = schema["properties"]
                        .get(key)
                        .or(schema.get("additionalProperties"));
                    known.is_none_or(|schema| legal(schema, value))
                })
        }),
        other => panic!("{other:?}"),
    }
}

/// A value that the schema takes: with all that may be left out, or with nothing of it.
fn sample(schema: &Value, whole: bool) -> Value {
    let chosen = schema
        .get("const")
        .or(schema.get("anyOf").map(|either| &either[0]));
    match schema["type"].as_str().unwrap_or_default() {
        "string" if schema["format"] == "date-time" => json!("2025-01-15T10:30:00Z"),
        "string" => schema["enum"].get(0).cloned().unwrap_or(json!("text")),
        "integer" | "number" => json!(1),
        "boolean" => json!(true),
        "array" => json!([sample(&schema["items"], whole)]),
        "object" => {
            let wanted = |key: &&String| {
                whole || schema["required"].as_array().unwrap().contains(&json!(key))
            };
            let named = schema["properties"]
                .as_object()
                .into_iter()
                .flat_map(|known| known.iter());
            let named = named
                .filter(|(key, _)| wanted(key))
                .map(|(key, schema)| (key.clone(), sample(schema, whole)));
            let any = schema
                .get("additionalProperties")
                .map(|schema| ("P01".to_string(), sample(schema, whole)));
            Value::Object(named.chain(any).collect())
        }
        _ if schema.get("const").is_some() => chosen.unwrap().clone(),
        _ => sample(chosen.unwrap(), whole),
    }
}

/// Of each kind one, and what lies just outside a kind's bounds.
fn any_values() -> Vec<Value> {
    let all = r#"[null, true, 7, -7, -2147483649, 2147483647, 2147483648, 18446744073709551615, 1.5, "x",
        "2025-01-15T10:30:00+02:00", [], [7], {}, {"x": 7}]"#;
    serde_json::from_str(all).unwrap()
}

/// The reader lets these through as they come, for a better refusal by whoever judges them.
const UNREAD: &[&str] = &["parity_choice", "query_type", "query_params", "move"];

/// Leaves out every place of a valid sample, and puts any value there: the reader refuses what the schema
/// refuses, with the right code and the exact path, and takes all else. Returns how many rows there were.
fn agree(
    name: &str,
    schema: &Value,
    is_strict: bool,
    read: &dyn Fn(&Value) -> String,
    valid: &Value,
) -> usize {
    assert_eq!(read(valid), "ok", "{valid}");
    let (mut found, mut rows) = (Vec::new(), 0);
    places(schema, valid, "", false, &mut found);
    for Place {
        path,
        schema,
        required,
        informs,
    } in found
        .iter()
        .filter(|it| !it.path.starts_with("query_params."))
    {
        let name = |row: &dyn std::fmt::Display| format!("{name} {path}: {row}");
        if let Some(required) = *required {
            let is_nullable = schema.get("anyOf").is_some();
            let expected = if required && (is_strict || !informs) && !is_nullable {
                format!("E003 {path}")
            } else {
                "ok".into()
            };
            assert_eq!(
                read(&with(valid, path, None)),
                expected,
                "{}",
                name(&"left out")
            );
            rows += 1;
        }
        for value in any_values()
            .into_iter()
            .filter(|_| !UNREAD.contains(&path.as_str()))
        {
            let came = read(&with(valid, path, Some(value.clone())));
            rows += 1;
            let counts_as_absent = *informs && !is_strict;
            if counts_as_absent
                || legal(schema, &value)
                || value.is_null() && *required == Some(false)
            {
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
                rest.is_empty()
                    || !(value.is_null() || value.is_string()) && rest.starts_with(['.', '['])
            });
            assert!(exact, "{}: {came}", name(&value));
        }
    }
    rows
}

#[test]
fn the_schema_takes_what_the_reader_takes_and_every_fault_is_refused_by_code_and_path() {
    let mut all = 0;
    let mut check = |name: &str, schema: Value, is_strict, read: &dyn Fn(&Value) -> String| {
        for whole in [true, false] {
            let sample = sample(&schema, whole);
            assert!(legal(&schema, &sample), "{sample}");
            all += agree(name, &schema, is_strict, read, &sample);
        }
    };
    for entry in CATALOGUE {
        check(entry.message_type, entry.schema(), false, &|it| {
            verdict(read(it))
        });
    }
    // The arguments of a tool that is no message are read strictly.
    let read = |it: &Value| verdict(StartMatch::read(it).map_err(Refusal::from));
    check("start_match", StartMatch::schema(), true, &read);
    assert!(all > 5_000, "{all}");
}

/// By hand: what is said of the first example of a type, with these fields changed or (`-`) left out. `ok`: it is read.
#[test]
fn faults_are_explained() {
    let (long, choice) = ("x".repeat(9_000), "CHOOSE_PARITY_RESPONSE");
    let example = |name: &str| {
        examples()
            .into_iter()
            .map(|(_, it)| it)
            .find(|it| it["message_type"] == name)
            .unwrap()
    };
    let cut_object = format!(
        "E003 league_id: got {}, expected a string",
        cut(&json!({&long: 1}).to_string(), 60)
    );
    let cut_key = format!(
        "E003 result.score.{}: got \"3\", expected a 32-bit integer",
        cut(&long, 60)
    );
    let result = json!({"winner": null, "details": {"drawn_number": null, "choices": {}}, "score": {&long: "3"}});
    for (name, fields, expected) in [
        (
            "GAME_INVITATION",
            json!({"protocol": "v1"}),
            "E018 protocol: got \"v1\", expected \"league.v2\"",
        ),
        (
            "GAME_INVITATION",
            json!({"timestamp": "now"}),
            "E021 timestamp: got \"now\", expected a UTC time like",
        ),
        (
            "GAME_INVITATION",
            json!({"message_type": "X"}),
            "E003 message_type: got \"X\", expected a message type",
        ),
        (
            "GAME_INVITATION",
            json!({"auth_token": null, "role_in_match": "a", "surplus": 1}),
            "ok",
        ),
        (
            "GAME_INVITATION",
            json!({"league_id": {&long: 1}}),
            &cut_object,
        ),
        ("MATCH_RESULT_REPORT", json!({"result": result}), &cut_key),
        (
            "LEAGUE_REGISTER_RESPONSE",
            json!({"reason": null, "proves_itself": "yes"}),
            "ok",
        ),
        ("CHOOSE_PARITY_CALL", json!({"context": "mine"}), "ok"),
        (
            "GAME_JOIN_ACK",
            json!({"accept": null, "player_id": "-"}),
            "E003 player_id, accept: missing",
        ),
        (
            "GAME_JOIN_ACK",
            json!({"playerId": 1, "player_id": "-"}),
            "E003 player_id: has \"playerId\", expected",
        ),
        (
            "GAME_JOIN_ACK",
            json!({"match": 1, "match_id": "-", "accept": "-"}),
            "E003 match_id, accept: has \"match\"",
        ),
        (
            choice,
            json!({"parityChoice": 1, "parity_choice": "-"}),
            "\"parityChoice\", expected \"parity_choice\"",
        ),
        (
            choice,
            json!({"answer": 1, "parity_choice": "-"}),
            "E003 parity_choice: missing",
        ),
        (
            "LEAGUE_REGISTER_REQUEST",
            json!({"player_meta": {"name": "A"}}),
            "expected \"display_name\"",
        ),
    ] {
        let mut whole = example(name);
        for (key, value) in fields.as_object().unwrap() {
            whole = with(
                &whole,
                key,
                Some(value.clone()).filter(|value| value != "-"),
            );
        }
        let said = read(&whole).map_or_else(
            |no| format!("{} {}", no.code, no.explain()),
            |_| "ok".into(),
        );
        assert!(said.contains(expected), "{name} {fields}: {said}");
    }
}

#[test]
fn what_is_known_is_supplied() {
    let known = json!({
        "protocol": "league.v2", "sender": "player:P01", "conversation_id": "conv-1",
        "timestamp": "2025-01-15T10:30:00Z", "arrival_timestamp": "2025-01-15T10:30:00Z",
    });
    let body = json!({"match_id": "R1M1", "player_id": "P01", "arrival_timestamp": support::now(), "accept": true});
    let valid = message("GAME_JOIN_ACK", "player:P01", body);
    let rows = [
        ("sender", None, "ok"),
        ("sender", Some(json!(null)), "ok"),
        ("sender", Some(json!(7)), "E003 sender"), // what is there is judged as it stands
        ("timestamp", None, "ok"),
        ("timestamp", Some(json!("2025-01-15T10:30:00+02:00")), "ok"),
        ("timestamp", Some(json!(1736937000)), "ok"),
        ("arrival_timestamp", Some(json!("soon")), "ok"),
        ("conversation_id", None, "ok"),
        ("protocol", None, "ok"),
        ("protocol", Some(json!("league.v1")), "E018 protocol"),
        ("message_type", None, "E003 message_type"),
        ("match_id", None, "E003 match_id"),
    ];
    let completed = |mut packet: Value| {
        let supplied = protocol::complete(&mut packet, known.clone());
        (supplied.join(" "), verdict(read(&packet)))
    };
    for (path, value, expected) in rows {
        let (supplied, verdict) = completed(with(&valid, path, value.clone()));
        let is_supplied = expected == "ok" || value.is_none() && known.get(path).is_some();
        let supplied_then = if is_supplied { path } else { "" };
        assert_eq!(
            (&*supplied, &*verdict),
            (supplied_then, expected),
            "{path} {value:?}"
        );
    }
    let bare = json!({"message_type": "GAME_JOIN_ACK", "match_id": "R1M1", "player_id": "P01", "accept": true});
    let all = "arrival_timestamp conversation_id protocol sender timestamp";
    assert_eq!(completed(bare.clone()).0, all);
    assert_eq!(completed(valid), (String::new(), "ok".into()));
    assert_eq!(
        verdict(read(&bare)),
        "E003 protocol, sender, timestamp, conversation_id, arrival_timestamp"
    );
}

#[test]
fn times_are_utc_or_refused() {
    let at = |text: &str| Timestamp::parse(text).map(|time| time.to_string());
    let same = "2025-01-15T10:30:00Z 2025-01-15T10:30:00+00:00 2025-01-15T10:30:00.5Z \
        2025-01-15T10:30:00.123456789+00:00 20250115T10:30:00Z 20250115T10:30:00.5+00:00 20250115T103000Z \
        20250115T103000.5+00:00";
    for text in same.split(' ') {
        assert_eq!(at(text).as_deref(), Some("2025-01-15T10:30:00Z"), "{text}");
    }
    let wrong = "|now|Z|2025-01-15|2025-01-15T10:30:00|2025-01-15T10:30Z|2025-01-15T10:30:00+02:00|\
        2025-01-15T10:30:00-05:00|2025-01-15T10:30:00+00|2025-01-15T10:30:00z|2025-01-15t10:30:00Z|\
        2025-01-15 10:30:00Z| 2025-01-15T10:30:00Z|2025-01-15T10:30:00Z |2025-01-15T10:30:00ZZ|\
        2025-01-15T10:30:00.Z|2025-0115T10:30:00Z|2025-1-15T10:30:00Z|2025-02-30T10:30:00Z|2025-13-01T10:30:00Z|\
        2025-01-15T24:00:00Z|2025-01-15T10:60:00Z|+2025-01-15T10:30:00Z|-2025-01-15T10:30:00Z|1736937000|\
        2025-01-15T103000Z|20250115T1030Z";
    for text in wrong.split('|') {
        assert_eq!(at(text), None, "{text:?}");
    }
}

#[test]
fn tokens_are_masked_by_their_looks_and_by_their_key() {
    let ours = "tok-p01-0123456789abcdef0123456789abcdef";
    let world = World::new(&[]);
    let log = log::Log::new(&world.folder, "P01");
    log.open("P01", "P01.log.jsonl");
    let last_line = || support::json_lines(&world.folder.join("P01.log.jsonl")).pop();
    for (value, expected) in [
        (
            json!(format!("got {ours:?}, {ours},x{ours}x!")),
            json!("got \"tok-p01-***\", tok-p01-***,xtok-p01-***!"),
        ),
        (
            json!(format!("TOK tok-{ours} {}…", &ours[..16])),
            json!("TOK tok-tok-p01-*** tok-p01-***…"),
        ),
        (
            json!("tok-{agent_id}-{hash}, tok-p01-***, tok-"),
            json!("tok-{agent_id}-{hash}, tok-p01-***, tok-"),
        ),
        (
            json!({"auth_token": ours, "sender": ours}),
            json!({"auth_token": "tok-p01-***", "sender": "tok-p01-***"}),
        ),
        (
            json!({"auth_token": "hunter2"}),
            json!({"auth_token": "***"}),
        ),
        (
            json!({"context": {"provided_token": "x"}}),
            json!({"context": {"provided_token": "***"}}),
        ),
        (
            json!({"auth_token": [ours]}),
            json!({"auth_token": ["tok-p01-***"]}),
        ),
        (
            json!({"auth_token": "", "token_length": 32}),
            json!({"auth_token": "", "token_length": 32}),
        ),
    ] {
        let packet = json!({ "value": value });
        log.note("event", json!({}), Body::Whole(&packet));
        assert_eq!(last_line().unwrap()["message"]["value"], expected);
    }
    assert_eq!(
        shown("a\u{61c}b\u{2028}c\u{202e}d\u{9b}e\n"),
        "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}"
    );
    // In a line of the log too, whose every field is short, whatever a peer calls itself.
    let long = "x".repeat(9_000);
    let client = Client::new("P01", Arc::new(log));
    let packet = json!({"message_type": long, "conversation_id": ours, "match_id": ours});
    let facts = json!({"peer": null, "error_code": "E003"});
    client.note("event", &packet, facts, Body::Words(ours.into()));
    let line = last_line().unwrap();
    assert!(
        line.to_string().matches("tok-p01-***").count() == 3 && line.to_string().len() < 500,
        "{line}"
    );
    assert_eq!(
        (line.get("peer"), &line["level"]),
        (None, &json!("WARNING"))
    );
    let long = json!({"auth_token": ours, "x": long});
    client.note("event", &long, json!({}), Body::Beginning(&long));
    let beginning = last_line().unwrap()["message"].take();
    let beginning = beginning.as_str().unwrap();
    assert!(beginning.starts_with("{\"auth_token\":\"tok-p01-***\",\"x\":\"xx"));
    assert!(
        beginning.ends_with("x…") && beginning.len() < 510,
        "{beginning}"
    );
    assert!(
        line["timestamp"]
            .as_str()
            .unwrap()
            .split_once('.')
            .is_some_and(|(_, end)| end.len() == 4),
        "{line}"
    );
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
        assert_eq!(
            Endpoint::parse(url)
                .map(|endpoint| endpoint.to_string())
                .as_deref(),
            Ok(expected),
            "{url}"
        );
        assert!(Endpoint::same(url, expected), "{url}");
    }
    let wrong = "|localhost:8101/mcp|/mcp|ftp://localhost/mcp|http://|http:///mcp|http://localhost:0/mcp|\
        http://localhost:65536/mcp|http://localhost:/mcp|http://user@localhost/mcp|http://local host/mcp|\
        http://localhost/m cp|http://localhost/mcp\n|http://localhost/#mcp|http://[::1/mcp|http://[localhost]/mcp";
    for url in wrong.split('|') {
        assert!(Endpoint::parse(url).is_err(), "{url}");
        assert!(!Endpoint::same(url, url), "{url}");
    }
    let https = Endpoint::parse("https://localhost/mcp");
    assert_eq!(https.is_ok(), cfg!(feature = "https"));
    assert!(!Endpoint::same(
        "http://localhost:8101/mcp",
        "http://localhost:8102/mcp"
    ));
}

#[test]
fn a_real_league_sends_nothing_else() {
    let world = World::new(&[]);
    let mut league = world.start("league_manager", &["local", "--fresh"]);
    assert!(league.wait().success());
    let mut types = BTreeSet::new();
    let mut conversations = BTreeMap::<String, BTreeMap<String, usize>>::new();
    for line in world.logs() {
        let Some(name) = line["message_type"].as_str() else {
            continue;
        };
        if line["message"].is_object() && line["recipients"].is_null() {
            assert_eq!(verdict(read(&line["message"])), "ok", "{line}");
        }
        types.insert(name.to_string());
        let word = |key: &str| line[key].as_str().unwrap();
        let who = word("component").trim_end_matches(|c: char| c.is_ascii_digit());
        let lines = conversations
            .entry(word("conversation_id").to_string())
            .or_default();
        *lines
            .entry(format!("{who} {} {name}", word("event_type")))
            .or_default() += 1;
    }
    let only_faults_and_questions = "CHOOSE_MOVE_CALL CHOOSE_MOVE_RESPONSE GAME_ERROR LEAGUE_CONTROL LEAGUE_ERROR LEAGUE_QUERY LEAGUE_QUERY_RESPONSE LEAGUE_STATUS START_LEAGUE";
    let all = CATALOGUE.iter().map(|entry| entry.message_type.to_string());
    assert_eq!(
        types,
        all.filter(|name| !only_faults_and_questions.split(' ').any(|it| it == name))
            .collect()
    );
    // Whoever greps a match's conversation sees it whole, from both sides.
    let once = "league_manager message_received MATCH_RESULT_REPORT,league_manager message_sent MATCH_RESULT_ACK,\
        REF message_sent MATCH_RESULT_REPORT,REF reply_received MATCH_RESULT_ACK";
    let twice = "REF message_sent GAME_INVITATION,P message_received GAME_INVITATION,P message_sent GAME_JOIN_ACK,\
        REF reply_received GAME_JOIN_ACK,REF message_sent CHOOSE_PARITY_CALL,P message_received CHOOSE_PARITY_CALL,\
        P message_sent CHOOSE_PARITY_RESPONSE,REF reply_received CHOOSE_PARITY_RESPONSE,REF message_sent GAME_OVER,\
        P message_received GAME_OVER";
    let times = |lines: &str, times| {
        lines
            .split(',')
            .map(|it| (it.to_string(), times))
            .collect::<BTreeMap<_, _>>()
    };
    let expected: BTreeMap<String, usize> =
        times(once, 1).into_iter().chain(times(twice, 2)).collect();
    let is_match = |lines: &&BTreeMap<_, _>| lines.contains_key("REF message_sent GAME_INVITATION");
    let matches: Vec<_> = conversations.values().filter(is_match).collect();
    assert_eq!(matches, [&expected; 6]);
    let shown = [
        league.output(),
        league.stderr.lock().unwrap().clone(),
        format!("{:?}", world.logs()),
    ];
    shown.iter().for_each(|text| check_no_token(text));
    assert!(shown[2].contains("tok-p01-***"));
}
