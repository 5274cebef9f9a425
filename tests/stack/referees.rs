//! Referees that die, refuse, lie or are late, and managers that are away: every match is recorded
//! once, and no player pays for it. All of it is in scripts: `tests/scripts/referees`, and in
//! `tests/scripts/every_referee` what the referee of the small league does too.

use super::support::story;

#[test]
fn referees_golden() {
    story::run("referees");
}

#[test]
fn every_referee_golden() {
    for referee in ["", "small"] {
        story::run_as("every_referee", &[("KIND", referee)]);
    }
}
