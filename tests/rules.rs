//! The rooms that only calculate: the schedule as laws that hold for every number of players; standings and retries as
//! rows of `tests/scripts/rules.txt`.

mod support;

use league::games::{Outcome, Scoring, TieBreak, forfeit, judge};
use league::manager::league::{Event, League, Recorded, Rules};
use league::manager::schedule::round_robin;
use league::net::retry::{Backoff, CallError, RetryPolicy, retry};
use league::protocol::{Code, Kind, Parity, Refusal};
use league::wire::Wire;
use std::collections::{BTreeMap, BTreeSet};
use std::{cell::RefCell, time::Duration};
use support::paper::{at, caller, enter, local, meta, rules, scoring};
use support::{golden, script};

fn pair(a: &str, b: &str) -> [String; 2] {
    [a.into(), b.into()]
}

#[test]
fn every_pair_meets_once_a_cycle_with_fair_byes_and_balanced_roles() {
    for (n, cycles) in (2..=12).flat_map(|n| (1..=3).map(move |cycles| (n, cycles))) {
        let row = format!("{n} players, {cycles} cycles");
        let players: Vec<String> = (1..=n).map(|n| format!("P{n:02}")).collect();
        let rounds = round_robin(&players, cycles as u32);
        // So many that each rests as often as all others.
        assert_eq!(rounds.len(), cycles * (n - (n + 1) % 2), "{row}: rounds");
        let mut met = BTreeMap::<_, Vec<bool>>::new();
        for round in &rounds {
            let busy: BTreeSet<&String> = round.iter().flatten().collect();
            assert_eq!(
                busy.len(),
                2 * round.len(),
                "{row}: nobody twice in {round:?}"
            );
            for [a, b] in round {
                met.entry((a.min(b), a.max(b))).or_default().push(a < b);
            }
        }
        assert_eq!(met.len(), n * (n - 1) / 2, "{row}: pairs");
        for (pair, lower_is_a) in &met {
            let turns = (0..cycles).map(|cycle| lower_is_a[0] == (cycle % 2 == 0));
            let turns: Vec<bool> = turns.collect();
            assert_eq!(
                *lower_is_a, turns,
                "{row}: {pair:?} meet once a cycle and change roles"
            );
        }
        for player in &players {
            let times = |seat: usize| {
                rounds
                    .iter()
                    .flatten()
                    .filter(|pair| pair[seat] == *player)
                    .count()
            };
            assert!(
                times(0).abs_diff(times(1)) <= 1,
                "{row}: {player} is A {} times",
                times(0)
            );
        }
    }
    for few in [vec![], vec!["P01".into()]] {
        assert!(round_robin(&few, 1).concat().is_empty());
    }
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

/// `3,1,0,0 whd P01>P02 P09`: the table of all who are named, after these matches, in a league with these points for a
/// match won, drawn, lost and technically lost, and these tie-breaks; `has_status`: its referees say how a match ended.
fn table(row: &str, has_status: bool) -> String {
    let [points, ties, text] = row.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{row}")
    };
    let points: Vec<i32> = points.split(',').flat_map(str::parse).collect();
    let tie = |letter| match letter {
        'w' => Some(TieBreak::Wins),
        'h' => Some(TieBreak::HeadToHead),
        'd' => Some(TieBreak::Draws),
        _ => None,
    };
    let scoring = Scoring {
        tiebreakers: ties.chars().filter_map(tie).collect(),
        ..scoring(points.try_into().unwrap())
    };
    let mut league = League::new(Rules {
        scoring: scoring.clone(),
        listed: Vec::new(),
        ..rules()
    });
    let ids: BTreeSet<&str> = text.split(['>', '=', '!', '#', ' ']).collect();
    for (port, id) in (9000..).zip(ids) {
        let (player, sender) = (meta(Kind::Player, &local(port)), format!("player:{id}"));
        enter(&mut league, &player, &caller(&sender));
    }
    let games = text.split(' ').filter(|it| it.len() > 5).map(ended);
    let games: Vec<Outcome> = games.collect();
    let pairs = games.iter().map(|game| game.players.clone()).collect();
    league.apply(&Event::Started {
        seed: None,
        rounds: vec![pairs],
    });
    for (n, game) in (1..).zip(&games) {
        let mut result = game.for_manager(&scoring);
        result.details.status = result.details.status.filter(|_| has_status);
        league.apply(&Event::Recorded(Recorded {
            match_id: format!("R1M{n}"),
            referee_id: "REF01".into(),
            conversation_id: format!("conv-{n}"),
            result,
            at: at("11:00:00"),
        }));
    }
    script::table(&league)
}

/// `3 exponential late gone`: what comes of so many attempts in all which fail so at first, and the pauses between them
/// in seconds.
fn retried(row: &str) -> String {
    let words: Vec<&str> = row.split(' ').collect();
    let policy = RetryPolicy {
        attempts: words[0].parse().unwrap(),
        base_delay: Duration::from_secs(2),
        backoff: Backoff::read(&words[1].into()).unwrap(),
    };
    let failure = |word: &&str| match *word {
        "late" => CallError::Late(Duration::from_secs(30)),
        "gone" => CallError::Unreachable("refused".into()),
        _ => CallError::wrong(Refusal::new(Code::E003, "nonsense"), ""),
    };
    let (pauses, mut made) = (RefCell::new(Vec::new()), 0);
    let attempt = || {
        made += 1;
        words.get(made + 1).map(failure).map_or(Ok(()), Err)
    };
    let pause = |delay: Duration| pauses.borrow_mut().push(delay.as_secs());
    let done = retry(&policy, pause, CallError::is_silence, attempt);
    let end = done.map_or_else(|error| error.explain(), |()| "done".into());
    let longest = policy.longest(Duration::from_secs(30)).as_secs();
    format!(
        "{made} attempts, pauses {:?}: {end}; at most {longest} s",
        pauses.into_inner()
    )
}

#[test]
fn the_story_of_rules() {
    golden::play("rules.txt", |command| {
        match command.split_once(' ').unwrap() {
            ("table", row) => {
                assert_eq!(
                    table(row, true),
                    table(row, false),
                    "the number says how it ended"
                );
                table(row, true)
            }
            (_, row) => retried(row),
        }
    });
}
