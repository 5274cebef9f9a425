//! Offline leagues with random events: agents register, register again, are lost, report, report
//! falsely, and the operator gives orders. Each event is a command of a script
//! (`support/offline_league.rs`), after which the manager dies and its journal gives the same league.
//! The sums of the table must always agree with the results.

use super::support::offline::{referees, rules};
use super::support::offline_league::OfflineLeague;
use fastrand::Rng;
use league::games::result_status;
use league::manager::league::{League, Match};
use league::protocol::{AgentKind, LeaguePhase, MatchResult, ResultStatus};
use league::values::derive_seed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The false field of a report.
const LIES: [&str; 6] = [
    "round_id=9",
    "match_id=R99M99",
    "result/score/P01=7",
    "result/winner=P99",
    "result/details/drawn_number=0",
    r#"result/details/choices={"P98":"even"}"#,
];

fn pick<'a>(rng: &mut Rng, words: &[&'a str]) -> &'a str {
    rng.choice(words).unwrap()
}

/// Registers an agent: a new one, or one with its token or key, another's, a wrong one or none.
fn register(rng: &mut Rng, script: &mut OfflineLeague) {
    let members = script.league.members.values();
    let mut tokens: Vec<String> = members.map(|member| member.token.clone()).collect();
    tokens.extend([String::new(), "guess".into()]);
    let kind = pick(rng, &["referee", "player", "player", "player"]);
    let mut command = format!("register {kind} ");
    command += pick(rng, &["P03", "REF02", "new", "alpha"]);
    let host = pick(rng, &["localhost", "localhost", "10.0.0.7"]);
    let port = if kind == "referee" { 8000 } else { 8100 } + rng.u32(1..10);
    command += &format!(" at=http://{host}:{port}/mcp");
    match rng.choice(tokens).unwrap() {
        none if none.is_empty() => {}
        token => command += &format!(" token={token}"),
    }
    command += pick(rng, &[" display_name=Ada", " display_name=Bob"]);
    command += pick(rng, &["", " key=one", " key=two"]);
    command += pick(rng, &["", " wanted"]);
    for rare in [" from=elsewhere", " untrusted"] {
        command += if rng.u8(..6) == 0 { rare } else { "" };
    }
    let players = |script: &OfflineLeague| script.league.members(AgentKind::Player).len();
    let before = players(script);
    script.does(&command);
    let is_late = script.league.started && players(script) > before;
    assert!(!is_late, "a player after the start: {command}");
}

/// Gives an order of the operator.
fn operate(rng: &mut Rng, script: &mut OfflineLeague) {
    let order = pick(rng, &["pause", "resume", "remove", "restore", "new_lobby"]);
    let agent = pick(rng, &["P01", "P02", "P03", "REF01", "ada"]);
    script.does(&format!("operator {order} {agent}"));
}

/// Assigns the open matches to the referees that are available, and records those of removed players.
fn assign(rng: &mut Rng, script: &mut OfflineLeague) {
    let mut available = referees(&script.league);
    available.retain(|_| rng.u8(..3) > 0);
    let Some(round) = script.league.open_round() else {
        return;
    };
    script.does(&format!("walkovers {round}"));
    script.does(&format!("assign {round} {}", available.join(" ")));
    let is_assigned = |game: &Arc<Match>| available.iter().any(|id| game.referee() == Some(id));
    let mut open = script.league.open_matches(round);
    assert!(available.is_empty() || open.all(is_assigned));
}

/// Reports a match: for the first time, once more, or falsely.
fn report(rng: &mut Rng, script: &mut OfflineLeague) {
    let game = rng.choice(&script.league.matches);
    let Some(game) = game.filter(|game| game.assignment().is_some()) else {
        return;
    };
    let recorded = game.recorded.as_ref();
    let sender = recorded.map_or(game.referee(), |recorded| Some(&recorded.referee_id));
    let sender = sender.unwrap();
    if !script.league.members.contains_key(sender) {
        return; // the manager has recorded it for a removed player
    }
    let how = match derive_seed(7, &[&game.id]) % 5 {
        0 => "A-fails",
        1 => "B-fails",
        _ => "as-it-happens",
    };
    let lie = rng.choice(LIES).filter(|_| rng.u8(..3) == 0);
    let conversation = pick(rng, &["one", "two", "three"]);
    let expected = match (lie, recorded) {
        (Some(_), _) => "refused: ",
        (None, Some(_)) => "nothing new: recorded",
        (None, None) => "recorded",
    };
    let status = ["", "result/details/status=null"][game.round as usize % 2]; // an optional field
    let lie = lie.unwrap_or_default();
    let id = &game.id;
    let command =
        format!("report {id} {how} by={sender} conversation={conversation} {status} {lie}");
    let output = script.does(&command);
    assert!(output.starts_with(expected), "{command}: {output}");
}

/// Checks the laws that hold at any time.
fn check(league: &League) {
    let recorded = league.matches.iter().filter_map(|game| {
        let recorded = game.recorded.as_ref()?;
        Some((&*game.id, &recorded.result))
    });
    let results: BTreeMap<&str, &MatchResult> = recorded.collect();
    let played: BTreeSet<&str> = league.played.iter().map(String::as_str).collect();
    assert!(played.iter().eq(results.keys()), "one record for a match");
    assert_eq!(played.len(), league.played.len());
    let open = league.matches.iter().find(|game| game.recorded.is_none());
    let open = open.map(|game| game.round);
    let completed = open.map_or(league.rounds(), |round| round - 1);
    assert_eq!(league.open_round(), open);
    assert_eq!(league.rounds_completed, completed);
    let is_over = league.phase() == LeaguePhase::Completed;
    assert_eq!(is_over, league.started && open.is_none());

    let table = league.table();
    let points = results.values().flat_map(|result| result.score.iter());
    let points: i32 = points.map(|(_, points)| points).sum();
    assert_eq!(table.iter().map(|row| row.points).sum::<i32>(), points);
    assert!(table.is_sorted_by_key(|row| std::cmp::Reverse(row.points)));
    assert_eq!(table.len(), league.members(AgentKind::Player).len());
    let room = league.config.league.participants.max_players;
    assert!(table.len() <= room as usize);
    for (rank, row) in (1..).zip(&table) {
        let own = league.matches_of(&row.player_id);
        let own: Vec<&MatchResult> = own
            .filter_map(|game| results.get(&*game.id).copied())
            .collect();
        let count = |holds: &dyn Fn(&MatchResult) -> bool| {
            own.iter().filter(|result| holds(result)).count() as u32
        };
        let won = count(&|result| result.winner.as_ref() == Some(&row.player_id));
        let drawn = count(&|result| result_status(result) == ResultStatus::Draw);
        let all = own.len() as u32;
        assert_eq!(
            [row.rank, row.played, row.wins, row.draws],
            [rank, all, won, drawn]
        );
        assert_eq!(row.losses, all - won - drawn);
        let stats = league.player_stats(league.player(&row.player_id).unwrap());
        let opponents = stats["opponents"].as_object().unwrap().values();
        let met = opponents.flat_map(|opponent| opponent.as_object().unwrap().values());
        let met: u64 = met.filter_map(|count| count.as_u64()).sum();
        assert_eq!(met, u64::from(all));
        assert_eq!(stats["points"], row.points);
    }
    let members = || league.members.values();
    let tokens: BTreeSet<&String> = members().map(|member| &member.token).collect();
    let endpoints = members().map(|member| &member.meta.contact_endpoint);
    let endpoints: BTreeSet<&String> = endpoints.collect();
    let all = members().count();
    assert_eq!([tokens.len(), endpoints.len()], [all; 2], "none is shared");
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
        let script = &mut OfflineLeague::new(rules);
        for _ in 0..rng.u32(20..200) {
            let before = script.clone();
            match rng.u8(..18) {
                0..=3 => register(rng, script),
                4 => drop(script.does("start")),
                5 => drop(script.does(&format!("wait {}", rng.u32(..50_000)))),
                6..=8 => assign(rng, script),
                9 => operate(rng, script),
                _ => report(rng, script),
            }
            let _ = (before.league.table(), script.league.table()); // a table is made on demand
            let is_well = before.journal != script.journal || before.league == script.league;
            assert!(is_well, "seed {seed}: a change without an event");
            check(&script.league);
            steps += 1;
        }
        finished += usize::from(script.league.phase() == LeaguePhase::Completed);
    }
    let enough = finished > 10 && steps > 10_000;
    assert!(enough, "{finished} of 150 leagues ended in {steps} steps");
}
