//! What every program is made of: its options and its files, and the port that it takes.
//!
//! A program first reads what its user has written and refuses what is wrong; only then it takes a port. An agent whose
//! manager is on another machine listens on every address, and says that it is where the manager sees it. Read next:
//! `server.rs`, how it answers there, and `session.rs`, the life of a referee or a player.

pub mod args;
pub mod card;
pub mod config;
pub mod registration;
pub mod server;
pub mod session;
pub mod storage;
pub mod terminal;

use crate::net::client::Client;
use crate::net::http;
use crate::net::log::{Level, Log};
use crate::net::sync::{lock, spawn};
use crate::program::args::{Args, Stop};
use crate::program::card::Cards;
use crate::program::config::Config;
use crate::program::terminal::say;
use crate::protocol::Kind;
use crate::wire::Endpoint;
use std::env;
use std::fs;
use std::io;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A program that has its configuration and its port, and answers nothing yet.
pub struct Program {
    /// Which of the three it is.
    pub kind: Kind,
    /// The command line.
    pub args: Args,
    /// The files.
    pub config: Config,
    /// The folder of what must survive.
    pub data: PathBuf,
    /// The URL of the manager.
    pub manager: String,
    /// The URL under which others reach us.
    pub endpoint: String,
    /// The port on which we listen.
    pub port: u16,
    /// How we speak.
    pub client: Arc<Client>,
    /// When we began.
    pub started: Instant,
    /// Where we listen, until somebody answers there.
    listener: Mutex<Option<TcpListener>>,
    /// Where we listen, as a person writes it.
    address: String,
    /// The addresses under which browsers may call us.
    own: Vec<Endpoint>,
}

impl Program {
    /// Reads the configuration and takes a port; until it has a better name the program signs as `sender`.
    pub fn new(args: Args, kind: Kind, sender: &str) -> Result<Program, Stop> {
        let config = load(&args)?;
        Program::with(args, config, kind, sender)
    }

    /// The same with a configuration that was read before.
    pub fn with(args: Args, config: Config, kind: Kind, sender: &str) -> Result<Program, Stop> {
        operator_token(&args)?; // a file that is not there is said at once
        let manager = manager(&args, &config);
        let is_near = kind == Kind::Manager || is_here(&manager);
        let all = if is_near { "127.0.0.1" } else { "0.0.0.0" };
        let host = args.text("--host").unwrap_or(all).to_string();
        let name = host_name(&args, &config, (!is_near).then_some(&*manager))?;
        let listener = listen(&args, &config, kind, &host)?;
        let port = listener.local_addr()?.port();
        let given = args.text("--contact-endpoint").map(String::from);
        let endpoint = given.unwrap_or(format!("http://{name}:{port}/mcp"));
        let base_host = &config.system.network.base_host;
        let mut own = Vec::new();
        for host in ["127.0.0.1", "[::1]", &host, base_host] {
            own.extend(Endpoint::parse(&format!("http://{host}:{port}/")));
        }
        own.extend(Endpoint::parse(&endpoint));
        let shown = if host == "127.0.0.1" {
            "localhost"
        } else {
            &host
        };
        if folder(&args).is_none() {
            say(
                "no folder config is here: the built-in configuration holds (--config DIR names another)",
            );
        }
        let log = log(&args, sender);
        Ok(Program {
            kind,
            data: args.text("--data").unwrap_or("data").into(),
            client: Arc::new(Client::new(sender, log)),
            started: Instant::now(),
            listener: Mutex::new(Some(listener)),
            address: format!("http://{shown}:{port}/mcp"),
            own,
            manager,
            endpoint,
            port,
            config,
            args,
        })
    }

    /// The league that the program is for.
    pub fn league_id(&self) -> &str {
        &self.config.league.league_id
    }

    /// The cards in our data folder.
    pub fn cards(&self) -> Cards<'_> {
        Cards {
            data: &self.data,
            league_id: self.league_id(),
            manager: &self.manager,
            endpoint: &self.endpoint,
        }
    }

    /// Where to listen; it can be had once.
    pub fn listener(&self) -> Result<TcpListener, Stop> {
        let listener = lock(&self.listener).take();
        listener.ok_or_else(|| Stop::failed("serves already"))
    }

    /// The program's log.
    pub fn log(&self) -> &Log {
        &self.client.log
    }

    /// Becomes the same program anew, on the port that it has; comes back only if that fails.
    pub fn start_anew(&self) -> Stop {
        start_anew(self.port, self.log())
    }

    /// Logs how the program ends.
    pub fn note_end(&self, end: &Result<(), Stop>) {
        match end {
            Ok(()) => self
                .log()
                .orchestrator(Level::Info, "ended", "the league is over"),
            Err(Stop(_, why)) => self.log().orchestrator(Level::Error, "ended", &**why),
        }
    }
}

/// Has the program that listens on a port take its own place: the same command without `--fresh`, so that it goes on
/// with what it has on its disk. Comes back only if that fails.
pub fn start_anew(port: u16, log: &Log) -> Stop {
    let exe = match env::current_exe() {
        Ok(exe) => exe,
        Err(error) => return error.into(),
    };
    let mut command = Command::new(exe);
    command.args(env::args_os().skip(1).filter(|it| it != "--fresh"));
    command.args(["--port", &port.to_string()]);
    log.orchestrator(Level::Info, "ended", "a new one takes its place");
    #[cfg(unix)]
    return std::os::unix::process::CommandExt::exec(&mut command).into();
    #[cfg(not(unix))]
    Stop::failed("this system cannot do that; start the program once more: it opens a new lobby")
}

/// Whether a manager is on this machine, by its URL.
fn is_here(manager: &str) -> bool {
    Endpoint::parse(manager).is_ok_and(|manager| manager.is_loopback())
}

/// The host as which others reach us: as the configuration says, or, where the manager is `far`, the address by which
/// the manager sees us. `--contact-endpoint` overrules it, and must, where `--host` means every address.
fn host_name(args: &Args, config: &Config, far: Option<&str>) -> Result<String, Stop> {
    let base_host = config.system.network.base_host.clone();
    let remedy = "say with --contact-endpoint URL where others reach us";
    let (host, contact) = (args.text("--host"), args.text("--contact-endpoint"));
    let why = match (contact.map(Endpoint::parse), host, far) {
        (Some(Err(legal)), ..) => format!("--contact-endpoint: got {contact:?}, expected {legal}"),
        (None, Some(all @ ("0.0.0.0" | "::" | "[::]")), _) => {
            format!("--host {all} means every address: {remedy}")
        }
        (None, None, Some(manager)) => match own_address_towards(manager) {
            Ok(own) => return Ok(own),
            Err(error) => format!("--manager {manager}: {error}; name another, or {remedy}"),
        },
        _ => return Ok(base_host),
    };
    Err(Stop::usage(why))
}

/// The address that this machine has on its way to the manager. Nothing is sent.
fn own_address_towards(manager: &str) -> io::Result<String> {
    let manager = Endpoint::parse(manager).map_err(io::Error::other)?;
    let host = manager.host.trim_matches(['[', ']']);
    let own = |any: &str| {
        let socket = UdpSocket::bind(any)?;
        socket.connect((host, manager.port))?;
        socket.local_addr()
    };
    Ok(match own("0.0.0.0:0").or_else(|_| own("[::]:0"))?.ip() {
        IpAddr::V4(own) => own.to_string(),
        IpAddr::V6(own) => format!("[{own}]"),
    })
}

/// The option that names the id of a referee or a player.
pub fn id_option(kind: Kind) -> &'static str {
    if kind == Kind::Referee {
        "--referee-id"
    } else {
        "--player-id"
    }
}

/// The folder of logs that the command line names.
pub fn logs(args: &Args) -> PathBuf {
    args.text("--logs").unwrap_or("logs").into()
}

/// A log in that folder.
pub fn log(args: &Args, component: &str) -> Arc<Log> {
    Arc::new(Log::new(&logs(args), component))
}

/// The folder of the configuration: the one that the command line names, or `config`, if there is one.
fn folder(args: &Args) -> Option<&Path> {
    let default = Path::new("config");
    let found = Some(default).filter(|folder| folder.is_dir());
    args.text("--config").map(Path::new).or(found)
}

/// The configuration that the command line names.
pub fn load(args: &Args) -> Result<Config, Stop> {
    if let Some(url) = args.text("--manager") {
        Endpoint::parse(url)
            .map_err(|legal| Stop::usage(format!("--manager: got {url:?}, expected {legal}")))?;
    }
    Config::load(folder(args), args.text("--league-id")).map_err(Stop::usage)
}

/// The URL of the manager: `--manager`, else as listed. A bare address gets its `/mcp`.
pub fn manager(args: &Args, config: &Config) -> String {
    let listed = &config.agents.league_manager.endpoint.0;
    let url = args.text("--manager").unwrap_or(listed);
    let url = url.trim_end_matches('/');
    let is_bare = url.matches('/').count() == 2;
    format!("{url}{}", if is_bare { "/mcp" } else { "" })
}

/// The operator token, if a file with it was named.
pub fn operator_token(args: &Args) -> Result<Option<String>, Stop> {
    let Some(path) = args.text("--operator-token-file") else {
        return Ok(None);
    };
    let token = fs::read_to_string(path)
        .map_err(|error| Stop::usage(format!("--operator-token-file {path}: {error}")))?;
    Ok(Some(token.trim().to_string()))
}

/// Ends the program when its standard input closes, if the command line says so; `last` comes before.
pub fn end_with_stdin(args: &Args, code: i32, last: impl FnOnce() + Send + 'static) {
    if args.has("--until-stdin-closes") {
        spawn("stdin", move || {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            last();
            process::exit(code);
        });
    }
}

/// Takes the given port; else the listed one; else the first free one of the range.
fn listen(args: &Args, config: &Config, kind: Kind, host: &str) -> Result<TcpListener, Stop> {
    let port_of = |url: &str| Endpoint::parse(url).ok().map(|endpoint| endpoint.port);
    let listed = match kind {
        Kind::Manager => Some(config.system.network.default_league_manager_port),
        kind => args
            .text(id_option(kind))
            .and_then(|id| port_of(config.agent(kind, id).url())),
    };
    if let Some(port) = args.number("--port")?.or(listed) {
        let with_make = match args.word {
            Some("local") => ", or make league PORT=N",
            _ => "",
        };
        let or_any = |why: String| match args.has("--any-port") {
            true => http::listen(host, 0),
            false => Err(why + with_make),
        };
        return http::listen(host, port)
            .or_else(or_any)
            .map_err(Stop::usage);
    }
    http::listen(host, 0).map_err(Stop::usage)?; // a host that is not ours must not look like ports in use
    let (first, last) = config.port_range(kind);
    let is_listed = |port| {
        config
            .listed()
            .any(|(_, entry)| port_of(entry.url()) == Some(port))
    };
    let mut unlisted = (first..=last).filter(|port| !is_listed(*port));
    let any = || args.has("--any-port").then(|| http::listen(host, 0).ok());
    let free = unlisted.find_map(|port| http::listen(host, port).ok());
    free.or_else(|| any().flatten()).ok_or_else(|| {
        let remedy = "choose another with --port N";
        Stop::usage(format!("ports {first} to {last} are all in use; {remedy}"))
    })
}
