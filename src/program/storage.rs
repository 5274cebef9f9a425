//! What survives a program, in two sorts of file. Some are replaced whole: what people read, cards. Whoever reads one
//! sees the old or the new text, never half of it. Others grow by a line a record, which costs less than a new file:
//! a referee's outbox, a player's history. `Lines` is the second sort.
//! Read next: `referee/outbox.rs`, which is made of it.

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
/// or, where `append` has not returned, perhaps not at all. One program at a time: whoever opens it holds a lock.
pub struct Lines {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines.
    length: u64,
}

impl Lines {
    /// Opens or creates the file, and returns what stands in it. A last line that was never finished is cut off;
    /// a line that is not JSON is left out. An error names the file.
    pub fn open(path: &Path, access: Access) -> io::Result<(Lines, Vec<Value>)> {
        let open = || {
            let file = create(path, access, OpenOptions::new().append(true))?;
            let bytes = fs::read(path)?;
            let whole = bytes
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |last| last + 1);
            let records = bytes[..whole]
                .split(|byte| *byte == b'\n')
                .filter_map(|line| serde_json::from_slice(line).ok());
            Ok((
                Lines {
                    path: path.into(),
                    file,
                    length: whole as u64,
                },
                records.collect(),
            ))
        };
        open().map_err(|error| named(path, error))
    }

    /// Adds a record; it is durable when this returns. After an error it is not there, and a later one can be added.
    pub fn append(&mut self, record: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(record)? + "\n";
        let mut write = || {
            self.file.set_len(self.length)?; // what an unfinished one has left
            self.file.write_all(line.as_bytes())?;
            self.file.sync_data()
        };
        write().map_err(|error| named(&self.path, error))?;
        self.length += line.len() as u64;
        Ok(())
    }
}
