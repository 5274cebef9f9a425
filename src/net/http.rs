//! Bytes in, bytes out: every fact about tiny_http and ureq lives here.
//!
//! tiny_http is small and blocking, and has edges that this file files off:
//! - Kept-alive connections starve each other in its pool, so every response says `Connection: close` (the client
//!   closes; tiny_http itself reads on). Its own `Response` drops that header, so we write the response ourselves, in
//!   one write (two meet Nagle's 40 ms).
//! - Dropping a request makes it allocate what the client *claims* is left of the body, and read it, until the client
//!   closes: a hundred claims of 30 MB held 3 GB. So we read past the rest ourselves, a little at a time; when the
//!   client has closed the allocation lasts for a moment. One that the machine refuses would end the program, so a
//!   request with an absurd claim is forgotten instead: its connection is leaked for good, and the terminal says whose.
//! - Its accept thread can die of a missing descriptor or thread, sometimes by a panic that nobody sees. We count
//!   panics of unnamed threads (ours are all named), and build a new server on the same listener after a pause.
//!   Panics in its `client.rs` are of workers, whose clients have gone: they do not count.
//! - It has no read timeout: a slow client holds a thread. That is why agents listen on 127.0.0.1 by default.
//!
//! Read next: `rpc.rs`, which gives the bytes a meaning.

use crate::net::sync::{lock, spawn};
use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, OnceLock};
use std::thread;
use std::time::Duration;
use tiny_http::{Method, Request, Server};

/// How long a broken server rests before the next is built.
const PAUSE: Duration = Duration::from_secs(1);
/// How often it is looked whether the server still lives.
const LOOK: Duration = Duration::from_millis(250);
/// So many threads may wait for requests.
const SPARE: usize = 2;
/// How long the connections of a broken server are still served after the last request.
const DRAIN: Duration = Duration::from_secs(60);
/// A body that claims to be longer is not even read past. Every machine has so much to promise.
const ABSURD: usize = 256 << 20;

/// A POST to `/mcp`.
pub struct Call<'a> {
    /// The body; not necessarily text.
    pub body: Vec<u8>,
    /// Where it came from.
    pub peer: IpAddr,
    request: &'a Request,
}

impl Call<'_> {
    /// A header's value; case does not matter in its name.
    pub fn header(&self, name: &'static str) -> Option<&str> {
        header(self.request, name)
    }
}

fn header<'a>(request: &'a Request, name: &'static str) -> Option<&'a str> {
    let found = request
        .headers()
        .iter()
        .find(|header| header.field.equiv(name));
    found.map(|header| header.value.as_str().trim())
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
        Reply {
            status,
            headers: "Content-Type: application/json\r\n".into(),
            body: body.into().into_bytes(),
        }
    }

    /// Words for a person.
    pub fn text(status: &'static str, body: impl Into<String>) -> Reply {
        let headers =
            "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n".into();
        Reply {
            status,
            headers,
            body: body.into().into_bytes(),
        }
    }
}

/// What stands behind the server.
pub trait Service: Send + Sync + 'static {
    /// Answers a call.
    fn call(&self, call: &Call) -> Reply;
    /// A page to be got, `/health` for instance. `query` is what stands behind the question mark of its address.
    fn page(&self, path: &str, query: &str, peer: IpAddr) -> Option<Reply>;
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
        let _ = self
            .left
            .wait_timeout_while(self.count(), limit, |inside| *inside > 0);
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
pub fn serve(
    listener: TcpListener,
    max_body: usize,
    service: Arc<dyn Service>,
) -> io::Result<Arc<Door>> {
    static HOOK: Once = Once::new();
    let watcher = Arc::clone(&service);
    HOOK.call_once(|| {
        panic::set_hook(Box::new(move |info| {
            watcher.fault(&info.to_string().replace('\n', " "));
            let of_worker = info
                .location()
                .is_some_and(|at| at.file().ends_with("client.rs"));
            if thread::current().name().is_none() && !of_worker {
                STRANGE_PANICS.fetch_add(1, Ordering::SeqCst);
            }
        }));
    });
    let door = Arc::new(Door::default());
    let shared = Arc::new(Shared {
        service,
        max_body,
        door: Arc::clone(&door),
        told_of: Mutex::default(),
    });
    thread::Builder::new()
        .name("accept".into())
        .spawn(move || accept(&listener, &shared))?;
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
            let shared = Arc::clone(shared);
            let crew = Arc::new(Crew {
                server,
                shared,
                waiting: AtomicUsize::new(0),
                lost: OnceLock::new(),
            });
            let lost = loop {
                if STRANGE_PANICS.load(Ordering::SeqCst) != panics {
                    break crew
                        .lost
                        .get_or_init(|| "its accept thread may have panicked".into());
                }
                if let Some(why) = crew.lost.get() {
                    break why;
                }
                if crew.waiting.load(Ordering::SeqCst) == 0 {
                    hire(&crew);
                }
                thread::park_timeout(LOOK);
            };
            crew.shared
                .service
                .fault(&format!("the server is built anew: {lost}"));
        }
        thread::sleep(PAUSE);
    }
}

/// The threads that answer the requests of one server: one always waits for the next request, and any number answers.
struct Crew {
    server: Server,
    shared: Arc<Shared>,
    waiting: AtomicUsize,
    /// Why the server accepts no more. The connections that it has accepted are still served.
    lost: OnceLock<String>,
}

/// Starts one more.
fn hire(crew: &Arc<Crew>) {
    let its = Arc::clone(crew);
    crew.waiting.fetch_add(1, Ordering::SeqCst);
    if !spawn("request", move || work(&its)) {
        crew.waiting.fetch_sub(1, Ordering::SeqCst);
        crew.shared.service.fault("no thread for a request");
    }
}

/// Answers requests. Whoever takes one sees to it that another waits: a thread used again costs less than a new one.
fn work(crew: &Arc<Crew>) {
    loop {
        let is_lost = crew.lost.get().is_some();
        match crew.server.recv_timeout(DRAIN) {
            Ok(Some(request)) => {
                if crew.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
                    hire(crew);
                }
                take(request, &crew.shared);
                let wanted = |waiting| (waiting < SPARE).then_some(waiting + 1);
                if crew
                    .waiting
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, wanted)
                    .is_err()
                {
                    return;
                }
            }
            Ok(None) if is_lost => break,
            Ok(None) => {}
            Err(error) => drop(crew.lost.set(error.to_string())),
        }
    }
    crew.waiting.fetch_sub(1, Ordering::SeqCst);
}

/// Answers a request, and counts it while it is in our hands.
fn take(request: Request, shared: &Shared) {
    if let Some(claimed) = request.body_length().filter(|claimed| *claimed > ABSURD) {
        let peer = peer(&request);
        if lock(&shared.told_of).insert(peer) {
            let harm = "each such request takes two descriptors, until this program ends";
            shared.service.alarm(&format!(
                "{peer} claims to send a body of {claimed} bytes: {harm}"
            ));
        }
        return std::mem::forget(request);
    }
    *shared.door.count() += 1;
    let answered = panic::catch_unwind(AssertUnwindSafe(|| answer(request, shared)));
    *shared.door.count() -= 1;
    shared.door.left.notify_all();
    drop(answered); // a panic was reported by the hook
}

fn answer(mut request: Request, shared: &Shared) {
    let (address, method) = (request.url().to_string(), request.method().clone());
    let (path, query) = address.split_once('?').unwrap_or((&address, ""));
    let page = shared.service.page(path, query, peer(&request));
    let page = page.map(|page| {
        if method == Method::Get {
            page
        } else {
            only("GET")
        }
    });
    let reply = match (path, page) {
        (_, Some(page)) => page,
        ("/mcp", _) if method == Method::Post => post(&mut request, shared),
        ("/mcp", _) => only("POST"),
        _ => Reply::new("404 Not Found", ""),
    };
    let Reply {
        status,
        headers,
        body,
    } = reply;
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    let whole = [head.into_bytes(), body].concat();
    if let Some(claimed) = request.body_length() {
        let _ = io::copy(
            &mut request.as_reader().take(claimed as u64),
            &mut io::sink(),
        ); // past what is left of it
    }
    let mut writer = request.into_writer();
    let _ = writer.write_all(&whole).and_then(|()| writer.flush());
}

/// Where a request came from.
fn peer(request: &Request) -> IpAddr {
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    request
        .remote_addr()
        .map_or(unknown, |address| address.ip().to_canonical())
}

fn only(method: &str) -> Reply {
    let reply = Reply::new("405 Method Not Allowed", "");
    Reply {
        headers: format!("{}Allow: {method}\r\n", reply.headers),
        ..reply
    }
}

fn post(request: &mut Request, shared: &Shared) -> Reply {
    let (claimed, limit) = (request.body_length(), shared.max_body);
    if claimed.is_some_and(|claimed| claimed > limit) {
        return Reply::new("413 Content Too Large", "");
    }
    let mut body = Vec::new();
    let read = request
        .as_reader()
        .take(limit as u64 + 1)
        .read_to_end(&mut body);
    match read {
        Ok(length) if length > limit => Reply::new("413 Content Too Large", ""),
        Ok(length) if claimed.is_none_or(|claimed| claimed == length) => {
            shared.service.call(&Call {
                body,
                peer: peer(request),
                request,
            })
        }
        _ => Reply::new("400 Bad Request", ""), // cut short, or broken chunks
    }
}
