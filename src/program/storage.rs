//! Files that survive a program, of two sorts.
//!
//! Cards and pages for people are replaced whole: whoever reads one sees the old text or the new one, never half of it.
//! The manager's journal and a referee's outbox grow by a line a record, which costs less than a new file each time:
//! these are `Lines`. Read next: `card.rs` for the first sort, `manager/journal.rs` for the second.

use crate::wire::{Timestamp, Wire};
use serde::Serialize;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Access {
    /// Whoever the machine lets.
    Everybody,
    /// Its owner alone (0600): there are tokens in it.
    Owner,
}

/// Opens a file for writing with the access it must have from its first byte on.
pub fn create(path: &Path, access: Access, options: &mut OpenOptions) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    #[cfg(unix)]
    if access == Access::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    }
    options.create(true).open(path)
}

/// The same error, with the file that it is about.
pub fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Replaces a file: a temporary one beside it, synced, then renamed. An error names the file.
pub fn replace(path: &Path, access: Access, text: &str) -> io::Result<()> {
    write_anew(path, access, text, true)
}

/// Replaces a page for people with a value as JSON: whole or not at all, but not synced, for it can be made again.
pub fn replace_page(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write_anew(
        path,
        Access::Everybody,
        &(serde_json::to_string_pretty(value)? + "\n"),
        false,
    )
}

fn write_anew(path: &Path, access: Access, text: &str, sync: bool) -> io::Result<()> {
    let new = path.with_extension("new");
    let write = || {
        let mut file = create(&new, access, OpenOptions::new().append(true))?;
        file.set_len(0)?; // one that a program left when it was killed
        file.write_all(text.as_bytes())?;
        if sync {
            file.sync_data()?;
        }
        fs::rename(&new, path)
    };
    write().map_err(|error| named(path, error))
}

/// Replaces a file with a value as JSON.
pub fn replace_json(path: &Path, access: Access, value: &impl Serialize) -> io::Result<()> {
    replace(path, access, &(serde_json::to_string_pretty(value)? + "\n"))
}

/// Reads what `replace_json` wrote; nothing where there is no such file, or something else stands in it.
pub fn read_json<T: Wire>(path: &Path) -> Option<T> {
    let file: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    T::read(&file).ok()
}

/// Moves a file or folder out of the way, if it is there, to a name that says when: no record is lost.
pub fn set_aside(path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let stamp = Timestamp::now().to_string().replace(':', "");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = (0..)
        .map(|n| {
            if n == 0 {
                format!("{name}~{stamp}")
            } else {
                format!("{name}~{stamp}.{n}")
            }
        })
        .map(|name| path.with_file_name(name))
        .find(|aside| !aside.exists());
    let aside = aside.unwrap_or_else(|| path.with_extension("old"));
    fs::rename(path, aside)
}

/// A file of JSON lines, a record each, that only grows. It bears being killed at any moment: a record is there whole,
/// or, where `append` has not returned, perhaps not at all.
pub struct Lines {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines.
    length: u64,
}

impl Lines {
    /// Opens or creates the file, and returns the records in it. A line that is not JSON is left out.
    pub fn open(path: &Path, access: Access) -> io::Result<(Lines, Vec<Value>)> {
        let mut records = Vec::new();
        let lines = Lines::open_strictly(path, access, |_, line| {
            records.extend(serde_json::from_slice::<Value>(line));
            Ok(())
        })?;
        Ok((lines, records))
    }

    /// Opens or creates the file, and gives each line to `take` with its number. A last line that was never finished is
    /// cut off; where `take` says what is wrong with a line, the file is refused. An error names the file.
    pub fn open_strictly(
        path: &Path,
        access: Access,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), String>,
    ) -> io::Result<Lines> {
        let mut open = || {
            let file = create(path, access, OpenOptions::new().append(true))?;
            let bytes = fs::read(path)?;
            let mut length = 0;
            for (n, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
                if line.ends_with(b"\n") {
                    let refused = |why| io::Error::other(format!("line {} {why}", n + 1));
                    take(n + 1, line).map_err(refused)?;
                    length += line.len() as u64;
                }
            }
            Ok((file, length))
        };
        let (file, length) = open().map_err(|error| named(path, error))?;
        Ok(Lines {
            path: path.into(),
            file,
            length,
        })
    }

    /// Adds a record; it is durable when this returns. After an error it is not there, and a later one can be added.
    pub fn append(&mut self, record: &impl Serialize) -> io::Result<()> {
        let before = self.length;
        self.write(record)?;
        let synced = self.sync();
        if synced.is_err() {
            self.length = before;
        }
        synced
    }

    /// Adds a record that is not durable yet. What an earlier one has left unfinished is cut off first.
    pub fn write(&mut self, record: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(record)? + "\n";
        let clean = self.file.set_len(self.length);
        let written = clean.and_then(|()| self.file.write_all(line.as_bytes()));
        written.map_err(|error| named(&self.path, error))?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Makes durable what was written.
    pub fn sync(&self) -> io::Result<()> {
        let synced = self.file.sync_data();
        synced.map_err(|error| named(&self.path, error))
    }
}
