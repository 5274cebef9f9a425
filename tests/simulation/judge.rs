//! The laws of a league. Those in `LAWS` are checked when it is over, from the files that are left
//! and from what the agents were told; the `note_` functions write that down on the way.

use super::agents::Player;
use super::world::{Answer, Id, Profile, Ticket, World, random};
use league::games::{game_result, match_result, result_status};
use league::manager::league::{Event, MatchAssignment, Recorded};
use league::manager::notifications::Notification;
use league::net::call_error::CallError;
use league::protocol::{
    ErrorCode, GameResult, ManagerRequest, MatchResult, PlayerRequest, ResultStatus, Standing,
};
use league::referee::match_play::Aborted;
use league::referee::tasks::{Assignment, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// The longest time from the end of all faults to the end of the league.
const END_LIMIT: Duration = Duration::from_secs(900);

/// What is written down while the league is played.
#[derive(Default)]
pub struct Notes {
    /// The reports that the manager has acknowledged: referee, match, result.
    reports: Vec<(Id, String, MatchResult)>,
    /// The ids and tokens that agents were given.
    members: BTreeMap<Id, String>,
    /// The choices of players, by conversation and agent.
    choices: BTreeMap<(String, Id), (u32, String)>,
    /// The failures of a player in a match: those of an invitation that are final, questions without
    /// an answer, all failures.
    failures: BTreeMap<(String, usize), [u32; 3]>,
    /// The results that players have acknowledged.
    results: Vec<(Id, String, GameResult)>,
    tables: Vec<Vec<Standing>>,
    /// The rounds whose ends were sent to an agent in a life of the manager.
    ends: BTreeSet<(u32, String, u32)>,
    /// The manager's calls to each agent that failed one after the other, before and after the end.
    call_failures: BTreeMap<(String, bool), u32>,
    /// The agents that it could not reach in all attempts.
    given_up: BTreeSet<String>,
    failed_queries: BTreeSet<Id>,
    draws: u64,
    /// The laws that were broken on the way.
    broken: Vec<String>,
}

impl World {
    /// Returns another seed each time: a match that is played again does not end alike.
    pub fn draw_seed(&mut self, id: Id) -> u64 {
        self.notes.draws += 1;
        random(self.seed, id, 94, self.notes.draws).u64(..)
    }

    /// The manager has answered a request. The same call must get the same answer.
    pub fn note_answer(&mut self, ticket: Ticket, message: &ManagerRequest, answer: &Answer) {
        let from = ticket.from;
        match (message, answer) {
            (ManagerRequest::MatchResultReport(report), answer) => {
                let entry = (from, report.match_id.clone(), report.result.clone());
                let is_known = self.notes.reports.contains(&entry);
                let is_lost = matches!(answer, Err(CallError::Refused(error, _)) if error.error_code == ErrorCode::MatchMismatch);
                if is_known && is_lost {
                    self.notes.broken.push(format!(
                        "same answer: {} was acknowledged, and is refused now",
                        report.match_id
                    ));
                }
                if answer.is_ok() && self.dying != Some(0) {
                    self.notes.reports.push(entry);
                }
            }
            (_, Ok(answer)) if answer["status"] == "ACCEPTED" && self.dying != Some(0) => {
                let token = answer["auth_token"].to_string();
                let before = self.notes.members.insert(from, token.clone());
                if before.is_some_and(|before| before != token) {
                    self.notes.broken.push(format!(
                        "same answer: {} gets another token",
                        self.name(from)
                    ));
                }
            }
            _ => {}
        }
    }

    /// A question of a referee was answered, or has failed.
    pub fn note_failure(&mut self, call: (String, usize), is_invitation: bool, answer: &Answer) {
        let counts = self.notes.failures.entry(call).or_default();
        let is_wrong = match answer {
            Err(error) => matches!(error, CallError::JsonRpc(..)),
            Ok(answer) => answer["player_id"] == "P99",
        };
        let is_late = matches!(answer, Err(CallError::Timeout(_)));
        let has_failed = matches!(answer, Err(error) if error.is_retryable());
        counts[0] += u32::from(is_invitation && (is_wrong || is_late));
        counts[1] += u32::from(is_late);
        counts[2] += u32::from(has_failed || is_wrong);
    }

    /// A player has chosen. It chooses once for each conversation and life.
    pub fn note_choice(&mut self, id: Id, conversation: &str, choice: &str) {
        let new = (self.bodies[id].life, choice.to_string());
        let before = self
            .notes
            .choices
            .insert((conversation.into(), id), new.clone());
        if before.is_some_and(|before| before.0 == new.0 && before.1 != new.1) {
            self.notes.broken.push(format!(
                "same answer: {} chooses again, and otherwise",
                self.name(id)
            ));
        }
    }

    /// A player has accepted a message.
    pub fn note_handled(&mut self, id: Id, message: &PlayerRequest) {
        match message {
            PlayerRequest::GameOver(over) if self.dying != Some(id) => {
                self.notes
                    .results
                    .push((id, over.match_id.clone(), over.game_result.clone()));
            }
            PlayerRequest::LeagueStandingsUpdate(_) => {
                let table = Player::of(self, id).state.table.clone();
                self.notes.tables.push(table);
            }
            _ => {}
        }
    }

    pub fn note_query(&mut self, id: Id, is_answered: bool) {
        if !is_answered {
            self.notes.failed_queries.insert(id);
        }
    }

    /// The manager sends a notification. The end of a round comes before what follows it.
    pub fn note_notification(&mut self, id: &str, told: Notification) {
        let life = self.bodies[0].life;
        let round = match told {
            Notification::Table => return,
            Notification::RoundEnd(round) => {
                self.notes.ends.insert((life, id.into(), round));
                return;
            }
            Notification::Announcement(round) => round - 1,
            Notification::LeagueEnd => self.last_round(),
        };
        if round > 0 && !self.notes.ends.contains(&(life, id.into(), round)) {
            self.notes.broken.push(format!(
                "order: {id} gets {told:?} before the end of round {round}"
            ));
        }
    }

    fn last_round(&self) -> u32 {
        let server = self.server.as_ref().unwrap();
        server.manager.store.read(|league| league.rounds())
    }

    /// A call of the manager was answered, or has failed.
    pub fn note_call(&mut self, id: &str, answer: &Answer) {
        let Some(server) = &self.server else { return };
        let is_over = server.manager.store.read(|league| league.is_over());
        let attempts = self.program.config.system.retry_policy.max_retries;
        let failures = self
            .notes
            .call_failures
            .entry((id.into(), is_over))
            .or_default();
        *failures = if answer.is_ok() { 0 } else { *failures + 1 };
        if *failures >= attempts {
            self.notes.given_up.insert(id.into());
        }
    }

    /// A match was played, or given up.
    pub fn note_end(&mut self, assignment: &Assignment, result: &Result<GameResult, Aborted>) {
        match result {
            Ok(result) => self.count(format!("match: {:?}", result.status)),
            Err(_) => self.count("match: given up"),
        }
        let _ = assignment;
    }
}

/// What the files say when the league is over.
pub struct Files {
    rounds: Vec<Vec<[String; 2]>>,
    recorded: Vec<Recorded>,
    by_match: BTreeMap<String, Recorded>,
    given: Vec<MatchAssignment>,
    removed: BTreeSet<String>,
    /// The lines of all outboxes, with the referee.
    decided: Vec<(String, Task)>,
}

impl Files {
    fn read(world: &World) -> Files {
        let mut files = Files {
            rounds: Vec::new(),
            recorded: Vec::new(),
            by_match: BTreeMap::new(),
            given: Vec::new(),
            removed: BTreeSet::new(),
            decided: Vec::new(),
        };
        let journal = fs::read_to_string(world.journal()).unwrap_or_default();
        for line in journal.lines().skip(1) {
            match serde_json::from_str(line) {
                Ok(Event::Started { rounds, .. }) => files.rounds = rounds,
                Ok(Event::Assigned { assignments }) => files.given.extend(assignments),
                Ok(Event::Recorded(recorded)) => {
                    files
                        .by_match
                        .insert(recorded.match_id.clone(), recorded.clone());
                    files.recorded.push(recorded);
                }
                Ok(Event::Removed { player_id }) => drop(files.removed.insert(player_id)),
                _ => {}
            }
        }
        for referee in &world.referees {
            let path = referee.folder(world).join("outbox.jsonl");
            let Some(own) = &referee.credentials else {
                continue;
            };
            for line in fs::read_to_string(path).unwrap_or_default().lines() {
                if let Ok(task) = serde_json::from_str(line) {
                    files.decided.push((own.agent_id.clone(), task));
                }
            }
        }
        files
    }

    /// Returns the results of referees, without those of the manager for removed players.
    fn played(&self) -> impl Iterator<Item = &Recorded> {
        self.recorded
            .iter()
            .filter(|one| one.referee_id.starts_with("REF"))
    }

    /// Returns the task in which a recorded result was decided.
    fn task_of(&self, recorded: &Recorded, world: &World) -> Option<&Task> {
        let scoring = &world.program.config.league.scoring;
        let mut found = self.decided.iter().filter(|(referee, task)| {
            let result = task.result.as_ref();
            *referee == recorded.referee_id
                && task.assignment.match_id == recorded.match_id
                && result.is_some_and(|result| match_result(result, scoring) == recorded.result)
        });
        found.next_back().map(|(_, task)| task)
    }
}

type Law = fn(&World, &Files) -> Result<(), String>;

/// The laws. The first word of a finding is the name of its law.
const LAWS: [(&str, Law); 11] = [
    ("end", the_league_ends),
    ("schedule", every_pair_meets_once),
    ("one result", each_match_has_one_result),
    ("sum", tables_are_sums_of_results),
    ("choices", results_follow_from_choices),
    ("memory", players_remember_what_is_recorded),
    ("justice", nobody_loses_without_own_failure),
    ("alone", only_who_was_away_loses),
    ("told", everybody_knows_the_end),
    ("kept", what_was_acknowledged_is_kept),
    ("disk", what_players_are_told_is_on_a_disk),
];

/// Returns the laws that a league has broken.
pub fn judge(world: &mut World) -> Vec<String> {
    let files = Files::read(world);
    let replaced = files.given.len()
        - files
            .given
            .iter()
            .map(|given| &given.match_id)
            .collect::<BTreeSet<_>>()
            .len();
    *world.counts.entry("match given again".into()).or_default() += replaced as u64;
    for one in files.played() {
        world.count(format!("recorded: {:?}", result_status(&one.result)));
    }
    let mut findings = world.notes.broken.clone();
    for (name, law) in LAWS {
        if let Err(problem) = law(world, &files) {
            findings.push(format!("{name}: {problem}"));
        }
    }
    findings
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

/// The league is closed in a bounded time after the last fault.
fn the_league_ends(world: &World, files: &Files) -> Result<(), String> {
    let away = world
        .bodies
        .iter()
        .flat_map(|body| &body.away)
        .map(|(_, until)| *until);
    let calm_at = away.max().unwrap_or_default().max(world.last_fault_at);
    let closed_at = world.closed_at.unwrap_or(Duration::MAX);
    ensure(closed_at <= calm_at + END_LIMIT, || {
        let (count, of) = (files.recorded.len(), files.rounds.iter().flatten().count());
        format!("the league is not closed; it has {count} of {of} results")
    })
}

/// Every pair meets once, and nobody plays twice in a round.
fn every_pair_meets_once(world: &World, files: &Files) -> Result<(), String> {
    let players = world.players.len();
    let pairs: BTreeSet<_> = files
        .rounds
        .iter()
        .flatten()
        .map(|[a, b]| (a.min(b), a.max(b)))
        .collect();
    let matches = files.rounds.iter().flatten().count();
    let are_disjoint = files
        .rounds
        .iter()
        .all(|round| round.iter().flatten().collect::<BTreeSet<_>>().len() == 2 * round.len());
    let is_right = matches == players * (players - 1) / 2 && pairs.len() == matches && are_disjoint;
    ensure(is_right, || format!("{:?}", files.rounds))
}

/// Each match has one result.
fn each_match_has_one_result(_: &World, files: &Files) -> Result<(), String> {
    let matches = files.rounds.iter().flatten().count();
    let (results, different) = (files.recorded.len(), files.by_match.len());
    ensure(results == matches && different == matches, || {
        format!("{results} results of {different} matches; the schedule has {matches}")
    })
}

/// Every table that a player was told is the sum of the first results, best first.
fn tables_are_sums_of_results(world: &World, files: &Files) -> Result<(), String> {
    for table in &world.notes.tables {
        let count: u32 = table.iter().map(|row| row.played).sum();
        let results = files
            .recorded
            .get(..count as usize / 2)
            .ok_or("a table has more results than the journal")?;
        for row in table {
            let expected = points(results, &row.player_id);
            let problem = || {
                format!(
                    "{} has {} points in a table, and {expected} by {} results",
                    row.player_id,
                    row.points,
                    count / 2
                )
            };
            ensure(row.points == expected, problem)?;
        }
        ensure(table.is_sorted_by(|a, b| a.points >= b.points), || {
            format!("a table has another order: {table:?}")
        })?;
    }
    for player in &world.players {
        for row in player.told.iter().flat_map(|told| &told.final_standings) {
            let expected = points(&files.recorded, &row.player_id);
            ensure(row.points == expected, || {
                format!(
                    "{} has {} points at the end, and {expected} by its results",
                    row.player_id, row.points
                )
            })?;
        }
    }
    Ok(())
}

fn points(results: &[Recorded], player: &str) -> i32 {
    results
        .iter()
        .filter_map(|one| one.result.score.get(player))
        .sum()
}

/// A recorded result is that of its referee, and follows from what both players have chosen.
fn results_follow_from_choices(world: &World, files: &Files) -> Result<(), String> {
    for one in files.played() {
        let id = &one.match_id;
        let task = files
            .task_of(one, world)
            .ok_or(format!("{} has not decided {id} so", one.referee_id))?;
        let Some(number) = one.result.details.drawn_number else {
            continue;
        };
        let mut winners = Vec::new();
        for player in &task.assignment.players {
            let seen = world
                .players
                .iter()
                .position(|own| own.id() == *player)
                .unwrap()
                + 1
                + world.referees.len();
            let key = (task.assignment.conversation_id.clone(), seen);
            let chosen = world.notes.choices.get(&key).map(|(_, choice)| &**choice);
            let told = one.result.details.choices.get(player).copied().flatten();
            ensure(told.map(|told| told.as_str()) == chosen, || {
                format!("{player} has chosen {chosen:?} in {id}, not {told:?}")
            })?;
            if chosen == Some(["even", "odd"][number as usize % 2]) {
                winners.push(player);
            }
        }
        let winner = if winners.len() == 1 {
            Some(winners[0])
        } else {
            None
        };
        ensure(one.result.winner.as_ref() == winner, || {
            format!("{id} was not won by {:?}", one.result.winner)
        })?;
        for player in &task.assignment.players {
            let due = match winner {
                None => 1,
                Some(winner) => 3 * i32::from(winner == player),
            };
            ensure(one.result.score.get(player) == Some(&due), || {
                format!("{player} gets other points than {due} for {id}")
            })?;
        }
    }
    Ok(())
}

/// Whoever knows the end remembers the recorded results, all of them and no others.
fn players_remember_what_is_recorded(world: &World, files: &Files) -> Result<(), String> {
    for (n, player) in world.players.iter().enumerate() {
        let id = n + 1 + world.referees.len();
        let own_id = player.id();
        if player.told.is_none() || world.notes.failed_queries.contains(&id) {
            continue;
        }
        for past in player.saved.iter() {
            let recorded = files.by_match.get(&past.match_id);
            let is_same = recorded.is_some_and(|one| {
                let recorded = game_result(&one.result);
                // A player that was away asks for its results only if its record is another one.
                let is_record_right = outcome(&recorded, &own_id) == outcome(&past.result, &own_id);
                recorded == past.result || is_record_right && world.profile == Profile::Safety
            });
            ensure(is_same, || {
                format!("{own_id} remembers another result of {}", past.match_id)
            })?;
        }
        let rounds = files.rounds.iter().flatten();
        let expected = rounds.filter(|players| players.contains(&own_id)).count();
        let known = player.saved.len();
        ensure(known == expected, || {
            format!("{own_id} remembers {known} of {expected} results")
        })?;
    }
    Ok(())
}

/// Returns how a match ended for a player.
fn outcome(result: &GameResult, player: &str) -> (bool, bool) {
    let is_won = result.winner_player_id.as_deref() == Some(player);
    (is_won, result.status == ResultStatus::Draw)
}

/// A technical loss is the loser's own: it has not answered an invitation, or not answered well in
/// three attempts, or not corrected a wrong answer.
fn nobody_loses_without_own_failure(world: &World, files: &Files) -> Result<(), String> {
    for one in files
        .played()
        .filter(|one| result_status(&one.result) == ResultStatus::TechnicalLoss)
    {
        let last = files
            .given
            .iter()
            .rfind(|given| given.match_id == one.match_id);
        ensure(
            last.is_some_and(|given| given.referee_id == one.referee_id),
            || {
                format!(
                    "{} is judged by a referee that has it no more",
                    one.match_id
                )
            },
        )?;
        let Some(task) = files.task_of(one, world) else {
            continue;
        };
        for seat in [0, 1] {
            let loser = &task.assignment.players[seat];
            let key = (task.assignment.conversation_id.clone(), seat);
            let [invitations, timeouts, failures] =
                world.notes.failures.get(&key).copied().unwrap_or_default();
            // One that could not be told of its match counts as told.
            let is_untold = world.notes.given_up.contains(loser);
            let is_own = invitations > 0
                || failures >= 3
                || timeouts > 0 && failures > timeouts
                || is_untold;
            ensure(one.result.winner.as_ref() == Some(loser) || is_own, || {
                let reason = one.result.details.reason.clone().unwrap_or_default();
                format!(
                    "{loser} loses {}, and has failed {failures} times: {reason}",
                    one.match_id
                )
            })?;
        }
    }
    Ok(())
}

/// Where one agent is away and nothing else fails, nobody else loses technically.
fn only_who_was_away_loses(world: &World, files: &Files) -> Result<(), String> {
    if world.profile == Profile::Safety {
        return Ok(());
    }
    for one in files
        .played()
        .filter(|one| result_status(&one.result) == ResultStatus::TechnicalLoss)
    {
        let losers = one
            .result
            .score
            .iter()
            .filter(|(id, _)| one.result.winner.as_ref() != Some(*id));
        for (loser, _) in losers {
            let was_away = (0..world.bodies.len())
                .any(|id| world.name(id) == *loser && !world.bodies[id].away.is_empty());
            ensure(was_away, || {
                format!(
                    "{loser} was there, and loses {}: {:?}",
                    one.match_id, one.result.details.reason
                )
            })?;
        }
    }
    Ok(())
}

/// Everybody has ended, except who could not be told in all attempts.
fn everybody_knows_the_end(world: &World, _: &Files) -> Result<(), String> {
    for id in 1..world.bodies.len() {
        let name = world.name(id);
        let failures = world
            .notes
            .call_failures
            .get(&(name.clone(), true))
            .copied()
            .unwrap_or_default();
        let attempts = world.program.config.system.retry_policy.max_retries;
        let holds = world.bodies[id].has_ended || failures >= attempts || world.closed_at.is_none();
        ensure(holds, || {
            format!("{name} does not know the end, after {failures} attempts")
        })?;
    }
    Ok(())
}

/// What the manager has acknowledged is in its journal.
fn what_was_acknowledged_is_kept(world: &World, files: &Files) -> Result<(), String> {
    for (_, match_id, result) in &world.notes.reports {
        let recorded = files.by_match.get(match_id);
        ensure(recorded.is_some_and(|one| one.result == *result), || {
            format!("the acknowledged result of {match_id} is lost")
        })?;
    }
    Ok(())
}

/// A result that a player was told stands in an outbox or in the journal.
fn what_players_are_told_is_on_a_disk(world: &World, files: &Files) -> Result<(), String> {
    for (id, match_id, result) in &world.notes.results {
        let is_decided = files
            .decided
            .iter()
            .any(|(_, task)| task.result.as_ref() == Some(result));
        let is_recorded = files
            .by_match
            .get(match_id)
            .is_some_and(|one| game_result(&one.result) == *result);
        ensure(is_decided || is_recorded, || {
            format!(
                "{} was told a result of {match_id} that is on no disk",
                world.name(*id)
            )
        })?;
    }
    Ok(())
}
