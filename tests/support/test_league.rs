//! A league of real processes: the folder that they share, and each of the running programs.
//!
//! `TestLeague::new` writes the configuration of `files.rs` with the edits of a test; `start` and
//! similar methods start programs in its folder. A `TestProcess` is such a program: a test waits for
//! the lines that it prints, and its process ends with the test at the latest.

use super::files::FILES;
use super::{
    free_port, give_up, json_of, list_of, pointer, set, text_of, time_limit, until, wait_until,
};
use league::manager::league::League;
use league::program::config::Config;
use league::system::PYTHON;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

/// A folder with configuration, data and logs. It is deleted when the test has passed.
pub struct TestLeague {
    pub folder: PathBuf,
}

impl TestLeague {
    /// Writes the configuration of `files.rs` with `edits`: `system timeouts.move_timeout_sec=0.5;
    /// league scheduling.cycles=2`.
    pub fn new(edits: &str) -> TestLeague {
        let number = fastrand::u64(..); // a process id alone may be that of an earlier run
        let name = format!("league-test-{}-{number:x}", std::process::id());
        let folder = env::temp_dir().join(name);
        let test = TestLeague { folder };
        for (file, text) in FILES {
            let path = test.config(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for edit in edits.split("; ").filter(|edit| !edit.is_empty()) {
            let (place, value) = edit.split_once('=').unwrap();
            let (file, path) = place.split_once(' ').unwrap();
            test.edit(file, path, json_of(value));
        }
        test
    }

    /// Returns the path of a configuration file, named by its path or a word of it: system, agents,
    /// league, games, referee or player.
    pub fn config(&self, file: &str) -> PathBuf {
        let known = FILES.iter().find(|(path, _)| path.contains(file));
        let path = known.map_or(file, |(path, _)| path);
        let path = self.folder.join("config").join(path);
        path.components().collect() // with the separators of this system
    }

    /// Changes one value of a configuration file; a null removes the key.
    pub fn edit(&self, file: &str, path: &str, value: Value) {
        let file = self.config(file);
        let mut whole: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        set(&mut whole, &pointer(path), value);
        fs::write(file, whole.to_string()).unwrap();
    }

    /// Configures another game that all agents can play.
    pub fn play(&self, game_type: &str) {
        self.edit("league", "game_type", json!(game_type));
        let entry = json!({"game_type": game_type, "display_name": game_type, "players": 2});
        self.edit("games", "games[0]", entry);
    }

    /// Returns a command for one of the four programs, with the folders of this test, and the
    /// arguments as they are typed.
    pub fn command(&self, program: &str, arguments: &str) -> Command {
        // A word in front of the options is a command of the tool.
        let is_tool = arguments.starts_with(|sign: char| sign.is_ascii_lowercase());
        let program = if is_tool { "league" } else { program };
        let mut command = Command::new(executable(program));
        command.args(typed(arguments)).env("TZ", "TEST-9"); // nine hours before UTC, as in Japan
        for folder in ["config", "data", "logs"] {
            let option = format!("--{folder}");
            command.arg(option).arg(self.folder.join(folder));
        }
        command
    }

    /// Starts a program and waits until it listens: on a free port, or on the given one; or until it has
    /// ended. If another program uses that port for a moment, the start is tried again.
    pub fn start(&self, program: &str, arguments: &str) -> TestProcess {
        until("the port is free", || {
            let agent = self.spawn(program, arguments);
            wait_until("the program listens, or has ended", || {
                agent.stdout.so_far().contains("listening on ") || agent.stderr.reader.is_finished()
            });
            let is_taken = agent.errors().contains(" is in use; end the program");
            (!is_taken).then_some(agent)
        })
    }

    /// Starts a program without waiting for it.
    pub fn spawn(&self, program: &str, arguments: &str) -> TestProcess {
        TestProcess::new(&mut self.agent_command(program, arguments))
    }

    fn agent_command(&self, program: &str, arguments: &str) -> Command {
        let mut command = self.command(program, arguments);
        if !arguments.contains("--port ") {
            command.args(["--port", "0"]);
        }
        command.arg("--until-stdin-closes");
        command
    }

    /// Starts an agent in Python for the manager at this URL, on a free port and in the folder of
    /// this test.
    pub fn python(&self, script: impl AsRef<Path>, manager: &str, options: &str) -> TestProcess {
        let mut command = Command::new(PYTHON);
        command.arg(script.as_ref()).args(["--manager", manager]);
        command.args(typed("--until-stdin-closes --port 0"));
        command.args(typed(options));
        TestProcess::new(command.current_dir(&self.folder))
    }

    /// Plays a local league with these options to its end. Returns its output.
    pub fn local(&self, options: &str) -> String {
        let mut league = self.manager(&format!("local {options}"));
        league.wait_for_success();
        league.output()
    }

    /// Starts a program under a limit of the shell, like `-n 40`, and waits until it listens.
    pub fn start_limited(&self, limit: &str, program: &str, arguments: &str) -> TestProcess {
        let unlimited = self.agent_command(program, arguments);
        let script = format!("trap '' XFSZ; ulimit {limit} && exec \"$0\" \"$@\"");
        let mut command = Command::new("bash");
        command.args(["-c", &script]).arg(unlimited.get_program());
        let agent = TestProcess::new(command.args(unlimited.get_args()));
        agent.line("listening on ");
        agent
    }

    /// Checks the files of the league. Returns the exit code and the output of `verify`.
    pub fn verify(&self) -> (Option<i32>, String) {
        run_to_end(&mut self.command("examples/verify", ""))
    }

    /// Starts a manager; with a command of the tool in front of the arguments, the tool.
    pub fn manager(&self, arguments: &str) -> TestProcess {
        self.start("league_manager", arguments)
    }

    /// Starts a manager that shows its league as pages.
    pub fn serve(&self, arguments: &str) -> TestProcess {
        self.start("league", &format!("serve {arguments}"))
    }

    /// Starts a referee or a player, according to its id. When it ends, no program of another test
    /// takes its port: the manager would take that program for the agent.
    pub fn agent(&self, manager: &TestProcess, id: &str, more: &str) -> TestProcess {
        self.start(kind_of(id), &agent_options(&manager.url(), id, more))
    }

    /// Starts the agents with these ids: `REF01 P01 P02`.
    pub fn agents(&self, manager: &TestProcess, ids: &str) -> Vec<TestProcess> {
        ids.split(' ')
            .map(|id| self.agent(manager, id, ""))
            .collect()
    }

    /// Sends a running manager a command of the operator. Returns the output of the tool.
    pub fn order(&self, words: &str, manager: &str) -> String {
        let mut order = self.command("league", &format!("{words} --manager {manager}"));
        let (code, output) = run_to_end(&mut order);
        assert_eq!(code, Some(0), "{words}: {output}");
        output
    }

    /// Returns a JSON file below the data folder, once it is there and whole.
    pub fn data(&self, path: &str) -> Value {
        let path = self.folder.join("data").join(path);
        until(&format!("{} is written", path.display()), || {
            serde_json::from_slice(&fs::read(&path).ok()?).ok()
        })
    }

    /// Returns the path of a file of the league.
    pub fn league_file(&self, name: &str) -> PathBuf {
        let folder = self.folder.join("data/leagues/league_2025_even_odd");
        folder.join(name)
    }

    /// Returns the lines of the league's journal.
    pub fn journal(&self) -> Vec<Value> {
        json_lines(&self.league_file("journal.jsonl"))
    }

    /// Returns the lines of the journal with one kind of event.
    pub fn events(&self, event: &str) -> Vec<Value> {
        let mut lines = self.journal();
        lines.retain(|line| line["event"] == event);
        lines
    }

    /// Returns the number of events of one kind in the journal.
    pub fn count(&self, event: &str) -> usize {
        self.events(event).len()
    }

    /// Waits until the league has started.
    pub fn starts(&self) {
        wait_until("the league starts", || self.count("Started") == 1);
    }

    /// Returns every line of every log.
    pub fn logs(&self) -> Vec<Value> {
        let logs = files(&self.folder.join("logs"));
        logs.iter().flat_map(|path| json_lines(path)).collect()
    }

    /// Returns the lines of the logs with one kind of event.
    pub fn logged(&self, event: &str) -> Vec<Value> {
        let mut lines = self.logs();
        lines.retain(|line| line["event_type"] == event);
        lines
    }

    /// Returns the number of results in the journal, and of those without a drawn number.
    pub fn technical_losses(&self) -> (usize, usize) {
        let all = self.events("Recorded");
        let is_technical = |line: &&Value| line["result"]["details"]["drawn_number"].is_null();
        (all.len(), all.iter().filter(is_technical).count())
    }

    /// Returns the table that follows from the journal.
    pub fn table(&self) -> Vec<Value> {
        let config = Config::load(&self.folder.join("config"), None).unwrap();
        let mut league = League::new(config);
        for line in self.journal().into_iter().skip(1) {
            league.apply(&serde_json::from_value(line).unwrap());
        }
        let rows = league.table();
        rows.iter().map(|row| json!(row)).collect()
    }

    /// Checks that every pair has met once, that every match is recorded once, and that the table
    /// and the files agree with the results.
    pub fn check_played(&self, players: usize) {
        let (recorded, table) = (self.events("Recorded"), self.table());
        let ids = recorded.iter().map(|line| text_of(&line["match_id"]));
        let ids: BTreeSet<&str> = ids.collect();
        let all = players * (players - 1) / 2;
        assert_eq!([recorded.len(), ids.len()], [all; 2], "{recorded:?}");
        assert_eq!(self.journal().last().unwrap()["event"], "Closed");
        for (rank, row) in (1..).zip(&table) {
            let number = |key: &str| row[key].as_u64().unwrap() as usize;
            let [wins, draws, losses] = ["wins", "draws", "losses"].map(number);
            let expected = [rank, players - 1, wins + draws + losses, 3 * wins + draws];
            let actual = ["rank", "played", "played", "points"].map(number);
            assert_eq!(actual, expected, "{row}");
        }
        assert_eq!(table.len(), players);
        self.check_files(&recorded, &table);
    }

    /// Checks that the files for people agree with the journal.
    fn check_files(&self, recorded: &[Value], table: &[Value]) {
        let standings = self.data("leagues/league_2025_even_odd/standings.json");
        assert_eq!(list_of(&standings["standings"]), table);
        let rounds = self.data("leagues/league_2025_even_odd/rounds.json");
        let rounds = list_of(&rounds["rounds"]).iter();
        let matches = rounds.flat_map(|round| list_of(&round["matches"]));
        assert_eq!(matches.clone().count(), recorded.len());
        for line in recorded {
            let id = text_of(&line["match_id"]);
            let shown = matches.clone().find(|shown| shown["match_id"] == id);
            let shown = shown.unwrap();
            assert_eq!(shown["status"], "completed", "{shown}");
            assert_eq!(shown["winner"], line["result"]["winner"]);
            let file = self.data(&format!("matches/league_2025_even_odd/{id}.json"));
            assert_eq!(file["result"], line["result"]);
            for key in ["match_id", "player_A_id", "player_B_id"] {
                assert_eq!(file[key], shown[key]);
            }
        }
    }
}

/// Makes a test league and starts its manager.
pub fn with_manager(options: &str) -> (TestLeague, TestProcess) {
    let test = TestLeague::new("");
    let manager = test.manager(options);
    (test, manager)
}

impl Drop for TestLeague {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Waits until the manager and then its agents have ended without an error.
pub fn wait_for_all(manager: &mut TestProcess, agents: &mut [TestProcess]) {
    manager.wait_for_success();
    agents.iter_mut().for_each(TestProcess::wait_for_success);
}

/// Returns the path of one of the programs: Cargo puts them into the folder above that of the tests.
pub fn executable(program: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let folder = tests.ancestors().nth(2).unwrap();
    folder.join(format!("{program}{}", env::consts::EXE_SUFFIX))
}

/// Returns which program has this name in a test.
pub fn kind_of(name: &str) -> &'static str {
    match name {
        "manager" => "league_manager",
        _ if name.starts_with('R') => "referee",
        _ => "player",
    }
}

/// Returns the options of an agent: its own, and those of manager, id and port that it lacks.
pub fn agent_options(manager: &str, id: &str, own: &str) -> String {
    let mut options = format!("{own} --{}-id {id}", kind_of(id));
    for (option, value) in [("manager", manager), ("port", &free_port().to_string())] {
        if !own.contains(&format!("--{option} ")) {
            options += &format!(" --{option} {value}");
        }
    }
    options
}

/// Runs a command to its end. Returns its exit code and its output.
pub fn run_to_end(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into())
}

/// Splits a line into words as a shell does. Text between backticks is one word.
fn typed(line: &str) -> impl Iterator<Item = String> {
    let mut is_quoted = false;
    let words = line.split(move |sign| {
        is_quoted ^= sign == '`';
        sign == ' ' && !is_quoted
    });
    let words = words.filter(|word| !word.is_empty());
    words.map(|word| word.replace('`', ""))
}

/// Opens a file that this process has just closed. A child that another test starts at this moment
/// may hold the lock of the file until it executes another program.
pub fn open_again<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    until("the lock of the file is free", || match open() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        opened => Some(opened),
    })
}

/// Returns all files below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

/// Returns the whole lines of a file, all of them JSON. A line that is being written, or that a killed
/// program has not ended, is left out. Under Wine a line may be read in part: then it is read again;
/// and two programs can write at one place of their common log.
pub fn json_lines(path: &Path) -> Vec<Value> {
    let has_gaps = cfg!(windows) && path.ends_with("orchestrator.log.jsonl");
    until("each line of a file is JSON", || {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().map(serde_json::from_str::<Value>);
        let ended =
            lines.filter(|line| !line.as_ref().is_err_and(|error| error.is_eof() || has_gaps));
        ended.collect::<Result<_, _>>().ok()
    })
}

/// A running program. Its process ends with the test.
pub struct TestProcess {
    pub child: Child,
    stdin: Option<ChildStdin>,
    stdout: Stream,
    stderr: Stream,
}

/// One output stream of a program: all of it so far, and the thread that reads on.
struct Stream {
    output: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn new(from: impl Read + Send + 'static) -> Stream {
        let output = Arc::new(Mutex::new(String::new()));
        let read = Arc::clone(&output);
        let reader = thread::spawn(move || {
            let lines = BufReader::new(from).lines().map_while(Result::ok);
            lines.for_each(|line| *read.lock().unwrap() += &(line + "\n"));
        });
        Stream { output, reader }
    }

    fn so_far(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    fn wait_for_end(&self) {
        wait_until("the output ends", || self.reader.is_finished());
    }
}

impl TestProcess {
    pub fn new(command: &mut Command) -> TestProcess {
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let guard = super::STARTING.lock().unwrap();
        let mut child = command.spawn().unwrap();
        drop(guard);
        TestProcess {
            stdin: child.stdin.take(),
            stdout: Stream::new(child.stdout.take().unwrap()),
            stderr: Stream::new(child.stderr.take().unwrap()),
            child,
        }
    }

    /// Waits for the line of this number, from 1 on, that contains `text`, and returns it.
    fn wait_for_line(&self, streams: &[&Stream], number: usize, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let is_whole = streams.iter().all(|stream| stream.reader.is_finished());
            let output: String = streams.iter().map(|stream| stream.so_far()).collect();
            let lines = output.split_inclusive('\n');
            if let Some(line) = lines.filter(|line| line.contains(text)).nth(number - 1) {
                return line.trim_end_matches('\n').into();
            }
            let all = || [&self.stdout, &self.stderr].map(Stream::so_far);
            if is_whole {
                panic!(
                    "the program ended without a line {text:?}; it printed {:?}",
                    all()
                );
            }
            if begun.elapsed() > time_limit() {
                let what = format!("a line {text:?}; the program printed {:?}", all());
                give_up(&what, begun.elapsed());
            }
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Waits for the first line on standard output that contains `text`, and returns it.
    pub fn line(&self, text: &str) -> String {
        self.wait_for_line(&[&self.stdout], 1, text)
    }

    /// Waits for a line on standard error that contains `text`.
    pub fn wait_for_error(&self, text: &str) {
        self.wait_for_line(&[&self.stderr], 1, text);
    }

    /// Waits for the line of this number, on standard output or error, that contains `text`.
    pub fn nth_line(&self, number: usize, text: &str) -> String {
        self.wait_for_line(&[&self.stdout, &self.stderr], number, text)
    }

    /// Returns the text on standard output so far.
    pub fn output_so_far(&self) -> String {
        self.stdout.so_far()
    }

    /// Returns the text on standard error so far.
    pub fn errors(&self) -> String {
        self.stderr.so_far()
    }

    /// Returns the URL of the program: `http://localhost:PORT/mcp`.
    pub fn url(&self) -> String {
        let line = self.line(" http://");
        line.rsplit(' ').next().unwrap().into()
    }

    /// Returns the port of the program.
    pub fn port(&self) -> String {
        let url = self.url();
        let host = url.trim_end_matches("/mcp");
        host.rsplit(':').next().unwrap().into()
    }

    /// Waits until the program has ended by itself and all its output is read.
    pub fn wait(&mut self) -> ExitStatus {
        let end = until("the program ends", || self.child.try_wait().unwrap());
        for stream in [&self.stdout, &self.stderr] {
            stream.wait_for_end();
        }
        end
    }

    /// Waits until the program has ended by itself without an error.
    pub fn wait_for_success(&mut self) {
        let end = self.wait();
        assert!(end.success(), "{end}: {}", self.errors());
    }

    /// Ends the program at once, as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends the manager as `kill -9` does, and starts one with these arguments on the same port.
    pub fn restart(&mut self, test: &TestLeague, arguments: &str) {
        self.kill();
        *self = test.manager(&format!("{arguments} --port {}", self.port()));
    }

    /// Writes bytes to the standard input of the program.
    pub fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Closes the standard input of the program.
    pub fn close_stdin(&mut self) {
        self.stdin.take();
    }

    /// Waits until standard output is closed. Returns its text.
    pub fn output(&self) -> String {
        self.stdout.wait_for_end();
        self.stdout.so_far().trim_end_matches('\n').into()
    }
}

impl Drop for TestProcess {
    /// Ends the program. If its test fails, prints what it said.
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let said = [&self.stdout, &self.stderr].map(Stream::so_far);
            eprintln!("a program of the failed test printed {said:?}");
        }
    }
}
