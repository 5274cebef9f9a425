//! The tool `league`: it plays, operates, examines and shows leagues. It is a crate of its own,
//! which sees only what the library declares `pub`; the three programs do not know it.
//!
//! `commands` chooses what is done. `running` is what surrounds a manager that the tool runs,
//! `relay` the relays of players that cannot be called, `agents` the agents that are started here,
//! `practice` the statistics about players, `page` the public document of a league and all that is
//! made from it. `check` examines an agent, `trace` reads logs, `files` finds the files of leagues.

mod agents;
mod check;
mod commands;
mod files;
mod page;
mod practice;
mod relay;
mod running;
mod trace;

use league::program::args::exit_code;
use std::process::ExitCode;

fn main() -> ExitCode {
    exit_code("league", commands::run(std::env::args().skip(1).collect()))
}

#[cfg(test)]
#[path = "../../tests/tools/main.rs"]
mod tests;
