//! How a program answers: from its port to its agent, in threads of its own (`net/http.rs`).
//!
//! From here on it says on standard output where it listens, and, if that is another address, where
//! others reach it. A program that another one has started ends when its standard input closes.

use crate::net::agent::Agent;
use crate::net::http::{self, Door};
use crate::net::log::Level;
use crate::net::rpc::Server;
use crate::program::args::Stop;
use crate::program::terminal::{complain, say};
use crate::program::{Program, end_with_stdin};
use crate::wire::Endpoint;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long an ending program waits for its last answers and deliveries.
pub const FAREWELL: Duration = Duration::from_secs(5);

/// Answers from now on, and says so on standard output. `max_body` is in bytes.
pub fn serve(program: &Program, agent: Arc<dyn Agent>, max_body: usize) -> Result<Arc<Door>, Stop> {
    let client = Arc::clone(&program.client);
    let port = program.port;
    let near = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
    let named = [&program.address, &program.endpoint].map(|url| Endpoint::parse(url));
    let named = named.into_iter().flatten();
    let named = named.map(|it| format!("{}:{}", it.host, it.port));
    let server = Server {
        agent,
        client: Arc::clone(&client),
        strict: program.config.strict_envelope(),
        own: near.into_iter().chain(named).collect(),
        complain,
        port,
        shown: Mutex::default(),
    };
    let door = http::serve(program.listener.try_clone()?, max_body, Arc::new(server))?;
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
