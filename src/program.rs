//! What every program is made of: it reads its options and files, and takes a port. `server` answers on it; `session`
//! is the life of a referee or a player, `registration` how it joins a league.

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
use crate::protocol::Kind;
use crate::wire::Endpoint;
use std::env;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A program that has its configuration and its port, and answers nothing yet.
pub struct Program {
    /// Which of the three.
    pub kind: Kind,
    /// The command line.
    pub args: Args,
    /// The files.
    pub config: Config,
    /// What must survive.
    pub data: PathBuf,
    /// Where others reach us.
    pub endpoint: String,
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
        operator_token(&args)?; // a file that is not there is said at once
        let host = args.text("--host").unwrap_or("127.0.0.1");
        let listener = listen(&args, &config, kind, host)?;
        let port = listener.local_addr()?.port();
        let base_host = &config.system.network.base_host.0;
        let endpoint = match args.text("--contact-endpoint") {
            Some(given) => given.to_string(),
            None if matches!(host, "0.0.0.0" | "::" | "[::]") => {
                let where_then = "say with --contact-endpoint URL where others reach us";
                return Err(Stop::usage(format!(
                    "--host {host} means every address: {where_then}"
                )));
            }
            None => format!("http://{base_host}:{port}/mcp"),
        };
        let parsed = |url: &str| {
            let wrong =
                |legal| Stop::usage(format!("--contact-endpoint: got {url:?}, expected {legal}"));
            Endpoint::parse(url).map_err(wrong)
        };
        let base = parsed(&format!("http://{base_host}:{port}/"))?;
        let hosts = ["127.0.0.1", "[::1]", host].map(|host| format!("http://{host}:{port}/"));
        let mut own = vec![parsed(&endpoint)?, base];
        own.extend(hosts.iter().filter_map(|url| Endpoint::parse(url).ok()));
        let shown = if host == "127.0.0.1" {
            "localhost"
        } else {
            host
        };
        Ok(Program {
            kind,
            data: args.text("--data").unwrap_or("data").into(),
            client: Arc::new(Client::new(sender, log(&args, sender))),
            started: Instant::now(),
            listener: Mutex::new(Some(listener)),
            address: format!("http://{shown}:{port}/mcp"),
            own,
            endpoint,
            config,
            args,
        })
    }

    /// The league that the program is for.
    pub fn league_id(&self) -> &str {
        &self.config.league.league_id
    }

    /// Where the manager is: `--manager`, else as listed.
    pub fn manager(&self) -> &str {
        manager(&self.args, &self.config)
    }

    /// The cards in our data folder.
    pub fn cards(&self) -> Cards<'_> {
        let (league_id, manager) = (self.league_id(), self.manager());
        Cards {
            data: &self.data,
            league_id,
            manager,
            endpoint: &self.endpoint,
        }
    }

    /// Where to listen; it can be had once.
    pub fn listener(&self) -> Result<TcpListener, Stop> {
        lock(&self.listener)
            .take()
            .ok_or_else(|| Stop::failed("serves already"))
    }

    /// The program's log.
    pub fn log(&self) -> &Log {
        &self.client.log
    }

    /// Becomes the same program anew, on the port that it has; comes back only if that fails.
    pub fn start_anew(&self) -> Stop {
        start_anew(&self.address, self.log())
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

/// Has the program that listens at `address` take its own place: the same command without `--fresh`, so that it goes on
/// with what it has on its disk. Comes back only if that fails.
pub fn start_anew(address: &str, log: &Log) -> Stop {
    let port = Endpoint::parse(address).map_or(0, |endpoint| endpoint.port);
    let exe = match env::current_exe() {
        Ok(exe) => exe,
        Err(error) => return error.into(),
    };
    let mut command = Command::new(exe);
    command
        .args(env::args_os().skip(1).filter(|it| it != "--fresh"))
        .args(["--port", &port.to_string()]);
    log.orchestrator(Level::Info, "ended", "a new one takes its place");
    #[cfg(unix)]
    return std::os::unix::process::CommandExt::exec(&mut command).into();
    #[cfg(not(unix))]
    Stop::failed("this system cannot do that; start the program once more: it opens a new lobby")
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

/// The configuration that the command line names.
pub fn load(args: &Args) -> Result<Config, Stop> {
    if let Some(url) = args.text("--manager") {
        Endpoint::parse(url)
            .map_err(|legal| Stop::usage(format!("--manager: got {url:?}, expected {legal}")))?;
    }
    let folder = Path::new(args.text("--config").unwrap_or("config"));
    Config::load(folder, args.text("--league-id")).map_err(Stop::usage)
}

/// Where the manager is: `--manager`, else as listed.
pub fn manager<'a>(args: &'a Args, config: &'a Config) -> &'a str {
    args.text("--manager")
        .unwrap_or(&config.agents.league_manager.endpoint.0)
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
    let listed = match kind {
        Kind::Manager => Some(config.system.network.default_league_manager_port),
        kind => args
            .text(id_option(kind))
            .and_then(|id| config.listed_port(kind, id)),
    };
    if let Some(port) = args.number("--port")?.or(listed) {
        let with_make = if args.word == Some("local") {
            ", or make league PORT=N"
        } else {
            ""
        };
        return http::listen(host, port).map_err(|why| Stop::usage(why + with_make));
    }
    http::listen(host, 0).map_err(Stop::usage)?; // a host that is not ours must not look like ports in use
    let [first, last] = config.port_range(kind);
    let mut unlisted = (first..=last).filter(|port| !config.is_listed_port(*port));
    let free = unlisted.find_map(|port| http::listen(host, port).ok());
    let free = free.or_else(|| {
        args.has("--any-port")
            .then(|| http::listen(host, 0).ok())
            .flatten()
    });
    free.ok_or_else(|| {
        Stop::usage(format!(
            "ports {first} to {last} are all in use; choose another with --port N"
        ))
    })
}
