//! The messages on the wire: every example of the documents is read and written back, every faulty
//! field is refused with code and path, the reader agrees with the schema, and the messages of a
//! real league pass the same reader.

use super::support::*;
use league::json::{decode, schema_of};
use league::net::client::Client;
use league::net::log::{self, Content};
use league::program::terminal::sanitize;
use league::protocol::{
    self, AgentKind, ErrorCode, MESSAGES, ManagerRequest, Message, MessageSpec, PlayerRequest,
    ProtocolError, Reply, StartMatch, parse,
};
use league::values::{Endpoint, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Returns the examples of the documents: the place of each, and the message with a whole envelope.
fn examples() -> Vec<(String, Value)> {
    let all: Vec<Value> = json_of(include_str!("../examples.json"));
    let whole = |example: Value| {
        let [source, name] = ["source", "message_type"].map(|key| text_of(&example[key]));
        let bare = message_of(&example["json"]).clone();
        let place = format!("{source} line {}", example["line"]);
        (place, message(name, "player:P01", bare))
    };
    all.into_iter().map(whole).collect()
}

/// Returns `ok`, or code and field of a refusal: `E003 referee_meta.version`.
fn verdict<T>(read: Result<T, ProtocolError>) -> String {
    match read {
        Ok(_) => "ok".into(),
        Err(refusal) => format!("{} {}", refusal.code, text_of(&refusal.context["field"])),
    }
}

/// Reads a message of any type and writes it back.
fn again(whole: &Value) -> Result<Value, ProtocolError> {
    let spec = MessageSpec::by_type(whole["message_type"].as_str().unwrap_or_default());
    match spec.map(|spec| spec.receivers) {
        Some([AgentKind::Manager]) => again_as::<ManagerRequest>(whole),
        Some([AgentKind::Player, ..]) => again_as::<PlayerRequest>(whole),
        _ => again_as::<Reply>(whole),
    }
}

fn again_as<M: Message>(whole: &Value) -> Result<Value, ProtocolError> {
    let read = parse::<M>(whole)?;
    Ok(protocol::to_json(&read.envelope, &read.message))
}

#[test]
fn message_examples_round_trip() {
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
        "002 line 61: E003 message_type",
        "002 line 861: E003 match_id, affected_player, action_required",
        "004 line 78: E003 message_type",
    ];
    assert_eq!(refused, expected);
}

#[test]
fn protocol_page_matches_the_code() {
    let page = include_str!("../../src/protocol.md").replace('\r', "");
    let mut types = BTreeSet::new();
    for block in page.split("```json\n").skip(1) {
        let block: Value = json_of(block.split("```").next().unwrap());
        let whole = message_of(&block);
        if let Some(name) = whole["message_type"].as_str() {
            types.insert(name.to_string());
            assert_eq!(again(whole).map(normal), Ok(normal(whole.clone())));
            let method = MessageSpec::by_type(name).unwrap().method;
            let is_method = block["method"].is_null() || block["method"] == method;
            assert!(is_method, "{block}");
        }
    }
    for entry in &MESSAGES {
        let name = entry.message_type;
        assert!(types.contains(name), "no example of {name}");
        if !entry.receivers.is_empty() {
            check_contains(&page, &format!("| {name} | `{}` |", entry.method));
        }
    }
    let mut codes = 0;
    for row in page.lines().filter(|line| line.starts_with("| E")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let code = ErrorCode::from(cells[0].replace("| ", ""));
        assert_eq!(code.name(), cells[1]);
        codes += 1;
    }
    assert_eq!(codes, 12);
}

/// Returns a message with hyphens in its dates, and with its reason in the place where the programs
/// write it: inside `game_result`.
fn normal(mut whole: Value) -> Value {
    let reason = whole["reason"].take();
    set(&mut whole, "reason", Value::Null);
    if whole["message_type"] == "GAME_OVER" && !reason.is_null() {
        whole["game_result"]["reason"] = reason;
    }
    normalise_times(&mut whole);
    whole
}

fn normalise_times(value: &mut Value) {
    match value {
        Value::String(text) => {
            *text = Timestamp::parse(text).map_or(text.clone(), |time| time.to_string())
        }
        Value::Array(list) => list.iter_mut().for_each(normalise_times),
        Value::Object(object) => object.values_mut().for_each(normalise_times),
        _ => {}
    }
}

/// Returns true if a schema accepts one of `any_values`. It supports the part of JSON schema that
/// these values need.
fn accepts(schema: &Value, value: &Value) -> bool {
    if let Some(either) = schema["anyOf"].as_array() {
        return either.iter().any(|schema| accepts(schema, value));
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

/// Returns a value that the schema accepts, with all optional fields.
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

/// Returns a value of each kind, and values just inside and outside the bounds of a kind. Lists and
/// objects are empty: each of their elements is a field of its own.
fn any_values() -> Vec<Value> {
    let all = r#"[null, true, 7, -7, -2147483649, 2147483647, 2147483648, 18446744073709551615, 1.5, "x",
        "2025-01-15T10:30:00+02:00", [], {}]"#;
    json_of(all)
}

/// A field of a sample, or the first element of a list in it.
struct Field {
    /// The path, like `matches[0].match_id`.
    path: String,
    schema: Value,
    /// The schema says that it must be there, or need not be; none for an element of a list.
    required: Option<bool>,
    /// The field is optional, or is a part of an optional one.
    informs: bool,
}

/// Returns every field of a sample that its schema knows, with `path` in front of its path.
fn fields(schema: &Value, sample: &Value, path: &str, informs: bool) -> Vec<Field> {
    let schema = schema.get("anyOf").map_or(schema, |either| &either[0]);
    let mut found = Vec::new();
    let mut add = |path: String, schema: &Value, required: Option<bool>, sample: &Value| {
        let informs = informs || required == Some(false);
        found.extend(fields(schema, sample, &path, informs));
        found.push(Field {
            path,
            schema: schema.clone(),
            required,
            informs,
        });
    };
    for (key, value) in sample.as_object().into_iter().flatten() {
        let named = schema["properties"].get(key);
        let required = schema["required"].as_array();
        let required = required.map(|names| names.contains(&json!(key)));
        if let Some(known) = named.or(schema.get("additionalProperties")) {
            let path = format!("{path}.{key}");
            add(path.trim_start_matches('.').into(), known, required, value);
        }
    }
    if let Some(first) = sample.get(0) {
        add(format!("{path}[0]"), &schema["items"], None, first);
    }
    found
}

/// Fields that the reader accepts with any value: the receiver refuses a wrong one itself.
const UNREAD: [&str; 4] = ["parity_choice", "query_type", "query_params", "move"];

/// Removes each field of a valid sample, and gives it each of `any_values`. The reader must refuse
/// what the schema refuses, with the right code and the exact path, and accept the rest. Returns the
/// number of fields.
fn agree(name: &str, schema: &Value, is_strict: bool, read: &dyn Fn(&Value) -> String) -> usize {
    let valid = sample(schema);
    assert_eq!(read(&valid), "ok", "{valid}");
    let mut found = fields(schema, &valid, "", false);
    found.retain(|field| !field.path.starts_with("query_params."));
    for field in &found {
        let (path, schema) = (&*field.path, &field.schema);
        let pointer = pointer(path);
        let row = |value: &Value| format!("{name} {path}: {value}");
        let counts_as_absent = field.informs && !is_strict;
        if let Some(required) = field.required {
            let is_free = !required || counts_as_absent || schema.get("anyOf").is_some();
            let expected = match is_free {
                true => "ok".into(),
                false => format!("E003 {path}"),
            };
            let actual = read(&with_field(&valid, &pointer, Value::Null));
            assert_eq!(actual, expected, "{name} without {path}");
        }
        let is_read = !UNREAD.contains(&path);
        for value in any_values().into_iter().filter(|_| is_read) {
            let mut changed = valid.clone();
            *changed.pointer_mut(&pointer).unwrap() = value.clone();
            let actual = read(&changed);
            let is_left_out = value.is_null() && field.required == Some(false);
            if counts_as_absent || is_left_out || accepts(schema, &value) {
                assert_eq!(actual, "ok", "{}", row(&value));
                continue;
            }
            let code = match value.is_string() {
                true if path == "protocol" => "E018",
                true if schema["format"] == "date-time" => "E021",
                _ => "E003",
            };
            let rest = actual.strip_prefix(&format!("{code} {path}"));
            let lacks = |rest: &str| value.is_object() && rest.starts_with('.');
            let is_exact = rest.is_some_and(|rest| rest.is_empty() || lacks(rest));
            assert!(is_exact, "{}: {actual}", row(&value));
        }
    }
    found.len()
}

#[test]
fn faulty_fields_are_refused_with_code_and_path() {
    let of_messages = MESSAGES.iter().map(|entry| {
        let read = |whole: &Value| verdict(again(whole));
        agree(entry.message_type, &entry.schema, false, &read)
    });
    let all: usize = of_messages.sum();
    assert!(all > 300, "{all} fields");
    // The arguments of a tool that is no message are read strictly.
    let read = |whole: &Value| verdict(decode::<StartMatch>(whole).map_err(ProtocolError::from));
    agree("start_match", &schema_of::<StartMatch>(), true, &read);
}

/// Returns the last line that `write` has written into a new log.
fn logged(write: impl FnOnce(&Client)) -> Value {
    let test = TestLeague::new("");
    let log = log::Log::new(&test.folder, "P01");
    log.open("P01");
    write(&Client::new("P01", Arc::new(log)));
    let mut lines = json_lines(&test.folder.join("P01.log.jsonl"));
    lines.pop().unwrap()
}

/// Reads a message with edits, fills in a message, or writes a time, a URL, a value in the log or a
/// text on the screen. Returns the text that results.
fn result_of(word: &str, text: &str) -> String {
    match word {
        "read" => {
            let (name, edits) = text.split_once(' ').unwrap_or((text, ""));
            let mut all = examples().into_iter();
            let (_, example) = all.find(|row| row.1["message_type"] == name).unwrap();
            match again(&golden::edited(example, edits)) {
                Ok(_) => "ok".into(),
                Err(refusal) => format!("{} {}", refusal.code, refusal.detail()),
            }
        }
        "complete" => {
            let time = "2025-01-15T10:30:00Z";
            let body = json!({"match_id": "R1M1", "player_id": "P01", "arrival_timestamp": time, "accept": true});
            let whole = message("GAME_JOIN_ACK", "player:P01", body);
            let mut edited = golden::edited(whole, text);
            let supplied = protocol::fill_defaults(&mut edited, |field| match field {
                "sender" | "conversation_id" => Some("player:P01".into()),
                _ => None,
            });
            format!("{}, supplied {supplied:?}", verdict(again(&edited)))
        }
        "time" => Timestamp::parse(text).map_or("no time".into(), |time| time.to_string()),
        "url" => match Endpoint::parse(text) {
            Ok(endpoint) => {
                let url = endpoint.to_string();
                assert!(Endpoint::is_same_address(text, &url), "{text}");
                url + ["", ", a loopback address"][usize::from(endpoint.is_loopback())]
            }
            Err(_) => {
                assert!(!Endpoint::is_same_address(text, text), "{text}");
                "no URL".into()
            }
        },
        "log" => {
            let value: Value = json_of(text);
            let body = Content::Full(&value);
            let absent = vec![("peer", Value::Null)];
            let line = logged(|client| client.log.message("event", &json!({}), absent, body));
            assert_eq!(line.get("peer"), None);
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
            let text = quoted.unwrap_or(text.to_string()).replace("TOKEN", TOKEN);
            result_of(word, &text.replace("LONG", &"x".repeat(9_000)))
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
        let keys = ["message_type", "component", "event_type", "conversation_id"];
        let [name, program, event, conversation] = keys.map(|key| text_of(&line[key]));
        let program = program.trim_end_matches(|sign: char| sign.is_ascii_digit());
        let lines = conversations.entry(conversation).or_default();
        *lines
            .entry(format!("{name} {program} {event}"))
            .or_default() += 1;
        types.insert(name);
    }
    // On a slow machine an announcement may be late, and then a player asks for its match.
    for name in [
        "GAME_ERROR",
        "LEAGUE_ERROR",
        "LEAGUE_QUERY",
        "LEAGUE_QUERY_RESPONSE",
    ] {
        types.remove(name);
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
                let lines = lines.map(|(line, times)| format!("{line} x{times}\n"));
                lines.collect()
            }
        }
    });
    let shown = [league.output(), league.errors(), format!("{logs:?}")];
    shown.iter().for_each(|text| check_no_token(text));
    assert!(shown[2].contains("tok-p01-***"));
}
