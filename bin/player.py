"""A player of the AI Agent League: one file, for Python 3.8 or newer, without packages.

Copy this file, change `choose`, and join a league:

    python3 player.py --manager http://10.0.0.5:8000 --display-name Ada

What stands below `choose` plays as it is, in the order of "The minimal player" in the league's
protocol (src/protocol.md). All agents talk JSON-RPC: a request is an HTTP POST of
{"jsonrpc": "2.0", "method": "ping", "params": {...}, "id": 7}, and its answer is
{"jsonrpc": "2.0", "result": {...}, "id": 7}, or has "error" in the place of "result".
The messages of the league stand in "params" and in "result".
"""
import argparse, hmac, http.client, http.server, json, os, pathlib, random, re, secrets, socket
import socketserver, sys, threading, time, traceback, types, urllib.parse

GAME_TYPES = ["even_odd", "tic_tac_toe"]  # the games that this player plays


def choose(turn):
    """Your strategy: returns one of turn.legal_moves, which are "even" and "odd" in Even/Odd.

    A number from 1 to 10 is drawn. Whoever alone has said whether it is even or odd wins the match.

    turn.player_id, turn.opponent_id   who you are, and whom you play
    turn.match_id, turn.round_id       for example "R1M1" and 1
    turn.theirs                        what this opponent chose against you so far, oldest first
    turn.history                       all your matches so far, oldest first, each like {"match_id":
                                       "R1M1", "opponent_id": "P02", "winner_player_id": "P01",
                                       "drawn_number": 8, "choices": {"P01": "even", "P02": "odd"}}
    turn.standings                     your wins, losses and draws in the table, or None
    turn.deadline                      when the referee gives up, for example "2025-01-15T10:30:30Z"
    turn.game_type, turn.position, turn.move_number     for games that have more than one move

    It is called in a thread of its own, once for each move. If it raises, the referee asks again.
    """
    # An idea: what this opponent chose last time.  if turn.theirs: return turn.theirs[-1]
    return random.choice(turn.legal_moves)


# Step 1: listen for POST, read a JSON-RPC request, answer with HTTP 200 and the same id.

LARGEST = 256 << 10  # bytes; the manager's notices may be so long
NEEDED = {  # the messages that a player is sent, and what each of them must have
    "ROUND_ANNOUNCEMENT": "matches", "GAME_INVITATION": "match_id round_id opponent_id",
    "CHOOSE_PARITY_CALL": "match_id player_id deadline",
    "CHOOSE_MOVE_CALL": "match_id player_id deadline move_number legal_moves",
    "GAME_OVER": "match_id game_result", "GAME_ERROR": "match_id error_code", "LEAGUE_ERROR": "",
    "LEAGUE_STANDINGS_UPDATE": "", "ROUND_COMPLETED": "", "LEAGUE_COMPLETED": ""}
ENVELOPE = "protocol sender timestamp conversation_id"  # what all of them must have
TYPES = {"matches": list, "legal_moves": list, "game_result": dict, "round_id": int,
         "move_number": int}  # every other field is a text


class Server(socketserver.ThreadingTCPServer):  # answers each request in a thread of its own
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 100

    def handle_error(self, *_):
        """Whoever hangs up before we have answered is no news."""


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 30  # seconds; nobody keeps a thread waiting for longer

    def do_POST(self):
        origins = self.headers.get_all("Origin", [])  # browsers send it: no website may call us
        if origins and origins not in self.server.own_origins:
            return self.send_error(403)
        length = (self.headers["Content-Length"] or "")[:8]
        size = int(length) if length.isdecimal() else 0
        body = self.rfile.read(min(size, 4 * LARGEST))
        if size > LARGEST:
            return self.send_error(413)
        reply = respond(self.server.player, body)
        text = json.dumps(reply) if reply else ""
        self.send_response(200 if reply else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
        if self.server.player.has_heard_the_end:
            self.server.player.is_over.set()  # not before the answer is written

    def do_GET(self):
        self.send_error(405, "This is a player of the AI Agent League: it answers POST")

    def log_message(self, *_):
        """Strangers do not write on our terminal."""


def respond(player, body):
    """The JSON-RPC reply to a request; None where no reply is wanted."""
    reply = {"jsonrpc": "2.0", "id": None}
    failed = lambda code, words: {**reply, "error": {"code": code, "message": words}}
    try:
        call = json.loads(body)
    except (ValueError, RecursionError):
        return failed(-32700, "Parse error: this is not JSON")
    if not isinstance(call, dict) or not isinstance(call.get("method"), str):
        return failed(-32600, "Invalid Request: must be one object with a method")
    reply["id"] = call.get("id")
    message = call["params"] if isinstance(call.get("params"), dict) else {}
    kind = str(message.get("message_type"))
    if call["method"] == "ping":
        reply["result"] = {}
    elif kind in NEEDED:  # the type of the message decides, not the method
        try:
            reply["result"] = player.answer(kind, message)
        except Exception as problem:
            if not isinstance(problem, Failed):
                traceback.print_exc()
            reply = failed(-32603, str(problem))
    else:
        reply = failed(-32601, "Method not found: " + call["method"])
    return reply if "id" in call else None


class Failed(Exception):
    """We cannot answer. The person at the terminal has been told why."""


class Player:
    """What this player knows of one league, and how it answers."""

    def __init__(self, args, url, file, card):
        self.args, self.url, self.file, self.card = args, url, file, card
        self.id = card.get("agent_id") or args.player_id or "new"
        self.promised = {}  # match id: the token that its invitation must carry, if we know one
        self.joined = {}    # match id: what we know of a match that we have joined
        self.history = {}   # match id: how the match ended
        self.told = set()   # what need not be said again
        self.registered, self.is_over = threading.Event(), threading.Event()
        self.has_heard_the_end = False

    # Step 2: ask the manager to let us in, until it answers.

    def register(self):
        """Returns when the manager has let us in; ends the program if it refuses us."""
        # The key is on disk before it is sent. If we are killed before we have read the answer, we
        # ask with it again, and the manager knows that it has answered us already.
        self.card.setdefault("registration_key", secrets.token_hex(16))
        self.keep(manager=self.args.manager, endpoint=self.url)
        meta = {"display_name": self.args.display_name, "version": "1.0.0",
                "game_types": GAME_TYPES, "contact_endpoint": self.url,
                "registration_key": self.card["registration_key"]}
        message = self.message("LEAGUE_REGISTER_REQUEST", None, player_meta=meta,
                               auth_token=self.card.get("token"))
        call = {"jsonrpc": "2.0", "method": "register_player", "params": message, "id": 1}
        said, said_at = None, 0
        while True:
            reply, problem = post(self.args.manager, call)
            came = reply.get("result") if isinstance(reply, dict) else None
            came = came if isinstance(came, dict) else {}
            status, why, name = came.get("status"), came.get("reason"), came.get("player_id")
            if status == "ACCEPTED" and re.fullmatch(r'"[A-Za-z0-9_-]{1,60}"', json.dumps(name)):
                break
            is_late = status == "REJECTED" and came.get("error_code") == "E019" and self.args.stay
            if is_late:
                problem = f"says {why}: we join the next league (--stay)"
            elif status == "REJECTED":
                sys.exit(plain(f"the league manager has rejected us: {why}"))
            elif came.get("message_type") == "LEAGUE_ERROR":
                sys.exit(plain(f"the league manager refuses us: {explain(came)}"))
            problem = problem or f"answers {json.dumps(reply)[:300]}, which does not let us in"
            if problem != said or not is_late and time.monotonic() > said_at + 5:
                say(f"waiting for the league manager at {self.args.manager}: it {problem}",
                    sys.stderr)
                said, said_at = problem, time.monotonic()
            time.sleep(2 if is_late else 1)
        self.id, league, token = name, came.get("league_id"), came.get("auth_token")
        self.keep(agent_id=name, league_id=league, proves_itself=came.get("proves_itself") is True,
                  token=token if isinstance(token, str) else None)
        self.registered.set()
        say(f"{self.args.display_name} is {name}" + (f" in {league}" if league else ""))

    # Step 3: answer what comes.

    def answer(self, kind, it):
        """The answer to a message of the league."""
        self.registered.wait(5)  # the first message may overtake the answer that lets us in
        problem = self.fault(kind, it)
        if problem:
            return self.refuse(kind, it, *problem)
        if kind == "GAME_INVITATION":
            return self.join(it)
        if kind in ("CHOOSE_PARITY_CALL", "CHOOSE_MOVE_CALL"):
            return self.move(kind, it)
        if kind == "ROUND_ANNOUNCEMENT":
            self.note_round(it)
        elif kind == "GAME_OVER":
            self.remember(it)
        elif kind in ("GAME_ERROR", "LEAGUE_ERROR"):
            self.tell(f"{it.get('match_id') or kind}: {explain(it)}")
        elif kind == "LEAGUE_COMPLETED" and not self.has_heard_the_end:  # it may come twice
            champion = it["champion"] if isinstance(it.get("champion"), dict) else {}
            say(f"Champion: {champion.get('display_name')} ({champion.get('player_id')})")
            self.has_heard_the_end = True
        return {"status": "ok"}

    def note_round(self, it):
        """A round begins: notes which matches are ours, and the tokens of their invitations."""
        for entry in it["matches"]:
            entry = entry if isinstance(entry, dict) else {}
            if self.id in (entry.get("player_A_id"), entry.get("player_B_id")):
                match_id = str(entry.get("match_id"))
                self.promised.pop(match_id, None)  # so that the newest are the last
                self.promised[match_id] = entry.get("match_token") or it.get("match_token")
        for match_id in [*self.promised][:-100]:  # a hundred are enough
            self.joined.pop(match_id, None)
            del self.promised[match_id]

    def join(self, it):
        """We come to every match that we are truly invited to. The newest invitation counts."""
        match_id, marks = it["match_id"], (it["conversation_id"], it.get("auth_token"))
        if match_id not in self.joined or self.joined[match_id].marks != marks:
            self.joined[match_id] = types.SimpleNamespace(
                marks=marks, opponent_id=it["opponent_id"], round_id=it["round_id"],
                choices={}, thinking=threading.Lock())
        return self.reply("GAME_JOIN_ACK", it, accept=True, arrival_timestamp=now())

    def move(self, kind, it):
        """What we choose. The same call again gets the same answer, also while we still think."""
        game, number = self.joined[it["match_id"]], it.get("move_number", 1)
        legal = it["legal_moves"] if kind == "CHOOSE_MOVE_CALL" else ["even", "odd"]
        with game.thinking:
            if number in game.choices:
                choice = game.choices[number]
            else:
                choice = self.think(it, game, number, legal)
        if kind == "CHOOSE_MOVE_CALL":
            return self.reply("CHOOSE_MOVE_RESPONSE", it, move_number=number, move=choice)
        return self.reply("CHOOSE_PARITY_RESPONSE", it, parity_choice=choice)

    def think(self, it, game, number, legal):
        """Calls `choose`, and says what is wrong with it."""
        history, about = [*self.history.values()], it.get("context")
        made = [it for past in history for it in past["moves"]]
        turn = types.SimpleNamespace(
            player_id=self.id, opponent_id=game.opponent_id, match_id=it["match_id"],
            round_id=game.round_id, history=history,
            theirs=[it["move"] for it in made if it["player_id"] == game.opponent_id],
            standings=about.get("your_standings") if isinstance(about, dict) else None,
            deadline=it["deadline"], game_type=it.get("game_type"), position=it.get("position"),
            move_number=number, legal_moves=[*legal])
        try:
            choice = choose(turn)
        except (Exception, SystemExit) as bug:
            places = traceback.extract_tb(bug.__traceback__)
            at = [place for place in places if place.filename == __file__][-1]
            what = f"{type(bug).__name__}: {bug}"
            self.tell(f"your choose fails in line {at.lineno}, `{at.line}`: {what}")
            raise Failed(f"its choose fails: {what}")
        if choice in legal:
            game.choices[number] = choice
        else:
            hint = ": does it end without `return`?" if choice is None else ""
            self.tell(f"your choose returned {choice!r}, none of {json.dumps(legal)}{hint}")
        return None if choice is None else str(choice)

    def remember(self, it):
        """A match is over. One that the manager has not announced to us does not count."""
        match_id, result = it["match_id"], it["game_result"]
        if match_id in self.promised or not self.card["proves_itself"]:
            game, choices, moves = self.joined[match_id], result.get("choices"), result.get("moves")
            choices = choices if isinstance(choices, dict) else {}
            if not isinstance(moves, list):  # Even/Odd: a choice is the only move of each
                moves = [{"player_id": who, "move": what} for who, what in choices.items() if what]
            moves = [it for it in moves if isinstance(it, dict) and {"player_id", "move"} <= {*it}]
            self.history[match_id] = {
                **result, "match_id": match_id, "opponent_id": game.opponent_id,
                "round_id": game.round_id, "choices": choices, "moves": moves}
            say(f"{match_id}: {result.get('reason') or it.get('reason') or json.dumps(result)}")

    def tell(self, words):
        """Says once what the person at the terminal should look at."""
        if words not in self.told:
            self.told.add(words)
            say(f"{self.id}: {words}", sys.stderr)

    # Step 4: a reply repeats the conversation and the token of its request, and never has our own.

    def reply(self, kind, it, **body):
        """The reply to a referee."""
        return self.message(kind, it["conversation_id"], auth_token=it.get("auth_token"),
                            match_id=it["match_id"], player_id=self.id, **body)

    def message(self, kind, conversation, **body):
        """A message of the league: the envelope that all have, and its own fields."""
        if not isinstance(conversation, str):
            conversation = f"conv-{secrets.token_hex(8)}"
        envelope = {"protocol": "league.v2", "message_type": kind, "sender": f"player:{self.id}",
                    "timestamp": now(), "conversation_id": conversation}
        return {**envelope, **{name: value for name, value in body.items() if value is not None}}

    def refuse(self, kind, it, code, field, problem):
        """The reply to what we do not believe. Our own terminal shows it too."""
        said = f"; it says {json.dumps(it)}" if kind.endswith(("ERROR", "OVER")) else ""
        say(f"refused {kind} from {it.get('sender')}: {code}: {field}: {problem}{said}", sys.stderr)
        match_id = it["match_id"] if isinstance(it.get("match_id"), str) else None
        return self.message("GAME_ERROR" if match_id else "LEAGUE_ERROR", it.get("conversation_id"),
                            match_id=match_id, error_code=code[:4], error_description=code[5:],
                            affected_player=self.id, action_required=kind,
                            context={"field": field, "problem": problem})

    # Step 5: tokens say who speaks: the manager's messages carry ours, a referee's the match's.

    def fault(self, kind, it):
        """None, if we believe a message; else the code of the error, the field, the problem."""
        needed, token = f"{ENVELOPE} {NEEDED[kind]}".split(), it.get("auth_token")
        wrong = [name for name in needed if type(it.get(name)) is not TYPES.get(name, str)]
        if not self.registered.is_set():
            return "E005 PLAYER_NOT_REGISTERED", "player_id", "no league manager has let us in yet"
        if wrong:
            return "E003 MISSING_REQUIRED_FIELD", ", ".join(wrong), "missing, or of a wrong type"
        if it["protocol"] != "league.v2":
            return "E018 PROTOCOL_VERSION_MISMATCH", "protocol", "must be league.v2"
        if it.get("player_id", self.id) != self.id:
            return "E012 AUTH_TOKEN_INVALID", "player_id", f"this is {self.id}"
        match_id, own = it.get("match_id"), self.card["token"]
        if "match_id" not in needed:
            right = own if own and (token or self.card["proves_itself"]) else token
        elif kind == "GAME_INVITATION":
            strange = {*self.joined, match_id} - {*self.promised}
            if match_id in strange and len(strange) > 100:
                return "E015 MATCH_ID_MISMATCH", "match_id", "one too many that nobody announced"
            right = self.promised.get(match_id) or token
        elif match_id not in self.joined:
            return "E015 MATCH_ID_MISMATCH", "match_id", "we have not joined this match"
        else:
            conversation, right = self.joined[match_id].marks
            if it["conversation_id"] != conversation:
                return "E015 MATCH_ID_MISMATCH", "conversation_id", "not that of the invitation"
        if hmac.compare_digest(ascii(token), ascii(right)):
            return None
        return ("E012 AUTH_TOKEN_INVALID" if token else "E011 AUTH_TOKEN_MISSING", "auth_token",
                "missing, or not the right one")

    # Step 6: keep the token on disk. A player that is started again registers again with it.

    def keep(self, **changes):
        """Changes our card, and writes it so that it is never seen half written."""
        self.card.update(changes)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.card))
        new.replace(self.file)


def own_card(file, manager):
    """The card that an earlier run has left, if its league is not over; else an empty one."""
    try:
        card = json.loads(file.read_text())
        kept = None if card.get("over") else card.get("manager")
    except (OSError, ValueError, AttributeError):
        return {}
    if kept and kept != manager and card.get("token"):
        sys.exit(plain(f"{file} is of a league at {kept}: remove it, if that is given up, or name "
                       "another folder with --data DIR"))
    return card if kept == manager else {}


def lock(file):
    """A file whose lock says that no other program plays with this card while we run."""
    held = open(file.with_suffix(".lock"), "a")
    try:
        if os.name == "nt":
            import msvcrt
            msvcrt.locking(held.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f"another player is using {file}: end it, or name another folder with --data DIR")
    return held


def post(url, body, limit=10):
    """What comes back when JSON is posted; or None, and in words what happened instead."""
    to = urllib.parse.urlsplit(url)
    is_secure = to.scheme == "https"
    connect = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
    try:
        line = connect(to.netloc, timeout=limit)
        line.request("POST", to.path, json.dumps(body), {"Content-Type": "application/json"})
        answer = line.getresponse()
        text = answer.read(LARGEST)
        line.close()
    except (OSError, http.client.HTTPException) as problem:
        return None, f"cannot be reached: {problem or type(problem).__name__}"
    try:
        return json.loads(text), None
    except (ValueError, RecursionError):
        text = text[:200].decode(errors="replace")
        return None, f"answers HTTP {answer.status} and {text!r}, which is no JSON"


def explain(error):
    """What an error of the league says; all of it, where it does not name the problem."""
    context = error["context"] if isinstance(error.get("context"), dict) else {}
    if not isinstance(context.get("problem"), str):
        return json.dumps(error)
    field = f"{context['field']}: " if context.get("field") else ""
    threat = f"; {error['consequence']}" if error.get("consequence") else ""
    return f"{error.get('error_code')} {field}{context['problem']}{threat}"


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def plain(words):
    """Others' words, fit for a terminal: they move no cursor, show no token and have an end."""
    words = re.sub(r"(tok-\w+-)\w{8,}", r"\1***", words[:4000])
    return "".join(letter if letter.isprintable() else "?" for letter in words)[:1000]


def say(words, to=None):
    print(plain(words), file=to or sys.stdout, flush=True)


def options(parser):
    """Reads the command line."""
    for name, value, words in (
            ("manager", "URL", "the league manager, like http://10.0.0.5:8000 [this machine's]"),
            ("display-name", "NAME", "your name in the table [the name of this file]"),
            ("player-id", "ID", "the id to ask for, like P07 [any]"),
            ("port", "N", "where to listen; 0: any free port [8107 for P07, without an id 8199]"),
            ("host", "ADDRESS", "the address to listen on [this machine only; all, if the manager "
             "is on another]"),
            ("contact-endpoint", "URL", "where others reach us [the address the manager sees]"),
            ("data", "DIR", "where our card is kept: who we are, and our token [data]"),
            ("seed", "N", "makes `random` repeatable")):
        parser.add_argument(f"--{name}", metavar=value, help=words)
    for name, words in (("any-port", "listen on any free port"),
                        ("stay", "when the league is over, join the next one"),
                        ("until-stdin-closes", "end when standard input closes")):
        parser.add_argument(f"--{name}", action="store_true", help=words)
    args, _ = parser.parse_known_args()
    args.display_name = args.display_name or pathlib.Path(sys.argv[0]).stem
    if not re.fullmatch(r"P\d{2,4}", args.player_id or "P99"):
        parser.error(f"--player-id: got {args.player_id!r}, expected an id like P07")
    if not args.port:
        args.port = "0" if args.any_port else str(8100 + int((args.player_id or "P99")[1:]))
    if not args.port.isdecimal() or int(args.port) > 65535:
        parser.error(f"--port: got {args.port!r}, expected a number up to 65535")
    url = args.manager or "http://localhost:8000"
    url = url if "://" in url else f"http://{url}"
    to = urllib.parse.urlsplit(url)
    args.manager = url if to.path.strip("/") else f"{to.scheme}://{to.netloc}/mcp"
    if not re.fullmatch(r"https?://[^\s/@]+(:\d{1,5})?/\S*", args.manager):
        parser.error(f"--manager: got {url!r}, expected an address like http://10.0.0.5:8000")
    return args


def address_towards(url):
    """The address of this machine as the manager's machine sees it."""
    to = urllib.parse.urlsplit(url)
    if to.hostname in ("localhost", "::1"):
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((to.hostname, to.port or 80))  # sends nothing
            return probe.getsockname()[0]
        except (OSError, UnicodeError) as problem:
            sys.exit(f"--manager: there is no way to {to.hostname} from here: {problem}")


def main(player=Player, parser=argparse.ArgumentParser(allow_abbrev=False, description=(
        "A player of the AI Agent League. Options that it does not know are ignored."))):
    args = options(parser)
    sys.stdout.reconfigure(errors="replace")  # not every terminal knows every letter
    os.umask(0o077)  # our files are for nobody else: a token stands in them
    random.seed(args.seed and f"{args.seed} {args.player_id}")
    if args.until_stdin_closes:
        end = threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True)
        end.start()
    here = address_towards(args.manager)
    near = here.startswith("127.")
    host = args.host or ("127.0.0.1" if near else "0.0.0.0")
    try:
        server = Server((host, int(args.port)), Handler)
    except OSError as problem:
        sys.exit(f"{host}, port {args.port}: {problem}; take another one with --port (0: any)")
    port = server.server_address[1]
    name = "localhost" if near else here if host == "0.0.0.0" else host
    url = args.contact_endpoint or f"http://{name}:{port}/mcp"
    own = {urllib.parse.urlsplit(url).netloc, f"localhost:{port}", f"127.0.0.1:{port}"}
    server.own_origins = [[f"http://{name}"] for name in own]
    file = pathlib.Path(args.data or "data", "agents", f"{args.player_id or f'port-{port}'}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    held = lock(file)
    card = own_card(file, args.manager)
    say(f"waiting for the league manager at {args.manager}, listening on {url}")
    server.player = player(args, url, file, card)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        server.player.register()
        while not server.player.is_over.wait(1):
            pass
        file.unlink()
        if not args.stay:
            return held.close()
        server.player = player(args, url, file, {})


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
