//! The Model Context Protocol: the same handlers as `rpc.rs`, seen as tools. A second view, not a second system: a
//! call of a tool comes back from here as an ordinary call. Stateless, JSON replies only, in both eras: with the
//! `initialize` handshake (2024-11-05 to 2025-11-25) and without (2026-07-28), which has stricter rules for headers and
//! statuses. Left out: sessions, streams, batches, resources and prompts.

use crate::net::agent::{Agent, Answer, Denial};
use crate::net::http::Call;
use crate::object;
use crate::protocol::{Entry, Packet};
use crate::wire::{Wire, cut};
use serde_json::{Value, json};

/// The version without a handshake.
const STATELESS: &str = "2026-07-28";
/// The versions with one, newest first.
const HANDSHAKE: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Where a stateless client says which version it speaks.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// What else it says of itself.
const CLIENT_KEYS: [&str; 2] = [
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];
/// Where a stateless server says who it is.
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// Fields that a tool call need not bring: the tool implies them, or we know them.
const SUPPLIED: [&str; 6] = [
    "protocol",
    "message_type",
    "sender",
    "timestamp",
    "conversation_id",
    "league_id",
];

/// What a request of MCP asks for.
pub enum Asked {
    /// This is the result.
    Done(Value),
    /// A tool, with its arguments.
    Call(&'static Entry, Value),
}

object! {
    /// The parameters of `tools/call`.
    ToolCall { name: String, ; optional arguments: Packet, }
}

/// Finds out what a request of MCP asks for.
pub fn asked(
    agent: &dyn Agent,
    sender: &str,
    method: &str,
    params: &Value,
    call: &Call,
) -> Result<Asked, Denial> {
    check(method, params, call)?;
    let stateless = is_stateless(params, call);
    let result = match method {
        "server/discover" => lasting(json!({
            "supportedVersions": supported(),
            "capabilities": {"tools": {}},
            "instructions": agent.instructions(),
        })),
        "tools/list" => lasting(
            json!({"tools": served(agent).filter(|entry| agent.shows(entry)).map(|entry| described(agent, entry)).collect::<Vec<_>>()}),
        ),
        "tools/call" => return called(agent, params),
        "initialize" if !stateless => initialize(agent, sender, params),
        "ping" if !stateless => json!({}),
        _ if method.starts_with("notifications/") => json!({}), // taken note of
        _ => {
            return Err(Denial::rpc(
                -32601,
                format!("Method not found: {}", cut(method, 60)),
            ));
        }
    };
    let named = stateless || method == "server/discover";
    Ok(Asked::Done(if named {
        signed(sender, result)
    } else {
        result
    }))
}

/// The status of a failed request: 200, but for what the stateless era and unknown versions want otherwise.
pub fn status(denial: &Denial, method: &str, params: &Value, call: &Call) -> &'static str {
    match denial {
        _ if !params.is_object() => "200 OK",
        _ if check(method, params, call).is_err() => "400 Bad Request",
        Denial::Rpc(-32601, ..) if is_stateless(params, call) => "404 Not Found",
        _ => "200 OK",
    }
}

/// Whether a request is one of MCP; else it is a league request.
pub fn is_mcp(method: &str, params: &Value, call: &Call) -> bool {
    matches!(
        method,
        "initialize" | "ping" | "server/discover" | "tools/list" | "tools/call"
    ) || method.starts_with("notifications/")
        || is_stateless(params, call)
}

fn supported() -> Vec<&'static str> {
    [&[STATELESS], HANDSHAKE].concat()
}

fn is_stateless(params: &Value, call: &Call) -> bool {
    params["_meta"][VERSION_KEY] == STATELESS
        || call.header("Mcp-Protocol-Version") == Some(STATELESS)
}

/// What a call of MCP must look like: a version that we speak; and in the stateless era `_meta` says who calls, and
/// the headers say the same as the body.
fn check(method: &str, params: &Value, call: &Call) -> Result<(), Denial> {
    let version = params["_meta"][VERSION_KEY].as_str();
    let header = call.header("Mcp-Protocol-Version");
    let stateless = is_stateless(params, call);
    let differ = |header: &str, came: Option<String>, wanted: &str| {
        Denial::rpc(
            -32020,
            format!("header {header}: got {came:?}, but the body says {wanted:?}"),
        )
    };
    match (version, header) {
        _ if !is_mcp(method, params, call) => return Ok(()),
        (Some(version), Some(header)) if version != header => {
            return Err(differ("Mcp-Protocol-Version", Some(header.into()), version));
        }
        (Some(version), _) | (None, Some(version)) if !supported().contains(&version) => {
            let data = json!({"supported": supported(), "requested": version});
            return Err(Denial::Rpc(
                -32022,
                format!("Unsupported protocol version: {version}"),
                Some(data),
            ));
        }
        _ if !stateless => return Ok(()),
        _ => {}
    }
    let missing = |key: &&str| params["_meta"][*key].is_null();
    if let Some(key) = [VERSION_KEY]
        .iter()
        .chain(&CLIENT_KEYS)
        .find(|key| missing(key))
    {
        return Err(Denial::rpc(-32602, format!("_meta: {key} is missing")));
    }
    let name = params["name"].as_str().filter(|_| method == "tools/call");
    for (header, wanted) in [
        ("Mcp-Protocol-Version", version),
        ("Mcp-Method", Some(method)),
        ("Mcp-Name", name),
    ] {
        let came = call.header(header).map(decoded);
        if let Some(wanted) = wanted.filter(|wanted| came.as_deref() != Some(wanted)) {
            return Err(differ(header, came, wanted));
        }
    }
    Ok(())
}

/// A header's value; `=?base64?…?=` is what HTTP cannot carry as it is.
fn decoded(value: &str) -> String {
    let Some(coded) = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    else {
        return value.into();
    };
    let (mut bits, mut held, mut bytes) = (0u32, 0, Vec::new());
    for letter in coded.bytes().filter(|letter| *letter != b'=') {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return value.into(),
        };
        (bits, held) = (bits << 6 | u32::from(six), held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| value.into())
}

fn server_info(sender: &str) -> Value {
    json!({"name": sender, "version": env!("CARGO_PKG_VERSION")})
}

fn initialize(agent: &dyn Agent, sender: &str, params: &Value) -> Value {
    let wanted = params["protocolVersion"].as_str();
    let version = wanted
        .filter(|version| HANDSHAKE.contains(version))
        .unwrap_or(HANDSHAKE[0]);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": server_info(sender),
        "instructions": agent.instructions(),
    })
}

/// A complete answer that is not to be cached.
fn lasting(mut answer: Value) -> Value {
    answer["resultType"] = "complete".into();
    answer["ttlMs"] = 0.into();
    answer["cacheScope"] = "private".into();
    answer
}

/// An answer that says whose it is, as the stateless era wants it.
pub fn signed_in_its_era(sender: &str, answer: Value, params: &Value, call: &Call) -> Value {
    if is_stateless(params, call) {
        signed(sender, answer)
    } else {
        answer
    }
}

fn signed(sender: &str, mut answer: Value) -> Value {
    answer["_meta"] = json!({SERVER_KEY: server_info(sender)});
    answer
}

fn served(agent: &dyn Agent) -> impl Iterator<Item = &'static Entry> {
    Entry::served_by(agent.kind())
        .filter(|entry| entry.as_tool.is_none_or(|tool| agent.serves(tool)))
}

/// A tool as a client sees it.
fn described(agent: &dyn Agent, entry: &Entry) -> Value {
    let mut schema = entry.schema();
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !SUPPLIED.iter().any(|supplied| name == supplied));
    }
    let reads =
        entry.tool.starts_with("get_") || matches!(entry.tool, "create_schedule" | "next_turn");
    let mut tool = json!({
        "name": entry.tool,
        "title": entry.title(),
        "description": entry.says,
        "inputSchema": schema,
        "annotations": {"readOnlyHint": reads},
    });
    if let Some(answer) = answer_schema(agent, entry) {
        tool["outputSchema"] = answer;
    }
    tool
}

fn answer_schema(agent: &dyn Agent, entry: &Entry) -> Option<Value> {
    entry.as_tool.and_then(|tool| agent.answer_schema(tool))
}

fn called(agent: &dyn Agent, params: &Value) -> Result<Asked, Denial> {
    let invalid = |fault| Denial::rpc(-32602, format!("Invalid params: {fault}"));
    let ToolCall { name, arguments } = ToolCall::read(params).map_err(invalid)?;
    let entry = served(agent).find(|entry| entry.tool == name);
    let entry =
        entry.ok_or_else(|| Denial::rpc(-32602, format!("Unknown tool: {}", cut(&name, 60))))?;
    Ok(Asked::Call(
        entry,
        Value::Object(arguments.unwrap_or_default()),
    ))
}

/// What a call is answered. A tool refuses as a tool: with the reason in words, and `isError`.
pub fn tool_result(agent: &dyn Agent, entry: &Entry, answer: Result<Answer, Denial>) -> Value {
    let (words, result) = match answer {
        Ok(Answer { result, refused }) => (refused.or_else(|| unwilling(&result)), Some(result)),
        Err(Denial::Rpc(_, message, _) | Denial::Broken(message)) => (Some(message), None),
        Err(Denial::Refused(refusal)) => (Some(refusal.to_string()), None),
    };
    let is_error = words.is_some();
    let text = words.unwrap_or_else(|| result.as_ref().map(Value::to_string).unwrap_or_default());
    let mut whole = json!({
        "content": [{"type": "text", "text": text}],
        "isError": is_error,
        "resultType": "complete",
    });
    // A refusal is not what an output schema promises, and some clients hold it against that.
    if let Some(result) = result.filter(|_| !is_error || answer_schema(agent, entry).is_none()) {
        whole["structuredContent"] = result;
    }
    whole
}

/// Why a message that is no error grants nothing all the same: a rejected registration, a query that failed.
fn unwilling(result: &Value) -> Option<String> {
    if result["status"] == "REJECTED" {
        return Some(format!(
            "REJECTED: {}",
            result["reason"].as_str().unwrap_or_default()
        ));
    }
    let error = (result["success"] == false).then(|| &result["error"])?;
    let text = |key: &str| error[key].as_str().unwrap_or_default();
    Some(format!(
        "{} {}: {}",
        text("error_code"),
        text("error_name"),
        text("error_description")
    ))
}
