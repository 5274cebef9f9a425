//! Leagues on paper that go as chance will have it: agents register, come again, get lost, report,
//! report falsely, and the operator meddles. All that happens is a command of a story
//! (`support/script.rs`), after which the manager dies, and the journal gives the same league
//! again. Whatever happens, the sums fit.

use super::support::offline::{referees, rules};
use super::support::offline_league::OfflineLeague;
use fastrand::Rng;
use league::games::result_status;
use league::manager::league::{League, Match};
use league::protocol::{AgentKind, LeaguePhase, MatchResult, ResultStatus};
use league::values::derive_seed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a false report says.
const LIES: [&str; 6] = [
    "round_id=9",
    "match_id=R99M99",
    "result/score/P01=7",
    "result/winner=P99",
    "result/details/drawn_number=0",
    r#"result/details/choices={"P98":"even"}"#,
];

/// Somebody registers: new, or again, with its token or key, another's, a wrong one or none.
fn register(rng: &mut Rng, story: &mut OfflineLeague) {
    let mut tokens = vec![String::new(), "token=guess".into()];
    let members = story.league.members.values();
    tokens.extend(members.map(|member| format!("token={}", member.token)));
    let kind = rng.choice(["referee 80", "player 81", "player 81", "player 81"]);
    let (kind, port) = kind.unwrap().split_once(' ').unwrap();
    let host = rng.choice(["localhost", "localhost", "10.0.0.7"]).unwrap();
    let mut command = format!("register {kind}");
    command += rng.choice([" P03", " REF02", " new", " alpha"]).unwrap();
    command += &format!(" at=http://{host}:{port}0{}/mcp ", rng.u8(1..10));
    command += &rng.choice(tokens).unwrap();
    command += rng
        .choice([" display_name=Ada", " display_name=Bob"])
        .unwrap();
    command += rng.choice(["", " key=one", " key=two"]).unwrap();
    command += rng.choice(["", " wanted"]).unwrap();
    for rare in [" from=elsewhere", " untrusted"] {
        command += if rng.u8(..6) == 0 { rare } else { "" };
    }
    let players = |story: &OfflineLeague| story.league.members(AgentKind::Player).len();
    let before = players(story);
    story.does(&command);
    let is_late = story.league.started && players(story) > before;
    assert!(!is_late, "no player comes late: {command}");
}

/// The operator says something.
fn operate(rng: &mut Rng, story: &mut OfflineLeague) {
    let words = ["pause", "resume", "remove", "restore", "new_lobby"];
    let about = ["P01", "P02", "P03", "REF01", "ada"];
    let (word, about) = (rng.choice(words).unwrap(), rng.choice(about).unwrap());
    story.does(&format!("operator {word} {about}"));
}

/// Referees get lost and come back; what is open is given to those that are there, or lost by the
/// removed.
fn assign(rng: &mut Rng, story: &mut OfflineLeague) {
    let mut present = referees(&story.league);
    present.retain(|_| rng.u8(..3) > 0);
    let Some(round) = story.league.open_round() else {
        return;
    };
    story.does(&format!("walkovers {round}"));
    story.does(&format!("assign {round} {}", present.join(" ")));
    let is_held = |game: &Arc<Match>| present.iter().any(|id| game.referee() == Some(id));
    let mut open = story.league.open_matches(round);
    let is_well = present.is_empty() || open.all(is_held);
    assert!(is_well, "nobody has an open match who is gone");
}

/// A referee reports one of its matches: as it was, once more, or falsely.
fn report(rng: &mut Rng, story: &mut OfflineLeague) {
    let game = rng.choice(&story.league.matches);
    let Some(game) = game.filter(|game| game.assignment().is_some()) else {
        return;
    };
    let recorded = game.recorded.as_ref();
    let sender = recorded.map_or(game.referee(), |item| Some(&item.referee_id));
    let sender = sender.unwrap();
    if !story.league.members.contains_key(sender) {
        return; // the manager itself, for a player who was removed
    }
    let how = match derive_seed(7, &[&game.id]) % 5 {
        0 => "A-fails",
        1 => "B-fails",
        _ => "as-it-happens",
    };
    let lie = rng.choice(LIES).filter(|_| rng.u8(..3) == 0);
    let conversation = rng.choice(["one", "two", "three"]).unwrap();
    let expected = match (lie.is_some(), recorded) {
        (true, _) => "refused: ",
        (false, Some(_)) => "nothing new: recorded",
        (false, None) => "recorded",
    };
    let status = ["", "result/details/status=null"][game.round as usize % 2]; // some referees do not say it
    let lie = lie.unwrap_or_default();
    let command = format!(
        "report {} {how} by={sender} conversation={conversation} {status} {lie}",
        game.id
    );
    let output = story.does(&command);
    assert!(output.starts_with(expected), "{command}: {output}");
}

/// What must hold at any time.
fn check(league: &League) {
    let table = league.table();
    let results: BTreeMap<&str, &MatchResult> = league
        .matches
        .iter()
        .filter_map(|game| Some((&*game.id, &game.recorded.as_ref()?.result)))
        .collect();
    let ids: BTreeSet<&str> = league.played.iter().map(String::as_str).collect();
    assert!(ids.iter().eq(results.keys()), "each match is recorded once");
    assert_eq!(ids.len(), league.played.len());
    let open = league.matches.iter().find(|game| game.recorded.is_none());
    let open = open.map(|game| game.round);
    let completed = open.map_or(league.rounds(), |round| round - 1);
    assert_eq!(
        (league.open_round(), league.rounds_completed),
        (open, completed)
    );
    let is_over = league.phase() == LeaguePhase::Completed;
    assert_eq!(is_over, league.started && open.is_none());
    let points: i32 = results
        .values()
        .flat_map(|item| item.score.iter())
        .map(|(_, points)| points)
        .sum();
    let shown: i32 = table.iter().map(|row| row.points).sum();
    assert_eq!(shown, points, "the points that were reported");
    assert!(table.is_sorted_by_key(|row| std::cmp::Reverse(row.points)));
    let players = league.members(AgentKind::Player);
    assert_eq!(table.len(), players.len());
    let room = league.config.league.participants.max_players;
    assert!(players.len() <= room as usize);
    for (rank, row) in (1..).zip(&table) {
        let games = league.matches_of(&row.player_id);
        let own: Vec<&MatchResult> = games
            .filter_map(|item| results.get(&*item.id).copied())
            .collect();
        let won = own
            .iter()
            .filter(|item| item.winner.as_ref() == Some(&row.player_id));
        let drawn = own
            .iter()
            .filter(|item| result_status(item) == ResultStatus::Draw);
        let counted = [own.len(), won.count(), drawn.count()].map(|count| count as u32);
        assert_eq!([row.played, row.wins, row.draws], counted, "{row:?}");
        assert_eq!(
            (row.rank, row.played),
            (rank, row.wins + row.draws + row.losses)
        );
        let stats = league.player_stats(league.player(&row.player_id).unwrap());
        let met = stats["opponents"].as_object().unwrap().values();
        let met = met.flat_map(|item| item.as_object().unwrap().values());
        let met: u64 = met.filter_map(|item| item.as_u64()).sum();
        assert_eq!(met, u64::from(row.played));
        assert_eq!(stats["points"], row.points);
    }
    let members = || league.members.values();
    let tokens: BTreeSet<&String> = members().map(|item| &item.token).collect();
    let endpoints: BTreeSet<&String> = members().map(|item| &item.meta.contact_endpoint).collect();
    let all = members().count();
    assert_eq!((tokens.len(), endpoints.len()), (all, all), "nobody shares");
}

#[test]
fn random_leagues_have_consistent_tables_and_journals() {
    let (mut finished, mut steps) = (0, 0);
    for seed in 0..150 {
        let (rng, mut rules) = (&mut Rng::with_seed(seed), rules());
        let league = &mut rules.league;
        league.scheduling.cycles = Some(rng.u32(1..3));
        league.participants.max_players = rng.u32(2..7);
        rng.shuffle(&mut league.scoring.tiebreakers);
        let story = &mut OfflineLeague::new(rules);
        for _ in 0..rng.u32(20..200) {
            let before = story.clone();
            match rng.u8(..18) {
                0..=3 => register(rng, story),
                4 => drop(story.does("start")),
                5 => drop(story.does(&format!("wait {}", rng.u32(..50_000)))),
                6..=8 => assign(rng, story),
                9 => operate(rng, story),
                _ => report(rng, story),
            }
            let _ = (before.league.table(), story.league.table());
            let is_well = before.journal != story.journal || before.league == story.league;
            assert!(is_well, "seed {seed}: what is refused changes nothing");
            check(&story.league);
            steps += 1;
        }
        finished += usize::from(story.league.phase() == LeaguePhase::Completed);
    }
    let enough = finished > 10 && steps > 10_000;
    assert!(enough, "{finished} of 150 leagues ended in {steps} steps");
}
