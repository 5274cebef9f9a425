//! `bin/adapter.py`: five agents, each of another dialect, play a league through it, and none of them knows the league.

mod support;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;
use support::*;

/// What an agent answers to a body that came to a path; nothing, where it does not understand it.
type Dialect = fn(path: &str, body: &Value) -> Option<Value>;

/// The rules of the command line, the agent that they are for, and what it always chooses.
const DIALECTS: [(&str, Dialect, &str); 5] = [
    (
        "--method handle_game_invitation=joinMatch --method choose_parity=chooseParity \
         --field match_id=matchId --field parity_choice=parityChoice",
        camel_case,
        "even",
    ),
    ("--body tools", tools, "odd"),
    (
        "--body bare --field message_type=type --value message_type:GAME_INVITATION=invite \
         --value message_type:CHOOSE_PARITY_CALL=choose --field GAME_JOIN_ACK:accept=coming \
         --value accept:true=yes --field parity_choice=choice --value parity_choice:even=EVEN \
         --value parity_choice:odd=ODD",
        own_words,
        "odd",
    ),
    ("--in message", wrapped, "even"),
    (
        "--body bare --path handle_game_invitation=/join --path choose_parity=/choose \
         --copy match_id=game.id --field opponent_id=game.opponent --out data.reply \
         --field parity_choice=pick.number --value parity_choice:even=0 --value parity_choice:odd=1",
        nested,
        "odd",
    ),
];

fn camel_case(_: &str, body: &Value) -> Option<Value> {
    let params = &body["params"];
    let knows_match = params["matchId"].is_string() && params["match_id"].is_null();
    let result = match body["method"].as_str()? {
        "joinMatch" if knows_match => json!({"accept": true}),
        "chooseParity" if knows_match => json!({"parityChoice": "even"}),
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "result": result, "id": body["id"]}))
}

fn tools(_: &str, body: &Value) -> Option<Value> {
    let (called, arguments) = (&body["params"]["name"], &body["params"]["arguments"]);
    let text = match called.as_str().filter(|_| body["method"] == "tools/call")? {
        "handle_game_invitation" if arguments["match_id"].is_string() => r#"{"accept": true}"#,
        "choose_parity" if arguments["match_id"].is_string() => r#"{"parity_choice": "odd"}"#,
        _ => return None,
    };
    let result = json!({"content": [{"type": "text", "text": text}]});
    Some(json!({"jsonrpc": "2.0", "result": result, "id": body["id"]}))
}

fn own_words(_: &str, body: &Value) -> Option<Value> {
    match body["type"].as_str()? {
        "invite" => Some(json!({"coming": "yes"})),
        "choose" => Some(json!({"choice": "ODD"})),
        _ => None,
    }
}

fn wrapped(_: &str, body: &Value) -> Option<Value> {
    let message = match body["params"]["message"]["message_type"].as_str()? {
        "GAME_INVITATION" => json!({}), // no word is a yes
        "CHOOSE_PARITY_CALL" => json!({"parity_choice": "even"}),
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "result": {"message": message}, "id": body["id"]}))
}

fn nested(path: &str, body: &Value) -> Option<Value> {
    assert!(body["match_id"].is_null() || path == "/" || body["game"]["id"] == body["match_id"]);
    let knows_opponent = body["game"]["opponent"].is_string() && body["opponent_id"].is_null();
    match path {
        "/join" if knows_opponent => Some(json!({"data": {"reply": {"accept": true}}})),
        "/choose" => Some(json!({"data": {"reply": {"pick": {"number": 1}}}})),
        _ => None,
    }
}

/// An agent on a free port: its URL. What it does not understand it answers with HTTP 400.
fn agent(dialect: Dialect) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
            reader.read_line(&mut first).unwrap();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let answer = dialect(first.split(' ').nth(1).unwrap(), &body);
            let status = if answer.is_some() {
                "200 OK"
            } else {
                "400 What?"
            };
            let text = answer.unwrap_or(Value::Null).to_string();
            let length = text.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
            );
        }
    });
    url
}

#[test]
fn agents_of_five_dialects_play_every_match_of_a_league() {
    if !has_python() {
        return eprintln!("left out: there is no python3");
    }
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "5", "--referees", "1"]);
    let adapter = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/adapter.py");
    let start = |(n, (rules, dialect, _)): (usize, &(&str, Dialect, &str))| {
        let mut command = Command::new("python3");
        command.args([
            adapter,
            "--agent",
            &agent(*dialect),
            "--manager",
            &manager.url(),
        ]);
        command.args(["--port", "0", "--until-stdin-closes", "--player-id", &id(n)]);
        command
            .args(rules.split_whitespace())
            .current_dir(&world.folder);
        Agent::new(&mut command)
    };
    let adapters: Vec<Agent> = DIALECTS.iter().enumerate().map(start).collect();
    let _referee = world.referee(&manager, "REF01", &[]);
    assert!(manager.wait().success());
    world.check_played(DIALECTS.len());
    for recorded in world.events("Recorded") {
        let choices = recorded["result"]["details"]["choices"]
            .as_object()
            .unwrap();
        assert_eq!(choices.len(), 2, "{recorded}");
        for (n, (rules, _, choice)) in DIALECTS.iter().enumerate() {
            let chosen = choices.get(&id(n)).unwrap_or(&json!(choice)).clone();
            let said = adapters[n].stderr.lock().unwrap();
            assert_eq!(chosen, *choice, "{rules}: {recorded}; {said}");
        }
    }
}

#[test]
fn the_adapter_says_what_its_agent_does_wrong_and_how_to_mend_it() {
    if !has_python() {
        return eprintln!("left out: there is no python3");
    }
    let world = World::new(&[]);
    let manager = stand_in::manager();
    let adapter = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/adapter.py");
    let mut command = Command::new("python3");
    command.args([
        adapter,
        "--agent",
        &agent(own_words),
        "--manager",
        &manager.url,
    ]);
    command.args("--port 0 --player-id P01 --until-stdin-closes --body bare".split(' '));
    command
        .args("--field message_type=type --value message_type:GAME_INVITATION=invite".split(' '));
    command.args("--value message_type:CHOOSE_PARITY_CALL=choose".split(' '));
    let player = Agent::new(command.current_dir(&world.folder));
    player.line("is P01");
    let call = |message_type: &str, mut body: Value| {
        (body["match_id"], body["game_type"]) = (json!("R1M1"), json!("even_odd"));
        send(
            &player.url(),
            &but(
                &message(message_type, "referee:REF01", body),
                "conversation_id",
                json!("c"),
            ),
        )
    };
    let ack = call(
        "GAME_INVITATION",
        json!({"round_id": 1, "opponent_id": "P02"}),
    );
    assert_eq!(
        [&ack["accept"], &ack["player_id"]],
        [&json!(true), &json!("P01")]
    );
    let choice = call(
        "CHOOSE_PARITY_CALL",
        json!({"player_id": "P01", "deadline": now()}),
    );
    assert_eq!(choice["parity_choice"], Value::Null, "{choice}");
    until("it names the rules", || {
        player
            .stderr
            .lock()
            .unwrap()
            .contains("--field, --value and --out")
            .then_some(())
    });
}

fn id(n: usize) -> String {
    format!("P0{}", n + 1)
}

fn has_python() -> bool {
    Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|it| it.status.success())
}
