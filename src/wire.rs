//! What every value on the wire is made of: how an object is declared, read and described,
//! timestamps, endpoints, ids and tokens. Pure. This is the door of the folder; read `object`
//! first.

mod endpoint;
mod ids;
mod object;
mod timestamp;

pub use endpoint::Endpoint;
pub use ids::*;
pub use object::*;
pub use timestamp::Timestamp;
