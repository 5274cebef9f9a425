//! A league under attack: hundreds of half-open connections, lengths of bodies that no machine can
//! hold, endless headers, and programs without a free descriptor. The league is played to its end,
//! and no player loses a match by the attack.

use super::support::*;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// A program that sends nothing for this time does not respond.
const SILENCE: Duration = Duration::from_millis(300);

/// The bytes on a half-open connection: none, half a line, half a body.
const HALF_OPEN: [&str; 3] = [
    "",
    "PO",
    "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{",
];

/// Opens `count` connections and sends these bytes on them. Half of the connections may fail: a
/// program that restarts its process resets some.
fn flood(url: &str, count: usize, bytes: &[&str]) -> Vec<TcpStream> {
    let open = |n: usize| {
        let mut stream = until("the program listens", || connect(url, SILENCE).ok());
        let sent = stream.write_all(bytes[n % bytes.len()].as_bytes());
        sent.is_ok().then_some(stream)
    };
    let open: Vec<TcpStream> = (0..count).filter_map(open).collect();
    assert!(2 * open.len() >= count, "{} of {count}", open.len());
    open
}

/// Runs a test for each row, all at the same time.
fn in_parallel<Row: Send>(rows: impl IntoIterator<Item = Row>, test: impl Fn(Row) + Sync) {
    thread::scope(|scope| {
        for row in rows {
            scope.spawn(|| test(row));
        }
    });
}

#[test]
fn half_open_connections_do_not_delay_a_league() {
    let (test, mut manager) = with_manager("--players 4 --referees 2");
    // An agent that ends waits for the rest of a body, so the manager gets no half bodies.
    let _manager = flood(&manager.url(), 100, &HALF_OPEN[..2]);
    let agents = test.agents(&manager, "REF01 REF02 P01 P02 P03");
    let flood = |agent: &TestProcess| flood(&agent.url(), 40, &HALF_OPEN);
    let _agents: Vec<_> = agents.iter().map(flood).collect();
    let _last = test.agent(&manager, "P04", "");
    manager.wait_for_success();
    assert_eq!(test.technical_losses(), (6, 0));
    assert_eq!(test.logged("fault"), [] as [Value; 0]);
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux shows a process its descriptors"
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
        wait_until("all connections are open", || descriptors() >= 200);
        let memory = fs::read_to_string(format!("{of_process}/status")).unwrap();
        let resident = memory.split_once("VmRSS:").unwrap().1;
        let kilobytes = resident.split_whitespace().next().unwrap();
        assert!(kilobytes.parse::<u64>().unwrap() < 500_000, "{memory}");
        drop(large);
        wait_until("all connections are closed", || descriptors() < 40);
    }
    drop(claim(1 << 40, 2));
    assert_eq!(status(60), 200);
}

/// Returns the health page; null if no response comes within a moment.
fn health(url: &str) -> Value {
    let Ok(mut stream) = connect(url, SILENCE) else {
        return Value::Null;
    };
    let _ = stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    match split_response(&read_all(stream)) {
        (200, body) => json_of(&body),
        _ => Value::Null,
    }
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux shows a process its descriptors"
)]
fn program_without_descriptors_restarts_and_answers() {
    let manager = TestLeague::new("").manager("").url();
    // An even number and an odd one: the accept thread of tiny_http ends with an error, or panics.
    let rows = [40, 41].into_iter().flat_map(|descriptors| {
        ["league_manager", "referee", "player"].map(|program| (descriptors, program))
    });
    in_parallel(rows, |(descriptors, program)| {
        let arguments = match program {
            "league_manager" => String::new(),
            _ => format!("--manager {manager}"),
        };
        let (test, ulimit) = (TestLeague::new(""), format!("ulimit -n {descriptors}"));
        let mut agent = test.start_limited(&ulimit, program, &arguments);
        let url = agent.url();
        let row = format!("{program} with {descriptors} descriptors");
        // A younger process does not restart.
        wait_until(&format!("{row} is old enough"), || {
            health(&url)["uptime"].as_u64().is_some_and(|age| age > 3)
        });
        let _flood = flood(&url, 60, &[""]);
        agent.wait_for_error("restarting the process");
        wait_until(&format!("{row} responds"), || health(&url).is_object());
        assert!(agent.child.try_wait().unwrap().is_none(), "{row}");
    });
}

#[test]
#[cfg_attr(windows, ignore = "ulimit is a command of Unix")]
fn referee_without_descriptors_stores_its_credentials_when_it_has_one() {
    in_parallel([40, 41], |descriptors| {
        // All descriptors are taken before the manager has replied to the registration.
        let (test, gate) = (TestLeague::new(""), Gate::default());
        let manager = fake::manager_after(&gate);
        let arguments = format!("--manager {} --referee-id REF01", manager.url);
        let ulimit = format!("ulimit -n {descriptors}");
        let mut referee = test.start_limited(&ulimit, "referee", &arguments);
        manager.first("REFEREE_REGISTER_REQUEST");
        let _flood = flood(&referee.url(), 60, &[""]);
        let open = format!("/proc/{}/fd", referee.child.id());
        // On a slow machine the process may be old enough to restart.
        wait_until("all descriptors are taken, or the process restarts", || {
            let is_full = fs::read_dir(&open).unwrap().count() + 1 >= descriptors;
            is_full || referee.errors().contains("restarting the process")
        });
        gate.open();

        let file = test.folder.join("data/agents/REF01.json");
        wait_until("the referee has stored its token", || {
            let end = referee.child.try_wait().unwrap();
            assert_eq!(end, None, "{}", referee.errors());
            fs::read_to_string(&file).is_ok_and(|text| text.contains(fake::TOKEN))
        });
    });
}

/// The bytes on each connection, the number of connections, and whether the attacker keeps them.
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
    in_parallel(ATTACKS, |(bytes, count, is_kept)| {
        let test = TestLeague::new("");
        let mut manager = test.start_limited("ulimit -n 1024", "league_manager", "--players 4");
        let _agents = test.agents(&manager, "REF01 P01 P02 P03");
        let address = format!("127.0.0.1:{}", manager.port()).parse().unwrap();
        let mut kept = Vec::new();
        for _ in 0..count {
            // While the process restarts, it accepts no connection.
            let Ok(mut stream) = TcpStream::connect_timeout(&address, SILENCE) else {
                continue;
            };
            let _ = stream.write_all(bytes.as_bytes());
            if is_kept {
                kept.push(stream);
            }
        }
        let _last = test.agent(&manager, "P04", "");
        manager.wait();
        assert_eq!(test.technical_losses(), (6, 0), "{bytes:?}");
    });
}

#[test]
#[ignore = "takes a gigabyte of memory: cargo test --test stack flood -- --ignored"]
fn endless_headers_do_not_stop_a_league() {
    let (test, mut manager) = with_manager("--players 2");
    let _agents = test.agents(&manager, "REF01 P01");
    let mut stream = connect(&manager.url(), TIME_LIMIT).unwrap();
    stream.write_all(b"POST /mcp HTTP/1.1\r\n").unwrap();
    let lines = "X: y\r\n".repeat(10_000);
    let is_refused = (0..20_000).any(|_| stream.write_all(lines.as_bytes()).is_err());
    assert!(is_refused, "a gigabyte of headers is read");
    check_contains(&manager.errors(), "restarting the process");
    let _last = test.agent(&manager, "P02", "");
    manager.wait_for_success();
    assert_eq!(test.technical_losses(), (1, 0));
}

#[test]
fn silent_connections_are_closed() {
    let manager = TestLeague::new("").manager("");
    let url = manager.url();
    let half_a_body = HALF_OPEN[2].replace("5000", "50"); // a program waits longer for a long body
    in_parallel([HALF_OPEN[0], HALF_OPEN[1], &half_a_body], |bytes| {
        let started = Instant::now();
        let response = raw(&url, bytes.as_bytes(), 2 * TIME_LIMIT);
        assert!(started.elapsed() < 2 * TIME_LIMIT, "{bytes:?}");
        assert_ne!(split_response(&response).0, 200, "{bytes:?}");
    });
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux shows a process its descriptors"
)]
fn flooded_referee_causes_no_technical_loss() {
    let (test, mut manager) = with_manager("--players 6");
    let arguments = format!("--manager {} --referee-id REF01", manager.url());
    let referee = test.start_limited("ulimit -n 40", "referee", &arguments);
    let _players = test.agents(&manager, "P01 P02 P03 P04 P05");
    // The last player's first choice lasts until the flood has begun, and its second one until the
    // flood is over.
    let [begun, over] = [(); 2].map(|()| Gate::default());
    let gates = [begun.clone(), over.clone()];
    let last = FakeAgent::new(move |request| {
        let asked = &request["params"];
        if is_parity_call(asked) {
            gates[usize::from(asked["match_id"] != "R1M1")].pass();
        }
        valid_reply("P06", "even", request)
    });
    register_player(&manager.url(), "P06", &last.url);
    last.first("CHOOSE_PARITY_CALL");
    let _flood = flood(&referee.url(), 60, &[""]);
    begun.open();
    // A match that could not be played is played after the restart.
    referee.wait_for_error("restarting the process");
    over.open();
    manager.wait_for_success();
    assert_eq!(test.technical_losses(), (15, 0));
}
