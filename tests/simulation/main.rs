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
//! broken, and prints the story of that league, without the faults that do not matter.
//!
//! What is not simulated, and what sees it instead: HTTP, JSON and JSON-RPC (`tests/stack/http.rs`,
//! `mcp.rs`, `protocol.rs`), threads within a program (`restart.rs`), the registration loop of a session
//! with its address and its silence (`tests/scripts/agents`), files that are replaced as a whole
//! (`damaged_files.rs`), GAME_ERROR, which only informs (`tests/scripts/match`), orders of the operator
//! (`tests/scripts/control`), floods (`tests/scripts/floods`), pages, relay and terminal (`tests/tools`).

mod agents;
mod judge;
mod replay;
mod world;

use league::program::Program;
use league::program::args::{COMMON, SERVER, Usage};
use league::protocol::AgentKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{self, ExitCode};
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

/// All leagues so far: how many, what has happened in them, and the first seed with a broken law.
#[derive(Default)]
struct Total {
    begun: u64,
    counts: BTreeMap<String, u64>,
    found: Option<u64>,
}

/// What one thread needs to play leagues, with a folder of its own for the files of all agents.
struct Runner {
    program: Arc<Program>,
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let (seeds, from) = match numbers[..] {
        [] if words.iter().any(|word| !word.starts_with('-')) => {
            return ExitCode::SUCCESS; // the name of another test
        }
        [] => (SEEDS, 1),
        [seeds] => (seeds, 1),
        [seeds, from, ..] => (seeds, from),
    };
    if words.iter().any(|word| word == "story") {
        Runner::new(0).play(from, &BTreeSet::new(), true);
        return ExitCode::SUCCESS;
    }

    let start = Instant::now();
    let total = &Mutex::new(Total::default());
    thread::scope(|scope| {
        for worker in 0..thread::available_parallelism().map_or(1, |cores| cores.get()) {
            scope.spawn(move || Runner::new(worker).play_all(total, from, seeds, start));
        }
    });
    let total = total.lock().unwrap();
    for (what, count) in &total.counts {
        println!("{count:>9} {what}");
    }
    print_speed(total.begun, start);
    let Some(seed) = total.found else {
        return ExitCode::SUCCESS;
    };
    Runner::new(0).explain(seed);
    ExitCode::FAILURE
}

fn print_speed(count: u64, start: Instant) {
    let time = start.elapsed().as_secs_f64();
    println!(
        "{count} leagues in {time:.1} s, {:.0} a second",
        count as f64 / time
    );
}

impl Runner {
    fn new(worker: usize) -> Runner {
        let memory = Some(Path::new("/dev/shm")).filter(|folder| folder.is_dir());
        let folder = memory.map_or_else(env::temp_dir, Path::to_path_buf);
        let folder = folder.join(format!("simulation-{}-{worker}", process::id()));
        let [data, logs] = ["data", "logs"].map(|name| folder.join(name).display().to_string());
        let config = concat!(env!("CARGO_MANIFEST_DIR"), "/config");
        let words = [
            "--config", config, "--data", &data, "--logs", &logs, "--port", "0", "--quiet",
            "--alone",
        ];
        let args = USAGE.parse(words.map(String::from).to_vec());
        let program = args.and_then(|args| Program::new(args, AgentKind::Manager));
        let program = Arc::new(program.map_err(|exit| exit.message).unwrap());
        Runner { program }
    }

    /// Plays leagues until there is no other one, or until a law is broken.
    fn play_all(&self, total: &Mutex<Total>, from: u64, seeds: u64, start: Instant) {
        loop {
            let mut all = total.lock().unwrap();
            if all.begun == seeds || all.found.is_some() {
                return;
            }
            let seed = from + all.begun;
            all.begun += 1;
            if all.begun.is_multiple_of(PROGRESS) {
                print_speed(all.begun, start);
            }
            drop(all);

            let world = self.play(seed, &BTreeSet::new(), false);
            let mut all = total.lock().unwrap();
            for (what, count) in world.counts {
                *all.counts.entry(what).or_default() += count;
            }
            if !world.broken.borrow().is_empty() && all.found.is_none_or(|first| seed < first) {
                all.found = Some(seed);
            }
        }
    }

    /// Plays a league without these faults, and judges it.
    fn play(&self, seed: u64, left_out: &BTreeSet<FaultId>, is_told: bool) -> World {
        let _ = fs::remove_dir_all(&self.program.data);
        let mut world = World::new(seed, left_out, &self.program);
        world.is_told = is_told;
        world.run();
        judge::judge(&mut world);
        for (law, problem) in world.broken.borrow().iter().filter(|_| is_told) {
            println!("seed {seed}, broken law: {law}: {problem}");
        }
        world
    }

    /// Prints the story of a league with a broken law, without the faults that do not matter.
    fn explain(&self, seed: u64) {
        let world = self.play(seed, &BTreeSet::new(), false);
        let law = world.broken.borrow()[0].0;
        let mut left_out = BTreeSet::new();
        for (_, fault) in world.happened.iter().rev() {
            let mut fewer = left_out.clone();
            fewer.insert(*fault);
            let world = self.play(seed, &fewer, false);
            if world.broken.borrow().iter().any(|(other, _)| *other == law) {
                left_out = fewer;
            }
        }

        let before = world.happened.len();
        println!(
            "\nThe league of seed {seed}, without {} of its {before} faults:",
            left_out.len()
        );
        self.play(seed, &left_out, true);
        println!(
            "Again: cargo test --example simulation -- 1 {seed}; with `story`, all of its faults"
        );
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.program.data.parent().unwrap());
    }
}
