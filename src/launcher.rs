//! A local league: referees and players as child processes, which end when their standard input closes. So none
//! is left behind, however this program ends.

use crate::{http, options::Options, strategies};
use std::{
    io,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
};

/// The children of a local league.
pub struct Children {
    stdins: Vec<std::process::ChildStdin>,
    ended: Receiver<Ended>,
    count: usize,
}

/// A child that has ended: its name, and whether it failed.
struct Ended {
    /// `player P01`.
    name: String,
    /// Its exit code was not 0.
    failed: bool,
}

impl Children {
    /// Starts so many referees and players for the manager at `manager`. They get our folders, and our seed.
    pub fn start(
        options: &Options,
        manager: &str,
        seed: Option<u64>,
        referees: usize,
        players: usize,
    ) -> io::Result<Children> {
        let (line, ended) = channel();
        let mut children = Children { stdins: Vec::new(), ended, count: referees + players };
        for n in 1..=referees {
            let arguments = ["--referee-id".into(), format!("REF{n:02}")];
            children.start_one("referee", &arguments, options, manager, seed, &line)?;
        }
        for n in 1..=players {
            let (strategy, _) = strategies::ALL[(n - 1) % strategies::ALL.len()];
            let mut arguments = vec!["--player-id".into(), format!("P{n:02}"), "--strategy".into(), strategy.into()];
            if n > NAMED {
                arguments.extend(["--display-name".into(), format!("Agent P{n:02}")]);
            }
            children.start_one("player", &arguments, options, manager, seed, &line)?;
        }
        Ok(children)
    }

    fn start_one(
        &mut self,
        program: &str,
        arguments: &[String],
        options: &Options,
        manager: &str,
        seed: Option<u64>,
        line: &Sender<Ended>,
    ) -> io::Result<()> {
        let mut command = Command::new(beside_us(program)?);
        command.args(arguments).args(["--manager", manager, "--until-stdin-closes"]);
        for shared in ["--config", "--data", "--logs", "--league-id"] {
            if let Some(value) = options.text(shared) {
                command.args([shared, value]);
            }
        }
        if options.has("--port") {
            command.args(["--port", "0"]); // a league beside another: any free ports
        }
        if let Some(seed) = seed {
            command.args(["--seed", &seed.to_string()]);
        }
        let mut child: Child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        self.stdins.extend(child.stdin.take());
        let (line, name) = (line.clone(), format!("{program} {}", arguments[1]));
        http::spawn("child", move || {
            let failed = !child.wait().is_ok_and(|status| status.success());
            let _ = line.send(Ended { name, failed });
        });
        Ok(())
    }

    /// The name of a child that has failed, if one has since the last question.
    pub fn failed(&self) -> Option<String> {
        self.ended.try_iter().find(|child| child.failed).map(|child| child.name)
    }

    /// Waits until all have ended by themselves, at most so long; whoever is left ends with our end.
    pub fn wait(&self, limit: std::time::Duration) {
        let until = std::time::Instant::now() + limit;
        for _ in 0..self.count {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if self.ended.recv_timeout(left).is_err() {
                return;
            }
        }
    }
}

/// How many players the agents configuration names; the others are named after their id.
const NAMED: usize = 4;

fn beside_us(program: &str) -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
}
