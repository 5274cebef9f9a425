//! A player's program, behind `run(choose)`, or behind `play(choose)` for other games than
//! Even/Odd: a student writes nothing but `choose`.
//!
//! The league manager announces the rounds. In each match a referee invites the player, asks for
//! its moves, and tells it how the match ended. The player joins every match that it is truly
//! invited to, calls `choose`, and remembers what came of it; what goes wrong is shown in its own
//! terminal.
//!
//! Here is the program from its command line to its end. What it answers to each message stands in
//! `player/handlers.rs`; read that next, then `turn.rs`, what `choose` is given.

pub mod decision;
mod handlers;
pub mod history;
pub mod invitations;
pub mod sentences;
pub mod turn;

pub use crate::player::turn::{Past, Turn, record};
pub use crate::protocol::Parity;

use crate::Beside;
use crate::games::{self, even_odd};
use crate::net::agent::Toolbox;
use crate::net::log::Level;
use crate::net::retry::pause;
use crate::net::sync::{lock, spawn};
use crate::player::history::History;
use crate::player::invitations::Invitations;
use crate::program::args::{Args, Stop, Usage};
use crate::program::card::Card;
use crate::program::session::{self, Participant, Session};
use crate::program::terminal::complain;
use crate::protocol::Kind;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const OPTIONS: &str = "
  --display-name NAME            shown in the table [as listed, or defaults/player.json]
  --player-id ID                 the id to ask for, and whose card to use [any]";

/// How often the history is written to the disk, if something in it has changed.
const WRITING: Duration = Duration::from_secs(2);

/// Whoever may sit beside a player. `()` is nobody; the extras are somebody: examples that play in
/// the place of `choose`, and tools by which a person or a model chooses. Which of them it is says
/// `lib.rs`.
pub trait Companion: Sized + Send + Sync + 'static {
    /// The options that are added to the player's command line, as `Usage` has them.
    const OPTIONS: &str = "";

    /// Reads those options.
    fn new(args: &Args) -> Result<Self, Stop>;

    /// What the program does in the place of playing, if the command line says so. `choose` is the
    /// program's own.
    fn instead(&self, _args: &Args, _choose: &Choose) -> Option<Result<(), Stop>> {
        None
    }

    /// Whether it can play a game; `None` leaves the choices to the program's own `choose`.
    fn plays(&self, _game_type: &str) -> Option<bool> {
        None
    }

    /// Chooses in the place of the program's own `choose`; `None` leaves the choice to that.
    /// `is_announced` says whether the manager itself has named this match.
    fn choose(&self, _turn: &Turn, _is_announced: bool) -> Option<String> {
        None
    }

    /// Who chooses, in a word.
    fn name(&self) -> String {
        "choose".into()
    }

    /// What is offered to tool clients, where that is not what any player offers.
    fn toolbox<'a>(&'a self, _session: &'a Session) -> Option<Toolbox<'a>> {
        None
    }

    /// The league is over: `words` say how it ended.
    fn league_is_over(&self, _words: &str) {}

    /// The program would end now.
    fn stay(&self) {}
}

impl Companion for () {
    fn new(_: &Args) -> Result<(), Stop> {
        Ok(())
    }
}

/// What a player is called to do with a turn.
pub type Choose = dyn Fn(&Turn) -> String + Send + Sync;

/// Runs a player of Even/Odd: it joins the league, answers its referees, remembers its matches, and
/// ends when the league is over. `choose` is called in each match, once unless it panics, in a
/// thread of its own; it must not take longer than `turn.time_left()`.
pub fn run(choose: impl Fn(&Turn) -> Parity + Send + Sync + 'static) -> ExitCode {
    let choose = move |turn: &Turn| choose(turn).to_string();
    start(Some(even_odd::GAME.game_type), Box::new(choose))
}

/// Runs a player of any game. `choose` is called for each move, and returns one of
/// `turn.legal_moves`; `turn.position` shows how the match stands.
pub fn play(choose: impl Fn(&Turn) -> String + Send + Sync + 'static) -> ExitCode {
    start(None, Box::new(choose))
}

/// Runs a player whose `choose` knows only one game, or every game.
fn start(only: Option<&'static str>, choose: Box<Choose>) -> ExitCode {
    let usage = Usage {
        name: "player",
        about: "A player of the AI Agent League: joins its matches and chooses.",
        words: "",
        options: &[OPTIONS, Beside::OPTIONS],
    };
    usage.main(|args| {
        let beside = Arc::new(Beside::new(&args)?);
        if let Some(done) = beside.instead(&args, &*choose) {
            return done;
        }
        let companion = Arc::clone(&beside);
        session::run(args, Kind::Player, |session| {
            let player = Arc::new(Player {
                invitations: Mutex::new(no_invitations(&session)),
                history: Mutex::default(),
                session,
                choose,
                only,
                beside: companion,
            });
            let writer = Arc::clone(&player);
            spawn("history", move || {
                loop {
                    pause(WRITING);
                    writer.write_history();
                }
            });
            player
        })?;
        beside.stay();
        Ok(())
    })
}

struct Player {
    session: Arc<Session>,
    choose: Box<Choose>,
    /// The only game that `choose` knows; else it knows every game.
    only: Option<&'static str>,
    beside: Arc<Beside>,
    invitations: Mutex<Invitations>,
    history: Mutex<History>,
}

impl Player {
    /// Whether we can play a game.
    fn plays_game(&self, game_type: &str) -> bool {
        let own = || self.only.is_none_or(|only| only == game_type);
        self.beside.plays(game_type).unwrap_or_else(own)
    }

    /// Writes the history's file. A file that cannot be written stops nothing.
    fn write_history(&self) {
        let written = lock(&self.history).write();
        if let Err(error) = written {
            let log = self.session.program.log();
            log.say(Level::Warning, "history", error.to_string());
        }
    }

    /// A line about something that the author of this player should look at. It begins with our id:
    /// several players may share a terminal.
    fn warn(&self, words: &str) {
        let card = self.session.card_now();
        let name = card.map_or("player".into(), |card| card.agent_id);
        complain(&format!("{name}: {words}"));
    }
}

fn no_invitations(session: &Session) -> Invitations {
    Invitations::new(session.program.config.system.security.enable_auth_tokens)
}

impl Participant for Player {
    fn plays(&self) -> Vec<&'static str> {
        games::all().filter(|game| self.plays_game(game)).collect()
    }

    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop> {
        if fresh {
            // those of an older league are nothing
            *lock(&self.invitations) = no_invitations(&self.session);
        }
        let folder = self.session.program.data.join("players");
        let folder = folder.join(&card.agent_id);
        *lock(&self.history) = History::open(&folder, &card.agent_id, &card.league_id, fresh)?;
        Ok(())
    }
}
