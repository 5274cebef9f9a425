#!/usr/bin/env python3
"""A league of eight players while all its programs are flooded with half-open connections.

    cargo build && python3 tests/flood.py           40 seconds, 640 connections held on each program
    python3 tests/flood.py 20 300                   20 seconds, 300 connections

Every program may open 1,024 files. At least half of the matches must be played during the flood; when it is over, the
league is played to its end, all results are right, and no player has lost one technically.
"""

import pathlib, resource, shutil, socket, sys, tempfile, threading, time
from real_league import League, free_ports

PLAYERS, REFEREES = 8, 2
MATCHES = PLAYERS * (PLAYERS - 1) // 2
TIMEOUT = 120  # seconds until the league must be over after the flood
PARTS = [b"", b"PO", b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{"]


def hold(port, count, until):
    """Holds half-open connections to a port, and opens new ones for those that the program closes."""
    connections = []
    while time.monotonic() < until:
        connections = [one for one in connections if is_open(one)]
        while len(connections) < count and time.monotonic() < until:
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


def main(seconds=40, count=640):
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="flood-"))
    ports = free_ports(1 + REFEREES + PLAYERS)
    league = League(folder, ports, players=PLAYERS, referees=REFEREES)
    league.start_all(but=f"P{PLAYERS:02}")  # the league begins with the last player

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = 100 + count * len(ports)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))
    until = time.monotonic() + seconds
    for port in ports[:-1]:
        threading.Thread(target=hold, args=(port, count, until)).start()
    time.sleep(2)
    league.start(f"P{PLAYERS:02}")
    threading.Thread(target=hold, args=(ports[-1], count, until)).start()

    while time.monotonic() < until and len(league.events("Recorded")) < MATCHES:
        time.sleep(0.2)
    played, duration = len(league.events("Recorded")), seconds - (until - time.monotonic())
    faults = [*league.wait_for_end(seconds + TIMEOUT), *league.faults()]
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
