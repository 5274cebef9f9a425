//! The start of every program: it reads its options and its files, takes a port, and serves.
//!
//! A program first refuses what is wrong in its options and files, and only then takes a port. An
//! agent whose manager is on another machine listens on all addresses, and names the one where the
//! manager sees it. Read next: `session.rs`, a referee or a player in its league.

pub mod args;
pub mod config;
pub mod credentials;
pub mod session;
pub mod storage;
pub mod terminal;

use crate::net::agent::Agent;
use crate::net::client::Client;
use crate::net::http::{self, HttpServer};
use crate::net::log::{Level, Log};
use crate::net::restart;
use crate::net::rpc::RpcServer;
use crate::net::sync::spawn;
use crate::program::args::{Args, Exit};
use crate::program::config::{AgentEntry, Config};
use crate::program::terminal::{print_error, print_line};
use crate::protocol::AgentKind;
use crate::values::{Endpoint, check_display_name, check_identifier, check_url};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io, process};

/// Maximum time that a program waits for its last answers and deliveries when it ends.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A program that has its configuration and its port.
pub struct Program {
    /// Which of the three programs it is.
    pub kind: AgentKind,
    /// The command line.
    pub args: Args,
    /// The files.
    pub config: Config,
    /// The id that a referee or a player asks for.
    pub requested_id: Option<String>,
    /// The description of a referee or a player: as listed, or the defaults.
    pub entry: AgentEntry,
    /// Makes a league, a draw or a choice repeatable.
    pub seed: Option<u64>,
    /// Shows that the operator has let us in.
    pub operator_token: Option<String>,
    /// The data folder.
    pub data: PathBuf,
    /// The URL under which others reach us.
    pub endpoint: String,
    /// The URL under which we listen.
    address: String,
    /// The port.
    pub port: u16,
    /// The socket of the port.
    pub listener: TcpListener,
    /// Sends and logs.
    pub client: Arc<Client>,
    /// The time of the start.
    pub started: Instant,
}

impl Program {
    /// Reads the configuration and takes a port.
    pub fn new(args: Args, kind: AgentKind) -> Result<Program, Exit> {
        let config = load(&args)?;
        let operator_token = operator_token(&args)?;
        let seed = args.number("--seed", 0..=u64::MAX)?;

        // The description of the agent.
        let requested_id = args.checked_text(&format!("--{kind}-id"), check_identifier)?;
        let id = requested_id.as_deref().unwrap_or("new");
        let mut entry = config.agent(kind, id).clone();
        if let Some(name) = args.checked_text("--display-name", check_display_name)? {
            entry.display_name = name;
        }
        if let Some(number) = args.number("--max-concurrent-matches", 1..=10)? {
            entry.max_concurrent_matches = Some(number);
        }

        // The port and the address.
        let contact_endpoint = args.checked_text("--contact-endpoint", check_url)?;
        let (host, name) = hosts(&args, &config, kind)?;
        let listener = listen(&args, &config, kind, &entry, &host)?;
        let port = listener.local_addr()?.port();
        let url = |host: &str| format!("http://{host}:{port}/mcp");

        let sender = match kind {
            AgentKind::Manager => kind.to_string(),
            _ => format!("{kind}:{id}"),
        };
        Ok(Program {
            client: Arc::new(Client::new(&sender, log(&args, &sender))),
            data: data(&args),
            endpoint: contact_endpoint.unwrap_or(url(&name)),
            address: url(&host.replace("127.0.0.1", "localhost")),
            started: Instant::now(),
            kind,
            args,
            config,
            requested_id,
            entry,
            seed,
            operator_token,
            port,
            listener,
        })
    }

    /// Starts to answer requests for an agent, and prints where. `max_body` is in bytes.
    pub fn serve(&self, agent: Arc<dyn Agent>, max_body: usize) -> Result<Arc<HttpServer>, Exit> {
        let port = self.port;
        let mut own_origins = vec![self.address.clone(), self.endpoint.clone()];
        for host in ["127.0.0.1", "localhost", "[::1]"] {
            own_origins.push(format!("http://{host}:{port}"));
        }
        for origin in &mut own_origins {
            // a browser leaves out port 80
            *origin = origin
                .trim_end_matches("/mcp")
                .trim_end_matches(":80")
                .into();
        }
        let rpc = RpcServer {
            agent,
            client: Arc::clone(&self.client),
            own_origins,
            print_error,
        };
        let listener = self.listener.try_clone()?;
        let server = http::serve(listener, max_body, Box::new(move |http| rpc.handle(http)))?;

        let log = Arc::clone(&self.client.log);
        spawn("restart", move || {
            restart::watch(|reason| restart_process(&log, port, reason))
        });
        let log = Arc::clone(&self.client.log);
        end_with_stdin(&self.args, 0, move || {
            log.system_event(Level::Info, "ended", "standard input has closed");
        });

        print_line(&format!("listening on {}", self.address));
        if !Endpoint::is_same_address(&self.address, &self.endpoint) {
            print_line(&format!("others reach us at {}", self.endpoint));
        }
        self.log()
            .system_event(Level::Info, "started", &self.address);
        Ok(server)
    }

    /// Returns the id of the league.
    pub fn league_id(&self) -> &str {
        &self.config.league.league_id
    }

    /// Returns how many matches a referee plays at once.
    pub fn max_concurrent_matches(&self) -> u32 {
        let default = self.config.referee_defaults.max_concurrent_matches;
        self.entry.max_concurrent_matches.or(default).unwrap_or(1)
    }

    /// Returns the program's log.
    pub fn log(&self) -> &Log {
        &self.client.log
    }

    /// Logs how the program ends.
    pub fn log_exit(&self, end: &Result<(), Exit>) {
        match end {
            Ok(()) => self
                .log()
                .system_event(Level::Info, "ended", "the league is over"),
            Err(exit) => self
                .log()
                .system_event(Level::Error, "ended", &exit.message),
        }
    }
}

fn restart_process(log: &Log, port: u16, reason: &str) {
    let text = format!("{reason}: restarting the process");
    print_error(&text);
    log.system_event(Level::Info, "ended", text);
    let error = restart::restart_process(port);
    print_error(&format!("the process cannot be restarted: {error}"));
}

/// Returns the host on which we listen, and the host under which others reach us unless
/// `--contact-endpoint` names it: `base_host`, or, if the manager is on another machine, the address
/// that the manager sees.
fn hosts(args: &Args, config: &Config, kind: AgentKind) -> Result<(String, String), Exit> {
    let base_host = config.system.network.base_host.clone();
    let manager = Endpoint::parse(config.manager()).map_err(Exit::usage)?;
    let is_near = kind == AgentKind::Manager || manager.is_loopback();
    let default = if is_near { "127.0.0.1" } else { "0.0.0.0" };
    let host = args.text("--host").unwrap_or(default).to_string();
    if args.has("--contact-endpoint") {
        return Ok((host, base_host));
    }

    let hint = "say with --contact-endpoint URL where others reach us";
    if args.has("--host") && ["0.0.0.0", "::", "[::]"].contains(&&*host) {
        return Err(Exit::usage(format!(
            "--host {host} means every address: {hint}"
        )));
    }
    if is_near {
        return Ok((host, base_host));
    }
    let name = own_address_towards(&manager.host, manager.port).map_err(|error| {
        let url = config.manager();
        Exit::usage(format!("--manager {url}: {error}; name another, or {hint}"))
    })?;
    Ok((host, name))
}

/// Returns the address that this machine has on its way to another. Nothing is sent.
pub fn own_address_towards(host: &str, port: u16) -> io::Result<String> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((host, port))?;
    Ok(socket.local_addr()?.ip().to_string())
}

/// Returns the data folder.
pub fn data(args: &Args) -> PathBuf {
    args.text("--data").unwrap_or("data").into()
}

/// Returns the folder of the logs.
pub fn logs(args: &Args) -> PathBuf {
    args.text("--logs").unwrap_or("logs").into()
}

/// Returns a log in that folder.
pub fn log(args: &Args, component: &str) -> Arc<Log> {
    Arc::new(Log::new(&logs(args), component))
}

/// Reads the configuration files. `--manager` replaces the listed URL; a URL without a path gets
/// `/mcp`.
pub fn load(args: &Args) -> Result<Config, Exit> {
    let manager = args.checked_text("--manager", check_url)?;
    let league_id = args.checked_text("--league-id", check_identifier)?;
    let folder = Path::new(args.text("--config").unwrap_or("config"));
    let mut config = Config::load(folder, league_id.as_deref()).map_err(Exit::usage)?;

    let endpoint = &mut config.agents.league_manager.endpoint;
    if let Some(manager) = manager {
        *endpoint = manager;
    }
    if endpoint.trim_end_matches('/').matches('/').count() == 2 {
        *endpoint = format!("{}/mcp", endpoint.trim_end_matches('/'));
    }
    Ok(config)
}

/// Reads the operator token, if a file with it is named.
pub fn operator_token(args: &Args) -> Result<Option<String>, Exit> {
    let Some(path) = args.text("--operator-token-file") else {
        return Ok(None);
    };
    let token = fs::read_to_string(path)
        .map_err(|error| Exit::usage(format!("--operator-token-file {path}: {error}")))?;
    Ok(Some(token.trim().to_string()))
}

/// Ends the program when its standard input closes, if an option says so, after a last act.
pub fn end_with_stdin(args: &Args, code: i32, last: impl FnOnce() + Send + 'static) {
    if args.has("--until-stdin-closes") {
        spawn("stdin", move || {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            last();
            process::exit(code);
        });
    }
}

/// Takes the port of `--port`; else that of the files, which for a manager is
/// `default_league_manager_port`; else the first free one of the range that is not listed.
fn listen(
    args: &Args,
    config: &Config,
    kind: AgentKind,
    entry: &AgentEntry,
    host: &str,
) -> Result<TcpListener, Exit> {
    let configured = match kind {
        AgentKind::Manager => Some(config.system.network.default_league_manager_port),
        _ => listed_port(entry),
    };
    let mut ports: Vec<u16> = match args.number("--port", 0..=u16::MAX)?.or(configured) {
        Some(port) => vec![port],
        None => {
            let listed = config.agents.referees.iter().chain(&config.agents.players);
            let taken: Vec<u16> = listed.filter_map(listed_port).collect();
            let range = config.port_range(kind);
            range.filter(|port| !taken.contains(port)).collect()
        }
    };
    if args.has("--any-port") {
        ports.push(0);
    }

    let mut problem = "all ports of the range are taken; choose one with --port N".into();
    for port in ports {
        match http::listen(host, port) {
            Ok(listener) => return Ok(listener),
            Err(error) => problem = error,
        }
    }
    Err(Exit::usage(problem))
}

fn listed_port(entry: &AgentEntry) -> Option<u16> {
    Some(Endpoint::parse(&entry.endpoint).ok()?.port)
}
