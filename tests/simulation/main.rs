//! Whole leagues in virtual time: the code of the programs in a world that fails.

mod agents;
mod judge;
mod replay;
mod world;

use judge::judge;
use league::manager;
use league::program::Program;
use league::program::args::{COMMON, SERVER, Usage};
use league::protocol::AgentKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use world::{FaultId, Profile, World};

const PROFILES: [Profile; 3] = [Profile::Safety, Profile::Away, Profile::Breach];
const USAGE: Usage = Usage {
    name: "simulation",
    about: "",
    options: &[
        "
  --players N                 
  --referees N                
  --lead-sec N                
  --members-per-address N     
  --cycles N                  
  --move-timeout-sec N        
  --seed N                    
  --alone                     
  --quiet                     ",
        SERVER,
        COMMON,
    ],
};

fn program(folder: &Path) -> Arc<Program> {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/config");
    let text = |path: &Path| path.display().to_string();
    let (data, logs) = (text(&folder.join("data")), text(&folder.join("logs")));
    let words = ["--config", config, "--data", &data, "--logs", &logs, "--port", "0", "--lead-sec", "0", "--quiet", "--alone"];
    let args = USAGE.parse(words.map(String::from).to_vec());
    let program = args.and_then(|args| Program::new(args, AgentKind::Manager));
    Arc::new(program.map_err(|exit| exit.message).unwrap())
}

fn run(seed: u64, profile: Profile, left_out: &BTreeSet<FaultId>, program: &Arc<Program>, tells: bool) -> (World, Vec<String>) {
    let _ = std::fs::remove_dir_all(&program.data);
    let mut world = World::new(seed, profile, left_out.clone(), program);
    world.story = tells.then(Vec::new);
    world.run(Duration::from_secs(7200));
    let findings = judge(&mut world);
    (world, findings)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize| words.get(n).and_then(|word| word.parse::<u64>().ok());
    let (seeds, from) = (number(0).unwrap_or(300), number(1).unwrap_or(1));
    let only: Option<&String> = words.get(2).filter(|word| *word != "story");
    let tells = words.iter().any(|word| word == "story");
    let folder = std::env::temp_dir().join(format!("simulation-{}", std::process::id()));
    let shm = Path::new("/dev/shm");
    let folder: PathBuf = if shm.exists() { shm.join(folder.file_name().unwrap()) } else { folder };
    let program = program(&folder);
    let begun = Instant::now();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut bad = 0;
    let mut virtual_time = Duration::ZERO;
    for seed in from..from + seeds {
        let profile = PROFILES[seed as usize % 3];
        if only.is_some_and(|only| format!("{profile:?}").to_lowercase() != *only) {
            continue;
        }
        let (world, findings) = run(seed, profile, &BTreeSet::new(), &program, tells);
        virtual_time += world.closed_at.unwrap_or(world.now);
        for line in world.story.iter().flatten() {
            println!("{line}");
        }
        for finding in &findings {
            println!("seed {seed} {profile:?}: {finding}");
        }
        bad += u64::from(!findings.is_empty());
        for (what, count) in world.counts {
            *counts.entry(what).or_default() += count;
        }
    }
    for (what, count) in counts {
        println!("{count:>9} {what}");
    }
    let time = begun.elapsed().as_secs_f64();
    println!("{bad} bad; {seeds} leagues in {time:.1} s, {:.0} a second; {:.0} virtual s each", seeds as f64 / time, virtual_time.as_secs_f64() / seeds as f64);
    let _ = std::fs::remove_dir_all(&folder);
    let _ = manager::operator_file;
    ExitCode::from(u8::from(bad > 0))
}
