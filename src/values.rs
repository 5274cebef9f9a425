//! The values of which messages and files are made: timestamps, endpoints, names, tokens.

mod endpoint;
mod text;
mod timestamp;

pub use endpoint::Endpoint;
pub use text::*;
pub use timestamp::Timestamp;
