//! `league new NAME --small`: a copy of the small league in `bin/NAME`, which the labs of the guide
//! change.

use league::program::args::Exit;
use league::program::terminal::print_line;
use league::values;
use std::fs::{self, File};
use std::io::Write;

/// Copies the small league of the project in this folder, and adds its programs to `Cargo.toml`.
pub fn run(name: &str) -> Result<(), Exit> {
    values::check_identifier(name).map_err(|legal| Exit::usage(format!("a name has {legal}")))?;
    let folder = format!("bin/{name}");
    let mut manifest = File::options().append(true).open("Cargo.toml")?;
    fs::create_dir(&folder).map_err(|error| Exit::failure(format!("{folder}: {error}")))?;

    for file in [
        "manager.rs",
        "referee.rs",
        "player.rs",
        "state.rs",
        "net.rs",
    ] {
        fs::copy(format!("bin/small/{file}"), format!("{folder}/{file}"))?;
    }
    for kind in ["manager", "referee", "player"] {
        let bin = format!("\n[[bin]]\nname = \"{name}_{kind}\"\npath = \"{folder}/{kind}.rs\"");
        writeln!(manifest, "{bin}")?;
    }
    print_line(&format!("{folder} is yours; make faults OF={folder}"));
    Ok(())
}
