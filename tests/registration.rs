//! Who gets in, under which id, with which token, and whose request a request is (R4, R5): rows over the pure rules.

mod support;

use league::{
    league::{Event, League},
    protocol::{Code, Kind},
    registration::{Applicant, Profile},
};
use support::paper::{ELSEWHERE, applicant, at, enter, gathered, happen, local, profile, rules, started};

/// What comes of a registration, in one line; and it happens.
fn outcome(league: &mut League, profile: &Profile, from: &Applicant) -> String {
    match league.register(profile, from) {
        Ok((None, member)) => format!("no event {} {}", member.id, member.token),
        Ok((event, member)) => {
            assert_eq!(event, Some(Event::Registered(member.clone())), "the event is what was answered");
            assert_eq!(member.endpoint, profile.contact_endpoint, "the endpoint is kept as given");
            happen(league, event);
            format!("{} {} x{}", member.id, member.token, member.registrations)
        }
        Err(no) => format!("{}{}", no.code.map_or(String::new(), |code| format!("{code} ")), no.reason),
    }
}

/// What is different in a row.
type Change = fn(&mut Profile, &mut Applicant);

#[test]
fn ids_are_listed_or_asked_for_or_the_lowest_free() {
    use Kind::{Player, Referee};
    let mut league = League::new(rules());
    let here = applicant("").peer;
    // One after the other: kind, sender, endpoint, from where, the id, and why.
    let rows = [
        (Player, "player:alpha", "http://127.0.0.1:8102/mcp", here, "P02", "the id of its listed endpoint"),
        (Player, "player:P01", "http://LOCALHOST:8103/mcp", here, "P03", "listed, whatever it asks for"),
        (Player, "player:P07", "http://localhost:9001/mcp", here, "P07", "asked for"),
        (Player, "player:P07", "http://localhost:9002/mcp", here, "P05", "held, so the lowest free: P01, P04 listed"),
        (Player, "player:P04", "http://10.0.0.7:9003/mcp", ELSEWHERE, "P06", "listed for another endpoint"),
        (Player, "player:P04", "http://localhost:9004/mcp", here, "P04", "loopback takes it, unused as it is"),
        (Player, "player:beta", "http://localhost:8104/mcp", here, "P08", "its listed id is held already"),
        (Player, "player:P7", "http://localhost:9005/mcp", here, "P09", "not well-formed"),
        (Player, "player:P012", "http://localhost:9006/mcp", here, "P10", "not well-formed"),
        (Player, "player:P00", "http://localhost:9007/mcp", here, "P11", "numbers begin with 1"),
        (Player, "player:REF05", "http://localhost:9008/mcp", here, "P12", "a referee's id"),
        (Player, "referee:P20", "http://localhost:9009/mcp", here, "P13", "another kind of sender"),
        (Player, "player:P120", "http://10.0.0.7:9010/mcp", ELSEWHERE, "P120", "well-formed, and from elsewhere"),
        (Player, "player:gamma", "http://localhost:8001/mcp", here, "P14", "an endpoint listed for a referee"),
        (Referee, "referee:REF01", "http://localhost:9011/mcp", here, "REF03", "the endpoint of REF01 is used"),
        (Referee, "referee:REF05", "http://localhost:9012/mcp", here, "REF05", "asked for"),
        (Referee, "referee:P21", "http://localhost:9013/mcp", here, "REF04", "a player's id"),
        (Referee, "referee:alpha", "http://127.0.0.1:8002/mcp", here, "REF02", "the id of its listed endpoint"),
    ];
    for (kind, sender, endpoint, peer, id, why) in rows {
        let member = enter(&mut league, &profile(kind, endpoint), &Applicant { peer, ..applicant(sender) });
        assert_eq!(member.id, id, "{sender} at {endpoint}: {why}");
        assert_eq!((&*member.endpoint, &*member.alias, member.kind), (endpoint, sender, kind), "{sender}");
        assert_eq!(
            (member.token, member.expires),
            (format!("tok-{}-first", id.to_lowercase()), at("10:00:00").plus(league.rules.token_lifetime))
        );
    }
}

#[test]
fn after_p99_comes_p100() {
    let mut league = League::new(rules());
    league.rules.listed.clear();
    let ids: Vec<String> = (1..=101)
        .map(|n| enter(&mut league, &profile(Kind::Player, &local(9000 + n)), &applicant("player:somebody")).id)
        .collect();
    assert_eq!((&*ids[0], &*ids[98], &*ids[99], &*ids[100]), ("P01", "P99", "P100", "P101"));
    assert_eq!(
        league.members(Kind::Player).iter().map(|player| &player.id).collect::<Vec<_>>(),
        ids.iter().collect::<Vec<_>>()
    );
}

#[test]
fn whoever_is_refused_learns_why() {
    use Kind::{Player, Referee};
    let version = "Invalid version: must be MAJOR.MINOR.PATCH, like 1.0.0";
    let unreachable =
        "Contact endpoint unreachable: contact_endpoint must be an absolute URL like http://localhost:8101/mcp";
    let mismatch = "E018 Protocol version mismatch: protocol_version must be 2.x.y";
    let matches = "Invalid max_concurrent_matches: must be 1 to 10";
    let game = "Unsupported game type: game_types must have one of even_odd";
    let rows: &[(Kind, Change, &str)] = &[
        (Player, |it, _| it.display_name = "".into(), "Invalid display_name: got 0 characters, must be 1 to 50"),
        (Player, |it, _| it.display_name = "ü".repeat(51), "Invalid display_name: got 51 characters, must be 1 to 50"),
        (Player, |it, _| it.version = "1.0".into(), version),
        (Player, |it, _| it.version = "1.0.0.0".into(), version),
        (Player, |it, _| it.version = "1.x.0".into(), version),
        (Player, |it, _| it.version = "1..0".into(), version),
        (Player, |it, _| it.version = "v1.0.0".into(), version),
        (Player, |it, _| it.version = "1.+0.0".into(), version),
        (Referee, |it, _| it.version = "".into(), version),
        (Player, |it, _| it.game_types = vec!["chess".into()], game),
        (Referee, |it, _| it.game_types.clear(), game),
        (Player, |it, _| it.contact_endpoint = "localhost:8101/mcp".into(), unreachable),
        (Player, |it, _| it.contact_endpoint = "ftp://localhost/mcp".into(), unreachable),
        (Player, |it, _| it.contact_endpoint = "http://localhost:0/mcp".into(), unreachable),
        (Player, |it, _| it.contact_endpoint = "http:///mcp".into(), unreachable),
        (Player, |it, _| it.contact_endpoint = "http://local host/mcp".into(), unreachable),
        (
            Referee,
            |it, _| it.contact_endpoint = "".into(),
            "Endpoint unreachable: contact_endpoint must be an absolute URL like http://localhost:8101/mcp",
        ),
        (Referee, |it, _| it.max_concurrent_matches = Some(0), matches),
        (Referee, |it, _| it.max_concurrent_matches = Some(11), matches),
        (Player, |it, _| it.protocol_version = Some("1.9.0".into()), mismatch),
        (Player, |it, _| it.protocol_version = Some("20.0.0".into()), mismatch),
        (Referee, |it, _| it.protocol_version = Some("".into()), mismatch),
        (Player, |_, from| from.room = 2, "Maximum players reached: 2 may register"),
        (
            Player,
            |it, _| it.contact_endpoint = local(8104),
            "Not active: the agents configuration lists P04 as inactive",
        ),
        (
            Referee,
            |_, from| from.trusted = false,
            "Not permitted: referees register from this machine, from their listed host, or with the operator token",
        ),
    ];
    let mut league = gathered(2, &[2]);
    league.rules.listed.iter_mut().filter(|listed| listed.id == "P04").for_each(|listed| listed.active = false);
    for (kind, change, reason) in rows {
        let (mut profile, mut from) = (profile(*kind, &local(9000)), applicant("player:late"));
        change(&mut profile, &mut from);
        assert_eq!(outcome(&mut league, &profile, &from), *reason, "{profile:?}");
    }
    assert_eq!(league.members.len(), 3);
    #[cfg(not(feature = "https"))]
    assert_eq!(
        outcome(&mut league, &profile(Player, "https://localhost/mcp"), &applicant("player:tls")),
        "Contact endpoint unreachable: contact_endpoint must be an http URL: this build has no https (feature `https`)"
    );
}

#[test]
fn the_limits_themselves_are_legal() {
    let rows: &[Change] = &[
        |it, _| it.display_name = "x".into(),
        |it, _| it.display_name = "ü".repeat(50),
        |it, _| it.display_name = "Player 1".into(), // somebody else's
        |it, _| it.version = "10.20.30".into(),
        |it, _| it.game_types = vec!["chess".into(), "even_odd".into()],
        |it, _| it.contact_endpoint = "http://example.org".into(),
        |it, _| it.contact_endpoint = "http://[::1]:9000/a/b?c=d".into(),
        |it, _| it.protocol_version = Some("2.0.0".into()),
        |it, _| it.protocol_version = Some("2.7.1".into()),
        |_, from| from.room = 3,
        |_, from| from.trusted = false, // only referees must be
        |it, _| (it.kind, it.max_concurrent_matches) = (Kind::Referee, Some(1)),
        |it, _| (it.kind, it.max_concurrent_matches) = (Kind::Referee, Some(10)),
    ];
    for change in rows {
        let (mut profile, mut from) = (profile(Kind::Player, &local(9000)), applicant("player:late"));
        change(&mut profile, &mut from);
        let outcome = outcome(&mut gathered(2, &[2]), &profile, &from);
        assert!(outcome == "P05 tok-p05-first x1" || outcome == "REF03 tok-ref03-first x1", "{outcome}: {profile:?}");
    }
}

#[test]
fn whoever_comes_again_is_known_by_its_token_or_before_the_start_by_its_address() {
    const OWN: Option<&str> = Some("tok-p01-first");
    let taken = "Contact endpoint unreachable: contact_endpoint is P02's";
    let elsewhere = "Contact endpoint unreachable: contact_endpoint is P01's, whose token must come with the request";
    let closed = "E019 Registration closed - league already started: contact_endpoint is P01's, whose token must come with the request";
    let late = "E019 Registration closed - league already started";
    // It comes as P01 came, from its endpoint, but for the change and a new conversation.
    let rows: &[(&str, Change, &str, &str)] = &[
        ("own token", |_, from| from.token = OWN, "P01 tok-p01-first x2", "P01 tok-p01-first x2"),
        (
            "own token, from anywhere, at a new endpoint, with the room full",
            |it, from| {
                *from = Applicant { token: OWN, peer: ELSEWHERE, room: 2, ..from.clone() };
                it.contact_endpoint = "http://10.0.0.7:9000/mcp".into();
            },
            "P01 tok-p01-first x2",
            "P01 tok-p01-first x2",
        ),
        (
            "own token, expired",
            |_, from| (from.token, from.now) = (OWN, at("10:00:00").plus(rules().token_lifetime)),
            "P01 tok-p01-again x2",
            "P01 tok-p01-again x2",
        ),
        (
            "own token, a second before it expires",
            |_, from| (from.token, from.now) = (OWN, at("09:59:59").plus(rules().token_lifetime)),
            "P01 tok-p01-first x2",
            "P01 tok-p01-first x2",
        ),
        (
            "own token in the first conversation",
            |_, from| (from.token, from.conversation_id) = (OWN, "conv-first"),
            "P01 tok-p01-first x2",
            "P01 tok-p01-first x2",
        ),
        (
            "own token at another's endpoint",
            |it, from| (from.token, it.contact_endpoint) = (OWN, local(8102)),
            taken,
            taken,
        ),
        (
            "the first request again",
            |_, from| from.conversation_id = "conv-first",
            "no event P01 tok-p01-first",
            "no event P01 tok-p01-first",
        ),
        (
            "the first request from another address",
            |_, from| (from.conversation_id, from.peer) = ("conv-first", ELSEWHERE),
            elsewhere,
            closed,
        ),
        ("no token", |_, _| {}, "P01 tok-p01-again x2", closed),
        (
            "no token, the endpoint in other letters",
            |it, _| it.contact_endpoint = "HTTP://127.0.0.1:8101/mcp".into(),
            "P01 tok-p01-again x2",
            closed,
        ),
        ("an unknown token", |_, from| from.token = Some("tok-p01-guess"), "P01 tok-p01-again x2", closed),
        ("no token, from another address", |_, from| from.peer = ELSEWHERE, elsewhere, closed),
        ("no token, at a new endpoint", |it, _| it.contact_endpoint = local(9000), "P05 tok-p05-again x1", late),
        (
            "a referee's token, at a new endpoint",
            |it, from| (from.token, it.contact_endpoint) = (Some("tok-ref01-first"), local(9000)),
            "P05 tok-p05-again x1",
            late,
        ),
        (
            "as a referee at a player's endpoint",
            |it, _| (it.kind, it.max_concurrent_matches) = (Kind::Referee, Some(2)),
            "Endpoint unreachable: contact_endpoint is P01's",
            "Endpoint unreachable: contact_endpoint is P01's",
        ),
    ];
    for (row, change, before, after) in rows {
        for (mut league, expected) in [(gathered(2, &[2]), before), (started(2, &[2]), after)] {
            let first = league.members["P01"].clone();
            let mut profile = profile(Kind::Player, &first.endpoint);
            let mut from = Applicant { conversation_id: "conv-again", secret: "again", ..applicant("player:again") };
            change(&mut profile, &mut from);
            let row = format!("{row}, started: {}", league.started);
            assert_eq!(outcome(&mut league, &profile, &from), *expected, "{row}");
            let old = league.identify("player:P01", OWN, from.now).map(|_| ()).map_err(|no| no.code);
            let void = league.members["P01"].token != first.token;
            assert_eq!(old, if void { Err(Code::E012) } else { Ok(()) }, "{row}: the old token");
            assert_eq!(league.members["P01"].alias, first.alias, "{row}: the alias stays");
        }
    }
}

#[test]
fn a_referee_may_come_late_only_where_none_is_left() {
    const OWN: Option<&str> = Some("tok-ref01-first");
    let late = "E019 League already started";
    let untrusted =
        "Not permitted: referees register from this machine, from their listed host, or with the operator token";
    // A new endpoint or the first one, its token, whether it is trusted, and whether a referee is wanted.
    let rows = [
        (9000, None, true, false, late),
        (9000, None, true, true, "REF03 tok-ref03-again x1"),
        (8001, None, true, true, "REF01 tok-ref01-again x2"),
        (9000, None, false, true, untrusted),
        (9000, OWN, true, false, "REF01 tok-ref01-first x2"),
        (9000, OWN, false, false, "REF01 tok-ref01-first x2"),
        (
            8001,
            None,
            true,
            false,
            "E019 League already started: contact_endpoint is REF01's, whose token must come with the request",
        ),
    ];
    for (port, token, trusted, referee_wanted, expected) in rows {
        let from = Applicant {
            token,
            trusted,
            referee_wanted,
            conversation_id: "conv-again",
            secret: "again",
            ..applicant("referee:late")
        };
        let outcome = outcome(&mut started(2, &[2]), &profile(Kind::Referee, &local(port)), &from);
        assert_eq!(outcome, expected, "port {port}, {token:?}, trusted: {trusted}, wanted: {referee_wanted}");
    }
    let from = Applicant { referee_wanted: true, ..applicant("player:late") };
    let player = outcome(&mut started(2, &[2]), &profile(Kind::Player, &local(9000)), &from);
    assert_eq!(player, "E019 Registration closed - league already started", "a referee is wanted, not a player");
}

#[test]
fn a_request_is_its_senders_by_its_own_token() {
    let mut league = gathered(2, &[2]);
    enter(&mut league, &profile(Kind::Player, &local(9000)), &applicant("player:alpha"));
    enter(&mut league, &profile(Kind::Player, &local(9001)), &applicant("referee:REF01")); // P06, under a false name
    let (good, void) = (at("10:00:01"), at("10:00:00").plus(league.rules.token_lifetime));
    // Sender, token, when, who it is or the code, and the same where tokens are switched off.
    let rows = [
        ("player:P01", Some("tok-p01-first"), good, "P01", "P01"),
        ("referee:REF01", Some("tok-ref01-first"), good, "REF01", "REF01"),
        ("referee:REF01", Some("tok-p06-first"), good, "P06", "REF01"),
        ("player:alpha", Some("tok-p05-first"), good, "P05", "P05"),
        ("player:P05", Some("tok-p05-first"), good, "P05", "P05"),
        ("player:P01", None, good, "E011 auth_token", "P01"),
        ("player:P77", None, good, "E011 auth_token", "E005 sender"),
        ("player:P77", Some("tok-p01-first"), good, "E005 sender", "E005 sender"),
        ("referee:REF77", Some("tok-ref01-first"), good, "E013 sender", "E013 sender"),
        ("referee:P01", Some("tok-p01-first"), good, "E013 sender", "E013 sender"),
        ("player:REF01", Some("tok-ref01-first"), good, "E005 sender", "E005 sender"),
        ("P01", Some("tok-p01-first"), good, "E005 sender", "E005 sender"),
        ("launcher", Some("tok-p01-first"), good, "E005 sender", "E005 sender"),
        ("player:P01", Some(""), good, "E012 auth_token", "P01"),
        ("player:P01", Some("tok-p01-guess"), good, "E012 auth_token", "P01"),
        ("player:P01", Some("tok-p01-firs"), good, "E012 auth_token", "P01"),
        ("player:P01", Some("TOK-P01-FIRST"), good, "E012 auth_token", "P01"),
        ("player:P01", Some("tok-p02-first"), good, "E012 auth_token", "P01"),
        ("player:alpha", Some("tok-p01-first"), good, "E012 auth_token", "P05"),
        ("player:P01", Some("tok-ref01-first"), good, "E012 auth_token", "P01"),
        ("player:P01", Some("tok-p01-first"), void, "E012 auth_token", "P01"),
        ("player:P77", Some("tok-p01-first"), void, "E005 sender", "E005 sender"),
    ];
    for (sender, token, now, on, off) in rows {
        for (tokens, expected) in [(true, on), (false, off)] {
            league.rules.tokens = tokens;
            let found = match league.identify(sender, token, now) {
                Ok(member) => member.id.clone(),
                Err(no) => format!("{} {}", no.code, no.context["field"].as_str().unwrap()),
            };
            assert_eq!(found, expected, "{sender} with {token:?} at {now}, tokens: {tokens}");
        }
    }
}
