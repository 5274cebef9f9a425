//! A manager of the AI Agent League, and nothing else.
//!
//! Here are only its options. The program is in `src/manager.rs`.

use league::manager::{self, NoManagerHooks};
use league::program::args::{COMMON, SERVER, Usage};
use std::process::ExitCode;
use std::sync::Arc;

const USAGE: Usage = Usage {
    name: "league_manager",
    about: "The manager of the AI Agent League: registers agents, has all play, keeps the table.",
    options: &[
        "
  --players N                    start when so many have registered [else on START_LEAGUE]
  --referees N                   and so many referees [1]
  --members-per-address N        members that may register from one other machine [8]
  --lead-sec N                   seconds from a round's announcement to its matches
  --move-timeout-sec N           seconds that its referees give for a move [as in system.json]
  --fresh                        set an unfinished league aside and start a new one
  --quiet                        print only the table at the end and the champion",
        SERVER,
        COMMON,
    ],
};

fn main() -> ExitCode {
    USAGE.main(|args| manager::run(args, Arc::new(NoManagerHooks)))
}
