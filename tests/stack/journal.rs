//! The journal: a league is resumed from a journal that is cut anywhere, and goes on alike. Damage,
//! journals of other versions and `--fresh` lose no event. Of many decisions at the same time one
//! counts.

use super::support::offline::OfflineLeague;
use super::support::{TestLeague, check_contains, files, json_of, open_again, print_no_errors};
use league::manager::journal::Store;
use league::manager::league::{Event, League};
use league::program::config::Config;
use league::program::storage;
use std::path::PathBuf;
use std::sync::Barrier;
use std::{fs, io, thread};

/// The first line.
const HEAD: &str = "{\"journal_version\":6}\n";

/// A whole league: before the start a player moves, in the second round the operator pauses it, and
/// then one referee moves and the other is lost; in the third one the token of a player has expired.
const LEAGUE: &str = "
wait 3600
register player at=9002 token=tok-p02-first display_name='Player 2'
start
round 1 HOW
operator pause
operator resume
assign 2 REF01 REF02
register referee at=9003 token=tok-ref02-first
assign 2 REF02
round 2 HOW
operator remove P04
operator restore P04
wait 86400
register player P03 at=8103 token=tok-p03-first display_name='Player 3'
round 3 HOW";

/// A data folder, and the events of a whole league that is written there.
struct Journal {
    test: TestLeague,
    config: Config,
    events: Vec<Event>,
    /// The lines of the whole journal.
    lines: Vec<String>,
}

impl Journal {
    /// Writes the journal of a league of this game, in which each match ends so.
    fn new(game: &str, how: &str) -> Journal {
        let mut league = OfflineLeague::new();
        league.run(&format!("league 4 2 2 game={game}"));
        for command in LEAGUE.trim().lines() {
            league.run(&command.replace("HOW", how));
        }
        let mut journal = Journal {
            test: TestLeague::new(""),
            config: league.league.config,
            events: league.journal.lines().map(json_of).collect(),
            lines: Vec::new(),
        };
        let (store, _) = journal.open(false).unwrap();
        journal.play_on(&store);
        let text = String::from_utf8(journal.read()).unwrap();
        journal.lines = text.split_inclusive('\n').map(String::from).collect();
        assert_eq!(journal.lines[0], HEAD);
        assert_eq!(journal.lines.len(), 1 + journal.events.len());
        journal
    }

    fn folder(&self) -> PathBuf {
        let league = &self.config.league.league_id;
        self.test.folder.join("data/leagues").join(league)
    }

    fn read(&self) -> Vec<u8> {
        fs::read(self.folder().join("journal.jsonl")).unwrap()
    }

    /// Writes a journal in place of all that is there.
    fn write(&self, bytes: &[u8]) {
        let _ = fs::remove_dir_all(self.test.folder.join("data"));
        fs::create_dir_all(self.folder()).unwrap();
        fs::write(self.folder().join("journal.jsonl"), bytes).unwrap();
    }

    /// Returns the journals that were archived.
    fn archived(&self) -> Vec<Vec<u8>> {
        let mut all = files(&self.test.folder.join("data/leagues"));
        all.retain(|path| !path.starts_with(self.folder()) && path.ends_with("journal.jsonl"));
        all.iter().map(|path| fs::read(path).unwrap()).collect()
    }

    /// Opens the league as a manager does. Returns the number of its events too.
    fn open(&self, fresh: bool) -> io::Result<(Store, usize)> {
        let data = self.test.folder.join("data");
        let store = open_again(|| Store::open(&data, self.config.clone(), fresh, false))?;
        let version = store.read(|league| league.version) as usize;
        Ok((store, version))
    }

    /// Returns the league after so many events.
    fn league_after(&self, count: usize) -> League {
        let mut league = League::new(self.config.clone());
        self.events[..count]
            .iter()
            .for_each(|event| league.apply(event));
        league
    }

    /// Writes the events that a store lacks.
    fn play_on(&self, store: &Store) {
        for event in &self.events[store.read(|league| league.version) as usize..] {
            store.commit_event(|_| Some(event.clone())).unwrap();
        }
    }

    /// Checks that a journal is refused in one line with these words, and left as it is.
    fn check_refused(&self, bytes: &[u8], words: &str) {
        self.write(bytes);
        let row = String::from_utf8_lossy(bytes);
        let Err(error) = self.open(false) else {
            panic!("it is played on, not refused since it {words}: {row}");
        };
        let error = error.to_string();
        check_contains(&error, &format!("journal.jsonl: {words}"));
        check_contains(&error, "start with --fresh");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(self.read() == bytes, "it is changed: {row}");
    }
}

#[test]
fn league_resumes_from_a_journal_cut_anywhere() {
    print_no_errors();
    let journal = Journal::new("even_odd", "seeded");
    let whole = journal.lines.concat();
    // Of each line one byte, a quarter, half, all but its end, and the whole of it; of one line
    // every byte.
    let (mut cuts, mut start) = (vec![0], 0);
    for line in &journal.lines {
        let length = line.len();
        let ends = [1, length / 4, length / 2, length - 1, length];
        cuts.extend(ends.map(|end| start + end));
        start += length;
    }
    let last = whole.rfind("\"event\":\"Recorded").unwrap();
    cuts.extend(last..whole.len());
    for cut in cuts {
        journal.write(&whole.as_bytes()[..cut]);
        let count = whole[..cut].matches('\n').count().saturating_sub(1);
        let (store, version) = journal.open(false).unwrap();
        assert_eq!(version, count, "cut at {cut}");
        let is_same = store.read(|league| *league == journal.league_after(count));
        assert!(is_same, "cut at {cut}: another league");
        let left = journal.lines[..=count].concat();
        assert!(
            journal.read() == left.as_bytes(),
            "cut at {cut}: whole lines"
        );
        journal.play_on(&store);
        assert!(
            journal.read() == whole.as_bytes(),
            "cut at {cut}: the same events"
        );
    }
}

/// Lines that are no events of a journal.
const DAMAGED: [&[u8]; 8] = [
    br#"{"event":"Exploded"}"#,
    br#"{"event":"Recorded","match_id":"#,
    br#"{"event":"Closed"}{"event":"Closed"}"#,
    br#"{"match_id":"R1M1"}"#,
    br#"{"event":"Recorded","match_id":"R1M1"}"#,
    b"7",
    b"{\"event\":\"Cl\xff\"}",
    &[0; 4],
];

/// First lines that are not of this version. No older version had such a line.
const VERSIONS: [&str; 4] = [
    r#"{"journal_version":2}"#,
    r#"{"journal_version":5}"#,
    r#"{"event":"Closed"}"#,
    "7",
];

#[test]
fn damaged_journal_is_refused_with_its_line() {
    let journal = Journal::new("even_odd", "seeded");
    let lines: Vec<&[u8]> = journal.lines.iter().map(String::as_bytes).collect();
    let check = |line: &[u8], at: usize, words: &str| {
        let after = lines.get(at + 1..).unwrap_or_default();
        let bytes = [&lines[..at], &[line, b"\n"], after].concat().concat();
        journal.check_refused(&bytes, &format!("line {} is {words}", at + 1));
        let (_store, version) = journal.open(true).unwrap();
        assert_eq!(version, 0, "a new league");
        assert_eq!(journal.archived(), [bytes], "the old one is kept");
    };
    for line in DAMAGED {
        check(line, lines.len() / 2, "damaged (");
        check(line, lines.len(), "damaged (");
    }
    for line in VERSIONS {
        check(line.as_bytes(), 0, "not of this program's version, 6");
    }
    check(b"{", 0, "damaged (");
}

#[test]
fn journal_with_a_line_too_many_too_few_or_moved_is_refused() {
    for (game, how) in [("even_odd", "drawn"), ("tic_tac_toe", "moves:14253")] {
        let journal = Journal::new(game, how);
        let last = journal.events.len();
        let check = |line: usize, number: usize, change: &dyn Fn(&mut Vec<String>)| {
            let mut lines = journal.lines.clone();
            change(&mut lines);
            let words = match (line, number) {
                (1, _) => "line 1 is not of this program's version, 6; ".into(),
                (2, 1) => "line 2 is damaged (".into(),
                _ => format!("line {line} has the number {number}: "),
            };
            journal.check_refused(lines.concat().as_bytes(), &words);
        };
        for n in 0..=last {
            check(n + 2, n + 1, &|lines| lines.insert(n, lines[n].clone()));
            if n < last {
                check(n + 1, n + 2, &|lines| drop(lines.remove(n)));
                check(n + 1, n + 2, &|lines| lines.swap(n, n + 1));
            }
        }

        // Without its last line the journal is as if that had not happened yet. Blank lines are none.
        for (count, blank) in [
            (last - 1, ""),
            (last, "\n"),
            (last, "\r\n"),
            (last, "  \n\n"),
        ] {
            let bytes = journal.lines[..=count].concat() + blank;
            journal.write(bytes.as_bytes());
            let (store, version) = journal.open(false).unwrap();
            assert_eq!(version, count, "{game}: {blank:?}");
            assert!(store.read(|league| *league == journal.league_after(count)));
            store.commit_event(|_| Some(Event::Paused)).unwrap();
            drop(store);
            assert_eq!(journal.open(false).unwrap().1, count + 1, "{blank:?}");
        }
    }
}

#[test]
fn fresh_and_closed_leagues_are_archived_whole() {
    let mut journal = Journal::new("even_odd", "seeded");
    journal.write(HEAD.as_bytes());
    drop(journal.open(true).unwrap());
    assert!(
        journal.archived().is_empty(),
        "an empty league is not archived"
    );
    journal.events.push(Event::Closed);
    journal.play_on(&journal.open(false).unwrap().0);
    let whole = journal.read();
    let league = &journal.config.league.league_id;
    let matches = journal.test.folder.join("data/matches").join(league);
    for (n, fresh, is_killed) in [(1, false, false), (2, true, false), (3, false, true)] {
        fs::create_dir_all(&matches).unwrap();
        fs::write(matches.join("R1M1.json"), "{}").unwrap();
        if is_killed {
            storage::archive(&matches).unwrap(); // the journal would have been next
        }
        let (store, version) = journal.open(fresh).unwrap();
        assert_eq!(version, 0, "a closed league is not resumed");
        // Every league is kept with its match files, also those of the same second.
        assert_eq!(journal.archived(), vec![whole.clone(); n]);
        assert!(!matches.exists());
        assert_eq!(files(&journal.test.folder.join("data/matches")).len(), n);
        journal.play_on(&store);
    }
}

#[test]
fn simultaneous_decisions_are_recorded_once() {
    let journal = Journal::new("even_odd", "drawn");
    let (store, version) = journal.open(false).unwrap();
    let start = Barrier::new(8);
    let decide = || {
        start.wait();
        let decided = store.commit_event(|league| (!league.closed).then_some(Event::Closed));
        decided.unwrap();
    };
    thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(decide))));
    assert_eq!(store.read(|league| league.version) as usize, version + 1);
    let lines = journal.read().iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines, 1 + version + 1);
}
