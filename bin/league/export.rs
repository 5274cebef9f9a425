//! The files that people keep of a league that is over, made from its document: the report, the whole
//! document, and the tables for spreadsheets. If one cannot be written, the others are written
//! nevertheless.

use crate::derived::DerivedFields;
use crate::render;
use crate::view::LeagueView;
use league::program::storage::{self, Access};
use std::path::Path;

/// Writes the files below the folder `data`; the report has traces of the folder `logs`. Returns a
/// sentence that names the folder, or one with the first error.
pub fn write(
    data: &Path,
    logs: &Path,
    view: &LeagueView,
    derived: &DerivedFields,
) -> Result<String, String> {
    let folder = storage::league_folder(data, &view.league_id);
    let mut errors = Vec::new();
    for name in ["report.html", "league.json", "results.csv", "standings.csv"] {
        let text = render::file(name, view, derived, logs).unwrap_or_default();
        let written = storage::replace(&folder.join(name), Access::AllUsers, &text);
        errors.extend(written.err());
    }

    let count = errors.len();
    match errors.first() {
        Some(error) => Err(format!(
            "{count} of the files to keep cannot be written: {error}"
        )),
        None => Ok(format!(
            "to keep: report.html, results.csv and standings.csv in {}",
            folder.display()
        )),
    }
}
