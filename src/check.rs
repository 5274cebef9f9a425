//! `league_manager check`: examines one agent, a player or a referee in any language. It stands where the manager would
//! stand, lets the agent register, calls it, and judges what comes: every check runs, a line each.
//!
//! The checks are tables: who demands it, the section of `protocol.md`, a name, and what looks. A check whose call got
//! no answer sees nothing and is skipped: an earlier one says why. What both kinds must do is here; read
//! `check/player.rs` and `check/referee.rs` next. It touches no league's files: it writes none.

/// Declares a table of checks.
macro_rules! checks {
    ($table:ident of $examinee:ty: $($weight:ident $section:literal $name:literal $look:expr;)*) => {
        const $table: &[$crate::check::Check<$examinee>] = &[$($crate::check::Check {
            name: $name, section: $section, weight: $crate::check::Weight::$weight, look: $look,
        },)*];
    };
}

pub mod exchange;
pub mod player;
pub mod referee;

use crate::check::exchange::{Exchange, Inbox, Seen, text, until, write};
use crate::net::client::Client;
use crate::net::http;
use crate::net::log::Log;
use crate::net::retry::pause;
use crate::net::secret::secret;
use crate::net::sync::spawn;
use crate::program::args::{Args, Stop};
use crate::program::config::Config;
use crate::program::load;
use crate::program::terminal::{complain, say, shown};
use crate::protocol::*;
use crate::wire::{DisplayName, Endpoint, Timestamp, Version, Wire, token};
use crate::words;
use serde::Serialize;
use serde_json::Value;
use std::{io, path::Path, process, sync::Arc, time::Duration};

words! {
    /// How a check ended.
    Grade { Good = "ok", Failed = "FAIL", Warned = "warn", Skipped = "skip", }
}

/// Who demands what a check looks at.
#[derive(Clone, Copy, PartialEq)]
pub enum Weight {
    /// The protocol.
    Must,
    /// The protocol; our own league forgives it, others need not.
    Forgiven,
    /// Only we: it is a warning.
    Ours,
}

/// One thing that is looked at.
#[allow(missing_docs, reason = "the table's columns")]
pub struct Check<E> {
    pub name: &'static str,
    pub section: &'static str,
    pub weight: Weight,
    pub look: fn(&E) -> Option<Seen>,
}

/// How one check ended: a line for people, an object for machines.
#[derive(Serialize)]
struct Finding {
    check: &'static str,
    section: &'static str,
    grade: Grade,
    forgiven: bool,
    #[serde(flatten)]
    seen: Seen,
}

/// All findings so far; for machines they are shown at the end.
pub struct Board(bool, Vec<Finding>);

impl Board {
    /// Makes all checks of a table.
    pub fn run<E>(&mut self, table: &[Check<E>], examinee: &E) {
        for Check { name, section, weight, look } in table {
            let seen = look(examinee);
            let grade = match &seen {
                None => Grade::Skipped,
                Some(seen) if seen.good => Grade::Good,
                Some(_) if *weight == Weight::Ours => Grade::Warned,
                Some(_) => Grade::Failed,
            };
            let forgiven = grade == Grade::Failed && *weight == Weight::Forgiven;
            let finding = Finding { check: name, section, grade, forgiven, seen: seen.unwrap_or_default() };
            if !self.0 {
                say(&shown(&finding.line()));
            }
            self.1.push(finding);
        }
    }

    /// The summary; an error if a check failed.
    fn end(&self, kind: Kind) -> Result<(), Stop> {
        let count = |grade| self.1.iter().filter(|finding| finding.grade == grade).count();
        let (good, failed) = (count(Grade::Good), count(Grade::Failed));
        let (warned, skipped) = (count(Grade::Warned), count(Grade::Skipped));
        match self.0 {
            true => say(&serde_json::to_string_pretty(&self.1).map_err(io::Error::from)?),
            false => say(&format!("a {kind}: {good} ok, {failed} FAIL, {warned} warn, {skipped} skip")),
        }
        if failed == 0 { Ok(()) } else { Err(Stop::failed(format!("the {kind} fails {failed} of its checks"))) }
    }
}

impl Finding {
    fn line(&self) -> String {
        let Finding { check, section, grade, forgiven, seen: Seen { sent, came, expected, .. } } = self;
        let sent = if sent.is_empty() { String::new() } else { format!("sent {sent}, ") };
        let judged = match grade {
            Grade::Good => String::new(),
            Grade::Skipped => ": cannot be seen, after an earlier fault".into(),
            Grade::Failed | Grade::Warned => format!(": {sent}came {came}, expected {expected}"),
        };
        let note = if *forgiven { "; our own league forgives it, others need not" } else { "" };
        format!("{:<4}  {check}{judged}{note}  [{section}]", grade.word())
    }
}

/// The agent that is examined, and what it was told.
#[allow(missing_docs, reason = "the names say it")]
pub struct Examinee {
    pub kind: Kind,
    /// An id that no league gives: it finds none of its old files, and spoils none.
    pub id: String,
    pub token: String,
    /// What all our secrets of this run are made of.
    pub secret: String,
    pub config: Config,
    /// Where it calls us.
    pub manager: Arc<Inbox>,
    pub registration: Exchange,
    /// Where it says that it can be called.
    pub endpoint: String,
    /// Whether anybody was ever there.
    reachable: bool,
    client: Client,
}

/// Waits for an agent to register, and examines it.
pub fn run(args: Args) -> Result<(), Stop> {
    let (config, json, secret) = (load(&args)?, args.has("--json"), secret(32));
    let port = args.number("--port")?.unwrap_or(config.system.network.default_league_manager_port);
    let listener = http::listen(args.text("--host").unwrap_or("127.0.0.1"), port).map_err(Stop::usage)?;
    if args.has("--until-stdin-closes") {
        spawn("stdin", || {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            process::exit(1);
        });
    }
    let (seed, league_id) = (secret.clone(), config.league.league_id.clone());
    let script = move |request: &Value, before| answer(&seed, &league_id, request, before);
    let manager = Inbox::open(listener, &config.system.network.base_host.0, script)?;
    let line = if json { complain } else { say };
    line(&format!("listening on {}", manager.url));
    line("an examination, no league: start your agent now, as always");
    while !until(Duration::from_secs(3600), || manager.first().is_some()) {}
    let registration = Exchange::of_request(&manager.first().unwrap_or_default());
    let kind = kind_of(&registration.answer);
    let endpoint = registration.result()[format!("{kind}_meta")]["contact_endpoint"].as_str().unwrap_or_default();
    // Its log is never opened: nothing is written.
    let client = Client::new("league_manager", Duration::ZERO, Arc::new(Log::new(Path::new(""), "check")));
    let (id, token, endpoint) = (kind.numbered(90), token(&kind.numbered(90), &secret), endpoint.to_string());
    pause(Duration::from_millis(200)); // it has to read that it is in
    let limit = config.system.timeouts.game_join_ack_timeout_sec.0; // agents may register before they listen
    let reachable = until(limit, || Exchange::post(&client, &endpoint, "ping", PING, limit).status != 0);
    let examinee = Examinee { kind, id, token, secret, config, manager, registration, endpoint, reachable, client };
    let mut board = Board(json, Vec::new());
    match kind {
        Kind::Referee => referee::examine(examinee, &mut board)?,
        _ => player::examine(examinee, &mut board),
    }
    board.end(kind)
}

/// What an agent wants to be; whatever is wrong with its request, as good as can be told.
fn kind_of(request: &Value) -> Kind {
    let says_so = request.get("params").unwrap_or(request).get("referee_meta").is_some();
    let is_referee = says_so || text(request, "message_type").contains("REFEREE");
    if is_referee { Kind::Referee } else { Kind::Player }
}

/// What the manager answers: everybody is let in; the first report of the first match is not heard, any other is.
fn answer(secret: &str, league_id: &str, request: &Value, before: usize) -> Option<Value> {
    let (kind, match_id) = (kind_of(request), text(request, "match_id"));
    let (id, error) = (kind.numbered(90), "'error_name': 'MISSING_REQUIRED_FIELD', 'error_description': 'no league'");
    let (message_type, body) = match (text(request, "message_type").as_str(), kind) {
        (MatchResultReport::NAME, _) if before == 0 && match_id == "R1M1" => return None,
        (MatchResultReport::NAME, _) => {
            (MatchResultAck::NAME, format!("'match_id': '{match_id}', 'status': 'recorded'"))
        }
        (LeagueQuery::NAME, _) => {
            let query = text(request, "query_type");
            let error = format!("'error': {{'error_code': 'E003', {error}}}");
            (LeagueQueryResponse::NAME, format!("'query_type': '{query}', 'success': false, {error}"))
        }
        (_, kind) => {
            let name = if kind == Kind::Referee { RefereeRegisterResponse::NAME } else { LeagueRegisterResponse::NAME };
            let who = format!("'{kind}_id': '{id}', 'auth_token': '{}'", token(&id, secret));
            (name, format!("'status': 'ACCEPTED', {who}, 'reason': null, 'proves_itself': true"))
        }
    };
    let conversation = text(request, "conversation_id");
    Some(write(&envelope("league_manager", message_type, league_id, &conversation), &body))
}

/// The envelope of whatever we send. There is no other way to write messages that are wrong on purpose.
pub fn envelope(sender: &str, message_type: &str, league_id: &str, conversation_id: &str) -> Envelope {
    Envelope {
        protocol: PROTOCOL.into(),
        message_type: message_type.into(),
        sender: sender.into(),
        timestamp: Timestamp::now(),
        conversation_id: conversation_id.into(),
        auth_token: None,
        league_id: Some(league_id.into()),
        round_id: None,
        match_id: None,
    }
}

impl Examinee {
    /// A message of the manager, with its body as JSON.
    pub fn notice(&self, message_type: &str, body: &str) -> Value {
        let envelope = envelope("league_manager", message_type, &self.config.league.league_id, "conv-check");
        write(&Envelope { auth_token: Some(self.token.clone()), ..envelope }, body)
    }

    /// An announcement of one match, with these fields beside the five that it must have.
    pub fn announce(&self, n: u32, [a, b]: [&str; 2], referee: &str, more: &str) -> Option<Exchange> {
        let entry = format!(
            "'match_id': 'R{n}M1', 'game_type': 'even_odd', 'player_A_id': '{a}', 'player_B_id': '{b}', \
             'referee_endpoint': '{referee}', {more}"
        );
        self.ask(&self.notice(RoundAnnouncement::NAME, &format!("'round_id': {n}, 'matches': [{{{entry}}}]")))
    }

    /// Posts a body; nothing, if nobody was ever there.
    pub fn post(&self, sent: &str, body: &str, limit: Duration) -> Option<Exchange> {
        self.reachable.then(|| Exchange::post(&self.client, &self.endpoint, sent, body, limit))
    }

    /// Calls a method with an id, which is JSON.
    pub fn call(&self, id: &str, method: &str, params: &Value, limit: Duration) -> Option<Exchange> {
        let [name, match_id] = ["message_type", "match_id"].map(|key| text(params, key));
        let sent = [if name.is_empty() { method } else { &name }, &match_id].join(" ");
        let body = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":{id}}}"#);
        self.post(sent.trim(), &body, limit)
    }

    /// Sends a message, with the time that an answer to it may take.
    pub fn ask(&self, message: &Value) -> Option<Exchange> {
        let (timeouts, name) = (&self.config.system.timeouts, text(message, "message_type"));
        let limit = match name.as_str() {
            GameInvitation::NAME => timeouts.game_join_ack_timeout_sec.0,
            ChooseParityCall::NAME => timeouts.move_timeout_sec.0,
            _ => timeouts.generic_response_timeout_sec.0,
        };
        self.call("90", Entry::of_message(&name)?.tool, message, limit)
    }

    /// A method without parameters.
    fn plain(&self, method: &str) -> Option<Exchange> {
        self.call("90", method, &Value::Object(Packet::new()), self.config.generic_limit())
    }

    /// The end of a round, with this JSON-RPC id and these fields.
    fn round_completed(&self, id: &str, more: &str) -> Option<Exchange> {
        let summary = "{'total_matches': 1, 'wins': 1, 'draws': 0, 'technical_losses': 0}";
        let body = format!("'round_id': 1, 'matches_completed': 1, 'next_round_id': null, 'summary': {summary}{more}");
        let message = self.notice(RoundCompleted::NAME, &body);
        self.call(id, "notify_round_completed", &message, self.config.generic_limit())
    }

    /// A field of what it says of itself.
    fn meta(&self, field: &str, expected: &str, good: impl Fn(&Value) -> bool) -> Option<Seen> {
        self.registration.field(&format!("{}_meta.{field}", self.kind), expected, good)
    }
}

const PING: &str = r#"{"jsonrpc":"2.0","method":"ping","params":{},"id":1}"#;
/// What is expected of a time.
const TIME: &str = "a UTC time like \"2025-01-15T10:30:00Z\"";

fn is_time(value: &Value) -> bool {
    Timestamp::read(value).is_ok()
}

fn is_text(value: &Value, good: impl Fn(&str) -> bool) -> bool {
    value.as_str().is_some_and(good)
}

checks! { REGISTRATION of Examinee:
    Forgiven "Transport" "it registers by JSON-RPC 2.0, with an id" |it| {
        let request = &it.registration.answer;
        let good = request["jsonrpc"] == "2.0" && request["params"].is_object() && !request["id"].is_null();
        Some(it.registration.seen(request, "\"jsonrpc\": \"2.0\", a method, params and an id", good))
    };
    Must "Registration" "its method is that of its kind" |it| {
        let [short, long] = [format!("register_{}", it.kind), text(&it.registration.answer, "message_type")];
        let came = &it.registration.answer["method"];
        Some(it.registration.seen(came, &format!("{short:?}"), *came == *short || *came == *long || came.is_null()))
    };
    Must "Registration" "message_type is a registration" |it| {
        let names = [RefereeRegisterRequest::NAME, LeagueRegisterRequest::NAME];
        it.registration.field("message_type", &names.join(" or "), |it| is_text(it, |it| names.contains(&it)))
    };
    Must "Envelope" "protocol is league.v2" |it| it.registration.are(&[("protocol", PROTOCOL)]);
    Must "Envelope" "sender names its kind" |it| {
        let with = format!("{}:", it.kind);
        it.registration.field("sender", &format!("\"{with}NAME\""), |it| is_text(it, |it| it.starts_with(&with)))
    };
    Must "Envelope" "conversation_id is a text" |it| {
        it.registration.field("conversation_id", "a text that is not empty", |it| is_text(it, |it| !it.is_empty()))
    };
    Must "Time" "timestamp is UTC" |it| it.registration.field("timestamp", TIME, is_time);
    Ours "Time" "its clock is right" |it| it.registration.field("timestamp", "at most 60 s from ours", |it| {
        Timestamp::read(it).map_or(true, |it| it.distance(Timestamp::now()) < Duration::from_secs(60))
    });
    Must "Registration" "it says what it is" |it| {
        it.registration.field(&format!("{}_meta", it.kind), "an object", Value::is_object)
    };
    Must "Registration" "display_name" |it| {
        it.meta("display_name", DisplayName::EXPECTED, |it| is_text(it, DisplayName::is_good))
    };
    Must "Registration" "version" |it| it.meta("version", Version::EXPECTED, |it| is_text(it, Version::is_good));
    Must "Registration" "game_types" |it| it.meta("game_types", "a list with \"even_odd\"", |it| {
        Vec::<String>::read(it).is_ok_and(|it| it.iter().any(|it| it == GAME))
    });
    Must "Registration" "contact_endpoint" |it| it.meta("contact_endpoint", "a URL that we can call", |it| {
        is_text(it, |it| it.len() <= 200 && Endpoint::parse(it).is_ok())
    });
    Must "Registration" "protocol_version, if any" |it| it.meta("protocol_version", "\"2.1.0\", or none", |it| {
        it.is_null() || is_text(it, |it| it.split('.').next() == Some("2"))
    });
    Must "Registration" "somebody answers at its contact_endpoint" |it| {
        Endpoint::parse(&it.endpoint).ok()?;
        let came = if it.reachable { "an answer" } else { "none" };
        Some(Seen { sent: "ping".into(), ..it.registration.seen(came, "any HTTP answer", it.reachable) })
    };
}

checks! { COMMON of Examinee:
    Must "Standings and notices" "ROUND_COMPLETED is taken" |it| it.round_completed("90", "")?.taken();
    Forgiven "Transport" "an integer id is echoed" |it| it.round_completed("4711", "")?.echoed("4711");
    Forgiven "Transport" "a string id is echoed" |it| it.round_completed("\"check\"", "")?.echoed("\"check\"");
    Ours "Tokens" "a notice with a wrong token is refused" |it| {
        it.round_completed("90", ", 'auth_token': 'x'")?.refused("E012")
    };
    Ours "Tokens" "a notice without a token is refused" |it| {
        it.round_completed("90", ", 'auth_token': null")?.refused("E011")
    };
    Ours "Ping and liveness" "ping is answered" |it| it.plain("ping")?.taken();
    Must "Transport" "an unknown method is an error" |it| it.plain("no_such_method")?.failed(-32601);
    Must "Transport" "broken JSON is an error" |it| {
        it.post("{\"jsonrpc\":", "{\"jsonrpc\":", it.config.generic_limit())?.failed(-32700)
    };
    Must "Limits" "it survives a large body" |it| {
        let large = PING.replace("{}", &format!("{{\"x\":\"{}\"}}", "x".repeat(2 << 20)));
        let first = it.post("2 MB", &large, it.config.generic_limit())?;
        let next = it.post("2 MB, then ping", PING, it.config.generic_limit())?;
        let came = format!("{}; then {}", first.came, next.came);
        Some(next.seen(came, "HTTP 413 or an error; then an answer", next.status != 0))
    };
    Ours "MCP" "its tools are listed" |it| {
        let wanted = if it.kind == Kind::Referee { "notify_round" } else { "choose_parity" };
        let list = it.plain("tools/list")?;
        let tools = list.answer["result"]["tools"].as_array();
        let good = tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == wanted));
        Some(list.seen(&list.came, &format!("tools, {wanted} among them"), good))
    };
    Must "Standings and notices" "LEAGUE_COMPLETED is taken" |it| {
        let row = "'player_id': 'P90', 'display_name': 'Agent', 'points': 3}";
        let all = format!("'champion': {{{row}, 'final_standings': [{{'rank': 1, {row}]");
        it.ask(&it.notice(LeagueCompleted::NAME, &format!("'total_rounds': 1, 'total_matches': 1, {all}")))?.taken()
    };
}
