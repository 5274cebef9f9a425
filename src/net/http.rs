//! Bytes in, bytes out: every fact about tiny_http and ureq lives here.
//!
//! tiny_http is small and blocking, and has edges that this file files off:
//! - Kept-alive connections starve each other in its pool, so every response says `Connection: close`. Its own
//!   `Response` drops that header, so we write the response ourselves, in one write (two meet Nagle's 40 ms).
//! - Dropping a request makes it allocate what the client *claims* is left of the body, and read it, until the client
//!   closes: a hundred claims of 30 MB held 3 GB. So we read past the rest ourselves, a little at a time; when the
//!   client has closed the allocation lasts for a moment. One that the machine refuses would end the program, so a request with an absurd claim is forgotten
//!   instead: its connection is leaked for good, and the terminal says whose.
//! - Its accept thread can die of a missing descriptor or thread, sometimes by a panic that nobody sees. We count
//!   panics of unnamed threads (ours are all named), and build a new server on the same listener after a pause.
//!   Panics in its `client.rs` are of workers, whose clients have gone: they do not count.
//! - It has no read timeout: a slow client holds a thread. That is why agents listen on 127.0.0.1 by default.
//!
//! Read next: `rpc.rs`, which gives the bytes a meaning.

use crate::net::sync::{lock, spawn};
use std::{
    collections::HashSet,
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
use tiny_http::{Header, Method, Request, Server};

/// How long a broken server rests before the next is built.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the server looks whether its accept thread still lives.
const LOOK: Duration = Duration::from_millis(250);
/// How long the connections of a broken server are still served after the last request.
const DRAIN: Duration = Duration::from_secs(60);
/// A body that claims to be longer is not even read past. Every machine has so much to promise.
const ABSURD: usize = 256 << 20;

/// A POST to `/mcp`.
pub struct Call {
    /// The body; not necessarily text.
    pub body: Vec<u8>,
    /// Where it came from.
    pub peer: IpAddr,
    /// The headers, as they came.
    pub headers: Vec<(String, String)>,
}

impl Call {
    /// A header's value; case does not matter in its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    }
}

/// What goes back.
pub struct Reply {
    /// The status with its reason phrase.
    pub status: &'static str,
    /// More headers, each ended by a line break.
    pub headers: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// JSON, or nothing.
    pub fn new(status: &'static str, body: impl Into<String>) -> Reply {
        Reply { status, headers: "Content-Type: application/json\r\n".into(), body: body.into().into_bytes() }
    }

    /// Words for a person.
    pub fn text(status: &'static str, body: impl Into<String>) -> Reply {
        let headers = "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n".into();
        Reply { status, headers, body: body.into().into_bytes() }
    }
}

/// What stands behind the server.
pub trait Service: Send + Sync + 'static {
    /// Answers a call.
    fn call(&self, call: Call) -> Reply;
    /// A page to be got, `/health` for instance. `if_none_match`: the header of that name.
    fn page(&self, path: &str, peer: IpAddr, if_none_match: Option<&str>) -> Option<Reply>;
    /// Told when something of our own broke: a panic, no thread, no descriptor.
    fn fault(&self, what: &str);
    /// Told when a peer does harm that we cannot undo, once for each address: for the person at the terminal.
    fn alarm(&self, what: &str);
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
    let shared = Arc::new(Shared { service, max_body, door: Arc::clone(&door), told_of: Mutex::default() });
    thread::Builder::new().name("accept".into()).spawn(move || accept(&listener, &shared))?;
    Ok(door)
}

struct Shared {
    service: Arc<dyn Service>,
    max_body: usize,
    door: Arc<Door>,
    /// The addresses whose absurd claims were told.
    told_of: Mutex<HashSet<IpAddr>>,
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
    if let Some(claimed) = request.body_length().filter(|claimed| *claimed > ABSURD) {
        let peer = peer(&request);
        if lock(&shared.told_of).insert(peer) {
            let harm = "each such request takes two descriptors, until this program ends";
            shared.service.alarm(&format!("{peer} claims to send a body of {claimed} bytes: {harm}"));
        }
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
    let tag = request.headers().iter().find(|header| header.field.equiv("If-None-Match"));
    let page = shared.service.page(&path, peer(&request), tag.map(|header| header.value.as_str()));
    let page = page.map(|page| if method == Method::Get { page } else { only("GET") });
    let reply = match (path.as_str(), page) {
        (_, Some(page)) => page,
        ("/mcp", _) if method == Method::Post => post(&mut request, shared),
        ("/mcp", _) => only("POST"),
        _ => Reply::new("404 Not Found", ""),
    };
    let Reply { status, headers, mut body } = reply;
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n");
    let mut whole = head.into_bytes();
    whole.append(&mut body);
    read_past(&mut request);
    let mut writer = request.into_writer();
    let _ = writer.write_all(&whole).and_then(|()| writer.flush());
}

/// Reads what is left of a body whose length the client has claimed.
fn read_past(request: &mut Request) {
    if let Some(claimed) = request.body_length() {
        let _ = io::copy(&mut request.as_reader().take(claimed as u64), &mut io::sink());
    }
}

/// Where a request came from.
fn peer(request: &Request) -> IpAddr {
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    request.remote_addr().map_or(unknown, |address| address.ip().to_canonical())
}

fn only(method: &str) -> Reply {
    let reply = Reply::new("405 Method Not Allowed", "");
    Reply { headers: format!("{}Allow: {method}\r\n", reply.headers), ..reply }
}

fn post(request: &mut Request, shared: &Shared) -> Reply {
    let text = |header: &Header| (header.field.to_string(), header.value.to_string());
    let headers = request.headers().iter().map(text).collect();
    let peer = peer(request);
    let (claimed, limit) = (request.body_length(), shared.max_body);
    if claimed.is_some_and(|claimed| claimed > limit) {
        return Reply::new("413 Content Too Large", "");
    }
    let mut body = Vec::new();
    let read = request.as_reader().take(limit as u64 + 1).read_to_end(&mut body);
    match read {
        Ok(length) if length > limit => Reply::new("413 Content Too Large", ""),
        Ok(length) if claimed.is_none_or(|claimed| claimed == length) => {
            shared.service.call(Call { body, peer, headers })
        }
        _ => Reply::new("400 Bad Request", ""), // cut short, or broken chunks
    }
}
