//! Waiting for what rings no bell: that another process has ended, that nobody writes into a folder
//! any more, that an agent under examination has sent something. It is asked for again and again,
//! and only so long. What our own threads wait for is a `Shared` (`net/sync.rs`), which wakes
//! them.

use std::thread;
use std::time::{Duration, Instant};

/// The pause before it is asked for again.
const LOOK: Duration = Duration::from_millis(2);

/// Waits until something is so, at most so long; whether it is.
pub fn until(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !is_so() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(LOOK);
    }
    true
}
