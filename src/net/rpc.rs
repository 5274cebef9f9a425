//! JSON-RPC 2.0, the server side: from an HTTP request to the agent that answers it, and back.
//! Direct calls and tool calls take the same way, and one function writes every reply.
//!
//! Fields that a registration or a tool call leaves out are filled in where they are known (see
//! "Envelope" in `protocol.md`). A request is read once and logged in one line, its reply in
//! another. Read next: `mcp.rs`, the same handlers as tools.

use super::agent::{Agent, HandlerError, Request};
use super::client::{Client, MessageContext, new_conversation, ok};
use super::http::{HttpRequest, OK, Response, own_address_for};
use super::log::{Content, Level, text_field, to_json};
use super::mcp::{self, McpRequest};
use crate::json::{FieldError, decode};
use crate::protocol::{
    self, AgentKind, Envelope, ErrorCode, GameError, LeagueRegisterRequest, MatchResultReport,
    MessageSpec, ProtocolError, RefereeRegisterRequest, Reply,
};
use crate::values::{MAX_QUOTED_CHARS, peer_text, truncate};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const INVALID_REQUEST: &str = "Invalid Request: must be one object (batches are not supported) with \
    \"jsonrpc\": \"2.0\" and a \"method\" that is a string";

/// The bytes that some programs of Windows write before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The body of a POST to `/mcp`.
struct Incoming {
    /// The text of the id, as it came; none if it is a notification.
    id: Option<String>,
    /// The method; empty for a league message without a JSON-RPC object around it, which is
    /// answered without one, too.
    method: String,
    params: Value,
}

/// An agent as the HTTP server sees it.
pub struct RpcServer<A> {
    /// Answers the messages.
    pub agent: Arc<A>,
    /// Signs and logs.
    pub client: Arc<Client>,
    /// The origins of the pages of this agent.
    pub own_origins: Vec<String>,
    /// Prints a line on the terminal.
    pub print_error: fn(&str),
}

impl<A: Agent> RpcServer<A> {
    /// Answers a request: JSON-RPC at `/mcp`, pages elsewhere.
    pub fn handle(&self, http: &HttpRequest) -> Response {
        let method = &*http.method;
        if http.path == "/mcp" && method == "POST" {
            return self.post(http);
        }
        if http.path == "/mcp" {
            let accepts_html = http
                .header("Accept")
                .is_some_and(|accept| accept.contains("text/html"));
            if method == "GET" && accepts_html && self.page("/", http).is_some() {
                return Response::new("303 See Other", "").with_headers("Location: /\r\n");
            }
            return not_allowed("Allow: POST\r\n");
        }

        match self.page(http.path, http) {
            Some(page) if method == "GET" => page,
            Some(_) => not_allowed("Allow: GET\r\n"),
            None => {
                self.log_not_found(http.path, self.peer(http));
                Response::new("404 Not Found", "")
            }
        }
    }

    fn page(&self, path: &str, http: &HttpRequest) -> Option<Response> {
        if path == "/health" {
            return Some(Response::new(OK, self.agent.health().to_string()));
        }

        self.agent.page(path, http.query, self.peer(http))
    }

    /// Logs a request for a path or a method that does not exist.
    fn log_not_found(&self, name: &str, peer: IpAddr) {
        if self.client.log.may_log_unknown() {
            let name = truncate(name, MAX_QUOTED_CHARS);
            let text = format!("{} asked for {name}", peer_text(peer));
            self.client.log.event(Level::Warning, "not_found", &text);
            let is_mcp = name.contains('/') && !name.starts_with('/'); // resources/list
            if !is_mcp {
                self.agent.on_not_found(&text);
            }
        }
    }

    /// Returns true unless a browser sends the request for a foreign page. A page of this agent
    /// that came under another name, through a proxy, has the rights of another machine (`peer`).
    fn has_own_origin(&self, http: &HttpRequest) -> bool {
        match http.headers("Origin")[..] {
            [] => true,
            [origin] => {
                let host = http.header("Host").unwrap_or_default();
                let is_forwarded = origin.rsplit("//").next() == Some(host);
                self.is_own(origin) || is_forwarded
            }
            _ => false,
        }
    }

    /// Returns the address of the caller, 127.0.0.1 for this machine. A browser on this machine that
    /// was led here under a foreign host name counts as another machine.
    fn peer(&self, http: &HttpRequest) -> IpAddr {
        let host = http.header("Host");
        let has_own_name = host.is_none_or(|host| self.is_own(&format!("http://{host}")));
        match (http.peer.is_loopback(), has_own_name) {
            (true, false) => Ipv4Addr::UNSPECIFIED.into(),
            (true, true) => Ipv4Addr::LOCALHOST.into(),
            (false, true) if is_own_address(http.peer) => Ipv4Addr::LOCALHOST.into(),
            (false, _) => http.peer,
        }
    }

    fn is_own(&self, origin: &str) -> bool {
        let origin = origin.trim_end_matches(":80"); // a browser leaves it out
        self.own_origins
            .iter()
            .any(|own| own.eq_ignore_ascii_case(origin))
    }

    /// Answers a POST to `/mcp`.
    fn post(&self, http: &HttpRequest) -> Response {
        if !self.has_own_origin(http) {
            return Response::new("403 Forbidden", "");
        }

        let Incoming { id, method, params } = match parse_body(&http.body) {
            Ok(incoming) => incoming,
            Err(response) => return response,
        };
        match (id, self.answer(&method, params, http)) {
            (_, Ok(message)) if method.is_empty() => Response::new(OK, to_json(&message)),
            (None, _) => Response::new("202 Accepted", ""),
            (Some(id), Ok(result)) => {
                let result = to_json(&result);
                let reply = format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{id}}}"#);
                Response::new(OK, reply)
            }
            (Some(id), Err(error)) => error_response(&id, error),
        }
    }

    /// Answers a method of the Model Context Protocol, a league request, or a call of a tool.
    fn answer(
        &self,
        method: &str,
        params: Value,
        http: &HttpRequest,
    ) -> Result<Value, HandlerError> {
        if !params.is_object() {
            let error = FieldError::new(&params, "an object").in_field("params");
            return Err(HandlerError::json_rpc(-32602, error.to_string()));
        }

        let peer = self.peer(http);
        let request = McpRequest {
            method,
            params: &params,
            http,
        };
        if request.is_mcp() {
            let call_tool = |name: &str, arguments| self.run(name, arguments, peer, true);
            return mcp::answer(&request, &*self.agent, &self.client.sender(), call_tool);
        }

        self.run(method, params, peer, false)
    }

    /// Runs a league request or a tool. The `message_type` decides; the method may be the name of
    /// its tool, the message type itself, or unknown. The arguments of a tool call need no
    /// envelope.
    pub fn run(
        &self,
        method: &str,
        mut params: Value,
        peer: IpAddr,
        is_tool_call: bool,
    ) -> Result<Value, HandlerError> {
        let by_type = params["message_type"]
            .as_str()
            .and_then(MessageSpec::by_type);
        let by_method = MessageSpec::by_method(method);
        let Some(spec) = by_type.or(by_method) else {
            return match method {
                "" => self.answer_message(&params, peer, &[]), // of an unknown type: refused
                tool => self.run_tool(tool, &params, peer),
            };
        };
        if !spec.is_accepted_by(A::KIND) {
            return Err(HandlerError::not_found(A::KIND, spec.message_type));
        }
        if by_method.is_some_and(|named| named.method != spec.method) {
            let (message_type, own) = (spec.message_type, spec.method);
            let problem = format!("method {method}: {message_type} belongs to {own}");
            return Err(HandlerError::json_rpc(-32602, problem));
        }

        // Fill in what is known.
        let new_sender = match spec.message_type {
            RefereeRegisterRequest::NAME => Some("referee:new"),
            LeagueRegisterRequest::NAME => Some("player:new"),
            _ => None,
        };
        let mut defaults = Vec::new();
        if is_tool_call || new_sender.is_some() {
            defaults = protocol::fill_defaults(&mut params, |field| match field {
                "message_type" if is_tool_call => Some(spec.message_type.into()),
                "league_id" if is_tool_call => self.client.league_id(),
                "sender" => Some(new_sender.unwrap_or("launcher").into()),
                "conversation_id" => Some(new_conversation("supplied")),
                _ => None,
            });
        }
        self.answer_message(&params, peer, &defaults)
    }

    fn run_tool(&self, name: &str, arguments: &Value, peer: IpAddr) -> Result<Value, HandlerError> {
        let toolbox = self.agent.toolbox();
        let Some(tool) = toolbox.find(name) else {
            self.log_not_found(name, peer);
            return Err(HandlerError::not_found(A::KIND, name));
        };
        if tool.is_logged && self.client.log.may_log_unknown() {
            self.log_request("tool_called", arguments, &peer.to_string());
        }

        match catch_panic(|| (tool.run)(arguments, peer)) {
            Ok(result) => Ok(result),
            Err(error) => {
                let mut named = arguments.clone();
                named["message_type"] = tool.name.into();
                self.refuse(&named, peer, error)
            }
        }
    }

    /// Parses a message, has the agent handle it, and returns the reply.
    fn answer_message(
        &self,
        params: &Value,
        peer: IpAddr,
        defaults: &[&str],
    ) -> Result<Value, HandlerError> {
        let parsed = protocol::parse::<A::Requests>(params);
        let sender = text_field(params, "sender").unwrap_or_else(|| peer.to_string());

        let is_known = match &parsed {
            Ok(parsed) => self.agent.is_known(&parsed.envelope),
            Err(_) => false,
        };
        let is_logged = is_known || self.client.log.may_log_unknown();
        if is_logged {
            self.log_request("message_received", params, &sender);
        }

        let result = catch_panic(|| {
            let parsed = parsed?;
            if is_logged {
                self.client.log.warnings(&sender, defaults, &parsed);
            }
            self.check_league(params, &parsed.envelope)?;
            let envelope = parsed.envelope;
            self.agent
                .handle(&Request { envelope, peer }, parsed.message)
        });
        match result {
            Ok(None) => Ok(ok()),
            Ok(Some(message)) => Ok(self.reply(params, &message, is_logged)),
            Err(error) => self.refuse(params, peer, error),
        }
    }

    fn log_request(&self, event_type: &str, packet: &Value, from: &str) {
        let fields = vec![("peer", json!(from))];
        let log = &self.client.log;
        log.message(event_type, packet, fields, Content::Start(packet));
    }

    /// Refuses a message of another league.
    fn check_league(&self, params: &Value, envelope: &Envelope) -> Result<(), ProtocolError> {
        match (&envelope.league_id, self.client.league_id()) {
            (Some(received), Some(own)) if *received != own => {
                let code = match params["message_type"] == MatchResultReport::NAME {
                    true => ErrorCode::MatchMismatch,
                    false => ErrorCode::MissingField,
                };
                let problem = format!("got {:?}, expected {own:?}", truncate(received, 60));
                Err(ProtocolError::field(code, "league_id", problem))
            }
            _ => Ok(()),
        }
    }

    /// Answers a request that failed: a refusal is a message, other errors are JSON-RPC errors.
    fn refuse(
        &self,
        request: &Value,
        peer: IpAddr,
        error: HandlerError,
    ) -> Result<Value, HandlerError> {
        let refusal = match &error {
            HandlerError::Refused(refusal) => refusal,
            HandlerError::Internal(reason) => {
                if self.client.log.error(reason) {
                    (self.print_error)(reason);
                }
                return Err(error);
            }
            HandlerError::JsonRpc(_) => return Err(error),
        };

        let is_logged = self.client.log.may_log_unknown();
        if is_logged {
            self.agent.on_refused(request, peer, refusal);
        }
        Ok(self.reply(request, &self.error_message(request, refusal), is_logged))
    }

    /// Returns a refusal as a message: GAME_ERROR if the match is readable and the agent plays or
    /// referees it, else LEAGUE_ERROR. See "Errors" in `protocol.md`.
    fn error_message(&self, request: &Value, refusal: &ProtocolError) -> Reply {
        let original = text_field(request, "message_type").unwrap_or("UNKNOWN".into());
        let error = refusal.league_error(&original);

        let match_id = text_field(request, "match_id");
        let Some(match_id) = match_id.filter(|_| A::KIND != AgentKind::Manager) else {
            return error.into();
        };

        let player_id = text_field(request, "player_id");
        let sender = self.client.sender();
        let own_id = sender.rsplit(':').next().unwrap_or_default();
        Reply::GameError(GameError {
            match_id,
            error_code: error.error_code,
            error_description: error.error_description,
            affected_player: player_id.clone().unwrap_or(own_id.into()),
            action_required: original,
            player_id,
            retry_info: None,
            context: error.context,
            consequence: Some("Refused; nothing has changed".into()),
        })
    }

    /// Returns the reply to a request, in its conversation or a new one.
    fn reply(&self, request: &Value, message: &Reply, is_logged: bool) -> Value {
        let conversation_id = text_field(request, "conversation_id");
        let context = MessageContext {
            conversation_id: conversation_id.unwrap_or_else(|| new_conversation("reply")),
            auth_token: None,
            round_id: decode::<u32>(&request["round_id"]).ok(),
            match_id: text_field(request, "match_id"),
        };

        let reply = self.client.build(message, &context);
        if is_logged {
            let fields = vec![
                ("peer", text_field(request, "sender").into()),
                ("error_code", reply["error_code"].clone()),
                ("field", reply["context"]["field"].clone()),
            ];
            let log = &self.client.log;
            log.message("message_sent", &reply, fields, Content::Full(&reply));
        }
        reply
    }
}

/// Finds out what the body of a POST is. An error is the response to it.
fn parse_body(body: &[u8]) -> Result<Incoming, Response> {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    let mut request: Value = serde_json::from_slice(body).map_err(|error| {
        let error = HandlerError::json_rpc(-32700, format!("Parse error: {error}"));
        error_response("null", error)
    })?;

    let has = |key: &str| request.get(key).is_some();
    if has("message_type") && !has("jsonrpc") && !has("method") {
        return Ok(Incoming {
            id: Some("null".into()),
            method: String::new(),
            params: request,
        });
    }
    if !has("method") && (has("result") || has("error")) {
        return Err(Response::new("202 Accepted", "")); // a response, although we have asked nothing
    }

    let id = request.get("id").map(Value::to_string);
    let method = request["method"].as_str().unwrap_or_default().to_string();
    if method.is_empty() || request["jsonrpc"] != "2.0" {
        let error = HandlerError::json_rpc(-32600, INVALID_REQUEST);
        return Err(error_response(id.as_deref().unwrap_or("null"), error));
    }

    let params = request.get_mut("params").map(Value::take);
    let params = params.filter(|params| !params.is_null());
    let params = params.unwrap_or_else(|| json!({}));
    Ok(Incoming { id, method, params })
}

/// The reason of a call that has failed by a panic.
pub const PANIC: &str = "a panic; this agent's own terminal says where";

/// Runs a handler; a panic is an internal error, which the terminal shows already.
fn catch_panic<T>(work: impl FnOnce() -> Result<T, HandlerError>) -> Result<T, HandlerError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(HandlerError::json_rpc(
            -32603,
            format!("Internal error: {PANIC}"),
        ))
    })
}

fn is_own_address(address: IpAddr) -> bool {
    let address = address.to_string();
    own_address_for(&address, 9).is_ok_and(|own| own == address)
}

fn not_allowed(headers: &str) -> Response {
    Response::new("405 Method Not Allowed", "").with_headers(headers)
}

/// Returns a JSON-RPC error as a response.
fn error_response(id: &str, error: HandlerError) -> Response {
    let error = error.into_json_rpc();
    let mut body = json!({"code": error.code, "message": error.message});
    if let Some(data) = error.data {
        body["data"] = data;
    }
    let reply = format!(r#"{{"jsonrpc":"2.0","error":{body},"id":{id}}}"#);
    Response::new(error.status, reply)
}
