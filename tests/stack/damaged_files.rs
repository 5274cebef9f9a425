//! The files that our programs read again, after each way in which a file comes to harm. What is whole
//! is read; what is not is named and kept, and never taken for a file that is missing.

use super::outbox::decided_task;
use super::support::damage::damaged;
use super::support::offline::{self, caller, local, meta, rules};
use super::support::*;
use league::manager::journal::{OPERATOR_FILE, Store};
use league::manager::league::Event;
use league::player::Turn;
use league::player::history::{History, HistoryFile};
use league::program::credentials::{self, Credentials};
use league::program::storage::{self, Access};
use league::referee::tasks::Tasks;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

/// The damage, and what is read then: of credentials, of a history with one match, of an outbox with
/// three results, of a journal with four events, and of the operator's token.
const READ: &str = "
nothing          | whole | 1 here  | 3 results | 4 events | whole
byte order mark  | whole | 1 here  | 3 results | 4 events | whole
CRLF             | whole | 1 here  | 3 results | 4 events | whole
no last line end | whole | 1 here  | 2 results | 3 events | whole
zeros at the end | named | 0 aside | 3 results | 4 events | new
empty            | named | 0 aside | 0 results | named    | new
zeros            | named | 0 aside | 0 results | named    | new
cut              | named | 0 aside | 1 results | 0 events | new
other text       | named | 0 aside | 0 results | named    | new
other line       | named | 0 aside | 0 results | named    | new
not UTF-8        | named | 0 aside | 0 results | named    | new";

/// Checks what is read of a file after each damage; it is in a column of the table.
fn check_table(column: usize, path: &Path, read: impl Fn() -> String) {
    let whole = fs::read(path).unwrap();
    for row in rows::<6>(READ) {
        let left = damaged(row[0], &whole).unwrap();
        check(path, &left, row[column], row[0], &read);
    }
    fs::write(path, &whole).unwrap();
}

/// Writes a file into its folder, which then has no other one. Checks what is read, and that
/// afterwards the file, or one that stands for it, has all that was written.
fn check(path: &Path, left: &[u8], expected: &str, way: &str, read: impl Fn() -> String) {
    let folder = path.parent().unwrap();
    fs::remove_dir_all(folder).unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::write(path, left).unwrap();
    assert_eq!(read(), expected, "{way}");

    let mut kept = files(folder);
    kept.sort();
    let kept: Vec<Vec<u8>> = kept.iter().map(|path| fs::read(path).unwrap()).collect();
    let kept = String::from_utf8_lossy(&kept.concat()).into_owned();
    check_contains(&kept, &String::from_utf8_lossy(left));
}

fn own_credentials() -> Credentials {
    Credentials {
        agent_id: "P01".into(),
        registration_key: "k".repeat(32),
        league_id: "league".into(),
        manager: local(8000),
        endpoint: local(8101),
        folder: "".into(),
        token: Some("tok-p01-secret".into()),
        proves_itself: true,
        is_over: false,
    }
}

#[test]
fn damaged_credentials_are_named_and_never_taken_for_missing_ones() {
    let (test, own) = (TestLeague::new(""), own_credentials());
    let data = &test.folder;
    let path = credentials::file(data, "P01");
    own.save(data, "P01").unwrap();
    let read = || {
        let loaded = Credentials::load(data, "P01");
        assert!(path.exists());
        match loaded {
            Ok(found) => {
                assert_eq!(found.as_ref(), Some(&own));
                "whole".to_string()
            }
            Err(exit) => {
                let sentence = "P01.json is damaged; put it back, or remove it to register";
                check_contains(&exit.message, sentence);
                "named".to_string()
            }
        }
    };
    check_table(1, &path, read);
    let whole = fs::read(&path).unwrap();
    for length in 1..whole.len() - 1 {
        check(
            &path,
            &whole[..length],
            "named",
            &format!("cut at {length}"),
            read,
        );
    }
}

#[test]
fn damaged_history_is_set_aside() {
    let test = TestLeague::new("");
    let folder = test.folder.join("players/P01");
    let path = folder.join("history.json");
    let file = HistoryFile {
        player_id: "P01".into(),
        league_id: "league".into(),
        matches: Arc::new(vec![Turn::sample().history[0].clone()]),
    };
    storage::replace_json(&path, Access::AllUsers, &file).unwrap();
    let read = || {
        let history = History::open(&folder, "P01", "league", false).unwrap();
        let place = if path.exists() { "here" } else { "aside" };
        format!("{} {place}", history.matches().len())
    };
    check_table(2, &path, read);
    let whole = fs::read_to_string(&path).unwrap();
    for (ours, other) in [("P01", "P02"), ("\"league\"", "\"other\"")] {
        let left = whole.replacen(ours, other, 1);
        check(&path, left.as_bytes(), "0 aside", other, read);
    }
}

#[test]
fn damaged_outbox_keeps_its_whole_lines() {
    print_no_errors();
    let test = TestLeague::new("");
    let folder = test.folder.join("REF01");
    let path = folder.join("outbox.jsonl");
    let line = |id: &str| format!("{}\n", json!(decided_task(id)));
    let whole = ["R1M1", "R2M1", "R3M1"].map(line).concat();
    fs::create_dir_all(&folder).unwrap();
    fs::write(&path, &whole).unwrap();
    let read = || {
        let mut tasks = Tasks::new(rules().system.retry_policy);
        open_again(|| tasks.open(&folder, false)).unwrap();
        format!("{} results", tasks.by_match.len())
    };
    check_table(3, &path, read);
    let middle = whole.replacen(r#"_id":"R2M1""#, r#"_id":2"#, 1);
    check(&path, middle.as_bytes(), "2 results", "damaged line", read);
    for length in 1..whole.len() {
        let left = &whole[..length];
        let expected = format!("{} results", left.matches('\n').count());
        check(
            &path,
            left.as_bytes(),
            &expected,
            &format!("cut at {length}"),
            read,
        );
    }
}

/// `journal.rs` cuts a journal at every byte.
#[test]
fn damaged_journal_is_never_taken_for_a_new_one() {
    let test = TestLeague::new("");
    let data = test.folder.join("data");
    let path = storage::league_folder(&data, &rules().league.league_id).join("journal.jsonl");
    let open = || open_again(|| Store::open(&data, rules(), false, false));
    let store = open().unwrap();
    for (sender, port) in [
        ("referee:REF01", 8001),
        ("player:P01", 8101),
        ("player:P02", 8102),
    ] {
        let from = caller(sender);
        let register =
            |league: &_| offline::register(league, &meta(from.kind, &local(port)), &from).0;
        store.commit_event(register).unwrap();
    }
    store.commit_event(|_| Some(Event::Paused)).unwrap();
    drop(store);

    check_table(4, &path, || {
        fs::write(path.with_file_name(OPERATOR_FILE), "").unwrap(); // it is an old league
        match open() {
            Ok(store) => format!("{} events", store.read(|league| league.version)),
            Err(error) => {
                check_contains(&error.to_string(), "journal.jsonl: ");
                check_contains(&error.to_string(), "with --fresh");
                "named".into()
            }
        }
    });
}

#[test]
fn damaged_token_of_the_operator_is_replaced() {
    let test = TestLeague::new("");
    let path = test.league_file(OPERATOR_FILE);
    test.manager("").kill();
    let token = || storage::read_text(&path).unwrap().trim().to_string();
    let old = token();
    let journal = fs::read(path.with_file_name("journal.jsonl")).unwrap();
    check_table(5, &path, || {
        fs::write(path.with_file_name("journal.jsonl"), &journal).unwrap();
        let mut manager = test.manager("");
        manager.kill();
        manager.wait(); // until its last line is read
        let is_old = token() == old;
        let says = "had no whole token, and gets a new one";
        assert_eq!(manager.errors().contains(says), !is_old);
        assert_eq!(token().len(), old.len());
        if is_old { "whole" } else { "new" }.into()
    });
}

/// What a system refuses for a moment is tried again: here another thread holds a lock, and puts a
/// folder into the way of a file.
#[test]
fn refusal_for_a_moment_is_no_error() {
    let test = TestLeague::new("");
    let path = test.folder.join("file.json");
    let held = storage::lock(&path).unwrap();
    fs::create_dir_all(path.join("full")).unwrap();
    let folder = path.clone();
    let other = thread::spawn(move || {
        thread::park_timeout(Duration::from_millis(100));
        drop(held);
        thread::park_timeout(Duration::from_millis(100));
        fs::remove_dir_all(folder).unwrap();
    });
    storage::lock(&path).unwrap();
    storage::replace(&path, Access::Owner, "text").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    other.join().unwrap();
}

#[test]
fn player_with_damaged_credentials_is_no_second_person() {
    story::run_as("credentials", &[("PLAYER", "")]);
    if has_python() {
        story::run_as("credentials", &[("PLAYER", "python")]);
    }
}
