//! What shows, compares, examines and operates a league. The league itself plays without any of it:
//! outside of this folder only `lib.rs` and `bin/league_manager.rs` name it, and both can be built
//! without it. Read first `surroundings.rs`, what is around a manager, and `coach.rs`, what is
//! beside a player.

pub mod by_hand;
pub mod check;
pub mod children;
pub mod class;
pub mod coach;
pub mod columns;
pub mod comparison;
pub mod csv;
pub mod document;
pub mod figures;
pub mod groups;
pub mod local;
pub mod luck;
pub mod manager_screen;
pub mod operator;
pub mod pages;
pub mod patience;
pub mod report;
pub mod season;
pub mod site;
pub mod stage;
pub mod statistics;
pub mod strategies;
pub mod surroundings;
pub mod trace;
pub mod view;
pub mod worth;
