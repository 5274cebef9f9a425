//! How a program answers: from its port to its agent.

use crate::net::agent::Agent;
use crate::net::http::{self, Door};
use crate::net::log::Level;
use crate::net::rpc::Server;
use crate::net::sync::{lock, spawn};
use crate::program::Program;
use crate::program::args::Stop;
use crate::program::terminal::{complain, say};
use crate::wire::Endpoint;
use std::io;
use std::process;
use std::sync::{Arc, Mutex};

/// Answers from now on, and says so on standard output. `max_body` is in bytes.
pub fn serve(program: &Program, agent: Arc<dyn Agent>, max_body: usize) -> Result<Arc<Door>, Stop> {
    let listener = lock(&program.listener).take().ok_or_else(|| Stop::failed("serves already"))?;
    let (client, own_hosts) = (Arc::clone(&program.client), program.own_hosts.clone());
    let strict = program.config.strict_envelope();
    let server = Server { agent, client: Arc::clone(&client), strict, own_hosts, complain, shown: Mutex::default() };
    let door = http::serve(listener, max_body, Arc::new(server))?;
    say(&format!("listening on {}", program.address));
    if !Endpoint::same(&program.address, &program.endpoint) {
        say(&format!("others reach us at {}", program.endpoint));
    }
    program.log().orchestrator(Level::Info, "started", &*program.address);
    if program.args.has("--until-stdin-closes") {
        spawn("stdin", move || {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            client.log.orchestrator(Level::Info, "ended", "standard input has closed");
            process::exit(0);
        });
    }
    Ok(door)
}
