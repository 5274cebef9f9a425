//! The folders of a practice: its data and its logs have folders of their own, which the next
//! practice replaces. They are deleted only if a practice made them.

pub mod comparison;
pub mod statistics;

use crate::agents::until;
use league::program::args::{Args, Exit};
use league::program::terminal::print_line;
use league::program::{SHUTDOWN_TIMEOUT, credentials, data_folder, log_folder, storage};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The extension of the folders of the last practice until the new one has begun.
const ASIDE: &str = "last";

/// Appends `practice` to the folders of the command line, and moves what the last practice left
/// there aside. The lock of the first practice stays in the data folder and shows that they are its
/// own.
pub fn replace_last_practice(args: &mut Args) -> Result<File, Exit> {
    let data = data_folder(args);
    let has_practice = data.join("agents/practice.lock").exists();
    let folders: [PathBuf; 2] = [data.join("practice"), log_folder(args).join("practice")];
    for (option, folder) in ["--data", "--logs"].into_iter().zip(&folders) {
        args.set(option, &folder.to_string_lossy());
        if folder.exists() && !has_practice {
            let folder = folder.display();
            return Err(Exit::failure(format!(
                "{folder} is there, but not from a practice; move it, or name others with \
                 --data DIR and --logs DIR"
            )));
        }
    }

    let lock = credentials::lock(&data, "practice")?;
    if args.has("--restarted") {
        return Ok(lock); // the practice goes on
    }
    restore_last_practice(args)?; // if the latest one was killed before it began
    for folder in folders.iter().filter(|folder| folder.exists()) {
        let aside = folder.with_extension(ASIDE);
        delete(&aside)?;
        storage::rename(folder, &aside)?;
        let folder = folder.display();
        print_line(&format!("{folder}: the last practice is replaced"));
    }

    Ok(lock)
}

/// Deletes a folder, if it exists. Agents of the last practice may still be ending, and write.
fn delete(folder: &Path) -> io::Result<()> {
    let mut removed = Ok(());
    until(SHUTDOWN_TIMEOUT, || {
        removed = if folder.exists() {
            fs::remove_dir_all(folder)
        } else {
            Ok(())
        };
        removed.is_ok()
    });
    removed.map_err(|error| storage::with_path(folder, error))
}

/// Deletes the last practice, since the new one has begun.
pub fn delete_last_practice(args: &Args) -> io::Result<()> {
    for folder in [data_folder(args), log_folder(args)] {
        delete(&folder.with_extension(ASIDE))?;
    }
    Ok(())
}

/// Puts the last practice back, since the new one could not begin. Its data are moved aside first,
/// put back last, and deleted first, so they show that the new one has not begun.
pub fn restore_last_practice(args: &Args) -> io::Result<()> {
    let data = data_folder(args);
    if !data.with_extension(ASIDE).exists() {
        return Ok(());
    }
    for folder in [log_folder(args), data] {
        let aside = folder.with_extension(ASIDE);
        if aside.exists() {
            delete(&folder)?;
            storage::rename(&aside, &folder)?;
        }
    }
    Ok(())
}
