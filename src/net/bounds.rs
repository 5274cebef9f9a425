//! How much memory and how many descriptors a program may hold. No mechanism foresees every way to
//! take them from it; so a program that holds too much takes its own place, which gives all back at
//! once. Its journal, its card and its outbox are on the disk, so nothing is lost. Only Linux tells
//! a program what it holds.

use std::process::Command;
use std::sync::LazyLock;
use std::{env, fs, io};

/// How many descriptors and how many kilobytes of memory a program may hold on this machine.
static MOST: LazyLock<Option<(u64, u64)>> = LazyLock::new(|| {
    let descriptors = number("/proc/self/limits", "Max open files")?;
    let memory = number("/proc/meminfo", "MemTotal:")?;
    Some((descriptors / 5 * 4, MOST_MEMORY.min(memory / 2)))
});
/// The bound of memory where the machine has plenty.
const MOST_MEMORY: u64 = 1 << 20;

/// Says what this program has too much of: memory, or descriptors.
pub fn excess() -> Option<String> {
    let (most_descriptors, most_memory) = (*MOST)?;
    let Ok(taken) = fs::read_dir("/proc/self/fd") else {
        return Some("no descriptor is left".into());
    };
    let taken = taken.count() as u64;
    let held = number("/proc/self/status", "VmRSS:")?;
    if taken >= most_descriptors {
        Some(format!("{taken} descriptors are taken"))
    } else if held >= most_memory {
        Some(format!("{} MiB of memory are held", held >> 10))
    } else {
        None
    }
}

/// Has the program that listens on a port take its own place: the same command without `--fresh`,
/// so that it goes on with what it has on its disk. Comes back only if that fails.
pub fn start_anew(port: u16) -> io::Error {
    let mut words = env::args_os();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words.filter(|it| it != "--fresh"));
    command.args(["--port", &port.to_string()]);
    #[cfg(unix)]
    return std::os::unix::process::CommandExt::exec(&mut command);
    #[cfg(not(unix))]
    io::Error::other(
        "this system cannot do that; start the program once more: it opens a new lobby",
    )
}

/// The first number behind a word, in a file of the system.
fn number(path: &str, word: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let (_, rest) = text.split_once(word)?;
    rest.split_whitespace().next()?.parse().ok()
}
