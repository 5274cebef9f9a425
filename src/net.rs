//! How agents talk: an HTTP server and a client, JSON-RPC and MCP between them and the handlers,
//! and the log of it all. A request comes in through `http.rs`, which gives its bytes to `rpc.rs`;
//! that calls the program as an `Agent` (`agent.rs`). A call of the program's own goes out through
//! `client.rs`, and why it failed is a `CallError` (`retry.rs`).

pub mod agent;
pub mod bounds;
pub mod client;
pub mod http;
pub mod letter;
pub mod log;
pub mod mcp;
pub mod retry;
pub mod rpc;
pub mod secret;
pub mod sync;
