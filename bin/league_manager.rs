//! The league manager's command line. What it does is in `src/manager.rs`.

use league::program::args::Usage;
use std::process::ExitCode;

const USAGE: Usage = Usage {
    name: "league_manager",
    about: "The manager of the AI Agent League: registers agents, has every pair play, keeps the table.",
    words: &[
        ("start", "tell a running manager to start its league"),
        ("status", "show how far a running manager's league has come"),
        ("local", "run a whole league here: manager, referees and players"),
        ("check", "instead of a league: examine the one agent that registers, player or referee"),
    ],
    options: &[
        ("--players", "N", "start when so many have registered [local: 4; else on `start`]"),
        ("--referees", "N", "and so many referees [local: 2; else 1]"),
        ("--seed", "N", "make draws and random strategies of a local league repeatable"),
        ("--mine", "COMMAND", "your own player in a local league; several: with commas, or again --mine"),
        ("--cycles", "N", "how often everybody meets everybody in a local league, and what it says of them"),
        ("--lead-sec", "N", "seconds from a round's announcement to its matches [local: 0; else as in the file]"),
        ("--stay", "", "keep serving when the league is over"),
        ("--fresh", "", "set an unfinished league aside and start anew"),
        ("--quiet", "", "print no results"),
        ("--json", "", "for `check`: one JSON document instead of lines"),
        ("--manager", "URL", "for `start` and `status`: the manager [as listed in agents_config.json]"),
    ],
};

fn main() -> ExitCode {
    USAGE.main(|args| match args.word {
        Some("check") => league::check::run(args),
        _ => league::manager::run(args),
    })
}
