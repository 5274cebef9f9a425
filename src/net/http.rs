//! Bytes in, bytes out: the HTTP server of every agent, made of tiny_http. The library is small and
//! blocking, and has sharp edges; this file is where they are filed off:
//! - Kept-alive connections starve each other in its pool, so we write every response ourselves,
//!   and the client closes (`Reply::bytes`).
//! - It has no read timeout, so the listener lends one to every connection (`bear_no_silence`).
//! - It trusts a client's claim of how long a body is, so we read past bodies ourselves (`Door`).
//! - It can break, and can fill memory, which nothing mends from outside. Then the program takes
//!   its own place, and all is given back at once (`accept`).
//!
//! Read next: `rpc.rs`, which gives the bytes a meaning.

use crate::net::bounds;
use crate::net::sync::{Watched, lock, spawn};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Once};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tiny_http::{Method, Request, Server};

/// The usual status.
pub const OK: &str = "200 OK";
const NOT_ALLOWED: &str = "405 Method Not Allowed";
/// How long a client may say nothing while its request is read.
const SILENCE: Duration = Duration::from_secs(10);
/// How often we look whether the program has grown too big. It wakes an idle program, so not more
/// often.
const LOOK: Duration = Duration::from_secs(1);
/// How long a program lives at least before it takes its own place: so much work gets done under
/// any attack.
const LEAST_LIFE: Duration = Duration::from_secs(3);
/// How many threads may wait for the next request.
const SPARE: usize = 2;
/// How long the connections of an older server are still served.
const DRAIN: Duration = Duration::from_secs(15);
/// A body that claims to be longer is not even read past. Every machine has so much to promise.
const ABSURD: usize = 256 << 20;

/// Whoever has sent a request.
pub struct Visitor<'a>(&'a Request);

impl Visitor<'_> {
    /// The address of the connection.
    pub fn address(&self) -> IpAddr {
        let address = self.0.remote_addr().map(|it| it.ip().to_canonical());
        address.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
    }

    /// The values of a header; case does not matter in its name.
    pub fn headers(&self, name: &'static str) -> impl Iterator<Item = &str> {
        let all = self.0.headers().iter();
        all.filter(move |it| it.field.equiv(name))
            .map(|it| it.value.as_str().trim())
    }

    /// What stands behind the question mark of the address.
    pub fn query(&self) -> &str {
        let address = self.0.url();
        address.split_once('?').map_or("", |(_, query)| query)
    }

    /// The first value of a header.
    pub fn header(&self, name: &'static str) -> Option<&str> {
        self.headers(name).next()
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
        Reply {
            status,
            headers: "Content-Type: application/json\r\n".into(),
            body: body.into().into_bytes(),
        }
    }

    /// Words for a person.
    pub fn text(status: &'static str, body: impl Into<String>) -> Reply {
        let plain =
            "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n";
        Reply {
            headers: plain.into(),
            ..Reply::new(status, body)
        }
    }

    /// No body, but a header of its own.
    fn headed(status: &'static str, header: &str) -> Reply {
        Reply {
            headers: format!("{header}\r\n"),
            ..Reply::new(status, "")
        }
    }

    /// The whole response as it goes over the wire, in one write: two meet Nagle's 40 ms. The
    /// library's own response would drop our `Connection: close`.
    fn bytes(self) -> Vec<u8> {
        let (status, headers, length) = (self.status, self.headers, self.body.len());
        let head = format!(
            "HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        [head.into_bytes(), self.body].concat()
    }
}

/// What stands behind the server.
pub trait Service: Send + Sync + 'static {
    /// Answers a POST to `/mcp`; its body is not necessarily text.
    fn call(&self, body: &[u8], from: &Visitor) -> Reply;
    /// A page to be got, `/health` for instance.
    fn page(&self, _path: &str, _from: &Visitor) -> Option<Reply> {
        None
    }
    /// Told when something of our own broke: a panic, no thread, no descriptor.
    fn fault(&self, _what: &str) {}
    /// Has the program take its own place, because of this; comes back only if that cannot be.
    fn start_anew(&self, _why: &str) {}
}

/// Whether a server of tiny_http has stopped by a fault.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);
/// Held while a request that claims too much is read past.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Listens, or says in one line why not and what to do.
pub fn listen(host: &str, port: u16) -> Result<TcpListener, String> {
    let other = "choose another with --port N (0: any)";
    TcpListener::bind((host, port)).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("port {port} is in use; end the program that has it, or {other}")
        }
        io::ErrorKind::PermissionDenied => format!("port {port}: {error}; {other}"),
        _ => format!("cannot listen on {host}: {error}; --host is an address of this machine"),
    })
}

/// Serves from now on, in threads of its own. Bodies over `max_body` bytes get a 413.
pub fn serve(
    listener: TcpListener,
    max_body: usize,
    service: Arc<dyn Service>,
) -> io::Result<Arc<Door>> {
    bear_no_silence(&listener)?;
    report_panics(Arc::clone(&service));
    let door = Arc::new(Door {
        service,
        max_body,
        inside: Watched::default(),
    });
    let opened = Arc::clone(&door);
    thread::Builder::new()
        .name("accept".into())
        .spawn(move || accept(&listener, &opened))?;
    Ok(door)
}

/// Has every panic logged. The library's accept thread can die by a panic that nobody sees. We know
/// its threads by their lack of a name, for ours all have one. So a panic in an unnamed thread
/// breaks the server; but those in tiny_http's `client.rs` are of workers whose clients have gone.
fn report_panics(service: Arc<dyn Service>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        panic::set_hook(Box::new(move |panic| {
            service.fault(&panic.to_string().replace('\n', " "));
            let place = panic.location().map(|place| place.file());
            let is_of_worker = place.is_some_and(|file| file.ends_with("client.rs"));
            if thread::current().name().is_none() && !is_of_worker {
                IS_BROKEN.store(true, SeqCst);
            }
        }));
    });
}

/// Sees to it, for ever, that there is a server and that somebody waits for its requests. A server
/// on which nobody has called for a while ends, and the next is built. So it is after a fault too,
/// where the program cannot take its own place, or has only just begun. Faults are a server that
/// lacked a descriptor or a thread, and more memory or descriptors than we may hold: header lines
/// have no limit, and some connections are never closed.
fn accept(listener: &TcpListener, door: &Arc<Door>) {
    let mut began = Instant::now();
    let mut crew: Option<Arc<Crew>> = None;
    loop {
        let mut trouble = bounds::excess();
        if IS_BROKEN.swap(false, SeqCst) {
            trouble = Some("the server broke".into());
            crew = None;
        }
        if let Some(why) = trouble.filter(|_| began.elapsed() >= LEAST_LIFE) {
            door.service.start_anew(&why);
            began = Instant::now(); // that could not be: not again at once
        }
        if crew.as_ref().is_none_or(|crew| crew.has_ended.load(SeqCst)) {
            crew = Crew::new(listener, door);
        }
        if let Some(crew) = &crew
            && crew.waiting.load(SeqCst) == 0
        {
            crew.hire();
        }
        thread::park_timeout(LOOK);
    }
}

/// Sees to it that accepted connections do not stay silent for ever, each with a descriptor: on
/// Linux they inherit the timeout that the listener has when they are made.
fn bear_no_silence(listener: &TcpListener) -> io::Result<()> {
    #[cfg(unix)]
    std::net::TcpStream::from(std::os::fd::OwnedFd::from(listener.try_clone()?))
        .set_read_timeout(Some(SILENCE))?;
    Ok(())
}

/// The threads that answer the requests of one server: one always waits for the next request, any
/// number answer.
struct Crew {
    server: Server,
    door: Arc<Door>,
    waiting: AtomicUsize,
    /// Whether the server accepts no more. The connections that it has accepted are still served.
    has_ended: AtomicBool,
    /// The thread that builds the next server.
    keeper: Thread,
}

impl Crew {
    /// A new server on the listener. Building it spawns threads and takes descriptors: both can be
    /// refused just now.
    fn new(listener: &TcpListener, door: &Arc<Door>) -> Option<Arc<Crew>> {
        let build = || Server::from_listener(listener.try_clone()?, None);
        let server = panic::catch_unwind(build).ok()?.ok()?;
        Some(Arc::new(Crew {
            server,
            door: Arc::clone(door),
            waiting: AtomicUsize::new(0),
            has_ended: AtomicBool::new(false),
            keeper: thread::current(),
        }))
    }

    /// Starts one more thread.
    fn hire(self: &Arc<Self>) {
        let here = Arc::clone(self);
        self.waiting.fetch_add(1, SeqCst);
        if !spawn("request", move || here.work()) {
            self.waiting.fetch_sub(1, SeqCst);
            self.door.service.fault("no thread for a request");
        }
    }

    /// Answers requests, one after the other, until none comes for a while: a thread that is used
    /// again costs less than a new one.
    fn work(self: &Arc<Self>) {
        loop {
            match self.server.recv_timeout(DRAIN) {
                Ok(Some(request)) => {
                    let others = self.waiting.fetch_sub(1, SeqCst) - 1;
                    if others == 0 {
                        self.hire(); // somebody must always wait
                    }
                    self.door.take(request);
                    if self.waiting.fetch_add(1, SeqCst) >= SPARE {
                        break; // enough others wait
                    }
                }
                Ok(None) => break,
                Err(error) => self.end(&error),
            }
        }
        self.waiting.fetch_sub(1, SeqCst);
    }

    /// The server accepts no more: nobody has called for a while, or it broke.
    fn end(&self, error: &io::Error) {
        self.has_ended.store(true, SeqCst);
        if error.kind() == io::ErrorKind::WouldBlock {
            self.keeper.unpark();
        } else {
            let words = format!("the server broke: {error}");
            self.door.service.fault(&words);
            IS_BROKEN.store(true, SeqCst); // seen at the next look: a fault may come back at once
        }
    }
}

/// Where requests are answered, whichever server they came through, and counted while they are in
/// our hands, so that a program can end when they are answered.
pub struct Door {
    service: Arc<dyn Service>,
    max_body: usize,
    inside: Watched<usize>,
}

impl Door {
    /// Waits until no request is being answered, at most so long.
    pub fn wait_until_empty(&self, limit: Duration) {
        drop(self.inside.wait_until(limit, |inside| *inside == 0));
    }

    /// Answers a request, and counts it while it is in our hands. One that claims more than any
    /// machine can promise is forgotten, which leaks its connection.
    fn take(&self, request: Request) {
        if request.body_length().unwrap_or_default() > ABSURD {
            return std::mem::forget(request); // dropped, it would end the program
        }
        *self.inside.lock() += 1;
        // the hook reports a panic
        let _ = panic::catch_unwind(AssertUnwindSafe(|| self.answer(request)));
        self.inside.change(|inside| *inside -= 1);
    }

    /// Answers a request, and reads past what is left of it, claims over the limit one at a time: a
    /// request that is dropped before makes the library allocate what is claimed to be left.
    fn answer(&self, mut request: Request) {
        let path = request.url().split('?').next().unwrap_or_default();
        let reply = match (path, request.method()) {
            ("/mcp", Method::Post) => self.post(&mut request),
            ("/mcp", Method::Get) => self.at_the_wrong_door(&Visitor(&request)),
            ("/mcp", _) => Reply::headed(NOT_ALLOWED, "Allow: POST"),
            (path, method) => match self.service.page(path, &Visitor(&request)) {
                Some(page) if *method == Method::Get => page,
                Some(_) => Reply::headed(NOT_ALLOWED, "Allow: GET"),
                None => Reply::new("404 Not Found", ""),
            },
        };
        let claimed = request.body_length().unwrap_or_default();
        let _turn = (claimed > self.max_body).then(|| lock(&ONE_AT_A_TIME));
        let mut rest = request.as_reader().take(claimed as u64);
        let _ = io::copy(&mut rest, &mut io::sink());
        let mut writer = request.into_writer();
        let _ = writer
            .write_all(&reply.bytes())
            .and_then(|()| writer.flush());
    }

    /// A person with a browser is led to the page, if there is one; agents post.
    fn at_the_wrong_door(&self, visitor: &Visitor) -> Reply {
        let accepted = visitor.header("Accept").unwrap_or_default();
        if accepted.contains("text/html") && self.service.page("/", visitor).is_some() {
            return Reply::headed("303 See Other", "Location: /");
        }
        Reply::headed(NOT_ALLOWED, "Allow: POST")
    }

    fn post(&self, request: &mut Request) -> Reply {
        let too_large = || Reply::new("413 Content Too Large", "");
        let (claimed, limit) = (request.body_length(), self.max_body);
        if claimed.is_some_and(|claimed| claimed > limit) {
            return too_large();
        }
        let mut body = Vec::new();
        let mut reader = request.as_reader().take(limit as u64 + 1);
        match reader.read_to_end(&mut body) {
            Ok(length) if length > limit => too_large(),
            Ok(length) if claimed.is_none_or(|claimed| claimed == length) => {
                self.service.call(&body, &Visitor(request))
            }
            _ => Reply::new("400 Bad Request", ""), // cut short, or broken chunks
        }
    }
}
