//! The outermost layer under attack: JSON-RPC and HTTP as tables against each of the three programs while a league
//! runs, hundreds of half-open connections, no descriptors left, and whatever a fixed seed makes up.

mod support;

use league::{
    endpoint::Endpoint,
    log::masked,
    protocol::{self, CATALOGUE, Entry, Kind},
    screen::shown,
};
use serde_json::{Map, Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    sync::{
        Mutex,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};
use support::*;

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
    peer: Peer,
    peer_token: String,
    held: Sender<()>,
}

impl Running {
    fn new(world: World) -> Running {
        world.edit("system.json", "/timeouts/game_join_ack_timeout_sec", json!(60));
        world.edit("leagues/league_2025_even_odd.json", "/scheduling/cycles", json!(2));
        let (held, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let peer = Peer::new(move |request| {
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
        until("the second match begins", || {
            peer.received("GAME_INVITATION").iter().any(|it| it["match_id"] == "R2M1").then_some(())
        });
        Running { world, manager, referee, player, peer, peer_token, held }
    }

    fn agents(&self) -> [(Kind, String); 3] {
        let urls = [self.manager.url(), self.referee.url(), self.player.url()];
        let [manager, referee, player] = urls;
        [(Kind::Manager, manager), (Kind::Referee, referee), (Kind::Player, player)]
    }

    /// Lets the second match be played: the league ends as it should, and nothing broke on the way.
    fn end(mut self) {
        drop(self.held);
        assert!(self.manager.wait().success(), "{}", self.manager.stderr.lock().unwrap());
        assert!(self.referee.wait().success() && self.player.wait().success());
        assert_eq!(technical_losses(&self.world), (2, 0));
        assert_eq!(faults(&self.world), Vec::<Value>::new());
        assert_eq!(self.peer.received("LEAGUE_COMPLETED").len(), 1);
    }
}

/// How many results the journal has, and how many of them have no number.
fn technical_losses(world: &World) -> (usize, usize) {
    let journal = world.journal();
    let results: Vec<&Value> = journal.iter().filter_map(|line| line.get("result")).collect();
    (results.len(), results.iter().filter(|result| result["details"]["drawn_number"].is_null()).count())
}

fn faults(world: &World) -> Vec<Value> {
    world.logs().into_iter().filter(|line| line["event_type"] == "fault").collect()
}

/// What comes back for these bytes, after which we say no more: status (0: none) and body.
fn sent(url: &str, bytes: &[u8], limit: Duration) -> (u16, String) {
    let mut stream = connect(url, limit).unwrap();
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    parted(&answer)
}

fn parted(answer: &[u8]) -> (u16, String) {
    let text = String::from_utf8_lossy(answer);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, text.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_string())
}

fn post(url: &str, body: impl AsRef<[u8]>) -> (u16, String) {
    http("POST", url, "Content-Type: application/json\r\n", body.as_ref())
}

fn json_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn page(url: &str, path: &str) -> String {
    url.replace("/mcp", path)
}

#[test]
fn json_rpc_is_answered_by_its_rules() {
    let running = Running::new(World::new(&[]));
    for (kind, url) in running.agents() {
        refuses_what_is_no_request(&url);
        knows_its_methods(kind, &url);
        echoes_ids(&url);
    }
    running.end();
}

fn refuses_what_is_no_request(url: &str) {
    let deep = "[".repeat(9_000);
    let rows: &[(&[u8], i32, Value)] = &[
        (b"", -32700, Value::Null),
        (b"hello", -32700, Value::Null),
        (b"{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\": 1", -32700, Value::Null),
        (b"{\"jsonrpc\": \"2.0\", \"method\": \"\xff\xfe\", \"id\": 1}", -32700, Value::Null),
        (b"\xef\xbb\xbf{}", -32700, Value::Null),
        (b"{\"jsonrpc\": \"2.0\", \"method\": \"a\0b\", \"id\": 1}", -32700, Value::Null),
        (b"{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\": 1e999}", -32700, Value::Null),
        (b"{} {}", -32700, Value::Null),
        (deep.as_bytes(), -32700, Value::Null),
        (b"7", -32600, Value::Null),
        (b"null", -32600, Value::Null),
        (b"\"ping\"", -32600, Value::Null),
        (b"[]", -32600, Value::Null),
        (b"[{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\": 1}]", -32600, Value::Null),
        (b"{}", -32600, Value::Null),
        (b"{\"method\": \"ping\", \"id\": 1}", -32600, json!(1)),
        (b"{\"jsonrpc\": \"1.0\", \"method\": \"ping\", \"id\": 2}", -32600, json!(2)),
        (b"{\"jsonrpc\": 2.0, \"method\": \"ping\", \"id\": 3}", -32600, json!(3)),
        (b"{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\": true}", -32600, Value::Null),
        (b"{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\": [1]}", -32600, Value::Null),
        (b"{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\": {}}", -32600, Value::Null),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 4}", -32600, json!(4)),
        (b"{\"jsonrpc\": \"2.0\", \"method\": 7, \"id\": 5}", -32600, json!(5)),
        (b"{\"jsonrpc\": \"2.0\", \"method\": null, \"id\": \"six\"}", -32600, json!("six")),
        (b"{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"params\": [1], \"id\": 7}", -32602, json!(7)),
        (b"{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"params\": \"x\", \"id\": 8}", -32602, json!(8)),
        (b"{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"params\": null, \"id\": 9}", -32602, json!(9)),
    ];
    for (body, code, id) in rows {
        let (status, answer) = post(url, body);
        let row = format!("{url} {}: {answer}", String::from_utf8_lossy(body));
        assert_eq!(status, 200, "{row}");
        let answer = json_of(&answer);
        let shape = (&answer["error"]["code"], &answer["id"], &answer["jsonrpc"], answer.get("result"));
        assert_eq!(shape, (&json!(code), id, &json!("2.0"), None), "{row}");
    }
}

fn knows_its_methods(kind: Kind, url: &str) {
    // What belongs to another kind, a method that contradicts the type, and one that needs a type.
    let (foreign, foreign_tool, contradiction, typeless) = match kind {
        Kind::Manager => ("GAME_INVITATION", "choose_parity", ("start_league", "LEAGUE_QUERY"), "league_query"),
        Kind::Referee => {
            ("CHOOSE_PARITY_CALL", "get_player_state", ("notify_round", "ROUND_COMPLETED"), "notify_round")
        }
        _ => ("MATCH_RESULT_REPORT", "start_match", ("choose_parity", "GAME_OVER"), "choose_parity"),
    };
    let foreign_message = message(foreign, "player:P01", json!({}));
    let foreign_method = Entry::of_message(foreign).unwrap().tool;
    let (tool, wire) = contradiction;
    let rows = [
        ("nonsense", json!({}), -32601),
        ("nonsense", json!({"message_type": "NONSENSE"}), -32601),
        ("register_to_league", json!({}), -32601), // steps inside an agent (R1)
        ("collect_choices", json!({}), -32601),
        ("draw_number", json!({}), -32601),
        ("finalize_match", json!({}), -32601),
        (foreign_tool, json!({}), -32601),
        (foreign, foreign_message.clone(), -32601),
        (foreign_method, foreign_message.clone(), -32601),
        ("nonsense", foreign_message.clone(), -32601),
        ("GAME_JOIN_ACK", message("GAME_JOIN_ACK", "player:P01", json!({})), -32601), // a reply only
        (tool, message(wire, "player:P01", json!({})), -32602),
    ];
    for (method, params, code) in rows {
        let answer = call(url, method, params.clone());
        assert_eq!(answer["error"]["code"], code, "{kind} {method} {params}: {answer}");
    }
    let bare = post(url, foreign_message.to_string());
    assert_eq!(json_of(&bare.1)["error"]["code"], -32601, "{kind} bare {foreign}: {}", bare.1);

    let unknown = json!({"message_type": "NONSENSE", "protocol": "league.v2", "match_id": "R1M1"});
    let in_a_match = if kind == Kind::Manager { "LEAGUE_ERROR" } else { "GAME_ERROR" };
    for (params, error) in
        [(json!({}), "LEAGUE_ERROR"), (json!({"message_type": 7}), "LEAGUE_ERROR"), (unknown, in_a_match)]
    {
        let answer = call(url, typeless, params.clone());
        let said = (&answer["result"]["message_type"], &answer["result"]["error_code"]);
        assert_eq!(said, (&json!(error), &json!("E003")), "{kind} {typeless} {params}: {answer}");
    }
    // A bare league message is answered bare, under any type it may carry.
    let wire = if kind == Kind::Manager { "LEAGUE_QUERY" } else { "ROUND_COMPLETED" };
    let (status, answer) = post(url, message(wire, "league_manager", json!({})).to_string());
    let answer = json_of(&answer);
    assert_eq!(
        (status, &answer["message_type"], answer.get("jsonrpc")),
        (200, &json!("LEAGUE_ERROR"), None),
        "{answer}"
    );
    // Its tool and its type are two names of one method.
    for method in [wire, Entry::of_message(wire).unwrap().tool, "nonsense"] {
        let answer = call(url, method, message(wire, "league_manager", json!({})));
        assert_eq!(answer["result"]["original_message_type"], wire, "{kind} {method}: {answer}");
    }
}

fn echoes_ids(url: &str) {
    for id in
        [json!(0), json!(-5), json!(9_007_199_254_740_993_u64), json!(u64::MAX), json!("seven"), json!(""), Value::Null]
    {
        let (status, body) = post(url, json!({"jsonrpc": "2.0", "method": "ping", "id": id}).to_string());
        assert_eq!((status, json_of(&body)), (200, json!({"jsonrpc": "2.0", "result": {}, "id": id})));
    }
    for method in ["ping", "notifications/initialized", "nonsense", "league_query"] {
        let notification = json!({"jsonrpc": "2.0", "method": method, "params": {}});
        assert_eq!(post(url, notification.to_string()), (202, String::new()), "{method}");
    }
}

#[test]
fn http_is_answered_with_the_right_status() {
    let running = Running::new(World::new(&[]));
    for (kind, url) in running.agents() {
        pages_and_verbs(kind, &url);
        origins(&url);
        let limit = if kind == Kind::Manager { MANAGER_LIMIT } else { AGENT_LIMIT };
        sizes(&url, limit);
        requests_as_bytes(&url, limit);
        pipelined(&url);
    }
    running.end();
}

fn pages_and_verbs(kind: Kind, url: &str) {
    let health = page(url, "/health");
    let long = page(url, &format!("/{}", "long".repeat(25_000)));
    let rows = [
        ("GET", page(url, "/"), 404),
        ("POST", page(url, "/"), 404),
        ("GET", page(url, "/mcp/more"), 404),
        ("POST", page(url, "/../mcp"), 404),
        ("GET", long, 404),
        ("GET", url.to_string(), 405),
        ("PUT", url.to_string(), 405),
        ("DELETE", url.to_string(), 405),
        ("OPTIONS", url.to_string(), 405),
        ("BREW", url.to_string(), 405),
        ("POST", health.clone(), 405),
        ("HEAD", health.clone(), 405),
        ("POST", format!("{url}?a=b"), 200),
        ("GET", format!("{health}?a=b"), 200),
    ];
    for (verb, url, expected) in rows {
        let (status, body) = http(verb, &url, "", b"");
        assert_eq!(status, expected, "{verb} {}", &url[..url.len().min(80)]);
        assert!(status == 200 || body.is_empty(), "{verb} {body}");
    }
    let (_, body) = http("GET", &health, "", b"");
    let body = json_of(&body);
    let id = body["id"].as_str().unwrap_or_else(|| panic!("{body}"));
    assert!(["league_manager", "league_manager:LM01", "REF01", "P01"].contains(&id), "{body}");
    assert!(!body["name"].as_str().unwrap().is_empty() && body["uptime"].is_u64(), "{body}");
    assert_eq!((&body["kind"], &body["state"]), (&json!(kind.word()), &json!("ACTIVE")), "{body}");
}

fn origins(url: &str) {
    let port = url.rsplit(':').next().unwrap().trim_end_matches("/mcp");
    let rows = [
        ("http://evil.example".to_string(), 403),
        (format!("http://evil.example:{port}"), 403),
        (format!("http://localhost.evil.example:{port}"), 403),
        ("null".into(), 403),
        (String::new(), 403),
        (format!("http://localhost:{port}"), 200),
        (format!("http://127.0.0.1:{port}"), 200),
        (format!("http://[::1]:{port}"), 200),
    ];
    for (origin, expected) in rows {
        let ping = json!({"jsonrpc": "2.0", "method": "ping", "id": 1}).to_string();
        assert_eq!(http("POST", url, &format!("Origin: {origin}\r\n"), ping.as_bytes()).0, expected, "{origin}");
    }
}

/// A call padded to so many bytes.
fn padded(length: usize) -> String {
    let ping = r#"{"jsonrpc": "2.0", "method": "ping", "id": 1}"#;
    ping.to_string() + &" ".repeat(length - ping.len())
}

fn sizes(url: &str, limit: usize) {
    for (length, expected) in [(1024, 200), (1025, 200), (limit, 200), (limit + 1, 413), (2 << 20, 413)] {
        let (status, body) = post(url, padded(length));
        assert_eq!(status, expected, "{length} bytes: {body}");
        assert_eq!(body.is_empty(), expected == 413, "{length} bytes: {body}");
        let head = "POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunked = format!("{head}{length:x}\r\n{}\r\n0\r\n\r\n", padded(length));
        assert_eq!(sent(url, chunked.as_bytes(), PATIENCE).0, expected, "{length} bytes in a chunk");
    }
}

fn requests_as_bytes(url: &str, limit: usize) {
    let claims = |length: &str| format!("Connection: close\r\nContent-Length: {length}\r\n\r\n{{}}");
    let chunks = |body: &str| format!("Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    let ping = padded(60);
    let deep = "[".repeat(100_000);
    let (http11, http10) = ("POST /mcp HTTP/1.1\r\nHost: x\r\n", "POST /mcp HTTP/1.0\r\n");
    let rows: &[(&str, String, u16, &str)] = &[
        // A length that cannot be read is none, and so is the body.
        (http11, claims("-1"), 200, "-32700"),
        (http11, claims("letters"), 200, "-32700"),
        (http11, claims("0x2"), 200, "-32700"),
        (http11, claims("18446744073709551616"), 200, "-32700"),
        (http11, "Connection: close\r\n\r\n{}".into(), 200, "-32700"),
        (http11, claims("0"), 200, "-32700"),
        // More is claimed than comes before the other side closes.
        (http11, claims("1000"), 0, ""),
        (http11, claims("5000"), 400, ""),
        (http11, claims(&limit.to_string()), 400, ""),
        (http11, claims("2000000"), 413, ""),
        // Absurd: dropped without an answer.
        (http11, claims("1000000000000"), 0, ""),
        (http11, claims("9223372036854775807"), 0, ""),
        (http11, claims("18446744073709551615"), 0, ""),
        (http11, chunks(&format!("3c\r\n{ping}\r\n0\r\n\r\n")), 200, "result"),
        (http11, chunks(&format!("1e\r\n{}\r\n1e\r\n{}\r\n0\r\n\r\n", &ping[..30], &ping[30..])), 200, "result"),
        (http11, chunks("0\r\n\r\n"), 200, "-32700"),
        (http11, chunks(&format!("3c\r\n{ping}")), 400, ""),
        (http11, chunks("nonsense\r\n{}\r\n0\r\n\r\n"), 400, ""),
        (http11, chunks("-5\r\n{}\r\n0\r\n\r\n"), 400, ""),
        (http11, chunks("ffffffffffffffff\r\n{}"), 200, "-32600"), /* a cut chunk looks whole */
        (http11, chunks("fffffffffffffffff\r\n{}"), 400, ""),
        (http10, format!("Content-Length: 60\r\n\r\n{ping}"), 200, "result"),
        (http11, format!("Connection: close\r\nContent-Length: 60\r\n\r\n{ping}"), 200, "result"),
        (
            http11,
            format!("Expect: 100-continue\r\nConnection: close\r\nContent-Length: 60\r\n\r\n{ping}"),
            100,
            "result",
        ),
        (http11, "Expect: nothing\r\nContent-Length: 2\r\n\r\n{}".into(), 417, ""),
        (http11, format!("Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 60\r\n\r\n{ping}"), 200, "result"),
        (http11, "no colon\r\n\r\n".into(), 400, ""),
        (http11, ": no name\r\n\r\n".into(), 200, "-32700"),
        (http11, "H\u{e4}der: x\r\n\r\n".into(), 0, ""),
        (http11, "A: \0\r\n".into(), 0, ""),
        (
            http11,
            format!("{}Connection: close\r\nContent-Length: 60\r\n\r\n{ping}", "A: b\r\n".repeat(5_000)),
            200,
            "result",
        ),
        (
            http11,
            format!("A: {}\r\nConnection: close\r\nContent-Length: 60\r\n\r\n{ping}", "b".repeat(200_000)),
            200,
            "result",
        ),
        ("POST /mcp\r\n", "\r\n".into(), 400, ""),
        ("POST\r\n", "\r\n".into(), 400, ""),
        ("POST /mcp HTTP/9.9\r\n", "\r\n".into(), 400, ""),
        ("\r\n", "\r\n".into(), 400, ""),
        ("\x16\x03\x01\x02", "\x01\0\0\0".into(), 0, ""), // somebody tries TLS
        (http11, claims("100000").replace("{}", &deep), if limit < 100_000 { 413 } else { 200 }, ""),
    ];
    for (head, rest, expected, says) in rows {
        let bytes = [head.as_bytes(), rest.as_bytes()].concat();
        // Only the absurd is never closed by the other side.
        let limit = if *expected == 0 { SILENCE } else { PATIENCE };
        let (status, body) = sent(url, &bytes, limit);
        let row = format!("{url}: {head:?} {:?}: {body}", &rest[..rest.len().min(80)]);
        assert_eq!(status, *expected, "{row}");
        assert!(body.contains(says), "{row}");
    }
}

fn pipelined(url: &str) {
    let one = |id: u32, end: &str| {
        let body = json!({"jsonrpc": "2.0", "method": "ping", "id": id}).to_string();
        format!("POST /mcp HTTP/1.1\r\nHost: x\r\n{end}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let three = [one(1, ""), one(2, ""), one(3, "Connection: close\r\n")].concat();
    let answer = String::from_utf8(raw(url, three.as_bytes(), PATIENCE)).unwrap();
    let places: Vec<Option<usize>> = (1..=3).map(|id| answer.find(&format!("\"id\":{id}"))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{answer}");
}

#[test]
fn the_largest_message_is_configurable() {
    let world = World::new(&[("system.json", "/limits/max_message_bytes", json!(2000))]);
    let manager = world.manager(&[]);
    assert_eq!(post(&manager.url(), padded(2000)).0, 200);
    assert_eq!(post(&manager.url(), padded(2001)).0, 413);
}

#[test]
fn pages_that_cannot_be_written_stop_no_league() {
    let world = World::new(&[]);
    let in_the_way = world.folder.join("data/leagues/league_2025_even_odd/rounds.new");
    fs::create_dir_all(&in_the_way).unwrap();
    let running = Running::new(world); // its first match is over, and the pages say nothing
    assert!(!faults(&running.world).is_empty());
    fs::remove_dir(&in_the_way).unwrap();
    let Running { world, mut manager, held, referee: _referee, player: _player, peer: _peer, .. } = running;
    drop(held);
    assert!(manager.wait().success());
    assert_eq!(world.table().iter().map(|row| row["played"].as_u64()).collect::<Vec<_>>(), [Some(2), Some(2)]);
}

#[test]
fn half_open_connections_delay_no_league() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "4", "--referees", "2"]);
    // Nothing, half a line, half a body; the last keeps an ending agent for its farewell, so not the manager.
    let half_open = |agent: &Agent, count: usize, kinds: usize| -> Vec<TcpStream> {
        let open = |n: usize| {
            let mut stream = connect(&agent.url(), SILENCE).unwrap();
            let parts = ["", "PO", "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{"];
            stream.write_all(parts[n % kinds].as_bytes()).unwrap();
            stream
        };
        (0..count).map(open).collect()
    };
    let mut held = half_open(&manager, 100, 2);
    let referees = ["REF01", "REF02"].map(|id| world.referee(&manager, id, &[]));
    referees.iter().for_each(|referee| held.extend(half_open(referee, 50, 3)));
    let players = ["P01", "P02", "P03"].map(|id| world.player(&manager, id, &[]));
    players.iter().for_each(|player| held.extend(half_open(player, 40, 3)));
    let _last = world.player(&manager, "P04", &[]);
    assert!(manager.wait().success());
    assert_eq!(held.len(), 320);
    assert_eq!(technical_losses(&world), (6, 0));
    assert_eq!(faults(&world), Vec::<Value>::new());
}

const GET_HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n";

/// Whether an answer comes on this connection, which stays open.
fn answers(stream: &mut TcpStream) -> bool {
    let mut piece = [0; 4096];
    stream.write_all(GET_HEALTH).is_ok()
        && stream.read(&mut piece).is_ok_and(|length| piece[..length].starts_with(b"HTTP/1.1 200"))
}

/// More connections than an agent with 40 descriptors can take; the last gets no answer.
fn flood(url: &str) -> Vec<TcpStream> {
    let mut flood: Vec<TcpStream> = (0..60).map(|_| connect(url, SILENCE).unwrap()).collect();
    assert!(!answers(flood.last_mut().unwrap()), "there are descriptors left");
    flood
}

#[test]
fn without_descriptors_an_agent_waits_and_then_answers_again() {
    let world = World::new(&[]);
    let manager = world.manager(&[]).url();
    // An even number and an odd one: the accept thread of tiny_http ends with an error, or panics.
    let rows = [40, 41]
        .into_iter()
        .flat_map(|descriptors| ["league_manager", "referee", "player"].map(|it| (descriptors, it)));
    thread::scope(|scope| {
        for (descriptors, program) in rows {
            let (world, manager) = (World::new(&[]), &manager);
            let row = format!("{program} with {descriptors} descriptors");
            scope.spawn(move || {
                let arguments: &[&str] = if program == "league_manager" { &[] } else { &["--manager", manager] };
                let mut agent = world.start_with_descriptors(descriptors, program, arguments);
                let url = agent.url();
                let mut busy = connect(&url, PATIENCE).unwrap();
                let mut half_sent = connect(&url, PATIENCE).unwrap();
                half_sent.write_all(b"POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\n").unwrap();
                assert!(answers(&mut busy), "{row}");
                // Another client keeps its connection busy all the time.
                let (talking, over) = channel::<()>();
                let chat = thread::spawn(move || {
                    while over.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
                        assert!(answers(&mut busy), "the busy connection is not answered");
                    }
                });
                drop(flood(&url));
                until(&format!("{row}: answers again"), || {
                    answers(&mut connect(&url, Duration::from_millis(100)).unwrap()).then_some(())
                });
                drop(talking);
                chat.join().unwrap();
                half_sent.write_all(format!("Content-Length: 60\r\n\r\n{}", padded(60)).as_bytes()).unwrap();
                let mut answer = Vec::new();
                half_sent.read_to_end(&mut answer).unwrap();
                let (status, body) = parted(&answer);
                assert!(status == 200 && body.contains("result"), "{row}: {status} {body}");
                assert!(agent.child.try_wait().unwrap().is_none(), "{row}");
            });
        }
    });
}

#[test]
fn nobody_loses_because_the_referee_was_flooded() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "6"]);
    let referee = world.start_with_descriptors(40, "referee", &["--manager", &manager.url(), "--referee-id", "REF01"]);
    let _players = ["P01", "P02", "P03", "P04", "P05"].map(|id| world.player(&manager, id, &[]));
    let url = referee.url();
    thread::scope(|scope| {
        // Waves, each as long as it takes to see that nobody is answered.
        scope.spawn(|| {
            for _ in 0..4 {
                let mut wave: Vec<TcpStream> = (0..30).map(|_| connect(&url, SILENCE).unwrap()).collect();
                answers(&mut wave[29]);
            }
        });
        let _last = world.player(&manager, "P06", &[]);
        assert!(manager.wait().success());
    });
    assert_eq!(technical_losses(&world), (15, 0));
    assert!(!faults(&world).is_empty(), "the flood did no harm at all");
}

// Whatever a fixed seed makes up.

/// Strings that mean something here, and some that should not.
const STRINGS: &[&str] = &[
    "P01",
    "P02",
    "REF01",
    "R1M1",
    "R2M1",
    "R9M9",
    "player:P01",
    "player:P02",
    "referee:REF01",
    "league_manager",
    "league_2025_even_odd",
    "even_odd",
    "league.v2",
    "1.0.0",
    "even",
    "odd",
    "conv-1",
    "2025-01-15T10:30:00Z",
    "2025-01-15T10:30:00+02:00",
    "",
    " ",
    "\0",
    "\u{1b}[2J",
    "\u{202e}",
    "\u{1f600}",
    "../../etc",
    "tok-p01-0",
    "-1",
    "null",
    "http://127.0.0.1",
    "://",
    "ACCEPTED",
    "E012",
    "GET_STANDINGS",
    "GET_SCHEDULE",
    "GET_NEXT_MATCH",
    "GET_PLAYER_STATS",
];

fn some<'a, T>(rng: &mut fastrand::Rng, items: &'a [T]) -> &'a T {
    &items[rng.usize(..items.len())]
}

/// Any JSON, not deep.
fn any_json(rng: &mut fastrand::Rng, depth: u32) -> Value {
    match rng.u32(..if depth == 0 { 8 } else { 10 }) {
        0 => Value::Null,
        1 => rng.bool().into(),
        2 => rng.i32(-3..12).into(),
        3 => (*some(rng, &[i64::MIN, i64::MAX, -1, 0, 2_147_483_648])).into(),
        4 => u64::MAX.into(),
        5 => json!(*some(rng, &[0.5, -0.0, 1e308, 1e-308])),
        6 => std::iter::repeat_with(|| rng.char(..)).take(5).collect::<String>().into(),
        7 => (*some(rng, STRINGS)).into(),
        8 => (0..rng.usize(..4)).map(|_| any_json(rng, depth - 1)).collect(),
        _ => {
            let field = |rng: &mut fastrand::Rng| ((*some(rng, STRINGS)).to_string(), any_json(rng, depth - 1));
            Value::Object((0..rng.usize(..4)).map(|_| field(rng)).collect())
        }
    }
}

/// Something that fits a schema.
fn fitting(rng: &mut fastrand::Rng, schema: &Value) -> Value {
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    for (choices, nested) in [("enum", false), ("anyOf", true)] {
        if let Some(choices) = schema.get(choices).and_then(Value::as_array) {
            let choice = some(rng, choices).clone();
            return if nested { fitting(rng, &choice) } else { choice };
        }
    }
    match schema["type"].as_str() {
        Some("object") => {
            let none = Map::new();
            let known = schema["properties"].as_object().unwrap_or(&none);
            let required = |key: &String| schema["required"].as_array().is_some_and(|all| all.contains(&json!(key)));
            let wanted: Vec<&String> = known.keys().filter(|key| required(key) || rng.bool()).collect();
            Value::Object(wanted.into_iter().map(|key| (key.clone(), fitting(rng, &known[key]))).collect())
        }
        Some("array") => (0..rng.usize(..3)).map(|_| fitting(rng, &schema["items"])).collect(),
        Some("string") if schema.get("format").is_some() => now().into(),
        Some("string") => (*some(rng, STRINGS)).into(),
        Some("integer") => rng.u32(..11).into(),
        Some("number") => json!(rng.f64()),
        Some("boolean") => rng.bool().into(),
        Some("null") => Value::Null,
        _ => any_json(rng, 1),
    }
}

/// Changes one thing somewhere inside.
fn mutate(rng: &mut fastrand::Rng, value: &mut Value) {
    let deeper = rng.u32(..4) > 0;
    match value {
        Value::Object(object) if deeper && !object.is_empty() => {
            let key = some(rng, &object.keys().cloned().collect::<Vec<_>>()).clone();
            if rng.u32(..4) == 0 {
                object.remove(&key);
            } else if let Some(inside) = object.get_mut(&key) {
                mutate(rng, inside);
            }
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let place = rng.usize(..items.len());
            mutate(rng, &mut items[place]);
        }
        other => *other = any_json(rng, 2),
    }
}

/// A message that an agent of this kind takes, as valid as a schema can say, or nearly.
fn near_message(rng: &mut fastrand::Rng, kind: Kind, token: &str) -> (String, Value) {
    let entries: Vec<&Entry> = Entry::served_by(kind).collect();
    let entry = some(rng, &entries);
    let mut message = fitting(rng, &entry.schema());
    if rng.bool() {
        message["timestamp"] = now().into();
        message["sender"] = "player:P02".into();
        message["auth_token"] = token.into();
    }
    (0..rng.u32(..3)).for_each(|_| mutate(rng, &mut message));
    (entry.tool.to_string(), message)
}

/// A body to try: bytes, JSON, a call with any parameters, a call or a tool call with a message or nearly one.
fn body(rng: &mut fastrand::Rng, kind: Kind, token: &str) -> Vec<u8> {
    let (tool, message) = near_message(rng, kind, token);
    let shell = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
    let mut whole = match rng.u32(..8) {
        0 => return (0..rng.usize(..200)).map(|_| rng.u8(..)).collect(),
        1 => any_json(rng, 4),
        2 => shell(&tool, any_json(rng, 3)),
        3 => message,
        4 => shell("tools/call", json!({"name": tool, "arguments": message})),
        _ => shell(&tool, message),
    };
    if rng.u32(..5) == 0 {
        mutate(rng, &mut whole);
    }
    let mut bytes = whole.to_string().into_bytes();
    if rng.u32(..10) == 0 {
        let place = rng.usize(..bytes.len());
        bytes[place] = rng.u8(..);
    }
    bytes
}

#[test]
fn nothing_made_up_breaks_an_agent_or_changes_a_table() {
    let running = Running::new(World::new(&[]));
    let table = || call(&running.manager.url(), "get_standings", json!({}))["result"].clone();
    let before = table();
    assert_eq!(before["standings"][0]["played"], 1);
    thread::scope(|scope| {
        for (seed, (kind, url)) in running.agents().into_iter().enumerate() {
            let token = &running.peer_token;
            scope.spawn(move || {
                let rng = &mut fastrand::Rng::with_seed(seed as u64);
                for case in 0..700 {
                    let body = body(rng, kind, token);
                    let (status, answer) = post(&url, &body);
                    let row = format!("{kind} {case}: {}\n{status} {answer}", String::from_utf8_lossy(&body));
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
        Some(_) => result.is_some() != error.is_some() && error.is_none_or(|error| error["code"] != -32603),
        None => answer["message_type"].is_string() || answer["status"] == "ok",
    }
}

#[test]
fn nothing_made_up_panics_a_reader() {
    let rng = &mut fastrand::Rng::with_seed(4);
    let mut read = 0;
    for _ in 0..20_000 {
        let entry = some(rng, CATALOGUE);
        let mut message = fitting(rng, &entry.schema());
        (0..rng.u32(..3)).for_each(|_| mutate(rng, &mut message));
        if let Some(packet) = message.as_object()
            && let Ok((envelope, message)) = protocol::read(packet, |_| None)
        {
            read += 1;
            let written = protocol::write(&envelope, &message);
            assert!(protocol::read(&written, |_| None).is_ok(), "{written:?}");
        }
        let text: String = (0..rng.usize(..20))
            .map(|_| if rng.bool() { some(rng, STRINGS).to_string() } else { rng.char(..).into() })
            .collect();
        let _ = (Endpoint::parse(&text), masked(&text));
        assert!(shown(&text).chars().all(|c| !c.is_control()), "{text:?}");
    }
    assert_eq!(shown("a\u{61c}b\u{2028}c\u{202e}d\u{9b}e"), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e");
    assert!(read > 1000, "only {read} could be read at all");
}
