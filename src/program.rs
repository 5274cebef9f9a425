//! The start of every program: it reads its options and its files, takes a port, and serves.
//!
//! An agent whose manager is on another machine listens on all addresses, and names the one where the
//! manager sees it. Read next: `session.rs`, a referee or a player in its league.

pub mod args;
pub mod attempts;
pub mod config;
pub mod credentials;
pub mod session;
pub mod storage;
pub mod terminal;

use crate::net::agent::Agent;
use crate::net::client::Client;
use crate::net::http::{self, HttpServer, own_address_for};
use crate::net::limits;
use crate::net::log::{Level, Log};
use crate::net::rpc::RpcServer;
use crate::net::sync::{lock, spawn_needed};
use crate::program::args::{Args, Exit};
use crate::program::config::{AgentEntry, Config, Seconds};
use crate::program::terminal::{LineLimit, Terminal, print_error};
use crate::protocol::AgentKind;
use crate::values::{Endpoint, check_display_name, check_identifier, check_url};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{io, process, thread};

/// Maximum time that a program waits for its last answers and deliveries when it ends.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time that a restarted process waits for its port.
const RESTART_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between two attempts to take it.
const PORT_INTERVAL: Duration = Duration::from_millis(100);

/// A program that has its configuration and its port.
pub struct Program {
    /// The kind of program.
    pub kind: AgentKind,
    /// The command line.
    pub args: Args,
    /// The configuration files.
    pub config: Config,
    /// The name of its log and its credentials: the id that it asks for, else its kind and its port.
    pub name: String,
    /// The description of a referee or a player: as listed, or the defaults.
    pub entry: AgentEntry,
    /// The seed of repeatable leagues, draws and choices.
    pub seed: Option<u64>,
    /// The secret with which the operator lets an agent in.
    operator_token: Option<String>,
    /// The data folder.
    pub data: PathBuf,
    /// The URL under which others reach this program.
    pub endpoint: String,
    /// The URL under which it listens.
    local_url: String,
    /// The port.
    pub port: u16,
    /// The socket of the port.
    listener: TcpListener,
    /// Standard output. A manager that is quiet still says where it listens, unless it is alone
    /// with its own agents.
    pub terminal: Terminal,
    /// Sends and logs.
    pub client: Arc<Client>,
    /// The time of the start.
    pub started: Instant,
    /// The lines that unknown agents have caused.
    line_limit: Mutex<LineLimit>,
}

impl Program {
    /// Reads the configuration and takes a port.
    pub fn new(args: Args, kind: AgentKind) -> Result<Program, Exit> {
        let config = load_config(&args)?;
        let operator_token = read_operator_token(&args)?;
        let seed = args.number("--seed", 0..=u64::MAX)?;

        let requested_id = args.checked_text(&format!("--{kind}-id"), check_identifier)?;
        let id = requested_id.clone().unwrap_or("new".into());
        let entry = read_entry(&args, &config, kind, &id)?;

        let is_remote = remote_manager(&config, kind).is_some();
        let default_host = if is_remote { "0.0.0.0" } else { "127.0.0.1" };
        let host = args.text("--host").unwrap_or(default_host).to_string();
        let listener = take_port(&args, &config, kind, &entry, &host)?;
        let port = listener.local_addr()?.port();

        let name = requested_id.unwrap_or_else(|| format!("{kind}-{port}"));
        let (sender, log_file) = match kind {
            AgentKind::Manager => {
                let league_id = &config.league.league_id;
                (kind.to_string(), format!("league/{league_id}/league"))
            }
            _ => (format!("{kind}:{id}"), format!("agents/{name}")),
        };
        let log = open_log(&args, &sender);
        log.open(&log_file);
        Ok(Program {
            client: Arc::new(Client::new(&sender, log)),
            name,
            terminal: Terminal {
                quiet: args.has("--quiet") && (kind == AgentKind::Player || args.has("--alone")),
            },
            data: data_folder(&args),
            endpoint: public_url(&args, &config, kind, port)?,
            local_url: url(&host.replace("127.0.0.1", "localhost"), port),
            started: Instant::now(),
            line_limit: Mutex::default(),
            kind,
            args,
            config,
            entry,
            seed,
            operator_token,
            port,
            listener,
        })
    }

    /// Starts to answer requests for an agent, and prints where. `max_body` is in bytes.
    pub fn serve<A: Agent>(&self, agent: Arc<A>, max_body: usize) -> Result<Arc<HttpServer>, Exit> {
        let rpc = RpcServer {
            agent,
            client: Arc::clone(&self.client),
            own_origins: self.own_origins(),
            print_error,
        };

        // Restart or end the process when it must.
        limits::watch(Arc::clone(&self.client.log), self.port, print_error);
        let log = Arc::clone(&self.client.log);
        if self.args.has("--until-stdin-closes") {
            spawn_needed("stdin", move || {
                let _ = io::copy(&mut io::stdin(), &mut io::sink());
                log.system_event(Level::Info, "ended", "standard input has closed");
                process::exit(0);
            });
        }

        let listener = self.listener.try_clone()?;
        let server = http::serve(listener, max_body, Box::new(move |http| rpc.handle(http)))?;
        self.terminal
            .print_line(&format!("listening on {}", self.local_url));
        if !Endpoint::is_same_address(&self.local_url, &self.endpoint) {
            self.terminal
                .print_line(&format!("others reach us at {}", self.endpoint));
        }
        self.log()
            .system_event(Level::Info, "started", &self.local_url);
        Ok(server)
    }

    /// Returns the URL under which others reach this program now: the address of this machine may
    /// have changed.
    fn current_endpoint(&self) -> String {
        public_url(&self.args, &self.config, self.kind, self.port)
            .unwrap_or_else(|_| self.endpoint.clone())
    }

    /// Returns the origins of web pages that may call this program: those that it serves itself.
    fn own_origins(&self) -> Vec<String> {
        let mut urls = vec![self.local_url.clone(), self.endpoint.clone()];
        for host in ["127.0.0.1", "localhost", "[::1]"] {
            urls.push(url(host, self.port));
        }

        let origins = urls.iter().map(|url| url.trim_end_matches("/mcp"));
        origins
            .map(|origin| origin.trim_end_matches(":80").into()) // a browser leaves out port 80
            .collect()
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

    /// Returns true if a line that an unknown agent has caused may be printed. The log has all.
    pub fn may_print(&self, line: &str) -> bool {
        lock(&self.line_limit).allow(line, Instant::now())
    }

    /// Returns the program's log.
    pub fn log(&self) -> &Log {
        &self.client.log
    }

    /// Logs how the program ends.
    pub fn log_exit(&self, end: &Result<(), Exit>) {
        let (level, text) = match end {
            Ok(()) => (Level::Info, "the league is over"),
            Err(exit) => (Level::Error, &*exit.message),
        };
        self.log().system_event(level, "ended", text);
    }
}

/// Returns the URL of a program at a host. An IPv6 address stands in brackets.
pub fn url(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') {
        return format!("http://[{host}]:{port}/mcp");
    }
    format!("http://{host}:{port}/mcp")
}

/// Returns the manager of a referee or a player, if it is on another machine.
fn remote_manager(config: &Config, kind: AgentKind) -> Option<Endpoint> {
    let manager = Endpoint::parse(config.manager()).ok()?;
    (kind != AgentKind::Manager && !manager.is_loopback()).then_some(manager)
}

/// Returns the URL under which others reach this program: that of `--contact-endpoint`, else its
/// host is that of `--host`, `base_host`, or the address that this machine has on its way to a
/// manager on another machine.
fn public_url(args: &Args, config: &Config, kind: AgentKind, port: u16) -> Result<String, Exit> {
    if let Some(url) = args.checked_text("--contact-endpoint", check_url)? {
        return Ok(url);
    }

    let hint = "say with --contact-endpoint URL where others reach us";
    if let Some(host) = args.text("--host") {
        if ["0.0.0.0", "::", "[::]"].contains(&host) {
            let problem = format!("--host {host} means every address: {hint}");
            return Err(Exit::usage(problem));
        }
        let own = url(host, port);
        if Endpoint::parse(&own).is_ok_and(|own| !own.is_loopback()) {
            return Ok(own);
        }
    }

    let Some(manager) = remote_manager(config, kind) else {
        return Ok(url(&config.system.network.base_host, port));
    };
    let host = own_address_for(&manager.host, manager.port).map_err(|error| {
        let url = config.manager();
        Exit::usage(format!("--manager {url}: {error}; name another, or {hint}"))
    })?;
    Ok(url(&host, port))
}

/// Returns the description of a referee or a player: as listed, with what the options change.
fn read_entry(args: &Args, config: &Config, kind: AgentKind, id: &str) -> Result<AgentEntry, Exit> {
    let mut entry = config.agent(kind, id).clone();
    if let Some(name) = args.checked_text("--display-name", check_display_name)? {
        entry.display_name = name;
    }
    if let Some(number) = args.number("--max-concurrent-matches", 1..=10)? {
        entry.max_concurrent_matches = Some(number);
    }
    Ok(entry)
}

/// Takes the port of `--port`, or the first free one of the usual ports.
fn take_port(
    args: &Args,
    config: &Config,
    kind: AgentKind,
    entry: &AgentEntry,
    host: &str,
) -> Result<TcpListener, Exit> {
    let ports = match args.number("--port", 0..=u16::MAX)? {
        Some(port) => vec![port],
        None => default_ports(config, kind, entry),
    };

    // Another program may use the port of a restarted process for a moment.
    let started = Instant::now();
    loop {
        let mut problem = "all ports of the range are taken; choose one with --port N".into();
        for port in &ports {
            match http::listen(host, *port) {
                Ok(listener) => return Ok(listener),
                Err(error) => problem = error,
            }
        }
        if !args.has("--restarted") || started.elapsed() >= RESTART_TIMEOUT {
            return Err(Exit::usage(problem));
        }

        thread::sleep(PORT_INTERVAL);
    }
}

/// Returns the ports that a program may take without `--port`: that of the files, which for a
/// manager is `default_league_manager_port`; else all of the range that are not listed.
pub fn default_ports(config: &Config, kind: AgentKind, entry: &AgentEntry) -> Vec<u16> {
    if kind == AgentKind::Manager {
        return vec![config.system.network.default_league_manager_port];
    }
    if let Some(port) = listed_port(entry) {
        return vec![port];
    }

    let listed = config.agents.referees.iter().chain(&config.agents.players);
    let taken: Vec<u16> = listed.filter_map(listed_port).collect();
    let range = config.port_range(kind);
    range.filter(|port| !taken.contains(port)).collect()
}

fn listed_port(entry: &AgentEntry) -> Option<u16> {
    Some(Endpoint::parse(&entry.endpoint).ok()?.port)
}

/// Returns the URL of a manager as a person writes it: the scheme and the path may be missing, and
/// the address of its page, with what stands behind `#` or `?`, is the same manager.
fn manager_url(text: &str) -> String {
    let text = text.split(['#', '?']).next().unwrap_or_default();
    let url = match text.contains("://") {
        true => text.trim_end_matches('/').to_string(),
        false => format!("http://{}", text.trim_end_matches('/')),
    };
    match url.matches('/').count() {
        2 => url + "/mcp",
        _ => url,
    }
}

/// Reads the configuration files. `--manager` replaces the listed URL.
pub fn load_config(args: &Args) -> Result<Config, Exit> {
    args.checked_text("--manager", |text| check_url(&manager_url(text)))?;
    let league_id = args.checked_text("--league-id", check_identifier)?;
    let folder = Path::new(args.text("--config").unwrap_or("config"));
    let mut config = Config::load(folder, league_id.as_deref()).map_err(Exit::usage)?;
    if let Some(seconds) = args.number("--move-timeout-sec", 0.1..=86_400.0)? {
        config.system.timeouts.move_timeout_sec = Seconds(Duration::from_secs_f64(seconds));
    }

    let endpoint = &mut config.agents.league_manager.endpoint;
    *endpoint = manager_url(args.text("--manager").unwrap_or(endpoint));
    Ok(config)
}

/// Reads the operator token, if a file with it is named.
pub fn read_operator_token(args: &Args) -> Result<Option<String>, Exit> {
    let Some(path) = args.text("--operator-token-file") else {
        return Ok(None);
    };

    let token = storage::read_text(Path::new(path))
        .map_err(|error| Exit::usage(format!("--operator-token-file {error}")))?;
    Ok(Some(token.trim().to_string()))
}

/// Returns the data folder.
pub fn data_folder(args: &Args) -> PathBuf {
    args.text("--data").unwrap_or("data").into()
}

/// Returns the folder of the logs.
pub fn log_folder(args: &Args) -> PathBuf {
    args.text("--logs").unwrap_or("logs").into()
}

/// Returns the log of a component in that folder.
pub fn open_log(args: &Args, component: &str) -> Arc<Log> {
    Arc::new(Log::new(&log_folder(args), component))
}
