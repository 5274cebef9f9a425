//! The AI Agent League: independent agents play a game in a round robin, over JSON-RPC 2.0 on HTTP.
//!
//! Three programs talk. The **manager** registers agents, announces rounds, records results and
//! keeps the table. A **referee** invites two players, asks them for their choices, draws a number
//! and reports who won. A **player** answers. What they say to each other stands on one page:
//! [`protocol`].
//!
//! # The map
//! ```text
//! bin/            the command lines of the three programs; player.rs is the template for your own,
//!                 player.py the same in Python, adapter.py stands in front of an agent that speaks
//!                 another dialect
//! src/extras/     what shows, compares, examines and operates a league; the stack below does not
//!                 know it
//! ────────────────────────────────────────────────────────────────────────────────
//! src/manager/    league (the state), journal (what is stored), rounds (the round loop), overdue
//!                 (referees that must report), notifications (what is sent), notifier (queues and
//!                 delivery), agent_status, handlers (what is answered); registration, schedule,
//!                 results, control (what is decided); standings, queries (what is made of the state)
//! src/referee/    match_play (one match), match_messages (what is asked and answered), http_match
//!                 (where it is played), assignments (what is to be played), outbox (what is to be
//!                 reported)
//! src/player/     invitations (which messages are accepted), history, turn, display, again
//! src/program/    the start of every program: args, config, credentials, session (registration),
//!                 storage, terminal
//! src/net/        http (server) and client, rpc and agent (JSON-RPC), mcp (the same as tools),
//!                 call_error, log, restart (of a process without resources), sync
//! src/games/      what a game is, and the games
//! src/protocol/   how messages are parsed, error codes; the messages themselves are protocol.rs, and
//!                 protocol.md in words, with fields.md
//! src/json.rs     how JSON from outside is checked and decoded; json/schema.rs derives the schemas
//! src/values/     timestamps, endpoints, tokens and other texts
//! ```
//! A file uses only what stands in its own entry of the map or below it, and no program uses
//! another: a player knows nothing of the manager. Files that decide (`league`, `registration`,
//! `results`, `match_play` and their like) know no thread, lock, file or socket; they are given the
//! time and the randomness that they need.
//!
//! # To read it in two evenings
//! These ten files tell the story, each with the help of those before it. The first lines of each
//! name the other files that it leans on.
//! 1. `bin/player.rs`: what a player must decide.
//! 2. `protocol.rs`: the table of all messages, and their fields.
//! 3. `games.rs`: what a game is.
//! 4. `games/even_odd.rs`: the game.
//! 5. `net/call_error.rs`: what can go wrong with a call, and how it is said.
//! 6. `referee/match_play.rs`: one match, from invitation to outcome.
//! 7. `manager/league.rs`: state, events, and the one function that changes the state.
//! 8. `manager/journal.rs`: what is on the disk before anybody sees it.
//! 9. `manager/rounds.rs`: the round loop; start, restart and a lost referee are one act.
//! 10. `manager/handlers.rs`: what the manager answers.
//!
//! The [`guide`] says how these play together: its [tour](guide::tour) follows one result from a
//! player's answer to everybody's table.
//!
//! # Words
//! - An **agent** is a manager, referee or player that answers on an endpoint. A **member** is an
//!   agent that the manager let in. Its **token** is a secret that only the two of them know, and
//!   what they ask of each other carries it. A **card** is the file by which an agent is itself
//!   again after a restart: id, token, league, manager.
//! - The **envelope** is the fields that every message has. A **conversation** is the messages that
//!   belong together, as those of a match. A **notice** is a message that wants no answer but "ok".
//! - A match is **open** while it has no result; the **open round** is the first that is not over.
//!   Since `match` is a word of Rust, a variable is called `the_match`, or `game` where the league
//!   is shown; a variable of the type [`Game`](games::Game), as in `referee`, is the game that is
//!   played. A **seat** is 0 for player A and 1 for player B.
//! - An **assignment** gives a match to a referee. An **announcement** is the notice of a round's
//!   open matches. Players get it first. The **lead** is the time between an announcement and its
//!   matches; when it has passed, referees get it. A **match token** is what a referee shows a
//!   player in one match. The **outbox** keeps every result, to be reported again after a restart.
//! - A **lobby** is a league that has not started: agents may still register. A league is **over**
//!   when no match is open any more; it is **closed** when everybody has been told so, or could not
//!   be. A league that is ended early is closed, and so over, with matches that have no result.
//! - In a **cycle** everybody meets everybody once. A **local league** is played by one command on
//!   one machine. A **practice** is a local league that is played to compare players.
//! - An **event** is a line of the journal; the state of the league is the sum of its events. The
//!   **notifier** sends notifications to all agents. The **document** is the league's public
//!   state as one object.
//! - A **technical loss** is a match lost because a player did not answer as it must. A **draw** is
//!   a match that nobody wins, as in `draws` of a tally and of the table. But a number is drawn
//!   too, as in `draws` of a game and in `drawn_number`. A **career** is what one player has done
//!   in the league so far.
//!
//! # What goes wrong
//! Five types say what went wrong, each to one reader:
//! - [`FieldError`](json::FieldError): a value that is not what it must be, with
//!   its path. It is for the author of the value.
//! - [`ProtocolError`](protocol::ProtocolError): a fault with its code. It is what a peer is answered.
//! - [`HandlerError`](net::agent::HandlerError): what a handler ends with instead of its answer: a
//!   refusal, a JSON-RPC error, or that we cannot do just now what was asked.
//! - [`CallError`](net::call_error::CallError): why no good answer came to a call of ours, and whose
//!   fault that was.
//! - [`Exit`](program::args::Exit): why a program ends, in a line for its user.
//!
//! Left out on purpose: TLS unless built with the feature `https`, HTTP keep-alive, async, a
//! database.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(feature = "extras")]
pub mod extras;
pub mod games;
pub mod guide;
pub mod json;
pub mod manager;
pub mod net;
pub mod player;
pub mod program;
pub mod protocol;
pub mod referee;
pub mod values;
