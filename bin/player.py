"""A player of the AI Agent League: one file, for Python 3.8 or newer, without packages.

Copy this file, change `choose`, and join a league:

    python3 player.py --manager http://10.0.0.5:8000 --display-name Ada

The code below `choose` needs no change. Its steps are those of "The minimal player" in the league's
protocol (src/protocol.md). All agents use JSON-RPC: a request is an HTTP POST of
{"jsonrpc": "2.0", "method": "ping", "params": {...}, "id": 7}, and its answer is
{"jsonrpc": "2.0", "result": {...}, "id": 7}, or has "error" instead of "result".
The messages of the league are in "params" and in "result".
"""
import argparse, hmac, http.client, http.server, json, os, pathlib, random, re, secrets, socket
import socketserver, sys, threading, time, traceback, types, urllib.parse

GAME_TYPES = ["even_odd", "tic_tac_toe"]  # the games that this player plays


def choose(turn):
    """Your strategy: returns one of turn.legal_moves, which are "even" and "odd" in Even/Odd.

    A number from 1 to 10 is drawn. A player wins if it guessed the parity and its opponent did not.

    turn.player_id, turn.opponent_id   you and your opponent
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

MAX_BYTES = 256 << 10  # the manager's notifications may be as long
NEEDED = {  # the messages that a player receives, and the fields that each must have
    "ROUND_ANNOUNCEMENT": "matches", "GAME_INVITATION": "match_id round_id opponent_id",
    "CHOOSE_PARITY_CALL": "match_id player_id deadline",
    "CHOOSE_MOVE_CALL": "match_id player_id deadline move_number legal_moves",
    "GAME_OVER": "match_id game_result", "GAME_ERROR": "match_id error_code", "LEAGUE_ERROR": "",
    "LEAGUE_STANDINGS_UPDATE": "", "ROUND_COMPLETED": "", "LEAGUE_COMPLETED": ""}
ENVELOPE = "protocol sender timestamp conversation_id"  # the fields that all must have
TYPES = {"matches": list, "legal_moves": list, "game_result": dict, "round_id": int,
         "move_number": int}  # every other field is a text


class Server(socketserver.ThreadingTCPServer):  # answers each request in a thread of its own
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 100

    def handle_error(self, *_):
        """Prints nothing if a caller hangs up before it has the answer."""


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 30  # seconds; no caller can occupy a thread for longer

    def do_POST(self):
        origins = self.headers.get_all("Origin", [])  # browsers send it: no website may call us
        if origins and origins not in self.server.own_origins:
            return self.send_error(403)
        length = (self.headers["Content-Length"] or "")[:8]
        size = int(length) if length.isdecimal() else 0
        body = self.rfile.read(min(size, 4 * MAX_BYTES))
        if size > MAX_BYTES:
            return self.send_error(413)
        reply = respond(self.server.player, body)
        text = json.dumps(reply) if reply else ""
        self.send_response(200 if reply else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
        if self.server.player.league_completed:
            self.server.player.is_finished.set()  # not before the answer is written

    def do_GET(self):
        self.send_error(405, "This is a player of the AI Agent League: it answers POST")

    def log_message(self, *_):
        """Prints nothing, so that callers cannot write on the terminal."""


def respond(player, body):
    """Returns the JSON-RPC reply to a request; None if it wants no reply."""
    try:
        call = json.loads(body)
    except (ValueError, RecursionError):
        return error_reply(None, -32700, "Parse error: this is not JSON")
    if not isinstance(call, dict) or not isinstance(call.get("method"), str):
        return error_reply(None, -32600, "Invalid Request: must be one object with a method")
    call_id = call.get("id")
    message = call["params"] if isinstance(call.get("params"), dict) else {}
    message_type = str(message.get("message_type"))
    if call["method"] == "ping":
        reply = {"jsonrpc": "2.0", "id": call_id, "result": {}}
    elif message_type in NEEDED:  # the type of the message decides, not the method
        try:
            answer = player.handle(message_type, message)
            reply = {"jsonrpc": "2.0", "id": call_id, "result": answer}
        except Exception as error:
            if not isinstance(error, NoAnswer):
                traceback.print_exc()
            reply = error_reply(call_id, -32603, str(error))
    else:
        reply = error_reply(call_id, -32601, "Method not found: " + call["method"])
    return reply if "id" in call else None


def error_reply(call_id, code, text):
    return {"jsonrpc": "2.0", "id": call_id, "error": {"code": code, "message": text}}


class NoAnswer(Exception):
    """We cannot answer. The reason has been printed."""


class Player:
    """The state of this player in one league, and its answers."""

    def __init__(self, args, url, file, credentials):
        self.args, self.url, self.file, self.credentials = args, url, file, credentials
        self.id = credentials.get("agent_id") or args.player_id or "new"
        self.announced = {}   # match id: the token that its invitation must carry, if we know one
        self.joined = {}      # match id: a match that we have joined
        self.history = {}     # match id: how the match ended
        self.printed = set()  # texts that are printed once
        self.is_registered, self.is_finished = threading.Event(), threading.Event()
        self.league_completed = False

    # Step 2: ask the manager for a registration until it answers.

    def register(self):
        """Returns when the manager has registered us; ends the program if it rejects us."""
        # The key is saved before it is sent. If we are killed before we have read the answer, we
        # register with it again, and the manager knows that it has registered us already.
        self.credentials.setdefault("registration_key", secrets.token_hex(16))
        self.save(manager=self.args.manager, endpoint=self.url)
        meta = {"display_name": self.args.display_name, "version": "1.0.0",
                "game_types": GAME_TYPES, "contact_endpoint": self.url,
                "registration_key": self.credentials["registration_key"]}
        message = self.message("LEAGUE_REGISTER_REQUEST", None, player_meta=meta,
                               auth_token=self.credentials.get("token"))
        call = {"jsonrpc": "2.0", "method": "register_player", "params": message, "id": 1}
        last_problem, printed_at = None, 0
        while True:
            reply, problem = post(self.args.manager, call)
            answer = reply.get("result") if isinstance(reply, dict) else None
            answer = answer if isinstance(answer, dict) else {}
            status, reason, name = (answer.get(key) for key in ("status", "reason", "player_id"))
            if status == "ACCEPTED" and re.fullmatch(r'"[A-Za-z0-9_-]{1,60}"', json.dumps(name)):
                break
            is_late = status == "REJECTED" and answer.get("error_code") == "E019" and self.args.stay
            if is_late:
                problem = f"says {reason}: we join the next league (--stay)"
            elif status == "REJECTED":
                sys.exit(sanitize(f"the league manager has rejected us: {reason}"))
            elif answer.get("message_type") == "LEAGUE_ERROR":
                sys.exit(sanitize(f"the league manager refuses us: {explain(answer)}"))
            problem = problem or f"answers {json.dumps(reply)[:300]}, which does not let us in"
            if problem != last_problem or not is_late and time.monotonic() > printed_at + 5:
                print_line(f"waiting for the league manager at {self.args.manager}: it {problem}",
                           sys.stderr)
                last_problem, printed_at = problem, time.monotonic()
            time.sleep(2 if is_late else 1)
        self.id, league, token = name, answer.get("league_id"), answer.get("auth_token")
        self.save(agent_id=name, league_id=league,
                  proves_itself=answer.get("proves_itself") is True,
                  token=token if isinstance(token, str) else None)
        self.is_registered.set()
        print_line(f"{self.args.display_name} is {name}" + (f" in {league}" if league else ""))

    # Step 3: answer messages.

    def handle(self, message_type, message):
        """Returns the answer to a message of the league."""
        self.is_registered.wait(5)  # the first message may overtake the answer to a registration
        error = self.check(message_type, message)
        if error:
            return self.refuse(message_type, message, *error)
        if message_type == "GAME_INVITATION":
            return self.join(message)
        if message_type in ("CHOOSE_PARITY_CALL", "CHOOSE_MOVE_CALL"):
            return self.move(message_type, message)
        if message_type == "ROUND_ANNOUNCEMENT":
            self.add_announced(message)
        elif message_type == "GAME_OVER":
            self.add_to_history(message)
        elif message_type in ("GAME_ERROR", "LEAGUE_ERROR"):
            self.print_once(f"{message.get('match_id') or message_type}: {explain(message)}")
        elif message_type == "LEAGUE_COMPLETED" and not self.league_completed:  # it may be repeated
            champion = message["champion"] if isinstance(message.get("champion"), dict) else {}
            print_line(f"Champion: {champion.get('display_name')} ({champion.get('player_id')})")
            self.league_completed = True
        return {"status": "ok"}

    def add_announced(self, message):
        """Keeps our matches of a round, with the tokens of their invitations."""
        for entry in message["matches"]:
            entry = entry if isinstance(entry, dict) else {}
            if self.id in (entry.get("player_A_id"), entry.get("player_B_id")):
                match_id = str(entry.get("match_id"))
                self.announced.pop(match_id, None)  # so that the newest are the last
                self.announced[match_id] = entry.get("match_token") or message.get("match_token")
        for match_id in [*self.announced][:-100]:  # a hundred are enough
            self.joined.pop(match_id, None)
            del self.announced[match_id]

    def join(self, invitation):
        """Accepts an invitation. The newest invitation to a match counts."""
        match_id = invitation["match_id"]
        conversation_id, token = invitation["conversation_id"], invitation.get("auth_token")
        known = self.joined.get(match_id)
        if known is None or (known.conversation_id, known.token) != (conversation_id, token):
            self.joined[match_id] = types.SimpleNamespace(
                conversation_id=conversation_id, token=token, round_id=invitation["round_id"],
                opponent_id=invitation["opponent_id"], choices={}, lock=threading.Lock())
        return self.reply("GAME_JOIN_ACK", invitation, accept=True, arrival_timestamp=now())

    def move(self, message_type, call):
        """Returns our choice. A repeated call gets the same answer, also while `choose` runs."""
        match, number = self.joined[call["match_id"]], call.get("move_number", 1)
        legal = call["legal_moves"] if message_type == "CHOOSE_MOVE_CALL" else ["even", "odd"]
        with match.lock:
            if number in match.choices:
                choice = match.choices[number]
            else:
                choice = self.call_choose(call, match, number, legal)
        if message_type == "CHOOSE_MOVE_CALL":
            return self.reply("CHOOSE_MOVE_RESPONSE", call, move_number=number, move=choice)
        return self.reply("CHOOSE_PARITY_RESPONSE", call, parity_choice=choice)

    def call_choose(self, call, match, number, legal):
        """Calls `choose`, and prints what is wrong with it."""
        history, context = [*self.history.values()], call.get("context")
        moves = [move for past in history for move in past["moves"]]
        turn = types.SimpleNamespace(
            player_id=self.id, opponent_id=match.opponent_id, match_id=call["match_id"],
            round_id=match.round_id, history=history,
            theirs=[move["move"] for move in moves if move["player_id"] == match.opponent_id],
            standings=context.get("your_standings") if isinstance(context, dict) else None,
            deadline=call["deadline"], game_type=call.get("game_type"),
            position=call.get("position"), move_number=number, legal_moves=[*legal])
        try:
            choice = choose(turn)
        except (Exception, SystemExit) as error:
            frames = traceback.extract_tb(error.__traceback__)
            last = [frame for frame in frames if frame.filename == __file__][-1]
            text = f"{type(error).__name__}: {error}"
            self.print_once(f"your choose fails in line {last.lineno}, `{last.line}`: {text}")
            raise NoAnswer(f"its choose fails: {text}")
        if choice in legal:
            match.choices[number] = choice
        else:
            hint = ": does it end without `return`?" if choice is None else ""
            self.print_once(
                f"your choose returned {choice!r}, none of {json.dumps(legal)}{hint}")
        return None if choice is None else str(choice)

    def add_to_history(self, message):
        """Keeps the result of a match, unless the manager has not announced the match to us."""
        match_id, result = message["match_id"], message["game_result"]
        if match_id in self.announced or not self.credentials["proves_itself"]:
            match, choices, moves = (
                self.joined[match_id], result.get("choices"), result.get("moves"))
            choices = choices if isinstance(choices, dict) else {}
            if not isinstance(moves, list):  # Even/Odd: a choice is the only move of each
                moves = [{"player_id": player_id, "move": choice}
                         for player_id, choice in choices.items() if choice]
            moves = [move for move in moves
                     if isinstance(move, dict) and {"player_id", "move"} <= {*move}]
            self.history[match_id] = {
                **result, "match_id": match_id, "opponent_id": match.opponent_id,
                "round_id": match.round_id, "choices": choices, "moves": moves}
            reason = result.get("reason") or message.get("reason") or json.dumps(result)
            print_line(f"{match_id}: {reason}")

    def print_once(self, text):
        """Prints a problem, unless it was printed before."""
        if text not in self.printed:
            self.printed.add(text)
            print_line(f"{self.id}: {text}", sys.stderr)

    # Step 4: a reply repeats the conversation and the token of its request, and never has our own.

    def reply(self, message_type, request, **fields):
        """Returns a reply to a referee."""
        return self.message(message_type, request["conversation_id"],
                            auth_token=request.get("auth_token"), match_id=request["match_id"],
                            player_id=self.id, **fields)

    def message(self, message_type, conversation_id, **fields):
        """Returns a message of the league: the envelope that all have, and its own fields."""
        if not isinstance(conversation_id, str):
            conversation_id = f"conv-{secrets.token_hex(8)}"
        envelope = {"protocol": "league.v2", "message_type": message_type,
                    "sender": f"player:{self.id}", "timestamp": now(),
                    "conversation_id": conversation_id}
        return {**envelope, **{name: value for name, value in fields.items() if value is not None}}

    def refuse(self, message_type, message, code, field, problem):
        """Prints the refusal of a message, and returns the reply."""
        is_notice = message_type.endswith(("ERROR", "OVER"))
        content = f"; it says {json.dumps(message)}" if is_notice else ""
        print_line(f"refused {message_type} from {message.get('sender')}: "
                   f"{code}: {field}: {problem}{content}", sys.stderr)
        match_id = message["match_id"] if isinstance(message.get("match_id"), str) else None
        return self.message("GAME_ERROR" if match_id else "LEAGUE_ERROR",
                            message.get("conversation_id"), match_id=match_id,
                            error_code=code[:4], error_description=code[5:],
                            affected_player=self.id, action_required=message_type,
                            context={"field": field, "problem": problem})

    # Step 5: tokens prove the sender: the manager's messages carry ours, a referee's the match's.

    def check(self, message_type, message):
        """Returns None for a valid message, or else the error code, the field and the problem."""
        needed, token = f"{ENVELOPE} {NEEDED[message_type]}".split(), message.get("auth_token")
        wrong = [name for name in needed if type(message.get(name)) is not TYPES.get(name, str)]
        if not self.is_registered.is_set():
            return "E005 PLAYER_NOT_REGISTERED", "player_id", "no league manager has let us in yet"
        if wrong:
            return "E003 MISSING_REQUIRED_FIELD", ", ".join(wrong), "missing, or of a wrong type"
        if message["protocol"] != "league.v2":
            return "E018 PROTOCOL_VERSION_MISMATCH", "protocol", "must be league.v2"
        if message.get("player_id", self.id) != self.id:
            return "E012 AUTH_TOKEN_INVALID", "player_id", f"this is {self.id}"
        match_id, own = message.get("match_id"), self.credentials["token"]
        if "match_id" not in needed:
            expected = own if own and (token or self.credentials["proves_itself"]) else token
        elif message_type == "GAME_INVITATION":
            unannounced = {*self.joined, match_id} - {*self.announced}
            if match_id in unannounced and len(unannounced) > 100:
                return "E015 MATCH_ID_MISMATCH", "match_id", "one too many that nobody announced"
            expected = self.announced.get(match_id) or token
        elif match_id not in self.joined:
            return "E015 MATCH_ID_MISMATCH", "match_id", "we have not joined this match"
        else:
            match = self.joined[match_id]
            expected = match.token
            if message["conversation_id"] != match.conversation_id:
                return "E015 MATCH_ID_MISMATCH", "conversation_id", "not that of the invitation"
        if hmac.compare_digest(ascii(token), ascii(expected)):
            return None
        return ("E012 AUTH_TOKEN_INVALID" if token else "E011 AUTH_TOKEN_MISSING", "auth_token",
                "missing, or not the right one")

    # Step 6: save the token. A player that is restarted registers again with it.

    def save(self, **changes):
        """Changes our credentials and saves them. No reader sees the file half written."""
        self.credentials.update(changes)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.credentials))
        new.replace(self.file)


def load_credentials(file, manager):
    """Returns the credentials of an earlier run, if its league is not over, or else none."""
    try:
        credentials = json.loads(file.read_text())
        saved = None if credentials.get("over") else credentials.get("manager")
    except (OSError, ValueError, AttributeError):
        return {}
    if saved and saved != manager and credentials.get("token"):
        sys.exit(sanitize(f"{file} is of a league at {saved}: remove it, if that is given up, or "
                          "name another folder with --data DIR"))
    return credentials if saved == manager else {}


def lock(file):
    """Returns a locked file: no other program can use these credentials while we run."""
    lock_file = open(file.with_suffix(".lock"), "a")
    try:
        if os.name == "nt":
            import msvcrt
            msvcrt.locking(lock_file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f"another player is using {file}: end it, or name another folder with --data DIR")
    return lock_file


def post(url, body, timeout=10):
    """Posts JSON. Returns the JSON of the answer and None, or None and a problem."""
    parts = urllib.parse.urlsplit(url)
    is_secure = parts.scheme == "https"
    connect = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
    try:
        connection = connect(parts.netloc, timeout=timeout)
        headers = {"Content-Type": "application/json"}
        connection.request("POST", parts.path, json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read(MAX_BYTES)
        connection.close()
    except (OSError, http.client.HTTPException) as error:
        return None, f"cannot be reached: {error or type(error).__name__}"
    try:
        return json.loads(text), None
    except (ValueError, RecursionError):
        text = text[:200].decode(errors="replace")
        return None, f"answers HTTP {response.status} and {text!r}, which is no JSON"


def explain(error):
    """Returns the problem that an error of the league names, or else the whole error."""
    context = error["context"] if isinstance(error.get("context"), dict) else {}
    if not isinstance(context.get("problem"), str):
        return json.dumps(error)
    field = f"{context['field']}: " if context.get("field") else ""
    consequence = f"; {error['consequence']}" if error.get("consequence") else ""
    return f"{error.get('error_code')} {field}{context['problem']}{consequence}"


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def sanitize(text):
    """Returns a text of others for a terminal: without control characters and tokens, and cut."""
    text = re.sub(r"(tok-\w+-)\w{8,}", r"\1***", text[:4000])
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:1000]


def print_line(text, stream=None):
    print(sanitize(text), file=stream or sys.stdout, flush=True)


def parse_args(parser):
    """Returns the options of the command line."""
    for name, value, text in (
            ("manager", "URL", "the league manager, like http://10.0.0.5:8000 [this machine's]"),
            ("display-name", "NAME", "your name in the table [the name of this file]"),
            ("player-id", "ID", "the id to ask for, like P07 [any]"),
            ("port", "N", "where to listen; 0: any free port [8107 for P07, without an id 8199]"),
            ("host", "ADDRESS", "the address to listen on [this machine only; all, if the manager "
             "is on another]"),
            ("contact-endpoint", "URL", "where others reach us [the address the manager sees]"),
            ("data", "DIR", "the folder of the saved credentials: our id and token [data]"),
            ("seed", "N", "makes `random` repeatable")):
        parser.add_argument(f"--{name}", metavar=value, help=text)
    for name, text in (("any-port", "listen on any free port"),
                       ("stay", "when the league is over, join the next one"),
                       ("until-stdin-closes", "end when standard input closes")):
        parser.add_argument(f"--{name}", action="store_true", help=text)
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
    parts = urllib.parse.urlsplit(url)
    args.manager = url if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}/mcp"
    if not re.fullmatch(r"https?://[^\s/@]+(:\d{1,5})?/\S*", args.manager):
        parser.error(f"--manager: got {url!r}, expected an address like http://10.0.0.5:8000")
    return args


def own_address_towards(url):
    """Returns the address of this machine as the manager's machine sees it."""
    parts = urllib.parse.urlsplit(url)
    if parts.hostname in ("localhost", "::1"):
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((parts.hostname, parts.port or 80))  # sends nothing
            return probe.getsockname()[0]
        except (OSError, UnicodeError) as error:
            sys.exit(f"--manager: there is no way to {parts.hostname} from here: {error}")


def main(player=Player, parser=argparse.ArgumentParser(allow_abbrev=False, description=(
        "A player of the AI Agent League. Options that it does not know are ignored."))):
    args = parse_args(parser)
    sys.stdout.reconfigure(errors="replace")  # not every terminal knows every letter
    os.umask(0o077)  # only we may read our files: they contain a token
    random.seed(args.seed and f"{args.seed} {args.player_id}")
    if args.until_stdin_closes:
        end = threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True)
        end.start()
    own_address = own_address_towards(args.manager)
    is_local = own_address.startswith("127.")
    host = args.host or ("127.0.0.1" if is_local else "0.0.0.0")
    try:
        server = Server((host, int(args.port)), Handler)
    except OSError as error:
        sys.exit(f"{host}, port {args.port}: {error}; take another one with --port (0: any)")
    port = server.server_address[1]
    name = "localhost" if is_local else own_address if host == "0.0.0.0" else host
    url = args.contact_endpoint or f"http://{name}:{port}/mcp"
    own_hosts = {urllib.parse.urlsplit(url).netloc, f"localhost:{port}", f"127.0.0.1:{port}"}
    server.own_origins = [[f"http://{name}"] for name in own_hosts]
    file = pathlib.Path(args.data or "data", "agents", f"{args.player_id or f'port-{port}'}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    lock_file = lock(file)
    credentials = load_credentials(file, args.manager)
    print_line(f"waiting for the league manager at {args.manager}, listening on {url}")
    server.player = player(args, url, file, credentials)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        server.player.register()
        while not server.player.is_finished.wait(1):
            pass
        file.unlink()
        if not args.stay:
            return lock_file.close()
        server.player = player(args, url, file, {})


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
