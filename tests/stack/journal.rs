//! The journal: a league is resumed from a journal that is cut anywhere, and ends alike. Damage,
//! journals of other versions and `--fresh` lose no event. Of many decisions at the same time one
//! counts.

use super::support::offline::{
    self, Caller, assignment, at, caller, local, meta, result_event, rules, seeded,
};
use super::support::offline_league::OfflineLeague;
use super::support::{
    TestLeague, check_contains, files, json_of, open_again, register_player, with_manager,
};
use league::manager::journal::Store;
use league::manager::league::{Event, League};
use league::program::config::Config;
use league::program::storage;
use league::protocol::Standing;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::{fs, io, thread, time::Duration};

/// The first line.
const HEAD: &str = "{\"journal_version\":6}\n";

/// Returns the folder of the league below a data folder.
fn folder(data: &Path) -> PathBuf {
    data.join("leagues").join(rules().league.league_id)
}

/// Returns the bytes of the journal below a data folder.
fn journal(data: &Path) -> Vec<u8> {
    fs::read(folder(data).join("journal.jsonl")).unwrap()
}

/// Writes a journal below a data folder.
fn write_journal(data: &Path, bytes: &[u8]) {
    fs::create_dir_all(folder(data)).unwrap();
    fs::write(folder(data).join("journal.jsonl"), bytes).unwrap();
}

/// Returns the journals that were archived below a data folder.
fn archived(data: &Path) -> Vec<Vec<u8>> {
    let mut all = files(&data.join("leagues"));
    all.retain(|path| !path.starts_with(folder(data)) && path.ends_with("journal.jsonl"));
    all.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Opens the league as a manager does. Returns true if it is resumed.
fn open(data: &Path, fresh: bool) -> io::Result<(Store, bool)> {
    let store = open_again(|| Store::open(data, rules(), fresh, false))?;
    let is_resumed = store.read(|league| league.version > 0);
    Ok((store, is_resumed))
}

fn decide(store: &Store, decide: impl FnOnce(&League) -> Option<Event>) {
    let decided = store.commit(|league| Ok::<_, io::Error>((decide(league), ())));
    decided.unwrap();
}

/// Registers an agent for the first time, or again with its token, at this hour and port, except if
/// it has done so already.
fn register(store: &Store, id: &str, again: bool, hour: u64, port: u32) {
    let kind = ["player", "referee"][usize::from(id.starts_with('R'))];
    let from = Caller {
        token: again.then(|| format!("tok-{}-first", id.to_lowercase())),
        now: at("10:00:00").plus(Duration::from_secs(3600 * hour)),
        ..caller(&format!("{kind}:{id}"))
    };
    decide(store, |league| {
        let known = league.members.get(id);
        if known.is_some_and(|known| known.registered_at >= from.now) {
            return None;
        }
        let (event, admission) = offline::register(league, &meta(from.kind, &local(port)), &from);
        assert_eq!(admission.unwrap().id, id);
        event
    });
}

/// Plays the rest of the league; referees report old results again. Before the start a player moves;
/// in round 2 one referee moves and the other is lost; in round 3 the token of a player has expired.
fn play_on(store: &Store) {
    for n in 1..=2 {
        register(store, &format!("REF0{n}"), false, 0, 8000 + n);
    }
    for n in 1..=4 {
        register(store, &format!("P0{n}"), false, 0, 8100 + n);
    }
    register(store, "P02", true, 1, 9002);
    decide(store, |league| {
        league.start_event(Some(7), league.pairings())
    });
    let both = ["REF01".to_string(), "REF02".to_string()];
    for round in 1..=3 {
        decide(store, |league| assignment(league, round, &both));
        match round {
            2 => {
                register(store, "REF02", true, 1, 9003);
                decide(store, |league| assignment(league, round, &both[1..]));
            }
            3 => register(store, "P03", true, 24, 8103),
            _ => {}
        }
        for n in [1, 1, 2, 2] {
            report(store, &format!("R{round}M{n}"));
        }
    }
    decide(store, |league| (!league.closed).then_some(Event::Closed));
}

/// Reports a match. If it is recorded already, there is no event.
fn report(store: &Store, match_id: &str) {
    decide(store, |league| {
        let game = league.find(match_id).unwrap();
        let event = result_event(league, match_id, &seeded(7, game));
        assert_eq!(event.is_none(), game.recorded.is_some(), "{match_id}");
        event
    });
}

fn table_of(store: &Store) -> Vec<Standing> {
    store.read(|league| league.table())
}

/// Plays a whole league. Returns its journal and its table.
fn finished(data: &Path) -> (Vec<u8>, Vec<Standing>) {
    let (store, is_resumed) = open(data, false).unwrap();
    assert!(!is_resumed);
    play_on(&store);
    (journal(data), table_of(&store))
}

#[test]
fn league_resumes_from_a_journal_cut_anywhere() {
    let test = TestLeague::new("");
    let (whole, table) = finished(&test.folder.join("whole"));
    let text = String::from_utf8(whole.clone()).unwrap();
    assert!(text.starts_with(HEAD), "the first line: {text}");
    let counts = ["Registered", "Started", "Assigned", "Recorded", "Closed"]
        .map(|event| text.matches(&format!("\"event\":\"{event}\"")).count());
    assert_eq!(counts, [6 + 3, 1, 3 + 1, 6, 1], "a whole league: {text}");
    assert!(table.iter().all(|row| row.played == 3), "{table:?}");

    // Of each line one byte, a quarter, half, all but its end, and the whole of it; of one line
    // every byte.
    let (mut cuts, mut start) = (vec![0], 0);
    for line in text.split_inclusive('\n') {
        let length = line.len();
        let ends = [1, length / 4, length / 2, length - 1, length];
        cuts.extend(ends.map(|end| start + end));
        start += length;
    }
    let last = text.rfind("\"event\":\"Recorded").unwrap();
    cuts.extend(last..last + text[last..].find('\n').unwrap());
    for cut in cuts {
        let row = format!("cut at {cut}");
        let data = test.folder.join("cut");
        write_journal(&data, &whole[..cut]);
        let lines = text[..cut].rfind('\n').map_or(0, |end| end + 1);
        let lines = lines.max(HEAD.len());
        let (store, is_resumed) = open(&data, false).unwrap();
        let is_closed = cut == whole.len();
        assert_eq!(is_resumed, lines > HEAD.len() && !is_closed, "{row}");
        let left = if is_closed { HEAD } else { &text[..lines] };
        assert_eq!(journal(&data), left.as_bytes(), "{row}: whole lines");
        let expected = vec![whole.clone(); usize::from(is_closed)];
        assert_eq!(archived(&data), expected, "{row}: archived if closed");
        play_on(&store);
        assert!(journal(&data) == whole, "{row}: the same events");
        assert_eq!(table_of(&store), table, "{row}");
        drop(store);
        fs::remove_dir_all(data).unwrap();
    }
}

#[test]
fn damaged_journal_is_refused_with_its_line() {
    let test = TestLeague::new("");
    let (whole, _) = finished(&test.folder.join("whole"));
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let mut rows: Vec<(&[u8], usize, &str)> = Vec::new();
    let damaged: [&[u8]; 8] = [
        br#"{"event":"Exploded"}"#,
        br#"{"event":"Recorded","match_id":"#,
        br#"{"event":"Closed"}{"event":"Closed"}"#,
        br#"{"match_id":"R1M1"}"#,
        br#"{"event":"Recorded","match_id":"R1M1"}"#,
        b"7",
        b"{\"event\":\"Cl\xff\"}",
        &[0; 4],
    ];
    for line in damaged {
        rows.push((line, lines.len() / 2, "is damaged ("));
        rows.push((line, lines.len(), "is damaged ("));
    }
    // The first line names the version of the journal. No older version had such a line.
    for line in [
        r#"{"journal_version":2}"#,
        r#"{"journal_version":5}"#,
        r#"{"event":"Closed"}"#,
        "7",
    ] {
        let words = "is not of this program's version, 6";
        rows.push((line.as_bytes(), 0, words));
    }
    rows.push((b"{", 0, "is damaged ("));
    for (line, at, words) in rows {
        let row = format!("{:?} as line {}", String::from_utf8_lossy(line), at + 1);
        let data = test.folder.join("damaged");
        let after = lines.get(at + 1..).unwrap_or_default();
        let bytes = [&lines[..at], &[line, b"\n"], after].concat().concat();
        write_journal(&data, &bytes);
        let error = open(&data, false).map(drop).unwrap_err().to_string();
        check_contains(&error, &format!("journal.jsonl: line {} {words}", at + 1));
        check_contains(&error, "--fresh");
        assert_eq!(error.lines().count(), 1, "{row}: {error}");
        assert_eq!(journal(&data), bytes, "{row}: unchanged");
        let (store, is_resumed) = open(&data, true).unwrap();
        assert!(!is_resumed, "{row}: a new league");
        assert_eq!(archived(&data), [bytes], "{row}: the old one is kept");
        drop(store);
        fs::remove_dir_all(data).unwrap();
    }
}

/// Returns the events of a league that is not closed, and its configuration.
fn events(game: &str, how: &str) -> (Vec<Event>, Config) {
    let mut script = OfflineLeague::new(rules());
    let league = format!("league players=4 capacities=2,2 game={game}");
    let rounds = [1, 2, 3].map(|n| format!("round {n} {how}"));
    let [one, two, three] = &rounds;
    for command in [
        &league,
        "start",
        one,
        "operator pause",
        "operator resume",
        two,
        "operator remove P04",
        "operator restore P04",
        three,
    ] {
        script.does(command);
    }
    let events = script.journal.lines().map(json_of).collect();
    (events, script.league.config)
}

#[test]
fn journal_with_a_line_too_many_too_few_or_moved_is_refused() {
    for (game, how) in [("even_odd", "drawn"), ("tic_tac_toe", "moves:14253")] {
        let test = TestLeague::new("");
        let (events, config) = events(game, how);
        let open = || open_again(|| Store::open(&test.folder, config.clone(), false, false));
        let store = open().unwrap();
        for event in &events {
            store.commit_event(|_| Some(event.clone())).unwrap();
        }
        let league = store.read(League::clone);
        drop(store);
        let whole = String::from_utf8(journal(&test.folder)).unwrap();
        let lines: Vec<&str> = whole.split_inclusive('\n').collect();
        let last = lines.len() - 1;
        assert_eq!((last, league.played.len()), (events.len(), 6), "{game}");

        // What is done to each line, and what is said of which line.
        let mut ways = Vec::new();
        for n in 0..=last {
            let number =
                |line: usize, number: usize| format!("line {line} has the number {number}: ");
            let version = "line 1 is not of this program's version, 6; ";
            let mut left_out = lines.clone();
            left_out.remove(n);
            ways.push((
                left_out,
                match n {
                    0 => version.into(),
                    _ if n == last => String::new(), // as if it had not happened yet
                    _ => number(n + 1, n + 2),
                },
            ));
            let mut doubled = lines.clone();
            doubled.insert(n, lines[n]);
            ways.push((
                doubled,
                match n {
                    0 => "line 2 is damaged (".into(),
                    _ => number(n + 2, n + 1),
                },
            ));
            if n < last {
                let mut exchanged = lines.clone();
                exchanged.swap(n, n + 1);
                ways.push((
                    exchanged,
                    match n {
                        0 => version.into(),
                        _ => number(n + 1, n + 2),
                    },
                ));
            }
        }
        let count = ways.len();
        for (lines, says) in ways {
            write_journal(&test.folder, lines.concat().as_bytes());
            match open() {
                Ok(store) => {
                    assert_eq!(says, "", "{game}: {lines:?}");
                    assert_eq!(
                        store.read(|league| league.version) as usize,
                        events.len() - 1
                    );
                }
                Err(error) => {
                    let error = error.to_string();
                    let is_said = !says.is_empty() && error.contains(&says);
                    assert!(is_said, "{error}, not {says}");
                    check_contains(&error, "or start with --fresh");
                    let left = journal(&test.folder);
                    assert_eq!(left, lines.concat().as_bytes(), "unchanged");
                }
            }
        }
        assert!(count >= 50, "{count} ways");

        // Blank lines are none.
        for blank in ["\n", "\r\n", "  \n\n"] {
            write_journal(&test.folder, format!("{whole}{blank}").as_bytes());
            let store = open().unwrap();
            assert!(store.read(|read| *read == league), "{game}: {blank:?}");
            store.commit_event(|_| Some(Event::Paused)).unwrap();
            drop(store);
            let version = open().unwrap().read(|league| league.version);
            assert_eq!(version, league.version + 1, "{blank:?}");
        }
    }
}

/// On a network drive a lock may do nothing.
#[test]
#[cfg_attr(windows, ignore = "a file that is in use cannot be removed there")]
fn second_writer_of_a_journal_is_noticed() {
    let (test, mut manager) = with_manager("");
    let lock = test.league_file("").with_extension("lock");
    fs::remove_file(test.folder.join(lock)).unwrap();
    let mut second = test.manager("");
    register_player(&second.url(), "P01", "http://127.0.0.1:1/mcp");
    assert_eq!(manager.wait().code(), Some(1));
    check_contains(
        &manager.errors(),
        "another program writes this file; end one of the two",
    );
    register_player(&second.url(), "P02", "http://127.0.0.1:2/mcp");
    second.kill();
    assert_eq!(test.count("Registered"), 2);
}

#[test]
fn fresh_and_closed_leagues_are_archived_whole() {
    let test = TestLeague::new("");
    let data = test.folder.join("data");
    drop(open(&data, true).unwrap());
    assert!(
        archived(&data).is_empty(),
        "an empty league is not archived"
    );
    let (whole, _) = finished(&data);
    let matches = data.join("matches").join(rules().league.league_id);
    for (n, fresh, is_killed) in [(1, false, false), (2, true, false), (3, false, true)] {
        fs::create_dir_all(&matches).unwrap();
        fs::write(matches.join("R1M1.json"), "{}").unwrap();
        if is_killed {
            storage::archive(&matches).unwrap(); // the journal would have been next
        }
        let (store, is_resumed) = open(&data, fresh).unwrap();
        assert!(!is_resumed, "a closed league is not resumed");
        // Every league is kept with its match files, also those of the same second.
        assert_eq!(archived(&data), vec![whole.clone(); n]);
        assert!(!matches.exists());
        assert_eq!(files(&data.join("matches")).len(), n);
        play_on(&store);
    }
}

#[test]
fn simultaneous_decisions_are_recorded_once() {
    let test = TestLeague::new("");
    let data = test.folder.join("data");
    let store = open(&data, false).unwrap().0;
    let start = Barrier::new(8);
    for n in 1..=3 {
        let register = || {
            start.wait();
            register(&store, &format!("P0{n}"), false, 0, 8100 + n);
        };
        thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(register))));
    }
    let lines = String::from_utf8(journal(&data)).unwrap();
    assert_eq!(lines.lines().count(), 1 + 3);
}
