//! What works around the limits of tiny_http. Skip this file at first reading.
//!
//! - It has no read timeout: connections inherit one from the listener (`RequestQueue::new`).
//! - Its accept thread ends when a descriptor is missing, or panics: it is started again
//!   (`RequestQueue::next`).
//! - A request that is dropped allocates as many bytes as its client claims to send: unread bodies
//!   are read past first (`skip_body`), and enormous ones are never dropped (`reject_large_body`).
//! - Header lines have no limit, and some connections are never closed: the process is restarted
//!   when it holds too much memory or too many descriptors (`watch`). No other mechanism frees what
//!   an attacker has taken. The journal, the credentials and the outbox are on the disk, so nothing
//!   is lost, not even of a league that is over or of a match in play. Only Linux tells a process
//!   what it holds.

use super::log::{Level, Log};
use super::sync::{lock, spawn_needed};
use crate::system;
use std::cell::RefCell;
use std::io::Read;
use std::mem::ManuallyDrop;
use std::net::TcpListener;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use std::{io, mem, panic, thread};
use tiny_http::{Request, Server};

/// Maximum time between two pieces of a request.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between two attempts to start the library's server.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Requests that claim a longer body are not answered, in bytes.
const MAX_SKIPPED_BODY: usize = 256 << 20;
/// Maximum memory of a process, in KB, on a machine that has twice as much. Until the next check an
/// attacker may take half as much again.
const MAX_MEMORY: u64 = 768 << 10;
/// Interval between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum time between two restarts: it leaves time for work under any attack.
const MIN_RESTART_INTERVAL: Duration = Duration::from_secs(3);
/// True when a thread of the HTTP library that is needed has panicked.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The start of the line about a panic in a function of the user.
    static PANIC_PREFIX: RefCell<String> = RefCell::default();
}

/// Held while the rest of an oversized body is read, so that only one takes memory at a time.
static LARGE_BODY: Mutex<()> = Mutex::new(());

/// The requests that come to a port.
pub struct RequestQueue {
    listener: TcpListener,
    /// The library's server. It ends when no client has connected for `READ_TIMEOUT`, or when a
    /// descriptor is missing.
    server: Mutex<Option<RunningServer>>,
}

/// The library's server. It is never dropped: it would connect to its own port, which blocks while
/// the backlog is full. One that has ended holds some hundred bytes.
type RunningServer = Arc<ManuallyDrop<Server>>;

impl RequestQueue {
    /// Sets the read timeout of the connections: on Linux they inherit that of the listener.
    pub fn new(listener: TcpListener) -> io::Result<RequestQueue> {
        system::set_read_timeout(&listener, READ_TIMEOUT)?;
        Ok(RequestQueue {
            listener,
            server: Mutex::default(),
        })
    }

    /// Waits for a request. A server that has ended is started again.
    pub fn next(&self) -> Request {
        loop {
            let Some(server) = self.server() else {
                thread::sleep(RETRY_INTERVAL);
                continue;
            };
            match server.recv_timeout(READ_TIMEOUT) {
                Ok(Some(request)) => return request,
                Ok(None) => {} // another worker may have replaced it
                Err(_) => self.remove(&server),
            }
        }
    }

    /// Returns the library's server, which is started if there is none.
    fn server(&self) -> Option<RunningServer> {
        let mut server = lock(&self.server);
        if server.is_none() {
            *server = start_server(&self.listener);
        }
        server.clone()
    }

    /// Discards a server that has ended, unless another worker has done so.
    fn remove(&self, ended: &RunningServer) {
        lock(&self.server).take_if(|current| Arc::ptr_eq(current, ended));
    }
}

/// Starts the library's server; `None` if no descriptor is left, or no thread: then it panics.
fn start_server(listener: &TcpListener) -> Option<RunningServer> {
    let listener = listener.try_clone().ok()?;
    let started = catch_unwind(|| Server::from_listener(listener, None));
    Some(Arc::new(ManuallyDrop::new(started.ok()?.ok()?)))
}

/// Returns the request, unless it claims a body that no machine can hold: dropping it would
/// allocate that, so its memory is given up.
pub fn reject_large_body(request: Request) -> Option<Request> {
    if request.body_length().unwrap_or_default() > MAX_SKIPPED_BODY {
        mem::forget(request);
        return None;
    }

    Some(request)
}

/// Reads past the rest of a body: the library would allocate what is claimed to be left. Returns a
/// lock that must be held until the request is dropped, in case that its client has given up.
pub fn skip_body(request: &mut Request, max_body: usize) -> Option<MutexGuard<'static, ()>> {
    let content_length = request.body_length().unwrap_or_default();
    if content_length <= max_body {
        return None; // it has been read
    }

    let one_at_a_time = lock(&LARGE_BODY);
    let mut rest = request.as_reader().take(content_length as u64);
    let _ = io::copy(&mut rest, &mut io::sink());
    Some(one_at_a_time)
}

/// Restarts the process on its port when it must be restarted, and logs every panic in one line. A
/// limit of which the process uses half before it takes requests is not watched: a restart would
/// change nothing.
pub fn watch(log: Arc<Log>, port: u16, print_error: fn(&str)) {
    watch_panics(Arc::clone(&log));
    let exceeded = system::exceeded_limit(MAX_MEMORY, 50);
    if let Some(reason) = &exceeded {
        print_error(&format!(
            "{reason} already at the start: that will not restart the process"
        ));
    }

    spawn_needed("restart", move || {
        thread::sleep(MIN_RESTART_INTERVAL);
        let reason = wait_for_reason(exceeded.is_none());
        let text = format!("{reason}: restarting the process");
        print_error(&text);
        log.system_event(Level::Info, "ended", text);
        if let Err(error) = system::restart_process(port, false) {
            print_error(&format!("the process cannot be restarted: {error}"));
        }
    });
}

/// Calls a function of the user. A panic in it is printed as one line that begins with `prefix`.
pub fn call_user<T>(prefix: String, function: impl FnOnce() -> T) -> T {
    PANIC_PREFIX.set(prefix);
    let result = function();
    PANIC_PREFIX.take();
    result
}

/// Logs every panic, and marks the server as broken after one in the library's accept thread.
/// All our threads have names, those of tiny_http have none. A panic in its `client.rs` only ends
/// one connection. The files of other crates have absolute paths, those of a player have not.
fn watch_panics(log: Arc<Log>) {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let line = panic.to_string().replace('\n', " ");
        log.system_event(Level::Error, "fault", &line);
        match PANIC_PREFIX.take() {
            none if none.is_empty() => print(panic),
            prefix => eprintln!("{prefix} {line}"),
        }
        let is_needed = panic.location().is_some_and(|at| {
            Path::new(at.file()).is_absolute() && !at.file().ends_with("client.rs")
        });
        if thread::current().name().is_none() && is_needed {
            IS_BROKEN.store(true, SeqCst);
        }
    }));
}

fn wait_for_reason(has_limits: bool) -> String {
    loop {
        if IS_BROKEN.load(SeqCst) {
            return "the HTTP server failed".into();
        }
        if has_limits && let Some(reason) = system::exceeded_limit(MAX_MEMORY, 100) {
            return reason;
        }

        thread::sleep(CHECK_INTERVAL);
    }
}
