//! A player of the AI Agent League. To write your own, copy this file and change `choose`: nothing
//! else is needed.
//!
//! `run` joins the league, answers the referees in time and remembers every match (`src/player.rs`
//! shows how). In each match it calls `choose`, in a thread of its own: take your time, but not
//! longer than `turn.time_left()`. To keep something from one call to the next, put it into a
//! `static` with a `Mutex` around it.
//!
//! `println!` panics if nobody reads the output any more, as after `| head`; this does not:
//! `let _ = writeln!(std::io::stdout(), "…");` (`use std::io::Write;`). A player whose terminal is
//! closed ends, unless it was started with `nohup`.

use league::player::{Parity, Parity::Even, Parity::Odd, Turn, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(choose)
}

/// Your strategy. Return `Even` or `Odd`: a player wins if it is right about the drawn number and
/// its opponent is wrong.
///
/// | you want to know                  | ask                                                     |
/// |-----------------------------------|---------------------------------------------------------|
/// | whom you play, and who you are    | `turn.opponent_id`, `turn.player_id`                    |
/// | the round, your wins and losses   | `turn.round_id`, `turn.standings`                       |
/// | what a player chose against you   | `turn.choices_of(&turn.opponent_id)`, oldest first      |
/// | every past match, oldest first    | `turn.history.iter()` (`past.result`: number, choices)  |
/// | how long you may still think      | `turn.time_left()`                                      |
/// | even or odd, at random            | `turn.random()`                                         |
fn choose(turn: &Turn) -> Parity {
    // An idea: what the opponent chose last time against us. If we have never met, a coin decides.
    match turn.choices_of(&turn.opponent_id).last() {
        Some(Even) => Even,
        Some(Odd) => Odd,
        None => turn.random(),
    }
}

#[test]
fn choose_answers_the_sample() {
    // In the sample's only past match the opponent chose odd. Write here what yours chooses then.
    assert_eq!(choose(&Turn::sample()), Odd);
}
