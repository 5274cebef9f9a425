//! Helpers for threads, locks and secrets. Every thread has a name. A lock stays usable after a
//! panic: what our locks protect is complete at every moment.

use crate::system;
use crate::values::clock;
use std::process;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// Locks, also after a panic in another thread.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread with a name; returns `None` if the machine has none left.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<Thread> {
    if clock::is_simulated() {
        return None;
    }
    let started = thread::Builder::new().name(name.into()).spawn(work);
    started.ok().map(|handle| handle.thread().clone())
}

/// Starts a thread that its program needs, when the machine has one. Without it the program would
/// wait for ever, so it ends.
pub fn spawn_needed(name: &str, work: impl FnOnce() + Send + 'static) {
    let _ = system::retry(|| thread::Builder::new().name("first".into()).spawn(|| {}));
    if spawn(name, work).is_none() {
        eprintln!("the machine has no thread left for {name:?}; end other programs");
        process::exit(1);
    }
}

/// A value that threads share and wait for.
#[derive(Debug, Default)]
pub struct Shared<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Shared<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Shared<T> {
        Shared {
            value: Mutex::new(value),
            changed: Condvar::new(),
        }
    }

    /// Locks the value to read it; wakes no thread.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        lock(&self.value)
    }

    /// Changes the value and wakes all threads that wait for it.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Waits until the condition holds or the timeout is over.
    pub fn wait_until(
        &self,
        timeout: Duration,
        condition: impl Fn(&T) -> bool,
    ) -> MutexGuard<'_, T> {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), timeout, |value| !condition(value));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until `take` returns something. Its error is the time after which it is tried again even
    /// if nothing has changed.
    pub fn wait_for<R>(&self, mut take: impl FnMut(&mut T) -> Result<R, Duration>) -> R {
        let mut value = self.lock();
        loop {
            match take(&mut value) {
                Ok(taken) => return taken,
                Err(timeout) => {
                    let waited = self.changed.wait_timeout(value, timeout);
                    value = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

/// Returns random hex digits from the operating system, fit for tokens and keys. (A draw does not
/// use them: with a seed it must come again.)
pub fn secret(digits: u32) -> String {
    let digits = digits as usize;
    let mut bytes = vec![0; digits.div_ceil(2)];
    system::fill_with_random_bytes(&mut bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    hex[..digits].into()
}
