//! How agents talk: an HTTP server and a client, JSON-RPC and MCP between them and the handlers,
//! and the log of it all.

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
