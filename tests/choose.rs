//! The messages that a student reads when `choose` panics or is too slow, and a player of another game
//! than Even/Odd. This program is all of them: the test, which starts itself again and
//! again, and the players. So it has a `main` of its own.

mod support;

use league::player::{Parity, Turn, play, run};
use serde_json::json;
use std::{
    env,
    process::{Command, ExitCode},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};
use support::{TestLeague, TestProcess, list_of, text_of};

/// The environment variable that makes this program one of the players.
const PLAYS: &str = "TEST_PLAYS";

fn main() -> ExitCode {
    match env::var(PLAYS).as_deref() {
        Ok("panics") => {
            let calls = AtomicU32::new(0);
            run(
                move |turn: &Turn| match calls.fetch_add(1, Ordering::SeqCst) {
                    0 => turn.history[turn.history.len()]
                        .result
                        .choices
                        .get(&turn.player_id)
                        .copied()
                        .flatten()
                        .unwrap_or(Parity::Odd),
                    _ => {
                        // A panic in a thread of the player's own ends that thread only.
                        let ended = thread::spawn(|| panic!("in a thread")).join();
                        assert!(ended.is_err());
                        Parity::Even
                    }
                },
            )
        }
        Ok("the last") => play(|turn| {
            assert_eq!(turn.game_type, "tic_tac_toe");
            assert_eq!(turn.position.lines().count(), 3);
            assert_eq!(turn.legal_moves.len(), 10 - turn.move_number as usize);
            turn.legal_moves[turn.legal_moves.len() - 1].clone()
        }),
        Ok(_) => run(|_| {
            thread::park_timeout(Duration::from_secs(5)); // it thinks
            Parity::Even
        }),
        Err(_) => {
            faulty_and_slow_choose_are_printed_to_the_player();
            println!("test faulty_and_slow_choose_are_printed_to_the_player ... ok");
            player_of_any_game_is_asked_for_each_move();
            println!("test player_of_any_game_is_asked_for_each_move ... ok");
            ExitCode::SUCCESS
        }
    }
}

/// Returns a command that runs this program as one of the players.
fn command(test: &TestLeague, plays: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(PLAYS, plays).args(arguments);
    command.args(test.command("player", "").get_args());
    command
}

fn player(test: &TestLeague, manager: &TestProcess, plays: &str, id: &str) -> TestProcess {
    let url = manager.url();
    let own = ["--manager", &url, "--player-id", id, "--port", "0"];
    TestProcess::new(command(test, plays, &own).arg("--until-stdin-closes"))
}

fn faulty_and_slow_choose_are_printed_to_the_player() {
    let test = TestLeague::new(
        "system timeouts.move_timeout_sec=1.5; system retry_policy.backoff_strategy=\"fixed\"",
    );
    let mut manager = test.manager("--players 2");
    let _referee = test.agent(&manager, "REF01", "");
    let [mut panics, mut slow] =
        [("panics", "P01"), ("slow", "P02")].map(|(plays, id)| player(&test, &manager, plays, id));
    manager.wait_for_success();
    panics.wait_for_success();
    slow.wait_for_success();
    let seen_by_the_one = "P01: R1M1: your choose panicked at tests/choose.rs:
        : index out of bounds: the len is 0 but the index is 0";
    let seen_by_the_other =
        "P02: R1M1: E001 TIMEOUT_ERROR: gave no answer within 1.5 s; attempt 1 of 3
        attempt 3 of 3; expected CHOOSE_PARITY_RESPONSE; Technical loss";
    let won =
        "Agent Beta gave no answer within 1.5 s (choose_parity, attempt 3), so you (even) won";
    let lost =
        "you gave no answer within 1.5 s (choose_parity, attempt 3), so Agent Alpha (even) won";
    for (agent, over, lines) in [
        (&panics, won, seen_by_the_one),
        (&slow, lost, seen_by_the_other),
    ] {
        let output = agent.output();
        assert!(output.contains(&format!("R1M1: {over}")), "{output}");
        lines
            .lines()
            .for_each(|line| agent.wait_for_error(line.trim()));
    }
    panics.wait_for_error("in a thread");
    for text in ["JSON-RPC error", "restarting the process"] {
        assert!(!panics.errors().contains(text), "{text}");
    }
    let choices = test.events("Recorded")[0]["result"]["details"]["choices"].clone();
    assert_eq!(
        choices,
        json!({"P01": "even", "P02": null}),
        "asked again, it chose"
    );
}

fn player_of_any_game_is_asked_for_each_move() {
    let test = TestLeague::new("");
    test.play("tic_tac_toe");
    let mut manager = test.manager("--players 2");
    let _referee = test.agent(&manager, "REF01", "");
    let mut two = ["P01", "P02"].map(|id| player(&test, &manager, "the last", id));
    manager.wait_for_success();
    two.iter_mut().for_each(TestProcess::wait_for_success);
    let result = &test.events("Recorded")[0]["result"]["details"];
    let made = list_of(&result["moves"]).iter();
    let moves: Vec<&str> = made.map(|entry| text_of(&entry["move"])).collect();
    assert_eq!(moves.join(" "), "9 8 7 6 5 4 3", "{result}");
}
