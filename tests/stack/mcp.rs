//! The Model Context Protocol on every agent, over HTTP: both generations of the protocol, the
//! descriptions of the tools, and tool calls, which reach the same handlers as direct calls.
//! `by_hand.rs` plays a league through tools.

use super::http::{self, Agents};
use super::support::fake::message_of_line;
use super::support::*;
use league::protocol::{AgentKind, MessageSpec};

/// The fields of the reply to a tool call that are the same in every run.
const SHOWN: &str =
    "/message_type /error_code /status /context/field /reason /standings/0/player_id
    /rounds/0/round_id /strategy";

/// The agents are in a lobby. OWN is the token of P01, and PEER an endpoint.
#[test]
fn mcp_golden() {
    let test = TestLeague::new("");
    let manager = test.manager("");
    let [referee, player] = ["REF01", "P01"].map(|id| test.agent(&manager, id, ""));
    referee.line(" is REF01");
    player.line(" is P01");
    let agents = [
        (AgentKind::Manager, manager.url()),
        (AgentKind::Referee, referee.url()),
        (AgentKind::Player, player.url()),
    ];
    let peer = FakeAgent::new(|request| valid_reply("P07", "odd", request));
    let token = test.data("agents/P01.json")["token"].take();

    golden::run_scripts("mcp", || {
        |command: &str| {
            let command = command.replace("OWN", text_of(&token));
            let output = run(&agents, &command.replace("PEER", &peer.url));
            let output = output.replace(text_of(&token), "OWN");
            output.replace(concat!('"', env!("CARGO_PKG_VERSION"), '"'), "OWN")
        }
    });
}

fn run(agents: &Agents, command: &str) -> String {
    let (name, rest) = command.split_once(": ").unwrap();
    let Some((kind, url)) = agents
        .iter()
        .find(|agent| agent.0.to_string().ends_with(name))
    else {
        return http::answers(agents, command);
    };
    match rest.split_once(' ').unwrap_or((rest, "")) {
        ("tools", _) => {
            let list = ask(url, "tools/list", json!({}))["tools"].take();
            let mut tools: Vec<String> = list_of(&list)
                .iter()
                .map(|tool| line(tool, *kind))
                .collect();
            tools.sort();
            tools.join("\n")
        }
        ("tool", calls) => http::for_each(calls, |called| compared(url, called)),
        _ => http::answers(agents, command),
    }
}

/// Returns a line about a tool: its hints, its type of output, and the arguments that a call must
/// have.
fn line(tool: &Value, kind: AgentKind) -> String {
    let name = text_of(&tool["name"]);
    for key in ["title", "description"] {
        let text = text_of(&tool[key]);
        assert!(text.len() > 8 && !text.contains('\n'), "{tool}");
    }
    let schema = &tool["inputSchema"];
    for (key, argument) in schema["properties"].as_object().into_iter().flatten() {
        assert!(argument["description"].is_string(), "{name}: {key}");
    }
    if !MessageSpec::accepted_by(kind).any(|spec| spec.method == name) {
        let page = include_str!("../../src/protocol.md");
        let kind = kind.to_string().replace("league_", "");
        check_contains(page, &format!("| `{name}` | {kind}"));
    }

    let mut line = format!("{name}:");
    for hint in ["readOnlyHint", "destructiveHint", "openWorldHint"] {
        match &tool["annotations"][hint] {
            Value::Bool(false) => {}
            value => line += &format!(" {hint} {value}"),
        }
    }
    line + &format!(
        " needs {}, returns {}",
        schema["required"], tool["outputSchema"]["type"]
    )
}

/// Calls a method directly and as a tool. Returns the reply, which must be the same.
fn compared(url: &str, called: &str) -> String {
    let (tool, words) = called.split_once(' ').unwrap();
    let arguments = match words.starts_with(char::is_lowercase) {
        true => message_of_line(words),
        false => json_of(&http::params(words)),
    };
    let direct = ask(url, tool, arguments.clone());
    let mut result = call_tool(url, tool, arguments);
    let [content, structured] = ["content", "structuredContent"].map(|key| result[key].take());
    let text = text_of(&content[0]["text"]);
    assert_eq!(content, json!([{"type": "text", "text": text}]), "{tool}");
    let start = match result["isError"] == true {
        true => "refused",
        false => "done",
    };
    assert_eq!(result["resultType"], "complete", "{called}");
    let reply: Value = serde_json::from_str(text).unwrap_or(json!({"reason": text}));
    let shown = http::fields(&reply, SHOWN);
    if structured.is_null() {
        return format!("{start} with a text only:{shown}");
    }
    assert_eq!(structured, reply, "{called}");
    assert_eq!(timeless(structured), timeless(direct), "{called}");
    format!("{start}:{shown}")
}

/// Returns a reply without its times, which differ from call to call. (The token does not: an agent
/// that shows its registration key keeps it.)
fn timeless(mut reply: Value) -> Value {
    for key in ["timestamp", "arrival_timestamp"] {
        reply.as_object_mut().and_then(|fields| fields.remove(key));
    }
    reply
}
