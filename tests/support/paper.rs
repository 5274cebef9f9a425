//! A league on paper: registered, started and played in memory by the rules alone, without a clock, a process or
//! a socket. Whatever is decided is an event; `happen` applies it.

use league::{
    clock::Timestamp,
    config::Config,
    game::{Outcome, draw, judge, mix, parity},
    league::{Event, League, Match, Member, Rules},
    protocol::{GAME, Kind, MatchResult, MatchResultReport},
    registration::{Applicant, Profile},
};
use std::{
    net::{IpAddr, Ipv4Addr},
    path::Path,
};

/// The rules of the shipped league: P01 to P04 and REF01, REF02 are listed.
pub fn rules() -> Rules {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    Config::load(&folder, None).unwrap().rules
}

/// A moment of the day on which everything on paper happens.
pub fn at(time: &str) -> Timestamp {
    Timestamp::parse(&format!("2025-01-15T{time}Z")).unwrap()
}

/// `http://localhost:PORT/mcp`; the shipped list has 8001, 8002 and 8101 to 8104.
pub fn local(port: usize) -> String {
    format!("http://localhost:{port}/mcp")
}

/// Another machine.
pub const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));

/// A faultless agent.
pub fn profile(kind: Kind, endpoint: &str) -> Profile {
    Profile {
        kind,
        display_name: "Somebody".into(),
        version: "1.0.0".into(),
        game_types: vec![GAME.into()],
        contact_endpoint: endpoint.into(),
        protocol_version: None,
        max_concurrent_matches: (kind == Kind::Referee).then_some(2),
        uses_match_tokens: kind == Kind::Referee,
    }
}

/// A request from this machine, at ten.
pub fn applicant(sender: &str) -> Applicant<'_> {
    Applicant {
        sender,
        conversation_id: "conv-first",
        token: None,
        peer: Ipv4Addr::LOCALHOST.into(),
        trusted: true,
        referee_wanted: false,
        room: 1000,
        secret: "first",
        now: at("10:00:00"),
    }
}

/// Applies what was decided, if anything.
pub fn happen(league: &mut League, event: Option<Event>) {
    event.iter().for_each(|event| league.apply(event));
}

/// Registers an agent, which must be let in.
pub fn enter(league: &mut League, profile: &Profile, from: &Applicant) -> Member {
    let (event, member) = league.register(profile, from).unwrap();
    happen(league, event);
    member
}

/// A league with so many players, and referees of these capacities, not yet started.
pub fn gathered(players: usize, capacities: &[u32]) -> League {
    let mut league = League::new(rules());
    for (n, capacity) in (1..).zip(capacities) {
        let referee = Profile { max_concurrent_matches: Some(*capacity), ..profile(Kind::Referee, &local(8000 + n)) };
        enter(&mut league, &referee, &applicant("referee:somebody"));
    }
    for n in 1..=players {
        let player = Profile { display_name: format!("Player {n}"), ..profile(Kind::Player, &local(8100 + n)) };
        enter(&mut league, &player, &applicant("player:somebody"));
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
    let choices = game.players.each_ref().map(|player| parity(mix(seed, &[player, &game.id]) as u32));
    judge(game.players.clone(), choices, draw(Some(seed), &game.id))
}

/// A report of how a match ended.
pub fn report(league: &League, game: &Match, result: MatchResult) -> MatchResultReport {
    MatchResultReport {
        league_id: league.rules.league_id.clone(),
        round_id: game.round,
        match_id: game.id.clone(),
        game_type: GAME.into(),
        result,
    }
}

/// Has the referee of a match report its outcome, which must be recorded.
pub fn play(league: &mut League, match_id: &str, outcome: impl Fn(&Match) -> Outcome) {
    let game = league.find(match_id).unwrap();
    let report = report(league, game, outcome(game).for_manager(&league.rules.scoring));
    let event = league.record(&league.members[game.referee().unwrap()], &report, at("11:00:00")).unwrap();
    happen(league, event);
}

/// Plays a round to its end, with all referees.
pub fn play_round(league: &mut League, round: u32, outcome: impl Fn(&Match) -> Outcome) {
    let referees: Vec<String> = league.members(Kind::Referee).iter().map(|it| it.id.clone()).collect();
    assign(league, round, &referees.iter().map(String::as_str).collect::<Vec<_>>());
    let open: Vec<String> =
        league.round(round).filter(|game| game.recorded.is_none()).map(|it| it.id.clone()).collect();
    open.iter().for_each(|id| play(league, id, &outcome));
}
