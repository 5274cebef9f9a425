//! Leagues on paper that go as chance will have it: agents register, come again, get lost, report, report falsely, and
//! the manager dies at any moment. Whatever happens, the sums fit, and the journal gives the same league again.

#[path = "support/paper.rs"]
mod paper;

use fastrand::Rng;
use league::games::{Outcome, forfeit};
use league::manager::league::{Event, League, Match};
use league::manager::registration::Admission;
use league::manager::standings::ending;
use league::protocol::AgentMeta;
use league::protocol::{Ending, Kind, MatchResultReport, Parity, Progress};
use paper::{Caller, ELSEWHERE, at, caller, local, meta, register, report, rules, seeded};
use std::{collections::BTreeSet, time::Duration};

/// A league, its journal as it is on the disk, and the seconds that have passed.
struct Paper {
    league: League,
    journal: String,
    seconds: u64,
    rng: Rng,
}

impl Paper {
    fn new(seed: u64) -> Paper {
        let mut rng = Rng::with_seed(seed);
        let mut rules = rules();
        (rules.cycles, rules.max_players) = (rng.u32(1..3), rng.usize(2..7));
        rng.shuffle(&mut rules.scoring.tiebreakers);
        Paper {
            league: League::new(rules),
            journal: String::new(),
            seconds: 0,
            rng,
        }
    }

    /// What was decided happens; where nothing was, nothing has changed.
    fn commit(&mut self, event: Option<Event>) {
        let Some(event) = event else { return };
        self.journal += &(serde_json::to_string(&event).unwrap() + "\n");
        self.league.apply(&event);
    }

    /// Somebody registers: new, or again, with its token, another's, a wrong one or none.
    fn register(&mut self) {
        let rng = &mut self.rng;
        let kind = if rng.u8(..4) == 0 {
            Kind::Referee
        } else {
            Kind::Player
        };
        let mut tokens = vec![None, Some("guess".to_string())];
        tokens.extend(
            self.league
                .members
                .values()
                .map(|member| Some(member.token.clone())),
        );
        let from = Caller {
            conversation: rng.choice(["one", "two"]).unwrap(),
            token: rng.choice(tokens).unwrap(),
            peer: if rng.u8(..6) == 0 {
                ELSEWHERE
            } else {
                caller("").peer
            },
            trusted: rng.u8(..6) > 0,
            referee_wanted: rng.bool(),
            secret: format!("{:016x}", rng.u64(..)),
            now: at("10:00:00").plus(Duration::from_secs(self.seconds)),
            ..caller(&format!(
                "{kind}:{}",
                rng.choice(["P03", "REF02", "new", "alpha"]).unwrap()
            ))
        };
        let place = if kind == Kind::Referee { 8000 } else { 8100 } + rng.usize(1..10);
        let agent = AgentMeta {
            display_name: rng.choice(["Ada", "Bob"]).unwrap().into(),
            ..meta(kind, &local(place))
        };
        if let Admission::Accepted { member, event } = register(&self.league, &agent, &from) {
            let again = self.league.members.contains_key(&member.id);
            assert!(
                again || !self.league.started || kind == Kind::Referee,
                "no player comes late"
            );
            self.commit(event);
            assert_eq!(
                self.league.members[&member.id], *member,
                "what was answered holds"
            );
        }
    }

    /// Referees get lost and come back; what is open is given to those that are there.
    fn assign(&mut self) {
        let mut present: Vec<String> = self
            .league
            .members(Kind::Referee)
            .iter()
            .map(|it| it.id.clone())
            .collect();
        present.retain(|_| self.rng.u8(..3) > 0);
        let Some(round) = self.league.open_round() else {
            return;
        };
        let rng = &mut self.rng;
        let event = self.league.assign(round, &present, |player| {
            format!("{player}-{}", rng.u64(..))
        });
        self.commit(event);
        let held = |game: &Match| {
            game.referee()
                .is_some_and(|id| present.iter().any(|it| it == id))
        };
        assert!(
            present.is_empty() || self.league.open_matches(round).all(held),
            "nobody has an open match who is gone"
        );
    }

    /// A referee reports one of its matches: as it was, once more, or falsely.
    fn report(&mut self) {
        let given: Vec<&Match> = self
            .league
            .matches
            .iter()
            .filter(|game| game.assignment.is_some())
            .collect();
        let Some(game) = self.rng.choice(given) else {
            return;
        };
        let mut report = report(
            &self.league,
            game,
            self.outcome(game).for_manager(&self.league.rules.scoring),
        );
        report
            .result
            .details
            .status
            .take_if(|_| game.round.is_multiple_of(2)); // some referees do not say it
        let is_false = self.rng.u8(..3) == 0;
        if is_false {
            let lies: [fn(&mut MatchResultReport); 6] = [
                |it| it.round_id += 1,
                |it| it.match_id = "R99M99".into(),
                |it| it.result.score.values_mut().for_each(|points| *points += 1),
                |it| it.result.winner = Some("P99".into()),
                |it| it.result.details.drawn_number = Some(0),
                |it| it.result.details.choices = [("P98".to_string(), Some(Parity::Even))].into(),
            ];
            self.rng.choice(lies).unwrap()(&mut report);
        }
        let sender = game
            .recorded
            .as_ref()
            .map_or(game.referee(), |recorded| Some(&recorded.referee_id))
            .unwrap();
        let judged = self
            .league
            .judge(&self.league.members[sender], &report, at("11:00:00"));
        match (is_false, &game.recorded) {
            (true, _) => assert!(judged.is_err(), "{report:?}"),
            (false, Some(_)) => assert_eq!(judged, Ok(None), "once more"),
            (false, None) => assert!(matches!(judged, Ok(Some(_))), "{judged:?}"),
        }
        self.commit(judged.ok().flatten());
    }

    /// How a match ends: always the same, now and then by a failure.
    fn outcome(&self, game: &Match) -> Outcome {
        let how = seeded(7, game);
        let late = |n: usize| {
            how.number
                .is_some_and(|number| number as usize % 5 == n)
                .then(|| "was late".to_string())
        };
        let failed = [late(0), late(1)];
        if failed == [None, None] {
            how
        } else {
            forfeit(game.players.clone(), how.choices, failed)
        }
    }

    /// What must hold at any time.
    fn check(&self) {
        let league = &self.league;
        let played: Vec<&Match> = league
            .matches
            .iter()
            .filter(|game| game.recorded.is_some())
            .collect();
        let (ids, table): (BTreeSet<&String>, _) = (league.played.iter().collect(), league.table());
        assert_eq!(
            (ids.len(), league.played.len()),
            (played.len(), played.len()),
            "each match is recorded once"
        );
        let open = league
            .matches
            .iter()
            .find(|game| game.recorded.is_none())
            .map(|game| game.round);
        assert_eq!(
            (league.open_round(), league.rounds_completed),
            (open, open.map_or(league.rounds(), |n| n - 1))
        );
        assert_eq!(
            league.progress() == Progress::Completed,
            league.started && open.is_none()
        );
        let sum =
            |of: fn(&league::protocol::Standing) -> u32| table.iter().map(of).sum::<u32>() as usize;
        assert_eq!(sum(|row| row.played), 2 * played.len());
        assert_eq!(
            sum(|row| row.wins + row.draws + row.losses),
            2 * played.len()
        );
        let points = played
            .iter()
            .flat_map(|game| game.recorded.as_ref().unwrap().result.score.values())
            .sum::<i32>();
        assert_eq!(
            table.iter().map(|row| row.points).sum::<i32>(),
            points,
            "the points that were reported"
        );
        assert!(table.is_sorted_by_key(|row| std::cmp::Reverse(row.points)));
        assert!((1..).zip(table).all(|(rank, row)| row.rank == rank));
        for player in league.members(Kind::Player) {
            let row = table.iter().find(|row| row.player_id == player.id).unwrap();
            let its = played.iter().filter(|game| game.seat(&player.id).is_some());
            let results = its
                .map(|game| &game.recorded.as_ref().unwrap().result)
                .collect::<Vec<_>>();
            let won = results
                .iter()
                .filter(|it| it.winner.as_ref() == Some(&player.id))
                .count();
            let drawn = results
                .iter()
                .filter(|it| ending(it) == Ending::Draw)
                .count();
            assert_eq!(
                [row.played, row.wins, row.draws].map(|n| n as usize),
                [results.len(), won, drawn],
                "{player:?}"
            );
            let stats = league.stats(player);
            let met: u32 = stats
                .opponents
                .values()
                .map(|it| it.wins + it.draws + it.losses)
                .sum();
            assert_eq!(
                (stats.played, stats.points, &stats.display_name),
                (met, row.points, &row.display_name)
            );
        }
        let members = || league.members.values();
        let distinct = |of: fn(&league::manager::league::Member) -> &String| {
            members().map(of).collect::<BTreeSet<_>>()
        };
        assert_eq!(
            (
                distinct(|it| &it.token).len(),
                distinct(|it| &it.endpoint).len()
            ),
            (members().count(), members().count())
        );
        assert!(
            table.len() <= league.rules.max_players
                && table.len() == league.members(Kind::Player).len()
        );
    }

    /// The manager dies: what the journal says is the league, to the last field.
    fn crash(&mut self) {
        let mut again = League::new(self.league.rules.clone());
        self.journal
            .lines()
            .for_each(|line| again.apply(&serde_json::from_str(line).unwrap()));
        assert_eq!(again.table(), self.league.table());
        assert_eq!(again, self.league);
        self.league = again;
    }
}

#[test]
fn whatever_happens_the_sums_fit_and_the_journal_gives_the_same_league() {
    let (mut finished, mut steps) = (0, 0);
    for seed in 0..150 {
        let mut paper = Paper::new(seed);
        for _ in 0..paper.rng.u32(20..200) {
            let before = paper.league.clone();
            let events = paper.journal.len();
            match paper.rng.u8(..10) {
                0..=1 => paper.register(),
                2 if paper.rng.bool() => {
                    let event = paper.league.start(Some(seed)).unwrap_or_default();
                    paper.commit(event);
                }
                2 => paper.seconds += paper.rng.u64(..50_000),
                3..=4 => paper.assign(),
                5 => paper.crash(),
                _ => paper.report(),
            }
            let unchanged = paper.journal.len() == events;
            let _ = (before.table(), paper.league.table());
            assert!(
                !unchanged || before == paper.league,
                "seed {seed}: what is refused changes nothing"
            );
            paper.check();
            steps += 1;
        }
        finished += usize::from(paper.league.progress() == Progress::Completed);
    }
    assert!(
        finished > 10 && steps > 10_000,
        "{finished} leagues of 150 came to their end in {steps} steps"
    );
}
