//! The examination of an agent: it passes our own player and referee, and an agent with one fault
//! fails that check, and no other. The agents are our own; somebody stands between them and the
//! examination, and spoils what is said. Every row of the tables is a fault and the check that sees
//! it; what cannot be looked at then is skipped.

use super::support::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

/// A world in which others are waited for so many seconds.
fn world(seconds: u32) -> World {
    let world = World::new("");
    for of in ["game_join_ack", "move", "generic_response"] {
        let key = format!("timeouts.{of}_timeout_sec");
        world.edit("system", &key, json!(seconds));
    }
    world
}

/// Starts an examination, and says where.
fn examination(world: &World, options: &str) -> (Agent, String) {
    let check = world.start_unheard("league_manager", &format!("check --json {options}"));
    let url = until("it listens", || {
        let said = check.said();
        let mut lines = said.lines();
        lines.find_map(|it| it.strip_prefix("listening on ").map(String::from))
    });
    (check, url)
}

/// Its findings, and the names of those that are neither good nor skipped: FATAL what our league
/// does not forgive.
fn findings(check: &mut Agent) -> (Vec<Value>, String) {
    let status = check.wait();
    let all: Vec<Value> = json_of(&check.output());
    let named = |it: &Value| {
        let grade = match text_of(&it["grade"]) {
            "FAIL" if it["forgiven"] == false => "FATAL",
            grade => grade,
        };
        format!("{grade} {}", text_of(&it["check"]))
    };
    let mut bad: Vec<String> = all.iter().map(named).collect();
    bad.retain(|it| !it.starts_with("ok") && !it.starts_with("skip"));
    let bad = bad.join(", ");
    let is_failed = bad.contains("FAIL ") || bad.contains("FATAL ");
    assert_eq!(status.success(), !is_failed, "{bad}");
    check.complains(match bad.contains("FATAL ") {
        true => "it would NOT play",
        false => "it WOULD PLAY",
    });
    (all, bad)
}

/// How many could not look, after an earlier fault.
fn skipped(all: &[Value]) -> usize {
    all.iter().filter(|it| it["grade"] == "skip").count()
}

/// The game of the league, an agent and its options, those of the examination, the id that the
/// agent gets, and how many checks are only for another game.
const OUR_OWN: &str = "
even_odd | player | | | P90 | 0
even_odd | player | --player-id P02 | | P02 | 0
even_odd | referee | --referee-id REF02 | --as REF07 | REF07 | 0
even_odd | referee | --referee-id REF01 | --as P01 | REF01 | 0
tic_tac_toe | player | play random | | P90 | 0
tic_tac_toe | referee | | | REF90 | 1";

#[test]
fn our_own_player_and_referee_pass() {
    thread::scope(|scope| {
        rows(OUR_OWN).for_each(|row| drop(scope.spawn(move || passes(row))));
    });
}

fn passes([game, program, options, wish, id, others]: [&str; 6]) {
    let world = world(3);
    if game == "tic_tac_toe" {
        world.play(game);
    }
    let (mut check, url) = examination(&world, wish);
    let mut agent = world.start(program, &format!("{options} --manager {url}"));
    let (all, bad) = findings(&mut check);
    assert_eq!(bad, "", "{game} {program}: {all:#?}");
    assert_eq!(skipped(&all).to_string(), others, "{game} {program}");
    assert!(all.len() >= 35, "{program}");
    let looked = |call| all.iter().any(|it| text_of(&it["check"]).contains(call));
    let asked = ["CHOOSE_PARITY_CALL is", "CHOOSE_MOVE_CALL is"].map(looked);
    let expected = ["even_odd", "tic_tac_toe"].map(|it| it == game);
    assert_eq!(asked, expected, "{program}");
    agent.line(&format!(" is {id} in "));
    assert!(agent.wait().success(), "it was told the end of the league");
    let leagues = world.folder.join("data/leagues");
    assert!(!leagues.exists(), "no league was touched");
}

#[test]
fn a_player_by_hand_passes_though_nobody_chooses() {
    let world = world(4); // it falls back two seconds before
    let (mut check, url) = examination(&world, "");
    let player = world.start("player", &format!("play mcp:odd --manager {url}"));
    let (all, bad) = findings(&mut check);
    assert_eq!((&*bad, skipped(&all)), ("", 0));
    let mut named = all.iter();
    let named = named.find(|it| it["check"] == "parity_choice is legal");
    assert_eq!(named.unwrap()["came"], "parity_choice \"odd\"");
    player.complains("R6M1: nobody chose in time; odd chose odd");
}

#[test]
fn lines_say_what_was_sent_what_came_and_what_was_expected() {
    let world = world(3);
    let mut check = world.manager("check");
    let faults = [
        "CHOOSE_PARITY_CALL R1M1 | /reply/result/parity_choice | \"Even\"",
        "GAME_INVITATION R1M1 | /reply/result/sender | \"P90\"",
        "CHOOSE_PARITY_CALL R1M1 | /reply/result/auth_token | \"OWN\"",
    ];
    let _agents = spoilt(&world, "player", &check.url(), &faults.join("\n"));
    assert_eq!(check.wait().code(), Some(1));
    let output = check.output();
    for line in [
        "FAIL  parity_choice is legal: at CHOOSE_PARITY_CALL R1M1 came parity_choice \"Even\", expected exactly \"even\" or \"odd\"; our own league does not forgive it  [Choice]",
        "FAIL  replies say who sends them: at GAME_INVITATION R1M1 came sender \"P90\", expected \"player:P90\"; our own league forgives it  [Envelope]",
        "warn  replies repeat the match's token: at CHOOSE_PARITY_CALL R1M1 came its own token, that of its registration, which proves it to the manager, expected the token of the match; our own league forgives it  [Tokens]",
        "2 FAIL, 1 warn, 0 skip\nit would NOT play in our league, by what fails: parity_choice is legal",
    ] {
        check_says(&output, line);
    }
    check_no_token(&output);
}

/// A player that answers what it must, and nothing else; and its registration.
fn the_least() -> (Peer, Value) {
    let peer = Peer::new(|request| {
        let unknown = json!({"jsonrpc": "2.0", "error": {"code": -32601}, "id": request["id"]});
        match (
            request["params"]["message_type"].as_str(),
            request["method"].as_str(),
        ) {
            (Some(_), _) => good_player("P90", "odd", request),
            (_, Some("ping")) => Does::Answer(json!({})),
            (_, Some(_)) => Does::Body(unknown.to_string()),
            _ => Does::Close,
        }
    });
    let meta = json!({"display_name": "A", "version": "1.0.0", "game_types": ["even_odd"],
        "contact_endpoint": peer.url});
    let body = json!({"player_meta": meta});
    (peer, message("LEAGUE_REGISTER_REQUEST", "player:a", body))
}

#[test]
fn a_bare_registration_is_answered_bare_and_forgiven() {
    let world = world(3);
    let (mut check, url) = examination(&world, "");
    let (_peer, asked) = the_least();
    let (status, answer) = http("POST", &url, "", asked.to_string().as_bytes());
    let answer: Value = json_of(&answer);
    assert_eq!((status, &answer["status"]), (200, &json!("ACCEPTED")));
    let (_, bad) = findings(&mut check);
    let expected =
        "FAIL it registers by JSON-RPC 2.0, with an id, FAIL its method is that of its kind, warn";
    assert!(bad.starts_with(expected) && !bad.contains("FATAL"), "{bad}");
}

#[test]
fn the_least_that_plays_passes() {
    let world = world(3);
    let (mut check, url) = examination(&world, "");
    let (peer, asked) = the_least();
    // It asks in vain for other things first, as a client of tools does, and registers by a tool.
    let ask = |method, params| call(&url, method, params)["result"].take();
    let version = ask("initialize", json!({"protocolVersion": "2025-06-18"}));
    assert_eq!(version["protocolVersion"], "2025-06-18");
    let listed = ask("tools/list", json!({})).to_string();
    check_says(&listed, "\"register_player\"");
    let initialized = br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#;
    for body in [&b"{\"hello\": 1}"[..], initialized] {
        assert_eq!(http("POST", &url, "", body).0, 202);
    }
    let answer = call_tool(&url, "register_player", asked);
    assert_eq!(answer["structuredContent"]["status"], "ACCEPTED");
    let (all, bad) = findings(&mut check);
    assert!(
        !bad.contains("FA") && bad.contains("warn broken JSON"),
        "{bad}: {all:#?}"
    );
    let call = peer.first("CHOOSE_PARITY_CALL");
    let [sent, deadline] = ["timestamp", "deadline"].map(|key| call[key].as_str().unwrap());
    assert!(deadline > sent && sent > "2026", "{call}");
}

/// A fault: in which exchanges, by words that stand in them; at which of these (0: at all); where;
/// and what stands there then.
struct Fault {
    words: String,
    only: usize,
    place: String,
    value: Value,
    seen: AtomicUsize,
    turn: Mutex<()>,
}

impl Fault {
    /// Reads `WORDS #2 | /reply/result/accept | "true"`.
    fn new(row: &str) -> Fault {
        let mut cells = row.split(" | ").map(str::trim);
        let [words, place, value] = [(); 3].map(|()| cells.next().unwrap());
        let (words, only) = words.split_once('#').unwrap_or((words, "0"));
        Fault {
            words: words.into(),
            only: only.parse().unwrap(),
            place: place.into(),
            value: json_of(value),
            seen: AtomicUsize::default(),
            turn: Mutex::default(),
        }
    }

    /// Whether an exchange is meant, and that place in it.
    fn hits(&self, exchange: &Value, place: &str) -> bool {
        if !self.place.starts_with(place) {
            return false;
        }
        let (text, mut words) = (exchange.to_string(), self.words.split_whitespace());
        let has_all = words.all(|word| text.contains(word));
        let count = || self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        has_all && [0, count()].contains(&self.only)
    }
}

/// All faults of an agent, and its own token once it has one.
struct Faults {
    all: Vec<Fault>,
    own: OnceLock<String>,
}

impl Faults {
    /// The first that hits.
    fn hit(&self, exchange: &Value, place: &str) -> Option<&Fault> {
        self.all.iter().find(|fault| fault.hits(exchange, place))
    }

    fn spoil(&self, exchange: &mut Value, place: &str) {
        for fault in &self.all {
            if fault.hits(exchange, place) {
                let value = match fault.value.as_str() {
                    Some("OWN") => json!(self.own.wait()),
                    _ => fault.value.clone(),
                };
                set(exchange, &fault.place, value);
            }
        }
    }
}

/// Passes on to `to` what comes, after `edit`, and the answer back, both with the faults.
fn between(
    to: &Arc<OnceLock<String>>,
    faults: &Arc<Faults>,
    edit: impl Fn(&mut Value) + Send + Sync + 'static,
) -> Peer {
    let (to, faults) = (Arc::clone(to), Arc::clone(faults));
    Peer::new(move |request| {
        let mut exchange = json!({"request": request});
        if let Some(fault) = faults.hit(&exchange, "instead") {
            return match &fault.value {
                Value::Null => Does::Silence,
                body => Does::Body(body.to_string()),
            };
        }
        let in_turn = faults.hit(&exchange, "turn");
        let _turn = in_turn.map(|fault| fault.turn.lock());
        edit(&mut exchange["request"]);
        faults.spoil(&mut exchange, "/request");
        let body = match &exchange["request"] {
            Value::Null => "{".into(),
            request => request.to_string(),
        };
        if connect(to.wait(), PATIENCE).is_err() {
            return Does::Close; // the examination is over
        }
        let (status, body) = http("POST", to.wait(), "", body.as_bytes());
        exchange["reply"] = serde_json::from_str(&body).unwrap_or_default();
        let result = &exchange["reply"]["result"];
        if result["status"] == "ACCEPTED" {
            let _ = faults.own.set(token_of(result));
        }
        faults.spoil(&mut exchange, "/reply");
        stand_in::status(&format!("{status} x"), &exchange["reply"].to_string())
    })
}

/// One of our own agents, and those who stand between it and the examination: the manager, the
/// players of its matches, and itself.
fn spoilt(world: &World, program: &str, check: &str, rows: &str) -> (Agent, Vec<Peer>) {
    let (all, own) = (rows.lines().map(Fault::new).collect(), OnceLock::new());
    let faults = Arc::new(Faults { all, own });
    let [manager, home, a, b] = [(); 4].map(|()| Arc::<OnceLock<String>>::default());
    manager.set(check.into()).unwrap();
    let [manager, player_a, player_b] = [&manager, &a, &b].map(|to| between(to, &faults, |_| ()));
    let seats = [
        ("player_A_endpoint", a, player_a.url.clone()),
        ("player_B_endpoint", b, player_b.url.clone()),
    ];
    let itself = between(&home, &faults, move |request| {
        for (key, to, url) in &seats {
            if let Some(place) = request.pointer_mut(&format!("/params/matches/0/{key}")) {
                let _ = to.set(place.as_str().unwrap().into());
                *place = url.clone().into();
            }
        }
    });
    let urls = format!(
        "--manager {} --contact-endpoint {}",
        manager.url, itself.url
    );
    let agent = world.start(program, &urls);
    home.set(agent.url()).unwrap();
    (agent, vec![manager, player_a, player_b, itself])
}

/// Examines an agent with each of the faults of a table, which stands before the check that sees it
/// and the number of checks that then see nothing. Every check from `first` to `last` has a fault.
fn each_fault_fails_its_check_alone(program: &str, table: &str, [first, last]: [&str; 2]) {
    let rows: Vec<&str> = table.trim().lines().collect();
    let left = Mutex::new(rows.clone());
    let next = || left.lock().unwrap().pop(); // those that take long stand last
    let work = || {
        while let Some(row) = next() {
            let world = world(if row.contains(" | turn | ") { 5 } else { 3 });
            let (mut check, url) = examination(&world, "");
            let _agents = spoilt(&world, program, &url, row);
            let (all, came) = findings(&mut check);
            let [bad, unseen] = [3, 4].map(|n| row.split(" | ").nth(n).unwrap_or("0").trim());
            assert_eq!(came, bad, "{row}: {all:#?}");
            assert_eq!(skipped(&all).to_string(), unseen, "{row}: {all:#?}");
            let names = all.iter().map(|it| text_of(&it["check"]));
            let mut names: Vec<&str> = names.skip_while(|name| *name != first).collect();
            names.truncate(names.iter().position(|name| *name == last).unwrap() + 1);
            names.retain(|name| !rows.iter().any(|row| row.contains(&format!(" {name}"))));
            assert!(names.is_empty(), "no fault that these would see: {names:?}");
        }
    };
    thread::scope(|scope| (0..6).for_each(|_| drop(scope.spawn(work))));
}

#[test]
fn a_player_with_one_fault_fails_that_check_alone() {
    let table = r#"
REGISTER_REQUEST | /request/jsonrpc | "1.0" | FATAL it registers by JSON-RPC 2.0, with an id
REGISTER_REQUEST | /request/method | "register" | FAIL its method is that of its kind
REGISTER_REQUEST | /request/method | "league_query" | FATAL its method is that of its kind
REGISTER_REQUEST | /request/params/message_type | "REGISTER" | FATAL message_type is a registration
REGISTER_REQUEST | /request/params/protocol | "league.v1" | FATAL protocol is league.v2
REGISTER_REQUEST | /request/params/protocol | null | FAIL protocol is league.v2
REGISTER_REQUEST | /request/params/sender | "a" | FAIL sender names its kind
REGISTER_REQUEST | /request/params/conversation_id | null | FAIL conversation_id is a text
REGISTER_REQUEST | /request/params/timestamp | "2025-01-15T10:00:00+02:00" | FAIL timestamp is UTC
REGISTER_REQUEST | /request/params/player_meta | "me" | FATAL it says what it is, FATAL somebody answers at its contact_endpoint | 34
REGISTER_REQUEST | /request/params/player_meta/display_name | "" | FATAL it says what it is
REGISTER_REQUEST | /request/params/player_meta/version | "1.0" | FATAL it says what it is
REGISTER_REQUEST | /request/params/player_meta/game_types | "even_odd" | FATAL it says what it is
REGISTER_REQUEST | /request/params/player_meta/contact_endpoint | "localhost:8101" | FATAL somebody answers at its contact_endpoint | 34
REGISTER_REQUEST | /request/params/player_meta/contact_endpoint | "http://127.0.0.1:1/mcp" | FATAL somebody answers at its contact_endpoint | 34
REGISTER_REQUEST | /request/params/player_meta/protocol_version | "1.0.0" | FATAL it says what it is
ROUND_ANNOUNCEMENT R1M1 | instead | {"error": {"code": -32603}, "id": 90} | FAIL ROUND_ANNOUNCEMENT is taken
GAME_INVITATION | instead | null | FATAL GAME_INVITATION is answered in time | 21
GAME_INVITATION | /reply/result/match_id | "R1" | FATAL replies name match and player
GAME_INVITATION #1 | /reply/result/message_type | "JOINED" | FATAL GAME_JOIN_ACK is the answer
GAME_INVITATION | /reply/result/arrival_timestamp | "now" | FAIL arrival_timestamp is UTC
GAME_INVITATION | /reply/result/accept | "true" | FATAL accept is true, a boolean
CHOOSE_PARITY_CALL | instead | null | FATAL CHOOSE_PARITY_CALL is answered in time | 10
CHOOSE_PARITY_CALL | /reply/result/player_id | "P9" | FATAL replies name match and player
CHOOSE_PARITY_CALL #1 | /reply/result/message_type | "CHOSEN" | FATAL CHOOSE_PARITY_RESPONSE is the answer
CHOOSE_PARITY_CALL | /reply/result/parity_choice | 0 | FATAL parity_choice is legal
GAME_INVITATION | /reply/jsonrpc | 2 | FAIL replies are JSON-RPC 2.0 with HTTP 200
CHOOSE_PARITY_CALL | /reply/result/protocol | "v2" | FATAL replies say protocol league.v2
CHOOSE_PARITY_CALL | /reply/result/protocol | null | FAIL replies say protocol league.v2
GAME_INVITATION | /reply/result/sender | "P90" | FAIL replies say who sends them
CHOOSE_PARITY_CALL | /reply/result/timestamp | 1 | FAIL replies have a UTC timestamp
GAME_INVITATION | /reply/result/conversation_id | "new" | FAIL replies stay in the conversation
CHOOSE_PARITY_CALL | /reply/result/auth_token | "OWN" | warn replies repeat the match's token
CHOOSE_PARITY_CALL R1M1 #2 | /reply/result/parity_choice | "both" | warn the same call gets the same choice
CHOOSE_PARITY_CALL R1M1 E012 | /reply/result | {"status": "ok"} | warn a call with a wrong token is refused
GAME_INVITATION E012 | /reply/result | {"status": "ok"} | warn an invitation without the announced token is refused
CHOOSE_PARITY_CALL R9M1 | /reply/result | {"status": "ok"} | warn a call for an unknown match is refused
GAME_INVITATION x_later | instead | {"error": {"code": -32603}, "id": 90} | FAIL unknown fields are ignored
CHOOSE_PARITY_CALL R6M1 | instead | null | FATAL a call is answered, whose caller gave up before
"GAME_ERROR" #1 | instead | {"error": {"code": -32603}, "id": 90} | FAIL GAME_ERROR is taken
GAME_OVER | instead | null | FAIL GAME_OVER is taken
LEAGUE_STANDINGS_UPDATE | instead | null | FAIL LEAGUE_STANDINGS_UPDATE is taken
ROUND_COMPLETED "id":90 #1 | instead | {"error": {"code": -32603}, "id": 90} | FAIL ROUND_COMPLETED is taken
ROUND_COMPLETED "id":4711 | /reply/id | "4711" | FAIL an id is echoed, integer or string
ROUND_COMPLETED "id":"check" | /reply/id | 1 | FAIL an id is echoed, integer or string
ROUND_COMPLETED "auth_token":"x" | /reply/result | {"status": "ok"} | warn a notice with a wrong token is refused
ROUND_COMPLETED "auth_token":null | /reply/result | {"status": "ok"} | warn a notice without a token is refused
"method":"ping" "id":90 #1 | instead | {"error": {"code": -32603}, "id": 90} | warn ping is answered
no_such_method | instead | {"result": {}} | FAIL an unknown method is an error
{"request":null} | instead | null | warn broken JSON is an error
"method":"ping" "id":90 #3 | instead | null | FATAL it survives a large body
tools/list | instead | {"error": {"code": -32603}, "id": 90} | warn its tools are listed
LEAGUE_COMPLETED | instead | {"error": {"code": -32603}, "id": 90} | FAIL LEAGUE_COMPLETED is taken
"#;
    let all = [
        "it registers by JSON-RPC 2.0, with an id",
        "LEAGUE_COMPLETED is taken",
    ];
    each_fault_fails_its_check_alone("player", table, all);
}

#[test]
fn a_referee_with_one_fault_fails_that_check_alone() {
    let table = r#"
REGISTER_REQUEST | /request/params/referee_meta/max_concurrent_matches | 11 | FATAL it says what it is
ROUND_ANNOUNCEMENT | instead | {"result": {"message_type": "LEAGUE_ERROR"}} | FATAL ROUND_ANNOUNCEMENT with a match of its own is taken | 17
ROUND_ANNOUNCEMENT | instead | {"result": {"status": "ok"}} | FATAL both players are invited | 16
GAME_INVITATION "player_id":"P04" | /request/params/opponent_id | "P04" | FATAL GAME_INVITATION is exact
GAME_INVITATION "player_id":"P04" | /request/params/game_type | "chess" | FATAL GAME_INVITATION is exact
CHOOSE_PARITY_CALL "player_id":"P04" | /request/params/deadline | "soon" | FATAL CHOOSE_PARITY_CALL is exact
GAME_OVER | /request/params/sender | "referee" | FATAL its messages say who sends them
GAME_OVER | /request/params/conversation_id | "another" | FATAL one match is one conversation
GAME_INVITATION | /request/params/auth_token | "OWN" | warn players are shown their match's token, never its own
GAME_OVER tok-p01 | instead | {"result": {"status": "ok"}} | FAIL both players are told the result
GAME_OVER R1M1 | /request/params/game_result/winner_player_id | "P95" | FATAL GAME_OVER names the right winner
MATCH_RESULT_REPORT R1M1 | /request/params/result/score | {"P01": 2, "P04": 0} | FATAL MATCH_RESULT_REPORT says the same, with the league's points
MATCH_RESULT_REPORT | /request/params/auth_token | null | FATAL MATCH_RESULT_REPORT carries its own token
MATCH_RESULT_REPORT R1M1 #1 | /reply | {"result": {"message_type": "MATCH_RESULT_ACK", "match_id": "R1M1", "status": "recorded"}} | FAIL MATCH_RESULT_REPORT is repeated until it is acknowledged
GAME_OVER R2M1 | /request/params/game_result/drawn_number | 4 | FATAL a silent player loses technically
GAME_OVER R2M1 | /request/params/game_result/winner_player_id | null | FATAL a silent player loses technically
"GAME_ERROR" E004 | instead | {"result": {"status": "ok"}} | FATAL a player who chooses "Even" is told E004
CHOOSE_PARITY_CALL R3M1 "player_id":"P01" #2 | instead | null | FATAL and is asked again
CHOOSE_PARITY_CALL R3M1 "player_id":"P01" #2 | /reply/result/parity_choice | "even" | FATAL and loses technically in the end
GAME_INVITATION R1M1 | turn | null | FAIL both are invited at once
CHOOSE_PARITY_CALL R1M1 | turn | null | FAIL both are asked at once
"#;
    let own = [
        "ROUND_ANNOUNCEMENT with a match of its own is taken",
        "and loses technically in the end",
    ];
    each_fault_fails_its_check_alone("referee", table, own);
}
