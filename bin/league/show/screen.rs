//! The lines that the tool prints beyond the manager's screen: how students join a class, how far a
//! practice is, who lost technically, and the command that shows what was said in a match.

use league::games::result_status;
use league::manager::Manager;
use league::manager::league::{League, Match};
use league::manager::screen::result_line;
use league::net::sync::spawn;
use league::program::terminal::{print_line, sanitize};
use league::protocol::{AgentKind, EVEN_ODD, ResultStatus};
use league::values::Endpoint;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Interval between two lines about a practice.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Prints the lines for students while the lobby is open, and the address of the page.
pub fn greet(endpoint: &str, is_lobby: bool) {
    let page = endpoint.trim_end_matches("/mcp");
    let is_reachable = Endpoint::parse(endpoint).is_ok_and(|endpoint| !endpoint.is_loopback());
    if is_lobby && is_reachable {
        print_line("\nEach student types these two lines:");
        print_line(&format!("  curl -O \"{page}/{{player,league_player}}.py\""));
        let options = "--display-name Ada --stay";
        print_line(&format!("  python3 player.py --manager {page} {options}"));
        print_line("In PowerShell, they type curl.exe for curl, and py for python3.");
        let hint = "A player that says \"nobody can call this machine\" needs --relay in its line.";
        print_line(hint);
    }

    print_line(&format!("\nThe page for the projector is {page}/#wall"));

    if !is_reachable {
        print_line("\nno address was found by which students reach this machine; connect it to");
        print_line("their network, or name its address: make class ADDRESS=... (--host ...)");
    }
}

/// Starts a thread that prints how far a practice is, instead of its results.
pub fn follow_practice(manager: &Arc<Manager>) {
    let manager = Arc::clone(manager);
    spawn("progress", move || {
        while !manager.store.wait(PROGRESS_INTERVAL, League::is_over) {
            if let Some(line) = manager.store.read(progress) {
                print_line(&line);
            }
        }
    });
}

/// Returns how far a practice is: `cycle 133 of 400`.
pub fn progress(league: &League) -> Option<String> {
    let cycles = league.config.league.scheduling.cycles?;
    let round = league.open_round()?;
    let cycle = (round - 1) * cycles / league.rounds() + 1;
    Some(format!("cycle {cycle} of {cycles}"))
}

/// Returns a line for the first technical loss of each player, with the command that shows what was
/// said. `logs` is the folder of the referees' logs.
pub fn first_losses(league: &League, logs: &Path) -> Vec<String> {
    let logs = format!(" LOGS={}", logs.display());
    let mut losses = BTreeSet::new(); // both players may have lost the same match
    for player in league.members(AgentKind::Player) {
        let mut matches = league.matches_of(&player.id);
        if let Some(lost) = matches.find(|the_match| has_failed(the_match, &player.id)) {
            let line = result_line(league, lost);
            losses.extend(line.map(|line| line + &trace_hint(league, lost, &logs)));
        }
    }

    let mut lines = Vec::new();
    if !losses.is_empty() {
        lines.push("\nThe first technical loss of each:".into());
        lines.extend(losses);
    }

    lines
}

/// Returns the name of a player that has lost all its matches technically.
pub fn player_without_a_match(league: &League) -> Option<String> {
    let mut players = league.members(AgentKind::Player).into_iter();
    let player = players.find(|player| {
        let mut matches = league.matches_of(&player.id).peekable();
        matches.peek().is_some() && matches.all(|the_match| has_failed(the_match, &player.id))
    })?;
    Some(sanitize(&player.name_and_id()))
}

/// Returns true if a player has lost a match technically.
fn has_failed(the_match: &Match, player_id: &str) -> bool {
    the_match.recorded.as_ref().is_some_and(|recorded| {
        let result = &recorded.result;
        result_status(result) == ResultStatus::TechnicalLoss
            && result.winner.as_deref() != Some(player_id)
    })
}

/// Returns the command that shows what was said in a match, if a player has lost it technically. No
/// log has a match that the manager itself has recorded. `logs` is the argument for the folder of
/// the logs: ` LOGS=logs/practice`.
pub fn trace_hint(league: &League, the_match: &Match, logs: &str) -> String {
    let Some(recorded) = &the_match.recorded else {
        return String::new();
    };
    if result_status(&recorded.result) != ResultStatus::TechnicalLoss
        || recorded.referee_id == AgentKind::Manager.to_string()
    {
        return String::new();
    }

    let game = match league.config.league.game_type.as_str() {
        EVEN_ODD => String::new(),
        other => format!(" GAME={other}"),
    };
    format!("\n    (make trace MATCH={}{game}{logs})", the_match.id)
}
