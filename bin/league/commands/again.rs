//! `league again MATCH -- COMMAND`: a player in any language is asked once more as in a match that
//! it has played. So a wrong choice can be examined, also in a debugger.
//!
//! The player registers as for an examination (`check.rs`), with data that are deleted at the end.
//! It is told the results of its matches before, as the journal has them, and then asked for each
//! of its moves in the match.

use crate::agents::{self, entrants::Entrant};
use crate::check::examination::Examination;
use crate::check::server;
use crate::files::stored_league;
use league::games;
use league::manager::league::{Match, Recorded};
use league::manager::standings::PlayerStats;
use league::program::args::{Args, COMMON, Exit, Usage};
use league::program::data_folder;
use league::program::terminal::{print_error, print_line, sanitize};
use league::protocol::Record;
use serde_json::json;
use std::sync::Arc;
use std::{env, fs, process};

pub const USAGE: Usage = Usage {
    name: "league again MATCH",
    about: "ask a player again as in a past match: again R3M2 -- COMMAND",
    options: &[
        "
  --player-id ID              the player of the match [P01]
  --move-timeout-sec N        seconds for a move [as in system.json]
  --seed N                    make its random choices repeatable",
        COMMON,
    ],
};

/// Starts the player, and asks it for its moves in the match.
pub fn run(mut args: Args, match_id: &str, command: &[String]) -> Result<(), Exit> {
    let player_id = args.text("--player-id").unwrap_or("P01").to_string();
    let matches = find_matches(&args, &player_id, &match_id.to_uppercase())?;
    let player = Entrant::of(&command.join(" "));
    agents::check_program(&player)?;

    let folder = env::temp_dir().join(format!("league-again-{}", process::id()));
    args.set("--data", &folder.to_string_lossy());
    args.set("--logs", &folder.join("logs").to_string_lossy());
    args.set("--port", "0");
    args.set("--as", &player_id);
    let examination = server::listen(args, print_error)?;
    let mut command = agents::command(&examination.program, Some(&player), &player_id, 0);
    let mut child = command.spawn()?;
    let asked = if server::wait_for_agent(&examination, || matches!(child.try_wait(), Ok(None))) {
        tell_and_ask(&examination, &player_id, &matches)
    } else {
        let problem = "the player has ended before it registered; what it said stands above";
        Err(Exit::failure(problem))
    };

    let _ = child.kill();
    let _ = child.wait();
    let _ = fs::remove_dir_all(folder);
    asked
}

/// Returns the matches of a player up to one, with their results, in the order of these.
fn find_matches(
    args: &Args,
    player_id: &str,
    match_id: &str,
) -> Result<Vec<(Arc<Match>, Recorded)>, Exit> {
    let mut matches = Vec::new();
    if let Some(league) = stored_league(args)? {
        for the_match in league.played.iter().filter_map(|id| league.find(id)) {
            if the_match.seat(player_id).is_some()
                && let Some(recorded) = &the_match.recorded
            {
                matches.push((Arc::clone(the_match), recorded.clone()));
                if the_match.id == match_id {
                    return Ok(matches);
                }
            }
        }
    }

    let data = data_folder(args);
    Err(Exit::failure(format!(
        "{player_id} has no match {match_id} in {}; --player-id and --data name others, \
         --data data/practice those of a practice",
        data.display()
    )))
}

/// Tells the player the results of all matches but the last one, and asks it in that one.
fn tell_and_ask(
    examination: &Examination,
    player_id: &str,
    matches: &[(Arc<Match>, Recorded)],
) -> Result<(), Exit> {
    let mut stats = PlayerStats::default();
    for (n, (the_match, recorded)) in (1..).zip(matches) {
        let id = &the_match.id;
        let opponent = json!({"opponent_id": the_match.opponent(player_id)});
        examination.send(&format!("ROUND_ANNOUNCEMENT {id}"));
        examination.send(&format!("GAME_INVITATION {id} with {opponent}"));
        if n == matches.len() {
            ask(examination, player_id, the_match, recorded, stats.record)?;
        } else {
            let result = json!({"game_result": games::game_result(&recorded.result)});
            examination.send(&format!("GAME_OVER {id} with {result}"));
            stats.add(player_id, &recorded.result);
        }
    }
    Ok(())
}

/// Asks the player whenever it was its turn in a match. Prints its choice, and the move that it has
/// made in the match.
fn ask(
    examination: &Examination,
    player_id: &str,
    the_match: &Match,
    recorded: &Recorded,
    standings: Record,
) -> Result<(), Exit> {
    let (game, details) = (examination.game(), &recorded.result.details);
    let (id, opponent) = (&the_match.id, the_match.opponent(player_id));
    let moves = games::moves_by_seat(&the_match.players, &details.choices, &details.moves);
    let moves = moves.map_err(Exit::failure)?;

    let last = if game.simultaneous { 0 } else { moves.len() };
    for n in 0..=last {
        let (before, rest) = moves.split_at(n);
        let mut seats = game.players_to_move(before).into_iter();
        let Some(seat) = seats.find(|seat| the_match.players[*seat] == player_id) else {
            continue;
        };

        let (number, position) = (n + 1, (game.position)(before));
        let fields = json!({
            "move_number": number,
            "position": position,
            "legal_moves": (game.legal_moves)(before),
            "context": {
                "opponent_id": opponent,
                "round_id": the_match.round,
                "your_standings": standings,
            },
        });
        let answer = examination.send(&format!("CHOOSE_PARITY_CALL {id} with {fields}"));

        let played = rest.iter().find(|played| played.seat == seat);
        let played = played.map_or("nothing", |played| &played.text);
        let choice = match answer.text(&examination.translate("parity_choice")) {
            "" => &answer.received,
            choice => choice,
        };
        print_line(&position);
        print_line(&sanitize(&format!(
            "{id} against {opponent}, move {number}: it chooses {choice}; in the match it was {played}"
        )));
    }
    Ok(())
}
