//! The wire: every example of the documents is read and written back, every fault is refused by
//! code and path, the schema says what the reader does, and what a real league sends passes the
//! same reader.

use super::support::{
    TestLeague, check_no_token, golden, json_of, message, message_of, places, pointer, text_of,
    with_field,
};
use league::json::{decode, schema_of};
use league::net::client::Client;
use league::net::log::{self, Content};
use league::program::terminal::sanitize;
use league::protocol::{
    self, AgentKind, ErrorCode, MESSAGES, ManagerRequest, Message, MessageSpec, PlayerRequest,
    ProtocolError, Reply, StartMatch, parse,
};
use league::values::{Endpoint, Timestamp};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An example of the documents: where it stands, and the message with what its envelope lacks.
fn examples() -> Vec<(String, Value)> {
    let all: Vec<Value> = json_of(include_str!("../examples.json"));
    let filled = |example: Value| {
        let place = format!("{} line {}", text_of(&example["source"]), example["line"]);
        let bare = message_of(&example["json"]);
        let whole = message(
            text_of(&example["message_type"]),
            "player:P01",
            bare.clone(),
        );
        (place, whole)
    };
    all.into_iter().map(filled).collect()
}

/// `E003 referee_meta.version`, or `ok`.
fn verdict<T>(read: Result<T, ProtocolError>) -> String {
    let field = |refusal: &ProtocolError| text_of(&refusal.context["field"]).to_string();
    read.map_or_else(
        |refusal| format!("{} {}", refusal.code, field(&refusal)),
        |_| "ok".into(),
    )
}

/// Reads a message of any type and writes it again: the same, or the refusal.
fn again(whole: &Value) -> Result<Value, ProtocolError> {
    let spec = MessageSpec::by_type(whole["message_type"].as_str().unwrap_or_default());
    match spec.map(|spec| spec.receivers) {
        Some([AgentKind::Manager]) => again_as::<ManagerRequest>(whole),
        Some([AgentKind::Player, ..]) => again_as::<PlayerRequest>(whole),
        _ => again_as::<Reply>(whole),
    }
}

fn again_as<M: Message>(whole: &Value) -> Result<Value, ProtocolError> {
    let item = parse::<M>(whole)?;
    Ok(protocol::to_json(&item.envelope, &item.message))
}

#[test]
fn message_examples_round_trip() {
    let examples = examples();
    let mut refused = Vec::new();
    for (place, whole) in &examples {
        match again(whole) {
            Err(refusal) => refused.push(format!("{place}: {}", verdict::<()>(Err(refusal)))),
            Ok(written) => assert_eq!(
                normal(written),
                normal(whole.clone()),
                "an example of the league's documents, {place}, is written otherwise than it came"
            ),
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
fn protocol_page_matches_the_code() {
    let page = include_str!("../../src/protocol.md").replace('\r', "");
    let blocks = page
        .split("```json\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0);
    let mut types = BTreeSet::new();
    for block in blocks {
        let block: Value = json_of(block);
        let whole = message_of(&block);
        if let Some(name) = whole["message_type"].as_str() {
            types.insert(name.to_string());
            assert_eq!(
                again(whole).map(normal),
                Ok(normal(whole.clone())),
                "{whole}"
            );
            let entry = MessageSpec::by_type(name).unwrap();
            assert!(
                block["method"].is_null() || block["method"] == entry.method,
                "{block}"
            );
        }
    }
    for entry in &MESSAGES {
        let name = entry.message_type;
        assert!(types.contains(name), "no example of {name}");
        let row = format!("| {name} | `{}` |", entry.method);
        assert!(
            entry.receivers.is_empty() || page.contains(&row),
            "no row {row}"
        );
    }
    let rows = page.lines().filter_map(|line| line.strip_prefix("| E"));
    let mut codes = 0;
    for row in rows {
        let [code, name] = row.splitn(3, " | ").collect::<Vec<_>>()[..2] else {
            panic!("{row}")
        };
        let code = ErrorCode::from(format!("E{code}"));
        assert_eq!(code.name(), name);
        codes += 1;
    }
    assert_eq!(codes, 12);
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

/// Whether the schema takes one of `any_values`; as much of JSON schema as they need.
fn legal(schema: &Value, value: &Value) -> bool {
    if let Some(either) = schema["anyOf"].as_array() {
        return either.iter().any(|schema| legal(schema, value));
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.contains(value);
    }
    let bound = |key: &str, open: f64| schema[key].as_f64().unwrap_or(open);
    let bounds = bound("minimum", f64::MIN)..=bound("maximum", f64::MAX);
    let is_time = || Timestamp::parse(text_of(value)).is_some();
    match schema["type"].as_str() {
        None => schema["const"] == *value,
        Some("string") => value.is_string() && (schema["format"] != "date-time" || is_time()),
        Some("integer") => !value.is_f64() && value.as_f64().is_some_and(|n| bounds.contains(&n)),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object() && schema["required"].get(0).is_none(),
        other => panic!("{other:?}"),
    }
}

/// A value that the schema takes, with all that may be left out.
fn sample(schema: &Value) -> Value {
    if let Some(either) = schema.get("anyOf") {
        return sample(&either[0]);
    }
    match schema["type"].as_str() {
        None => schema["const"].clone(),
        Some("string") if schema["format"] == "date-time" => json!("2025-01-15T10:30:00Z"),
        Some("string") => schema["enum"].get(0).cloned().unwrap_or(json!("text")),
        Some("boolean") => json!(true),
        Some("array") => json!([sample(&schema["items"])]),
        Some("object") => {
            let named = schema["properties"].as_object().into_iter().flatten();
            let any = schema.get("additionalProperties");
            let any = any.map(|schema| ("P01".to_string(), sample(schema)));
            let named = named.map(|(key, schema)| (key.clone(), sample(schema)));
            Value::Object(named.chain(any).collect())
        }
        _ => json!(1),
    }
}

/// Of each kind one, and what lies just outside a kind's bounds. What is inside a list or an object
/// is tried in its own place.
fn any_values() -> Vec<Value> {
    let all = r#"[null, true, 7, -7, -2147483649, 2147483647, 2147483648, 18446744073709551615, 1.5, "x",
        "2025-01-15T10:30:00+02:00", [], {}]"#;
    json_of(all)
}

/// The reader lets these through as they come, for a better refusal by whoever judges them.
const UNREAD: &[&str] = &["parity_choice", "query_type", "query_params", "move"];

/// Leaves out every place of a valid sample, and puts any value there: the reader refuses what the
/// schema refuses, with the right code and the exact path, and takes all else. Returns how many
/// places there were.
fn agree(name: &str, schema: &Value, is_strict: bool, read: &dyn Fn(&Value) -> String) -> usize {
    let valid = sample(schema);
    assert_eq!(read(&valid), "ok", "{valid}");
    let mut found = places(schema, &valid, "", false);
    found.retain(|item| !item.path.starts_with("query_params."));
    for place in &found {
        let (path, schema) = (&place.path, &place.schema);
        let pointer = pointer(path);
        let row = |value: &Value| format!("{name} {path}: {value}");
        let counts_as_absent = place.informs && !is_strict;
        if let Some(required) = place.required {
            let is_free = !required || counts_as_absent || schema.get("anyOf").is_some();
            let expected = match is_free {
                true => "ok".into(),
                false => format!("E003 {path}"),
            };
            let came = read(&with_field(&valid, &pointer, Value::Null));
            assert_eq!(came, expected, "{}", row(&json!("left out")));
        }
        let is_read = !UNREAD.contains(&path.as_str());
        for value in any_values().into_iter().filter(|_| is_read) {
            let mut changed = valid.clone();
            *changed.pointer_mut(&pointer).unwrap() = value.clone();
            let came = read(&changed);
            let is_left_out = value.is_null() && place.required == Some(false);
            if counts_as_absent || is_left_out || legal(schema, &value) {
                assert_eq!(came, "ok", "{}", row(&value));
                continue;
            }
            let code = match value.is_string() {
                true if path == "protocol" => "E018",
                true if schema["format"] == "date-time" => "E021",
                _ => "E003",
            };
            let rest = came.strip_prefix(&format!("{code} {path}"));
            let lacks = |rest: &str| value.is_object() && rest.starts_with('.');
            let is_exact = rest.is_some_and(|rest| rest.is_empty() || lacks(rest));
            assert!(is_exact, "{}: {came}", row(&value));
        }
    }
    found.len()
}

#[test]
fn faulty_fields_are_refused_with_code_and_path() {
    let of_messages = MESSAGES.iter().map(|entry| {
        let read = |item: &Value| verdict(again(item));
        agree(entry.message_type, &entry.schema, false, &read)
    });
    let all: usize = of_messages.sum();
    assert!(all > 300, "{all} places");
    // The arguments of a tool that is no message are read strictly.
    let read = |item: &Value| verdict(decode::<StartMatch>(item).map_err(ProtocolError::from));
    agree("start_match", &schema_of::<StartMatch>(), true, &read);
}

/// What the log makes of a value: the last line of a log of its own, for which `note` cares.
fn logged(note: impl FnOnce(&Client)) -> Value {
    let test = TestLeague::new("");
    let log = log::Log::new(&test.folder, "P01");
    log.open("P01", "P01.log.jsonl");
    note(&Client::new("P01", Arc::new(log)));
    let mut lines = super::support::json_lines(&test.folder.join("P01.log.jsonl"));
    lines.pop().unwrap()
}

/// What the wire makes of a text: a message with edits, one of whose envelope something is known, a
/// time, a URL, a value in the log, or a text on the screen.
fn made_of(word: &str, text: &str) -> String {
    match word {
        "read" => {
            let (name, edits) = text.split_once(' ').unwrap_or((text, ""));
            let mut all = examples().into_iter().map(|(_, item)| item);
            let example = all.find(|item| item["message_type"] == name).unwrap();
            match again(&golden::edited(example, edits)) {
                Ok(_) => "ok".into(),
                Err(refusal) => format!("{} {}", refusal.code, refusal.detail()),
            }
        }
        "complete" => {
            let time = "2025-01-15T10:30:00Z";
            let body = json!({"match_id": "R1M1", "player_id": "P01", "arrival_timestamp": time, "accept": true});
            let whole = message("GAME_JOIN_ACK", "player:P01", body);
            let mut packet = golden::edited(whole, text);
            let supplied = protocol::fill_defaults(&mut packet, |_, field| match field {
                "sender" | "conversation_id" => Some("player:P01".into()),
                _ => None,
            });
            format!("{}, supplied {supplied:?}", verdict(again(&packet)))
        }
        "time" => Timestamp::parse(text).map_or("no time".into(), |time| time.to_string()),
        "url" => match Endpoint::parse(text) {
            Ok(endpoint) => {
                assert!(
                    Endpoint::is_same_address(text, &endpoint.to_string()),
                    "{text}"
                );
                endpoint.to_string()
            }
            Err(_) => {
                assert!(!Endpoint::is_same_address(text, text), "{text}");
                "no URL".into()
            }
        },
        "log" => {
            let value: Value = json_of(text);
            let body = Content::Full(&value);
            let line = logged(|client| client.log.message("event", &json!({}), vec![], body));
            line["message"].to_string()
        }
        "screen" => sanitize(text),
        other => panic!("{other}: no such command"),
    }
}

#[test]
fn wire_golden() {
    const TOKEN: &str = "tok-p01-0123456789abcdef0123456789abcdef";
    golden::run_scripts("wire", || {
        |command: &str| {
            let (word, text) = command.split_once(' ').unwrap();
            let quoted = serde_json::from_str(text).ok().filter(|_| word != "log");
            let text = quoted.unwrap_or(text.to_string());
            let text = text
                .replace("TOKEN", TOKEN)
                .replace("LONG", &"x".repeat(9_000));
            made_of(word, &text)
        }
    });
    assert_eq!(
        Endpoint::parse("https://localhost/mcp").is_ok(),
        cfg!(feature = "https")
    );
    let ports = [8101, 8102].map(|port| format!("http://localhost:{port}/mcp"));
    assert!(!Endpoint::is_same_address(&ports[0], &ports[1]));
}

#[test]
fn log_lines_are_short_and_show_no_tokens() {
    let (ours, long) = ("tok-p01-0123456789abcdef", "x".repeat(9_000));
    let packet = json!({"message_type": long, "conversation_id": ours, "match_id": ours});
    let facts = vec![("peer", json!(null)), ("error_code", json!("E003"))];
    let line = logged(|client| {
        client
            .log
            .message("event", &packet, facts, Content::Text(ours))
    });
    let text = line.to_string();
    assert!(
        text.matches("tok-p01-***").count() == 3 && text.len() < 500,
        "{text}"
    );
    assert_eq!(
        (line.get("peer"), &line["level"]),
        (None, &json!("WARNING"))
    );
    let (_, fraction) = text_of(&line["timestamp"]).split_once('.').unwrap();
    assert_eq!(fraction.len(), 4, "{line}");
}

#[test]
fn messages_of_a_league_match_the_protocol() {
    let test = TestLeague::new("");
    let mut league = test.manager("local --fresh");
    league.wait_for_success();
    let logs = test.logs();
    let mut conversations = BTreeMap::<&str, BTreeMap<String, usize>>::new();
    let mut types = BTreeSet::new();
    for line in logs.iter().filter(|line| line["message_type"].is_string()) {
        if line["message"].is_object() && line["recipients"].is_null() {
            assert_eq!(verdict(again(&line["message"])), "ok", "{line}");
        }
        let [name, who, event, conversation] =
            ["message_type", "component", "event_type", "conversation_id"]
                .map(|key| text_of(&line[key]));
        let who = who.trim_end_matches(|sign: char| sign.is_ascii_digit());
        let lines = conversations.entry(conversation).or_default();
        *lines.entry(format!("{name} {who} {event}")).or_default() += 1;
        types.insert(name);
    }
    let mut matches: Vec<_> = conversations.values().collect();
    matches.retain(|lines| lines.keys().any(|line| line.starts_with("GAME_INVITATION")));
    assert_eq!(matches.len(), 6);
    matches.dedup(); // all are the same
    let (types, matches) = (&types, &matches);
    golden::run_scripts("league", || {
        move |question: &str| match question {
            "types" => types.iter().map(|name| format!("{name}\n")).collect(),
            _ => {
                let lines = matches.iter().flat_map(|lines| lines.iter());
                lines
                    .map(|(line, times)| format!("{line} x{times}\n"))
                    .collect()
            }
        }
    });
    let shown = [league.output(), league.errors(), format!("{logs:?}")];
    shown.iter().for_each(|text| check_no_token(text));
    assert!(shown[2].contains("tok-p01-***"));
}
