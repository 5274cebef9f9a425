//! Whole leagues in virtual time: the code of the three programs, in one thread, in a world whose
//! network, clocks and disks fail. A seed is a league; the same seed gives the same story, byte for
//! byte. The page `src/guide/simulation.md` explains how it works.
//!
//! ```text
//! cargo test --example simulation                   some leagues of each profile
//! make simulate SEEDS=100000 FROM=1                 many, on all cores
//! cargo test --example simulation -- 1 35 story     what happens in the league of seed 35
//! ```
//! `SEEDS [FROM] [safety|away|breach] [story]` are its arguments. It ends with 1 at the first law that is
//! broken, and prints the story of that league, with as few faults as break the same law.
//!
//! What is not simulated, and what sees it instead: HTTP, JSON and JSON-RPC (`tests/stack/http.rs`,
//! `mcp.rs`, `protocol.rs`), threads within a program, and the registration loop of a session with its
//! address and its silence (`alone.rs`, `restart.rs`), files that are replaced as a whole
//! (`damaged_files.rs`), floods (`flood.rs`), pages, relay and terminal (`tests/tools`).

mod agents;
mod judge;
mod replay;
mod world;

use league::program::Program;
use league::program::args::{COMMON, SERVER, Usage};
use league::protocol::AgentKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use world::{FaultId, Profile, World};

/// The number of leagues without an argument.
const SEEDS: u64 = 1500;
/// The longest time that a league is played.
const LIMIT: Duration = Duration::from_secs(3600);
/// The number of leagues after which the progress is printed.
const PROGRESS: u64 = 10_000;
/// The longest time in which the faults that matter are looked for.
const SHORTENING_TIMEOUT: Duration = Duration::from_secs(20);

const PROFILES: [Profile; 3] = [Profile::Safety, Profile::Away, Profile::Breach];

const USAGE: Usage = Usage {
    name: "simulation",
    about: "",
    options: &[
        "\n  --alone    like --quiet\n  --quiet    prints nothing",
        SERVER,
        COMMON,
    ],
};

/// All leagues so far.
#[derive(Default)]
struct Total {
    next: u64,
    played: u64,
    counts: BTreeMap<String, u64>,
    /// The first league with a broken law.
    found: Option<(u64, Profile)>,
}

/// A league that was played.
struct Played {
    world: World,
    findings: Vec<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words
        .iter()
        .map(|word| &**word)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let only = PROFILES
        .into_iter()
        .find(|profile| words.contains(&&*name_of(*profile)));
    let seeds = numbers.first().copied().unwrap_or(SEEDS);
    let from = numbers.get(1).copied().unwrap_or(1);
    if !words.is_empty() && numbers.is_empty() {
        return ExitCode::SUCCESS; // the name of another test
    }
    let profile_of = |seed: u64| only.unwrap_or(PROFILES[seed as usize % 3]);
    if words.contains(&"story") {
        let program = new_program(0);
        let played = play(from, profile_of(from), &BTreeSet::new(), &program, true);
        print_story(&played);
        return ExitCode::from(u8::from(!played.findings.is_empty()));
    }

    let begun = Instant::now();
    let total = Mutex::new(Total::default());
    thread::scope(|scope| {
        for worker in 0..thread::available_parallelism().map_or(1, |cores| cores.get()) {
            let total = &total;
            scope.spawn(move || {
                let program = new_program(worker);
                while let Some(seed) = next_seed(total, from, seeds) {
                    let played = play(seed, profile_of(seed), &BTreeSet::new(), &program, false);
                    add(total, &played, begun);
                }
                let _ = fs::remove_dir_all(program.data.parent().unwrap());
            });
        }
    });

    let total = total.into_inner().unwrap();
    for (what, count) in &total.counts {
        println!("{count:>9} {what}");
    }
    print_speed(&total, begun);
    let Some((seed, profile)) = total.found else {
        return ExitCode::SUCCESS;
    };
    explain(seed, profile);
    ExitCode::FAILURE
}

/// Returns the name of a profile as an argument.
fn name_of(profile: Profile) -> String {
    format!("{profile:?}").to_lowercase()
}

/// Returns the next seed, unless a broken law was found.
fn next_seed(total: &Mutex<Total>, from: u64, seeds: u64) -> Option<u64> {
    let mut total = total.lock().unwrap();
    total.next += 1;
    (total.next <= seeds && total.found.is_none()).then(|| from + total.next - 1)
}

/// Adds a league to the total.
fn add(total: &Mutex<Total>, played: &Played, begun: Instant) {
    let mut total = total.lock().unwrap();
    total.played += 1;
    for (what, count) in &played.world.counts {
        *total.counts.entry(what.clone()).or_default() += count;
    }
    let seed = played.world.seed;
    if !played.findings.is_empty() && total.found.is_none_or(|(first, _)| seed < first) {
        total.found = Some((seed, played.world.profile));
    }
    if total.played.is_multiple_of(PROGRESS) {
        print_speed(&total, begun);
    }
}

fn print_speed(total: &Total, begun: Instant) {
    let time = begun.elapsed().as_secs_f64();
    println!(
        "{} leagues in {time:.1} s, {:.0} a second",
        total.played,
        total.played as f64 / time
    );
}

/// Returns the program of the manager, with a folder of its own for the files of all agents.
fn new_program(worker: usize) -> Arc<Program> {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        memory.into()
    } else {
        std::env::temp_dir()
    };
    let folder = folder.join(format!("simulation-{}-{worker}", process::id()));
    let [data, logs] = ["data", "logs"].map(|name| folder.join(name).display().to_string());
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/config");
    let words = [
        "--config", config, "--data", &data, "--logs", &logs, "--port", "0", "--quiet", "--alone",
    ];
    let args = USAGE.parse(words.map(String::from).to_vec());
    let program = args.and_then(|args| Program::new(args, AgentKind::Manager));
    Arc::new(program.map_err(|exit| exit.message).unwrap())
}

/// Plays a league without these faults.
fn play(
    seed: u64,
    profile: Profile,
    left_out: &BTreeSet<FaultId>,
    program: &Arc<Program>,
    tells: bool,
) -> Played {
    let _ = fs::remove_dir_all(&program.data);
    let mut world = World::new(seed, profile, left_out, program);
    world.story = tells.then(Vec::new);
    world.run(LIMIT);
    let findings = judge::judge(&mut world);
    Played { world, findings }
}

/// Prints the story of a league with a broken law, with as few faults as possible, and how it is
/// repeated.
fn explain(seed: u64, profile: Profile) {
    let program = new_program(0);
    let first = play(seed, profile, &BTreeSet::new(), &program, false);
    let law = law_of(&first.findings[0]).to_string();
    let mut faults = first.world.happened;
    let mut left_out = BTreeSet::new();

    // Leave out half of the faults, then a quarter, and so on down to single ones, as long as the same
    // law is broken.
    let begun = Instant::now();
    let mut size = faults.len().div_ceil(2);
    while size > 0 {
        let mut start = 0;
        while start < faults.len() && begun.elapsed() < SHORTENING_TIMEOUT {
            let mut fewer: BTreeSet<FaultId> = left_out.clone();
            fewer.extend(&faults[start..(start + size).min(faults.len())]);
            let played = play(seed, profile, &fewer, &program, false);
            if played.findings.iter().any(|finding| law_of(finding) == law) {
                (left_out, faults) = (fewer, played.world.happened);
            } else {
                start += size;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }

    let played = play(seed, profile, &left_out, &program, true);
    let (before, after) = (faults.len() + left_out.len(), faults.len());
    println!("\nThe league of seed {seed} with {after} of its {before} faults:");
    print_story(&played);
    let profile = name_of(profile);
    println!(
        "Again: cargo test --example simulation -- 1 {seed} {profile}; with `story`, all of its faults"
    );
    let _ = fs::remove_dir_all(program.data.parent().unwrap());
}

/// Returns the name of the law of a finding.
fn law_of(finding: &str) -> &str {
    finding.split(':').next().unwrap_or_default()
}

fn print_story(played: &Played) {
    for line in played.world.story.iter().flatten() {
        println!("{line}");
    }
    for finding in &played.findings {
        println!("seed {}, broken law: {finding}", played.world.seed);
    }
}
