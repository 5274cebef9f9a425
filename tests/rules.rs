//! The rooms that only calculate: schedule, standings, the game, strategies, liveness, retries. One row per rule.

mod support;

use league::{
    config::RetryPolicy,
    config_files::Backoff,
    failure::{Failure, retry},
    game::{Outcome, Scoring, choice, draw, forfeit, judge, score},
    http::Trouble,
    liveness::{self, Heard, patience},
    protocol::{Code, Ending, GameResult, MatchResult, Parity, Refusal},
    schedule::round_robin,
    standings::{Played, TieBreak, ending, table},
    strategies::{ALL, Past, Turn, named},
};
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

const USUAL: Scoring = Scoring { win: 3, draw: 1, loss: 0, technical_loss: 0 };

fn sec(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn pair(a: &str, b: &str) -> [String; 2] {
    [a.into(), b.into()]
}

#[test]
fn every_pair_meets_once_a_cycle_with_fair_byes_and_balanced_roles() {
    for (n, cycles) in (2..=12).flat_map(|n| (1..=3).map(move |cycles| (n, cycles))) {
        let row = format!("{n} players, {cycles} cycles");
        let players: Vec<String> = (1..=n).map(|n| format!("P{n:02}")).collect();
        let rounds = round_robin(&players, cycles as u32);
        assert_eq!(rounds.len(), cycles * (n - (n + 1) % 2), "{row}: rounds");
        assert_eq!(rounds.concat().len(), cycles * n * (n - 1) / 2, "{row}: matches");
        let (mut met, mut rested) = (BTreeMap::<_, Vec<bool>>::new(), BTreeMap::<_, usize>::new());
        for round in &rounds {
            let busy: BTreeSet<&String> = round.iter().flat_map(|(a, b)| [a, b]).collect();
            assert_eq!(busy.len(), 2 * round.len(), "{row}: nobody twice in {round:?}");
            round.iter().for_each(|(a, b)| met.entry((a.min(b), a.max(b))).or_default().push(a < b));
            players.iter().for_each(|player| *rested.entry(player).or_default() += usize::from(!busy.contains(player)));
        }
        assert_eq!(met.len(), n * (n - 1) / 2, "{row}: pairs");
        for (pair, lower_is_a) in &met {
            let turns: Vec<bool> = (0..cycles).map(|cycle| lower_is_a[0] == (cycle % 2 == 0)).collect();
            assert_eq!(*lower_is_a, turns, "{row}: {pair:?} meet once a cycle and change roles");
        }
        assert!(rested.values().all(|rests| *rests == cycles * (n % 2)), "{row}: byes {rested:?}");
        for player in &players {
            let a = rounds.iter().flatten().filter(|(a, _)| a == player).count();
            let b = rounds.iter().flatten().filter(|(_, b)| b == player).count();
            assert!(a.abs_diff(b) <= 1, "{row}: {player} is A {a} times and B {b} times");
        }
    }
    assert!(round_robin(&[], 1).concat().is_empty() && round_robin(&["P01".into()], 1).concat().is_empty());
}

/// `P01>P02` won, `P01=P02` drawn, `P01!P02` won since the other failed, `P01#P02` both failed.
fn games(text: &str, scoring: &Scoring) -> Vec<(String, String, MatchResult)> {
    let game = |text: &str| {
        let (a, how, b) = (&text[..3], &text[3..4], &text[4..]);
        let late = Some("came late".to_string());
        let outcome = match how {
            ">" => judge(pair(a, b), [Parity::Even, Parity::Odd], 8),
            "=" => judge(pair(a, b), [Parity::Odd, Parity::Odd], 8),
            "!" => forfeit(pair(a, b), [None, None], [None, late]),
            _ => forfeit(pair(a, b), [None, None], [late.clone(), late]),
        };
        (a.into(), b.into(), outcome.for_manager(scoring))
    };
    text.split_whitespace().map(game).collect()
}

/// The table of everybody in `games`, and of `others`.
fn standings(text: &str, others: &[&str], scoring: &Scoring, ties: &[TieBreak]) -> Vec<league::protocol::Standing> {
    let games = games(text, scoring);
    let names: BTreeSet<&str> = games.iter().flat_map(|(a, b, _)| [&**a, b]).chain(others.iter().copied()).collect();
    let players: Vec<(&str, &str)> = names.into_iter().map(|id| (id, id)).collect();
    let played: Vec<Played> = games.iter().map(|(a, b, result)| Played { players: [a, b], result }).collect();
    let rows = table(&players, &played, scoring, ties);
    assert!((1..).zip(&rows).all(|(rank, row)| row.rank == rank), "ranks without gaps: {rows:?}");
    rows
}

#[test]
fn equals_are_told_apart_in_the_configured_order() {
    use TieBreak::{Draws, HeadToHead, Wins};
    // Six points each: P02 has more wins and fewer draws, P01 won their match.
    let contested = "P01>P02 P01=P03 P01=P04 P01=P05 P02>P03 P02>P04";
    // Six points each: P03 beat both, P02 beat P01.
    let three = "P03>P02 P03>P01 P02>P01 P02>P04 P01>P04 P01>P05";
    // Six points each; P03 has fewer wins. Its match against P01 must not count between P01 and P02.
    let rest = "P02>P01 P01>P03 P01>P04 P02>P04 P03>P04 P03=P05 P03=P06 P03=P07";
    // Nine points each. Among the four P03 and P04 have three points each; P04 beat P03.
    let once = "P02>P01 P02>P03 P02>P04 P04>P03 P03>P01 P01>P05 P01>P06 P01>P07 P03>P05 P03>P06 P04>P05 P04>P06";
    let rows: &[(&str, &[TieBreak], &str)] = &[
        (contested, &[], "P01 P02"),
        (contested, &[Wins], "P02 P01"),
        (contested, &[HeadToHead], "P01 P02"),
        (contested, &[Draws], "P02 P01"),
        (contested, &[Wins, HeadToHead, Draws], "P02 P01"),
        (contested, &[HeadToHead, Wins, Draws], "P01 P02"),
        (contested, &[Draws, HeadToHead, Wins], "P02 P01"),
        (three, &[], "P01 P02 P03"),
        (three, &[HeadToHead], "P03 P02 P01"),
        (three, &[Wins, HeadToHead, Draws], "P03 P02 P01"),
        (rest, &[Wins, HeadToHead], "P02 P01 P03"),
        (rest, &[HeadToHead, Wins], "P01 P02 P03"),
        (once, &[HeadToHead], "P02 P03 P04 P01"),
        ("P02>P01", &[Wins, HeadToHead, Draws], "P02 P01"),
        ("P02!P01", &[Wins, HeadToHead, Draws], "P02 P01"),
    ];
    for (text, ties, expected) in rows {
        let table = standings(text, &[], &USUAL, ties);
        let wanted: Vec<&str> = expected.split(' ').collect();
        let order: Vec<&str> = table.iter().map(|row| &*row.player_id).filter(|id| wanted.contains(id)).collect();
        assert_eq!(order, wanted, "{text} by {ties:?}");
    }
    let nobody_played = standings("", &["P100", "P99", "P09"], &USUAL, &[Wins]);
    assert_eq!(nobody_played.iter().map(|row| &*row.player_id).collect::<Vec<_>>(), ["P09", "P99", "P100"]);
}

#[test]
fn points_come_from_the_scoring_and_a_technical_loss_is_a_loss() {
    let other = Scoring { win: 5, draw: 2, loss: 1, technical_loss: -1 };
    // The game, then for each side: played, wins, draws, losses, usual points, points of the other scoring.
    let rows = [
        ("P01>P02", [1, 1, 0, 0, 3, 5], [1, 0, 0, 1, 0, 1]),
        ("P01=P02", [1, 0, 1, 0, 1, 2], [1, 0, 1, 0, 1, 2]),
        ("P01!P02", [1, 1, 0, 0, 3, 5], [1, 0, 0, 1, 0, -1]),
        ("P01#P02", [1, 0, 0, 1, 0, -1], [1, 0, 0, 1, 0, -1]),
        ("P01>P02 P02>P01 P01=P02", [3, 1, 1, 1, 4, 8], [3, 1, 1, 1, 4, 8]),
    ];
    for (text, a, b) in rows {
        let [usual, changed] = [USUAL, other].map(|scoring| standings(text, &[], &scoring, &[]));
        for (id, expected) in [("P01", a), ("P02", b)] {
            let row = |table: &[league::protocol::Standing]| table.iter().find(|row| row.player_id == id).cloned();
            let (row, points) = (row(&usual).unwrap(), row(&changed).unwrap().points);
            let counts = [row.played, row.wins, row.draws, row.losses].map(|count| count as i32);
            assert_eq!([&counts[..], &[row.points, points]].concat(), expected, "{text}: {id}");
        }
    }
}

#[test]
fn without_a_status_the_number_says_how_a_match_ended() {
    let rows = [(">", Ending::Win), ("=", Ending::Draw), ("!", Ending::TechnicalLoss), ("#", Ending::TechnicalLoss)];
    for (how, expected) in rows {
        let (_, _, mut result) = games(&format!("P01{how}P02"), &USUAL).remove(0);
        assert_eq!(ending(&result), expected, "{how} with its status");
        result.details.status = None;
        assert_eq!(ending(&result), expected, "{how} without a status");
    }
}

#[test]
fn draws_are_uniform_and_follow_from_seed_and_match_alone() {
    let matches: Vec<String> = (1..=100).flat_map(|r| (1..=100).map(move |m| format!("R{r}M{m}"))).collect();
    let fixed = |seed: u64| matches.iter().map(move |id| draw(Some(seed), id));
    let rows: [(&str, Vec<u32>); 4] = [
        ("one seed, all matches", fixed(7).collect()),
        ("another seed", fixed(2025).collect()),
        ("all seeds, one match", (0..10_000).map(|seed| draw(Some(seed), "R1M1")).collect()),
        ("a small league each", (0..1_666).flat_map(|seed| fixed(seed).take(6)).collect()),
    ];
    for (row, draws) in &rows {
        let count = |n: u32| draws.iter().filter(|drawn| **drawn == n).count() as f64;
        let expected = draws.len() as f64 / 10.0;
        let chi_square: f64 = (1..=10).map(|n| (count(n) - expected).powi(2) / expected).sum();
        assert!(draws.iter().all(|n| (1..=10).contains(n)), "{row}");
        assert!(chi_square < 27.9, "{row}: {chi_square} is too much for nine degrees of freedom (p < 0.001)");
    }
    assert_eq!(fixed(7).collect::<Vec<_>>(), rows[0].1, "the same in every run");
    assert_ne!(rows[0].1, rows[1].1, "another seed, other numbers");
    let unseeded: BTreeSet<u32> = (0..1_000).map(|_| draw(None, "R1M1")).collect();
    assert_eq!(unseeded, (1..=10).collect(), "without a seed every number comes");
}

#[test]
fn whose_choice_is_the_numbers_parity_wins() {
    use {Ending::*, Parity::*};
    let rows = [
        (Even, Odd, 8, Some(0), "P01 chose even, number was 8 (even)", [3, 0]),
        (Even, Odd, 7, Some(1), "P02 chose odd, number was 7 (odd)", [0, 3]),
        (Odd, Even, 1, Some(0), "P01 chose odd, number was 1 (odd)", [3, 0]),
        (Odd, Even, 10, Some(1), "P02 chose even, number was 10 (even)", [0, 3]),
        (Odd, Odd, 4, None, "Both chose odd, number was 4 (even) - both incorrect", [1, 1]),
        (Even, Even, 4, None, "Both chose even, number was 4 (even) - both correct", [1, 1]),
    ];
    for (a, b, number, winner, reason, points) in rows {
        let outcome = judge(pair("P01", "P02"), [a, b], number);
        let how = if winner.is_some() { Win } else { Draw };
        assert_eq!((outcome.winner, &*outcome.reason, outcome.ending()), (winner, reason, how));
        assert_eq!(score(how, winner, &USUAL), points, "{reason}");
        check_told(&outcome, json!([a, b]), json!(number), points);
    }
}

#[test]
fn whoever_fails_loses_technically() {
    let (late, no) = (Some("came late".to_string()), None);
    let rows = [
        ([late.clone(), no.clone()], Some(1), "P01 came late - P02 wins by default", [0, 3]),
        ([no, late.clone()], Some(0), "P02 came late - P01 wins by default", [3, 0]),
        ([late.clone(), late], None, "P01 came late and P02 came late - nobody wins", [0, 0]),
    ];
    for (failures, winner, reason, points) in rows {
        let outcome = forfeit(pair("P01", "P02"), [None, Some(Parity::Odd)], failures);
        assert_eq!((outcome.winner, &*outcome.reason), (winner, reason));
        assert_eq!(outcome.ending(), Ending::TechnicalLoss, "{reason}");
        check_told(&outcome, json!([null, "odd"]), Value::Null, points);
    }
}

/// What players and manager are told of an outcome.
fn check_told(outcome: &Outcome, choices: Value, number: Value, points: [i32; 2]) {
    let winner = outcome.winner.map(|seat| &outcome.players[seat]);
    let choices = json!({"P01": choices[0], "P02": choices[1]});
    let parity = number.as_u64().map(|number| if number % 2 == 0 { "even" } else { "odd" });
    let players = json!({
        "status": outcome.ending(), "winner_player_id": winner, "drawn_number": number, "number_parity": parity,
        "choices": choices, "reason": outcome.reason,
    });
    let details = json!({
        "drawn_number": number, "choices": choices, "status": outcome.ending(), "reason": outcome.reason,
    });
    let manager = json!({"winner": winner, "score": {"P01": points[0], "P02": points[1]}, "details": details});
    assert_eq!(json!(outcome.for_players()), players);
    assert_eq!(json!(outcome.for_manager(&USUAL)), manager);
}

#[test]
fn only_even_and_odd_are_choices() {
    assert_eq!(choice(&json!("even")), Ok(Parity::Even));
    assert_eq!(choice(&json!("odd")), Ok(Parity::Odd));
    let illegal = json!(["Even", "EVEN", "e", "maybe", 0, 1, false, true, null, "", " even", ["even"], {"even": 1}]);
    for came in illegal.as_array().unwrap() {
        let refusal = choice(came).unwrap_err();
        assert_eq!(refusal.code, Code::E004, "{came}");
        assert!(refusal.explain().contains(&format!("got {came}")), "{}", refusal.explain());
        assert_eq!(refusal.context["valid_choices"], json!(["even", "odd"]));
    }
}

/// A history like `P02:eo P03:-e`: the opponent, then our choice and its, `-` for none.
fn turn(strategy: &str, opponent_id: &str, history: &str) -> Turn {
    let made = |letter: &str| match letter {
        "e" => Some(Parity::Even),
        "o" => Some(Parity::Odd),
        _ => None,
    };
    let past = |(n, text): (usize, &str)| Past {
        match_id: format!("R{n}M1"),
        conversation_id: format!("conv-r{n}m1"),
        opponent_id: text[..3].into(),
        result: GameResult {
            status: Ending::Draw,
            winner_player_id: None,
            drawn_number: None,
            number_parity: None,
            choices: BTreeMap::from([("P01".into(), made(&text[4..5])), (text[..3].into(), made(&text[5..]))]),
            reason: None,
        },
    };
    Turn {
        player_id: "P01".into(),
        opponent_id: opponent_id.into(),
        match_id: "R9M1".into(),
        round_id: 9,
        standings: None,
        history: (1..).zip(history.split_whitespace()).map(past).collect(),
        strategy: strategy.into(),
        seed: Some(7),
        deadline: Instant::now() + sec(30),
    }
}

#[test]
fn each_strategy_chooses_by_what_it_has_seen() {
    let rows = [
        ("even", "", "P02", "even"),
        ("even", "P02:ee", "P02", "even"),
        ("odd", "", "P02", "odd"),
        ("odd", "P02:oo", "P02", "odd"),
        ("alternate", "", "P02", "even"),
        ("alternate", "P02:eo", "P03", "odd"),
        ("alternate", "P02:eo P03:oe", "P04", "even"),
        ("alternate", "P02:eo P03:-e", "P04", "odd"), // nothing was chosen in between
        ("contrary", "P02:ee", "P02", "odd"),
        ("contrary", "P02:eo", "P02", "even"),
        ("contrary", "P02:oe P02:oe P02:oo", "P02", "odd"),
        ("contrary", "P02:oe P03:oo P03:oo", "P02", "odd"), // of P02 more is known than of all others
        ("contrary", "P02:oe P02:oe P03:oo", "P04", "odd"), // a newcomer is taken for one like all others
        ("contrary", "P02:o- P03:eo", "P02", "even"),       // P02 has never chosen
    ];
    for (strategy, history, opponent, expected) in rows {
        let choose = named(strategy).unwrap();
        let chosen = choose(&turn(strategy, opponent, history));
        assert_eq!(chosen.word(), expected, "{strategy} against {opponent} after {history:?}");
    }
    assert!(named("nobody").is_none() && named("Even").is_none());
    assert_eq!(
        ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["random", "even", "odd", "alternate", "contrary"]
    );
}

type Change = fn(&mut Turn, usize);

#[test]
fn with_a_seed_random_choices_are_the_same_in_every_run() {
    let changed = |change: Change| {
        (0..1_000).map(move |n| {
            let mut turn = turn("random", "P02", "");
            change(&mut turn, n);
            turn
        })
    };
    let rows: [(&str, Change); 3] = [
        ("match", |turn, n| turn.match_id = format!("R{n}M1")),
        ("player", |turn, n| turn.player_id = format!("P{n:02}")),
        ("seed", |turn, n| turn.seed = Some(n as u64)),
    ];
    for (name, strategy) in [("random", named("random").unwrap()), ("contrary", named("contrary").unwrap())] {
        for (what, change) in rows {
            let choices: Vec<Parity> = changed(change).map(|turn| strategy(&turn)).collect();
            let again: Vec<Parity> = changed(change).map(|turn| strategy(&turn)).collect();
            assert_eq!(choices, again, "{name}: by {what}");
            let even = choices.iter().filter(|choice| **choice == Parity::Even).count();
            assert!((430..=570).contains(&even), "{name}: {even} of 1000 are even, by {what}");
        }
    }
}

#[test]
fn a_referee_counts_by_what_was_heard_of_it() {
    use liveness::Liveness::*;
    let heard = |unreachable, refused| Heard { unreachable, refused };
    let (silent, dead) = (heard(false, None), heard(true, None));
    // What was heard, how often it has registered, by when it must have reported, now.
    let rows = [
        (silent, 1, None, 0, Alive),
        (silent, 1, None, 1_000, Alive),
        (silent, 1, Some(10), 9, Alive),
        (silent, 1, Some(10), 10, Alive),
        (silent, 1, Some(10), 11, Overdue),
        (dead, 1, None, 0, Lost),
        (dead, 2, Some(10), 9, Lost),
        (dead, 1, Some(10), 11, Lost),
        (heard(false, Some(1)), 1, None, 0, Refusing),
        (heard(false, Some(1)), 2, None, 0, Alive), // registered again
        (heard(false, Some(1)), 2, Some(10), 11, Overdue),
        (heard(true, Some(1)), 1, Some(10), 11, Refusing), // worse than lost: answering is not enough
        (heard(true, Some(1)), 2, None, 0, Lost),
    ];
    for (heard, registrations, due, now, expected) in rows {
        let standing = liveness::liveness(heard, registrations, due.map(sec), sec(now));
        assert_eq!(standing, expected, "{heard:?}, registered {registrations} times, due {due:?}, now {now}");
    }
    for (matches, at_once, seconds) in [(0, 2, 0), (1, 2, 10), (2, 2, 10), (3, 2, 20), (7, 1, 70), (3, 0, 30)] {
        assert_eq!(patience(matches, at_once, sec(10)), sec(seconds), "{matches} matches, {at_once} at once");
    }
}

#[test]
fn the_retry_policy_counts_attempts_in_all() {
    let late = || Failure::Trouble(Trouble::Late);
    let gone = || Failure::Trouble(Trouble::Unreachable("refused".into()));
    let wrong = || Failure::Wrong(Refusal::new(Code::E003, "nonsense"));
    use Backoff::{Exponential, Fixed};
    // Attempts in all, how they fail, the delays between them in seconds, and which attempt the answer is.
    let rows = [
        (3, Exponential, vec![], vec![], Ok(1)),
        (3, Exponential, vec![gone()], vec![2], Ok(2)),
        (3, Exponential, vec![late(), gone()], vec![2, 4], Ok(3)),
        (3, Exponential, vec![late(), late(), gone()], vec![2, 4], Err(gone())),
        (3, Fixed, vec![late(), gone(), late()], vec![2, 2], Err(late())),
        (5, Exponential, vec![late(), late(), late(), late()], vec![2, 4, 8, 16], Ok(5)),
        (1, Exponential, vec![gone()], vec![], Err(gone())),
        (3, Exponential, vec![late(), wrong()], vec![2], Err(wrong())), // the same again would not help
    ];
    for (attempts, backoff, failures, delays, expected) in rows {
        let row = format!("{attempts} attempts, {backoff}, {failures:?}");
        let policy = RetryPolicy { attempts, base_delay: sec(2), backoff };
        let pauses = RefCell::new(Vec::new());
        let mut made = 0;
        let attempt = || {
            made += 1;
            failures.get(made - 1).cloned().map_or(Ok(made), Err)
        };
        let done = retry(&policy, |delay| pauses.borrow_mut().push(delay.as_secs()), Failure::is_trouble, attempt);
        assert_eq!(done, expected, "{row}");
        assert_eq!(pauses.into_inner(), delays, "{row}");
    }
    let policy = RetryPolicy { attempts: 3, base_delay: sec(2), backoff: Exponential };
    assert_eq!(policy.longest(sec(30)), sec(30 + 2 + 30 + 4 + 30));
}
