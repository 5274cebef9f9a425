//! A real player between a fake manager and fake referees, announced ones and strangers: the messages
//! that it accepts, its replies, its history and its lines on the screen. The rules of acceptance are
//! tables in `invitations.rs`; these tests show that the player applies them.

use super::support::fake::{self, TOKEN, converse, message_of_line, told};
use super::support::*;
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Starts a player and waits until it is registered.
fn player(test: &TestLeague, manager: &FakeAgent, arguments: &str) -> TestProcess {
    let player = unregistered(test, manager, arguments);
    player.line("is P01");
    player
}

fn unregistered(test: &TestLeague, manager: &FakeAgent, arguments: &str) -> TestProcess {
    let arguments = format!("{arguments} --manager {} --player-id P01", manager.url);
    test.start("player", &arguments)
}

/// Starts a manager that does not promise to send tokens in its notifications.
fn silent_about_tokens() -> FakeAgent {
    FakeAgent::new(|request| fake::accepts(request, TOKEN, false))
}

fn state(player: &TestProcess) -> Value {
    ask(&player.url(), "get_player_state", json!({}))
}

/// The replies of a player whose manager has promised tokens.
const ACCEPTED: &str = "
manager announces R1M1 tok-true: ok
strange invites R1M1: E012
true asks R1M1: E015
true invites R1M1: joins
strange asks R1M1: E012
strange complains R1M1: E012
strange ends R1M1 P02: E012
replay asks R1M1: E015
true complains R1M1: ok
true asks R1M1: chooses
true asks R7M1: E015
true invites R5M1 player_id=P02: E012";

/// The ends of a match that is played again: the last one counts.
const ENDS: &str = "
replay invites R1M1: joins
replay ends R1M1 P02: ok
true ends R1M1 P01: E015
manager ends: ok";

/// Lines on the screen of the player.
const ON_SCREEN: &str = "P01: refused GAME_INVITATION of R1M1 from referee:REF01 at 127.0.0.1: E012 auth_token: not the match token
P01: refused CHOOSE_PARITY_CALL of R7M1 from referee:REF01 at 127.0.0.1: E015 match_id: got \"R7M1\", which we
P01: R1M1: E004 INVALID_PARITY_CHOICE: parity_choice: got \"EVEN\"\u{fffd}[2J; attempt 1 of 3; expected CHOOSE_PARITY_RESPONSE; Technical loss";

#[test]
fn only_the_announced_referee_is_accepted() {
    let (test, manager) = (TestLeague::new(""), fake::manager());
    let mut player = player(&test, &manager, "play even");
    let url = player.url();
    converse(&url, ACCEPTED);
    let before = state(&player).to_string();
    let before = before.replace("\"strategy\":\"even\"", "");
    let shows_choice = before.contains("even") || before.contains("odd");
    assert!(!shows_choice, "a choice before its match is over: {before}");
    converse(&url, "true ends R1M1 P01: ok\ntrue ends R1M1 P01: ok");
    let after = state(&player);
    let won_once = json!({"wins": 1, "losses": 0, "draws": 0});
    assert_eq!(after["record"], won_once);
    assert_eq!(after["matches"][0]["result"]["choices"]["P01"], "even");
    converse(&url, ENDS);
    player.wait_for_success();
    let history = test.data("players/P01/history.json");
    let result = &history["matches"][0]["result"];
    assert_eq!(result["winner_player_id"], "P02");
    // Each of the two ends is printed once.
    let (output, errors) = (player.output(), player.errors());
    let printed = output.matches("you (even)").count();
    assert_eq!(printed, 2, "{output}");
    ON_SCREEN
        .lines()
        .for_each(|line| check_contains(&errors, line));
    assert!(!errors.contains('\u{1b}'));
    check_no_token(&(output + &errors));
}

#[test]
fn unauthenticated_game_over_is_not_recorded() {
    for (manager, expected) in [(fake::manager(), 1), (silent_about_tokens(), 2)] {
        let test = TestLeague::new("");
        let player = player(&test, &manager, "");
        // A match that the manager has not announced is played only if it does not prove itself.
        let joined = ["E015", "joins"][expected - 1];
        let ended = ["E015", "ok"][expected - 1];
        let story = format!(
            "
strange invites S1: {joined}
strange ends S1 P01: {ended}
manager announces R1M1: ok
true invites R1M1: joins
true ends R1M1 P01: ok"
        );
        converse(&player.url(), &story);
        wait_until("the history is written", || {
            let history = test.data("players/P01/history.json");
            let count = list_of(&history["matches"]).len();
            count == expected && state(&player)["record"]["wins"] == expected
        });
    }
}

#[test]
fn disabled_tokens_may_be_missing() {
    let test = TestLeague::new("system security.enable_auth_tokens=false");
    let manager = fake::manager();
    let player = player(&test, &manager, "");
    let script = "
manager announces R1M1 tok-true: ok
true invites R1M1 auth_token=null: joins
true asks R1M1 auth_token=null: chooses
true complains R1M1 auth_token=null: ok
true ends R1M1 P01 auth_token=null: ok";
    converse(&player.url(), script);
}

#[test]
fn only_the_manager_ends_a_player() {
    // The manager has sent no message since the registration.
    let script = "
manager tells auth_token=tok-p01-wrong: E012
manager ends auth_token=tok-p01-wrong: E012
manager tells: ok
manager tells auth_token=null: ";
    let proves = "E011\nmanager ends auth_token=null: E011";
    for (manager, more) in [(fake::manager(), proves), (silent_about_tokens(), "ok")] {
        let test = TestLeague::new("");
        let mut player = player(&test, &manager, "");
        converse(&player.url(), &[script, more].concat());
        assert!(player.child.try_wait().unwrap().is_none());
        assert_eq!(state(&player)["state"], "ACTIVE");
        converse(&player.url(), "manager ends: ok");
        player.wait_for_success();
    }
}

#[test]
fn new_registration_archives_the_history() {
    let test = TestLeague::new("");
    let manager = FakeAgent::counting(|n, request| {
        let token = request["params"]["auth_token"].as_str();
        let token = token.map_or(format!("{TOKEN}{n}"), String::from); // a token is renewed in place
        fake::accepts(request, &token, true)
    });
    let mut first = player(&test, &manager, "");
    let token = format!("{TOKEN}0");
    let script = format!(
        "manager announces R1M1 auth_token={token}: ok
true invites R1M1: joins
true ends R1M1 P01: ok"
    );
    converse(&first.url(), &script);
    test.data("players/P01/history.json");
    let port = first.port();
    first.kill();
    // The same port; the same port, and an id that it requests but does not get; another port.
    for (port, id) in [(&*port, "P01"), (&port, "p1"), ("0", "P01")] {
        let again = player(&test, &manager, &format!("--port {port} --player-id {id}"));
        assert_eq!(state(&again)["record"]["wins"], 1, "{port} {id}");
        let request = manager.received("LEAGUE_REGISTER_REQUEST").pop().unwrap();
        assert_eq!(request["auth_token"], token, "{port} {id}");
        assert_eq!(request["player_meta"]["contact_endpoint"], again.url());
    }
    fs::remove_file(test.folder.join("data/agents/P01.json")).unwrap();
    let fresh = player(&test, &manager, "");
    assert_eq!(state(&fresh)["matches"], json!([]));
    let all = files(&test.folder.join("data/players"));
    check_contains(&format!("{all:?}"), "P01~");
}

#[test]
fn requests_before_the_registration_wait() {
    let (test, gate) = (TestLeague::new(""), Gate::default());
    let manager = fake::manager_after(&gate);
    let player = unregistered(&test, &manager, "");
    manager.first("LEAGUE_REGISTER_REQUEST");
    let (sender, replies) = channel();
    for line in [
        "manager announces R9M1",
        "true invites R9M1",
        "manager ends auth_token=null",
    ] {
        let (url, sender) = (player.url(), sender.clone());
        thread::spawn(move || sender.send(told(&send(&url, &message_of_line(line))).to_string()));
    }
    let early = replies.recv_timeout(Duration::from_millis(300));
    assert!(early.is_err(), "a reply before the registration");
    gate.open();
    let mut all = [(); 3].map(|()| replies.recv_timeout(time_limit()).unwrap());
    all.sort();
    assert_eq!(all, ["E011", "joins", "ok"]);
}

#[test]
fn player_waits_for_its_manager() {
    let test = TestLeague::new("system retry_policy.base_delay_sec=0.01");
    let manager = FakeAgent::counting(|n, request| match n {
        0 | 2 | 4 => FakeReply::Close,
        1 | 3 => fake::status("503 Busy", "later"),
        _ => fake::answers(request),
    });
    let bare = manager.url.replace("/mcp", ""); // the address of a manager needs no path
    let arguments = format!("--manager {bare} --contact-endpoint http://elsewhere:8101/mcp");
    let mut player = test.start("player", &arguments);
    player.line("others reach us at http://elsewhere:8101/mcp");
    converse(&player.url(), "manager ends: ok");
    player.wait_for_success();
    let errors = player.errors();
    let waits = format!("waiting for the league manager at {}: it ", manager.url);
    // Each of the two lines is printed once.
    assert_eq!(errors.matches(&waits).count(), 2, "{errors}");
    let requests = manager.received("LEAGUE_REGISTER_REQUEST");
    let conversation = |request: &Value| request["conversation_id"].clone();
    let first = conversation(&requests[0]);
    assert_eq!(requests.len(), 6);
    assert!(
        requests
            .iter()
            .all(|request| conversation(request) == first)
    );
}

#[test]
fn agent_killed_during_registration_sends_the_same_key() {
    for (program, id) in [("player", "P01"), ("referee", "REF01")] {
        let (test, gate) = (TestLeague::new(""), Gate::default());
        let manager = fake::manager_after(&gate);
        let key = |n: usize| {
            let requests = &manager.requests;
            let request = until("the agent registers", || {
                requests.lock().unwrap().get(n).cloned()
            });
            let meta = &request["params"][format!("{program}_meta")];
            text_of(&meta["registration_key"]).to_string()
        };
        let arguments = format!("--manager {} --{program}-id {id}", manager.url);
        let start = || test.start(program, &arguments);
        let mut killed = start();
        let first = key(0);
        let card = test.data(&format!("agents/{id}.json"));
        assert!(first.len() == 32 && card["token"].is_null(), "{program}");
        killed.kill();
        gate.open();
        for n in [1, 2] {
            start().line(&format!("is {id}"));
            assert_eq!(key(n), first, "{program}");
        }
        let is_logged = |line: &Value| line.to_string().contains(&first);
        assert!(!test.logs().iter().any(is_logged), "{program}");
    }
}

#[test]
fn remote_player_names_its_own_address() {
    let Some(own) = own_address() else { return };
    let test = TestLeague::new("");
    // No agent calls the manager at this endpoint.
    let anywhere = format!("--host 0.0.0.0 --contact-endpoint http://{own}:1/mcp");
    let manager = test.manager(&anywhere);
    let remote = format!("--manager http://{own}:{}", manager.port());
    let near = test.start("player", &format!("{remote} --host 127.0.0.1"));
    near.line("listening on http://localhost:");
    let player = test.start("player", &format!("{remote} --player-id P07"));
    player.line("is P07");
    let endpoint = format!("http://{own}:{}/mcp", player.port());
    player.line(&format!("others reach us at {endpoint}"));
    assert_eq!(test.data("agents/P07.json")["endpoint"], endpoint);
    converse(&endpoint, "true asks R1M1: E015"); // the player is reachable there
}

/// A reply to the registration: the status, the body, and the words of the line on the screen.
const REJECTIONS: &str = r#"
200 OK | {"result": {"message_type": "LEAGUE_REGISTER_RESPONSE", "status": "REJECTED", "player_id": null, "reason": "Maximum players reached: \u001b]0;x\u0007 2 may register"}} | rejected: Maximum players
200 OK | {"result": {"message_type": "LEAGUE_ERROR", "error_code": "E003", "error_description": "no\u001b[2J", "context": {"problem": "none"}}} | refused: E003 no�[2J: none
200 OK | {"error": {"code": -32000, "message": "\u001b[31mno"}} | answered JSON-RPC error -32000 "\u{1b}[31mno"
200 OK | {"result": {"status": "\u001b[2J"}} | answered {"status":"\u001b[2J"}
200 OK | ESCAPE[2Jno | not a JSON-RPC reply
404 Not Found | nobody | answered HTTP 404 "nobody""#;

#[test]
fn rejected_player_prints_the_reason() {
    for [status, body, expected] in rows(REJECTIONS) {
        let test = TestLeague::new("");
        let body = body.replace("ESCAPE", "\u{1b}");
        let manager = FakeAgent::new(move |request| {
            let is_referee = request["params"]["message_type"] == "REFEREE_REGISTER_REQUEST";
            let kind = ["LEAGUE_REGISTER", "REFEREE_REGISTER"][usize::from(is_referee)];
            fake::status(status, &body.replace("LEAGUE_REGISTER", kind))
        });
        let is_plain = |output: &str| !output.contains(['\u{1b}', '\u{7}']);
        for program in ["player", "referee"] {
            let mut agent = test.start(program, &format!("--manager {}", manager.url));
            assert_eq!(agent.wait().code(), Some(1));
            let errors = agent.errors();
            check_contains(&errors, expected);
            let is_line = errors.lines().count() == 1 && is_plain(&errors);
            assert!(is_line, "{program}: {errors}");
        }
        for word in ["status", "start"] {
            let (code, output) = test.run_tool(&format!("{word} --manager {}", manager.url));
            assert!(is_plain(&output) && code == Some(1), "{word}: {output}");
        }
    }
}

#[test]
fn invitation_waits_for_its_announcement() {
    let (test, manager) = (TestLeague::new(""), fake::manager());
    let player = player(&test, &manager, "");
    let url = player.url();
    let begun = Instant::now();
    converse(&url, "strange invites R1M1: E015\nstrange asks R1M1: E015");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    thread::scope(|scope| {
        scope.spawn(|| converse(&url, "true invites R2M1: joins"));
        thread::sleep(Duration::from_millis(300));
        converse(&url, "manager announces R2M1 tok-true: ok");
    });

    // The manager invites to a rehearsal with the player's own token.
    let rehearsal = format!("true invites REHEARSAL auth_token={TOKEN}: joins");
    converse(&url, &rehearsal);
    let call = format!("true asks REHEARSAL auth_token={TOKEN}: chooses");
    converse(&url, &call);
}

#[test]
fn player_asks_for_its_next_match_if_the_announcement_is_lost() {
    let manager = fake::manager_with_next_match();
    let test = TestLeague::new("");
    let player = player(&test, &manager, "");
    let script = "strange invites R1M1: E012\ntrue invites R1M1: joins\nstrange invites R2M1: E015";
    converse(&player.url(), script);
    assert_eq!(manager.first("LEAGUE_QUERY")["auth_token"], TOKEN);
}

/// Starts a registered agent whose two minutes are 0.4 s and whose thirty minutes are 6 s.
fn forgotten(manager: &FakeAgent, program: &str, options: &str) -> (TestLeague, TestProcess) {
    let test = TestLeague::new(
        "system timeouts.ping_interval_sec=0.2; system retry_policy.base_delay_sec=2",
    );
    let agent = test.start(program, &format!("{options} --manager {}", manager.url));
    agent.line(" in league_2025_even_odd");
    (test, agent)
}

/// Returns the notification that the last round is over.
fn last_round() -> Value {
    let summary = json!({"total_matches": 1, "wins": 1, "draws": 0, "technical_losses": 0});
    let body =
        json!({"round_id": 1, "matches_completed": 1, "summary": summary, "next_round_id": null});
    fake::notice("ROUND_COMPLETED", Some(TOKEN), body)
}

/// Refuses the registration of a referee or a player.
fn rejects(request: &Value, reason: &str, code: Option<&str>) -> FakeReply {
    let is_referee = request["params"]["message_type"] == "REFEREE_REGISTER_REQUEST";
    let message_type = match is_referee {
        true => "REFEREE_REGISTER_RESPONSE",
        false => "LEAGUE_REGISTER_RESPONSE",
    };
    let body = json!({"status": "REJECTED", "reason": reason, "error_code": code});
    FakeReply::Answer(message(message_type, "league_manager", body))
}

#[test]
fn player_that_hears_nothing_registers_again() {
    check_registers_again("player");
}

#[test]
fn referee_that_hears_nothing_registers_again() {
    check_registers_again("referee");
}

fn check_registers_again(program: &str) {
    let meta = |request: &Value| {
        let params = &request["params"];
        let mut metas = ["player_meta", "referee_meta"]
            .iter()
            .map(|key| &params[*key]);
        metas.find(|meta| meta.is_object()).cloned().unwrap()
    };
    // It is known again, and goes on. A ping counts if the manager has sent it.
    let manager = fake::manager();
    let requests = || manager.requests.lock().unwrap().clone();
    let (_test, mut agent) = forgotten(&manager, program, "");
    let begun = Instant::now();
    wait_until("three seconds of pings pass", || {
        call(&agent.url(), "ping", json!({"auth_token": TOKEN}));
        begun.elapsed() > Duration::from_secs(3)
    });
    assert_eq!(requests().len(), 1, "{program}");
    wait_until("it asks again", || {
        call(&agent.url(), "ping", json!({"auth_token": "tok-p01-wrong"}));
        requests().len() == 3
    });
    let asked = requests();
    assert_eq!(
        [&asked[1], &asked[2]].map(|one| &one["params"]["auth_token"]),
        [TOKEN; 2]
    );
    assert_eq!(meta(&asked[0])["must_be_known"], Value::Null);
    assert_eq!(meta(&asked[1])["must_be_known"], true);
    send(&agent.url(), &message_of_line("manager ends"));
    agent.wait_for_success();

    // Another league is there.
    let reason = "Not a member: this is another league";
    let other = FakeAgent::counting(move |n, request| match n {
        0 => fake::answers(request),
        _ => rejects(request, reason, None),
    });
    let (_test, mut agent) = forgotten(&other, program, "");
    assert_eq!(agent.wait().code(), Some(1), "{program}");
    agent.wait_for_error(&format!("rejected: {reason}"));

    // It joins the next lobby, which it must wait for.
    let next = FakeAgent::counting(|n, request| match n {
        0 => fake::answers(request),
        1 => rejects(request, "it has begun", Some("E019")),
        _ => fake::accepts(request, "tok-next-0123456789abcdef", true),
    });
    let id = ["P01", "REF01"][usize::from(program == "referee")];
    let (test, agent) = forgotten(&next, program, &format!("--stay --{program}-id {id}"));
    agent.wait_for_error("the league has started already; waiting for the next league");
    wait_until("it is in the next lobby", || {
        test.data(&format!("agents/{id}.json"))["token"] == "tok-next-0123456789abcdef"
    });
    let asked = next.requests.lock().unwrap().clone();
    assert!(asked.iter().all(|one| meta(one)["must_be_known"].is_null()));

    // After the last round it waits for a sixth of that time: it asks once, and ends.
    let left = FakeAgent::counting(|n, request| match n {
        0 => fake::answers(request),
        _ => FakeReply::Close,
    });
    let (_test, mut agent) = forgotten(&left, program, "");
    send(&agent.url(), &last_round());
    assert_eq!(agent.wait().code(), Some(1), "{program}");
    check_contains(&agent.errors(), "does not answer any more");
    assert_eq!(left.request_count(), 2, "{program}");

    // No program is there, or one that is no manager.
    let gone = FakeAgent::counting(|n, request| match n {
        0 => fake::answers(request),
        _ => FakeReply::Close,
    });
    let foreign = FakeAgent::counting(|n, request| match n {
        0 => fake::answers(request),
        _ => fake::status("404 Not Found", "no league here"),
    });
    for manager in [gone, foreign] {
        let (_test, mut agent) = forgotten(&manager, program, "");
        assert_eq!(agent.wait().code(), Some(1), "{program}");
        let errors = agent.errors();
        let waits = errors.matches("waiting for the league manager at");
        assert_eq!(waits.count(), 1, "{errors}");
        check_contains(&errors, "does not answer any more");
    }
}

#[test]
fn agent_of_a_manager_that_proves_nothing_waits() {
    let manager = silent_about_tokens();
    let (_test, mut agent) = forgotten(&manager, "player", "");
    let begun = Instant::now();
    wait_until("its thirty minutes pass", || {
        assert!(agent.child.try_wait().unwrap().is_none());
        begun.elapsed() > Duration::from_secs(7)
    });
    assert_eq!(manager.requests.lock().unwrap().len(), 1);
}

#[test]
fn history_that_is_not_saved_is_printed() {
    let (test, manager) = (TestLeague::new(""), fake::manager());
    let player = player(&test, &manager, "");
    fs::create_dir_all(test.folder.join("data/players/P01/history.json/full")).unwrap();
    let story = "
manager announces R1M1: ok
true invites R1M1: joins
true ends R1M1 P01: ok";
    converse(&player.url(), story);
    player.wait_for_error("P01: the history is not saved: ");
}

#[test]
fn result_in_hand_at_the_end_is_saved() {
    let (test, manager) = (TestLeague::new(""), fake::manager());
    let mut player = player(&test, &manager, "");
    let url = player.url();
    converse(&url, "manager announces R1M1: ok\ntrue invites R1M1: joins");

    // One half of GAME_OVER comes before the end of the league, the other half after it.
    // (The library itself waits for the whole of a body of up to 1,024 bytes.)
    let mut params = message_of_line("true ends R1M1 P01");
    params["game_result"]["reason"] = json!("so it went ".repeat(100));
    let body =
        json!({"jsonrpc": "2.0", "method": "notify_match_result", "params": params, "id": 1});
    let body = body.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", player.port().parse().unwrap())).unwrap();
    let (first, second) = body.split_at(20);
    stream.write_all((head + first).as_bytes()).unwrap();
    for _ in 0..50 {
        converse(&url, "manager tells: ok"); // meanwhile a worker takes the first half
    }
    converse(&url, "manager ends: ok");
    stream.write_all(second.as_bytes()).unwrap();
    player.wait_for_success();
    let history = test.data("players/P01/history.json");
    assert_eq!(history["matches"][0]["match_id"], "R1M1");
}

#[test]
fn restarted_player_shows_the_result_of_its_match() {
    let (test, manager) = (TestLeague::new(""), fake::manager());
    let player = player(&test, &manager, "");
    fake::check_restarted(&player);
}
