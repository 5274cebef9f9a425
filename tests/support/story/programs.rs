//! Programs in a story: how they start, what they print, and how they end.

use super::*;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Stdio;

const PROTOCOL: &str = include_str!("../../../src/protocol.md");

/// A player that prints where its manager is, and does nothing.
const IDLE: &str =
    "import sys; print('listening on', sys.argv[-1] + '/mcp', flush=True); sys.stdin.read()";

/// The last line of `choose` in the player in Python.
const COIN: &str = "return random.choice(turn.legal_moves)";

/// The times of a player in Python that cannot wait: as they are, and as an impatient player has them.
const SHORT_TIMES: [[&str; 2]; 4] = [
    ["MAX_SILENCE = 120 ", "MAX_SILENCE = 2 "],
    ["MAX_ABSENCE = 1800 ", "MAX_ABSENCE = 8 "],
    [
        "MAX_ABSENCE_AT_THE_END = 300 ",
        "MAX_ABSENCE_AT_THE_END = 0.3 ",
    ],
    ["CHECK_INTERVAL = 2 ", "CHECK_INTERVAL = 0.1 "],
];

impl Story {
    /// Runs a command that starts or ends a program, or does something to it.
    pub fn program_command(&mut self, line: &str) -> Option<String> {
        let [command, name, rest, more] = words_of(line);
        match command {
            "start" => self.start(name, more),
            "spawn" => {
                let words = more.replace("FREE", &free_port().to_string());
                let process = TestProcess::new(&mut self.tool(&words));
                self.add_program(name, process, words);
            }
            "kill" => self.program(name).kill(),
            "restart" => self.restart(name),
            "run" => return Some(ended(&mut self.test.command(name, more))),
            "tool" => return Some(ended(&mut self.tool(rest))),
            "shell" => return Some(ended(&mut self.shell(rest))),
            "type" => {
                let process = self.program(name);
                let typed = more.split("BYTE").map(str::as_bytes);
                process.write(&typed.collect::<Vec<_>>().join(&b"\xeb"[..]));
                process.write(b"\n");
            }
            "choose" => self.choose += &format!("{rest}\n    "),
            "hold" => {
                self.held = Some(TcpListener::bind(format!("127.0.0.1:{rest}")).unwrap());
            }
            "flood" => self.flood(name, more),
            "release" => {
                self.held = None;
                self.flood.clear();
            }
            "order" => drop(self.test.order(rest, &self.url("manager"))),
            _ => return None,
        }
        Some(String::new())
    }

    /// Runs a command about what a program prints, and how it ends.
    pub fn output_command(&mut self, line: &str) -> Option<String> {
        let [name, command, _, more] = words_of(line);
        match command {
            "prints" | "shows" => {
                let (number, text) = more.split_once(' ').unwrap_or_default();
                let printed = match number.parse() {
                    Ok(number) => self.program(name).nth_line(number, text),
                    Err(_) => self.program(name).nth_line(1, more),
                };
                if command == "prints" {
                    return Some(printed);
                }
            }
            "printed" => {
                let process = self.program(name);
                let printed = process.output_so_far() + &process.errors();
                return Some(printed.matches(more).count().to_string());
            }
            "output" => {
                let output = self.program(name).output();
                let place = output.find(more);
                let place = place.unwrap_or_else(|| panic!("no {more} in {output}"));
                return Some(output[place..].into());
            }
            "ends" => {
                let process = self.program(name);
                let end = process.wait();
                if !more.is_empty() {
                    process.nth_line(1, more);
                }
                if !end.success() {
                    return Some(format!("exit {}", end.code().unwrap_or(-1)));
                }
            }
            _ => return None,
        }
        Some(String::new())
    }

    fn add_program(&mut self, name: &str, process: TestProcess, words: String) {
        self.programs
            .insert(name.into(), Program { process, words });
    }

    fn program(&mut self, name: &str) -> &mut TestProcess {
        let program = self.programs.get_mut(name);
        &mut program
            .unwrap_or_else(|| panic!("no program {name}"))
            .process
    }

    /// Returns a command of the tool.
    fn tool(&self, words: &str) -> Command {
        self.in_folder(self.test.command("league", words))
    }

    /// Returns a line of a shell.
    fn shell(&self, line: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]);
        self.in_folder(shell)
    }

    /// Returns a command that runs in the folder of the test, and finds our programs.
    fn in_folder(&self, mut command: Command) -> Command {
        let mut folders = vec![executable("league").parent().unwrap().to_path_buf()];
        folders.extend(env::split_paths(&env::var_os("PATH").unwrap()));
        command.env("PATH", env::join_paths(folders).unwrap());
        command.stdin(Stdio::null()).current_dir(&self.test.folder);
        command
    }

    /// Starts a program by its name: the manager, a referee, or a player in Rust, in Python, of the
    /// small league, behind a stand-in, or as it is printed in the protocol.
    fn start(&mut self, name: &str, words: &str) {
        self.programs.remove(name); // one that has this name ends
        let test = &self.test;
        let mut words = words.replace("FREE", &free_port().to_string());
        let started = words.clone();
        let (kind, options) = started.split_once(' ').unwrap_or((&started, ""));

        let process = match kind {
            "small" => {
                let options = format!("--port {} {options}", free_port());
                words = format!("small {options}");
                self.start_small(name, &options)
            }
            "limited" => {
                let (files, options) = options.split_once(' ').unwrap_or((options, ""));
                let options = self.own_options(name, options);
                test.start_limited(&format!("-n {files}"), kind_of(name), &options)
            }
            "full" => {
                let journal = fs::metadata(test.league_file("journal.jsonl"));
                let most = journal.map_or(1, |journal| journal.len() / 1024);
                test.start_limited(&format!("-f {most}"), kind_of(name), options)
            }
            "python" | "choose" | "impatient" => self.start_python(kind, name, options),
            "stand-in" => {
                let options = format!("--player-id {name} --port {} {options}", free_port());
                let player = test.command("player", &options);
                stand_in(test, &self.url("manager"), &player)
            }
            "idle" => {
                let player = &mut Command::new(PYTHON);
                stand_in(test, &self.url("manager"), player.args(["-c", IDLE]))
            }
            "printed.py" => self.start_printed("python\n", PYTHON, name),
            "printed.sh" => self.start_printed("sh\n", "sh", name),
            _ => test.start(kind_of(name), &self.own_options(name, &words)),
        };
        self.add_program(name, process, words);
    }

    /// Starts the player in Python as it is, or a copy with its own `choose` or with short times.
    fn start_python(&self, kind: &str, name: &str, options: &str) -> TestProcess {
        let (options, script) = match kind {
            "choose" => {
                let (options, body) = options.split_once("-- ").unwrap_or((options, &self.choose));
                (options, self.python_copy(name, body, &[]))
            }
            "impatient" => (options, self.python_copy(name, COIN, &SHORT_TIMES)),
            _ => (options, Path::new(BIN).join("player.py")),
        };
        let options = format!("{options} --player-id {name}");
        self.test.python(script, &self.url("manager"), &options)
    }

    fn own_options(&self, name: &str, options: &str) -> String {
        match name {
            "manager" => options.into(),
            _ => agent_options(&self.url("manager"), name, options),
        }
    }

    /// Opens so many connections to a program, and sends these bytes on each: `flood REF01 40 PO~`.
    /// They stay open until `release`, unless the bytes are `dropped`. A program that restarts its
    /// process resets some.
    fn flood(&mut self, name: &str, words: &str) {
        let (count, bytes) = words.split_once(' ').unwrap_or((words, ""));
        let (kept, bytes) = match bytes.strip_prefix("dropped ") {
            Some(bytes) => (false, bytes),
            None => (true, bytes),
        };
        let count = count.parse().unwrap();
        let port = self.program(name).port();
        let address = format!("127.0.0.1:{port}").parse().unwrap();
        let mut sent = 0;
        let mut send = || {
            let connected = TcpStream::connect_timeout(&address, Duration::from_millis(300));
            if let Ok(mut stream) = connected {
                let written = stream.write_all(bytes.replace('~', "\r\n").as_bytes());
                sent += usize::from(written.is_ok());
                if kept {
                    self.flood.push(stream);
                }
            }
            2 * sent >= count
        };
        let is_sent = (0..count).map(|_| send()).last();
        wait_until("half of the flood is sent", || {
            is_sent == Some(true) || send()
        });
    }

    /// Copies the player in Python for a player with this `choose`, and with these times. Returns the
    /// path of the copy.
    fn python_copy(&self, name: &str, choose: &str, times: &[[&str; 2]]) -> PathBuf {
        let folder = self.test.folder.join(name);
        fs::create_dir_all(&folder).unwrap();
        let read = |file: &str| fs::read_to_string(format!("{BIN}/{file}")).unwrap();
        let place = match choose.contains("def choose(") {
            true => "def choose(turn):",
            false => COIN,
        };
        let script = folder.join("mine.py");
        fs::write(&script, read("player.py").replace(place, choose)).unwrap();
        let mut rest = read("league_player.py");
        for [usual, other] in times {
            assert!(rest.contains(usual), "{usual}");
            rest = rest.replace(usual, other);
        }
        fs::write(folder.join("league_player.py"), rest).unwrap();
        script
    }

    /// Kills a program, and starts it again with the same words; the manager at the same port.
    fn restart(&mut self, name: &str) {
        let mut old = self.programs.remove(name).unwrap();
        old.process.kill();
        let mut words = old.words;
        if name == "manager" {
            words += &format!(" --port {}", old.process.port());
        }
        if words.starts_with("stand-in") {
            let address = format!("127.0.0.1:{}", old.process.port());
            wait_until("its player ends", || TcpListener::bind(&address).is_ok());
        }
        self.start(name, &words);
    }

    /// Starts the player that the protocol prints in this language.
    fn start_printed(&self, fence: &str, program: &str, name: &str) -> TestProcess {
        let page = PROTOCOL.replace('\r', "");
        let blocks = page.split("```");
        let mut blocks = blocks.filter_map(|block| block.strip_prefix(fence));
        let script = blocks.find(|block| block.contains("relay_next")).unwrap();
        let path = self.test.folder.join("printed");
        fs::write(&path, script).unwrap();
        let manager = self.url("manager").replace("/mcp", "");
        TestProcess::new(Command::new(program).arg(path).args([&manager, name]))
    }

    /// Starts a program of the small league, which finds the manager in its configuration.
    fn start_small(&self, name: &str, options: &str) -> TestProcess {
        if name == "manager" {
            let port = options.split(' ').nth(1).unwrap();
            self.edit_manager(&format!("http://localhost:{port}/mcp"));
        }
        let manager = self.url("manager");
        let agents = fs::read_to_string(self.test.config("agents")).unwrap();
        if !agents.contains(&manager) {
            self.edit_manager(&manager); // no small program has started yet, which reads this file
        }
        let kind = kind_of(name).trim_start_matches("league_");
        let mut command = Command::new(executable(&format!("small_{kind}")));
        command.args(options.split_whitespace());
        if name != "manager" {
            command.args([format!("--{kind}-id"), name.into()]);
        }
        let program = TestProcess::new(command.current_dir(&self.test.folder));
        if name == "manager" {
            program.url(); // it listens
        }
        program
    }

    fn edit_manager(&self, url: &str) {
        let key = "league_manager.endpoint";
        self.test.edit("agents", key, json!(url));
    }
}

/// Runs a command to its end. Returns its exit code, unless it is 0, and its output.
fn ended(command: &mut Command) -> String {
    let (code, text) = run_to_end(command);
    let text = text.replace("\n\n", "\n");
    match code {
        Some(0) => text,
        _ => format!("exit {}\n{text}", code.unwrap_or(-1)),
    }
}

/// Starts the stand-in for a player, which ends with it.
fn stand_in(test: &TestLeague, manager: &str, player: &Command) -> TestProcess {
    let mut command = Command::new(PYTHON);
    command.arg(format!("{BIN}/league_player.py"));
    command.args(["--until-stdin-closes", "--manager", manager, "--"]);
    command.arg(player.get_program()).args(player.get_args());
    command.arg("--until-stdin-closes");
    TestProcess::new(command.current_dir(&test.folder))
}
