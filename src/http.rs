//! Bytes in, bytes out: every fact about tiny_http and ureq lives here.
//!
//! tiny_http is small and blocking, and has edges that this file files off:
//! - Kept-alive connections starve each other in its pool, so every response says `Connection: close`. Its own
//!   `Response` drops that header, so we write the response ourselves, in one write (two meet Nagle's 40 ms).
//! - Dropping a request makes it allocate what the client *claims* is left of the body, and read it. A claim over
//!   16 MiB is forgotten instead: one connection leaked for good, not a dead league.
//! - Its accept thread can die of a missing descriptor or thread, sometimes by a panic that nobody sees. We count
//!   panics of unnamed threads (ours are all named), and build a new server on the same listener after a pause.
//!   Panics in its `client.rs` are of workers, whose clients have gone: they do not count.
//! - It has no read timeout: a slow client holds a thread. That is why agents listen on 127.0.0.1 by default.
//!
//! ureq is told to follow nothing, keep nothing and look at no proxy; its errors become a `Trouble` that says
//! whose fault it was. Read next: `rpc.rs`, which gives the bytes a meaning.

use crate::{
    endpoint::Endpoint,
    threads::{lock, spawn},
};
use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, TcpListener},
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, Once,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};
use tiny_http::{Method, Request, Server};

/// How long a broken server rests before the next is built.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the server looks whether its accept thread still lives.
const LOOK: Duration = Duration::from_millis(250);
/// How long the connections of a broken server are still served after the last request.
const DRAIN: Duration = Duration::from_secs(60);
/// A body that claims to be longer is not even read past.
const ABSURD: usize = 16 << 20;

/// A POST to `/mcp`.
pub struct Call {
    /// The body; not necessarily text.
    pub body: Vec<u8>,
    /// Where it came from.
    pub peer: IpAddr,
    /// The header of a browser that another page has sent.
    pub origin: Option<String>,
    /// The header `Mcp-Protocol-Version`.
    pub mcp_version: Option<String>,
}

/// What goes back: a status with its reason phrase, and JSON or nothing.
pub struct Reply(pub &'static str, pub String);

/// What stands behind the server.
pub trait Service: Send + Sync + 'static {
    /// Answers a call.
    fn call(&self, call: Call) -> Reply;
    /// `GET /health`, as JSON.
    fn health(&self) -> String;
    /// Told when something of our own broke: a panic, no thread, no descriptor.
    fn fault(&self, what: &str);
}

/// How many requests are in our hands, so that a program can end when they are answered.
#[derive(Default)]
pub struct Door {
    inside: Mutex<usize>,
    left: Condvar,
}

impl Door {
    fn count(&self) -> MutexGuard<'_, usize> {
        lock(&self.inside)
    }

    /// Waits until no request is being answered, at most so long.
    pub fn wait_until_empty(&self, limit: Duration) {
        let _ = self.left.wait_timeout_while(self.count(), limit, |inside| *inside > 0);
    }
}

/// Panics in threads that are not ours.
static STRANGE_PANICS: AtomicUsize = AtomicUsize::new(0);

/// Listens, or says in one line why not and what to do.
pub fn listen(host: &str, port: u16) -> Result<TcpListener, String> {
    TcpListener::bind((host, port)).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("port {port} is in use; end the program that has it, or choose another with --port N (0: any)")
        }
        io::ErrorKind::PermissionDenied => format!("port {port}: {error}; choose another with --port N (0: any)"),
        _ => format!("cannot listen on {host}: {error}; --host is an address of this machine"),
    })
}

/// Serves from now on, in threads of its own. Bodies over `max_body` bytes get a 413.
pub fn serve(listener: TcpListener, max_body: usize, service: Arc<dyn Service>) -> io::Result<Arc<Door>> {
    static HOOK: Once = Once::new();
    let watcher = Arc::clone(&service);
    HOOK.call_once(|| {
        panic::set_hook(Box::new(move |info| {
            watcher.fault(&info.to_string().replace('\n', " "));
            let of_worker = info.location().is_some_and(|at| at.file().ends_with("client.rs"));
            if thread::current().name().is_none() && !of_worker {
                STRANGE_PANICS.fetch_add(1, Ordering::SeqCst);
            }
        }));
    });
    let door = Arc::new(Door::default());
    let shared = Arc::new(Shared { service, max_body, door: Arc::clone(&door) });
    thread::Builder::new().name("accept".into()).spawn(move || accept(&listener, &shared))?;
    Ok(door)
}

struct Shared {
    service: Arc<dyn Service>,
    max_body: usize,
    door: Arc<Door>,
}

/// One server after the other, for ever: each until its accept thread is gone.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let panics = STRANGE_PANICS.load(Ordering::SeqCst);
        // Building spawns threads and takes descriptors: both can be refused just now.
        let built = panic::catch_unwind(|| Server::from_listener(listener.try_clone()?, None));
        if let Ok(Ok(server)) = built {
            let lost = loop {
                // Looked at before every request: a client that keeps its connection busy must not hide the panic.
                if STRANGE_PANICS.load(Ordering::SeqCst) != panics {
                    break "its accept thread may have panicked".to_string();
                }
                match server.recv_timeout(LOOK) {
                    Ok(Some(request)) => in_a_thread(request, shared),
                    Ok(None) => {}
                    Err(error) => break error.to_string(),
                }
            };
            shared.service.fault(&format!("the server is built anew: {lost}"));
            // It accepts no more; the connections it has accepted are still served.
            let shared = Arc::clone(shared);
            spawn("drain", move || {
                while let Ok(Some(request)) = server.recv_timeout(DRAIN) {
                    in_a_thread(request, &shared);
                }
            });
        }
        thread::sleep(PAUSE);
    }
}

/// Answers a request in a thread of its own, and counts it while it is in our hands.
fn in_a_thread(request: Request, shared: &Arc<Shared>) {
    if request.body_length().is_some_and(|claimed| claimed > ABSURD) {
        return std::mem::forget(request);
    }
    let here = Arc::clone(shared);
    *shared.door.count() += 1;
    let started = spawn("request", move || {
        let answered = panic::catch_unwind(AssertUnwindSafe(|| answer(request, &here)));
        *here.door.count() -= 1;
        here.door.left.notify_all();
        drop(answered); // a panic was reported by the hook
    });
    if !started {
        *shared.door.count() -= 1;
        shared.service.fault("no thread for a request");
    }
}

fn answer(mut request: Request, shared: &Shared) {
    let (path, method) = (request.url().split('?').next().unwrap_or_default().to_string(), request.method().clone());
    let reply = match (path.as_str(), method) {
        ("/mcp", Method::Post) => post(&mut request, shared),
        ("/health", Method::Get) => Reply("200 OK", shared.service.health()),
        ("/mcp" | "/health", _) => Reply("405 Method Not Allowed", String::new()),
        _ => Reply("404 Not Found", String::new()),
    };
    let Reply(status, body) = reply;
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let mut writer = request.into_writer();
    let _ = writer.write_all(text.as_bytes()).and_then(|()| writer.flush());
}

fn post(request: &mut Request, shared: &Shared) -> Reply {
    let header = |wanted: &'static str| {
        let found = request.headers().iter().find(|header| header.field.equiv(wanted));
        found.map(|header| header.value.as_str().to_string())
    };
    let (origin, mcp_version) = (header("Origin"), header("Mcp-Protocol-Version"));
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let peer = request.remote_addr().map_or(unknown, |address| address.ip().to_canonical());
    let (claimed, limit) = (request.body_length(), shared.max_body);
    if claimed.is_some_and(|claimed| claimed > limit) {
        return Reply("413 Content Too Large", String::new());
    }
    let mut body = Vec::new();
    let read = request.as_reader().take(limit as u64 + 1).read_to_end(&mut body);
    match read {
        Ok(length) if length > limit => Reply("413 Content Too Large", String::new()),
        Ok(length) if claimed.is_none_or(|claimed| claimed == length) => {
            shared.service.call(Call { body, peer, origin, mcp_version })
        }
        _ => Reply("400 Bad Request", String::new()), // cut short, or broken chunks
    }
}

/// Why no answer came.
#[derive(Debug, Clone, PartialEq)]
pub enum Trouble {
    /// Not within the limit (E001).
    Late,
    /// No connection, a broken one, or an answer without end (E009).
    Unreachable(String),
    /// Somebody is there, and answers with a status other than 200 (E009).
    Status(u16),
    /// Our own machine has no descriptor, thread or port left: never the peer's fault.
    Ours(String),
}

/// Calls other agents.
pub struct Client(ureq::Agent);

impl Default for Client {
    fn default() -> Client {
        let config = ureq::Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_idle_connections(0)
            .input_buffer_size(8 << 10)
            .output_buffer_size(8 << 10)
            .user_agent("even-odd-league");
        Client(config.build().into())
    }
}

impl Client {
    /// Posts JSON and returns the body of the answer, which must be a 200 of at most `max` bytes within `limit`.
    pub fn post(&self, to: &Endpoint, body: &str, limit: Duration, max: u64) -> Result<Vec<u8>, Trouble> {
        // Both, for MCP servers that insist (2025-11-25, Streamable HTTP); plain agents ignore it.
        let request = self.0.post(to.to_string()).header("Accept", "application/json, text/event-stream");
        let request = request.content_type("application/json");
        finish(request.config().timeout_global(Some(limit)).build().send(body), max)
    }

    /// Gets a page, under the same conditions.
    pub fn get(&self, from: &Endpoint, limit: Duration, max: u64) -> Result<Vec<u8>, Trouble> {
        finish(self.0.get(from.to_string()).config().timeout_global(Some(limit)).build().call(), max)
    }
}

/// The body of a good answer, read to its end.
fn finish(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>, max: u64) -> Result<Vec<u8>, Trouble> {
    let mut response = response.map_err(trouble)?;
    if response.status() != 200 {
        return Err(Trouble::Status(response.status().as_u16()));
    }
    let body = response.body_mut().with_config().limit(max + 1).read_to_vec().map_err(trouble)?;
    if body.len() as u64 > max {
        Err(Trouble::Unreachable(format!("the answer is over {max} bytes")))
    } else {
        Ok(body)
    }
}

/// Whose fault it was that a call failed.
fn trouble(error: ureq::Error) -> Trouble {
    // No memory, no descriptors (of the system, of the process), no ports, no buffers.
    let spent = |error: &io::Error| matches!(error.raw_os_error(), Some(12 | 23 | 24 | 99 | 105));
    match error {
        ureq::Error::Timeout(_) => Trouble::Late,
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => Trouble::Late,
        ureq::Error::Io(error) if spent(&error) => Trouble::Ours(error.to_string()),
        // A missing descriptor hides behind other errors too: try to open one before blaming the peer.
        error => match TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) {
            Ok(_) => Trouble::Unreachable(error.to_string().trim_start_matches("io: ").into()),
            Err(ours) => Trouble::Ours(ours.to_string()),
        },
    }
}
