//! The Model Context Protocol (R13): the same handlers as `rpc.rs`, seen as tools. A second view, not a second
//! system: `tools/call` ends in `dispatch::run` like every direct call. Stateless, JSON replies only, in both eras:
//! with the `initialize` handshake (2024-11-05 to 2025-11-25) and without (2026-07-28).

use crate::{
    dispatch::{self, Agent, RpcError},
    http::Call,
    protocol::{Entry, Packet},
    wire,
};
use serde_json::{Value, json};

/// The version without a handshake.
const STATELESS: &str = "2026-07-28";
/// The versions with one, newest first.
const HANDSHAKE: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Where a stateless client says which version it speaks.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// Where a stateless server says who it is.
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// Answers a method of the Model Context Protocol; `None` for every other method.
pub fn answer(agent: &dyn Agent, method: &str, params: &Packet, call: &Call) -> Option<Result<Value, RpcError>> {
    let ours = matches!(method, "initialize" | "ping" | "server/discover" | "tools/list" | "tools/call");
    if !ours && !method.starts_with("notifications/") {
        return None;
    }
    let stated = params.get("_meta").and_then(|meta| meta.get(VERSION_KEY)).and_then(Value::as_str);
    let requested = stated.or(call.mcp_version.as_deref());
    if let Some(unknown) = requested.filter(|version| !supported().contains(version)) {
        let data = Some(json!({"supported": supported(), "requested": unknown}));
        let message = format!("Unsupported protocol version: {unknown}");
        return Some(Err(RpcError { code: -32022, message, data }));
    }
    Some(match method {
        "initialize" => Ok(initialize(agent, params)),
        "server/discover" => Ok(discover(agent)),
        "tools/list" => Ok(lasting(json!({"tools": tools(agent)}))),
        "tools/call" => call_tool(agent, params, call),
        "ping" => {
            if let Some(token) = params.get("auth_token").and_then(Value::as_str) {
                agent.pinged(token);
            }
            Ok(json!({}))
        }
        _ => Ok(json!({})), // notifications are taken note of
    })
}

fn supported() -> Vec<&'static str> {
    [&[STATELESS], HANDSHAKE].concat()
}

fn server_info(agent: &dyn Agent) -> Value {
    json!({"name": agent.voice().sender(), "version": env!("CARGO_PKG_VERSION")})
}

fn initialize(agent: &dyn Agent, params: &Packet) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let version = wanted.filter(|version| HANDSHAKE.contains(version)).unwrap_or(HANDSHAKE[0]);
    json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server_info(agent)})
}

fn discover(agent: &dyn Agent) -> Value {
    lasting(json!({
        "supportedVersions": supported(),
        "capabilities": {"tools": {}},
        "_meta": {SERVER_KEY: server_info(agent)},
    }))
}

/// A complete answer that is not to be cached.
fn lasting(mut answer: Value) -> Value {
    answer["resultType"] = "complete".into();
    answer["ttlMs"] = 0.into();
    answer["cacheScope"] = "private".into();
    answer
}

fn tools(agent: &dyn Agent) -> Vec<Value> {
    let tool = |entry: &Entry| json!({"name": entry.tool, "description": entry.says, "inputSchema": entry.schema()});
    Entry::served_by(agent.kind()).map(tool).collect()
}

fn call_tool(agent: &dyn Agent, params: &Packet, call: &Call) -> Result<Value, RpcError> {
    let invalid = |fault: wire::Fault| RpcError::new(-32602, format!("Invalid params: {fault}"));
    let name: String = wire::field(params, "name").map_err(invalid)?;
    let arguments: Packet = wire::optional(params, "arguments").map_err(invalid)?.unwrap_or_default();
    if !Entry::served_by(agent.kind()).any(|entry| entry.tool == name) {
        return Err(RpcError::new(-32602, format!("Unknown tool: {name}")));
    }
    let answer = dispatch::run(agent, &name, &arguments, call.peer)?;
    Ok(json!({
        "content": [{"type": "text", "text": answer.result.to_string()}],
        "structuredContent": answer.result,
        "isError": answer.is_error,
        "resultType": "complete",
    }))
}
