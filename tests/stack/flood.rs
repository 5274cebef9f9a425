//! A league under attack: hundreds of half-open connections, claims of bodies that no machine can
//! hold, endless headers, and programs that have no descriptor left. Whatever comes, the league is
//! played to its end, and nobody loses by it.

use super::support::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Long enough to see that nobody answers.
const SILENCE: Duration = Duration::from_millis(300);

/// NoArguments, half a line, half a body.
const HALF_OPEN: [&str; 3] = [
    "",
    "PO",
    "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{",
];

/// So many connections on which these bytes were sent, or at least half: whoever takes its own
/// place resets some.
fn flood(url: &str, count: usize, bytes: &[&str]) -> Vec<TcpStream> {
    let open = |n: usize| {
        let mut stream = until("it listens", || connect(url, SILENCE).ok());
        let sent = stream.write_all(bytes[n % bytes.len()].as_bytes());
        sent.is_ok().then_some(stream)
    };
    let open: Vec<TcpStream> = (0..count).filter_map(open).collect();
    assert!(2 * open.len() >= count, "{} of {count} got in", open.len());
    open
}

#[test]
fn half_open_connections_do_not_delay_a_league() {
    let (test, mut manager) = with_manager("--players 4 --referees 2");
    // Half a body keeps an ending agent for its farewell, so not the manager.
    let _manager = flood(&manager.url(), 100, &HALF_OPEN[..2]);
    let referees = ["REF01", "REF02"].map(|id| test.agent(&manager, id, ""));
    let players = ["P01", "P02", "P03"].map(|id| test.agent(&manager, id, ""));
    let agents = referees.iter().chain(&players);
    let _agents: Vec<_> = agents
        .map(|item| flood(&item.url(), 40, &HALF_OPEN))
        .collect();
    let _last = test.agent(&manager, "P04", "");
    manager.wait_for_success();
    assert_eq!(test.technical_losses(), (6, 0));
    assert_eq!(test.logged("fault"), [] as [Value; 0]);
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux tells a process what it holds"
)]
fn large_content_lengths_take_no_memory() {
    let test = TestLeague::new("system limits.max_message_bytes=2000");
    let manager = test.manager("");
    let url = manager.url();
    let of_process = format!("/proc/{}", manager.child.id());
    let descriptors = || fs::read_dir(format!("{of_process}/fd")).unwrap().count();
    let status = |length| http("POST", &url, "", format!("{:length$}", "{}").as_bytes()).0;
    assert_eq!([2000, 2001].map(status), [200, 413]);
    let claim = |bytes: u64, count| {
        let head = format!("POST /mcp HTTP/1.1\r\nContent-Length: {bytes}\r\n\r\n{{");
        flood(&url, count, &[&head])
    };
    // The second are claims that the allocator would take from its heap, and touch: 3 GB.
    for bytes in [200 << 20, 30 << 20] {
        let large = claim(bytes, 100);
        wait_until("all are held", || descriptors() >= 200);
        let memory = fs::read_to_string(format!("{of_process}/status")).unwrap();
        let resident = memory.split_once("VmRSS:").unwrap().1;
        let kilobytes = resident.split_whitespace().next().unwrap();
        assert!(kilobytes.parse::<u64>().unwrap() < 500_000, "{memory}");
        drop(large);
        wait_until("all are let go", || descriptors() < 40);
    }
    drop(claim(1 << 40, 2));
    assert_eq!(status(60), 200);
}

/// What a program says of itself; null if no answer comes within a moment.
fn health(url: &str) -> Value {
    let Ok(mut stream) = connect(url, SILENCE) else {
        return Value::Null;
    };
    let _ = stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let (status, body) = split_response(&answer);
    if status == 200 {
        json_of(&body)
    } else {
        Value::Null
    }
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux tells a process what it holds"
)]
fn program_without_descriptors_restarts_and_answers() {
    let test = TestLeague::new("");
    let manager = test.manager("").url();
    // An even number and an odd one: the accept thread of tiny_http ends with an error, or panics.
    let rows = [40, 41].into_iter().flat_map(|descriptors| {
        ["league_manager", "referee", "player"].map(|item| (descriptors, item))
    });
    thread::scope(|scope| {
        for (descriptors, program) in rows {
            let (test, manager) = (TestLeague::new(""), &manager);
            scope.spawn(move || {
                let arguments = match program {
                    "league_manager" => String::new(),
                    _ => format!("--manager {manager}"),
                };
                let ulimit = format!("ulimit -n {descriptors}");
                let mut agent = test.start_limited(&ulimit, program, &arguments);
                let url = agent.url();
                let row = format!("{program} with {descriptors} descriptors");
                // Before, it mends itself as well as it can.
                wait_until(&format!("{row} is old enough"), || {
                    health(&url)["uptime"].as_u64().is_some_and(|age| age > 3)
                });
                let _flood = flood(&url, 60, &[""]);
                agent.wait_for_error("restarting the process");
                wait_until(&format!("{row} answers again"), || health(&url).is_object());
                assert!(agent.child.try_wait().unwrap().is_none(), "{row}");
            });
        }
    });
}

#[test]
#[cfg_attr(windows, ignore = "ulimit is a command of Unix")]
fn referee_without_descriptors_stores_its_credentials_when_it_has_one() {
    thread::scope(|scope| {
        for descriptors in [40, 41] {
            scope.spawn(move || {
                // All descriptors are taken while the manager has not answered the registration yet.
                let (test, gate) = (TestLeague::new(""), Gate::default());
                let manager = fake::manager_after(&gate);
                let arguments = format!("--manager {} --referee-id REF01", manager.url);
                let ulimit = format!("ulimit -n {descriptors}");
                let mut referee = test.start_limited(&ulimit, "referee", &arguments);
                manager.first("REFEREE_REGISTER_REQUEST");
                let _flood = flood(&referee.url(), 60, &[""]);
                let open = format!("/proc/{}/fd", referee.child.id());
                let open = || fs::read_dir(&open).unwrap().count();
                wait_until("it is full", || open() + 1 >= descriptors);
                gate.open();

                let file = test.folder.join("data/agents/REF01.json");
                wait_until("it has stored its token", || {
                    let end = referee.child.try_wait().unwrap();
                    assert_eq!(end, None, "{}", referee.errors());
                    fs::read_to_string(&file).is_ok_and(|text| text.contains(fake::TOKEN))
                });
            });
        }
    });
}

/// What is sent on each connection, on how many, and whether the attacker holds them.
const ATTACKS: [(&str, usize, bool); 5] = [
    ("PRI * HTTP/2.0\r\n\r\n", 700, false),
    (
        "POST /mcp HTTP/1.1\r\nContent-Length: 300000000\r\n\r\n{",
        700,
        false,
    ),
    (
        "POST /mcp HTTP/1.1\r\nContent-Length: 30000000\r\n\r\n{",
        700,
        false,
    ),
    ("POST /mcp HTTP/1.1\r\nHost: x\r\nA: ", 900, true),
    (
        "POST /mcp HTTP/1.1\r\nContent-Length: 5000\r\n\r\n{",
        900,
        true,
    ),
];

#[test]
#[cfg_attr(windows, ignore = "ulimit is a command of Unix")]
fn attacked_league_is_played_to_its_end() {
    thread::scope(|scope| {
        for (bytes, count, holds) in ATTACKS {
            scope.spawn(move || {
                let test = TestLeague::new("");
                let arguments = "--players 4";
                let mut manager = test.start_limited("ulimit -n 1024", "league_manager", arguments);
                let _referee = test.agent(&manager, "REF01", "");
                let _players = ["P01", "P02", "P03"].map(|id| test.agent(&manager, id, ""));
                let address = format!("127.0.0.1:{}", manager.port()).parse().unwrap();
                let mut held = Vec::new();
                for _ in 0..count {
                    // While the program restarting the process it accepts nobody.
                    let Ok(mut stream) = TcpStream::connect_timeout(&address, SILENCE) else {
                        continue;
                    };
                    let _ = stream.write_all(bytes.as_bytes());
                    if holds {
                        held.push(stream);
                    }
                }
                let _last = test.agent(&manager, "P04", "");
                manager.wait();
                assert_eq!(test.technical_losses(), (6, 0), "{bytes:?}");
            });
        }
    });
}

#[test]
#[ignore = "takes a gigabyte of memory: cargo test --test stack flood -- --ignored"]
fn endless_headers_do_not_stop_a_league() {
    let (test, mut manager) = with_manager("--players 2");
    let _referee = test.agent(&manager, "REF01", "");
    let _first = test.agent(&manager, "P01", "");
    let mut stream = connect(&manager.url(), TIME_LIMIT).unwrap();
    stream.write_all(b"POST /mcp HTTP/1.1\r\n").unwrap();
    let lines = "X: y\r\n".repeat(10_000);
    let written = (0..20_000).take_while(|_| stream.write_all(lines.as_bytes()).is_ok());
    assert!(
        written.count() < 20_000,
        "nobody stops a gigabyte of headers"
    );
    let output = manager.errors();
    check_contains(&output, "restarting the process");
    let _last = test.agent(&manager, "P02", "");
    manager.wait_for_success();
    assert_eq!(test.technical_losses(), (1, 0));
}

#[test]
fn silent_connections_are_closed() {
    let manager = TestLeague::new("").manager("");
    let half_a_body = HALF_OPEN[2].replace("5000", "50"); // of a longer one each piece is waited for
    thread::scope(|scope| {
        for part in [HALF_OPEN[0], HALF_OPEN[1], &half_a_body] {
            let url = manager.url();
            scope.spawn(move || {
                let started = Instant::now();
                let answer = raw(&url, part.as_bytes(), 2 * TIME_LIMIT);
                assert!(started.elapsed() < 2 * TIME_LIMIT, "{part:?}");
                assert!(split_response(&answer).0 != 200, "{part:?}");
            });
        }
    });
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux tells a process what it holds"
)]
fn flooded_referee_causes_no_technical_loss() {
    let (test, mut manager) = with_manager("--players 6");
    let arguments = format!("--manager {} --referee-id REF01", manager.url());
    let referee = test.start_limited("ulimit -n 40", "referee", &arguments);
    let _players = ["P01", "P02", "P03", "P04", "P05"].map(|id| test.agent(&manager, id, ""));
    // The last player's first choice lasts until the flood has come, and its second one until the
    // flood is over.
    let [come, over] = [(); 2].map(|()| Gate::default());
    let gates = [come.clone(), over.clone()];
    let last = FakeAgent::new(move |request| {
        let asked = &request["params"];
        if asked["message_type"] == "CHOOSE_PARITY_CALL" {
            gates[usize::from(asked["match_id"] != "R1M1")].pass();
        }
        valid_reply("P06", "even", request)
    });
    register_player(&manager.url(), "P06", &last.url);
    last.first("CHOOSE_PARITY_CALL");
    let _flood = flood(&referee.url(), 60, &[""]);
    come.open();
    // A match that could not be played comes back with the referee.
    referee.wait_for_error("restarting the process");
    over.open();
    manager.wait_for_success();
    assert_eq!(test.technical_losses(), (15, 0));
}
