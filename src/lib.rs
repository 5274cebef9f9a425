//! The AI Agent League: independent agents play Even/Odd in a round robin, over JSON-RPC 2.0 on HTTP.
//!
//! Three programs talk. The **manager** registers agents, announces rounds, records results, keeps the table.
//! A **referee** invites two players, asks both for a choice, draws a number, reports who won. A **player** answers.
//! What they say to each other is one page: [`protocol`].
//!
//! # Where is what
//! ```text
//! bin/           the command lines of the three programs; player.rs is the template for your own
//! src/manager/   league: what is so · journal: what is kept · rounds: what happens next · notifier: who is told
//!                registration, results: what is taken · schedule, standings · queries: what is answered
//!                notices: what is announced · editions: the same for all, written once
//!                contacts, liveness: who answers · screen, pages: for people · settings, launcher: the beginning
//!                control: the operator's orders · trace: a match as it was said · practice, statistics: strategies
//!                compared · view, page.html, report, luck, season: the league on a page, and what is kept of it
//! src/referee/   match_play: one match · over_http: where it is played · assignments: what is to be played
//!                outbox: what is to be reported
//! src/player/    invitations: what may be believed · decision: how `choose` is called · history: what was played
//!                strategies: examples · by_hand: played by a person or a model · screen: for its author
//! src/check/     `league_manager check`: examines one agent, in any language
//! src/program/   what every program is made of: args, config, registration, card, session, server, storage, terminal
//! src/net/       http, client: out and in · rpc, agent: JSON-RPC · mcp: the same as tools · retry, log, sync, secret
//! src/game.rs    Even/Odd: what may be chosen, what is drawn, who wins
//! src/protocol.rs, src/protocol.md   the messages: as declarations, and as a page to read
//! src/wire/      how an object is declared, read and described; timestamps, endpoints, tokens
//! ```
//! A room uses only rooms below its own in this list, and no program another: a player knows nothing of the manager's
//! rooms. The rooms that decide (`league`, `registration`, `results`, `schedule`, `standings`, `queries`,
//! `notices`, `liveness`, `match_play`, `game`, `protocol`, `wire`) are pure: they know no thread, lock, file or
//! socket, and take time and randomness as arguments (but a draw without a seed).
//!
//! # To read it in an evening
//! 1. `bin/player.rs`: what a player must decide.
//! 2. `protocol.rs`: the page `messages!` with the 22 messages, then their fields.
//! 3. `referee/match_play.rs`: one match, from invitation to outcome.
//! 4. `manager/league.rs`: state, events, and the one function that changes it.
//! 5. `manager/journal.rs`: what is on the disk before anybody sees it.
//! 6. `manager/rounds.rs`: the round loop; start, restart and a lost referee are one act.
//! 7. `manager.rs`: one `match` over the messages.
//!
//! # Words
//! - **agent**: a manager, referee or player that answers on an endpoint. **Member**: an agent that the manager let in.
//! - **card**: what an agent keeps to be itself again after a restart: id, token, league, manager.
//! - **envelope**: the fields that every message has. **Conversation**: messages that belong together, as of a match.
//! - **notice**: a message that wants no answer but "ok".
//! - **announcement**: the notice of a round's open matches, or its number. Players get it first; after the **lead** it
//!   is **released**: referees may be told.
//! - **open**: of a match: without a result. Of a round: not over.
//! - **game**: Even/Odd; but as a variable a match, for `match` is a word of Rust. **Seat**: 0 is player A, 1 is B.
//! - **assignment**: a match given to a referee. **Outbox**: results that the manager has not acknowledged yet.
//! - **match token**: what a referee shows a player, and the player shows it, in one match.
//! - **event**: a line of the journal; the league is what all events make of it.
//! - **edition**: what all readers are told alike, written once. **Contact**: what was last heard of an agent.
//! - **page** (of a manager or a player): a file for people, which can be made again from journal or history.
//! - **technical loss**: lost without a number drawn, since a player did not answer as it must.
//!
//! # What goes wrong
//! Five types, each for one reader:
//! - [`Fault`](wire::Fault): a value that is not what it must be, with its path. For whoever wrote the value.
//! - [`Refusal`](protocol::Refusal): a fault with its code: what a peer is answered.
//! - [`Denial`](net::agent::Denial): what a handler ends with: a refusal, a JSON-RPC error, or that we cannot just now.
//! - [`CallError`](net::retry::CallError): why no good answer came to a call of ours, and whose fault that was.
//! - [`Stop`](program::args::Stop): why a program ends, in a line for its user.
//!
//! Left out on purpose: TLS unless built with the feature `https`, HTTP keep-alive, async, other games, a database.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(feature = "extras")]
pub mod extras;
pub mod games;
pub mod manager;
pub mod net;
pub mod player;
pub mod program;
pub mod protocol;
pub mod referee;
pub mod wire;

/// Who sits beside a player: what the extras offer, where they are built in, else nobody.
#[cfg(feature = "extras")]
type Beside = extras::coach::Coach;
#[cfg(not(feature = "extras"))]
type Beside = ();
