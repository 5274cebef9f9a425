//! A practice: its folders, and what is printed at its end. Its data and its logs have folders of
//! their own, which the next practice replaces. They are deleted only if a practice made them.

use crate::compare::comparison::{Comparison, MAX_BLOCKS};
use crate::compare::statistics;
use crate::show::screen;
use crate::show::view::LeagueView;
use crate::start::children::until;
use league::manager::Manager;
use league::manager::league::League;
use league::player::display::place;
use league::program::args::{Args, Exit};
use league::program::terminal::{print_line, sanitize};
use league::program::{SHUTDOWN_TIMEOUT, credentials, data_folder, log_folder, storage};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Appends `practice` to the folders of the command line, and deletes what the last practice left
/// there. The lock of the first practice stays in the data folder and shows that they are its
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

    for folder in folders.iter().filter(|folder| folder.exists()) {
        delete(folder)?;
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

/// Prints what a practice says about the user's own players, or a comparison about its two. Returns
/// a problem if a player has lost all its matches technically.
pub fn print_result(
    manager: &Manager,
    view: &LeagueView,
    own: &[String],
    is_comparison: bool,
) -> Option<String> {
    if !is_comparison {
        if !manager.program.args.has("--cycles") {
            print_places(manager, own);
        }
        print_line(&format!("\n{}", statistics::completeness(view)));
        print_line(&statistics::report(view, own));
    } else if let Some(comparison) = Comparison::of(view, MAX_BLOCKS) {
        manager.terminal.print_line(&comparison.news());
    }

    let logs = log_folder(&manager.program.args);
    let losses = (manager.store).read(|league| screen::first_losses(league, &logs));
    for line in losses {
        print_line(&line);
    }

    let player = manager.store.read(screen::player_without_a_match)?;
    Some(format!("{player} has lost all its matches technically"))
}

/// Prints the places of the user's own players in the table.
fn print_places(manager: &Manager, own: &[String]) {
    let table = manager.store.read(League::table);
    let all_points: Vec<i32> = table.iter().map(|row| row.points).collect();
    for row in table {
        if own.contains(&row.display_name) {
            let place = place(row.rank, row.points, &all_points);
            print_line(&sanitize(&format!("{} is {place}", row.display_name)));
        }
    }
}
