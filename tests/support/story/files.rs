//! Files in a story: what a script changes in them, and what programs have left there.

use super::*;
use league::protocol::MessageSpec;
use league::values::Timestamp;
use std::collections::BTreeSet;
use std::mem;

impl Story {
    /// Runs a command about the files of the folder.
    pub fn file_command(&mut self, line: &str) -> Option<String> {
        let [command, path, rest, more] = words_of(line);
        match command {
            "write" => {
                let text = more.replace("\\n", "\n").replace("\\t", "\t");
                let path = self.test.folder.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            "edit" => self.edit(path, more),
            "damage" => self.damage(path, more),
            "file" => {
                let file = self.test.data(path);
                let text = file.pointer(more).unwrap_or(&Value::Null).to_string();
                let parts = text.split('"').map(|part| match Timestamp::parse(part) {
                    Some(_) => "TIME",
                    None => part,
                });
                return Some(parts.collect::<Vec<_>>().join("\""));
            }
            "private" => check_mode(&self.test.folder.join(path)),
            "changes" => return Some(self.changes(rest)),
            _ => return None,
        }
        Some(String::new())
    }

    /// Runs a command about the journal and the logs.
    pub fn log_command(&mut self, line: &str) -> Option<String> {
        let [command, word, rest, more] = words_of(line);
        Some(match command {
            "until" => {
                wait_until(rest, || self.test.count(word) >= more.parse().unwrap());
                String::new()
            }
            "journal" => columns(&self.test.events(word), more),
            "results" => self.results(),
            "lines" => columns(&json_lines(&self.test.folder.join(word)), more),
            "conversations" => self.conversations(),
            "types" => self.types(),
            "logs" => {
                wait_until(line, || self.logged(rest) > 0);
                String::new()
            }
            "logged" => self.logged(rest).to_string(),
            "last" => {
                let last = self.test.logged(word).pop();
                columns(&Vec::from_iter(last), more)
            }
            "longer" => {
                let is_longer = |line: &Value| line.to_string().len() > word.parse().unwrap();
                let longer = self.test.logs().into_iter().filter(is_longer);
                longer.count().to_string()
            }
            _ => return None,
        })
    }

    /// Replaces a text in a file of the test, which at first is the one in `bin`, or a player in Python.
    fn edit(&self, file: &str, words: &str) {
        let (old, new) = words.split_once(" => ").unwrap_or_default();
        let own = self.test.folder.join(file);
        let [ours, template] = [file, "player.py"].map(|file| Path::new(BIN).join(file));
        let mut files = [own.clone(), ours, template].into_iter();
        let text = files
            .find_map(|path| fs::read_to_string(path).ok())
            .unwrap();
        assert!(text.contains(old), "{old}");
        fs::write(own, text.replace(old, &new.replace("\\n", "\n"))).unwrap();
    }

    /// Damages a file below the folder of the story, each time as it was before the first damage.
    fn damage(&mut self, path: &str, way: &str) {
        let file = self.test.folder.join(path);
        let read = || fs::read(&file).unwrap();
        let whole = self.whole.entry(path.into()).or_insert_with(read);
        match damage::damaged(way, whole) {
            Some(left) => fs::write(file, left).unwrap(),
            None => fs::remove_file(file).unwrap(),
        }
    }

    /// Returns the files, with paths that begin so, which have changed since the last time, but no
    /// locks.
    fn changes(&mut self, beginning: &str) -> String {
        let folder = &self.test.folder;
        let name = |path: &Path| {
            let path = path.strip_prefix(folder).unwrap().display();
            path.to_string().replace('\\', "/")
        };
        let mut now = BTreeMap::new();
        for path in files(folder) {
            if name(&path).starts_with(beginning)
                && path.extension().is_none_or(|kind| kind != "lock")
            {
                now.insert(name(&path), fs::read(&path).unwrap());
            }
        }
        let before = mem::replace(&mut self.files, now);
        let names: BTreeSet<&String> = self.files.keys().chain(before.keys()).collect();
        let changed = names
            .into_iter()
            .filter(|name| self.files.get(*name) != before.get(*name));
        let shown = changed.map(|name| match name.split_once('~') {
            Some((archived, _)) => format!("{archived}, archived\n"),
            None => format!("{name}\n"),
        });
        shown.collect()
    }

    /// Returns how the matches have ended, and which agents have registered. No log and no program
    /// shows a token or another secret.
    fn results(&self) -> String {
        self.check_logs();
        let members = self.test.events("Registered");
        let mut ids: Vec<&str> = members.iter().map(|line| text_of(&line["id"])).collect();
        ids.sort();
        ids.dedup();
        let recorded = self.test.events("Recorded");
        let details = recorded.iter().map(|line| &line["result"]["details"]);
        let failed = details.filter(|details| details["status"] == "TECHNICAL_LOSS");
        let reasons = failed.map(|details| format!("; {}", details["reason"]));
        let reasons: Vec<String> = reasons.collect();
        format!(
            "{} results, {} technical{}; {}",
            recorded.len(),
            reasons.len(),
            reasons.concat(),
            ids.join(" ")
        )
    }

    /// Returns the number of lines with this text in the logs.
    fn logged(&self, text: &str) -> usize {
        let lines = self.test.logs().into_iter().map(|line| line.to_string());
        lines.filter(|line| line.contains(text)).count()
    }

    /// Checks that no log and no program shows a token or another secret.
    fn check_logs(&self) {
        let mut texts: Vec<String> = self.test.logs().iter().map(Value::to_string).collect();
        for program in self.programs.values() {
            texts.extend([program.process.output_so_far(), program.process.errors()]);
        }
        for text in texts {
            let mut words = text.split(|sign: char| !sign.is_ascii_hexdigit());
            let is_panic = text.contains("/rustc/"); // it names the commit of the compiler
            assert!(is_panic || !words.any(|word| word.len() >= 32), "{text}");
        }
    }

    /// Returns the messages in all logs, with their senders or receivers. Each must keep to its schema,
    /// and no log and no program may show a token.
    fn logged_messages(&self) -> Vec<Value> {
        self.check_logs();
        let mut logged = self.test.logs();
        logged.retain(|line| line["message_type"].is_string());
        for line in &mut logged {
            let schema = &MessageSpec::by_type(text_of(&line["message_type"]))
                .unwrap()
                .schema;
            if line["message"].is_object() && line["recipients"].is_null() {
                let found = league::json::check(&mut line["message"], schema);
                let is_valid = found.errors.is_empty() && found.ignored.is_empty();
                assert!(is_valid, "{:?} {:?} {line}", found.errors, found.ignored);
            }
        }
        logged
    }

    /// Returns the number of matches, and who has logged which message how often in a match, if all
    /// are alike.
    fn conversations(&self) -> String {
        let mut conversations = BTreeMap::<String, BTreeMap<String, u32>>::new();
        for line in self.logged_messages() {
            let keys = ["message_type", "component", "event_type"];
            let [name, who, event] = keys.map(|key| text_of(&line[key]));
            let who = who.trim_end_matches(|sign: char| sign.is_ascii_digit());
            let conversation = conversations.entry(line["conversation_id"].to_string());
            let times = conversation
                .or_default()
                .entry(format!("{name} {who} {event}"));
            *times.or_default() += 1;
        }
        let mut matches: Vec<_> = conversations.into_values().collect();
        matches.retain(|lines| lines.keys().any(|line| line.starts_with("GAME_INVITATION")));
        let mut output = format!("{} matches\n", matches.len());
        matches.dedup();
        for (line, times) in matches.iter().flatten() {
            output += &format!("{line} x{times}\n");
        }
        output
    }

    /// Returns the types of all messages. On a slow machine an announcement may be late, and then a
    /// player asks for its match.
    fn types(&self) -> String {
        let mut types = BTreeSet::new();
        for line in self.logged_messages() {
            types.insert(text_of(&line["message_type"]).to_string() + "\n");
        }
        types.retain(|name| !name.contains("ERROR") && !name.contains("QUERY"));
        types.into_iter().collect()
    }
}
