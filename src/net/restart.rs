//! Restarts the process when it holds too much memory or too many descriptors, or when the HTTP
//! library has failed. No other mechanism frees what an attacker has taken: header lines have no
//! limit, and some connections are never closed. The journal, the credentials and the outbox are on
//! the disk, so nothing is lost. Only Linux tells a process what it holds.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use std::{env, fs, io, panic, thread};

/// Maximum memory of a process, in KB, on a machine that has twice as much.
const MAX_MEMORY: u64 = 1 << 20;
/// Interval between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum time between two restarts: it leaves time for work under any attack.
const MIN_UPTIME: Duration = Duration::from_secs(3);
/// True when a thread of the HTTP library that is needed has panicked.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

/// Checks for ever whether the process must be restarted, and then calls `restart` with the reason.
/// Calls `report` with every panic, in one line.
pub fn watch(report: impl Fn(&str) + Send + Sync + 'static, restart: impl Fn(&str)) {
    watch_panics(report);
    loop {
        thread::sleep(MIN_UPTIME);
        let reason = wait_for_reason();
        restart(&reason);
    }
}

/// Reports every panic, and marks the server as broken after one in the library's accept thread. All
/// our threads have names, those of tiny_http have none. A panic in its `client.rs` only ends one
/// connection.
fn watch_panics(report: impl Fn(&str) + Send + Sync + 'static) {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        print(panic);
        report(&panic.to_string().replace('\n', " "));
        let is_connection = panic
            .location()
            .is_some_and(|at| at.file().ends_with("client.rs"));
        if thread::current().name().is_none() && !is_connection {
            IS_BROKEN.store(true, SeqCst);
        }
    }));
}

fn wait_for_reason() -> String {
    loop {
        if IS_BROKEN.load(SeqCst) {
            return "the HTTP server failed".into();
        }
        if let Some(reason) = exceeded_limit() {
            return reason;
        }
        thread::sleep(CHECK_INTERVAL);
    }
}

/// Returns the limit that the process exceeds; `None` also where the system does not tell.
fn exceeded_limit() -> Option<String> {
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else {
        let is_linux = cfg!(target_os = "linux");
        return is_linux.then(|| "no file descriptor is left".into());
    };
    let descriptors = descriptors.count() as u64;
    if descriptors >= proc_value("/proc/self/limits", "Max open files")? / 5 * 4 {
        return Some(format!("{descriptors} file descriptors are open"));
    }

    let memory = proc_value("/proc/self/status", "VmRSS:")?;
    if memory >= MAX_MEMORY.min(proc_value("/proc/meminfo", "MemTotal:")? / 2) {
        return Some(format!("{} MiB of memory are in use", memory >> 10));
    }
    None
}

/// Returns the first number behind a word in a file of the system.
fn proc_value(path: &str, word: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let (_, rest) = text.split_once(word)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Replaces the process by a new one with the same command, on the same port, without `--fresh`: it
/// goes on with what is on its disk. The shell gives it as many descriptors as the system allows.
/// Returns only if that fails.
pub fn restart_process(port: u16) -> io::Error {
    let mut command = Command::new("/bin/sh");
    command.args([
        "-c",
        r#"ulimit -n "$(ulimit -H -n)" 2>/dev/null; exec "$0" "$@""#,
    ]);
    command.args(env::args_os().filter(|argument| argument != "--fresh"));
    if env::args_os().all(|argument| argument != "--restarted") {
        command.args(["--port", &port.to_string(), "--restarted"]);
    }
    #[cfg(unix)]
    return std::os::unix::process::CommandExt::exec(&mut command);
    #[cfg(not(unix))]
    io::Error::other("this system cannot replace a process; start the program again")
}
