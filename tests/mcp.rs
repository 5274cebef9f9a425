//! The Model Context Protocol on every agent, over real HTTP: both eras message by message, the tools as they describe
//! themselves, and calls that end in the same handlers as direct ones. `by_hand.rs` plays a league through tools.

mod support;

use league::protocol::{Entry, Kind};
use serde_json::{Value, json};
use support::stand_in::{LEAGUE, Referee};
use support::*;

const STATELESS: &str = "2026-07-28";
const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const KINDS: [Kind; 3] = [Kind::Manager, Kind::Referee, Kind::Player];

/// A manager, a referee and a player in a league that waits, each with its name.
fn three(world: &World) -> [(Agent, &'static str); 3] {
    let manager = world.manager(&[]);
    let (referee, player) = (
        world.referee(&manager, "REF01", &[]),
        world.player(&manager, "P01", &[]),
    );
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
    (
        status,
        if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&body).unwrap()
        },
    )
}

/// `tools/call`: the result.
fn call_tool(url: &str, name: &str, arguments: &Value) -> Value {
    let mut reply = call(
        url,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    );
    assert!(reply["result"].is_object(), "{name} {arguments}: {reply}");
    reply["result"].take()
}

/// A reply without what differs from call to call.
fn timeless(mut reply: Value) -> Value {
    for key in ["timestamp", "arrival_timestamp"] {
        reply.as_object_mut().unwrap().remove(key);
    }
    reply
}

#[test]
fn the_era_of_handshakes() {
    let world = World::new(&[]);
    for (agent, name) in &three(&world) {
        let ask = |headers: &str, method: &str, params: Value| {
            post(
                &agent.url(),
                headers,
                &json!({"jsonrpc": "2.0", "method": method, "params": params, "id": "a"}),
            )
        };
        let answers = HANDSHAKE
            .map(|version| (version, version))
            .into_iter()
            .chain([("1999-12-31", HANDSHAKE[0])]);
        for (asked, answered) in answers {
            let (status, mut reply) = ask(
                "",
                "initialize",
                json!({"protocolVersion": asked, "capabilities": {}}),
            );
            let instructions = reply["result"]["instructions"].take();
            assert!(
                instructions
                    .as_str()
                    .is_some_and(|text| (50..900).contains(&text.len())),
                "{instructions}"
            );
            let expected = json!({
                "protocolVersion": answered, "capabilities": {"tools": {}}, "instructions": null,
                "serverInfo": {"name": name, "version": env!("CARGO_PKG_VERSION")},
            });
            assert_eq!((status, &reply["result"]), (200, &expected), "{asked}");
        }
        let header = |version: &str| format!("Mcp-Protocol-Version: {version}\r\n");
        assert_eq!(
            ask("", "ping", json!({})).1,
            json!({"jsonrpc": "2.0", "result": {}, "id": "a"})
        );
        assert_eq!(ask(&header(HANDSHAKE[1]), "ping", json!({})).0, 200);
        // A version that nobody knows, in the header or in the body; a league request knows none of this.
        for (headers, method, params, status, code) in [
            (header("1999-12-31"), "ping", json!({}), 400, json!(-32022)),
            (
                header("1999-12-31"),
                "tools/list",
                json!({}),
                400,
                json!(-32022),
            ),
            (
                String::new(),
                "tools/list",
                json!({"_meta": {VERSION: "1999-12-31"}}),
                400,
                json!(-32022),
            ),
            (
                header("1999-12-31"),
                "nonsense",
                json!({}),
                200,
                json!(-32601),
            ),
            (
                header("1999-12-31"),
                "LEAGUE_ERROR",
                json!({"message_type": "LEAGUE_ERROR"}),
                200,
                Value::Null,
            ),
        ] {
            let (came, reply) = ask(&headers, method, params);
            let is_manager = *name == "league_manager" && method == "LEAGUE_ERROR"; // takes none
            assert!(
                is_manager || (came, &reply["error"]["code"]) == (status, &code),
                "{method} {headers}: {reply}"
            );
            if code == -32022 {
                let supported: Vec<&str> = [STATELESS].into_iter().chain(HANDSHAKE).collect();
                assert_eq!(
                    reply["error"]["data"],
                    json!({"supported": supported, "requested": "1999-12-31"})
                );
            }
        }
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(
            post(&agent.url(), &header(HANDSHAKE[0]), &initialized),
            (202, Value::Null),
            "{name}"
        );
    }
}

/// What is asked, by which headers (`version method name`, `-`: none), what is wrong with `_meta`, and the answer.
const STATELESS_RULES: &str = "
    server/discover | 2026-07-28 server/discover - | | 200
    tools/list | 2026-07-28 tools/list - | | 200
    tools/call TOOL | 2026-07-28 tools/call TOOL | | 200
    tools/call TOOL | 2026-07-28 tools/call =?base64?BASE64?= | | 200
    tools/call no_tool | 2026-07-28 tools/call no_tool | | 200 -32602
    tools/list | - tools/list - | | 400 -32020
    tools/list | 2025-11-25 tools/list - | | 400 -32020
    tools/list | 1999-12-31 tools/list - | | 400 -32020
    tools/list | 2026-07-28 tools/list - | other version | 400 -32020
    tools/list | 2026-07-28 - - | | 400 -32020
    tools/list | 2026-07-28 TOOLS/LIST - | | 400 -32020
    tools/call TOOL | 2026-07-28 tools/list TOOL | | 400 -32020
    tools/call TOOL | 2026-07-28 tools/call - | | 400 -32020
    tools/call TOOL | 2026-07-28 tools/call other | | 400 -32020
    tools/list | 2026-07-28 tools/list - | protocolVersion | 400 -32602
    tools/list | 2026-07-28 tools/list - | clientInfo | 200
    tools/call TOOL | 2026-07-28 tools/call TOOL | clientCapabilities | 400 -32602
    initialize | 2026-07-28 initialize - | | 404 -32601
    ping | 2026-07-28 ping - | | 404 -32601
    resources/list | 2026-07-28 resources/list - | | 404 -32601
    subscriptions/listen | 2026-07-28 subscriptions/listen - | | 404 -32601";

#[test]
fn the_stateless_era() {
    let world = World::new(&[]);
    for (agent, name) in &three(&world) {
        let (tool, coded) = match *name {
            "league_manager" => ("get_standings", "Z2V0X3N0YW5kaW5ncw=="),
            "referee:REF01" => ("get_match_state", "Z2V0X21hdGNoX3N0YXRl"),
            _ => ("get_player_state", "Z2V0X3BsYXllcl9zdGF0ZQ=="),
        };
        for row in STATELESS_RULES
            .replace("TOOL ", &format!("{tool} "))
            .replace("BASE64", coded)
            .trim()
            .lines()
        {
            let [asked, headers, lacks, expected] =
                row.split('|').map(str::trim).collect::<Vec<_>>()[..]
            else {
                panic!("{row}")
            };
            let (method, called) = asked.split_once(' ').unwrap_or((asked, ""));
            let mut meta =
                json!({VERSION: if lacks == "other version" { "1999-12-31" } else { STATELESS }});
            for key in ["clientInfo", "clientCapabilities"] {
                meta[format!("io.modelcontextprotocol/{key}")] = json!({});
            }
            meta.as_object_mut()
                .unwrap()
                .remove(&format!("io.modelcontextprotocol/{lacks}"));
            let params = json!({"_meta": meta, "name": called, "arguments": {"match_id": "R1M1"}});
            let headers = ["Protocol-Version", "Method", "Name"]
                .iter()
                .zip(headers.split(' '));
            let headers = headers.filter(|(_, value)| *value != "-");
            let headers: String = headers
                .map(|(key, value)| format!("mcp-{key}: {value}\r\n"))
                .collect();
            let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 7});
            let (status, reply) = post(&agent.url(), &headers, &request);
            let code = reply["error"]["code"]
                .as_i64()
                .map(|code| format!(" {code}"))
                .unwrap_or_default();
            assert_eq!(
                (format!("{status}{code}"), &reply["id"]),
                (expected.to_string(), &json!(7)),
                "{row}: {reply}"
            );
            if expected == "200" {
                let info = json!({"name": name, "version": env!("CARGO_PKG_VERSION")});
                assert_eq!(
                    reply["result"]["_meta"],
                    json!({"io.modelcontextprotocol/serverInfo": info}),
                    "{reply}"
                );
                assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
                let cached = json!([reply["result"]["ttlMs"], reply["result"]["cacheScope"]]);
                assert!(
                    method == "tools/call" || cached == json!([0, "private"]),
                    "{reply}"
                );
            }
        }
        let discovered = call(&agent.url(), "server/discover", json!({}))["result"].take();
        assert_eq!(discovered["supportedVersions"][0], STATELESS);
        assert!(
            discovered["instructions"].is_string()
                && discovered["capabilities"] == json!({"tools": {}})
        );
    }
}

#[test]
fn tools_say_what_they_are() {
    let world = World::new(&[]);
    let expected = [
        "control_league create_schedule get_league get_standings league_query register_player register_referee \
         report_match_result start_league",
        "get_match_state notify_game_error notify_league_completed notify_league_error notify_round \
         notify_round_completed start_match",
        "choose_move choose_parity get_player_state handle_game_invitation notify_game_error notify_league_completed \
         notify_league_error notify_match_result notify_round notify_round_completed update_standings",
    ];
    let supplied = [
        "protocol",
        "message_type",
        "sender",
        "timestamp",
        "conversation_id",
        "league_id",
    ];
    for (((agent, _), kind), expected) in three(&world).iter().zip(&KINDS).zip(expected) {
        let list = call(&agent.url(), "tools/list", json!({}))["result"]["tools"].take();
        let tools = list.as_array().unwrap();
        let mut names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names.join(" "), expected, "{kind}");
        for tool in tools {
            let says = |key: &str| {
                tool[key]
                    .as_str()
                    .is_some_and(|text| text.len() > 8 && !text.contains('\n'))
            };
            assert!(says("title") && says("description"), "{tool}");
            let name = tool["name"].as_str().unwrap();
            let (reads, gets) = (
                name.starts_with("get_") || name == "create_schedule",
                name.starts_with("get_"),
            );
            let hints = json!({
                "readOnlyHint": reads, "destructiveHint": name == "control_league", "openWorldHint": false,
            });
            assert_eq!(tool["annotations"], hints, "{tool}");
            assert!(!gets || tool["outputSchema"]["type"] == "object", "{tool}");
            let schema = &tool["inputSchema"];
            let is_supplied = |key: &&Value| supplied.iter().any(|name| *key == name);
            if let Some(message) = Entry::served_by(*kind).find(|it| it.tool == name) {
                let mut whole = message.schema()["required"].take();
                whole
                    .as_array_mut()
                    .unwrap()
                    .retain(|key| !is_supplied(&key));
                assert_eq!(schema["required"], whole, "{tool}");
            } else {
                let page = include_str!("../src/protocol.md");
                let row = format!("| `{name}` | {}", kind.word().trim_start_matches("league_"));
                assert!(page.contains(&row), "no row {row}");
            }
            for (key, argument) in schema["properties"].as_object().into_iter().flatten() {
                assert!(argument["description"].is_string(), "{name}: {key}");
            }
        }
    }
}

#[test]
fn a_tool_call_is_the_direct_call_and_refuses_in_words() {
    let world = World::new(&[]);
    let [(m, _), (r, _), (p, _)] = &three(&world);
    let referee = Referee("tok-match-1", "conv-r1m1-test");
    let (invitation, choice, over) = (
        referee.invites("R1M1"),
        referee.asks("R1M1"),
        referee.ends("R1M1", "P02"),
    );
    let foreign = call_tool(&p.url(), "choose_parity", &invitation); // a message of another tool
    assert!(
        foreign["isError"] == true
            && foreign["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("belongs to")
    );
    let peer = Peer::new(|request| good_player("P07", "odd", request));
    let meta = json!({
        "display_name": "Seven", "version": "1.0.0", "game_types": ["even_odd"], "contact_endpoint": peer.url,
    });
    let newcomer = |meta| {
        message(
            "LEAGUE_REGISTER_REQUEST",
            "player:P07",
            json!({"player_meta": meta}),
        )
    };
    let league = json!({"league_id": LEAGUE});
    let round = but(&but(&league, "round_id", json!(1)), "matches", json!([]));
    let query = message(
        "LEAGUE_QUERY",
        "player:P01",
        but(&league, "query_type", json!("any")),
    );
    let token = world.data("agents/P01.json")["token"].clone();
    let unknown = but(
        &but(&query, "auth_token", token.clone()),
        "query_type",
        json!("GET_ALL"),
    );
    let about = json!({"conversation_id": "conv-state", "match_id": "R1M1"});
    // To whom, which tool, what, and words of the answer; a refusal begins with a capital and a code, or REJECTED.
    let rows = [
        (
            p,
            "choose_parity",
            choice.clone(),
            "E015 match_id R1M1 MATCH_ID_MISMATCH",
        ),
        (
            p,
            "handle_game_invitation",
            but(&invitation, "sender", json!(7)),
            "E003 sender string",
        ),
        (
            p,
            "handle_game_invitation",
            but(&invitation, "league_id", json!("x")),
            "E003 league_id expected",
        ),
        (
            p,
            "handle_game_invitation",
            but(&invitation, "protocol", json!("league.v1")),
            "E018 protocol league.v2",
        ),
        (p, "handle_game_invitation", invitation, "GAME_JOIN_ACK"),
        (
            p,
            "choose_parity",
            but(&choice, "auth_token", json!("tok-match-2")),
            "E012 auth_token invitation",
        ),
        (p, "choose_parity", choice, "CHOOSE_PARITY_RESPONSE"),
        (p, "notify_match_result", over, "status ok"),
        (p, "get_player_state", about.clone(), "P01 matches strategy"),
        (
            r,
            "notify_round",
            message("ROUND_ANNOUNCEMENT", "league_manager", round),
            "E011 auth_token missing",
        ),
        (r, "get_match_state", about.clone(), "E015 match_id R1M1"),
        (r, "start_match", about.clone(), "E003 league_id missing"),
        (
            m,
            "start_league",
            message("START_LEAGUE", "launcher", league),
            "LEAGUE_STATUS waiting",
        ),
        (
            m,
            "register_player",
            newcomer(meta.clone()),
            "LEAGUE_REGISTER_RESPONSE ACCEPTED",
        ),
        (
            m,
            "register_player",
            newcomer(but(&meta, "version", json!("one"))),
            "REJECTED version",
        ),
        (
            m,
            "register_player",
            newcomer(but(&meta, "version", Value::Null)),
            "E003 player_meta.version missing",
        ),
        (m, "league_query", query, "E011 auth_token missing"),
        (
            m,
            "report_match_result",
            report("referee:REF01", None, "R1M1", ["P01", "P07"]),
            "E011 auth_token missing",
        ),
        (m, "league_query", unknown, "E003 query_type GET_STANDINGS"),
        (m, "get_standings", about.clone(), "standings P01 P07"),
        (m, "create_schedule", about, "rounds R1M1"),
    ];
    for (agent, tool, arguments, words) in rows {
        let direct = call(&agent.url(), tool, arguments.clone())["result"].take();
        let mut result = call_tool(&agent.url(), tool, &arguments);
        let [content, structured] = ["content", "structuredContent"].map(|key| result[key].take());
        let text = content[0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{tool}: {result}"));
        assert_eq!(content, json!([{"type": "text", "text": text}]), "{tool}");
        let refused = words.starts_with("E0") || words.starts_with("REJECTED");
        let rest = json!({"content": null, "structuredContent": null, "isError": refused, "resultType": "complete"});
        assert_eq!(result, rest, "{tool}: {text}");
        words
            .split(' ')
            .for_each(|word| assert!(text.contains(word), "{tool}: no {word} in {text}"));
        assert!(
            refused || serde_json::from_str::<Value>(text).unwrap() == structured,
            "{tool}"
        );
        assert!(!refused || !text.starts_with('{'), "not in words: {text}");
        // A refusal is not what an output schema promises.
        let expected = if ["get_match_state", "start_match"].contains(&tool) {
            Value::Null
        } else {
            timeless(direct)
        };
        assert_eq!(
            if structured.is_null() {
                structured
            } else {
                timeless(structured)
            },
            expected,
            "{tool}"
        );
    }
    // Nothing but what only the caller knows: the envelope is supplied.
    let started = call_tool(&m.url(), "start_league", &json!({}));
    assert!(
        started["isError"] == false && started["structuredContent"]["status"] == "running",
        "{started}"
    );
    assert_eq!(
        started["structuredContent"]["conversation_id"],
        "conv-supplied-start_league"
    );
    let asked = call_tool(
        &m.url(),
        "league_query",
        &json!({"auth_token": token, "query_type": "GET_PLAYER_STATS"}),
    );
    assert_eq!(
        asked["structuredContent"]["data"]["player_id"], "P01",
        "{asked}"
    );
    // Only what is no call of a tool is a JSON-RPC error.
    for (params, code) in [
        (json!({"name": "guess_parity", "arguments": {}}), -32602),
        (json!({"name": "choose_parity", "arguments": {}}), -32602), // a player's
        (json!({"name": "GAME_INVITATION", "arguments": {}}), -32602),
        (json!({"name": "get_standings", "arguments": []}), -32602),
        (json!({"arguments": {}}), -32602),
        (json!({"name": 7}), -32602),
    ] {
        assert_eq!(
            call(&m.url(), "tools/call", params.clone())["error"]["code"],
            code,
            "{params}"
        );
    }
    let bare = call(&m.url(), "tools/call", json!({"name": "get_standings"})); // arguments may be left out
    assert_eq!(
        bare["result"]["structuredContent"]["standings"][0]["player_id"], "P01",
        "{bare}"
    );
}
