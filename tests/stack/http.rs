//! HTTP and JSON-RPC of the three programs: golden scripts against each of them while a league runs,
//! the replies that a caller reads, the refusals in the log, and random requests.

use super::config::add_paths;
use super::support::fake::{self, LEAGUE};
use super::support::*;
use fastrand::Rng;
use league::net::client::{Client, MessageContext, Peer};
use league::net::log::Log;
use league::protocol::{AgentKind, MessageSpec, StartLeague};
use serde_json::Map;
use std::io::Write;
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection without a byte for this time gets no reply.
const SILENCE: Duration = Duration::from_millis(300);
/// Maximum length of a reply of the manager.
const MANAGER_LIMIT: usize = 10 << 10;
/// The shortest call.
const PING: &str = r#"{"jsonrpc": "2.0", "method": "ping", "id": 1}"#;
/// What a client without a handshake says of itself in each call.
const META: &str = r#""_meta": {"MCP/protocolVersion": "2026-07-28", "MCP/clientInfo": {}, "MCP/clientCapabilities": {}}"#;

/// The URL of the manager, a referee and a player.
pub type Agents = [(AgentKind, String); 3];

/// Checks the three agents of a running league: its first match is over, and the fake player P02
/// delays the second one meanwhile. Then the league must end without a fault.
fn in_running_league(check: impl FnOnce(&Agents, &str)) {
    let seconds = time_limit().as_secs();
    let test = TestLeague::new(&format!(
        "system timeouts.game_join_ack_timeout_sec={seconds}; league scheduling.cycles=2"
    ));
    let gate = Gate::default();
    let held = gate.clone();
    let peer = FakeAgent::new(move |request| {
        let asked = &request["params"];
        if asked["message_type"] == "GAME_INVITATION" && asked["match_id"] == "R2M1" {
            held.pass();
        }
        valid_reply("P02", "even", request)
    });
    let mut manager = test.manager("--players 2");
    let mut agents = test.agents(&manager, "REF01 P01");
    let reply = register_player(&manager.url(), "P02", &peer.url);
    wait_until("the second match begins", || {
        peer.received("GAME_INVITATION").len() == 2
    });

    let urls = [
        (AgentKind::Manager, manager.url()),
        (AgentKind::Referee, agents[0].url()),
        (AgentKind::Player, agents[1].url()),
    ];
    check(&urls, &token_of(&reply));

    gate.open();
    wait_for_all(&mut manager, &mut agents);
    assert_eq!(test.technical_losses(), (2, 0));
    assert_eq!(test.logged("fault"), [] as [Value; 0]);
    assert_eq!(peer.received("LEAGUE_COMPLETED").len(), 1);
}

/// Sends bytes, and returns the answer. As clients do, we keep our side of the connection open, unless
/// the request is cut off.
fn sent(url: &str, bytes: &[u8], limit: Duration, is_cut: bool) -> String {
    let mut stream = connect(url, limit).unwrap();
    let _ = stream.write_all(bytes);
    if is_cut {
        let _ = stream.shutdown(Shutdown::Write);
    }
    String::from_utf8_lossy(&read_all(stream)).into()
}

/// Returns what a command calls with: JSON, or the message of a type, with changes like `league_id=x`.
pub fn params(words: &str) -> String {
    let (name, changes) = words.split_once(' ').unwrap_or((words, ""));
    let mut whole = match name {
        "MATCH_RESULT_REPORT" => report("referee:REF01", None, "R1M1", ["P01", "P02"]),
        "LEAGUE_REGISTER_REQUEST" => player_registration("P07", "http://localhost:1/mcp", None),
        _ if MessageSpec::by_type(name).is_some() => {
            message(name, "league_manager", json!({"league_id": LEAGUE}))
        }
        _ => return words.into(),
    };
    set_all(&mut whole, changes.split(' '));
    whole.to_string()
}

/// Returns the bytes of a command, as text: each word in capitals is replaced.
fn expanded(command: &str, url: &str) -> String {
    let port = url.rsplit(':').next().unwrap().trim_end_matches("/mcp");
    let (word, rest) = command.split_once(' ').unwrap();
    let post = |headers: &str, body: &str| {
        format!("POST /mcp HTTP/1.1~Connection: close~{headers}LENGTH~~{body}")
    };
    let usual = "POST /mcp HTTP/1.1~Host: x~Connection: close~";
    let mut whole = match word {
        "say" => post("Host: x~", &params(rest)),
        "ping" => post("Host: x~", &golden::edited(json_of(PING), rest).to_string()),
        "call" => {
            let (called, headers) = rest.rsplit_once(" with ").unwrap_or((rest, ""));
            let (method, words) = called.split_once(' ').unwrap_or((called, "{}"));
            let params = params(words);
            let call =
                format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":1}}"#);
            post(&format!("Host: localhost:OWN_PORT~{headers}"), &call)
        }
        "new" => {
            let (method, name) = rest.split_once(' ').unwrap_or((rest, ""));
            let [field, header] = match name {
                "" => [String::new(), String::new()],
                _ => [
                    format!(r#", "name": "{name}""#),
                    format!("Mcp-Name: {name}~"),
                ],
            };
            let headers = format!("NEW~Mcp-Method: {method}~{header}");
            return expanded(
                &format!("call {method} {{META{field}}} with {headers}"),
                url,
            );
        }
        "with" => format!("{usual}{rest}"),
        "origin" => post(&format!("Host: x~Origin: {rest}~"), PING),
        "host" => post(&format!("Host: {rest}~"), &params("START_LEAGUE")),
        "asks" => format!("{rest} HTTP/1.1~Connection: close~~"),
        _ => rest.into(),
    };
    for (short, long) in [
        ("CHUNKED~", "Transfer-Encoding: chunked~"),
        ("MANY~", &"A: b~".repeat(5_000)),
        ("LONG", &"b".repeat(200_000)),
        ("DEEP", &"[".repeat(9_000)),
        ("PING", PING),
        ("META", META),
        ("NEW~", "Mcp-Protocol-Version: 2026-07-28~"),
        ("MCP/", "io.modelcontextprotocol/"),
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

/// The fields of a reply that are the same in every run.
const SHOWN: &str = "/error/code /error/data/requested /error/data/supported /id /result
    /result/message_type /result/error_code /result/original_message_type /result/status
    /result/context/provided_token /result/protocolVersion /result/supportedVersions
    /result/capabilities /result/capabilities/tools /result/serverInfo/name /result/serverInfo/version
    /result/_meta/io.modelcontextprotocol~1serverInfo/name /result/resultType
    /result/cacheScope /result/ttlMs /result/isError /result/structuredContent/message_type
    /result/structuredContent/standings/0/player_id /result/structuredContent/data/player_id
    /message_type /error_code /original_message_type /kind /state";

/// Returns each response in short: its status, unless that is 200, the methods that are allowed instead, and these fields
/// of its body.
fn short(responses: &str) -> String {
    let one = |response: &str| {
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let mut output = head[..3].replace("200", "");
        for allow in head.lines().filter(|line| line.starts_with("Allow")) {
            output += &format!(" {allow}");
        }
        if body.is_empty() {
            return output;
        }
        if head.contains("Content-Type: text/plain") {
            return format!("{output} {body}");
        }
        let body: Value = json_of(body);
        assert!(body["kind"].is_string() || is_reply(&body), "{body}");
        if body["message_type"].is_string() {
            output += " bare";
        }
        let output = output + &fields(&body, SHOWN);
        output
            .replace("code=", "error ")
            .replace("result={}", "pong")
            .trim()
            .into()
    };
    let responses = responses.split("HTTP/1.1 ").skip(1).map(one);
    responses.collect::<Vec<_>>().join(" + ")
}

/// Returns these fields of a body, as far as it has them and they have no fields themselves, without
/// their places; texts also without their names. It leaves out the id 1, and says whether there are instructions,
/// in a few sentences.
pub fn fields(body: &Value, paths: &str) -> String {
    let mut output = String::new();
    for path in paths.split_whitespace() {
        let value = body.pointer(path);
        let is_whole = |value: &&Value| value.as_object().is_none_or(Map::is_empty);
        if let Some(value) = value.filter(is_whole) {
            let key = path.rsplit('/').next().unwrap();
            output += &match value.as_str() {
                Some(text) if !["id", "version"].contains(&key) => format!(" {text}"),
                _ if key == "id" && *value == 1 => String::new(),
                _ => format!(" {key}={value}"),
            };
        }
    }
    if let Some(text) = body["result"]["instructions"].as_str() {
        assert!((50..900).contains(&text.len()), "{text}");
        output += " instructions";
    }
    output
}

/// Returns the output for each of the values, which are separated by ` | `. If it is the same for all of
/// them, it is said once.
pub fn for_each(values: &str, output: impl FnMut(&str) -> String) -> String {
    let mut outputs: Vec<String> = values.split(" | ").map(output).collect();
    if outputs.iter().all(|one| *one == outputs[0]) {
        outputs.truncate(1);
    }
    outputs.join("\n")
}

/// Sends a command to the manager, the referee or the player, or to all of them. Returns their
/// responses; those that are alike once.
pub fn answers(agents: &Agents, command: &str) -> String {
    let (kind, command) = command.split_once(": ").unwrap();
    let (word, values) = command.split_once(' ').unwrap();
    let asked = agents.iter();
    let asked = asked.filter(|agent| kind == "all" || agent.0.to_string().ends_with(kind));
    for_each(values, |value| {
        let command = format!("{word} {value}");
        let each = asked.clone().map(|(_, url)| answered(url, &command));
        let mut each: Vec<String> = each.collect();
        each.dedup();
        each.join("\n")
    })
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
    let (limit, is_cut, command) = match command.split_once(' ').unwrap() {
        ("absurd", rest) => (SILENCE, false, rest),
        ("cut", rest) => (TIME_LIMIT, true, rest),
        _ => (TIME_LIMIT, false, command),
    };
    let bytes: Vec<u8> = expanded(command, url)
        .chars()
        .map(|sign| sign as u8)
        .collect();
    short(&sent(url, &bytes, limit, is_cut))
}

/// What all agents say to a body of two megabytes, in one piece and in chunks.
const TOO_LONG: &str = "\
413 the body must be at most 10240 bytes and 413 the body must be at most 10240 bytes
413 the body must be at most 262144 bytes and 413 the body must be at most 262144 bytes";

#[test]
fn http_golden() {
    in_running_league(|agents, _| {
        golden::run_scripts("http", || |command: &str| answers(agents, command));
        // Windows drops a response that comes before the whole body is sent.
        if cfg!(unix) {
            assert_eq!(answers(agents, "all: size 2097152"), TOO_LONG);
        }
    });
}

#[test]
fn logs_golden() {
    story::run("logs");
}

#[test]
fn lines_of_callers_are_limited_in_number() {
    let (test, manager) = with_manager("");
    let url = manager.url();
    let token = token_of(&register_player(&url, "P01", "http://127.0.0.1:1/mcp"));
    let query = |player: &str, token: Option<&str>| {
        let body = json!({
            "timestamp": "2001-01-01T00:00:00Z", "league_id": LEAGUE, "query_type": "GET_STANDINGS",
            "auth_token": token,
        });
        message("LEAGUE_QUERY", player, body)
    };
    // A caller that is rejected, that calls an unknown method, that sends no token or a wrong one, that
    // nobody knows, and a player with a wrong clock.
    let requests = [
        ("REJECTED", player_registration("new", "nowhere", None)),
        (
            "not_found",
            message(&"m".repeat(3_000), "player:P01", json!({})),
        ),
        ("E011", query("player:P01", None)),
        ("E012", query("player:P01", Some("tok-p01-no"))),
        ("E005", query("player:P02", Some("tok-p02-no"))),
        ("LEAGUE_QUERY_RESPONSE", query("player:P01", Some(&token))),
    ];
    let lines_with = |words: &str| {
        let lines = test.logs().into_iter().map(|line| line.to_string());
        lines.filter(|line| line.contains(words)).count()
    };
    let (begun, mut sent) = (Instant::now(), 0);
    wait_until("lines of each kind are left out, and counted", || {
        for _ in 0..100 {
            requests
                .iter()
                .for_each(|(_, request)| drop(send(&url, request)));
        }
        sent += 100;
        requests.iter().all(|(words, _)| lines_with(words) < sent) && lines_with("not_logged") > 0
    });
    let most = 100 * (2 + begun.elapsed().as_secs() as usize);
    let words = requests.iter().map(|(words, _)| *words);
    for words in words.chain(["message_received", "clock_skew"]) {
        let lines = lines_with(words);
        assert!(
            (1..=most).contains(&lines),
            "{lines} with {words}, at most {most}"
        );
    }
    assert!(
        test.logs()
            .iter()
            .all(|line| line.to_string().len() < 1_000)
    );
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

fn client() -> Client {
    let log = Log::new(&TestLeague::new("").folder, "test");
    Client::new("referee:REF01", Arc::new(log))
}

#[test]
fn answers_golden() {
    let client = &client();
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
    let client = client();
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
        1 => json!({"match_id": a, "P01": b}),
        _ => a,
    }
}

/// Changes or removes one random part of an object.
fn mutate(rng: &mut Rng, whole: &mut Value) {
    let mut paths = Vec::new();
    add_paths(whole, "", &mut paths);
    let Some(path) = rng.choice(paths) else {
        return;
    };
    let value = any_json(rng); // a null removes
    set(whole, &pointer(&path), value);
}

/// Returns a random body: a message of an example that this kind of agent accepts, called as a method
/// or as a tool, and with changes anywhere.
fn body(rng: &mut Rng, kind: AgentKind, token: &str, examples: &[Value]) -> Vec<u8> {
    let specs: Vec<&MessageSpec> = MessageSpec::accepted_by(kind).collect();
    let spec = rng.choice(&specs).unwrap();
    let mut of_type = examples
        .iter()
        .filter(|example| example["message_type"] == spec.message_type);
    let example = of_type.next().map(|example| message_of(&example["json"]));
    let mut message = example.cloned().unwrap_or(json!({}));
    if rng.bool() && !spec.method.starts_with("register") {
        for (key, text) in [
            ("timestamp", &*now()),
            ("sender", "player:P02"),
            ("auth_token", token),
        ] {
            message[key] = text.into();
        }
    }

    let (method, params) = match rng.bool() {
        true => (spec.method, message),
        false => (
            "tools/call",
            json!({"name": spec.method, "arguments": message}),
        ),
    };
    let mut whole = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
    (0..rng.u8(..4)).for_each(|_| mutate(rng, &mut whole));
    let mut bytes = whole.to_string().into_bytes();
    if rng.u8(..10) == 0 {
        *rng.choice(&mut bytes).unwrap() = rng.u8(..);
    }
    bytes
}

#[test]
fn random_requests_do_not_change_standings() {
    let examples: Vec<Value> = json_of(include_str!("../examples.json"));
    let rng = &mut Rng::with_seed(0);
    in_running_league(|agents, token| {
        let table = || ask(&agents[0].1, "get_standings", json!({}));
        let before = table();
        assert_eq!(before["standings"][0]["played"], 1);
        for (kind, url) in agents.iter().cycle().take(2_100) {
            let body = body(rng, *kind, token, &examples);
            let (status, reply) = http("POST", url, "", &body);
            let sent = String::from_utf8_lossy(&body);
            let is_right = match status {
                202 => reply.is_empty(),
                200 => is_reply(&json_of(&reply)),
                _ => false,
            };
            assert!(is_right, "{kind}: {sent}\n{status} {reply}");
        }
        assert_eq!(table(), before);
    });
}

/// Returns true for a JSON-RPC reply without an internal error, and for a bare reply to a bare
/// message.
fn is_reply(reply: &Value) -> bool {
    if reply.get("jsonrpc").is_none() {
        return reply["message_type"].is_string() || reply["status"] == "ok";
    }
    reply["jsonrpc"] == "2.0"
        && reply.get("id").is_some()
        && reply.get("result").is_some() != reply.get("error").is_some()
        && reply["error"]["code"] != -32603
}
