//! The HTTP server of every agent, built on tiny_http: its worker threads take requests in turn,
//! and one of them always waits for the next. Every response closes its connection, since
//! kept-alive connections starve each other in the library's thread pool. What works around the
//! library's other limits is in `limits.rs`. Read next: `rpc.rs`, which gives a request its
//! meaning.

use super::limits::{RequestQueue, reject_large_body, skip_body};
use super::sync::{Shared, spawn};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// The usual status.
pub const OK: &str = "200 OK";
/// Maximum number of worker threads that are kept although they have no request.
const MAX_WAITING: usize = 2;

/// A request as it came.
pub struct HttpRequest<'a> {
    /// The method, in capitals.
    pub method: String,
    /// The path of the URL.
    pub path: &'a str,
    /// The text behind the question mark of the URL.
    pub query: &'a str,
    /// The address of the connection.
    pub peer: IpAddr,
    /// The body; not necessarily text.
    pub body: Vec<u8>,
    headers: &'a [tiny_http::Header],
}

impl HttpRequest<'_> {
    /// Returns the values of a header.
    pub fn headers(&self, name: &'static str) -> Vec<&str> {
        header_values(self.headers, name)
    }

    /// Returns the first value of a header.
    pub fn header(&self, name: &'static str) -> Option<&str> {
        self.headers(name).first().copied()
    }
}

/// An answer.
pub struct Response {
    /// The status with its reason phrase.
    pub status: &'static str,
    /// More headers, each ended by a line break.
    pub headers: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns a response with JSON, or with no body.
    pub fn new(status: &'static str, body: impl Into<String>) -> Response {
        Response {
            status,
            headers: "Content-Type: application/json\r\n".into(),
            body: body.into().into_bytes(),
        }
    }

    /// Returns a response with text for a person.
    pub fn text(status: &'static str, body: impl Into<String>) -> Response {
        let headers =
            "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n";
        Response::new(status, body).with_headers(headers)
    }

    /// Returns the same response with these headers.
    pub fn with_headers(self, headers: &str) -> Response {
        let headers = headers.into();
        Response { headers, ..self }
    }

    /// Returns the whole response, to be sent in one write: two writes would wait for Nagle's
    /// timer.
    fn to_bytes(&self) -> Vec<u8> {
        let (status, headers, length) = (self.status, &self.headers, self.body.len());
        let head = format!(
            "HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        [head.as_bytes(), &self.body].concat()
    }
}

/// Answers requests.
type Handler = dyn Fn(&HttpRequest) -> Response + Send + Sync;

/// A server that answers in threads of its own.
pub struct HttpServer {
    /// The requests that have come, from which all workers take the next one.
    queue: RequestQueue,
    handler: Box<Handler>,
    max_body: usize,
    /// Number of workers that wait for a request.
    waiting: AtomicUsize,
    /// Number of requests that are being answered.
    active: Shared<usize>,
}

/// Listens; the error is one line that says what to do.
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

/// Returns the address that this machine has on its way to another; on the way to itself it is the
/// same one. Nothing is sent.
pub fn own_address_for(host: &str, port: u16) -> io::Result<String> {
    let any = if host.contains(':') {
        "[::]:0"
    } else {
        "0.0.0.0:0"
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect((host.trim_matches(['[', ']']), port))?;
    Ok(socket.local_addr()?.ip().to_string())
}

/// Starts to answer requests. A body over `max_body` bytes is answered with 413.
pub fn serve(
    listener: TcpListener,
    max_body: usize,
    handler: Box<Handler>,
) -> io::Result<Arc<HttpServer>> {
    let server = Arc::new(HttpServer {
        queue: RequestQueue::new(listener)?,
        handler,
        max_body,
        waiting: AtomicUsize::new(0),
        active: Shared::default(),
    });

    if !server.start_worker() {
        return Err(io::Error::other("no thread is left"));
    }

    Ok(server)
}

impl HttpServer {
    /// Starts a worker; returns false if the machine has no thread left.
    fn start_worker(self: &Arc<Self>) -> bool {
        self.waiting.fetch_add(1, SeqCst);
        let server = Arc::clone(self);
        let is_started = spawn("worker", move || server.work()).is_some();
        if !is_started {
            self.waiting.fetch_sub(1, SeqCst);
        }
        is_started
    }

    /// Answers requests one after the other. Before a worker answers a request, it makes sure that
    /// another worker waits for the next one.
    fn work(self: &Arc<Self>) {
        loop {
            let request = self.queue.next();
            let others = self.waiting.fetch_sub(1, SeqCst) - 1;
            if others == 0 {
                self.start_worker();
            }

            *self.active.lock() += 1;
            self.answer(request);
            self.active.update(|count| *count -= 1);
            if self.waiting.load(SeqCst) >= MAX_WAITING {
                return;
            }
            self.waiting.fetch_add(1, SeqCst);
        }
    }

    /// Waits until no request is being answered, or the timeout is over.
    pub fn drain(&self, timeout: Duration) {
        drop(self.active.wait_until(timeout, |count| *count == 0));
    }

    /// Answers a request.
    fn answer(&self, request: tiny_http::Request) {
        let Some(mut request) = reject_large_body(request) else {
            return;
        };

        let response = match self.read(&mut request) {
            Ok(request) => (self.handler)(&request),
            Err(response) => response,
        };

        let _one_at_a_time = skip_body(&mut request, self.max_body);
        let mut writer = request.into_writer();
        let _ = writer.write_all(&response.to_bytes());
        let _ = writer.flush();
    }

    fn too_large(&self) -> Response {
        let text = format!("the body must be at most {} bytes", self.max_body);
        Response::text("413 Content Too Large", text)
    }

    /// Reads a request with its body, or returns the response that refuses it.
    fn read<'a>(&self, request: &'a mut tiny_http::Request) -> Result<HttpRequest<'a>, Response> {
        let content_length = request.body_length();
        if content_length.is_some_and(|length| length > self.max_body) {
            return Err(self.too_large());
        }

        // After `Connection: Upgrade` the library's body ends with the connection, and it does not
        // find the end of a body in chunks.
        let values = |name| header_values(request.headers(), name).concat();
        let is_chunked = !values("Transfer-Encoding").is_empty();
        if is_chunked
            && values("Connection")
                .to_ascii_lowercase()
                .contains("upgrade")
        {
            let text = "send Content-Length: no chunks are read after Connection: Upgrade";
            return Err(Response::text("411 Length Required", text));
        }
        let max_unknown = if is_chunked { self.max_body + 1 } else { 0 };
        let limit = content_length.unwrap_or(max_unknown);

        let mut body = Vec::new();
        let mut reader = request.as_reader().take(limit as u64);
        let is_read = reader.read_to_end(&mut body).is_ok();
        if body.len() > self.max_body {
            return Err(self.too_large());
        }
        if !is_read || content_length.is_some_and(|length| length != body.len()) {
            return Err(Response::new("400 Bad Request", "")); // cut off, or broken chunks
        }

        let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
        let peer = request
            .remote_addr()
            .map(|address| address.ip().to_canonical());
        Ok(HttpRequest {
            method: request.method().to_string(),
            path,
            query,
            peer: peer.unwrap_or(Ipv4Addr::UNSPECIFIED.into()),
            headers: request.headers(),
            body,
        })
    }
}

/// Returns the values of a header; upper and lower case are the same in its name.
fn header_values<'a>(headers: &'a [tiny_http::Header], name: &'static str) -> Vec<&'a str> {
    let named = headers.iter().filter(|header| header.field.equiv(name));
    named.map(|header| header.value.as_str().trim()).collect()
}
