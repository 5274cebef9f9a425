//! Fake agents in a story, and what they are told.

use super::*;
use std::collections::BTreeSet;

impl Story {
    /// Runs a command about fake agents.
    pub fn fake_command(&mut self, line: &str) -> Option<String> {
        let [first, second, rest, more] = words_of(line);
        match (first, second) {
            ("fake", name) => self.fake(name, more),
            ("open", _) => gate_of(&self.gates, &format!("gate{rest}")).open(),
            ("class", count) => self.class(count.parse().unwrap(), more),
            ("register", _) => return Some(self.register(rest)),
            ("announce", _) => return Some(self.announce(rest)),
            (name, "answers") => {
                let (when, what) = more.split_once(' ').unwrap();
                self.mark(name);
                let mut rules = self.rules[name].lock().unwrap();
                rules.insert(0, (when.into(), what.into()));
            }
            (name, "gets") => return Some(self.gets(name, more)),
            (name, "got") => match more.split_once(" below ") {
                Some((kind, limit)) => {
                    let count = self.received(name, kind, 0).len();
                    assert!(count < limit.parse().unwrap(), "{line}: {count}");
                }
                None => return Some(self.received(name, more, 0).len().to_string()),
            },
            (name, "distinct") => {
                let (kind, field) = more.split_once(' ').unwrap();
                let received = self.received(name, kind, 0);
                let values = received
                    .iter()
                    .map(|one| json!(one.pointer(field)).to_string());
                return Some(values.collect::<BTreeSet<_>>().len().to_string());
            }
            (name, "reports") => {
                let [match_id, winner, loser] = more.split(' ').collect::<Vec<_>>()[..] else {
                    panic!("{more}");
                };
                let (sender, token) = (format!("referee:{name}"), self.tokens.get(name));
                let token = token.map(String::as_str);
                let report = report(&sender, token, match_id, [winner, loser]);
                return Some(shown(send(&self.url("manager"), &report)));
            }
            _ => return None,
        }
        Some(String::new())
    }

    /// Registers so many fake players under these names. Those that are new have these rules, and choose
    /// even and odd by turns.
    fn class(&mut self, count: usize, words: &str) {
        let (rules, names) = words.split_once("-- ").unwrap_or(("", words));
        for (n, name) in (1..=count).zip(names.split(", ").cycle()) {
            let id = format!("P{n:02}");
            if !self.fakes.contains_key(&id) {
                self.fake(&id, &format!("{} {rules}", ["odd", "even"][n % 2]));
            }
            let body = application(name, &self.fakes[&id].url);
            let request = message("LEAGUE_REGISTER_REQUEST", "player", body);
            assert_eq!(send(&self.url("manager"), &request)["player_id"], id);
        }
    }

    /// Starts a fake agent: `fake P01 even GAME_OVER#1=close CHOOSE_PARITY_CALL/R1M1=gate`. Each rule
    /// has a message type or a method, a match, which time, and what is done.
    pub fn fake(&mut self, name: &str, words: &str) {
        let mut rules = words.split(' ').map(String::from);
        let (id, choice) = (name.to_string(), rules.next().unwrap_or_default());
        let rules = rules.filter_map(|rule| {
            let (when, what) = rule.split_once('=')?;
            Some((when.to_string(), what.to_string()))
        });
        let rules = Rules::new(Mutex::new(rules.collect()));
        self.rules.insert(name.into(), Arc::clone(&rules));
        let gates = Arc::clone(&self.gates);
        let counts = Mutex::default();
        let fake = FakeAgent::new(move |request| {
            let names = names_of(request, &counts);
            let rules = rules.lock().unwrap().clone();
            let mut rules = rules.iter().filter(|(when, _)| names.contains(when));
            let what = rules.next().map_or("", |(_, what)| what);
            if what.starts_with("gate") {
                gate_of(&gates, what).pass();
            }
            let good = match (&*id, &*choice) {
                ("manager", _) | (_, "manager") => fake::answers(request),
                _ => valid_reply(&id, &choice, request),
            };
            reply_of(what, request, good)
        });
        self.fakes.insert(name.into(), fake);
    }

    /// Waits until a fake agent has got so many messages of a type, or calls of a method. Returns
    /// their matches, or with a third word this field of the last of so many.
    fn gets(&self, name: &str, words: &str) -> String {
        let mut words = words.split(' ');
        let [kind, count] = [(); 2].map(|()| words.next().unwrap());
        let what = format!("{name} gets {kind} {count}");
        let is_more = count.starts_with('+');
        let earlier = self.earlier.get(name).filter(|_| is_more);
        let earlier = earlier.copied().unwrap_or(0);
        let count: usize = count.parse().unwrap();
        wait_until(&what, || self.received(name, kind, earlier).len() >= count);
        if is_more {
            return String::new();
        }

        let received = self.received(name, kind, 0);
        if let Some(field) = words.next() {
            return columns(&received[count - 1..count], field);
        }
        let matches = received.iter().map(|one| one["match_id"].as_str());
        let matches: Vec<&str> = matches.map(|id| id.unwrap_or(kind)).collect();
        matches.join(" ")
    }

    /// Returns the messages of a type, or the arguments of a method, that a fake agent has got since
    /// its first so many requests.
    pub fn received(&self, name: &str, kind: &str, earlier: usize) -> Vec<Value> {
        let requests = self.fakes[name].requests.lock().unwrap();
        let (kind, match_id) = kind.split_once('/').unwrap_or((kind, ""));
        let is_of_kind = |one: &&Value| {
            (one["method"] == kind || one["params"]["message_type"] == kind)
                && (match_id.is_empty() || one["params"]["match_id"] == match_id)
        };
        let received = requests.iter().skip(earlier).filter(is_of_kind);
        received.map(|one| one["params"].clone()).collect()
    }

    /// Notes how many requests a fake agent has got.
    fn mark(&mut self, name: &str) {
        let fake = self.fakes.get(name);
        let count = fake.map_or(0, FakeAgent::request_count);
        self.earlier.insert(name.into(), count);
    }

    /// Registers agents, with changes like `/player_meta/version=2.0.0`: fake ones, with the token that
    /// they have, or whoever is at a URL. Returns the reply where it is no acceptance.
    fn register(&mut self, words: &str) -> String {
        let (edits, names): (Vec<&str>, Vec<&str>) =
            words.split(' ').partition(|word| word.contains(['=', ':']));
        let place = edits.iter().find(|edit| edit.starts_with("http"));
        let place = *place.unwrap_or(&"http://127.0.0.1:1/mcp");
        let mut replies = String::new();
        for name in names {
            self.mark(name);
            let fake = self.fakes.get(name);
            let endpoint = fake.map_or(place, |fake| &fake.url);
            let token = fake.and_then(|_| self.tokens.get(name));
            let token = token.map(String::as_str);
            let mut request = match name.starts_with("REF") {
                true => referee_registration(name, endpoint, 2, token),
                false => player_registration(name, endpoint, token),
            };
            if let Some(meta) = request.get_mut("player_meta") {
                meta["display_name"] = name.into();
            }
            set_all(&mut request, edits.iter().copied());
            let reply = send(&self.url("manager"), &request);
            let id = ["player_id", "referee_id"].map(|key| reply[key].as_str());
            if let Some(token) = reply["auth_token"].as_str() {
                self.tokens.insert(name.into(), token.into());
                if edits.contains(&place) {
                    replies += &format!("{}\n", id[0].or(id[1]).unwrap_or_default());
                }
            } else if reply["status"] != "ACCEPTED" {
                replies += &format!("{}\n", shown(reply));
            }
        }
        replies
    }

    /// Announces matches of the fake players to REF01: `R1M1 R1M2@another R1M3@new`, of which R1M2 has
    /// another referee, and R1M3 other tokens. Returns the answer in short.
    fn announce(&self, matches: &str) -> String {
        let own = self.url("REF01");
        let [a, b] = ["P01", "P02"].map(|id| self.url(id));
        let mut rows = Vec::new();
        for word in matches.split(' ') {
            let (id, tokens) = word.split_once('@').unwrap_or((word, "tok"));
            let referee = match tokens {
                "another" => "http://127.0.0.1:1/mcp",
                _ => &own,
            };
            let players = json!({
                "player_A_endpoint": a, "player_A_token": format!("{tokens}-p01-{id}"),
                "player_B_endpoint": b, "player_B_token": format!("{tokens}-p02-{id}"),
            });
            rows.push((id, referee, players));
        }
        shown(send_by_method(&own, fake::announces(&rows)))
    }
}

/// Returns the gate with this name.
fn gate_of(gates: &Mutex<BTreeMap<String, Gate>>, name: &str) -> Gate {
    let mut gates = gates.lock().unwrap();
    gates.entry(name.into()).or_default().clone()
}

/// Returns the names of a request in rules: its type or method, with its match or opponent, and which
/// time.
fn names_of(request: &Value, counts: &Mutex<BTreeMap<String, usize>>) -> Vec<String> {
    let asked = &request["params"];
    let message_type = asked["message_type"].as_str();
    let kind = message_type.or(request["method"].as_str()).unwrap_or("");
    let match_id = asked["match_id"].as_str().unwrap_or("");
    let opponent = asked.pointer("/context/opponent_id");
    let opponent = opponent.unwrap_or(&asked["opponent_id"]).as_str();
    let of_match = format!("{kind}/{match_id}");
    let against = format!("{kind}@{}", opponent.unwrap_or_default());
    let mut names = vec![kind.to_string(), of_match, against, "*".into()];
    for n in [0, 1] {
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(names[n].clone()).or_default();
        *count += 1;
        names.push(format!("{}#{count}", names[n]));
    }
    names
}

/// Returns the reply that a rule makes of a good one.
fn reply_of(what: &str, request: &Value, good: FakeReply) -> FakeReply {
    let (first, rest) = what.split_once(' ').unwrap_or((what, ""));
    match (first, good) {
        ("close", _) => FakeReply::Close,
        ("silence", _) => FakeReply::Silence,
        ("rejects", _) => fake::rejects(request, rest),
        (_, FakeReply::Answer(good)) if what.starts_with("but:") => {
            FakeReply::Answer(golden::edited(good, &what[4..]))
        }
        (_, FakeReply::Answer(good)) if what.starts_with("bare:") => {
            FakeReply::Body(golden::edited(good, &what[5..]).to_string())
        }
        (code, _) if code.len() == 4 && code.starts_with('E') => {
            let context = json!({"field": "match_id", "problem": "\u{1b}[2Jrefused"});
            let body = json!({"error_code": code, "error_description": code, "context": context});
            FakeReply::Answer(message("LEAGUE_ERROR", "fake", body))
        }
        (body, _) if body.starts_with('{') => FakeReply::Body(what.into()),
        (status, _) if status.parse::<u16>().is_ok() => {
            let body = if rest.is_empty() { "<p>Oh" } else { rest };
            fake::status(&format!("{status} Status"), body)
        }
        (_, good) => good,
    }
}
