//! An offline league: registered, started and played in memory by the rules alone, without a clock,
//! a process or a socket. Each decision is an event, and `happen` applies it. The configuration is
//! the one of the tests. An `OfflineLeague` is run by golden scripts.
#![allow(dead_code, reason = "every test file uses its own part")]

use super::files::FILES;
use super::golden::{self, Command};
use super::json_of;
use league::games::{self, Move, Scoring, alternating, even_odd, parity, tic_tac_toe};
use league::json::remove_absent;
use league::manager::contact::{Health, Table};
use league::manager::league::{Event, League, Match, Member};
use league::manager::registration::{Application, Rejection, registration_reply};
use league::net::agent::Request;
use league::net::call_error::CallError;
use league::program::config::{Config, LeagueFile};
use league::protocol::{
    AgentKind, AgentMeta, EVEN_ODD, Envelope, GameResult, MatchResultReport, Message, PROTOCOL,
    Parity, ProtocolError, ResultStatus,
};
use league::values::{Moment, Timestamp, derive_seed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

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
#[derive(Debug, Clone, Serialize, Deserialize)]
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

/// Returns moves that are written as one digit or letter each: `15` or `eo`; `-` is no move.
pub fn moves_of(text: &str) -> Vec<Move> {
    let word = |letter| match letter {
        "e" => "even",
        "o" => "odd",
        other => other,
    };
    let texts: Vec<&str> = text.split_terminator("").skip(1).map(word).collect();
    let mut moves = alternating(&texts);
    moves.retain(|played| played.text != "-");
    moves
}

/// Returns status, winner, points and reason of a match of P01 and P02 in one line.
pub fn describe(outcome: &GameResult, scoring: &Scoring) -> String {
    let winner = outcome.winner_player_id.as_deref().unwrap_or("none");
    let [a, b] = ["P01", "P02"].map(|id| games::points(outcome, id, scoring));
    let (status, reason) = (outcome.status, outcome.reason.as_deref().unwrap());
    format!("{status}, winner {winner}, score {a}-{b}: {reason}")
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
                Some(moves) => GameResult {
                    status: ResultStatus::Win,
                    winner_player_id: Some(players[0].clone()),
                    reason: Some("so it was".into()),
                    ..tic_tac_toe::GAME.result_without_winner(players, &moves_of(moves))
                },
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

/// Returns the table of a league, a line for each player.
pub fn table(league: &League) -> String {
    let mut output = String::new();
    for row in league.table() {
        assert_eq!(row.played, row.wins + row.draws + row.losses);
        output += &format!("{}. {}: {}", row.rank, row.player_id, row.points);
        for (count, word) in [
            (row.wins, "won"),
            (row.draws, "drawn"),
            (row.losses, "lost"),
        ] {
            if count > 0 {
                output += &format!(", {count} {word}");
            }
        }
        output += "\n";
    }
    output
}

/// A league that scripts run: its journal as it is on the disk, and the time.
#[derive(Clone)]
pub struct OfflineLeague {
    pub league: League,
    pub journal: String,
    now: Timestamp,
    registrations: u32,
}

impl OfflineLeague {
    pub fn new() -> OfflineLeague {
        OfflineLeague {
            league: League::new(rules()),
            journal: String::new(),
            now: at("10:00:00"),
            registrations: 0,
        }
    }

    /// Runs the scripts of a folder, each with a league of its own.
    pub fn run_scripts(folder: &str) {
        golden::run_scripts(folder, || {
            let (mut league, mut before) = (OfflineLeague::new(), String::new());
            move |command: &str| {
                let output = golden::with_repeats_folded(&league.run(command));
                let shown = shortened(&output, &before);
                before = output;
                shown
            }
        });
    }

    /// Runs a command, after which the manager dies: its journal must give the same league, to the
    /// last field. Returns the output of the command.
    pub fn run(&mut self, line: &str) -> String {
        if let Some(rest) = line.strip_prefix("try ") {
            return self.clone().run(rest); // the league stays as it was
        }
        let output = self.run_command(&Command::new(line));
        let mut again = League::new(self.league.config.clone());
        let events = self.journal.lines();
        events.for_each(|line| again.apply(&json_of(line)));
        assert_eq!(again.table(), self.league.table());
        assert_eq!(again, self.league, "the journal gives another league");
        output
    }

    fn run_command(&mut self, command: &Command) -> String {
        match command.word(0) {
            "league" => self.begin(command),
            "rules" => {
                let config = &mut self.league.config;
                let room = command.option("max_players").unwrap_or(1000);
                config.league.participants.max_players = room;
                config.system.security.enable_auth_tokens = !command.has("tokenless");
                for listed in &mut config.agents.players {
                    listed.active = Some(command.options["inactive"] != listed.id);
                }
                String::new()
            }
            "wait" => {
                let seconds = command.word(1).parse().unwrap();
                self.now = self.now.plus(Duration::from_secs(seconds));
                String::new()
            }
            "register" => self.register(command),
            "who" => {
                let token = command.options["token"].as_str();
                let member = self.authenticate(command.word(1), token);
                member.map_or_else(refused, |member| member.id.clone())
            }
            "start" => match self.league.missing_to_start() {
                None => {
                    let event = self.league.start_event(Some(7), self.league.pairings());
                    self.happens(event, "started")
                }
                Some(missing) => missing,
            },
            "assign" => self.assign(command.number(1), &command.words[2..]),
            "report" => self.report(command),
            "round" => self.play_round(command.number(1), command.word(2)),
            "operator" => self.operator(command),
            "walkovers" => self.walkovers(command.number(1)),
            "journal" => self.journal.lines().last().unwrap().into(),
            "closed" => self.happens(Some(Event::Closed), "closed"),
            question => self.answer(question, command),
        }
    }

    fn happens(&mut self, event: Option<Event>, words: &str) -> String {
        let Some(event) = event else {
            return format!("nothing new: {words}");
        };
        self.journal += &(serde_json::to_string(&event).unwrap() + "\n");
        self.league.apply(&event);
        words.into()
    }

    /// `league 4 2 2 cycles=1 game=tic_tac_toe`: a lobby of four players and two referees, which play
    /// two matches at once. Their tokens are `tok-p01-first` and so on.
    fn begin(&mut self, command: &Command) -> String {
        let counts = command.words[1..].iter().flat_map(|word| word.parse());
        let counts: Vec<u32> = counts.collect();
        let (players, capacities) = counts.split_first().unwrap_or((&0, &[]));
        let lobby = lobby(*players, capacities);
        *self = OfflineLeague::new();
        let file = &mut self.league.config.league;
        file.scheduling.cycles = command.option("cycles");
        file.game_type = command.option("game").unwrap_or(EVEN_ODD.into());
        for member in lobby.members.into_values() {
            self.happens(Some(Event::Registered(member)), "");
        }
        String::new()
    }

    /// `register player P07 at=9001`, with fields of the caller and of the meta; `elsewhere`: from
    /// another machine; `there=9001`: from another machine, which names its own port; `whole`: the reply,
    /// and nothing is applied.
    fn register(&mut self, command: &Command) -> String {
        self.registrations += 1;
        let sender = format!("{}:{}", command.word(1), command.word(2));
        let there = command
            .option("there")
            .map(|port: u32| format!("http://{ELSEWHERE}:{port}/mcp"));
        let is_elsewhere = there.is_some() || command.has("elsewhere");
        let from = Caller {
            peer: [HERE, ELSEWHERE][usize::from(is_elsewhere)],
            secret: self.registrations.to_string(),
            now: self.now,
            ..command.change(caller(&sender))
        };
        let endpoint = match command.option("at") {
            Some(port) => local(port),
            None => command.option("at").or(there).unwrap_or_default(),
        };
        let meta = command.change(meta(from.kind, &endpoint));
        let (event, admission) = register(&self.league, &meta, &from);
        if command.has("whole") {
            return body(registration_reply(from.kind, admission, "paper")).to_string();
        }
        let member = match admission {
            Ok(member) => member,
            Err(rejection) => {
                let code = rejection.code.map(|code| format!(", {code}"));
                let code = code.unwrap_or_default();
                return format!("rejected{code}: {}", rejection.reason);
            }
        };
        let old = self.league.members.get(&member.id).cloned();
        let prefix = format!("tok-{}-", member.id.to_lowercase());
        let short = |token: &str| token.replace(&prefix, "token ");
        let output = self.happens(event, &format!("{} {}", member.id, short(&member.token)));
        assert_eq!(self.league.members[&member.id], member);
        let Some(old) = old.filter(|old| old.token != member.token) else {
            return output;
        };
        let sender = self.authenticate("", Some(&old.token));
        assert!(sender.is_err(), "the old token of {} is valid", old.id);
        format!("{output}, {} is void", short(&old.token))
    }

    fn authenticate(&self, sender: &str, token: Option<&str>) -> Result<&Member, ProtocolError> {
        let request = request(sender, token);
        self.league.authenticate(&request.envelope, self.now)
    }

    /// Assigns the open matches. Returns those whose referee is another one than before.
    fn assign(&mut self, round: u32, referees: &[String]) -> String {
        let before = self.league.matches.clone();
        self.happens(assignment(&self.league, round, referees), "");
        let mut output = String::new();
        for (old, new) in before.iter().zip(&self.league.matches) {
            if old.assignment() != new.assignment() {
                let tokens = |game: &Match| game.assignment().map(|own| own.tokens.clone());
                assert_ne!(tokens(old), tokens(new), "the tokens of {}", new.id);
                output += &format!("{} {}\n", new.id, new.referee().unwrap());
            }
        }
        output
    }

    /// Plays the open matches of a round.
    fn play_round(&mut self, round: u32, how: &str) -> String {
        let before = self.league.version;
        self.assign(round, &referees(&self.league));
        let open: Vec<_> = self.league.open_matches(round).cloned().collect();
        for game in open {
            let event = result_event(&self.league, &game.id, &ends(how)(&game));
            self.happens(event, "");
        }
        format!("{} events", self.league.version - before)
    }

    /// `report R1M1 wins by=REF02 result/winner=P04`: a true report, except for the fields in the
    /// options.
    fn report(&mut self, command: &Command) -> String {
        let game = self.league.find(command.word(1)).unwrap();
        let report = report(&self.league, game, &ends(command.word(2))(game));
        let report: MatchResultReport = command.change(report);
        let referee = command.options["by"].as_str().or(game.referee()).unwrap();
        let sender = &self.league.members[referee];
        match self.league.check_report(sender, &report, self.now) {
            Ok(event) => self.happens(event, "recorded"),
            Err(refusal) => refused(refusal),
        }
    }

    /// `operator remove P04`, `operator restore P04 address=10.0.0.7`.
    fn operator(&mut self, command: &Command) -> String {
        let player = command.words.get(2);
        let order = json!({"league_id": "paper", "action": command.word(1), "player_id": player});
        let order = command.change(order);
        match self.league.decide_order(&order, self.now) {
            Ok(event) => self.happens(event, "done"),
            Err(refusal) => refused(refusal),
        }
    }

    /// Records the matches of removed players.
    fn walkovers(&mut self, round: u32) -> String {
        let mut output = String::new();
        while let Some(event) = self.league.walkover(round, self.now) {
            if let Event::Recorded(recorded) = &event {
                let result = &recorded.result;
                let reason = result.details.reason.as_deref().unwrap_or("no reason");
                output += &format!("{} {}, {reason}\n", recorded.match_id, json!(result.score));
            }
            self.happens(Some(event), "");
        }
        output
    }

    /// Answers a question about the league.
    fn answer(&self, question: &str, command: &Command) -> String {
        let league = &self.league;
        let reader = command.word(2);
        let reply = match question {
            "status" => {
                let now = Moment::now();
                let waiting = Table::new(league, now).waiting(league, now);
                body(league.status(waiting.reason))
            }
            "table" => return table(league),
            "states" => {
                let all = league.members.values();
                let states = all.map(|member| (member.id.clone(), json!(league.state_of(member))));
                Value::Object(states.collect())
            }
            "announcement" => {
                let referee = Some(reader).filter(|id| league.members.contains_key(*id));
                body(league.announcement(command.number(1), referee))
            }
            "match_token" => json!(league.match_token(command.number(1), reader)),
            "round_completed" => body(league.round_completed(command.number(1))),
            "completed" => league.league_completed().map_or(Value::Null, body),
            "ask" => {
                let query = command.change(json!({"league_id": "paper", "query_type": reader}));
                match league.answer_query(&query, &league.members[command.word(1)]) {
                    Ok(answer) => answer.data.map_or(json!(answer.error), Value::Object),
                    Err(refusal) => return refused(refusal),
                }
            }
            other => panic!("{other}: no such command"),
        };
        shown(&reply)
    }
}

/// Returns the body of a message as it is sent.
fn body(message: impl Message) -> Value {
    let mut body = json!(message);
    remove_absent(&mut body, &message.spec().schema);
    body
}

/// Returns a reply as JSON: one line for each element if it contains a list.
fn shown(reply: &Value) -> String {
    let line = |(key, value): (&String, &Value)| match value {
        Value::Array(list) if !list.is_empty() => {
            let lines = list.iter().map(|element| format!("{key}: {element}\n"));
            lines.collect()
        }
        other => format!("{key}: {other}\n"),
    };
    match reply {
        Value::Object(fields) if fields.values().any(Value::is_array) => {
            fields.iter().map(line).collect()
        }
        other => other.to_string(),
    }
}

/// Returns `the same` for a long output like the one before, and `…` for an end like there.
fn shortened(output: &str, before: &str) -> String {
    if output.len() > 40 && output == before {
        return "the same".into();
    }
    match output.split_once("; ") {
        Some((start, end)) if before.ends_with(end) => format!("{start}; …"),
        _ => output.into(),
    }
}

/// Returns a refusal without the name of its code, and the result that the league has recorded already.
fn refused(refusal: ProtocolError) -> String {
    let text = refusal.to_string();
    let name = format!(" ({})", refusal.code.name());
    let text = text.strip_suffix(&name).unwrap();
    match refusal.context.get("recorded_result") {
        Some(recorded) => format!("refused: {text}\nrecorded: {recorded}"),
        None => format!("refused: {text}"),
    }
}
