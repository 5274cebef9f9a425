//! `league check` examines one player, in any language. A manager lets it register, plays a
//! rehearsal with it (`running/rehearsal.rs`), and then sends it requests that an agent meets among
//! strangers. What the rehearsal says decides whether the player would play in our league; the
//! requests only warn. The files of this league are deleted at the end.

use crate::files::provide_config;
use crate::running::rehearsal::{PLAYS, rehearse};
use crate::running::{self, LeagueKind, Setup};
use league::manager::Manager;
use league::manager::league::Member;
use league::net::client::{MAX_NOTICE, Peer};
use league::program::args::{Args, COMMON, Exit, SERVER, Usage};
use league::program::terminal::{print_line, sanitize};
use league::protocol::{AgentKind, MessageSpec};
use league::values::{Timestamp, redact_and_truncate};
use serde_json::{Value, json};
use std::time::Duration;
use std::{env, fs, process};

pub const USAGE: Usage = Usage {
    name: "league check",
    about: "examine the one player that registers; no league is played",
    options: &[SERVER, COMMON],
};

/// Interval between two lines that say how a player registers.
const HINT_INTERVAL: Duration = Duration::from_secs(20);

/// A request to the player.
struct Probe {
    /// What a player of this league does with it.
    name: &'static str,
    /// The body, or the type of a league message.
    request: &'static str,
    /// The token of the message; `own` stands for the player's own.
    token: Option<&'static str>,
    /// A text in the answer.
    expected: &'static str,
}

const fn probe(
    name: &'static str,
    request: &'static str,
    token: Option<&'static str>,
    expected: &'static str,
) -> Probe {
    Probe {
        name,
        request,
        token,
        expected,
    }
}

const PING: &str = r#"{"jsonrpc": "2.0", "method": "ping", "params": {}, "id": 7}"#;
const UNKNOWN: &str = r#"{"jsonrpc": "2.0", "method": "no_such_method", "params": {}, "id": 7}"#;
const TOOLS: &str = r#"{"jsonrpc": "2.0", "method": "tools/list", "params": {}, "id": 7}"#;

const PROBES: &[Probe] = &[
    probe("ping is answered, with its id", PING, None, "7"),
    probe("an unknown method is an error", UNKNOWN, None, "-32601"),
    probe("broken JSON is an error", "{\"jsonrpc\":", None, "-32700"),
    probe("its tools are listed", TOOLS, None, "\"tools\""),
    probe(
        "ROUND_COMPLETED is taken",
        "ROUND_COMPLETED",
        Some("own"),
        "\"result\"",
    ),
    probe(
        "a message with a wrong token is refused",
        "ROUND_COMPLETED",
        Some("x"),
        "E012",
    ),
    probe(
        "a message without a token is refused",
        "ROUND_COMPLETED",
        None,
        "E011",
    ),
    probe(
        "a call for an unknown match is refused",
        "CHOOSE_PARITY_CALL",
        Some("x"),
        "E015",
    ),
    probe(
        "LEAGUE_COMPLETED is taken",
        "LEAGUE_COMPLETED",
        Some("own"),
        "\"result\"",
    ),
];

/// Runs a manager that examines the player that registers.
pub fn run(mut args: Args) -> Result<(), Exit> {
    provide_config(&args)?;
    let folder = env::temp_dir().join(format!("league-check-{}", process::id()));
    args.set("--data", &folder.to_string_lossy());
    let end = running::run(args, Setup::new(LeagueKind::Check));
    let _ = fs::remove_dir_all(folder);
    end
}

/// Waits for a player, and examines it. Returns the exit of the program.
pub fn examine(manager: &Manager) -> Exit {
    let endpoint = &manager.program.endpoint;
    print_line("an examination, no league: start your player now, as always");
    let player = loop {
        let players =
            |kind| (manager.store).read(|league| league.members(kind).into_iter().next().cloned());
        if let Some(player) = players(AgentKind::Player) {
            break player;
        }
        if !(manager.store).wait(HINT_INTERVAL, |league| {
            !league.members(AgentKind::Player).is_empty()
        }) {
            print_line(&format!(
                "no player has registered; it posts register_player to {endpoint}"
            ));
        }
    };

    let Member {
        id, meta, token, ..
    } = &player;
    let [verdict, _] = rehearse(manager, id, &meta.contact_endpoint, token.clone());
    for probe in PROBES {
        let body = body(probe, &player, manager.program.league_id());
        let answer = post(manager, &player, &body);
        let is_refused = probe.token == Some("own") && answer.contains("_ERROR");
        if answer.contains(probe.expected) && !is_refused {
            print_line(&format!("ok    {}", probe.name));
        } else {
            let (name, answer) = (probe.name, redact_and_truncate(&answer));
            let text = format!("warn  {name}: expected {}, got {answer}", probe.expected);
            print_line(&sanitize(&text));
        }
    }

    let name = &meta.display_name;
    let message = sanitize(&match &*verdict {
        PLAYS => format!("{name} WOULD PLAY in our league"),
        problem => format!("{name} would NOT play in our league: it {problem}"),
    });
    let code = u8::from(verdict != PLAYS);
    Exit { code, message }
}

/// Returns the body of a probe: it stands there, or it is a league message in JSON-RPC.
fn body(probe: &Probe, player: &Member, league_id: &str) -> String {
    if !probe.request.starts_with(|c: char| c.is_ascii_uppercase()) {
        return probe.request.into();
    }
    let token = probe.token.map(|token| match token {
        "own" => &*player.token,
        other => other,
    });
    let message: Value = json!({
        "protocol": "league.v2",
        "message_type": probe.request,
        "sender": "league_manager",
        "timestamp": Timestamp::now(),
        "conversation_id": "conv-check",
        "auth_token": token,
        "league_id": league_id,
        "round_id": 1,
        "match_id": "R9M1",
        "player_id": player.id,
        "deadline": Timestamp::now(),
        "matches_completed": 0,
        "summary": {"total_matches": 0, "wins": 0, "draws": 0, "technical_losses": 0},
        "game_type": player.meta.game_types.first(),
        "context": {"opponent_id": "P00", "round_id": 1},
        "total_rounds": 0,
        "total_matches": 0,
        "champion": {"player_id": player.id, "display_name": player.meta.display_name, "points": 0},
        "final_standings": [],
    });
    let method = MessageSpec::by_type(probe.request).map(|spec| spec.method);
    json!({"jsonrpc": "2.0", "method": method, "params": message, "id": 7}).to_string()
}

/// Returns the answer of the player to a body, or the reason why there is none.
fn post(manager: &Manager, player: &Member, body: &str) -> String {
    let config = &manager.program.config;
    let peer = Peer {
        kind: AgentKind::Player,
        id: player.id.clone(),
        endpoint: player.meta.contact_endpoint.clone(),
        max_bytes: MAX_NOTICE,
        timeout: config.generic_limit(),
    };
    match manager.program.client.post(&peer, body) {
        Ok((_, bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("nothing: it {}", error.explain()),
    }
}
