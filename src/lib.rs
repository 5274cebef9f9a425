//! The AI Agent League: independent agents play a game in a round robin, over JSON-RPC 2.0 on HTTP.
//!
//! There are three programs. The **manager** registers agents, announces rounds, records results
//! and computes the table. A **referee** invites two players to a match, asks them for their
//! choices, draws a number and reports the result. A **player** answers. The page [`protocol`]
//! describes all their messages.
//!
//! The repository has two chapters. Chapter one is the **small league** in `bin/small`: the same
//! protocol in six files, for agents that keep to it. Read it first, in an evening:
//! `player.rs`, `referee.rs`, `manager.rs`, `state.rs`, `net.rs`, `config.rs`, with `protocol.rs`
//! open. Chapter two is this library: the same league among strangers.
//!
//! # Map
//! ```text
//! bin/small/      chapter one: the small league; of this library it uses protocol, games and values
//! bin/            the command lines of the three programs; player.rs is the template for your own
//!                 player, player.py is the same in Python (league_player.py is the rest of it),
//!                 adapter.py translates for an agent with other message formats
//! bin/league/     the tool, a crate of its own: it uses this library, and the library does not use
//!                 it. A folder for each question: start (who plays?), show (what is seen?), compare
//!                 (who is better?), classroom (what does a class need?); and players, by hand or
//!                 with a finished strategy
//! ────────────────────────────────────────────────────────────────────────────────
//! src/manager/    league (state and events), journal (events on disk), rounds (the round loop),
//!                 notifications (what is sent), contact (one agent: its next call, its health),
//!                 contacts (all of them, and the threads that call them), handlers (replies);
//!                 decisions: registration, schedule, results, control; derived data: standings,
//!                 queries; screen (what the terminal shows), files (the table, the rounds and the
//!                 matches as JSON)
//! src/referee/    match_play (one match), match_messages (its questions and answers), tasks (matches
//!                 to play, results to tell and to report)
//! src/player/     state (what follows from a message), invitations (accepted messages), turn (the
//!                 argument of `choose`), history, display (lines for the terminal)
//! src/program/    the start of every program: args, config, attempts, credentials, session
//!                 (registration), storage, terminal
//! src/net/        http (server), client, rpc and agent (JSON-RPC), mcp (Model Context Protocol),
//!                 call_error, log, sync (threads and locks), limits (limits of the HTTP library)
//! src/games/      the definition of a game, and the games
//! src/protocol/   parsing, error codes, the table of messages; the messages are in protocol.rs,
//!                 their description is in protocol.md and fields.md
//! src/json.rs     decoding of JSON, with the path of each error; json/schema.rs derives schemas
//! src/values/     timestamps, endpoints; values.rs has texts, and values of the players of a match
//! src/system.rs   what differs between Linux, macOS and Windows
//! ```
//! A file uses only files in its own entry of the map or below it, and no program uses another: the
//! code of a player does not depend on the manager. Files that decide (`league`, `registration`,
//! `results`, `match_play`) use no thread, file or socket, and wait for no lock. Clocks and tokens come to them
//! as arguments, so tests can call them directly; a draw can be repeated with a seed.
//!
//! # Reading order
//! After the small league, these eleven files can be read in two or three evenings. From the second
//! on, the first lines of each name the next one. Keep `protocol.rs` open at the same time: it
//! begins with the list of all messages, and then has their fields.
//! 1. `bin/player.rs`: the strategy of a player.
//! 2. `games.rs`: the definition of a game.
//! 3. `games/even_odd.rs`: the game Even/Odd.
//! 4. `referee/match_play.rs`: one match, from the invitations to the result.
//! 5. `player/invitations.rs`: the messages that a player accepts; each move is chosen once for an
//!    invitation.
//! 6. `manager/league.rs`: the state, its events, and the only function that changes the state.
//! 7. `manager/journal.rs`: the file of events, written before any agent is told.
//! 8. `manager/results.rs`: the check of a reported result; the first of two reports counts.
//! 9. `manager/rounds.rs`: the round loop; start, restart and loss of a referee are the same step.
//! 10. `manager/notifications.rs`: the list of what the manager sends, and what an agent lacks of
//!     it.
//! 11. `manager/standings.rs`: the table, from the results of all matches.
//!
//! The [tour](guide::tour) of the [`guide`] follows one result through these files, from a player's
//! answer to every player's table. Between the chapters lie the [labs](guide::labs): twelve faults
//! that bring the small league down, each with the mechanism that holds and the file that has it
//! here.
//!
//! # Glossary
//! - **Agent**: a manager, a referee or a player. **Member**: a referee or player that the manager
//!   has registered.
//! - **Token**: a secret of the manager and one member; their requests to each other carry it.
//!   **Match token**: a secret of one match and one player; the requests of the match's referee to
//!   that player carry it. **Credentials**: the file with a member's id, key, token, league and
//!   manager, with which the member continues after a restart.
//! - **Conversation**: the messages that belong together, for example all messages of a match.
//! - **Notification**: a message whose only reply is `{"status":"ok"}`. The manager **publishes**
//!   one when it lets its receivers be told. **Progress**: what an agent has been told.
//! - **Result**: `GameResult` is what players are told of a match, `MatchResult` what is reported
//!   and recorded. **Table**: the standings.
//! - **Announcement**: the notification with the matches of a round that have no result. **Lead
//!   time**: the time from the announcement to the players until the announcement to the referees.
//! - **Assignment**: a match that is given to a referee, with the tokens of its players. **Seat**:
//!   0 for player A, 1 for player B.
//! - A match is **open** while it has no result. The **open round** is the first round with an open
//!   match.
//! - **Lobby**: a league that has not started, in which agents can register. A league that
//!   has started is **over** when no match is open. It is **closed** when the manager has sent LEAGUE_COMPLETED to all
//!   members that answer. A league can also be closed early, for example when a comparison is
//!   decided; then it is over too.
//! - **Cycle**: one round robin. **Local league**: a league that one command plays on one machine.
//!   **Practice**: a local league for comparing players.
//! - **Technical loss**: a lost match in which the loser gave no valid answer. **Walkover**: a
//!   match that the manager records without play, since a player was removed. **Draw**: a match
//!   without a winner; the number of Even/Odd is *drawn* too.
//! - `the_match` is the name of a variable with a match, since `match` is a keyword of Rust; `game`
//!   is a variable of the type [`Game`](games::Game).
//!
//! # Error types
//! There are five types of errors that others see, by layer:
//! - [`FieldError`](json::FieldError): a field of a JSON value is missing or invalid. It has the
//!   path of the field.
//! - [`ProtocolError`](protocol::ProtocolError): a message is refused. It has an error code of the
//!   protocol, and becomes the reply.
//! - [`HandlerError`](net::agent::HandlerError): a handler has no normal reply: it refuses the
//!   message, returns a JSON-RPC error, or fails on this machine.
//! - [`CallError`](net::call_error::CallError): a call to another agent failed.
//! - [`Exit`](program::args::Exit): the program ends with an exit code and a line for its user.
//!
//! # Limits
//! There is no HTTP keep-alive, no async code and no database. TLS needs the feature `https`. An agent
//! listens on this machine only, unless its manager is on another one or `--host` names an address.
//! Only a manager in the tool has a relay for players that cannot be called. A killed player may lose
//! two seconds of its history, but nothing of the table. A hostile player cannot change a result, but
//! it can slow a round down.

#![forbid(unsafe_code)]

pub mod games;
pub mod guide {
    //! The guide: how the whole works, how a class uses it, and how to change it.
    //!
    //! | page | for whom |
    //! |---|---|
    //! | [tour] | you want to understand the stack before you change it |
    //! | [class] | you teach, and run a league among many students' agents |
    //! | [jobs] | you run leagues on a cluster or in containers, or have more than a hundred players |
    //! | [models] | you let a language model play, or call the agents' tools |
    //! | [configuration] | you look for an option, a key of a file, or "How do I…" |
    //! | [windows] | you have Windows or macOS, and want to know what is different there |
    //! | [practice] | you want to know whether a strategy is better than a coin, or than another one |
    //! | [labs] | you want to build what keeps a league alive: twelve faults, and a suite that says when it holds |
    //! | [simulation] | you want to know how thousands of leagues are played in virtual time, and what they find |
    //! | [exercises] | you want to learn by changing something that a test then checks |

    #[doc = include_str!("guide/class.md")]
    pub mod class {}
    #[doc = include_str!("guide/configuration.md")]
    pub mod configuration {}
    #[doc = include_str!("guide/exercises.md")]
    pub mod exercises {}
    #[doc = include_str!("guide/jobs.md")]
    pub mod jobs {}
    #[doc = include_str!("guide/labs.md")]
    pub mod labs {}
    #[doc = include_str!("guide/models.md")]
    pub mod models {}
    #[doc = include_str!("guide/practice.md")]
    pub mod practice {}
    #[doc = include_str!("guide/simulation.md")]
    pub mod simulation {}
    #[doc = include_str!("guide/tour.md")]
    pub mod tour {}
    #[doc = include_str!("guide/windows.md")]
    pub mod windows {}
}
pub mod json;
pub mod manager;
/// The network: HTTP server and client, JSON-RPC and MCP, and the log. A request comes in through
/// `http.rs` and `rpc.rs`, which calls the program as an `Agent` (`agent.rs`). A call of the
/// program goes out through `client.rs`, and its failure is a `CallError` (`call_error.rs`).
pub mod net {
    pub mod agent;
    pub mod call_error;
    pub mod client;
    pub mod http;
    pub mod limits;
    pub mod log;
    pub mod mcp;
    pub mod rpc;
    pub mod sync;
}
pub mod player;
pub mod program;
pub mod protocol;
pub mod referee;
pub mod system;
pub mod values;
