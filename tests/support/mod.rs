//! Agents as real processes on free ports in a temporary folder, and scripted peers that misbehave.
//!
//! A test starts here: `World::new(edits)` makes the folder with a configuration whose limits are short where
//! silence is expected; `world.manager(&[…])` and friends start programs; `Peer::new(script)` is an agent whose
//! every answer the test decides. Nothing sleeps for luck: `until` waits for a fact, and only a test that fails waits
//! to the end of its patience.
#![allow(dead_code, reason = "every test file uses its own part")]

mod files;
pub mod golden;
pub mod paper;
pub mod script;
pub mod stand_in;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// How long a fact may take to come true, unless the environment says more.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How long a fact may take to come true: LEAGUE_TEST_PATIENCE in seconds, or `PATIENCE`.
pub fn patience() -> Duration {
    let longer = env::var("LEAGUE_TEST_PATIENCE").ok();
    let seconds = longer.and_then(|seconds| seconds.parse().ok());
    seconds.map_or(PATIENCE, Duration::from_secs)
}

/// Fails the test saying what did not happen, and how more patience is had.
fn give_up(what: &str, waited: Duration) -> ! {
    let thread = thread::current();
    let test = thread.name().unwrap_or_default();
    let program = env::current_exe().unwrap();
    let file = program.file_stem().unwrap().to_string_lossy();
    let file = file.rsplit_once('-').map_or(&*file, |(name, _)| name);
    let seconds = waited.as_secs();
    panic!(
        "did not happen in {seconds} s: {what}\nOn a busy machine give it more time, alone: \
         LEAGUE_TEST_PATIENCE=300 cargo test --test {file} -- --exact {test}"
    );
}

/// Waits until `fact` gives something, or fails the test saying what did not happen.
pub fn until<T>(what: &str, fact: impl FnMut() -> Option<T>) -> T {
    until_within(patience().as_secs(), what, fact)
}

/// The same, for at most so many seconds.
pub fn until_within<T>(seconds: u64, what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let (begun, limit) = (Instant::now(), Duration::from_secs(seconds));
    loop {
        if let Some(found) = fact() {
            return found;
        }
        if begun.elapsed() > limit {
            give_up(what, limit);
        }
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Waits until something holds, or fails the test saying what did not happen.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    until(what, || holds().then_some(()));
}

/// A folder with configuration, data and logs, gone when the test ends.
pub struct World {
    pub folder: PathBuf,
}

impl World {
    /// The configuration of `files.rs`, then `edits`: (file, JSON pointer, value).
    pub fn new(edits: &[(&str, &str, Value)]) -> World {
        let number = fastrand::u64(..); // a process id alone may be that of an earlier run
        let name = format!("league-test-{}-{number:x}", std::process::id());
        let folder = env::temp_dir().join(name);
        let world = World { folder };
        for (file, text) in files::FILES {
            let path = world.folder.join("config").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for (file, pointer, value) in edits {
            world.edit(file, pointer, value.clone());
        }
        world
    }

    /// Changes one value of a configuration file; a null removes the key.
    pub fn edit(&self, file: &str, pointer: &str, value: Value) {
        let path = self.folder.join("config").join(file);
        let mut whole: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        set(&mut whole, pointer, value);
        fs::write(path, whole.to_string()).unwrap();
    }

    /// Has the league play another game, and the agents whatever their programs can.
    pub fn play(&self, game_type: &str) {
        let league = "leagues/league_2025_even_odd.json";
        self.edit(league, "/game_type", json!(game_type));
        let entry = json!({"game_type": game_type, "display_name": game_type, "players": 2});
        self.edit("games/games_registry.json", "/games/0", entry);
        for listed in [
            "referees/0",
            "referees/1",
            "players/0",
            "players/1",
            "players/2",
            "players/3",
        ] {
            let path = format!("/{listed}/game_types");
            self.edit("agents/agents_config.json", &path, Value::Null);
        }
        for defaults in ["defaults/referee.json", "defaults/player.json"] {
            self.edit(defaults, "/game_types", Value::Null);
        }
    }

    /// A command for one of the three programs, in this world; no port is fixed.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let exe = match program {
            "league_manager" => env!("CARGO_BIN_EXE_league_manager"),
            "referee" => env!("CARGO_BIN_EXE_referee"),
            _ => env!("CARGO_BIN_EXE_player"),
        };
        let mut command = Command::new(exe);
        command.args(arguments);
        for folder in ["config", "data", "logs"] {
            let option = format!("--{folder}");
            command.arg(option).arg(self.folder.join(folder));
        }
        command
    }

    /// Starts a program on a free port and waits until it listens.
    pub fn start(&self, program: &str, arguments: &[&str]) -> Agent {
        let agent = self.start_unheard(program, arguments);
        agent.line("listening on ");
        agent
    }

    /// Starts a program that perhaps never listens.
    pub fn start_unheard(&self, program: &str, arguments: &[&str]) -> Agent {
        let mut command = self.command(program, arguments);
        if !arguments.contains(&"--port") {
            command.args(["--port", "0"]);
        }
        Agent::new(command.arg("--until-stdin-closes"))
    }

    /// Starts a program in Python, an agent of the manager at that URL, on a free port and in this world's folder.
    pub fn python(&self, script: impl AsRef<Path>, manager: &str, options: &str) -> Agent {
        let mut command = Command::new("python3");
        command.arg(script.as_ref()).args(["--manager", manager]);
        command.args(["--until-stdin-closes", "--port", "0"]);
        command.args(options.split_whitespace());
        Agent::new(command.current_dir(&self.folder))
    }

    /// Plays a local league with these options to its end: what it printed.
    pub fn local(&self, options: &[&str]) -> String {
        let mut league = self.manager(&[&["local"], options].concat());
        assert!(league.wait().success(), "{}", league.said());
        league.output()
    }

    /// Starts a program under a limit, like `ulimit -n 40`, and waits until it listens.
    pub fn start_limited(&self, ulimit: &str, program: &str, arguments: &[&str]) -> Agent {
        let wanted = self.command(program, arguments);
        let script = format!("trap '' XFSZ; {ulimit} && exec \"$0\" \"$@\"");
        let mut command = Command::new("bash");
        command.args(["-c", &script]).arg(wanted.get_program());
        command.args(wanted.get_args());
        command.args(["--port", "0", "--until-stdin-closes"]);
        let agent = Agent::new(&mut command);
        agent.line("listening on ");
        agent
    }

    /// Runs a word of the manager's program to its end: its exit code, and all it says.
    pub fn word(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = self.command("league_manager", arguments);
        let output = command.output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat());
        (output.status.code(), said.unwrap())
    }

    pub fn manager(&self, arguments: &[&str]) -> Agent {
        self.start("league_manager", arguments)
    }

    pub fn referee(&self, manager: &Agent, id: &str, arguments: &[&str]) -> Agent {
        let url = manager.url();
        let own = ["--manager", &url, "--referee-id", id];
        self.start("referee", &[&own, arguments].concat())
    }

    pub fn player(&self, manager: &Agent, id: &str, arguments: &[&str]) -> Agent {
        let url = manager.url();
        let own = ["--manager", &url, "--player-id", id];
        self.start("player", &[&own, arguments].concat())
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

    /// Every line of every log.
    pub fn logs(&self) -> Vec<Value> {
        let logs = files(&self.folder.join("logs"));
        logs.iter().flat_map(|path| json_lines(path)).collect()
    }

    /// The table as the pages have it.
    pub fn table(&self) -> Vec<Value> {
        let page = self.data("leagues/league_2025_even_odd/standings.json");
        page["standings"].as_array().unwrap().clone()
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
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
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
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// A running program. It ends with the test.
pub struct Agent {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: Mutex<Vec<String>>,
    pub stderr: Arc<Mutex<String>>,
}

impl Agent {
    pub fn new(command: &mut Command) -> Agent {
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let (line, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let mut all = stdout.lines().map_while(Result::ok);
            all.try_for_each(|text| line.send(text))
        });
        let errors = BufReader::new(child.stderr.take().unwrap());
        let stderr = Arc::new(Mutex::new(String::new()));
        let said = Arc::clone(&stderr);
        thread::spawn(move || {
            let all = errors.lines().map_while(Result::ok);
            all.for_each(|it| *said.lock().unwrap() += &(it + "\n"))
        });
        let stdin = child.stdin.take();
        Agent {
            child,
            stdin,
            lines,
            seen: Mutex::default(),
            stderr,
        }
    }

    /// The first line on standard output that contains `text`.
    pub fn line(&self, text: &str) -> String {
        let mut seen = self.seen.lock().unwrap();
        let begun = Instant::now();
        loop {
            if let Some(line) = seen.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            let left = patience().saturating_sub(begun.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else {
                let errors = self.stderr.lock().unwrap();
                let what = format!("a line {text:?}; it said {seen:?} and {errors:?}");
                give_up(&what, begun.elapsed());
            };
            seen.push(line);
        }
    }

    /// Waits until standard error contains `text`.
    pub fn complains(&self, text: &str) {
        let begun = Instant::now();
        while !self.said().contains(text) {
            if begun.elapsed() > patience() {
                let what = format!("the complaint {text:?}; it said {:?}", self.said());
                give_up(&what, begun.elapsed());
            }
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// What it has said on standard error so far.
    pub fn said(&self) -> String {
        self.stderr.lock().unwrap().clone()
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

    /// Waits until it has ended by itself.
    pub fn wait(&mut self) -> ExitStatus {
        until("the program ends", || self.child.try_wait().unwrap())
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends it as `kill -9` does, and starts the manager of this world again: the same command, the same port.
    pub fn restart(&mut self, world: &World, arguments: &[&str]) {
        self.kill();
        *self = world.manager(&[&["--port", &self.port()], arguments].concat());
    }

    /// Closes its standard input.
    pub fn close_stdin(&mut self) {
        self.stdin.take();
    }

    /// What it printed on standard output, once it has ended.
    pub fn output(&self) -> String {
        let mut seen = self.seen.lock().unwrap();
        seen.extend(self.lines.iter());
        seen.join("\n")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Host and port of a URL, and its path.
fn split(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap();
    rest.split_at(rest.find('/').unwrap())
}

/// Sends bytes as they are and reads what comes until the other side closes, or says nothing for `limit`.
pub fn raw(url: &str, bytes: &[u8], limit: Duration) -> Vec<u8> {
    let mut stream = connect(url, limit).unwrap();
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// A request with a body: the status and the body of the answer. `headers` end with a line break each.
pub fn http(verb: &str, url: &str, headers: &str, body: &[u8]) -> (u16, String) {
    let (host, path) = split(url);
    let head = format!(
        "{verb} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    parted(&raw(url, &[head.as_bytes(), body].concat(), patience()))
}

/// The status (0: none) and the body of an answer.
pub fn parted(answer: &[u8]) -> (u16, String) {
    let text = String::from_utf8_lossy(answer);
    let status = text.split(' ').nth(1).and_then(|it| it.parse().ok());
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.unwrap_or(0), body.into())
}

/// A JSON-RPC call: the whole reply.
pub fn call(url: &str, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
    let (status, body) = http("POST", url, "", request.to_string().as_bytes());
    assert_eq!(status, 200, "{method}: {body}");
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// A tool that is called: its result.
pub fn call_tool(url: &str, name: &str, arguments: Value) -> Value {
    let wanted = json!({"name": name, "arguments": arguments});
    let mut reply = call(url, "tools/call", wanted);
    assert!(reply["result"].is_object(), "{name}: {reply}");
    reply["result"].take()
}

/// A league message sent under its type: the `result`, or the whole reply if it is an error.
pub fn send(url: &str, message: &Value) -> Value {
    let message_type = message["message_type"].as_str().unwrap();
    let mut reply = call(url, message_type, message.clone());
    match reply["error"].is_null() {
        true => reply["result"].take(),
        false => reply,
    }
}

/// A league message with its envelope; `body` overrules the envelope.
pub fn message(message_type: &str, sender: &str, body: Value) -> Value {
    let mut whole = json!({
        "protocol": "league.v2", "message_type": message_type, "sender": sender,
        "timestamp": now(), "conversation_id": format!("conv-{message_type}-{sender}"),
    });
    for (key, value) in body.as_object().unwrap() {
        whole[key] = value.clone();
    }
    whole
}

/// `message` with one field changed; null takes it out.
pub fn but(message: &Value, key: &str, value: Value) -> Value {
    let mut changed = message.clone();
    set(&mut changed, key, value);
    changed
}

/// Changes one place of a value, named by a key or a JSON pointer; a null removes the key.
pub fn set(whole: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    match whole.pointer_mut(parent).unwrap() {
        Value::Object(object) if value.is_null() => drop(object.remove(key)),
        Value::Object(object) => drop(object.insert(key.into(), value)),
        other => *other.pointer_mut(&format!("/{key}")).unwrap() = value,
    }
}

/// The rows of a table that is written as text, with bars between the cells.
pub fn rows<const N: usize>(table: &str) -> impl Iterator<Item = [&str; N]> {
    table.trim_matches('\n').lines().map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        cells
            .try_into()
            .unwrap_or_else(|_| panic!("{N} cells: {row}"))
    })
}

/// The elements of a list.
pub fn list_of(value: &Value) -> &[Value] {
    let list = value.as_array();
    list.unwrap_or_else(|| panic!("no list: {value}"))
}

/// A text.
pub fn text_of(value: &Value) -> &str {
    let text = value.as_str();
    text.unwrap_or_else(|| panic!("no text: {value}"))
}

/// The time as messages have it.
pub fn now() -> String {
    league::wire::Timestamp::now().to_string()
}

/// A scripted agent's registration as a player: the manager's answer.
pub fn register_player(manager: &str, sender: &str, endpoint: &str) -> Value {
    let body = json!({"player_meta": meta(sender, endpoint)});
    send(manager, &message("LEAGUE_REGISTER_REQUEST", sender, body))
}

/// A scripted agent's registration as a referee: the manager's answer.
pub fn register_referee(manager: &str, sender: &str, endpoint: &str, matches: u32) -> Value {
    let mut meta = meta(sender, endpoint);
    meta["max_concurrent_matches"] = matches.into();
    let body = json!({"referee_meta": meta});
    send(manager, &message("REFEREE_REGISTER_REQUEST", sender, body))
}

fn meta(sender: &str, endpoint: &str) -> Value {
    json!({"display_name": sender, "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"], "contact_endpoint": endpoint})
}

/// What a scripted peer does with a request.
pub enum Does {
    /// Answers with this as `result`.
    Answer(Value),
    /// Answers with this body, status 200.
    Body(String),
    /// Writes these bytes and closes.
    Bytes(Vec<u8>),
    /// Writes these bytes for ever, a piece each time after the pause.
    Endless(Vec<u8>, Duration),
    /// Closes at once.
    Close,
    /// Says nothing, until the other side gives up.
    Silence,
}

/// An agent whose every answer a test decides. It keeps what it was sent.
pub struct Peer {
    pub url: String,
    pub requests: Arc<Mutex<Vec<Value>>>,
}

impl Peer {
    /// Each request (the JSON-RPC object) is given to `script`, in a thread of its own.
    pub fn new(script: impl Fn(&Value) -> Does + Send + Sync + 'static) -> Peer {
        Peer::with_paths(move |_, request| script(request))
    }

    /// The same; `script` is told the path to which the request came.
    pub fn with_paths(script: impl Fn(&str, &Value) -> Does + Send + Sync + 'static) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}/mcp");
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (script, seen) = (Arc::new(script), Arc::clone(&requests));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                thread::spawn(move || serve(stream, &*script, &seen));
            }
        });
        Peer { url, requests }
    }

    /// The same; `script` is told how many requests came before.
    pub fn counting(script: impl Fn(usize, &Value) -> Does + Send + Sync + 'static) -> Peer {
        let count = AtomicUsize::new(0);
        Peer::new(move |request| script(count.fetch_add(1, Ordering::SeqCst), request))
    }

    /// The messages of a type that it was sent so far (their `params`).
    pub fn received(&self, message_type: &str) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let params = requests.iter().map(|request| &request["params"]);
        let wanted = params.filter(|params| params["message_type"] == message_type);
        wanted.cloned().collect()
    }

    /// The first message of a type, once it has come.
    pub fn first(&self, message_type: &str) -> Value {
        until(&format!("{message_type} comes"), || {
            self.received(message_type).first().cloned()
        })
    }
}

fn serve(mut stream: TcpStream, script: &dyn Fn(&str, &Value) -> Does, seen: &Mutex<Vec<Value>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    let _ = reader.read_line(&mut first);
    let path = first.split(' ').nth(1).unwrap_or_default();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    seen.lock().unwrap().push(request.clone());
    let ok = |body: &str| {
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}");
        format!("{head}\r\n\r\n{body}")
    };
    let done = match script(path, &request) {
        Does::Answer(result) => {
            let reply = json!({"jsonrpc": "2.0", "result": result, "id": request["id"]});
            stream.write_all(ok(&reply.to_string()).as_bytes())
        }
        Does::Body(body) => stream.write_all(ok(&body).as_bytes()),
        Does::Bytes(bytes) => stream.write_all(&bytes),
        Does::Endless(bytes, pause) => loop {
            if stream.write_all(&bytes).is_err() {
                break Ok(());
            }
            thread::park_timeout(pause);
        },
        Does::Close => Ok(()),
        Does::Silence => reader.read_to_end(&mut Vec::new()).map(drop),
    };
    drop(done); // whoever has gone does not hear it
}

/// What a good player answers to `request`; `choice` is its parity choice, and of moves it takes the first.
pub fn good_player(id: &str, choice: &str, request: &Value) -> Does {
    let asked = &request["params"];
    let reply = |message_type: &str, body: Value| {
        let mut reply = message(message_type, &format!("player:{id}"), body);
        for echoed in ["conversation_id", "auth_token", "match_id"] {
            reply[echoed] = asked[echoed].clone();
        }
        Does::Answer(reply)
    };
    match asked["message_type"].as_str() {
        Some("GAME_INVITATION") => reply(
            "GAME_JOIN_ACK",
            json!({"player_id": id, "arrival_timestamp": now(), "accept": true}),
        ),
        Some("CHOOSE_PARITY_CALL") => reply(
            "CHOOSE_PARITY_RESPONSE",
            json!({"player_id": id, "parity_choice": choice}),
        ),
        Some("CHOOSE_MOVE_CALL") => reply(
            "CHOOSE_MOVE_RESPONSE",
            json!({"player_id": id, "move": asked["legal_moves"][0], "move_number": asked["move_number"]}),
        ),
        _ => Does::Answer(json!({"status": "ok"})),
    }
}

/// A door at which scripts wait until the test opens it; then it stays open.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Goes through, once it is open.
    pub fn pass(&self) {
        let (open, bell) = &*self.0;
        drop(
            bell.wait_timeout_while(open.lock().unwrap(), patience(), |open| !*open)
                .unwrap(),
        );
    }

    /// Lets everybody through from now on.
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

/// A good player that chooses in a match (in all, where that is empty) only once the gate is open.
pub fn slow_player(id: &str, choice: &str, gate: &Gate, match_id: &str) -> Peer {
    let [id, choice, match_id] = [id, choice, match_id].map(String::from);
    let gate = gate.clone();
    Peer::new(move |request| {
        let asked = &request["params"];
        let is_meant = match_id.is_empty() || asked["match_id"] == *match_id;
        if is_meant && asked["message_type"] == "CHOOSE_PARITY_CALL" {
            gate.pass();
        }
        good_player(&id, &choice, request)
    })
}

/// Whether there is a python3; says so if not.
pub fn has_python() -> bool {
    let version = Command::new("python3").arg("--version").output();
    let has_it = version.is_ok_and(|it| it.status.success());
    if !has_it {
        eprintln!("left out: there is no python3");
    }
    has_it
}

/// The report of an even win of the first of two players, as `sender` would make it.
pub fn report(
    sender: &str,
    token: Option<&str>,
    match_id: &str,
    [winner, loser]: [&str; 2],
) -> Value {
    let round_id: u32 = match_id[1..2].parse().unwrap();
    let details = json!({"drawn_number": 8, "choices": {winner: "even", loser: "odd"}});
    let result = json!({"winner": winner, "score": {winner: 3, loser: 0}, "details": details});
    let body = json!({
        "auth_token": token, "league_id": "league_2025_even_odd", "round_id": round_id, "match_id": match_id,
        "game_type": "even_odd", "result": result,
    });
    message("MATCH_RESULT_REPORT", sender, body)
}

/// An agent that takes every notice and does nothing.
pub fn listener() -> Peer {
    Peer::new(|_| Does::Answer(json!({"status": "ok"})))
}

/// An address of this machine beside its loopback, for calls that come from elsewhere; none on a lonely machine.
pub fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?; // nothing is sent
    let own = socket.local_addr().ok()?.ip();
    if own.is_loopback() {
        eprintln!("left out: this machine has no address beside its loopback");
        return None;
    }
    Some(own)
}

/// The token in a registration's answer.
pub fn token_of(answer: &Value) -> String {
    answer["auth_token"]
        .as_str()
        .unwrap_or_else(|| panic!("no token: {answer}"))
        .to_string()
}

/// A field's path, like `matches[0].match_id`, as a JSON pointer.
pub fn pointer(path: &str) -> String {
    format!("/{}", path.replace(']', "").replace(['.', '['], "/"))
}

/// Panics if a text shows a token: `tok-…-`, and then eight hex digits or more.
pub fn check_no_token(text: &str) {
    for part in text.split("tok-").skip(1) {
        let secret = part.split_once('-').map_or("", |(_, secret)| secret);
        let digits = secret.bytes().take_while(u8::is_ascii_hexdigit).count();
        assert!(digits < 8, "a token was shown: tok-{part:.60}");
    }
}

/// Connects to the host and port of a URL; reading gives up after `limit` of silence.
pub fn connect(url: &str, limit: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(split(url).0)?;
    stream.set_read_timeout(Some(limit))?;
    Ok(stream)
}
