"""A player of the AI Agent League for Python 3.8 or newer, in one file: copy it, change `choose`. See protocol.md."""
import argparse, hmac, http.client, http.server, json, os, pathlib, random, re, socket, sys, threading, time, traceback
from urllib.request import ProxyHandler, Request, build_opener, urlparse

def choose(turn):
    """Your strategy. Say "even" or "odd": whoever alone guesses whether the drawn number (1 to 10) is even or odd wins.

    turn["opponent_id"], turn["player_id"]  whom you play, and who you are
    turn["round_id"], turn["standings"]     the round; your wins, losses and draws, or None
    turn["theirs"], turn["deadline"]        what this opponent chose so far, oldest first; when you must be done
    turn["history"]                         all your matches so far: {"match_id", "opponent_id", "choices": {...}, ...}
    It is called in a thread of its own. If it raises, or thinks too long, it is asked again, three times in all."""
    return turn["theirs"][-1] if turn["theirs"] else "even"  # an idea: what the opponent chose last time

NEEDED = {"GAME_INVITATION": "match_id round_id opponent_id", "CHOOSE_PARITY_CALL": "match_id player_id deadline",
          "GAME_OVER": "match_id game_result", "GAME_ERROR": "match_id error_code", "ROUND_ANNOUNCEMENT": "matches",
          "LEAGUE_STANDINGS_UPDATE": "", "ROUND_COMPLETED": "", "LEAGUE_COMPLETED": "champion", "LEAGUE_ERROR": ""}
TYPES = {"round_id": int, "matches": list, "game_result": dict, "champion": dict}  # the others are texts
card, promised, joined, choices, history = {}, {}, {}, {}, {}  # promised: match tokens; joined: invitations

def say(words, to=sys.stdout):  # others' words move no cursor, and show no token
    print(re.sub(r"(tok-\w+-)\w{8,}", r"\1***", repr(words)[1:-1])[:400], file=to, flush=True)
def write(kind, conversation, **body):  # what is None is left out
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    body.update(protocol="league.v2", message_type=kind, sender="player:" + card["agent_id"], timestamp=now,
                conversation_id=conversation, arrival_timestamp=now if kind == "GAME_JOIN_ACK" else None)
    return {field: value for field, value in body.items() if value is not None}

def fault(kind, it, game):  # None: it is what it must be, and from whom it must be
    needed, token = f"protocol sender timestamp conversation_id {NEEDED[kind]}".split(), it.get("auth_token")
    if any(type(it.get(name)) is not TYPES.get(name, str) for name in needed): return "E003 MISSING_REQUIRED_FIELD"
    if it["protocol"] != "league.v2": return "E018 PROTOCOL_VERSION_MISMATCH"
    if "match_id" not in needed: right = card["token"] if token or card.get("proves_itself") else None
    elif kind == "GAME_INVITATION": right = promised.get(it["match_id"]) or token
    elif it["conversation_id"] == game.get("conversation_id"): right = game.get("auth_token")
    else: return "E015 MATCH_ID_MISMATCH"
    if hmac.compare_digest(ascii(token), ascii(right)): return None
    return "E012 AUTH_TOKEN_INVALID" if token else "E011 AUTH_TOKEN_MISSING"

def answer(kind, it):  # what a message of the league gets, and what it makes us do
    match_id, token, conversation = map(it.get, ("match_id", "auth_token", "conversation_id"))
    game, about = joined.get(str(match_id), {}), it["context"] if isinstance(it.get("context"), dict) else {}
    code, ours = fault(kind, it, game), {"match_id": match_id, "player_id": card["agent_id"], "auth_token": token}
    if "error_code" in it:  # shown even if it is not believed
        words = f"{it['error_code']} {about.get('problem') or it.get('error_description')}; {it.get('consequence', '')}"
        say(f"{ours['player_id']}: {match_id or kind}: {words}", sys.stderr)
    if code:
        say(f"refused {kind} from {it.get('sender')}: {code}", sys.stderr)
        return write("GAME_ERROR" if match_id else "LEAGUE_ERROR", conversation, match_id=match_id, error_code=code[:4],
                     error_description=code[5:], affected_player=card["agent_id"], action_required=kind)
    if kind == "GAME_INVITATION":
        joined[match_id] = it  # the newest counts
        return write("GAME_JOIN_ACK", conversation, accept=True, **ours)
    if kind == "CHOOSE_PARITY_CALL":
        seen = [*filter(None, (past["choices"].get(game["opponent_id"]) for past in history.values()))]
        turn = {**game, **it, "theirs": seen, "history": [*history.values()], "standings": about.get("your_standings")}
        choice = choices.get((match_id, conversation)) or choices.setdefault((match_id, conversation), choose(turn))
        return write("CHOOSE_PARITY_RESPONSE", conversation, parity_choice=choice, **ours)
    if kind == "GAME_OVER" and (match_id in promised or not card.get("proves_itself")):  # a stranger's does not count
        history[match_id] = {**game, **it["game_result"], "choices": dict(it["game_result"].get("choices") or {})}
        say(f"{match_id}: {it['game_result'].get('reason') or 'is over'}")
    if kind == "ROUND_ANNOUNCEMENT": promised.update((its["match_id"], its.get("match_token")) for its in it["matches"])
    if kind == "LEAGUE_COMPLETED" and not args.stay: threading.Timer(0.5, server.shutdown).start()  # once we answered
    if kind == "LEAGUE_COMPLETED": say(f"Champion: {it['champion']['display_name']} ({it['champion']['player_id']})")
    return {"status": "ok"}

class Handler(http.server.BaseHTTPRequestHandler):
    timeout, log_message = 30, lambda *_: None  # strangers neither keep us waiting nor write on our terminal
    def do_POST(self):
        size = (self.headers["Content-Length"] or "")[:7]  # what is no number gets no body, and so -32700
        body = self.rfile.read(min(int(size), 1 << 20)) if size.isdecimal() else b""
        if len(body) > 256 << 10: return self.send_error(413)
        reply, rpc, kind = {"jsonrpc": "2.0", "id": None}, None, None
        try:
            rpc = json.loads(body)
            reply["id"], kind = rpc.get("id"), str(rpc.get("params", {}).get("message_type"))
            reply["result"] = {} if rpc["method"] == "ping" else answer(kind, rpc["params"])
        except Exception as error:
            code = -32700 if rpc is None else -32600 if type(rpc) is not dict else -32603 if kind in NEEDED else -32601
            if code == -32603: traceback.print_exc()  # in `choose`, as a rule; the referee asks again
            reply["error"] = {"code": code, "message": "Method not found" if code == -32601 else repr(error)}
        text = json.dumps(reply) if "error" in reply or "id" in rpc else ""
        self.wfile.write(f"HTTP/1.1 {'200 OK' if text else '202 Accepted'}\r\nContent-Type: application/json\r\n"
                         f"Connection: close\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A player of the AI Agent League; needs no --config, writes no --logs")
    for name in "host port contact-endpoint manager player-id display-name league-id seed config data logs".split():
        parser.add_argument("--" + name)
    for name in ("any-port", "stay", "until-stdin-closes"): parser.add_argument("--" + name, action="store_true")
    args = parser.parse_args(None, argparse.Namespace(manager="http://localhost:8000/mcp", display_name="Agent"))
    random.seed(args.seed and f"{args.seed} {args.player_id}")
    os.umask(0o077)  # there is a token in our card
    if args.until_stdin_closes: threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    card["agent_id"] = args.player_id or "new"
    port = int(args.port or (0 if args.any_port else 8100 + int((args.player_id or "P99")[1:])))
    try: server = http.server.ThreadingHTTPServer((args.host or "127.0.0.1", port), Handler)
    except OSError as error: sys.exit(f"port {port}: {error.strerror}; end it there, or take another --port (0: any)")
    url = args.contact_endpoint or f"http://localhost:{server.server_port}/mcp"
    say(f"waiting for the league manager at {args.manager}, listening on {url}")
    (folder := pathlib.Path(args.data or "data", "agents")).mkdir(parents=True, exist_ok=True)
    for kept in (json.loads(path.read_text()) for path in folder.glob("*.json")):
        if not kept.get("over") and (kept["agent_id"] == args.player_id or kept["endpoint"] == url): card.update(kept)
    if card.get("manager", args.manager) != args.manager or card.get("endpoint", url) != url and (
            socket.socket().connect_ex(("localhost", urlparse(card["endpoint"]).port or 80)) == 0):  # we answer there
        sys.exit(f"{folder}/{card['agent_id']}.json plays at {card['manager']}: end it, remove that, or use --data DIR")
    request = {"jsonrpc": "2.0", "method": "register_player", "id": 1, "params": write(
        "LEAGUE_REGISTER_REQUEST", f"conv-{os.urandom(8).hex()}", auth_token=card.get("token"), player_meta={
        "display_name": args.display_name, "version": "1.0.0", "game_types": ["even_odd"], "contact_endpoint": url})}
    post, reply = Request(args.manager, json.dumps(request).encode(), {"Content-Type": "application/json"}), None
    while not reply:
        try: reply = json.load(build_opener(ProxyHandler({})).open(post, timeout=10))["result"]
        except (OSError, ValueError, KeyError, http.client.HTTPException): time.sleep(1)
    if reply.get("status") != "ACCEPTED": sys.exit(say(f"rejected: {reply.get('reason') or reply}", sys.stderr) or 1)
    card.update(reply, agent_id=reply["player_id"], token=reply.get("auth_token"), manager=args.manager, endpoint=url)
    (new := folder / (re.sub(r"\W", "", card["agent_id"]) + ".new")).write_text(json.dumps(card))
    path = new.replace(new.with_suffix(".json"))
    say(f"{args.display_name} is {card['agent_id']} in {card['league_id']}")
    server.serve_forever()
    path.unlink()
