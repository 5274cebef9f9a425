//! The tool of the league. So far it has one command: a player with a finished strategy, or one that
//! is played by hand.

use league::extras::coach;
use league::player;
use league::program::args::{Args, Exit, Usage};
use std::process::ExitCode;

const USAGE: Usage = Usage {
    name: "league",
    about: "The tool of the AI Agent League.",
    commands: "
  play NAME                      a finished player, or mcp:NAME: by hand, and NAME if nobody chooses",
    options: player::USAGE.options,
};

fn main() -> ExitCode {
    USAGE.main(run)
}

fn run(args: Args) -> Result<(), Exit> {
    let Some(name) = args.operands.first().cloned() else {
        return Err(Exit::usage("a command is missing; league --help lists all"));
    };
    coach::play(args, &name)
}
