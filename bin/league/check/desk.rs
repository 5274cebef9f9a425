//! The desk is where the agent registers. We listen as the league manager, and as the two players
//! that a referee is given. Whatever comes is kept, and only what asks to be let in is taken for
//! the registration, so an agent may look around before. Everybody is let in. Some agents register
//! by a tool of the Model Context Protocol, so the desk answers that protocol as a manager does.

use super::*;
use league::net::http::{self, Response};
use std::net::TcpListener;

/// Listens, and comes back when an agent has registered and listens too.
pub fn open(args: Args) -> Result<Arc<Exam>, Exit> {
    exit_when_stdin_closes(&args, 1, || ());
    let say = if args.has("--json") {
        print_error
    } else {
        print_line
    };
    let program = Program::new(args, AgentKind::Manager)?;
    let player = || http::listen("127.0.0.1", 0).map_err(Exit::failed);
    let listeners = [program.listener.try_clone()?, player()?, player()?];
    let url = |it: &TcpListener| it.local_addr().map(|it| format!("http://{it}/mcp"));
    let exam = Arc::new(Exam {
        players: [url(&listeners[1])?, url(&listeners[2])?],
        program,
        say,
        steps: Mutex::default(),
    });
    for (who, listener) in ["manager", "P01", "P04"].into_iter().zip(listeners) {
        let ear = Ear(Arc::clone(&exam), who);
        let answer = move |asked: &http::HttpRequest| match &*asked.method {
            "POST" => ear.call(&asked.body),
            _ => Response::new("405 Method Not Allowed", "").with_headers("Allow: POST\r\n"),
        };
        http::serve(listener, MAX_NOTICE, Box::new(answer))?;
    }
    say(&format!("listening on {}", exam.program.endpoint));
    say("an examination, no league: start your agent now, as always");
    while exam.heard(REGISTRATION).is_empty() {
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(200)); // it has to read that it is in
    let limit = exam.timeouts().game_join_ack_timeout_sec.0;
    until(limit, || {
        exam.post("", &call("ping", json!({}), 1), limit).status != 0
    });
    Ok(exam)
}

/// An endpoint of ours, and which of us it is.
struct Ear(Arc<Exam>, &'static str);

impl Ear {
    fn call(&self, body: &[u8]) -> Response {
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
            return Response::new("503 Service Unavailable", "");
        };
        let same = ["conversation_id", "match_id"];
        let same = same.map(|key| (key, asked.message()[key].clone()));
        fill(&mut answer, same);
        if asked.json["method"] == "tools/call" {
            let content = json!([{"type": "text", "text": answer.to_string()}]);
            answer = json!({"content": content, "structuredContent": answer, "isError": false});
        }
        match &asked.json["id"] {
            _ if asked.is_bare() => Response::new("200 OK", answer.to_string()),
            Value::Null if asked.step != REGISTRATION => Response::new("202 Accepted", ""),
            id => {
                let reply = json!({"jsonrpc": "2.0", "result": answer, "id": id});
                Response::new("200 OK", reply.to_string())
            }
        }
    }
}

impl Exam {
    /// What the manager answers. The first report of the first match is not heard, so that it must
    /// be repeated.
    fn manage(&self, asked: &Exchange) -> Option<Value> {
        let answer = match (asked.text("message_type"), asked.method()) {
            _ if asked.step == REGISTRATION => match self.kind() {
                AgentKind::Referee => RefereeRegisterResponse::NAME,
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
                let described =
                    |it: &MessageSpec| json!({"name": it.method, "inputSchema": *it.schema});
                let tools = MessageSpec::accepted_by(AgentKind::Manager).map(described);
                return Some(json!({"tools": tools.collect::<Vec<_>>()}));
            }
            (_, "ping") => return Some(json!({})),
            _ => LeagueError::NAME,
        };
        Some(self.message(answer, "R1M1"))
    }
}
