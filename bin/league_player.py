"""A player's life in a league, behind `run(choose)`: it registers, answers, remembers, and ends with the league.

Python 3.8's standard library alone. What is said, and why, is on one page: src/protocol.md.
"""
import argparse, datetime, hmac, http.client, json, os, pathlib, random, re, sys, threading, time, traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

try:
    import fcntl
except ImportError:  # Windows: there nobody watches that a card is used once
    fcntl = None

STRATEGIES = {
    "random": lambda turn: random.Random(turn["seed"]).choice(["even", "odd"]),
    "even": lambda turn: "even",
    "odd": lambda turn: "odd",
    "alternate": lambda turn: ["even", "odd"][len(turn["history"]) % 2],
}
NEEDED = {  # the fields of each message beside the envelope
    "GAME_INVITATION": "league_id round_id match_id game_type role_in_match opponent_id",
    "CHOOSE_PARITY_CALL": "match_id player_id game_type deadline",
    "GAME_OVER": "match_id game_type game_result",
    "GAME_ERROR": "match_id error_code error_description affected_player action_required",
    "ROUND_ANNOUNCEMENT": "league_id round_id matches",
    "LEAGUE_STANDINGS_UPDATE": "league_id round_id standings",
    "ROUND_COMPLETED": "league_id round_id matches_completed summary",
    "LEAGUE_COMPLETED": "league_id total_rounds total_matches champion final_standings",
    "LEAGUE_ERROR": "error_code error_description",
}
OF_REFEREE = list(NEEDED)[:4]  # the others are the manager's
CODES = {
    "E003": "MISSING_REQUIRED_FIELD", "E005": "PLAYER_NOT_REGISTERED", "E011": "AUTH_TOKEN_MISSING",
    "E012": "AUTH_TOKEN_INVALID", "E015": "MATCH_ID_MISMATCH", "E018": "PROTOCOL_VERSION_MISMATCH",
    "E021": "INVALID_TIMESTAMP",
}
MAX_BODY = 256 << 10  # bytes


class Refused(Exception):
    """A message is not what it must be: code, field, problem."""


def demand(fact, code, field, problem):
    if not fact:
        raise Refused(code, field, problem)


def choices_of(turn, player_id):
    """What somebody chose in our matches, oldest first."""
    choices = [past["result"]["choices"].get(player_id) for past in turn["history"]]
    return [choice for choice in choices if choice]


def say(text, to=None):
    """A line on the terminal: others' words move no cursor, and show no token."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    print(re.sub(r"tok-(\w+)-\w{8,}", r"tok-\1-***", text)[:400], file=to or sys.stdout, flush=True)


def same(came, own):
    return hmac.compare_digest(str(came).encode(), str(own).encode())


def time_of(text):
    """UTC as 2025-01-15T10:30:00Z, or as others write it; else ValueError."""
    plain = re.sub(r"[-:]|\.\d+", "", text).replace("+0000", "Z")
    return datetime.datetime.strptime(plain, "%Y%m%dT%H%M%SZ")


class Player:
    def __init__(self, choose, options):
        self.choose, self.options = STRATEGIES.get(options.strategy, choose), options
        self.folder = pathlib.Path(options.data, "agents")
        self.card, self.locks = {}, {}
        self.promised, self.joined, self.history = {}, {}, []  # announced tokens; invitations; what is over
        self.registered, self.over, self.guard = threading.Event(), threading.Event(), threading.Lock()

    def write(self, kind, conversation, **body):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if kind == "GAME_JOIN_ACK":
            body["arrival_timestamp"] = now
        name = self.card.get("agent_id") or self.options.player_id or "new"
        return {"protocol": "league.v2", "message_type": kind, "sender": "player:" + name, "timestamp": now,
                "conversation_id": conversation, **{key: it for key, it in body.items() if it is not None}}

    def answer(self, it):
        """What a message of the league is answered."""
        kind = it["message_type"]
        for field in ["protocol", "sender", "timestamp", "conversation_id", *NEEDED[kind].split()]:
            demand(it.get(field) is not None, "E003", field, "missing")
        demand(it["protocol"] == "league.v2", "E018", "protocol", "expected league.v2")
        try:
            seconds = (time_of(it.get("deadline", it["timestamp"])) - time_of(it["timestamp"])).total_seconds()
        except (TypeError, ValueError):
            raise Refused("E021", "timestamp", "expected UTC, as in 2025-01-15T10:30:00Z")
        demand(self.registered.wait(5), "E005", "player_id", "this player is not registered yet")
        league_id, player_id = self.card["league_id"], self.card["agent_id"]
        demand(it.get("league_id") in (None, league_id), "E003", "league_id", f"expected {league_id}")
        demand(it.get("player_id") in (None, player_id), "E012", "player_id", f"this is {player_id}")
        with self.guard:
            reply = self.of_referee(kind, it) if kind in OF_REFEREE else self.of_manager(kind, it)
        if kind == "CHOOSE_PARITY_CALL":
            reply["parity_choice"] = self.think(self.joined[it["match_id"]], it, seconds)
        return reply

    def of_manager(self, kind, it):
        """A notice of the manager, which proves itself with our own token."""
        token, own = it.get("auth_token"), self.card["agent_id"]
        demand(token or not self.card["proves_itself"], "E011", "auth_token", "missing")
        demand(not token or same(token, self.card["token"]), "E012", "auth_token", "not the one we know")
        if kind == "ROUND_ANNOUNCEMENT":
            ours = [entry for entry in it["matches"] if own in (entry["player_A_id"], entry["player_B_id"])]
            self.promised.update({entry["match_id"]: entry.get("match_token") for entry in ours})
        if kind == "LEAGUE_ERROR":
            say(f"{own}: the league manager says {it['error_code']} {it['error_description']}", sys.stderr)
        if kind == "LEAGUE_COMPLETED" and not self.over.is_set():
            say(f"Champion: {it['champion']['display_name']} ({it['champion']['player_id']})")
            self.over.set()
        return {"status": "ok"}

    def of_referee(self, kind, it):
        """A match: only with the token and in the conversation of its newest invitation."""
        match_id, token, conversation = it["match_id"], it.get("auth_token"), it["conversation_id"]
        own, game, promised = self.card["agent_id"], self.joined.get(match_id), self.promised.get(match_id)
        known = game and same(token, game.get("auth_token"))
        echo = {"match_id": match_id, "player_id": own, "auth_token": token}
        if kind == "GAME_INVITATION":
            demand(not promised or same(token, promised), "E012", "auth_token", "not the announced match token")
            few = len(self.joined.keys() - self.promised.keys()) < 100
            demand(game or few or match_id in self.promised, "E015", "match_id", "was not announced")
            if not known or game["conversation_id"] != conversation:
                self.joined[match_id] = dict(it, choice=None, thinking=threading.Lock())
            return self.write("GAME_JOIN_ACK", conversation, accept=True, **echo)
        if kind == "GAME_ERROR":  # shown even where it is not believed
            words = f"{it['error_code']} {it['error_description']} {it.get('context', '')}; {it.get('consequence', '')}"
            say(f"{own}: {match_id}: {words}", sys.stderr)
        demand(game, "E015", "match_id", "we have not joined it")
        demand(known, "E012", "auth_token", "not the token of the newest invitation")
        demand(game["conversation_id"] == conversation, "E015", "conversation_id", "not the newest invitation's")
        if kind == "CHOOSE_PARITY_CALL":
            return self.write("CHOOSE_PARITY_RESPONSE", conversation, **echo)
        if kind == "GAME_OVER" and (match_id in self.promised or not self.card["proves_itself"]):
            past = {"match_id": match_id, "opponent_id": game["opponent_id"], "result": it["game_result"]}
            if past not in self.history:
                say(f"{match_id}: {it['game_result'].get('reason') or 'is over'}")
            self.history = [old for old in self.history if old["match_id"] != match_id] + [past]
        return {"status": "ok"}

    def think(self, game, it, seconds):
        """The choice in a match: the same whenever it is asked for. Meanwhile nothing else waits."""
        with game["thinking"]:
            own, seed = self.card["agent_id"], self.options.seed
            turn = {
                "player_id": own, "opponent_id": game["opponent_id"], "round_id": game["round_id"], "seconds": seconds,
                "match_id": it["match_id"], "standings": (it.get("context") or {}).get("your_standings"),
                "history": self.history, "seed": seed and f"{seed} {own} {it['match_id']}",
            }
            choice = game["choice"] or self.choose(turn)
            if choice not in ("even", "odd"):
                raise ValueError(f"choose said {choice!r}, expected 'even' or 'odd'")
            game["choice"] = choice
            return choice

    def respond(self, body):
        """What a JSON-RPC request gets: the reply, or None where it wants none."""
        def error(code, message):
            return {"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": call_id}

        call_id = None
        try:
            call = json.loads(body)
        except (ValueError, RecursionError):
            return error(-32700, "not JSON")
        if not isinstance(call, dict) or not isinstance(call.get("method"), str):
            return error(-32600, "not a JSON-RPC request")
        call_id, it = call.get("id"), call.get("params", {})
        if not isinstance(it, dict):
            return error(-32602, "params: expected an object")
        if it.get("message_type") in NEEDED:
            try:
                result = self.answer(it)
            except Refused as refused:
                result = self.refusal(it, *refused.args)
            except Exception:  # in `choose`, as a rule; the referee asks again
                traceback.print_exc()
                return error(-32603, "the player's own terminal says why")
        elif call["method"] == "ping":
            result = {}
        else:
            return error(-32601, "Method not found")
        return {"jsonrpc": "2.0", "result": result, "id": call_id} if "id" in call else None

    def refusal(self, it, code, field, problem):
        kind, match_id = it["message_type"], it.get("match_id")
        say(f"refused {kind} from {it.get('sender')}: {code} {field}: {problem}", sys.stderr)
        conversation, context = it.get("conversation_id") or "conv-unknown", {"field": field, "problem": problem}
        about = {"error_code": code, "error_description": CODES[code], "context": context}
        if not isinstance(match_id, str):
            return self.write("LEAGUE_ERROR", conversation, original_message_type=kind, **about)
        about.update(match_id=match_id, affected_player=self.card.get("agent_id", "new"), action_required=kind)
        return self.write("GAME_ERROR", conversation, **about)

    def hold(self, player_id):
        """While we run nobody else in this folder is that player."""
        path = self.folder / f"{player_id}.lock"
        self.locks[path] = self.locks.get(path) or open(path, "a")
        try:
            return fcntl and fcntl.flock(self.locks[path], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            where = f"{player_id} in {self.options.data}"
            sys.exit(f"{where} is in use: end that program, or name another folder with --data")

    def keep(self, **news):
        """The card, by which we are known again after a restart."""
        self.card = {**self.card, **news}
        new = self.folder / f"{self.card['agent_id']}.new"
        new.write_text(json.dumps(self.card))
        new.replace(new.with_suffix(".json"))

    def register(self, manager, league_id, endpoint):
        wish, cards = self.options.player_id, [json.loads(path.read_text()) for path in self.folder.glob("*.json")]
        old = next((it for it in cards if (it["agent_id"] == wish if wish else it["endpoint"] == endpoint)), None)
        if wish or old:
            self.hold(wish or old["agent_id"])
        is_ours = old and (old["league_id"], old["manager"]) == (league_id, manager)
        if old and not is_ours and not old.get("over"):
            where = f"{old['league_id']} of {old['manager']}"
            sys.exit(f"{old['agent_id']} plays in {where}: name another folder with --data")
        message = self.write("LEAGUE_REGISTER_REQUEST", f"conv-player-registration-{os.urandom(4).hex()}",
                             auth_token=old["token"] if is_ours else None, player_meta={
                                 "display_name": self.options.display_name, "version": "1.0.0",
                                 "game_types": ["even_odd"], "contact_endpoint": endpoint})
        it = ask(manager, "register_player", message)
        if it.get("status") != "ACCEPTED":
            sys.exit(f"rejected: {it.get('reason') or it}")
        self.hold(it["player_id"])
        self.keep(agent_id=it["player_id"], token=it.get("auth_token") or "",
                  league_id=it.get("league_id") or league_id, manager=manager, endpoint=endpoint, proves_itself=bool(it.get("proves_itself")))
        self.registered.set()
        say(f"{self.options.display_name} is {self.card['agent_id']} in {self.card['league_id']}")


def ask(url, method, message):
    """Asks until it is answered, and says once whom we are waiting for."""
    body, said = json.dumps({"jsonrpc": "2.0", "method": method, "params": message, "id": 1}).encode(), False
    while True:
        try:
            call = Request(url, body, {"Content-Type": "application/json"})
            reply = json.load(build_opener(ProxyHandler({})).open(call, timeout=10))
            return reply.get("result") or reply
        except (OSError, ValueError, http.client.HTTPException) as error:
            if not said:
                say(f"waiting for the league manager at {url}: {error}", sys.stderr)
            said = True
            time.sleep(1)


def serve(player, host, ports):
    """Answers from now on, on the first port that is free."""
    class Handler(BaseHTTPRequestHandler):
        timeout, log_message = 30, lambda *_: None

        def do_POST(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(min(length, 1 << 20))
            reply = player.respond(body) if length <= MAX_BODY else None
            self.send(413 if length > MAX_BODY else 200 if reply else 202, json.dumps(reply).encode() if reply else b"")

        def do_GET(self):
            self.send(405 if self.path == "/mcp" else 404, b"")

        def send(self, status, body):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Server(ThreadingHTTPServer):
        daemon_threads, request_queue_size = True, 64

    for port in ports:
        try:
            server = Server((host, port), Handler)
            threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
            return server.server_port
        except OSError as error:
            why = error
    sys.exit(f"port {port}: {why}; choose another with --port N")


def options_of(arguments=None):
    parser = argparse.ArgumentParser(description="A player of the AI Agent League, with the options of all.")
    for name in "manager display-name player-id strategy seed contact-endpoint league-id operator-token-file".split():
        parser.add_argument("--" + name)
    for name, default in [("host", "127.0.0.1"), ("config", "config"), ("data", "data"), ("logs", "logs")]:
        parser.add_argument("--" + name, default=default)
    for name in ["any-port", "stay", "until-stdin-closes"]:
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--port", type=int)
    return parser.parse_args(arguments)


def run(choose):
    """Plays a league to its end. `choose` is called once in each match."""
    os.umask(0o077)  # there are tokens in our card
    options = options_of()
    files = [pathlib.Path(options.config, name) for name in ("system.json", "agents/agents_config.json")]
    system, agents = [json.loads(path.read_text()) for path in files]
    listed = next((it for it in agents["players"] if it["player_id"] == options.player_id), {})
    options.display_name = options.display_name or listed.get("display_name", "Agent")
    first, last = system["network"]["default_player_port_range"]
    ports = [options.port] if options.port is not None else [urlsplit(listed["default_endpoint"]).port] if listed else [
        *range(first, last + 1), *([0] if options.any_port else [])]
    player = Player(choose, options)
    player.folder.mkdir(parents=True, exist_ok=True)
    port = serve(player, options.host, ports)
    say(f"listening on http://{'localhost' if options.host == '127.0.0.1' else options.host}:{port}/mcp")
    if options.until_stdin_closes:
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    endpoint = options.contact_endpoint or f"http://{system['network']['base_host']}:{port}/mcp"
    manager = options.manager or agents["league_manager"]["endpoint"]
    player.register(manager, options.league_id or system["default_league_id"], endpoint)
    player.over.wait()
    player.keep(over=True)
    time.sleep(0.5)  # the last answers are on their way
    while options.stay:
        time.sleep(60)
