//! What the manager takes as a result, what it answers, what it announces and to whom, and which referee gets
//! which match: rows over the pure league.

#[path = "support/paper.rs"]
mod paper;

use league::games::{Outcome, forfeit, judge};
use league::manager::league::{League, Match};
use league::protocol::AgentMeta;
use league::protocol::{Code, Ending, Kind, LeagueQuery, MatchResultReport, Parity};
use league::wire::Wire;
use paper::{
    assign, at, caller, enter, gathered, happen, local, meta, play, play_round, report, rules,
    seeded, started,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How a match ends.
type Ends = dyn Fn(&Match) -> Outcome;

/// A wins by even and 8.
fn first_wins(game: &Match) -> Outcome {
    judge(game.players.clone(), [Parity::Even, Parity::Odd], 8)
}

fn drawn(game: &Match) -> Outcome {
    judge(game.players.clone(), [Parity::Odd, Parity::Odd], 8)
}

/// The seats named in `seats` fail.
fn failed(seats: &'static [usize]) -> impl Fn(&Match) -> Outcome {
    move |game| {
        let how = [0, 1].map(|seat| seats.contains(&seat).then(|| "came late".to_string()));
        forfeit(game.players.clone(), Vec::new(), how)
    }
}

fn score(report: &mut MatchResultReport, id: &str, points: Option<i32>) {
    report.result.score.remove(id);
    report
        .result
        .score
        .extend(points.map(|points| (id.to_string(), points)));
}

fn choice(report: &mut MatchResultReport, id: &str, choice: Option<Parity>) {
    report.result.details.choices.insert(id.into(), choice);
}

/// No winner and no number, called so, with points for both.
fn undrawn(report: &mut MatchResultReport, status: Option<Ending>, points: [i32; 2]) {
    let it = &mut report.result;
    (it.winner, it.details.drawn_number, it.details.status) = (None, None, status);
    it.score = [
        ("P01".to_string(), points[0]),
        ("P04".to_string(), points[1]),
    ]
    .into();
}

/// What is different in a row.
type Change = fn(&mut MatchResultReport);

#[test]
fn a_report_that_cannot_be_true_is_refused() {
    let rows: &[(&str, Change, &str)] = &[
        (
            "unknown match",
            |it| it.match_id = "R9M9".into(),
            "match_id",
        ),
        (
            "another's match",
            |it| it.match_id = "R1M2".into(),
            "sender",
        ),
        (
            "a match that nobody was given yet",
            |it| (it.match_id, it.round_id) = ("R2M1".into(), 2),
            "sender",
        ),
        ("wrong round", |it| it.round_id = 2, "round_id"),
        (
            "another game",
            |it| it.game_type = "chess".into(),
            "game_type",
        ),
        (
            "a winner from another match",
            |it| it.result.winner = Some("P02".into()),
            "result",
        ),
        (
            "points for a stranger",
            |it| score(it, "P02", Some(0)),
            "result",
        ),
        (
            "a stranger's choice",
            |it| choice(it, "P02", None),
            "result",
        ),
        (
            "too many points",
            |it| score(it, "P01", Some(4)),
            "result.score",
        ),
        (
            "the loser's points",
            |it| it.result.score.values_mut().for_each(|it| *it = 3 - *it),
            "result.score",
        ),
        (
            "points for both",
            |it| score(it, "P04", Some(3)),
            "result.score",
        ),
        (
            "a score without one of both",
            |it| score(it, "P04", None),
            "result.score",
        ),
        (
            "number 0",
            |it| it.result.details.drawn_number = Some(0),
            "result.details.drawn_number",
        ),
        (
            "number 11",
            |it| it.result.details.drawn_number = Some(11),
            "result.details.drawn_number",
        ),
        (
            "an odd number, but even won",
            |it| it.result.details.drawn_number = Some(7),
            "result.winner",
        ),
        (
            "the other winner",
            |it| it.result.winner = Some("P04".into()),
            "result.winner",
        ),
        (
            "no winner of different choices",
            |it| it.result.winner = None,
            "result.winner",
        ),
        (
            "a winner of equal choices",
            |it| choice(it, "P04", Some(Parity::Even)),
            "result.winner",
        ),
        (
            "a win called a draw",
            |it| it.result.details.status = Some(Ending::Draw),
            "result.winner",
        ),
        (
            "a win called technical",
            |it| it.result.details.status = Some(Ending::TechnicalLoss),
            "result.winner",
        ),
        (
            "a number without a choice",
            |it| choice(it, "P04", None),
            "result.details.choices",
        ),
        (
            "a win without a number",
            |it| it.result.details.drawn_number = None,
            "result.details.drawn_number",
        ),
        (
            "a draw without a number",
            |it| undrawn(it, Some(Ending::Draw), [1, 1]),
            "result.details.drawn_number",
        ),
        (
            "a double loss with points",
            |it| undrawn(it, None, [3, 0]),
            "result.score",
        ),
    ];
    let mut league = started(4, &[2, 2]);
    assign(&mut league, 1, &["REF01", "REF02"]);
    let game = league.find("R1M1").unwrap();
    assert_eq!(
        (game.players.concat(), game.referee()),
        ("P01P04".into(), Some("REF01")),
        "what the rows are about"
    );
    let good = report(
        &league,
        game,
        first_wins(game).for_manager(&league.rules.scoring),
    );
    let wrong_sender = ["REF02", "P01"].map(|id| ("not its referee", good.clone(), id, "sender"));
    let changed = rows.iter().map(|(row, change, field)| {
        let mut report = good.clone();
        change(&mut report);
        (*row, report, "REF01", *field)
    });
    for (row, report, sender, field) in changed.chain(wrong_sender) {
        let refusal = league
            .judge(&league.members[sender], &report, at("11:00:00"))
            .unwrap_err();
        assert_eq!(
            (refusal.code, &refusal.context["field"]),
            (Code::E015, &json!(field)),
            "{row}: {refusal}"
        );
    }
    let event = league
        .judge(&league.members["REF01"], &good, at("11:00:00"))
        .unwrap();
    assert!(event.is_some(), "unchanged it is good");
}

#[test]
fn a_result_counts_once_and_the_first_stands() {
    let different: &[(&str, Change)] = &[
        ("another reason", |it| it.result.details.reason = None),
        ("another number", |it| {
            it.result.details.drawn_number = Some(6)
        }),
        ("another winner", |it| it.result.winner = Some("P04".into())),
        ("another round", |it| it.round_id = 2),
        ("another game", |it| it.game_type = "chess".into()),
    ];
    let mut league = started(4, &[2, 2]);
    assign(&mut league, 1, &["REF01", "REF02"]);
    play(&mut league, "R1M1", first_wins);
    let game = league.find("R1M1").unwrap();
    let good = report(
        &league,
        game,
        first_wins(game).for_manager(&league.rules.scoring),
    );
    let judged = |sender: &str, report: &MatchResultReport| {
        league
            .judge(&league.members[sender], report, at("12:00:00"))
            .map_err(|no| no.code)
    };
    assert_eq!(
        judged("REF01", &good),
        Ok(None),
        "the same again is no event"
    );
    assert_eq!(
        judged("REF02", &good),
        Err(Code::E015),
        "the same from another referee"
    );
    for (row, change) in different {
        let mut report = good.clone();
        change(&mut report);
        assert_eq!(judged("REF01", &report), Err(Code::E015), "{row}");
    }
}

#[test]
fn long_texts_of_referees_are_cut() {
    let mut league = started(2, &[1]);
    assign(&mut league, 1, &["REF01"]);
    let fresh = league.clone();
    let game = fresh.find("R1M1").unwrap();
    let mut told = report(
        &fresh,
        game,
        failed(&[0])(game).for_manager(&fresh.rules.scoring),
    );
    told.result.details.reason = Some("ü".repeat(9_000));
    let judge = |league: &League, it: &MatchResultReport| {
        league.judge(&fresh.members["REF01"], it, at("11:00:00"))
    };
    let event = judge(&league, &told).unwrap();
    happen(&mut league, event);
    let kept = league
        .find("R1M1")
        .unwrap()
        .recorded
        .clone()
        .unwrap()
        .result
        .details
        .reason
        .unwrap();
    assert_eq!(kept, "ü".repeat(600) + "…");
    assert_eq!(
        judge(&league, &told),
        Ok(None),
        "the same again is known again"
    );
    let texts: [Change; 4] = [
        |it| it.match_id = "x".repeat(9_000),
        |it| it.game_type = "x".repeat(9_000),
        |it| it.result.winner = Some("x".repeat(9_000)),
        |it| it.result.score = [("x".repeat(9_000), 1)].into(),
    ];
    for change in texts {
        let mut report = told.clone();
        change(&mut report);
        assert!(
            judge(&fresh, &report).unwrap_err().explain().len() < 200,
            "{report:?}"
        );
    }
}

/// What a query is answered: the data, or the code and what is wrong.
fn ask(league: &League, sender: &str, query_type: &str, params: Value) -> Value {
    let mut query = json!({"league_id": league.rules.league_id, "query_type": query_type});
    if !params.is_null() {
        query["query_params"] = params;
    }
    let answer = league
        .answer(&LeagueQuery::read(&query).unwrap(), &league.members[sender])
        .unwrap();
    assert_eq!(
        [answer.error.is_none(), answer.data.is_some()],
        [answer.success; 2],
        "{query}"
    );
    assert_eq!(answer.query_type, query_type);
    match answer.error {
        Some(error) => {
            assert!(
                Code::ALL
                    .iter()
                    .any(|it| (it.code(), it.name()) == (&error.error_code, &error.error_name))
            );
            json!(format!("{} {}", error.error_code, error.error_description))
        }
        None => json!(answer.data),
    }
}

/// Three players before, during and after their league: P02 beats P03, P01 fails against P03, P01 and P02 draw.
fn phases() -> [League; 3] {
    let before = gathered(3, &[2]);
    let mut during = started(3, &[2]);
    play_round(&mut during, 1, first_wins);
    assign(&mut during, 2, &["REF01"]);
    let mut after = during.clone();
    play_round(&mut after, 2, failed(&[1]));
    play_round(&mut after, 3, drawn);
    [before, during, after]
}

#[test]
fn the_schedule_says_what_is_played_and_who_won() {
    let [before, during, after] = &phases();
    let all = Value::Null;
    let rows = [
        (
            before,
            &all,
            "R1M1 P02 P03 scheduled null, R2M1 P03 P01 scheduled null, R3M1 P01 P02 scheduled null",
        ),
        (
            before,
            &json!({"round_id": 3}),
            "R3M1 P01 P02 scheduled null",
        ),
        (
            during,
            &all,
            "R1M1 P02 P03 completed P02, R2M1 P03 P01 assigned null, R3M1 P01 P02 scheduled null",
        ),
        (
            during,
            &json!({"round_id": 2}),
            "R2M1 P03 P01 assigned null",
        ),
        (
            after,
            &all,
            "R1M1 P02 P03 completed P02, R2M1 P03 P01 completed P03, R3M1 P01 P02 completed null",
        ),
    ];
    for (league, params, expected) in rows {
        let answer = ask(league, "REF01", "GET_SCHEDULE", params.clone());
        let words = answer["rounds"].as_array().unwrap().iter().map(|round| {
            assert_eq!(
                round["matches"][0]["match_id"],
                format!("R{}M1", round["round_id"]),
                "one match a round"
            );
            let fields = ["match_id", "player_A_id", "player_B_id", "status", "winner"];
            fields
                .map(|field| round["matches"][0][field].to_string().replace('"', ""))
                .join(" ")
        });
        assert_eq!(
            words.collect::<Vec<_>>().join(", "),
            expected,
            "{} {params}",
            league.progress()
        );
    }
}

#[test]
fn the_next_match_is_the_first_that_is_not_played() {
    let [before, during, after] = &phases();
    let own = Value::Null;
    let rows = [
        (before, "P01", own.clone(), "null"),
        (
            during,
            "P01",
            own.clone(),
            "R2M1 2 P03 http://localhost:8001/mcp",
        ),
        (
            during,
            "P01",
            json!({"player_id": null}),
            "R2M1 2 P03 http://localhost:8001/mcp",
        ),
        (
            during,
            "P01",
            json!({"player_id": "P02"}),
            "R3M1 3 P01 null",
        ), // P02 rests in round 2
        (
            during,
            "REF01",
            json!({"player_id": "P03"}),
            "R2M1 2 P01 http://localhost:8001/mcp",
        ),
        (after, "P01", own, "null"),
    ];
    for (league, sender, params, expected) in rows {
        let answer = ask(league, sender, "GET_NEXT_MATCH", params.clone());
        let fields = ["match_id", "round_id", "opponent_id", "referee_endpoint"];
        let words = match &answer["next_match"] {
            Value::Null => "null".into(),
            next => fields
                .map(|field| next[field].to_string().replace('"', ""))
                .join(" "),
        };
        assert_eq!(words, expected, "{} {sender} {params}", league.progress());
    }
}

#[test]
fn a_players_statistics_add_up() {
    let [before, during, after] = &phases();
    let met = |wins: u32, losses: u32, draws: u32| json!({"wins": wins, "losses": losses, "draws": draws});
    let won = json!({"P03": met(1, 0, 0)});
    let drew = json!({"P03": met(1, 0, 0), "P01": met(0, 0, 1)});
    let failed = json!({"P03": met(0, 1, 0), "P02": met(0, 0, 1)});
    // Whose; played, wins, draws, losses, points; technical losses, choices of even and odd; the share of wins.
    let rows = [
        (
            before,
            "P01",
            "REGISTERED",
            [0, 0, 0, 0, 0],
            [0, 0, 0],
            0.0,
            json!({}),
        ),
        (
            during,
            "P01",
            "ACTIVE",
            [0, 0, 0, 0, 0],
            [0, 0, 0],
            0.0,
            json!({}),
        ),
        (
            during,
            "P02",
            "ACTIVE",
            [1, 1, 0, 0, 3],
            [0, 1, 0],
            1.0,
            won,
        ),
        (
            after,
            "P02",
            "ACTIVE",
            [2, 1, 1, 0, 4],
            [0, 1, 1],
            0.5,
            drew,
        ),
        (
            after,
            "P01",
            "ACTIVE",
            [2, 0, 1, 1, 1],
            [1, 0, 1],
            0.0,
            failed,
        ),
    ];
    for (
        league,
        id,
        state,
        [played, wins, draws, losses, points],
        [technical, even, odd],
        rate,
        opponents,
    ) in rows
    {
        let expected = json!({
            "player_id": id, "display_name": league.members[id].display_name, "state": state, "played": played,
            "wins": wins, "draws": draws, "losses": losses, "points": points, "win_rate": rate,
            "technical_losses": technical, "choices": {"even": even, "odd": odd}, "opponents": opponents,
        });
        let of = json!({"player_id": id});
        assert_eq!(
            ask(league, id, "GET_PLAYER_STATS", Value::Null),
            expected,
            "{}",
            league.progress()
        );
        assert_eq!(
            ask(league, "REF01", "GET_PLAYER_STATS", of),
            expected,
            "{}",
            league.progress()
        );
    }
}

#[test]
fn the_table_has_everybody_at_any_time() {
    for (league, expected) in phases()
        .iter()
        .zip(["P01 P02 P03", "P02 P01 P03", "P02 P03 P01"])
    {
        let answer = ask(league, "P01", "GET_STANDINGS", Value::Null);
        assert_eq!(
            answer,
            json!({"standings": league.table()}),
            "{}",
            league.progress()
        );
        assert_eq!(
            league
                .table()
                .iter()
                .map(|row| &*row.player_id)
                .collect::<Vec<_>>()
                .join(" "),
            expected
        );
    }
}

#[test]
fn a_faulty_query_is_no_success_and_says_why() {
    let league = &phases()[1];
    let rows = [
        (
            "P01",
            "GET_WEATHER",
            Value::Null,
            "E003 query_type: got \"GET_WEATHER\"",
        ),
        ("P01", "get_standings", Value::Null, "E003 query_type: got"),
        (
            "P01",
            "GET_STANDINGS",
            json!([]),
            "E003 query_params: got []",
        ),
        (
            "P01",
            "GET_STANDINGS",
            json!("P01"),
            "E003 query_params: got \"P01\"",
        ),
        (
            "P01",
            "GET_SCHEDULE",
            json!({"round_id": 0}),
            "E003 query_params.round_id: must be 1 to 3",
        ),
        (
            "P01",
            "GET_SCHEDULE",
            json!({"round_id": 4}),
            "E003 query_params.round_id: must be 1 to 3",
        ),
        (
            "P01",
            "GET_SCHEDULE",
            json!({"round_id": -1}),
            "E003 query_params.round_id: got -1",
        ),
        (
            "P01",
            "GET_SCHEDULE",
            json!({"round_id": "1"}),
            "E003 query_params.round_id: got \"1\"",
        ),
        (
            "P01",
            "GET_NEXT_MATCH",
            json!({"player_id": 1}),
            "E003 query_params.player_id",
        ),
        (
            "REF01",
            "GET_NEXT_MATCH",
            Value::Null,
            "E003 query_params.player_id: missing",
        ),
        (
            "REF01",
            "GET_PLAYER_STATS",
            json!({}),
            "E003 query_params.player_id: missing",
        ),
        (
            "P01",
            "GET_NEXT_MATCH",
            json!({"player_id": "P77"}),
            "E005 Player ID P77 not found in registry",
        ),
        (
            "P01",
            "GET_PLAYER_STATS",
            json!({"player_id": "REF01"}),
            "E005 Player ID REF01 not found in registry",
        ),
    ];
    for (sender, query_type, params, expected) in rows {
        let answer = ask(league, sender, query_type, params.clone());
        assert!(
            answer
                .as_str()
                .is_some_and(|words| words.starts_with(expected)),
            "{query_type} {params}: {answer}"
        );
    }
    let query = LeagueQuery::read(&json!({"league_id": "x", "query_type": 7})).unwrap();
    assert_eq!(
        league
            .answer(&query, &league.members["P01"])
            .unwrap_err()
            .code,
        Code::E003,
        "no type to answer with"
    );
}

#[test]
fn the_status_says_how_far_the_league_is_and_what_it_waits_for() {
    let [before, during, after] = phases();
    let missing = "1 of at least 2 players and 0 of at least 1 referee have registered";
    let stalled = Some("no referee is left".to_string());
    let rows = [
        (
            &gathered(1, &[]),
            None,
            json!(["waiting", 0, 0, 0, missing]),
        ),
        (&before, None, json!(["waiting", 0, 0, 0, null])),
        (&during, None, json!(["running", 2, 3, 1, null])),
        (
            &during,
            stalled,
            json!(["running", 2, 3, 1, "no referee is left"]),
        ),
        (&after, None, json!(["completed", 3, 3, 3, null])),
    ];
    for (league, reason, expected) in rows {
        let it = league.status(reason);
        let counts = (
            it.status,
            it.current_round,
            it.total_rounds,
            it.matches_completed,
            it.reason,
        );
        assert_eq!(json!(counts), expected);
    }
    assert!(gathered(2, &[]).start(None).is_err() && gathered(1, &[1]).start(None).is_err());
    assert_eq!(
        during.start(None),
        Ok(None),
        "what has started does not start again"
    );
}

#[test]
fn tokens_and_endpoints_are_shown_to_whom_they_are_meant_for() {
    let mut league = started(4, &[2, 2]);
    assign(&mut league, 1, &["REF01", "REF02"]);
    play(&mut league, "R1M2", drawn);
    assign(&mut league, 2, &["REF01", "REF02"]);
    let announced =
        |round: u32, reader: &str| json!(league.announcement(round, league.members.get(reader)));
    let open = [
        "match_id",
        "game_type",
        "player_A_id",
        "player_B_id",
        "referee_endpoint",
    ];
    let hand_over = [
        "player_A_endpoint",
        "player_B_endpoint",
        "player_A_standings",
        "player_B_standings",
    ];
    let both = ["player_A_token", "player_B_token"];
    // Reader, match, and the fields beyond the open ones.
    let rows: [(&str, &str, Vec<&str>); 7] = [
        ("REF01", "R1M1", [&hand_over[..], &both].concat()),
        ("REF02", "R1M1", hand_over.to_vec()),
        ("P01", "R1M1", vec!["match_token"]),
        ("P04", "R1M1", vec!["match_token"]),
        ("P02", "R1M1", vec![]),
        ("REF02", "R2M2", [&hand_over[..], &both].concat()),
        ("P04", "R2M1", vec!["match_token"]),
    ];
    for (reader, id, more) in rows {
        let game = league.find(id).unwrap();
        let (given, announcement) = (
            game.assignment.as_ref().unwrap(),
            announced(game.round, reader),
        );
        let entry = announcement["matches"]
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["match_id"] == id)
            .unwrap();
        let came: BTreeSet<&str> = entry
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            came,
            open.into_iter().chain(more).collect(),
            "{reader} reads {id}"
        );
        assert_eq!(
            entry["referee_endpoint"],
            json!(league.members[&given.referee_id].endpoint)
        );
        for (seat, side) in ["A", "B"].iter().enumerate() {
            let (token, endpoint) = (
                &given.tokens[seat],
                &league.members[&game.players[seat]].endpoint,
            );
            let shown = |key: &str| entry.get(format!("player_{side}_{key}"));
            assert!(
                shown("token").is_none_or(|it| it == token)
                    && shown("endpoint").is_none_or(|it| it == endpoint)
            );
            assert!(
                game.players[seat] != reader || entry["match_token"] == *token,
                "{reader}'s own"
            );
        }
    }
    let one = announced(1, "P01");
    assert!(
        one["matches"][0]["match_id"] == "R1M1" && one["matches"][1].is_null(),
        "what is played is not announced"
    );
    let two = announced(2, "REF01").to_string();
    assert_eq!(
        two.matches(r#""draws":1,"losses":0,"wins":0"#).count(),
        2,
        "two have drawn: {two}"
    );
    for member in league.members.values() {
        let text = announced(1, &member.id).to_string() + &announced(2, &member.id).to_string();
        let shown = league.members.values().any(|it| text.contains(&it.token));
        assert!(!shown, "no reporting token, not to {}", member.id);
    }
}

#[test]
fn no_notice_is_longer_than_agents_read() {
    const MOST: usize = 256 << 10;
    let mut league = League::new(rules());
    let place = |n: usize| format!("http://localhost:{:04}/", 9000 + n) + &r#"\""#.repeat(89); // escaped in JSON
    for n in 1..=108 {
        let (kind, word) = if n > 100 {
            (Kind::Referee, "referee:new")
        } else {
            (Kind::Player, "player:new")
        };
        let display_name = "\u{1}".repeat(50); // six bytes each in JSON
        enter(
            &mut league,
            &AgentMeta {
                display_name,
                ..meta(kind, &place(n))
            },
            &caller(word),
        );
    }
    assert!(
        league.members["P05"].endpoint.len() == 200 && league.members.len() == 108,
        "the longest that is legal"
    );
    let event = league.start(None).unwrap();
    happen(&mut league, event);
    let size = |notice: Value| notice.to_string().len();
    let referees: Vec<String> = league
        .members(Kind::Referee)
        .iter()
        .map(|it| it.id.clone())
        .collect();
    let event = league.assign(1, &referees[..1], |player| {
        format!("tok-{player}-{}", "f".repeat(256))
    });
    happen(&mut league, event);
    for reader in league.members.values() {
        assert!(
            size(json!(league.announcement(1, Some(reader)))) < MOST,
            "{}",
            reader.id
        );
    }
    assert!((40_000..MOST).contains(&size(json!(league.standings_update()))));
    assert!(size(json!(league.completed())) < MOST);
}

#[test]
fn a_referee_that_makes_its_own_tokens_is_given_none() {
    let mut league = gathered(2, &[]);
    let foreign = AgentMeta {
        uses_match_tokens: false,
        ..meta(Kind::Referee, &local(8001))
    };
    enter(&mut league, &foreign, &caller("referee:foreign"));
    let event = league.start(None).unwrap();
    happen(&mut league, event);
    assign(&mut league, 1, &["REF01"]);
    for member in league.members.values() {
        let text = json!(league.announcement(1, Some(member))).to_string();
        assert!(
            text.contains("R1M1") && !text.contains("token"),
            "{}: {text}",
            member.id
        );
    }
}

#[test]
fn matches_are_spread_over_the_referees_by_what_they_can_carry() {
    let capacities = [1, 2, 5];
    let some = capacities.map(|one| vec![one]);
    let pairs = capacities
        .iter()
        .flat_map(|one| capacities.map(|other| vec![*one, other]));
    let threes = pairs
        .clone()
        .flat_map(|pair| capacities.map(|third| [&pair[..], &[third]].concat()));
    let rows: Vec<Vec<u32>> = some.into_iter().chain(pairs).chain(threes).collect();
    for (players, row) in [2, 3, 4, 5, 7, 8]
        .into_iter()
        .flat_map(|n| rows.iter().map(move |row| (n, row)))
    {
        let mut league = started(players, row);
        for round in 1..=league.rounds() {
            play_round(&mut league, round, |game| seeded(7, game));
            let mut load: BTreeMap<&str, u32> = league
                .members(Kind::Referee)
                .iter()
                .map(|it| (&*it.id, 0))
                .collect();
            league
                .round(round)
                .iter()
                .for_each(|game| *load.get_mut(game.referee().unwrap()).unwrap() += 1);
            let laden: Vec<(u32, u32)> = load.into_values().zip(row.iter().copied()).collect();
            let words = format!("{players} players, round {round}: (matches, capacity) {laden:?}");
            let fits = laden.iter().map(|(matches, _)| matches).sum::<u32>() <= row.iter().sum();
            assert!(
                !fits || laden.iter().all(|(matches, capacity)| matches <= capacity),
                "above capacity: {words}"
            );
            for ((mine, my), (its, other)) in laden
                .iter()
                .flat_map(|one| laden.iter().map(move |other| (one, other)))
            {
                assert!(
                    mine * other <= (its + 1) * my,
                    "another could carry it better: {words}"
                );
            }
        }
        assert_eq!(
            league.open_round(),
            None,
            "{players} players and {row:?} play to the end"
        );
    }
}

#[test]
fn only_the_matches_of_a_vanished_referee_move() {
    let all = ["REF01", "REF02", "REF03"];
    // Who is left, and who then has the four matches of the round, the third of which is played.
    let rows: [(&[&str], &str); 6] = [
        (&all, "REF01 REF02 REF03 REF01"),
        (&["REF01", "REF03"], "REF01 REF03 REF03 REF01"),
        (&["REF01", "REF02"], "REF01 REF02 REF03 REF01"),
        (&["REF02", "REF03"], "REF03 REF02 REF03 REF02"),
        (&["REF03"], "REF03 REF03 REF03 REF03"),
        (&[], "REF01 REF02 REF03 REF01"),
    ];
    for (present, expected) in rows {
        let mut league = started(8, &[2, 2, 2]);
        assign(&mut league, 1, &all);
        play(&mut league, "R1M3", drawn);
        let given = |league: &League| -> Vec<_> {
            league
                .matches
                .iter()
                .filter_map(|it| it.assignment.clone())
                .collect()
        };
        let before = given(&league);
        assign(&mut league, 1, present);
        let after = given(&league);
        assert_eq!(
            after
                .iter()
                .map(|it| &*it.referee_id)
                .collect::<Vec<_>>()
                .join(" "),
            expected,
            "{present:?} are left"
        );
        for (old, new) in before.iter().zip(&after) {
            let (moved, same) = (old.referee_id != new.referee_id, |n: usize| {
                old.tokens[n] == new.tokens[n]
            });
            assert_eq!(
                [same(0), same(1)],
                [!moved; 2],
                "{present:?} are left: tokens of {}",
                old.match_id
            );
        }
        let changes = league.changes;
        assign(&mut league, 1, &all);
        assert_eq!(
            league.changes, changes,
            "whoever comes back finds its matches gone, and the others stay"
        );
    }
}

#[test]
fn rounds_and_the_league_end_with_sums_that_fit() {
    let mut league = started(6, &[2]);
    assign(&mut league, 1, &["REF01"]);
    play(&mut league, "R1M1", first_wins);
    play(&mut league, "R1M2", drawn);
    play(&mut league, "R1M3", failed(&[0, 1]));
    let completed = json!({
        "league_id": rules().league_id, "round_id": 1, "matches_completed": 3, "next_round_id": 2,
        "summary": {"total_matches": 3, "wins": 1, "draws": 1, "technical_losses": 1},
    });
    assert_eq!(json!(league.round_completed(1)), completed);
    assert_eq!(league.standings_update().round_id, 1);
    for round in 2..=5 {
        play_round(
            &mut league,
            round,
            if round == 5 { first_wins } else { drawn },
        );
        let it = league.round_completed(round);
        assert_eq!(it.next_round_id, (round < 5).then_some(round + 1));
        assert_eq!(
            it.summary.wins + it.summary.draws + it.summary.technical_losses,
            it.summary.total_matches
        );
        assert_eq!(
            json!(league.round_completed(round))["next_round_id"].is_null(),
            round == 5,
            "null, not left out"
        );
    }
    let (end, table) = (league.completed().unwrap(), league.table());
    assert_eq!((end.total_rounds, end.total_matches), (5, 15));
    assert_eq!(
        (end.champion.player_id, end.champion.points),
        (table[0].player_id.clone(), table[0].points)
    );
    for (row, its) in end.final_standings.iter().zip(table) {
        let name = Some(its.display_name.clone());
        assert_eq!(
            (row.rank, &row.player_id, row.points, &row.display_name),
            (its.rank, &its.player_id, its.points, &name)
        );
    }
    assert_eq!(json!(league.standings_update().standings), json!(table));
    assert!(League::new(rules()).completed().is_none());
}

#[test]
fn an_agents_state_follows_the_league_and_its_last_match() {
    let mut league = gathered(2, &[1]);
    league.rules.cycles = 5;
    let states = |league: &League| {
        let [a, b] = league
            .find("R1M1")
            .map_or(["P01".into(), "P02".into()], |game| game.players.clone());
        [a, b, "REF01".into()]
            .map(|id| league.state_of(&league.members[&id]).to_string())
            .join(" ")
    };
    assert_eq!(states(&league), "REGISTERED REGISTERED REGISTERED");
    let event = league.start(None).unwrap();
    happen(&mut league, event);
    assert_eq!(states(&league), "ACTIVE ACTIVE ACTIVE");
    // Every second round the seats are swapped: what counts is the seat of the first round.
    let rows: [(u32, &Ends, &str); 5] = [
        (1, &failed(&[0]), "SUSPENDED ACTIVE ACTIVE"),
        (2, &first_wins, "ACTIVE ACTIVE ACTIVE"),
        (3, &failed(&[0, 1]), "SUSPENDED SUSPENDED ACTIVE"),
        (4, &failed(&[0]), "ACTIVE SUSPENDED ACTIVE"),
        (5, &drawn, "ACTIVE ACTIVE ACTIVE"),
    ];
    for (round, outcome, expected) in rows {
        play_round(&mut league, round, outcome);
        assert_eq!(states(&league), expected, "after round {round}");
    }
    happen(&mut league, Some(league::manager::league::Event::Closed));
    assert_eq!(states(&league), "SHUTDOWN SHUTDOWN SHUTDOWN");
}
