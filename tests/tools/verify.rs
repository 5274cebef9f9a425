//! `verify`: the files of a league that was played agree, and a file that is changed afterwards is
//! named. The ways to change one are in `mutate.py`.

use super::support::*;
use league::system::PYTHON;
use std::fs;
use std::process::Command;

#[test]
fn changed_file_of_a_league_is_named() {
    let test = TestLeague::new("");
    test.local("--players 2 --referees 1 --seed 7");
    let (code, printed) = test.verify();
    assert_eq!(code, Some(0), "{printed}");
    check_contains(
        &printed,
        "1 of 1 results in the journal; outboxes: 1 of 1, \
         histories: 2 of 2 (they lack 0 results), logs: 5 of 5; all agree",
    );

    let journal = test.league_file("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let is_recorded = |line: &&str| line.contains("Recorded");
    let recorded = text.split_inclusive('\n').find(is_recorded).unwrap();
    fs::write(journal, text.replace(recorded, &recorded.repeat(2))).unwrap();
    let (code, printed) = test.verify();
    assert_eq!(code, Some(1), "{printed}");
    check_contains(&printed, "R1M1 is recorded twice");
}

#[test]
fn spoilt_leagues_are_judged_rightly() {
    if !has_python() {
        return print_left_out("there is no Python");
    }
    let mut script = Command::new(PYTHON);
    script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutate.py"));
    let output = script.env("LEAGUE", executable("league")).output().unwrap();
    let output = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    check_contains(&output, " ways to spoil a league: 0 judged wrongly");
}
