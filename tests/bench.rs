//! How fast leagues are and what they cost: `make bench` (`make bench JSON=1` for machines). Release build, real
//! processes. Figures depend on the machine; the ratios at the end do not.
//!
//! The floor is requests and answers of the same size over bare TCP, between as many processes as the league has: a new
//! connection for each, and a new thread at both ends. What a request cannot do without, when each is made and answered
//! by a thread of its own.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{fs, thread, time::Duration};
use support::{World, files};

/// Players, referees, and how many look at the page meanwhile.
const SIZES: [(usize, usize, usize); 5] =
    [(4, 2, 0), (20, 2, 0), (50, 4, 0), (100, 8, 0), (100, 8, 10)];
/// How often an open page asks what is new.
const LOOK: Duration = Duration::from_secs(1);
/// Bytes of a typical request and its answer, headers included.
const PAIR: (usize, usize) = (750, 550);
/// How many requests a process asks for the floor, and how many at once.
const ASKED: usize = 4000;
const AT_ONCE: usize = 4;
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

/// Peak memory in MiB, and whether the process is a player.
fn memory(pid: u32) -> Option<(bool, f64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut lines = status.lines();
    let peak = lines.find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak: f64 = peak.split_whitespace().next()?.parse().ok()?;
    Some((status.starts_with("Name:\tplayer"), peak / 1024.0))
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> f64 {
    let length = |file: &PathBuf| Some(fs::metadata(file).ok()?.len() as f64);
    files(folder).iter().filter_map(length).sum()
}

/// Milliseconds of the day at which a log line was written.
fn time_of(line: &Value) -> f64 {
    let text = line["timestamp"].as_str().unwrap_or_default();
    let part = |from: usize, to: usize| text[from..to].parse::<f64>().unwrap_or(0.0);
    part(11, 13) * 3.6e6 + part(14, 16) * 6e4 + part(17, 23) * 1e3
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

/// One league: what it took.
fn league((players, referees, pages): (usize, usize, usize)) -> BTreeMap<&'static str, f64> {
    let world = World::new(&[]);
    let arguments = format!("local --fresh --players {players} --referees {referees} --stay");
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let manager = world.start("league_manager", &arguments);
    let pid = manager.child.id();
    manager.line("Round 1 of");
    (0..pages).for_each(|_| open_page(manager.url()));
    let processes = children(pid);
    let before = cpu(pid) + processes.iter().map(|pid| cpu(*pid)).sum::<f64>();
    let mut peaks = BTreeMap::new();
    support::until_within(170, "the league is over", || {
        let now = processes
            .iter()
            .filter_map(|pid| Some((*pid, memory(*pid)?)));
        peaks.extend(now);
        let is_gone = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists();
        processes.iter().all(is_gone).then_some(())
    });
    let used = cpu(pid) - before; // the children have ended: their time is ours now
    let own = memory(pid).map_or(0.0, |(_, peak)| peak);
    let players_peaks = peaks.values().filter(|(is_player, _)| *is_player);
    let player: Vec<f64> = players_peaks.map(|(_, peak)| *peak).collect();
    let logs = world.logs();
    let of_type = |event: &str, name: &str| -> Vec<f64> {
        let wanted = |line: &&Value| line["event_type"] == event && line["message_type"] == name;
        logs.iter().filter(wanted).map(time_of).collect()
    };
    let mut reports = of_type("message_received", "MATCH_RESULT_REPORT");
    reports.sort_by(f64::total_cmp);
    let first = of_type("message_sent", "ROUND_ANNOUNCEMENT");
    let first = first.into_iter().fold(f64::MAX, f64::min);
    let last = of_type("message_sent", "LEAGUE_COMPLETED");
    let last = last.into_iter().fold(0.0, f64::max);
    let is_request = |line: &&Value| line["event_type"] == "message_received";
    let requests = logs.iter().filter(is_request).count() as f64;
    let matches = (players * (players - 1) / 2) as f64;
    let seconds = (last - first) / 1000.0;
    let some = reports.len().clamp(2, 100);
    let span = |part: &[f64]| part.last().unwrap_or(&0.0) - part.first().unwrap_or(&0.0);
    let kb = |folder: &str| size(&world.folder.join(folder)) / matches / 1000.0;
    let last_to_first = span(&reports[reports.len() - some..]) / span(&reports[..some]).max(1.0);
    BTreeMap::from([
        ("players", players as f64),
        ("pages_open", pages as f64),
        ("matches", matches),
        ("seconds", seconds),
        ("matches_per_second", matches / seconds),
        ("cpu_ms_per_match", used * 1000.0 / matches),
        ("requests_per_match", requests / matches),
        ("cpu_us_per_request", used * 1e6 / requests),
        ("manager_mib", own),
        (
            "player_mib",
            player.iter().sum::<f64>() / player.len().max(1) as f64,
        ),
        ("log_kb_per_match", kb("logs")),
        ("data_kb_per_match", kb("data")),
        ("last_to_first", last_to_first),
    ])
}

/// Another process of this test: `role` is `answer`, or the ports to ask, by blanks.
fn process(role: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", "bench"]);
    command.env("LEAGUE_BENCH_ROLE", role);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// Answers over bare TCP, each in a thread of its own.
fn answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("\nport {}", listener.local_addr().unwrap().port());
    for mut stream in listener.incoming().flatten() {
        thread::spawn(move || {
            let _ = stream.read_exact(&mut [0; PAIR.0]);
            let _ = stream.write_all(&[b'a'; PAIR.1]);
        });
    }
}

/// Asks one after the other, several at a time, each in a thread of its own.
fn ask(ports: &[u16]) {
    let ask = |port: u16| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(&[b'r'; PAIR.0]).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    };
    thread::scope(|scope| {
        for first in 0..AT_ONCE {
            let ports = ports.iter().cycle().skip(first * 7).copied();
            let ports = ports.take(ASKED / AT_ONCE);
            scope.spawn(move || {
                ports.for_each(|port| thread::spawn(move || ask(port)).join().unwrap())
            });
        }
    });
}

/// Microseconds of CPU of a request and its answer, between as many processes as the league has.
fn floor((players, referees, _): (usize, usize, usize)) -> f64 {
    let before = cpu(std::process::id());
    let mut servers: Vec<Child> = (0..players).map(|_| process("answer")).collect();
    let port = |server: &mut Child| {
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| line.unwrap().strip_prefix("port ").map(String::from));
        port.unwrap()
    };
    let ports: Vec<String> = servers.iter_mut().map(port).collect();
    let clients: Vec<Child> = (0..=referees).map(|_| process(&ports.join(" "))).collect();
    let asked = (clients.len() * ASKED) as f64;
    for client in clients {
        assert!(client.wait_with_output().unwrap().status.success());
    }
    for server in &mut servers {
        let _ = server.kill().and_then(|()| server.wait());
    }
    (cpu(std::process::id()) - before) * 1e6 / asked
}

#[test]
#[ignore = "takes minutes; `make bench` runs it"]
fn bench() {
    match std::env::var("LEAGUE_BENCH_ROLE") {
        Ok(role) if role == "answer" => return answer(),
        Ok(ports) => {
            let ports = ports.split(' ').map(|port| port.parse().unwrap());
            return ask(&ports.collect::<Vec<_>>());
        }
        Err(_) => {}
    }
    let leagues = SIZES.map(|size| {
        let mut figures = league(size);
        figures.insert("floor_us", floor(size));
        figures
    });
    let [_, twenty, _, hundred, watched] = &leagues;
    let floor = |league: &BTreeMap<&str, f64>| league["cpu_us_per_request"] / league["floor_us"];
    let against =
        |one: &BTreeMap<&str, f64>, other: &BTreeMap<&str, f64>, key| one[key] / other[key];
    let ratios = [
        (
            "CPU per request against the floor, 20 players",
            floor(twenty),
        ),
        (
            "CPU per request against the floor, 100 players",
            floor(hundred),
        ),
        (
            "CPU per match, 100 players against 20",
            against(hundred, twenty, "cpu_ms_per_match"),
        ),
        (
            "matches per second with ten pages open against none, 100 players",
            against(watched, hundred, "matches_per_second"),
        ),
        (
            "last hundred matches against first hundred, 100 players",
            hundred["last_to_first"],
        ),
    ];
    if std::env::var("JSON").is_ok_and(|wanted| !wanted.is_empty()) {
        let ratios: BTreeMap<&str, f64> = ratios.into();
        return println!("{}", json!({"leagues": leagues, "ratios": ratios}));
    }
    let rows = "players 0, pages_open 0, matches 0, seconds 2, matches_per_second 0, cpu_ms_per_match 1, \
                requests_per_match 1, cpu_us_per_request 0, floor_us 0, manager_mib 1, player_mib 1, \
                log_kb_per_match 1, data_kb_per_match 1";
    for row in rows.split(", ") {
        let (key, digits) = row.split_once(' ').unwrap();
        let digits: usize = digits.parse().unwrap();
        let cells = leagues
            .each_ref()
            .map(|league| format!("{:>9.digits$}", league[key]));
        println!("{:<22}{}", key.replace('_', " "), cells.join(""));
    }
    println!();
    for (what, ratio) in ratios {
        println!("{ratio:>6.2}  {what}");
    }
}
