//! The Model Context Protocol: the same handlers as `rpc.rs`, seen as tools. A second view, not a second system: a
//! call of a tool comes back from here as an ordinary call.
//!
//! Stateless, JSON replies only, in both eras: with the `initialize` handshake (2024-11-05 to 2025-11-25) and without
//! it (2026-07-28), which has stricter rules for headers and statuses. Left out: sessions, streams, batches, resources
//! and prompts. See "MCP" in `protocol.md`.

use crate::net::agent::{Agent, Denial, Toolbox};
use crate::net::answer::Answer;
use crate::net::http::{OK, Visitor};
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
/// What else a stateless client must say of itself; its name is optional.
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
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
    /// Nothing more: this is the result.
    Done(Value),
    /// To call a tool, with these arguments.
    Call(String, Value),
}

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

    /// Checks what a request must look like: its version is one that we speak; and in the stateless era `_meta` says
    /// who calls, and the headers say the same as the body.
    pub fn check(&self) -> Result<(), Denial> {
        let version = self.params["_meta"][VERSION_KEY].as_str();
        let header = self.from.header("Mcp-Protocol-Version");
        if let (Some(version), Some(header)) = (version, header)
            && version != header
        {
            return Err(differs("Mcp-Protocol-Version", Some(header), version));
        }
        if let Some(version) = version.or(header)
            && !supported().contains(&version)
        {
            let data = json!({"supported": supported(), "requested": version});
            let words = format!("Unsupported protocol version: {}", cut(version, 60));
            return Err(Denial::Rpc(-32022, words, Some(data)));
        }
        if !self.is_stateless {
            return Ok(());
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
            let came = self.from.header(header).map(decoded);
            match wanted {
                Some(wanted) if came.as_deref() != Some(wanted) => {
                    return Err(differs(header, came.as_deref(), wanted));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Finds out what is asked for.
    pub fn asked(&self, agent: &dyn Agent, sender: &str) -> Result<Asked, Denial> {
        let result = match self.method {
            "server/discover" => {
                let discovered = json!({
                    "supportedVersions": supported(),
                    "capabilities": {"tools": {}},
                    "instructions": agent.toolbox().instructions,
                });
                signed(sender, lasting(discovered))
            }
            "tools/list" => self.signed(sender, lasting(json!({"tools": listed(agent)}))),
            "tools/call" => return self.called(agent),
            "initialize" if !self.is_stateless => json!({
                "protocolVersion": self.agreed(),
                "capabilities": {"tools": {}},
                "serverInfo": server_info(sender),
                "instructions": agent.toolbox().instructions,
            }),
            "ping" if !self.is_stateless => json!({}),
            name if name.starts_with("notifications/") => self.signed(sender, json!({})),
            name => return Err(Denial::not_taken(agent.kind(), &cut(name, 60))),
        };
        Ok(Asked::Done(result))
    }

    /// The status of a denied request: 200, but for what the stateless era wants otherwise.
    pub fn status(&self, denial: &Denial) -> &'static str {
        match denial {
            Denial::Rpc(-32601, ..) if self.is_stateless => "404 Not Found",
            _ => OK,
        }
    }

    /// The version that both speak, or our newest with a handshake.
    fn agreed(&self) -> &str {
        match self.params["protocolVersion"].as_str() {
            Some(version) if HANDSHAKE.contains(&version) => version,
            _ => HANDSHAKE[0],
        }
    }

    fn called(&self, agent: &dyn Agent) -> Result<Asked, Denial> {
        let invalid = |fault| Denial::rpc(-32602, format!("Invalid params: {fault}"));
        let ToolCall { name, arguments } = ToolCall::read(self.params).map_err(invalid)?;
        let is_message = Entry::served_by(agent.kind()).any(|it| it.tool == name);
        if !is_message && agent.toolbox().find(&name).is_none() {
            let words = format!("Unknown tool: {}", cut(&name, 60));
            return Err(Denial::rpc(-32602, words));
        }
        Ok(Asked::Call(name, arguments.unwrap_or_default().into()))
    }

    /// What a tool call is answered. A tool refuses as a tool: with the reason in words, and `isError`.
    pub fn tool_result(
        &self,
        agent: &dyn Agent,
        sender: &str,
        name: &str,
        answer: Result<Answer, Denial>,
    ) -> Value {
        let (refused, result) = match answer {
            Ok(Answer { result, refused }) => {
                (refused.or_else(|| unwilling(&result)), Some(result))
            }
            Err(Denial::Rpc(_, message, _) | Denial::Broken(message)) => (Some(message), None),
            Err(Denial::Refused(refusal)) => (Some(refusal.to_string()), None),
        };
        let is_error = refused.is_some();
        let text = match (refused, &result) {
            (Some(words), _) => words,
            (None, Some(result)) => result.to_string(),
            (None, None) => String::new(),
        };
        let mut whole = json!({
            "content": [{"type": "text", "text": text}],
            "isError": is_error,
            "resultType": "complete",
        });
        // A refusal is not what an output schema promises, and some clients hold it against that.
        let promises = agent.toolbox().find(name).is_some();
        if let Some(result) = result.filter(|_| !is_error || !promises) {
            whole["structuredContent"] = result;
        }
        self.signed(sender, whole)
    }

    /// A result that says whose it is, as the stateless era wants it.
    fn signed(&self, sender: &str, result: Value) -> Value {
        if self.is_stateless {
            signed(sender, result)
        } else {
            result
        }
    }
}

fn supported() -> Vec<&'static str> {
    [&[STATELESS], HANDSHAKE].concat()
}

fn differs(header: &str, came: Option<&str>, wanted: &str) -> Denial {
    let came = came.map_or("nothing".into(), |came| format!("{:?}", cut(came, 60)));
    let words = format!("header {header}: got {came}, but the body says {wanted:?}");
    Denial::rpc(-32020, words)
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

/// A complete answer that is not to be cached.
fn lasting(mut answer: Value) -> Value {
    answer["resultType"] = "complete".into();
    answer["ttlMs"] = 0.into();
    answer["cacheScope"] = "private".into();
    answer
}

fn signed(sender: &str, mut result: Value) -> Value {
    result["_meta"] = json!({SERVER_KEY: server_info(sender)});
    result
}

/// The tools of an agent as a client sees them: its messages, and those of its toolbox.
fn listed(agent: &dyn Agent) -> Vec<Value> {
    let Toolbox {
        lists_messages,
        tools,
        ..
    } = agent.toolbox();
    let messages = Entry::served_by(agent.kind()).filter(|_| lists_messages);
    let mut listed: Vec<Value> = messages.map(described).collect();
    for tool in &tools {
        let mut one = entry(tool.name, tool.says, (tool.arguments)(), tool.only_shows);
        one["outputSchema"] = (tool.answer)();
        listed.push(one);
    }
    listed
}

/// A message as a tool: what we supply need not come.
fn described(message: &Entry) -> Value {
    let mut schema = message.schema();
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !SUPPLIED.iter().any(|supplied| name == supplied));
    }
    entry(message.tool, message.says, schema, false)
}

fn entry(name: &str, says: &str, arguments: Value, only_shows: bool) -> Value {
    let words = name.replace('_', " ");
    json!({
        "name": name,
        "title": words[..1].to_uppercase() + &words[1..],
        "description": says,
        "inputSchema": arguments,
        "annotations": {
            "readOnlyHint": only_shows,
            "destructiveHint": name == "control_league",
            "openWorldHint": false,
        },
    })
}

/// Why a message that is no error grants nothing all the same: a rejected registration, a query that failed.
fn unwilling(result: &Value) -> Option<String> {
    if result["status"] == "REJECTED" {
        let reason = result["reason"].as_str().unwrap_or_default();
        return Some(format!("REJECTED: {reason}"));
    }
    if result["success"] != false {
        return None;
    }
    let text = |key: &str| result["error"][key].as_str().unwrap_or_default();
    let (code, name) = (text("error_code"), text("error_name"));
    Some(format!("{code} {name}: {}", text("error_description")))
}
