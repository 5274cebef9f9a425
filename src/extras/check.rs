//! `league_manager check`: examines one agent, a player or a referee in any language. It stands where the manager would
//! stand, lets the agent register, calls it, and judges what comes: every check runs, a line each.
//!
//! The checks are tables: who demands it, the section of `protocol.md`, a name, and what is looked at. A check whose
//! call got no answer sees nothing and is skipped: an earlier one says why. Here is what every agent must do; read
//! `check/player.rs` and `check/referee.rs` next. It touches no league's files: it writes none.

/// A table of checks.
macro_rules! checks {
    ($it:ident: $($weight:ident $section:literal $name:literal $look:expr;)*) => {
        &[$(($weight, $section, $name, |$it: &Exam| $look),)*]
    };
}

mod exam;
mod messages;
mod player;
mod referee;

use crate::net::answer::answered;
use crate::net::client::{About, MAX_NOTICE, call, ok};
use crate::net::http::{self, Reply, Service, Visitor};
use crate::net::retry::{pause, quotable};
use crate::net::secret::secret;
use crate::net::sync::lock;
use crate::program::args::{Args, Stop};
use crate::program::terminal::{Terminal, complain, say, shown};
use crate::program::{Program, end_with_stdin};
use crate::protocol::*;
use crate::wire::{DisplayName, Endpoint, Timestamp, Url, Version, Wire, Within, token};
use crate::words;
use exam::*;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use std::{io, thread};

/// One thing that is looked at: who demands it, the section, its name, and what is found. Nothing: it cannot be seen.
type Check = (
    Weight,
    &'static str,
    &'static str,
    fn(&Exam) -> Option<Finding>,
);
/// How a check ends that finds something wrong, and whether our own league forgives that, which others need not: so it
/// is for what the protocol demands, for what our league does not insist on, and for what only we demand.
type Weight = (Grade, bool);
const MUST: Weight = (Grade::Failed, false);
const FORGIVEN: Weight = (Grade::Failed, true);
const OURS: Weight = (Grade::Warned, false);

/// What is expected of a time.
const TIME: &str = "a UTC time like \"2025-01-15T10:30:00Z\"";
/// What every agent is sent, and how it is spoilt.
const END: &str = RoundCompleted::NAME;
const WRONG_TOKEN: &str = ", 'auth_token': 'x'";
const NO_TOKEN: &str = ", 'auth_token': null";

const REGISTRATION: &[Check] = checks! { it:
    FORGIVEN "Transport"    "it registers by JSON-RPC 2.0, with an id" {
        let (exchange, expected) = (it.registration(), "\"jsonrpc\": \"2.0\", a method, params and an id");
        let call = &exchange.json;
        exchange.shows(call, expected, call["jsonrpc"] == "2.0" && call["params"].is_object() && !call["id"].is_null())
    };
    MUST     "Registration" "its method is that of its kind" {
        let (exchange, short) = (it.registration(), format!("register_{}", it.kind()));
        let came = &exchange.json["method"];
        let good = *came == *short || *came == *exchange.text("message_type") || came.is_null();
        exchange.shows(came, format!("{short:?}"), good)
    };
    MUST     "Registration" "message_type is a registration" {
        let names = [RefereeRegisterRequest::NAME, LeagueRegisterRequest::NAME];
        it.says("message_type", &names.join(" or "), |it| names.iter().any(|name| it == name))
    };
    MUST     "Envelope"     "protocol is league.v2"      it.says("protocol", "\"league.v2\"", |it| it == PROTOCOL);
    MUST     "Envelope"     "sender names its kind" {
        let with = format!("{}:", it.kind());
        it.says("sender", &format!("\"{with}NAME\""), |it| it.as_str().is_some_and(|it| it.starts_with(&with)))
    };
    MUST     "Envelope"     "conversation_id is a text"  it.says("conversation_id", "a text that is not empty", |it| is::<String>(it) && it != "");
    MUST     "Time"         "timestamp is UTC"           it.says("timestamp", TIME, is::<Timestamp>);
    OURS     "Time"         "its clock is right"         it.says("timestamp", "at most 60 s from ours", |it| Timestamp::read(it).map_or(true, |it| it.distance(Timestamp::now()) < Duration::from_secs(60)));
    MUST     "Registration" "it says what it is"         it.says("meta", "an object", Value::is_object);
    MUST     "Registration" "display_name"               it.says("meta.display_name", DisplayName::EXPECTED, is::<DisplayName>);
    MUST     "Registration" "version"                    it.says("meta.version", Version::EXPECTED, is::<Version>);
    MUST     "Registration" "game_types"                 it.says("meta.game_types", "a list with \"even_odd\"", |it| Vec::<String>::read(it).is_ok_and(|it| it.iter().any(|it| it == GAME)));
    MUST     "Registration" "contact_endpoint"           it.says("meta.contact_endpoint", "a URL that we can call", |it| Url::read(it).is_ok_and(|it| it.0.len() <= 200));
    MUST     "Registration" "protocol_version, if any"   it.says("meta.protocol_version", "\"2.1.0\", or none", |it| it.as_str().map_or(it.is_null(), |it| it.split('.').next() == Some("2")));
    MUST     "Registration" "somebody answers at its contact_endpoint" {
        Endpoint::parse(&it.endpoint()).ok()?;
        let came = if it.is_there() { "an answer" } else { "none" };
        Some(Finding::new("ping", came, "any HTTP answer", it.is_there()))
    };
};

const NOTICES: &[Check] = checks! { it:
    MUST     "Standings and notices" "ROUND_COMPLETED is taken"                it.send(END, 1, "")?.taken();
    FORGIVEN "Transport"             "an integer id is echoed"                 it.echo(4711);
    FORGIVEN "Transport"             "a string id is echoed"                   it.echo("check");
    OURS     "Tokens"                "a notice with a wrong token is refused"  it.send(END, 1, WRONG_TOKEN)?.refused(Code::E012);
    OURS     "Tokens"                "a notice without a token is refused"     it.send(END, 1, NO_TOKEN)?.refused(Code::E011);
    OURS     "Ping and liveness"     "ping is answered"                        it.plain("ping")?.taken();
    MUST     "Transport"             "an unknown method is an error"           it.plain("no_such_method")?.failed(-32601);
    MUST     "Transport"             "broken JSON is an error"                 it.post("{\"jsonrpc\":", "{\"jsonrpc\":")?.failed(-32700);
    MUST     "Limits"                "it survives a large body" {
        let large = Packet::from_iter([("x".to_string(), "x".repeat(2 << 20).into())]);
        let (first, next) = (it.post("2 MB", &call("ping", &large, 1))?, it.post("2 MB, then ping", &call("ping", &Packet::new(), 1))?);
        next.shows(format!("{}; then {}", first.came, next.came), "HTTP 413 or an error; then an answer", next.status != 0)
    };
    OURS     "MCP"                   "its tools are listed" {
        let wanted = if it.kind() == Kind::Referee { "notify_round" } else { "choose_parity" };
        let list = it.plain("tools/list")?;
        let has_it = |tools: &Vec<Value>| tools.iter().any(|tool| tool["name"] == wanted);
        list.shows(&list.came, format!("tools, {wanted} among them"), list.json["result"]["tools"].as_array().is_some_and(has_it))
    };
    MUST     "Standings and notices" "LEAGUE_COMPLETED is taken"               it.send(LeagueCompleted::NAME, 1, "")?.taken();
};

/// Waits for an agent to register, and examines it.
pub fn run(args: Args) -> Result<(), Stop> {
    let exam = Exam::begin(args)?;
    let kind = exam.kind();
    let own = if kind == Kind::Referee {
        referee::CHECKS
    } else {
        player::CHECKS
    };
    let findings = [REGISTRATION, own, NOTICES]
        .into_iter()
        .flatten()
        .map(|check| exam.make(check));
    let findings: Vec<Finding> = findings
        .inspect(|it| exam.terminal.say(&shown(&it.line())))
        .collect();
    let count = |grade| {
        findings
            .iter()
            .filter(|finding| finding.grade == grade)
            .count()
    };
    let [good, failed, warned, skipped] =
        [Grade::Good, Grade::Failed, Grade::Warned, Grade::Skipped].map(count);
    match exam.terminal.quiet {
        true => say(&serde_json::to_string_pretty(&findings).map_err(io::Error::from)?),
        false => say(&format!(
            "a {kind}: {good} ok, {failed} FAIL, {warned} warn, {skipped} skip"
        )),
    }
    if failed == 0 {
        Ok(())
    } else {
        Err(Stop::failed(format!(
            "the {kind} fails {failed} of its checks"
        )))
    }
}

impl Exam {
    /// Listens, as the league manager and as the two players that a referee is given, until an agent has registered.
    fn begin(args: Args) -> Result<Arc<Exam>, Stop> {
        end_with_stdin(&args, 1, || ());
        let terminal = Terminal {
            quiet: args.has("--json"),
        };
        let program = Program::new(args, Kind::Manager, "league_manager")?;
        program
            .client
            .sign_as("league_manager", program.league_id());
        let player = || http::listen("127.0.0.1", 0).map_err(Stop::failed);
        let listeners = [program.listener()?, player()?, player()?];
        let url = |it: &TcpListener| it.local_addr().map(|it| format!("http://{it}/mcp"));
        let urls = [
            program.endpoint.clone(),
            url(&listeners[1])?,
            url(&listeners[2])?,
        ];
        let (heard, made, is_there) = (Mutex::default(), Mutex::default(), OnceLock::new());
        let exam = Arc::new(Exam {
            program,
            secret: secret(32),
            urls,
            terminal,
            heard,
            made,
            is_there,
        });
        for (who, listener) in listeners.into_iter().enumerate() {
            http::serve(listener, MAX_NOTICE, Arc::new(Ear(Arc::clone(&exam), who)))?;
        }
        let line = if terminal.quiet { complain } else { say };
        line(&format!("listening on {}", exam.urls[0]));
        line("an examination, no league: start your agent now, as always");
        while !until(Duration::from_secs(3600), || {
            exam.registration().status != 0
        }) {}
        pause(Duration::from_millis(200)); // it has to read that it is in
        Ok(exam)
    }

    /// Makes a check.
    fn make(&self, (weight, section, check, look): &Check) -> Finding {
        let found = look(self).unwrap_or_else(|| Finding {
            grade: Grade::Skipped,
            ..Finding::new("", "", "", false)
        });
        let (grade, forgiven) = if found.grade == Grade::Failed {
            *weight
        } else {
            (found.grade, false)
        };
        Finding {
            check,
            section,
            grade,
            forgiven,
            ..found
        }
    }

    /// A field of its registration; `meta` is what it says of itself.
    fn says(&self, field: &str, expected: &str, good: impl Fn(&Value) -> bool) -> Option<Finding> {
        let field = if field.starts_with("meta") {
            format!("{}_{field}", self.kind())
        } else {
            field.into()
        };
        self.registration().field(&field, expected, good)
    }

    /// Calls a method without parameters.
    fn plain(&self, method: &str) -> Option<Exchange> {
        self.call(90, method, &Packet::new().into())
    }

    /// Whether a JSON-RPC id comes back as it is.
    fn echo(&self, id: impl Into<Value>) -> Option<Finding> {
        let id = id.into();
        let exchange = self.call(&id, "notify_round_completed", &self.message(END, 1, ""))?;
        let came = exchange.json.as_object()?.get("id").unwrap_or(&Value::Null);
        exchange.shows(format!("id {came}"), format!("id {id}"), *came == id)
    }

    /// What the manager answers: everybody is let in; the first report of the first match is not heard, any other is.
    fn manage(&self, asked: &Exchange) -> Option<Value> {
        let own = |key: &str| format!(", '{key}': {}", asked.message()[key]);
        let is_first = asked.text("match_id") == "R1M1"
            && self.heard(0, MatchResultReport::NAME, 1).len() == 1;
        match asked.text("message_type") {
            MatchResultReport::NAME if is_first => None,
            MatchResultReport::NAME => {
                Some(self.message(MatchResultAck::NAME, 0, &own("match_id")))
            }
            LeagueQuery::NAME => {
                Some(self.message(LeagueQueryResponse::NAME, 0, &own("query_type")))
            }
            _ if self.kind() == Kind::Referee => {
                Some(self.message(RefereeRegisterResponse::NAME, 0, ""))
            }
            _ => Some(self.message(LeagueRegisterResponse::NAME, 0, "")),
        }
    }
}
