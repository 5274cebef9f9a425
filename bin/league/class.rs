//! A league for a class: `league_manager class` starts a manager that stays, with referees beside
//! it, on the address by which others reach this machine. Here is filled in what the command line
//! leaves open, and printed what the teacher and the students need. The league is played as any
//! other.

use league::program::args::{Args, Exit};
use league::program::terminal::print_line;
use league::program::{self, own_address_towards};
use league::values::Endpoint;

/// How many referees a class has: each plays several matches at once.
const REFEREES: &str = "4";
/// An address that is kept for examples: somewhere on another machine. Nothing is sent there.
const EXAMPLE: &str = "192.0.2.1";

/// Says on the command line what a class league does not have to be told.
pub fn fill_in(args: &mut Args) -> Result<(), Exit> {
    args.set("--stay", "");
    if !args.has("--referees") {
        args.set("--referees", REFEREES);
    }
    if args.has("--contact-endpoint") {
        return Ok(());
    }
    let network = program::load_config(args)?.system.network;
    let usual = network.default_league_manager_port;
    let port = args.number("--port", 0..=u16::MAX)?.unwrap_or(usual);
    let address = match args.text("--host") {
        Some(host) => host.to_string(),
        None => own_address_towards(EXAMPLE, 9).unwrap_or("127.0.0.1".into()),
    };
    let endpoint = format!("http://{address}:{port}/mcp");
    args.set("--host", "0.0.0.0");
    args.set("--contact-endpoint", &endpoint);
    Ok(())
}

/// Prints the lines for students while the lobby is open, and the page's address.
pub fn greet(endpoint: &str, is_lobby: bool) {
    let page = endpoint.trim_end_matches("/mcp");
    if is_lobby {
        print_line("\nEach student types these two lines:");
        print_line(&format!("  curl -O {page}/player.py"));
        let who = "--display-name Ada --stay";
        print_line(&format!("  python3 player.py --manager {page} {who}"));
    }
    print_line(&format!("\nThe page for the projector is {page}/#wall"));
    if Endpoint::parse(endpoint).is_ok_and(|it| it.is_loopback()) {
        print_line(
            "\nthis machine has no address that others can reach: connect it to the network, or name one with --host",
        );
    }
}
