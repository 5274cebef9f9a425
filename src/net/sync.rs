//! Threads and locks: the two rules of the house. Threads have names, and a lock outlives a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Locks, also after a panic elsewhere: what our locks protect is whole at every moment.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread with a name (a panic in an unnamed one is tiny_http's, see `http.rs`); false when the machine
/// has none to give.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().name(name.into()).spawn(work).is_ok()
}
