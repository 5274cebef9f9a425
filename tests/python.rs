//! `bin/player.py`, the player's template in Python: it can be read, it plays, it bears what strangers send and what
//! answers in the manager's place, and it tells a student what is wrong with `choose`.

mod support;

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use support::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/player.py");
const CONVERSATION: &str = "conv-r1m1";

/// Whether these tests can be run; says so if not.
fn has_python() -> bool {
    let has_it = Command::new("python3").arg("--version").output();
    let has_it = has_it.is_ok_and(|it| it.status.success());
    if !has_it {
        eprintln!("left out: there is no python3");
    }
    has_it
}

/// A player in Python, as P01 unless `more` says otherwise.
fn start_script(script: &Path, world: &World, manager: &str, more: &str) -> Agent {
    let mut command = Command::new("python3");
    command
        .arg(script)
        .args(["--manager", manager, "--until-stdin-closes"]);
    command.args("--port 0 --player-id P01 --config config --logs logs".split(' '));
    Agent::new(
        command
            .args(more.split_whitespace())
            .current_dir(&world.folder),
    )
}

fn start(world: &World, manager: &str, more: &str) -> Agent {
    start_script(Path::new(SCRIPT), world, manager, more)
}

/// The player of a script, which a stand-in for the manager has let in, and the player's address.
fn let_in(script: &Path, world: &World) -> (Peer, Agent, String) {
    let manager = stand_in::manager();
    let player = start_script(script, world, &manager.url, "");
    player.line("is P01");
    let url = player.url();
    (manager, player, url)
}

/// Waits until a player has said something on standard error.
fn complains(player: &Agent, words: &str) {
    wait_until(
        &format!("{words:?} in {}", player.stderr.lock().unwrap()),
        || player.stderr.lock().unwrap().contains(words),
    );
}

/// How often a player has said something on standard error.
fn count(player: &Agent, words: &str) -> usize {
    player.stderr.lock().unwrap().matches(words).count()
}

/// A template whose `choose` is another one.
fn with_choose(world: &World, name: &str, line: &str) -> PathBuf {
    let template = fs::read_to_string(SCRIPT).unwrap();
    let chosen = "    return random.choice(turn.legal_moves)\n";
    assert_eq!(template.matches(chosen).count(), 1);
    let path = world.folder.join(name);
    fs::write(&path, template.replace(chosen, &format!("    {line}\n"))).unwrap();
    path
}

/// A message of a match, R1M1 if it names no other, in one conversation.
fn of_match(message_type: &str, token: &str, body: Value) -> Value {
    let mut whole = json!({"match_id": "R1M1", "game_type": "even_odd", "auth_token": token,
        "conversation_id": CONVERSATION});
    body.as_object()
        .unwrap()
        .iter()
        .for_each(|(key, value)| whole[key] = value.clone());
    message(message_type, "referee:REF01", whole)
}

fn invitation() -> Value {
    json!({"league_id": stand_in::LEAGUE, "round_id": 1, "role_in_match": "PLAYER_A", "opponent_id": "P02"})
}

fn parity_call() -> Value {
    json!({"player_id": "P01", "deadline": now()})
}

/// The announcement of one match between two players, with its token at one of two places.
fn round(players: [&str; 2], beside: Option<&str>, inside: Option<&str>, own: Value) -> Value {
    let entry = json!({"match_id": "R1M1", "game_type": "even_odd", "player_A_id": players[0],
        "player_B_id": players[1], "referee_endpoint": "http://localhost:1/mcp", "match_token": inside});
    let body = json!({"league_id": stand_in::LEAGUE, "round_id": 1, "matches": [entry],
        "match_token": beside, "auth_token": own});
    message("ROUND_ANNOUNCEMENT", "league_manager", body)
}

#[test]
fn the_template_can_be_read() {
    let text = fs::read_to_string(SCRIPT).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn the_template_plays_a_practice_without_a_technical_loss() {
    if !has_python() {
        return;
    }
    let world = World::new(&[]);
    let mine = format!("python3 {SCRIPT}");
    let options = ["local", "--players", "3", "--cycles", "4", "--mine", &mine];
    let mut league = world.start("league_manager", &options);
    assert!(league.wait().success());
    let output = league.output();
    let rows: Vec<Vec<&str>> = output
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let begins = |with: &[&str]| rows.iter().any(|words| words.starts_with(with));
    assert!(begins(&["P01", "player.py", "8"]), "{output}"); // matches
    assert!(begins(&["P01", "player.py", "0"]), "{output}"); // technical losses
}

#[test]
fn strangers_get_nothing_from_a_player() {
    if !has_python() {
        return;
    }
    let world = World::new(&[]);
    let (_manager, player, url) = let_in(Path::new(SCRIPT), &world);
    let posted = |headers: &str, body: &str| http("POST", &url, headers, body.as_bytes());
    let ping = r#"{"jsonrpc":"2.0","method":"ping","id":7}"#;
    let port = player.port();
    let origin = |host: &str| format!("Origin: http://{host}\r\n");
    let own = origin(&format!("localhost:{port}"));
    for (headers, body, status, answer) in [
        ("", "{", 200, "-32700"),
        ("", "[]", 200, "-32600"),
        ("", r#"{"jsonrpc":"2.0","id":7}"#, 200, "-32600"),
        (
            "",
            r#"{"jsonrpc":"2.0","method":"no_such","id":7}"#,
            200,
            "-32601",
        ),
        ("", ping, 200, r#""result": {}"#),
        ("", r#"{"jsonrpc":"2.0","method":"ping"}"#, 202, ""),
        ("", &"[".repeat(200_000), 200, "-32700"),
        ("", &" ".repeat(300_000), 413, ""),
        (&own, ping, 200, r#""result": {}"#),
        (&origin("localhost:1"), ping, 403, ""),
        (&origin("example.org"), ping, 403, ""),
        (&format!("{own}{own}"), ping, 403, ""),
    ] {
        let (came, text) = posted(headers, body);
        let shown = &body[..body.len().min(60)];
        assert_eq!(came, status, "{headers}{shown}: {text}");
        assert!(text.contains(answer), "{headers}{shown}: {text}");
    }

    assert_eq!(http("GET", &url, "", b"").0, 405);

    let code = |message: &Value| send(&url, message)["error_code"].clone();
    let own = json!(stand_in::TOKEN);
    let announced = |inside, beside, token: Value| round(["P01", "P02"], beside, inside, token);
    assert_eq!(
        code(&of_match("CHOOSE_PARITY_CALL", "tok-p01-a", parity_call())),
        "E015"
    );
    let others = round(["P02", "P03"], Some("tok-p01-other"), None, own.clone());
    assert_eq!(code(&announced(None, None, json!(null))), "E011");
    assert_eq!(code(&announced(None, None, json!("tok-p01-0"))), "E012");
    assert_eq!(send(&url, &others), json!({"status": "ok"}));
    // What others were promised is nothing to us: the match stays one that nobody announced, and does not count.
    assert_eq!(
        send(&url, &of_match("GAME_INVITATION", "tok-x", invitation()))["accept"],
        true
    );
    let result = json!({"game_result": {"choices": {}, "reason": "it ends: a match of others"}});
    assert_eq!(
        send(&url, &of_match("GAME_OVER", "tok-x", result)),
        json!({"status": "ok"})
    );
    assert_eq!(
        code(&of_match("GAME_INVITATION", "tok-p01-a", json!({}))),
        "E003"
    );
    for (beside, inside) in [(Some("tok-p01-right"), None), (None, Some("tok-p01-right"))] {
        assert_eq!(
            send(&url, &announced(inside, beside, own.clone())),
            json!({"status": "ok"})
        );
        assert_eq!(
            code(&of_match("GAME_INVITATION", "tok-p01-wrong", invitation())),
            "E012"
        );
    }
    let joined = send(
        &url,
        &of_match("GAME_INVITATION", "tok-p01-right", invitation()),
    );
    assert_eq!(joined["accept"], true, "{joined}");
    for field in ["match_id", "conversation_id", "auth_token"] {
        let sent = of_match("GAME_INVITATION", "tok-p01-right", invitation());
        assert_eq!(joined[field], sent[field]);
    }
    let call = of_match("CHOOSE_PARITY_CALL", "tok-p01-right", parity_call());
    for (field, value, expected) in [
        ("auth_token", json!("tok-p01-wrong"), "E012"),
        ("auth_token", json!(null), "E011"),
        ("conversation_id", json!("conv-other"), "E015"),
        ("player_id", json!("P02"), "E012"),
        ("protocol", json!("league.v1"), "E018"),
        ("deadline", json!(5), "E003"),
    ] {
        assert_eq!(code(&but(&call, field, value)), expected, "{field}");
    }
    let choice = send(&url, &call)["parity_choice"].clone();
    assert!(choice == "even" || choice == "odd", "{choice}");
    for _ in 0..20 {
        assert_eq!(send(&url, &call)["parity_choice"], choice); // the template would choose anew
    }

    // Matches that the manager has not announced are joined, but only a hundred of them.
    for n in 1..=100 {
        let strange = of_match(
            "GAME_INVITATION",
            "tok-x",
            but(&invitation(), "match_id", json!(format!("X{n}"))),
        );
        assert_eq!(send(&url, &strange)["accept"], true, "{n}");
    }
    let strange = of_match(
        "GAME_INVITATION",
        "tok-x",
        but(&invitation(), "match_id", json!("X101")),
    );
    assert_eq!(code(&strange), "E015");
    let over = |match_id: &str, token: &str| {
        let result =
            json!({"status": "DRAW", "choices": {}, "reason": format!("it ends: {match_id}")});
        of_match(
            "GAME_OVER",
            token,
            json!({"match_id": match_id, "game_result": result}),
        )
    };
    assert_eq!(send(&url, &over("X1", "tok-x")), json!({"status": "ok"}));
    assert_eq!(
        send(&url, &over("R1M1", "tok-p01-right")),
        json!({"status": "ok"})
    );
    player.line("it ends: R1M1");
    let (said, lines) = (player.line("is P01"), player.line("it ends"));
    assert!(
        lines.contains("R1M1"),
        "a match that nobody announced counts: {said} {lines}"
    );
}

#[test]
fn a_player_says_what_errors_say() {
    if !has_python() {
        return;
    }
    let world = World::new(&[]);
    let (_manager, player, url) = let_in(Path::new(SCRIPT), &world);
    send(&url, &of_match("GAME_INVITATION", "t", invitation()));
    let error = json!({"error_code": "E001", "error_description": "TIMEOUT_ERROR", "affected_player": "P01",
        "action_required": "CHOOSE_PARITY_RESPONSE"});
    let with = |context: Value| of_match("GAME_ERROR", "t", but(&error, "context", context));
    let faulty = json!({"what": "a foreign word", "match_id": null});
    let faulty = of_match("GAME_ERROR", "t", faulty);
    let unknown = json!({"match_id": "R9M9", "game_result": {"winner": "somebody else"}});
    let unknown = of_match("GAME_OVER", "t", unknown);
    for (sent, shown) in [
        (
            with(json!({"problem": "was silent, with tok-p01-00000000"})),
            "P01: R1M1: E001 was silent, with tok-p01-***",
        ),
        (
            with(json!({"field": "parity_choice", "problem": "missing"})),
            "P01: R1M1: E001 parity_choice: missing",
        ),
        (
            with(json!({"field": "x", "problem": "\u{1b}[2J\u{202e}"})),
            "P01: R1M1: E001 x: ?[2J?",
        ),
        (
            with(json!("another kind of context")),
            "another kind of context",
        ),
        (faulty, "a foreign word"),
        (unknown, "somebody else"),
    ] {
        send(&url, &sent);
        complains(&player, shown);
    }
    send(
        &url,
        &with(json!({"field": "parity_choice", "problem": "missing"})),
    );
    send(&url, &with(json!({"problem": "the last"})));
    complains(&player, "the last");
    assert_eq!(count(&player, "parity_choice: missing"), 1);
}

#[test]
fn a_faulty_choose_is_explained_once() {
    if !has_python() {
        return;
    }
    let world = World::new(&[]);
    for (line, answer, words) in [
        (
            "random.choice(turn.legal_moves)",
            json!(null),
            "your choose returned None, none of [\"even\", \"odd\"]: does it end without `return`?",
        ),
        (
            "return \"Even\"",
            json!("Even"),
            "your choose returned 'Even', none of [\"even\", \"odd\"]",
        ),
        (
            "return turn.thiers[-1]",
            json!(-32603),
            "`return turn.thiers[-1]`: AttributeError:",
        ),
    ] {
        let manager = stand_in::manager();
        let script = with_choose(&world, "mine.py", line);
        let data = format!("--data {}", manager.url.replace([':', '/'], ""));
        let player = start_script(&script, &world, &manager.url, &data);
        player.line("mine is P01"); // a student who says no name is called as the file
        let url = player.url();
        send(&url, &of_match("GAME_INVITATION", "t", invitation()));
        for _ in 0..3 {
            let came = send(&url, &of_match("CHOOSE_PARITY_CALL", "t", parity_call()));
            let came = came
                .pointer("/error/code")
                .unwrap_or(&came["parity_choice"])
                .clone();
            assert_eq!(came, answer, "{line}");
        }
        let about = |code: &str| {
            let body =
                json!({"error_code": code, "context": {"problem": format!("what {code} says")}});
            send(&url, &of_match("GAME_ERROR", "t", body))
        };
        about("E003");
        let over = json!({"game_result": {"reason": "told"}});
        send(&url, &of_match("GAME_OVER", "t", over));
        complains(&player, words);
        assert_eq!(count(&player, "your choose"), 1, "{line}");
        assert_eq!(count(&player, "Traceback"), 0, "{line}");
        let says_more = usize::from(answer != -32603); // whoever raises has been told all there is
        assert_eq!(count(&player, "what E003 says"), says_more, "{line}");
    }
}

#[test]
fn a_slow_choose_is_told_of_while_it_still_thinks() {
    if !has_python() {
        return;
    }
    let world = World::new(&[]);
    let slow = "print('thinks', flush=True)
    while not os.path.exists('told'):
        time.sleep(0.01)
    return \"odd\"";
    let script = with_choose(&world, "mine.py", slow);
    let (_manager, player, url) = let_in(&script, &world);
    send(&url, &of_match("GAME_INVITATION", "t", invitation()));
    let call = of_match("CHOOSE_PARITY_CALL", "t", parity_call());
    let late = thread::spawn({
        let url = url.clone();
        move || send(&url, &call)
    });
    player.line("thinks");
    let error = json!({"error_code": "E001", "context": {"problem": "gave no answer within 2 s"}});
    send(&url, &of_match("GAME_ERROR", "t", error));
    complains(&player, "P01: R1M1: E001 gave no answer within 2 s");
    fs::write(world.folder.join("told"), "").unwrap();
    assert_eq!(late.join().unwrap()["parity_choice"], "odd");
}

#[test]
fn other_games_are_asked_move_by_move() {
    if !has_python() {
        return;
    }
    let world = World::new(&[]);
    let script = with_choose(
        &world,
        "mine.py",
        "print(turn.game_type, turn.position, turn.move_number, turn.theirs, flush=True); return turn.legal_moves[-1]",
    );
    let (_manager, player, url) = let_in(&script, &world);
    let announced = round(["P01", "P02"], Some("t"), None, json!(stand_in::TOKEN));
    send(&url, &announced);
    send(&url, &of_match("GAME_INVITATION", "t", invitation()));
    let call = |number: u32, legal: Value| {
        let body = json!({"player_id": "P01", "deadline": now(), "game_type": "tic_tac_toe",
            "move_number": number, "position": "X..", "legal_moves": legal});
        send(&url, &of_match("CHOOSE_MOVE_CALL", "t", body))
    };
    for (number, legal, expected) in [
        (1, json!(["a1", "b2"]), "b2"),
        (1, json!(["b2", "a1"]), "b2"), // the same call again gets the same answer
        (2, json!(["a1", "c3"]), "c3"),
    ] {
        let came = call(number, legal);
        assert_eq!(came["message_type"], "CHOOSE_MOVE_RESPONSE", "{came}");
        assert_eq!(
            [&came["move"], &came["move_number"]],
            [&json!(expected), &json!(number)]
        );
    }
    player.line("tic_tac_toe X.. 2 []");
    assert_eq!(call(0, json!("a1"))["error_code"], "E003");
    let moves = json!([{"player_id": "P02", "move": "a3"}, {"player_id": "P01", "move": "b2"}, "?",
        {"player_id": "P02"}]);
    let over = json!({"game_result": {"status": "WIN", "winner_player_id": "P02", "moves": moves}});
    send(&url, &of_match("GAME_OVER", "t", over));
    let mut next = invitation();
    next["match_id"] = json!("R2M1");
    send(&url, &of_match("GAME_INVITATION", "t2", next));
    let body = json!({"match_id": "R2M1", "player_id": "P01", "deadline": now(),
        "game_type": "tic_tac_toe", "move_number": 1, "position": "...", "legal_moves": ["c1"]});
    send(&url, &of_match("CHOOSE_MOVE_CALL", "t2", body));
    player.line("tic_tac_toe ... 1 ['a3']"); // what its opponent did in their match before
}

#[test]
fn whatever_answers_in_the_managers_place_is_told_in_a_sentence() {
    if !has_python() {
        return;
    }
    let accepted = |id: Value| {
        let body = json!({"status": "ACCEPTED", "player_id": id, "auth_token": "tok-p01-x"});
        json!({"jsonrpc": "2.0", "id": 1, "result": body}).to_string()
    };
    let rubbish = [
        ("[1]", "answers [1], which does not let us in"),
        ("null", "answers null, which does not let us in"),
        ("5", "answers 5, which"),
        ("<html>", "answers HTTP 200 and '<html>', which is no JSON"),
        (&"[".repeat(100_000), "which is no JSON"),
        (r#"{"result": "x"}"#, r#"answers {"result": "x"}"#),
        (r#"{"error": {"code": -32601}}"#, "-32601"),
        (&accepted(json!(7)), "which does not let us in"),
        (
            &accepted(json!("x".repeat(9000))),
            "which does not let us in",
        ),
        (&accepted(json!("../../P01")), "which does not let us in"),
    ]
    .map(|(body, words)| (body.to_string(), words));
    let world = World::new(&[]);
    let start_at = |body: &str| {
        let (body, count) = (body.to_string(), std::sync::atomic::AtomicUsize::new(0));
        // Rubbish at first; then a manager that says no league_id.
        let good = accepted(json!("P01"));
        let manager = Peer::new(move |_| {
            let is_first = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            Does::Body(if is_first { body.clone() } else { good.clone() })
        });
        let data = format!("--data {}", manager.url.replace([':', '/'], ""));
        (start(&world, &manager.url, &data), manager)
    };
    let started = rubbish.map(|(body, words)| (start_at(&body), words));
    for ((player, manager), words) in &started {
        player.line("player is P01");
        let waiting = format!("waiting for the league manager at {}: it ", manager.url);
        complains(player, &waiting);
        complains(player, words);
        assert_eq!(count(player, "Traceback"), 0, "{words}");
    }

    let refusal = json!({"error_code": "E003", "error_description": "MISSING_REQUIRED_FIELD",
        "context": {"field": "player_meta", "problem": "missing"}});
    let refusal = message("LEAGUE_ERROR", "league_manager", refusal);
    for (does, words) in [
        (
            json!(null),
            "the league manager has rejected us: the door is shut",
        ),
        (
            refusal,
            "the league manager refuses us: E003 player_meta: missing",
        ),
    ] {
        let manager = Peer::new(move |_| match &does {
            Value::Null => stand_in::rejects("the door is shut"),
            error => Does::Answer(error.clone()),
        });
        let mut player = start(&world, &manager.url, "--data refused");
        assert_eq!(player.wait().code(), Some(1));
        complains(&player, words);
    }
}

#[test]
fn a_player_that_is_killed_is_known_again() {
    if !has_python() {
        return;
    }
    let world = World::new(&[]);
    let key = |request: &Value| request["player_meta"]["registration_key"].clone();
    let asked = |manager: &Peer, n: usize| {
        until("it registers", || {
            manager.received("LEAGUE_REGISTER_REQUEST").get(n).cloned()
        })
    };
    // It is killed before it has read the answer: the key that it sends is on disk already, and sent again.
    let silent = Peer::new(|_| Does::Silence);
    let mut player = start(&world, &silent.url, "");
    let first = key(&asked(&silent, 0));
    let kept = world.data("agents/P01.json");
    assert_eq!(kept["registration_key"], first);
    let digits = first.as_str().unwrap();
    assert!(
        digits.len() == 32 && digits.chars().all(|it| it.is_ascii_hexdigit()),
        "{digits}"
    );
    player.kill();
    let _again = start(&world, &silent.url, "");
    assert_eq!(key(&asked(&silent, 1)), first);
    drop(_again);

    // With a real manager: its card has the token, nobody else may read it, and it is the same player afterwards.
    let manager = world.manager(&[]);
    let player = start(&world, &manager.url(), "");
    player.line("is P01");
    let card = world.data("agents/P01.json");
    assert!(
        card["token"].as_str().unwrap().starts_with("tok-p01-"),
        "{card}"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let path = world.folder.join("data/agents/P01.json");
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    let mut second = start(&world, &manager.url(), "");
    assert_eq!(second.wait().code(), Some(1));
    complains(&second, "--data");
    drop(player);
    let player = start(&world, &manager.url(), "");
    player.line("is P01");
    assert_eq!(world.data("agents/P01.json")["token"], card["token"]);
    drop(player);
    let mut elsewhere = start(&world, "http://localhost:1/mcp", "");
    assert_eq!(elsewhere.wait().code(), Some(1));
    complains(&elsewhere, &format!("is of a league at {}", manager.url()));
}

#[test]
fn joining_takes_one_line() {
    if !has_python() {
        return;
    }
    let world = World::new(&[]);
    let mut wrong = start(&world, "http://localhost:1", "--player-id Ada");
    assert_eq!(wrong.wait().code(), Some(2));
    complains(&wrong, "--player-id: got 'Ada', expected an id like P07");
    let mut wrong = start(&world, "ftp://localhost", "");
    assert_eq!(wrong.wait().code(), Some(2));
    complains(&wrong, "expected an address like http://10.0.0.5:8000");

    let help = Command::new("python3")
        .args([SCRIPT, "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for option in [
        "manager URL",
        "display-name NAME",
        "player-id ID",
        "host ADDRESS",
        "data DIR",
        "stay",
        "port N",
    ] {
        assert!(help.contains(&format!("--{option}")), "{option}: {help}");
    }

    // A bare address gets its /mcp; a manager on this machine needs no more than this machine.
    let manager = world.manager(&[]);
    let bare = manager.url().replace("http://", "").replace("/mcp", "");
    let player = start(
        &world,
        &bare,
        "--display-name Ada --some-option of-tomorrow",
    );
    player.line("Ada is P01 in ");
    assert!(player.url().starts_with("http://localhost:"));

    // Elsewhere: it listens on all addresses, and says the one by which it would be reached from there.
    let Some(own) = own_address() else { return };
    let player = start(&world, &format!("http://{own}:1"), "--data elsewhere");
    let url = player.url();
    assert!(url.starts_with(&format!("http://{own}:")), "{url}");
    assert_eq!(call(&url, "ping", json!({}))["result"], json!({}));
    complains(
        &player,
        &format!("waiting for the league manager at http://{own}:1/mcp: it cannot be reached"),
    );
    let told = start(
        &world,
        &format!("http://{own}:1"),
        "--data told --host 127.0.0.1 --contact-endpoint http://ada.example:81/mcp",
    );
    assert_eq!(told.url(), "http://ada.example:81/mcp");
}

#[test]
fn a_player_that_stays_joins_the_next_league() {
    if !has_python() {
        return;
    }
    let world = World::new(&[]);
    let end = |url: &str| {
        let body = json!({"league_id": stand_in::LEAGUE, "champion": {"player_id": "P02", "display_name": "Eve"},
            "auth_token": stand_in::TOKEN});
        send(url, &message("LEAGUE_COMPLETED", "league_manager", body))
    };
    let late = || {
        let body = json!({"status": "REJECTED", "player_id": null, "reason": "started", "error_code": "E019"});
        Does::Answer(message("LEAGUE_REGISTER_RESPONSE", "league_manager", body))
    };
    let count = std::sync::atomic::AtomicUsize::new(0);
    let manager =
        Peer::new(
            move |request| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                1 => late(),
                _ => stand_in::answers(request),
            },
        );
    let player = start(&world, &manager.url, "--stay");
    player.line("is P01");
    send(
        &player.url(),
        &of_match("GAME_INVITATION", "t", invitation()),
    );
    assert_eq!(end(&player.url()), json!({"status": "ok"}));
    player.line("Champion: Eve (P02)");
    let asked = until("it registers a third time", || {
        Some(manager.received("LEAGUE_REGISTER_REQUEST")).filter(|asked| asked.len() == 3)
    });
    complains(&player, "says started: we join the next league (--stay)");
    assert_eq!(asked[1]["auth_token"], Value::Null); // the old league's token is nothing there
    let key = |n: usize| asked[n]["player_meta"]["registration_key"].clone();
    assert_ne!(key(0), key(1));
    assert_eq!(key(1), key(2));
    wait_until("the new card is kept", || {
        world.data("agents/P01.json")["token"] == stand_in::TOKEN
    });
    let call = of_match("CHOOSE_PARITY_CALL", "t", parity_call());
    assert_eq!(send(&player.url(), &call)["error_code"], "E015"); // that was another league
    drop(player);

    let manager = stand_in::manager();
    let mut player = start(&world, &manager.url, "--data other");
    player.line("is P01");
    assert_eq!(end(&player.url()), json!({"status": "ok"}));
    assert!(player.wait().success());
    assert!(!world.folder.join("other/agents/P01.json").exists());
}
