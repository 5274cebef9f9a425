//! Who sits beside a player and chooses in the place of its own `choose`, if the command line says so (`--strategy`): a
//! finished example, or whoever calls the player's tools, with an example for when nobody does.

use crate::extras::by_hand::ByHand;
use crate::extras::strategies::{self, Strategy};
use crate::net::agent::Toolbox;
use crate::player::{Companion, Parity, Turn};
use crate::program::args::{Args, Opt, Stop};
use crate::program::session::Session;
use crate::program::terminal::{complain, say};
use std::thread;

/// The companion of a player.
pub struct Coach {
    /// The example that plays in the place of `choose`, or where nobody chooses by hand: its name, and itself.
    example: Option<(String, Strategy)>,
    by_hand: Option<ByHand>,
}

impl Companion for Coach {
    const OPTIONS: &[Opt] = &[(
        "--strategy",
        "NAME",
        "an example, or mcp:NAME: by hand, and NAME if nobody chooses [the program's `choose`]",
    )];

    fn new(args: &Args) -> Result<Coach, Stop> {
        let asked = args.text("--strategy");
        let is_by_hand = asked.is_some_and(|asked| asked == "mcp" || asked.starts_with("mcp:"));
        let example = match asked {
            Some("mcp") => Some("random"),
            asked => asked.map(|asked| asked.strip_prefix("mcp:").unwrap_or(asked)),
        };
        let unknown = |name: &str| {
            let all: Vec<&str> = strategies::ALL.iter().map(|(name, _)| *name).collect();
            let legal = format!("mcp, or one of {}", all.join(", "));
            Stop::usage(format!("--strategy: got {name:?}, expected {legal}"))
        };
        let found = example.map(|name| match strategies::named(name) {
            Some(strategy) => Ok((name.to_string(), strategy)),
            None => Err(unknown(name)),
        });
        Ok(Coach {
            example: found.transpose()?,
            by_hand: is_by_hand.then(ByHand::default),
        })
    }

    /// A match that only a stranger has named is not offered to whoever plays by hand.
    fn choose(&self, turn: &Turn, is_announced: bool) -> Option<Parity> {
        let by_hand = self.by_hand.as_ref().filter(|_| is_announced);
        if let Some(parity) = by_hand.and_then(|by_hand| by_hand.ask(turn)) {
            return Some(parity);
        }
        let (name, strategy) = self.example.as_ref()?;
        let parity = strategy(turn);
        if let Some(by_hand) = by_hand {
            let words = format!(
                "{}: nobody chose in time; {name} chose {parity}",
                turn.match_id
            );
            complain(&format!("{}: {words}", turn.player_id));
            by_hand.note(&words);
        }
        Some(parity)
    }

    fn name(&self) -> String {
        let example = self.example.as_ref();
        let name = example.map_or("choose", |(name, _)| name);
        match self.by_hand {
            Some(_) => format!("mcp:{name}"),
            None => name.into(),
        }
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
