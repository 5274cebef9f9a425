#!/usr/bin/env python3
"""A league whose manager is suspended at a bad moment, as a laptop is whose lid is closed.

    cargo build && python3 tests/suspended.py start
    TARGET=target/release python3 tests/suspended.py end 20

start: the first announcement to P02 is lost; when P02 is invited, the manager sleeps. P02 must not lose technically.
end: the manager sleeps while it tells P02 the end, and the connection breaks. P02 must be told when it wakes.
"""

import http.server, json, os, pathlib, shutil, signal, subprocess, sys, tempfile, threading, time, urllib.request

PROJECT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("TARGET", PROJECT / "target" / "debug")).resolve()
AT_START, SECONDS = sys.argv[1] == "start", float(sys.argv[2]) if len(sys.argv) > 2 else 24
PORT = 31020
LIMITS = {
    "register_referee_timeout_sec": 2, "register_player_timeout_sec": 2, "game_join_ack_timeout_sec": 4,
    "move_timeout_sec": 4, "generic_response_timeout_sec": 2, "game_over_timeout_sec": 2,
}

programs, happened = {}, set()


def say(text):
    print(text, flush=True)


def suspend():
    """Stops the manager once, and lets it go on later."""
    if "suspended" not in happened:
        happened.add("suspended")
        say(f"the manager is suspended for {SECONDS:g} s")
        manager = programs["manager"].pid
        os.kill(manager, signal.SIGSTOP)
        threading.Timer(SECONDS, os.kill, (manager, signal.SIGCONT)).start()


class Proxy(http.server.BaseHTTPRequestHandler):
    """Stands between all others and P02."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if AT_START and b'"ROUND_ANNOUNCEMENT"' in body and "lost" not in happened:
            happened.add("lost")
            self.close_connection = True
            return say("P02's announcement is lost")
        if AT_START and b'"GAME_INVITATION"' in body:
            suspend()
        if not AT_START and b'"LEAGUE_COMPLETED"' in body and "suspended" not in happened:
            suspend()
            time.sleep(SECONDS + 0.02)
            self.close_connection = True
            return
        request = urllib.request.Request(
            f"http://127.0.0.1:{PORT + 12}/mcp", body, {"Content-Type": "application/json"})
        try:
            answer = urllib.request.urlopen(request, timeout=40).read()
        except OSError:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def start(folder, name, program, *options):
    files = ["--config", folder / "config", "--data", folder / "data", "--logs", folder / "logs"]
    output = open(folder / f"{name}.txt", "w")
    command = [TARGET / program, *files, *map(str, options)]
    programs[name] = subprocess.Popen(command, stdout=output, stderr=output)


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="suspended-"))
    shutil.copytree(PROJECT / "config", folder / "config")
    system = folder / "config" / "system.json"
    rules = json.loads(system.read_text())
    rules["timeouts"] |= LIMITS
    rules["retry_policy"]["base_delay_sec"] = 4  # longer than the referees wait for players
    system.write_text(json.dumps(rules))

    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", PORT + 20), Proxy)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{PORT}/mcp"
    start(folder, "manager", "league_manager", "--port", PORT, "--players", 4, "--referees", 1, "--lead-sec", 0)
    time.sleep(0.5)
    start(folder, "REF01", "referee", "--manager", url, "--port", PORT + 1, "--referee-id", "REF01")
    for n in (1, 2, 3, 4):
        proxied = ["--contact-endpoint", f"http://127.0.0.1:{PORT + 20}/mcp"] if n == 2 else []
        start(folder, f"P0{n}", "player", "--manager", url, "--port", PORT + 10 + n, "--player-id", f"P0{n}", *proxied)

    until = time.time() + SECONDS + 60
    while time.time() < until and any(program.poll() is None for program in programs.values()):
        time.sleep(0.1)
    faults = [f"{name} still waits" for name, program in programs.items() if program.poll() is None]
    for program in programs.values():
        program.kill()
    journal = folder / "data" / "leagues" / "league_2025_even_odd" / "journal.jsonl"
    for line in map(json.loads, journal.read_text().splitlines()):
        if line.get("event") == "Recorded" and line["result"]["details"].get("status") == "TECHNICAL_LOSS":
            faults.append(line["result"]["details"]["reason"])
    shutil.rmtree(folder)
    say("\n".join(faults) or "nobody lost technically, and all ended")
    sys.exit(bool(faults) or "suspended" not in happened)


if __name__ == "__main__":
    main()
