//! The Model Context Protocol on every agent (R13), over real HTTP: both eras message by message, the tools and
//! their schemas, calls that end in the same handlers as direct ones, and a league in which one player is reached
//! through tools only.

mod support;

use serde_json::{Value, json};
use support::*;

const STATELESS: &str = "2026-07-28";
const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// A manager, a referee and a player in a league that waits, each with its name.
fn three(world: &World) -> [(Agent, &'static str); 3] {
    let manager = world.manager(&[]);
    let (referee, player) = (world.referee(&manager, "REF01", &[]), world.player(&manager, "P01", &[]));
    referee.line(" is REF01");
    player.line(" is P01");
    [(manager, "league_manager"), (referee, "referee:REF01"), (player, "player:P01")]
}

/// A request as it is: the status, and the body as JSON (null: none).
fn post(url: &str, headers: &str, request: &Value) -> (u16, Value) {
    let (status, body) = http("POST", url, headers, request.to_string().as_bytes());
    (status, if body.is_empty() { Value::Null } else { serde_json::from_str(&body).unwrap() })
}

/// `tools/call`: the whole reply.
fn call_tool(url: &str, name: &str, arguments: &Value) -> Value {
    call(url, "tools/call", json!({"name": name, "arguments": arguments}))
}

/// The tool that a league message belongs to.
fn tool_of(message: &Value) -> &'static str {
    let entry = message["message_type"].as_str().and_then(league::protocol::Entry::of_message);
    entry.unwrap_or_else(|| panic!("no league message: {message}")).tool
}

/// A reply without what differs from call to call.
fn timeless(mut reply: Value) -> Value {
    for key in ["timestamp", "arrival_timestamp"] {
        reply.as_object_mut().unwrap().remove(key);
    }
    reply
}

#[test]
fn both_eras_message_by_message_on_every_agent() {
    let world = World::new(&[]);
    for (agent, name) in &three(&world) {
        let info = json!({"name": name, "version": env!("CARGO_PKG_VERSION")});
        let hello = |version| json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test"}});
        let welcome = |version| json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info});
        let supported: Vec<&str> = [STATELESS].into_iter().chain(HANDSHAKE).collect();
        let discovered = json!({
            "supportedVersions": supported, "capabilities": {"tools": {}}, "resultType": "complete", "ttlMs": 0,
            "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": info},
        });
        let meta = |version| json!({"_meta": {VERSION: version, "io.modelcontextprotocol/clientCapabilities": {}}});
        let headers = |version| format!("Mcp-Protocol-Version: {version}\r\nMcp-Method: any\r\nMcp-Name: any\r\n");
        let result = |result| json!({"jsonrpc": "2.0", "result": result});
        let unknown = json!({"jsonrpc": "2.0", "error": {
            "code": -32022, "message": null, "data": {"supported": supported, "requested": "2030-01-01"},
        }});
        let known = HANDSHAKE.map(|version| ("".into(), "initialize", hello(version), result(welcome(version))));
        let rows = [
            ("".into(), "initialize", hello("1999-12-31"), result(welcome(HANDSHAKE[0]))),
            ("".into(), "initialize", hello(STATELESS), result(welcome(HANDSHAKE[0]))),
            ("".into(), "ping", json!({}), result(json!({}))),
            (headers(HANDSHAKE[1]), "ping", json!({}), result(json!({}))),
            ("".into(), "server/discover", json!({}), result(discovered.clone())),
            (headers(STATELESS), "server/discover", meta(STATELESS), result(discovered)),
            (headers("2030-01-01"), "ping", json!({}), unknown.clone()),
            (headers("2030-01-01"), "tools/list", json!({}), unknown.clone()),
            ("".into(), "server/discover", meta("2030-01-01"), unknown.clone()),
            (headers(STATELESS), "tools/call", meta("2030-01-01"), unknown),
        ];
        for (headers, method, params, mut expected) in known.into_iter().chain(rows) {
            for id in [json!(7), json!("seven")] {
                let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": id});
                let (status, mut reply) = post(&agent.url(), &headers, &request);
                expected["id"] = id;
                if let Some(message) = reply.pointer_mut("/error/message") {
                    assert!(message.take().as_str().is_some_and(|text| text.contains("2030-01-01")));
                }
                assert_eq!((status, reply), (200, expected.clone()), "{name} {headers}{request}");
            }
        }
        for headers in ["".into(), headers(STATELESS)] {
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            assert_eq!(post(&agent.url(), &headers, &initialized), (202, Value::Null), "{name}");
        }
    }
}

#[test]
fn the_transport_refuses_streams_and_foreign_pages() {
    let world = World::new(&[]);
    for (agent, name) in &three(&world) {
        let own = agent.url().replace("/mcp", "");
        let ping = json!({"jsonrpc": "2.0", "method": "ping", "id": 1}).to_string();
        let rows = [
            ("GET", "Accept: text/event-stream\r\n".into(), "", 405),
            ("DELETE", "Mcp-Session-Id: 1\r\n".into(), "", 405),
            ("POST", "Origin: https://elsewhere.example\r\n".into(), &*ping, 403),
            ("POST", "Origin: null\r\n".into(), &ping, 403),
            ("POST", format!("Origin: {own}\r\nAccept: application/json, text/event-stream\r\n"), &ping, 200),
        ];
        for (verb, headers, body, status) in rows {
            let answer = http(verb, &agent.url(), &headers, body.as_bytes());
            assert_eq!(answer.0, status, "{name} {verb} {headers}");
            assert_eq!(answer.1.is_empty(), status != 200, "{name} {verb} {headers}{}", answer.1);
        }
    }
}

fn is_required(schema: &Value, key: &str) -> bool {
    schema["required"].as_array().is_some_and(|all| all.iter().any(|name| name == key))
}

/// A value that `schema` lets in; with the optional fields, or without.
fn example(schema: &Value, optional: bool) -> Value {
    let given = schema.get("const").or(schema.pointer("/enum/0")).or(schema.pointer("/anyOf/0"));
    match (given, schema["type"].as_str()) {
        (Some(word), _) if !word.is_object() => word.clone(),
        (Some(nullable), _) => example(nullable, optional),
        (_, Some("integer" | "number")) => json!(1),
        (_, Some("boolean")) => json!(true),
        (_, Some("array")) => json!([example(&schema["items"], optional)]),
        (_, Some("string")) if schema["format"] == "date-time" => json!(now()),
        (_, Some("string")) => json!("x"),
        (_, Some("object")) => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let wanted = fields.filter(|(key, _)| optional || is_required(schema, key));
            let filled = wanted.map(|(key, below)| match &**key {
                "league_id" => (key.clone(), json!("league_2025_even_odd")), // another is refused (R2)
                _ => (key.clone(), example(below, optional)),
            });
            filled.collect()
        }
        _ => panic!("a schema that says nothing: {schema}"),
    }
}

/// Every field below `schema`: its JSON pointer, its name as refusals have it, and whether it is required.
fn fields(schema: &Value, pointer: &str, name: &str) -> Vec<(String, String, bool)> {
    if schema["type"] == "array" {
        return fields(&schema["items"], &format!("{pointer}/0"), &format!("{name}[0]"));
    }
    let dot = if name.is_empty() { "" } else { "." };
    let all = schema["properties"].as_object().into_iter().flatten().flat_map(|(key, below)| {
        let (pointer, name) = (format!("{pointer}/{key}"), format!("{name}{dot}{key}"));
        let deeper = fields(below, &pointer, &name);
        [(pointer, name, is_required(schema, key))].into_iter().chain(deeper)
    });
    all.collect()
}

#[test]
fn tools_are_listed_with_schemas_that_are_true() {
    let world = World::new(&[]);
    let expected = [
        "create_schedule get_standings league_query register_player register_referee report_match_result start_league",
        "get_match_state notify_game_error notify_league_completed notify_league_error notify_round \
         notify_round_completed start_match",
        "choose_parity get_player_state handle_game_invitation notify_game_error notify_league_completed \
         notify_league_error notify_match_result notify_round notify_round_completed update_standings",
    ];
    for ((agent, kind), expected) in three(&world).iter().zip(expected) {
        let mut list = call(&agent.url(), "tools/list", json!({}))["result"].take();
        let Value::Array(tools) = list["tools"].take() else { panic!("no list") };
        assert_eq!(list, json!({"tools": null, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}));
        let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names.join(" "), expected, "{kind}");
        for tool in &tools {
            assert_eq!(tool.as_object().unwrap().len(), 3, "{tool}");
            assert!(tool["description"].as_str().is_some_and(|text| text.len() > 20 && !text.contains('\n')), "{tool}");
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            hold_against_its_reader(&agent.url(), tool);
        }
    }
}

/// What the schema requires the reader requires, and the reverse; and both mean the same types.
fn hold_against_its_reader(url: &str, tool: &Value) {
    let (name, schema) = (tool["name"].as_str().unwrap(), &tool["inputSchema"]);
    // The field that the reader refuses, if any: then no handler has seen the message.
    let refused = |arguments: &Value| {
        let reply = call_tool(url, name, arguments)["result"]["structuredContent"].take();
        assert!(reply.is_object(), "{name}: {arguments}");
        let by_reader = ["E003", "E018", "E021"].iter().any(|code| reply["error_code"] == *code);
        if by_reader { reply["context"]["field"].clone() } else { Value::Null }
    };
    let mut least = example(schema, false);
    if schema["properties"]["auth_token"].is_object() {
        least["auth_token"] = json!("x"); // nobody's: nothing happens, the league is not over
    }
    assert_eq!(refused(&least), Value::Null, "{name}: {least}");
    let whole = example(schema, true);
    for (pointer, field, required) in fields(schema, "", "") {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        if required {
            let mut without = whole.clone();
            without.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
            assert_eq!(refused(&without), json!(field), "{name} without {field}");
        }
        if !["query_type", "query_params"].contains(&field.split('.').next().unwrap()) {
            let mut wrong = whole.clone();
            let value = wrong.pointer_mut(&pointer).unwrap();
            *value = if value.is_object() { json!(7) } else { json!({}) };
            assert_eq!(refused(&wrong), json!(field), "{name} with a wrong {field}");
        }
    }
}

/// An invitation, a call for a choice and a result, as a referee sends them to P01 or P02.
fn match_messages(player: &str) -> [Value; 3] {
    let about = |message_type, body| {
        let mut whole = message(message_type, "referee:REF01", body);
        whole["conversation_id"] = json!("conv-r1m1-test");
        whole["match_id"] = json!("R1M1");
        whole["auth_token"] = json!("tok-match-1");
        whole
    };
    let opponent = if player == "P01" { "P02" } else { "P01" };
    let league_id = "league_2025_even_odd";
    let result = json!({
        "status": "DRAW", "winner_player_id": null, "drawn_number": 7, "number_parity": "odd",
        "choices": {player: "even", opponent: "even"},
    });
    let invitation = json!({
        "league_id": league_id, "round_id": 1, "game_type": "even_odd", "role_in_match": "PLAYER_A",
        "opponent_id": opponent,
    });
    [
        about("GAME_INVITATION", invitation),
        about("CHOOSE_PARITY_CALL", json!({"player_id": player, "game_type": "even_odd", "deadline": now()})),
        about("GAME_OVER", json!({"game_type": "even_odd", "game_result": result})),
    ]
}

/// `message` with one field changed; null takes it out.
fn but(message: &Value, key: &str, value: Value) -> Value {
    let mut changed = message.clone();
    match value {
        Value::Null => drop(changed.as_object_mut().unwrap().remove(key)),
        value => changed[key] = value,
    }
    changed
}

#[test]
fn a_tool_call_is_the_direct_call() {
    let world = World::new(&[]);
    let [(manager, _), (referee, _), (player, _)] = three(&world);
    let [invitation, choice, over] = match_messages("P01");
    let peer = Peer::new(|request| good_player("P07", "odd", request));
    let player_meta = json!({
        "display_name": "Seven", "version": "1.0.0", "game_types": ["even_odd"], "contact_endpoint": peer.url,
    });
    let newcomer = |meta| message("LEAGUE_REGISTER_REQUEST", "player:P07", json!({"player_meta": meta}));
    let league = json!({"league_id": "league_2025_even_odd"});
    let round = but(&but(&league, "round_id", json!(1)), "matches", json!([]));
    let about = json!({"conversation_id": "conv-state", "match_id": "R1M1"});
    let (m, r, p) = (&manager, &referee, &player);
    // To whom, what, and words of the answer; of a refusal its code, field and part of the reason.
    let rows = [
        (p, choice.clone(), "E015 match_id R1M1"),
        (p, but(&invitation, "role_in_match", json!("C")), "E003 role_in_match PLAYER_A"),
        (p, but(&invitation, "sender", json!(7)), "E003 sender string"),
        (p, but(&invitation, "timestamp", json!("now")), "E021 timestamp 2025-01-15T10:30:00Z"),
        (p, but(&invitation, "protocol", json!("league.v1")), "E018 protocol league.v2"),
        (p, invitation, "GAME_JOIN_ACK"),
        (p, but(&choice, "auth_token", json!("tok-match-2")), "E012 auth_token invitation"),
        (p, choice, "CHOOSE_PARITY_RESPONSE"),
        (p, over, "status ok"),
        (r, message("ROUND_ANNOUNCEMENT", "league_manager", round), "E011 auth_token missing"),
        (m, message("START_LEAGUE", "launcher", league.clone()), "LEAGUE_STATUS waiting"),
        (m, newcomer(player_meta.clone()), "LEAGUE_REGISTER_RESPONSE ACCEPTED"),
        (m, newcomer(but(&player_meta, "version", json!("one"))), "LEAGUE_REGISTER_RESPONSE REJECTED"),
        (m, newcomer(but(&player_meta, "version", Value::Null)), "E003 player_meta.version missing"),
        (m, message("LEAGUE_QUERY", "P01", but(&league, "query_type", json!("any"))), "E011 auth_token missing"),
    ];
    let named = rows.map(|(agent, message, words)| (agent, tool_of(&message), message, words));
    let no_messages = [
        (p, "get_player_state", about.clone(), "P01 matches R1M1"),
        (r, "get_match_state", about.clone(), "E015 match_id R1M1"),
        (r, "start_match", about.clone(), "E003 league_id missing"),
        (m, "get_standings", about.clone(), "standings P01 P07"),
        (m, "create_schedule", about, "rounds R1M1"),
    ];
    for (agent, tool, arguments, words) in named.into_iter().chain(no_messages) {
        let direct = call(&agent.url(), tool, arguments.clone())["result"].take();
        let mut reply = call_tool(&agent.url(), tool, &arguments);
        let [content, structured] = ["content", "structuredContent"].map(|key| reply["result"][key].take());
        let text = content[0]["text"].as_str().unwrap_or_else(|| panic!("{tool}: {reply}"));
        assert_eq!(content, json!([{"type": "text", "text": text}]), "{tool}");
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), structured, "{tool}");
        let refused = words.starts_with('E');
        let rest = json!({"content": null, "structuredContent": null, "isError": refused, "resultType": "complete"});
        assert_eq!(reply["result"], rest, "{tool}: {text}");
        words.split(' ').for_each(|word| assert!(text.contains(word), "{tool}: no {word} in {text}"));
        assert_eq!(timeless(direct), timeless(structured), "{tool}");
    }
    let history = world.data("players/P01/history.json");
    assert_eq!(history["matches"].as_array().unwrap().len(), 1, "{history}");
}

#[test]
fn a_call_of_no_tool_is_a_json_rpc_error() {
    let world = World::new(&[]);
    let [(manager, _), (referee, _), (player, _)] = three(&world);
    let [invitation, ..] = match_messages("P01");
    let rows = [
        (&player, json!({"name": "guess_parity", "arguments": {}}), -32602),
        (&player, json!({"name": "get_standings", "arguments": {}}), -32602), // the manager's
        (&referee, json!({"name": "draw_number", "arguments": {}}), -32602),  // a step inside (R1)
        (&manager, json!({"name": "GAME_INVITATION", "arguments": invitation}), -32602),
        (&player, json!({"name": "choose_parity", "arguments": invitation}), -32602), // a message of another tool
        (&player, json!({"name": "get_player_state", "arguments": []}), -32602),
        (&player, json!({"arguments": {}}), -32602),
        (&player, json!({"name": 7}), -32602),
    ];
    for (agent, params, code) in rows {
        let reply = call(&agent.url(), "tools/call", params.clone());
        assert_eq!(reply["error"]["code"], code, "{params}: {reply}");
    }
    let bare = call(&manager.url(), "tools/call", json!({"name": "get_standings"})); // arguments may be left out
    assert_eq!(bare["result"]["structuredContent"]["standings"][0]["player_id"], "P01", "{bare}");
}

#[test]
fn a_player_reached_through_tools_plays_as_one_reached_directly() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "2"]);
    let mut players = ["P01", "P02"].map(|id| (id, world.player(&manager, id, &["--strategy", "even"])));
    players.iter().for_each(|(id, player)| drop(player.line(&format!(" is {id}"))));
    let referee = Peer::new(|_| Does::Answer(json!({"status": "ok"})));
    let card = register_referee(&manager.url(), "referee:REF01", &referee.url, 1);
    let assigned = referee.first("ROUND_ANNOUNCEMENT");
    assert_eq!(assigned["matches"][0]["match_id"], "R1M1", "{assigned}");
    // The same messages to both, also wrong and repeated ones: as methods to P01, as tools to P02.
    let [direct, through_tools] = players.each_ref().map(|(id, player)| {
        let [invitation, choice, over] = match_messages(id);
        let early = choice.clone();
        let forged = but(&choice, "auth_token", json!("tok-match-2"));
        let unreadable = but(&over, "game_result", Value::Null);
        let steps = [early, invitation.clone(), invitation, forged, choice.clone(), choice, unreadable, over];
        let replies = steps.map(|message| {
            timeless(match *id {
                "P01" => call(&player.url(), tool_of(&message), message)["result"].take(),
                _ => call_tool(&player.url(), tool_of(&message), &message)["result"]["structuredContent"].take(),
            })
        });
        replies.map(|reply| reply.to_string().replace(id, "ME"))
    });
    assert_eq!(direct, through_tools);
    let expected = ["E015", "GAME_JOIN_ACK", "GAME_JOIN_ACK", "E012", "even", "even", "game_result", "ok"];
    for (reply, expected) in direct.iter().zip(expected) {
        assert!(reply.contains(expected), "no {expected} in {reply}");
    }
    // The referee reports through a tool too, and the league comes to its end.
    let details = json!({"drawn_number": 7, "choices": {"P01": "even", "P02": "even"}});
    let report = json!({
        "auth_token": card["auth_token"], "league_id": "league_2025_even_odd", "round_id": 1, "match_id": "R1M1",
        "game_type": "even_odd", "result": {"winner": null, "score": {"P01": 1, "P02": 1}, "details": details},
    });
    let report = message("MATCH_RESULT_REPORT", "referee:REF01", report);
    let recorded = call_tool(&manager.url(), "report_match_result", &report)["result"].take();
    assert_eq!(recorded["structuredContent"]["message_type"], "MATCH_RESULT_ACK", "{recorded}");
    assert!(manager.wait().success());
    players.iter_mut().for_each(|(_, player)| assert!(player.wait().success()));
    let histories = ["P01", "P02"].map(|id| {
        let history = world.data(&format!("players/{id}/history.json"))["matches"].take().to_string();
        let text = history.replace(id, "ME").replace(if id == "P01" { "P02" } else { "P01" }, "OPPONENT");
        serde_json::from_str::<Value>(&text).unwrap()
    });
    assert_eq!(histories[0], histories[1]);
    assert!(world.table().iter().all(|row| row["points"] == 1), "{:?}", world.table());
}
