//! `verify`: a file of a league that is changed after its end is named. The ways to change one are in
//! `mutate.py`.

use super::support::*;
use league::system::PYTHON;
use std::process::Command;

#[test]
fn spoilt_leagues_are_judged_rightly() {
    if !has_python() {
        return;
    }
    let mut script = Command::new(PYTHON);
    script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutate.py"));
    let (_, output) = run_to_end(script.env("LEAGUE", executable("league")));
    check_contains(&output, " ways to spoil a league: 0 judged wrongly");
}
