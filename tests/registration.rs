//! Who gets in, under which id, with which token, and whose request a request is: rows over the pure rules.

#[path = "support/paper.rs"]
mod paper;

use league::manager::league::{Event, League};
use league::manager::registration::Admission;
use league::protocol::AgentMeta;
use league::protocol::{Code, Kind, Kind::*};
use paper::{
    Caller, ELSEWHERE, at, caller, enter, gathered, happen, local, meta, register, rules, started,
};
use serde_json::json;
use std::time::Duration;

const UNTRUSTED: &str = "Not permitted: referees register from this machine, from their listed host, or with the operator token";

/// What comes of a registration, in one line: `P01 tok-p01-first x2`, or `P01 tok-p01-first as it was`; and it happens.
fn outcome(league: &mut League, meta: &AgentMeta, from: &Caller) -> String {
    match register(league, meta, from) {
        Admission::Rejected { reason, code } => {
            format!(
                "{}{reason}",
                code.map_or(String::new(), |it| format!("{it} "))
            )
        }
        Admission::Accepted {
            member,
            event: None,
        } => {
            assert!(league.members[&member.id] == *member);
            format!("{} {} as it was", member.id, member.token)
        }
        Admission::Accepted { member, event } => {
            assert_eq!(
                event,
                Some(Event::Registered((*member).clone())),
                "the event is what was answered"
            );
            assert_eq!(
                member.endpoint, meta.contact_endpoint,
                "the endpoint is kept as given"
            );
            assert_eq!(
                member.expires,
                from.now.plus(league.rules.token_lifetime),
                "its lifetime begins anew"
            );
            happen(league, event);
            format!("{} {} x{}", member.id, member.token, member.registrations)
        }
    }
}

/// What is different in a row.
type Change = fn(&mut AgentMeta, &mut Caller);

#[test]
fn ids_are_listed_or_asked_for_or_the_lowest_free() {
    let mut league = League::new(rules());
    let here = caller("").peer;
    // One after the other: kind, sender, endpoint, from where, the id, and why.
    let rows = [
        (
            Player,
            "player:alpha",
            "http://127.0.0.1:8102/mcp",
            here,
            "P02",
            "the id of its listed endpoint",
        ),
        (
            Player,
            "player:P01",
            "http://LOCALHOST:8103/mcp",
            here,
            "P03",
            "listed, whatever it asks for",
        ),
        (
            Player,
            "player:P07",
            "http://localhost:9001/mcp",
            here,
            "P07",
            "asked for",
        ),
        (
            Player,
            "player:P07",
            "http://localhost:9002/mcp",
            here,
            "P05",
            "held, so the lowest free: P01, P04 listed",
        ),
        (
            Player,
            "player:P04",
            "http://10.0.0.7:9003/mcp",
            ELSEWHERE,
            "P06",
            "listed for another endpoint",
        ),
        (
            Player,
            "player:P04",
            "http://localhost:9004/mcp",
            here,
            "P04",
            "loopback takes it, unused as it is",
        ),
        (
            Player,
            "player:beta",
            "http://localhost:8104/mcp",
            here,
            "P08",
            "its listed id is held already",
        ),
        (
            Player,
            "player:P7",
            "http://localhost:9005/mcp",
            here,
            "P09",
            "not well-formed",
        ),
        (
            Player,
            "player:P012",
            "http://localhost:9006/mcp",
            here,
            "P10",
            "not well-formed",
        ),
        (
            Player,
            "player:P00",
            "http://localhost:9007/mcp",
            here,
            "P11",
            "numbers begin with 1",
        ),
        (
            Player,
            "player:REF05",
            "http://localhost:9008/mcp",
            here,
            "P12",
            "a referee's id",
        ),
        (
            Player,
            "referee:P20",
            "http://localhost:9009/mcp",
            here,
            "P13",
            "another kind of sender",
        ),
        (
            Player,
            "player:P120",
            "http://10.0.0.7:9010/mcp",
            ELSEWHERE,
            "P120",
            "well-formed, and from elsewhere",
        ),
        (
            Player,
            "player:gamma",
            "http://localhost:8001/mcp",
            here,
            "P14",
            "an endpoint listed for a referee",
        ),
        (
            Referee,
            "referee:REF01",
            "http://localhost:9011/mcp",
            here,
            "REF03",
            "the endpoint of REF01 is used",
        ),
        (
            Referee,
            "referee:REF05",
            "http://localhost:9012/mcp",
            here,
            "REF05",
            "asked for",
        ),
        (
            Referee,
            "referee:P21",
            "http://localhost:9013/mcp",
            here,
            "REF04",
            "a player's id",
        ),
        (
            Referee,
            "referee:alpha",
            "http://127.0.0.1:8002/mcp",
            here,
            "REF02",
            "the id of its listed endpoint",
        ),
    ];
    for (kind, sender, endpoint, peer, id, why) in rows {
        let member = enter(
            &mut league,
            &meta(kind, endpoint),
            &Caller {
                peer,
                ..caller(sender)
            },
        );
        assert_eq!(member.id, id, "{sender} at {endpoint}: {why}");
        assert_eq!((&*member.alias, member.kind), (sender, kind), "{sender}");
        assert_eq!(member.token, format!("tok-{}-first", id.to_lowercase()));
    }
    assert_eq!(
        enter(
            &mut league,
            &meta(Player, &local(9014)),
            &caller("player:new")
        )
        .alias,
        "player:P15",
        "no name"
    );
    let mut league = League::new(rules());
    league.rules.listed.clear();
    for n in 1..=101 {
        assert_eq!(
            enter(&mut league, &meta(Player, &local(9000 + n)), &caller("")).id,
            Player.numbered(n as u32)
        );
    }
    assert!(
        (1..)
            .zip(league.members(Player))
            .all(|(n, player)| player.id == Player.numbered(n)),
        "P100 after P99"
    );
}

#[test]
fn whoever_is_refused_learns_why_and_the_limits_themselves_are_legal() {
    let url = "contact_endpoint must be an absolute URL like http://localhost:8101/mcp";
    let (url, referees) = (
        &*format!("Contact endpoint unreachable: {url}"),
        &*format!("Endpoint unreachable: {url}"),
    );
    let version = "Invalid version: must be MAJOR.MINOR.PATCH, like 1.0.0";
    let mismatch = "E018 Protocol version mismatch: protocol_version must be 2.x.y";
    let matches = "Invalid max_concurrent_matches: must be 1 to 10";
    let game = "Unsupported game type: game_types must have one of even_odd";
    let long = "Contact endpoint unreachable: contact_endpoint must be at most 200 characters";
    let (player, referee) = ("P05 tok-p05-first x1", "REF03 tok-ref03-first x1");
    let rows: &[(Kind, Change, &str)] = &[
        (
            Player,
            |it, _| it.display_name = "".into(),
            "Invalid display_name: got 0 characters, must be 1 to 50",
        ),
        (Player, |it, _| it.display_name = "x".into(), player),
        (Player, |it, _| it.display_name = "ü".repeat(50), player),
        (
            Player,
            |it, _| it.display_name = "ü".repeat(51),
            "Invalid display_name: got 51 characters, must be 1 to 50",
        ),
        (Player, |it, _| it.display_name = "Player 1".into(), player), // somebody else's
        (Player, |it, _| it.version = "1.0".into(), version),
        (Referee, |it, _| it.version = "v1.0.0".into(), version),
        (Player, |it, _| it.version = "10.20.30".into(), player),
        (Player, |it, _| it.game_types = vec!["chess".into()], game),
        (Referee, |it, _| it.game_types.clear(), game),
        (
            Player,
            |it, _| it.game_types = vec!["chess".into(), "even_odd".into()],
            player,
        ),
        (
            Player,
            |it, _| it.contact_endpoint = "localhost:8101/mcp".into(),
            url,
        ),
        (Referee, |it, _| it.contact_endpoint = "".into(), referees),
        (
            Player,
            |it, _| it.contact_endpoint = "http://[::1]:9000/a/b?c=d".into(),
            player,
        ),
        (
            Player,
            |it, _| it.contact_endpoint = format!("http://localhost/{}", "x".repeat(183)),
            player,
        ),
        (
            Player,
            |it, _| it.contact_endpoint = format!("http://localhost/{}", "x".repeat(184)),
            long,
        ),
        (Referee, |it, _| it.max_concurrent_matches = 0, matches),
        (Referee, |it, _| it.max_concurrent_matches = 1, referee),
        (Referee, |it, _| it.max_concurrent_matches = 10, referee),
        (Referee, |it, _| it.max_concurrent_matches = 11, matches),
        (
            Player,
            |it, _| it.protocol_version = Some("2.7.1".into()),
            player,
        ),
        (
            Player,
            |it, _| it.protocol_version = Some("1.9.0".into()),
            mismatch,
        ),
        (
            Player,
            |it, _| it.protocol_version = Some("20.0.0".into()),
            mismatch,
        ),
        (
            Player,
            |it, _| it.contact_endpoint = local(8104),
            "Not active: the agents configuration lists P04 as inactive",
        ),
        (Referee, |_, from| from.trusted = false, UNTRUSTED),
        (Player, |_, from| from.trusted = false, player), // only referees must be
    ];
    for (kind, change, expected) in rows {
        let mut league = gathered(2, &[2]);
        league.rules.max_players = 3;
        league
            .rules
            .listed
            .iter_mut()
            .filter(|listed| listed.id == "P04")
            .for_each(|listed| listed.active = false);
        let (mut meta, mut from) = (meta(*kind, &local(9000)), caller("player:late"));
        change(&mut meta, &mut from);
        assert_eq!(outcome(&mut league, &meta, &from), *expected, "{meta:?}");
    }
}

/// Comes so many seconds after the first registration.
fn later(from: &mut Caller, seconds: u64) {
    from.now = at("10:00:00").plus(Duration::from_secs(seconds));
}

#[test]
fn whoever_comes_again_is_known_by_its_token_or_before_the_start_by_its_address() {
    const DAY: u64 = 24 * 3600;
    fn own(from: &mut Caller) {
        from.token = Some("tok-p01-first".into());
    }
    fn same(from: &mut Caller) {
        from.conversation = "conv-first";
    }
    let anew = "P01 tok-p01-first x2";
    let [was, renewed] = ["P01 tok-p01-first as it was", "P01 tok-p01-again x2"];
    let taken = "Contact endpoint unreachable: contact_endpoint is P02's";
    let referee = "Endpoint unreachable: contact_endpoint is P01's";
    let elsewhere = "Contact endpoint unreachable: contact_endpoint is P01's, whose token must come with the request";
    let late = "E019 Registration closed - league already started";
    let closed =
        &*format!("{late}: contact_endpoint is P01's, whose token must come with the request");
    // It comes an hour later as P01 came, but for the change and a new conversation: before the start, and after it.
    let rows: &[(&str, Change, &str, &str)] = &[
        ("own token", |_, from| own(from), was, was),
        (
            "own token, from anywhere",
            |_, from| (own(from), from.peer = ELSEWHERE).0,
            was,
            was,
        ),
        (
            "own token, the first conversation",
            |_, from| (own(from), same(from)).0,
            was,
            was,
        ),
        (
            "own token, half its life",
            |_, from| (own(from), later(from, DAY / 2)).0,
            was,
            was,
        ),
        (
            "own token, less than half its life",
            |_, from| (own(from), later(from, DAY / 2 + 1)).0,
            anew,
            anew,
        ),
        (
            "own token, expired",
            |_, from| (own(from), later(from, DAY)).0,
            anew,
            anew,
        ),
        (
            "own token, another name",
            |it, from| (own(from), it.display_name = "Other".into()).0,
            anew,
            anew,
        ),
        (
            "own token, a new endpoint",
            |it, from| (own(from), it.contact_endpoint = local(9000)).0,
            anew,
            anew,
        ),
        (
            "own token, at another's",
            |it, from| (own(from), it.contact_endpoint = local(8102)).0,
            taken,
            taken,
        ),
        (
            "the first request, within a minute",
            |_, from| (same(from), later(from, 60)).0,
            was,
            was,
        ),
        (
            "the first request, after a minute",
            |_, from| (same(from), later(from, 61)).0,
            renewed,
            closed,
        ),
        (
            "the same, a new manager",
            |_, from| (same(from), from.running_since = at("10:59:00")).0,
            was,
            was,
        ),
        (
            "the same, a manager too old",
            |_, from| (same(from), from.running_since = at("10:58:59")).0,
            renewed,
            closed,
        ),
        (
            "by our word",
            |_, from| (same(from), later(from, 9), from.has_conversation = false).0,
            renewed,
            closed,
        ),
        (
            "from elsewhere",
            |_, from| (same(from), later(from, 9), from.peer = ELSEWHERE).0,
            elsewhere,
            closed,
        ),
        ("no token", |_, _| {}, renewed, closed),
        (
            "in other letters",
            |it, _| it.contact_endpoint = "HTTP://127.0.0.1:8101/mcp".into(),
            renewed,
            closed,
        ),
        (
            "an unknown token",
            |_, from| from.token = Some("tok-p01-guess".into()),
            renewed,
            closed,
        ),
        (
            "no token, from another address",
            |_, from| from.peer = ELSEWHERE,
            elsewhere,
            closed,
        ),
        (
            "no token, room full",
            |it, _| it.contact_endpoint = local(9000),
            "Maximum players reached: 2 may register",
            late,
        ),
        (
            "a referee's token",
            |_, from| from.token = Some("tok-ref01-first".into()),
            renewed,
            closed,
        ),
        (
            "as a referee",
            |it, _| (it.kind, it.max_concurrent_matches) = (Referee, 2),
            referee,
            referee,
        ),
    ];
    for (row, change, before, after) in rows {
        for (mut league, expected) in [(gathered(2, &[2]), before), (started(2, &[2]), after)] {
            league.rules.max_players = 2;
            let first = league.members["P01"].clone();
            let mut meta = AgentMeta {
                display_name: "Player 1".into(),
                ..meta(Player, &first.endpoint)
            };
            let mut from = Caller {
                conversation: "conv-again",
                secret: "again".into(),
                ..caller("player:again")
            };
            later(&mut from, 3600);
            change(&mut meta, &mut from);
            let row = format!("{row}, started: {}", league.started);
            assert_eq!(outcome(&mut league, &meta, &from), *expected, "{row}");
            let old = league
                .identify("player:P01", Some(&first.token), from.now)
                .map(|_| ())
                .map_err(|no| no.code);
            let void = league.members["P01"].token != first.token;
            assert_eq!(
                old,
                if void { Err(Code::E012) } else { Ok(()) },
                "{row}: the old token"
            );
            assert_eq!(
                league.members["P01"].alias, first.alias,
                "{row}: the alias stays"
            );
        }
    }
}

#[test]
fn a_referee_may_come_late_only_where_none_is_left() {
    let late = "E019 League already started";
    let closed =
        &*format!("{late}: contact_endpoint is REF01's, whose token must come with the request");
    let own = Some("tok-ref01-first");
    // A new endpoint or the first one, its token, whether it is trusted, and whether a referee is wanted.
    let rows = [
        (9000, None, true, false, late),
        (9000, None, true, true, "REF03 tok-ref03-again x1"),
        (8001, None, true, true, "REF01 tok-ref01-again x2"),
        (9000, None, false, true, UNTRUSTED),
        (9000, own, true, false, "REF01 tok-ref01-first x2"),
        (8001, own, false, false, "REF01 tok-ref01-first as it was"),
        (8001, None, true, false, closed),
    ];
    for (port, token, trusted, referee_wanted, expected) in rows {
        let (token, conversation, secret) = (token.map(String::from), "conv-again", "again".into());
        let from = Caller {
            token,
            trusted,
            referee_wanted,
            conversation,
            secret,
            ..caller("referee:late")
        };
        let outcome = outcome(&mut started(2, &[2]), &meta(Referee, &local(port)), &from);
        assert_eq!(
            outcome, expected,
            "port {port}, trusted: {trusted}, wanted: {referee_wanted}"
        );
    }
    let from = Caller {
        referee_wanted: true,
        ..caller("player:late")
    };
    let player = outcome(&mut started(2, &[2]), &meta(Player, &local(9000)), &from);
    assert_eq!(
        player, "E019 Registration closed - league already started",
        "a referee is wanted, not a player"
    );
}

#[test]
fn the_answer_tells_who_one_is_and_that_the_manager_proves_itself() {
    let answer = |port: usize| {
        register(
            &started(2, &[2]),
            &meta(Referee, &local(port)),
            &caller("referee:late"),
        )
    };
    let accepted = json!({"status": "ACCEPTED", "referee_id": "REF01", "auth_token": "tok-ref01-first",
        "league_id": "paper", "reason": null, "proves_itself": true});
    assert_eq!(json!(answer(8001).for_referee("paper")), accepted);
    let late = "League already started";
    let rejected =
        json!({"status": "REJECTED", "player_id": null, "reason": late, "error_code": "E019"});
    assert_eq!(json!(answer(9000).for_player("paper")), rejected);
}

#[test]
fn a_request_is_its_senders_by_its_own_token() {
    let mut league = gathered(2, &[2]);
    enter(
        &mut league,
        &meta(Player, &local(9000)),
        &caller("player:alpha"),
    );
    enter(
        &mut league,
        &meta(Player, &local(9001)),
        &caller("referee:REF01"),
    ); // P06, under a false name
    let (good, void) = (
        at("10:00:01"),
        at("10:00:00").plus(league.rules.token_lifetime),
    );
    // Sender, token, when, who it is or the code, and the same where tokens are switched off.
    let rows = [
        ("player:P01", Some("tok-p01-first"), good, "P01", "P01"),
        (
            "referee:REF01",
            Some("tok-ref01-first"),
            good,
            "REF01",
            "REF01",
        ),
        ("referee:REF01", Some("tok-p06-first"), good, "P06", "REF01"),
        ("player:alpha", Some("tok-p05-first"), good, "P05", "P05"),
        ("player:P01", None, good, "E011 auth_token", "P01"),
        ("player:P77", None, good, "E011 auth_token", "E005 sender"),
        (
            "player:P77",
            Some("tok-p01-first"),
            good,
            "E005 sender",
            "E005 sender",
        ),
        (
            "referee:REF77",
            Some("tok-ref01-first"),
            good,
            "E013 sender",
            "E013 sender",
        ),
        (
            "referee:P01",
            Some("tok-p01-first"),
            good,
            "E013 sender",
            "E013 sender",
        ),
        (
            "player:REF01",
            Some("tok-ref01-first"),
            good,
            "E005 sender",
            "E005 sender",
        ),
        (
            "P01",
            Some("tok-p01-first"),
            good,
            "E005 sender",
            "E005 sender",
        ),
        (
            "",
            Some("tok-p01-first"),
            good,
            "E005 sender",
            "E005 sender",
        ),
        (
            "player:P01",
            Some("tok-p01-firs"),
            good,
            "E012 auth_token",
            "P01",
        ),
        (
            "player:P01",
            Some("TOK-P01-FIRST"),
            good,
            "E012 auth_token",
            "P01",
        ),
        (
            "player:P01",
            Some("tok-p02-first"),
            good,
            "E012 auth_token",
            "P01",
        ),
        (
            "player:alpha",
            Some("tok-p01-first"),
            good,
            "E012 auth_token",
            "P05",
        ),
        (
            "player:P01",
            Some("tok-ref01-first"),
            good,
            "E012 auth_token",
            "P01",
        ),
        (
            "player:P01",
            Some("tok-p01-first"),
            void,
            "E012 auth_token",
            "P01",
        ),
    ];
    for (sender, token, now, on, off) in rows {
        for (tokens, expected) in [(true, on), (false, off)] {
            league.rules.tokens = tokens;
            let found = match league.identify(sender, token, now) {
                Ok(member) => member.id.clone(),
                Err(no) => format!("{} {}", no.code, no.field_name().unwrap()),
            };
            assert_eq!(
                found, expected,
                "{sender} with {token:?} at {now}, tokens: {tokens}"
            );
        }
    }
    assert_eq!(
        league.holder("tok-p05-first").map(|it| &*it.id),
        Some("P05")
    );
    assert_eq!(league.holder("tok-p05"), None);
}
