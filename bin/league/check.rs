//! `league check` examines one agent, a player or a referee in any language. It takes the place of
//! the manager: it lets the agent register, sends it calls, and checks its messages. Every check
//! prints a line, and the last line says whether the agent would play in our league. An examination
//! writes no files of a league.
//!
//! The checks are tables. A row has the severity of the check, its section of `protocol.md`, its
//! name, the steps at which it looks, and the function that looks. A step is a message that we send
//! or receive (`check/examination.rs`). If a step did not happen, its check is skipped, since an
//! earlier check shows the reason. The tables are written for Even/Odd; in a league of another
//! game, `Examination::translate` replaces the names. This file has the checks that every agent
//! must pass; read `check/player_checks.rs` and `check/referee_checks.rs` next.

pub mod examination;
mod exchange;
mod messages;
mod player_checks;
mod referee_checks;
pub mod server;

use crate::files::provide_config;
use Severity::{Recommended, Required, RequiredIfPresent, Tolerated};
use examination::{Examination, REGISTRATION};
use exchange::{Exchange, Finding, Grade, Observation, worst};
use league::json::decode;
use league::manager::registration::check_meta;
use league::program::args::{Args, COMMON, Exit, SERVER, Usage};
use league::program::exit_when_stdin_closes;
use league::program::terminal::{print_error, print_line, print_whole_line, sanitize};
use league::protocol::{
    AgentKind, AgentMeta, ErrorCode, LeagueRegisterRequest, MessageSpec, PROTOCOL,
    RefereeRegisterRequest,
};
use serde_json::Value;
use std::io;

pub const USAGE: Usage = Usage {
    name: "league check",
    about: "examine the one agent that registers; no league is played",
    options: &[
        "
  --as ID                     the id that the agent gets [the one it asks for]
  --json                      print one JSON document instead of lines",
        SERVER,
        COMMON,
    ],
};

/// One row of a table.
struct Check {
    severity: Severity,
    section: &'static str,
    name: &'static str,
    /// The steps, with semicolons between them.
    steps: &'static str,
    look: Look,
}

/// Looks at the exchange of a step. Returns nothing if the exchange has nothing to look at.
type Look = fn(&Examination, &Exchange) -> Option<Observation>;

/// The severities of checks.
#[derive(Clone, Copy)]
enum Severity {
    /// The protocol demands it, and so does our own league.
    Required,
    /// The protocol demands it; our own league only if the agent does not leave it out.
    RequiredIfPresent,
    /// The protocol demands it, but our own league does not.
    Tolerated,
    /// It is wise, but not demanded.
    Recommended,
}

/// Returns a row of a table.
const fn check(
    severity: Severity,
    section: &'static str,
    name: &'static str,
    steps: &'static str,
    look: Look,
) -> Check {
    Check {
        severity,
        section,
        name,
        steps,
        look,
    }
}

const REGISTRATION_CHECKS: &[Check] = &[
    check(
        RequiredIfPresent,
        "Transport",
        "it registers by JSON-RPC 2.0, with an id",
        REGISTRATION,
        check_json_rpc,
    ),
    check(
        RequiredIfPresent,
        "Registration",
        "its method is that of its kind",
        REGISTRATION,
        check_method,
    ),
    check(
        Required,
        "Registration",
        "message_type is a registration",
        REGISTRATION,
        check_message_type,
    ),
    check(
        RequiredIfPresent,
        "Envelope",
        "protocol is league.v2",
        REGISTRATION,
        |_, call| call.check_text("protocol", PROTOCOL),
    ),
    check(
        Tolerated,
        "Envelope",
        "sender names its kind",
        REGISTRATION,
        check_sender,
    ),
    check(
        RequiredIfPresent,
        "Envelope",
        "conversation_id is a text",
        REGISTRATION,
        |_, call| call.check_field("conversation_id", "a text", Value::is_string),
    ),
    check(
        Tolerated,
        "Time",
        "timestamp is UTC",
        REGISTRATION,
        |_, call| call.check_timestamp("timestamp"),
    ),
    check(
        Required,
        "Registration",
        "it says what it is",
        REGISTRATION,
        check_registered_meta,
    ),
    check(
        Required,
        "Registration",
        "an agent answers at its contact_endpoint",
        "ping",
        |_, ping| Some(ping.observe(&ping.received, "any HTTP answer", ping.status != 0)),
    ),
];

/// The checks after those of the agent's kind.
const FINAL_CHECKS: &[Check] = &[
    check(
        Tolerated,
        "Standings and notifications",
        "ROUND_COMPLETED is taken",
        "ROUND_COMPLETED",
        check_accepted,
    ),
    check(
        Tolerated,
        "Transport",
        "an id is echoed, integer or string",
        r#"ROUND_COMPLETED with {"id": 4711}; ROUND_COMPLETED with {"id": "check"}"#,
        check_id,
    ),
    check(
        Recommended,
        "Tokens",
        "a notice with a wrong token is refused",
        r#"ROUND_COMPLETED with {"auth_token": "x"}"#,
        |_, call| call.check_refused(ErrorCode::TokenInvalid),
    ),
    check(
        Recommended,
        "Tokens",
        "a notice without a token is refused",
        r#"ROUND_COMPLETED with {"auth_token": null}"#,
        |_, call| call.check_refused(ErrorCode::TokenMissing),
    ),
    check(
        Recommended,
        "Ping and liveness",
        "ping is answered",
        "ping",
        |_, ping| ping.check_accepted().filter(|_| ping.status != 0),
    ),
    check(
        Tolerated,
        "Transport",
        "an unknown method is an error",
        "no_such_method",
        |_, call| call.check_error(-32601),
    ),
    check(
        Recommended,
        "Transport",
        "broken JSON is an error",
        "broken JSON",
        |_, call| call.check_error(-32700),
    ),
    check(
        Required,
        "Limits",
        "it survives a large body",
        "2 MB",
        check_survival,
    ),
    check(
        Recommended,
        "MCP",
        "its tools are listed",
        "tools/list",
        check_accepted,
    ),
    check(
        Tolerated,
        "Standings and notifications",
        "LEAGUE_COMPLETED is taken",
        "LEAGUE_COMPLETED",
        check_accepted,
    ),
];

/// Checks that the agent has accepted a call.
fn check_accepted(_: &Examination, call: &Exchange) -> Option<Observation> {
    call.check_accepted()
}

fn check_json_rpc(_: &Examination, call: &Exchange) -> Option<Observation> {
    let is_good = call.json["jsonrpc"] == "2.0" && !call.json["id"].is_null();
    Some(Observation {
        is_absent: call.is_bare(),
        ..call.observe(&call.received, "\"jsonrpc\": \"2.0\" and an id", is_good)
    })
}

fn check_method(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let method = call.method();
    let expected = format!("register_{}", examination.kind());
    let is_good = method == expected || method == call.text("message_type");
    Some(Observation {
        is_absent: MessageSpec::by_method(method).is_none(),
        ..call.observe(method, expected, is_good)
    })
}

fn check_message_type(_: &Examination, call: &Exchange) -> Option<Observation> {
    let names = [RefereeRegisterRequest::NAME, LeagueRegisterRequest::NAME];
    let expected = names.join(" or ");
    call.check_field("message_type", expected, |name| {
        names.iter().any(|known| name == known)
    })
}

fn check_sender(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let prefix = format!("{}:", examination.kind());
    let expected = format!("\"{prefix}NAME\"");
    call.check_field("sender", expected, |sender| {
        sender.as_str().unwrap_or_default().starts_with(&prefix)
    })
}

fn check_registered_meta(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let (kind, game_type) = (examination.kind(), examination.game().game_type);
    let problem = match decode::<AgentMeta>(&examination.meta()) {
        Ok(meta) => check_meta(&meta, kind, game_type)
            .err()
            .map(|rejection| rejection.reason),
        Err(error) => Some(error.to_string()),
    };
    let is_good = problem.is_none();
    let expected = "what our manager takes";
    Some(call.observe(problem.unwrap_or_default(), expected, is_good))
}

fn check_id(_: &Examination, call: &Exchange) -> Option<Observation> {
    let id = call.json["id"].to_string();
    let is_good = call.step.contains(&id);
    Some(call.observe(format!("id {id}"), "the same id", is_good))
}

fn check_survival(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let next = examination.exchange("ping with all its senses")?;
    let received = format!("{}; then {}", call.received, next.received);
    let expected = "HTTP 413 or an error; then an answer";
    Some(next.observe(received, expected, next.status != 0))
}

/// Waits for an agent to register, and examines it.
pub fn run(args: Args) -> Result<(), Exit> {
    provide_config(&args)?;
    exit_when_stdin_closes(&args, 1, || ());
    let is_json = args.has("--json");
    let print = if is_json { print_error } else { print_line };
    let examination = server::listen(args, print)?;
    print(&format!("listening on {}", examination.program.endpoint));
    print("an examination, no league: start your agent now, as always");
    print("(it must refuse some calls, and its terminal may say so)");
    server::wait_for_agent(&examination, || true);

    let kind_checks = match examination.kind() {
        AgentKind::Referee => referee_checks::CHECKS,
        _ => player_checks::CHECKS,
    };

    let mut findings = Vec::new();
    for checks in [REGISTRATION_CHECKS, kind_checks, FINAL_CHECKS] {
        for check in checks {
            findings.push(examination.make_check(check));
        }
    }

    if is_json {
        print_whole_line(&serde_json::to_string_pretty(&findings).map_err(io::Error::from)?);
    }
    examination.print_summary(&findings);
    if count(&findings, Grade::Failed) > 0 {
        return Err(Exit::failure(""));
    }
    Ok(())
}

fn count(findings: &[Finding], grade: Grade) -> usize {
    let same_grade = findings.iter().filter(|finding| finding.grade == grade);
    same_grade.count()
}

impl Examination {
    /// Makes a check and prints its finding, which is about the worst of its steps.
    fn make_check(&self, check: &Check) -> Finding {
        // Take the steps and look at them.
        let steps = check.steps.split("; ");
        let observation = worst(steps.map(|step| (check.look)(self, &self.exchange(step)?)));

        let grade = match (&observation, check.severity) {
            (None, _) => Grade::Skipped,
            (Some(observation), _) if observation.is_good => Grade::Good,
            (_, Recommended) => Grade::Warned,
            _ => Grade::Failed,
        };
        let forgiven = match check.severity {
            Required => false,
            RequiredIfPresent => observation.as_ref().is_some_and(|seen| seen.is_absent),
            Tolerated | Recommended => true,
        };

        let finding = Finding {
            check: self.translate(check.name),
            section: check.section,
            grade,
            forgiven,
            observation,
        };
        (self.print)(&sanitize(&finding.line()));
        finding
    }

    /// Prints how many checks ended with each grade, and whether the agent would play.
    fn print_summary(&self, findings: &[Finding]) {
        let grades = [Grade::Good, Grade::Failed, Grade::Warned, Grade::Skipped];
        let counts = grades.map(|grade| format!("{} {grade}", count(findings, grade)));
        (self.print)(&format!("a {}: {}", self.kind(), counts.join(", ")));

        let mut fatal = Vec::new();
        for finding in findings {
            if finding.grade == Grade::Failed && !finding.forgiven {
                fatal.push(finding.check.as_str());
            }
        }
        if fatal.is_empty() {
            (self.print)("it WOULD PLAY in our league");
        } else {
            let fatal = fatal.join("; ");
            (self.print)(&format!(
                "it would NOT play in our league, by what fails: {fatal}"
            ));
            if self.kind() == AgentKind::Player {
                (self.print)("bin/adapter.py may translate for it: python3 bin/adapter.py --help");
            }
        }
    }
}

/// Returns a JSON-RPC request as a text.
pub fn json_rpc_call(method: &str, params: &Value, id: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":{id}}}"#)
}
