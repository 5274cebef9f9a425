//! A league that a command has prepared: its kind, its players, and what it found in the data folder.

use crate::groups::Entrant;
use league::manager::league::League;
use std::fs::File;

/// The kinds of leagues that the tool runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LeagueKind {
    /// A league whose agents run on this machine.
    Local,
    /// A local league whose files the next one replaces; its players are compared with a coin.
    Practice,
    /// A practice in which two players are compared.
    Comparison,
    /// A league for a class, with referees on this machine.
    Class,
    /// A manager alone, with pages.
    Serve,
}

impl LeagueKind {
    /// Returns true if all agents run on this machine.
    pub fn is_local(self) -> bool {
        !matches!(self, LeagueKind::Class | LeagueKind::Serve)
    }

    /// Returns true for a practice or a comparison.
    pub fn is_practice(self) -> bool {
        matches!(self, LeagueKind::Practice | LeagueKind::Comparison)
    }
}

/// A league as a command has prepared it.
pub struct Setup {
    /// The kind of league.
    pub kind: LeagueKind,
    /// The players that are started here, in the order of their ids.
    pub entrants: Vec<Entrant>,
    /// The league that lies in the data folder.
    pub stored: Option<League>,
    /// The lock of the data folder: the agents of two local leagues have the same ids, so only one
    /// league at a time may use it.
    pub _lock: Option<File>,
}

impl Setup {
    /// Returns a league of agents that register by themselves.
    pub fn new(kind: LeagueKind) -> Setup {
        Setup {
            kind,
            entrants: Vec::new(),
            stored: None,
            _lock: None,
        }
    }
}
