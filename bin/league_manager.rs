//! A manager of the AI Agent League, and nothing else.
//!
//! Here are only its options. The program is in `src/manager.rs`.

use league::manager::{self, NoManagerHooks};
use league::program::args::{COMMON, SERVER, Usage};
use std::process::ExitCode;
use std::sync::Arc;

const USAGE: Usage = Usage {
    name: "league_manager",
    about: "The manager of the AI Agent League: registers agents and keeps the table.",
    options: &[
        "
  --players N                 start when so many are here [else: START_LEAGUE]
  --referees N                and so many referees [1]
  --members-per-address N     members from one other machine, at most [8]
  --lead-sec N                seconds from announcement to matches
  --move-timeout-sec N        seconds for a move [as in system.json]
  --fresh                     set an unfinished league aside and start a new one
  --quiet                     print only the table at the end and the champion",
        SERVER,
        COMMON,
    ],
};

fn main() -> ExitCode {
    USAGE.main(|args| manager::run(args, Arc::new(NoManagerHooks)))
}
