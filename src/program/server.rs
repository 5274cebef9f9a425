//! How a program answers: from its port to its agent.

use crate::net::agent::Agent;
use crate::net::http::{self, Door};
use crate::net::log::Level;
use crate::net::rpc::Server;
use crate::program::args::Stop;
use crate::program::terminal::{complain, say};
use crate::program::{Program, end_with_stdin};
use crate::wire::Endpoint;
use std::sync::{Arc, Mutex};

/// Answers from now on, and says so on standard output. `max_body` is in bytes.
pub fn serve(program: &Program, agent: Arc<dyn Agent>, max_body: usize) -> Result<Arc<Door>, Stop> {
    let (client, own_hosts) = (Arc::clone(&program.client), program.own_hosts.clone());
    let strict = program.config.strict_envelope();
    let server = Server {
        agent,
        client: Arc::clone(&client),
        strict,
        own_hosts,
        complain,
        shown: Mutex::default(),
    };
    let door = http::serve(program.listener()?, max_body, Arc::new(server))?;
    say(&format!("listening on {}", program.address));
    if !Endpoint::same(&program.address, &program.endpoint) {
        say(&format!("others reach us at {}", program.endpoint));
    }
    program
        .log()
        .orchestrator(Level::Info, "started", &*program.address);
    end_with_stdin(&program.args, 0, move || {
        client
            .log
            .orchestrator(Level::Info, "ended", "standard input has closed")
    });
    Ok(door)
}
