//! The network: HTTP server and client, JSON-RPC and MCP, and the log. A request comes in through
//! `http.rs` and `rpc.rs`, which calls the program as an `Agent` (`agent.rs`). A call of the program
//! goes out through `client.rs`, and its failure is a `CallError` (`call_error.rs`).

pub mod agent;
pub mod call_error;
pub mod client;
pub mod hardening;
pub mod http;
pub mod log;
pub mod mcp;
pub mod rpc;
pub mod sync;
