//! What shows, compares, examines and operates a league. The league itself plays without any of it: nothing outside this
//! folder names it but the two lines of the programs in `bin/`.

pub mod by_hand;
pub mod check;
pub mod coach;
pub mod csv;
pub mod launcher;
pub mod luck;
pub mod manager_screen;
pub mod pages;
pub mod practice;
pub mod report;
pub mod season;
pub mod statistics;
pub mod strategies;
pub mod trace;
