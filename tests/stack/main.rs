//! The tests of the library and of its three programs.

mod attacks;
mod config;
mod contacts;
mod damaged_files;
mod games;
mod http;
mod invitations;
mod journal;
mod league;
mod manager;
mod match_play;
mod mcp;
mod outbox;
mod player;
mod protocol;
mod referees;
mod restart;
mod rules;
mod stories;
#[path = "../support/mod.rs"]
mod support;
