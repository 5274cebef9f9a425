//! The Model Context Protocol: the handlers of `rpc.rs`, offered as tools.
//!
//! Stateless, JSON replies only, in both eras: with the `initialize` handshake (2024-11-05 to
//! 2025-11-25) and without it (2026-07-28), which has stricter rules for headers and statuses. Left
//! out: sessions, streams, batches, resources and prompts. See "MCP" in `protocol.md`.

use super::agent::{Agent, HandlerError, JsonRpcError};
use super::http::HttpRequest;
use crate::json::decode;
use crate::protocol::{DEFAULTED_FIELDS, GameError, JsonObject, LeagueError, MessageSpec};
use crate::values::truncate;
use serde::Deserialize;
use serde_json::{Value, json};

/// The versions, newest first. All but the first have a handshake.
const VERSIONS: [&str; 5] = [
    LATEST,
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
];
/// The version without a handshake.
const LATEST: &str = "2026-07-28";
/// The field of `_meta` with the version of a stateless client.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// The other field of `_meta` that a stateless client must send.
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// The field of `_meta` with the name of a stateless server.
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The parameters of `tools/call`.
#[derive(Deserialize)]
struct ToolCall {
    name: String,
    arguments: Option<JsonObject>,
}

/// A request that may be one of this protocol.
pub struct McpRequest<'a> {
    /// The JSON-RPC method.
    pub method: &'a str,
    /// Its parameters, an object.
    pub params: &'a Value,
    /// The HTTP request, for its headers.
    pub http: &'a HttpRequest<'a>,
}

impl McpRequest<'_> {
    /// Returns true if the request is of this protocol; else it is a league request.
    pub fn is_mcp(&self) -> bool {
        match self.method {
            "initialize" | "ping" | "server/discover" | "tools/list" | "tools/call" => true,
            method => self.is_latest() || method.starts_with("notifications/"),
        }
    }

    /// Returns true if the request is of the era without a handshake.
    fn is_latest(&self) -> bool {
        self.params["_meta"][VERSION_KEY] == LATEST
            || self.http.header("Mcp-Protocol-Version") == Some(LATEST)
    }
}

/// Answers a request. `call_tool` runs a tool of the agent.
pub fn answer<A: Agent>(
    request: &McpRequest,
    agent: &A,
    name: &str,
    call_tool: impl FnOnce(&str, Value) -> Result<Value, HandlerError>,
) -> Result<Value, HandlerError> {
    let McpRequest { method, params, .. } = *request;
    let is_latest = request.is_latest();
    let checked = if is_latest {
        check_latest(request)
    } else {
        check_mcp_version(request)
    };
    checked.map_err(|error| with_status(error, "400 Bad Request"))?;

    // Run the method.
    let server = json!({"name": name, "version": env!("CARGO_PKG_VERSION")});
    let mut result = match method {
        "server/discover" => forbid_caching(json!({
            "supportedVersions": VERSIONS,
            "capabilities": {"tools": {}},
            "instructions": agent.toolbox().instructions,
        })),
        "tools/list" => forbid_caching(json!({"tools": list_tools(agent)})),
        "tools/call" => tool_result(params, agent, call_tool)?,
        "initialize" if !is_latest => json!({
            "protocolVersion": handshake_version(params),
            "capabilities": {"tools": {}},
            "serverInfo": server,
            "instructions": agent.toolbox().instructions,
        }),
        "ping" if !is_latest => {
            agent.on_ping(params["auth_token"].as_str());
            json!({})
        }
        name if name.starts_with("notifications/") => json!({}),
        name => {
            let error = HandlerError::not_found(A::KIND, name).into_json_rpc();
            return Err(with_status(error, "404 Not Found"));
        }
    };

    // A stateless client is told in every result who answers.
    if is_latest || method == "server/discover" {
        result["_meta"] = json!({SERVER_KEY: server});
    }
    Ok(result)
}

/// Returns the version that a client asks for if it is known, else the newest with a handshake.
fn handshake_version(params: &Value) -> &'static str {
    let mut versions = VERSIONS[1..].iter();
    let known = versions.find(|version| params["protocolVersion"] == **version);
    known.unwrap_or(&VERSIONS[1])
}

fn with_status(error: JsonRpcError, status: &'static str) -> HandlerError {
    HandlerError::JsonRpc(JsonRpcError { status, ..error })
}

/// Checks that the version of a request, if it has one, is known.
fn check_mcp_version(request: &McpRequest) -> Result<(), JsonRpcError> {
    let version = request.params["_meta"][VERSION_KEY].as_str();
    match version.or(request.http.header("Mcp-Protocol-Version")) {
        Some(unknown) if !VERSIONS.contains(&unknown) => {
            let message = format!("Unsupported protocol version: {}", truncate(unknown, 60));
            Err(JsonRpcError {
                data: Some(json!({"supported": VERSIONS, "requested": unknown})),
                ..JsonRpcError::new(-32022, message)
            })
        }
        _ => Ok(()),
    }
}

/// Checks that a stateless request says who calls, and that its headers equal its body.
fn check_latest(request: &McpRequest) -> Result<(), JsonRpcError> {
    let McpRequest {
        method,
        params,
        http,
    } = *request;
    for key in [VERSION_KEY, CAPABILITIES_KEY] {
        if params["_meta"][key].is_null() {
            return Err(JsonRpcError::new(
                -32602,
                format!("_meta: {key} is missing"),
            ));
        }
    }

    let name = params["name"].as_str();
    let headers = [
        (
            "Mcp-Protocol-Version",
            params["_meta"][VERSION_KEY].as_str(),
        ),
        ("Mcp-Method", Some(method)),
        ("Mcp-Name", name.filter(|_| method == "tools/call")),
    ];
    for (header, expected) in headers {
        let Some(expected) = expected else {
            continue;
        };

        let received = http.header(header).unwrap_or_default();
        if received != expected {
            let received = truncate(received, 60);
            let message =
                format!("header {header}: got {received:?}, but the body says {expected:?}");
            return Err(JsonRpcError::new(-32020, message));
        }
    }
    Ok(())
}

/// Returns a result that is complete and must not be cached.
fn forbid_caching(mut result: Value) -> Value {
    result["resultType"] = "complete".into();
    result["ttlMs"] = 0.into();
    result["cacheScope"] = "private".into();
    result
}

/// Calls a tool. A refusal is a result with `isError`.
fn tool_result<A: Agent>(
    params: &Value,
    agent: &A,
    call_tool: impl FnOnce(&str, Value) -> Result<Value, HandlerError>,
) -> Result<Value, HandlerError> {
    let ToolCall { name, arguments } = decode::<ToolCall>(params)
        .map_err(|error| HandlerError::json_rpc(-32602, format!("Invalid params: {error}")))?;
    let is_message = MessageSpec::accepted_by(A::KIND).any(|entry| entry.method == name);
    if !is_message && agent.toolbox().find(&name).is_none() {
        let message = format!("Unknown tool: {}", truncate(&name, 60));
        return Err(HandlerError::json_rpc(-32602, message));
    }

    let (result, text, is_error) = match call_tool(&name, arguments.unwrap_or_default().into()) {
        Ok(result) => (result.clone(), result.to_string(), is_refusal(&result)),
        Err(error) => (Value::Null, error.into_json_rpc().message, true),
    };
    let mut answer = json!({
        "content": [{"type": "text", "text": text}],
        "isError": is_error,
        "resultType": "complete",
    });
    // A refusal does not match the output schema of a tool, and some clients check that.
    if !result.is_null() && (is_message || !is_error) {
        answer["structuredContent"] = result;
    }
    Ok(answer)
}

/// Returns true for a message that refuses, a failed query, or a rejected registration.
fn is_refusal(result: &Value) -> bool {
    let message_type = result["message_type"].as_str();
    matches!(message_type, Some(LeagueError::NAME | GameError::NAME))
        || result["success"] == false
        || result["status"] == "REJECTED"
}

/// Returns the tools of an agent: its messages, and the tools of its toolbox.
fn list_tools<A: Agent>(agent: &A) -> Vec<Value> {
    let toolbox = agent.toolbox();
    let mut list = Vec::new();
    if toolbox.lists_messages {
        for entry in MessageSpec::accepted_by(A::KIND) {
            let mut schema = entry.schema.clone();
            if let Some(required) = schema["required"].as_array_mut() {
                required.retain(|name| !DEFAULTED_FIELDS.iter().any(|field| name == field));
            }
            list.push(tool_entry(entry.method, entry.description, schema, false));
        }
    }

    for tool in toolbox.tools {
        let mut entry = tool_entry(
            tool.name,
            tool.description,
            (tool.input_schema)(),
            tool.read_only,
        );
        entry["outputSchema"] = (tool.output_schema)();
        list.push(entry);
    }
    list
}

fn tool_entry(name: &str, description: &str, mut schema: Value, read_only: bool) -> Value {
    describe_fields(&mut schema);
    let title = name.replace('_', " ");

    json!({
        "name": name,
        "title": title[..1].to_uppercase() + &title[1..],
        "description": description,
        "inputSchema": schema,
        "annotations": {
            "readOnlyHint": read_only,
            "destructiveHint": name == "control_league",
            "openWorldHint": false,
        },
    })
}

/// Adds the descriptions of `fields.md` to a schema.
fn describe_fields(schema: &mut Value) {
    for row in include_str!("../protocol/fields.md").lines() {
        let columns = row
            .strip_prefix("| `")
            .and_then(|row| row.split_once("` | "));
        let Some((name, description)) = columns else {
            continue;
        };

        if let Some(field) = schema.pointer_mut(&format!("/properties/{name}")) {
            field["description"] = description.trim_end_matches(" |").into();
        }
    }
}
