//! The speed and the cost of leagues: `make bench`. Release build, real processes, Linux.
//! Figures depend on the machine and on what else it does; the ratios below the table hardly do.

mod support;

use league::system::PYTHON;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};
use support::TestLeague;

/// Players, referees, and the number of open pages.
const SIZES: [(usize, usize, usize); 5] = [
    (4, 2, 0),
    (20, 4, 0),
    (50, 4, 0),
    (100, 10, 0),
    (100, 10, 10),
];
/// Interval between two requests of an open page.
const PAGE_INTERVAL: Duration = Duration::from_secs(1);
/// Clock ticks of /proc in a second.
const TICKS: f64 = 100.0;
/// Number of comparisons of each pair of players.
const COMPARISONS: usize = 50;
/// Number of alternations of leagues and bare exchanges.
const ALTERNATIONS: usize = 9;
/// The environment variable with the port of the bare server.
const BARE_PORT: &str = "LEAGUE_BENCH_PORT";
/// Sizes of a usual request and of its reply, in bytes.
const BARE_SIZES: [usize; 2] = [700, 600];
/// Number of requests that are sent, and answered, at a time.
const BARE_THREADS: usize = 4;

/// The cost of a league.
struct Cost {
    matches: usize,
    seconds: f64,
    cpu: f64,
    manager_mib: f64,
    exchanges: usize,
}

/// Returns the CPU seconds of this process, and those of its children that have ended.
fn cpu() -> [f64; 2] {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<f64> = (fields.split(' ').skip(11).take(4))
        .map(|ticks| ticks.parse::<f64>().unwrap() / TICKS)
        .collect();
    [fields[0] + fields[1], fields[2] + fields[3]]
}

/// Returns the memory that a process shares with no other and has written to, in MiB.
fn private_dirty_mib(pid: u32) -> f64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let mut words = rollup.split_whitespace();
    words.find(|word| *word == "Private_Dirty:").unwrap();
    words.next().unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Asks for what is new until the manager is gone, as an open page does.
fn open_page(manager: String) {
    let document = manager.replace("/mcp", "/league.json");
    thread::spawn(move || {
        while support::connect(&manager, PAGE_INTERVAL).is_ok() {
            support::http("GET", &document, "", b"");
            thread::park_timeout(PAGE_INTERVAL);
        }
    });
}

/// Plays a league. The time is that from the line of the start in the journal to the last result,
/// the CPU time that of all processes from their start to their end.
fn league(cycles: usize, (players, referees, pages): (usize, usize, usize)) -> Cost {
    let test = TestLeague::new(&format!("league scheduling.cycles={cycles}"));
    let matches = cycles * players * (players - 1) / 2;
    let [_, before] = cpu();
    let options = format!("local --fresh --players {players} --referees {referees}");
    let mut manager = test.manager(&options);
    (0..pages).for_each(|_| open_page(manager.url()));

    // Read the journal while it is written.
    let path = test.league_file("journal.jsonl");
    let mut journal = BufReader::new(fs::File::open(path).unwrap());
    let (mut line, mut started, mut results) = (String::new(), None, 0);
    support::until_within(600, "all matches are recorded", || {
        while journal.read_line(&mut line).unwrap() > 0 {
            if !line.ends_with('\n') {
                break;
            }
            if line.contains(r#""event":"Started""#) {
                started = Some(Instant::now());
            }
            results += usize::from(line.contains(r#""event":"Recorded""#));
            line.clear();
        }
        (results == matches).then_some(())
    });
    let seconds = started.unwrap().elapsed().as_secs_f64();
    let manager_mib = private_dirty_mib(manager.child.id());

    manager.wait_for_success();
    let [_, after] = cpu();
    assert_eq!(test.technical_losses(), (matches, 0));
    Cost {
        matches,
        seconds,
        cpu: after - before,
        manager_mib,
        exchanges: test.logged("message_received").len(),
    }
}

/// Returns the CPU seconds of so many exchanges of this process with a bare server.
fn bare_exchanges(count: usize) -> f64 {
    let port = support::free_port();
    let before: f64 = cpu().iter().sum();
    let mut server = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "bare_server"])
        .env(BARE_PORT, port.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let url = format!("http://127.0.0.1:{port}/mcp");
    support::wait_until("the server listens", || {
        support::connect(&url, PAGE_INTERVAL).is_ok()
    });

    let config = ureq::Agent::config_builder().max_idle_connections(0);
    let agent = ureq::Agent::new_with_config(config.build());
    let body = "x".repeat(BARE_SIZES[0]);
    thread::scope(|scope| {
        for _ in 0..BARE_THREADS {
            scope.spawn(|| {
                for _ in 0..count / BARE_THREADS {
                    let request = agent.post(&url).header("Connection", "close");
                    let mut response = request.send(&body).unwrap();
                    let reply = response.body_mut().read_to_vec().unwrap();
                    assert_eq!(reply.len(), BARE_SIZES[1]);
                }
            });
        }
    });

    server.kill().unwrap();
    server.wait().unwrap();
    cpu().iter().sum::<f64>() - before
}

/// Answers requests until the bench ends it, or standard input is closed.
#[test]
#[ignore = "the bench starts it as a process of its own"]
fn bare_server() {
    let Ok(port) = env::var(BARE_PORT) else {
        return;
    };
    let server = tiny_http::Server::http(format!("127.0.0.1:{port}")).unwrap();
    let reply = "x".repeat(BARE_SIZES[1]);
    thread::scope(|scope| {
        for _ in 0..BARE_THREADS {
            scope.spawn(|| {
                for mut request in server.incoming_requests() {
                    let mut body = Vec::new();
                    request.as_reader().read_to_end(&mut body).unwrap();
                    let _ = request.respond(tiny_http::Response::from_string(&reply));
                }
            });
        }
        let _ = stdin().read_to_end(&mut Vec::new());
        process::exit(0);
    });
}

/// Returns the number of system calls of all processes of a league of 20 players, or `None` without
/// strace.
fn system_calls(cycles: usize) -> Option<f64> {
    let test = TestLeague::new(&format!("league scheduling.cycles={cycles}"));
    let wanted = test.command("league", "local --fresh --players 20 --referees 4 --port 0");
    let summary = test.folder.join("strace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-c", "-U", "calls,name", "-o"])
        .arg(&summary);
    command.arg(wanted.get_program()).args(wanted.get_args());
    command.stdin(Stdio::null()).output().ok()?;
    total(&summary)
}

/// Returns the sum in the last line of a summary of strace.
fn total(summary: &Path) -> Option<f64> {
    let text = fs::read_to_string(summary).ok()?;
    let line = text.lines().find(|line| line.ends_with(" total"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
#[ignore = "takes minutes; `make bench` runs it"]
fn bench() {
    println!("players  pages  matches/s  CPU ms a match  manager MiB");
    let mut costs = Vec::new();
    for (players, referees, pages) in SIZES {
        let cost = league(1, (players, referees, pages));
        let (rate, cpu) = (cost.matches as f64 / cost.seconds, cpu_ms_per_match(&cost));
        let memory = cost.manager_mib;
        println!("{players:>7}{pages:>7}{rate:>11.0}{cpu:>16.2}{memory:>13.1}");
        costs.push(cost);
    }
    let ratio = cpu_ms_per_match(&costs[3]) / cpu_ms_per_match(&costs[1]);
    println!("{ratio:>6.2}  CPU of a match, 100 players over 20");

    let mut ratios = Vec::new();
    let mut exchanges = Vec::new();
    for _ in 0..ALTERNATIONS {
        let cost = league(3, (20, 4, 0));
        ratios.push(cost.cpu / bare_exchanges(cost.exchanges));
        exchanges.push(cost.exchanges as f64 / cost.matches as f64);
    }
    for (values, name) in [
        (
            &mut ratios,
            "CPU of a match over that of as many bare exchanges, 20 players",
        ),
        (&mut exchanges, "exchanges a match, 20 players"),
    ] {
        values.sort_by(f64::total_cmp);
        let (median, last) = (values[ALTERNATIONS / 2], values[ALTERNATIONS - 1]);
        println!(
            "{median:>6.2}  {name} (median of {:.2} to {last:.2})",
            values[0]
        );
    }

    // The start of the processes is in both leagues.
    match (system_calls(1), system_calls(3)) {
        (Some(one), Some(three)) => {
            println!(
                "{:>6.0}  system calls a match, 20 players",
                (three - one) / 380.0
            );
        }
        _ => println!("        system calls a match: left out, since strace is not installed"),
    }
}

fn cpu_ms_per_match(cost: &Cost) -> f64 {
    cost.cpu * 1000.0 / cost.matches as f64
}

/// A player of the README: an opponent that chose the same move twice will choose it again.
const EVE: &str = r#"if turn.theirs[-2:] == ["even", "even"]:
        return "odd"
    if turn.theirs[-2:] == ["odd", "odd"]:
        return "even"
    return random.choice(turn.legal_moves)
"#;

/// Compares players with themselves, and one with a coin. Prints how often the new one was better,
/// and the matches that an answer took.
#[test]
#[ignore = "takes half an hour; `make bench` runs it"]
fn comparisons() {
    let bin = Path::new(env!("CARGO_MANIFEST_DIR")).join("bin");
    let template = fs::read_to_string(bin.join("player.py")).unwrap();
    let test = TestLeague::new("");
    let eve = test.folder.join("eve.py");
    fs::copy(
        bin.join("league_player.py"),
        test.folder.join("league_player.py"),
    )
    .unwrap();
    let choose = "return random.choice(turn.legal_moves)\n";
    fs::write(&eve, template.replace(choose, EVE)).unwrap();
    let eve = format!("{} {}", PYTHON, eve.display());

    println!("new        old        better  not better  matches of an answer");
    let cases = [
        ["even", "even"],
        ["odd", "odd"],
        ["pattern", "pattern"],
        [&eve, &eve],
        [&eve, "random"],
    ];
    for [new, old] in cases {
        let mut answers = [0, 0];
        let mut matches = Vec::new();
        for seed in 1..=COMPARISONS {
            let mut command = test.command("league", &format!("local --port 0 --seed {seed}"));
            let output = command.args(["--new", new, "--old", old]).output().unwrap();
            let output = String::from_utf8(output.stdout).unwrap();
            let end = output
                .find(" matches).")
                .unwrap_or_else(|| panic!("{output}"));
            let count = output[..end].rsplit(' ').next().unwrap();
            matches.push(count.parse::<u32>().unwrap());
            answers[0] += usize::from(output.contains(" is better than "));
            answers[1] += usize::from(output.contains(" is not better than "));
        }
        matches.sort_unstable();
        let [new, old] = [new, old].map(|command| command.rsplit('/').next().unwrap());
        let (median, last) = (matches[COMPARISONS / 2], matches[COMPARISONS - 1]);
        let [better, not_better] = answers;
        println!("{new:<11}{old:<11}{better:>6}{not_better:>12}{median:>12}, at most {last}");
    }
}
