//! What an examination is made of: what a check finds; the exchanges that it looks at, ours with the agent and the agent's
//! with us; how we write and send. Nothing here is read tolerantly, and no token is shown.

use super::*;

words! {
    /// How a check ended.
    Grade { Good = "ok", Failed = "FAIL", Warned = "warn", Skipped = "skip", }
}

/// How a check ended, and what it saw: a line for people, an object for machines.
#[derive(Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub section: &'static str,
    pub grade: Grade,
    pub forgiven: bool,
    pub sent: String,
    pub came: String,
    pub expected: String,
}

impl Finding {
    /// What was seen, good or not. Which check that was, and how bad it is, is filled in later.
    pub fn new(sent: &str, came: impl ToString, expected: impl ToString, good: bool) -> Finding {
        let (grade, came) = (
            if good { Grade::Good } else { Grade::Failed },
            quotable(&came.to_string()),
        );
        let (sent, expected) = (sent.to_string(), expected.to_string());
        Finding {
            check: "",
            section: "",
            grade,
            forgiven: false,
            sent,
            came,
            expected,
        }
    }

    pub fn line(&self) -> String {
        let Finding {
            check,
            section,
            grade,
            forgiven,
            sent,
            came,
            expected,
        } = self;
        let sent = if sent.is_empty() {
            String::new()
        } else {
            format!("sent {sent}, ")
        };
        let judged = match grade {
            Grade::Good => String::new(),
            Grade::Skipped => ": cannot be seen, after an earlier fault".into(),
            Grade::Failed | Grade::Warned => format!(": {sent}came {came}, expected {expected}"),
        };
        let note = if *forgiven {
            "; our own league forgives it, others need not"
        } else {
            ""
        };
        format!("{:<4}  {check}{judged}{note}  [{section}]", grade.word())
    }
}

/// The first that is not good, else the last.
pub fn worst(findings: impl IntoIterator<Item = Option<Finding>>) -> Option<Finding> {
    findings.into_iter().flatten().reduce(|first, next| {
        if first.grade == Grade::Good {
            next
        } else {
            first
        }
    })
}

/// A call of ours and its answer; or a call to us, as if it were an answer.
#[derive(Clone)]
pub struct Exchange {
    pub at: Instant,
    sent: String,
    /// The HTTP status; 0 where nothing came.
    pub status: u16,
    /// The body that came, if it is JSON.
    pub json: Value,
    /// What came, in words.
    pub came: String,
}

impl Exchange {
    fn new(sent: &str, status: u16, body: &[u8]) -> Exchange {
        let (at, words) = (Instant::now(), String::from_utf8_lossy(body));
        let came = if status == 200 {
            words.into()
        } else {
            format!("HTTP {status} {words}")
        };
        Exchange {
            at,
            sent: sent.into(),
            status,
            json: serde_json::from_slice(body).unwrap_or_default(),
            came,
        }
    }

    /// The league message in it, in a shell or bare.
    pub fn message(&self) -> &Value {
        let shell = ["result", "params"]
            .iter()
            .map(|key| &self.json[*key])
            .find(|it| it.is_object());
        shell.unwrap_or(&self.json)
    }

    /// A text of that message.
    pub fn text(&self, key: &str) -> &str {
        self.message()[key].as_str().unwrap_or_default()
    }

    /// The message, unless it is a refusal or nothing.
    pub fn reply(&self) -> Option<&Value> {
        Some(self.message()).filter(|it| it.is_object() && !self.is_refusal())
    }

    fn is_refusal(&self) -> bool {
        self.text("message_type").ends_with("_ERROR")
            || self.json["error"].is_object()
            || self.status >= 400
    }

    /// A finding about this exchange.
    pub fn shows(
        &self,
        came: impl ToString,
        expected: impl ToString,
        good: bool,
    ) -> Option<Finding> {
        Some(Finding::new(&self.sent, came, expected, good))
    }

    /// Judges a field of the reply, or of an object in it (`player_meta.version`). Where that is not there nothing is seen.
    pub fn field(
        &self,
        path: &str,
        expected: impl ToString,
        good: impl Fn(&Value) -> bool,
    ) -> Option<Finding> {
        let (outer, name) = path
            .split_once('.')
            .map_or((None, path), |(outer, name)| (Some(outer), name));
        let around = outer
            .map_or(self.reply(), |outer| self.reply()?.get(outer))?
            .as_object()?;
        let came = around
            .get(name)
            .map_or(format!("no {name}"), |value| format!("{name} {value}"));
        self.shows(
            came,
            expected,
            good(around.get(name).unwrap_or(&Value::Null)),
        )
    }

    /// Judges whether some fields of the reply are exactly these texts.
    pub fn are(&self, wanted: &[(&str, &str)]) -> Option<Finding> {
        worst(
            wanted
                .iter()
                .map(|(name, text)| self.field(name, format!("{text:?}"), |it| it == text)),
        )
    }

    /// Whether it was answered as JSON-RPC, in time, and not refused.
    pub fn taken(&self) -> Option<Finding> {
        let good = self.reply().is_some() && self.json.get("result").is_some();
        self.shows(&self.came, "HTTP 200 and a JSON-RPC result, in time", good)
    }

    /// Whether it was refused, in any way. Where nothing came nothing is seen.
    pub fn refused(&self, code: Code) -> Option<Finding> {
        self.shows(&self.came, format!("a refusal ({code})"), self.is_refusal())
            .filter(|_| self.status != 0)
    }

    /// Whether it is a JSON-RPC error of that code.
    pub fn failed(&self, code: i64) -> Option<Finding> {
        self.shows(
            &self.came,
            format!("a JSON-RPC error {code}"),
            self.json["error"]["code"] == code,
        )
    }
}

/// An examination: who we are to the agent, what it has sent us, and what it has answered.
pub struct Exam {
    pub program: Program,
    /// What all our tokens are made of.
    pub secret: String,
    /// Where we are: the league manager, and the two players that a referee is given.
    pub urls: [String; 3],
    pub terminal: Terminal,
    pub heard: Mutex<Vec<(usize, Exchange)>>,
    pub made: Mutex<BTreeMap<String, Exchange>>,
    pub is_there: OnceLock<bool>,
}

impl Exam {
    /// What came to one of us so far, of that type, in the n-th match.
    pub fn heard(&self, who: usize, message_type: &str, n: u32) -> Vec<Exchange> {
        let is_it = |it: &Exchange| {
            it.text("message_type") == message_type && it.text("match_id") == format!("R{n}M1")
        };
        let sent = format!("ROUND_ANNOUNCEMENT R{n}M1");
        let all = lock(&self.heard)
            .clone()
            .into_iter()
            .filter(|(by, it)| *by == who && is_it(it));
        all.map(|(_, it)| Exchange {
            sent: sent.clone(),
            ..it
        })
        .collect()
    }

    /// The agent's first act.
    pub fn registration(&self) -> Exchange {
        lock(&self.heard)
            .first()
            .map_or_else(|| Exchange::new("", 0, &[]), |(_, it)| it.clone())
    }

    pub fn kind(&self) -> Kind {
        let it = self.registration();
        let is_referee = it.message().get("referee_meta").is_some()
            || it.text("message_type").contains("REFEREE");
        if is_referee {
            Kind::Referee
        } else {
            Kind::Player
        }
    }

    /// Where it says that it can be called.
    pub fn endpoint(&self) -> String {
        let (it, meta) = (self.registration(), format!("{}_meta", self.kind()));
        it.message()[meta]["contact_endpoint"]
            .as_str()
            .unwrap_or_default()
            .into()
    }

    /// Whether anybody is there. Agents may register before they listen.
    pub fn is_there(&self) -> bool {
        let limit = self
            .program
            .config
            .system
            .timeouts
            .game_join_ack_timeout_sec
            .0;
        let ping = call("ping", &Packet::new(), 1);
        let answers = || {
            self.program
                .client
                .post_raw(&self.endpoint(), &ping, MAX_NOTICE, limit)
                .is_ok()
        };
        *self.is_there.get_or_init(|| until(limit, answers))
    }

    /// An exchange that several checks look at: the first of them makes it.
    pub fn once(&self, name: String, make: impl FnOnce() -> Option<Exchange>) -> Option<Exchange> {
        let known = lock(&self.made).get(&name).cloned();
        known.or_else(|| make().inspect(|it| drop(lock(&self.made).insert(name, it.clone()))))
    }

    /// Posts a body, which `sent` describes, and waits as long as its answer may take; not if nobody is there at all.
    pub fn post(&self, sent: &str, body: &str) -> Option<Exchange> {
        let timeouts = &self.program.config.system.timeouts;
        let limit = match sent.split(' ').next() {
            Some(GameInvitation::NAME) => timeouts.game_join_ack_timeout_sec.0,
            Some(ChooseParityCall::NAME) => timeouts.move_timeout_sec.0,
            _ => timeouts.generic_response_timeout_sec.0,
        };
        self.terminal
            .progress(&format!("  {sent} is sent; waiting for what comes of it"));
        let post = || {
            self.program
                .client
                .post_raw(&self.endpoint(), body, MAX_NOTICE, limit)
        };
        Some(match self.is_there().then(post)? {
            Ok((status, body)) => Exchange::new(sent, status, &body),
            Err(error) => Exchange {
                came: format!("nothing: it {}", error.explain()),
                ..Exchange::new(sent, 0, &[])
            },
        })
    }

    /// Calls a method, with any JSON-RPC id.
    pub fn call(&self, id: impl Serialize, method: &str, params: &Value) -> Option<Exchange> {
        let match_id = params["match_id"]
            .as_str()
            .or(params["matches"][0]["match_id"].as_str())
            .unwrap_or_default();
        let sent = [params["message_type"].as_str().unwrap_or(method), match_id].join(" ");
        self.post(sent.trim(), &call(method, params, id))
    }

    /// Sends a message in the n-th match, with more fields, or with others.
    pub fn send(&self, message_type: &str, n: u32, more: &str) -> Option<Exchange> {
        self.call(
            90,
            Entry::of_message(message_type)?.tool,
            &self.message(message_type, n, more),
        )
    }
}

/// Whether a value can be read as that.
pub fn is<T: Wire>(value: &Value) -> bool {
    T::read(value).is_ok()
}

/// Looks again and again whether something is so, at most so long.
pub fn until(limit: Duration, fact: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !fact() {
        if Instant::now() > end {
            return false;
        }
        pause(Duration::from_millis(10));
    }
    true
}

/// An endpoint of ours: who of us it is.
pub struct Ear(pub Arc<Exam>, pub usize);

impl Service for Ear {
    fn call(&self, body: &[u8], _: &Visitor) -> Reply {
        let (Ear(exam, who), asked) = (self, Exchange::new("", 200, body));
        lock(&exam.heard).push((*who, asked.clone()));
        let answer = if *who == 0 {
            exam.manage(&asked)
        } else {
            exam.play_as(*who, &asked)
        };
        let Some(mut answer) = answer else {
            return Reply::new("503 Service Unavailable", "");
        };
        if answer.get("conversation_id").is_some() {
            answer["conversation_id"] = asked.message()["conversation_id"].clone();
        }
        let in_a_shell = asked.json.get("jsonrpc").is_some();
        Reply::new(
            "200 OK",
            if in_a_shell {
                answered(&answer, &asked.json["id"])
            } else {
                answer.to_string()
            },
        )
    }

    fn page(&self, _path: &str, _from: &Visitor) -> Option<Reply> {
        None
    }

    fn fault(&self, _what: &str) {}
}
