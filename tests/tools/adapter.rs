//! `bin/adapter.py`: five agents, each with another dialect, play a league through it. None of them
//! knows the messages of the league.

use super::support::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/adapter.py");

/// Agents, their choices, and the rules for their dialects on the command line. P02 cannot be called.
/// P06 has no rule for the field of its choice.
const AGENTS: &str = "
P01 | even | --method handle_game_invitation=joinMatch --method choose_parity=chooseParity --field match_id=matchId --field parity_choice=parityChoice --value parity_choice:even=0
P02 | odd | --relay --body tools
P03 | odd | --body bare --field message_type=type --value message_type:GAME_INVITATION=invite --value message_type:CHOOSE_PARITY_CALL=choose --field GAME_JOIN_ACK:accept=coming --value accept:true=yes --field parity_choice=choice --value parity_choice:even=EVEN --value parity_choice:odd=ODD
P04 | even | --in message --method *=handle
P05 | odd | --body bare --path handle_game_invitation=/join --path choose_parity=/choose --copy match_id=game.id --field opponent_id=game.opponent --out data.reply --field parity_choice=pick.number --value parity_choice:even=0 --value parity_choice:odd=1
P06 | | --body bare --field message_type=type --value message_type:GAME_INVITATION=invite --value message_type:CHOOSE_PARITY_CALL=choose";

/// What an agent is sent, and its answer: the path, the fields with their texts (`*` for any, `-` for
/// none, or those of another field), the answer. An invitation may be accepted by an answer without `accept`. The number that P01
/// chooses is a text. What P04 does not know it answers with an error together with a result that is
/// null.
const ANSWERS: &str = r#"
P01 | / method=joinMatch params.matchId=* params.match_id=- | {"jsonrpc": "2.0", "id": 1, "result": {"accept": true}}
P01 | / method=chooseParity params.matchId=* params.match_id=- | {"jsonrpc": "2.0", "id": 1, "result": {"parityChoice": "0"}}
P02 | / method=tools/call params.name=handle_game_invitation params.arguments.match_id=* | {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "{\"accept\": true}"}]}}
P02 | / method=tools/call params.name=choose_parity params.arguments.match_id=* | {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "{\"parity_choice\": \"odd\"}"}]}}
P03 | / type=invite | {"coming": "yes"}
P03 | / type=choose | {"choice": "ODD"}
P04 | / method=handle params.message.message_type=GAME_INVITATION | {"jsonrpc": "2.0", "id": 1, "result": {"message": {}}}
P04 | / method=handle params.message.message_type=CHOOSE_PARITY_CALL | {"jsonrpc": "2.0", "id": 1, "result": {"message": {"parity_choice": "even"}}}
P04 | / method=handle | {"result": null, "error": {"code": -32601, "message": "unknown"}, "id": 1}
P05 | /join game.id=match_id game.opponent=* opponent_id=- | {"data": {"reply": {"accept": true}}}
P05 | /choose game.id=* | {"data": {"reply": {"pick": {"number": 1}}}}
P06 | / type=invite match_id=R1M2 | {"accept": false}
P06 | / type=invite | {"coming": "yes"}
P06 | / type=choose | {"choice": "ODD"}"#;

/// Returns the answer of an agent to a request; none if it does not know the request.
fn answer(id: &str, path: &str, body: &Value) -> Option<&'static str> {
    let holds = |condition: &str| {
        let (place, expected) = condition.split_once('=').unwrap();
        let text = body.pointer(&pointer(place)).and_then(Value::as_str);
        match (text, expected) {
            (None, "-") | (Some(_), "*") => true,
            _ => text.is_some_and(|text| text == expected || body[expected] == text),
        }
    };
    let mut answers = rows(ANSWERS).filter(|[agent, _, _]| *agent == id);
    let row = answers.find(|[_, request, _]| {
        let (expected, conditions) = request.split_once(' ').unwrap();
        path == expected && conditions.split(' ').all(holds)
    });
    row.map(|[_, _, answer]| answer)
}

/// Starts an agent with its adapter. The agent answers unknown requests with HTTP 400.
fn start_adapter(test: &TestLeague, manager: &str, id: &'static str, rules: &str) -> TestProcess {
    let agent = FakeAgent::with_paths(move |path, body| match answer(id, path, body) {
        Some(answer) => FakeReply::Body(answer.into()),
        None => fake::status("400 What?", "null"),
    });
    let url = agent.url.replace("/mcp", "/");
    test.python(
        SCRIPT,
        manager,
        &format!("--agent {url} --player-id {id} {rules}"),
    )
}

#[test]
fn agents_with_five_dialects_play_all_matches() {
    if !has_python() {
        return;
    }
    let (test, mut manager) = with_manager("serve --players 5 --referees 1");
    let mut agents = Vec::new();
    for [id, choice, rules] in rows(AGENTS).take(5) {
        agents.push((id, choice, start_adapter(&test, &manager.url(), id, rules)));
    }
    let _referee = test.agent(&manager, "REF01", "");
    manager.wait_for_success();
    test.check_played(5);
    agents[3].2.wait_for_error("-32601");
    for recorded in test.events("Recorded") {
        let choices = &recorded["result"]["details"]["choices"];
        assert_eq!(choices.as_object().unwrap().len(), 2, "{recorded}");
        for (id, choice, adapter) in &agents {
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
    let [id, _, rules] = rows(AGENTS).last().unwrap();
    let player = start_adapter(&test, &manager.url, id, rules);
    player.line("is P01");
    let story = "manager announces R1M2: ok\nmanager announces R1M1: ok\ntrue invites R1M1: joins";
    fake::converse(&player.url(), story);
    let declined = send(&player.url(), &fake::message_of_line("true invites R1M2"));
    assert_eq!(declined["accept"], false);
    let choice = send(&player.url(), &fake::message_of_line("true asks R1M1"));
    assert_eq!(choice["parity_choice"], Value::Null, "{choice}");
    player.wait_for_error("--field, --value and --out");
}
