//! The AI Agent League: independent agents play Even/Odd in a round robin, over JSON-RPC 2.0 on HTTP.
//!
//! Three programs talk. The **manager** registers agents, announces rounds, records results, keeps the table.
//! A **referee** invites two players, asks both for a choice, draws a number, reports who won. A **player** answers.
//!
//! To read it in an evening, take the spine in this order:
//! 1. `bin/player.rs`: what a legal player does; `choose` is all that a student must write.
//! 2. `protocol.rs`: the page `messages!` with the 21 messages, then their fields.
//! 3. `referee.rs`: one match, from invitation to outcome.
//! 4. `rounds.rs`: the round loop; start, restart and a lost referee are one act.
//! 5. `journal.rs`: what is committed is on the disk before anybody hears of it.
//! 6. `bin/league_manager.rs`: one `match` over the messages.
//!
//! The rest is looked up. Arrows point downwards only:
//! ```text
//! bin/player  →  memory, strategies      bin/referee  →  desk, referee      bin/league_manager  →  rounds, launcher
//!    what they are made of      joining → agent → base → rpc → mcp → dispatch → voice → failure → http
//!    what the manager keeps     rounds → floor → courier, records, screen → journal → league      courier → liveness
//!    what is decided            reports, registration, answers → league → schedule, standings → game
//!    what all know              protocol → wire      config → config_files
//!                               options, log, files, clock, endpoint, threads
//! ```
//! `protocol`, `wire`, `game`, `league`, `registration`, `reports`, `answers`, `schedule`, `standings`, `liveness`
//! and `endpoint` are pure: they know no thread, lock, file or socket, and take time and randomness as arguments.
//!
//! Left out on purpose: TLS unless built with the feature `https`, HTTP keep-alive, async, other games, a database.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod agent;
pub mod answers;
pub mod base;
pub mod clock;
pub mod config;
pub mod config_files;
pub mod courier;
pub mod desk;
pub mod dispatch;
pub mod endpoint;
pub mod failure;
pub mod files;
pub mod floor;
pub mod game;
pub mod http;
pub mod joining;
pub mod journal;
pub mod launcher;
pub mod league;
pub mod liveness;
pub mod log;
pub mod mcp;
pub mod memory;
pub mod options;
pub mod protocol;
pub mod records;
pub mod referee;
pub mod registration;
pub mod reports;
pub mod rounds;
pub mod rpc;
pub mod schedule;
pub mod screen;
pub mod standings;
pub mod strategies;
pub mod threads;
pub mod voice;
pub mod wire;
