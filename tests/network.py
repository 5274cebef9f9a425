#!/usr/bin/env python3
"""Leagues over a bad network: what the journal has is what the referees decided and what the players remember.

    cargo build && python3 tests/network.py 5 20    twenty leagues with 5 % faulty requests, seeds 0 to 19
    python3 tests/network.py 15 20 100              15 %, seeds 100 to 119
    python3 tests/network.py 5 20 0 kills           the same while programs are killed, as in kills.py

A proxy stands before each of the seven programs. It refuses, loses, delays, doubles or cuts the given share of the
requests. What must hold at the end is in real_league.py. The last line counts the faults of each kind, the results that
were refused for good, the matches that were given to another referee, the technical losses and how many of them are
unjust, and the results that a player does not remember. A league with an unjust loss keeps its folder.
"""

import collections, pathlib, random, shutil, socket, sys, tempfile, threading, time
from real_league import MATCHES, PLAYERS, REFEREES, League, free_ports

FAULTS = ["refuse", "lose request", "lose answer", "cut answer", "delay", "long delay", "double", "late copy"]
TIMEOUT = 120  # seconds until a league must be over


class Proxy:
    """Passes HTTP requests on to a port of this machine, some of them with a fault."""

    def __init__(self, target, chance, rate, counts):
        self.target, self.chance, self.rate, self.counts = target, chance, rate, counts
        self.server = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return  # closed
            fault = self.chance.choice(FAULTS) if self.chance.random() < self.rate else None
            if fault:
                self.counts[fault] += 1
            threading.Thread(target=self.serve, args=(connection, fault, self.chance.random()), daemon=True).start()

    def serve(self, connection, fault, part):
        """Answers one request; `part`, from 0 to 1, says how long a delay is and how much of an answer is left."""
        try:
            with connection:
                connection.settimeout(15)
                if fault == "refuse":
                    return
                request = self.read(connection)
                if fault == "lose request":
                    return time.sleep(0.3)
                if fault == "delay":
                    time.sleep(part * 0.5)
                if fault == "long delay":
                    time.sleep(1.5 + part * 2)
                answer = self.pass_on(request)
                if fault == "double":
                    answer = self.pass_on(request)
                if fault == "late copy":
                    threading.Timer(0.2 + part * 2, self.pass_on, (request,)).start()
                if fault == "cut answer":
                    answer = answer[: max(1, int(len(answer) * part))]
                if fault != "lose answer":
                    connection.sendall(answer)
        except OSError:
            pass  # one of the two sides has gone

    def read(self, connection):
        """Reads a whole request, and names the target in its Host header."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.receive(connection)
        head, body = data.split(b"\r\n\r\n", 1)
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        while len(body) < length:
            body += self.receive(connection)
        own, target = b"127.0.0.1:%d" % self.port, b"127.0.0.1:%d" % self.target
        return head.replace(own, target) + b"\r\n\r\n" + body

    @staticmethod
    def receive(connection):
        data = connection.recv(65536)
        if not data:
            raise ConnectionError
        return data

    def pass_on(self, request):
        """Sends a request to the target and returns its answer; nothing if it does not answer."""
        answer = b""
        try:
            with socket.create_connection(("127.0.0.1", self.target), 10) as target:
                target.settimeout(20)
                target.sendall(request)
                while data := target.recv(65536):
                    answer += data
        except OSError:
            pass
        return answer


def play(seed, folder, rate, counts, with_kills):
    """Plays a league. Returns what was wrong, and the unjust losses."""
    ports = free_ports(1 + REFEREES + PLAYERS)
    proxies = [Proxy(port, random.Random(seed * 100 + n), rate, counts) for n, port in enumerate(ports)]
    league = League(folder, ports, [proxy.port for proxy in proxies])
    league.start_all()
    if with_kills:
        league.kill_at_random(random.Random(seed))
    faults = [*league.wait_for_end(TIMEOUT), *league.faults()]
    for proxy in proxies:
        proxy.server.close()

    assigned = sum(len(event["assignments"]) for event in league.events("Assigned"))
    counts["assigned again"] += assigned - MATCHES
    for name in league.commands:
        counts["refused for good"] += league.output(name).count("refuses the result for good")
    return faults, league.count_injustice(counts)


def main(percent, leagues=20, first=0, mode=""):
    counts, bad = collections.Counter(), 0
    for seed in range(int(first), int(first) + int(leagues)):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="network-"))
        faults, unjust = play(seed, folder, float(percent) / 100, counts, mode == "kills")
        bad += bool(faults)
        if faults or unjust:
            print("\n".join([f"seed {seed}, in {folder}:", *faults, *unjust]), flush=True)
        else:
            shutil.rmtree(folder)
    print(f"{leagues} leagues, {percent} % faulty requests: {bad} with a wrong result or an agent that did not finish")
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
