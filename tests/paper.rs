//! Leagues on paper that go as chance will have it: agents register, come again, get lost, report, report falsely, the
//! operator meddles, and the manager dies at any moment. Whatever happens, the sums fit, and the journal gives the same league again.

#[path = "support/paper.rs"]
mod paper;

use fastrand::Rng;
use league::games::{Outcome, forfeit};
use league::manager::league::{Event, League, Match};
use league::manager::standings::ending;
use league::protocol::{AgentMeta, Ending, Kind, LeagueControl};
use league::protocol::{MatchResult, MatchResultReport, Parity, Progress};
use league::wire::Wire;
use paper::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

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

    /// Somebody registers: new, or again, with its token or key, another's, a wrong one or none.
    fn register(&mut self) {
        let rng = &mut self.rng;
        let kind = [Kind::Referee, Kind::Player][usize::from(rng.u8(..4) > 0)];
        let mut tokens = vec![None, Some("guess".to_string())];
        let members = self.league.members.values();
        tokens.extend(members.map(|member| Some(member.token.clone())));
        let name = rng.choice(["P03", "REF02", "new", "alpha"]).unwrap();
        let from = Caller {
            kind,
            token: rng.choice(tokens).unwrap(),
            peer: [ELSEWHERE, HERE][usize::from(rng.u8(..6) > 0)],
            trusted: rng.u8(..6) > 0,
            referee_wanted: rng.bool(),
            secret: format!("{:016x}", rng.u64(..)),
            now: at("10:00:00").plus(Duration::from_secs(self.seconds)),
            ..caller(&format!("{kind}:{name}"))
        };
        let host = rng.choice(["localhost", "localhost", "10.0.0.7"]).unwrap();
        let port = [8000, 8100][usize::from(kind == Kind::Player)] + rng.u32(1..10);
        let agent = AgentMeta {
            display_name: rng.choice(["Ada", "Bob"]).unwrap().into(),
            registration_key: rng
                .choice([None, Some("key one".into()), Some("key two".into())])
                .unwrap(),
            ..meta(kind, &local(port).replace("localhost", host))
        };
        let (event, admission) = register(&self.league, &agent, &from);
        if let Ok(member) = admission {
            let is_known = self.league.members.contains_key(&member.id);
            let may_come = is_known || !self.league.started || kind == Kind::Referee;
            assert!(may_come, "no player comes late");
            self.commit(event);
            let now = &self.league.members[&member.id];
            assert_eq!(now, &member, "what was answered holds");
        }
    }

    /// The operator says something.
    fn operate(&mut self) {
        let rng = &mut self.rng;
        let words = ["pause", "resume", "remove", "restore", "replay", "replay"];
        let ids = ["P01", "P02", "P03", "REF01", "ada"];
        let order = json!({
            "league_id": "paper", "action": rng.choice(words), "player_id": rng.choice(ids),
            "match_id": self.league.played.last().map_or("R1M1", |id| id),
        });
        let order = LeagueControl::read(&order).unwrap();
        let now = at("10:00:00").plus(Duration::from_secs(self.seconds));
        if let Ok((event, _)) = self.league.control(&order, now) {
            self.commit(event);
        }
    }

    /// Referees get lost and come back; what is open is given to those that are there, or lost by the removed.
    fn assign(&mut self) {
        let mut present = referees(&self.league);
        present.retain(|_| self.rng.u8(..3) > 0);
        let Some(round) = self.league.open_round() else {
            return;
        };
        while let Some(event) = self.league.walkover(round, at("11:00:00")) {
            self.commit(Some(event));
        }
        let rng = &mut self.rng;
        let token = |player: &str| format!("{player}-{}", rng.u64(..));
        let event = self.league.assign(round, &present, token);
        self.commit(event);
        let is_held = |game: &Match| present.iter().any(|id| game.referee() == Some(id));
        let mut open = self.league.open_matches(round);
        let is_well = present.is_empty() || open.all(is_held);
        assert!(is_well, "nobody has an open match who is gone");
    }

    /// A referee reports one of its matches: as it was, once more, falsely, or in a conversation that was voided.
    fn report(&mut self) {
        let game = self.rng.choice(&self.league.matches);
        let Some(game) = game.filter(|game| game.assignment.is_some()) else {
            return;
        };
        let result = self.outcome(game).for_manager(&self.league.rules.scoring);
        let mut report = report(&self.league, game, result);
        let says_status = &mut report.result.details.status;
        says_status.take_if(|_| game.round.is_multiple_of(2)); // some referees do not say it
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
        let conversation = self.rng.choice(["one", "two", "three"]).unwrap();
        let is_voided = game.voided.iter().any(|voided| voided == conversation);
        let sender = game
            .recorded
            .as_ref()
            .map_or(game.referee(), |it| Some(&it.referee_id));
        let Some(sender) = self.league.members.get(sender.unwrap()) else {
            return; // the manager itself, for a player who was removed
        };
        let request = request(&sender.id, conversation);
        let judged = self.league.judge(sender, &request, &report, at("11:00:00"));
        match (is_false || is_voided, &game.recorded) {
            (true, _) => assert!(judged.is_err(), "{report:?}"),
            (false, Some(_)) => assert_eq!(judged, Ok(None), "once more"),
            (false, None) => assert!(matches!(judged, Ok(Some(_))), "{judged:?}"),
        }
        self.commit(judged.ok().flatten());
    }

    /// How a match ends: always the same, now and then by a failure.
    fn outcome(&self, game: &Match) -> Outcome {
        let how = seeded(7, game);
        let late = |n: u32| (how.number? % 5 == n).then(|| "was late".to_string());
        let failures = [late(0), late(1)];
        match failures == [None, None] {
            true => how,
            false => forfeit(game.players.clone(), how.moves, failures),
        }
    }

    /// What must hold at any time.
    fn check(&self) {
        let league = &self.league;
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
        let is_over = league.progress() == Progress::Completed;
        assert_eq!(is_over, league.started && open.is_none());
        let points: i32 = results.values().flat_map(|it| it.score.values()).sum();
        let shown: i32 = table.iter().map(|row| row.points).sum();
        assert_eq!(shown, points, "the points that were reported");
        assert!(table.is_sorted_by_key(|row| std::cmp::Reverse(row.points)));
        let players = league.members(Kind::Player);
        assert_eq!(table.len(), players.len());
        assert!(players.len() <= league.rules.max_players);
        for (rank, row) in (1..).zip(table) {
            let games = league.games(&row.player_id);
            let own: Vec<&MatchResult> = games
                .filter_map(|it| results.get(&*it.id).copied())
                .collect();
            let won = own
                .iter()
                .filter(|it| it.winner.as_ref() == Some(&row.player_id));
            let drawn = own.iter().filter(|it| ending(it) == Ending::Draw);
            let counted = [own.len(), won.count(), drawn.count()].map(|count| count as u32);
            assert_eq!([row.played, row.wins, row.draws], counted, "{row:?}");
            assert_eq!(
                (row.rank, row.played),
                (rank, row.wins + row.draws + row.losses)
            );
            let stats = league.stats(league.player(&row.player_id).unwrap());
            let met = stats
                .opponents
                .values()
                .map(|it| it.wins + it.draws + it.losses);
            assert_eq!((met.sum::<u32>(), stats.points), (row.played, row.points));
        }
        let members = || league.members.values();
        let tokens: BTreeSet<&String> = members().map(|it| &it.token).collect();
        let endpoints: BTreeSet<&String> = members().map(|it| &it.endpoint).collect();
        let all = members().count();
        assert_eq!((tokens.len(), endpoints.len()), (all, all), "nobody shares");
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
    let (mut finished, mut steps, mut replayed) = (0, 0, 0);
    for seed in 0..150 {
        let mut paper = Paper::new(seed);
        for _ in 0..paper.rng.u32(20..200) {
            let before = paper.league.clone();
            let length = paper.journal.len();
            match paper.rng.u8(..20) {
                0..=3 => paper.register(),
                4 => {
                    let event = paper.league.start(Some(seed), paper.league.pairings());
                    paper.commit(event);
                }
                5 => paper.seconds += paper.rng.u64(..50_000),
                6..=8 => paper.assign(),
                9..=10 => paper.crash(),
                11 => paper.operate(),
                _ => paper.report(),
            }
            let is_unchanged = paper.journal.len() == length;
            let _ = (before.table(), paper.league.table());
            let is_well = !is_unchanged || before == paper.league;
            assert!(is_well, "seed {seed}: what is refused changes nothing");
            paper.check();
            steps += 1;
        }
        finished += usize::from(paper.league.progress() == Progress::Completed);
        replayed += paper.journal.matches("Voided").count();
    }
    let enough = finished > 10 && steps > 10_000 && replayed > 10;
    assert!(
        enough,
        "{finished} of 150 leagues ended in {steps} steps, {replayed} replays"
    );
}
