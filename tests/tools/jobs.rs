//! A league as a job of a batch engine: entrants in groups, a job for each, killed and started again
//! by a plain shell, added up, and the next stage (`tests/scripts/jobs`).

use super::support::story;

#[test]
fn jobs_golden() {
    story::run("jobs");
}
