//! `league class`: a league for a class. The manager stays, with referees on its own machine, on
//! the address by which others reach that machine. This file sets the options that the command line
//! leaves open; the league is played as any other.
//!
//! `league serve` is the manager alone, with its pages.

use crate::files::{provide_config, stored_league};
use crate::running::{self, LeagueKind, Setup};
use league::net::http::own_address_for;
use league::program::args::{Args, COMMON, Exit, SERVER, Usage};
use league::program::load_config;

const OPTIONS: &str = "
  --players N                 start when so many are here [else: `start`]
  --referees N                and referees [class: 4, started here; serve: 1]
  --members-per-address N     members from one other machine, at most [8]
  --lead-sec N                seconds from announcement to matches
  --fresh                     set an unfinished league aside and start a new one
  --name TEXT                 what this league is called: --name \"10b, Tuesday\"
  --stay                      serve on after the league, as a class always does
  --quiet                     print only the table at the end and the champion";

pub const USAGE: Usage = Usage {
    name: "league class",
    about: "open a league for a class: a manager and referees",
    options: &[OPTIONS, SERVER, COMMON],
};

pub const SERVE_USAGE: Usage = Usage {
    name: "league serve",
    about: "run a manager that shows its league as pages",
    ..USAGE
};

/// Number of referees of a class: each plays several matches at once.
const REFEREES: &str = "4";
/// An address on another machine, which is kept for examples. Nothing is sent there.
const EXAMPLE_ADDRESS: &str = "192.0.2.1";

/// Runs a league for a class.
pub fn run(mut args: Args) -> Result<(), Exit> {
    provide_config(&args)?;
    args.set("--stay", "");
    if !args.has("--referees") {
        args.set("--referees", REFEREES);
    }

    if !args.has("--contact-endpoint") {
        listen_for_others(&mut args)?;
    }

    let setup = Setup {
        stored: stored_league(&args)?,
        kind: LeagueKind::Class,
        ..Setup::default()
    };

    running::run(args, setup)
}

/// Runs a manager with pages.
pub fn run_serve(args: Args) -> Result<(), Exit> {
    provide_config(&args)?;
    let setup = Setup {
        kind: LeagueKind::Serve,
        ..Setup::default()
    };
    running::run(args, setup)
}

/// Sets the options so that the manager listens on every address, and names the one by which other
/// machines reach it: that of `--host`, or the one that this machine has towards others.
fn listen_for_others(args: &mut Args) -> Result<(), Exit> {
    let network = load_config(args)?.system.network;
    let port = args.number("--port", 0..=u16::MAX)?;
    let port = port.unwrap_or(network.default_league_manager_port);
    let address = match args.text("--host") {
        Some(host) => host.to_string(),
        None => own_address_for(EXAMPLE_ADDRESS, 9).unwrap_or("127.0.0.1".into()),
    };

    args.set("--host", "0.0.0.0");
    let endpoint = format!("http://{address}:{port}/mcp");
    args.set("--contact-endpoint", &endpoint);
    Ok(())
}
