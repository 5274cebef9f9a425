//! A league on paper: registered, started and played in memory by the rules alone, without a clock,
//! a process or a socket. Whatever is decided is an event; `happen` applies it. The rules are its
//! own, not the shipped ones.
#![allow(dead_code, reason = "every test file uses its own part")]

use super::files::FILES;
use league::games::{self, even_odd, judge, parity, tic_tac_toe};
use league::games::{Scoring, TieBreak};
use league::json::decode;
use league::manager::league::{Event, League, Match, Member};
use league::manager::recipient::AgentStatus;
use league::manager::registration::{Application, Rejection};
use league::manager::rounds::Waiting;
use league::net::agent::Request;
use league::program::config::{Config, LeagueFile};
pub use league::protocol::AgentMeta;
use league::protocol::{
    AgentKind, Envelope, GameResult, MatchResult, MatchResultReport, PROTOCOL, Parity, ResultStatus,
};
use league::values::{Timestamp, derive_seed};
use serde_json::json;
use std::collections::BTreeSet;
use std::{net::IpAddr, net::Ipv4Addr, sync::Arc, time::Duration};

/// This machine, and another one.
pub const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));
/// The game of every league on paper.
pub const GAME: &str = "even_odd";

/// What results are worth in points: won, drawn, lost, and technically lost. No tie is broken.
pub fn scoring([win_points, draw_points, loss_points, technical_loss_points]: [i32; 4]) -> Scoring {
    Scoring {
        win_points,
        draw_points,
        loss_points,
        technical_loss_points,
        tiebreakers: Vec::new(),
    }
}

/// Three points for a win, one for a draw.
pub fn usual() -> Scoring {
    scoring([3, 1, 0, 0])
}

/// The configuration of the tests, for a league named `paper` in which there is room for everybody:
/// P01 to P04 are listed at the ports 8101 to 8104, REF01 and REF02 at 8001 and 8002.
pub fn rules() -> Config {
    fn file<T: serde::de::DeserializeOwned>(name: &str) -> T {
        let (_, text) = FILES.iter().find(|(its, _)| *its == name).unwrap();
        serde_json::from_str(text).unwrap()
    }
    let mut league: LeagueFile = file("leagues/league_2025_even_odd.json");
    league.league_id = "paper".into();
    league.participants.max_players = 1000;
    Config {
        league,
        system: file("system.json"),
        agents: file("agents/agents_config.json"),
        referee_defaults: file("defaults/referee.json"),
        player_defaults: file("defaults/player.json"),
    }
}

/// A moment of the day on which everything on paper happens.
pub fn at(time: &str) -> Timestamp {
    Timestamp::parse(&format!("2025-01-15T{time}Z")).unwrap()
}

/// `http://localhost:PORT/mcp`.
pub fn local(port: u32) -> String {
    format!("http://localhost:{port}/mcp")
}

/// A faultless agent.
pub fn meta(kind: AgentKind, endpoint: &str) -> AgentMeta {
    let is_referee = kind == AgentKind::Referee;
    AgentMeta {
        display_name: "Somebody".into(),
        version: "1.0.0".into(),
        game_types: vec![GAME.into()],
        contact_endpoint: endpoint.into(),
        protocol_version: None,
        max_concurrent_matches: is_referee.then_some(2),
        uses_match_tokens: Some(is_referee),
        registration_key: None,
        must_be_known: None,
    }
}

/// Who asks to be let in, as what, from where and when.
#[derive(Debug, Clone)]
pub struct Caller {
    pub kind: AgentKind,
    pub sender: String,
    pub token: Option<String>,
    pub peer: IpAddr,
    pub trusted: bool,
    pub referee_wanted: bool,
    /// Whether no member answers.
    pub unanswered: bool,
    pub secret: String,
    pub now: Timestamp,
}

/// A request from this machine, at ten.
pub fn caller(sender: &str) -> Caller {
    let is_referee = sender.starts_with("referee:");
    Caller {
        kind: [AgentKind::Player, AgentKind::Referee][usize::from(is_referee)],
        sender: sender.into(),
        token: None,
        peer: HERE,
        trusted: true,
        referee_wanted: false,
        unanswered: false,
        secret: "first".into(),
        now: at("10:00:00"),
    }
}

/// A request of `sender` at ten, from this machine.
pub fn request(sender: &str, conversation_id: &str) -> Request {
    Request {
        envelope: Envelope {
            protocol: PROTOCOL.into(),
            sender: sender.into(),
            timestamp: at("10:00:00"),
            conversation_id: conversation_id.into(),
            auth_token: None,
            league_id: None,
            round_id: None,
            match_id: None,
        },
        peer: HERE,
    }
}

/// What the league says to a registration; nothing happens yet.
pub fn register(
    league: &League,
    meta: &AgentMeta,
    from: &Caller,
) -> (Option<Event>, Result<Member, Rejection>) {
    let mut request = request(&from.sender, "conv-registration");
    request.envelope.auth_token.clone_from(&from.token);
    request.peer = from.peer;
    let mut unreachable = BTreeSet::new();
    if from.unanswered {
        unreachable.extend(league.members.keys().cloned());
    }
    let application = Application {
        kind: from.kind,
        meta,
        request: &request,
        trusted: from.trusted,
        referee_wanted: from.referee_wanted,
        max_per_address: 4,
        unreachable: &unreachable,
        secret: &from.secret,
        now: from.now,
    };
    league.decide_registration(&application)
}

/// Applies what was decided, if anything.
pub fn happen(league: &mut League, event: Option<Event>) {
    event.iter().for_each(|event| league.apply(event));
}

/// Registers an agent, which must be let in.
pub fn enter(league: &mut League, meta: &AgentMeta, from: &Caller) -> Member {
    let (event, admission) = register(league, meta, from);
    happen(league, event);
    admission.unwrap()
}

/// A league with so many players, and referees of these capacities, not yet started.
pub fn lobby(players: u32, capacities: &[u32]) -> League {
    let names: Vec<String> = (1..=players).map(|n| format!("Player {n}")).collect();
    lobby_with(rules(), &names, capacities)
}

/// The same, by these rules and with these names.
pub fn lobby_with(rules: Config, names: &[String], capacities: &[u32]) -> League {
    let mut league = League::new(rules);
    let agent = |league: &League, kind, endpoint: String| AgentMeta {
        game_types: vec![league.config.league.game_type.clone()],
        ..meta(kind, &endpoint)
    };
    for (n, capacity) in (1..).zip(capacities) {
        let mut referee = agent(&league, AgentKind::Referee, local(8000 + n));
        referee.max_concurrent_matches = Some(*capacity);
        enter(&mut league, &referee, &caller("referee:somebody"));
    }
    for (n, name) in (1..).zip(names) {
        let mut player = agent(&league, AgentKind::Player, local(8100 + n));
        player.display_name = name.clone();
        enter(&mut league, &player, &caller("player:somebody"));
    }
    league
}

/// The same, started with a seed.
pub fn started(players: u32, capacities: &[u32]) -> League {
    start(lobby(players, capacities))
}

/// Starts a league with a seed.
pub fn start(mut league: League) -> League {
    let event = league.start_event(Some(7), league.pairings());
    happen(&mut league, event);
    league
}

/// The ids of all referees.
pub fn referees(league: &League) -> Vec<String> {
    let referees = league.members(AgentKind::Referee).into_iter();
    referees.map(|referee| referee.id.clone()).collect()
}

/// The open matches of a round for the referees that are there; each token is made once only.
pub fn assignment(league: &League, round: u32, present: &[String]) -> Option<Event> {
    let mut made = league.version * 100;
    let token = |player: &str| {
        made += 1;
        format!("{player}-{made}")
    };
    league.assign_open_matches(round, present, token)
}

/// Gives them out.
pub fn assign_open_matches(league: &mut League, round: u32, present: &[&str]) {
    let present: Vec<String> = present.iter().map(|id| id.to_string()).collect();
    let event = assignment(league, round, &present);
    happen(league, event);
}

/// How a match ends in the league of that seed: both choices and the number follow from it.
pub fn seeded(seed: u64, game: &Match) -> GameResult {
    let choice = |player: &String| parity(derive_seed(seed, &[player, &game.id]) as u32);
    let choices = game.players.each_ref().map(choice);
    let number = even_odd::GAME.draw(Some(seed), &game.id);
    judge(&game.players, choices, number.unwrap())
}

/// A report of how a match ended.
pub fn report(league: &League, game: &Match, result: MatchResult) -> MatchResultReport {
    MatchResultReport {
        league_id: league.config.league.league_id.clone(),
        round_id: game.round,
        match_id: game.id.clone(),
        game_type: league.config.league.game_type.clone(),
        result,
    }
}

/// What the league says to the report of a match's own referee, which tells this outcome; nothing
/// happens yet.
pub fn result_event(league: &League, match_id: &str, outcome: &GameResult) -> Option<Event> {
    let game = league.find(match_id).unwrap();
    let report = report(
        league,
        game,
        games::match_result(outcome, &league.config.league.scoring),
    );
    let referee = &league.members[game.referee().unwrap()];
    let event = league.check_report(referee, &report, at("11:00:00"));
    event.unwrap()
}

/// Has the referee of a match report its outcome, which must be recorded.
pub fn play(league: &mut League, match_id: &str, outcome: impl Fn(&Match) -> GameResult) {
    let event = result_event(league, match_id, &outcome(league.find(match_id).unwrap()));
    assert!(event.is_some(), "{match_id} is recorded already");
    happen(league, event);
}

/// Plays a round to its end, with all referees.
pub fn play_round(league: &mut League, round: u32, outcome: impl Fn(&Match) -> GameResult) {
    let event = assignment(league, round, &referees(league));
    happen(league, event);
    let open = league.open_matches(round).map(|game| game.id.clone());
    let open: Vec<String> = open.collect();
    open.iter().for_each(|id| play(league, id, &outcome));
}

/// How a match ends: player A `wins`, nobody does (`drawn`), one or both fail (`A-fails`,
/// `B-fails`, `both-fail`); after these moves of tic-tac-toe player A has won, as somebody says
/// (`moves:14253`); else as it happens.
pub fn ends(how: &str) -> impl Fn(&Match) -> GameResult {
    let late = |fails: bool| fails.then(|| "came late".to_string());
    let both = how == "both-fail";
    let failures = [
        late(both || how == "A-fails"),
        late(both || how == "B-fails"),
    ];
    let choices = match how {
        "wins" => Some([Parity::Even, Parity::Odd]),
        "drawn" => Some([Parity::Odd, Parity::Odd]),
        _ => None,
    };
    let claimed = how.strip_prefix("moves:").map(|moves| {
        let texts: Vec<&str> = moves.split_terminator("").skip(1).collect();
        games::alternating(&texts)
    });
    move |game| {
        let players = game.players.clone();
        if let Some(moves) = claimed.clone() {
            return GameResult {
                status: ResultStatus::Win,
                winner_player_id: Some(players[0].clone()),
                reason: Some("so it was".into()),
                ..tic_tac_toe::GAME.result_without_winner(&players, &moves)
            };
        }
        match choices {
            Some(choices) => judge(&players, choices, 8),
            None if failures == [None, None] => seeded(7, game),
            None => even_odd::GAME.forfeit(&players, &[], &failures),
        }
    }
}

/// A league that went as a script says, its rounds parted by bars: `Ada>Bob` was won by the first,
/// and their choices differed; `Ada=Bob` drawn, with equal choices; `Ada!Bob` lost technically by
/// the second, `Ada#Bob` by both; `Ada?Bob` is not played yet, and `Ada` plays none.
pub fn told(script: &str) -> League {
    league_with(rules(), script)
}

/// The same, by these rules.
pub fn league_with(rules: Config, script: &str) -> League {
    let is_sign = |item: char| ">=!#?".contains(item);
    let names = script.split(|item| is_sign(item) || item == '|' || item == ' ');
    let names: BTreeSet<&str> = names.filter(|item| !item.is_empty()).collect();
    let names: Vec<String> = names.into_iter().map(String::from).collect();
    let id = |name: &str| {
        let place = names.iter().position(|item| item == name).unwrap();
        AgentKind::Player.format_id(place as u32 + 1)
    };
    let rounds = script.split('|').map(|round| {
        let words = round.split_whitespace();
        words.filter_map(|word| word.split_once(is_sign)).collect()
    });
    let rounds: Vec<Vec<(&str, &str)>> = rounds.collect();
    let pairs = |round: &Vec<(&str, &str)>| round.iter().map(|(a, b)| [id(a), id(b)]).collect();
    let mut league = lobby_with(rules, &names, &[10]);
    let event = league.start_event(Some(7), rounds.iter().map(pairs).collect());
    happen(&mut league, event);
    let signs = script.chars().filter(|item| is_sign(*item));
    let ids: Vec<String> = league.matches.iter().map(|game| game.id.clone()).collect();
    (1..=rounds.len()).for_each(|round| assign_open_matches(&mut league, round as u32, &["REF01"]));
    for (match_id, sign) in ids.iter().zip(signs) {
        match sign {
            '>' => play(&mut league, match_id, ends("wins")),
            '=' => play(&mut league, match_id, ends("drawn")),
            '!' => play(&mut league, match_id, ends("B-fails")),
            '#' => play(&mut league, match_id, ends("both-fail")),
            _ => {}
        }
    }
    league
}
