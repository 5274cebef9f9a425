//! What every program is made of: its options and its files, and the port that it takes.
//!
//! A program first reads what its user has written and refuses what is wrong; only then it takes a
//! port. An agent whose manager is on another machine listens on every address, and says that it is
//! where the manager sees it. Read next: `server.rs`, how it answers there, and `session.rs`, the
//! life of a referee or a player.

pub mod args;
pub mod card;
pub mod config;
pub mod files;
pub mod registration;
pub mod server;
pub mod session;
pub mod storage;
pub mod terminal;

use crate::net::client::Client;
use crate::net::http;
use crate::net::log::{Level, Log};
use crate::net::sync::spawn;
use crate::program::args::{Args, Stop};
use crate::program::config::{AgentEntry, Config};
use crate::program::terminal::say;
use crate::protocol::Kind;
use crate::wire::{Endpoint, Plain, Url};
use std::fs;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::time::Instant;

/// A program that has its configuration and its port, and answers nothing yet.
pub struct Program {
    /// Which of the three it is.
    pub kind: Kind,
    /// The command line.
    pub args: Args,
    /// The files.
    pub config: Config,
    /// The id that a referee or a player asks for.
    pub wish: Option<String>,
    /// What a referee or a player is: as asked for, as listed, or by default.
    pub entry: AgentEntry,
    /// What makes a league, a draw or a choice repeatable.
    pub seed: Option<u64>,
    /// What shows that the operator has let us in.
    pub operator_token: Option<String>,
    /// The folder of what must survive.
    pub data: PathBuf,
    /// The URL under which others reach us.
    pub endpoint: String,
    /// The port on which we listen.
    pub port: u16,
    /// Where we listen.
    pub listener: TcpListener,
    /// How we speak.
    pub client: Arc<Client>,
    /// When we began.
    pub started: Instant,
    /// Where we listen, as a person writes it.
    address: String,
}

impl Program {
    /// Reads the configuration and takes a port. Until it has a better name the program signs by
    /// the id that it asks for.
    pub fn new(args: Args, kind: Kind) -> Result<Program, Stop> {
        let config = load(&args)?;
        let operator_token = operator_token(&args)?;
        let wish = args.value::<Plain>(&format!("--{kind}-id"))?.map(|id| id.0);
        let id = wish.as_deref().unwrap_or("new");
        let sender = match kind {
            Kind::Manager => kind.to_string(),
            _ => format!("{kind}:{id}"),
        };
        let mut entry = config.agent(kind, id).clone();
        if let Some(name) = args.value("--display-name")? {
            entry.display_name = name;
        }
        let most = args.value("--max-concurrent-matches")?;
        let most = most.or(entry.max_concurrent_matches);
        entry.max_concurrent_matches = most.or(config.referee_defaults.max_concurrent_matches);
        let seed = args.value("--seed")?;
        let contact = args.value::<Url>("--contact-endpoint")?;
        let (host, name) = hosts(&args, &config, kind)?;
        let listener = listen(&args, &config, kind, &entry, &host)?;
        let port = listener.local_addr()?.port();
        let url = |host: &str| format!("http://{host}:{port}/mcp");
        if folder(&args).is_none() {
            let holds = "the built-in configuration holds (--config DIR names another)";
            say(&format!("no folder config is here: {holds}"));
        }
        Ok(Program {
            client: Arc::new(Client::new(&sender, log(&args, &sender))),
            data: data(&args),
            endpoint: contact.map_or(url(&name), |contact| contact.0),
            address: url(&host.replace("127.0.0.1", "localhost")),
            started: Instant::now(),
            kind,
            args,
            config,
            wish,
            entry,
            seed,
            operator_token,
            port,
            listener,
        })
    }

    /// The league that the program is for.
    pub fn league_id(&self) -> &str {
        &self.config.league.league_id
    }

    /// How many matches a referee plays at once.
    pub fn at_once(&self) -> u32 {
        self.entry.max_concurrent_matches.map_or(1, |most| most.0)
    }

    /// The program's log.
    pub fn log(&self) -> &Log {
        &self.client.log
    }

    /// Logs how the program ends.
    pub fn note_end(&self, end: &Result<(), Stop>) {
        let (level, words) = match end {
            Ok(()) => (Level::Info, "the league is over"),
            Err(Stop(_, why)) => (Level::Error, &**why),
        };
        self.log().orchestrator(level, "ended", words);
    }
}

/// The host on which we listen, and the one as which others reach us unless `--contact-endpoint`
/// says it: as the configuration names us, or, where the manager is on another machine, the address
/// by which the manager sees us.
fn hosts(args: &Args, config: &Config, kind: Kind) -> Result<(String, String), Stop> {
    let url = config.manager();
    let remedy = "say with --contact-endpoint URL where others reach us";
    let base_host = config.system.network.base_host.clone();
    let manager = Endpoint::parse(url).map_err(Stop::usage)?;
    let is_near = kind == Kind::Manager || manager.is_loopback();
    let usual = if is_near { "127.0.0.1" } else { "0.0.0.0" };
    let host = args.text("--host");
    let name = match host {
        _ if args.has("--contact-endpoint") => base_host,
        Some(all @ ("0.0.0.0" | "::" | "[::]")) => {
            let why = format!("--host {all} means every address: {remedy}");
            return Err(Stop::usage(why));
        }
        _ if is_near => base_host,
        _ => own_address_towards(&manager.host, manager.port).map_err(|error| {
            let why = format!("--manager {url}: {error}; name another, or {remedy}");
            Stop::usage(why)
        })?,
    };
    Ok((host.unwrap_or(usual).into(), name))
}

/// The address that this machine has on its way to another. Nothing is sent.
pub fn own_address_towards(host: &str, port: u16) -> io::Result<String> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((host, port))?;
    Ok(socket.local_addr()?.ip().to_string())
}

/// The folder of what must survive that the command line names.
pub fn data(args: &Args) -> PathBuf {
    args.text("--data").unwrap_or("data").into()
}

/// The folder of logs that the command line names.
pub fn logs(args: &Args) -> PathBuf {
    args.text("--logs").unwrap_or("logs").into()
}

/// A log in that folder.
pub fn log(args: &Args, component: &str) -> Arc<Log> {
    Arc::new(Log::new(&logs(args), component))
}

/// The folder of the configuration: the one that the command line names, or `config`, if there is
/// one.
fn folder(args: &Args) -> Option<&Path> {
    let default = Path::new("config");
    let found = Some(default).filter(|folder| folder.is_dir());
    args.text("--config").map(Path::new).or(found)
}

/// The configuration that the command line names, with the manager where `--manager` says. A bare
/// address gets its `/mcp`.
pub fn load(args: &Args) -> Result<Config, Stop> {
    let given = args.value::<Url>("--manager")?;
    let league_id = args.value("--league-id")?;
    let mut config = Config::load(folder(args), league_id).map_err(Stop::usage)?;
    let manager = &mut config.agents.league_manager.endpoint;
    let url = given.as_ref().unwrap_or(manager).0.trim_end_matches('/');
    let is_bare = url.matches('/').count() == 2;
    *manager = Url(format!("{url}{}", if is_bare { "/mcp" } else { "" }));
    Ok(config)
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

/// Ends the program when its standard input closes, if the command line says so; `last` comes
/// before.
pub fn end_with_stdin(args: &Args, code: i32, last: impl FnOnce() + Send + 'static) {
    if args.has("--until-stdin-closes") {
        spawn("stdin", move || {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            last();
            process::exit(code);
        });
    }
}

/// Takes the given port; else the one that the files name for this program, which for a manager is
/// `default_league_manager_port`; else the first free one of the range that no list names.
fn listen(
    args: &Args,
    config: &Config,
    kind: Kind,
    entry: &AgentEntry,
    host: &str,
) -> Result<TcpListener, Stop> {
    let port_of = |entry: &AgentEntry| Some(Endpoint::parse(entry.url()).ok()?.port);
    let listed = match kind {
        Kind::Manager => Some(config.system.network.default_league_manager_port),
        _ => port_of(entry),
    };
    let mut ports: Vec<u16> = match args.value("--port")?.or(listed) {
        Some(port) => vec![port],
        None => {
            let listed = config.agents.referees.iter().chain(&config.agents.players);
            let taken: Vec<_> = listed.map(port_of).collect();
            let is_free = |port: &u16| !taken.contains(&Some(*port));
            config.port_range(kind).filter(is_free).collect()
        }
    };
    ports.extend(args.has("--any-port").then_some(0));
    let mut failed = "all ports of the range are others'; choose one with --port N".to_string();
    for port in ports {
        match http::listen(host, port) {
            Ok(listener) => return Ok(listener),
            Err(why) => failed = why,
        }
    }
    let with_make = match args.word {
        Some("local") => ", or make league PORT=N",
        _ => "",
    };
    Err(Stop::usage(failed + with_make))
}
