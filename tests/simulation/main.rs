//! Whole leagues in virtual time: the code of the three programs, in one thread, in a world whose
//! network, clocks and disks fail. A seed is a league; the same seed gives the same story, byte for
//! byte. The page `src/guide/simulation.md` explains how it works.
//!
//! ```text
//! cargo test --example simulation                   some leagues of each profile
//! make simulate SEEDS=100000 FROM=1                 many, on all cores
//! cargo test --example simulation -- 1 35 story     what happens in the league of seed 35
//! ```
//! `SEEDS [FROM] [story]` are its arguments. It ends with 1 at the first law that is
//! broken, and prints the story of that league (all that happens in it), without the faults that do not
//! matter. With `story` it ends with 0.
//!
//! What is not simulated, and what sees it instead: HTTP, JSON and JSON-RPC (`tests/stack/http.rs`,
//! `mcp.rs`, `protocol.rs`), threads within a program (`restart.rs`), the session of an agent with its
//! registration, address and silence (`tests/scripts/agents`, `every_player`), files that are replaced
//! as a whole (`damaged_files.rs`), a player's history on its disk (`tests/scripts/player`), GAME_ERROR,
//! which only informs (`tests/scripts/match`), ranks of equal points (`tests/scripts/rules`), orders of
//! the operator (`tests/scripts/control`), floods (`tests/scripts/floods`), pages, relay and terminal
//! (`tests/tools`).

mod agents;
mod judge;
mod replay;
mod world;

use league::net::sync::lock;
use league::program::Program;
use league::program::args::{COMMON, SERVER, Usage};
use league::protocol::AgentKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{env, fs, thread};
use world::{FaultId, World};

/// The number of leagues without an argument.
const SEEDS: u64 = 2000;
/// The number of leagues after which the progress is printed.
const PROGRESS: u64 = 10_000;

const USAGE: Usage = Usage {
    name: "simulation",
    about: "",
    options: &[
        "\n  --alone    like --quiet\n  --quiet    prints nothing",
        SERVER,
        COMMON,
    ],
};

/// What has happened in all leagues, and how often.
static COUNTS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// The first seed of a league with a broken law.
static FOUND: AtomicU64 = AtomicU64::new(u64::MAX);

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if numbers.is_empty() && words.iter().any(|word| !word.starts_with('-')) {
        return ExitCode::SUCCESS; // the name of another test
    }

    let seeds = numbers.first().copied().unwrap_or(SEEDS);
    let from = numbers.get(1).copied().unwrap_or(1);
    let folder = folder();
    let program = program(&folder.join("story"));
    if words.iter().any(|word| word == "story") {
        play(&program, from, &BTreeSet::new(), true);
    } else {
        play_all(from, seeds, &folder);
    }
    let found = FOUND.load(Ordering::Relaxed);
    if found < u64::MAX {
        explain(&program, found);
    }
    let _ = fs::remove_dir_all(folder);
    ExitCode::from(u8::from(found < u64::MAX))
}

/// Returns the folder for the files of all agents, in memory if there is such a one.
fn folder() -> PathBuf {
    let memory = Some(Path::new("/dev/shm")).filter(|folder| folder.is_dir());
    let folder = memory.map_or_else(env::temp_dir, Path::to_path_buf);
    folder.join(format!("simulation-{}", process::id()))
}

/// Returns what all programs have: a configuration, and a folder.
fn program(folder: &Path) -> Arc<Program> {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/config");
    let folder = folder.display();
    let words = format!(
        "--config\n{config}\n--data\n{folder}\n--logs\n{folder}\n--port\n0\n--quiet\n--alone"
    );
    let args = USAGE.parse(words.lines().map(String::from).collect());
    let program = args.and_then(|args| Program::new(args, AgentKind::Manager));
    Arc::new(program.map_err(|exit| exit.message).unwrap())
}

/// Plays leagues on all cores, until a law is broken, and prints what has happened in them.
fn play_all(from: u64, seeds: u64, folder: &Path) {
    let start = Instant::now();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for core in 0..cores {
            scope.spawn(move || {
                let program = program(&folder.join(core.to_string()));
                for seed in (from..from + seeds).skip(core).step_by(cores) {
                    if seed > FOUND.load(Ordering::Relaxed) {
                        return;
                    }
                    let world = play(&program, seed, &BTreeSet::new(), false);
                    if !world.broken.borrow().is_empty() {
                        FOUND.fetch_min(seed, Ordering::Relaxed);
                    }
                    if seed.is_multiple_of(PROGRESS) {
                        println!("seed {seed}, after {:.0?}", start.elapsed());
                    }
                }
            });
        }
    });

    for (what, count) in &*lock(&COUNTS) {
        println!("{count:>9} {what}");
    }
    let time = start.elapsed().as_secs_f64();
    println!(
        "{:.0} leagues a second",
        lock(&COUNTS)["league"] as f64 / time
    );
}

/// Plays a league without these faults, and judges it.
fn play(program: &Arc<Program>, seed: u64, left_out: &BTreeSet<FaultId>, is_told: bool) -> World {
    let _ = fs::remove_dir_all(&program.data);
    let mut world = World::new(seed, left_out, program, is_told);
    world.run();
    judge::judge(&world);
    for (law, problem) in world.broken.borrow().iter().filter(|_| is_told) {
        println!("seed {seed}, broken law: {law}: {problem}");
    }
    world
}

/// Prints the story of a league with a broken law, without the faults that do not matter.
fn explain(program: &Arc<Program>, seed: u64) {
    let world = play(program, seed, &BTreeSet::new(), false);
    let law = world.broken.borrow()[0].0;
    let mut left_out = BTreeSet::new();
    for fault in world.happened.iter().rev() {
        left_out.insert(fault.1);
        let world = play(program, seed, &left_out, false);
        if world.broken.borrow().iter().all(|(other, _)| *other != law) {
            left_out.remove(&fault.1);
        }
    }

    let (fewer, all) = (left_out.len(), world.happened.len());
    println!("\nThe league of seed {seed}, without {fewer} of its {all} faults:");
    play(program, seed, &left_out, true);
    println!("Again: cargo test --example simulation -- 1 {seed}; with `story`, all of its faults");
}
