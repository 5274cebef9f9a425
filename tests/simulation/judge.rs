//! The laws of a league. Those in `LAWS` are checked when it is over, from the files that are left
//! and from what was noted on the way; a `note_` function that sees a broken law says so at once.

use super::agents::Player;
use super::world::{Answer, Id, Profile, Ticket, World};
use league::games::{game_result, match_result, result_status};
use league::manager::league::{Event, MatchAssignment, Recorded};
use league::manager::notifications::Notification;
use league::net::call_error::CallError;
use league::protocol::{
    ErrorCode, GameResult, ManagerRequest, MatchResult, PlayerRequest, ResultStatus, Standing,
};
use league::referee::tasks::Task;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// The longest time from the end of the last fault to the end of the league, with all faults and
/// with one.
const END_LIMIT: Duration = Duration::from_secs(900);
const END_LIMIT_OF_ONE_FAULT: Duration = Duration::from_secs(400);
/// The longest time from the moment when a referee goes away to the end of a league that has another.
const REPLACEMENT_LIMIT: Duration = Duration::from_secs(150);
/// The conversation of a player that sends messages in the name of others.
pub const FALSE_CONVERSATION: &str = "conv-false";

/// What is noted while the league is played.
#[derive(Default)]
pub struct Notes {
    draws: u64,
    /// The reports that the manager has acknowledged: referee, match, result.
    reports: Vec<(Id, String, MatchResult)>,
    /// The tokens that agents were given.
    tokens: BTreeMap<Id, String>,
    /// The life of a player and its choice, by conversation and player.
    choices: BTreeMap<(String, Id), (u32, String)>,
    /// The failures of a player in a match: those of invitations that are final, questions without
    /// an answer, all.
    failures: BTreeMap<(String, usize), [u32; 3]>,
    /// The results that players have acknowledged.
    results: Vec<(Id, String, GameResult)>,
    tables: Vec<Vec<Standing>>,
    /// The rounds whose end an agent was told, in each life of the manager.
    ends: BTreeSet<(u32, String, u32)>,
    /// The manager's calls that failed one after the other, before and after the last result.
    call_failures: BTreeMap<(String, bool), u32>,
    /// The agents that it could not reach in all attempts.
    unreachable: BTreeSet<String>,
    /// The players whose questions the manager has not answered.
    unanswered: BTreeSet<Id>,
    broken: Vec<String>,
}

impl World {
    fn note_broken(&mut self, holds: bool, finding: impl FnOnce() -> String) {
        if !holds {
            self.notes.broken.push(finding());
        }
    }

    /// Returns another seed each time: a match that is played again does not end alike.
    pub fn note_draw(&mut self, id: Id) -> u64 {
        self.notes.draws += 1;
        self.random(id, 94, self.notes.draws).u64(..)
    }

    /// The manager answers a request. The same call gets the same answer.
    pub fn note_answer(&mut self, ticket: Ticket, message: &ManagerRequest, answer: &Answer) {
        if self.dying == Some(0) {
            return;
        }
        match (message, answer) {
            (ManagerRequest::MatchResultReport(report), answer) => {
                let entry = (ticket.from, report.match_id.clone(), report.result.clone());
                let is_refused = matches!(answer, Err(CallError::Refused(error, _)) if error.error_code == ErrorCode::MatchMismatch);
                let was_accepted = self.notes.reports.contains(&entry);
                self.note_broken(!(is_refused && was_accepted), || {
                    format!(
                        "same answer: {} was acknowledged, and is refused now",
                        report.match_id
                    )
                });
                if answer.is_ok() {
                    self.notes.reports.push(entry);
                }
            }
            (_, Ok(answer)) if answer["status"] == "ACCEPTED" => {
                let token = answer["auth_token"].to_string();
                let before = self.notes.tokens.insert(ticket.from, token.clone());
                let is_same = before.is_none_or(|before| before == token);
                self.note_broken(is_same, || {
                    format!("same answer: agent {} gets another token", ticket.from)
                });
            }
            _ => {}
        }
    }

    /// A question of a referee is answered, or has failed.
    pub fn note_question(&mut self, call: (String, usize), is_invitation: bool, answer: &Answer) {
        let is_wrong = matches!(answer, Err(CallError::JsonRpc(..)));
        let is_late = matches!(answer, Err(CallError::Timeout(_)));
        let has_failed = matches!(answer, Err(error) if is_wrong || error.is_retryable());
        let counts = self.notes.failures.entry(call).or_default();
        counts[0] += u32::from(is_invitation && (is_wrong || is_late));
        counts[1] += u32::from(is_late);
        counts[2] += u32::from(has_failed);
    }

    /// A player has chosen. In a life it chooses once for an invitation, which nobody else can make.
    pub fn note_choice(&mut self, id: Id, conversation: &str, choice: &str) {
        let new = (self.bodies[id].life, choice.to_string());
        let before = self
            .notes
            .choices
            .insert((conversation.into(), id), new.clone());
        let is_same = before.is_none_or(|before| before.0 != new.0 || before == new);
        self.note_broken(is_same, || {
            format!("same answer: agent {id} chooses again, and otherwise")
        });
        let is_true = conversation != FALSE_CONVERSATION;
        self.note_broken(is_true, || {
            format!("stranger: agent {id} tells its choice to another player")
        });
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

    /// The manager has not answered a player's question.
    pub fn note_failed_query(&mut self, id: Id) {
        self.notes.unanswered.insert(id);
    }

    /// The manager sends a notification. The end of a round comes before what follows it.
    pub fn note_notification(&mut self, id: &str, told: Option<Notification>) {
        let life = self.bodies[0].life;
        let manager = &self.server.as_ref().unwrap().manager;
        let round = match told {
            Some(Notification::RoundEnd(round)) => {
                self.notes.ends.insert((life, id.into(), round));
                return;
            }
            Some(Notification::Announcement(round)) => round - 1,
            Some(Notification::LeagueEnd) => manager.store.read(|league| league.rounds()),
            _ => 0,
        };
        let holds = round == 0 || self.notes.ends.contains(&(life, id.into(), round));
        self.note_broken(holds, || {
            format!("order: {id} gets {told:?} before the end of round {round}")
        });
    }

    /// A call of the manager is answered, or has failed.
    pub fn note_call(&mut self, id: &str, answer: &Answer) {
        let Some(server) = &self.server else { return };
        let is_over = server.manager.store.read(|league| league.is_over());
        let failures = self
            .notes
            .call_failures
            .entry((id.into(), is_over))
            .or_default();
        *failures = if answer.is_ok() { 0 } else { *failures + 1 };
        if *failures >= self.program.config.system.retry_policy.max_retries {
            self.notes.unreachable.insert(id.into());
        }
    }

    /// Returns the players and their ids.
    fn named_players(&self) -> impl Iterator<Item = (Id, String, &Player)> {
        let first = 1 + self.referees.len();
        let players = self.players.iter().enumerate();
        players.map(move |(n, player)| (first + n, self.name(first + n), player))
    }
}

/// What the files say when the league is over.
#[derive(Default)]
struct Files {
    rounds: Vec<Vec<[String; 2]>>,
    recorded: Vec<Recorded>,
    by_match: BTreeMap<String, Recorded>,
    given: Vec<MatchAssignment>,
    /// The lines of all outboxes, with the referee.
    decided: Vec<(String, Task)>,
}

impl Files {
    fn read(world: &World) -> Files {
        let mut files = Files::default();
        let journal = fs::read_to_string(world.journal()).unwrap_or_default();
        for line in journal.lines() {
            match serde_json::from_str(line) {
                Ok(Event::Started { rounds, .. }) => files.rounds = rounds,
                Ok(Event::Assigned { assignments }) => files.given.extend(assignments),
                Ok(Event::Recorded(recorded)) => {
                    files
                        .by_match
                        .insert(recorded.match_id.clone(), recorded.clone());
                    files.recorded.push(recorded);
                }
                _ => {}
            }
        }
        for id in 1..=world.referees.len() {
            let path = world.folder(id).map(|folder| folder.join("outbox.jsonl"));
            let outbox = path.and_then(|path| fs::read_to_string(path).ok());
            let tasks = outbox.iter().flat_map(|text| text.lines());
            let tasks = tasks.filter_map(|line| serde_json::from_str(line).ok());
            files
                .decided
                .extend(tasks.map(|task| (world.name(id), task)));
        }
        files
    }

    /// Returns the results of referees, each with the task in which it was decided. The others are of
    /// removed players.
    fn played(&self, world: &World) -> Vec<(&Recorded, Option<&Task>)> {
        let scoring = &world.program.config.league.scoring;
        let mut played = Vec::new();
        for one in self
            .recorded
            .iter()
            .filter(|one| one.referee_id.starts_with("REF"))
        {
            let mut found = self.decided.iter().filter(|(referee, task)| {
                let result = task
                    .result
                    .as_ref()
                    .map(|result| match_result(result, scoring));
                (referee, &task.assignment.match_id) == (&one.referee_id, &one.match_id)
                    && result.as_ref() == Some(&one.result)
            });
            played.push((one, found.next_back().map(|(_, task)| task)));
        }
        played
    }

    /// Returns the technical losses among them.
    fn losses(&self, world: &World) -> Vec<(&Recorded, Option<&Task>)> {
        let mut played = self.played(world);
        played.retain(|(one, _)| result_status(&one.result) == ResultStatus::TechnicalLoss);
        played
    }
}

type Law = fn(&World, &Files) -> Result<(), String>;

/// The laws, with their names.
const LAWS: [(&str, Law); 12] = [
    ("end", the_league_ends),
    ("schedule", every_pair_meets_once),
    ("one result", each_match_has_one_result),
    ("sum", tables_are_sums_of_results),
    ("choices", results_follow_from_choices),
    ("memory", players_remember_what_is_recorded),
    ("justice", nobody_loses_without_a_failure),
    ("alone", only_who_was_away_loses),
    ("told", everybody_knows_the_end),
    ("kept", what_was_acknowledged_is_kept),
    ("disk", what_players_are_told_is_on_a_disk),
    ("once", a_match_is_decided_once),
];

/// Returns the laws that a league has broken, each as `NAME: what is wrong`.
pub fn judge(world: &mut World) -> Vec<String> {
    let files = Files::read(world);
    for one in &files.recorded {
        world.count(format!("recorded: {:?}", result_status(&one.result)));
    }
    let matches: BTreeSet<_> = files.given.iter().map(|given| &given.match_id).collect();
    *world.counts.entry("match given again".into()).or_default() +=
        (files.given.len() - matches.len()) as u64;

    let mut findings = world.notes.broken.clone();
    for (name, law) in LAWS {
        findings.extend(
            law(world, &files)
                .err()
                .map(|problem| format!("{name}: {problem}")),
        );
    }
    findings
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

/// The league is closed in a bounded time after the last fault. It does not wait for a referee that is
/// away, if there is another one.
fn the_league_ends(world: &World, files: &Files) -> Result<(), String> {
    let is_referee_away = world.bodies[1..=world.referees.len()]
        .iter()
        .any(|body| body.was_away);
    let (from, limit) = match (world.profile, world.fault_at) {
        (Profile::Safety, _) => (world.calm_at, END_LIMIT),
        (_, Some(fault_at)) if is_referee_away && world.referees.len() > 1 => {
            (fault_at, REPLACEMENT_LIMIT)
        }
        _ => (world.calm_at, END_LIMIT_OF_ONE_FAULT),
    };
    let holds = world
        .closed_at
        .is_some_and(|closed_at| closed_at <= from + limit);
    ensure(holds, || {
        let count = files.recorded.len();
        format!(
            "the league is closed at {:?}, with {count} results",
            world.closed_at
        )
    })
}

/// Every pair meets once, and nobody plays twice in a round.
fn every_pair_meets_once(world: &World, files: &Files) -> Result<(), String> {
    let players = world.players.len();
    let matches: Vec<_> = files.rounds.iter().flatten().collect();
    let pairs: BTreeSet<_> = matches.iter().map(|[a, b]| (a.min(b), a.max(b))).collect();
    let are_disjoint = files
        .rounds
        .iter()
        .all(|round| round.iter().flatten().collect::<BTreeSet<_>>().len() == 2 * round.len());
    let counts = [matches.len(), pairs.len()];
    let holds = counts == [players * (players - 1) / 2; 2] && are_disjoint;
    ensure(holds || matches.is_empty(), || {
        format!("{:?}", files.rounds)
    })
}

/// Each match has one result.
fn each_match_has_one_result(_: &World, files: &Files) -> Result<(), String> {
    let matches = files.rounds.iter().flatten().count();
    let counts = [files.recorded.len(), files.by_match.len()];
    ensure(counts == [matches; 2], || {
        format!(
            "{} results of {} matches; the schedule has {matches}",
            counts[0], counts[1]
        )
    })
}

/// Every table that a player was told is the sum of the first results, best first.
fn tables_are_sums_of_results(world: &World, files: &Files) -> Result<(), String> {
    let points = |results: &[Recorded], player: &str| -> i32 {
        results
            .iter()
            .filter_map(|one| one.result.score.get(player))
            .sum()
    };
    for table in &world.notes.tables {
        let played: u32 = table.iter().map(|row| row.played).sum();
        let results = files
            .recorded
            .get(..played as usize / 2)
            .ok_or("a table is ahead of the journal")?;
        let mut rows = table.iter();
        let is_sum = rows.all(|row| row.points == points(results, &row.player_id));
        let is_sorted = table.is_sorted_by(|a, b| a.points >= b.points);
        ensure(is_sum && is_sorted, || {
            format!("a table of {} results is wrong: {table:?}", results.len())
        })?;
    }
    for (_, name, player) in world.named_players() {
        let mut rows = player.told.iter().flat_map(|end| &end.final_standings);
        let is_sum = rows.all(|row| row.points == points(&files.recorded, &row.player_id));
        ensure(is_sum, || {
            format!(
                "{name} was told another table at the end: {:?}",
                player.told
            )
        })?;
    }
    Ok(())
}

/// A recorded result was decided by its referee, and follows from the number and from what both
/// players have chosen.
fn results_follow_from_choices(world: &World, files: &Files) -> Result<(), String> {
    for (one, task) in files.played(world) {
        let id = &one.match_id;
        let task = task.ok_or_else(|| format!("{} has not decided {id} so", one.referee_id))?;
        let Some(number) = one.result.details.drawn_number else {
            continue;
        };
        let mut winners = Vec::new();
        for (player, name, _) in world.named_players() {
            let Some(told) = one.result.details.choices.get(&name) else {
                continue;
            };
            let key = (task.assignment.conversation_id.clone(), player);
            let chosen = world.notes.choices.get(&key).map(|(_, choice)| &**choice);
            ensure(told.map(|told| told.as_str()) == chosen, || {
                format!("{name} has chosen {chosen:?} in {id}, not {told:?}")
            })?;
            if chosen == Some(["even", "odd"][number as usize % 2]) {
                winners.push(name);
            }
        }
        let winner = winners.pop().filter(|_| winners.is_empty());
        let due = |player: &String| match &winner {
            None => 1,
            Some(winner) => 3 * i32::from(winner == player),
        };
        let holds = one.result.winner == winner
            && one
                .result
                .score
                .iter()
                .all(|(player, points)| *points == due(player));
        ensure(holds, || {
            format!(
                "{id} with {number} is won by {winner:?}, not {:?}",
                one.result
            )
        })?;
    }
    Ok(())
}

/// Whoever knows the end remembers the recorded results, all of them and no others.
fn players_remember_what_is_recorded(world: &World, files: &Files) -> Result<(), String> {
    for (id, name, player) in world.named_players() {
        if player.told.is_none() || world.notes.unanswered.contains(&id) {
            continue;
        }
        for past in player.saved.iter() {
            let recorded = files
                .by_match
                .get(&past.match_id)
                .map(|one| game_result(&one.result));
            // A player that was away asks for its results only if its record is another one.
            let outcome = |result: &GameResult| {
                (
                    result.winner_player_id.as_ref() == Some(&name),
                    result.status == ResultStatus::Draw,
                )
            };
            let is_like = recorded.as_ref().map(outcome) == Some(outcome(&past.result));
            let holds = recorded.as_ref() == Some(&past.result)
                || is_like && world.profile == Profile::Safety;
            ensure(holds, || {
                format!("{name} remembers another result of {}", past.match_id)
            })?;
        }
        let expected = files
            .rounds
            .iter()
            .flatten()
            .filter(|players| players.contains(&name))
            .count();
        let known = player.saved.len();
        ensure(known == expected, || {
            format!("{name} remembers {known} of {expected} results")
        })?;
    }
    Ok(())
}

/// A technical loss is judged by the last referee of the match, and is the loser's own: it has not
/// answered an invitation well, or not answered in three attempts, or not corrected a wrong answer,
/// or the manager could not tell it of the match in all attempts.
fn nobody_loses_without_a_failure(world: &World, files: &Files) -> Result<(), String> {
    for (one, task) in files.losses(world) {
        let last = files
            .given
            .iter()
            .rfind(|given| given.match_id == one.match_id);
        let is_last = last.is_some_and(|given| given.referee_id == one.referee_id);
        ensure(is_last, || {
            format!(
                "{} is judged by a referee that has it no more",
                one.match_id
            )
        })?;
        let Some(assignment) = task.map(|task| &task.assignment) else {
            continue;
        };
        for (seat, player) in assignment.players.iter().enumerate() {
            let key = (assignment.conversation_id.clone(), seat);
            let failures = world.notes.failures.get(&key).copied();
            let [final_ones, silent_ones, all] = failures.unwrap_or_default();
            let is_own = final_ones > 0 || all >= 3 || silent_ones > 0 && all > silent_ones;
            let holds = is_own
                || one.result.winner.as_ref() == Some(player)
                || world.notes.unreachable.contains(player);
            ensure(holds, || {
                format!(
                    "{player} has failed {all} times in {}: {:?}",
                    one.match_id, one.result.details.reason
                )
            })?;
        }
    }
    Ok(())
}

/// Where one agent is away and nothing else fails, nobody else loses technically; but a referee that
/// was cut off from its players cannot know that they were there.
fn only_who_was_away_loses(world: &World, files: &Files) -> Result<(), String> {
    let was_away = |name: &str| {
        (0..world.bodies.len()).any(|id| world.name(id) == *name && world.bodies[id].was_away)
    };
    for (one, _) in files.losses(world) {
        let mut losers = one
            .result
            .score
            .iter()
            .filter(|(id, _)| one.result.winner.as_ref() != Some(*id));
        let are_own = losers.all(|(loser, _)| was_away(loser));
        let holds = world.profile == Profile::Safety || are_own || was_away(&one.referee_id);
        ensure(holds, || {
            format!(
                "who was there loses {}: {:?}",
                one.match_id, one.result.details.reason
            )
        })?;
    }
    Ok(())
}

/// Everybody has ended, except who could not be told in all attempts; one whose program is there is
/// called for as long as they can take.
fn everybody_knows_the_end(world: &World, _: &Files) -> Result<(), String> {
    let (policy, attempt) = (
        world.program.config.system.retry_policy,
        world.program.config.generic_limit(),
    );
    let (Some(over_at), Some(closed_at)) = (world.over_at, world.closed_at) else {
        return Ok(());
    };
    let is_time_over = closed_at >= over_at + policy.max_total_time(attempt);
    for id in 1..world.bodies.len() {
        let (name, body) = (world.name(id), &world.bodies[id]);
        let failures = world
            .notes
            .call_failures
            .get(&(name.clone(), true))
            .copied()
            .unwrap_or_default();
        let was_down = !body.is_up || body.started > closed_at;
        let is_given_up = failures >= policy.max_retries && (is_time_over || was_down);
        ensure(body.has_ended || is_given_up, || {
            format!("{name} does not know the end, after {failures} attempts")
        })?;
    }
    Ok(())
}

/// What the manager has acknowledged is in its journal.
fn what_was_acknowledged_is_kept(world: &World, files: &Files) -> Result<(), String> {
    for (_, match_id, result) in &world.notes.reports {
        let recorded = files.by_match.get(match_id);
        let holds = recorded.is_some_and(|one| one.result == *result);
        ensure(holds, || {
            format!("the acknowledged result of {match_id} is lost")
        })?;
    }
    Ok(())
}

/// A result that a player was told stands in an outbox or in the journal.
fn what_players_are_told_is_on_a_disk(world: &World, files: &Files) -> Result<(), String> {
    for (id, match_id, result) in &world.notes.results {
        let recorded = files
            .by_match
            .get(match_id)
            .map(|one| game_result(&one.result));
        let mut decided = files.decided.iter();
        let holds = recorded.as_ref() == Some(result)
            || decided.any(|(_, task)| task.result.as_ref() == Some(result));
        ensure(holds, || {
            format!(
                "{} was told a result of {match_id} that is on no disk",
                world.name(*id)
            )
        })?;
    }
    Ok(())
}

/// A referee decides a match once, unless it was announced again with other tokens, or its technical
/// loss was refused.
fn a_match_is_decided_once(_: &World, files: &Files) -> Result<(), String> {
    let mut decided = BTreeMap::new();
    for (referee, task) in &files.decided {
        let key = (referee, &task.assignment.match_id, &task.assignment.tokens);
        let first = decided.insert(key, &task.result).and_then(Option::as_ref);
        let holds = first.is_none_or(|first| {
            first.status == ResultStatus::TechnicalLoss || Some(first) == task.result.as_ref()
        });
        ensure(holds, || {
            format!(
                "{referee} decides {} again, and otherwise",
                task.assignment.match_id
            )
        })?;
    }
    Ok(())
}
