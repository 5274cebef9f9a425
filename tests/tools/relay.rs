//! Players that only call out. What they and their relays do is in scripts (`tests/scripts/relay`).

use super::support::*;
use crate::classroom::queue::{Poll, Queue};
use league::net::http::Response;
use std::fs;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

#[test]
fn relay_golden() {
    story::run("relay");
}

#[test]
fn poll_waits_for_at_most_25_seconds() {
    let seconds = ["10000", "null", "-3", "7"].map(|wait_sec| {
        let poll: Poll = json_of(&format!(r#"{{"relay_token": "", "wait_sec": {wait_sec}}}"#));
        poll.timeout().as_secs()
    });
    assert_eq!(seconds, [25, 25, 0, 7]);
}

#[test]
fn hundred_requests_wait_for_a_player_and_no_more() {
    let queue = Arc::new(Queue::new());
    let asked: Vec<JoinHandle<Response>> = (0..120)
        .map(|_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.pass_on(b"{}", |_| Duration::from_secs(4)))
        })
        .collect();
    let refused = asked.into_iter().map(|asked| asked.join().unwrap());
    let refused = refused.filter(|answer| answer.status == "503 Service Unavailable");
    assert_eq!(refused.count(), 20);
}

#[test]
fn player_of_another_machine_gains_no_right_of_this_one() {
    let Some(own) = own_address() else { return };
    let test = TestLeague::new("");
    let contact = format!("http://{own}:8000/mcp");
    let options =
        format!("serve --host 0.0.0.0 --contact-endpoint {contact} --members-per-address 3");
    let manager = test.manager(&options);
    let [here, far] = ["127.0.0.1".into(), own.to_string()]
        .map(|host| format!("http://{host}:{}/mcp", manager.port()));
    let open = |url: &str| ask(url, "open_relay", json!({}));
    let eve = open(&here);
    let relay = text_of(&eve["contact_endpoint"]);

    // Only a relay is at a loopback address, and an address may have as many as members.
    for endpoint in [&relay[..relay.len() - 1], "http://127.0.0.1:1/mcp"] {
        let registration = player_registration("P09", endpoint, None);
        assert_eq!(send(&far, &registration)["status"], "REJECTED");
    }
    let tokens = [(); 5].map(|()| open(&far)["relay_token"].take());
    let are_open = tokens.map(|token| {
        let poll = json!({"relay_token": token, "wait_sec": 0});
        ask(&here, "relay_next", poll)["error_code"] != "E012"
    });
    assert_eq!(are_open, [false, false, true, true, true]);

    // A referee elsewhere cannot call a relay.
    let operator = fs::read_to_string(test.league_file("operator.token")).unwrap();
    let endpoint = format!("http://{own}:9/mcp");
    let referee = referee_registration("REF01", &endpoint, 1, Some(operator.trim()));
    assert_eq!(send(&far, &referee)["status"], "ACCEPTED");
    check_contains(text_of(&open(&here)["warning"]), "REF01");
}
