//! What a player chooses in one match: made once for each move, outside every lock, and safe against a `choose` that is
//! slow or panics.
//!
//! While a slow `choose` is still thinking, the same call again waits for the same answer. When `choose` panics, the
//! panic is shown in the student's own terminal with file and line, once in a match; the referee is told that the
//! player cannot answer, and when it asks again, `choose` is called again. Read next: `history.rs`.

use crate::net::agent::Denial;
use crate::net::sync::lock;
use crate::program::terminal::complain;
use crate::protocol::{Code, Refusal};
use crate::wire::cut;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock};

/// How many characters of a panic's words are shown.
const PANIC_WORDS: usize = 500;
/// The most moves of one match: nobody must fill our memory.
const MOST_MOVES: u32 = 1000;

thread_local! {
    /// Whether a panic in this thread is one of `choose` that is to be shown.
    static SHOWS_PANIC: Cell<bool> = const { Cell::new(false) };
}

/// Our moves in one match. A panic leaves a move open.
#[derive(Debug, Default)]
pub struct Decision {
    /// By number, each once it was asked for.
    moves: Mutex<BTreeMap<u32, Arc<OnceLock<String>>>>,
    has_panicked: AtomicBool,
}

impl Decision {
    /// The move of that number. It is made now, if it was not made before; whoever asks meanwhile waits for it.
    pub fn make(&self, number: u32, choose: impl FnOnce() -> String) -> Result<String, Denial> {
        if number > MOST_MOVES {
            let problem = format!("got {number}, which is more than {MOST_MOVES}");
            return Err(Refusal::field(Code::E015, "move_number", problem).into());
        }
        let cell = Arc::clone(lock(&self.moves).entry(number).or_default());
        SHOWS_PANIC.set(!self.has_panicked());
        let made = panic::catch_unwind(AssertUnwindSafe(|| cell.get_or_init(choose).clone()));
        SHOWS_PANIC.set(false);
        made.map_err(|_| {
            self.has_panicked.store(true, Ordering::SeqCst);
            let words = "its `choose` panicked; the player's own terminal says where";
            Denial::rpc(-32603, format!("Internal error: {words}"))
        })
    }

    /// Whether `choose` has panicked in this match, which its author has been shown.
    pub fn has_panicked(&self) -> bool {
        self.has_panicked.load(Ordering::SeqCst)
    }
}

/// From now on a panic in `choose` is shown on standard error. The server has set a hook that logs panics, and that
/// goes on; so this is called when the server stands.
pub fn show_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let earlier_hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if SHOWS_PANIC.get() {
                let place_and_words = panic.to_string().replace('\n', " ");
                complain(&format!(
                    "your `choose` {}",
                    cut(&place_and_words, PANIC_WORDS)
                ));
            }
            earlier_hook(panic);
        }));
    });
}
