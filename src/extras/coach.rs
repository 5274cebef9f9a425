//! Who sits beside a player and chooses in the place of its own `choose`, if the command line says
//! so (`--strategy`): a finished example, or whoever calls the player's tools, with an example for
//! when nobody does. `src/player.rs` knows the coach as its `Companion`. With `--again` the coach
//! has `choose` called without a league (`again.rs`).

use crate::extras::again;
use crate::extras::by_hand::ByHand;
use crate::extras::strategies;
use crate::net::agent::Toolbox;
use crate::player::{Choose, Companion, Turn};
use crate::program::args::{Args, Stop};
use crate::program::session::Session;
use crate::program::terminal::{complain, say};
use std::thread;

/// The companion of a player.
pub struct Coach {
    /// Who chooses, in a word.
    name: String,
    /// The name of the example that plays in the place of `choose`, or where nobody chooses by
    /// hand.
    example: Option<String>,
    by_hand: Option<ByHand>,
}

impl Companion for Coach {
    const OPTIONS: &str = "
  --strategy NAME                an example, or mcp:NAME: by hand, and NAME if nobody chooses
  --again MATCH                  calls `choose` as in a match of this player's history";

    fn new(args: &Args) -> Result<Coach, Stop> {
        let asked = match args.text("--strategy") {
            Some("mcp") => Some("mcp:random"),
            asked => asked,
        };
        let by_hand = asked.and_then(|asked| asked.strip_prefix("mcp:"));
        let example = by_hand.or(asked);
        let all: Vec<&str> = strategies::all_names().collect();
        if let Some(name) = example.filter(|name| !all.contains(name)) {
            let legal = format!("mcp, or one of {}", all.join(", "));
            let words = format!("--strategy: got {name:?}, expected {legal}");
            return Err(Stop::usage(words));
        }
        Ok(Coach {
            name: asked.unwrap_or("choose").into(),
            example: example.map(String::from),
            by_hand: by_hand.map(|_| ByHand::default()),
        })
    }

    fn instead(&self, args: &Args, choose: &Choose) -> Option<Result<(), Stop>> {
        let match_id = args.text("--again")?;
        Some(again::run(args, match_id, |turn| {
            self.choose(turn, false).unwrap_or_else(|| choose(turn))
        }))
    }

    fn plays(&self, game_type: &str) -> Option<bool> {
        let name = self.example.as_ref()?;
        Some(strategies::named(game_type, name).is_some())
    }

    /// A match that only a stranger has named is not offered to whoever plays by hand.
    fn choose(&self, turn: &Turn, is_announced: bool) -> Option<String> {
        let by_hand = self.by_hand.as_ref().filter(|_| is_announced);
        if let Some(chosen) = by_hand.and_then(|by_hand| by_hand.ask(turn)) {
            return Some(chosen);
        }
        let name = self.example.as_ref()?;
        let chosen = strategies::named(&turn.game_type, name)?(turn);
        if let Some(by_hand) = by_hand {
            let words = format!(
                "{}: nobody chose in time; {name} chose {chosen}",
                turn.match_id
            );
            complain(&format!("{}: {words}", turn.player_id));
            by_hand.note(&words);
        }
        Some(chosen)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn toolbox<'a>(&'a self, session: &'a Session) -> Option<Toolbox<'a>> {
        self.by_hand
            .as_ref()
            .map(|by_hand| by_hand.toolbox(session))
    }

    fn league_is_over(&self, words: &str) {
        self.by_hand.iter().for_each(|by_hand| by_hand.end(words));
    }

    /// Whoever plays by hand can still read how the league ended.
    fn stay(&self) {
        if self.by_hand.is_some() {
            say("the league is over; still serving");
            loop {
                thread::park();
            }
        }
    }
}
