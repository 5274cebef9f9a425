"""Starts a player that is not changed, where nobody can call this machine:

    python3 connect.py --manager http://10.0.0.5:8000 -- target/debug/ada --display-name Ada

The player's manager is this program, which passes the player's calls on to a relay of the league
manager, and polls that relay for the player's requests ("A player that only calls out" in
src/protocol.md). `league_player.py` must be in the same folder.
"""
import hmac, http.server, json, secrets, subprocess, sys, threading, time

from league_player import Server, post, print_line, result_of

MAX_WAITING = 3  # threads that wait for a request
CALL_TIME = 40  # seconds for a call: a poll takes 25, and a choice 30
MAX_ANSWER = 9 << 10  # bytes of the player's answer: a poll carries it


class Connection:
    """A player and its relay."""

    def __init__(self, manager):
        self.manager, self.token = manager, secrets.token_hex(16)
        self.registration, self.is_accepted, self.is_over = {}, False, False
        self.unanswered = set()  # the numbers of requests whose answers the relay does not have
        self.waiting, self.opened, self.lock = 0, 0, threading.Lock()

    def call(self, tool, call_id=1, /, **params):
        params["relay_token"] = self.token
        body = {"jsonrpc": "2.0", "method": tool, "params": params, "id": call_id}
        return post(self.manager, body, CALL_TIME)

    def open_relay(self, seen):
        """Opens the relay, and registers the player again, unless another thread has done it."""
        with self.lock:
            attempts = 0
            while self.opened == seen:
                reply, problem = self.call("open_relay")
                if result_of(reply, "error").get("code") == -32601:
                    problem = "has no relay: ask your teacher to start it with `league class`"
                elif not problem and isinstance(reply, dict) and "result" in reply:
                    if seen == 0 and result_of(reply).get("warning"):
                        print_line(result_of(reply)["warning"], sys.stderr)
                    if self.is_accepted and not self.is_over:
                        problem = self.call_manager(self.registration)[1]
                    if not problem:
                        self.opened += 1
                        return
                attempts += 1
                if attempts == (3 if seen else 1):  # a new lobby opens in a moment
                    print_line(f"waiting for the league manager at {self.manager}: it {problem}",
                               sys.stderr)
                time.sleep(1)

    def call_manager(self, call):
        """Passes a call of the player on. An accepted registration is kept, with its token."""
        params = call["params"]
        if "player_meta" in params and not self.registration:
            self.registration = call  # a request may come before the answer
        reply, problem = self.call("relay_call", call.get("id"), method=call["method"],
                                   params=params)
        answer = result_of(reply)
        if "player_meta" in params and answer.get("status") == "ACCEPTED":
            meta = {**params["player_meta"], "must_be_known": True}
            params = {**params, "player_meta": meta, "auth_token": answer.get("auth_token")}
            self.registration = {**call, "params": params}
            self.is_accepted, self.is_over = True, False
        elif reply and not isinstance(reply, dict):
            problem = "answers no JSON-RPC"
        return reply, problem

    def is_of_player(self, call):
        """Returns false for a registration of another program, which would take our place."""
        own, new = self.registration.get("params", {}), call["params"]
        pairs = [(own.get("auth_token"), new.get("auth_token"))]
        for name in ("contact_endpoint", "registration_key"):
            pairs.append((own.get("player_meta", {}).get(name), new["player_meta"].get(name))
                         if "player_meta" in new else ("", ""))
        same = [a and hmac.compare_digest(ascii(a), ascii(b)) for a, b in pairs]
        return not self.is_accepted or "player_meta" not in new or any(same)

    def poll(self):
        """Asks for requests. Another thread waits for the next one while the player answers."""
        answers = []
        while True:
            seen, is_spare = self.opened, self.waiting >= MAX_WAITING
            self.waiting += 1
            wait = {"wait_sec": 0} if is_spare else {}
            reply, _ = self.call("relay_next", answers=answers, known=[*self.unanswered], **wait)
            self.waiting -= 1
            requests = result_of(reply).get("requests")
            if isinstance(reply, dict):  # else they may be lost
                self.unanswered.difference_update(answer["number"] for answer in answers)
                answers = []
            if requests is None:
                self.open_relay(seen)
                time.sleep(1)
                continue
            if not requests and is_spare:
                return
            self.unanswered.update(request["number"] for request in requests)
            if requests and not self.waiting:
                threading.Thread(target=self.poll, daemon=True).start()
            answers += [self.ask_player(request) for request in requests]

    def ask_player(self, request):
        body = request["body"]
        endpoint = self.registration.get("params", {}).get("player_meta", {}).get(
            "contact_endpoint", "")
        answer, problem = post(endpoint, body, CALL_TIME)
        if len(json.dumps(answer)) > MAX_ANSWER:
            problem = "answers too much"
        if body.get("params", {}).get("message_type") == "LEAGUE_COMPLETED":
            self.is_over = True
        if problem:
            error = {"code": -32603, "message": f"the player {problem}"}
            answer = {"jsonrpc": "2.0", "error": error, "id": body.get("id")}
        return {"number": request["number"], "body": answer}


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers the calls of the player, which takes this program for its manager."""

    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Origin"] or not self.server.connection.is_of_player(call):
            return self.send_error(403, "another player is connected here")
        reply, problem = self.server.connection.call_manager(call)
        context = result_of(reply).get("context")
        if problem or isinstance(context, dict) and context.get("field") == "relay_token":
            return self.send_error(502, problem or "has no relay of this player at the moment")
        text = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Prints nothing."""


def main():
    options, command = sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
    manager = options[options.index("--manager") + 1].rstrip("/")
    connection = Connection(manager if manager.endswith("/mcp") else f"{manager}/mcp")
    connection.open_relay(0)
    server = Server(("127.0.0.1", 0), Handler)
    server.connection = connection
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=connection.poll, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    code = subprocess.call([*command, "--manager", url])
    end = time.monotonic() + 5
    while connection.unanswered and time.monotonic() < end:
        time.sleep(0.1)
    sys.exit(code)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
