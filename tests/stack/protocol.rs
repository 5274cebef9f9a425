//! The messages on the wire: every example of the documents is read and written back, every faulty
//! field is refused with code and path, the reader agrees with the schema, and the messages of a
//! real league pass the same reader.

use super::http::for_each;
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
use std::collections::BTreeSet;
use std::fs;
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

/// A value of each kind, and values just inside and outside the bounds of a kind. Lists and objects are
/// empty: each of their elements is a field of its own.
const VALUES: &str = r#"[null, true, 7, -7, -2147483649, 2147483647, 2147483648, 18446744073709551615, 1.5,
    "x", "2025-01-15T10:30:00+02:00", [], {}]"#;

/// The kinds of fields by their schemas, and which of these values they accept.
const KINDS: &str = r#"
[] | [null]
["string"] | ["x", "2025-01-15T10:30:00+02:00"]
["string","date-time"] | ["2025-01-15T10:30:00Z"]
["boolean"] | [true]
["null"] | [null]
["integer",0,4294967295] | [7, 2147483647, 2147483648]
["integer",-2147483648,2147483647] | [7, -7, 2147483647]
["integer",0,18446744073709551615] | [7, 2147483647, 2147483648, 18446744073709551615]
["number"] | [7, -7, -2147483649, 2147483647, 2147483648, 18446744073709551615, 1.5]
["array"] | [[]]
["object"] | [{}]"#;

/// Returns the values that a schema accepts: `VALUES`, or the words of its own.
fn accepted(schema: &Value) -> Vec<Value> {
    if let Some(either) = schema["anyOf"].as_array() {
        return either.iter().flat_map(accepted).collect();
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.clone();
    }
    if let Some(only) = schema.get("const") {
        return vec![only.clone()];
    }
    if schema["required"].get(0).is_some() {
        return Vec::new(); // the empty object lacks a field
    }
    let keys = ["type", "format", "minimum", "maximum"];
    let kind: Vec<&Value> = keys.iter().filter_map(|key| schema.get(key)).collect();
    let kind = json!(kind).to_string();
    let row = rows(KINDS).find(|[known, _]| *known == kind);
    json_of(row.unwrap_or_else(|| panic!("no row for {kind}"))[1])
}

/// Returns a value that the schema accepts, with all optional fields.
fn sample(schema: &Value) -> Value {
    if let Some(either) = schema.get("anyOf") {
        return sample(&either[0]);
    }
    if let Some(items) = schema.get("items") {
        return json!([sample(items)]);
    }
    if schema["type"] != "object" {
        return accepted(schema)[0].clone();
    }
    let named = schema["properties"].as_object().into_iter().flatten();
    let any = schema.get("additionalProperties");
    let any = any.map(|schema| ("P01".to_string(), sample(schema)));
    let named = named.map(|(key, schema)| (key.clone(), sample(schema)));
    Value::Object(named.chain(any).collect())
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

/// Removes each field of a valid sample, and gives it each of `VALUES`. The reader must refuse
/// what the schema refuses, with the right code and the exact path, and accept the rest. Returns the
/// number of fields.
fn agree(name: &str, schema: &Value, is_strict: bool, read: &dyn Fn(&Value) -> String) -> usize {
    let valid = sample(schema);
    assert_eq!(read(&valid), "ok", "{valid}");
    let mut found = fields(schema, &valid, "", false);
    found.retain(|field| !field.path.starts_with("query_params."));
    for field in &found {
        let (path, schema) = (&*field.path, &field.schema);
        let is_optional = field.required == Some(false);
        let counts_as_absent = field.informs && !is_strict;
        let is_read = !UNREAD.contains(&path);
        let absent = field.required.map(|_| None);
        let values = json_of::<Vec<Value>>(VALUES)
            .into_iter()
            .filter(|_| is_read)
            .map(Some);
        for value in absent.into_iter().chain(values) {
            let mut changed = valid.clone();
            let is_fine = match &value {
                None => {
                    set(&mut changed, &pointer(path), Value::Null);
                    is_optional || schema.get("anyOf").is_some()
                }
                Some(value) => {
                    *changed.pointer_mut(&pointer(path)).unwrap() = value.clone();
                    is_optional && value.is_null() || accepted(schema).contains(value)
                }
            };
            let actual = read(&changed);
            let row = format!("{name} {path}: {value:?}: {actual}");
            if counts_as_absent || is_fine {
                assert_eq!(actual, "ok", "{row}");
                continue;
            }
            let value = value.unwrap_or_default();
            let code = match value.is_string() {
                true if path == "protocol" => "E018",
                true if schema["format"] == "date-time" => "E021",
                _ => "E003",
            };
            let rest = actual.strip_prefix(&format!("{code} {path}"));
            let lacks = |rest: &str| value.is_object() && rest.starts_with('.');
            assert!(
                rest.is_some_and(|rest| rest.is_empty() || lacks(rest)),
                "{row}"
            );
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

/// Returns the last line that `write` has written into a log. A program that was killed has left the
/// beginning of a line in it.
fn logged(write: impl FnOnce(&Client)) -> Value {
    let test = TestLeague::new("");
    let path = test.folder.join("P01.log.jsonl");
    fs::write(&path, r#"{"time"#).unwrap();
    let log = log::Log::new(&test.folder, "P01");
    log.open("P01");
    write(&Client::new("P01", Arc::new(log)));
    json_lines(&path).pop().unwrap()
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
            let (word, texts) = command.split_once(' ').unwrap();
            for_each(texts, |text| {
                let quoted = serde_json::from_str(text).ok().filter(|_| word != "log");
                let text = quoted.unwrap_or(text.to_string()).replace("TOKEN", TOKEN);
                result_of(word, &text.replace("LONG", &"x".repeat(9_000)))
            })
        }
    });
    assert_eq!(
        Endpoint::parse("https://localhost/mcp").is_ok(),
        cfg!(feature = "https")
    );
    let [one, other] = ["http://localhost:8101/mcp", "http://localhost:8102/mcp"];
    assert!(!Endpoint::is_same_address(one, other));
}
