//! What a player chooses in one match: made once for each move, outside every lock, and safe
//! against a `choose` that is slow or panics.
//!
//! While a slow `choose` is still thinking, the same call again waits for the same answer. A panic
//! of `choose` is answered and shown as any panic in a request is (`net/rpc.rs`): the student's own
//! terminal names file and line, the referee is told that the player cannot answer, and when it
//! asks again, `choose` is called again. Read next: `history.rs`.

use crate::net::sync::lock;
use crate::protocol::{Code, Refusal};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// The most moves of one match: nobody must fill our memory.
const MOST_MOVES: u32 = 1000;

/// Our moves in one match. A panic leaves a move open.
#[derive(Debug, Default)]
pub struct Decision {
    /// By number, each once it was asked for.
    moves: Mutex<BTreeMap<u32, Arc<OnceLock<String>>>>,
}

impl Decision {
    /// The move of that number. It is made now, if it was not made before; whoever asks meanwhile
    /// waits for it.
    pub fn make(&self, number: u32, choose: impl FnOnce() -> String) -> Result<String, Refusal> {
        if number > MOST_MOVES {
            let problem = format!("got {number}, which is more than {MOST_MOVES}");
            return Err(Refusal::field(Code::E015, "move_number", problem));
        }
        let cell = Arc::clone(lock(&self.moves).entry(number).or_default());
        Ok(cell.get_or_init(choose).clone())
    }
}
