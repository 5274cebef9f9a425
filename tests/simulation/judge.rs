//! The laws of a league: each is a function with a sentence. Most are checked when the league is over.
//! They read the table of all requests and the files that are left. Those at the end of this file are
//! checked at once, where an agent decides something.

use super::agents::Player;
use super::world::{Answer, Body, Call, Given, Id, Kind, Machine, Profile, Purpose, World};
use league::games::{game_result, result_status};
use league::manager::Manager;
use league::manager::league::{Event, MatchAssignment, Recorded};
use league::net::call_error::CallError;
use league::protocol::{
    GameInvitation, GameOver, GameResult, ManagerRequest, Message, PlayerRequest, Reply,
    ResultStatus,
};
use league::referee::tasks::{Sending, Task};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// The longest time from the end of the last fault to the end of the league, with many faults and
/// with few.
const END_LIMIT: Duration = Duration::from_secs(900);
const END_LIMIT_OF_FEW_FAULTS: Duration = Duration::from_secs(400);
/// The longest time from the moment when a referee goes away to the end of a league that has another.
const REPLACEMENT_LIMIT: Duration = Duration::from_secs(150);

/// What is left of a league.
struct Remains<'a> {
    world: &'a World,
    rounds: Vec<Vec<[String; 2]>>,
    recorded: Vec<Recorded>,
    assigned: Vec<MatchAssignment>,
    /// The lines of all outboxes, with the referee.
    decided: Vec<(Id, Task)>,
}

/// The laws that are checked when the league is over.
const LAWS: [fn(&Remains); 11] = [
    the_league_ends,
    every_pair_meets_once,
    tables_are_sums_of_results,
    results_follow_from_choices,
    players_remember_what_is_recorded,
    players_are_told_the_recorded_result,
    players_accept_their_results,
    nobody_loses_without_a_failure,
    everybody_knows_the_end,
    the_same_request_has_the_same_answer,
    results_are_on_a_disk_once,
];

/// Judges a league that is over.
pub fn judge(world: &mut World) {
    let remains = Remains::new(world);
    for law in LAWS {
        law(&remains);
    }
    let matches = remains.rounds.iter().flatten().count();
    for _ in matches..remains.assigned.len() {
        world.count("match assigned again");
    }
}

impl<'a> Remains<'a> {
    fn new(world: &'a World) -> Remains<'a> {
        let mut remains = Remains {
            world,
            rounds: Vec::new(),
            recorded: Vec::new(),
            assigned: Vec::new(),
            decided: Vec::new(),
        };
        for id in 0..=world.referees.len() {
            let text = world
                .file(id)
                .and_then(|file| fs::read_to_string(file).ok());
            for line in text.iter().flat_map(|text| text.lines()) {
                if id > 0 {
                    remains
                        .decided
                        .extend(serde_json::from_str(line).map(|task| (id, task)));
                    continue;
                }
                match serde_json::from_str(line) {
                    Ok(Event::Started { rounds, .. }) => remains.rounds = rounds,
                    Ok(Event::Assigned { assignments }) => remains.assigned.extend(assignments),
                    Ok(Event::Recorded(recorded)) => remains.recorded.push(recorded),
                    _ => {}
                }
            }
        }
        remains
    }

    /// Returns the recorded result of a match, as players are told it.
    fn result(&self, match_id: &str) -> Option<GameResult> {
        let found = self.recorded.iter().find(|one| one.match_id == match_id)?;
        Some(game_result(&found.result))
    }

    /// Returns the answers that were given.
    fn answers(&self) -> impl Iterator<Item = (&'a Call, &'a Given)> {
        let given = self.world.given.iter();
        given.map(|given| (&self.world.calls[given.call], given))
    }

    /// Returns the messages to agents, in the order in which they were sent.
    fn messages(&self) -> impl Iterator<Item = (&'a Call, &'a PlayerRequest)> {
        self.world
            .calls
            .iter()
            .filter_map(|call| Some((call, call.message()?)))
    }

    /// Returns the results that players are told.
    fn told(&self) -> impl Iterator<Item = (&'a Call, &'a GameOver)> {
        self.messages().filter_map(|(call, message)| match message {
            PlayerRequest::GameOver(over) => Some((call, over)),
            _ => None,
        })
    }

    /// Returns the recorded results, each with the task in which its referee has decided it.
    fn played(&self) -> Vec<(&Recorded, &Task)> {
        let mut played = Vec::new();
        for one in &self.recorded {
            let referee = self.world.id(&one.referee_id);
            let result = Some(game_result(&one.result));
            let found = self.decided.iter().rfind(|(id, task)| {
                (*id, &task.assignment.match_id) == (referee, &one.match_id)
                    && task.result == result
            });
            self.world
                .check("decided", found.is_some(), (&one.match_id, referee));
            played.extend(found.map(|(_, task)| (one, task)));
        }
        played
    }

    /// Returns true if a player has failed in a match by its own fault: it has not answered an
    /// invitation well, or not answered in all attempts, or not corrected a wrong answer.
    fn has_failed(&self, conversation: &str, seat: usize, max_retries: u32) -> bool {
        let (mut late, mut all) = (0, 0);
        let mut calls = self.world.calls.iter();
        calls.any(|call| {
            let Some(Err(error)) = &call.outcome else {
                return false;
            };
            let is_wrong = !error.may_pass();
            let is_late = matches!(error, CallError::Timeout(_));
            if !call.is_question(conversation, seat) || !(is_wrong || error.is_retryable()) {
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
        let calls = self
            .world
            .calls
            .iter()
            .filter(|call| (call.from, call.to) == (0, id));
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

/// The league is closed in a bounded time after the last fault. It does not wait for a referee, if only
/// that one is away and there is another.
fn the_league_ends(remains: &Remains) {
    let world = remains.world;
    let referees = 1..=world.referees.len();
    let started = world.over_at.get(&0).copied().unwrap_or(Duration::MAX);
    let (from, limit) = match world.happened[..] {
        _ if world.profile == Profile::Safety => (world.calm_at, END_LIMIT),
        [(at, (id, kind, _))]
            if at >= started
                && kind != Kind::Hung
                && referees.contains(&id)
                && *referees.end() > 1 =>
        {
            (at, REPLACEMENT_LIMIT)
        }
        _ => (world.calm_at, END_LIMIT_OF_FEW_FAULTS),
    };
    let ended = world.machines[0].ended_at;
    let holds = ended.is_some_and(|ended| ended <= from + limit);
    remains
        .world
        .check("end", holds, (ended, remains.recorded.len()));
}

/// Every pair meets once, nobody plays twice in a round, and each match has one result.
fn every_pair_meets_once(remains: &Remains) {
    let players = remains.world.players.len();
    let matches: Vec<_> = remains.rounds.iter().flatten().collect();
    let pairs: BTreeSet<_> = matches.iter().map(|[a, b]| (a.min(b), a.max(b))).collect();
    let results: BTreeSet<_> = remains.recorded.iter().map(|one| &one.match_id).collect();
    let counts = [
        matches.len(),
        pairs.len(),
        results.len(),
        remains.recorded.len(),
    ];
    let mut rounds = remains.rounds.iter();
    let are_disjoint = rounds
        .all(|round| round.iter().flatten().collect::<BTreeSet<_>>().len() == 2 * round.len());
    let holds = counts == [players * (players - 1) / 2; 4] && are_disjoint;
    remains.world.check("schedule", holds, counts);
}

/// Every table that a player is told is the sum of the first results, best first, and is not older
/// than the one before.
fn tables_are_sums_of_results(remains: &Remains) {
    let mut newest = BTreeMap::new();
    for (call, message) in remains.messages() {
        let PlayerRequest::LeagueStandingsUpdate(table) = message else {
            continue;
        };
        let rows = &table.standings;
        let count = rows.iter().map(|row| row.played as usize).sum::<usize>() / 2;
        let results = remains.recorded.get(..count);
        let is_sum = rows.iter().all(|row| {
            let own = |one: &Recorded| one.result.score.get(&row.player_id).copied();
            let points = results.map(|results| results.iter().filter_map(own).sum());
            points == Some(row.points)
        });
        let is_sorted = rows.is_sorted_by(|a, b| a.points >= b.points);
        let is_newer = newest.insert(call.to, count).unwrap_or(0) <= count;
        remains
            .world
            .check("sum", is_sum && is_sorted && is_newer, count);
    }
}

/// A recorded result was decided by its referee, and follows from the number and from what both
/// players have chosen.
fn results_follow_from_choices(remains: &Remains) {
    for (one, task) in remains.played() {
        let Some(number) = one.result.details.drawn_number else {
            continue;
        };
        let mut winners = Vec::new();
        for (seat, player) in task.assignment.players.iter().enumerate() {
            let told = one
                .result
                .details
                .choices
                .get(player)
                .and_then(|told| *told);
            let told = told.map(|told| told.as_str());
            let mut answers = remains.answers();
            let is_true = answers.any(|(call, given)| match &given.answer {
                Ok(Some(Reply::ChooseParityResponse(response))) => {
                    call.is_question(&task.assignment.conversation_id, seat)
                        && response.parity_choice.as_str() == told
                }
                _ => false,
            });
            remains
                .world
                .check("choices", is_true, (&one.match_id, player, told));
            if told == Some(["even", "odd"][number as usize % 2]) {
                winners.push(player);
            }
        }
        let winner = winners.pop().filter(|_| winners.is_empty());
        let holds = one.result.winner.as_ref() == winner;
        remains
            .world
            .check("choices", holds, (&one.match_id, number, winner));
    }
}

/// Whoever knows the end remembers the recorded results, all of them and no others, unless the
/// manager has not answered its question.
fn players_remember_what_is_recorded(remains: &Remains) {
    let world = remains.world;
    for (player, id) in world.players.iter().zip(1 + world.referees.len()..) {
        let name = &world.machines[id].name;
        let mut calls = world.calls.iter().filter(|call| call.from == id);
        let is_unanswered = calls.any(|call| {
            matches!(*call.purpose, Purpose::Query(_)) && !matches!(call.outcome, Some(Ok(_)))
        });
        if is_unanswered || world.machines[id].ended_at.is_none() {
            continue;
        }
        for past in player.saved.iter() {
            let recorded = remains.result(&past.match_id);
            // Of a referee that is gone with its result a player asks only if its record is another one.
            let outcome = |result: &GameResult| {
                let has_won = result.winner_player_id.as_ref() == Some(name);
                (has_won, result.status == ResultStatus::Draw)
            };
            let is_like = recorded.as_ref().map(outcome) == Some(outcome(&past.result));
            let holds = recorded.as_ref() == Some(&past.result)
                || is_like && world.profile != Profile::Breach;
            remains.world.check("memory", holds, (name, &past.match_id));
        }
        let matches = remains.rounds.iter().flatten();
        let expected = matches.filter(|players| players.contains(name)).count();
        let holds = player.saved.len() == expected;
        remains.world.check("memory", holds, (name, expected));
    }
}

/// The last thing that a player is told about a match is the recorded result, once the referee that
/// tells it knows that one, unless it has ended with messages that were not settled.
fn players_are_told_the_recorded_result(remains: &Remains) {
    let mut known = BTreeSet::new();
    for call in &remains.world.calls {
        if let Purpose::Result(sent) = &*call.purpose
            && call.to == 0
            && call.outcome.as_ref().is_some_and(knows_result)
        {
            known.insert((call.from, call.life, &sent.assignment.match_id));
        }
    }
    let mut last = BTreeMap::new();
    for (call, over) in remains.told() {
        last.insert((&over.match_id, call.to), (call, &over.game_result));
    }
    for ((id, player), (call, result)) in last {
        let holds = remains.result(id).as_ref() == Some(result)
            || !known.contains(&(call.from, call.life, id))
            || !remains.world.referees[call.from - 1].is_settled;
        remains
            .world
            .check("last word", holds, (id, player, result));
    }
}

/// A player does not refuse a result under the newest token of a match, if that is the last one that
/// the manager has announced to it, unless it has accepted a message of a match since, or asked the
/// manager, or has joined the match in another conversation: invitations may overtake each other.
fn players_accept_their_results(remains: &Remains) {
    let (mut announced, mut joined) = (BTreeMap::new(), BTreeMap::new());
    for (call, given) in remains.answers() {
        let key = (call.to, given.life);
        let is_ok = given.answer.is_ok();
        match call.message() {
            Some(PlayerRequest::RoundAnnouncement(round)) if is_ok => {
                announced.insert(key, &round.match_token);
            }
            Some(PlayerRequest::GameInvitation(invitation)) if is_ok => {
                announced.remove(&key);
                joined.insert((key, &invitation.match_id), &call.envelope.conversation_id);
            }
            Some(PlayerRequest::GameOver(_)) if is_ok => drop(announced.remove(&key)),
            Some(PlayerRequest::GameOver(over)) => {
                let token = &call.envelope.auth_token;
                let mut assigned = remains.assigned.iter();
                let newest = assigned.rfind(|one| one.match_id == over.match_id);
                let is_newest = newest
                    .zip(token.as_ref())
                    .is_some_and(|(newest, token)| newest.tokens.contains(token));
                let is_joined = joined
                    .get(&(key, &over.match_id))
                    .is_none_or(|it| **it == call.envelope.conversation_id);
                let holds = !is_newest || !is_joined || announced.get(&key) != Some(&token);
                remains
                    .world
                    .check("accepted", holds, (&over.match_id, call.to));
            }
            // The answer of the manager may have another token.
            None => announced.retain(|(id, _), _| *id != call.from),
            _ => {}
        }
    }
}

/// A technical loss is judged by the last referee of the match, and is the loser's own: it has failed
/// in the match, or the manager could not tell it of the match in all attempts. Where nothing else
/// fails, only who was away loses, or who was judged by a referee that was away.
fn nobody_loses_without_a_failure(remains: &Remains) {
    let world = remains.world;
    for (one, task) in remains.played() {
        if result_status(&one.result) != ResultStatus::TechnicalLoss {
            continue;
        }
        let last = remains
            .assigned
            .iter()
            .rfind(|given| given.match_id == one.match_id);
        let is_last = last.is_some_and(|given| given.referee_id == one.referee_id);
        world.check("justice", is_last, (&one.match_id, "not its last referee"));
        for (seat, player) in task.assignment.players.iter().enumerate() {
            let id = world.id(player);
            let max_retries = world.program.config.system.retry_policy.max_retries;
            let is_own = remains.has_failed(&task.assignment.conversation_id, seat, max_retries)
                || remains.failed_calls(id).0 >= max_retries;
            let was_away = [id, world.id(&one.referee_id)].map(|id| world.machines[id].was_away);
            let is_just = is_own && (world.profile == Profile::Safety || was_away != [false; 2]);
            let holds = is_just || one.result.winner.as_ref() == Some(player);
            let reason = &one.result.details.reason;
            remains
                .world
                .check("justice", holds, (&one.match_id, player, reason));
        }
    }
}

/// Everybody has ended, except who has refused the end, since it was not registered yet, or could not be
/// told in all attempts: these go on for as long as they can take, unless the last one has found no
/// program.
fn everybody_knows_the_end(remains: &Remains) {
    let world = remains.world;
    let policy = world.program.config.system.retry_policy;
    let attempt = world.program.config.generic_limit();
    let limit = policy.max_total_time(attempt) + attempt;
    let over = world.over_at.get(&(remains.rounds.len() as u32));
    let (Some(over), Some(ended)) = (over, world.machines[0].ended_at) else {
        return;
    };
    for (id, machine) in world.machines.iter().enumerate() {
        let (_, failures, is_gone) = remains.failed_calls(id);
        let is_given_up = failures >= policy.max_retries && (is_gone || ended >= *over + limit);
        let mut calls = world.calls.iter();
        let end = calls.rfind(|call| call.to == id && call.kind() == "LEAGUE_COMPLETED");
        let has_refused =
            end.is_some_and(|end| matches!(end.outcome, Some(Err(CallError::Refused(..)))));
        let holds = machine.ended_at.is_some() || is_given_up || has_refused;
        remains
            .world
            .check("told", holds, (&machine.name, failures));
    }
}

/// The same request has the same answer: an acknowledged result is that in the journal, and is not
/// refused later; an agent keeps its token, and a player its choice.
fn the_same_request_has_the_same_answer(remains: &Remains) {
    let mut answers = BTreeMap::new();
    for (call, given) in remains.answers() {
        let key;
        let new = match (&call.body, &given.answer) {
            (Body::ToManager(ManagerRequest::MatchResultReport(report)), answer) => {
                let recorded = remains.result(&report.match_id);
                let is_same = recorded == Some(game_result(&report.result));
                remains
                    .world
                    .check("kept", answer.is_err() || is_same, &report.match_id);
                key = (call.from, 0, &*report.match_id);
                if !is_same || !knows_result(answer) {
                    continue;
                }
                format!("{:?}", answer.is_ok())
            }
            (_, Ok(Some(Reply::ChooseParityResponse(response)))) => {
                key = (call.to, given.life, &*call.envelope.conversation_id);
                format!("{:?}", response.parity_choice)
            }
            (_, Ok(Some(reply))) if matches!(*call.purpose, Purpose::Registration) => {
                key = (call.from, 0, "token");
                json!(reply)["auth_token"].to_string()
            }
            _ => continue,
        };
        let before = answers.entry(key).or_insert(new.clone());
        remains
            .world
            .check("same answer", *before == new, (key, new));
    }
}

/// A result that a player is told stands in an outbox or in the journal. A referee decides a match
/// once, unless it was announced again with other tokens, or its technical loss was refused.
fn results_are_on_a_disk_once(remains: &Remains) {
    let mut decided = BTreeMap::new();
    for (referee, task) in &remains.decided {
        let id = &task.assignment.match_id;
        let first = decided.insert((referee, id, &task.assignment.tokens), &task.result);
        let holds = first.and_then(Option::as_ref).is_none_or(|first| {
            first.status == ResultStatus::TechnicalLoss || Some(first) == task.result.as_ref()
        });
        remains.world.check("once", holds, (referee, id));
    }
    for (call, over) in remains.told() {
        let mut decided = remains.decided.iter();
        let holds = decided.any(|(_, task)| task.result.as_ref() == Some(&over.game_result))
            || remains.result(&over.match_id).as_ref() == Some(&over.game_result);
        remains
            .world
            .check("disk", holds, (&over.match_id, call.from, call.to));
    }
}

// The laws that are checked at once, by the agents and the world.

/// Returns true if the manager and all referees were always there, and no message was lost.
fn are_there(world: &World) -> bool {
    let mut first = world.machines[..=world.referees.len()].iter();
    world.profile != Profile::Safety && first.all(|machine| !machine.was_away)
}

/// Each referee has its whole time limit after the last assignment, which is enough where all are
/// there; and what must be announced again is announced. It is also noted when rounds are over.
pub fn the_manager_waits_rightly(world: &mut World, manager: &Manager) {
    let server = world.server.as_mut().unwrap();
    let [is_late, has_old_limit, is_forgotten] = manager.store.read(|league| {
        if league.started {
            let over_at = world.over_at.entry(league.rounds_completed);
            over_at.or_insert(world.now);
        }
        let assigned = league.matches.iter().map(|one| one.assignments.len()).sum();
        let is_new = server.assigned != assigned;
        server.assigned = assigned;
        let mut open = league.open_matches(league.open_round().unwrap_or(0));
        manager.contacts.with(|table| {
            let waits = league.paused
                || table.fault.is_some()
                || table.available_referees(league).is_empty();
            let mut contacts = table.contacts.values();
            [
                contacts.clone().any(|one| one.health.is_late()),
                is_new && contacts.any(|one| one.report_by.is_some()),
                !waits && open.any(|one| table.unannounced.contains(&one.id)),
            ]
        })
    });
    let holds = !is_late || !are_there(world);
    world.check("limit", holds, "no referee was away, and one is late");
    world.check("limit", !has_old_limit, "other matches, and the old limit");
    world.check("again", !is_forgotten, "a match is not announced again");
}

/// The end of a round comes before what follows it. Where the manager and all referees are there, a
/// player is told the end when the referees have answered it.
pub fn notifications_come_in_order(world: &mut World, to: Id, message: &PlayerRequest) {
    let (server, referees) = (world.server.as_mut().unwrap(), world.referees.len());
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
    let has_ended = |machine: &Machine| machine.ended_at.is_some();
    let is_early = is_end
        && to > referees
        && are_there(world)
        && !world.machines[1..=referees].iter().all(has_ended);
    world.check("order", is_told && !is_early, (message.name(), to));
}

/// No match begins before the lead time has passed since the end of the round before, unless
/// the manager was away; nor, as long as nothing has failed, before the player has received its
/// announcement.
pub fn matches_begin_in_time(world: &mut World, player: Id, new: &GameInvitation) {
    let before = world.over_at.get(&(new.round_id - 1));
    let is_due =
        world.machines[0].was_away || before.is_some_and(|over| *over + world.lead <= world.now);
    let has_failed = !world.happened.is_empty();
    let invitations = &Player::of(world, player).state.invitations;
    let is_known = has_failed || invitations.is_announced(&new.match_id);
    world.check("begin", is_known && is_due, (&new.match_id, player));
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

/// A message with another token than that of its sender is refused.
pub fn nobody_takes_the_message_of_a_stranger(world: &World, call: usize, answer: &Answer) {
    let call = &world.calls[call];
    world.check("stranger", answer.is_err(), (call.kind(), call.to));
}
