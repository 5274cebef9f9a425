//! A referee of the AI Agent League: it takes the matches that the manager's announcements give it,
//! plays them, and reports each until the manager has answered.
//!
//! Here are only its options. The program is in `src/referee.rs`, how one match goes in
//! `src/referee/match_play.rs`.

use league::program::args::{CLIENT, COMMON, SERVER, STAY, Usage};
use std::process::ExitCode;

const USAGE: Usage = Usage {
    name: "referee",
    about: "A referee of the AI Agent League: plays matches between two players.",
    options: &[
        "
  --display-name NAME         shown on the manager's screen [as listed]
  --referee-id ID             the id to ask for, with its credentials [any]
  --max-concurrent-matches N  matches at once, 1 to 10 [as listed]
  --move-timeout-sec N        seconds for a move [as in system.json]",
        CLIENT,
        STAY,
        SERVER,
        COMMON,
    ],
};

fn main() -> ExitCode {
    USAGE.main(league::referee::run)
}
