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
use std::net::{TcpListener, ToSocketAddrs, UdpSocket};
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
    /// The names under which browsers may call us.
    own_hosts: Vec<String>,
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
        let place = Place::of(&args, &config, kind, &manager)?;
        let listener = listen(&args, &config, kind, &place.listens_at)?;
        let port = listener.local_addr()?.port();
        let given = args.text("--contact-endpoint").map(String::from);
        let endpoint = given.unwrap_or(format!("http://{}:{port}/mcp", place.is_called));
        let contact = Endpoint::parse(&endpoint).map(|endpoint| endpoint.host);
        let base_host = Endpoint::parse(&format!("http://{}/", config.system.network.base_host));
        let mut own_hosts = vec!["127.0.0.1".into(), "[::1]".into(), place.listens_at.clone()];
        own_hosts.extend(contact);
        own_hosts.extend(base_host.map(|base| base.host));
        let shown = match &*place.listens_at {
            "127.0.0.1" => "localhost",
            host => host,
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
            client: Arc::new(Client::new(sender, config.match_limit(), log)),
            started: Instant::now(),
            listener: Mutex::new(Some(listener)),
            address: format!("http://{shown}:{port}/mcp"),
            own_hosts,
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
        let exe = match env::current_exe() {
            Ok(exe) => exe,
            Err(error) => return error.into(),
        };
        let mut command = Command::new(exe);
        command.args(env::args_os().skip(1));
        command.args(["--port", &self.port.to_string()]);
        self.log()
            .orchestrator(Level::Info, "ended", "a new one takes its place");
        #[cfg(unix)]
        return std::os::unix::process::CommandExt::exec(&mut command).into();
        #[cfg(not(unix))]
        Stop::failed(
            "this system cannot do that; start the program once more: it opens a new lobby",
        )
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

/// Where a program listens, and as what host others call it there.
struct Place {
    listens_at: String,
    is_called: String,
}

impl Place {
    /// `--host` decides where we listen. Without it we listen on this machine alone, or, if the manager is on another
    /// one, on every address, and are called as the connection to the manager shows us.
    fn of(args: &Args, config: &Config, kind: Kind, manager: &str) -> Result<Place, Stop> {
        let illegal = |option: &str, why: String| Err(Stop::usage(format!("{option} {why}")));
        let given = args.text("--contact-endpoint");
        if let Some(Err(legal)) = given.map(Endpoint::parse) {
            return illegal(
                "--contact-endpoint:",
                format!("got {given:?}, expected {legal}"),
            );
        }
        let base_host = config.system.network.base_host.clone();
        let place = |listens_at: &str, is_called| Place {
            listens_at: listens_at.into(),
            is_called,
        };
        match args.text("--host") {
            Some(host @ ("0.0.0.0" | "::" | "[::]")) if given.is_none() => {
                let remedy = "say with --contact-endpoint URL where others reach us";
                illegal("--host", format!("{host} means every address: {remedy}"))
            }
            Some(host) => Ok(place(host, base_host)),
            None if kind == Kind::Manager || is_here(manager) => Ok(place("127.0.0.1", base_host)),
            None if given.is_some() => Ok(place("0.0.0.0", base_host)),
            None => match own_address_towards(manager) {
                Ok(own) => Ok(place("0.0.0.0", own)),
                Err(error) => {
                    let remedy = "or say with --contact-endpoint URL where others reach us";
                    illegal(
                        "--manager",
                        format!("{manager}: {error}; name another, {remedy}"),
                    )
                }
            },
        }
    }
}

/// Whether a manager is on this machine, by its URL.
fn is_here(manager: &str) -> bool {
    let host = Endpoint::parse(manager).map(|manager| manager.host);
    host.is_ok_and(|host| host.starts_with("127.") || host == "[::1]")
}

/// The address that this machine has on its way to the manager. Nothing is sent.
fn own_address_towards(manager: &str) -> io::Result<String> {
    let unknown = || io::Error::other("host unknown");
    let manager = Endpoint::parse(manager).map_err(io::Error::other)?;
    let host = manager.host.trim_matches(['[', ']']);
    let address = (host, manager.port).to_socket_addrs()?.next();
    let address = address.ok_or_else(unknown)?;
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    let own = socket.local_addr()?.ip();
    Ok(if own.is_ipv6() {
        format!("[{own}]")
    } else {
        own.to_string()
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
    let is_bare = url.trim_end_matches('/').matches('/').count() == 2;
    if is_bare {
        format!("{}/mcp", url.trim_end_matches('/'))
    } else {
        url.into()
    }
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
        return http::listen(host, port).map_err(|why| Stop::usage(why + with_make));
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
