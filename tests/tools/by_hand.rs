//! `league play mcp`: the choice is made by calls of `next_turn` and `make_choice`.

use super::support::*;
use crate::players::by_hand::{ByHand, MakeChoice};
use crate::players::strategies::{PastMatch, Turn};
use league::json::decode;
use league::player::PlayerHooks;
use std::{
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Returns a turn in a match with so many seconds left, after sixty matches.
fn turn(match_id: &str, seconds: u64) -> Turn {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let past = |n| PastMatch {
        round_id: 1,
        game_type: "even_odd".into(),
        match_id: format!("R{n}M1"),
        ..Turn::sample().history[0].clone()
    };
    Turn {
        match_id: match_id.into(),
        deadline,
        history: Arc::new((1..=60).map(past).collect()),
        ..Turn::sample()
    }
}

#[test]
fn most_urgent_turn_is_offered_first() {
    let (by_hand, late, soon) = (ByHand::default(), turn("R61M1", 250), turn("R62M1", 150));
    let choose_in = |match_id: &str, choice: &str, move_number: u32| {
        let made = json!({"match_id": match_id, "choice": choice, "move_number": move_number});
        by_hand.make_choice(&decode::<MakeChoice>(&made).unwrap())
    };
    let choose = |match_id: &str, choice: &str| choose_in(match_id, choice, 1);
    let offered = |match_id: &str| {
        until(&format!("{match_id} is offered"), || {
            Some(by_hand.next_turn()).filter(|turn| turn["match_id"] == match_id)
        })
    };
    thread::scope(|scope| {
        let late = scope.spawn(|| by_hand.ask(&late));
        offered("R61M1");
        let soon = scope.spawn(|| by_hand.ask(&soon));
        let offer = offered("R62M1");
        let seconds_left = offer["seconds_left"].as_u64().unwrap();
        assert!((90..=148).contains(&seconds_left), "{offer}");
        let history = list_of(&offer["history"]);
        assert_eq!(
            (history.len(), &history[49]["match_id"]),
            (50, &json!("R60M1"))
        );
        assert_eq!(offer["legal_moves"], json!(["even", "odd"]));
        assert_eq!(offer["move_number"], 1);
        assert!(choose_in("R62M1", "even", 99).is_err());
        let wrong = choose("R62M1", "Even").unwrap_err();
        assert_eq!(wrong.field_name(), Some("choice"));
        choose("R62M1", "even").unwrap();
        assert!(choose("R62M1", "odd").is_err()); // it is chosen
        offered("R61M1");
        choose("R61M1", "odd").unwrap();
        let [soon, late] = [soon, late].map(|thread| thread.join().unwrap().unwrap());
        assert_eq!([soon, late], ["even", "odd"]);
    });
    assert_eq!(by_hand.ask(&turn("R63M1", 2)), None); // at once: it is two seconds before the deadline
    by_hand.note("a\nnote");
    by_hand.note("the end");
    by_hand.over();
    for _ in 0..2 {
        let over = by_hand.next_turn(); // told until the next choice
        let told = json!({"status": "over", "notes": ["a\u{fffd}note", "the end"]});
        assert_eq!(over, told);
    }
}

#[test]
fn by_hand_golden() {
    story::run("by_hand");
}

/// A tool that is called from another address, its token, and the error code.
const FROM_AFAR: &str = "
next_turn | | E011
next_turn | tok-p01-0 | E012
make_choice | | E011
make_choice | tok-p01-0 | E012
make_choice | OWN | E015"; // the token is right, but no choice is asked for

#[test]
fn unauthenticated_calls_are_refused_at_once() {
    let Some(own) = own_address() else {
        return;
    };
    let (test, manager) = with_manager("serve");
    // No agent reaches the player at this endpoint.
    let options = format!("play mcp --host 0.0.0.0 --contact-endpoint http://{own}:1/mcp");
    let player = test.agent(&manager, "P01", &options);
    player.line(" is P01");
    let from_afar = format!("http://{own}:{}/mcp", player.port());
    let card = test.data("agents/P01.json");
    for [tool, token, code] in rows(FROM_AFAR) {
        let token = token.replace("OWN", text_of(&card["token"]));
        let token = (!token.is_empty()).then_some(token);
        let choice = json!({"match_id": "R1M1", "choice": "odd", "auth_token": token});
        let refused = call_tool(&from_afar, tool, choice);
        check_contains(text_of(&refused["content"][0]["text"]), code);
    }
}

/// The script in the guide chooses even first, and then what beats its last choice.
#[test]
fn official_python_sdk_plays_a_league() {
    let python = std::env::var("MCP_PYTHON").unwrap_or(PYTHON.into()); // one that has the package mcp
    let mut script = Command::new(&python);
    let has_it = script.args(["-c", "from mcp import Client"]).output();
    if !has_it.is_ok_and(|has_it| has_it.status.success()) {
        let what = format!("the official SDK: {python} has no package mcp, 2.x");
        return print_left_out(&what);
    }
    let page = include_str!("../../src/guide/models.md");
    let (_, script) = page.split_once("```python\n# play.py").unwrap();
    let (script, _) = script.split_once("```").unwrap();

    let test = TestLeague::new("league scheduling.cycles=3");
    let mut manager = test.serve("--players 2");
    let player = test.agent(&manager, "P01", "play mcp:odd");
    let _others = [("P02", "play even"), ("REF01", "")]
        .map(|(id, options)| test.agent(&manager, id, options));
    let script = script.replace("http://localhost:8101/mcp", &player.url());
    let (code, output) = run_to_end(Command::new(&python).args(["-c", &script]));
    assert_eq!(code, Some(0), "{output}");
    manager.wait_for_success();
    let state = call_tool(&player.url(), "get_player_state", json!({}));
    let matches = list_of(&state["structuredContent"]["matches"]).iter();
    let choices = matches.map(|past| past["result"]["choices"]["P01"].clone());
    assert_eq!(choices.collect::<Vec<_>>(), ["even", "odd", "odd"]);
}
