//! Scripts of real programs, fake agents and requests, all scripts of a folder at once. The first
//! words of a command say what is done; `README.md` beside this file lists them.
//!
//! Ports, tokens and random numbers differ in each run: a script has `<3>` for the third that was
//! seen, in its commands too.

mod fakes;
mod files;
mod programs;
mod requests;

use super::browser::Browser;
use super::*;
use requests::{answer, columns, send_by_method, shown, told};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use time::macros::format_description;
use time::{OffsetDateTime, Time, UtcOffset};

const BIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bin");

/// Runs the scripts of a folder. A script that `needs` a program which is missing is left out.
pub fn run(folder: &str) {
    run_as(folder, &[]);
}

/// Runs the scripts of a folder with words that stand for what is tested, like `PLAYER`.
pub fn run_as(folder: &str, words: &[(&str, &str)]) {
    golden::run_scripts_at_once(folder, || {
        let mut story = Story::new("");
        let words = words.iter().copied();
        story.words = words
            .map(|(word, text)| (word.into(), text.into()))
            .collect();
        move |line: &str| story.tell(line)
    });
}

/// The rules of a fake agent: when, and what it does then. The first that applies counts.
type Rules = Arc<Mutex<Vec<(String, String)>>>;

/// A folder, and all that runs in it.
pub struct Story {
    programs: BTreeMap<String, Program>,
    fakes: BTreeMap<String, FakeAgent>,
    rules: BTreeMap<String, Rules>,
    /// The number of requests to a fake agent when it last registered, or its rules changed.
    earlier: BTreeMap<String, usize>,
    /// The token that the manager has given each fake agent.
    tokens: BTreeMap<String, String>,
    gates: Arc<Mutex<BTreeMap<String, Gate>>>,
    /// The lines of `choose` of the next player in Python that has its own.
    choose: String,
    held: Option<TcpListener>,
    flood: Vec<TcpStream>,
    /// The files that were damaged, as they were before.
    whole: BTreeMap<String, Vec<u8>>,
    browser: Option<Browser>,
    asked: BTreeMap<String, JoinHandle<String>>,
    /// The words that a script has defined, and the texts that differ in each run.
    words: Vec<(String, String)>,
    seen: Vec<String>,
    /// The files as they were when a script last asked what has changed.
    files: BTreeMap<String, Vec<u8>>,
    /// Its folder is removed when all that writes to it has ended, so it is dropped last.
    pub test: TestLeague,
}

/// A program, and the words that have started it.
struct Program {
    process: TestProcess,
    words: String,
}

impl Story {
    pub fn new(edits: &str) -> Story {
        Story {
            test: TestLeague::new(edits),
            programs: BTreeMap::new(),
            fakes: BTreeMap::new(),
            earlier: BTreeMap::new(),
            tokens: BTreeMap::new(),
            gates: Arc::default(),
            rules: BTreeMap::new(),
            choose: String::new(),
            held: None,
            flood: Vec::new(),
            whole: BTreeMap::new(),
            browser: None,
            asked: BTreeMap::new(),
            words: Vec::new(),
            seen: Vec::new(),
            files: BTreeMap::new(),
        }
    }

    /// Runs a command. Its output has a number for each text that differs in each run.
    pub fn tell(&mut self, line: &str) -> String {
        let mut line = line.replace("PYTHON", PYTHON);
        line = line.replace("LONG", &"x".repeat(300_000));
        line = line.replace("LARGE", &"x".repeat(20_000));
        line = line.replace("ESCAPES", &r"\u001b".repeat(1_500));
        line = line.replace("ESCAPE", "\u{1b}");
        line = line.replace("BOTTOMLESS", &"[".repeat(200_000));
        line = line.replace("DEEP", &("[".repeat(100) + &"]".repeat(100)));
        for (word, text) in self.words.iter().rev() {
            line = line.replace(word, text);
        }
        for (n, text) in (1..).zip(&self.seen) {
            line = line.replace(&format!("<{n}>"), text);
        }
        let names: Vec<&String> = self.fakes.keys().chain(self.programs.keys()).collect();
        for name in names.into_iter().rev() {
            if line.contains(&format!("${name}")) {
                line = line.replace(&format!("${name}"), &self.url(name));
            }
        }

        let output = self.run(&line);
        let output = output.replace(&*self.test.folder.to_string_lossy(), "FOLDER");
        let output = match output.contains("FOLDER\\") {
            true => output.replace('\\', "/").replace("/u00", r"\u00"), // on Windows
            false => output,
        };
        let output = output.replace(&now()[..10], "TODAY");
        self.with_numbers(&with_times_hidden(&output))
    }

    /// Runs a command. The first group that knows it returns its output; the last one takes all others.
    fn run(&mut self, line: &str) -> String {
        let groups = [
            Story::own_command,
            Story::file_command,
            Story::log_command,
            Story::program_command,
            Story::output_command,
            Story::fake_command,
            Story::waiting_command,
            Story::request_command,
        ];
        groups.iter().find_map(|group| group(self, line)).unwrap()
    }

    /// Runs a command about the story itself, or one that runs another command.
    fn own_command(&mut self, line: &str) -> Option<String> {
        let [first, second, rest, more] = words_of(line);
        Some(match (first, second) {
            ("needs", _) => String::new(),
            ("config", _) => {
                let words = self.words.clone();
                *self = Story::new(rest);
                self.words = words;
                String::new()
            }
            ("let", word) => {
                let text = more.replace("FREE", &free_port().to_string());
                self.words.push((word.into(), text));
                String::new()
            }
            ("only", fields) => {
                let output = self.run(more);
                let reply = serde_json::from_str(&output).ok();
                reply.map_or(output, |reply| columns(&[reply], &fields.replace(',', " ")))
            }
            ("slowly", _) => {
                let begun = Instant::now();
                let reply = self.run(rest);
                let is_slow = begun.elapsed() >= Duration::from_secs(1);
                reply + if is_slow { " after a second" } else { "" }
            }
            ("await", _) => {
                let (text, command) = rest.split_once(" in ").unwrap();
                wait_until(line, || self.run(command).contains(text));
                String::new()
            }
            ("browser", what) => self.browse(what, more),
            (count, "times") => {
                let calls = 0..count.parse().unwrap();
                let replies = calls.map(|n: usize| self.run(&more.replace("NTH", &n.to_string())));
                replies.last().unwrap()
            }
            _ => return None,
        })
    }

    /// Opens a page of a program or a file in a browser, or asks a function of `browser.js`.
    fn browse(&mut self, what: &str, words: &str) -> String {
        let (name, path) = words.split_once('/').unwrap_or(("", ""));
        let page = match self.programs.get(name) {
            Some(program) => format!("{}/{path}", program.process.url().trim_end_matches("/mcp")),
            None => format!("file://{}", self.test.folder.join(words).display()),
        };
        let start = || Browser::start(&self.test.folder);
        let browser = self.browser.get_or_insert_with(start);
        match what {
            "opens" => browser.open(&page),
            "sees" => browser.wait_for(words),
            "faults" => return browser.faults(),
            "sheets" => return browser.count_sheets(),
            _ => return browser.run(&format!("person.{what}({})", json!(words))),
        }
        String::new()
    }

    /// Returns a text with a number for each random part.
    fn with_numbers(&mut self, text: &str) -> String {
        let is_sign = |sign: char| !sign.is_ascii_alphanumeric();
        let mut output = String::new();
        for part in text.split_inclusive(is_sign) {
            let word = part.trim_end_matches(is_sign);
            let is_code = |code: u32| (32_000..32_768).contains(&code); // of an error, no port
            let is_code = word.parse().is_ok_and(is_code);
            let is_digits = word.bytes().all(|sign| sign.is_ascii_digit());
            let is_number = word.len() > 4 && is_digits && !is_code;
            let is_secret = word.len() >= 8 && word.bytes().all(|sign| sign.is_ascii_hexdigit());
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
        if let Some(program) = self.programs.get(name) {
            match program.words.split_once(" --port ") {
                Some(("small", words)) => {
                    let port = words.split(' ').next().unwrap();
                    return format!("http://localhost:{port}/mcp");
                }
                _ if program.words.starts_with("stand-in") => {}
                _ => return program.process.url(),
            }
        }
        if let Some(fake) = self.fakes.get(name) {
            return fake.url.clone();
        }
        let registered = self.test.events("Registered");
        let member = registered.iter().rfind(|line| line["id"] == name);
        let endpoint = member.map(|line| text_of(&line["meta"]["contact_endpoint"]));
        endpoint.unwrap_or(name).into()
    }
}

impl Drop for Story {
    /// If the script has failed, prints what its fake agents have received.
    fn drop(&mut self) {
        for (name, fake) in &self.fakes {
            if thread::panicking() {
                let requests = fake.requests.lock().unwrap();
                let names = requests.iter().map(|one| {
                    let message_type = one["params"]["message_type"].as_str();
                    message_type.or(one["method"].as_str()).unwrap_or("?")
                });
                eprintln!("{name} has received {:?}", names.collect::<Vec<_>>());
            }
        }
    }
}

/// Returns a text with `<now>` for each time of day that is now, or is so in the next minutes: nine
/// hours after UTC, as in Japan; on Windows in UTC. Timestamps stay, which end with Z.
fn with_times_hidden(text: &str) -> String {
    let (hours, zone) = if cfg!(windows) { (0, " UTC") } else { (9, "") };
    let local = OffsetDateTime::now_utc().to_offset(UtcOffset::from_hms(hours, 0, 0).unwrap());
    let is_now = |word: &str| {
        let time = Time::parse(word, format_description!("[hour]:[minute]:[second]"));
        let left = time.map(|time| (time - local.time()).whole_seconds().rem_euclid(24 * 3600));
        left.is_ok_and(|left| !(600..24 * 3600 - 60).contains(&left))
    };
    let mut hidden = text.to_string();
    for start in (0..text.len()).rev() {
        let is_timestamp = text.get(start + 8..start + 9) == Some("Z");
        if text.get(start..start + 8).is_some_and(is_now) && !is_timestamp {
            hidden.replace_range(start..start + 8, "<now>");
        }
    }
    hidden.replace(&format!("<now>{zone}"), "<now>")
}

/// Returns the first two words of a command, what follows the first, and what follows the second.
fn words_of(line: &str) -> [&str; 4] {
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (second, more) = rest.split_once(' ').unwrap_or((rest, ""));
    [first, second, rest, more]
}
