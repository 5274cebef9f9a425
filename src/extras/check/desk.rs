//! The desk is where the agent registers. We listen as the league manager, and as the two players
//! that a referee is given. Whatever comes is kept, and only what asks to be let in is taken for
//! the registration, so an agent may look around before. Everybody is let in. Some agents register
//! by a tool of the Model Context Protocol, so the desk answers that protocol as a manager does.

use super::*;
use crate::net::http::{self, Reply, Service, Visitor};
use crate::net::letter::answered;
use std::net::TcpListener;

/// Listens, and comes back when an agent has registered and listens too.
pub fn open(args: Args) -> Result<Arc<Exam>, Stop> {
    end_with_stdin(&args, 1, || ());
    let say = if args.has("--json") { complain } else { say };
    let program = Program::new(args, Kind::Manager)?;
    let player = || http::listen("127.0.0.1", 0).map_err(Stop::failed);
    let listeners = [program.listener.try_clone()?, player()?, player()?];
    let url = |it: &TcpListener| it.local_addr().map(|it| format!("http://{it}/mcp"));
    let exam = Arc::new(Exam {
        players: [url(&listeners[1])?, url(&listeners[2])?],
        program,
        say,
        steps: Mutex::default(),
    });
    for (who, listener) in ["manager", "P01", "P04"].into_iter().zip(listeners) {
        http::serve(listener, MAX_NOTICE, Arc::new(Ear(Arc::clone(&exam), who)))?;
    }
    say(&format!("listening on {}", exam.program.endpoint));
    say("an examination, no league: start your agent now, as always");
    while exam.heard(REGISTRATION).is_empty() {
        pause(Duration::from_millis(10));
    }
    pause(Duration::from_millis(200)); // it has to read that it is in
    let limit = exam.timeouts().game_join_ack_timeout_sec;
    until(limit, || {
        exam.post("", &call("ping", json!({}), 1), limit).status != 0
    });
    Ok(exam)
}

/// An endpoint of ours, and which of us it is.
struct Ear(Arc<Exam>, &'static str);

impl Service for Ear {
    fn call(&self, body: &[u8], _: &Visitor) -> Reply {
        let (Ear(exam, who), mut asked) = (self, Exchange::new("", 200, body));
        let (name, match_id) = (asked.text("message_type"), asked.text("match_id"));
        asked.step = match asked.speaks_of("REGIST") {
            true => REGISTRATION.into(),
            false => format!("{who} {name} {match_id}"),
        };
        lock(&exam.steps).push(asked.clone());
        let answer = match *who {
            "manager" => exam.manage(&asked),
            who => exam.play_as(who, &asked),
        };
        let Some(mut answer) = answer else {
            return Reply::new("503 Service Unavailable", "");
        };
        let same = ["conversation_id", "match_id"];
        let same = same.map(|key| (key, asked.message()[key].clone()));
        fill(&mut answer, same);
        if asked.json["method"] == "tools/call" {
            let content = json!([{"type": "text", "text": answer.to_string()}]);
            answer = json!({"content": content, "structuredContent": answer, "isError": false});
        }
        match &asked.json["id"] {
            _ if asked.is_bare() => Reply::new("200 OK", answer.to_string()),
            Value::Null if asked.step != REGISTRATION => Reply::new("202 Accepted", ""),
            id => Reply::new("200 OK", answered(&answer, id)),
        }
    }
}

impl Exam {
    /// What the manager answers. The first report of the first match is not heard, so that it must
    /// be repeated.
    fn manage(&self, asked: &Exchange) -> Option<Value> {
        let answer = match (asked.text("message_type"), asked.method()) {
            _ if asked.step == REGISTRATION => match self.kind() {
                Kind::Referee => RefereeRegisterResponse::NAME,
                _ => LeagueRegisterResponse::NAME,
            },
            (MatchResultReport::NAME, _)
                if asked.step.ends_with("R1M1") && self.heard(&asked.step).len() == 1 =>
            {
                return None;
            }
            (MatchResultReport::NAME, _) => MatchResultAck::NAME,
            (_, "initialize") => {
                return Some(json!({
                    "protocolVersion": asked.json["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "league_manager", "version": env!("CARGO_PKG_VERSION")},
                }));
            }
            (_, "tools/list") => {
                let described = |it: &Entry| json!({"name": it.tool, "inputSchema": it.schema()});
                let tools = Entry::served_by(Kind::Manager).map(described);
                return Some(json!({"tools": tools.collect::<Vec<_>>()}));
            }
            (_, "ping") => return Some(json!({})),
            _ => LeagueError::NAME,
        };
        Some(self.message(answer, "R1M1"))
    }
}
