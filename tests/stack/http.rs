//! The outermost layer of the three programs: JSON-RPC and HTTP as tables against each of them
//! while a league runs, what they make of answers, what they log of refusals, and whatever a fixed
//! seed makes up.

use super::support::*;
use fastrand::Rng;
use league::net::client::Client;
use league::net::client::{MessageContext, Peer};
use league::net::log::Log;
use league::protocol::{AgentKind, MessageSpec, StartLeague};
use serde_json::Map;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Long enough to be sure that nothing comes.
const SILENCE: Duration = Duration::from_millis(300);
/// What a manager reads at most, by default.
const MANAGER_LIMIT: usize = 10 << 10;
/// The shortest call.
const PING: &str = r#"{"jsonrpc": "2.0", "method": "ping", "id": 1}"#;

/// A running league of one referee and two players. Its first match is played; the second is held
/// up by P02, which is ours, until the test ends the league.
struct Running {
    test: TestLeague,
    manager: TestProcess,
    referee: TestProcess,
    player: TestProcess,
    peer: FakeAgent,
    peer_token: String,
    held: Gate,
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
        let held = Gate::default();
        let peer = slow_player("P02", "even", &held, is_second);
        let manager = test.manager("--players 2");
        let referee = test.agent(&manager, "REF01", "");
        let player = test.agent(&manager, "P01", "");
        let answer = register_player(&manager.url(), "P02", &peer.url);
        wait_until("the second match begins", || {
            peer.received("GAME_INVITATION").iter().any(is_second)
        });
        Running {
            test,
            manager,
            referee,
            player,
            peer,
            peer_token: token_of(&answer),
            held,
        }
    }

    fn agents(&self) -> [(AgentKind, String); 3] {
        [
            (AgentKind::Manager, self.manager.url()),
            (AgentKind::Referee, self.referee.url()),
            (AgentKind::Player, self.player.url()),
        ]
    }

    /// Lets the second match be played: the league ends as it should, and nothing broke on the way.
    fn end(mut self) {
        self.held.open();
        self.manager.wait_for_success();
        self.referee.wait_for_success();
        self.player.wait_for_success();
        assert_eq!(self.test.technical_losses(), (2, 0));
        assert_eq!(self.test.logged("fault"), [] as [Value; 0]);
        assert_eq!(self.peer.received("LEAGUE_COMPLETED").len(), 1);
    }
}

/// What comes back for these bytes. As clients do, we keep our side of the connection open until an
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

/// What stands for what in a command of the script.
fn expanded(command: &str, url: &str) -> String {
    let port = url.rsplit(':').next().unwrap().trim_end_matches("/mcp");
    let envelope = message("", "league_manager", json!({})).to_string();
    let fields = envelope.replace(r#""message_type":"","#, "");
    let shorthands = [
        ("CHUNKED~", "Transfer-Encoding: chunked~"),
        ("MANY~", &"A: b~".repeat(5_000)),
        ("LONG", &"b".repeat(200_000)),
        ("DEEP", &"[".repeat(9_000)),
        ("PING", PING),
        ("ENVELOPE", fields.trim_matches(['{', '}'])),
        ("OWN_PORT", port),
        ("NUL", "\0"),
        ("~", "\r\n"),
    ];
    let (word, rest) = command.split_once(' ').unwrap();
    let usual = "POST /mcp HTTP/1.1~Host: x~Connection: close~";
    let whole = match word {
        "say" => format!("{usual}LENGTH~~{rest}"),
        "call" => {
            let (method, params) = rest.split_once(' ').unwrap();
            format!(
                r#"{usual}LENGTH~~{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":1}}"#
            )
        }
        "with" => format!("{usual}{rest}"),
        _ => rest.into(),
    };
    let whole = shorthands
        .iter()
        .fold(whole, |whole, (short, long)| whole.replace(short, long));
    let length = whole
        .split_once("\r\n\r\n")
        .map_or(0, |(_, body)| body.chars().count());
    whole.replace("LENGTH", &format!("Content-Length: {length}"))
}

/// Each answer that came, in short: its status, what is allowed instead, and of its body what is
/// not the same every time.
fn short(came: &str) -> String {
    let paths = "/error/code /id /result /result/message_type /result/error_code /result/original_message_type \
        /message_type /error_code /original_message_type /kind /state";
    let one = |answer: &str| {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut output = head[..3].to_string();
        let allow = head.lines().find(|line| line.starts_with("Allow"));
        allow
            .into_iter()
            .for_each(|allow| output += &format!(", {allow}"));
        if body.is_empty() {
            return output;
        }
        if head.contains("Content-Type: text/plain") {
            return format!("{output}, {body}");
        }
        let body: Value = json_of(body);
        assert!(body["kind"].is_string() || is_an_answer(&body), "{body}");
        for path in paths.split(' ') {
            let value = body
                .pointer(path)
                .filter(|value| value.as_object().is_none_or(Map::is_empty));
            value
                .into_iter()
                .for_each(|value| output += &format!(", {} {value}", &path[1..]));
        }
        output
    };
    let answers = came.split("HTTP/1.1 ").skip(1).map(one);
    answers.collect::<Vec<_>>().join(" + ")
}

/// What an agent answers to a command.
fn answered(url: &str, command: &str) -> String {
    if let Some(length) = command.strip_prefix("size ") {
        let length: usize = length.parse().unwrap();
        let body = PING.to_string() + &" ".repeat(length - PING.len());
        let chunked = format!("with CHUNKED~~{:x}~{body}~0~~", body.len());
        return [format!("say {body}"), chunked]
            .map(|item| answered(url, &item))
            .join(" and ");
    }
    // Only the absurd is never closed by the other side.
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
            let (who, what) = command.split_once(": ").unwrap();
            let mut agents = running.agents().to_vec();
            agents.retain(|(kind, _)| who == "all" || kind.to_string().ends_with(who));
            assert!(!agents.is_empty(), "{who}");
            let output = agents.iter().map(|(_, url)| answered(url, what));
            let mut output: Vec<String> = output.collect();
            output.dedup(); // all say the same
            output.join("\n")
        }
    });
    running.end();
}

#[test]
#[cfg_attr(
    windows,
    ignore = "Windows drops an answer that comes before the whole body is sent"
)]
fn body_of_two_megabytes_is_refused() {
    let running = Running::new();
    for (kind, url) in running.agents() {
        let answers = answered(&url, "size 2097152");
        let [one, other] = answers.split(" and ").collect::<Vec<_>>()[..] else {
            panic!("{kind}: {answers}")
        };
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
    let league_for = |host: &str| {
        let get = format!("GET /league.json HTTP/1.1~Host: {host}:OWN_PORT~Connection: close~~");
        let bytes = expanded(&format!("bytes {get}"), &url).into_bytes();
        sent(&url, &bytes, TIME_LIMIT, false)
    };
    wait_until("this machine reads it", || {
        league_for("localhost").contains(player)
    });
    let foreign = league_for("evil.example");
    assert!(foreign.starts_with("HTTP/1.1 200"), "{foreign}");
    assert!(!foreign.contains(player), "{foreign}");

    // An agent that registers under it is told so, and not that it came from 0.0.0.0.
    let meta = json!({"display_name": "A", "version": "1.0.0", "game_types": ["even_odd"],
        "contact_endpoint": player});
    let join = json!({"jsonrpc": "2.0", "id": 1, "method": "register_player",
        "params": message("LEAGUE_REGISTER_REQUEST", "player:a", json!({"player_meta": meta}))});
    let (join, host) = (join.to_string(), "Host: evil.example~Connection: close");
    let post = format!(
        "POST /mcp HTTP/1.1~{host}~Content-Length: {}~~{join}",
        join.len()
    );
    sent(
        &url,
        expanded(&format!("bytes {post}"), &url).as_bytes(),
        TIME_LIMIT,
        false,
    );
    manager.line("but the request came from a foreign Host name (a tunnel or a proxy)");
}

#[test]
fn refusals_are_logged_with_code_and_field() {
    let test = TestLeague::new("");
    let manager = test.manager("");
    let url = manager.url();
    let last = |event: &str| test.logged(event).pop().unwrap();
    let long = "x".repeat(4_000);
    let query = json!({"message_type": "LEAGUE_QUERY", "league_id": "league_2025_even_odd", "query_type": "any"});
    let query = message("LEAGUE_QUERY", "player:P99", query);
    for (edits, field) in [
        ("", "auth_token"),
        ("-league_id", "league_id"),
        ("-message_type", "message_type"),
        (
            &format!(r#"sender="{long}";conversation_id="{long}";league_id=7"#),
            "league_id",
        ),
    ] {
        let refused = call(&url, "league_query", golden::edited(query.clone(), edits));
        let refused = &refused["result"];
        assert_eq!(refused["context"]["field"], field, "{edits:.80}");
        let (came, sent) = (last("message_received"), last("message_sent"));
        let of_it = [&sent["error_code"], &sent["field"]];
        assert_eq!(of_it, [&refused["error_code"], &json!(field)], "{sent}");
        let is_short = came.to_string().len() < 1_500 && sent.to_string().len() < 2_000;
        assert!(is_short, "{came}\n{sent}");
    }
    // A refused token is named, and no log shows it.
    register_player(&url, "P01", "http://localhost:1/mcp");
    let guess = format!("tok-p01-{}", "0".repeat(32));
    let refused = call(
        &url,
        "league_query",
        golden::edited(
            query.clone(),
            &format!("auth_token={:?};sender=\"player:P01\"", guess),
        ),
    );
    assert_eq!(refused["result"]["context"]["provided_token"], guess);
    assert_eq!(
        last("message_sent")["message"]["context"]["provided_token"],
        "tok-p01-***"
    );
    call(&url, "join_league", json!({}));
    manager.line("127.0.0.1 asked for join_league, which does not exist; players register with");

    call_tool(&url, "start_league", json!({}));
    assert_eq!(last("fields_supplied")["level"], "WARNING");
    // A tool that anybody may call fills no disk.
    call(&url, "get_standings", json!({"x": "x".repeat(9_000)}));
    assert!(last("tool_called").to_string().len() < 1_000);
    // Neither does whoever is not let in, asks for what is not there, or does not say who it is,
    // however often.
    let stranger = message("LEAGUE_QUERY", "player:P99", query);
    let is_parity_call: [(&str, &dyn Fn() -> Value); 3] = [
        (r#""status":"REJECTED""#, &|| {
            register_player(&url, "new", "nowhere")
        }),
        ("not_found", &|| call(&url, &"m".repeat(9_000), json!({}))),
        (r#""error_code":"E011""#, &|| send(&url, &stranger)),
    ];
    let lines_with = |words: &str| -> Vec<String> {
        let lines = test.logs().into_iter().map(|line| line.to_string());
        lines.filter(|line| line.contains(words)).collect()
    };
    let mut asked = 0;
    wait_until("much is left out, and counted in one line", || {
        is_parity_call.iter().for_each(|(_, ask)| drop(ask()));
        asked += 1;
        let is_short = |(words, _): &(&str, _)| lines_with(words).len() < asked;
        asked % 100 == 0
            && is_parity_call.iter().all(is_short)
            && !lines_with("not_logged").is_empty()
    });
    for (words, _) in is_parity_call {
        let lines = lines_with(words);
        assert!(lines.len() > 1, "{words}");
        assert!(lines.iter().all(|line| line.len() < 1_000), "{lines:?}");
    }
}

/// What a peer does that is asked, by a row of the script: the status and body of its answer, or a
/// word for something worse.
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
        answer => {
            let (status, body) = answer.split_once(' ').unwrap_or((answer, ""));
            let big = "x".repeat(MANAGER_LIMIT + 1);
            let body = body.replace("RIGHT", right).replace("BIG", &big);
            fake::status(&format!("{status} X"), &body)
        }
    }
}

#[test]
fn answers_golden() {
    let log = Arc::new(Log::new(&TestLeague::new("").folder, "test"));
    let client = Client::new("referee:REF01", log);
    let about = MessageContext {
        conversation_id: "conv-1".into(),
        ..MessageContext::default()
    };
    let question = StartLeague {
        league_id: "x".into(),
    };
    let (client, about, question) = (&client, &about, &question);
    golden::run_scripts("answers", || {
        move |command: &str| {
            let row = command.to_string();
            let peer = FakeAgent::new(move |_| answering(&row));
            let elsewhere = command.strip_prefix("at ");
            let is_slow = matches!(command, "silence" | "trickles");
            let seconds = if is_slow { 1 } else { 5 };
            let to = Peer {
                kind: AgentKind::Manager,
                id: "P01".into(),
                endpoint: elsewhere.unwrap_or(&peer.url).into(),
                max_bytes: MANAGER_LIMIT,
                timeout: Duration::from_secs(seconds),
            };
            let answer = client.call(&to, question, about);
            let Err(error) = answer else {
                return "ok".into();
            };
            let output = format!("{} {}", error.code(), error.explain());
            match elsewhere {
                Some(_) => output.split(" (").next().unwrap().into(), // machines say it differently
                None => output,
            }
        }
    });
}

// Whatever a fixed seed makes up.

/// What may stand anywhere: words that mean something here, some that should not, and numbers at
/// their ends.
fn any_json(rng: &mut Rng) -> Value {
    let values = r#"[null, true, false, 0, -1, 11, 0.5, 1e308, -9223372036854775808, 18446744073709551615, [], {}, "", " ",
        "\u0000", "\u001b[2J", "\u202e", "../../etc", "://", "http://127.0.0.1", "2025-01-15T10:30:00Z", "1.0.0", "P01",
        "2025-01-15T10:30:00+02:00", "player:P01", "player:P02", "REF01", "referee:REF01", "league_manager", "launcher",
        "R1M1", "R2M1", "R9M9", "even", "odd", "even_odd", "league_2025_even_odd", "league.v2", "conv-1", "tok-p01-0",
        "ACCEPTED", "E012", "GET_STANDINGS", "GET_SCHEDULE", "GET_NEXT_MATCH", "GET_PLAYER_STATS"]"#;
    let values: Vec<Value> = json_of(values);
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

/// A body to try: bytes, any JSON, or an example of the documents that an agent of this kind takes,
/// a little changed: bare, called as a method, or called as a tool.
fn body(rng: &mut Rng, kind: AgentKind, token: &str, examples: &[Value]) -> Vec<u8> {
    let entries: Vec<&MessageSpec> = MessageSpec::accepted_by(kind).collect();
    let entry = *rng.choice(&entries).unwrap();
    let mut of_type = examples
        .iter()
        .filter(|item| item["message_type"] == entry.message_type);
    let mut message = match of_type.next().map(|item| &item["json"]) {
        None => any_json(rng),
        Some(example) => message_of(example).clone(),
    };
    if message.is_object() && rng.bool() && !entry.method.starts_with("register") {
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
            json!({"name": entry.method, "arguments": message}),
        ),
        _ => call(entry.method, message),
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
    let table = || call(&running.manager.url(), "get_standings", json!({}))["result"].clone();
    let before = table();
    assert_eq!(before["standings"][0]["played"], 1);
    let examples: Vec<Value> = json_of(include_str!("../examples.json"));
    thread::scope(|scope| {
        for (seed, (kind, url)) in running.agents().into_iter().enumerate() {
            let (token, examples) = (&running.peer_token, &examples);
            scope.spawn(move || {
                let rng = &mut Rng::with_seed(seed as u64);
                for case in 0..700 {
                    let body = body(rng, kind, token, examples);
                    let (status, answer) = http("POST", &url, "", &body);
                    let asked = String::from_utf8_lossy(&body);
                    let row = format!("{kind} {case}: {asked}\n{status} {answer}");
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
        Some(version) => {
            version == "2.0"
                && result.is_some() != error.is_some()
                && error.is_none_or(|error| error["code"] != -32603)
        }
        None => answer["message_type"].is_string() || answer["status"] == "ok",
    }
}
