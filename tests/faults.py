#!/usr/bin/env python3
"""A league is played once for each of twelve faults. A fault comes from outside, and its result is judged from outside.

    cargo build && python3 tests/faults.py              all twelve, for the stack and for the small league
    python3 tests/faults.py killed-manager stranger     two of them
    python3 tests/faults.py --of bin/mine               for a copy of bin/small
    python3 tests/faults.py --manager "…" --referee "…" --player "…"    for programs in any language

Each program is a command line that runs in a folder of its own, so that a path in it must be absolute. It has these
placeholders: {port} to listen on, {id} to ask for (P01, REF01), {manager} for the manager's URL, {players} and
{referees} for the numbers with which the league starts by itself. A program without an option for the manager's URL
reads it in config/agents/agents_config.json of that folder; the other files of config/ have the time limits.

The suite has three means. Every agent reaches the manager over a line (`Line`), which sees registrations and reports:
it can lose an answer, or kill a program just then. Some agents are puppets (`Puppet`), which answer as they are told.
The last player to register is the watcher, a puppet: with it the league begins, and it is told tables and the end.

A line for each fault says `holds`, or `falls:` and what a person would see. src/guide/labs.md explains the faults. The
suite needs Linux or macOS, and Python without packages.
"""

import argparse, http.client, http.server, json, os, pathlib, re, resource, shlex, shutil, signal, socket
import socketserver, subprocess, sys, tempfile, threading, time
from real_league import PROJECT, free_ports

LEAGUE = "league_2025_even_odd"
SILENCE = 10  # seconds without any progress after which a league stands still
LIMIT = 90  # seconds for a part of one fault
KEPT = []  # the folders of leagues that fell
METHODS = {
    "REFEREE_REGISTER_REQUEST": "register_referee", "LEAGUE_REGISTER_REQUEST": "register_player",
    "LEAGUE_QUERY": "league_query", "MATCH_RESULT_REPORT": "report_match_result",
    "CHOOSE_PARITY_CALL": "choose_parity", "GAME_OVER": "notify_match_result",
}
BUILT = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target")) / "debug"
STACK = [
    f"{BUILT}/league_manager --port {{port}} --players {{players}} --referees {{referees}}",
    f"{BUILT}/referee --port {{port}} --referee-id {{id}} --manager {{manager}}",
    f"{BUILT}/player --port {{port}} --player-id {{id}} --manager {{manager}}",
]


def copy_of_small(name):
    """The programs of a folder below bin/ that is bin/small or a copy of it."""
    return [
        f"{BUILT}/{name}_manager --port {{port}} --players {{players}}",
        f"{BUILT}/{name}_referee --port {{port}} --referee-id {{id}}",
        f"{BUILT}/{name}_player --port {{port}} --player-id {{id}}",
    ]


class Falls(Exception):
    """What a person would see of a league that falls."""


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def wait(condition, seconds):
    """Waits until a condition is true; returns its last value."""
    until = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < until:
        time.sleep(0.01)
    return found


def port_in(url):
    return int(re.search(r":(\d+)(/|$)", url)[1])


# --- Servers and calls -----------------------------------------------------------------------------------------------


def send(port, call, at_answer=None, timeout=20):
    """Posts a JSON value; returns the one that answers it, or None. `at_answer` is called at its first byte."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", "/mcp", json.dumps(call), {"Content-Type": "application/json"})
        if at_answer and connection.sock.recv(1, socket.MSG_PEEK):
            at_answer()
        return json.loads(connection.getresponse().read())
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def status_for(port, length):
    """Posts a body of so many bytes; returns the HTTP status of the answer, or None."""
    head = f"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), 10) as one:
            try:
                one.sendall(head.encode() + length * b" ")
            except OSError:
                pass  # it may answer, and close, before it has all
            return int(one.recv(20).split()[1])
    except (OSError, ValueError, IndexError):
        return None


def ask(port, message, timeout=10):
    """Sends a league message; returns the message that answers it, {} if there is none."""
    method = METHODS[message["message_type"]]
    reply = send(port, {"jsonrpc": "2.0", "method": method, "params": message, "id": 1}, timeout=timeout) or {}
    return reply.get("result") or reply.get("error") or {}


class Server:
    """Answers JSON posts with `handle(call)`: a JSON value, or None to close the connection without an answer."""

    def __init__(self, port, handle):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                try:
                    reply = handle(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                    if reply is None:
                        return self.connection.shutdown(socket.SHUT_RDWR)
                    body = json.dumps(reply).encode()
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    for part in server.parts(body):
                        self.wfile.write(part)
                except (OSError, ValueError):
                    pass  # the other side has gone

            def log_message(self, *_):
                pass

        class Http(socketserver.ThreadingTCPServer):
            daemon_threads, allow_reuse_address, request_queue_size = True, True, 512

        self.port, self.parts = port, lambda body: [body]
        self.http = Http(("127.0.0.1", port), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class Line(Server):
    """The way to the manager. It passes requests on, and lets them wait while the manager is restarted.

    `before[TYPE](message)` may change a request. `at_answer[TYPE](message)` is called at the first byte of its answer.
    `after[TYPE](message, reply)` returns the reply that goes back, or None for one that is lost."""

    def __init__(self, port, league):
        self.league, self.before, self.at_answer, self.after = league, {}, {}, {}
        self.ports = {}  # the port of each member, by id
        self.registered = []  # the port of each answer to a registration that went back
        self.recorded = {}  # the time of the first acknowledgement of each match
        self.is_open, self.lock = threading.Event(), threading.Lock()
        super().__init__(port, self.pass_on)

    def pass_on(self, call):
        message = call.get("params") or {}
        type = message.get("message_type")
        meta = message.get("player_meta") or message.get("referee_meta")
        port = port_in(meta["contact_endpoint"]) if meta else None
        if type in self.before:
            self.before[type](message)

        self.is_open.wait(10)
        hook = self.at_answer.get(type)
        reply = send(self.league.manager_port, call, hook and (lambda: hook(message)))
        if reply is None:
            return None

        result = reply.get("result") or {}
        if result.get("message_type") == "MATCH_RESULT_ACK":
            self.league.progress = time.monotonic()
            self.recorded.setdefault(message["match_id"], time.monotonic())
        if meta and result.get("status") == "ACCEPTED":
            self.ports[result.get("player_id") or result.get("referee_id")] = port
        if type in self.after:
            reply = self.after[type](message, reply)
        if meta and reply:
            self.registered.append(port)
        return reply


class Puppet(Server):
    """A player or a referee of the suite. `on[TYPE](message)` replaces its usual answer to a message; None is none."""

    def __init__(self, port, league, kind):
        self.league, self.kind, self.on, self.told = league, kind, {}, []
        self.id, self.token, self.is_registered = None, None, threading.Event()
        self.name, self.sender = f"Suite {kind} {port}", f"{kind}:new"
        super().__init__(port, self.answer)

    def register(self):
        meta = {"display_name": self.name, "version": "1.0.0", "game_types": ["even_odd"],
                "contact_endpoint": f"http://127.0.0.1:{self.port}/mcp"}
        type = "LEAGUE_REGISTER_REQUEST"
        if self.kind == "referee":
            type, meta["max_concurrent_matches"] = "REFEREE_REGISTER_REQUEST", 2
        reply = wait(lambda: self.ask(type, **{f"{self.kind}_meta": meta}), 20)
        if reply.get("status") != "ACCEPTED":
            raise Falls(f"another {self.kind} is not accepted: {reply.get('reason') or 'there is no answer'}")
        self.id, self.token = reply[f"{self.kind}_id"], reply["auth_token"]
        self.sender = f"{self.kind}:{self.id}"
        self.is_registered.set()

    def message(self, type, **fields):
        envelope = {"protocol": "league.v2", "message_type": type, "sender": self.sender, "timestamp": now(),
                    "conversation_id": "conv-faults", "league_id": LEAGUE}
        if self.token:
            envelope["auth_token"] = self.token
        return {**envelope, **fields}

    def ask(self, type, **fields):
        return ask(self.league.line.port, self.message(type, **fields))

    def standings(self):
        return self.ask("LEAGUE_QUERY", query_type="GET_STANDINGS", query_params={}).get("data", {}).get("standings")

    def answer(self, call):
        message = call.get("params") or {}
        type = message.get("message_type")
        if type:
            self.is_registered.wait(2)  # a notification may overtake the answer to the registration
            self.league.progress = time.monotonic()
        reply = self.on.get(type, self.usual)(message)
        if reply is None or "jsonrpc" in reply:
            return reply
        self.told.append(message)
        return {"jsonrpc": "2.0", "result": reply, "id": call.get("id")}

    def usual(self, message):
        type = message.get("message_type")
        fields = ("conversation_id", "round_id", "match_id", "auth_token")
        common = {key: message[key] for key in fields if key in message} | {"player_id": self.id}
        if type == "GAME_INVITATION":
            return self.message("GAME_JOIN_ACK", **common, arrival_timestamp=now(), accept=True)
        if type == "CHOOSE_PARITY_CALL":
            return self.message("CHOOSE_PARITY_RESPONSE", **common, parity_choice="even")
        return {"status": "ok"}

    def before_first(self, type, action):
        """Calls `action` with the first message of a type, before that is answered."""
        first = threading.Lock()

        def answer(message):
            if first.acquire(blocking=False):
                action(message)
            return self.usual(message)

        self.on[type] = answer

    def report(self, entry, round, winner, score, number, choices, **envelope):
        """Reports a result; returns true if it is acknowledged."""
        result = {"winner": winner, "score": score, "details": {"drawn_number": number, "choices": choices}}
        reply = self.ask("MATCH_RESULT_REPORT", round_id=round, match_id=entry["match_id"], game_type="even_odd",
                         result=result, **envelope)
        return reply.get("message_type") == "MATCH_RESULT_ACK"

    def of_type(self, type):
        return [message for message in list(self.told) if message.get("message_type") == type]


# --- The league ------------------------------------------------------------------------------------------------------


class League:
    """A league of the programs under test, the line before their manager, and the watcher.

    The time limits are long where none has to pass: on a busy machine a program that is well may take a second."""

    def __init__(self, programs, players=4, referees=1, limit=5, max_files=None):
        self.programs, self.players, self.referees, self.max_files = programs, players, referees, max_files
        self.ports = free_ports(2 * players + referees + 10)
        line_port = self.ports.pop()
        self.manager_port, self.manager = None, f"http://127.0.0.1:{line_port}/mcp"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
        shutil.copytree(PROJECT / "config", self.folder / "config")
        limits = ("move", "game_join_ack", "generic_response", "game_over", "register_player", "register_referee")
        self.configure("system.json", timeouts={f"{name}_timeout_sec": limit for name in limits},
                       network={"default_league_manager_port": line_port},
                       retry_policy={"max_retries": 3, "base_delay_sec": 0.3})
        self.configure(f"leagues/{LEAGUE}.json", scheduling={"round_announcement_lead_sec": 0})
        self.configure("agents/agents_config.json", league_manager={"endpoint": self.manager})
        self.running, self.commands, self.lost, self.final = {}, {}, [], []
        self.progress = time.monotonic()
        self.line = Line(line_port, self)
        self.servers = [self.line]
        self.watcher = self.puppet()
        self.watcher.on["LEAGUE_COMPLETED"] = self.complete

    def configure(self, name, **parts):
        path = self.folder / "config" / name
        content = json.loads(path.read_text())
        for key, part in parts.items():
            content[key].update(part)
        path.write_text(json.dumps(content))

    def complete(self, message):
        if not self.final:  # the manager may end as soon as it is answered
            self.final = self.watcher.standings() or message["final_standings"]
        return {"status": "ok"}

    def __enter__(self):
        return self

    def __exit__(self, type, *_):
        for name in self.running:
            self.kill(name)
        for server in self.servers:
            server.close()
        if type:
            KEPT.append(self.folder)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def puppet(self, kind="player"):
        self.servers.append(Puppet(self.ports.pop(), self, kind))
        return self.servers[-1]

    def start(self, *puppets, begin=True, late=0):
        """Starts the manager and the other programs, one after the other, and registers the puppets; the watcher is the
        last to register, if the league is to begin, but for programs that come `late`."""
        self.manager_port = self.start_program("manager", self.programs[0])
        self.line.is_open.set()
        kinds = [puppet.kind for puppet in puppets]
        for n in range(1, self.referees - kinds.count("referee") + 1):
            self.add(f"REF{n:02}", self.programs[1])
        players = [f"P{n:02}" for n in range(1, self.players - kinds.count("player"))]
        for id in players[late:]:
            self.add(id, self.programs[2])
        for puppet in (*puppets, self.watcher) if begin else puppets:
            puppet.register()
        for id in players[:late]:
            self.add(id, self.programs[2])

    def add(self, id, command):
        """Starts an agent and waits until it is registered."""
        port = self.start_program(id, command)
        wait(lambda: port in self.line.registered or self.running[id].poll() is not None, 15)
        if port not in self.line.ports.values():
            lines = (self.folder / f"{id}.txt").read_text(errors="replace").split("\n")
            raise Falls(f"{id} is not registered: {([''] + [line for line in lines if line])[-1]}")

    def start_program(self, name, command):
        """Starts a program, and returns its port; another one if it is in use by now."""
        port = self.ports.pop()
        values = dict(port=port, id=name, manager=self.manager, players=self.players, referees=self.referees)
        words = [word.format(**values) for word in shlex.split(command)]
        if self.max_files:
            words = ["sh", "-c", f'ulimit -S -n {self.max_files} && exec "$0" "$@"', *words]
        self.commands[name] = words, port
        self.run(name)
        has_ended = self.running[name].poll() is not None
        return self.start_program(name, command) if has_ended and listens(port) else port

    def run(self, name):
        """Starts a program, perhaps again, and waits until it listens or has ended."""
        words, port = self.commands[name]
        with open(self.folder / f"{name}.txt", "a") as output:
            process = subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.running[name] = process
        wait(lambda: process.poll() is not None or listens(port), 15)

    def kill(self, name):
        self.running[name].kill()
        self.running[name].wait()

    def name_at(self, id):
        """The name here of the program that has this id in the league."""
        return next(name for name, (_, port) in self.commands.items() if port == self.line.ports[id])

    def end(self):
        """Waits for the end, and judges it: each match has a result, and none was lost technically."""
        self.progress = time.monotonic()
        wait(lambda: self.final or time.monotonic() - self.progress > SILENCE, LIMIT)
        if not self.final:
            raise Falls(self.standstill())
        for row in self.final:
            if row.get("played", self.players - 1) != self.players - 1:
                raise Falls("at the end a player has more or fewer matches than opponents")
        if sum(row.get("wins", 0) for row in self.final) > sum(row.get("losses", 0) for row in self.final):
            raise Falls("the final table has more wins than losses")
        rounds = {message["round_id"]: message["summary"] for message in self.watcher.of_type("ROUND_COMPLETED")}
        lost = sum(summary["technical_losses"] for summary in rounds.values())
        if lost:
            raise Falls(f"{lost} matches are lost technically, of players that were there")

    def standstill(self):
        """What a person sees of a league that stands still."""
        reply = self.watcher.ask("LEAGUE_QUERY", query_type="GET_STANDINGS", query_params={})
        if not reply:
            return "the manager does not answer any more"
        if "data" not in reply:
            return f"the manager does not know its players any more ({reply.get('error_code')}), and nothing happens"
        played = sum(row["played"] for row in reply["data"]["standings"])
        tables = self.watcher.of_type("LEAGUE_STANDINGS_UPDATE")
        if tables and sum(row["played"] for row in tables[-1]["standings"]) > played:
            return "the league stands still, and results that were in the table are lost"
        ended = [name for name, process in self.running.items() if process.poll() is not None]
        ended = [f"{name} has ended" for name in ended if name not in self.lost]
        return "; ".join(["the league stands still, with matches that get no result", *ended])


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def fall_of(action, *arguments, **options):
    """Returns how a league falls, None if it holds."""
    try:
        action(*arguments, **options)
    except Falls as fall:
        return fall
    except (KeyError, TypeError) as problem:
        return Falls(f"a message is not as the protocol has it ({problem!r})")


# --- The faults ------------------------------------------------------------------------------------------------------


def killed_manager(programs):
    """From round 2 on the manager is killed as soon as it answers the first report of a match, before the referee has
    the answer, and started again."""
    with League(programs) as league:
        killed = []

        def kill(message):
            match = message["match_id"]
            if not match.startswith("R1") and match not in killed:
                league.running["manager"].kill()  # at once; two reports may be answered at the same time
                with league.line.lock:
                    league.line.is_open.clear()
                    killed.append(match)
                    league.kill("manager")
                    league.run("manager")
                    league.line.is_open.set()

        league.line.at_answer["MATCH_RESULT_REPORT"] = kill
        league.start()
        league.end()


def killed_player(programs):
    """A player is killed between its invitation and its choice, and started again."""
    with League(programs) as league:

        def kill(message):
            time.sleep(0.3)  # the opponent has its invitation too
            name = league.name_at(message["opponent_id"])
            league.kill(name)
            before = len(league.line.registered)
            league.run(name)
            wait(lambda: len(league.line.registered) > before, 3)

        league.watcher.before_first("GAME_INVITATION", kill)
        league.start()
        league.end()


def killed_referee(programs):
    """The referee is killed while two players compute their choices, and started again."""
    with League(programs) as league:

        def kill(_):
            league.kill("REF01")
            threading.Timer(0.2, league.run, ("REF01",)).start()

        league.watcher.before_first("CHOOSE_PARITY_CALL", kill)
        league.start()
        league.end()


def lost_referee(programs):
    """One of two referees is killed in a match, for good. Then, in another league, one takes its matches and is gone;
    when another one reports a match in its place, a player reports it too, and the first referee after all."""
    with League(programs, referees=2) as league:

        def kill(message):
            league.lost.append(league.name_at(message["sender"].split(":")[1]))
            league.kill(league.lost[0])

        league.watcher.before_first("CHOOSE_PARITY_CALL", kill)
        league.start()
        league.end()

    with League(programs, referees=2) as league:
        gone, matches, taken = league.puppet("referee"), {}, {}

        def take(message):
            for entry in message["matches"]:
                if port_in(entry["referee_endpoint"]) == gone.port:
                    matches[entry["match_id"]] = entry
            threading.Thread(target=gone.close, daemon=True).start()  # nobody listens there any more
            return {"status": "ok"}

        def late(message):
            entry = matches.pop(message["match_id"], None)
            if entry and not taken:
                a, b = entry["player_A_id"], entry["player_B_id"]
                result = message["round_id"], a, {a: 3, b: 0}, 8, {a: "even", b: "odd"}
                taken["a player"] = league.watcher.report(entry, *result)
                taken["the first referee"] = gone.report(entry, *result)

        gone.on["ROUND_ANNOUNCEMENT"], league.line.before["MATCH_RESULT_REPORT"] = take, late
        league.start(gone)
        league.end()
        if taken.get("a player"):
            raise Falls("a player reports a match, and the manager records it")
        if not taken.get("the first referee"):
            raise Falls("a referee that was thought dead reports its match first, and is refused")


def lost_answers(programs):
    """The first answer to each registration and to each report is lost. The watcher asks for the id of another player,
    and has the name of another puppet."""
    with League(programs, players=5) as league:
        seen, replies = set(), {}

        def lose(key, reply):
            if key in seen:
                return reply
            seen.add(key)

        def registration(message, reply):
            return lose((message.get("player_meta") or message["referee_meta"])["contact_endpoint"], reply)

        def report(message, reply):
            replies.setdefault(message["match_id"], []).append(reply.get("result", {}).get("message_type"))
            return lose(message["match_id"], reply)

        league.line.after = {"LEAGUE_REGISTER_REQUEST": registration, "REFEREE_REGISTER_REQUEST": registration,
                             "MATCH_RESULT_REPORT": report}
        other = league.puppet()
        other.name = league.watcher.name = "Twin"
        seen.update(f"http://127.0.0.1:{puppet.port}/mcp" for puppet in (other, league.watcher))
        league.watcher.sender = "player:P02"

        def join(message):  # when each report so far was repeated, else the league is over before
            wait(lambda: all(len(types) > 1 for types in list(replies.values())), 3)
            return league.watcher.usual(message)

        league.watcher.on["GAME_INVITATION"] = join
        fall = fall_of(league.start, other, late=1)
        if len(set(league.line.ports.values())) < len(league.line.ports):
            raise Falls("an agent that registers again, as the answer was lost, is two agents")
        if not set(league.line.registered) <= set(league.line.ports.values()):
            raise Falls("a player that has the name of another one, or asks for its id, is taken for it")
        if fall or (fall := fall_of(league.end)):
            raise fall
        if any(set(types) != {"MATCH_RESULT_ACK"} for types in replies.values()):
            raise Falls("a report that comes again is refused")


def asked_again(programs):
    """The first two answers to each call for a choice are lost: the third is the same."""
    with League(programs, referees=2) as league:
        choices = {}

        def seat(message):
            """Puts a server before the player that registers; it loses the answers."""
            meta = message["player_meta"]
            target = port_in(meta["contact_endpoint"])

            def pass_on(call):
                asked, reply = call.get("params") or {}, send(target, call)
                if asked.get("message_type") != "CHOOSE_PARITY_CALL" or not reply:
                    return reply
                given = choices.setdefault((target, asked["match_id"]), [])
                given.append((reply.get("result") or {}).get("parity_choice"))
                return reply if len(given) > 2 else None

            league.servers.append(Server(league.ports.pop(), pass_on))
            meta["contact_endpoint"] = f"http://127.0.0.1:{league.servers[-1].port}/mcp"

        league.line.before["LEAGUE_REGISTER_REQUEST"] = seat
        league.start()
        league.end()
        if any(len(set(given)) > 1 for given in choices.values()):
            raise Falls("a player that is asked again for the same choice gives another one")


def false_report(programs):
    """A referee reports results that cannot be, and a result of another referee's match; a player reports one, too; and
    another program reports one with a token that is cut off. Each must be refused, and then the true report recorded."""
    with League(programs, referees=2) as league:
        liar, taken, was_true = league.puppet("referee"), set(), []

        def lie(entry, other, round):
            a, b = entry["player_A_id"], entry["player_B_id"]
            x, y = other["player_A_id"], other["player_B_id"]
            choices, others = {a: "even", b: "odd"}, {x: "even", y: "odd"}
            true = (entry, round, a, {a: 3, b: 0}, 8, choices)
            lies = {  # what is false, and who reports it
                "a result with 300 points": (liar, entry, round, a, {a: 300, b: 0}, 8, choices),
                "the number 11": (liar, entry, round, b, {a: 0, b: 3}, 11, choices),
                "a victory against the number": (liar, entry, round, b, {a: 0, b: 3}, 8, choices),
                "a player of another match": (liar, entry, round, x, {x: 3, b: 0}, 8, {x: "even", b: "odd"}),
                "the match of another referee": (liar, other, round, x, {x: 3, y: 0}, 8, others),
                "a player's own report": (league.watcher, *true),
            }
            # Where the first lie is recorded in round 1, the second is the first in round 2.
            for what, (agent, *report) in list(lies.items())[round - 1 :]:
                if agent.report(*report):
                    taken.add(what)
            if any(liar.report(*true, auth_token=token) for token in (liar.token[:20], "")):
                taken.add("a report without the whole token")
            was_true.append(wait(lambda: liar.report(*true), 5))

        def play(message):
            own = [one for one in message["matches"] if port_in(one["referee_endpoint"]) == liar.port]
            other = next(one for one in message["matches"] if one not in own)
            for entry in own:
                threading.Thread(target=lie, args=(entry, other, message["round_id"]), daemon=True).start()
            return {"status": "ok"}

        liar.on["ROUND_ANNOUNCEMENT"] = play
        league.start(liar)
        fall = fall_of(league.end)
        wait(lambda: len(was_true) == 3, 5)
        if taken:
            raise Falls(f"the manager records {', '.join(sorted(taken))}")
        if fall or was_true != [True] * 3:
            raise fall or Falls("the manager refuses a true report")


def stranger(programs):
    """The opponent asks a player for its choice before the referee does, and tells it a false end of the match: with
    its own token of the match, with parts of it, and without one."""
    with League(programs) as league:
        watcher, replies, met = league.watcher, {"CHOOSE_PARITY_CALL": [], "GAME_OVER": []}, []

        def intrude(message):
            opponent, own = message["opponent_id"], message.get("auth_token") or "tok-" + 32 * "0"
            time.sleep(0.3)  # the opponent has its invitation too
            fields = {key: message.get(key) for key in ("conversation_id", "sender", "round_id", "match_id")}
            fields |= {"player_id": opponent, "game_type": "even_odd", "deadline": now(), "game_result": {
                "status": "WIN", "winner_player_id": watcher.id, "drawn_number": 8, "number_parity": "even",
                "choices": {watcher.id: "even", opponent: "odd"}, "reason": "the opponent says so"}}
            for token in (own, own[: own.rindex("-") + 1], own[:4], "", None):
                for type in replies:
                    false = watcher.message(type, **fields, auth_token=token)
                    replies[type].append(ask(league.line.ports[opponent], false))

        def invited(message):
            if message["opponent_id"] not in met:
                met.append(message["opponent_id"])
                intrude(message)
            return watcher.usual(message)

        watcher.on["GAME_INVITATION"] = invited
        league.start()
        fall = fall_of(league.end)
        if any(reply.get("parity_choice") for reply in replies["CHOOSE_PARITY_CALL"]):
            raise Falls("a player tells its opponent what it chooses")
        if any(reply.get("status") == "ok" for reply in replies["GAME_OVER"]):
            raise Falls("a player believes its opponent a false end of the match")
        if fall or len(met) != 3:
            raise fall or Falls("the watcher did not meet three players")


def slow_player(programs):
    """Of ten players one answers a byte a second, and one says nothing. The others wait less than two seconds for the
    first match and for tables, and get them in order; every other table must be sent again to the watcher."""
    with League(programs, players=10, referees=2, limit=1) as league:
        slow, silent = league.puppet(), league.puppet()
        tables, lost = [], set()

        def table(message):
            played = sum(row["played"] for row in message["standings"]) // 2
            if played % 2 == 1 and played not in lost:
                lost.add(played)
                return None
            tables.append((time.monotonic(), played))
            return {"status": "ok"}

        def drip(body):
            for n in range(len(body)):
                time.sleep(1)
                yield body[n : n + 1]

        def delays():
            """The times from the start to the first result, and from each result to a table that has it."""
            results = sorted(list(league.line.recorded.values()))
            found = [min([*results, time.monotonic()]) - began]
            for count, at in enumerate(results, 1):
                told = [seen for seen, played in list(tables) if played >= count]
                found.append(min([*told, time.monotonic()]) - at)
            return found

        league.watcher.on["LEAGUE_STANDINGS_UPDATE"] = table
        league.start(slow, silent, begin=False)
        slow.parts = drip
        silent.usual = lambda _: time.sleep(30)
        began = time.monotonic()
        league.watcher.register()
        wait(lambda: len(delays()) > 8, 15)
        time.sleep(0.5)
        if len(delays()) < 4:
            raise Falls(league.standstill())
        played = [count for _, count in tables]
        if played != sorted(played):
            raise Falls("an older table comes after a newer one")
        if sum(delay > 2 for delay in delays()) >= 3:  # one or two may be the machine's
            raise Falls("the others wait more than two seconds for a table")


def flood(programs):
    """A body of 100 MB and 1,000 silent connections come to the manager, a referee and a player, which may open 1,024
    files each. They are held for five seconds, and let go; then each gets a body of 1 MB, and a league is played."""
    with League(programs, max_files=1024) as league:
        league.start(begin=False)
        ports = [league.commands[name][1] for name in ("manager", "REF01", "P01")]
        held = []

        def send_body(port):
            head = "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n"
            try:
                with socket.create_connection(("127.0.0.1", port), 2) as one:
                    one.sendall(head.encode())
                    for _ in range(100):
                        one.sendall(1000000 * b"x")
            except OSError:
                pass  # it was refused

        def hold(port):
            refused = 0
            for _ in range(1000):
                try:
                    held.append(socket.create_connection(("127.0.0.1", port), 0.5))
                except OSError:
                    refused += 1
                if refused == 5:
                    return

        for attack in (send_body, hold):
            threads = [threading.Thread(target=attack, args=(port,), daemon=True) for port in ports]
            [one.start() for one in threads]
            [one.join(15) for one in threads]
        time.sleep(5)
        [one.close() for one in held]
        ping = {"jsonrpc": "2.0", "method": "ping", "id": 1}
        for name, port in zip(("the manager", "REF01", "P01"), ports):
            if not wait(lambda: send(port, ping, timeout=2), 10):
                raise Falls(f"after the flood {name} takes no request any more")
            if (status := status_for(port, 1000000)) != 413:
                raise Falls(f"{name} answers a body of 1 MB with {status or 'nothing'}, not with 413")
        league.watcher.register()
        league.end()


def dialect(programs):
    """A player writes times without hyphens, replies under `params`, and leaves out what the receiver knows."""
    with League(programs) as league:
        other = league.puppet()

        def reply(message):
            message = other.usual(message)
            for key in ("protocol", "sender", "timestamp", "conversation_id", "league_id", "round_id", "auth_token"):
                message.pop(key, None)
            if "arrival_timestamp" in message:
                message["arrival_timestamp"] = message["arrival_timestamp"].replace("-", "").replace(":", "")
            return {"jsonrpc": "2.0", "params": message, "id": 1}

        other.on = {"GAME_INVITATION": reply, "CHOOSE_PARITY_CALL": reply}
        league.start(other)
        league.end()


def processor_time(process):
    """The seconds of processor time that a process has used so far."""
    if os.path.exists("/proc/self/stat"):
        user, system = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    shown = subprocess.run(["ps", "-o", "time=", "-p", str(process.pid)], capture_output=True, text=True).stdout
    return sum(float(part) * 60**n for n, part in enumerate(reversed(re.split("[:-]", shown.strip()))))


def cost(programs, players, rounds, limit=None):
    """The processor time that the programs need for a result, after the first round; or more than `limit`, where it
    stops. The referee is a puppet, which reports all results of a round together, soon after the announcement."""
    with League(programs, players=players, limit=10) as league:
        referee, used = league.puppet("referee"), {}

        def play(message):
            for entry in message["matches"]:
                a, b = entry["player_A_id"], entry["player_B_id"]
                report = entry, message["round_id"], a, {a: 3, b: 0}, 8, {a: "even", b: "odd"}
                repeat = lambda report=report: time.sleep(0.5) or wait(lambda: referee.report(*report), 30)
                threading.Thread(target=repeat, daemon=True).start()
            return {"status": "ok"}

        def total():
            for name, process in league.running.items():
                try:
                    used[name] = max(processor_time(process), used.get(name, 0))
                except (OSError, ValueError):
                    pass  # it has ended
            return sum(used.values())

        def is_over(round):
            if time.monotonic() - league.progress > SILENCE:
                raise Falls(league.standstill())
            return any(message["round_id"] >= round for message in league.watcher.of_type("ROUND_COMPLETED"))

        referee.on["ROUND_ANNOUNCEMENT"] = play
        league.start(referee)
        wait(lambda: is_over(1), LIMIT)
        before, matches = total(), players // 2 * rounds
        if not wait(lambda: is_over(1 + rounds) or limit and total() - before > limit * matches, LIMIT):
            raise Falls(league.standstill())
        return (total() - before) / matches


def fifty(programs):
    """A result among fifty players costs at most four times the processor time of one among ten."""
    few = cost(programs, players=10, rounds=8)
    if cost(programs, players=50, rounds=2, limit=4 * few) > 4 * few:
        raise Falls("a result among 50 players costs more than four times what it costs among 10")


FAULTS = {function.__name__.replace("_", "-"): function for function in (
    killed_manager, killed_player, killed_referee, lost_referee, lost_answers, asked_again,
    false_report, stranger, slow_player, flood, dialect, fifty,
)}


# --- The suite -------------------------------------------------------------------------------------------------------


def examine(name, programs):
    """Plays one league; returns the seconds that it took, and the verdict."""

    def give_up(*_):
        raise Falls("it has not ended in time")

    began = time.monotonic()
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(2 * LIMIT)
    fall = fall_of(FAULTS[name], programs)
    signal.alarm(0)
    return time.monotonic() - began, f"falls: {fall}" if fall else "holds"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {' '.join(FAULTS)}")
    parser.add_argument("--of", metavar="LEAGUE", help="stack, or a folder: bin/small or a copy of it")
    for kind in ("manager", "referee", "player"):
        parser.add_argument(f"--{kind}", metavar="COMMAND")
    options = parser.parse_args()
    if unknown := set(options.names) - set(FAULTS):
        parser.error(f"there is no fault {' '.join(unknown)}; there are: {' '.join(FAULTS)}")
    given = [options.manager, options.referee, options.player]
    if all(given):
        leagues = {"": given}
    elif any(given):
        parser.error("--manager, --referee and --player belong together")
    elif options.of:
        leagues = {options.of: STACK if options.of == "stack" else copy_of_small(pathlib.Path(options.of).name)}
    else:
        leagues = {"the stack": STACK, "the small league": copy_of_small("small")}
    for command in sum(leagues.values(), []):
        if not shutil.which(shlex.split(command)[0]):
            parser.error(f"there is no program {shlex.split(command)[0]}: cargo build makes those of this project")

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard < 0 else min(hard, 8000), hard))
    sys.setswitchinterval(0.0005)
    if is_pair := len(leagues) == 2:
        print(f"{'':16}{'the stack':15}the small league")
    wrong, began = 0, time.monotonic()
    for name in options.names or FAULTS:
        print(f"{name:16}", end="", flush=True)
        for column, programs in enumerate(leagues.values()):
            seconds, verdict = examine(name, programs)
            print(f"{seconds:3.0f} s  {verdict:10}", end="", flush=True)
            wrong += (verdict == "holds") != (column == 0)
        print()
        if KEPT and not is_pair:
            print(f"{'':16}its output and its logs are in {KEPT[-1]}")
        while is_pair and KEPT:
            shutil.rmtree(KEPT.pop(), ignore_errors=True)
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
