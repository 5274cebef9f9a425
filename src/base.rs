//! What every program does first: read its options and files, take a port, answer.

use crate::{
    config::Config,
    dispatch::Agent,
    endpoint::Endpoint,
    http::{self, Door},
    log::{Level, Log},
    options::{Options, Stop},
    protocol::Kind,
    rpc::Served,
    screen::say,
    threads::{lock, spawn},
    voice::Voice,
};
use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Instant,
};

/// A program that has its configuration and its port, and answers nothing yet.
pub struct Base {
    /// The command line.
    pub options: Options,
    /// The files.
    pub config: Config,
    /// What must survive.
    pub data: PathBuf,
    /// Where others reach us.
    pub endpoint: String,
    /// How we speak.
    pub voice: Arc<Voice>,
    /// When we began.
    pub started: Instant,
    listener: Mutex<Option<TcpListener>>,
    address: String,
}

impl Base {
    /// Reads the configuration and takes a port; until it has a better name the program signs as `sender`.
    pub fn new(options: Options, kind: Kind, sender: &str) -> Result<Base, Stop> {
        let config = load(&options)?;
        let host = options.text("--host").unwrap_or("127.0.0.1");
        let listener = listen(&options, &config, kind, host)?;
        let port = listener.local_addr()?.port();
        let base_host = &config.network.base_host;
        let endpoint = match options.text("--contact-endpoint") {
            Some(given) => given.to_string(),
            None if matches!(host, "0.0.0.0" | "::" | "[::]") => {
                let where_then = "say with --contact-endpoint URL where others reach us";
                return Err(Stop::usage(format!("--host {host} means every address: {where_then}")));
            }
            None => format!("http://{base_host}:{port}/mcp"),
        };
        let host_of = |url: &str| {
            let legal = |legal| Stop::usage(format!("--contact-endpoint: got {url:?}, expected {legal}"));
            Endpoint::parse(url).map(|endpoint| endpoint.host).map_err(legal)
        };
        let base_host = host_of(&format!("http://{base_host}/"))?;
        let own_hosts = ["127.0.0.1".into(), "[::1]".into(), host.into(), base_host, host_of(&endpoint)?];
        let shown = if host == "127.0.0.1" { "localhost" } else { host };
        Ok(Base {
            data: options.text("--data").unwrap_or("data").into(),
            voice: Arc::new(Voice::new(sender, config.strict_envelope, own_hosts.into(), log(&options, sender))),
            started: Instant::now(),
            listener: Mutex::new(Some(listener)),
            address: format!("http://{shown}:{port}/mcp"),
            endpoint,
            config,
            options,
        })
    }

    /// Answers from now on, and says so on standard output. `max_body` is in bytes.
    pub fn serve(&self, agent: Arc<dyn Agent>, max_body: usize) -> Result<Arc<Door>, Stop> {
        let listener = lock(&self.listener).take().ok_or_else(|| Stop::failed("serves already"))?;
        let served = Arc::new(Served(agent));
        let door = http::serve(listener, max_body, served)?;
        say(&format!("listening on {}", self.address));
        self.voice.log.orchestrator(Level::Info, "started", &*self.address);
        if self.options.has("--until-stdin-closes") {
            let voice = Arc::clone(&self.voice);
            spawn("stdin", move || {
                let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
                voice.log.orchestrator(Level::Info, "ended", "standard input has closed");
                std::process::exit(0);
            });
        }
        Ok(door)
    }

    /// Logs how the program ends.
    pub fn note_end(&self, end: &Result<(), Stop>) {
        match end {
            Ok(()) => self.voice.log.orchestrator(Level::Info, "ended", "the league is over"),
            Err(Stop(_, why)) => self.voice.log.orchestrator(Level::Error, "ended", &**why),
        }
    }

    /// Where the manager is: `--manager`, else as listed.
    pub fn manager(&self) -> &str {
        manager(&self.options, &self.config)
    }
}

/// The option that names the id of a referee or a player.
pub fn id_option(kind: Kind) -> &'static str {
    if kind == Kind::Referee { "--referee-id" } else { "--player-id" }
}

/// A log in the folder that the options name.
pub fn log(options: &Options, component: &str) -> Arc<Log> {
    Arc::new(Log::new(Path::new(options.text("--logs").unwrap_or("logs")), component))
}

/// The configuration that the options name.
pub fn load(options: &Options) -> Result<Config, Stop> {
    if let Some(url) = options.text("--manager") {
        Endpoint::parse(url).map_err(|legal| Stop::usage(format!("--manager: got {url:?}, expected {legal}")))?;
    }
    let folder = Path::new(options.text("--config").unwrap_or("config"));
    Config::load(folder, options.text("--league-id")).map_err(Stop::usage)
}

/// Where the manager is: `--manager`, else as listed.
pub fn manager<'a>(options: &'a Options, config: &'a Config) -> &'a str {
    options.text("--manager").unwrap_or(&config.agents.league_manager.endpoint)
}

/// The operator token, if a file with it was named.
pub fn operator_token(options: &Options) -> Result<Option<String>, Stop> {
    let Some(path) = options.text("--operator-token-file") else { return Ok(None) };
    let token =
        fs::read_to_string(path).map_err(|error| Stop::usage(format!("--operator-token-file {path}: {error}")))?;
    Ok(Some(token.trim().to_string()))
}

/// Takes the given port; else the listed one; else the first free one of the range (R14).
fn listen(options: &Options, config: &Config, kind: Kind, host: &str) -> Result<TcpListener, Stop> {
    let listed = match kind {
        Kind::Manager => Some(config.network.default_league_manager_port),
        kind => config.listed_port(kind, options.text(id_option(kind))),
    };
    if let Some(port) = options.number("--port")?.or(listed) {
        let with_make = if options.word == Some("local") { ", or make league PORT=N" } else { "" };
        return http::listen(host, port).map_err(|why| Stop::usage(why + with_make));
    }
    http::listen(host, 0).map_err(Stop::usage)?; // a host that is not ours must not look like ports in use
    let (first, last) = config.port_range(kind);
    let mut unlisted = (first..=last).filter(|port| !config.is_listed_port(*port));
    let free = unlisted.find_map(|port| http::listen(host, port).ok());
    free.ok_or_else(|| Stop::usage(format!("ports {first} to {last} are all in use; choose another with --port N")))
}
