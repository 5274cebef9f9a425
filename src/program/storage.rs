//! Files that survive a program, of two sorts.
//!
//! Cards and pages for people are replaced whole: whoever reads one sees the old text or the new
//! one, never half of it. The manager's journal and a referee's outbox grow by a line a record,
//! which costs less than a new file each time: these are `Lines`. Read next: `card.rs` for the
//! first sort, `manager/journal.rs` and `referee/outbox.rs` for the second.

use crate::wire::{Timestamp, Wire};
use serde::Serialize;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Access {
    /// Whoever the machine lets.
    Everybody,
    /// Its owner alone (0600): there are tokens in it, which nobody can make again.
    Owner,
}

/// The folder of a league below the folder of data: its journal, and the files that are made of it.
pub fn league_folder(data: &Path, league_id: &str) -> PathBuf {
    data.join("leagues").join(league_id)
}

/// Opens a file for writing with the access it must have from its first byte on. An error names the
/// file.
pub fn create(path: &Path, access: Access, options: &mut OpenOptions) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| named(folder, error))?;
    }
    #[cfg(unix)]
    if access == Access::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    }
    let opened = options.create(true).open(path);
    opened.map_err(|error| named(path, error))
}

/// The same error, with the file that it is about.
pub fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Replaces a file with a text. An error names the file.
pub fn replace(path: &Path, access: Access, text: &str) -> io::Result<()> {
    replace_by(path, access, |file| file.write_all(text.as_bytes()))
}

/// Replaces a file with a value as JSON, which is written piece by piece: the results of a large
/// league are megabytes.
pub fn replace_json(path: &Path, access: Access, value: &impl Serialize) -> io::Result<()> {
    replace_by(path, access, |file| {
        let mut pieces = BufWriter::new(file);
        serde_json::to_writer_pretty(&mut pieces, value)?;
        pieces.write_all(b"\n")?;
        pieces.flush()
    })
}

/// Replaces a file: a temporary one beside it, then renamed. What is for its owner alone is synced
/// first, for nobody can make it again.
fn replace_by(
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = create(&new, access, OpenOptions::new().write(true).truncate(true))?;
    let replaced = write(&mut file)
        .and_then(|()| match access {
            Access::Owner => file.sync_data(),
            Access::Everybody => Ok(()),
        })
        .and_then(|()| fs::rename(&new, path));
    replaced.map_err(|error| named(path, error))
}

/// Reads what `replace_json` wrote; nothing where there is no such file, or something else stands
/// in it.
pub fn read_json<T: Wire>(path: &Path) -> Option<T> {
    let file: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    T::read(&file).ok()
}

/// Moves a file or folder out of the way, if it is there, to a name that says when: no record is
/// lost.
pub fn set_aside(path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let stamp = Timestamp::now().to_string().replace(':', "");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut aside = path.with_file_name(format!("{name}~{stamp}"));
    while aside.exists() {
        aside.as_mut_os_string().push("~"); // two within a second
    }
    fs::rename(path, aside)
}

/// A file of JSON lines, a record each, that only grows, and that one program has at a time. It
/// bears being killed at any moment: a record is there whole, or, where `append` has not returned,
/// perhaps not at all.
pub struct Lines {
    name: String,
    file: File,
    /// Bytes of whole lines.
    length: u64,
}

impl Lines {
    /// Opens or creates the file, and hands every line in it to `take`; a last one that was never
    /// finished is cut off.
    pub fn open(path: &Path, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<Lines> {
        let mut options = OpenOptions::new();
        let file = create(path, Access::Owner, options.read(true).append(true))?;
        file.try_lock().map_err(|_| {
            let remedy = "end that one, or name other data with --data DIR";
            let why = format!("another program is running on it; {remedy}");
            named(path, io::Error::new(io::ErrorKind::WouldBlock, why))
        })?;
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        let mut length = 0;
        while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            take(&line)?;
            length += line.len() as u64;
            line.clear();
        }
        file.set_len(length)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.into();
        Ok(Lines { name, file, length })
    }

    /// Adds a record; it is durable when this returns. What an earlier one has left unfinished is
    /// cut off, at the latest before the next: after an error nothing has changed.
    pub fn append(&mut self, record: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(record)? + "\n";
        let clean = self.file.set_len(self.length);
        let written = clean.and_then(|()| self.file.write_all(line.as_bytes()));
        let synced = written.and_then(|()| self.file.sync_data());
        synced.map_err(|error| {
            let _ = self.file.set_len(self.length);
            io::Error::other(format!("{} cannot be written: {error}", self.name))
        })?;
        self.length += line.len() as u64;
        Ok(())
    }
}
