//! `bin/adapter.py`: five agents, each with another dialect, play a league through it. None of them
//! knows the messages of the league.

use super::support::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/adapter.py");

/// Returns the answer of an agent to a request; none if it does not know the request.
type Dialect = fn(path: &str, body: &Value) -> Option<Value>;

/// The rules of the command line, the agent that needs them, and its choice.
const DIALECTS: [(&str, Dialect, &str); 5] = [
    (
        "--method handle_game_invitation=joinMatch --method choose_parity=chooseParity \
         --field match_id=matchId --field parity_choice=parityChoice",
        camel_case,
        "even",
    ),
    ("--relay --body tools", tools, "odd"), // this one cannot be called
    (
        "--body bare --field message_type=type --value message_type:GAME_INVITATION=invite \
         --value message_type:CHOOSE_PARITY_CALL=choose --field GAME_JOIN_ACK:accept=coming \
         --value accept:true=yes --field parity_choice=choice --value parity_choice:even=EVEN \
         --value parity_choice:odd=ODD",
        own_words,
        "odd",
    ),
    ("--in message --method *=handle", wrapped, "even"),
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
    assert_eq!(body["method"], "handle");
    let message = match body["params"]["message"]["message_type"].as_str()? {
        "GAME_INVITATION" => json!({}), // an answer without `accept` accepts
        "CHOOSE_PARITY_CALL" => json!({"parity_choice": "even"}),
        _ => {
            let error = json!({"code": -32601, "message": "unknown"});
            return Some(json!({"result": null, "error": error, "id": body["id"]}));
        }
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

/// Starts an agent, and returns its URL. It answers unknown requests with HTTP 400.
fn start_agent(dialect: Dialect) -> String {
    let peer = FakeAgent::with_paths(move |path, body| match dialect(path, body) {
        Some(answer) => FakeReply::Body(answer.to_string()),
        None => fake::status("400 What?", "null"),
    });
    peer.url.replace("/mcp", "/")
}

/// Starts an agent with its adapter.
fn start_adapter(
    test: &TestLeague,
    manager: &str,
    dialect: Dialect,
    rules: &str,
    id: &str,
) -> TestProcess {
    let url = start_agent(dialect);
    let options = format!("--agent {url} --player-id {id} {rules}");
    test.python(SCRIPT, manager, &options)
}

#[test]
fn agents_with_five_dialects_play_all_matches() {
    if !has_python() {
        return;
    }
    let (test, mut manager) = with_manager("serve --players 5 --referees 1");
    let ids = ["P01", "P02", "P03", "P04", "P05"];
    let mut agents = Vec::new();
    for ((rules, dialect, choice), id) in DIALECTS.into_iter().zip(ids) {
        let adapter = start_adapter(&test, &manager.url(), dialect, rules, id);
        agents.push((id, adapter, choice));
    }
    let _referee = test.agent(&manager, "REF01", "");
    manager.wait_for_success();
    test.check_played(DIALECTS.len());
    agents[3].1.wait_for_error("-32601"); // an error together with a result that is null
    for recorded in test.events("Recorded") {
        let choices = &recorded["result"]["details"]["choices"];
        assert_eq!(choices.as_object().unwrap().len(), 2, "{recorded}");
        for (id, adapter, choice) in &agents {
            let is_right = choices.get(id).is_none_or(|recorded| recorded == choice);
            assert!(is_right, "{id}: {recorded}; {}", adapter.errors());
        }
    }
}

#[test]
fn adapter_without_a_rule_for_the_choice_names_the_options() {
    if !has_python() {
        return;
    }
    let (test, manager) = (TestLeague::new(""), fake::manager());
    // There is no rule for the field of the choice.
    let rules = "--body bare --field message_type=type --value message_type:GAME_INVITATION=invite \
        --value message_type:CHOOSE_PARITY_CALL=choose";
    let player = start_adapter(&test, &manager.url, own_words, rules, "P01");
    player.line("is P01");
    let story = "manager announces R1M1: ok\ntrue invites R1M1: joins";
    fake::converse(&player.url(), story);
    let choice = send(&player.url(), &fake::message_of_line("true asks R1M1"));
    assert_eq!(choice["parity_choice"], Value::Null, "{choice}");
    player.wait_for_error("--field, --value and --out");
}
