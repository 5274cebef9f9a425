//! The Model Context Protocol: the same handlers as `rpc.rs`, seen as tools. A second view, not a
//! second system: a call of a tool comes back from here as an ordinary call.
//!
//! Stateless, JSON replies only, in both eras: with the `initialize` handshake (2024-11-05 to
//! 2025-11-25) and without it (2026-07-28), which has stricter rules for headers and statuses. Left
//! out: sessions, streams, batches, resources and prompts. See "MCP" in `protocol.md`.

use crate::net::agent::{Agent, Denial};
use crate::net::http::{OK, Visitor};
use crate::object;
use crate::protocol::{Entry, GameError, LeagueError, Packet, QueryError, SUPPLIED};
use crate::wire::{Wire, cut};
use serde_json::{Value, json};

/// The versions that we speak, newest first. All but the first have a handshake.
const VERSIONS: &[&str] = &[
    STATELESS,
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
];
/// The version without a handshake.
const STATELESS: &str = "2026-07-28";
/// Where a stateless client says which version it speaks.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// What else a stateless client must say of itself; its name is optional.
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// Where a stateless server says who it is.
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

object! {
    /// The parameters of `tools/call`.
    ToolCall { name: String, ; optional arguments: Packet, }
}

/// A request of MCP.
pub struct Mcp<'a> {
    method: &'a str,
    params: &'a Value,
    from: &'a Visitor<'a>,
    /// Whether the request is of the era without a handshake.
    is_stateless: bool,
}

impl<'a> Mcp<'a> {
    /// The request, if it is one of MCP; else it is a league request.
    pub fn find(method: &'a str, params: &'a Value, from: &'a Visitor) -> Option<Mcp<'a>> {
        let is_stateless = params["_meta"][VERSION_KEY] == STATELESS
            || from.header("Mcp-Protocol-Version") == Some(STATELESS);
        let is_mcp = match method {
            "initialize" | "ping" | "server/discover" | "tools/list" | "tools/call" => true,
            _ => is_stateless || method.starts_with("notifications/"),
        };
        is_mcp.then_some(Mcp {
            method,
            params,
            from,
            is_stateless,
        })
    }

    /// Answers the request; `call` runs a tool by its name. A denial comes with the HTTP status
    /// that it wants.
    pub fn answer(
        &self,
        agent: &dyn Agent,
        sender: &str,
        call: impl FnOnce(&str, Value) -> Result<Value, Denial>,
    ) -> Result<Value, (&'static str, Denial)> {
        self.check().map_err(|denial| ("400 Bad Request", denial))?;
        let handshakes = &VERSIONS[1..];
        let is_asked = |known: &&&str| self.params["protocolVersion"] == **known;
        let server = json!({"name": sender, "version": env!("CARGO_PKG_VERSION")});
        let mut result = match self.method {
            "server/discover" => lasting(json!({
                "supportedVersions": VERSIONS,
                "capabilities": {"tools": {}},
                "instructions": agent.toolbox().instructions,
            })),
            "tools/list" => lasting(json!({"tools": listed(agent)})),
            "tools/call" => self.called(agent, call).map_err(|denial| (OK, denial))?,
            "initialize" if !self.is_stateless => json!({
                "protocolVersion": handshakes.iter().find(is_asked).unwrap_or(&handshakes[0]),
                "capabilities": {"tools": {}},
                "serverInfo": server,
                "instructions": agent.toolbox().instructions,
            }),
            "ping" if !self.is_stateless => json!({}),
            name if name.starts_with("notifications/") => json!({}),
            name => {
                let denial = Denial::not_taken(agent.kind(), name);
                return Err(("404 Not Found", denial));
            }
        };
        if self.is_stateless || self.method == "server/discover" {
            result["_meta"] = json!({SERVER_KEY: server});
        }
        Ok(result)
    }

    /// Checks what a request must look like: its version is one that we speak; and in the stateless
    /// era `_meta` says who calls, and the headers say the same as the body.
    fn check(&self) -> Result<(), Denial> {
        let version = self.params["_meta"][VERSION_KEY].as_str();
        if !self.is_stateless {
            let version = version.or(self.from.header("Mcp-Protocol-Version"));
            let Some(unknown) = version.filter(|it| !VERSIONS.contains(it)) else {
                return Ok(());
            };
            let words = format!("Unsupported protocol version: {}", cut(unknown, 60));
            let data = json!({"supported": VERSIONS, "requested": unknown});
            return Err(Denial::Rpc(-32022, words, Some(data)));
        }
        for key in [VERSION_KEY, CAPABILITIES_KEY] {
            if self.params["_meta"][key].is_null() {
                return Err(Denial::rpc(-32602, format!("_meta: {key} is missing")));
            }
        }
        let name = self.params["name"].as_str();
        let wanted = [
            ("Mcp-Protocol-Version", version),
            ("Mcp-Method", Some(self.method)),
            ("Mcp-Name", name.filter(|_| self.method == "tools/call")),
        ];
        for (header, wanted) in wanted {
            let came = self.from.header(header).unwrap_or_default();
            if let Some(wanted) = wanted
                && !says(came, wanted)
            {
                let came = cut(came, 60);
                let words = format!("header {header}: got {came:?}, but the body says {wanted:?}");
                return Err(Denial::rpc(-32020, words));
            }
        }
        Ok(())
    }

    /// Calls a tool. A tool refuses as a tool: with the reason in words, and `isError`.
    fn called(
        &self,
        agent: &dyn Agent,
        call: impl FnOnce(&str, Value) -> Result<Value, Denial>,
    ) -> Result<Value, Denial> {
        let invalid = |fault| Denial::rpc(-32602, format!("Invalid params: {fault}"));
        let ToolCall { name, arguments } = ToolCall::read(self.params).map_err(invalid)?;
        let is_message = Entry::served_by(agent.kind()).any(|it| it.tool == name);
        if !is_message && agent.toolbox().find(&name).is_none() {
            let words = format!("Unknown tool: {}", cut(&name, 60));
            return Err(Denial::rpc(-32602, words));
        }
        let (refused, result) = match call(&name, arguments.unwrap_or_default().into()) {
            Ok(result) => (unwilling(&result), result),
            Err(denial) => (Some(denial.error().1), Value::Null),
        };
        let is_error = refused.is_some();
        let text = refused.unwrap_or_else(|| result.to_string());
        let mut whole = json!({
            "content": [{"type": "text", "text": text}],
            "isError": is_error,
            "resultType": "complete",
        });
        // A refusal is not what an output schema promises, and some clients hold it against that.
        if !result.is_null() && (is_message || !is_error) {
            whole["structuredContent"] = result;
        }
        Ok(whole)
    }
}

/// Whether a header says this text. What HTTP cannot carry comes as `=?base64?…?=`.
fn says(header: &str, text: &str) -> bool {
    header == text || header == format!("=?base64?{}?=", base64(text))
}

fn base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut coded = String::new();
    for three in text.as_bytes().chunks(3) {
        let byte = |place: usize| three.get(place).map_or(0, |byte| usize::from(*byte));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[bits >> (18 - 6 * place) & 63];
            coded.push(if place > three.len() {
                '='
            } else {
                letter.into()
            });
        }
    }
    coded
}

/// A complete answer that is not to be cached.
fn lasting(mut answer: Value) -> Value {
    answer["resultType"] = "complete".into();
    answer["ttlMs"] = 0.into();
    answer["cacheScope"] = "private".into();
    answer
}

/// The tools of an agent as a client sees them: its messages, and those of its toolbox.
fn listed(agent: &dyn Agent) -> Vec<Value> {
    let toolbox = agent.toolbox();
    let messages = Entry::served_by(agent.kind()).filter(|_| toolbox.lists_messages);
    let tools = toolbox.tools.iter().map(|tool| {
        let mut one = entry(tool.name, tool.says, (tool.arguments)(), tool.only_shows);
        one["outputSchema"] = (tool.answer)();
        one
    });
    messages.map(described).chain(tools).collect()
}

/// A message as a tool: what we supply need not come.
fn described(message: &Entry) -> Value {
    let mut schema = message.schema();
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !SUPPLIED.iter().any(|supplied| name == supplied));
    }
    entry(message.tool, message.says, schema, false)
}

fn entry(name: &str, says: &str, mut schema: Value, only_shows: bool) -> Value {
    explain(&mut schema);
    let words = name.replace('_', " ");
    json!({
        "name": name,
        "title": words[..1].to_uppercase() + &words[1..],
        "description": says,
        "inputSchema": schema,
        "annotations": {
            "readOnlyHint": only_shows,
            "destructiveHint": name == "control_league",
            "openWorldHint": false,
        },
    })
}

/// Writes into the schema of a tool what each of its arguments is for.
fn explain(schema: &mut Value) {
    let rows = include_str!("../protocol/fields.md").lines();
    let rows = rows.filter_map(|row| row.strip_prefix("| `")?.split_once("` | "));
    for (name, says) in rows {
        if let Some(argument) = schema.pointer_mut(&format!("/properties/{name}")) {
            argument["description"] = says.trim_end_matches(" |").into();
        }
    }
}

/// Why a message grants nothing: it refuses, or a query has failed, or a registration is rejected.
fn unwilling(result: &Value) -> Option<String> {
    let name = result["message_type"].as_str();
    if let Some(LeagueError::NAME | GameError::NAME) = name {
        return Some(LeagueError::read(result).ok()?.explain());
    }
    if let Ok(error) = QueryError::read(&result["error"]) {
        let (code, name) = (error.error_code, error.error_name);
        return Some(format!("{code} {name}: {}", error.error_description));
    }
    let reason = result["reason"].as_str().unwrap_or_default();
    (result["status"] == "REJECTED").then(|| format!("REJECTED: {reason}"))
}
