#!/usr/bin/env python3
"""A league of eight players while all its programs are flooded with half-open connections.

    cargo build && python3 tests/flood.py           640 connections held on each program
    python3 tests/flood.py 300 20                   300 connections, for 20 seconds at most

Every program may open 1,024 files. The flood ends with the last match, and after a minute at the latest. At least
half of the matches must be played during it; then the league is played to its end, all results are right, and no
player has lost one technically.
"""

import pathlib, resource, shutil, socket, sys, tempfile, threading, time
from real_league import League, free_ports, set_system

PLAYERS, REFEREES = 8, 2
MATCHES = PLAYERS * (PLAYERS - 1) // 2
TIMEOUT = 120  # seconds until the league must be over after the flood
PARTS = [b"", b"PO", b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{"]


def hold(port, count, over):
    """Holds half-open connections to a port, and opens new ones for those that the program closes."""
    connections = []
    while not over.is_set():
        connections = [one for one in connections if is_open(one)]
        while len(connections) < count and not over.is_set():
            try:
                one = socket.create_connection(("127.0.0.1", port), 1)
                one.sendall(PARTS[len(connections) % len(PARTS)])
                one.setblocking(False)
                connections.append(one)
            except OSError:
                break  # it accepts no more, or is being restarted
        time.sleep(0.1)
    for one in connections:
        one.close()


def is_open(connection):
    try:
        return bool(connection.recv(1000))
    except BlockingIOError:
        return True
    except OSError:
        return False


def main(count=640, seconds=60):
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="flood-"))
    ports = free_ports(1 + REFEREES + PLAYERS)
    league = League(folder, ports, players=PLAYERS, referees=REFEREES)
    # A packet that opens a connection to a full queue is lost, and Linux repeats it after 1, 3 and 7 seconds. And a
    # request may wait behind half-open connections, which are closed after 10 seconds.
    set_system(folder, "timeouts", game_join_ack_timeout_sec=25, move_timeout_sec=25)
    league.start_all(but=f"P{PLAYERS:02}")  # the league begins with the last player

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = 100 + count * len(ports)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))
    over, begun = threading.Event(), time.monotonic()
    for port in ports[:-1]:
        threading.Thread(target=hold, args=(port, count, over)).start()
    time.sleep(2)
    league.start(f"P{PLAYERS:02}")
    threading.Thread(target=hold, args=(ports[-1], count, over)).start()

    while time.monotonic() < begun + seconds and len(league.events("Recorded")) < MATCHES:
        time.sleep(0.2)
    played, duration = len(league.events("Recorded")), time.monotonic() - begun
    over.set()
    faults = [*league.wait_for_end(TIMEOUT), *league.faults()]
    if played < MATCHES / 2:
        faults.append(f"only {played} of {MATCHES} matches were played during the flood")
    for line in league.events("Recorded"):
        if line["result"]["details"]["drawn_number"] is None:
            faults.append(f"{line['match_id']}: {line['result']['details']['reason']}")
    restarts = sum(league.output(name).count("restarting the process") for name in league.commands)
    print(f"{played} of {MATCHES} matches in {duration:.0f} s of flood, {restarts} restarts; {len(faults)} faults")
    if faults:
        sys.exit("\n".join([f"in {folder}:", *faults]))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
