//! Running a class: what the operator may do to a league, with `kill -9` of the manager between the
//! orders (`tests/scripts/operator`). The results and answers of single orders are other scripts:
//! `tests/scripts/control`.

use super::support::*;
use std::thread;

#[test]
fn operator_golden() {
    story::run("operator");
}

#[test]
fn report_is_made_for_one_request_at_a_time() {
    let (_test, manager) = with_manager("serve");
    let statuses = thread::scope(|scope| {
        let ask = || pages::get(&manager.url(), "/report.html").0;
        let threads = [(); 20].map(|()| scope.spawn(ask));
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(statuses.contains(&200), "{statuses:?}");
    let is_expected = |status| [200, 503].contains(status);
    assert!(statuses.iter().all(is_expected), "{statuses:?}");
}
