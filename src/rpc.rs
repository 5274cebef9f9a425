//! JSON-RPC 2.0 in (R1): from the bytes of a request to its method and parameters, and from a result to bytes.
//!
//! Read next: `dispatch.rs`, which finds the agent's handler; `mcp.rs`, the same handlers as tools; `voice.rs`, the
//! way out.

use crate::{
    dispatch::{Agent, RpcError, run},
    http::{self, Call, Reply},
    log::Level,
    mcp,
    wire::Fault,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// An agent as the HTTP server sees it.
pub struct Served(pub Arc<dyn Agent>);

impl http::Service for Served {
    fn call(&self, call: Call) -> Reply {
        if call.origin.as_ref().is_some_and(|origin| !self.0.voice().is_own_host(origin)) {
            return Reply("403 Forbidden", String::new());
        }
        match answer(&*self.0, &call) {
            Some(value) => Reply("200 OK", value.to_string()),
            None => Reply("202 Accepted", String::new()),
        }
    }

    fn health(&self) -> String {
        self.0.health().to_string()
    }

    fn fault(&self, what: &str) {
        self.0.voice().log.orchestrator(Level::Error, "fault", what);
    }
}

fn failure(id: Value, error: RpcError) -> Value {
    let mut body = json!({"code": error.code, "message": error.message});
    if let Some(data) = error.data {
        body["data"] = data;
    }
    json!({"jsonrpc": "2.0", "error": body, "id": id})
}

/// Answers one body; nothing for a notification. A bare league message is answered bare.
fn answer(agent: &dyn Agent, call: &Call) -> Option<Value> {
    let invalid = |id: Value, what: &str| Some(failure(id, RpcError::new(-32600, format!("Invalid Request: {what}"))));
    let request: Value = match serde_json::from_slice(&call.body) {
        Ok(request) => request,
        Err(error) => {
            return Some(failure(Value::Null, RpcError::new(-32700, format!("Parse error: {error}"))));
        }
    };
    let Value::Object(request) = request else {
        return invalid(Value::Null, "must be one object; batches are not supported");
    };
    if !request.contains_key("jsonrpc") && !request.contains_key("method") && request.contains_key("message_type") {
        return Some(match run(agent, "", &request, call.peer) {
            Ok(answer) => answer.result,
            Err(error) => failure(Value::Null, error),
        });
    }
    let id = request.get("id").cloned();
    let echoed = id.clone().filter(|id| id.is_number() || id.is_string()).unwrap_or(Value::Null);
    if id.as_ref().is_some_and(|id| !(id.is_number() || id.is_string() || id.is_null())) {
        return invalid(echoed, "id must be an integer or a string");
    }
    if request.get("jsonrpc") != Some(&json!("2.0")) {
        return invalid(echoed, "jsonrpc must be \"2.0\"");
    }
    let Some(method) = request.get("method").and_then(Value::as_str).filter(|method| !method.is_empty()) else {
        return invalid(echoed, "method must be a string, and not empty");
    };
    let outcome = match request.get("params").unwrap_or(&json!({})) {
        Value::Object(params) => mcp::answer(agent, method, params, call)
            .unwrap_or_else(|| run(agent, method, params, call.peer).map(|answer| answer.result)),
        other => Err(RpcError::new(-32602, Fault::new(other, "an object").under("params").to_string())),
    };
    id?; // a notification: done, not answered
    Some(match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "result": result, "id": echoed}),
        Err(error) => failure(echoed, error),
    })
}
