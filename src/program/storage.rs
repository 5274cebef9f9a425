//! Files that survive a program, of two sorts: files that are replaced as a whole (credentials, and
//! files for people), and append-only files with a line for each record (the manager's journal, a
//! referee's outbox). Read next: `manager/journal.rs`.

use super::terminal::print_error;
use crate::net::sync;
use crate::system;
use crate::values::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// Interval between two attempts to open a file while no descriptor is left.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The byte order mark, which editors on Windows write before the text of a file.
const BYTE_ORDER_MARK: &str = "\u{feff}";

thread_local! {
    /// The number of bytes of a line for which a disk has room. A simulation sets it.
    pub static ROOM: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Held while a file is replaced: two threads would take the same temporary file.
static REPLACING: Mutex<()> = Mutex::new(());

/// The users who may read a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Access {
    /// All users of the machine.
    AllUsers,
    /// Its owner alone: there are tokens in it.
    Owner,
}

/// Returns the folder of a league below the data folder.
pub fn league_folder(data: &Path, league_id: &str) -> PathBuf {
    data.join("leagues").join(league_id)
}

/// Repeats an attempt to open a file while no file descriptor is left: under a flood of connections
/// they become free again.
fn wait_for_free_file<T>(attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if system::is_out_of_files(&error) => thread::sleep(RETRY_INTERVAL),
            result => return result,
        }
    }
}

/// Opens a file for reading and writing, and creates it and its folder if they do not exist; with
/// `is_new` it must not exist.
fn open(path: &Path, access: Access, is_new: bool) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| with_path(folder, error))?;
    }

    // Not for appending: Windows shortens no file that is open for that.
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.create(true).create_new(is_new);
    if access == Access::Owner {
        system::restrict_to_owner(&mut options);
    }
    wait_for_free_file(|| options.open(path)).map_err(|error| with_path(path, error))
}

/// Returns the same error with the path of the file.
pub fn with_path(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Replaces a file by way of a temporary one: a reader sees the old text or the new one. A file for
/// its owner alone is synced.
pub fn replace(path: &Path, access: Access, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let _replacing = sync::lock(&REPLACING);
    let _ = fs::remove_file(&temporary); // it may be a link, or belong to another user
    let mut file = open(&temporary, access, true)?;
    file.write_all(text.as_bytes())?;
    if access == Access::Owner {
        file.sync_data()?;
    }
    drop(file);

    rename(&temporary, path)
}

/// Renames a file or a folder.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let renamed = system::retry(|| fs::rename(from, to));
    renamed.map_err(|error| with_path(to, error))
}

/// Locks a file or a folder until the returned file is closed. The lock is a file of its own next
/// to it: Windows lets no other program read a locked file, and moves no folder with an open one.
pub fn lock(path: &Path) -> io::Result<File> {
    let file = open(&path.with_extension("lock"), Access::Owner, false)?;
    let locked = system::retry(|| Ok(file.try_lock()?));
    locked.map_err(|error| {
        let problem = match error.kind() {
            io::ErrorKind::WouldBlock => {
                "another program is running on it, perhaps in another terminal; end that one".into()
            }
            _ => format!("this file system cannot lock files ({error})"),
        };
        let text = format!(
            "{}: {problem}, or name other data with --data DIR",
            path.display()
        );
        io::Error::new(error.kind(), text)
    })?;
    Ok(file)
}

/// Replaces a file by a value as JSON.
pub fn replace_json(path: &Path, access: Access, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    replace(path, access, &text)
}

/// Reads a plain text file, without a byte order mark. A pipe or a device could keep us waiting for
/// ever.
pub fn read_text(path: &Path) -> io::Result<String> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(with_path(
            path,
            io::Error::other("this is not a plain file"),
        ));
    }

    let text = wait_for_free_file(|| fs::read_to_string(path));
    let text = text.map_err(|error| with_path(path, error))?;
    Ok(text.trim_start_matches(BYTE_ORDER_MARK).into())
}

/// Returns true if there is no such file.
pub fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// Reads a JSON file; `None` if it is missing. Other content is an error.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let text = match read_text(path) {
        Err(error) if is_missing(&error) => return Ok(None),
        text => text?,
    };
    let value = serde_json::from_str(&text);
    value.map_err(|error| with_path(path, io::Error::other(format!("it is damaged ({error})"))))
}

/// Renames a file or a folder, if it exists, to a name with the time, and says so.
pub fn archive(path: &Path) -> io::Result<()> {
    if let Some(archived) = move_aside(path)? {
        let [from, to] = [path, &archived].map(Path::display);
        print_error(&format!("{from}: what it had is in {to} now"));
    }
    Ok(())
}

/// Renames a file or a folder, if it exists, to a name with the time, and returns that.
pub fn move_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    if !path.exists() {
        return Ok(None);
    }

    let time = Timestamp::now().to_string().replace(':', "");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut archived = path.with_file_name(format!("{name}~{time}"));
    while archived.exists() {
        archived.as_mut_os_string().push("~"); // two within a second
    }

    rename(path, &archived)?;
    Ok(Some(archived))
}

/// Copies the rest of a file, which will be cut off, to the end of `FILE~cut`, and says so.
fn move_rest(path: &Path, rest: &[u8]) -> io::Result<()> {
    let (path, length) = (path.display(), rest.len());
    let copy = format!("{path}~cut");
    let mut file = open(Path::new(&copy), Access::Owner, false)?;
    file.seek(SeekFrom::End(0))?;
    file.write_all(&[rest, b"\n"].concat())?;
    file.sync_data()?;

    let problem = "the last line has no end";
    print_error(&format!(
        "{path}: {problem}; its {length} bytes are moved to {copy}"
    ));
    Ok(())
}

/// A file of JSON lines, of which only one program is the writer. The program may be killed at any
/// moment: a record is there, or `append` has not returned yet.
pub struct JsonLinesFile {
    path: PathBuf,
    file: File,
    /// Length of all complete lines, in bytes.
    length: u64,
    /// True if the rest of a failed attempt may stand behind them.
    has_rest: bool,
}

impl JsonLinesFile {
    /// Opens or creates the file and calls `read_line` for each line that is not blank. An
    /// incomplete last line is moved to the end of `FILE~cut`: a crash leaves one, but also an
    /// editor that ends a file without a line break.
    pub fn open(
        path: &Path,
        mut read_line: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<JsonLinesFile> {
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(with_path(
                path,
                io::Error::other("this is not a plain file"),
            ));
        }

        let file = open(path, Access::Owner, false)?;

        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        let mut length = 0;
        let mark = BYTE_ORDER_MARK.as_bytes();
        while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            if !line.trim_ascii().is_empty() {
                read_line(line.strip_prefix(mark).unwrap_or(&line))?;
            }
            length += line.len() as u64;
            line.clear();
        }

        if !line.is_empty() {
            move_rest(path, &line)?;
        }
        file.set_len(length)?;
        Ok(JsonLinesFile {
            path: path.into(),
            file,
            length,
            has_rest: false,
        })
    }

    /// Fails if another program has written the file, as it can on a drive on which locks do
    /// nothing.
    pub fn check(&self) -> io::Result<()> {
        if self.has_rest || self.file.metadata()?.len() == self.length {
            return Ok(());
        }
        let problem = "another program writes this file; end one of the two";
        Err(with_path(&self.path, io::Error::other(problem)))
    }

    /// Adds a record; it is on the disk when this returns. After an error nothing has changed.
    pub fn append(&mut self, record: &impl Serialize) -> io::Result<()> {
        self.check()?;
        let line = serde_json::to_string(record)? + "\n";
        let written = self.write(&line);
        self.has_rest = written.is_err();
        if let Err(error) = written {
            let _ = self.file.set_len(self.length);
            let name = self.path.file_name().unwrap_or_default().display();
            return Err(io::Error::other(format!(
                "{name} cannot be written: {error}"
            )));
        }

        self.length += line.len() as u64;
        Ok(())
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        self.file.set_len(self.length)?; // remove the rest of an earlier attempt
        self.file.seek(SeekFrom::Start(self.length))?;
        let (written, rest) = line.as_bytes().split_at(line.len().min(ROOM.get()));
        self.file.write_all(written)?;
        if !rest.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.sync_data()
    }
}
