#!/usr/bin/env python3
"""Header lines that never end, sent to programs that must lose nothing by a restart: the manager of a league that is
over, a practice, and a referee with a match of tic-tac-toe in play. (`scripts/floods` holds connections half open.)

    cargo build && python3 tests/flood_restart.py        each flood once, for 8 seconds
    python3 tests/flood_restart.py 5                     each five times

When a flood is over, the program must answer within a minute and be where it was, and it must never have held more
than 1.2 GB of memory.
"""

import http.client, json, pathlib, shutil, socket, sys, tempfile, threading, time
from real_league import PROJECT, League, free_ports, set_system, wait_for

SECONDS = 8  # of a flood
ANSWER_SECONDS, MAX_MEMORY = 60, 1_200_000  # KB
CONNECTIONS = 6
SLOW = """import league_player, time
def choose(turn):
    time.sleep(3)
    return turn.legal_moves[0]
league_player.run(choose)
"""


def send_headers(port, until):
    """Sends header lines until the program ends the connection, again and again."""
    while time.monotonic() < until:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as one:
                one.sendall(b"POST /mcp HTTP/1.1\r\n")
                while time.monotonic() < until:
                    one.sendall(b"X: y\r\n" * 10_000)
        except OSError:
            time.sleep(0.05)


def flood(port, process):
    """Floods a port. Returns the greatest memory of the process, in KB."""
    until, peak = time.monotonic() + SECONDS, 0
    threads = [threading.Thread(target=send_headers, args=(port, until)) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        if "VmRSS:" in status:
            peak = max(peak, int(status.split("VmRSS:")[1].split()[0]))
        time.sleep(0.02)
    return peak


def health(port):
    """Returns what a program says of itself, or None."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        connection.request("GET", "/health", headers={"Connection": "close"})
        return json.load(connection.getresponse())
    except (OSError, ValueError, http.client.HTTPException):
        return None


def over(league, port):
    """The manager of a league that is over: it opens no lobby."""
    league.commands["manager"][:1] = ["league", "serve", "--stay"]
    league.start_all()
    wait_for("the league is over", lambda: league.events("Closed"), 60)
    peak = flood(port, league.running["manager"])
    answer = wait_for("an answer", lambda: (health(port) or {}).get("status") == "completed", ANSWER_SECONDS)
    assert len(list(league.folder.glob("data/leagues/*/journal.jsonl"))) == 1, "another lobby"
    return peak, answer


def practice(league, port):
    """A practice: it goes on."""
    player = PROJECT / "target" / "debug" / "player"
    options = ["--mine", f"'{player}'", "--cycles", "100", "--players", "6", "--port", str(port)]
    league.commands = {"practice": ["league", "local", *options]}
    league.start_all()
    journal = "data/practice/leagues/*/journal.jsonl"
    recorded = lambda: sum(line.get("event") == "Recorded" for line in league.lines(journal))
    wait_for("the practice has begun", lambda: recorded() > 20, 60)
    peak = flood(port, league.running["practice"])
    before = recorded()
    return peak, wait_for("an answer and a result", lambda: health(port) and recorded() > before, ANSWER_SECONDS)


def referee(league, port):
    """A referee with a match of tic-tac-toe in play: it is played to its end, without a technical loss."""
    (league.folder / "slow.py").write_text(SLOW)
    shutil.copy(PROJECT / "bin" / "league_player.py", league.folder)
    set_system(league.folder, "timeouts", move_timeout_sec=10)
    for command in league.commands.values():
        command += ["--league-id", "league_2025_tic_tac_toe"]
        if command[0] == "player":
            command[:1] = [sys.executable, "slow.py"]
    league.start_all()
    calls = lambda: [line for line in league.lines("logs/agents/REF01.log.jsonl")
                     if line.get("message_type") == "CHOOSE_MOVE_CALL"]
    wait_for("a match is in play", calls, 60)
    peak = flood(port, league.running["REF01"])
    answer = wait_for("an answer", lambda: health(port), ANSWER_SECONDS)
    wait_for("the match has a result", lambda: league.events("Recorded"), 60)
    details = league.events("Recorded")[0]["result"]["details"]
    assert details.get("status") != "TECHNICAL_LOSS", details
    return peak, answer


def run(story):
    """Runs a story. Returns what is wrong with it, or None."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="flood-"))
    ports = free_ports(4)
    league = League(folder, ports, players=2, referees=1)
    port = ports[1] if story is referee else ports[0]
    try:
        peak, answer = story(league, port)
        print(f"{story.__name__}: {peak >> 10} MiB, answers after {answer:.1f} s", flush=True)
        assert peak <= MAX_MEMORY, f"{peak} KB of memory"
    except (AssertionError, SystemExit) as error:
        return f"{story.__name__}: {error}; see {folder}"
    finally:
        for process in league.running.values():
            process.kill()
            process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def main(count=1):
    faults = list(filter(None, [run(story) for _ in range(count) for story in (over, practice, referee)]))
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
