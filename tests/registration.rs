//! Who gets in, under which id, with which token, and whose request a request is: a story, and what no story tells.

mod support;

use league::manager::league::League;
use league::protocol::Kind;
use serde_json::json;
use support::paper::{caller, enter, local, meta, register, rules, started};

#[test]
fn the_story_of_registration() {
    support::script::play("registration.txt");
}

#[test]
fn ids_go_on_after_ninety_nine() {
    let mut league = League::new(rules());
    league.rules.listed.clear();
    let ids = (1..=101).map(|n| Kind::Player.numbered(n));
    for (port, id) in (9001..).zip(ids) {
        let player = meta(Kind::Player, &local(port));
        assert_eq!(enter(&mut league, &player, &caller("player:new")).id, id);
    }
    let last = league.members(Kind::Player).pop().unwrap();
    assert_eq!(last.id, "P101", "by number, not by letter");
}

#[test]
fn the_answer_tells_who_one_is_and_that_the_manager_proves_itself() {
    let mut from = caller("referee:late");
    let mut answer = |port: u32, token: &str| {
        from.token = Some(token.into());
        let admission = register(&started(2, &[2]), &meta(Kind::Referee, &local(port)), &from);
        admission.for_referee("paper")
    };
    let accepted = json!({"status": "ACCEPTED", "referee_id": "REF01", "auth_token": "tok-ref01-first",
        "league_id": "paper", "reason": null, "proves_itself": true});
    assert_eq!(json!(answer(8001, "tok-ref01-first")), accepted);
    let late = "League already started";
    let rejected =
        json!({"status": "REJECTED", "referee_id": null, "reason": late, "error_code": "E019"});
    assert_eq!(json!(answer(9000, "")), rejected);
    let player = register(
        &started(2, &[2]),
        &meta(Kind::Player, &local(9000)),
        &caller("player:late"),
    );
    let late = "Registration closed - league already started";
    let rejected =
        json!({"status": "REJECTED", "player_id": null, "reason": late, "error_code": "E019"});
    assert_eq!(json!(player.for_player("paper")), rejected);
}
