//! `league check` examines one agent, a player or a referee in any language. The
//! examination stands where the manager would stand, lets the agent register, calls it, and judges
//! what comes. Every check makes a line, and the last line says whether the agent would play in our
//! league. An examination writes no league's files.
//!
//! The checks are tables. A row says who demands it, in which section of `protocol.md` it stands,
//! what it is called, at which steps it looks, and what must be so. A step is a message that we
//! send or are sent (`check/exam.rs`). A check whose step did not happen is skipped, since an
//! earlier check says why. The tables speak of Even/Odd; where the league plays another game,
//! `Exam::named` puts its names in their place. Here is what every agent must do; read
//! `check/player.rs` and `check/referee.rs` next.

/// A table of checks.
macro_rules! checks {
    ($exam:ident, $it:ident:
        $($weight:ident $section:literal $name:literal $steps:tt $look:expr;)*) => {
        &[$(Check {
            weight: $weight,
            section: $section,
            name: $name,
            steps: $steps,
            look: |$exam, $it| {
                let _ = ($exam, $it); // many need only one of them
                Option::from($look)
            },
        },)*]
    };
}

mod desk;
mod exam;
mod exchange;
mod messages;
mod player;
mod referee;

use crate::children::until;
use crate::files::provide_config;
use exam::*;
use exchange::*;
use league::games::{self, Game, even_odd};
use league::json::decode;
use league::manager::registration::check_meta;
use league::net::client::{MAX_NOTICE, Peer, ok};
use league::net::sync::lock;
use league::program::args::{Args, COMMON, Exit, SERVER, Usage};
use league::program::config::Timeouts;
use league::program::terminal::{print_error, print_line, sanitize};
use league::program::{Program, exit_when_stdin_closes};
use league::protocol::*;
use league::values::{Timestamp, redact_and_truncate};
use messages::*;
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// One row of a table.
struct Check {
    weight: Weight,
    section: &'static str,
    name: &'static str,
    /// The steps have semicolons between them.
    steps: &'static str,
    /// The look returns what it sees in a step, or nothing where it cannot see.
    look: fn(&Exam, &Exchange) -> Option<Seen>,
}

/// A weight says how a check ends that sees something wrong, and whether our own league forgives
/// that. Where it does not say, our league forgives that nothing is there.
type Weight = (Grade, Option<bool>);
/// The protocol demands these; our own league insists on them, or on what is there, or not at all.
const MUST: Weight = (Grade::Failed, Some(false));
const IF_ANY: Weight = (Grade::Failed, None);
const FORGIVEN: Weight = (Grade::Failed, Some(true));
/// Nobody insists on these, but they are wise.
const WISE: Weight = (Grade::Warned, Some(true));

const REGISTERS: &[Check] = checks! { exam, it:
    IF_ANY "Transport" "it registers by JSON-RPC 2.0, with an id" REGISTRATION {
        let good = it.json["jsonrpc"] == "2.0" && !it.json["id"].is_null();
        let seen = it.shows(&it.came, "\"jsonrpc\": \"2.0\" and an id", good);
        Seen { is_absent: it.is_bare(), ..seen }
    };
    IF_ANY "Registration" "its method is that of its kind" REGISTRATION {
        let (came, expected) = (it.method(), format!("register_{}", exam.kind()));
        let good = came == expected || came == it.text("message_type");
        Seen { is_absent: MessageSpec::by_method(came).is_none(), ..it.shows(came, expected, good) }
    };
    MUST "Registration" "message_type is a registration" REGISTRATION {
        let names = [RefereeRegisterRequest::NAME, LeagueRegisterRequest::NAME];
        it.field("message_type", names.join(" or "), |it| names.iter().any(|name| it == name))
    };
    IF_ANY "Envelope" "protocol is league.v2" REGISTRATION it.equals("protocol", PROTOCOL);
    FORGIVEN "Envelope" "sender names its kind" REGISTRATION {
        let kind = format!("{}:", exam.kind());
        let good = |it: &Value| it.as_str().is_some_and(|it| it.starts_with(&kind));
        it.field("sender", format!("\"{kind}NAME\""), good)
    };
    IF_ANY "Envelope" "conversation_id is a text" REGISTRATION
        it.field("conversation_id", "a text", Value::is_string);
    FORGIVEN "Time" "timestamp is UTC" REGISTRATION it.time("timestamp");
    MUST "Registration" "it says what it is" REGISTRATION {
        let (kind, game) = (exam.kind(), exam.rules().game_type);
        let meta = decode::<AgentMeta>(&exam.meta()).map_err(|fault| fault.to_string());
        let taken = meta.and_then(|it| check_meta(&it, kind, game).map_err(|it| it.reason));
        let good = taken.is_ok();
        it.shows(taken.err().unwrap_or_default(), "what our manager takes", good)
    };
    MUST "Registration" "somebody answers at its contact_endpoint" "ping"
        it.shows(&it.came, "any HTTP answer", it.status != 0);
};

const NOTICES: &[Check] = checks! { exam, it:
    FORGIVEN "Standings and notices" "ROUND_COMPLETED is taken" "ROUND_COMPLETED" it.taken();
    FORGIVEN "Transport" "an id is echoed, integer or string"
        r#"ROUND_COMPLETED with {"id": 4711}; ROUND_COMPLETED with {"id": "check"}"# {
        let came = it.json["id"].to_string();
        it.shows(format!("id {came}"), "the same id", it.step.contains(&came))
    };
    WISE "Tokens" "a notice with a wrong token is refused"
        r#"ROUND_COMPLETED with {"auth_token": "x"}"#
        it.refused(ErrorCode::TokenInvalid);
    WISE "Tokens" "a notice without a token is refused"
        r#"ROUND_COMPLETED with {"auth_token": null}"#
        it.refused(ErrorCode::TokenMissing);
    WISE "Ping and liveness" "ping is answered" "ping" (it.status != 0).then(|| it.taken());
    FORGIVEN "Transport" "an unknown method is an error" "no_such_method" it.failed(-32601);
    WISE "Transport" "broken JSON is an error" "broken JSON" it.failed(-32700);
    MUST "Limits" "it survives a large body" "2 MB" {
        let next = exam.step("ping with all its senses")?;
        let came = format!("{}; then {}", it.came, next.came);
        next.shows(came, "HTTP 413 or an error; then an answer", next.status != 0)
    };
    WISE "MCP" "its tools are listed" "tools/list" it.taken();
    FORGIVEN "Standings and notices" "LEAGUE_COMPLETED is taken" "LEAGUE_COMPLETED" it.taken();
};

pub const USAGE: Usage = Usage {
    name: "league check",
    about: "examine the one agent that registers; no league is played",
    options: &[
        "
  --as ID                        the id that the agent gets [the one it asks for]
  --json                         print one JSON document instead of lines",
        SERVER,
        COMMON,
    ],
    redirects: "",
};

/// Waits for an agent to register, and examines it.
pub fn run(args: Args) -> Result<(), Exit> {
    provide_config(&args)?;
    let exam = desk::open(args)?;
    let kind = exam.kind();
    let own = match kind {
        AgentKind::Referee => referee::CHECKS,
        _ => player::CHECKS,
    };
    let checks = [REGISTERS, own, NOTICES].into_iter().flatten();
    let findings: Vec<Finding> = checks.map(|check| exam.make(check)).collect();
    if exam.program.args.has("--json") {
        print_line(&serde_json::to_string_pretty(&findings).map_err(io::Error::from)?);
    }
    let of = |grade: Grade| findings.iter().filter(move |it| it.grade == grade);
    let grades = [Grade::Good, Grade::Failed, Grade::Warned, Grade::Skipped];
    let counts = grades.map(|grade| format!("{} {grade}", of(grade).count()));
    (exam.say)(&format!("a {kind}: {}", counts.join(", ")));
    let fatal = of(Grade::Failed).filter(|it| !it.forgiven);
    let fatal: Vec<&str> = fatal.map(|it| &*it.check).collect();
    (exam.say)(&match fatal.join("; ") {
        why if why.is_empty() => "it WOULD PLAY in our league".into(),
        why => format!("it would NOT play in our league, by what fails: {why}"),
    });
    match of(Grade::Failed).next() {
        Some(_) => Err(Exit::failed("")),
        None => Ok(()),
    }
}

impl Exam {
    /// Makes a check, looks at the worst of its steps, and says what it has found.
    fn make(&self, check: &Check) -> Finding {
        let look = |step| (check.look)(self, &self.step(step)?);
        let seen = worst(check.steps.split("; ").map(look));
        let (failing, forgiven) = check.weight;
        let finding = Finding {
            check: self.named(check.name),
            section: check.section,
            grade: match &seen {
                None => Grade::Skipped,
                Some(seen) if seen.good => Grade::Good,
                Some(_) => failing,
            },
            forgiven: forgiven.unwrap_or(seen.as_ref().is_some_and(|seen| seen.is_absent)),
            seen,
        };
        (self.say)(&sanitize(&finding.line()));
        finding
    }
}

/// A JSON-RPC request, written.
fn call(method: &str, params: impl std::fmt::Display, id: impl std::fmt::Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":{id}}}"#)
}
