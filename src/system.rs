//! What differs between Linux, macOS and Windows. No other file asks on which system it runs.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;
use std::{env, thread};

/// The command that runs a script in Python. The Python of Windows has no `python3`.
pub const PYTHON: &str = if cfg!(windows) { "py" } else { "python3" };

/// Number of further attempts at what a system refuses for a moment: they take two seconds.
const MAX_RETRIES: u32 = 100;
/// Interval between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Lets only the owner of a new file read it: mode 0600 on Linux and macOS. Windows has no modes: a
/// new file gets the rights of its folder, and a folder of the user is closed to other users.
pub fn restrict_to_owner(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

/// Repeats for two seconds what a system may refuse for a moment: a thread or a process, and where a
/// file is stored by Windows, to rename what another program has open, also to read it, or to lock
/// what a killed program had locked.
pub fn retry<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..MAX_RETRIES {
        match attempt() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => thread::sleep(RETRY_INTERVAL),
            result => return result,
        }
    }
    attempt()
}

/// Returns true if the machine (ENFILE) or this process (EMFILE) has no file descriptor left.
/// Windows has no such limit.
pub fn is_out_of_files(error: &io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

/// Fills a buffer with random bytes. Windows has no device for them: there they are results of
/// std's hashers, which show nothing of the random seed that each thread gets from the system.
pub fn fill_with_random_bytes(bytes: &mut [u8]) {
    let device = File::open(if cfg!(unix) { "/dev/urandom" } else { "" });
    let is_filled = device.is_ok_and(|mut device| device.read_exact(bytes).is_ok());
    if !is_filled {
        bytes.fill_with(|| RandomState::new().build_hasher().finish() as u8);
    }
}

/// Sets the maximum time between two pieces of a request: the connections of a listener inherit its
/// read timeout on Linux, and on other systems perhaps.
pub fn set_read_timeout(listener: &TcpListener, timeout: Duration) -> io::Result<()> {
    let listener = listener.try_clone()?;
    #[cfg(unix)]
    let socket = std::os::fd::OwnedFd::from(listener);
    #[cfg(windows)]
    let socket = std::os::windows::io::OwnedSocket::from(listener);
    TcpStream::from(socket).set_read_timeout(Some(timeout))
}

/// Returns the limit of which the process uses so many percent. `max_memory` is in KB, on a machine
/// that has twice as much. Only Linux tells a process what it holds.
pub fn exceeded_limit(max_memory: u64, percent: u64) -> Option<String> {
    let Ok(open_files) = fs::read_dir("/proc/self/fd") else {
        return cfg!(target_os = "linux").then(|| "no file descriptor is left".into());
    };

    let open_files = open_files.count() as u64;
    let max_files = read_number("/proc/self/limits", "Max open files")? / 5 * 4;
    if open_files * 100 >= max_files * percent {
        return Some(format!("{open_files} file descriptors are open"));
    }

    let memory = read_number("/proc/self/status", "VmRSS:")?;
    let max_memory = max_memory.min(read_number("/proc/meminfo", "MemTotal:")? / 2);
    if memory * 100 >= max_memory * percent {
        return Some(format!("{} MiB of memory are in use", memory >> 10));
    }

    None
}

/// Returns the first number behind a word in a file of the system.
fn read_number(path: &str, word: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let (_, rest) = text.split_once(word)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Restarts the process with the same command, on the same port. It goes on with what is on its
/// disk, unless `is_fresh`: only then the command has `--fresh`. Returns only if that fails.
pub fn restart_process(port: u16, is_fresh: bool) -> io::Result<()> {
    let mut arguments: Vec<OsString> = env::args_os().collect();
    arguments.retain(|argument| argument != "--fresh");
    if !arguments.contains(&"--restarted".into()) {
        let port = port.to_string();
        arguments.extend(["--port", &port, "--restarted"].map(OsString::from));
    }
    if is_fresh {
        arguments.push("--fresh".into());
    }
    retry(|| Err(replace_process(&arguments)))
}

/// Linux and macOS put the new program into the place of the old one. The shell gives it as many
/// descriptors as the system allows.
#[cfg(unix)]
fn replace_process(arguments: &[OsString]) -> io::Error {
    let script = r#"ulimit -n "$(ulimit -H -n)" 2>/dev/null; exec "$0" "$@""#;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script]).args(arguments);
    std::os::unix::process::CommandExt::exec(&mut shell)
}

/// Windows cannot do that: a successor is started and this process ends, which frees its port and
/// its files. In a terminal the shell would read the keyboard together with the successor, so there
/// the user starts the program again.
#[cfg(not(unix))]
fn replace_process(arguments: &[OsString]) -> io::Error {
    use std::io::IsTerminal;

    if io::stdin().is_terminal() {
        let hint = "Windows cannot restart it in this window: type the same command again, \
            without --fresh";
        return io::Error::other(hint);
    }

    match Command::new(&arguments[0]).args(&arguments[1..]).spawn() {
        Ok(_) => std::process::exit(0),
        Err(error) => error,
    }
}
