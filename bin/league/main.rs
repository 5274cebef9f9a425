//! The tool `league`: it plays, operates, examines and shows leagues. It is a crate of its own,
//! which sees only what the library declares `pub`; the three programs do not know it.
//!
//! `commands` chooses what is done, `running` is what surrounds a manager that the tool runs, and
//! `files` finds the files of leagues. The rest lies in folders: each answers a question.

mod commands;
mod files;
mod running;

/// Who plays? Leagues on this machine and for a class, and the players that are started.
mod start {
    pub mod children;
    pub mod class;
    pub mod entrants;
    pub mod local;
    pub mod new;
    pub mod output;
    pub mod small;
}

/// What is seen? The public document of a league and all that is made from it, the messages of a
/// match, and lines for the terminal.
mod show {
    pub mod derived;
    pub mod document;
    pub mod expected_points;
    pub mod page;
    pub mod render;
    pub mod screen;
    pub mod tables;
    pub mod trace;
    pub mod view;
}

/// Who is better? A practice, two players compared, and a season.
mod compare {
    pub mod comparison;
    pub mod practice;
    pub mod season;
    pub mod statistics;
}

/// What does a class need? The examination of a player, the operator's commands, and relays for
/// players that cannot be called.
mod classroom {
    pub mod check;
    pub mod operator;
    pub mod queue;
    pub mod rehearsal;
    pub mod relay;
}

/// The players that the tool brings along: finished strategies, and one that is played by hand.
mod players {
    pub mod by_hand;
    pub mod play;
    pub mod strategies;
    pub mod tic_tac_toe;
}

use league::program::args::exit_code;
use std::process::ExitCode;

fn main() -> ExitCode {
    exit_code("league", commands::run(std::env::args().skip(1).collect()))
}

#[cfg(test)]
#[path = "../../tests/tools/main.rs"]
mod tests;
