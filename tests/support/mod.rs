//! Support of the tests: programs as real processes on free ports in a temporary folder, and fake
//! agents whose replies a test decides.
//!
//! A test starts here: `TestLeague::new(edits)` makes a folder with a configuration whose limits are
//! short; its methods start programs (`test_league.rs`). `FakeAgent::new(script)` is an agent that
//! answers with a script (`fake_agent.rs`). `send` and `call` send a request (`calls.rs`). No test
//! sleeps: `until` waits for a fact, and only a failing test waits for the whole time limit.
#![allow(
    dead_code,
    unused_imports,
    reason = "every test file uses its own part"
)]

pub mod browser;
pub mod calls;
pub mod damage;
pub mod fake;
pub mod fake_agent;
mod files;
pub mod golden;
pub mod offline;
pub mod pages;
pub mod repeats;
pub mod story;
pub mod test_league;

pub use calls::*;
pub use fake_agent::*;
pub use test_league::*;

pub use league::system::PYTHON;
use league::values::clock;
use serde::de::DeserializeOwned;
pub use serde_json::{Value, json};
use std::io::{Write, stderr};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// Maximum time that a test waits for a fact, unless the environment gives it more.
pub const TIME_LIMIT: Duration = Duration::from_secs(180);

/// Maximum time that a test waits for a fact: LEAGUE_TEST_PATIENCE in seconds, or `TIME_LIMIT`.
pub fn time_limit() -> Duration {
    let longer = env::var("LEAGUE_TEST_PATIENCE").ok();
    let seconds = longer.and_then(|seconds| seconds.parse().ok());
    seconds.map_or(TIME_LIMIT, Duration::from_secs)
}

/// Fails the test. The message names the fact, and the variable that gives the test more time.
fn give_up(what: &str, waited: Duration) -> ! {
    let thread = thread::current();
    let test = thread.name().unwrap_or_default();
    let seconds = waited.as_secs();
    panic!(
        "did not happen in {seconds} s: {what}\nOn a busy machine give it more time, alone: \
         LEAGUE_TEST_PATIENCE=900 cargo test {test}"
    );
}

/// Waits until `fact` returns a value, or fails the test with the name of the fact.
pub fn until<T>(what: &str, fact: impl FnMut() -> Option<T>) -> T {
    until_within(time_limit().as_secs(), what, fact)
}

/// The same, for at most so many seconds.
pub fn until_within<T>(seconds: u64, what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let (begun, limit) = (Instant::now(), Duration::from_secs(seconds));
    loop {
        if let Some(found) = fact() {
            return found;
        }
        if begun.elapsed() > limit {
            give_up(what, limit);
        }
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Returns a free port.
pub fn free_port() -> u16 {
    free_ports(1)
}

/// Held while ports are tried, and while a program is started. A new process has copies of all our
/// sockets until its program begins. So a port that is tried at that moment stays taken a little
/// longer, and the program for which it was tried may find it in use.
pub static STARTING: Mutex<()> = Mutex::new(());

/// Returns the first of so many free ports in a row. No other test of this process gets one of them.
/// The system gives ports above 32767 to outgoing connections, so none of these is taken before its
/// program starts.
pub fn free_ports(count: u16) -> u16 {
    static NEXT: LazyLock<AtomicU16> =
        LazyLock::new(|| AtomicU16::new(fastrand::u16(10_000..28_000)));
    until("ports are free", || {
        let first = NEXT.fetch_add(count, Ordering::Relaxed);
        let mut ports = first..first + count;
        let _guard = STARTING.lock().unwrap();
        let are_free = ports.all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok());
        are_free.then_some(first)
    })
}

/// Waits until `holds` returns true, or fails the test with the name of the fact.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    until(what, || holds().then_some(()));
}

/// Returns the rows of a table that is written as text, with bars between the cells.
pub fn rows<const N: usize>(table: &str) -> impl Iterator<Item = [&str; N]> {
    table.trim_matches('\n').lines().map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        cells
            .try_into()
            .unwrap_or_else(|_| panic!("{N} cells: {row}"))
    })
}

/// Returns the elements of a JSON list.
pub fn list_of(value: &Value) -> &[Value] {
    let list = value.as_array();
    list.unwrap_or_else(|| panic!("no list: {value}"))
}

/// Reads a JSON text.
pub fn json_of<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Checks that a text has these words.
pub fn check_contains(text: &str, words: &str) {
    assert!(text.contains(words), "no {words} in {text}");
}

/// Returns a JSON string as text.
pub fn text_of(value: &Value) -> &str {
    let text = value.as_str();
    text.unwrap_or_else(|| panic!("no text: {value}"))
}

/// Lets this thread print no errors, where a file is damaged hundreds of times. (With clocks of its own
/// it is one of the simulation.)
pub fn print_no_errors() {
    clock::set(clock::now(), clock::now_utc());
}

/// Notes that the test of this thread is left out, in a file of which `make test` prints the sum. The
/// output of `eprintln!` is hidden in a test that passes.
pub fn print_left_out(why: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or_default();
    let _ = writeln!(stderr(), "\nleft out: {test}: {why}");
    let file = executable("league").with_file_name("left-out.txt");
    let file = fs::OpenOptions::new().create(true).append(true).open(file);
    writeln!(file.unwrap(), "{why}\t{test}").unwrap();
}

/// Returns true if a program can be started. (Not all know this option; and on Windows a program named
/// python may only say where to get it.)
pub fn is_installed(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    version.is_ok_and(|output| output.status.success() || program != PYTHON)
}

/// Returns true if Python can be started. Notes the test that is left out if it cannot.
pub fn has_python() -> bool {
    let has_python = is_installed(PYTHON);
    if !has_python {
        print_left_out("python is not installed");
    }
    has_python
}

/// Returns an address of this machine that is no loopback address, for requests that seem to come
/// from another machine; none without a network.
pub fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?; // nothing is sent
    let own = socket.local_addr().ok()?.ip();
    if own.is_loopback() {
        print_left_out("a request from another machine: this one has only a loopback address");
        return None;
    }
    Some(own)
}

/// Checks that only its owner can read a file with a secret, on systems where files have modes.
pub fn check_mode(path: &Path) {
    let found = fs::metadata(path).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = found.permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
    assert!(found.is_file(), "{}", path.display());
}

/// Returns the path of a field, like `matches[0].match_id`, as a JSON pointer.
pub fn pointer(path: &str) -> String {
    format!("/{}", path.replace(']', "").replace(['.', '['], "/"))
}
