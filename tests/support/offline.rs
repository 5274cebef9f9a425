//! An offline league: registered, started and played in memory by the rules alone, without a clock,
//! a process or a socket. Each decision is an event, and `happen` applies it. The configuration is
//! the one of the tests.
#![allow(dead_code, reason = "every test file uses its own part")]

use super::files::FILES;
use super::json_of;
use league::games::{self, Scoring, alternating, even_odd, parity, tic_tac_toe};
use league::manager::contact::{Health, Table};
use league::manager::league::{Event, League, Match, Member};
use league::manager::registration::{Application, Rejection};
use league::net::agent::Request;
use league::net::call_error::CallError;
use league::program::config::{Config, LeagueFile};
use league::protocol::{
    AgentKind, AgentMeta, EVEN_ODD, Envelope, GameResult, MatchResultReport, PROTOCOL, Parity,
    ResultStatus,
};
use league::values::{Moment, Timestamp, derive_seed};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// The address of this machine, and one of another machine.
pub const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));

/// Returns the points for a match won, drawn, lost and technically lost. There are no tie-breaks.
pub fn scoring([win_points, draw_points, loss_points, technical_loss_points]: [i32; 4]) -> Scoring {
    Scoring {
        win_points,
        draw_points,
        loss_points,
        technical_loss_points,
        tiebreakers: Vec::new(),
    }
}

/// Returns three points for a win and one for a draw.
pub fn usual() -> Scoring {
    scoring([3, 1, 0, 0])
}

/// Returns the configuration of the tests, for a league named `paper` with up to a thousand players:
/// P01 to P04 are listed at the ports 8101 to 8104, REF01 and REF02 at 8001 and 8002.
pub fn rules() -> Config {
    fn file<T: serde::de::DeserializeOwned>(name: &str) -> T {
        json_of(FILES.iter().find(|file| file.0 == name).unwrap().1)
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

/// Returns a time of the day on which all events of offline leagues happen.
pub fn at(time: &str) -> Timestamp {
    Timestamp::parse(&format!("2025-01-15T{time}Z")).unwrap()
}

/// Returns `http://localhost:PORT/mcp`.
pub fn local(port: u32) -> String {
    format!("http://localhost:{port}/mcp")
}

/// Returns the valid meta of an agent.
pub fn meta(kind: AgentKind, endpoint: &str) -> AgentMeta {
    let is_referee = kind == AgentKind::Referee;
    AgentMeta {
        display_name: "Somebody".into(),
        version: "1.0.0".into(),
        game_types: vec![EVEN_ODD.into()],
        contact_endpoint: endpoint.into(),
        protocol_version: None,
        max_concurrent_matches: is_referee.then_some(2),
        uses_match_tokens: Some(is_referee),
        registration_key: None,
        must_be_known: None,
    }
}

/// The sender of a registration.
#[derive(Debug, Clone)]
pub struct Caller {
    pub kind: AgentKind,
    pub sender: String,
    pub token: Option<String>,
    pub peer: IpAddr,
    pub trusted: bool,
    pub referee_wanted: bool,
    /// No member of the league answers.
    pub unanswered: bool,
    pub secret: String,
    pub now: Timestamp,
}

/// Returns a sender on this machine, at ten o'clock.
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

/// Returns a request from this machine, at ten o'clock.
pub fn request(sender: &str, token: Option<&str>) -> Request {
    Request {
        envelope: Envelope {
            protocol: PROTOCOL.into(),
            sender: sender.into(),
            timestamp: at("10:00:00"),
            conversation_id: "conv-offline".into(),
            auth_token: token.map(String::from),
            league_id: None,
            round_id: None,
            match_id: None,
        },
        peer: HERE,
    }
}

/// Returns the decision of the league about a registration. Nothing is applied.
pub fn register(
    league: &League,
    meta: &AgentMeta,
    from: &Caller,
) -> (Option<Event>, Result<Member, Rejection>) {
    let mut request = request(&from.sender, from.token.as_deref());
    request.peer = from.peer;
    let mut table = Table::new(league, Moment::now());
    for contact in table.contacts.values_mut() {
        let is_out = contact.kind == AgentKind::Referee && from.referee_wanted;
        contact.health = match (from.unanswered, is_out) {
            (true, true) => Health::Failing(CallError::Broken("it hung up".into())),
            (true, false) => Health::Failing(CallError::HttpStatus(500, String::new())),
            (false, true) => Health::Refusing("crashed".into()),
            (false, false) => Health::Answering,
        };
    }
    league.decide_registration(&Application {
        kind: from.kind,
        meta,
        request: &request,
        trusted: from.trusted,
        is_relayed: false,
        max_per_address: 4,
        table: &table,
        secret: &from.secret,
        now: from.now,
    })
}

/// Applies an event, if there is one.
pub fn happen(league: &mut League, event: Option<Event>) {
    event.iter().for_each(|event| league.apply(event));
}

/// Registers an agent, which must be accepted.
pub fn enter(league: &mut League, meta: &AgentMeta, from: &Caller) -> Member {
    let (event, admission) = register(league, meta, from);
    happen(league, event);
    admission.unwrap()
}

/// Returns a lobby with so many players, and with referees of these capacities.
pub fn lobby(players: u32, capacities: &[u32]) -> League {
    let names: Vec<String> = (1..=players).map(|n| format!("Player {n}")).collect();
    lobby_with(rules(), &names, capacities)
}

/// Returns a lobby with these rules, with players of these names, and with referees of these
/// capacities.
pub fn lobby_with(rules: Config, names: &[String], capacities: &[u32]) -> League {
    let game_types = vec![rules.league.game_type.clone()];
    let mut league = League::new(rules);
    for (n, capacity) in (1..).zip(capacities) {
        let mut referee = meta(AgentKind::Referee, &local(8000 + n));
        referee.game_types.clone_from(&game_types);
        referee.max_concurrent_matches = Some(*capacity);
        enter(&mut league, &referee, &caller("referee:somebody"));
    }
    for (n, name) in (1..).zip(names) {
        let mut player = meta(AgentKind::Player, &local(8100 + n));
        player.game_types.clone_from(&game_types);
        player.display_name.clone_from(name);
        enter(&mut league, &player, &caller("player:somebody"));
    }
    league
}

/// Returns a started league with so many players, and with referees of these capacities.
pub fn started(players: u32, capacities: &[u32]) -> League {
    start(lobby(players, capacities))
}

/// Starts a league, with the seed 7.
pub fn start(mut league: League) -> League {
    let event = league.start_event(Some(7), league.pairings());
    happen(&mut league, event);
    league
}

/// Returns the ids of all referees.
pub fn referees(league: &League) -> Vec<String> {
    let referees = league.members(AgentKind::Referee).into_iter();
    referees.map(|referee| referee.id.clone()).collect()
}

/// Returns the event that assigns the open matches of a round to the available referees, with new
/// tokens.
pub fn assignment(league: &League, round: u32, available: &[String]) -> Option<Event> {
    let mut made = league.version * 100;
    let token = |player: &str| {
        made += 1;
        format!("{player}-{made}")
    };
    league.assign_open_matches(round, available, &BTreeSet::new(), token)
}

/// Returns the result of a match of Even/Odd in which both players have chosen.
pub fn judge(players: &[String; 2], choices: [Parity; 2], number: u32) -> GameResult {
    let moves = alternating(&choices.map(Parity::as_str));
    even_odd::GAME.judge(players, &moves, Some(number))
}

/// Returns the result of a match with this seed: both choices and the number follow from the seed.
pub fn seeded(seed: u64, game: &Match) -> GameResult {
    let choice = |player: &String| parity(derive_seed(seed, &[player, &game.id]) as u32);
    let choices = game.players.each_ref().map(choice);
    let number = even_odd::GAME.draw(Some(seed), &game.id);
    judge(&game.players, choices, number.unwrap())
}

/// Returns a report of a result.
pub fn report(league: &League, game: &Match, outcome: &GameResult) -> MatchResultReport {
    let config = &league.config.league;
    MatchResultReport {
        league_id: config.league_id.clone(),
        round_id: game.round,
        match_id: game.id.clone(),
        game_type: config.game_type.clone(),
        result: games::match_result(outcome, &config.scoring),
    }
}

/// Returns the event that the referee's report of this result causes. Nothing is applied.
pub fn result_event(league: &League, match_id: &str, outcome: &GameResult) -> Option<Event> {
    let game = league.find(match_id).unwrap();
    let report = report(league, game, outcome);
    let referee = &league.members[game.referee().unwrap()];
    let event = league.check_report(referee, &report, at("11:00:00"));
    event.unwrap()
}

/// Records the result of a match, which has none yet.
pub fn play(league: &mut League, match_id: &str, outcome: impl Fn(&Match) -> GameResult) {
    let event = result_event(league, match_id, &outcome(league.find(match_id).unwrap()));
    assert!(event.is_some(), "{match_id} is recorded already");
    happen(league, event);
}

/// Plays all open matches of a round, with all referees.
pub fn play_round(league: &mut League, round: u32, outcome: impl Fn(&Match) -> GameResult) {
    let event = assignment(league, round, &referees(league));
    happen(league, event);
    let open = league.open_matches(round).map(|game| game.id.clone());
    let open: Vec<String> = open.collect();
    open.iter().for_each(|id| play(league, id, &outcome));
}

/// Returns the result that a word names: player A wins (`wins`), a draw (`drawn`), one or both fail
/// (`A-fails`, `B-fails`, `both-fail`), a claim that player A has won with these moves of
/// tic-tac-toe (`moves:14253`); any other word is the result with the seed 7.
pub fn ends(how: &str) -> impl Fn(&Match) -> GameResult {
    move |game| {
        let players = &game.players;
        let fails = |fails: [bool; 2]| {
            let failures = fails.map(|fails| fails.then(|| "came late".to_string()));
            even_odd::GAME.forfeit(players, &[], &failures)
        };
        match how {
            "wins" => judge(players, [Parity::Even, Parity::Odd], 8),
            "drawn" => judge(players, [Parity::Odd, Parity::Odd], 8),
            "A-fails" => fails([true, false]),
            "B-fails" => fails([false, true]),
            "both-fail" => fails([true, true]),
            _ => match how.strip_prefix("moves:") {
                None => seeded(7, game),
                Some(moves) => {
                    let moves: Vec<&str> = moves.split_terminator("").skip(1).collect();
                    let moves = alternating(&moves);
                    GameResult {
                        status: ResultStatus::Win,
                        winner_player_id: Some(players[0].clone()),
                        reason: Some("so it was".into()),
                        ..tic_tac_toe::GAME.result_without_winner(players, &moves)
                    }
                }
            },
        }
    }
}

/// Returns the league of a script, whose rounds stand between bars: `Ada>Bob` was won by the first
/// player, `Ada=Bob` drawn, `Ada!Bob` lost technically by the second and `Ada#Bob` by both;
/// `Ada?Bob` is not played yet, and `Ada` plays no match.
pub fn told(script: &str) -> League {
    league_with(rules(), script)
}

/// Returns the league of a script with these rules.
pub fn league_with(rules: Config, script: &str) -> League {
    const SIGNS: [char; 5] = ['>', '=', '!', '#', '?'];
    let words = script.split([' ', '|']).filter(|word| !word.is_empty());
    let names: BTreeSet<&str> = words.flat_map(|word| word.split(SIGNS)).collect();
    let names: Vec<String> = names.into_iter().map(String::from).collect();
    let id = |name: &str| {
        let place = names.iter().position(|own| own == name).unwrap();
        AgentKind::Player.format_id(place as u32 + 1)
    };
    let rounds = script.split('|').map(|round| {
        let pairs = round.split(' ').filter_map(|word| word.split_once(SIGNS));
        pairs.map(|(a, b)| [id(a), id(b)]).collect()
    });
    let mut league = lobby_with(rules, &names, &[10]);
    let event = league.start_event(Some(7), rounds.collect());
    happen(&mut league, event);
    for round in 1..=league.rounds() {
        let event = assignment(&league, round, &referees(&league));
        happen(&mut league, event);
    }
    let ids: Vec<String> = league.matches.iter().map(|game| game.id.clone()).collect();
    for (match_id, sign) in ids.iter().zip(script.matches(SIGNS)) {
        let how = match sign {
            ">" => "wins",
            "=" => "drawn",
            "!" => "B-fails",
            "#" => "both-fail",
            _ => continue,
        };
        play(&mut league, match_id, ends(how));
    }
    league
}
