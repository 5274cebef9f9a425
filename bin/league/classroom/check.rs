//! `league check` examines one player, in any language. A manager lets it register, plays a
//! rehearsal with it (`rehearsal.rs`), and then sends it requests that an agent meets among
//! strangers. What the rehearsal says decides whether the player would play in our league; the
//! requests only warn.
//!
//! The manager is a real one, with a folder of its own, which is deleted at the end. It rejects a
//! player that shows the token of another league: the player would store the token that it gets
//! here in the place of that one, and its league would not know it any more.

use crate::classroom::rehearsal::{PLAYS, rehearse};
use crate::classroom::relay::Relays;
use crate::files::provide_config;
use crate::running::check_port;
use league::manager::league::{League, Member};
use league::manager::{self, Manager, ManagerHooks};
use league::net::agent::Tool;
use league::net::client::{MAX_NOTICE, Peer};
use league::net::sync::secret;
use league::program::args::{Args, COMMON, Exit, SERVER, Usage};
use league::program::terminal::{print_line, sanitize};
use league::protocol::{AgentKind, JsonObject, MessageSpec, PROTOCOL};
use league::values::{Timestamp, redact_and_truncate};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

pub const USAGE: Usage = Usage {
    name: "league check",
    about: "examine the one player that registers; no league is played",
    options: &[SERVER, COMMON],
};

const INTRODUCTION: &str = "an examination, no league: start your player now, as always\n\
    (It must refuse some calls: examples, as its terminal may say. If it was started in a\n\
    league that is not over, add --data DIR, another folder: so it keeps its place there.)";
/// Interval between two lines that say how a player registers.
const HINT_INTERVAL: Duration = Duration::from_secs(20);
/// The number of bytes of a body that no league message has.
const LARGE_BODY: usize = 2 << 20;
/// Requests that a relay does not pass on.
const NOT_RELAYED: [&str; 2] = [BROKEN_JSON, LARGE];
const PING: &str = "ping";
const BROKEN_JSON: &str = "broken JSON";
const LARGE: &str = "2 MB";

/// The requests. A row has the method or the league message, its token (`own` stands for the
/// player's own), a text that is in a good answer, the word for another answer, and the rule.
const REQUESTS: &str = r#"
ping                    | none    | 4711     | warn | ping is answered, with its id
no_such_method          | none    | -32601   | warn | an unknown method is an error
broken JSON             | none    | -32700   | warn | broken JSON is an error
tools/list              | none    | "tools"  | note | its tools are listed, for MCP, which no league needs
ROUND_ANNOUNCEMENT      | own     | "result" | warn | ROUND_ANNOUNCEMENT is taken
LEAGUE_STANDINGS_UPDATE | own     | "result" | warn | LEAGUE_STANDINGS_UPDATE is taken
ROUND_COMPLETED         | own     | "result" | warn | ROUND_COMPLETED is taken
ROUND_COMPLETED         | example | E012     | warn | a message with a wrong token is refused
ROUND_COMPLETED         | none    | E011     | warn | a message without a token is refused
CHOOSE_PARITY_CALL      | example | E015     | warn | a call for an unknown match is refused
2 MB                    | none    | 4711     | warn | ping is answered after a body of 2 MB
LEAGUE_COMPLETED        | own     | "result" | warn | LEAGUE_COMPLETED is taken"#;

/// Runs a manager that examines the player that registers.
pub fn run(mut args: Args) -> Result<(), Exit> {
    provide_config(&args)?;
    check_port(&args)?;
    let folder = env::temp_dir().join(format!("league-check-{}", secret(32)));
    args.set("--data", &folder.to_string_lossy());
    args.set("--logs", &folder.join("logs").to_string_lossy());

    let end = manager::run(args, Arc::new(Examination::default()));
    let _ = fs::remove_dir_all(folder);
    end
}

/// The surroundings of the manager.
#[derive(Default)]
struct Examination {
    relays: Arc<Relays>,
}

impl ManagerHooks for Examination {
    /// Examines the first player. No league is played, so the program ends then.
    fn begin(&self, manager: &Arc<Manager>) -> Result<(), Exit> {
        self.relays.begin(manager)?;
        print_line(INTRODUCTION);
        let player = wait_for_player(manager);
        let limit = manager.program.config.system.timeouts.move_timeout_sec.0;
        print_line(&sanitize(&format!(
            "{} plays a rehearsal, with {} s for each choice",
            player.name_and_id(),
            limit.as_secs_f64()
        )));

        let endpoint = &player.meta.contact_endpoint;
        let [verdict, _] = rehearse(manager, &player.id, endpoint, player.token.clone());
        send_requests(manager, &player, self.relays.has(endpoint));
        Err(exit(&verdict))
    }

    fn replaces_tokens(&self) -> bool {
        false
    }

    fn tools<'a>(&'a self, _: &'a Manager) -> Vec<Tool<'a>> {
        self.relays.tools().into()
    }

    fn is_relay(&self, endpoint: &str) -> bool {
        self.relays.has(endpoint)
    }
}

/// Returns the first player that registers. Until then it is printed how a player does that.
fn wait_for_player(manager: &Manager) -> Member {
    loop {
        manager
            .store
            .wait(HINT_INTERVAL, |league| first_player(league).is_some());
        if let Some(player) = manager.store.read(first_player) {
            return player;
        }

        let endpoint = &manager.program.endpoint;
        print_line(&format!(
            "no player has registered; it posts register_player to {endpoint}"
        ));
    }
}

fn first_player(league: &League) -> Option<Member> {
    league.members(AgentKind::Player).first().copied().cloned()
}

/// Sends all requests, and prints how the player answers.
fn send_requests(manager: &Manager, player: &Member, is_relayed: bool) {
    for row in REQUESTS.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [request, token, expected, word, rule] = cells[..] else {
            continue; // the first line
        };
        if is_relayed && NOT_RELAYED.contains(&request) {
            continue;
        }

        if request == LARGE {
            let text = "x".repeat(LARGE_BODY);
            let _ = post(manager, player, &json_rpc(PING, &json!({"text": text})));
        }
        let body = body(player, manager.program.league_id(), request, token);
        let answer = post(manager, player, &body);
        let line = match &answer {
            Ok(answer) if is_expected(answer, token, expected) => format!("ok    {rule}"),
            Ok(answer) => {
                let answer = redact_and_truncate(answer);
                format!("{word}  {rule}: expected {expected}, got {answer}")
            }
            Err(problem) => format!("{word}  {rule}: it {problem}"),
        };
        print_line(&sanitize(&line));
        if answer.is_err() && request == PING {
            return print_line("so nothing else is asked");
        }
    }
}

/// Returns true if an answer has the expected text, and does not refuse what has the right token.
fn is_expected(answer: &str, token: &str, expected: &str) -> bool {
    let is_refused = token == "own" && answer.contains("_ERROR");
    answer.contains(expected) && !is_refused
}

/// Returns the player's answer to a body, or why there is none.
fn post(manager: &Manager, player: &Member, body: &str) -> Result<String, String> {
    let peer = Peer {
        kind: AgentKind::Player,
        id: player.id.clone(),
        endpoint: player.meta.contact_endpoint.clone(),
        max_bytes: MAX_NOTICE,
        timeout: manager.program.config.generic_limit(),
    };
    match manager.program.client.post(&peer, body) {
        Ok((status, bytes)) if serde_json::from_slice::<JsonObject>(&bytes).is_err() => {
            Err(format!("answered HTTP {status} without a JSON object"))
        }
        Ok((_, bytes)) => Ok(String::from_utf8_lossy(bytes.trim_ascii()).into_owned()),
        Err(error) => Err(error.explain()),
    }
}

/// Returns the body of a request. A message that must be refused says that it is an example.
fn body(player: &Member, league_id: &str, request: &str, token: &str) -> String {
    match (request, MessageSpec::by_type(request)) {
        (_, Some(spec)) => json_rpc(spec.method, &message(player, league_id, request, token)),
        (BROKEN_JSON, _) => "{\"jsonrpc\":".into(),
        (LARGE, _) => json_rpc(PING, &json!({})),
        (method, _) => json_rpc(method, &json!({})),
    }
}

fn json_rpc(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 4711}).to_string()
}

/// Returns a message. It has the fields of all messages.
fn message(player: &Member, league_id: &str, message_type: &str, token: &str) -> Value {
    let (sender, token) = match token {
        "own" => ("league_manager", Some(&*player.token)),
        "none" => ("league_manager:example", None),
        example => ("league_manager:example", Some(example)),
    };
    json!({
        "protocol": PROTOCOL,
        "message_type": message_type,
        "sender": sender,
        "timestamp": Timestamp::now(),
        "conversation_id": "conv-example",
        "auth_token": token,
        "league_id": league_id,
        "round_id": 1,
        "match_id": "EXAMPLE",
        "player_id": player.id,
        "deadline": Timestamp::now(),
        "matches": [],
        "standings": [],
        "matches_completed": 0,
        "summary": {"total_matches": 0, "wins": 0, "draws": 0, "technical_losses": 0},
        "game_type": player.meta.game_types.first(),
        "context": {"opponent_id": "P00", "round_id": 1},
        "total_rounds": 0,
        "total_matches": 0,
        "champion": {"player_id": "P00", "display_name": "Example", "points": 0},
        "final_standings": [],
    })
}

/// Returns the end of the program. Its last line is the verdict.
fn exit(verdict: &str) -> Exit {
    if verdict == PLAYS {
        let message = "it WOULD PLAY in our league".into();
        return Exit { code: 0, message };
    }

    print_line("bin/adapter.py translates for other dialects: python3 bin/adapter.py --help");
    let text = format!("it would NOT play in our league: it {verdict}");
    print_line(&sanitize(&text));
    Exit::failure("")
}
