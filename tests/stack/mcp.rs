//! The Model Context Protocol on every agent, over real HTTP: both eras message by message, the
//! tools as they describe themselves, and calls that end in the same handlers as direct ones.
//! `by_hand.rs` plays a league through tools.

use super::support::fake::{LEAGUE, message_of_line};
use super::support::*;
use league::protocol::{AgentKind, MessageSpec};

const STATELESS: &str = "2026-07-28";
const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const KINDS: [AgentKind; 3] = [AgentKind::Manager, AgentKind::Referee, AgentKind::Player];

/// A manager, a referee and a player in a league that waits, each with its name.
fn three(test: &TestLeague) -> [(TestProcess, &'static str); 3] {
    let manager = test.manager("");
    let referee = test.agent(&manager, "REF01", "");
    let player = test.agent(&manager, "P01", "");
    referee.line(" is REF01");
    player.line(" is P01");
    [
        (manager, "league_manager"),
        (referee, "referee:REF01"),
        (player, "player:P01"),
    ]
}

/// A request as it is: the status, and the body as JSON (null: none).
fn post(url: &str, headers: &str, request: &Value) -> (u16, Value) {
    let (status, body) = http("POST", url, headers, request.to_string().as_bytes());
    let body = if body.is_empty() { "null" } else { &body };
    (status, json_of(body))
}

/// A version in a header, a method and its parameters, and the status and code of the answer:
/// nobody knows a version of 1999, and a league request knows no versions.
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
        for (asked, answered) in own.into_iter().chain([("1999-12-31", HANDSHAKE[0])]) {
            let params = json!({"protocolVersion": asked, "capabilities": {}});
            let (status, mut reply) = ask("-", "initialize", params);
            let instructions = reply["result"]["instructions"].take();
            let length = text_of(&instructions).len();
            assert!((50..900).contains(&length), "{instructions}");
            let expected = json!({
                "protocolVersion": answered, "capabilities": {"tools": {}}, "instructions": null,
                "serverInfo": {"name": name, "version": env!("CARGO_PKG_VERSION")},
            });
            assert_eq!((status, &reply["result"]), (200, &expected), "{asked}");
        }
        let pong = json!({"jsonrpc": "2.0", "result": {}, "id": "a"});
        assert_eq!(ask("-", "ping", json!({})).1, pong);
        for [version, method, params, expected] in rows(VERSIONS) {
            let (status, reply) = ask(version, method, json_of(params));
            let came = format!("{status} {}", reply["error"]["code"]);
            let is_league = expected.ends_with("LEAGUE") && status == 200; // refused or not
            assert!(is_league || came == expected, "{method} {version}: {reply}");
            if expected.ends_with("-32022") {
                let supported: Vec<&str> = [STATELESS].into_iter().chain(HANDSHAKE).collect();
                let data = json!({"supported": supported, "requested": "1999-12-31"});
                assert_eq!(reply["error"]["data"], data);
            }
        }
        let initialized = ask(HANDSHAKE[0], "notifications/initialized", json!({}));
        assert_eq!(initialized, (202, Value::Null), "{name}");
    }
}

/// What is asked, by which headers (`version method name`, `-`: none), what is wrong with `_meta`
/// (`-`: nothing), and the answer.
const STATELESS_RULES: &str = "
server/discover | 2026-07-28 server/discover - | - | 200
tools/list | 2026-07-28 tools/list - | - | 200
tools/call TOOL | 2026-07-28 tools/call TOOL | - | 200
tools/call TOOL | 2026-07-28 tools/call =?base64?BASE64?= | - | 200
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
        let (tool, coded) = match *name {
            "league_manager" => ("control_league", "Y29udHJvbF9sZWFndWU="),
            "referee:REF01" => ("get_match_state", "Z2V0X21hdGNoX3N0YXRl"),
            _ => ("get_player_state", "Z2V0X3BsYXllcl9zdGF0ZQ=="),
        };
        let own = json!({"name": name, "version": env!("CARGO_PKG_VERSION")});
        let own = json!({"io.modelcontextprotocol/serverInfo": own});
        let rules = STATELESS_RULES.replace("TOOL ", &format!("{tool} "));
        for [asked, headers, lacks, expected] in rows(&rules.replace("BASE64", coded)) {
            let (method, called) = asked.split_once(' ').unwrap_or((asked, ""));
            let other = lacks == "other version";
            let mut meta = json!({VERSION: if other { "1999-12-31" } else { STATELESS }});
            for key in ["clientInfo", "clientCapabilities"] {
                meta[format!("io.modelcontextprotocol/{key}")] = json!({});
            }
            let fields = meta.as_object_mut().unwrap();
            fields.remove(&format!("io.modelcontextprotocol/{lacks}"));
            let params = json!({"_meta": meta, "name": called, "arguments": {"match_id": "R1M1"}});
            let keys = ["Protocol-Version", "Method", "Name"].into_iter();
            let given = keys.zip(headers.split(' ')).filter(|item| item.1 != "-");
            let given = given.map(|(key, value)| format!("mcp-{key}: {value}\r\n"));
            let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 7});
            let (status, reply) = post(&agent.url(), &given.collect::<String>(), &request);
            let code = &reply["error"]["code"];
            let came = format!("{status} {code}").replace(" null", "");
            assert_eq!(
                (&*came, &reply["id"]),
                (expected, &json!(7)),
                "{asked} {headers}: {reply}"
            );
            if expected == "200" {
                let result = &reply["result"];
                assert_eq!(result["_meta"], own, "{reply}");
                assert_eq!(result["resultType"], "complete", "{reply}");
                let cached = [&result["ttlMs"], &result["cacheScope"]];
                let is_private = cached == [&json!(0), &json!("private")];
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
    "get_match_state notify_game_error notify_league_completed notify_league_error notify_round \
     notify_round_completed start_match",
    "choose_move choose_parity get_player_state handle_game_invitation notify_game_error notify_league_completed \
     notify_league_error notify_match_result notify_round notify_round_completed update_standings",
];
const DEFAULTED_FIELDS: &str = "protocol message_type sender timestamp conversation_id league_id";

#[test]
fn tools_have_schemas_and_annotations() {
    let test = TestLeague::new("");
    for (((agent, _), kind), expected) in three(&test).iter().zip(&KINDS).zip(TOOLS) {
        let list = ask(&agent.url(), "tools/list", json!({}))["tools"].take();
        let names = list_of(&list).iter().map(|tool| text_of(&tool["name"]));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        assert_eq!(names.join(" "), expected, "{kind}");
        for tool in list_of(&list) {
            for key in ["title", "description"] {
                let says = text_of(&tool[key]);
                assert!(says.len() > 8 && !says.contains('\n'), "{tool}");
            }
            let name = text_of(&tool["name"]);
            let gets = name.starts_with("get_");
            let hints = json!({
                "readOnlyHint": gets || name == "create_schedule",
                "destructiveHint": name == "control_league", "openWorldHint": false,
            });
            assert_eq!(tool["annotations"], hints, "{tool}");
            assert!(!gets || tool["outputSchema"]["type"] == "object", "{tool}");
            let schema = &tool["inputSchema"];
            if let Some(message) = MessageSpec::accepted_by(*kind).find(|item| item.method == name)
            {
                let mut whole = message.schema["required"].clone();
                let required = whole.as_array_mut().unwrap();
                required.retain(|key| !DEFAULTED_FIELDS.split(' ').any(|name| *key == name));
                assert_eq!(schema["required"], whole, "{tool}");
            } else {
                let page = include_str!("../../src/protocol.md");
                let row = format!(
                    "| `{name}` | {}",
                    kind.to_string().trim_start_matches("league_")
                );
                assert!(page.contains(&row), "no row {row}");
            }
            for (key, argument) in schema["properties"].as_object().into_iter().flatten() {
                assert!(argument["description"].is_string(), "{name}: {key}");
            }
        }
    }
}

/// Whose tool is called, with which message (of a story; or its type, its sender and its fields),
/// and words of the answer; a refusal begins with a code, REJECTED or `belongs`.
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
referee get_match_state | ABOUT | E015 match_id R1M1
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

/// The message of a row.
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
        let (agent, _) = three.iter().find(|item| item.1.starts_with(kind)).unwrap();
        let arguments = arguments(message, filled);
        let mut direct = ask(&agent.url(), tool, arguments.clone());
        let mut result = call_tool(&agent.url(), tool, arguments);
        let [content, structured] = ["content", "structuredContent"].map(|key| result[key].take());
        let text = text_of(&content[0]["text"]);
        assert_eq!(content, json!([{"type": "text", "text": text}]), "{tool}");
        let refused = ["E0", "REJECTED", "belongs"]
            .iter()
            .any(|item| words.starts_with(item));
        let rest = json!({"content": null, "structuredContent": null, "isError": refused, "resultType": "complete"});
        assert_eq!(result, rest, "{tool}: {text}");
        for word in words.split(' ') {
            assert!(text.contains(word), "{tool}: no {word} in {text}");
        }
        let is_whole = serde_json::from_str::<Value>(text).is_ok_and(|item| item == structured);
        assert_eq!(is_whole, !refused, "a refusal is in words: {text}");
        if ["get_match_state", "start_match"].contains(&tool) {
            direct = Value::Null; // a refusal is not what an output schema promises
        }
        assert_eq!(timeless(structured), timeless(direct), "{tool}");
    }
}

/// A reply without what differs from call to call (the token does not: whoever shows its
/// registration key keeps it).
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
    // The envelope is supplied, and arguments may be left out.
    let started = call_tool(&url, "start_league", json!({}));
    let answer = &started["structuredContent"];
    assert_eq!(answer["message_type"], "LEAGUE_STATUS", "{started}");
    assert_eq!(answer["conversation_id"], "conv-supplied-start_league");
    let token = test.data("agents/P01.json")["token"].clone();
    let query = json!({"auth_token": token, "query_type": "GET_PLAYER_STATS"});
    let stats = call_tool(&url, "league_query", query);
    assert_eq!(
        stats["structuredContent"]["data"]["player_id"], "P01",
        "{stats}"
    );
    let bare = call(&url, "tools/call", json!({"name": "get_standings"}));
    let table = &bare["result"]["structuredContent"]["standings"];
    assert_eq!(table[0]["player_id"], "P01", "{bare}");
    for params in [
        json!({"name": "guess_parity", "arguments": {}}),
        json!({"name": "choose_parity", "arguments": {}}), // a player's
        json!({"name": "GAME_INVITATION", "arguments": {}}),
        json!({"name": "get_standings", "arguments": []}),
        json!({"arguments": {}}),
        json!({"name": 7}),
    ] {
        let reply = call(&url, "tools/call", params.clone());
        assert_eq!(reply["error"]["code"], -32602, "{params}");
    }
}
