//! The attempts at a task that can fail: how many there are, and the delays between them. Every
//! wait between two attempts is here: for registrations (`session.rs`), for the questions and
//! results of a referee (`referee/match_play.rs`, `referee/tasks.rs`) and for notifications
//! (`manager/contact.rs`).

use super::config::{Backoff, RetryPolicy};
use std::time::Duration;

/// The attempts at one task.
#[derive(Debug, Clone)]
pub struct Attempts {
    policy: RetryPolicy,
    /// Number of attempts that have failed.
    pub failed: u32,
}

impl Attempts {
    /// Returns as many attempts as the policy has.
    pub fn new(policy: RetryPolicy) -> Attempts {
        Attempts { policy, failed: 0 }
    }

    /// Returns attempts without an end, always at the delay before the second attempt.
    pub fn endless(policy: RetryPolicy) -> Attempts {
        Attempts::new(RetryPolicy {
            max_retries: u32::MAX,
            backoff_strategy: Backoff::Fixed,
            ..policy
        })
    }

    /// Counts a failed attempt. Returns the delay before the next one, or `None` if that was the
    /// last. A delay may be shorter than `max_delay` (for example by a random part), but not
    /// longer: the manager relies on `max_total_time`.
    pub fn next_delay(&mut self) -> Option<Duration> {
        self.failed += 1;
        self.delay()
    }

    /// Returns the delay between the last attempt that has failed and the next one, or `None` if
    /// there is none.
    pub fn delay(&self) -> Option<Duration> {
        let has_next = self.failed < self.policy.max_retries;
        has_next.then(|| self.policy.max_delay(self.failed))
    }

    /// Returns the delay between the first attempt and the second one.
    pub fn first_delay(&self) -> Duration {
        self.policy.max_delay(1)
    }
}

impl RetryPolicy {
    /// Returns the maximum delay after a number of failed attempts: 2 s, 4 s, 8 s …, or always 2 s.
    fn max_delay(&self, failed: u32) -> Duration {
        let base = self.base_delay_sec.0;
        match self.backoff_strategy {
            Backoff::Exponential => base.saturating_mul(1 << (failed.clamp(1, 16) - 1)),
            Backoff::Fixed => base,
        }
    }

    /// Returns the longest time that all attempts can take, if each takes `timeout`.
    pub fn max_total_time(&self, timeout: Duration) -> Duration {
        let total: Duration = (1..self.max_retries)
            .map(|failed| self.max_delay(failed))
            .sum();
        timeout * self.max_retries + total
    }
}
