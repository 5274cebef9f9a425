//! How much memory and how many descriptors a program may hold. No mechanism foresees every way to take them from it; so
//! a program that holds too much takes its own place, which gives all back at once. Its journal, its card and its outbox
//! are on the disk, so nothing is lost. Only Linux tells a program what it holds.

use std::fs;

/// How much memory a program may hold, in kilobytes.
const MOST_MEMORY: u64 = 1 << 20;

/// How much a program may hold.
pub struct Bounds {
    descriptors: u64,
    /// In kilobytes.
    memory: u64,
}

impl Bounds {
    /// The bounds of this machine.
    pub fn find() -> Option<Bounds> {
        let read = |path: &str| fs::read_to_string(path).ok();
        let descriptors = number(&read("/proc/self/limits")?, "Max open files")?;
        let memory = number(&read("/proc/meminfo")?, "MemTotal:")?;
        Some(Bounds {
            descriptors: descriptors / 5 * 4,
            memory: MOST_MEMORY.min(memory / 2),
        })
    }

    /// Says what this program has too much of: memory, or descriptors.
    pub fn excess(&self) -> Option<String> {
        let Ok(taken) = fs::read_dir("/proc/self/fd") else {
            return Some("no descriptor is left".into());
        };
        let taken = taken.count() as u64;
        let held = number(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")?;
        if taken >= self.descriptors {
            Some(format!("{taken} descriptors are taken"))
        } else if held >= self.memory {
            Some(format!("{} MiB of memory are held", held >> 10))
        } else {
            None
        }
    }
}

/// The first number behind a word, in a file of the system.
fn number(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.split_once(word)?;
    rest.split_whitespace().next()?.parse().ok()
}
