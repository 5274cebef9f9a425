//! The outermost layer under attack: JSON-RPC and HTTP as tables against each of the three programs while a league
//! runs, hundreds of half-open connections, no descriptors left, and whatever a fixed seed makes up.

mod support;

use fastrand::Rng;
use league::net::client::{About, Client, Peer};
use league::net::log::Log;
use league::protocol::{Entry, Kind, StartLeague};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};
use support::{Peer as Scripted, *};

/// Long enough to be sure that nothing comes.
const SILENCE: Duration = Duration::from_millis(300);
/// What the agents read at most, by default.
const MANAGER_LIMIT: usize = 10 << 10;
const AGENT_LIMIT: usize = 256 << 10;

/// A running league of one referee and two players. Its first match is played; the second is held up by P02, which
/// is ours, until the test ends the league.
struct Running {
    world: World,
    manager: Agent,
    referee: Agent,
    player: Agent,
    peer: Scripted,
    peer_token: String,
    held: Sender<()>,
}

impl Running {
    fn new(world: World) -> Running {
        world.edit(
            "system.json",
            "/timeouts/game_join_ack_timeout_sec",
            json!(60),
        );
        world.edit(
            "leagues/league_2025_even_odd.json",
            "/scheduling/cycles",
            json!(2),
        );
        let (held, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let peer = Scripted::new(move |request| {
            let params = &request["params"];
            if params["message_type"] == "GAME_INVITATION" && params["match_id"] == "R2M1" {
                let _ = gate.lock().unwrap().recv(); // until the test lets go of the other end
            }
            good_player("P02", "even", request)
        });
        let manager = world.manager(&["--players", "2"]);
        let referee = world.referee(&manager, "REF01", &[]);
        let player = world.player(&manager, "P01", &[]);
        let answer = register_player(&manager.url(), "player:P02", &peer.url);
        let peer_token = answer["auth_token"].as_str().unwrap().to_string();
        wait_until("the second match begins", || {
            peer.received("GAME_INVITATION")
                .iter()
                .any(|it| it["match_id"] == "R2M1")
        });
        Running {
            world,
            manager,
            referee,
            player,
            peer,
            peer_token,
            held,
        }
    }

    fn agents(&self) -> [(Kind, String); 3] {
        let [manager, referee, player] =
            [&self.manager, &self.referee, &self.player].map(Agent::url);
        [
            (Kind::Manager, manager),
            (Kind::Referee, referee),
            (Kind::Player, player),
        ]
    }

    /// Lets the second match be played: the league ends as it should, and nothing broke on the way.
    fn end(mut self) {
        drop(self.held);
        assert!(
            self.manager.wait().success(),
            "{}",
            self.manager.stderr.lock().unwrap()
        );
        assert!(self.referee.wait().success() && self.player.wait().success());
        assert_eq!(technical_losses(&self.world), (2, 0));
        assert_eq!(faults(&self.world), Vec::<Value>::new());
        assert_eq!(self.peer.received("LEAGUE_COMPLETED").len(), 1);
    }
}

/// How many results the journal has, and how many of them have no number.
fn technical_losses(world: &World) -> (usize, usize) {
    let all = world.events("Recorded");
    (
        all.len(),
        all.iter()
            .filter(|line| line["result"]["details"]["drawn_number"].is_null())
            .count(),
    )
}

fn faults(world: &World) -> Vec<Value> {
    world
        .logs()
        .into_iter()
        .filter(|line| line["event_type"] == "fault")
        .collect()
}

/// What comes back for these bytes, after which we say no more: status (0: none) and body.
fn sent(url: &str, bytes: &[u8], limit: Duration) -> (u16, String) {
    let mut stream = connect(url, limit).unwrap();
    let _ = stream
        .write_all(bytes)
        .and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    parted(&answer)
}

fn post(url: &str, body: impl AsRef<[u8]>) -> (u16, String) {
    http(
        "POST",
        url,
        "Content-Type: application/json\r\n",
        body.as_ref(),
    )
}

fn json_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

#[test]
fn json_rpc_and_http_are_answered_by_their_rules() {
    let running = Running::new(World::new(&[]));
    for (kind, url) in running.agents() {
        refuses_what_is_no_request(&url);
        knows_its_methods(kind, &url);
        echoes_ids(&url);
        pages_and_verbs(kind, &url);
        origins(&url);
        sizes(
            &url,
            if kind == Kind::Manager {
                MANAGER_LIMIT
            } else {
                AGENT_LIMIT
            },
        );
        requests_as_bytes(&url);
        pipelined(&url);
    }
    running.end();
}

/// The code of the refusal, the id that is echoed, and the body.
const NO_REQUEST: &str = r#"
    -32700 null hello
    -32700 null {"jsonrpc": "2.0", "method": "ping", "id": 1
    -32700 null {"jsonrpc": "2.0", "method": "ping", "id": 1e999}
    -32700 null {} {}
    -32600 null 7
    -32600 null null
    -32600 null "ping"
    -32600 null []
    -32600 null [{"jsonrpc": "2.0", "method": "ping", "id": 1}]
    -32600 null {}
    -32600 1 {"method": "ping", "id": 1}
    -32600 2 {"jsonrpc": "1.0", "method": "ping", "id": 2}
    -32600 3 {"jsonrpc": 2.0, "method": "ping", "id": 3}
    -32600 null {"jsonrpc": "2.0", "method": "ping", "id": true}
    -32600 null {"jsonrpc": "2.0", "method": "ping", "id": [1]}
    -32600 4 {"jsonrpc": "2.0", "id": 4}
    -32600 5 {"jsonrpc": "2.0", "method": 7, "id": 5}
    -32600 "six" {"jsonrpc": "2.0", "method": null, "id": "six"}
    -32602 7 {"jsonrpc": "2.0", "method": "ping", "params": [1], "id": 7}
    -32602 8 {"jsonrpc": "2.0", "method": "ping", "params": "x", "id": 8}
    -32602 9 {"jsonrpc": "2.0", "method": "ping", "params": null, "id": 9}"#;

fn refuses_what_is_no_request(url: &str) {
    let deep = "[".repeat(9_000);
    let bytes: [&[u8]; 5] = [
        b"",
        b"\xef\xbb\xbf{}",
        b"{\"jsonrpc\": \"\xff\xfe\"}",
        b"{\"a\": \"a\0b\"}",
        deep.as_bytes(),
    ];
    let rows = NO_REQUEST.trim().lines().map(|row| {
        let [code, id, body] = row.trim().splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        (json_of(code), json_of(id), body.as_bytes())
    });
    for (code, id, body) in rows.chain(bytes.map(|bytes| (json!(-32700), Value::Null, bytes))) {
        let (status, answer) = post(url, body);
        let row = format!("{url} {}: {answer}", String::from_utf8_lossy(body));
        assert_eq!(status, 200, "{row}");
        let answer = json_of(&answer);
        let shape = (
            &answer["error"]["code"],
            &answer["id"],
            &answer["jsonrpc"],
            answer.get("result"),
        );
        assert_eq!(shape, (&code, &id, &json!("2.0"), None), "{row}");
    }
}

fn knows_its_methods(kind: Kind, url: &str) {
    // What belongs to another kind, a method that contradicts the type, and one that needs a type.
    let (foreign, foreign_tool, tool, wire, typeless) = match kind {
        Kind::Manager => (
            "GAME_INVITATION",
            "choose_parity",
            "start_league",
            "LEAGUE_QUERY",
            "league_query",
        ),
        Kind::Referee => (
            "CHOOSE_PARITY_CALL",
            "get_player_state",
            "notify_round",
            "ROUND_COMPLETED",
            "notify_round",
        ),
        _ => (
            "MATCH_RESULT_REPORT",
            "start_match",
            "choose_parity",
            "ROUND_COMPLETED",
            "choose_parity",
        ),
    };
    let of_type = |name: &str| message(name, "league_manager", json!({}));
    let tool_of = |name: &str| Entry::of_message(name).unwrap().tool;
    let rows = [
        ("nonsense", json!({}), -32601),
        ("nonsense", json!({"message_type": "NONSENSE"}), -32601),
        ("draw_number", json!({}), -32601), // a step inside an agent
        (foreign_tool, json!({}), -32601),
        (foreign, of_type(foreign), -32601),
        (tool_of(foreign), of_type(foreign), -32601),
        ("nonsense", of_type(foreign), -32601),
        ("GAME_JOIN_ACK", of_type("GAME_JOIN_ACK"), -32601), // a reply only
        (tool, of_type(wire), -32602),
    ];
    for (method, params, code) in rows {
        let answer = call(url, method, params.clone());
        assert_eq!(
            answer["error"]["code"], code,
            "{kind} {method} {params}: {answer}"
        );
    }
    let unknown = json!({"message_type": "NONSENSE", "match_id": "R1M1"});
    let in_a_match = if kind == Kind::Manager {
        "LEAGUE_ERROR"
    } else {
        "GAME_ERROR"
    };
    for (params, error) in [
        (json!({}), "LEAGUE_ERROR"),
        (json!({"message_type": 7}), "LEAGUE_ERROR"),
        (unknown, in_a_match),
    ] {
        let answer = call(url, typeless, params.clone());
        let said = (
            &answer["result"]["message_type"],
            &answer["result"]["error_code"],
        );
        assert_eq!(
            said,
            (&json!(error), &json!("E003")),
            "{kind} {typeless} {params}: {answer}"
        );
    }
    // Its tool and its type are two names of one method. A bare league message is answered bare.
    for method in [wire, tool_of(wire), "nonsense"] {
        let answer = call(url, method, of_type(wire));
        assert_eq!(
            answer["result"]["original_message_type"], wire,
            "{kind} {method}: {answer}"
        );
    }
    let [foreign, own] =
        [foreign, wire].map(|name| json_of(&post(url, of_type(name).to_string()).1));
    assert_eq!(
        (&foreign["error"]["code"], &own["original_message_type"]),
        (&json!(-32601), &json!(wire)),
        "{own}"
    );
}

fn echoes_ids(url: &str) {
    for id in [
        json!(0),
        json!(-5),
        json!(u64::MAX),
        json!("seven"),
        json!(""),
        Value::Null,
    ] {
        let (status, body) = post(
            url,
            json!({"jsonrpc": "2.0", "method": "ping", "id": id}).to_string(),
        );
        assert_eq!(
            (status, json_of(&body)),
            (200, json!({"jsonrpc": "2.0", "result": {}, "id": id}))
        );
    }
    for method in [
        "ping",
        "notifications/initialized",
        "nonsense",
        "league_query",
    ] {
        let notification = json!({"jsonrpc": "2.0", "method": method, "params": {}});
        assert_eq!(
            post(url, notification.to_string()),
            (202, String::new()),
            "{method}"
        );
    }
    for reply in [
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {}}),
    ] {
        assert_eq!(
            post(url, reply.to_string()),
            (202, String::new()),
            "{reply}"
        );
    }
}

fn pages_and_verbs(kind: Kind, url: &str) {
    let rows = "GET /mcp/more 404, POST /nowhere 404, GET /nowhere 404, POST /../mcp 404, GET /mcp 405, PUT /mcp 405, DELETE /mcp 405, \
        OPTIONS /mcp 405, BREW /mcp 405, POST /health 405, HEAD /health 405, POST /mcp?a=b 200, GET /health?a=b 200";
    for row in rows.split(", ") {
        let [verb, path, expected] = row.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let answer = raw(
            url,
            format!("{verb} {path} HTTP/1.1\r\nConnection: close\r\n\r\n").as_bytes(),
            PATIENCE,
        );
        let (status, body) = parted(&answer);
        assert_eq!(status.to_string(), expected, "{row}");
        assert!(status == 200 || body.is_empty(), "{row}: {body}");
        let allow = format!("Allow: {}\r\n", if path == "/mcp" { "POST" } else { "GET" });
        assert_eq!(
            String::from_utf8_lossy(&answer).contains(&allow),
            status == 405,
            "{row}"
        );
    }
    let page = |path: &str| http("GET", &url.replace("/mcp", path), "", b"");
    assert_eq!(page(&"/long".repeat(20_000)).0, 404);
    let body = json_of(&page("/health").1);
    let id = body["id"].as_str().unwrap_or_else(|| panic!("{body}"));
    assert!(
        ["league_manager", "league_manager:LM01", "REF01", "P01"].contains(&id),
        "{body}"
    );
    assert!(
        !body["name"].as_str().unwrap().is_empty() && body["uptime"].is_u64(),
        "{body}"
    );
    assert_eq!(
        (&body["kind"], &body["state"]),
        (&json!(kind.word()), &json!("ACTIVE")),
        "{body}"
    );
}

/// Only a page of this very endpoint, host and port, may call from a browser. `PORT` is ours.
const ORIGINS: &str = "
    403 http://evil.example
    403 http://evil.example:PORT
    403 http://localhost.evil.example:PORT
    403 http://localhost
    403 http://localhost:1
    403 https://localhost:PORT/x y
    403 null
    403 http://localhost:PORT|http://localhost:PORT
    200 http://localhost:PORT
    200 http://127.0.0.1:PORT
    200 http://[::1]:PORT";

fn origins(url: &str) {
    let port = url.rsplit(':').next().unwrap().trim_end_matches("/mcp");
    for row in ORIGINS.replace("PORT", port).trim().lines() {
        let (expected, origins) = row.trim().split_once(' ').unwrap();
        let headers: String = origins
            .split('|')
            .map(|it| format!("Origin: {it}\r\n"))
            .collect();
        let (status, body) = http("POST", url, &headers, padded(60).as_bytes());
        assert_eq!(
            (&*status.to_string(), body.is_empty()),
            (expected, status == 403),
            "{row}"
        );
    }
}

#[test]
fn a_page_that_was_led_here_under_another_name_is_not_this_machine() {
    let manager = World::new(&[]).manager(&[]);
    let port = manager.port();
    let start = message(
        "START_LEAGUE",
        "launcher",
        json!({"league_id": "league_2025_even_odd"}),
    );
    let rows = [
        ("localhost", "LEAGUE_STATUS"),
        ("[::1]", "LEAGUE_STATUS"),
        ("evil.example", "LEAGUE_ERROR"),
    ];
    for (host, expected) in rows {
        let body = start.to_string();
        let head = format!("POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n");
        let whole = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let (_, answer) = parted(&raw(&manager.url(), whole.as_bytes(), PATIENCE));
        assert_eq!(json_of(&answer)["message_type"], expected, "{host}");
    }
}

/// A call padded to so many bytes.
fn padded(length: usize) -> String {
    let ping = r#"{"jsonrpc": "2.0", "method": "ping", "id": 1}"#;
    ping.to_string() + &" ".repeat(length - ping.len())
}

fn sizes(url: &str, limit: usize) {
    for (length, expected) in [
        (1024, 200),
        (1025, 200),
        (limit, 200),
        (limit + 1, 413),
        (2 << 20, 413),
    ] {
        let (status, body) = post(url, padded(length));
        assert_eq!(status, expected, "{length} bytes: {body}");
        assert_eq!(body.is_empty(), expected == 413, "{length} bytes: {body}");
        let head = "POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunked = format!("{head}{length:x}\r\n{}\r\n0\r\n\r\n", padded(length));
        assert_eq!(
            sent(url, chunked.as_bytes(), PATIENCE).0,
            expected,
            "{length} bytes in a chunk"
        );
    }
}

/// What is sent after the first line of a POST, the status of the answer (0: none), and a word of its body. `PING` is
/// a call of 60 bytes, `LEN` and `CHUNKED` are the usual headers, `~` ends a line.
const BYTES: &str = r#"
    200 -32700 LEN: -1~~{}
    200 -32700 LEN: letters~~{}
    200 -32700 LEN: 18446744073709551616~~{}
    200 -32700 Connection: close~~{}
    200 -32700 LEN: 0~~{}
    0 - LEN: 1000~~{}
    400 - LEN: 5000~~{}
    413 - LEN: 2000000~~{}
    413 - LEN: 268435456~~{}
    0 - LEN: 1000000000000~~{}
    0 - LEN: 9223372036854775807~~{}
    0 - LEN: 18446744073709551615~~{}
    200 result CHUNKED~~3c~PING~0~~
    200 -32700 CHUNKED~~0~~
    400 - CHUNKED~~3c~PING
    400 - CHUNKED~~nonsense~{}~0~~
    400 - CHUNKED~~-5~{}~0~~
    200 -32600 CHUNKED~~ffffffffffffffff~{}
    400 - CHUNKED~~fffffffffffffffff~{}
    200 result LEN: 60~~PING
    100 result Expect: 100-continue~LEN: 60~~PING
    417 - Expect: nothing~LEN: 2~~{}
    200 result Connection: upgrade~Upgrade: x~Content-Length: 60~~PING
    400 - no colon~~
    200 -32700 : no name~~
    0 - Häder: x~~
    0 - A: NUL~
    200 result MANY LEN: 60~~PING
    200 result LONG~LEN: 60~~PING"#;

fn requests_as_bytes(url: &str) {
    let shorthands = [
        ("LEN", "Connection: close~Content-Length"),
        ("CHUNKED", "Connection: close~Transfer-Encoding: chunked"),
        ("MANY ", &"A: b~".repeat(5_000)),
        ("LONG", &format!("A: {}", "b".repeat(200_000))),
        ("PING", &padded(60)),
        ("NUL", "\0"),
        ("~", "\r\n"),
    ];
    let rows = BYTES.trim().lines().map(|row| {
        let [status, says, rest] = row.trim_start().splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let whole = format!("POST /mcp HTTP/1.1~Host: x~{rest}");
        let whole = shorthands
            .iter()
            .fold(whole, |whole, (short, long)| whole.replace(short, long));
        (
            status.parse().unwrap(),
            says.strip_prefix('-')
                .filter(|it| it.is_empty())
                .unwrap_or(says),
            whole,
        )
    });
    let first_lines = ["POST /mcp", "POST", "POST /mcp HTTP/9.9", ""]
        .map(|line| (400, "", format!("{line}\r\n\r\n")));
    let tls = (0, "", "\x16\x03\x01\x02\x01\0\0\0".to_string());
    let first_lines = first_lines.into_iter().chain([tls]);
    for (expected, says, text) in rows.chain(first_lines) {
        // Only the absurd is never closed by the other side.
        let limit = if expected == 0 { SILENCE } else { PATIENCE };
        let (status, body) = sent(url, text.as_bytes(), limit);
        let row = format!("{url}: {:?}: {body}", &text[..text.len().min(120)]);
        assert_eq!(status, expected, "{row}");
        assert!(body.contains(says), "{row}");
    }
}

fn pipelined(url: &str) {
    let one = |id: u32, end: &str| {
        let body = json!({"jsonrpc": "2.0", "method": "ping", "id": id}).to_string();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: x\r\n{end}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let three = [one(1, ""), one(2, ""), one(3, "Connection: close\r\n")].concat();
    let answer = String::from_utf8(raw(url, three.as_bytes(), PATIENCE)).unwrap();
    let places: Vec<Option<usize>> = (1..=3)
        .map(|id| answer.find(&format!("\"id\":{id}")))
        .collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{answer}"
    );
}

#[test]
fn half_open_connections_delay_no_league() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "4", "--referees", "2"]);
    // Nothing, half a line, half a body; the last keeps an ending agent for its farewell, so not the manager.
    let half_open = |agent: &Agent, count: usize, kinds: usize| -> Vec<TcpStream> {
        let open = |n: usize| {
            let mut stream = connect(&agent.url(), SILENCE).unwrap();
            let parts = [
                "",
                "PO",
                "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{",
            ];
            stream.write_all(parts[n % kinds].as_bytes()).unwrap();
            stream
        };
        (0..count).map(open).collect()
    };
    let mut held = half_open(&manager, 100, 2);
    let referees = ["REF01", "REF02"].map(|id| world.referee(&manager, id, &[]));
    referees
        .iter()
        .for_each(|referee| held.extend(half_open(referee, 50, 3)));
    let players = ["P01", "P02", "P03"].map(|id| world.player(&manager, id, &[]));
    players
        .iter()
        .for_each(|player| held.extend(half_open(player, 40, 3)));
    let _last = world.player(&manager, "P04", &[]);
    assert!(manager.wait().success());
    assert_eq!(held.len(), 320);
    assert_eq!(technical_losses(&world), (6, 0));
    assert_eq!(faults(&world), Vec::<Value>::new());
}

#[test]
fn large_claims_cost_nothing() {
    let world = World::new(&[("system.json", "/limits/max_message_bytes", json!(2000))]);
    let manager = world.manager(&[]);
    let url = manager.url();
    let descriptors = || {
        fs::read_dir(format!("/proc/{}/fd", manager.child.id()))
            .unwrap()
            .count()
    };
    assert_eq!(
        [2000, 2001].map(|length| post(&url, padded(length)).0),
        [200, 413]
    );
    let claim = |bytes: u64| {
        let mut stream = connect(&url, SILENCE).unwrap();
        stream
            .write_all(
                format!("POST /mcp HTTP/1.1\r\nContent-Length: {bytes}\r\n\r\n{{").as_bytes(),
            )
            .unwrap();
        stream
    };
    let large: Vec<TcpStream> = (0..100).map(|_| claim(200 << 20)).collect();
    wait_until("all are held", || descriptors() >= 200);
    drop(large);
    wait_until("all are let go", || descriptors() < 40);
    // Claims that the allocator would take from its heap, and touch: 3 GB.
    let large: Vec<TcpStream> = (0..100).map(|_| claim(30 << 20)).collect();
    wait_until("all are held again", || descriptors() >= 200);
    let memory = fs::read_to_string(format!("/proc/{}/status", manager.child.id())).unwrap();
    let kilobytes = memory.lines().find_map(|it| {
        it.strip_prefix("VmRSS:")?
            .trim()
            .split_once(' ')?
            .0
            .parse()
            .ok()
    });
    assert!(
        kilobytes.is_some_and(|kilobytes: u64| kilobytes < 500_000),
        "{memory}"
    );
    drop(large);
    wait_until("all are let go again", || descriptors() < 40);
    drop([1 << 40; 2].map(claim));
    assert_eq!(post(&url, padded(60)).0, 200);
}

#[test]
fn what_is_refused_is_logged_short_with_code_and_field() {
    let world = World::new(&[("system.json", "/security/strict_envelope", json!(false))]);
    let manager = world.manager(&[]);
    let url = manager.url();
    let (long, league_id) = ("x".repeat(4_000), "league_2025_even_odd");
    let query = |body: Value| call(&url, "league_query", body)["result"].take();
    // Without a strict envelope it is supplied, and nothing of the body.
    for (body, field) in [
        (
            json!({"message_type": "LEAGUE_QUERY", "league_id": league_id, "query_type": "any"}),
            "auth_token",
        ),
        (
            json!({"message_type": "LEAGUE_QUERY", "query_type": "any"}),
            "league_id",
        ),
        (
            json!({"league_id": league_id, "query_type": "any"}),
            "message_type",
        ),
        (
            json!({"message_type": "LEAGUE_QUERY", "sender": long, "conversation_id": long, "query_type": 1, "league_id": 7}),
            "league_id",
        ),
    ] {
        assert_eq!(query(body.clone())["context"]["field"], field, "{body}");
        let log = world.logs();
        let of = |event: &str| {
            log.iter()
                .rfind(|line| line["event_type"] == event)
                .unwrap()
        };
        let (came, sent) = (of("message_received"), of("message_sent"));
        assert_eq!(
            (&sent["error_code"], &sent["field"]),
            (&sent["message"]["error_code"], &json!(field)),
            "{sent}"
        );
        assert!(
            came.to_string().len() < 1_500 && sent.to_string().len() < 2_000,
            "{came}\n{sent}"
        );
    }
    assert!(
        world
            .logs()
            .iter()
            .any(|line| line["event_type"] == "fields_supplied" && line["level"] == "WARNING")
    );
    // A tool that anybody may call fills no disk.
    call(&url, "get_standings", json!({"x": "x".repeat(9_000)}));
    let log = world.logs();
    let called = log.iter().find(|line| line["event_type"] == "tool_called");
    assert!(called.unwrap().to_string().len() < 1_000, "{called:?}");
    // Neither does whoever asks for what is not there, however long its name is, and however often, or is not let in.
    for _ in 0..50 {
        register_player(&url, "player:new", "nowhere");
    }
    let rejected = world.logs();
    let is_one = |line: &&Value| line["message"]["status"] == "REJECTED";
    let rejected = rejected.iter().filter(is_one).count();
    assert!((1..=45).contains(&rejected), "{rejected}");
    for _ in 0..50 {
        call(&url, &"m".repeat(9_000), json!({}));
    }
    let mut vain = world.logs();
    vain.retain(|line| line["event_type"] == "asked_in_vain");
    let length = vain.iter().map(|line| line.to_string().len()).max();
    assert!(
        vain.len() <= 45 && length < Some(1_000),
        "{} {length:?}",
        vain.len()
    );
}

/// The status and the body of an answer, and what the caller says of it.
const ANSWERS: &str = r#"
    200 {"result": {"status": "ok"}} | E003 answered {"status":"ok"}: message_type: missing
    200 {"result": RIGHT} | ok
    200 RIGHT | ok
    200 {"jsonrpc": "2.0", "method": "x", "params": RIGHT} | ok
    200 {"id": 77, "result": RIGHT} | ok
    500 {"result": RIGHT} | ok
    404 {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}} | E003 answered JSON-RPC error -32601 "Method not found"
    200 {"error": {"code": -32603}} | E003 answered JSON-RPC error -32603 "no message"
    404 Method not found | E009 answered HTTP 404 "Method not found"
    404 {"detail": "no"} | E009 answered HTTP 404 "{\"detail\": \"no\"}"
    204 | E009 answered HTTP 204
    307 | E009 answered HTTP 307
    500 | E009 answered HTTP 500
    200 hello | E003 answered hello: that is not a JSON-RPC reply
    200 [] | E003 answered []: that is not a JSON-RPC reply
    200 {} | E003 answered {}: result: missing
    200 BIG | E009 gave no whole answer (it is over 10240 bytes)"#;

#[test]
fn answers_are_read_and_what_is_wrong_is_explained() {
    let log = Arc::new(Log::new(&World::new(&[]).folder, "test"));
    let client = Client::new("referee:REF01", log);
    let about = About {
        conversation_id: "conv-1".into(),
        ..About::default()
    };
    let said = |endpoint: &str, seconds: u64| {
        let to = Peer {
            kind: Kind::Manager,
            id: "P01".into(),
            endpoint: endpoint.into(),
            max: MANAGER_LIMIT,
            limit: Duration::from_secs(seconds),
        };
        let question = StartLeague {
            league_id: "x".into(),
        }
        .into();
        match client.ask(&to, &question, &about) {
            Ok(_) => "ok".to_string(),
            Err(error) => format!("{} {}", error.code(), error.explain()),
        }
    };
    let right = r#"{"message_type": "MATCH_RESULT_ACK", "match_id": "R1M1", "status": "recorded"}"#;
    for row in ANSWERS.trim().lines() {
        let (answer, expected) = row.trim().split_once(" | ").unwrap();
        let (status, body) = answer.split_once(' ').unwrap_or((answer, ""));
        let body = body
            .replace("RIGHT", right)
            .replace("BIG", &"x".repeat(MANAGER_LIMIT + 1));
        let whole = format!(
            "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let peer = Scripted::new(move |_| Does::Bytes(whole.clone().into_bytes()));
        let said = said(&peer.url, 5);
        assert!(said.contains(expected) && said.len() < 600, "{row}: {said}");
    }
    let head = b"HTTP/1.1 200 OK\r\n\r\n";
    let trickles = Scripted::new(|_| Does::Endless(head.into(), Duration::from_millis(20)));
    let endless =
        Scripted::new(|_| Does::Endless([head, &[b' '; 65536][..]].concat(), Duration::ZERO));
    let cut_off =
        Scripted::new(|_| Does::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".into()));
    let [silent, closed] = [|_: &Value| Does::Silence, |_: &Value| Does::Close].map(Scripted::new);
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (endpoint, expected) in [
        (&*silent.url, "E001 gave no answer"),
        (&trickles.url, "E001 gave no answer"),
        (
            &endless.url,
            "E009 gave no whole answer (it is over 10240 bytes)",
        ),
        (&cut_off.url, "E009 gave no whole answer"),
        (&closed.url, "E009 could not be reached"),
        (
            &format!("http://{nobody}/mcp"),
            "E009 could not be reached (connection refused)",
        ),
        // No such network: the address is the peer's fault, not our machine's.
        ("http://[2001:db8::1]:81/mcp", "E009 could not be reached"),
        ("http://255.255.255.255:81/mcp", "E009 could not be reached"),
        (
            "http://no.such.host.invalid:81/mcp",
            "E009 could not be reached",
        ),
        (
            "ftp://localhost/mcp",
            "E009 could not be reached (\"ftp://localhost/mcp\" is not an absolute URL",
        ),
    ] {
        let said = said(endpoint, if expected.starts_with("E001") { 1 } else { 5 });
        assert!(said.starts_with(expected), "{endpoint}: {said}");
    }
}

/// Whether an answer comes within a moment.
fn answers(url: &str) -> bool {
    let Ok(mut stream) = connect(url, SILENCE) else {
        return false;
    };
    let _ = stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer.starts_with(b"HTTP/1.1 200")
}

#[test]
fn a_program_without_descriptors_takes_its_own_place_and_answers_again() {
    let world = World::new(&[]);
    let manager = world.manager(&[]).url();
    // An even number and an odd one: the accept thread of tiny_http ends with an error, or panics.
    let rows = [40, 41].into_iter().flat_map(|descriptors| {
        ["league_manager", "referee", "player"].map(|it| (descriptors, it))
    });
    thread::scope(|scope| {
        for (descriptors, program) in rows {
            let (world, manager) = (World::new(&[]), &manager);
            scope.spawn(move || {
                let arguments: &[&str] = match program {
                    "league_manager" => &[],
                    _ => &["--manager", manager],
                };
                let ulimit = format!("ulimit -n {descriptors}");
                let mut agent = world.start_limited(&ulimit, program, arguments);
                let url = agent.url();
                let row = format!("{program} with {descriptors} descriptors");
                // Before, it mends itself as well as it can.
                wait_until(&format!("{row} is old enough"), || {
                    let health = http("GET", &url.replace("/mcp", "/health"), "", b"").1;
                    json_of(&health)["uptime"]
                        .as_u64()
                        .is_some_and(|age| age > 3)
                });
                let flood: Vec<_> = (0..60).map(|_| connect(&url, SILENCE)).collect();
                wait_until(&format!("{row} takes its own place"), || {
                    agent.stderr.lock().unwrap().contains("takes its own place")
                });
                wait_until(&format!("{row} answers again"), || answers(&url));
                assert!(agent.child.try_wait().unwrap().is_none(), "{row}");
                drop(flood);
            });
        }
    });
}

/// What is sent on each connection, on how many, and whether the attacker holds them.
const ATTACKS: [(&str, usize, bool); 5] = [
    ("PRI * HTTP/2.0\r\n\r\n", 700, false),
    (
        "POST /mcp HTTP/1.1\r\nContent-Length: 300000000\r\n\r\n{",
        700,
        false,
    ),
    (
        "POST /mcp HTTP/1.1\r\nContent-Length: 30000000\r\n\r\n{",
        700,
        false,
    ),
    ("POST /mcp HTTP/1.1\r\nHost: x\r\nA: ", 900, true),
    (
        "POST /mcp HTTP/1.1\r\nContent-Length: 5000\r\n\r\n{",
        900,
        true,
    ),
];

#[test]
fn no_attack_stops_a_league() {
    thread::scope(|scope| {
        for (bytes, count, holds) in ATTACKS {
            scope.spawn(move || {
                let world = World::new(&[]);
                let arguments = ["--players", "4"];
                let mut manager =
                    world.start_limited("ulimit -n 1024", "league_manager", &arguments);
                let _referee = world.referee(&manager, "REF01", &[]);
                let _players = ["P01", "P02", "P03"].map(|id| world.player(&manager, id, &[]));
                let address = format!("127.0.0.1:{}", manager.port()).parse().unwrap();
                let mut held = Vec::new();
                for _ in 0..count {
                    // While the program takes its own place it accepts nobody.
                    let Ok(mut stream) = TcpStream::connect_timeout(&address, SILENCE) else {
                        continue;
                    };
                    let _ = stream.write_all(bytes.as_bytes());
                    if holds {
                        held.push(stream);
                    }
                }
                let _last = world.player(&manager, "P04", &[]);
                until_within(60, &format!("the league ends under {bytes:?}"), || {
                    manager.child.try_wait().unwrap()
                });
                assert_eq!(technical_losses(&world), (6, 0), "{bytes:?}");
            });
        }
    });
}

#[test]
#[ignore = "takes a gigabyte of memory: cargo test --test http -- --ignored"]
fn endless_headers_stop_no_league() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "2"]);
    let _referee = world.referee(&manager, "REF01", &[]);
    let _first = world.player(&manager, "P01", &[]);
    let mut stream = connect(&manager.url(), PATIENCE).unwrap();
    stream.write_all(b"POST /mcp HTTP/1.1\r\n").unwrap();
    let lines = "X: y\r\n".repeat(10_000);
    let written = (0..20_000).take_while(|_| stream.write_all(lines.as_bytes()).is_ok());
    assert!(
        written.count() < 20_000,
        "nobody stops a gigabyte of headers"
    );
    let said = manager.stderr.lock().unwrap().clone();
    assert!(said.contains("takes its own place"), "{said}");
    let _last = world.player(&manager, "P02", &[]);
    assert!(manager.wait().success());
    assert_eq!(technical_losses(&world), (1, 0));
}

#[test]
fn whoever_says_nothing_is_let_go() {
    let manager = World::new(&[]).manager(&[]);
    let parts = [
        "",
        "PO",
        "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{",
    ];
    thread::scope(|scope| {
        for part in parts {
            let url = manager.url();
            scope.spawn(move || {
                let started = Instant::now();
                let answer = raw(&url, part.as_bytes(), 2 * PATIENCE);
                assert!(started.elapsed() < 2 * PATIENCE, "{part:?}");
                assert!(parted(&answer).0 != 200, "{part:?}");
            });
        }
    });
}

#[test]
fn refusals_of_one_address_do_not_fill_the_disk() {
    let world = World::new(&[]);
    let manager = world.manager(&[]);
    let query = message(
        "LEAGUE_QUERY",
        "player:P99",
        json!({"league_id": "league_2025_even_odd", "query_type": "any"}),
    );
    let asked = 200;
    for _ in 0..asked {
        assert_eq!(send(&manager.url(), &query)["error_code"], "E011");
    }
    let of = |event: &str| {
        world
            .logs()
            .into_iter()
            .filter(|it| it["event_type"] == event)
            .count()
    };
    let logged = of("message_sent");
    assert!((20..asked).contains(&logged), "{logged}");
    until("what was left out is counted in one line", || {
        send(&manager.url(), &query);
        (of("not_logged") > 0).then_some(())
    });
}

#[test]
fn nobody_loses_because_the_referee_was_flooded() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "6"]);
    let arguments = ["--manager", &manager.url(), "--referee-id", "REF01"];
    let referee = world.start_limited("ulimit -n 40", "referee", &arguments);
    let _players = ["P01", "P02", "P03", "P04", "P05"].map(|id| world.player(&manager, id, &[]));
    let url = referee.url();
    thread::scope(|scope| {
        // Waves, each as long as it takes to see that nobody is answered.
        scope.spawn(|| {
            for _ in 0..4 {
                let mut wave: Vec<TcpStream> =
                    (0..30).map(|_| connect(&url, SILENCE).unwrap()).collect();
                let _ = wave[29].read(&mut [0]);
            }
        });
        let _last = world.player(&manager, "P06", &[]);
        assert!(manager.wait().success());
    });
    assert_eq!(technical_losses(&world), (15, 0));
    assert!(!faults(&world).is_empty(), "the flood did no harm at all");
}

// Whatever a fixed seed makes up.

/// What may stand anywhere: words that mean something here, some that should not, and numbers at their ends.
fn any_json(rng: &mut Rng) -> Value {
    let values = r#"[null, true, false, 0, -1, 11, 0.5, 1e308, -9223372036854775808, 18446744073709551615, [], {}, "", " ",
        "\u0000", "\u001b[2J", "\u202e", "../../etc", "://", "http://127.0.0.1", "2025-01-15T10:30:00Z", "1.0.0", "P01",
        "2025-01-15T10:30:00+02:00", "player:P01", "player:P02", "REF01", "referee:REF01", "league_manager", "launcher",
        "R1M1", "R2M1", "R9M9", "even", "odd", "even_odd", "league_2025_even_odd", "league.v2", "conv-1", "tok-p01-0",
        "ACCEPTED", "E012", "GET_STANDINGS", "GET_SCHEDULE", "GET_NEXT_MATCH", "GET_PLAYER_STATS"]"#;
    let values: Vec<Value> = serde_json::from_str(values).unwrap();
    let values = if rng.bool() { &values[..12] } else { &values }; // half of them no text
    let mut one = || rng.choice(values).unwrap().clone();
    let [a, b] = [one(), one()];
    match rng.u8(..8) {
        0 => json!([a, b]),
        1 => json!({"match_id": a, b.to_string(): a}),
        _ => a,
    }
}

/// Changes one thing somewhere inside, or takes it out.
fn mutate(rng: &mut Rng, value: &mut Value) {
    let deeper = rng.u8(..4) > 0;
    match value {
        Value::Object(object) if deeper && !object.is_empty() => {
            let key = rng.choice(object.keys()).unwrap().clone();
            match rng.u8(..4) {
                0 => drop(object.remove(&key)),
                _ => mutate(rng, &mut object[&key]),
            }
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let place = rng.usize(..items.len());
            mutate(rng, &mut items[place]);
        }
        other => *other = any_json(rng),
    }
}

/// A body to try: bytes, any JSON, or an example of the documents that an agent of this kind takes, a little changed:
/// bare, called as a method, or called as a tool.
fn body(rng: &mut Rng, kind: Kind, token: &str, examples: &[Value]) -> Vec<u8> {
    let tool = rng
        .choice(Entry::served_by(kind).collect::<Vec<_>>())
        .unwrap();
    let example = examples
        .iter()
        .find(|it| it["message_type"] == tool.message_type)
        .map(|it| &it["json"]);
    let inside = example.and_then(|json| {
        ["params", "result"]
            .iter()
            .find_map(|key| json.get(key))
            .or(example)
    });
    let mut message = inside.cloned().unwrap_or_else(|| any_json(rng));
    if inside.is_some() && rng.bool() && !tool.tool.starts_with("register") {
        let known = [
            ("timestamp", &*now()),
            ("sender", "player:P02"),
            ("auth_token", token),
        ];
        known
            .into_iter()
            .for_each(|(key, value)| message[key] = value.into());
    }
    (0..rng.u8(..3)).for_each(|_| mutate(rng, &mut message));
    let call = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
    let mut whole = match rng.u8(..8) {
        0 => return (0..rng.usize(..200)).map(|_| rng.u8(..)).collect(),
        1 => any_json(rng),
        2 => message,
        3 => call(
            "tools/call",
            json!({"name": tool.tool, "arguments": message}),
        ),
        _ => call(tool.tool, message),
    };
    if rng.u8(..5) == 0 {
        mutate(rng, &mut whole);
    }
    let mut bytes = whole.to_string().into_bytes();
    if rng.u8(..10) == 0 {
        *rng.choice(&mut bytes).unwrap() = rng.u8(..);
    }
    bytes
}

#[test]
fn nothing_made_up_breaks_an_agent_or_changes_a_table() {
    let running = Running::new(World::new(&[]));
    let table = || call(&running.manager.url(), "get_standings", json!({}))["result"].clone();
    let before = table();
    assert_eq!(before["standings"][0]["played"], 1);
    let examples: Vec<Value> = serde_json::from_str(include_str!("examples.json")).unwrap();
    thread::scope(|scope| {
        for (seed, (kind, url)) in running.agents().into_iter().enumerate() {
            let (token, examples) = (&running.peer_token, &examples);
            scope.spawn(move || {
                let rng = &mut Rng::with_seed(seed as u64);
                for case in 0..700 {
                    let body = body(rng, kind, token, examples);
                    let (status, answer) = post(&url, &body);
                    let row = format!(
                        "{kind} {case}: {}\n{status} {answer}",
                        String::from_utf8_lossy(&body)
                    );
                    match status {
                        202 => assert!(answer.is_empty(), "{row}"),
                        200 => assert!(is_an_answer(&json_of(&answer)), "{row}"),
                        _ => panic!("{row}"),
                    }
                }
            });
        }
    });
    assert_eq!(table(), before);
    running.end();
}

/// A JSON-RPC reply without a fault of the agent's own, or the bare answer to a bare message.
fn is_an_answer(answer: &Value) -> bool {
    let (result, error) = (answer.get("result"), answer.get("error"));
    match answer.get("jsonrpc") {
        Some(_) => {
            result.is_some() != error.is_some() && error.is_none_or(|error| error["code"] != -32603)
        }
        None => answer["message_type"].is_string() || answer["status"] == "ok",
    }
}
