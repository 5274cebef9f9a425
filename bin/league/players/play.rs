//! `league play NAME`: a player with a finished strategy, or one that is played by hand.

use crate::files::provide_config;
use crate::players::by_hand::ByHand;
use crate::players::strategies;
use league::games;
use league::player::{self, OPTIONS, Options, PlayerHooks, Turn};
use league::program::args::{Args, Exit, Usage};
use league::program::terminal::{print_error, print_line};
use std::sync::Arc;
use std::thread;

pub const USAGE: Usage = Usage {
    name: "league play NAME",
    about: "run a finished strategy; mcp or mcp:NAME: play by hand",
    options: OPTIONS,
};

/// Runs a player with the strategy `name`. `mcp:NAME` is played by hand, and by NAME if no choice
/// comes in time; `mcp` is `mcp:random`.
pub fn run(args: Args, name: &str) -> Result<(), Exit> {
    provide_config(&args)?;
    let name = if name == "mcp" { "mcp:random" } else { name };
    let example = name.strip_prefix("mcp:").unwrap_or(name);

    let names: Vec<&str> = strategies::all_names().collect();
    if !names.contains(&example) {
        let legal = format!("mcp, or one of {}", names.join(", "));
        let problem = format!("got {example:?}, expected {legal}");
        return Err(Exit::usage(problem));
    }

    let options = finished(example);
    if name == example {
        return player::start(args, options);
    }

    print_line("to play by hand, open this address in a browser:");
    let ends_with_league = args.has("--until-stdin-closes");
    player::start(args, played_by_hand(name, options))?;

    // Clients may still ask how the league has ended.
    if !ends_with_league {
        print_line("the league is over; still serving (Ctrl-C ends it)");
    }

    loop {
        thread::park();
    }
}

/// Returns a player with a finished strategy, for the games that it can play.
fn finished(name: &str) -> Options {
    let mut game_types = games::names();
    game_types.retain(|game| strategies::find(game, name).is_some());
    let strategy = name.to_string();

    Options::new(name, game_types, move |turn| {
        let choose = strategies::find(&turn.game_type, &strategy);
        choose.map_or_else(String::new, |choose| choose(turn)) // the game is one of game_types
    })
}

/// Returns a player that is played by hand. `fallback` chooses if no choice comes in time.
fn played_by_hand(name: &str, fallback: Options) -> Options {
    let by_hand = Arc::new(ByHand::default());
    let asked = Arc::clone(&by_hand);

    Options {
        strategy: name.into(),
        game_types: fallback.game_types.clone(),
        choose: Box::new(move |turn| choose(&asked, turn, &fallback)),
        hooks: by_hand,
    }
}

/// Asks the clients of the tools for a choice. A match that the manager has not announced is not
/// offered to them.
fn choose(by_hand: &ByHand, turn: &Turn, fallback: &Options) -> String {
    if turn.is_announced
        && let Some(chosen) = by_hand.ask(turn)
    {
        return chosen;
    }

    let chosen = (fallback.choose)(turn);
    if turn.is_announced {
        let (match_id, name) = (&turn.match_id, &fallback.strategy);
        let text = format!("{match_id}: no choice came in time; {name} chose {chosen}");
        print_error(&format!("{}: {text}", turn.player_id));
        by_hand.note(&text);
    }

    chosen
}
