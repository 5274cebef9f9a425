//! `league new`: a player of your own in this repository, a copy of a template in Rust or Python;
//! or a copy of the small league, which the labs of the guide change.

use crate::players::{by_hand, strategies};
use crate::show::page::PLAYER_TEMPLATE;
use league::program::args::{Exit, Usage};
use league::program::storage::{Access, replace};
use league::program::terminal::print_line;
use league::system::PYTHON;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

pub const USAGE: Usage = Usage {
    name: "league new NAME",
    about: "make a player of your own: ada in Rust, eve.py in Python",
    options: &["
  --small                     a copy of the small league in bin/NAME
  --help                      show this and end"],
};

const MANIFEST: &str = "Cargo.toml";
/// Names that Cargo keeps for itself, and those of devices of Windows, some with a number.
const RESERVED: [&str; 10] = [
    "build",
    "deps",
    "examples",
    "incremental",
    "aux",
    "com",
    "con",
    "lpt",
    "nul",
    "prn",
];

/// Makes a player, and prints what to do with it.
pub fn run(name: &str) -> Result<(), Exit> {
    let stem = name.trim_end_matches(".py");
    let is_python = stem != name;
    check_name(name, stem)?;

    let listed = fs::read_to_string(MANIFEST)
        .map_err(|error| Exit::usage(format!("{MANIFEST}: {error}; type this in the project")))?;
    let file = format!("bin/{stem}.{}", if is_python { "py" } else { "rs" });
    let path = Path::new(&file);
    if path.exists() || listed.contains(&format!("name = \"{name}\"")) {
        return Err(Exit::usage(format!(
            "{name} is there already; nothing was changed"
        )));
    }

    let (template, command, entry) = if is_python {
        (
            PLAYER_TEMPLATE,
            format!("\"{PYTHON} {file}\""),
            String::new(),
        )
    } else {
        (
            include_str!("../../player.rs"),
            name.into(),
            program_entry(name, &file),
        )
    };
    replace(path, Access::AllUsers, template)?;
    let mut manifest = OpenOptions::new().append(true).open(MANIFEST)?;
    manifest.write_all(entry.as_bytes())?;

    print_line(&format!(
        "{file} is a player of your own, and plays as it stands. Now:\n  \
         1. change choose in {file}\n  \
         2. make league MINE={command} CYCLES=20 lets it play,\n     \
         and says whether it is better than a coin (without make: cargo build, then\n     \
         cargo run -q --bin league -- local --fresh --mine {command} --cycles 20)"
    ));
    Ok(())
}

/// Checks that nobody has another use for the name of a player.
fn check_name(name: &str, stem: &str) -> Result<(), Exit> {
    let is_name = stem.starts_with(|c: char| c.is_ascii_lowercase())
        && (stem.chars()).all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_'));
    let is_reserved = RESERVED.contains(&stem.trim_end_matches(|c: char| c.is_ascii_digit()));
    let problem = if !is_name || is_reserved {
        format!(
            "got {name:?}, expected small letters, digits and _, like ada or eve.py, and no name of \
             Cargo or of a device"
        )
    } else if strategies::all_names().any(|strategy| strategy == name) || by_hand::is_by_hand(name)
    {
        format!("MINE={name} is another player, which is here already; take a name like my_{name}")
    } else if name != stem && is_python_module(stem) {
        format!(
            "{name} would hide Python's own module {stem} from all players in bin; take a name \
             like my_{name}"
        )
    } else {
        return Ok(());
    };

    Err(Exit::usage(problem))
}

/// Returns true if Python's library has a module of this name.
fn is_python_module(name: &str) -> bool {
    let code =
        "import importlib.util as util, sys; sys.exit(9 if util.find_spec(sys.argv[1]) else 0)";
    let mut python = Command::new(PYTHON);
    python
        .args(["-I", "-S", "-c", code, name])
        .stderr(Stdio::null());
    python.status().is_ok_and(|end| end.code() == Some(9))
}

/// Copies the small league to `bin/NAME`, and adds its programs to the manifest.
pub fn copy_small_league(name: &str) -> Result<(), Exit> {
    check_name(name, name)?;
    let folder = format!("bin/{name}");
    let mut manifest = OpenOptions::new().append(true).open(MANIFEST)?;
    fs::create_dir(&folder).map_err(|error| Exit::failure(format!("{folder}: {error}")))?;

    for file in [
        "manager.rs",
        "referee.rs",
        "player.rs",
        "state.rs",
        "net.rs",
        "config.rs",
    ] {
        fs::copy(format!("bin/small/{file}"), format!("{folder}/{file}"))?;
    }

    for kind in ["manager", "referee", "player"] {
        let entry = program_entry(&format!("{name}_{kind}"), &format!("{folder}/{kind}.rs"));
        manifest.write_all(entry.as_bytes())?;
    }

    print_line(&format!("{folder} is yours; make faults OF={folder}"));
    Ok(())
}

/// Returns the entry of a program in the manifest.
fn program_entry(name: &str, path: &str) -> String {
    format!("\n[[bin]]\nname = \"{name}\"\npath = \"{path}\"\n")
}
