"""The rest of `player.py`: it joins a league, answers its messages, and calls `choose`.

You need not read this file to play. Its steps are those of "The minimal player" in the league's
protocol (src/protocol.md). All agents use JSON-RPC: a request is an HTTP POST of
{"jsonrpc": "2.0", "method": "ping", "params": {...}, "id": 7}, and its answer is
{"jsonrpc": "2.0", "result": {...}, "id": 7}, or has "error" instead of "result".
The messages of the league are in "params" and in "result".
"""
import argparse, contextlib, hashlib, hmac, http.client, http.server, io, json, os, pathlib, random
import re, secrets, signal, socket, socketserver, subprocess, sys, textwrap, threading, time
import traceback, types, urllib.parse

GAME_TYPES = ["even_odd", "tic_tac_toe"]  # the games that this player plays

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
TIME = "%Y-%m-%dT%H:%M:%SZ"
MAX_SILENCE = 120  # seconds without a word of the manager after which we register again
MAX_ABSENCE = 1800  # seconds without a word of the manager after which we end
MAX_ABSENCE_AT_THE_END = 300  # the same, if the last round is over
MAX_DELAY = 5  # seconds in which the manager calls us after each registration
CHECK_INTERVAL = 2  # seconds between two looks at these times and at our address
POLL_TIME = 10  # seconds that a poll of a relay waits for a request
CALL_TIME = 40  # seconds that a player has for an answer; a choice has 30
MAX_ANSWER = 8 << 10  # bytes of an answer to a relay, whose messages have 10 KB at most


class Server(socketserver.ThreadingTCPServer):  # answers each request in a thread of its own
    daemon_threads, request_queue_size = True, 100
    allow_reuse_address = os.name != "nt"  # on Windows, two programs would share the port

    def start(self, player):
        """Answers requests from now on, for this player."""
        self.player = player
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Prints nothing if a caller hangs up before it has the answer."""


class Output(io.TextIOWrapper):
    """What we print to. If nobody reads it any more, the rest is lost, and we play on."""

    def write(self, text):
        try:
            super().write(text)
            super().flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())


class Turn(types.SimpleNamespace):
    """The argument of `choose`."""


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 30  # seconds; no caller can occupy a thread for longer
    protocol_version = "HTTP/1.1"  # so a caller that asks before it sends a body gets an answer

    def do_POST(self):
        if "Origin" in self.headers:  # browsers send it: no website may call us
            return self.send_error(403)
        body = self.read_body()
        if len(body) > MAX_BYTES:
            return self.send_error(413, f"the body must be at most {MAX_BYTES} bytes")
        reply = self.server.player.respond(body)
        text = "" if reply is None else json.dumps(reply)
        self.send_response(202 if reply is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text.encode())
        if self.server.player.league_completed:
            self.server.player.is_finished.set()  # not before the answer is written

    def read_body(self):
        """Returns the body. Of one that is too long it returns only a part, which is too long."""
        if "Transfer-Encoding" not in self.headers:
            size = int("0" + (self.headers["Content-Length"] or ""))
            return self.rfile.read(min(size, 4 * MAX_BYTES))
        body, size = b"", 1
        while size and len(body) <= MAX_BYTES:  # chunks: each has its size in a line before it
            size = int(b"0" + self.rfile.readline(99).split(b";")[0], 16)
            body += self.rfile.read(min(size, 4 * MAX_BYTES))
            self.rfile.readline(3)
        return body

    def do_GET(self):
        self.send_error(405, "This is a player of the AI Agent League: it answers POST")

    def log_message(self, *_):
        """Prints nothing, so that callers cannot write on the terminal."""


def error_reply(call_id, code, text):
    return {"jsonrpc": "2.0", "id": call_id, "error": {"code": code, "message": text[:1000]}}


class NoAnswer(Exception):
    """We cannot answer. The reason has been printed."""


def with_id(row):
    """Returns the name and the id of a row of the table."""
    return f"{row.get('display_name') or row.get('player_id')} ({row.get('player_id')})"


class Player:
    """The state of this player in one league, and its answers."""

    def __init__(self, choose, args, file, credentials):
        self.choose, self.args = choose, args
        self.file, self.credentials = file, credentials
        self.url = current_url(args)
        self.id = credentials.get("agent_id") or args.player_id or "new"
        self.names = {}       # player id: the name in the table
        self.asked_at = 0.0  # when we last asked the manager for our next match
        self.announced = {}   # match id: a match that the manager has announced to us
        self.joined = {}      # match id: a match that we have joined
        self.history = {}     # match id: how the match ended
        self.printed = set()  # problems that are printed once
        self.is_registered, self.is_finished = threading.Event(), threading.Event()
        self.league_completed, self.max_absence = False, MAX_ABSENCE
        self.heard_at = time.monotonic()  # when the manager last called or answered us
        self.called_at = self.applied_at = 0.0  # when it last called us, and we last applied
        self.is_unknown = False  # true if the manager says that it does not know us

    # Step 2: ask the manager for a registration until it answers.

    def register(self, again=False):
        """Returns when the manager has registered us; ends the program if it rejects us. `again` is
        true while we are in a league: then we also return at the end of the league, and without
        --stay no other league may register us."""
        # It is saved before it is sent: if we are killed meanwhile, the manager knows us by it.
        self.credentials.setdefault("registration_key", secrets.token_hex(16))
        self.save(manager=self.args.manager, endpoint=self.url)
        meta = {"display_name": self.args.display_name, "version": "1.0.0",
                "game_types": GAME_TYPES, "contact_endpoint": self.url,
                "registration_key": self.credentials["registration_key"]}
        if again and not self.args.stay:
            meta["must_be_known"] = True
        message = self.message("LEAGUE_REGISTER_REQUEST", None, player_meta=meta,
                               auth_token=self.credentials.get("token"))
        printed, attempts = set(), 0
        while not (again and self.is_finished.is_set()):
            meta["contact_endpoint"] = self.url = current_url(self.args, self.url)
            self.applied_at = time.monotonic()
            reply, problem = call(self.args.address, "register_player", message)
            answer = result_of(reply)
            if is_accepted(answer):
                return self.accept_registration(answer)
            reason = str(answer.get("reason") or explain(answer))
            is_late = answer.get("error_code") == "E019" or reason.startswith("Removed by")
            is_rejected = answer.get("status") == "REJECTED"
            is_known = "Not a member" in reason and self.silence() <= MAX_SILENCE
            may_move = len(self.args.ports) > 1 and not (again or self.args.has_played)
            if may_move and "its own --port" in reason and os.name != "nt":
                # A player in another folder has had our port: we start again at the next one.
                port = f"--port={self.args.port + 1}"
                os.execv(sys.executable, [sys.executable, *sys.argv, port])
            if is_late and self.args.stay:
                state = "the league is over" if self.args.has_played else "we are too late"
                if answer.get("error_code") != "E019":
                    state = "removed by the operator"
                problem = f"{state}; waiting for the next league (Ctrl-C ends)"
            elif not is_known and (is_rejected or answer.get("message_type") == "LEAGUE_ERROR"):
                sys.exit(sanitize(f"the league manager has rejected us: {reason}"))
            else:
                text = f"answers {json.dumps(reply)[:300]}, which does not let us in"
                problem = problem or result_of(reply, "error").get("message") or text
                problem = f"waiting for the league manager at {self.args.manager}: {problem}"
                attempts += 1
            is_brief = attempts in (1, 2) and (again or self.args.has_played)  # a new lobby opens
            if problem not in printed and not is_brief:
                print_line(problem, sys.stderr)
                printed.add(problem)
            if again and not self.args.stay and self.silence() > self.max_absence:
                sys.exit(f"the league manager at {self.args.manager} does not answer any more")
            time.sleep(2 if is_late else 1)

    def accept_registration(self, answer):
        """Keeps our id and token."""
        old_token, token = self.credentials.get("token"), answer.get("auth_token")
        if old_token and token != old_token:
            print_line(f"{self.id} of an earlier league is given up: its token is not known here")
            self.announced, self.joined, self.history = {}, {}, {}
        self.id, league = answer["player_id"], answer.get("league_id")
        self.save(agent_id=self.id, league_id=league,
                  proves_itself=answer.get("proves_itself") is True,
                  token=token if isinstance(token, str) else None)
        self.heard_at, self.is_unknown = time.monotonic(), False
        self.is_registered.set()
        print_line(f"{self.args.display_name} is {self.id}{f' in {league}' if league else ''}")

    def silence(self):
        """Returns the seconds since the manager last called or answered us."""
        return time.monotonic() - self.heard_at

    def record_ping(self, token):
        """Records a ping of the manager: it carries our own token."""
        own = self.credentials.get("token")
        if own and hmac.compare_digest(ascii(token), ascii(own)):
            self.heard_at = self.called_at = time.monotonic()

    def check_contact(self):
        """Registers again if we may have missed the end, or the manager does not find us."""
        if not self.credentials["proves_itself"]:
            return
        is_uncalled = self.called_at < self.applied_at < time.monotonic() - MAX_DELAY
        if is_uncalled and not self.args.relay:
            self.print_once("nobody can call this machine: start again with --relay")
        has_moved = current_url(self.args, self.url) != self.url
        if self.is_unknown or has_moved or self.silence() > MAX_SILENCE:
            self.register(again=True)

    # Step 3: answer messages.

    def respond(self, body):
        """Returns the JSON-RPC reply to a request; None if it wants no reply."""
        try:
            call = json.loads(body.decode("utf-8-sig"), parse_constant=int)  # no NaN
        except (ValueError, RecursionError):
            return error_reply(None, -32700, "Parse error: this is not JSON in UTF-8")
        call_id = call.get("id") if isinstance(call, dict) else []
        is_legal = not isinstance(call_id, (bool, list, dict))
        if not is_legal or not isinstance(call.get("method"), str) or call.get("jsonrpc") != "2.0":
            text = "Invalid Request: must be one object with jsonrpc 2.0, a method, and an id"
            return error_reply(call_id if is_legal else None, -32600, text)
        message = call["params"] if isinstance(call.get("params"), dict) else {}
        message_type = str(message.get("message_type"))
        self.is_registered.wait(5)  # a request may overtake the answer to the registration
        if call["method"] == "ping":
            self.record_ping(message.get("auth_token"))
            reply = {"jsonrpc": "2.0", "id": call_id, "result": {}}
        elif message_type in NEEDED:  # the type of the message decides, not the method
            try:
                answer = self.handle(message_type, message)
                reply = {"jsonrpc": "2.0", "id": call_id, "result": answer}
            except Exception as error:
                if not isinstance(error, NoAnswer):
                    print_exception(error)
                reply = error_reply(call_id, -32603, str(error))
        else:
            reply = error_reply(call_id, -32601, "Method not found: " + call["method"])
        return reply if "id" in call else None

    def handle(self, message_type, message):
        """Returns the answer to a message of the league."""
        error = self.check(message_type, message)
        if error:
            return self.refuse(message_type, message, *error)
        if message_type == "GAME_INVITATION":
            return self.join(message)
        if message_type in ("CHOOSE_PARITY_CALL", "CHOOSE_MOVE_CALL"):
            return self.move(message_type, message)
        if message_type == "ROUND_ANNOUNCEMENT":
            self.add_announced(message)
        elif message_type == "LEAGUE_STANDINGS_UPDATE":
            self.add_names(message.get("standings"))
        elif message_type == "ROUND_COMPLETED":
            is_last = message.get("next_round_id") is None
            self.max_absence = MAX_ABSENCE_AT_THE_END if is_last else MAX_ABSENCE
        elif message_type == "GAME_OVER":
            self.add_to_history(message)
        elif message_type in ("GAME_ERROR", "LEAGUE_ERROR"):
            match_id, code = str(message.get("match_id") or message_type), message.get("error_code")
            # What is wrong with our choice was printed before.
            if code not in ("E003", "E004") or "is_faulty" not in self.joined.get(match_id, {}):
                self.print_once(f"{match_id}: {explain(message)}")
            self.is_unknown |= (message_type, code) == ("LEAGUE_ERROR", "E005")
        elif message_type == "LEAGUE_COMPLETED" and not self.league_completed:  # it may be repeated
            self.print_end(message)
            self.league_completed = True
        return {"status": "ok"}

    def add_names(self, standings):
        """Keeps the names of the players in a table."""
        for row in standings if isinstance(standings, list) else []:
            if isinstance(row, dict) and isinstance(row.get("display_name"), str):
                self.names[row.get("player_id")] = row["display_name"]

    def add_announced(self, message):
        """Keeps our matches of a round, with the tokens of their invitations."""
        for entry in message["matches"]:
            entry = entry if isinstance(entry, dict) else {}
            players = [entry.get("player_A_id"), entry.get("player_B_id")]
            if self.id in players:
                players.remove(self.id)
                match_id = str(entry.get("match_id"))
                self.announced.pop(match_id, None)  # so that the newest are the last
                self.announced[match_id] = {
                    "opponent_id": players[0], "round_id": message.get("round_id"),
                    "match_token": entry.get("match_token") or message.get("match_token")}
        for match_id in [*self.announced][:-100]:  # a hundred are enough
            self.joined.pop(match_id, None)
            del self.announced[match_id]

    def join(self, invitation):
        """Accepts an invitation. The newest invitation to a match counts."""
        match = {"auth_token": None, **invitation, "choices": {}, "lock": threading.Lock()}
        known = self.joined.setdefault(match["match_id"], match)
        if any(known[name] != match[name] for name in ("conversation_id", "auth_token")):
            self.joined[match["match_id"]] = match
        return self.reply("GAME_JOIN_ACK", invitation, accept=True,
                          arrival_timestamp=time.strftime(TIME, time.gmtime()))

    def move(self, message_type, call):
        """Returns our choice. A repeated call gets the same answer, also while `choose` runs."""
        match, number = self.joined[call["match_id"]], call.get("move_number", 1)
        legal = call["legal_moves"] if message_type == "CHOOSE_MOVE_CALL" else ["even", "odd"]
        with match["lock"]:
            choice = match["choices"].get(number) or self.call_choose(call, match, number, legal)
        if message_type == "CHOOSE_MOVE_CALL":
            return self.reply("CHOOSE_MOVE_RESPONSE", call, move_number=number, move=choice)
        return self.reply("CHOOSE_PARITY_RESPONSE", call, parity_choice=choice)

    def call_choose(self, call, match, number, legal):
        """Calls `choose`, and prints what is wrong with it."""
        history, context = [*self.history.values()], call.get("context")
        moves = [move for past in history for move in past["moves"]]
        turn = Turn(
            player_id=self.id, opponent_id=match["opponent_id"], match_id=call["match_id"],
            round_id=match["round_id"], history=history,
            theirs=[move["move"] for move in moves if move["player_id"] == match["opponent_id"]],
            standings=context.get("your_standings") if isinstance(context, dict) else None,
            deadline=call["deadline"], game_type=call.get("game_type"),
            position=call.get("position"), move_number=number, legal_moves=[*legal])
        try:
            choice = self.choose(turn)
        except BaseException as error:  # also what quit() and Ctrl-C raise
            place, text = describe(error, sys.modules[self.choose.__module__].__file__)
            hint = ""
            if isinstance(error, TypeError) and not place:
                hint = "; it must begin with `def choose(turn):`"
            elif type(error).__name__ in ("EOFError", "BdbQuit"):
                hint = "; in a league it has no keyboard"
            self.print_once(f"{call['match_id']}: your choose fails{place}: {text}{hint}",
                            f"{place} {type(error)}")
            match["is_faulty"] = True
            raise NoAnswer(f"its choose fails: {text}")
        if choice in legal:
            match["choices"][number] = choice
        else:
            hint = ": does it end without `return`?" if choice is None else ""
            if hasattr(choice, "close"):  # a coroutine or a generator
                choice.close()
                hint = ": it must be a plain `def`, without `async` and `yield`"
            match["is_faulty"] = True
            text = f"your choose returned {choice!r}, none of {json.dumps(legal)}{hint}"
            self.print_once(f"{call['match_id']}: {text}", str(type(choice)))
        return None if choice is None else str(choice)[:1000]

    def add_to_history(self, message):
        """Keeps the result of a match, unless the manager has not announced the match to us."""
        match_id, result = message["match_id"], message["game_result"]
        if match_id not in self.announced and self.credentials["proves_itself"]:
            return
        match = self.joined.get(match_id) or self.announced[match_id]
        opponent_id = match["opponent_id"]
        choices = result["choices"] if isinstance(result.get("choices"), dict) else {}
        moves = result.get("moves")
        if not isinstance(moves, list):  # Even/Odd: a choice is the only move of each
            moves = [{"player_id": player_id, "move": choice}
                     for player_id, choice in choices.items() if choice]
        moves = [move for move in moves
                 if isinstance(move, dict) and {"player_id", "move"} <= {*move}]
        past = {**result, "match_id": match_id, "opponent_id": opponent_id,
                "round_id": match["round_id"], "choices": choices, "moves": moves}
        if self.history.get(match_id) == past:
            return  # we are told again, for example since this machine was asleep
        self.history[match_id] = past
        reason = str(result.get("reason") or message.get("reason") or "")
        print_line(f"{match_id}: {self.sentence(result, choices, opponent_id, reason)}")

    def sentence(self, result, choices, opponent_id, reason):
        """Returns a sentence about the result of a match, with names: the winner stands first."""
        players, winner = [self.id, opponent_id], result.get("winner_player_id")
        if winner == opponent_id:
            players.reverse()
        names = {**self.names, self.id: "you"}
        first, second = (names.get(player_id, player_id)
                         + (f" ({choices[player_id]})" if choices.get(player_id) else "")
                         for player_id in players)
        # The reason ends with the winner. Its quoted texts, the odd parts, stay as they were sent.
        reason = (reason or "no reason is known").rsplit(" - ", 1)[0]
        parts = re.split(r'("(?:[^"\\]|\\.)*")', reason)
        for player_id in players:
            parts[::2] = [part.replace(player_id, names.get(player_id, player_id), 1)
                          for part in parts[::2]]
        how = "".join(parts)
        if isinstance(result.get("drawn_number"), int):
            how = f"the number was {result['drawn_number']}"
        if result.get("status") not in ("DRAW", "WIN"):
            return f"{how}, so {first if winner else 'nobody'} won"
        return f"{first} beat {second}: {how}" if winner else f"{first} and {second} drew: {how}"

    def print_end(self, message):
        """Prints who has won the league, and our place."""
        champion, rows = message.get("champion"), message.get("final_standings")
        if not isinstance(champion, dict) or not isinstance(rows, list):
            return
        points, rows = champion.get("points"), [row for row in rows if isinstance(row, dict)]
        equal = [with_id(row) for row in rows if row.get("points") == points
                 and row.get("player_id") != champion.get("player_id")]
        also = f", as many as {' and '.join(equal)}" if equal else ""
        print_line(f"Champion: {with_id(champion)} with {points} points{also}")
        for row in rows:
            if row.get("player_id") == self.id:
                rank, own = row.get("rank"), row.get("points")
                print_line(f"You are {rank} of {len(rows)} with {own} points")

    def print_once(self, text, kind=None):
        """Prints a problem, unless the same, or one of the same kind, was printed before."""
        if (kind or text) not in self.printed:
            self.printed.add(kind or text)
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
                    "sender": f"player:{self.id}", "timestamp": time.strftime(TIME, time.gmtime()),
                    "conversation_id": conversation_id}
        return {**envelope, **{name: value for name, value in fields.items() if value is not None}}

    def refuse(self, message_type, message, code, field, problem):
        """Prints the first refusal of a kind, and returns the reply."""
        match_id = message["match_id"] if isinstance(message.get("match_id"), str) else None
        token = code[:4] == "E015" and self.promised(match_id)
        if not token or token != message.get("auth_token"):  # else the referee invites us again
            self.print_once(f"refused {message_type} from {message.get('sender')}: {code}: {field}:"
                            f" {problem}", f"{message_type} {code}")  # anyone can cause it
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
        match_id = message["match_id"] if "match_id" in needed else None
        own, joined = self.credentials["token"], self.joined.get(str(match_id), {})
        if "match_id" not in needed:
            is_needed = own and (token or self.credentials["proves_itself"])
            expected = own if is_needed else token
        elif message_type == "GAME_INVITATION":
            # Where the manager proves itself, no other program asks for choices: we play only what
            # it has announced, and its rehearsal, whose invitation has our own token.
            is_own = hmac.compare_digest(ascii(token), ascii(own))
            is_demanded = self.credentials["proves_itself"] and not is_own
            end = time.monotonic() + 1  # an invitation may overtake the announcement
            while is_demanded and self.promised(match_id) != token and time.monotonic() < end:
                time.sleep(0.02)
            if is_demanded and self.promised(match_id) != token:
                self.ask_for_next_match()
            unannounced = {*self.joined, match_id} - {*self.announced}
            if match_id in unannounced and (is_demanded or len(unannounced) > 100):
                return "E015 MATCH_ID_MISMATCH", "match_id", "not announced to us"
            expected = self.promised(match_id) or token
        elif (message_type == "GAME_OVER" and token
                and self.promised(match_id) == token != joined.get("auth_token")):
            expected = token  # also if we were restarted since the invitation, or it was lost
        elif not joined:
            return "E015 MATCH_ID_MISMATCH", "match_id", "we have not joined this match"
        else:
            expected = joined["auth_token"]
            if message["conversation_id"] != joined["conversation_id"]:
                return "E015 MATCH_ID_MISMATCH", "conversation_id", "not that of the invitation"
        if hmac.compare_digest(ascii(token), ascii(expected)):
            if "match_id" not in needed:
                self.heard_at = self.called_at = time.monotonic()
            return None
        code = "E012 AUTH_TOKEN_INVALID" if token or match_id else "E011 AUTH_TOKEN_MISSING"
        return code, "auth_token", "missing, or not the right one"

    def promised(self, match_id):
        """Returns the token that the invitation to a match must carry, if we know one."""
        return self.announced.get(match_id, {}).get("match_token")

    def ask_for_next_match(self):
        """Asks the manager for our next match and its token: the announcement may be lost."""
        if time.monotonic() < self.asked_at + 1:  # other programs can cause this
            return
        self.asked_at = time.monotonic()
        query = self.message("LEAGUE_QUERY", None, auth_token=self.credentials["token"],
                             league_id=self.credentials["league_id"], query_type="GET_NEXT_MATCH")
        reply, _ = call(self.args.address, "league_query", query, 2)
        with contextlib.suppress(KeyError, TypeError):  # no answer, or no match is assigned yet
            match = result_of(reply)["data"]["next_match"]
            self.announced[match["match_id"]] = {**match, "match_token": match["match_token"]}

    # Step 6: save the token. A player that is restarted registers again with it.

    def save(self, **changes):
        """Changes our credentials and saves them. No reader sees the file half written."""
        self.credentials.update(changes)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.credentials))
        for _ in range(200):  # Windows refuses while another program reads the file
            try:
                return new.replace(self.file)
            except PermissionError:
                time.sleep(0.01)
        sys.exit(f"{self.file} cannot be replaced: another program uses it")


class Relay:
    """Stands between the manager and a player that nobody can call ("A player that only calls out"
    in the protocol). The player is called at the address that it registers."""

    league_completed = False  # only the player knows

    def __init__(self, manager):
        self.manager, self.token, self.endpoint = manager, None, ""
        self.registration = None  # the last one that was accepted
        self.marks = set()  # what only the player itself can put into a registration
        self.is_open = self.is_over = False
        self.lock = threading.Lock()  # held while the player is registered again
        self.waiting = set()  # the threads that wait for requests
        self.unanswered = set()  # the numbers of requests whose answers the manager does not have
        server = listen("127.0.0.1", [0])
        self.url = f"http://127.0.0.1:{server.server_address[1]}/mcp"  # where the player calls us
        server.start(self)

    def respond(self, body):
        """Passes a call of the player on to the manager, and returns the manager's reply."""
        asked = json.loads(body)
        call_id, params = asked["id"], asked["params"]
        meta = params.get("player_meta", {})
        key, endpoint = meta.get("registration_key"), meta.get("contact_endpoint")
        marks = {ascii(mark) for mark in (params.get("auth_token"), key, endpoint) if mark}
        if meta and self.registration and not marks & self.marks:
            return error_reply(call_id, -32600, "another player is connected here")
        self.endpoint = str(endpoint or self.endpoint)  # used before the reply
        if not self.token:  # a player that is started again has the same key, and the same relay
            text = f"relay {key or secrets.token_hex(16)}"
            self.token = hashlib.sha256(text.encode()).hexdigest()[:32]
        reply, problem = None, self.open() if meta else None
        if not problem:
            message = {"method": asked["method"], "params": params}
            reply, problem = self.call("relay_call", message)
        is_closed = "relay_token" in str(result_of(reply).get("context"))
        if is_closed or not isinstance(reply, dict):
            return error_reply(call_id, -32603, problem or f"answers {json.dumps(reply)[:300]}")
        if meta and is_accepted(result_of(reply)):
            token, self.is_over = result_of(reply).get("auth_token"), False
            meta = {**meta, "must_be_known": True}  # in the same league
            self.registration = {**params, "player_meta": meta, "auth_token": token}
            self.marks = {*marks, ascii(token)}
        return {**reply, "id": call_id}

    def call(self, tool, params, timeout=15):
        return call(self.manager, tool, {"relay_token": self.token, **params}, timeout)

    def open(self):
        """Opens the relay, perhaps again. Returns a problem, or None."""
        reply, problem = self.call("open_relay", {})
        opened = result_of(reply)
        if result_of(reply, "error").get("code") == -32601:
            return "has no relay: ask your teacher to start it with `league class`"
        if "contact_endpoint" not in opened:
            return problem or f"answers {json.dumps(reply)[:300]}, and opens no relay"
        if not self.is_open:
            self.is_open = True
            if opened.get("warning"):
                print_line(str(opened["warning"]), sys.stderr)
            threading.Thread(target=self.poll, daemon=True).start()
        return None

    def register_again(self):
        """Registers the player again if no other thread does: the manager was restarted."""
        body = json.dumps({"method": "register_player", "params": self.registration, "id": 1})
        if self.registration and self.lock.acquire(blocking=False):
            while not self.is_over and not result_of(self.respond(body)):
                time.sleep(1)
            self.lock.release()

    def poll(self):
        """Answers requests. While the player works on one, another thread waits for the next."""
        answers, thread = [], threading.current_thread()
        while True:
            self.waiting.add(thread)
            poll = {"wait_sec": POLL_TIME, "answers": answers, "known": [*self.unanswered]}
            reply, _ = self.call("relay_next", poll, POLL_TIME + 5)
            self.waiting.discard(thread)
            requests = result_of(reply).get("requests")
            if requests is None:  # next time, the same answers again
                if reply is not None:
                    self.register_again()
                time.sleep(0.5)
                continue
            self.unanswered.difference_update(answer["number"] for answer in answers)
            # Another thread may have a request already: a copy of it is dropped.
            requests = [one for one in requests if one["number"] not in self.unanswered]
            self.unanswered.update(request["number"] for request in requests)
            if not self.waiting and requests:
                threading.Thread(target=self.poll, daemon=True).start()
            elif len(self.waiting) > 1 and not requests:
                return  # enough threads wait
            answers = [*filter(None, map(self.answer, requests))]

    def answer(self, request):
        """Returns the player's answer to a request. If nobody is there, nobody answers: the request
        comes again each second, and the player may be started again."""
        number, body = request["number"], request["body"]
        reply, problem = post(self.endpoint, body, CALL_TIME)
        if problem and problem.startswith("cannot be reached"):
            return self.unanswered.discard(number)
        self.is_over |= result_of(body, "params").get("message_type") == "LEAGUE_COMPLETED"
        if problem and "id" in body or len(json.dumps(reply)) > MAX_ANSWER:
            problem = f"the player {problem or 'answers too much'}"
            reply = error_reply(body.get("id"), -32603, problem)
        return {"number": number, "body": reply}

    def deliver(self):
        """Waits until the manager has the last answers, but not for long."""
        end = time.monotonic() + 5
        while self.unanswered and time.monotonic() < end:
            time.sleep(0.05)


def describe(error, *files):
    """Returns where in these files an exception was raised, and its text."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename in files]
    place = f" in line {own[-1].lineno}, `{own[-1].line}`" if own else ""
    return place, traceback.format_exception_only(type(error), error)[-1].strip()


def print_exception(error):
    """Prints an exception outside of `choose` in one line."""
    place, text = describe(error, __file__, sys.modules["__main__"].__file__)
    print_line(f"this program fails{place}: {text}", sys.stderr)


sys.excepthook = lambda kind, error, trace: print_exception(error)
threading.excepthook = lambda fault: print_exception(fault.exc_value)


def result_of(reply, name="result"):
    """Returns the message in a JSON-RPC reply, or with the name "error" its error, or {}."""
    result = reply.get(name) if isinstance(reply, dict) else None
    return result if isinstance(result, dict) else {}


def is_accepted(answer):
    name = json.dumps(answer.get("player_id"))
    return answer.get("status") == "ACCEPTED" and re.fullmatch(r'"[A-Za-z0-9_-]{1,60}"', name)


def load_credentials(file, manager):
    """Returns the credentials of an earlier run, if its league is not over, or else none."""
    try:
        credentials = json.loads(file.read_text(encoding="utf-8-sig"))
        is_ours = credentials["manager"] == manager and credentials["registration_key"]
        return credentials if is_ours or credentials.get("token") else {}  # perhaps it has moved
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError):
        sys.exit(f"{file} is damaged; put it back, or remove it to register as a new player")


def post(url, body, timeout):
    """Posts JSON. Returns the JSON of the answer and None, or None and a problem."""
    try:
        parts = urllib.parse.urlsplit(url)
        is_secure = parts.scheme == "https"
        connect = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        with contextlib.closing(connect(parts.netloc, timeout=timeout)) as connection:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", parts.path, json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read(2 * MAX_BYTES)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return None, f"cannot be reached: {error or type(error).__name__}; is its address right?"
    try:
        return json.loads(text), None
    except (ValueError, RecursionError):
        text = text[:200].decode(errors="replace")
        return None, f"answers HTTP {response.status} and {text!r}, which is no JSON"


def call(url, method, params, timeout=10):
    """Calls a method of JSON-RPC. Returns the same as `post`."""
    return post(url, {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}, timeout)


def explain(error):
    """Returns the problem that an error of the league names, or else its description."""
    context = error["context"] if isinstance(error.get("context"), dict) else {}
    if not isinstance(context.get("problem"), str):
        return f"{error.get('error_code')} {error.get('error_description')}"
    field = f"{context['field']}: " if context.get("field") else ""
    text = f"{error.get('error_code')} {field}{context['problem']}"
    late = ": does choose loop or sleep, wait for input or a lock, or is this machine busy?"
    return text + (late if text[:4] == "E001" and "CHOOSE" in str(context.get("expected")) else "")


def sanitize(text):
    """Returns a text of others for a terminal: without control characters and tokens, and cut."""
    text = re.sub(r"(tok-\w+-)\w{8,}", r"\1***", text[:4000])
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:1000]


def print_line(text, stream=None):
    """Prints a line in one write, so that lines of two threads do not mix."""
    if stream is None and "--quiet" in sys.argv:
        return
    stream, text = stream or sys.stdout, sanitize(text)
    if stream.isatty():
        text = textwrap.fill(text, 80, subsequent_indent="    ", break_on_hyphens=False)
    print(text + "\n", end="", file=stream, flush=True)


OPTIONS = (
    ("manager", "URL", "the league manager, like http://10.0.0.5:8000 [this machine's]"),
    ("display-name", "NAME", "your name in the table [the name of this file]"),
    ("player-id", "ID", "the id to ask for, like P07 [any]"),
    ("port", "N", "where to listen; 0: any [8107 for P07, else the first free one from 8199 on]"),
    ("host", "ADDRESS", "where to listen [this machine only, or all for a manager elsewhere]"),
    ("contact-endpoint", "URL", "where others reach us [the address the manager sees]"),
    ("data", "DIR", "the folder of the saved credentials: our id and token [data]"),
    ("seed", "N", "makes `random` repeatable"),
    ("relay", None, "where nobody can call this machine: the manager passes everything on"),
    ("stay", None, "when the league is over, join the next one"),
    ("quiet", None, "print only problems, and what `choose` prints"),
    ("until-stdin-closes", None, "end when standard input closes"))


def parse_args(parser):
    """Returns the options of the command line."""
    for name, value, text in OPTIONS:
        kind = {"metavar": value} if value else {"action": "store_true"}
        parser.add_argument(f"--{name}", help=text, **kind)
    # A local league gives these to all its players.
    parser.add_argument("--config", "--logs", "--league-id", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.display_name = args.display_name or pathlib.Path(sys.argv[0]).stem
    if not re.fullmatch(r"P\d{2,4}", args.player_id or "P99"):
        parser.error(f"--player-id: got {args.player_id!r}, expected an id like P07")
    port = args.port or str(8100 + int((args.player_id or "P99")[1:]))
    if not port.isdecimal() or int(port) > 65535:
        parser.error(f"--port: got {port!r}, expected a number up to 65535")
    is_fixed = args.port or args.player_id  # else several players of one machine just start
    args.ports = range(int(port), int(port) + (1 if is_fixed else 100))
    args.has_played = False  # true from the second league on
    args.manager = manager_url(args.manager, parser)
    args.host = "127.0.0.1" if args.relay else args.host  # others need not reach us
    args.relay = Relay(args.manager) if args.relay else None
    args.address = args.relay.url if args.relay else args.manager
    return args


def manager_url(url, parser):
    """Returns the URL of the manager at an address."""
    url = url or "http://127.0.0.1:8000"  # the name localhost may be unknown
    url = url if "://" in url else f"http://{url}"
    url = re.split("[#?]", url)[0].rstrip("/")  # the address of the page is the same manager
    url = url if url.count("/") > 2 else f"{url}/mcp"
    if url.startswith("https:") and not call("http" + url[5:], "ping", {}, 2)[1]:
        parser.error(f"--manager: the league manager there has no https; type http{url[5:]}")
    match = re.fullmatch(r"https?://(\[[^\s/@]+\]|[^\s/@:]+)(?::(\d{1,5}))?/\S*", url)
    if not match or int(match[2] or 1) not in range(1, 65536):
        parser.error(f"--manager: got {url!r}, expected an address like http://10.0.0.5:8000")
    return url


def own_address(args):
    """Returns the address of this machine as the manager's machine sees it."""
    parts = urllib.parse.urlsplit(args.manager)
    if args.host not in (None, "0.0.0.0"):
        return args.host
    if parts.hostname in ("localhost", "::1"):
        return "127.0.0.1"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((parts.hostname, parts.port or 80))  # sends nothing
            return probe.getsockname()[0]
    except (OSError, UnicodeError):
        return ""  # at present it has none


def current_url(args, before=None):
    """Returns the URL under which others reach us now, or at present have to reach us."""
    address = own_address(args)
    name = "localhost" if address.startswith("127.") else address
    return args.contact_endpoint or (f"http://{name}:{args.port}/mcp" if name else before)


def listen(host, ports):
    """Returns a server at the first free port. Requests wait until it is started."""
    for port in ports:
        try:
            return Server((host, port), Handler)
        except OSError as error:
            problem = f"{host}, port {port}: {error}; take another one with --port (0: any)"
    sys.exit(problem)


def end_with_stdin():
    """Ends the program when standard input closes. Nobody else reads from it: an `input` in
    `choose` does not wait for ever."""
    stdin = os.fdopen(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=lambda: (stdin.read(), os._exit(0)), daemon=True).start()


def play(args, choose, player=Player):
    """Plays until the league is over, or with --stay league after league."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or open(os.devnull, "w")  # None if it is closed
        stream.flush()
        encoding = stream.encoding if stream.isatty() else "utf-8"
        setattr(sys, name, Output(stream.buffer, encoding, "replace"))  # "?" for unknown letters
        setattr(sys, f"__{name}__", stream)  # if nobody kept it, it would close the buffer
    os.umask(0o077)  # only we may read our files: they contain a token
    random.seed(args.seed and f"{args.seed} {args.player_id}")
    if args.until_stdin_closes:
        end_with_stdin()
    address = own_address(args)
    if not address:
        sys.exit(f"--manager: there is no way to {args.manager} from here: check the address")
    is_local = address.startswith("127.")
    server = listen(args.host or ("127.0.0.1" if is_local else "0.0.0.0"), args.ports)
    args.port = server.server_address[1]
    name = args.player_id or f"port-{args.port}"
    file = pathlib.Path(args.data or "data", "agents", f"{name}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    credentials = load_credentials(file, args.manager)
    way = "through its relay" if args.relay else f"listening on {current_url(args)}"
    print_line(f"waiting for the league manager at {args.manager}, {way}")
    server.start(player(choose, args, file, credentials))

    def hang_up(*_):  # the terminal was closed: we play on to the end of this league
        args.stay = False
        if not server.player.announced:
            os._exit(129)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, hang_up)  # Windows has none, and nohup ignores it
    while True:
        server.player.register()
        while not server.player.is_finished.wait(CHECK_INTERVAL):
            server.player.check_contact()
        if args.relay:
            args.relay.deliver()
        file.unlink()
        if not args.stay:
            return
        args.player_id, args.has_played = server.player.id, True  # the same id, if it is free
        server.player = player(choose, args, file, {})


def stand_in(parser):
    """Starts a player where nobody can call this machine, and stands in for it: python3
    league_player.py --manager http://10.0.0.5:8000 -- ./ada --display-name Ada. The command after
    -- is any player of the league, in any language. It gets --manager in addition, must register
    there, and is called at its contact_endpoint. Its standard input closes when this program ends.
    A player in Python needs no command: it has --relay."""
    parser.add_argument("--manager", metavar="URL", help=OPTIONS[0][2])
    parser.add_argument("--until-stdin-closes", action="store_true", help=OPTIONS[-1][2])
    parser.add_argument("command", nargs="+", help="the command of the player, like ./ada --stay")
    args = parser.parse_args()
    relay = Relay(manager_url(args.manager, parser))
    if args.until_stdin_closes:
        end_with_stdin()
    command = [*args.command, "--manager", relay.url]
    try:
        player = subprocess.Popen(command, stdin=subprocess.PIPE)
    except OSError as error:
        sys.exit(f"{command[0]} cannot be started: {error}")
    code = player.wait()
    if code == 0:  # a player that was killed answers nothing more
        relay.deliver()
    return code


def run(choose):
    """Runs a player that chooses with this function; without one, stands in for a command."""
    text = "A player of the league." if choose else stand_in.__doc__
    parser = argparse.ArgumentParser(allow_abbrev=False, description=text)
    try:
        sys.exit(play(parse_args(parser), choose) if choose else stand_in(parser))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run(None)
