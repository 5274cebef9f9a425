//! The durable record: a journal cut anywhere is resumed and played on to the same end; damage,
//! another version's journal and `--fresh` lose nothing; of many decisions at the same instant one
//! counts.

use super::support::offline::{
    self, Caller, assignment, at, caller, local, meta, result_event, rules, seeded,
};
use super::support::{TestLeague, open_again};
use league::manager::journal::Store;
use league::manager::league::{Event, League};
use league::program::storage;
use league::protocol::Standing;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::{fs, io, thread, time::Duration};

/// The first line.
const HEAD: &str = "{\"journal_version\":5}\n";

/// The league's folder below a data folder.
fn folder(data: &Path) -> PathBuf {
    data.join("leagues").join(rules().league.league_id)
}

/// The bytes of the journal below a data folder.
fn journal(data: &Path) -> Vec<u8> {
    fs::read(folder(data).join("journal.jsonl")).unwrap()
}

/// Puts a journal below a data folder.
fn lay(data: &Path, bytes: &[u8]) {
    fs::create_dir_all(folder(data)).unwrap();
    fs::write(folder(data).join("journal.jsonl"), bytes).unwrap();
}

/// The journals that were set aside below a data folder.
fn aside(data: &Path) -> Vec<Vec<u8>> {
    let mut all = super::support::files(&data.join("leagues"));
    all.retain(|path| !path.starts_with(folder(data)) && path.ends_with("journal.jsonl"));
    all.sort();
    all.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Finds the league as a manager does, and says whether it is resumed.
fn find(data: &Path, fresh: bool) -> io::Result<(Store, bool)> {
    let store = open_again(|| Store::open(data, rules(), fresh, false))?;
    let resumed = store.read(|league| league.version > 0);
    Ok((store, resumed))
}

fn decide(store: &Store, decide: impl FnOnce(&League) -> Option<Event>) {
    store
        .commit(|league| Ok::<_, io::Error>((decide(league), ())))
        .unwrap();
}

/// An agent registers for the first time; or with its token for the second, at this hour, at this
/// port; unless it has.
fn register(store: &Store, id: &str, again: bool, hour: u64, port: u32) {
    let sender = match id.starts_with('R') {
        true => format!("referee:{id}"),
        false => format!("player:{id}"),
    };
    let from = Caller {
        token: again.then(|| format!("tok-{}-first", id.to_lowercase())),
        now: at("10:00:00").plus(Duration::from_secs(3600 * hour)),
        ..caller(&sender)
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

/// Everybody does what is still to be done, and referees report again what they have reported
/// before. Before the start a player moves; in round 2 one referee moves and the other is lost, in
/// round 3 a player's token has expired.
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
            report_once(store, &format!("R{round}M{n}"));
        }
    }
    decide(store, |league| (!league.closed).then_some(Event::Closed));
}

/// The referee of a match reports it; what is recorded already is no event.
fn report_once(store: &Store, match_id: &str) {
    decide(store, |league| {
        let game = league.find(match_id).unwrap();
        let event = result_event(league, match_id, &seeded(7, game));
        assert_eq!(
            event.is_none(),
            game.recorded.is_some(),
            "{match_id} counts once"
        );
        event
    });
}

fn table_of(store: &Store) -> Vec<Standing> {
    store.read(|league| league.table())
}

/// The journal of a whole league, and its table.
fn finished(data: &Path) -> (Vec<u8>, Vec<Standing>) {
    let (store, resumed) = find(data, false).unwrap();
    assert!(!resumed);
    play_on(&store);
    (journal(data), table_of(&store))
}

#[test]
fn league_resumes_from_a_journal_cut_anywhere() {
    let test = TestLeague::new("");
    let (whole, table) = finished(&test.folder.join("whole"));
    let text = String::from_utf8(whole.clone()).unwrap();
    assert!(
        text.starts_with(HEAD),
        "the first line names the version: {text}"
    );
    let counted = ["Registered", "Started", "Assigned", "Recorded", "Closed"]
        .map(|event| text.matches(&format!("{{\"event\":\"{event}\"")).count());
    assert_eq!(counted, [6 + 3, 1, 3 + 1, 6, 1], "a whole league: {text}");
    assert!(table.iter().all(|row| row.played == 3), "{table:?}");

    // Of each line a letter, a quarter, half, all but its end, and the whole of it; of one line
    // every byte.
    let (mut cuts, mut start) = (vec![0], 0);
    for line in text.split_inclusive('\n') {
        let length = line.len();
        let ends = [1, length / 4, length / 2, length - 1, length];
        cuts.extend(ends.map(|end| start + end));
        start += length;
    }
    let last = text.rfind("{\"event\":\"Recorded").unwrap();
    cuts.extend(last..last + text[last..].find('\n').unwrap());
    for cut in cuts {
        let data = test.folder.join("cut");
        lay(&data, &whole[..cut]);
        let lines = text[..cut].rfind('\n').map_or(0, |end| end + 1);
        let lines = lines.max(HEAD.len());
        let (store, resumed) = find(&data, false).unwrap();
        let is_closed = cut == whole.len();
        let is_begun = lines > HEAD.len();
        assert_eq!(
            resumed,
            is_begun && !is_closed,
            "cut at {cut}: unless it is closed"
        );
        let left = if is_closed { HEAD } else { &text[..lines] };
        assert_eq!(
            journal(&data),
            left.as_bytes(),
            "cut at {cut}: a torn line is gone"
        );
        let set_aside = vec![whole.clone(); usize::from(is_closed)];
        assert_eq!(aside(&data), set_aside, "cut at {cut}: set aside if closed");
        play_on(&store);
        assert!(
            journal(&data) == whole,
            "cut at {cut}: the same events, each once"
        );
        assert_eq!(table_of(&store), table, "cut at {cut}");
        drop(store);
        fs::remove_dir_all(data).unwrap();
    }
}

#[test]
fn damaged_journal_is_refused_with_its_line() {
    let test = TestLeague::new("");
    let (whole, _) = finished(&test.folder.join("whole"));
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let damage = r#"
        {"event":"Exploded"}
        {"event":"Recorded","match_id":
        {"event":"Closed"}{"event":"Closed"}
        {"match_id":"R1M1"}
        {"event":"Recorded","match_id":"R1M1"}
        7"#;
    let damage = damage.lines().map(|line| line.trim().as_bytes().to_vec()); // the first is an empty line
    let not_utf8 = b"{\"event\":\"Cl\xff\"}".to_vec();
    let mut rows = Vec::new();
    for line in damage.chain([not_utf8, vec![0; 4]]) {
        rows.push((line.clone(), lines.len() / 2, "is damaged ("));
        rows.push((line, lines.len(), "is damaged ("));
    }
    // The first line says of which version the journal is; none before had one that began so.
    for version in [
        "{\"journal_version\":2}",
        "{\"journal_version\":6}",
        "{\"event\":\"Closed\"}",
        "7",
    ] {
        rows.push((version.into(), 0, "is not of this program's version, 5"));
    }
    rows.push((b"{".to_vec(), 0, "is damaged ("));
    for (line, at, words) in rows {
        let row = format!("{:?} as line {}", String::from_utf8_lossy(&line), at + 1);
        let data = test.folder.join("damaged");
        let after = lines.get(at + 1..).unwrap_or_default();
        let bytes = [&lines[..at], &[&line, b"\n"], after].concat().concat();
        lay(&data, &bytes);
        let error = find(&data, false).map(drop).unwrap_err().to_string();
        let place = format!("journal.jsonl: line {} {words}", at + 1);
        assert!(
            error.contains(&place) && error.contains("--fresh"),
            "{row}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{row}: {error}");
        assert_eq!(journal(&data), bytes, "{row}: nothing was changed");
        let (store, resumed) = find(&data, true).unwrap();
        assert!(!resumed, "{row}: a new league");
        assert_eq!(aside(&data), [bytes], "{row}: the old one is kept");
        drop(store);
        fs::remove_dir_all(data).unwrap();
    }
}

#[test]
fn fresh_and_closed_leagues_are_archived_whole() {
    let test = TestLeague::new("");
    let data = test.folder.join("data");
    drop(find(&data, true).unwrap());
    assert!(
        aside(&data).is_empty(),
        "nothing has happened, so nothing is set aside"
    );
    let (whole, _) = finished(&data);
    let pages = data.join("matches").join(rules().league.league_id);
    for (n, fresh, is_killed) in [(1, false, false), (2, true, false), (3, false, true)] {
        fs::create_dir_all(&pages).unwrap();
        fs::write(pages.join("R1M1.json"), "{}").unwrap();
        if is_killed {
            storage::archive(&pages).unwrap(); // the journal would have been next
        }
        let (store, resumed) = find(&data, fresh).unwrap();
        assert!(!resumed, "a closed league is not resumed");
        assert_eq!(
            aside(&data),
            vec![whole.clone(); n],
            "every league is kept, also of the same second"
        );
        assert!(
            !pages.exists() && super::support::files(&data.join("matches")).len() == n,
            "and its match pages"
        );
        play_on(&store);
    }
}

#[test]
fn simultaneous_decisions_are_recorded_once() {
    let test = TestLeague::new("");
    let data = test.folder.join("data");
    let store = find(&data, false).unwrap().0;
    let start = Barrier::new(8);
    for (n, port) in (1..=3).zip(8101..) {
        let register = || {
            start.wait();
            register(&store, &format!("P0{n}"), false, 0, port);
        };
        thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(register))));
    }
    assert_eq!(
        journal(&data).iter().filter(|byte| **byte == b'\n').count(),
        1 + 3
    );
}
