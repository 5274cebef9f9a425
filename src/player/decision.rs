//! One choice of a player: made once for each match, outside every lock, and safe against a `choose` that is slow or
//! panics.
//!
//! While a slow `choose` is still thinking, the same call again waits for the same answer. When `choose` panics, the
//! panic is shown in the student's own terminal with file and line, once in a match; the referee is told that the
//! player cannot answer, and when it asks again, `choose` is called again. Read next: `history.rs`.

use crate::net::agent::Denial;
use crate::program::terminal::complain;
use crate::protocol::Parity;
use crate::wire::cut;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

/// How many characters of a panic's words are shown.
const PANIC_WORDS: usize = 500;

thread_local! {
    /// Whether a panic in this thread is one of `choose` that is to be shown.
    static SHOWS_PANIC: Cell<bool> = const { Cell::new(false) };
}

/// Our choice in one match. A panic leaves it open.
#[derive(Debug, Default)]
pub struct Decision {
    choice: OnceLock<Parity>,
    is_thinking: AtomicBool,
    has_panicked: AtomicBool,
}

impl Decision {
    /// The choice. It is made now, if it was not made before; whoever asks meanwhile waits for it.
    pub fn make(&self, choose: impl FnOnce() -> Parity) -> Result<Parity, Denial> {
        let think = || {
            SHOWS_PANIC.set(!self.has_panicked());
            self.is_thinking.store(true, Ordering::SeqCst);
            choose()
        };
        let made = panic::catch_unwind(AssertUnwindSafe(|| *self.choice.get_or_init(think)));
        SHOWS_PANIC.set(false);
        self.is_thinking.store(false, Ordering::SeqCst);
        made.map_err(|_| {
            self.has_panicked.store(true, Ordering::SeqCst);
            let words = "its `choose` panicked; the player's own terminal says where";
            Denial::rpc(-32603, format!("Internal error: {words}"))
        })
    }

    /// Whether the choice is being made at this moment.
    pub fn is_thinking(&self) -> bool {
        self.is_thinking.load(Ordering::SeqCst)
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
