//! Threads and locks: the two rules of the house. Threads have names, and a lock outlives a panic.
//! A value that some threads change and others wait for is a `Watched`.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Locks, also after a panic elsewhere: what our locks protect is whole at every moment.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread with a name (a panic in an unnamed one is tiny_http's, see `http.rs`); false
/// when the machine has none to give.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().name(name.into()).spawn(work).is_ok()
}

/// A value that threads share, and that some of them wait for.
#[derive(Debug, Default)]
pub struct Watched<T> {
    value: Mutex<T>,
    bell: Condvar,
}

impl<T> Watched<T> {
    /// Locks the value to look at it; nobody is woken.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        lock(&self.value)
    }

    /// Changes the value; whoever waits looks anew.
    pub fn change<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let done = act(&mut self.lock());
        self.bell.notify_all();
        done
    }

    /// Waits until the value is so, or as long as is borne.
    pub fn wait_until(&self, limit: Duration, is_so: impl Fn(&T) -> bool) -> MutexGuard<'_, T> {
        let not_yet = |value: &mut T| !is_so(value);
        let waited = self.bell.wait_timeout_while(self.lock(), limit, not_yet);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes something out of the value; waits until there is something to take.
    pub fn wait_for<R>(&self, take: impl Fn(&mut T) -> Option<R>) -> R {
        let mut value = self.lock();
        loop {
            if let Some(taken) = take(&mut value) {
                return taken;
            }
            let rung = self.bell.wait(value);
            value = rung.unwrap_or_else(PoisonError::into_inner);
        }
    }
}
