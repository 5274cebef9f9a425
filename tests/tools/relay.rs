//! Players that only call out: a league of relayed and direct players, and attacks on the relays.

use super::support::*;
use crate::classroom::queue::{Poll, Queue};
use league::net::http::Response;
use league::values::Endpoint;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A relay as its player sees it.
#[derive(Clone, PartialEq)]
struct Relay {
    manager: String,
    token: String,
    endpoint: String,
}

/// Opens a relay.
fn open(manager: &str) -> Relay {
    let opened = ask(manager, "open_relay", json!({}));
    Relay {
        manager: manager.into(),
        token: text_of(&opened["relay_token"]).into(),
        endpoint: text_of(&opened["contact_endpoint"]).into(),
    }
}

impl Relay {
    /// Passes a call on to the manager. Returns the whole reply.
    fn call(&self, method: &str, params: Value) -> Value {
        let call = json!({"relay_token": self.token, "method": method, "params": params});
        super::support::call(&self.manager, "relay_call", call)
    }

    /// Registers a player.
    fn register(&self, id: &str) {
        let registration = player_registration(id, "http://192.0.2.1/mcp", None);
        let reply = self.call("register_player", registration);
        assert_eq!(reply["result"]["status"], "ACCEPTED", "{reply}");
    }

    /// Returns true if the manager has this relay.
    fn is_open(&self) -> bool {
        let poll = json!({"relay_token": self.token, "wait_sec": 0});
        ask(&self.manager, "relay_next", poll)["error_code"] != "E012"
    }

    /// Polls with these arguments. Returns the requests.
    fn poll(&self, mut arguments: Value) -> Vec<Value> {
        arguments["relay_token"] = json!(self.token);
        let answer = ask(&self.manager, "relay_next", arguments);
        list_of(&answer["requests"]).to_vec()
    }

    /// Polls until this request comes, since the manager may send others. Returns its number.
    fn wait_for(&self, asked: &str) -> u64 {
        until("the request comes", || {
            let mut requests = self.poll(json!({"wait_sec": 1})).into_iter();
            let request = requests.find(|request| request["body"]["asked"] == asked)?;
            request["number"].as_u64()
        })
    }

    /// Polls until a request comes. Returns its number and its body.
    fn next(&self) -> (u64, Value) {
        let requests = self.poll(json!({}));
        let [request] = &requests[..] else {
            panic!("{requests:?}")
        };
        (request["number"].as_u64().unwrap(), request["body"].clone())
    }

    /// Answers a request, and takes no other.
    fn answer(&self, number: u64, body: &str) {
        let answers = json!([{"number": number, "body": {"it": body}}]);
        assert!(
            self.poll(json!({"wait_sec": 0, "answers": answers}))
                .is_empty()
        );
    }

    /// Asks the player as a referee does. The thread returns the status and the body of the answer.
    fn ask(&self, body: &str) -> JoinHandle<(u16, String)> {
        let (endpoint, body) = (self.endpoint.clone(), json!({"asked": body}).to_string());
        thread::spawn(move || http("POST", &endpoint, "", body.as_bytes()))
    }

    /// Starts a player that is a loop of polls: it registers, and answers until the league is over.
    fn play(&self, id: &'static str, choice: &'static str) -> JoinHandle<()> {
        self.play_with(id, choice, 25, Duration::ZERO)
    }

    /// The same with polls that wait for this time, and a pause between them.
    fn play_with(
        &self,
        id: &'static str,
        choice: &'static str,
        wait_sec: u32,
        pause: Duration,
    ) -> JoinHandle<()> {
        self.register(id);
        let relay = self.clone();
        thread::spawn(move || {
            let (mut answers, mut is_over) = (Vec::new(), false);
            while !is_over || !answers.is_empty() {
                thread::sleep(pause);
                let requests = relay.poll(json!({"answers": answers, "wait_sec": wait_sec}));
                answers.clear();
                for request in requests {
                    let FakeReply::Answer(result) = valid_reply(id, choice, &request["body"])
                    else {
                        panic!("{request}")
                    };
                    let body =
                        json!({"jsonrpc": "2.0", "result": result, "id": request["body"]["id"]});
                    is_over |= request["body"]["params"]["message_type"] == "LEAGUE_COMPLETED";
                    answers.push(json!({"number": request["number"], "body": body}));
                }
            }
        })
    }
}

/// Starts `bin/connect.py` with the command of a player, which ends with the test: it has the same
/// standard input.
pub fn connect_command(test: &TestLeague, manager: &str, player: &Command) -> TestProcess {
    let mut command = Command::new(PYTHON);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/bin/connect.py"));
    command
        .args(["--manager", manager, "--"])
        .current_dir(&test.folder);
    command.arg(player.get_program()).args(player.get_args());
    TestProcess::new(command.arg("--until-stdin-closes"))
}

/// Starts `league connect` with the player of the stack.
fn connect_player(test: &TestLeague, manager: &str, id: &str) -> TestProcess {
    let options = format!("--player-id {id} --port 0");
    connect_command(test, manager, &test.command("player", &options))
}

/// Waits until the answer to a request is there.
fn answered(asked: JoinHandle<(u16, String)>) -> (u16, String) {
    wait_until("the request is answered", || asked.is_finished());
    asked.join().unwrap()
}

/// Checks that no log has a token: tokens are as long as these digits, and nothing else is.
fn check_no_tokens(test: &TestLeague) {
    for line in test.logs() {
        let text = line.to_string();
        let mut words = text.split(|sign: char| !sign.is_ascii_hexdigit());
        assert!(!words.any(|word| word.len() >= 32), "{text}");
    }
}

#[test]
fn relayed_and_direct_players_play_all_matches() {
    let (test, mut manager) = with_manager("serve --players 4 --referees 1");
    let url = manager.url();
    let mut connected = connect_player(&test, &url, "P01");
    let looped = open(&url).play("P02", "odd");
    let unused = open(&url);
    let unused = thread::spawn(move || unused.poll(json!({})));
    let mut agents = test.agents(&manager, "REF01 P03 P04");
    manager.wait_for_success();
    wait_until("the loop ends", || looped.is_finished());
    assert_eq!(unused.join().unwrap(), [Value::Null; 0]); // the manager ends
    connected.wait_for_success();
    agents.iter_mut().for_each(TestProcess::wait_for_success);
    test.check_played(4);
    assert_eq!(test.technical_losses(), (6, 0));

    // Polls are not logged, and what is passed on is logged once.
    let called = test.logged("tool_called");
    assert_eq!(called.len(), 3, "{called:?}"); // the relays are opened
    check_no_tokens(&test);
}

#[test]
fn delay_of_a_relay_is_in_the_trace() {
    let (test, mut manager) = with_manager("serve --players 2 --referees 1");
    let slow = open(&manager.url()).play_with("P01", "odd", 0, Duration::from_millis(200));
    let _agents = test.agents(&manager, "REF01 P02");
    manager.wait_for_success();
    wait_until("the loop ends", || slow.is_finished());
    let trace = test.run_tool("trace R1M1").1;
    check_contains(
        &trace,
        "  manager passed CHOOSE_PARITY_CALL on to P01 after ",
    );
}

#[test]
fn python_player_plays_behind_a_relay_and_the_lobby_says_so() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("");
    let class = test.start(
        "league",
        "class --host 127.0.0.1 --contact-endpoint http://127.0.0.1:1/mcp --referees 1",
    );
    let mut player = Command::new(PYTHON);
    player.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/bin/player.py"));
    player.args(["--display-name", "Ada", "--data"]);
    player.arg(test.folder.join("data"));
    let _player = connect_command(&test, &class.url(), &player);
    class.line("P01 Ada plays, through the relay");
}

#[test]
fn restarted_manager_goes_on_with_relayed_players() {
    let test = TestLeague::new("league scheduling.cycles=30; system retry_policy.base_delay_sec=2");
    let options = "serve --players 3 --referees 1";
    let mut manager = test.manager(options);
    let url = manager.url();
    let mut players = ["P01", "P02", "P03"].map(|id| connect_player(&test, &url, id));
    let mut referee = test.agent(&manager, "REF01", "");
    wait_until("the league is under way", || test.count("Recorded") > 5);
    manager.restart(&test, options);
    manager.wait_for_success();
    referee.wait_for_success();
    players.iter_mut().for_each(TestProcess::wait_for_success);
    assert_eq!(test.technical_losses(), (90, 0));
    let ids: BTreeSet<String> = test
        .events("Registered")
        .iter()
        .map(|line| line["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 4, "{ids:?}");
}

#[test]
fn restarted_manager_calls_no_other_program_at_the_port_of_its_relays() {
    let test = TestLeague::new("league scheduling.cycles=30; system retry_policy.base_delay_sec=2");
    let options = "serve --players 2 --referees 1";
    let mut manager = test.manager(options);
    let url = manager.url();
    // The endpoint of the first player looks like a relay.
    let direct = FakeAgent::new(|request| valid_reply("P02", "even", request));
    register_player(&url, "P02", &direct.url.replace("/mcp", "/relay/x"));
    let _relayed = connect_player(&test, &url, "P01");
    let mut referee = test.agent(&manager, "REF01", "");
    wait_until("the league is under way", || test.count("Recorded") > 5);

    // While the manager is away, another program takes the port of the relays.
    referee.kill();
    manager.kill();
    let port = fs::read_to_string(test.league_file("relay.port")).unwrap();
    let other = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let options = format!("{options} --port {}", Endpoint::parse(&url).unwrap().port);
    let mut manager = test.start("league", &options);
    manager.wait_for_error(&format!("port {port} is in use"));
    let _referee = test.agent(&manager, "REF01", "");
    let early = json!({"jsonrpc": "2.0", "method": "open_relay", "params": {}, "id": 1});
    assert_eq!(http_status(&url, &early), 503);
    thread::sleep(Duration::from_secs(2)); // in which nothing comes
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err(), "a request of the manager");
    drop(other);
    manager.wait_for_success();
    assert_eq!(test.technical_losses(), (30, 0));
}

#[test]
fn request_gets_the_first_answer_of_its_own_player() {
    let (_test, manager) = with_manager("serve");
    let [ada, eve] = [(); 2].map(|()| open(&manager.url()));
    let asked = ada.ask("one");
    let (number, body) = ada.next();
    assert_eq!(body, json!({"asked": "one"}));
    eve.answer(number, "another's number");
    ada.answer(number + 1, "an unknown number");
    ada.answer(number, "first");
    ada.answer(number, "second");
    assert_eq!(answered(asked), (200, json!({"it": "first"}).to_string()));
    ada.answer(number, "late");
    let asked = ada.ask("two");
    let (next, _) = ada.next();
    assert_ne!(next, number);
    ada.answer(number, "late");
    ada.answer(next, "third");
    assert_eq!(answered(asked), (200, json!({"it": "third"}).to_string()));
}

#[test]
fn tools_for_programs_are_listed_last() {
    let (_test, manager) = with_manager("serve");
    let listed = ask(&manager.url(), "tools/list", json!({}));
    let mut tools = list_of(&listed["tools"]).to_vec();
    for tool in tools.split_off(tools.len() - 3) {
        assert!(text_of(&tool["name"]).contains("relay"), "{tool}");
        assert!(text_of(&tool["description"]).starts_with("For programs: "));
    }
    let listed = json!(tools).to_string();
    assert!(!listed.contains("For programs"), "{listed}");
}

#[test]
fn only_the_whole_token_opens_a_relay() {
    let (test, manager) = with_manager("serve");
    let url = manager.url();
    let ada = open(&url);
    let half = &ada.token[..16];
    for (token, code) in [
        (json!(half), "E012"),
        (json!(format!("{half}{half}")), "E012"),
        (json!(format!("{}0", ada.token)), "E012"),
        (json!(""), "E012"),
        (Value::Null, "E003"),
        (json!(7), "E003"),
    ] {
        let poll = json!({"relay_token": token, "wait_sec": 0});
        let call = json!({"relay_token": token, "method": "league_query", "params": {}});
        for (tool, arguments) in [("relay_next", poll), ("relay_call", call)] {
            let refused = ask(&url, tool, arguments);
            assert_eq!(refused["error_code"], code, "{token}: {refused}");
        }
    }
    for token in [
        json!(half),
        json!(format!("g{}", &ada.token[1..])),
        json!(7),
    ] {
        let refused = ask(&url, "open_relay", json!({"relay_token": token}));
        assert_eq!(refused["error_code"], "E003", "{refused}");
    }

    // A token in a wrong place is in no log and on no terminal.
    let (address, _) = url.rsplit_once('/').unwrap();
    super::support::call(&url, &ada.token, json!({}));
    let path = format!("{address}/{}", ada.token);
    assert_eq!(http("POST", &path, "", b"{}").0, 404);
    let mut registration = player_registration("P01", "http://127.0.0.1:1/mcp", None);
    registration["player_meta"]["version"] = json!(ada.token);
    assert_eq!(send(&url, &registration)["status"], "REJECTED");
    assert!(
        !manager.output_so_far().contains(&ada.token) && !manager.errors().contains(&ada.token)
    );

    // After a restart of the player it is the same relay.
    let again = ask(&url, "open_relay", json!({"relay_token": ada.token}));
    assert_eq!(again["contact_endpoint"], json!(ada.endpoint));
    check_no_tokens(&test);
}

#[test]
fn relay_passes_on_nothing_but_registration_and_queries() {
    let (test, manager) = with_manager("serve");
    let ada = open(&manager.url());
    let start = message(
        "START_LEAGUE",
        "launcher",
        json!({"league_id": fake::LEAGUE}),
    );
    let control = json!({"league_id": fake::LEAGUE, "action": "new_lobby"});
    let control = message("LEAGUE_CONTROL", "launcher", control);
    let referee = referee_registration("REF01", &ada.endpoint, 1, None);
    for (method, params, code) in [
        ("start_league", &start, -32601),
        ("START_LEAGUE", &start, -32601),
        ("league_query", &start, -32602),
        ("register_player", &start, -32602),
        ("control_league", &control, -32601),
        ("league_query", &control, -32602),
        ("register_referee", &referee, -32601),
        ("register_player", &referee, -32602),
        ("report_match_result", &json!({}), -32601),
        ("get_league", &json!({}), -32601),
        ("relay_call", &json!({}), -32601),
        (
            "tools/call",
            &json!({"name": "start_league", "arguments": {}}),
            -32601,
        ),
        ("", &start, -32601),
    ] {
        let refused = ada.call(method, params.clone());
        assert_eq!(refused["error"]["code"], code, "{method}: {refused}");
    }
    assert!(test.count("Registered") == 0 && test.count("Started") == 0);

    // The endpoint of a registration is that of the relay, and a query shows the player's token.
    let registered = ada.call(
        "register_player",
        player_registration("P01", "http://127.0.0.1:1/mcp", None),
    );
    let member = &test.events("Registered")[0];
    assert_eq!(
        member["meta"]["contact_endpoint"],
        json!(ada.endpoint),
        "{member}"
    );
    let query = json!({"league_id": fake::LEAGUE, "query_type": "GET_STANDINGS", "auth_token": registered["result"]["auth_token"]});
    let standings = ada.call("league_query", message("LEAGUE_QUERY", "player:P01", query));
    assert_eq!(standings["result"]["success"], true, "{standings}");
    let broken = ada.call("register_player", json!({"player_meta": "none"}));
    assert_eq!(broken["result"]["error_code"], "E003", "{broken}");
}

#[test]
fn player_of_another_machine_gains_no_right_of_this_one() {
    let Some(own) = own_address() else { return };
    let test = TestLeague::new("");
    let contact = format!("http://{own}:8000/mcp");
    let options =
        format!("serve --host 0.0.0.0 --contact-endpoint {contact} --members-per-address 3");
    let manager = test.manager(&options);
    let [here, far] = ["127.0.0.1".into(), own.to_string()];
    let [here, far] = [here, far].map(|host| format!("http://{host}:{}/mcp", manager.port()));
    let ada = open(&far);
    let direct = |endpoint: &str| {
        let registration = player_registration("P09", endpoint, None);
        send(&far, &registration)["status"].clone()
    };

    // Only a relay is at a loopback address, and an address may have as many as members.
    let eve = open(&here);
    assert_eq!(
        [
            direct(&eve.endpoint[..eve.endpoint.len() - 1]),
            direct("http://127.0.0.1:1/mcp")
        ],
        ["REJECTED"; 2]
    );
    ada.register("P01");
    assert_eq!(test.events("Registered")[0]["peer"], json!(own));
    let opened = [(); 5].map(|()| open(&far));
    let are_open = opened.map(|relay| relay.is_open());
    assert_eq!(are_open, [false, false, true, true, true]);
    assert!(ada.is_open() && eve.is_open());

    // A referee elsewhere cannot call a relay.
    let operator = fs::read_to_string(test.league_file("operator.token")).unwrap();
    let endpoint = format!("http://{own}:9/mcp");
    let referee = referee_registration("REF01", &endpoint, 1, Some(operator.trim()));
    assert_eq!(send(&far, &referee)["status"], "ACCEPTED");
    let warned = ask(&here, "open_relay", json!({"relay_token": eve.token}));
    check_contains(text_of(&warned["warning"]), "REF01");
}

#[test]
fn unused_relays_take_no_place_from_players() {
    let (_test, manager) = with_manager("serve --players 2");
    let url = manager.url();
    let [ada, bob] = [(); 2].map(|()| open(&url));
    ada.register("P01");
    let unused: Vec<Relay> = (0..200).map(|_| open(&url)).collect();
    let is_open = |relays: &[Relay]| relays.iter().filter(|relay| relay.is_open()).count();
    assert_eq!((is_open(&unused[..136]), is_open(&unused[136..])), (0, 64));

    // A relay at which a player is registered stays; a player whose relay is gone opens it again.
    assert!(ada.is_open() && !bob.is_open());
    ask(&url, "open_relay", json!({"relay_token": bob.token}));
    bob.register("P02");
    let asked = ada.ask("one");
    let number = ada.wait_for("one");
    ada.answer(number, "done");
    assert_eq!(answered(asked).0, 200);
}

#[test]
fn three_polls_wait_and_the_newest_gets_the_request() {
    let (_test, mut manager) = with_manager("serve");
    let ada = open(&manager.url());
    let mut polls: Vec<JoinHandle<Vec<Value>>> = Vec::new();
    for _ in 0..20 {
        let polling = ada.clone();
        polls.push(thread::spawn(move || {
            polling.poll(json!({"wait_sec": 10_000}))
        }));
    }
    let waiting =
        |polls: &[JoinHandle<Vec<Value>>]| polls.iter().filter(|poll| !poll.is_finished()).count();
    wait_until("seventeen are answered", || waiting(&polls) == 3);
    let asked = ada.ask("one");
    wait_until("one more is answered", || waiting(&polls) == 2);
    let again = ask(
        &manager.url(),
        "open_relay",
        json!({"relay_token": ada.token}),
    );
    assert_eq!(again["contact_endpoint"], json!(ada.endpoint));
    let requests: Vec<Value> = polls
        .into_iter()
        .flat_map(|poll| poll.join().unwrap())
        .collect();
    assert_eq!(requests.len(), 1, "{requests:?}");

    // The player was restarted: what it has not answered comes again.
    let (number, body) = ada.next();
    assert_eq!(
        (number, body["asked"].as_str()),
        (requests[0]["number"].as_u64().unwrap(), Some("one"))
    );
    ada.answer(number, "done");
    assert_eq!(answered(asked).0, 200);
    manager.kill();
}

#[test]
fn poll_waits_for_at_most_25_seconds() {
    for (wait_sec, expected) in [
        (json!(10_000), 25),
        (json!(null), 25),
        (json!(-3), 0),
        (json!(7), 7),
    ] {
        let poll: Poll = json_of(&json!({"relay_token": "", "wait_sec": wait_sec}).to_string());
        assert_eq!(poll.timeout(), Duration::from_secs(expected), "{wait_sec}");
    }
}

#[test]
fn lost_request_is_handed_out_once_more() {
    let (_test, manager) = with_manager("serve");
    let ada = open(&manager.url());
    let asked = ada.ask("one");
    let (number, _) = ada.next(); // and the connection breaks
    let poll = |known: &[u64]| ada.poll(json!({"wait_sec": 0, "known": known}));
    assert!(poll(&[]).is_empty(), "too early");
    let begun = Instant::now();
    assert!(
        ada.poll(json!({"wait_sec": 20})).is_empty(),
        "began too early"
    );
    assert!(begun.elapsed() < Duration::from_secs(15));
    until("it comes again", || {
        assert!(poll(&[number]).is_empty(), "the player has it");
        poll(&[])
            .into_iter()
            .find(|request| request["number"] == number)
    });
    assert!(begun.elapsed() > Duration::from_secs(4));
    assert!(poll(&[]).is_empty());
    ada.answer(number, "done");
    assert_eq!(answered(asked), (200, json!({"it": "done"}).to_string()));
}

#[test]
fn player_that_has_gone_is_refused_at_once() {
    let test = TestLeague::new("system timeouts.generic_response_timeout_sec=1");
    let manager = test.serve("");
    let ada = open(&manager.url());
    assert_eq!(answered(ada.ask("at first")).0, 504);
    until("the player has gone", || {
        (answered(ada.ask("later")).0 == 503).then_some(())
    });
    assert!(ada.poll(json!({"wait_sec": 0})).is_empty());
    assert_eq!(answered(ada.ask("again")).0, 504);
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
fn large_bodies_and_foreign_paths_are_refused() {
    let (_test, manager) = with_manager("serve");
    let ada = open(&manager.url());
    let long = |size: usize| json!({"x": "x".repeat(size)});
    let answers = json!([{"number": 1, "body": long(20_000)}]);
    let poll = json!({"relay_token": ada.token, "answers": answers});
    let request = json!({"jsonrpc": "2.0", "method": "relay_next", "params": poll, "id": 1});
    let post = |url: &str, body: Value| http("POST", url, "", body.to_string().as_bytes()).0;
    assert_eq!(post(&manager.url(), request), 413);
    assert_eq!(post(&ada.endpoint, long(300_000)), 413);
    let (address, _) = ada.endpoint.rsplit_once('/').unwrap();
    for path in ["", "mcp", "0123abcd", "../health"] {
        assert_eq!(post(&format!("{address}/{path}"), json!({})), 503, "{path}");
    }
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(100), "]".repeat(100));
    for body in [
        "no JSON",
        "[]",
        r#"{"x":1e999}"#,
        r#"{"x":"\ud800"}"#,
        r#"{"method":"ping","params":null}"#,
        r#"{"method":"ping","params":[]}"#,
        &deep,
    ] {
        let status = http("POST", &ada.endpoint, "", body.as_bytes()).0;
        assert_eq!(status, 400, "{body}");
    }
    assert_eq!(http("GET", &ada.endpoint, "", b"").0, 400);
}

#[test]
fn player_that_never_answers_loses_and_delays_nothing_else() {
    let edits = "system timeouts.game_join_ack_timeout_sec=0.5; system timeouts.generic_response_timeout_sec=0.5";
    let test = TestLeague::new(&format!(
        "{edits}; system timeouts.game_over_timeout_sec=0.5; system retry_policy.max_retries=1"
    ));
    let mut manager = test.serve("--players 3 --referees 1");
    let silent = open(&manager.url());
    silent.register("P01");
    let polling = thread::spawn(move || {
        let poll = json!({"relay_token": silent.token});
        let body = json!({"jsonrpc": "2.0", "method": "relay_next", "params": poll, "id": 1});
        while http_status(&silent.manager, &body) == 200 {}
    });
    let _agents = test.agents(&manager, "REF01 P02 P03");
    manager.wait_for_success();
    assert_eq!(test.technical_losses(), (3, 2));
    check_contains(
        &json!(test.events("Recorded")).to_string(),
        "P01 gave no answer to",
    );
    wait_until("the player is not answered any more", || {
        polling.is_finished()
    });
}

/// Posts a body. Returns the status of the answer; 0 if there is none.
fn http_status(url: &str, body: &Value) -> u16 {
    let limit = Duration::from_secs(60);
    let Ok(mut stream) = connect(url, limit) else {
        return 0;
    };
    let text = body.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    let _ = std::io::Write::write_all(&mut stream, (head + &text).as_bytes());
    split_response(&read_all(stream)).0
}

#[test]
fn program_on_this_machine_gets_no_choice_through_a_relay() {
    let (test, manager) = with_manager("serve");
    let _player = connect_player(&test, &manager.url(), "P01");
    wait_until("the player registers", || test.count("Registered") == 1);
    let endpoint = text_of(&test.events("Registered")[0]["meta"]["contact_endpoint"]).to_string();
    for token in [None, Some("tok-p01-0123456789abcdef")] {
        let mut invitation = fake::message_of_line("true invites R1M1");
        invitation["auth_token"] = json!(token);
        let refused = send(&endpoint, &invitation);
        assert_eq!(refused["error_code"], "E015", "{refused}");
    }
}

/// Starts `league connect` with a program that prints where its manager is, and does nothing.
/// Returns the endpoint as well.
fn connect_idle_player(test: &TestLeague, manager: &str) -> (TestProcess, String) {
    let mut idle = Command::new(PYTHON);
    let code =
        "import sys; print('listening on', sys.argv[-1] + '/mcp', flush=True); sys.stdin.read()";
    idle.args(["-c", code]);
    let connected = connect_command(test, manager, &idle);
    let endpoint = connected.url();
    (connected, endpoint)
}

#[test]
fn other_program_diverts_no_request_of_a_connected_player() {
    if !has_python() {
        return;
    }
    let (test, manager) = with_manager("serve");
    let (_connected, local_manager) = connect_idle_player(&test, &manager.url());
    let player = FakeAgent::new(|request| match request["params"]["large"].as_bool() {
        Some(true) => FakeReply::Answer(json!({"x": "x".repeat(20_000)})),
        _ => FakeReply::Answer(json!({"status": "ok"})),
    });
    let other = FakeAgent::new(|_| FakeReply::Answer(json!({"status": "other"})));
    let mut registration = player_registration("P01", &player.url, None);
    registration["player_meta"]["registration_key"] = json!("0123456789abcdef0123456789abcdef");
    assert_eq!(send(&local_manager, &registration)["status"], "ACCEPTED");

    // Neither a refused registration nor a page in a browser names another endpoint.
    let status = |headers: &str, method: &str, params: &Value| {
        let call = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
        http("POST", &local_manager, headers, call.to_string().as_bytes()).0
    };
    let attack = player_registration("P01", &other.url, None);
    assert_eq!(status("", "register_player", &attack), 403);
    let broken = json!({"player_meta": {"contact_endpoint": other.url}});
    assert_eq!(status("", "league_query", &broken), 403);
    registration["player_meta"]["contact_endpoint"] = json!(other.url);
    let origin = "Origin: http://192.0.2.1\r\n";
    assert_eq!(status(origin, "register_player", &registration), 403);
    let relay = text_of(&test.events("Registered")[0]["meta"]["contact_endpoint"]).to_string();
    assert_eq!(ask(&relay, "ping", json!({})), json!({"status": "ok"}));

    // A player without a key is as safe, once it has registered.
    let (_connected, local_manager) = connect_idle_player(&test, &manager.url());
    let plain = player_registration("P02", &player.url, None);
    assert_eq!(send(&local_manager, &plain)["status"], "ACCEPTED");
    let mut attack = plain.clone();
    attack["player_meta"]["contact_endpoint"] = json!(other.url);
    assert_eq!(status("", "register_player", &attack), 403);
    assert_eq!(send(&local_manager, &plain)["status"], "ACCEPTED");
    let second = text_of(&test.events("Registered")[1]["meta"]["contact_endpoint"]).to_string();
    assert_eq!(ask(&second, "ping", json!({})), json!({"status": "ok"}));

    // An answer that no poll can take along is refused at once, and asked for once.
    let refused = super::support::call(&relay, "ping", json!({"large": true}));
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
}

#[test]
fn connected_player_does_not_flood_what_is_no_manager() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("");
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let manager = FakeAgent::new(move |request| match request["method"].as_str() {
        Some("relay_next") => {
            counted.fetch_add(1, SeqCst);
            fake::status("200 OK", "no JSON")
        }
        _ => FakeReply::Answer(json!({"warning": "a warning"})),
    });
    let (connected, _) = connect_idle_player(&test, &manager.url);
    wait_until("some polls have failed", || polls.load(SeqCst) > 5);
    let before = polls.load(SeqCst);
    thread::sleep(Duration::from_secs(2));
    let more = polls.load(SeqCst) - before;
    assert!(more <= 12, "{more} polls in two seconds");
    assert_eq!(connected.errors().matches("a warning").count(), 1);
}

#[test]
fn connected_player_registers_again_until_it_is_answered() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("");
    let registrations = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&registrations);
    let manager = FakeAgent::new(move |request| match request["method"].as_str() {
        Some("relay_call") => match counted.fetch_add(1, SeqCst) {
            1 => fake::status("503 Service Unavailable", ""),
            _ => FakeReply::Answer(json!({"status": "ACCEPTED", "auth_token": "tok-p01-1"})),
        },
        // The relay is unknown once, after the first registration.
        Some("relay_next") if counted.load(SeqCst) != 1 => {
            thread::sleep(Duration::from_millis(200));
            FakeReply::Answer(json!({"requests": []}))
        }
        _ => FakeReply::Answer(json!({})),
    });
    let (_connected, local_manager) = connect_idle_player(&test, &manager.url);
    let registration = player_registration("P01", "http://127.0.0.1:1/mcp", None);
    assert_eq!(send(&local_manager, &registration)["status"], "ACCEPTED");
    wait_until("it is registered again", || registrations.load(SeqCst) == 3);
    let sent = manager.received("LEAGUE_REGISTER_REQUEST");
    assert!(sent.is_empty(), "directly: {sent:?}");
}

#[test]
fn connected_player_is_answered_while_the_manager_is_away() {
    if !has_python() {
        return;
    }
    let (test, mut manager) = with_manager("serve");
    let (_connected, local_manager) = connect_idle_player(&test, &manager.url());
    manager.kill();
    let query = json!({"jsonrpc": "2.0", "method": "league_query", "params": {}, "id": 1});
    for _ in 0..3 {
        let answer = http("POST", &local_manager, "", query.to_string().as_bytes());
        assert_eq!(answer.0, 502, "{answer:?}");
    }
}

#[test]
fn connected_player_says_that_a_manager_has_no_relay() {
    let (test, manager) = with_manager("");
    let connected = connect_player(&test, &manager.url(), "P01");
    connected.wait_for_error("it has no relay: ask your teacher to start it with `league class`");
}

#[test]
fn connected_player_is_asked_for_more_while_it_thinks() {
    if !has_python() {
        return;
    }
    let (test, manager) = with_manager("serve");
    let (_connected, local_manager) = connect_idle_player(&test, &manager.url());
    let gate = Arc::new(Gate::default());
    let thinking = Arc::clone(&gate);
    let player = FakeAgent::new(move |request| {
        if request["params"]["is_hard"] == true {
            thinking.pass();
        }
        FakeReply::Answer(json!({"status": "ok"}))
    });
    let registration = player_registration("P01", &player.url, None);
    assert_eq!(send(&local_manager, &registration)["status"], "ACCEPTED");
    let relay = text_of(&test.events("Registered")[0]["meta"]["contact_endpoint"]).to_string();
    for _ in 0..8 {
        let relay = relay.clone();
        thread::spawn(move || call(&relay, "ping", json!({"is_hard": true})));
    }
    wait_until("eight requests wait for the player", || {
        player.request_count() >= 8
    });
    assert_eq!(ask(&relay, "ping", json!({})), json!({"status": "ok"}));
    gate.open();
}
