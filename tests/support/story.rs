//! Scripts of real programs, fake agents and requests, all scripts of a folder at once. The first
//! words of a command say what is done; `tests/scripts/relay/README` lists them.
//!
//! Ports, tokens and random numbers differ in each run: a script has `<3>` for the third that was
//! seen, in its commands too.

use super::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread::JoinHandle;

const BIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bin");
const PROTOCOL: &str = include_str!("../../src/protocol.md");

/// A player that prints where its manager is, and does nothing.
const IDLE: &str =
    "import sys; print('listening on', sys.argv[-1] + '/mcp', flush=True); sys.stdin.read()";

/// Runs the scripts of a folder. A script that `needs` a program which is missing is left out.
pub fn run(folder: &str) {
    golden::run_scripts_at_once(folder, || {
        let mut story = Story::new("");
        move |line: &str| story.tell(line)
    });
}

/// A folder, and all that runs in it.
struct Story {
    test: TestLeague,
    programs: BTreeMap<String, Program>,
    fakes: BTreeMap<String, FakeAgent>,
    gate: Gate,
    held: Option<TcpListener>,
    asked: BTreeMap<String, JoinHandle<String>>,
    /// The words that a script has defined, and the texts that differ in each run.
    words: Vec<(String, String)>,
    seen: Vec<String>,
}

/// A program, and the words that have started it.
struct Program {
    process: TestProcess,
    words: String,
}

impl Story {
    fn new(edits: &str) -> Story {
        Story {
            test: TestLeague::new(edits),
            programs: BTreeMap::new(),
            fakes: BTreeMap::new(),
            gate: Gate::default(),
            held: None,
            asked: BTreeMap::new(),
            words: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Runs a command. Its output has a number for each text that differs in each run.
    fn tell(&mut self, line: &str) -> String {
        let mut line = line.replace("LONG", &"x".repeat(300_000));
        line = line.replace("LARGE", &"x".repeat(20_000));
        line = line.replace("DEEP", &("[".repeat(100) + &"]".repeat(100)));
        for (word, text) in self.words.iter().rev() {
            line = line.replace(word, text);
        }
        for (n, text) in (1..).zip(&self.seen) {
            line = line.replace(&format!("<{n}>"), text);
        }
        for (name, fake) in &self.fakes {
            line = line.replace(&format!("${name}"), &fake.url);
        }

        let output = self.run(&line);
        self.with_numbers(&output)
    }

    fn run(&mut self, line: &str) -> String {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (second, more) = rest.split_once(' ').unwrap_or((rest, ""));
        match (first, second) {
            ("needs", _) => {}
            ("config", _) => {
                let words = self.words.clone();
                *self = Story::new(rest);
                self.words = words;
            }
            ("let", word) => self.words.push((word.into(), more.into())),
            ("start", name) => self.start(name, more),
            ("fake", name) => self.fake(name, more),
            ("open", _) => self.gate.open(),
            ("hold", port) => {
                self.held = Some(TcpListener::bind(format!("127.0.0.1:{port}")).unwrap());
            }
            ("release", _) => self.held = None,
            ("kill", name) => self.programs.get_mut(name).unwrap().process.kill(),
            ("restart", name) => self.restart(name),
            ("until", event) => {
                wait_until(rest, || self.test.count(event) >= more.parse().unwrap());
            }
            ("order", _) => drop(self.test.order(rest, &self.url("manager"))),
            ("later", name) => {
                let (target, asked) = more.split_once(' ').unwrap();
                let (url, asked) = (self.url(target), asked.to_string());
                let asked = thread::spawn(move || answer(&url, &asked));
                self.asked.insert(name.into(), asked);
            }
            ("reply", name) => {
                wait_until(line, || self.asked[name].is_finished());
                return self.asked.remove(name).unwrap().join().unwrap();
            }
            ("waiting", count) => wait_until(line, || {
                let waiting = self.asked.values().filter(|asked| !asked.is_finished());
                waiting.count().to_string() == count
            }),
            ("results", _) => return self.results(),
            ("reason", id) => {
                let path = format!("matches/league_2025_even_odd/{id}.json");
                return text_of(&self.test.data(&path)["result"]["details"]["reason"]).into();
            }
            ("logs", _) => wait_until(line, || self.logged(rest) > 0),
            ("logged", _) => return self.logged(rest).to_string(),
            (count, "times") => {
                let calls = 0..count.parse().unwrap();
                let replies = calls.map(|n: usize| self.run(&more.replace("NTH", &n.to_string())));
                return replies.last().unwrap();
            }
            (name, "prints") => {
                let number = second_word_number(more);
                let (number, text) = number.unwrap_or((1, more));
                return self.programs[name].process.nth_line(number, text);
            }
            (name, "printed") => {
                let process = &self.programs[name].process;
                let printed = process.output_so_far() + &process.errors();
                return printed.matches(more).count().to_string();
            }
            (name, "ends") => {
                let process = &mut self.programs.get_mut(name).unwrap().process;
                match process.wait().code() {
                    Some(0) => {}
                    code => return format!("{code:?}: {}", process.errors()),
                }
            }
            (name, "gets") => return self.gets(name, more),
            (name, "told") => {
                let reply = send(&self.url(name), &fake::message_of_line(more));
                return fake::told(&reply).into();
            }
            (name, "post") => return post(&self.url(name), "", more),
            (name, "browsed") => {
                return post(&self.url(name), "Origin: http://192.0.2.1\r\n", more);
            }
            (name, _) => return answer(&self.url(name), rest),
        }
        String::new()
    }

    /// Returns the number of lines with this text in the logs.
    fn logged(&self, text: &str) -> usize {
        let lines = self.test.logs().into_iter().map(|line| line.to_string());
        lines.filter(|line| line.contains(text)).count()
    }

    /// Returns a text with a number for each random part.
    fn with_numbers(&mut self, text: &str) -> String {
        let is_sign = |sign: char| !sign.is_ascii_alphanumeric();
        let mut output = String::new();
        for part in text.split_inclusive(is_sign) {
            let word = part.trim_end_matches(is_sign);
            let is_code = word.starts_with("3260"); // of an error, no port is there
            let is_digits = word.bytes().all(|sign| sign.is_ascii_digit());
            let is_number = word.len() > 4 && is_digits && !is_code;
            let is_secret = word.len() >= 16 && word.bytes().all(|sign| sign.is_ascii_hexdigit());
            if is_number || is_secret {
                if !self.seen.iter().any(|seen| seen == word) {
                    self.seen.push(word.into());
                }
                let place = self.seen.iter().position(|seen| seen == word).unwrap();
                output += &format!("<{}>", place + 1);
            } else {
                output += word;
            }
            output += &part[word.len()..];
        }
        output
    }

    /// Returns the URL of a program or a fake agent, the endpoint of a member, or the URL itself.
    fn url(&self, name: &str) -> String {
        if let Some(program) = self.programs.get(name)
            && !program.words.starts_with("stand-in")
        {
            return program.process.url();
        }
        if let Some(fake) = self.fakes.get(name) {
            return fake.url.clone();
        }
        let registered = self.test.events("Registered");
        let member = registered.iter().rfind(|line| line["id"] == name);
        let endpoint = member.map(|line| text_of(&line["meta"]["contact_endpoint"]));
        endpoint.unwrap_or(name).into()
    }

    /// Starts a program by its name: the manager, a referee, or a player in Rust, in Python, behind a
    /// stand-in, or as it is printed in the protocol.
    fn start(&mut self, name: &str, words: &str) {
        let test = &self.test;
        let (kind, options) = words.split_once(' ').unwrap_or((words, ""));
        let python = |script: &Path, options: &str| {
            let options = format!("{options} --player-id {name}");
            test.python(script, &self.url("manager"), &options)
        };

        let process = match kind {
            _ if name == "manager" => {
                test.manager(&words.replace("FREE", &free_port().to_string()))
            }
            "python" => python(Path::new(&format!("{BIN}/player.py")), options),
            "choose" => {
                let (options, body) = options.split_once("-- ").unwrap();
                let template = fs::read_to_string(format!("{BIN}/player.py")).unwrap();
                let script = test.folder.join("mine.py");
                let text = template.replace("return random.choice(turn.legal_moves)", body);
                fs::write(&script, text).unwrap();
                let rest = test.folder.join("league_player.py");
                fs::copy(format!("{BIN}/league_player.py"), rest).unwrap();
                python(&script, options)
            }
            "stand-in" => {
                let options = format!("--player-id {name} --port {} {options}", free_port());
                let player = test.command("player", &options);
                stand_in(test, &self.url("manager"), &player)
            }
            "idle" => {
                let mut idle = Command::new(PYTHON);
                stand_in(test, &self.url("manager"), idle.args(["-c", IDLE]))
            }
            "printed.py" => self.start_printed("python\n", PYTHON, name),
            "printed.sh" => self.start_printed("sh\n", "sh", name),
            _ => test.agent(&self.programs["manager"].process, name, words),
        };
        let words = words.into();
        let program = Program { process, words };
        self.programs.insert(name.into(), program);
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

    /// Starts a fake agent: `fake P01 even GAME_OVER#1=close CHOOSE_PARITY_CALL/R1M1=gate`. Each rule
    /// has a message type or a method, a match, which time, and what is done.
    fn fake(&mut self, name: &str, words: &str) {
        let mut rules = words.split(' ').map(String::from);
        let (id, choice) = (name.to_string(), rules.next().unwrap_or_default());
        let rules: Vec<String> = rules.collect();
        let gate = self.gate.clone();
        let counts: Mutex<BTreeMap<String, usize>> = Mutex::default();
        let fake = FakeAgent::new(move |request| {
            let asked = &request["params"];
            let message_type = asked["message_type"].as_str();
            let kind = message_type.or(request["method"].as_str()).unwrap_or("");
            let match_id = asked["match_id"].as_str().unwrap_or("");
            let count = {
                let mut counts = counts.lock().unwrap();
                let count = counts.entry(kind.into()).or_default();
                *count += 1;
                *count
            };
            let names = [
                kind.to_string(),
                format!("{kind}/{match_id}"),
                format!("{kind}#{count}"),
            ];
            let rule = rules.iter().filter_map(|rule| rule.split_once('='));
            let mut rule = rule.filter(|(when, _)| names.iter().any(|name| name == when));

            match rule.next().map_or("", |(_, what)| what) {
                "close" => FakeReply::Close,
                "silence" => FakeReply::Silence,
                body if body.starts_with('{') => FakeReply::Body(body.into()),
                wait => {
                    if wait == "gate" {
                        gate.pass();
                    }
                    match id.as_str() {
                        "manager" => fake::answers(request),
                        _ => valid_reply(&id, &choice, request),
                    }
                }
            }
        });
        self.fakes.insert(name.into(), fake);
    }

    /// Waits until a fake agent has got so many messages of a type, or calls of a method. Returns
    /// their matches, or with a third word this field of the last one.
    fn gets(&self, name: &str, words: &str) -> String {
        let mut words = words.split(' ');
        let [kind, count] = [(); 2].map(|()| words.next().unwrap());
        let received = || -> Vec<Value> {
            let requests = self.fakes[name].requests.lock().unwrap();
            let is_of_kind =
                |one: &&Value| one["method"] == kind || one["params"]["message_type"] == kind;
            let received = requests.iter().filter(is_of_kind);
            received.map(|one| one["params"].clone()).collect()
        };
        let what = format!("{name} gets {kind} {count}");
        wait_until(&what, || received().len() >= count.parse().unwrap());

        let received = received();
        if let Some(field) = words.next() {
            return received.last().unwrap()[field].to_string();
        }
        let matches = received.iter().map(|one| one["match_id"].as_str());
        let matches: Vec<&str> = matches.map(|id| id.unwrap_or(kind)).collect();
        matches.join(" ")
    }

    /// Returns how the matches have ended, and which agents have registered; no log has a token.
    fn results(&self) -> String {
        for line in self.test.logs() {
            let text = line.to_string();
            let mut words = text.split(|sign: char| !sign.is_ascii_hexdigit());
            assert!(!words.any(|word| word.len() >= 32), "{text}");
        }
        let (all, technical) = self.test.technical_losses();
        let members = self.test.events("Registered");
        let mut ids: Vec<&str> = members.iter().map(|line| text_of(&line["id"])).collect();
        ids.sort();
        ids.dedup();
        let recorded = self.test.events("Recorded");
        let details = recorded.iter().map(|line| &line["result"]["details"]);
        let failed = details.filter(|details| details["status"] == "TECHNICAL_LOSS");
        let reasons: String = failed
            .map(|details| format!("; {}", details["reason"]))
            .collect();
        format!(
            "{all} results, {technical} technical{reasons}; {}",
            ids.join(" ")
        )
    }
}

/// Returns the number and the text in `2 TEXT`.
fn second_word_number(words: &str) -> Option<(usize, &str)> {
    let (number, text) = words.split_once(' ')?;
    Some((number.parse().ok()?, text))
}

/// Starts the stand-in for a player, which ends with it.
pub fn stand_in(test: &TestLeague, manager: &str, player: &Command) -> TestProcess {
    let mut command = Command::new(PYTHON);
    command.arg(format!("{BIN}/league_player.py"));
    command.args(["--until-stdin-closes", "--manager", manager, "--"]);
    command.arg(player.get_program()).args(player.get_args());
    command.arg("--until-stdin-closes");
    TestProcess::new(command.current_dir(&test.folder))
}

/// Calls a method with arguments like `relay_token=<1> known=[7]`. Returns the answer in short.
fn answer(url: &str, words: &str) -> String {
    let (method, arguments) = words.split_once(' ').unwrap_or((words, ""));
    let mut params = json!({});
    for (place, text) in arguments.split(' ').filter_map(|word| word.split_once('=')) {
        let value = serde_json::from_str(text).unwrap_or(text.into());
        set(&mut params, place, value);
    }
    let call = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
    post(url, "", &call.to_string())
}

/// Posts a body. Returns the answer in short.
fn post(url: &str, headers: &str, body: &str) -> String {
    let (status, text) = http("POST", url, headers, body.as_bytes());
    match serde_json::from_str(&text) {
        Ok(reply) if status == 200 => shown(reply),
        _ => status.to_string(),
    }
}

/// Returns a reply without its envelope; of an error, the code, and the field or the message.
fn shown(mut reply: Value) -> String {
    if let Some(code) = reply.pointer("/error/code") {
        let message = reply["error"]["message"].as_str().unwrap_or_default();
        return format!(
            "error {code} {}",
            message.split(':').next().unwrap_or_default()
        );
    }
    let result = reply.get_mut("result").map(Value::take);
    let mut result = result.unwrap_or(reply);
    if let Some(code) = result["error_code"].as_str() {
        let field = result["context"]["field"].as_str().unwrap_or_default();
        return format!("{code} {field}");
    }
    if let Some(fields) = result.as_object_mut() {
        let envelope = "protocol sender timestamp conversation_id league_id proves_itself";
        fields.retain(|name, _| !envelope.contains(name.as_str()));
    }
    result.to_string()
}
