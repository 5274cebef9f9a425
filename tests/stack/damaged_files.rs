//! The files that our programs read again, after each way in which a file comes to harm: a power cut, a
//! full disk, an editor, a hand. What is whole is read; what is not is named and kept, and never taken
//! for a file that is missing.

use super::outbox::decided_task;
use super::support::offline::{self, at, caller, local, meta, result_event, rules, seeded};
use super::support::{
    TestLeague, TestProcess, check_contains, files, open_again, text_of, with_manager,
};
use league::manager::journal::{OPERATOR_FILE, Store};
use league::manager::league::Event;
use league::player::history::{History, HistoryFile};
use league::player::{PastMatch, Turn};
use league::program::credentials::{self, Credentials};
use league::program::storage;
use league::referee::tasks::Tasks;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The ways in which a file comes to harm, and what is left of its bytes. The last two hurt nothing
/// but the last line of a file of lines.
const HARMS: [&str; 9] = [
    "nothing",
    "byte order mark",
    "CRLF",
    "empty",
    "zeros",
    "other text",
    "other line",
    "no last line end",
    "zeros at the end",
];

/// The harms after which the file still has all that it had.
const HARMLESS: [&str; 3] = ["nothing", "byte order mark", "CRLF"];

fn harm(way: &str, whole: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(whole);
    match way {
        "nothing" => whole.into(),
        "byte order mark" => format!("\u{feff}{text}").into(),
        "CRLF" => text.replace('\n', "\r\n").into(),
        "empty" => Vec::new(),
        "zeros" => vec![0; whole.len()],
        "other text" => b"Dear diary".into(),
        "other line" => b"\"Dear diary\"\n".into(),
        "no last line end" => text.trim_end().into(),
        _ => [whole, &[0; 512]].concat(),
    }
}

/// The harms, and a cut at every `step`th byte: each with its name and what is left.
fn harms(whole: &[u8], step: usize) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for way in HARMS {
        all.push((way.into(), harm(way, whole)));
    }
    for length in (1..whole.len()).step_by(step) {
        all.push((format!("cut at {length}"), whole[..length].into()));
    }
    all
}

/// The complete lines of a file of lines that are as they were, or as good.
fn whole_lines(way: &str, whole: &[u8], left: &[u8]) -> usize {
    match way {
        "empty" | "zeros" | "other text" | "other line" => 0,
        "zeros at the end" => count_lines(whole),
        _ => count_lines(left),
    }
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// The end that was cut off a file of lines stands in the file for it, and the file has none any more.
fn check_cut(path: &Path, left: &[u8], row: &str) {
    let end = left.iter().rposition(|byte| *byte == b'\n');
    let (kept, cut) = left.split_at(end.map_or(0, |end| end + 1));
    assert!(fs::read(path).unwrap().starts_with(kept), "{row}");
    let mut copy = path.to_path_buf();
    copy.as_mut_os_string().push("~cut");
    let copied = fs::read(copy).unwrap_or_default();
    let expected = [cut, b"\n"].concat();
    let expected = if cut.is_empty() { Vec::new() } else { expected };
    assert_eq!(copied, expected, "{row}");
}

fn own_credentials() -> Credentials {
    Credentials {
        agent_id: "P01".into(),
        registration_key: "k".repeat(32),
        league_id: "league".into(),
        manager: local(8000),
        endpoint: local(8101),
        folder: PathBuf::new(),
        token: Some("tok-p01-secret".into()),
        proves_itself: true,
        is_over: false,
    }
}

#[test]
fn damaged_credentials_are_named_and_never_taken_for_missing_ones() {
    let test = TestLeague::new("");
    let own = own_credentials();
    let data = &test.folder;
    let path = credentials::file(data, "P01");
    own.save(data, "P01").unwrap();
    let whole = fs::read(&path).unwrap();

    for (way, left) in harms(&whole, 1) {
        fs::write(&path, &left).unwrap();
        let is_whole = HARMLESS.contains(&&*way)
            || left.len() >= whole.len() - 1
                && left[..whole.len() - 1] == whole[..whole.len() - 1]
                && way != "zeros at the end";
        match Credentials::load(data, "P01") {
            Ok(found) => assert!(is_whole && found.as_ref() == Some(&own), "{way}: {found:?}"),
            Err(exit) => {
                let sentence = "P01.json is damaged; put it back, or remove it to register";
                assert!(!is_whole, "{way}");
                check_contains(&exit.message, sentence);
            }
        }
        assert_eq!(
            fs::read(&path).unwrap(),
            left,
            "{way}: the file is left alone"
        );
    }
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
    storage::replace(&path, storage::Access::Owner, "text").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    other.join().unwrap();
}

#[test]
fn damaged_history_is_set_aside() {
    let sample = Turn::sample().history[0].clone();
    let file = HistoryFile {
        player_id: "P01".into(),
        league_id: "league".into(),
        matches: Arc::new(vec![PastMatch {
            match_id: "R1M1".into(),
            ..sample
        }]),
    };
    let test = TestLeague::new("");
    let folder = test.folder.join("players/P01");
    let path = folder.join("history.json");
    storage::replace_json(&path, storage::Access::AllUsers, &file).unwrap();
    let whole = fs::read(&path).unwrap();

    let mut all = harms(&whole, 17);
    for (name, old, new) in [
        ("of another", "P01", "P02"),
        ("of elsewhere", "\"league\"", "\"other\""),
    ] {
        let other = String::from_utf8_lossy(&whole).replacen(old, new, 1);
        all.push((name.into(), other.into()));
    }
    for (way, left) in all {
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir_all(&folder).unwrap();
        fs::write(&path, &left).unwrap();
        let is_whole = [&HARMLESS[..], &["no last line end"]]
            .concat()
            .contains(&&*way);
        let history = History::open(&folder, "P01", "league", false).unwrap();
        assert_eq!(history.matches().len(), usize::from(is_whole), "{way}");
        let kept: Vec<PathBuf> = files(&folder);
        assert_eq!(kept.len(), 1, "{way}");
        assert_eq!(kept[0] == path, is_whole, "{way}: {kept:?}");
        assert_eq!(fs::read(&kept[0]).unwrap(), left, "{way}: it is kept");
    }
}

#[test]
fn damaged_outbox_keeps_its_whole_lines() {
    let test = TestLeague::new("");
    let folder = test.folder.join("REF01");
    let path = folder.join("outbox.jsonl");
    let mut text = String::new();
    for id in ["R1M1", "R2M1", "R3M1"] {
        text += &format!("{}\n", json!(decided_task(id)));
    }
    fs::create_dir_all(&folder).unwrap();
    fs::write(&path, text).unwrap();
    let whole = fs::read(&path).unwrap();

    let mut all = harms(&whole, 1);
    let middle =
        String::from_utf8_lossy(&whole).replacen("\"match_id\":\"R2M1\"", "\"match_id\":2", 1);
    all.push(("damaged line".into(), middle.into()));
    for (way, left) in all {
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir_all(&folder).unwrap();
        fs::write(&path, &left).unwrap();
        let mut tasks = Tasks::new(rules().system.retry_policy);
        open_again(|| tasks.open(&folder, false)).unwrap();
        let results = ["R1M1", "R2M1", "R3M1"].map(|id| tasks.by_match.contains_key(id));
        let expected = match &*way {
            "damaged line" => [true, false, true],
            _ => [1, 2, 3].map(|n| n <= whole_lines(&way, &whole, &left)),
        };
        assert_eq!(results, expected, "{way}");
        check_cut(&path, &left, &way);
    }
}

#[test]
fn damaged_journal_is_never_taken_for_a_new_one() {
    let test = TestLeague::new("");
    let data = test.folder.join("data");
    let folder = storage::league_folder(&data, &rules().league.league_id);
    let path = folder.join("journal.jsonl");
    let open = || open_again(|| Store::open(&data, rules(), false, false));
    let store = open().unwrap();
    for (sender, port) in [
        ("referee:REF01", 8001),
        ("player:P01", 8101),
        ("player:P02", 8102),
    ] {
        let from = caller(sender);
        let decided =
            |league: &_| offline::register(league, &meta(from.kind, &local(port)), &from).0;
        store.commit_event(decided).unwrap();
    }
    store
        .commit_event(|league| league.start_event(Some(7), league.pairings()))
        .unwrap();
    store
        .commit_event(|league| offline::assignment(league, 1, &["REF01".to_string()]))
        .unwrap();
    store
        .commit_event(|league| {
            result_event(league, "R1M1", &seeded(7, league.find("R1M1").unwrap()))
        })
        .unwrap();
    store.commit_event(|_| Some(Event::Paused)).unwrap();
    let events = store.read(|league| league.version) as usize;
    drop(store);
    let whole = fs::read(&path).unwrap();
    assert_eq!(count_lines(&whole), 1 + events, "{}", at("10:00:00"));

    for (way, left) in harms(&whole, 11) {
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(OPERATOR_FILE), "").unwrap();
        fs::write(&path, &left).unwrap();
        match (open(), whole_lines(&way, &whole, &left)) {
            (Ok(store), lines) => {
                assert_eq!(
                    store.read(|league| league.version) as usize + 1,
                    lines,
                    "{way}"
                );
            }
            (Err(error), lines) => {
                assert_eq!(lines, 0, "{way}: {error}");
                let error = error.to_string();
                check_contains(&error, "journal.jsonl: ");
                check_contains(&error, "with --fresh");
            }
        }
        check_cut(&path, &left, &way);
    }
}

#[test]
fn damaged_token_of_the_operator_is_replaced() {
    let test = TestLeague::new("");
    let path = test.league_file(OPERATOR_FILE);
    test.manager("").kill();
    let whole = fs::read_to_string(&path).unwrap();
    let mut all = harms(whole.as_bytes(), 20);
    all.push(("not UTF-8".into(), vec![0xff; whole.len()]));
    for (way, left) in all {
        fs::write(&path, &left).unwrap();
        let mut manager = test.manager("");
        manager.kill();
        let is_whole = [&HARMLESS[..], &["no last line end"]]
            .concat()
            .contains(&&*way);
        let says = "had no whole token, and gets a new one";
        assert_eq!(manager.errors().contains(says), !is_whole, "{way}");
        let token = fs::read_to_string(&path).unwrap();
        let token = token.trim_start_matches('\u{feff}').trim();
        assert_eq!(token == whole.trim(), is_whole, "{way}");
        assert_eq!(token.len(), whole.trim().len(), "{way}");
    }
}

#[test]
fn copied_credentials_name_the_folder_of_their_player() {
    let (test, manager) = with_manager("--players 3");
    let first = test.agent(&manager, "P01", "");
    first.line("is P01");
    let copy = test.folder.join("copy");
    fs::create_dir_all(copy.join("agents")).unwrap();
    let file = copy.join("agents").join("P01.json");
    fs::copy(test.folder.join("data/agents/P01.json"), &file).unwrap();

    let start = || {
        let arguments = format!("--manager {} --player-id P01 --port 0", manager.url());
        let mut command = test.command("player", &arguments);
        TestProcess::new(command.arg("--data").arg(&copy))
    };
    let mut second = start();
    assert_eq!(second.wait().code(), Some(1));
    let (file, data) = (file.display(), test.folder.join("data"));
    let expected = format!(
        "player: {file} is a copy: P01 runs on this machine, in the folder {}; end that program, \
         or remove the copy to register as another agent\n",
        data.display()
    );
    assert_eq!(second.errors(), expected);

    // When that has ended, the copy is as good.
    drop(first);
    start().line("is P01");
    assert_eq!(test.count("Registered"), 2, "the endpoint is another one");
}

/// The damage of a player's credentials in the lobby, while another place is free.
#[test]
fn player_with_damaged_credentials_is_no_second_person() {
    let test = TestLeague::new("");
    let manager = test.manager("--players 3");
    let mut first = test.agent(&manager, "P01", "");
    first.line("is P01");
    first.kill();
    let path = test.folder.join("data/agents/P01.json");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, "").unwrap();
    let arguments = format!("--manager {} --player-id P01", manager.url());
    let mut again = test.spawn("player", &arguments);
    assert_eq!(again.wait().code(), Some(1));
    check_contains(&again.errors(), "P01.json is damaged; put it back");
    fs::write(&path, harm("byte order mark", &whole)).unwrap();
    test.agent(&manager, "P01", "").line("is P01");
    let members = test.events("Registered");
    assert!(
        members.iter().all(|member| text_of(&member["id"]) == "P01"),
        "{members:?}"
    );
}
