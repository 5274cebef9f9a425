//! The rooms that only calculate: schedule, standings, retries. One row per rule.

mod support;

use league::games::{Outcome, Scoring, TieBreak, forfeit, judge};
use league::manager::league::Rules;
use league::manager::league::{Event, League, Recorded};
use league::manager::schedule::round_robin;
use league::manager::standings::ending;
use league::net::retry::{Backoff, CallError, RetryPolicy, retry};
use league::protocol::{Code, Ending, Kind, Parity, Refusal, Standing};
use league::wire::Wire;
use std::{cell::RefCell, collections::BTreeMap, collections::BTreeSet, time::Duration};
use support::paper::{at, caller, enter, local, meta, rules, scoring, usual};

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
        assert_eq!(
            rounds.concat().len(),
            cycles * n * (n - 1) / 2,
            "{row}: matches"
        );
        let (mut met, mut rested) = (BTreeMap::<_, Vec<bool>>::new(), BTreeMap::<_, usize>::new());
        for round in &rounds {
            let busy: BTreeSet<&String> = round.iter().flatten().collect();
            assert_eq!(
                busy.len(),
                2 * round.len(),
                "{row}: nobody twice in {round:?}"
            );
            round
                .iter()
                .for_each(|[a, b]| met.entry((a.min(b), a.max(b))).or_default().push(a < b));
            players.iter().for_each(|player| {
                *rested.entry(player).or_default() += usize::from(!busy.contains(player))
            });
        }
        assert_eq!(met.len(), n * (n - 1) / 2, "{row}: pairs");
        for (pair, lower_is_a) in &met {
            let turns: Vec<bool> = (0..cycles)
                .map(|cycle| lower_is_a[0] == (cycle % 2 == 0))
                .collect();
            assert_eq!(
                *lower_is_a, turns,
                "{row}: {pair:?} meet once a cycle and change roles"
            );
        }
        assert!(
            rested.values().all(|rests| *rests == cycles * (n % 2)),
            "{row}: byes {rested:?}"
        );
        for player in &players {
            let a = rounds.iter().flatten().filter(|[a, _]| a == player).count();
            let b = rounds.iter().flatten().filter(|[_, b]| b == player).count();
            assert!(
                a.abs_diff(b) <= 1,
                "{row}: {player} is A {a} times and B {b} times"
            );
        }
    }
    assert!(
        round_robin(&[], 1).concat().is_empty()
            && round_robin(&["P01".into()], 1).concat().is_empty()
    );
}

/// `P01>P02` won, `P01=P02` drawn, `P01!P02` won since the other failed, `P01#P02` both failed.
fn ended(text: &str) -> Outcome {
    let players = pair(&text[..3], &text[4..]);
    let late = Some("came late".to_string());
    match &text[3..4] {
        ">" => judge(players, [Parity::Even, Parity::Odd], 8),
        "=" => judge(players, [Parity::Odd, Parity::Odd], 8),
        "!" => forfeit(players, Vec::new(), [None, late]),
        _ => forfeit(players, Vec::new(), [late.clone(), late]),
    }
}

/// The table of everybody in `text`, and of `others`, after a league of these matches.
fn standings(text: &str, others: &[&str], scoring: &Scoring, ties: &[TieBreak]) -> Vec<Standing> {
    let games: Vec<Outcome> = text.split_whitespace().map(ended).collect();
    let scoring = Scoring {
        tiebreakers: ties.to_vec(),
        ..scoring.clone()
    };
    let mut league = League::new(Rules {
        scoring: scoring.clone(),
        listed: Vec::new(),
        ..rules()
    });
    let ids = games
        .iter()
        .flat_map(|game| game.players.clone())
        .chain(others.iter().map(|id| id.to_string()));
    for (port, id) in (9000..).zip(ids.collect::<BTreeSet<_>>()) {
        let sender = format!("player:{id}");
        enter(
            &mut league,
            &meta(Kind::Player, &local(port)),
            &caller(&sender),
        );
    }
    let pairs = games.iter().map(|game| game.players.clone()).collect();
    league.apply(&Event::Started {
        seed: None,
        rounds: vec![pairs],
    });
    for (n, game) in (1..).zip(&games) {
        league.apply(&Event::Recorded(Recorded {
            match_id: format!("R1M{n}"),
            referee_id: "REF01".into(),
            conversation_id: format!("conv-{n}"),
            result: game.for_manager(&scoring),
            at: at("11:00:00"),
        }));
    }
    let rows = league.table();
    assert!(
        (1..).zip(rows).all(|(rank, row)| row.rank == rank),
        "ranks without gaps: {rows:?}"
    );
    rows.to_vec()
}

#[test]
fn equals_are_told_apart_in_the_configured_order() {
    // Six points each: P02 has more wins and fewer draws, P01 won their match.
    let contested = "P01>P02 P01=P03 P01=P04 P01=P05 P02>P03 P02>P04";
    // Six points each: P03 beat both, P02 beat P01.
    let three = "P03>P02 P03>P01 P02>P01 P02>P04 P01>P04 P01>P05";
    // Six points each; P03 has fewer wins. Its match against P01 must not count between P01 and P02.
    let rest = "P02>P01 P01>P03 P01>P04 P02>P04 P03>P04 P03=P05 P03=P06 P03=P07";
    // Nine points each. Among the four P03 and P04 have three points each; P04 beat P03.
    let once = "P02>P01 P02>P03 P02>P04 P04>P03 P03>P01 P01>P05 P01>P06 P01>P07 P03>P05 P03>P06 P04>P05 P04>P06";
    // Which matches, by which tie-breaks (none, `w`ins, `h`ead to head, `d`raws), and the order of these players.
    let rows = "
        contested -   P01 P02
        contested w   P02 P01
        contested h   P01 P02
        contested d   P02 P01
        contested whd P02 P01
        contested hwd P01 P02
        contested dhw P02 P01
        three     -   P01 P02 P03
        three     h   P03 P02 P01
        three     whd P03 P02 P01
        rest      wh  P02 P01 P03
        rest      hw  P01 P02 P03
        once      h   P02 P03 P04 P01
        P02>P01   whd P02 P01
        P02!P01   whd P02 P01";
    for row in rows.lines().skip(1) {
        let words: Vec<&str> = row.split_whitespace().collect();
        let text = match words[0] {
            "contested" => contested,
            "three" => three,
            "rest" => rest,
            "once" => once,
            text => text,
        };
        let ties = words[1].chars().filter_map(|letter| match letter {
            'w' => Some(TieBreak::Wins),
            'h' => Some(TieBreak::HeadToHead),
            'd' => Some(TieBreak::Draws),
            _ => None,
        });
        let table = standings(text, &[], &usual(), &ties.collect::<Vec<_>>());
        let ids = table.iter().map(|row| &*row.player_id);
        let order: Vec<&str> = ids.filter(|id| words[2..].contains(id)).collect();
        assert_eq!(order, words[2..], "{row}");
    }
    let nobody_played = standings("", &["P100", "P99", "P09"], &usual(), &[TieBreak::Wins]);
    let order: Vec<&str> = nobody_played.iter().map(|row| &*row.player_id).collect();
    assert_eq!(order, ["P09", "P99", "P100"]);
}

#[test]
fn points_come_from_the_scoring_and_a_technical_loss_is_a_loss() {
    // The games; then of P01 and of P02 wins, draws, losses, the usual points, and the points of another scoring.
    let rows = "
        P01>P02                 | 1 0 0 3 5  | 0 0 1 0 1
        P01=P02                 | 0 1 0 1 2  | 0 1 0 1 2
        P01!P02                 | 1 0 0 3 5  | 0 0 1 0 -1
        P01#P02                 | 0 0 1 0 -1 | 0 0 1 0 -1
        P01>P02 P02>P01 P01=P02 | 1 1 1 4 8  | 1 1 1 4 8";
    for row in rows.lines().skip(1) {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let table = |scoring| standings(columns[0], &[], &scoring, &[]);
        let (usual, other) = (table(usual()), table(scoring([5, 2, 1, -1])));
        for (id, expected) in ["P01", "P02"].iter().zip(&columns[1..]) {
            let find = |table: &[Standing]| table.iter().find(|it| it.player_id == *id).cloned();
            let (it, other) = (find(&usual).unwrap(), find(&other).unwrap());
            let counts = format!("{} {} {}", it.wins, it.draws, it.losses);
            let came = format!("{counts} {} {}", it.points, other.points);
            assert_eq!(came, *expected, "{row}");
            assert_eq!(it.played, it.wins + it.draws + it.losses, "{row}");
        }
    }
}

#[test]
fn without_a_status_the_number_says_how_a_match_ended() {
    use Ending::{Draw, TechnicalLoss, Win};
    for (how, expected) in [
        (">", Win),
        ("=", Draw),
        ("!", TechnicalLoss),
        ("#", TechnicalLoss),
    ] {
        let mut result = ended(&format!("P01{how}P02")).for_manager(&usual());
        assert_eq!(ending(&result), expected, "{how} with its status");
        result.details.status = None;
        assert_eq!(ending(&result), expected, "{how} without a status");
    }
}

#[test]
fn the_retry_policy_counts_attempts_in_all() {
    let late = || CallError::Late(sec(30));
    let gone = || CallError::Unreachable("refused".into());
    let wrong = || CallError::wrong(Refusal::new(Code::E003, "nonsense"), "");
    // Attempts in all, how they fail (late, gone, or wrong), the delays between them in seconds, and what comes of it.
    let rows = "
        3 exponential                     |             | 1
        3 exponential gone                | 2           | 2
        3 exponential late gone           | 2, 4        | 3
        3 exponential late late gone      | 2, 4        | gone
        3 fixed       late gone late      | 2, 2        | late
        5 exponential late late late late | 2, 4, 8, 16 | 5
        1 exponential gone                |             | gone
        3 exponential late wrong          | 2           | wrong"; // the same again would not help
    let failure = |word: &str| match word {
        "late" => late(),
        "gone" => gone(),
        _ => wrong(),
    };
    for row in rows.lines().skip(1) {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let words: Vec<&str> = columns[0].split_whitespace().collect();
        let policy = RetryPolicy {
            attempts: words[0].parse().unwrap(),
            base_delay: sec(2),
            backoff: Backoff::read(&words[1].into()).unwrap(),
        };
        let pauses = RefCell::new(Vec::new());
        let mut made = 0;
        let attempt = || {
            made += 1;
            let fails = words.get(made + 1).map(|word| failure(word));
            fails.map_or(Ok(made), Err)
        };
        let pause = |delay: Duration| pauses.borrow_mut().push(delay.as_secs().to_string());
        let done = retry(&policy, pause, CallError::is_silence, attempt);
        let expected = columns[2].parse().map_err(|_| failure(columns[2]));
        assert_eq!(done, expected, "{row}");
        assert_eq!(pauses.into_inner().join(", "), columns[1], "{row}");
    }
    let policy = RetryPolicy {
        attempts: 3,
        base_delay: sec(2),
        backoff: Backoff::Exponential,
    };
    assert_eq!(policy.longest(sec(30)), sec(30 + 2 + 30 + 4 + 30));
}
