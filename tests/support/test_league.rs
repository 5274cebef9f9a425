//! A league of real processes: the folder that they share, and each of them as it runs.
//!
//! `World::new` writes the configuration of `files.rs` with the edits of a test; `start` and its
//! friends start programs in it. An `Agent` is such a program: what it prints is waited for, and it
//! dies with its test at the latest.

use super::files::FILES;
use super::{
    give_up, http, json_of, list_of, pointer, set, text_of, time_limit, until, wait_until,
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

/// A folder with configuration, data and logs, gone when the test ends.
pub struct TestLeague {
    pub folder: PathBuf,
}

impl TestLeague {
    /// The configuration of `files.rs`, then `edits`: `system timeouts.move_timeout_sec=0.5; league
    /// scheduling.cycles=2`.
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

    /// A file of the configuration, by its path or a word of it: system, agents, league, games,
    /// referee or player.
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

    /// Has the league play another game that all agents can play.
    pub fn play(&self, game_type: &str) {
        self.edit("league", "game_type", json!(game_type));
        let entry = json!({"game_type": game_type, "display_name": game_type, "players": 2});
        self.edit("games", "games[0]", entry);
    }

    /// A command for one of the four programs, in this world, with the arguments as they are
    /// typed; no port is fixed.
    pub fn command(&self, program: &str, arguments: &str) -> Command {
        // The tool has a word in front of its options.
        let word = arguments.split(' ').next().unwrap_or_default();
        let is_tool = !word.is_empty() && !word.starts_with("--");
        let program = if is_tool { "league" } else { program };
        let mut command = Command::new(executable(program));
        command.args(typed(arguments));
        for folder in ["config", "data", "logs"] {
            let option = format!("--{folder}");
            command.arg(option).arg(self.folder.join(folder));
        }
        command
    }

    /// Starts a program and waits until it listens: on a free port, or on one that it had. Somebody
    /// else may have got that one meanwhile, and lets it go again.
    pub fn start(&self, program: &str, arguments: &str) -> TestProcess {
        until("the port is free", || {
            let agent = self.spawn(program, arguments);
            wait_until("it says a word", || {
                !(agent.stdout.so_far() + &agent.errors()).is_empty()
            });
            if agent.errors().contains(" is in use; end the program") {
                return None;
            }
            agent.line("listening on ");
            Some(agent)
        })
    }

    /// Starts a program that perhaps never listens.
    pub fn spawn(&self, program: &str, arguments: &str) -> TestProcess {
        let mut command = self.command(program, arguments);
        if !arguments.contains("--port ") {
            command.args(["--port", "0"]);
        }
        TestProcess::new(command.arg("--until-stdin-closes"))
    }

    /// Starts a program in Python, an agent of the manager at that URL, on a free port and in this
    /// world's folder.
    pub fn python(&self, script: impl AsRef<Path>, manager: &str, options: &str) -> TestProcess {
        let mut command = Command::new(PYTHON);
        command.arg(script.as_ref()).args(["--manager", manager]);
        command.args(typed("--until-stdin-closes --port 0"));
        command.args(typed(options));
        TestProcess::new(command.current_dir(&self.folder))
    }

    /// Plays a local league with these options to its end: what it printed.
    pub fn local(&self, options: &str) -> String {
        let mut league = self.manager(&format!("local {options}"));
        league.wait_for_success();
        league.output()
    }

    /// Starts a program under a limit, like `ulimit -n 40`, and waits until it listens.
    pub fn start_limited(&self, ulimit: &str, program: &str, arguments: &str) -> TestProcess {
        let arguments = format!("{arguments} --port 0 --until-stdin-closes");
        let wanted = self.command(program, &arguments);
        let script = format!("trap '' XFSZ; {ulimit} && exec \"$0\" \"$@\"");
        let mut command = Command::new("bash");
        command.args(["-c", &script]).arg(wanted.get_program());
        let agent = TestProcess::new(command.args(wanted.get_args()));
        agent.line("listening on ");
        agent
    }

    /// Runs the tool to its end. Returns its exit code and its output.
    pub fn run_tool(&self, arguments: &str) -> (Option<i32>, String) {
        let mut command = self.command("league", arguments);
        let output = command.output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat());
        (output.status.code(), text.unwrap())
    }

    /// Starts a manager; with a command in front of the arguments, that of the tool.
    pub fn manager(&self, arguments: &str) -> TestProcess {
        self.start("league_manager", arguments)
    }

    /// Starts a manager that shows its league as pages.
    pub fn serve(&self, arguments: &str) -> TestProcess {
        self.start("league", &format!("serve {arguments}"))
    }

    /// Starts a referee or a player, as its id says.
    pub fn agent(&self, manager: &TestProcess, id: &str, more: &str) -> TestProcess {
        let program = ["player", "referee"][usize::from(id.starts_with('R'))];
        let own = format!("{more} --manager {} --{program}-id {id}", manager.url());
        self.start(program, &own)
    }

    /// Gives a running manager an order, as the operator does; what it says.
    pub fn order(&self, words: &str, manager: &str) -> String {
        let (code, output) = self.run_tool(&format!("{words} --manager {manager}"));
        assert_eq!(code, Some(0), "{words}: {output}");
        output
    }

    /// A JSON file below the data folder, once it is there and whole.
    pub fn data(&self, path: &str) -> Value {
        let path = self.folder.join("data").join(path);
        until(&format!("{} is written", path.display()), || {
            serde_json::from_slice(&fs::read(&path).ok()?).ok()
        })
    }

    /// A file of the league below the data folder.
    pub fn league_file(&self, name: &str) -> PathBuf {
        let folder = self.folder.join("data/leagues/league_2025_even_odd");
        folder.join(name)
    }

    /// The lines of the league's journal so far.
    pub fn journal(&self) -> Vec<Value> {
        json_lines(&self.league_file("journal.jsonl"))
    }

    /// Those of one kind.
    pub fn events(&self, event: &str) -> Vec<Value> {
        let mut lines = self.journal();
        lines.retain(|line| line["event"] == event);
        lines
    }

    /// How many of one kind there are so far.
    pub fn count(&self, event: &str) -> usize {
        self.events(event).len()
    }

    /// Waits until the league has started.
    pub fn starts(&self) {
        wait_until("the league starts", || self.count("Started") == 1);
    }

    /// Every line of every log.
    pub fn logs(&self) -> Vec<Value> {
        let logs = files(&self.folder.join("logs"));
        logs.iter().flat_map(|path| json_lines(path)).collect()
    }

    /// The lines of the logs about an event.
    pub fn logged(&self, event: &str) -> Vec<Value> {
        let mut lines = self.logs();
        lines.retain(|line| line["event_type"] == event);
        lines
    }

    /// How many results the journal has, and how many of them have no number.
    pub fn technical_losses(&self) -> (usize, usize) {
        let all = self.events("Recorded");
        let is_technical = |line: &&Value| line["result"]["details"]["drawn_number"].is_null();
        (all.len(), all.iter().filter(is_technical).count())
    }

    /// The table that follows from the journal.
    pub fn table(&self) -> Vec<Value> {
        let config = Config::load(&self.folder.join("config"), None).unwrap();
        let mut league = League::new(config);
        for line in self.journal().into_iter().skip(1) {
            league.apply(&serde_json::from_value(line).unwrap());
        }
        let rows = league.table();
        rows.iter().map(|row| json!(row)).collect()
    }

    /// Every pair has met once, every match is recorded once, and the table adds up.
    pub fn check_played(&self, players: usize) {
        let (recorded, table) = (self.events("Recorded"), self.table());
        let ids: BTreeSet<String> = recorded
            .iter()
            .map(|line| line["match_id"].to_string())
            .collect();
        let all = players * (players - 1) / 2;
        assert_eq!([recorded.len(), ids.len()], [all; 2], "{recorded:?}");
        assert_eq!(self.journal().last().unwrap()["event"], "Closed");
        for (rank, row) in (1..).zip(&table) {
            let number = |key: &str| row[key].as_u64().unwrap() as usize;
            let [wins, draws, losses] = ["wins", "draws", "losses"].map(number);
            let expected = [rank, players - 1, wins + draws + losses, 3 * wins + draws];
            let came = ["rank", "played", "played", "points"].map(number);
            assert_eq!(came, expected, "{row}");
        }
        assert_eq!(table.len(), players);
        self.check_files(&recorded, &table);
    }

    /// The files for people say what the journal says.
    fn check_files(&self, recorded: &[Value], table: &[Value]) {
        let standings = self.data("leagues/league_2025_even_odd/standings.json");
        assert_eq!(list_of(&standings["standings"]), table);
        let rounds = self.data("leagues/league_2025_even_odd/rounds.json");
        let rounds = list_of(&rounds["rounds"]).iter();
        let matches: Vec<&Value> = rounds
            .flat_map(|round| list_of(&round["matches"]))
            .collect();
        assert_eq!(matches.len(), recorded.len());
        for line in recorded {
            let id = text_of(&line["match_id"]);
            let mut shown = matches.iter().filter(|item| item["match_id"] == id);
            let shown = shown.next().unwrap();
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

/// A new world and its manager, which listens.
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

/// The path of one of our programs: Cargo puts them into the folder above that of the tests.
pub fn executable(program: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let folder = tests.ancestors().nth(2).unwrap();
    folder.join(format!("{program}{}", env::consts::EXE_SUFFIX))
}

/// The words of a line as it is typed; what stands between backticks is one.
fn typed(line: &str) -> impl Iterator<Item = String> {
    let mut is_quoted = false;
    let words = line.split(move |sign| {
        is_quoted ^= sign == '`';
        sign == ' ' && !is_quoted
    });
    let words = words.filter(|word| !word.is_empty());
    words.map(|word| word.replace('`', ""))
}

/// Opens a file that this program has just closed. A child that another test starts at this moment
/// may hold its lock until it becomes another program.
pub fn open_again<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    until("the lock of the file is free", || match open() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        opened => Some(opened),
    })
}

/// All files below a folder.
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

/// The whole lines of a JSON-lines file; none where there is no file yet.
pub fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(json_of).collect()
}

/// A running program. It ends with the test.
pub struct TestProcess {
    pub child: Child,
    stdin: Option<ChildStdin>,
    stdout: Stream,
    stderr: Stream,
}

/// What a program says on one of its streams: all of it so far, and the thread that reads on.
struct Stream {
    output: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn new(from: impl Read + Send + 'static) -> Stream {
        let output = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&output);
        let reader = thread::spawn(move || {
            let lines = BufReader::new(from).lines().map_while(Result::ok);
            lines.for_each(|line| *heard.lock().unwrap() += &(line + "\n"));
        });
        Stream { output, reader }
    }

    fn so_far(&self) -> String {
        self.output.lock().unwrap().clone()
    }
}

impl TestProcess {
    pub fn new(command: &mut Command) -> TestProcess {
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        TestProcess {
            stdin: child.stdin.take(),
            stdout: Stream::new(child.stdout.take().unwrap()),
            stderr: Stream::new(child.stderr.take().unwrap()),
            child,
        }
    }

    /// The first line on a stream that contains `text`, once it has come.
    fn hears(&self, stream: &Stream, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let is_all = stream.reader.is_finished();
            let output = stream.so_far();
            let mut lines = output.split_inclusive('\n');
            if let Some(line) = lines.find(|line| line.contains(text)) {
                return line.trim_end_matches('\n').into();
            }
            if is_all || begun.elapsed() > time_limit() {
                let all = [&self.stdout, &self.stderr].map(Stream::so_far);
                give_up(
                    &format!("a line {text:?}; it said {all:?}"),
                    begun.elapsed(),
                );
            }
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// The first line on standard output that contains `text`.
    pub fn line(&self, text: &str) -> String {
        self.hears(&self.stdout, text)
    }

    /// Waits until standard error contains `text`.
    pub fn wait_for_error(&self, text: &str) {
        self.hears(&self.stderr, text);
    }

    /// What it has said on standard output so far.
    pub fn output_so_far(&self) -> String {
        self.stdout.so_far()
    }

    /// What it has said on standard error so far.
    pub fn errors(&self) -> String {
        self.stderr.so_far()
    }

    /// `http://localhost:PORT/mcp`.
    pub fn url(&self) -> String {
        let line = self.line("listening on ");
        line.rsplit(' ').next().unwrap().into()
    }

    /// Where it listens, to be started there again.
    pub fn port(&self) -> String {
        let url = self.url();
        let host = url.trim_end_matches("/mcp");
        host.rsplit(':').next().unwrap().into()
    }

    /// The status and the body of one of its pages.
    pub fn page(&self, path: &str) -> (u16, String) {
        http("GET", &self.url().replace("/mcp", path), "", b"")
    }

    /// Waits until it has ended by itself, and all is heard that it said.
    pub fn wait(&mut self) -> ExitStatus {
        let end = until("the program ends", || self.child.try_wait().unwrap());
        let is_all = |item: &Stream| item.reader.is_finished();
        wait_until("it has said all", || {
            is_all(&self.stdout) && is_all(&self.stderr)
        });
        end
    }

    /// Waits until it has ended by itself, and well.
    pub fn wait_for_success(&mut self) {
        let end = self.wait();
        assert!(end.success(), "{end}: {}", self.errors());
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends it as `kill -9` does, and starts the manager of this world again: the same command, the
    /// same port.
    pub fn restart(&mut self, test: &TestLeague, arguments: &str) {
        self.kill();
        *self = test.manager(&format!("{arguments} --port {}", self.port()));
    }

    /// Writes bytes to its standard input.
    pub fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Closes its standard input.
    pub fn close_stdin(&mut self) {
        self.stdin.take();
    }

    /// What it printed on standard output, once it has ended.
    pub fn output(&self) -> String {
        let is_all = || self.stdout.reader.is_finished();
        wait_until("it has said all", is_all);
        self.stdout.so_far().trim_end_matches('\n').into()
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
