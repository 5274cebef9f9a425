//! HTTP and JSON-RPC of the three programs: golden scripts against each of them while a league runs,
//! the replies that a caller reads, the refusals in the log, and random requests.

use super::support::fake::{self, LEAGUE};
use super::support::*;
use fastrand::Rng;
use league::net::client::{Client, MessageContext, Peer};
use league::net::log::Log;
use league::protocol::{AgentKind, MessageSpec, StartLeague};
use serde_json::Map;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A connection without a byte for this time gets no reply.
const SILENCE: Duration = Duration::from_millis(300);
/// Maximum length of a reply of the manager.
const MANAGER_LIMIT: usize = 10 << 10;
/// The shortest call.
const PING: &str = r#"{"jsonrpc": "2.0", "method": "ping", "id": 1}"#;

/// A running league of one referee and two players. Its first match is over; the fake player P02
/// delays the second one until the test ends the league.
struct Running {
    test: TestLeague,
    manager: TestProcess,
    agents: Vec<TestProcess>,
    peer: FakeAgent,
    peer_token: String,
    gate: Gate,
}

impl Running {
    fn new() -> Running {
        let seconds = time_limit().as_secs();
        let test = TestLeague::new(&format!(
            "system timeouts.game_join_ack_timeout_sec={seconds}; league scheduling.cycles=2"
        ));
        let is_second = |asked: &Value| {
            asked["message_type"] == "GAME_INVITATION" && asked["match_id"] == "R2M1"
        };
        let gate = Gate::default();
        let peer = slow_player("P02", "even", &gate, is_second);
        let manager = test.manager("--players 2");
        let agents = test.agents(&manager, "REF01 P01");
        let reply = register_player(&manager.url(), "P02", &peer.url);
        wait_until("the second match begins", || {
            peer.received("GAME_INVITATION").iter().any(is_second)
        });
        Running {
            test,
            manager,
            agents,
            peer,
            peer_token: token_of(&reply),
            gate,
        }
    }

    fn agents(&self) -> [(AgentKind, String); 3] {
        [
            (AgentKind::Manager, self.manager.url()),
            (AgentKind::Referee, self.agents[0].url()),
            (AgentKind::Player, self.agents[1].url()),
        ]
    }

    /// Lets the second match be played, and checks that the league ends without a fault.
    fn end(mut self) {
        self.gate.open();
        wait_for_all(&mut self.manager, &mut self.agents);
        assert_eq!(self.test.technical_losses(), (2, 0));
        assert_eq!(self.test.logged("fault"), [] as [Value; 0]);
        assert_eq!(self.peer.received("LEAGUE_COMPLETED").len(), 1);
    }
}

/// Sends bytes, and returns the answer. As clients do, we keep our side of the connection open until an
/// answer has come, unless the request is cut off.
fn sent(url: &str, bytes: &[u8], limit: Duration, is_cut: bool) -> String {
    let mut stream = connect(url, limit).unwrap();
    let _ = stream.write_all(bytes);
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    let mut is_open = true;
    loop {
        if is_open && (is_cut || is_whole(&answer)) {
            let _ = stream.shutdown(Shutdown::Write);
            is_open = false;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return String::from_utf8_lossy(&answer).into(),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Returns true if an answer is there that is not an interim one.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let text = text.trim_start_matches("HTTP/1.1 100 Continue\r\n\r\n");
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("Content-Length: "));
    length.is_none_or(|length| body.len() >= length.parse().unwrap())
}

/// Returns the bytes of a command, as text: each word in capitals is replaced.
fn expanded(command: &str, url: &str) -> String {
    let port = url.rsplit(':').next().unwrap().trim_end_matches("/mcp");
    let envelope = message("", "league_manager", json!({})).to_string();
    let fields = envelope.replace(r#""message_type":"","#, "");
    let (word, rest) = command.split_once(' ').unwrap();
    let usual = "POST /mcp HTTP/1.1~Host: x~Connection: close~";
    let mut whole = match word {
        "say" => format!("{usual}LENGTH~~{rest}"),
        "call" => {
            let (method, params) = rest.split_once(' ').unwrap();
            let call =
                format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":1}}"#);
            format!("{usual}LENGTH~~{call}")
        }
        "with" => format!("{usual}{rest}"),
        _ => rest.into(),
    };
    for (short, long) in [
        ("CHUNKED~", "Transfer-Encoding: chunked~"),
        ("MANY~", &"A: b~".repeat(5_000)),
        ("LONG", &"b".repeat(200_000)),
        ("DEEP", &"[".repeat(9_000)),
        ("PING", PING),
        ("ENVELOPE", fields.trim_matches(['{', '}'])),
        ("OWN_PORT", port),
        ("NUL", "\0"),
        ("~", "\r\n"),
    ] {
        whole = whole.replace(short, long);
    }
    let body = whole.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let length = format!("Content-Length: {}", body.chars().count());
    whole.replace("LENGTH", &length)
}

/// Returns each response in short: its status, the methods that are allowed instead, and the fields
/// of its body that are the same in every run.
fn short(responses: &str) -> String {
    let paths = "/error/code /id /result /result/message_type /result/error_code /result/original_message_type \
        /message_type /error_code /original_message_type /kind /state";
    let one = |response: &str| {
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let mut output = head[..3].to_string();
        for allow in head.lines().filter(|line| line.starts_with("Allow")) {
            output += &format!(", {allow}");
        }
        if body.is_empty() {
            return output;
        }
        if head.contains("Content-Type: text/plain") {
            return format!("{output}, {body}");
        }
        let body: Value = json_of(body);
        assert!(body["kind"].is_string() || is_reply(&body), "{body}");
        for path in paths.split(' ') {
            let value = body.pointer(path);
            let is_whole = |value: &&Value| value.as_object().is_none_or(Map::is_empty);
            if let Some(value) = value.filter(is_whole) {
                output += &format!(", {} {value}", &path[1..]);
            }
        }
        output
    };
    let responses = responses.split("HTTP/1.1 ").skip(1).map(one);
    responses.collect::<Vec<_>>().join(" + ")
}

/// Sends a command to an agent. Returns the responses in short.
fn answered(url: &str, command: &str) -> String {
    if let Some(length) = command.strip_prefix("size ") {
        let length: usize = length.parse().unwrap();
        let body = PING.to_string() + &" ".repeat(length - PING.len());
        let chunked = format!("with CHUNKED~~{:x}~{body}~0~~", body.len());
        return [format!("say {body}"), chunked]
            .map(|command| answered(url, &command))
            .join(" and ");
    }
    // An agent does not close a connection after an absurd request.
    let (command, limit) = match command.strip_prefix("absurd ") {
        Some(command) => (command, SILENCE),
        None => (command, TIME_LIMIT),
    };
    let (command, is_cut) = match command.strip_prefix("cut ") {
        Some(command) => (command, true),
        None => (command, false),
    };
    let bytes: Vec<u8> = expanded(command, url)
        .chars()
        .map(|sign| sign as u8)
        .collect();
    short(&sent(url, &bytes, limit, is_cut))
}

#[test]
fn http_golden() {
    let running = Running::new();
    golden::run_scripts("http", || {
        |command: &str| {
            let (kind, command) = command.split_once(": ").unwrap();
            let mut agents = running.agents().to_vec();
            agents.retain(|agent| kind == "all" || agent.0.to_string().ends_with(kind));
            assert!(!agents.is_empty(), "{kind}");
            let output = agents.iter().map(|(_, url)| answered(url, command));
            let mut output: Vec<String> = output.collect();
            output.dedup(); // all respond alike
            output.join("\n")
        }
    });
    // Windows drops a response that comes before the whole body is sent.
    for (kind, url) in running.agents().into_iter().filter(|_| cfg!(unix)) {
        let answers = answered(&url, "size 2097152");
        let (one, other) = answers.split_once(" and ").unwrap();
        assert!(
            one == other && one.starts_with("413, the body must be"),
            "{kind}: {answers}"
        );
    }
    running.end();
}

#[test]
fn foreign_host_name_reads_no_endpoints() {
    let test = TestLeague::new("");
    let manager = test.serve("");
    let url = manager.url();
    let player = "http://localhost:65000/mcp";
    let reply = register_player(&url, "new", player);
    assert_eq!(reply["status"], "ACCEPTED", "{reply}");
    let document = |host: &str| {
        let get =
            format!("bytes GET /league.json HTTP/1.1~Host: {host}:OWN_PORT~Connection: close~~");
        sent(&url, expanded(&get, &url).as_bytes(), TIME_LIMIT, false)
    };
    wait_until("a request from this machine reads the endpoint", || {
        document("localhost").contains(player)
    });
    let foreign = document("evil.example");
    assert!(foreign.starts_with("HTTP/1.1 200"), "{foreign}");
    assert!(!foreign.contains(player), "{foreign}");

    // The reason of a rejection under that name is the name, and not the address 0.0.0.0.
    let request = player_registration("a", player, None);
    let post =
        format!("bytes POST /mcp HTTP/1.1~Host: evil.example~Connection: close~LENGTH~~{request}");
    sent(&url, expanded(&post, &url).as_bytes(), TIME_LIMIT, false);
    manager.line("but the request came from a foreign Host name (a tunnel or a proxy)");
}

#[test]
fn refusals_are_logged_with_code_and_field() {
    let (test, manager) = with_manager("");
    let url = manager.url();
    let last = |event: &str| test.logged(event).pop().unwrap();
    let long = "x".repeat(4_000);
    let body = json!({"league_id": LEAGUE, "query_type": "any"});
    let query = message("LEAGUE_QUERY", "player:P99", body);
    let long_texts = format!(r#"sender="{long}";conversation_id="{long}";league_id=7"#);
    for (edits, field) in [
        ("", "auth_token"),
        ("-league_id", "league_id"),
        ("-message_type", "message_type"),
        (&long_texts, "league_id"),
    ] {
        let refused = ask(&url, "league_query", golden::edited(query.clone(), edits));
        assert_eq!(refused["context"]["field"], field, "{edits:.80}");
        let (received, sent) = (last("message_received"), last("message_sent"));
        let logged = [&sent["error_code"], &sent["field"]];
        assert_eq!(logged, [&refused["error_code"], &json!(field)], "{sent}");
        let lengths = [&received, &sent].map(|line| line.to_string().len());
        assert!(lengths[0] < 1_500 && lengths[1] < 2_000, "{lengths:?}");
    }
    // The reply shows the refused token, and the log does not.
    register_player(&url, "P01", "http://localhost:1/mcp");
    let guess = format!("tok-p01-{}", "0".repeat(32));
    let mut guessing = with_field(&query, "auth_token", json!(guess));
    guessing["sender"] = json!("player:P01");
    guessing["conversation_id"] = json!(guess);
    let refused = send(&url, &guessing);
    assert_eq!(refused["context"]["provided_token"], guess);
    let logged = last("message_sent");
    let context = &logged["message"]["context"];
    assert_eq!(context["provided_token"], "tok-p01-***");
    assert_eq!(logged["conversation_id"], "tok-p01-***");
    assert_eq!(logged["level"], "WARNING");
    let (_, fraction) = text_of(&logged["timestamp"]).split_once('.').unwrap();
    assert_eq!(fraction.len(), 4, "{logged}");
    call(&url, "join_league", json!({}));
    manager.line("127.0.0.1 asked for join_league, which does not exist; players register with");
    call(&url, "resources/list", json!({})); // a method of MCP is no lost student
    assert_eq!(
        last("not_found")["message"],
        "127.0.0.1 asked for resources/list"
    );
    call(&url, "join_now", json!({}));
    manager.line("127.0.0.1 asked for join_now");
    assert!(!manager.output_so_far().contains("resources/list"));

    call_tool(&url, "start_league", json!({}));
    assert_eq!(last("fields_supplied")["level"], "WARNING");
    // A tool that every caller may call fills no disk.
    call(&url, "get_standings", json!({"x": "x".repeat(9_000)}));
    assert!(last("tool_called").to_string().len() < 1_000);
}

#[test]
fn refusals_are_logged_at_a_limited_rate() {
    let (test, manager) = with_manager("");
    let url = manager.url();
    let query = |token: Option<&str>| {
        let body = json!({"league_id": LEAGUE, "query_type": "GET_STANDINGS", "auth_token": token});
        send(&url, &message("LEAGUE_QUERY", "player:P01", body))
    };
    // A caller that is rejected, that calls an unknown method, that sends no token or a wrong one.
    let requests: [(&str, &dyn Fn() -> Value); 4] = [
        (r#""status":"REJECTED""#, &|| {
            register_player(&url, "new", "nowhere")
        }),
        ("not_found", &|| call(&url, &"m".repeat(9_000), json!({}))),
        (r#""error_code":"E011""#, &|| query(None)),
        (r#""error_code":"E005""#, &|| query(Some("tok-p01-no"))),
    ];
    let lines_with = |words: &str| -> Vec<String> {
        let lines = test.logs().into_iter().map(|line| line.to_string());
        lines.filter(|line| line.contains(words)).collect()
    };
    let (begun, mut sent) = (Instant::now(), 0);
    wait_until("lines are left out, and counted in one line", || {
        requests.iter().for_each(|(_, send)| drop(send()));
        sent += 1;
        let is_limited = |(words, _): &(&str, _)| lines_with(words).len() < sent;
        sent % 100 == 0 && requests.iter().all(is_limited) && !lines_with("not_logged").is_empty()
    });
    let most = 100 * (2 + begun.elapsed().as_secs() as usize);
    for (words, _) in requests {
        let lines = lines_with(words);
        assert!((2..=most).contains(&lines.len()), "{words}: {most}");
        assert!(lines.iter().all(|line| line.len() < 1_000), "{lines:?}");
    }
}

/// Returns the reaction of a peer that a row of the script names: status and body of the reply, or
/// a word for a worse one.
fn answering(row: &str) -> FakeReply {
    let right = r#"{"message_type": "LEAGUE_STATUS", "league_id": "x", "status": "waiting",
        "current_round": 0, "total_rounds": 0, "matches_completed": 0}"#;
    let head = b"HTTP/1.1 200 OK\r\n\r\n";
    match row {
        "silence" => FakeReply::Silence,
        "hangs up" => FakeReply::Close,
        "trickles" => FakeReply::Endless(head.into(), Duration::from_millis(20)),
        "floods" => FakeReply::Endless([head, &[b' '; 65536][..]].concat(), Duration::ZERO),
        "breaks off" => FakeReply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".into()),
        reply => {
            let (status, body) = reply.split_once(' ').unwrap_or((reply, ""));
            let big = "x".repeat(MANAGER_LIMIT + 1);
            let body = body.replace("RIGHT", right).replace("BIG", &big);
            fake::status(&format!("{status} X"), &body)
        }
    }
}

#[test]
fn answers_golden() {
    let log = Arc::new(Log::new(&TestLeague::new("").folder, "test"));
    let client = &Client::new("referee:REF01", log);
    golden::run_scripts("answers", || {
        move |command: &str| {
            let about = MessageContext {
                conversation_id: "conv-1".into(),
                ..MessageContext::default()
            };
            let question = StartLeague {
                league_id: "x".into(),
            };
            let row = command.to_string();
            let peer = FakeAgent::new(move |_| answering(&row));
            let elsewhere = command.strip_prefix("at ");
            let is_slow = matches!(command, "silence" | "trickles");
            let to = Peer {
                kind: AgentKind::Manager,
                id: "P01".into(),
                endpoint: elsewhere.unwrap_or(&peer.url).into(),
                max_bytes: MANAGER_LIMIT,
                timeout: Duration::from_secs(if is_slow { 1 } else { 5 }),
            };
            let Err(error) = client.call(&to, &question, &about) else {
                return "ok".into();
            };
            let output = format!("{} {}", error.code(), error.explain());
            match elsewhere {
                Some(_) => output.split(" (").next().unwrap().into(), // systems word it differently
                None => output,
            }
        }
    });
}

#[test]
fn localhost_is_either_loopback_address() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        return print_left_out("an agent at ::1, which this machine does not have");
    };
    let agent = FakeAgent::serving(listener, |_, _| acknowledgement());
    let log = Arc::new(Log::new(&TestLeague::new("").folder, "test"));
    let client = Client::new("referee:REF01", log);
    let url = agent.url.replace("[::1]", "localhost");
    let to = Peer::manager(&url, TIME_LIMIT);
    assert_eq!(client.ping(&to, ""), Ok(()));

    // The words about an agent that is not there are those of its first address.
    drop(agent);
    let nowhere = Peer::manager(&format!("http://localhost:{}/mcp", free_port()), TIME_LIMIT);
    let error = client.ping(&nowhere, "").unwrap_err();
    assert!(error.is_refused(), "{error:?}");
}

/// Returns a random value: words of the protocol, words that are illegal everywhere, numbers at
/// the ends of their ranges, or a list or an object of these.
fn any_json(rng: &mut Rng) -> Value {
    let values = r#"[null, true, false, 0, -1, 11, 0.5, 1e308, -9223372036854775808, 18446744073709551615, [], {}, "", " ",
        "\u0000", "\u001b[2J", "\u202e", "../../etc", "://", "http://127.0.0.1", "2025-01-15T10:30:00Z", "1.0.0", "P01",
        "2025-01-15T10:30:00+02:00", "player:P01", "player:P02", "REF01", "referee:REF01", "league_manager", "launcher",
        "R1M1", "R2M1", "R9M9", "even", "odd", "even_odd", "league_2025_even_odd", "league.v2", "conv-1", "tok-p01-0",
        "ACCEPTED", "E012", "GET_STANDINGS", "GET_SCHEDULE", "GET_NEXT_MATCH", "GET_PLAYER_STATS"]"#;
    let values: Vec<Value> = json_of(values);
    let values = if rng.bool() { &values[..12] } else { &values }; // half of them are no texts
    let [a, b] = [(); 2].map(|()| rng.choice(values).unwrap().clone());
    match rng.u8(..8) {
        0 => json!([a, b]),
        1 => json!({"match_id": a, b.to_string(): a}),
        _ => a,
    }
}

/// Changes or removes one random part of a value.
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
        Value::Array(list) if deeper && !list.is_empty() => {
            let place = rng.usize(..list.len());
            mutate(rng, &mut list[place]);
        }
        other => *other = any_json(rng),
    }
}

/// Returns a random body: bytes, JSON, or a message of an example that this kind of agent accepts,
/// with changes: bare, called as a method, or called as a tool.
fn body(rng: &mut Rng, kind: AgentKind, token: &str, examples: &[Value]) -> Vec<u8> {
    let specs: Vec<&MessageSpec> = MessageSpec::accepted_by(kind).collect();
    let spec = *rng.choice(&specs).unwrap();
    let example = examples
        .iter()
        .find(|example| example["message_type"] == spec.message_type);
    let mut message = match example {
        None => any_json(rng),
        Some(example) => message_of(&example["json"]).clone(),
    };
    if message.is_object() && rng.bool() && !spec.method.starts_with("register") {
        message["timestamp"] = json!(now());
        message["sender"] = json!("player:P02");
        message["auth_token"] = json!(token);
    }
    (0..rng.u8(..3)).for_each(|_| mutate(rng, &mut message));
    let call = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
    let mut whole = match rng.u8(..8) {
        0 => return (0..rng.usize(..200)).map(|_| rng.u8(..)).collect(),
        1 => any_json(rng),
        2 => message,
        3 => call(
            "tools/call",
            json!({"name": spec.method, "arguments": message}),
        ),
        _ => call(spec.method, message),
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
fn random_requests_do_not_change_standings() {
    let running = Running::new();
    let table = || ask(&running.manager.url(), "get_standings", json!({}));
    let before = table();
    assert_eq!(before["standings"][0]["played"], 1);
    let examples: Vec<Value> = json_of(include_str!("../examples.json"));
    thread::scope(|scope| {
        for (seed, (kind, url)) in (0..).zip(running.agents()) {
            let (token, examples) = (&running.peer_token, &examples);
            scope.spawn(move || {
                let rng = &mut Rng::with_seed(seed);
                for case in 0..700 {
                    let body = body(rng, kind, token, examples);
                    let (status, reply) = http("POST", &url, "", &body);
                    let sent = String::from_utf8_lossy(&body);
                    let row = format!("{kind} {case}: {sent}\n{status} {reply}");
                    match status {
                        202 => assert!(reply.is_empty(), "{row}"),
                        200 => assert!(is_reply(&json_of(&reply)), "{row}"),
                        _ => panic!("{row}"),
                    }
                }
            });
        }
    });
    assert_eq!(table(), before);
    running.end();
}

/// Returns true for a JSON-RPC reply without an internal error, and for a bare reply to a bare
/// message.
fn is_reply(reply: &Value) -> bool {
    if reply.get("jsonrpc").is_none() {
        return reply["message_type"].is_string() || reply["status"] == "ok";
    }
    reply["jsonrpc"] == "2.0"
        && reply.get("result").is_some() != reply.get("error").is_some()
        && reply["error"]["code"] != -32603
}
