//! The durable record: a journal cut anywhere is resumed and played on to the same end; damage, a second manager
//! and `--fresh` lose nothing; of two reports at the same instant one counts.

mod support;

use league::{
    game::judge,
    journal::{Journal, Record},
    league::{Event, League},
    protocol::{Kind, Parity},
    registration::Applicant,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Barrier,
    thread,
};
use support::{
    World,
    paper::{applicant, assignment, at, local, profile, report, rules, seeded},
};

const BOTH: &[&str] = &["REF01", "REF02"];

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
    let entries = fs::read_dir(data.join("leagues")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut aside: Vec<PathBuf> = entries.filter(|path| *path != folder(data)).collect();
    aside.sort();
    aside.iter().map(|path| fs::read(path.join("journal.jsonl")).unwrap()).collect()
}

/// Finds the league as a manager does, and says whether it is resumed.
fn find(data: &Path, fresh: bool) -> io::Result<(Record, bool)> {
    let (league, journal, resumed) = Journal::find(data, rules(), fresh)?;
    Ok((Record::new(league, journal)?, resumed))
}

fn decide(record: &Record, decide: impl FnOnce(&League) -> Option<Event>) {
    record.commit(|league| Ok::<_, io::Error>((decide(league), ()))).unwrap();
}

/// An agent registers for the first, second… time, unless it has already.
fn register(record: &Record, id: &str, times: u32, port: usize, from: &Applicant) {
    let kind = if id.starts_with('R') { Kind::Referee } else { Kind::Player };
    decide(record, |league| {
        let done = league.members.get(id).is_some_and(|known| known.registrations >= times);
        if done { None } else { league.register(&profile(kind, &local(port)), from).unwrap().0 }
    });
}

/// Two referees and four players; one has moved, and so re-attaches.
fn gather(record: &Record) {
    let six = [("REF01", 8001), ("REF02", 8002), ("P01", 8101), ("P02", 8102), ("P03", 8103), ("P04", 8104)];
    six.iter().for_each(|(id, port)| register(record, id, 1, *port, &applicant("somebody")));
    let moved = Applicant { token: Some("tok-p02-first"), ..applicant("somebody") };
    register(record, "P02", 2, 9002, &moved);
}

/// Everybody does what is still to be done, and referees report again what they have reported before: in round 2
/// one referee moves and the other is lost, in round 3 a player's token has expired.
fn play_on(record: &Record) {
    gather(record);
    decide(record, |league| league.start(Some(7)).unwrap());
    for round in 1..=3 {
        decide(record, |league| assignment(league, round, BOTH));
        if round == 2 {
            let moved = Applicant { token: Some("tok-ref02-first"), ..applicant("somebody") };
            register(record, "REF02", 2, 9003, &moved);
            decide(record, |league| assignment(league, round, &["REF02"]));
        }
        if round == 3 {
            let now = at("10:00:00").plus(rules().token_lifetime);
            let expired = Applicant { token: Some("tok-p03-first"), secret: "fresh", now, ..applicant("somebody") };
            register(record, "P03", 2, 8103, &expired);
        }
        let ids = record.read(|league| league.round(round).map(|game| game.id.clone()).collect::<Vec<_>>());
        ids.iter().flat_map(|id| [id, id]).for_each(|id| report_once(record, id));
    }
    decide(record, |league| (!league.closed).then_some(Event::Closed));
}

/// The referee of a match reports it; what is recorded already is no event.
fn report_once(record: &Record, match_id: &str) {
    decide(record, |league| {
        let game = league.find(match_id).unwrap();
        let report = report(league, game, seeded(7, game).for_manager(&league.rules.scoring));
        let event = league.record(&league.members[game.referee().unwrap()], &report, at("11:00:00")).unwrap();
        assert_eq!(event.is_none(), game.recorded.is_some(), "{match_id} counts once");
        event
    });
}

/// The journal of a whole league, and its table.
fn finished(data: &Path) -> (Vec<u8>, Vec<league::protocol::Standing>) {
    let (record, resumed) = find(data, false).unwrap();
    assert!(!resumed);
    play_on(&record);
    (journal(data), record.read(League::table))
}

#[test]
fn a_journal_cut_anywhere_is_played_on_to_the_same_end() {
    let world = World::new(&[]);
    let (whole, table) = finished(&world.folder.join("whole"));
    let text = String::from_utf8(whole.clone()).unwrap();
    let counted = ["Registered", "Started", "Assigned", "Recorded", "Closed"]
        .map(|event| text.matches(&format!("{{\"event\":\"{event}\"")).count());
    assert_eq!(counted, [6 + 3, 1, 3 + 1, 6, 1], "what a league consists of: {text}");
    assert_eq!(table.iter().map(|row| row.played).collect::<Vec<_>>(), [3; 4]);

    let mut cuts = vec![0];
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        // A letter of it, half of it, all but the end of the line, and the whole line.
        cuts.extend([1, line.len() / 2, line.len() - 1, line.len()].map(|cut| start + cut));
        start += line.len();
    }
    for cut in cuts {
        let (data, lines) = (world.folder.join(format!("cut-{cut}")), text[..cut].rfind('\n').map_or(0, |end| end + 1));
        lay(&data, &whole[..cut]);
        let (record, resumed) = find(&data, false).unwrap();
        let closed = cut == whole.len();
        assert_eq!(resumed, lines > 0 && !closed, "cut at {cut}: resumed, unless it is closed");
        assert_eq!(journal(&data), if closed { b"" } else { &whole[..lines] }, "cut at {cut}: a torn line is gone");
        assert_eq!(
            aside(&data),
            if closed { vec![whole.clone()] } else { vec![] },
            "cut at {cut}: set aside if closed"
        );
        play_on(&record);
        assert!(journal(&data) == whole, "cut at {cut}: it ends with the same events, each once");
        assert_eq!(record.read(League::table), table, "cut at {cut}");
        fs::remove_dir_all(data).unwrap();
    }
}

#[test]
fn damage_is_refused_with_its_line_and_only_fresh_sets_it_aside() {
    let world = World::new(&[]);
    let (whole, _) = finished(&world.folder.join("whole"));
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let rows: &[(&str, &[u8])] = &[
        ("broken JSON", b"{\"event\":\"Recorded\",\"match_id\":\n"),
        ("two events", b"{\"event\":\"Closed\"}{\"event\":\"Closed\"}\n"),
        ("an unknown event", b"{\"event\":\"Exploded\"}\n"),
        ("no event", b"{\"match_id\":\"R1M1\"}\n"),
        ("a missing field", b"{\"event\":\"Recorded\",\"match_id\":\"R1M1\"}\n"),
        ("not an object", b"7\n"),
        ("an empty line", b"\n"),
        ("not UTF-8", b"{\"event\":\"Cl\xff\"}\n"),
        ("zeros", b"\0\0\0\0\n"),
    ];
    for (row, line) in rows {
        for at in [0, lines.len() / 2, lines.len() - 1, lines.len()] {
            let data = world.folder.join("damaged");
            let damaged = [&lines[..at], &[line], lines.get(at + 1..).unwrap_or_default()].concat().concat();
            lay(&data, &damaged);
            let error = find(&data, false).map(drop).unwrap_err().to_string();
            let place = format!("journal.jsonl: line {} is damaged (", at + 1);
            assert!(error.contains(&place) && error.contains("--fresh"), "{row}: {error}");
            assert_eq!(journal(&data), damaged, "{row}: nothing was changed");
            let (record, resumed) = find(&data, true).unwrap();
            assert!(!resumed && record.read(|league| league.changes == 0), "{row}: a new league");
            assert_eq!(aside(&data), [damaged], "{row}: the old one is kept");
            fs::remove_dir_all(data).unwrap();
        }
    }
}

#[test]
fn fresh_and_closed_leagues_are_set_aside_whole() {
    let world = World::new(&[]);
    let data = world.folder.join("data");
    drop(find(&data, true).unwrap());
    assert!(aside(&data).is_empty(), "nothing has happened, so nothing is set aside");
    let (whole, _) = finished(&data);
    let pages = data.join("matches").join(rules().league_id);
    fs::create_dir_all(&pages).unwrap();
    fs::write(pages.join("R1M1.json"), "{}").unwrap();
    for (n, fresh) in (1..).zip([false, true, false]) {
        let (record, resumed) = find(&data, fresh).unwrap();
        assert!(!resumed && record.read(|league| league.changes == 0), "a closed league is not resumed");
        assert_eq!(aside(&data), vec![whole.clone(); n], "every league is kept, also of the same second");
        assert!(!pages.exists() && support::files(&data.join("matches")).len() == 1, "and its match pages");
        play_on(&record);
    }
    drop(find(&data, false).unwrap());
    gather(&find(&data, false).unwrap().0);
    let begun = journal(&data);
    assert!(find(&data, false).unwrap().1, "an unfinished league is resumed");
    assert!(!find(&data, true).unwrap().1, "unless it is to be fresh");
    assert!(aside(&data).contains(&begun), "and then it is kept");
}

#[test]
fn a_journal_has_one_manager_and_one_reader() {
    let world = World::new(&[]);
    let data = world.folder.join("data");
    let (record, _) = find(&data, false).unwrap();
    gather(&record);
    for fresh in [false, true] {
        let error = find(&data, fresh).map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(error.to_string().contains("another league manager is running on it"), "{error}");
    }
    assert!(aside(&data).is_empty(), "--fresh does not take it away from the one that runs");
    play_on(&record);
    drop(record);
    assert!(find(&data, false).is_ok(), "it is free again");
    #[cfg(unix)]
    {
        let mode = fs::metadata(folder(&data).join("journal.jsonl")).unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&mode) & 0o777, 0o600, "tokens are in it");
    }
}

#[test]
fn of_two_reports_at_the_same_instant_one_counts() {
    let world = World::new(&[]);
    let data = world.folder.join("data");
    let (record, _) = find(&data, false).unwrap();
    gather(&record);
    decide(&record, |league| league.start(None).unwrap());
    let ids = record.read(|league| league.matches.iter().map(|game| game.id.clone()).collect::<Vec<_>>());
    (1..=3).for_each(|round| decide(&record, |league| assignment(league, round, BOTH)));
    for (n, id) in ids.iter().enumerate() {
        let alike = n % 3 == 2; // every third match is reported twice in the same way
        let start = Barrier::new(2);
        let send = |number: u32| {
            start.wait();
            record.commit(|league| {
                let game = league.find(id).unwrap();
                let outcome = judge(game.players.clone(), [Parity::Even, Parity::Odd], number);
                let report = report(league, game, outcome.for_manager(&league.rules.scoring));
                let event = league.record(&league.members[game.referee().unwrap()], &report, at("11:00:00"));
                Ok::<_, io::Error>((event.map_err(|refusal| io::Error::other(refusal.to_string()))?, number))
            })
        };
        let answers = thread::scope(|scope| {
            let threads = [8, if alike { 8 } else { 7 }].map(|number| scope.spawn(move || send(number)));
            threads.map(|thread| thread.join().unwrap())
        });
        let counted: Vec<u32> = answers.iter().filter_map(|answer| answer.as_ref().ok().copied()).collect();
        assert_eq!(counted.len(), if alike { 2 } else { 1 }, "{id}: {answers:?}");
        let refusal = answers.iter().find_map(|answer| answer.as_ref().err());
        assert!(refusal.is_none_or(|error| error.to_string().starts_with("E015 ")), "{id}: {refusal:?}");
        let recorded = record.read(|league| league.find(id).unwrap().recorded.clone().unwrap().result);
        assert_eq!(recorded.details.drawn_number, Some(counted[0]), "{id}: what was acknowledged stands");
    }
    assert_eq!(record.read(|league| league.played.clone()), ids, "each once, in their order");
    let table = record.read(League::table);
    drop(record);
    let (record, resumed) = find(&data, false).unwrap();
    assert!(resumed && record.read(League::table) == table, "the journal says the same");
}
