//! The durable record: a journal cut anywhere is resumed and played on to the same end; damage, a newer program's
//! journal and `--fresh` lose nothing; of many decisions at the same instant one counts.

mod support;

use league::manager::journal::{Journal, Store};
use league::manager::league::{Event, League};
use league::manager::registration::Admission;
use league::program::storage;
use league::protocol::{Kind, Standing};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Barrier,
    thread,
    time::Duration,
};
use support::{
    World,
    paper::{self, Caller, assignment, at, caller, local, meta, report, rules, seeded},
};

/// The first line.
const HEAD: &str = "{\"journal_version\":2}\n";

/// The league's folder below a data folder.
fn folder(data: &Path) -> PathBuf {
    data.join("leagues").join(rules().league_id)
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
    let entries = fs::read_dir(data.join("leagues"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut aside: Vec<PathBuf> = entries.filter(|path| *path != folder(data)).collect();
    aside.sort();
    aside
        .iter()
        .map(|path| fs::read(path.join("journal.jsonl")).unwrap())
        .collect()
}

/// Finds the league as a manager does, and says whether it is resumed.
fn find(data: &Path, fresh: bool) -> io::Result<(Store, bool)> {
    let (league, journal) = Journal::find(data, rules(), fresh)?;
    let resumed = league.changes > 0;
    Ok((Store::new(league, journal), resumed))
}

fn decide(store: &Store, decide: impl FnOnce(&League) -> Option<Event>) {
    store
        .commit(|league| Ok::<_, io::Error>((decide(league), ())))
        .unwrap();
}

/// An agent registers for the first time; or with its token for the second, at this hour, at this port; unless it has.
fn register(store: &Store, id: &str, again: bool, hour: u64, port: usize) {
    let kind = if id.starts_with('R') {
        Kind::Referee
    } else {
        Kind::Player
    };
    let token = again.then(|| format!("tok-{}-first", id.to_lowercase()));
    let from = Caller {
        token,
        now: at("10:00:00").plus(Duration::from_secs(3600 * hour)),
        ..caller("somebody")
    };
    decide(store, |league| {
        match paper::register(league, &meta(kind, &local(port)), &from) {
            _ if league
                .members
                .get(id)
                .is_some_and(|known| known.registrations > u32::from(again)) =>
            {
                None
            }
            Admission::Accepted { member, event, .. } if member.id == id => event,
            other => panic!("{id}: {other:?}"),
        }
    });
}

/// Everybody does what is still to be done, and referees report again what they have reported before. Before the
/// start a player moves; in round 2 one referee moves and the other is lost, in round 3 a player's token has expired.
fn play_on(store: &Store) {
    let six = [
        ("REF01", 8001),
        ("REF02", 8002),
        ("P01", 8101),
        ("P02", 8102),
        ("P03", 8103),
        ("P04", 8104),
    ];
    six.iter()
        .for_each(|(id, port)| register(store, id, false, 0, *port));
    register(store, "P02", true, 0, 9002);
    decide(store, |league| league.start(Some(7)).unwrap());
    for round in 1..=3 {
        decide(store, |league| {
            assignment(league, round, &["REF01", "REF02"])
        });
        match round {
            2 => {
                register(store, "REF02", true, 0, 9003);
                decide(store, |league| assignment(league, round, &["REF02"]));
            }
            3 => register(store, "P03", true, 24, 8103),
            _ => {}
        }
        let ids = store.read(|league| {
            league
                .round(round)
                .iter()
                .map(|game| game.id.clone())
                .collect::<Vec<_>>()
        });
        ids.iter()
            .flat_map(|id| [id, id])
            .for_each(|id| report_once(store, id));
    }
    decide(store, |league| (!league.closed).then_some(Event::Closed));
}

/// The referee of a match reports it; what is recorded already is no event.
fn report_once(store: &Store, match_id: &str) {
    decide(store, |league| {
        let game = league.find(match_id).unwrap();
        let report = report(
            league,
            game,
            seeded(7, game).for_manager(&league.rules.scoring),
        );
        let event = league
            .judge(
                &league.members[game.referee().unwrap()],
                &report,
                at("11:00:00"),
            )
            .unwrap();
        assert_eq!(
            event.is_none(),
            game.recorded.is_some(),
            "{match_id} counts once"
        );
        event
    });
}

fn table_of(store: &Store) -> Vec<Standing> {
    store.read(|league| league.table().to_vec())
}

/// The journal of a whole league, and its table.
fn finished(data: &Path) -> (Vec<u8>, Vec<Standing>) {
    let (store, resumed) = find(data, false).unwrap();
    assert!(!resumed);
    play_on(&store);
    (journal(data), table_of(&store))
}

#[test]
fn a_journal_cut_anywhere_is_played_on_to_the_same_end() {
    let world = World::new(&[]);
    let (whole, table) = finished(&world.folder.join("whole"));
    let text = String::from_utf8(whole.clone()).unwrap();
    assert!(
        text.starts_with("{\"journal_version\":2}\n"),
        "the first line names the version: {text}"
    );
    let counted = ["Registered", "Started", "Assigned", "Recorded", "Closed"]
        .map(|event| text.matches(&format!("{{\"event\":\"{event}\"")).count());
    assert_eq!(
        counted,
        [6 + 3, 1, 3 + 1, 6, 1],
        "what a league consists of: {text}"
    );
    assert_eq!(
        table.iter().map(|row| row.played).collect::<Vec<_>>(),
        [3; 4]
    );

    let mut cuts = vec![0];
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        // A letter of it, a quarter, half, all but the end of the line, and the whole line.
        cuts.extend(
            [
                1,
                line.len() / 4,
                line.len() / 2,
                line.len() - 1,
                line.len(),
            ]
            .map(|cut| start + cut),
        );
        start += line.len();
    }
    // Of one line every byte.
    let last = text.rfind("{\"event\":\"Recorded").unwrap();
    for cut in last..last + text[last..].find('\n').unwrap() {
        let data = world.folder.join("byte");
        lay(&data, &whole[..cut]);
        assert!(
            find(&data, false).unwrap().1 && journal(&data) == whole[..last],
            "cut at {cut}"
        );
    }
    for cut in cuts {
        let (data, lines) = (
            world.folder.join("cut"),
            text[..cut].rfind('\n').map_or(0, |end| end + 1),
        );
        lay(&data, &whole[..cut]);
        let (store, resumed) = find(&data, false).unwrap();
        let closed = cut == whole.len();
        assert_eq!(
            resumed,
            lines > HEAD.len() && !closed,
            "cut at {cut}: resumed, unless it is closed"
        );
        let left = if closed {
            HEAD
        } else {
            &text[..lines.max(HEAD.len())]
        };
        assert_eq!(
            journal(&data),
            left.as_bytes(),
            "cut at {cut}: a torn line is gone"
        );
        let set_aside = if closed { vec![whole.clone()] } else { vec![] };
        assert_eq!(aside(&data), set_aside, "cut at {cut}: set aside if closed");
        play_on(&store);
        assert!(
            journal(&data) == whole,
            "cut at {cut}: it ends with the same events, each once"
        );
        assert_eq!(table_of(&store), table, "cut at {cut}");
        fs::remove_dir_all(data).unwrap();
    }
}

#[test]
fn an_older_journal_is_played_on() {
    let world = World::new(&[]);
    let (whole, table) = finished(&world.folder.join("whole"));
    // It knew no first line, called assignments orders, and did not say when somebody registered.
    let old = String::from_utf8(whole)
        .unwrap()
        .replacen(HEAD, "", 1)
        .replace("\"assignments\":", "\"orders\":");
    let old = old.replace(",\"registered_at\":\"2025-01-15T10:00:00Z\"", "");
    for lines in [1, 8, 12, 18] {
        let data = world.folder.join("old").join(lines.to_string());
        let old: String = old.split_inclusive('\n').take(lines).collect();
        lay(&data, old.as_bytes());
        let (store, resumed) = find(&data, false).unwrap();
        assert!(resumed, "{lines} lines");
        play_on(&store);
        assert_eq!(table_of(&store), table, "{lines} lines");
        assert!(journal(&data).starts_with(old.as_bytes()), "{lines} lines");
    }
}

#[test]
fn damage_is_refused_with_its_line_and_only_fresh_sets_it_aside() {
    let world = World::new(&[]);
    let (whole, _) = finished(&world.folder.join("whole"));
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let (damaged, newer) = ("is damaged (", "is from a newer version of this program");
    let rows: &[(&str, &[u8], &str)] = &[
        ("a newer head", b"{\"journal_version\":3}\n", newer),
        ("an unknown event", b"{\"event\":\"Exploded\"}\n", newer),
        (
            "broken JSON",
            b"{\"event\":\"Recorded\",\"match_id\":\n",
            damaged,
        ),
        (
            "two events",
            b"{\"event\":\"Closed\"}{\"event\":\"Closed\"}\n",
            damaged,
        ),
        ("no event", b"{\"match_id\":\"R1M1\"}\n", damaged),
        (
            "a missing field",
            b"{\"event\":\"Recorded\",\"match_id\":\"R1M1\"}\n",
            damaged,
        ),
        ("not an object", b"7\n", damaged),
        ("an empty line", b"\n", damaged),
        ("not UTF-8", b"{\"event\":\"Cl\xff\"}\n", damaged),
        ("zeros", b"\0\0\0\0\n", damaged),
    ];
    for (row, line, words) in rows {
        let places = if *row == "a newer head" {
            vec![0]
        } else {
            vec![0, lines.len() / 2, lines.len()]
        };
        for at in places {
            let data = world.folder.join("damaged");
            let bytes = [
                &lines[..at],
                &[line],
                lines.get(at + 1..).unwrap_or_default(),
            ]
            .concat()
            .concat();
            lay(&data, &bytes);
            let error = find(&data, false).map(drop).unwrap_err().to_string();
            let place = format!("journal.jsonl: line {} {words}", at + 1);
            assert!(
                error.contains(&place) && error.contains("--fresh"),
                "{row}: {error}"
            );
            assert_eq!(journal(&data), bytes, "{row}: nothing was changed");
            let (store, resumed) = find(&data, true).unwrap();
            assert!(
                !resumed && store.read(|league| league.changes == 0),
                "{row}: a new league"
            );
            assert_eq!(aside(&data), [bytes], "{row}: the old one is kept");
            fs::remove_dir_all(data).unwrap();
        }
    }
}

#[test]
fn fresh_and_closed_leagues_are_set_aside_whole() {
    let world = World::new(&[]);
    let data = world.folder.join("data");
    drop(find(&data, true).unwrap());
    assert!(
        aside(&data).is_empty(),
        "nothing has happened, so nothing is set aside"
    );
    let (whole, _) = finished(&data);
    let pages = data.join("matches").join(rules().league_id);
    for (n, fresh, is_killed) in [
        (1, false, false),
        (2, true, false),
        (3, false, false),
        (4, false, true),
    ] {
        fs::create_dir_all(&pages).unwrap();
        fs::write(pages.join("R1M1.json"), "{}").unwrap();
        if is_killed {
            storage::set_aside(&pages).unwrap(); // the journal would have been next
        }
        let (store, resumed) = find(&data, fresh).unwrap();
        assert!(
            !resumed && store.read(|league| league.changes == 0),
            "a closed league is not resumed"
        );
        assert_eq!(
            aside(&data),
            vec![whole.clone(); n],
            "every league is kept, also of the same second"
        );
        assert!(
            !pages.exists() && support::files(&data.join("matches")).len() == n,
            "and its match pages"
        );
        play_on(&store);
    }
}

#[test]
fn of_many_decisions_at_the_same_instant_one_counts() {
    let world = World::new(&[]);
    let data = world.folder.join("data");
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
