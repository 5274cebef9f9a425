//! The tests of the tool `league` and of the agents in Python. They are compiled into the tool
//! (`bin/league/main.rs`), so that they see its modules.

mod adapter;
mod by_hand;
mod check;
mod comparison;
mod control;
mod damaged_files;
mod guide;
mod jobs;
mod page;
mod practice;
mod python;
mod relay;
mod season;
mod strategies;
#[path = "../support/mod.rs"]
mod support;
mod tic_tac_toe;
mod trace;
mod verify;
