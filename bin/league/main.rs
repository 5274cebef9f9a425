//! The tool `league`: it plays, operates, examines and shows leagues. It is a crate of its own, which
//! sees only what the library declares `pub`; the three programs do not know it.

mod by_hand;
mod check;
mod children;
mod class;
mod coach;
mod columns;
mod comparison;
mod csv;
mod document;
mod figures;
mod groups;
mod local;
mod luck;
mod manager_screen;
mod operator;
mod pages;
mod patience;
mod report;
mod season;
mod site;
mod stage;
mod statistics;
mod strategies;
mod surroundings;
mod trace;
mod verify;
mod view;
mod worth;

use league::program::args::Usage;
use std::process::ExitCode;

const USAGE: Usage = Usage {
    name: "league",
    about: "Plays, operates, examines and shows leagues of the AI Agent League.",
    commands: "
  start                          tell a running manager to start its league
  status                         show how far a running manager's league has come
  season DIR…                    add up the leagues played here, or those in the folders of groups
  groups                         deal many entrants into groups, each for a local league of its own
  serve                          a manager that shows its league as pages
  play NAME                      a player with a finished strategy; mcp, mcp:NAME: played by hand
  local                          run a whole league here: manager, referees and players
  class                          a league for a class: a manager that stays, with referees
  check                          instead of a league: examine the one agent that registers
  pause                          tell it to begin no further match; matches in play end
  resume                         tell it to go on
  remove PLAYER                  take a player out: it loses its matches 3-0, or leaves the lobby
  restore PLAYER                 let it play again: restore P08
  again                          set a finished league aside and open a new lobby (with --stay)
  verify                         check that journal, outboxes and histories agree, and no log has a token
  trace MATCH                    show from the logs what was said in a match: trace R1M1",
    options: &["
  --players N                    start when so many have registered [local: 4; else on `start`]
  --referees N                   and so many referees [local: 2; else 1]
  --mine COMMAND                 your own player in a local league; several: with commas
  --new COMMAND                  is it better than --old? both play the same rivals until decided
  --old COMMAND                  what --new is compared with [a coin]
  --cycles N                     how often everybody meets everybody in a local league
  --lead-sec N                   seconds from a round's announcement to its matches [local: 0]
  --entrants FILE                who plays: a line is a name, a tab, and a command or URL
  --size N                       for `groups`: how many a group has at most
  --out DIR                      for `groups`: the folder below which they are written
  --promote N                    for `season`: print the best N of each group for the next stage
  --by MEASURE                   how they are chosen: points, or expected points [points]
  --status                       for `season`: how far each group is
  --fresh                        set an unfinished league aside and start anew
  --name TEXT                    what this one league is called: --name \"10b, Tuesday\"
  --all                          for `season`: local ones too; with folders: fail if one is left out
  --quiet                        print only the result
  --json                         for `check`: one JSON document instead of lines
  --display-name NAME            for `play`: shown in the table
  --player-id ID                 for `play`: the id to ask for
  --as ID                        for `check`: the id that the agent gets [the one it asks for]"],
};

fn main() -> ExitCode {
    USAGE.main(|args| match args.command {
        Some("play") => {
            let name = args.operands[0].clone();
            coach::run(args, &name)
        }
        Some("verify") => verify::run(&args),
        _ => surroundings::run(args),
    })
}

#[cfg(test)]
#[path = "../../tests/tools/main.rs"]
mod tests;
