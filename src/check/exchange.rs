//! What an examination is made of: messages that we write, calls and their answers as they are, and endpoints of ours
//! that keep what comes. Nothing here is read tolerantly, and no token is shown.

use crate::net::client::{Client, MAX_NOTICE};
use crate::net::http::{self, Call, Reply, Service};
use crate::net::retry::{pause, quotable};
use crate::net::sync::lock;
use crate::program::args::Stop;
use crate::program::terminal::complain;
use crate::protocol::Envelope;
use serde::Serialize;
use serde_json::Value;
use std::net::IpAddr;
use std::{
    net::TcpListener,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// What a check saw.
#[derive(Default, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Seen {
    pub sent: String,
    pub came: String,
    pub expected: String,
    #[serde(skip)]
    pub good: bool,
}

/// A call and its answer; or a call to us, whose answer is the request itself.
pub struct Exchange {
    sent: String,
    /// The HTTP status; 0 where there was none.
    pub status: u16,
    /// The body that came, if it is JSON.
    pub answer: Value,
    /// What came, in words.
    pub came: String,
}

impl Exchange {
    /// Posts a body; `sent` says what it is.
    pub fn post(client: &Client, url: &str, sent: &str, body: &str, limit: Duration) -> Exchange {
        let (status, body, came) = match client.post_raw(url, body, MAX_NOTICE, limit) {
            Ok((200, body)) => (200, body.clone(), String::from_utf8_lossy(&body).into_owned()),
            Ok((status, body)) => (status, body.clone(), format!("HTTP {status} {}", String::from_utf8_lossy(&body))),
            Err(error) => (0, Vec::new(), format!("nothing: it {}", error.explain())),
        };
        Exchange { sent: sent.into(), status, answer: serde_json::from_slice(&body).unwrap_or_default(), came }
    }

    /// A call that came to us.
    pub fn of_request(request: &Value) -> Exchange {
        Exchange { sent: String::new(), status: 200, answer: request.clone(), came: request.to_string() }
    }

    /// The league message in it, in a shell or bare.
    pub fn result(&self) -> &Value {
        let shell = ["result", "params"].iter().map(|key| &self.answer[*key]).find(|it| it.is_object());
        shell.unwrap_or(&self.answer)
    }

    /// The same, unless it is a refusal or nothing.
    pub fn reply(&self) -> Option<&Value> {
        (self.result().is_object() && !self.is_refusal()).then(|| self.result())
    }

    fn is_refusal(&self) -> bool {
        let is_error = self.result()["message_type"].as_str().is_some_and(|name| name.ends_with("_ERROR"));
        is_error || self.answer["error"].is_object() || self.status >= 400
    }

    /// What was seen of it.
    pub fn seen(&self, came: impl ToString, expected: &str, good: bool) -> Seen {
        let came = quotable(&came.to_string());
        Seen { sent: self.sent.clone(), came, expected: expected.into(), good }
    }

    /// Judges a field of the reply, or of an object in it (`player_meta.version`); skipped where that is not there.
    pub fn field(&self, path: &str, expected: &str, good: impl Fn(&Value) -> bool) -> Option<Seen> {
        let (outer, name) = path.split_once('.').map_or((None, path), |(outer, name)| (Some(outer), name));
        let around = outer.map_or(self.reply(), |outer| self.reply()?.get(outer))?.as_object()?;
        let came = around.get(name).map_or(format!("no {name}"), |value| format!("{name} {value}"));
        Some(self.seen(came, expected, good(around.get(name).unwrap_or(&Value::Null))))
    }

    /// Judges whether some fields of the reply are exactly these texts: the first that is not is shown.
    pub fn are(&self, wanted: &[(&str, &str)]) -> Option<Seen> {
        let judged = wanted.iter().map(|(name, text)| self.field(name, &format!("{text:?}"), |it| it == text));
        worst(judged.flatten())
    }

    /// Whether it was answered as JSON-RPC, in time, and not refused.
    pub fn taken(&self) -> Option<Seen> {
        let good = self.reply().is_some() && self.answer.get("result").is_some();
        Some(self.seen(&self.came, "HTTP 200 and a JSON-RPC result, in time", good))
    }

    /// Whether it was refused, in any way; skipped where nothing came.
    pub fn refused(&self, code: &str) -> Option<Seen> {
        (self.status != 0).then(|| self.seen(&self.came, &format!("a refusal ({code})"), self.is_refusal()))
    }

    /// Whether it is a JSON-RPC error of that code.
    pub fn failed(&self, code: i64) -> Option<Seen> {
        Some(self.seen(&self.came, &format!("a JSON-RPC error {code}"), self.answer["error"]["code"] == code))
    }

    /// Whether the JSON-RPC id came back as it was; skipped where nothing did.
    pub fn echoed(&self, id: &str) -> Option<Seen> {
        let came = self.answer.as_object()?.get("id").unwrap_or(&Value::Null).to_string();
        Some(self.seen(format!("id {came}"), &format!("id {id}"), came == id))
    }
}

/// The first that is not good, else the first.
pub fn worst(seen: impl Iterator<Item = Seen>) -> Option<Seen> {
    seen.reduce(|first, next| if first.good && !next.good { next } else { first })
}

/// Looks again and again whether something is so, at most so long.
pub fn until(limit: Duration, fact: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !fact() {
        if began.elapsed() >= limit {
            return false;
        }
        pause(Duration::from_millis(10));
    }
    true
}

/// A message with its body as JSON, in which ' stands for " and the outer braces are left out.
pub fn write(envelope: &Envelope, body: &str) -> Value {
    let mut whole = serde_json::to_value(envelope).unwrap_or_default();
    let body: Value = serde_json::from_str(&format!("{{{}}}", body.replace('\'', "\""))).unwrap_or_default();
    body.as_object().into_iter().flatten().for_each(|(key, value)| whole[key] = value.clone());
    whole
}

/// A call that came to an endpoint of ours: when, and its whole JSON.
pub type Came = (Instant, Value);

/// A text of a message that came.
pub fn text(request: &Value, key: &str) -> String {
    request.get("params").unwrap_or(request)[key].as_str().unwrap_or_default().into()
}

/// What an endpoint of ours answers: told the request, and how often the like came before.
type Script = dyn Fn(&Value, usize) -> Option<Value> + Send + Sync;

/// An endpoint of ours: it keeps what it is sent, and answers as its script says. A script that says nothing is busy.
pub struct Inbox {
    /// Where it is.
    pub url: String,
    calls: Mutex<Vec<Came>>,
    script: Box<Script>,
}

impl Inbox {
    /// Answers from now on.
    pub fn open(
        listener: TcpListener,
        host: &str,
        script: impl Fn(&Value, usize) -> Option<Value> + Send + Sync + 'static,
    ) -> Result<Arc<Inbox>, Stop> {
        let url = format!("http://{host}:{}/mcp", listener.local_addr()?.port());
        let inbox = Arc::new(Inbox { url, calls: Mutex::default(), script: Box::new(script) });
        http::serve(listener, MAX_NOTICE, Arc::clone(&inbox) as Arc<dyn Service>)?;
        Ok(inbox)
    }

    /// The first call that came.
    pub fn first(&self) -> Option<Value> {
        lock(&self.calls).first().map(|(_, request)| request.clone())
    }

    /// The messages of a type about a match that came so far.
    pub fn all(&self, message_type: &str, match_id: &str) -> Vec<Came> {
        let is_it = |(_, it): &&Came| text(it, "message_type") == message_type && text(it, "match_id") == match_id;
        lock(&self.calls).iter().filter(is_it).cloned().collect()
    }
}

impl Service for Inbox {
    fn call(&self, call: &Call) -> Reply {
        let request: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        let before = self.all(&text(&request, "message_type"), &text(&request, "match_id")).len();
        lock(&self.calls).push((Instant::now(), request.clone()));
        match (self.script)(&request, before) {
            Some(result) if request.get("jsonrpc").is_some() => {
                Reply::new("200 OK", format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{}}}"#, request["id"]))
            }
            Some(bare) => Reply::new("200 OK", bare.to_string()),
            None => Reply::new("503 Service Unavailable", ""),
        }
    }

    fn page(&self, _path: &str, _peer: IpAddr, _if_none_match: Option<&str>) -> Option<Reply> {
        None
    }

    fn fault(&self, _what: &str) {}

    fn alarm(&self, what: &str) {
        complain(what);
    }
}
