//! The league manager's command line. The program is in `src/manager.rs`.

use league::program::args::Usage;
use std::process::ExitCode;
use std::sync::Arc;

const USAGE: Usage = Usage {
    name: "league_manager",
    about: "The manager of the AI Agent League: registers agents, has all play, keeps the table.",
    commands: "",
    options: &["
  --players N                    start when so many have registered [else on START_LEAGUE]
  --referees N                   and so many referees [1]
  --lead-sec N                   seconds from a round's announcement to its matches
  --fresh                        set an unfinished league aside and start a new one
  --name TEXT                    the name of this one league: --name \"10b, Tuesday\"
  --quiet                        print only the result"],
};

fn main() -> ExitCode {
    USAGE.main(|args| league::manager::run(args, Arc::new(())))
}
