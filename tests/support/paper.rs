//! A league on paper: registered, started and played in memory by the rules alone, without a clock, a process or
//! a socket. Whatever is decided is an event; `happen` applies it. The rules are its own, not the shipped ones.
#![allow(dead_code, reason = "every test file uses its own part")]

use league::games::{Outcome, Scoring, TieBreak, even_odd, judge, mix, parity};
use league::manager::league::{Event, League, Listed, Match, Member, Rules};
use league::manager::registration::{Admission, Applicant};
use league::net::agent::Request;
pub use league::protocol::AgentMeta;
use league::protocol::{Envelope, GAME, Kind, MatchResult, MatchResultReport, PROTOCOL};
use league::wire::Timestamp;
use std::{net::IpAddr, net::Ipv4Addr, time::Duration};

/// Another machine.
pub const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));

/// P01 to P04 are listed at the ports 8101 to 8104, REF01 and REF02 at 8001 and 8002.
pub fn rules() -> Rules {
    let listed = |kind: Kind, n: usize, port: usize| {
        let (id, endpoint) = (kind.numbered(n as u32), local(port + n));
        Listed {
            kind,
            id,
            endpoint,
            active: true,
        }
    };
    let referees = (1..=2).map(|n| listed(Kind::Referee, n, 8000));
    let tiebreakers = vec![TieBreak::Wins, TieBreak::HeadToHead, TieBreak::Draws];
    Rules {
        league_id: "paper".into(),
        scoring: Scoring {
            win_points: 3,
            draw_points: 1,
            loss_points: 0,
            technical_loss_points: 0,
            tiebreakers,
        },
        cycles: 1,
        min_players: 2,
        max_players: 1000,
        game_types: vec![GAME.into()],
        listed: referees
            .chain((1..=4).map(|n| listed(Kind::Player, n, 8100)))
            .collect(),
        tokens: true,
        token_lifetime: Duration::from_secs(24 * 3600),
    }
}

/// A moment of the day on which everything on paper happens.
pub fn at(time: &str) -> Timestamp {
    Timestamp::parse(&format!("2025-01-15T{time}Z")).unwrap()
}

/// `http://localhost:PORT/mcp`.
pub fn local(port: usize) -> String {
    format!("http://localhost:{port}/mcp")
}

/// A faultless agent.
pub fn meta(kind: Kind, endpoint: &str) -> AgentMeta {
    AgentMeta {
        display_name: "Somebody".into(),
        version: "1.0.0".into(),
        game_types: vec![GAME.into()],
        contact_endpoint: endpoint.into(),
        protocol_version: None,
        max_concurrent_matches: (kind == Kind::Referee).then_some(2),
        uses_match_tokens: Some(kind == Kind::Referee),
        registration_key: None,
    }
}

/// Who asks to be let in, from where and when.
#[derive(Debug, Clone)]
pub struct Caller {
    pub sender: String,
    pub conversation: &'static str,
    pub has_conversation: bool,
    pub token: Option<String>,
    pub peer: IpAddr,
    pub trusted: bool,
    pub referee_wanted: bool,
    pub secret: String,
    pub now: Timestamp,
    pub running_since: Timestamp,
}

/// A request from this machine, at ten.
pub fn caller(sender: &str) -> Caller {
    Caller {
        sender: sender.into(),
        conversation: "conv-first",
        has_conversation: true,
        token: None,
        peer: Ipv4Addr::LOCALHOST.into(),
        trusted: true,
        referee_wanted: false,
        secret: "first".into(),
        now: at("10:00:00"),
        running_since: at("09:00:00"),
    }
}

/// What the league says to a registration; nothing happens yet.
pub fn register(league: &League, meta: &AgentMeta, from: &Caller) -> Admission {
    let envelope = Envelope {
        protocol: PROTOCOL.into(),
        message_type: "REGISTER".into(),
        sender: from.sender.clone(),
        timestamp: from.now,
        conversation_id: from.conversation.into(),
        auth_token: from.token.clone(),
        league_id: None,
        round_id: None,
        match_id: None,
    };
    let &Caller {
        peer,
        has_conversation,
        trusted,
        referee_wanted,
        ref secret,
        now,
        running_since,
        ..
    } = from;
    let request = &Request {
        envelope,
        peer,
        has_conversation,
    };
    league.register(
        meta,
        &Applicant {
            kind: if meta.max_concurrent_matches.is_some() {
                Kind::Referee
            } else {
                Kind::Player
            },
            request,
            trusted,
            referee_wanted,
            secret,
            now,
            running_since,
        },
    )
}

/// Applies what was decided, if anything.
pub fn happen(league: &mut League, event: Option<Event>) {
    event.iter().for_each(|event| league.apply(event));
}

/// Registers an agent, which must be let in.
pub fn enter(league: &mut League, meta: &AgentMeta, from: &Caller) -> Member {
    match register(league, meta, from) {
        Admission::Accepted { member, event, .. } => {
            happen(league, event);
            *member
        }
        rejected => panic!("{rejected:?}"),
    }
}

/// A league with so many players, and referees of these capacities, not yet started.
pub fn gathered(players: usize, capacities: &[u32]) -> League {
    let mut league = League::new(rules());
    for (n, capacity) in (1..).zip(capacities) {
        let referee = AgentMeta {
            max_concurrent_matches: Some(*capacity),
            ..meta(Kind::Referee, &local(8000 + n))
        };
        enter(&mut league, &referee, &caller("referee:somebody"));
    }
    for n in 1..=players {
        let player = AgentMeta {
            display_name: format!("Player {n}"),
            ..meta(Kind::Player, &local(8100 + n))
        };
        enter(&mut league, &player, &caller("player:somebody"));
    }
    league
}

/// The same, started with a seed.
pub fn started(players: usize, capacities: &[u32]) -> League {
    let mut league = gathered(players, capacities);
    let event = league.start(Some(7)).unwrap();
    happen(&mut league, event);
    league
}

/// The open matches of a round for the referees that are there; each token is made once only.
pub fn assignment(league: &League, round: u32, present: &[&str]) -> Option<Event> {
    let present: Vec<String> = present.iter().map(|id| id.to_string()).collect();
    let mut made = league.changes * 100;
    let token = |player: &str| {
        made += 1;
        format!("{player}-{made}")
    };
    league.assign(round, &present, token)
}

/// Gives them out.
pub fn assign(league: &mut League, round: u32, present: &[&str]) {
    let event = assignment(league, round, present);
    happen(league, event);
}

/// How a match ends in the league of that seed: both choices and the number follow from it.
pub fn seeded(seed: u64, game: &Match) -> Outcome {
    let choices = game
        .players
        .each_ref()
        .map(|player| parity(mix(seed, &[player, &game.id]) as u32));
    let number = even_odd::GAME.draw(Some(seed), &game.id);
    judge(game.players.clone(), choices, number.unwrap())
}

/// A report of how a match ended.
pub fn report(league: &League, game: &Match, result: MatchResult) -> MatchResultReport {
    let (league_id, round_id, match_id) =
        (league.rules.league_id.clone(), game.round, game.id.clone());
    MatchResultReport {
        league_id,
        round_id,
        match_id,
        game_type: GAME.into(),
        result,
    }
}

/// Has the referee of a match report its outcome, which must be recorded.
pub fn play(league: &mut League, match_id: &str, outcome: impl Fn(&Match) -> Outcome) {
    let game = league.find(match_id).unwrap();
    let report = report(
        league,
        game,
        outcome(game).for_manager(&league.rules.scoring),
    );
    let event = league
        .judge(
            &league.members[game.referee().unwrap()],
            &report,
            at("11:00:00"),
        )
        .unwrap();
    happen(league, event);
}

/// Plays a round to its end, with all referees.
pub fn play_round(league: &mut League, round: u32, outcome: impl Fn(&Match) -> Outcome) {
    let referees: Vec<String> = league
        .members(Kind::Referee)
        .iter()
        .map(|it| it.id.clone())
        .collect();
    assign(
        league,
        round,
        &referees.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let open: Vec<String> = league
        .open_matches(round)
        .map(|game| game.id.clone())
        .collect();
    open.iter().for_each(|id| play(league, id, &outcome));
}
