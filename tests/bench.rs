//! The speed of leagues, their CPU time and their memory: `make bench`. Release build, real processes. Figures
//! depend on the machine; the ratios at the end do not.

mod support;

use league::values::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::{fs, path::Path, thread, time::Duration};
use support::{TestLeague, text_of};

/// Numbers of players, of referees, and of pages that are open meanwhile.
const SIZES: [(usize, usize, usize); 5] =
    [(4, 2, 0), (20, 2, 0), (50, 4, 0), (100, 8, 0), (100, 8, 10)];
/// Interval between the requests of an open page.
const LOOK: Duration = Duration::from_secs(1);
/// Clock ticks of /proc in a second.
const TICKS: f64 = 100.0;

/// The fields of a process in /proc, from the one behind its name.
fn stat(pid: u32) -> Vec<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let words = after.split_whitespace();
    words.map(|word| word.parse().unwrap_or(0.0)).collect()
}

/// CPU seconds of a process and of its children that have ended.
fn cpu(pid: u32) -> f64 {
    let stat = stat(pid);
    let times = stat.get(11..15).unwrap_or_default();
    times.iter().sum::<f64>() / TICKS
}

/// The processes whose parent is that one.
fn children(pid: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |child: &u32| stat(*child).get(1) == Some(&f64::from(pid));
    pids.filter(is_child).collect()
}

/// Peak memory in MiB.
fn memory(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut lines = status.lines();
    let peak = lines.find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak: f64 = peak.split_whitespace().next()?.parse().ok()?;
    Some(peak / 1024.0)
}

/// A page that is open until the manager is gone.
fn open_page(manager: String) {
    let document = manager.replace("/mcp", "/league.json");
    thread::spawn(move || {
        while support::connect(&manager, LOOK).is_ok() {
            support::http("GET", &document, "", b"");
            thread::park_timeout(LOOK);
        }
    });
}

/// Plays a league. Returns its figures.
fn league((players, referees, pages): (usize, usize, usize)) -> [(&'static str, f64); 9] {
    let test = TestLeague::new("");
    let arguments = format!("local --fresh --players {players} --referees {referees} --stay");
    let manager = test.manager(&arguments);
    let pid = manager.child.id();
    manager.line("Round 1 of");
    (0..pages).for_each(|_| open_page(manager.url()));
    let processes = children(pid);
    let before = cpu(pid) + processes.iter().map(|pid| cpu(*pid)).sum::<f64>();
    let is_player = |pid: &&u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name == "league\n") // `league play`
    };
    let player = *processes.iter().find(is_player).unwrap();
    let mut player_mib = 0.0;
    support::until_within(170, "the league is over", || {
        player_mib = memory(player).unwrap_or(player_mib);
        let is_gone = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists();
        processes.iter().all(is_gone).then_some(())
    });
    let used = cpu(pid) - before; // the children have ended: their time is ours now
    let (code, text) = test.run_tool("verify");
    assert_eq!(code, Some(0), "{text}");
    let logs = test.logs();
    // When each line of that kind was written, in order.
    let times = |event: &str, name: &str| {
        let wanted = |line: &&Value| line["event_type"] == event && line["message_type"] == name;
        let written = |line: &Value| Timestamp::parse(text_of(&line["timestamp"])).unwrap();
        let mut all: Vec<Timestamp> = logs.iter().filter(wanted).map(written).collect();
        all.sort();
        all
    };
    let reports = times("message_received", "MATCH_RESULT_REPORT");
    let first = times("message_sent", "ROUND_ANNOUNCEMENT")[0];
    let last = *times("message_sent", "LEAGUE_COMPLETED").last().unwrap();
    let matches = (players * (players - 1) / 2) as f64;
    let seconds = last.abs_diff(first).as_secs_f64();
    let some = reports.len().min(100);
    let span = |part: &[Timestamp]| part[some - 1].abs_diff(part[0]).as_secs_f64();
    let last_to_first = span(&reports[reports.len() - some..]) / span(&reports).max(0.001);
    [
        ("players", players as f64),
        ("pages_open", pages as f64),
        ("matches", matches),
        ("seconds", seconds),
        ("matches_per_second", matches / seconds),
        ("cpu_ms_per_match", used * 1000.0 / matches),
        ("manager_mib", memory(pid).unwrap_or_default()),
        ("player_mib", player_mib),
        ("last_to_first", last_to_first),
    ]
}

#[test]
#[ignore = "takes minutes; `make bench` runs it"]
fn bench() {
    let leagues = SIZES.map(league);
    for (row, (name, _)) in leagues[0].iter().enumerate() {
        let round = |value: f64| (value * 100.0).round() / 100.0;
        let cells = leagues.map(|league| format!("{:>9}", round(league[row].1)));
        println!("{name:<20}{}", cells.concat());
    }
    let [_, twenty, _, hundred, watched] = leagues.map(BTreeMap::from);
    let cpu = hundred["cpu_ms_per_match"] / twenty["cpu_ms_per_match"];
    let pages = watched["matches_per_second"] / hundred["matches_per_second"];
    for (what, ratio) in [
        ("CPU per match, 100 players against 20", cpu),
        (
            "matches per second with ten pages open against none, 100 players",
            pages,
        ),
        (
            "last hundred matches against first hundred, 100 players",
            hundred["last_to_first"],
        ),
    ] {
        println!("{ratio:>6.2}  {what}");
    }
}
