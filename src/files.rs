//! Files that are replaced whole: what people read, cards, outboxes. Whoever reads one sees the old or the
//! new text, never half of it.

use crate::{clock::Timestamp, wire::Wire};
use serde::Serialize;
use serde_json::Value;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// Whether a name from outside can be a part of a path: letters, digits, `_` and `-`.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

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
    let new = path.with_extension("new");
    let write = || {
        let mut file = create(&new, access, OpenOptions::new().write(true).truncate(true))?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
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
        .map(|n| if n == 0 { format!("{name}~{stamp}") } else { format!("{name}~{stamp}.{n}") })
        .map(|name| path.with_file_name(name))
        .find(|aside| !aside.exists());
    let aside = aside.unwrap_or_else(|| path.with_extension("old"));
    fs::rename(path, aside)
}

/// Random bytes as hex digits, from the operating system: fit for secrets.
pub fn secret(digits: u32) -> String {
    let mut hex = String::new();
    let mut urandom = File::open("/dev/urandom").ok();
    while hex.len() < digits as usize {
        let mut bytes = [0u8; 8];
        let read = urandom.as_mut().is_some_and(|file| io::Read::read_exact(file, &mut bytes).is_ok());
        if !read {
            // No such device: std seeds each of these from the operating system, and hashes with SipHash.
            use std::hash::{BuildHasher, Hasher};
            bytes = std::hash::RandomState::new().build_hasher().finish().to_le_bytes();
        }
        bytes.iter().for_each(|byte| hex += &format!("{byte:02x}"));
    }
    hex.truncate(digits as usize);
    hex
}
