//! The manager and callers with another address. What it tells a class is in scripts:
//! `tests/scripts/programs`.

use super::support::fake::LEAGUE;
use super::support::*;

#[test]
fn programs_of_this_machine_are_no_strangers_at_its_other_address() {
    let Some(own) = own_address() else { return };
    let test = TestLeague::new("");
    let mut manager = test.manager(&format!("--players 2 --host {own}"));
    assert_eq!(
        manager.url(),
        format!("http://{own}:{}/mcp", manager.port())
    );
    let mut agents = test.agents(&manager, "REF01 P01 P02");
    wait_for_all(&mut manager, &mut agents);
    test.check_played(2);
    assert!(!manager.output().contains("others reach us at"));
}

#[test]
fn remote_orders_and_referees_need_the_operator_token() {
    let Some(own) = own_address() else { return };
    let test = TestLeague::new("");
    let contact = format!("http://{own}:8000/mcp");
    let manager = test.manager(&format!("--host 0.0.0.0 --contact-endpoint {contact}"));
    manager.line(&format!("others reach us at {contact}"));
    let url = format!("http://{own}:{}/mcp", manager.port());
    let operator = std::fs::read_to_string(test.league_file("operator.token")).unwrap();
    for (token, code, status) in [
        (None, "E011", "REJECTED"),
        (Some("tok-operator-0"), "E012", "REJECTED"),
        (Some(operator.trim()), "waiting", "ACCEPTED"),
    ] {
        // The league refuses the last three to the operator for other reasons.
        let actions = ["pause", "resume", "remove", "restore", "new_lobby"];
        let actions = &actions[..if code == "waiting" { 2 } else { 5 }];
        let orders = actions.iter().map(|action| ("LEAGUE_CONTROL", *action));
        for (message_type, action) in orders.chain([("START_LEAGUE", "")]) {
            let body = json!({"auth_token": token, "league_id": LEAGUE, "action": action});
            let reply = send(&url, &message(message_type, "launcher", body));
            let actual = reply["error_code"].as_str().or(reply["status"].as_str());
            assert_eq!(actual, Some(code), "{reply}");
        }
        for (host, status) in [(&*own.to_string(), status), ("127.0.0.1", "REJECTED")] {
            let endpoint = format!("http://{host}:1/mcp");
            let reply = send(&url, &referee_registration("new", &endpoint, 1, token));
            assert_eq!(reply["status"], status, "{token:?}: {reply}");
        }
    }

    // A peer with an address of this machine is this machine, if it calls the manager by its name.
    let port = free_port();
    let url = format!("http://{own}:{port}/mcp");
    let near = TestLeague::new("");
    let all = format!("--host 0.0.0.0 --port {port} --contact-endpoint {url}");
    let _manager = near.manager(&all);
    let reply = send(&url, &referee_registration("new", &url, 1, None));
    assert_eq!(reply["status"], "ACCEPTED", "{reply}");
}
