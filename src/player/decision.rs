//! How `choose` is called: once for each match, outside every lock, and bearing that it panics.
//!
//! A student's `choose` may be slow or wrong. Slow: the same call again waits for the same answer. Wrong: the panic is
//! shown in the student's own terminal with file and line, the referee is told that we cannot answer, and may ask
//! again; then it is thought again. Read next: `strategies.rs`, finished examples of a `choose`.

use crate::net::agent::Denial;
use crate::program::terminal::complain;
use crate::protocol::Parity;
use crate::wire::cut;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

/// How many characters of a panic's words are shown.
const SHOWN: usize = 500;

thread_local! {
    /// Whether this thread is inside `choose`.
    static CHOOSING: Cell<bool> = const { Cell::new(false) };
}

/// Our choice in one match. A panic leaves it open.
#[derive(Debug, Default)]
pub struct Decision {
    made: OnceLock<Parity>,
    thinking: AtomicBool,
}

impl Decision {
    /// The choice: made now, or already; whoever asks while it is being made waits for it.
    pub fn make(&self, choose: impl FnOnce() -> Parity) -> Result<Parity, Denial> {
        let think = || {
            CHOOSING.set(true);
            self.thinking.store(true, Ordering::SeqCst);
            choose()
        };
        let made = panic::catch_unwind(AssertUnwindSafe(|| *self.made.get_or_init(think)));
        CHOOSING.set(false);
        self.thinking.store(false, Ordering::SeqCst);
        made.map_err(|_| {
            Denial::Broken("its `choose` panicked; the player's own terminal says where".into())
        })
    }

    /// Whether it is being made at this moment.
    pub fn is_open(&self) -> bool {
        self.thinking.load(Ordering::SeqCst)
    }
}

/// From now on a panic in `choose` is shown on standard error. What the program does about panics (the server logs
/// them) it still does, so this is called when the server stands.
pub fn show_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if CHOOSING.get() {
                let place_and_words = cut(&panic.to_string().replace('\n', " "), SHOWN);
                complain(&format!("your `choose` {place_and_words}"));
            }
            others(panic);
        }));
    });
}
