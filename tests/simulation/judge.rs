//! The laws of a league: each is a function with a sentence. Most are checked when the league is over.
//! They read the table of all requests and the files that are left. Those at the end of this file are
//! checked at once, where an agent decides something.

use super::agents::player;
use super::world::{Answer, Body, Id, Kind, Machine, Profile, World, count};
use league::games::game_result;
use league::manager::Manager;
use league::manager::league::League;
use league::net::agent::HandlerError;
use league::net::call_error::CallError;
use league::protocol::{
    Envelope, ErrorCode, GameResult, ManagerRequest, Message, PlayerRequest, Reply, ResultStatus,
};
use league::referee::tasks::{Sending, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use std::{fs, mem};

/// The longest time from the moment when a referee goes away to the end of a league that has another: it
/// may come back just before it is replaced, and then all rounds are played.
const REPLACEMENT_LIMIT: Duration = Duration::from_secs(160);

/// What is left of a league.
struct Remains<'a> {
    world: &'a World,
    league: &'a League,
    /// The lines of all outboxes, with the referee.
    decided: Vec<(Id, Task)>,
}

/// The laws that are checked when the league is over.
const LAWS: [fn(&Remains); 8] = [
    every_pair_meets_once,
    tables_are_sums_of_results,
    players_remember_what_is_recorded,
    players_are_told_the_recorded_result,
    nobody_loses_without_a_failure,
    everybody_knows_the_end,
    the_same_request_has_the_same_answer,
    a_match_is_decided_once,
];

/// Judges a league that is over.
pub fn judge(world: &World) {
    count("league".into());
    the_league_ends(world);
    let Some(server) = &world.server else { return };
    server.manager.store.read(|league| {
        let remains = Remains {
            world,
            league,
            decided: decided(world),
        };
        for law in LAWS {
            law(&remains);
        }
        for one in &league.matches {
            for _ in 1..one.assignments.len() {
                count("match assigned again".into());
            }
        }
    });
}

/// Returns the lines of all outboxes, with the referee.
fn decided(world: &World) -> Vec<(Id, Task)> {
    let mut decided = Vec::new();
    for id in 1..=world.referees.len() {
        let text = fs::read_to_string(&world.machines[id].file).unwrap_or_default();
        let tasks = text.lines().map(serde_json::from_str);
        decided.extend(tasks.flatten().map(|task| (id, task)));
    }
    decided
}

impl Remains<'_> {
    /// Returns the recorded result of a match, as players are told it.
    fn result(&self, match_id: &str) -> Option<GameResult> {
        let recorded = self.league.find(match_id)?.recorded.as_ref()?;
        Some(game_result(&recorded.result))
    }

    /// Returns true if a player has failed in a match by its own fault: it has not answered an
    /// invitation well, or not answered in all attempts, or not corrected a wrong answer.
    fn has_failed(&self, conversation: &str, player: Id, max_retries: u32) -> bool {
        let (mut late, mut all) = (0, 0);
        let calls = self.world.calls.iter();
        let mut calls = calls.filter(|call| {
            (call.to, &*call.envelope.conversation_id) == (player, conversation)
                && !matches!(call.message(), Some(PlayerRequest::GameOver(_)))
        });
        calls.any(|call| {
            let Some(Err(error)) = &call.outcome else {
                return false;
            };
            let is_wrong = !error.may_pass();
            let is_late = matches!(error, CallError::Timeout(_));
            if !is_wrong && !error.is_retryable() {
                return false;
            }
            late += u32::from(is_late);
            all += 1;
            let is_invitation = matches!(call.message(), Some(PlayerRequest::GameInvitation(_)));
            is_invitation && (is_wrong || is_late) || all >= max_retries || late > 0 && all > late
        })
    }

    /// Returns the number of the manager's calls to an agent that failed one after the other: the
    /// largest one, and the last one. The third is true if the last call found no program.
    fn failed_calls(&self, id: Id) -> (u32, u32, bool) {
        let (mut most, mut last, mut is_gone) = (0, 0, false);
        let calls = self.world.calls.iter();
        let calls = calls.filter(|call| (call.from, call.to) == (0, id));
        for outcome in calls.filter_map(|call| call.outcome.as_ref()) {
            let has_failed = outcome.as_ref().is_err_and(CallError::is_retryable);
            last = if has_failed { last + 1 } else { 0 };
            most = last.max(most);
            is_gone = outcome.as_ref().is_err_and(CallError::is_refused);
        }
        (most, last, is_gone)
    }
}

/// Returns true if the recorded result is known from an answer to a report.
fn knows_result(answer: &Answer) -> bool {
    match answer {
        Ok(_) => true,
        Err(CallError::Refused(error, _)) => {
            let context = error.context.as_ref();
            context.is_some_and(|context| context.contains_key("recorded_result"))
        }
        Err(_) => false,
    }
}

/// The league is closed in a bounded time. It does not wait for a referee, if only that one is away and
/// there is another.
fn the_league_ends(world: &World) {
    let referees = 1..=world.referees.len();
    let started = world.over_at.get(&0).copied().unwrap_or(Duration::MAX);
    let limit = match world.happened[..] {
        [(at, (id, kind, _))]
            if at >= started
                && kind != Kind::Hung
                && referees.contains(&id)
                && *referees.end() > 1 =>
        {
            at + REPLACEMENT_LIMIT
        }
        _ => Duration::MAX,
    };
    let ended = world.machines[0].ended_at;
    let holds = ended.is_some_and(|ended| ended <= limit);
    world.check("end", holds, ended);
}

/// Every pair meets once, and each match has a result.
fn every_pair_meets_once(remains: &Remains) {
    let players = remains.world.players.len();
    let recorded = (remains.league.matches.iter()).filter(|one| one.recorded.is_some());
    let pairs = recorded.clone().map(|one| one.players.iter().collect());
    let pairs: BTreeSet<BTreeSet<_>> = pairs.collect();
    let counts = [recorded.count(), pairs.len(), remains.league.matches.len()];
    let holds = counts == [players * (players - 1) / 2; 3];
    remains.world.check("schedule", holds, counts);
}

/// The table of all matches is the sum of their results, and the tables that an agent is told do not
/// grow older.
fn tables_are_sums_of_results(remains: &Remains) {
    let matches = remains.league.matches.iter();
    let results: Vec<_> = matches.filter_map(|one| one.recorded.as_ref()).collect();
    let mut newest = BTreeMap::new();
    for call in &remains.world.calls {
        let Some(PlayerRequest::LeagueStandingsUpdate(table)) = call.message() else {
            continue;
        };
        let rows = &table.standings;
        let count = rows.iter().map(|row| row.played as usize).sum::<usize>() / 2;
        let is_sum = rows.iter().all(|row| {
            let own = results.iter();
            let own = own.filter_map(|one| one.result.score.get(&row.player_id));
            count < results.len() || own.sum::<i32>() == row.points
        });
        let is_newer = newest.insert(call.to, count).unwrap_or(0) <= count;
        remains.world.check("sum", is_sum && is_newer, count);
    }
}

/// Whoever knows the end remembers all of its matches, each as won, drawn or lost as it is recorded,
/// unless the manager has not answered its question.
fn players_remember_what_is_recorded(remains: &Remains) {
    let world = remains.world;
    for (player, id) in world.players.iter().zip(1 + world.referees.len()..) {
        let mut calls = world.calls.iter().filter(|call| call.from == id);
        let is_unanswered = calls.any(|call| {
            matches!(call.body, Body::ToManager(ManagerRequest::LeagueQuery(_)))
                && matches!(call.outcome, Some(Err(_)))
        });
        if is_unanswered || world.machines[id].ended_at.is_none() {
            continue;
        }
        let name = &world.machines[id].name;
        let outcome = |result: &GameResult| {
            let has_won = result.winner_player_id.as_ref() == Some(name);
            (has_won, result.status == ResultStatus::Draw)
        };
        let matches = player.history.matches();
        let has_all = matches.len() == world.players.len() - 1;
        world.check("memory", has_all, (name, matches.len()));
        for past in matches.iter() {
            let recorded = remains.result(&past.match_id);
            let is_like = recorded.as_ref().map(outcome) == Some(outcome(&past.result));
            let is_same = recorded.as_ref() == Some(&past.result);
            let holds = is_same || is_like && world.profile != Profile::Breach;
            world.check("memory", holds, (name, &past.match_id));
        }
    }
}

/// The last thing that a player is told about a match is the recorded result, once the referee that tells
/// it knows that one, unless it has ended with messages that were not settled. Another result does not
/// count if the player refuses it, or is not there.
fn players_are_told_the_recorded_result(remains: &Remains) {
    let (mut known, mut last) = (BTreeSet::new(), BTreeMap::new());
    for call in &remains.world.calls {
        if let Body::ToManager(ManagerRequest::MatchResultReport(report)) = &call.body
            && call.outcome.as_ref().is_some_and(knows_result)
        {
            known.insert((call.from, call.life, &report.match_id));
        } else if let Some(PlayerRequest::GameOver(over)) = call.message() {
            let id = &over.match_id;
            let is_recorded = remains.result(id).as_ref() == Some(&over.game_result);
            let is_told = !matches!(
                call.outcome,
                Some(Err(CallError::Refused(..) | CallError::Unreachable(_)))
            );
            if is_recorded || is_told {
                last.insert((id, call.to), (call, is_recorded));
            }
        }
    }
    for ((id, player), (call, is_recorded)) in last {
        let holds = is_recorded
            || !known.contains(&(call.from, call.life, id))
            || !remains.world.referees[call.from - 1].is_settled;
        remains.world.check("last word", holds, (id, player));
    }
}

/// Each result was decided by its referee. A technical loss is judged by the last referee of the match,
/// and is the loser's own: it has failed in the match, or all attempts of the manager to call it
/// have failed at some time in the league, or the match has been announced again three times (the manager
/// does not do that without end). Where nothing else fails, only who was away loses, or who was judged by a
/// referee that was away.
fn nobody_loses_without_a_failure(remains: &Remains) {
    let world = remains.world;
    let max_retries = world.program.config.system.retry_policy.max_retries;
    for the_match in &remains.league.matches {
        let Some(one) = &the_match.recorded else {
            continue;
        };
        let referee = world.id(&one.referee_id);
        let result = game_result(&one.result);
        let mut decided = remains.decided.iter();
        let found = decided.rfind(|(id, task)| {
            (*id, &task.assignment.match_id) == (referee, &one.match_id)
                && task.result.as_ref() == Some(&result)
        });
        world.check("decided", found.is_some(), (&one.match_id, referee));
        let Some((_, task)) = found.filter(|_| result.status == ResultStatus::TechnicalLoss) else {
            continue;
        };

        let is_last = the_match.referee() == Some(&one.referee_id);
        world.check("justice", is_last, (&one.match_id, "not its last referee"));
        for player in &the_match.players {
            let id = world.id(player);
            let is_own = remains.has_failed(&task.assignment.conversation_id, id, max_retries)
                || remains.failed_calls(id).0 >= max_retries
                || the_match.assignments.len() > 3;
            let was_away = [id, referee].map(|id| world.machines[id].was_away);
            let is_just = is_own && (world.profile == Profile::Safety || was_away != [false; 2]);
            let holds = is_just || result.winner_player_id.as_ref() == Some(player);
            world.check("justice", holds, (&one.match_id, player, &result.reason));
        }
    }
}

/// Everybody has ended, except who could not be told in all attempts: these go on for as long as they
/// can take, unless the last one has found no program.
fn everybody_knows_the_end(remains: &Remains) {
    let world = remains.world;
    let policy = world.program.config.system.retry_policy;
    let attempt = world.program.config.generic_limit();
    let over = world.over_at.values().next_back().copied();
    let given_up_at = over.unwrap_or_default() + policy.max_total_time(attempt) + attempt;
    for (id, machine) in world.machines.iter().enumerate() {
        let (_, failures, is_gone) = remains.failed_calls(id);
        let is_given_up = is_gone || world.now >= given_up_at;
        let holds = machine.ended_at.is_some() || failures >= policy.max_retries && is_given_up;
        world.check("told", holds, (&machine.name, failures));
    }
}

/// The same request has the same answer: an acknowledged result is that in the journal, and is not
/// refused later; and a player keeps its choice.
fn the_same_request_has_the_same_answer(remains: &Remains) {
    let mut answers = BTreeMap::new();
    for call in &remains.world.calls {
        let Some(answer) = &call.outcome else {
            continue;
        };
        let (key, new) = match (&call.body, answer) {
            (Body::ToManager(ManagerRequest::MatchResultReport(report)), answer) => {
                let id = &report.match_id;
                let is_same = remains.result(id) == Some(game_result(&report.result));
                remains.world.check("kept", answer.is_err() || is_same, id);
                if !is_same || !knows_result(answer) {
                    continue;
                }
                ((call.from, None, id), answer.is_ok().to_string())
            }
            (_, Ok(Some(Reply::ChooseParityResponse(response)))) => {
                let life = call.reached.map(|(_, life)| life);
                let key = (call.to, life, &call.envelope.conversation_id);
                (key, response.parity_choice.to_string())
            }
            _ => continue,
        };
        let before = answers.entry(key).or_insert(new.clone());
        let holds = *before == new;
        remains.world.check("same answer", holds, (key, new));
    }
}

/// A referee decides a match once, unless it was announced again with other tokens, or it was a technical
/// loss, which may have been refused.
fn a_match_is_decided_once(remains: &Remains) {
    let mut decided = BTreeMap::new();
    for (referee, task) in &remains.decided {
        let id = &task.assignment.match_id;
        let first = decided.insert((referee, id, &task.assignment.tokens), &task.result);
        let holds = first.and_then(Option::as_ref).is_none_or(|first| {
            first.status == ResultStatus::TechnicalLoss || Some(first) == task.result.as_ref()
        });
        remains.world.check("once", holds, (referee, id));
    }
}

// The laws that are checked at once, by the agents.

/// Returns true if the manager and all referees were always there, in a profile in which only those that
/// are away lose messages.
fn are_there(world: &World) -> bool {
    let mut first = world.machines[..=world.referees.len()].iter();
    world.profile != Profile::Safety && first.all(|machine| !machine.was_away)
}

/// Each referee has its whole time limit after the last assignment, which is enough where all are
/// there. It is also noted when rounds are over.
pub fn the_manager_waits_rightly(world: &mut World, manager: &Manager) {
    let server = world.server.as_mut().unwrap();
    let [is_late, has_old_limit] = manager.store.read(|league| {
        if league.started {
            let over_at = world.over_at.entry(league.rounds_completed);
            over_at.or_insert(world.now);
        }
        let assigned = league.matches.iter().map(|one| one.assignments.len()).sum();
        let is_new = mem::replace(&mut server.assigned, assigned) != assigned;
        manager.contacts.with(|table| {
            let mut contacts = table.contacts.values();
            let is_late = contacts.clone().any(|one| one.health.is_late());
            [
                is_late,
                is_new && contacts.any(|one| one.report_by.is_some()),
            ]
        })
    });
    let holds = !is_late || !are_there(world);
    world.check("limit", holds, "no referee was away, and one is late");
    world.check("limit", !has_old_limit, "other matches, and the old limit");
}

/// The end of a round comes before what follows it. Where the manager and all referees are there, a
/// player is told the end when the referees have answered it.
pub fn notifications_come_in_order(world: &mut World, to: Id, message: &PlayerRequest) {
    let server = world.server.as_mut().unwrap();
    let (round, is_end) = match message {
        PlayerRequest::RoundCompleted(end) => {
            server.ends.insert((to, end.round_id));
            return;
        }
        PlayerRequest::RoundAnnouncement(round) => (round.round_id - 1, false),
        PlayerRequest::LeagueCompleted(_) => (*world.over_at.keys().max().unwrap(), true),
        _ => return,
    };
    let is_told = round == 0 || server.ends.contains(&(to, round));
    let referees = world.referees.len();
    let has_ended = |machine: &Machine| machine.ended_at.is_some();
    let has_waited = to <= referees || world.machines[1..=referees].iter().all(has_ended);
    let is_early = is_end && are_there(world) && !has_waited;
    world.check("order", is_told && !is_early, (message.name(), to));
}

/// No match begins before the lead time has passed since the end of the round before, unless
/// the manager was away; nor, as long as nothing has failed, before the player has received its
/// announcement.
pub fn matches_begin_in_time(world: &mut World, id: Id, message: &PlayerRequest) {
    let PlayerRequest::GameInvitation(new) = message else {
        return;
    };
    let before = world.over_at.get(&(new.round_id - 1));
    let is_due =
        world.machines[0].was_away || before.is_some_and(|over| *over + world.lead <= world.now);
    let has_failed = !world.happened.is_empty();
    let invitations = &player(world, id).invitations;
    let is_known = has_failed || invitations.is_announced(&new.match_id);
    world.check("begin", is_known && is_due, (&new.match_id, id));
}

/// A referee reports a technical loss only under the tokens that it was told last in this life.
pub fn losses_are_reported_under_the_newest_tokens(world: &World, id: Id, sent: &Sending) {
    let (assignment, result) = (&sent.assignment, &sent.game_over.game_result);
    let newest = world.referees[id - 1].tokens.get(&assignment.match_id);
    let newest = newest.and_then(Option::as_ref);
    let holds = result.status != ResultStatus::TechnicalLoss
        || newest.is_none_or(|token| *token == assignment.tokens[0]);
    world.check("tokens", holds, &assignment.match_id);
}

/// A player does not refuse a result as one with a wrong token, if it has the announced token.
pub fn results_are_accepted(
    world: &mut World,
    id: Id,
    envelope: &Envelope,
    message: &PlayerRequest,
    refusal: &HandlerError,
) {
    if let PlayerRequest::GameOver(over) = message
        && let HandlerError::Refused(error) = refusal
    {
        let (token, invitations) = (
            envelope.auth_token.as_deref(),
            &player(world, id).invitations,
        );
        let holds = error.code != ErrorCode::TokenInvalid
            || !invitations.is_announced(&over.match_id)
            || !invitations.expects(&over.match_id, token);
        world.check("accepted", holds, (&over.match_id, id));
    }
}
