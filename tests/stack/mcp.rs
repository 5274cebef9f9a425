//! The Model Context Protocol on every agent, over HTTP: both generations of the protocol, the
//! descriptions of the tools, and tool calls, which reach the same handlers as direct calls.
//! `by_hand.rs` plays a league through tools.

use super::support::fake::{LEAGUE, message_of_line};
use super::support::*;
use league::protocol::{AgentKind, MessageSpec};

const STATELESS: &str = "2026-07-28";
const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const KINDS: [AgentKind; 3] = [AgentKind::Manager, AgentKind::Referee, AgentKind::Player];

/// Starts a manager, a referee and a player in a lobby. Returns each with its name.
fn three(test: &TestLeague) -> [(TestProcess, &'static str); 3] {
    let manager = test.manager("");
    let [referee, player] = ["REF01", "P01"].map(|id| {
        let agent = test.agent(&manager, id, "");
        agent.line(&format!(" is {id}"));
        agent
    });
    [
        (manager, "league_manager"),
        (referee, "referee:REF01"),
        (player, "player:P01"),
    ]
}

/// Sends a request. Returns the status, and the body as JSON (null: none).
fn post(url: &str, headers: &str, request: &Value) -> (u16, Value) {
    let (status, body) = http("POST", url, headers, request.to_string().as_bytes());
    let body = if body.is_empty() { "null" } else { &body };
    (status, json_of(body))
}

/// A version in a header, a method, its parameters, and status and code of the reply. The version of
/// 1999 is unknown, and a league message needs no version.
const VERSIONS: &str = r#"
2025-06-18 | ping | {} | 200 null
1999-12-31 | ping | {} | 400 -32022
1999-12-31 | tools/list | {} | 400 -32022
- | tools/list | {"_meta": {"io.modelcontextprotocol/protocolVersion": "1999-12-31"}} | 400 -32022
1999-12-31 | nonsense | {} | 200 -32601
1999-12-31 | ROUND_COMPLETED | {"message_type": "ROUND_COMPLETED"} | 200 LEAGUE"#;

#[test]
fn mcp_with_handshake() {
    let test = TestLeague::new("");
    for (agent, name) in &three(&test) {
        let ask = |version: &str, method: &str, params: Value| {
            let header = match version {
                "-" => String::new(),
                version => format!("Mcp-Protocol-Version: {version}\r\n"),
            };
            let mut request = json!({"jsonrpc": "2.0", "method": method, "params": params});
            if !method.starts_with("notifications/") {
                request["id"] = json!("a");
            }
            post(&agent.url(), &header, &request)
        };
        let own = HANDSHAKE.map(|version| (version, version));
        for (asked, chosen) in own.into_iter().chain([("1999-12-31", HANDSHAKE[0])]) {
            let params = json!({"protocolVersion": asked, "capabilities": {}});
            let (status, mut reply) = ask("-", "initialize", params);
            let instructions = reply["result"]["instructions"].take();
            let length = text_of(&instructions).len();
            assert!((50..900).contains(&length), "{instructions}");
            let expected = json!({
                "protocolVersion": chosen, "capabilities": {"tools": {}}, "instructions": null,
                "serverInfo": {"name": name, "version": env!("CARGO_PKG_VERSION")},
            });
            assert_eq!((status, &reply["result"]), (200, &expected), "{asked}");
        }
        let pong = json!({"jsonrpc": "2.0", "result": {}, "id": "a"});
        assert_eq!(ask("-", "ping", json!({})).1, pong);
        for [version, method, params, expected] in rows(VERSIONS) {
            let (status, reply) = ask(version, method, json_of(params));
            let actual = format!("{status} {}", reply["error"]["code"]);
            let is_league = expected == "200 LEAGUE" && status == 200; // refused or not
            assert!(
                is_league || actual == expected,
                "{method} {version}: {reply}"
            );
            if expected.ends_with("-32022") {
                let supported = [&[STATELESS], &HANDSHAKE[..]].concat();
                let data = json!({"supported": supported, "requested": "1999-12-31"});
                assert_eq!(reply["error"]["data"], data);
            }
        }
        let initialized = ask(HANDSHAKE[0], "notifications/initialized", json!({}));
        assert_eq!(initialized, (202, Value::Null), "{name}");
    }
}

/// The method and its tool, the headers (`version method name`, `-`: none), the missing or wrong
/// field of `_meta` (`-`: none), and the reply.
const STATELESS_RULES: &str = "
server/discover | 2026-07-28 server/discover - | - | 200
tools/list | 2026-07-28 tools/list - | - | 200
tools/call TOOL | 2026-07-28 tools/call TOOL | - | 200
tools/call no_tool | 2026-07-28 tools/call no_tool | - | 200 -32602
tools/list | - tools/list - | - | 400 -32020
tools/list | 2025-11-25 tools/list - | - | 400 -32020
tools/list | 1999-12-31 tools/list - | - | 400 -32020
tools/list | 2026-07-28 tools/list - | other version | 400 -32020
tools/list | 2026-07-28 - - | - | 400 -32020
tools/list | 2026-07-28 TOOLS/LIST - | - | 400 -32020
tools/call TOOL | 2026-07-28 tools/list TOOL | - | 400 -32020
tools/call TOOL | 2026-07-28 tools/call - | - | 400 -32020
tools/call TOOL | 2026-07-28 tools/call other | - | 400 -32020
tools/list | 2026-07-28 tools/list - | protocolVersion | 400 -32602
tools/list | 2026-07-28 tools/list - | clientInfo | 200
tools/call TOOL | 2026-07-28 tools/call TOOL | clientCapabilities | 400 -32602
initialize | 2026-07-28 initialize - | - | 404 -32601
ping | 2026-07-28 ping - | - | 404 -32601
resources/list | 2026-07-28 resources/list - | - | 404 -32601
subscriptions/listen | 2026-07-28 subscriptions/listen - | - | 404 -32601";

#[test]
fn mcp_without_handshake() {
    let test = TestLeague::new("");
    for (agent, name) in &three(&test) {
        let tool = match *name {
            "league_manager" => "control_league",
            "referee:REF01" => "start_match",
            _ => "get_player_state",
        };
        let own = json!({"name": name, "version": env!("CARGO_PKG_VERSION")});
        let own = json!({"io.modelcontextprotocol/serverInfo": own});
        let rules = STATELESS_RULES.replace("TOOL ", &format!("{tool} "));
        for [asked, headers, fault, expected] in rows(&rules) {
            let (method, called) = asked.split_once(' ').unwrap_or((asked, ""));
            let is_other = fault == "other version";
            let mut meta = json!({VERSION: if is_other { "1999-12-31" } else { STATELESS }});
            for key in ["clientInfo", "clientCapabilities"] {
                meta[format!("io.modelcontextprotocol/{key}")] = json!({});
            }
            let fields = meta.as_object_mut().unwrap();
            fields.remove(&format!("io.modelcontextprotocol/{fault}"));
            let params = json!({"_meta": meta, "name": called, "arguments": {"match_id": "R1M1"}});
            let mut lines = String::new();
            for (key, value) in ["Protocol-Version", "Method", "Name"]
                .iter()
                .zip(headers.split(' '))
            {
                if value != "-" {
                    lines += &format!("mcp-{key}: {value}\r\n");
                }
            }
            let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 7});
            let (status, reply) = post(&agent.url(), &lines, &request);
            let code = &reply["error"]["code"];
            let actual = format!("{status} {code}").replace(" null", "");
            assert_eq!(actual, expected, "{asked} {headers}: {reply}");
            assert_eq!(reply["id"], 7);
            if expected == "200" {
                let result = &reply["result"];
                assert_eq!(result["_meta"], own, "{reply}");
                assert_eq!(result["resultType"], "complete", "{reply}");
                let is_private = result["ttlMs"] == 0 && result["cacheScope"] == "private";
                assert!(is_private || method == "tools/call", "{reply}");
            }
        }
        let discovered = ask(&agent.url(), "server/discover", json!({}));
        assert_eq!(discovered["supportedVersions"][0], STATELESS);
        assert_eq!(discovered["_meta"], own);
        assert!(discovered["instructions"].is_string());
        assert_eq!(discovered["capabilities"], json!({"tools": {}}));
    }
}

const TOOLS: [&str; 3] = [
    "control_league create_schedule get_standings league_query register_player register_referee \
     report_match_result start_league",
    "notify_game_error notify_league_completed notify_league_error notify_round \
     notify_round_completed start_match",
    "choose_move choose_parity get_player_state handle_game_invitation notify_game_error notify_league_completed \
     notify_league_error notify_match_result notify_round notify_round_completed update_standings",
];
const DEFAULTED_FIELDS: &str = "protocol message_type sender timestamp conversation_id league_id";

#[test]
fn tools_have_schemas_and_annotations() {
    let test = TestLeague::new("");
    for (((agent, _), kind), expected) in three(&test).iter().zip(KINDS).zip(TOOLS) {
        let list = ask(&agent.url(), "tools/list", json!({}))["tools"].take();
        let names = list_of(&list).iter().map(|tool| text_of(&tool["name"]));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        assert_eq!(names.join(" "), expected, "{kind}");
        for tool in list_of(&list) {
            for key in ["title", "description"] {
                let text = text_of(&tool[key]);
                assert!(text.len() > 8 && !text.contains('\n'), "{tool}");
            }
            let name = text_of(&tool["name"]);
            let is_getter = name.starts_with("get_");
            let hints = json!({
                "readOnlyHint": is_getter || name == "create_schedule",
                "destructiveHint": name == "control_league", "openWorldHint": false,
            });
            assert_eq!(tool["annotations"], hints, "{tool}");
            assert!(
                !is_getter || tool["outputSchema"]["type"] == "object",
                "{tool}"
            );
            let schema = &tool["inputSchema"];
            match MessageSpec::accepted_by(kind).find(|spec| spec.method == name) {
                Some(spec) => {
                    let mut required = list_of(&spec.schema["required"]).to_vec();
                    required.retain(|key| !DEFAULTED_FIELDS.split(' ').any(|name| *key == name));
                    assert_eq!(schema["required"], json!(required), "{tool}");
                }
                None => {
                    let page = include_str!("../../src/protocol.md");
                    let kind = kind.to_string().replace("league_", "");
                    check_contains(page, &format!("| `{name}` | {kind}"));
                }
            }
            for (key, argument) in schema["properties"].as_object().into_iter().flatten() {
                assert!(argument["description"].is_string(), "{name}: {key}");
            }
        }
    }
}

/// The agent and its tool, the message (a line of a script; or type, sender and fields), and words
/// of the reply; a refusal begins with a code, REJECTED or `belongs`.
const CALLS: &str = r#"
player choose_parity | true asks R1M1 | E015 match_id R1M1 MATCH_ID_MISMATCH
player choose_parity | true invites R1M1 | belongs to
player handle_game_invitation | true invites R1M1 sender=7 | E003 sender string
player handle_game_invitation | true invites R1M1 league_id=x | E003 league_id expected
player handle_game_invitation | true invites R1M1 protocol=league.v1 | E018 protocol league.v2
player handle_game_invitation | true invites R1M1 | E015 match_id announced
player notify_round | manager announces R1M1 auth_token=OWN | status ok
player handle_game_invitation | true invites R1M1 | GAME_JOIN_ACK
player choose_parity | strange asks R1M1 | E012 auth_token invitation
player choose_parity | true asks R1M1 | CHOOSE_PARITY_RESPONSE
player notify_match_result | true ends R1M1 P02 | status ok
player get_player_state | ABOUT | P01 matches strategy
referee notify_round | manager announces R1M1 auth_token=null | E011 auth_token missing
referee start_match | ABOUT | E003 league_id missing
league_manager start_league | START_LEAGUE launcher {OF} | LEAGUE_STATUS waiting
league_manager register_player | LEAGUE_REGISTER_REQUEST player:P07 {"player_meta": {META, "version": "1.0.0"}} | LEAGUE_REGISTER_RESPONSE ACCEPTED
league_manager register_player | LEAGUE_REGISTER_REQUEST player:P07 {"player_meta": {META, "version": "one"}} | REJECTED version
league_manager register_player | LEAGUE_REGISTER_REQUEST player:P07 {"player_meta": {META}} | E003 player_meta.version missing
league_manager league_query | LEAGUE_QUERY player:P01 {OF, "query_type": "any"} | E011 auth_token missing
league_manager league_query | LEAGUE_QUERY player:P01 {OF, "query_type": "any", "auth_token": TOKEN} | E003 query_type GET_STANDINGS
league_manager report_match_result | REPORT | E011 auth_token missing
league_manager get_standings | ABOUT | standings P01 P07
league_manager create_schedule | ABOUT | rounds R1M1"#;

/// Returns the message of a row.
fn arguments(text: &str, filled: impl Fn(&str) -> String) -> Value {
    match text.split(' ').collect::<Vec<_>>()[..] {
        ["ABOUT"] => json!({"conversation_id": "conv-state", "match_id": "R1M1"}),
        ["REPORT"] => report("referee:REF01", None, "R1M1", ["P01", "P07"]),
        ["player" | "manager" | "true" | "strange", ..] => message_of_line(&filled(text)),
        [message_type, sender, ref fields @ ..] => {
            let fields = json_of(&filled(&fields.join(" ")));
            message(message_type, sender, fields)
        }
        _ => panic!("{text}"),
    }
}

#[test]
fn tool_call_returns_the_same_as_the_direct_call() {
    let test = TestLeague::new("");
    let three = three(&test);
    let peer = FakeAgent::new(|request| valid_reply("P07", "odd", request));
    let token = test.data("agents/P01.json")["token"].clone();
    let of = format!(r#""league_id": "{LEAGUE}""#);
    let meta = r#""display_name": "Seven", "game_types": ["even_odd"], "contact_endpoint": "PEER", "registration_key": "the-registration-key-of-p07""#;
    let filled = |text: &str| {
        let text = text.replace("META", meta).replace("PEER", &peer.url);
        let text = text.replace("OF", &of).replace("TOKEN", &token.to_string());
        text.replace("OWN", text_of(&token))
    };
    for [called, message, words] in rows(CALLS) {
        let (kind, tool) = called.split_once(' ').unwrap();
        let (agent, _) = three.iter().find(|row| row.1.starts_with(kind)).unwrap();
        let arguments = arguments(message, filled);
        let mut direct = ask(&agent.url(), tool, arguments.clone());
        let mut result = call_tool(&agent.url(), tool, arguments);
        let [content, structured] = ["content", "structuredContent"].map(|key| result[key].take());
        let text = text_of(&content[0]["text"]);
        assert_eq!(content, json!([{"type": "text", "text": text}]), "{tool}");
        let starts = ["E0", "REJECTED", "belongs"];
        let is_refused = starts.iter().any(|start| words.starts_with(start));
        let rest = json!({"content": null, "structuredContent": null, "isError": is_refused, "resultType": "complete"});
        assert_eq!(result, rest, "{tool}: {text}");
        words.split(' ').for_each(|word| check_contains(text, word));
        if tool == "start_match" {
            direct = Value::Null; // a refusal does not match the output schema
        }
        assert_eq!(timeless(structured), timeless(direct), "{tool}");
    }
}

/// Returns a reply without its times, which differ from call to call. (The token does not: an agent
/// that shows its registration key keeps it.)
fn timeless(mut reply: Value) -> Value {
    for key in ["timestamp", "arrival_timestamp"] {
        reply.as_object_mut().and_then(|fields| fields.remove(key));
    }
    reply
}

#[test]
fn tool_call_needs_only_what_its_caller_knows() {
    let test = TestLeague::new("");
    let [(manager, _), _, _] = three(&test);
    let url = manager.url();
    let call_tool =
        |name: &str, arguments: Value| call_tool(&url, name, arguments)["structuredContent"].take();
    // The envelope is filled in, and arguments may be missing.
    let started = call_tool("start_league", json!({}));
    assert_eq!(started["message_type"], "LEAGUE_STATUS", "{started}");
    check_contains(text_of(&started["conversation_id"]), "conv-supplied-");
    let mut request = application("Seven", "http://localhost:1/mcp");
    request["message_type"] = json!("LEAGUE_REGISTER_REQUEST");
    let joined = send(&url, &request);
    assert_eq!(joined["status"], "ACCEPTED", "{joined}");
    let token = test.data("agents/P01.json")["token"].clone();
    let query = json!({"auth_token": token, "query_type": "GET_PLAYER_STATS"});
    let stats = call_tool("league_query", query);
    assert_eq!(stats["data"]["player_id"], "P01", "{stats}");
    let bare = ask(&url, "tools/call", json!({"name": "get_standings"}));
    let table = &bare["structuredContent"]["standings"];
    assert_eq!(table[0]["player_id"], "P01", "{bare}");
    for params in [
        json!({"name": "guess_parity", "arguments": {}}),
        json!({"name": "choose_parity", "arguments": {}}), // a tool of players
        json!({"name": "GAME_INVITATION", "arguments": {}}),
        json!({"name": "get_standings", "arguments": []}),
        json!({"arguments": {}}),
        json!({"name": 7}),
    ] {
        let reply = call(&url, "tools/call", params.clone());
        assert_eq!(reply["error"]["code"], -32602, "{params}");
    }
}
