#!/usr/bin/env python3
"""Leagues whose programs are killed at random: nothing may be lost, doubled or altered, and nobody shut out.

    cargo build && python3 tests/kills.py 20        twenty leagues, seeds 0 to 19
    python3 tests/kills.py 20 200                   seeds 200 to 219

Each league has a manager, two referees and four players, as processes of their own on free ports of this machine. One
of them after the other is killed with SIGKILL and started again with the same command. When all matches are over, the
manager's journal must have each match once, with the very result that its referee had written down, and every agent
must have heard of the end.
"""

import collections, json, pathlib, random, shutil, socket, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent.parent
PLAYERS, REFEREES = 4, 2
MATCHES = PLAYERS * (PLAYERS - 1) // 2
PATIENCE = 120  # seconds until a league that is left in peace must be over


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def configure(folder):
    """The usual configuration with short times, so that an agent that is gone is soon given up."""
    shutil.copytree(HERE / "config", folder / "config")
    path = folder / "config" / "system.json"
    system = json.loads(path.read_text())
    system["timeouts"].update(move_timeout_sec=2, generic_response_timeout_sec=2)
    system["retry_policy"].update(max_retries=3, base_delay_sec=0.3)
    path.write_text(json.dumps(system))


class League:
    def __init__(self, folder):
        self.folder, self.running, self.killed = folder, {}, 0
        ports = [free_port() for _ in range(1 + REFEREES + PLAYERS)]
        manager = f"http://127.0.0.1:{ports[0]}/mcp"
        awaited = ["--players", str(PLAYERS), "--referees", str(REFEREES), "--lead-sec", "0"]
        self.commands = {"manager": ["league_manager", *awaited, "--port", str(ports[0])]}
        for n, port in enumerate(ports[1:]):
            kind, id = ("referee", f"REF{n + 1:02}") if n < REFEREES else ("player", f"P{n - REFEREES + 1:02}")
            self.commands[id] = [kind, f"--{kind}-id", id, "--manager", manager, "--port", str(port)]

    def start(self, who):
        program, *arguments = self.commands[who]
        with open(self.folder / f"{who}.txt", "a") as said:
            command = [HERE / "target" / "debug" / program, *arguments]
            self.running[who] = subprocess.Popen(command, cwd=self.folder, stdout=said, stderr=subprocess.STDOUT)

    def kill(self, who):
        self.running[who].kill()
        self.running[who].wait()
        self.killed += 1

    def play(self, chance):
        for who in self.commands:
            self.start(who)
        for _ in range(chance.randint(3, 10)):
            time.sleep(chance.expovariate(1 / 0.15))
            alive = [who for who, program in self.running.items() if program.poll() is None]
            if "manager" not in alive:
                break
            who = chance.choice(alive + ["manager"])
            if len(self.events("Recorded")) == MATCHES:
                who = "manager"  # an agent that has heard of the end, and comes again, finds nobody
            self.kill(who)
            time.sleep(chance.choice([0, 0.05, 0.3]))
            if who == "manager" and self.events("Closed"):
                break  # a new one would open the lobby of another league
            self.start(who)
        until = time.monotonic() + PATIENCE
        for who, program in self.running.items():
            try:
                if program.wait(max(0.1, until - time.monotonic())) not in (0, -9):
                    yield f"{who} ended with {program.returncode}"
            except subprocess.TimeoutExpired:
                yield f"{who} has not ended"
                program.kill()

    def events(self, name):
        return [line for line in self.lines("data/leagues/*/journal.jsonl") if line.get("event") == name]

    def lines(self, pattern):
        for path in sorted(self.folder.glob(pattern)):
            yield from map(json.loads, path.read_text().split("\n")[:-1])  # a torn line is none

    def faults(self):
        """What is wrong with the league that was played."""
        recorded = self.events("Recorded")
        times = collections.Counter(line["match_id"] for line in recorded)
        if len(times) != MATCHES or set(times.values()) != {1}:
            yield f"recorded: {dict(times)}"
        for line in recorded:
            referee, match_id = line["referee_id"], line["match_id"]
            outbox = self.lines(f"data/referees/{referee}/outbox.jsonl")
            written = [it["report"]["result"] for it in outbox if it["report"]["match_id"] == match_id]
            if referee.startswith("REF") and line["result"] not in written:
                yield f"{match_id} is not what {referee} wrote: {written}"
        said = {who: (self.folder / f"{who}.txt").read_text() for who in self.commands}
        for who, text in said.items():
            if "tok-" in text:
                yield f"a token in what {who} said"
            if who.startswith("P") and "Champion: " not in text:
                yield f"{who} has not heard of the champion"


def main(leagues=20, first=0):
    total = 0
    for seed in range(first, first + leagues):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kills-"))
        configure(folder)
        league = League(folder)
        faults = [*league.play(random.Random(seed)), *league.faults()]
        total += league.killed
        if faults:
            sys.exit("\n".join([f"seed {seed}, in {folder}:", *faults]))
        shutil.rmtree(folder)
    print(f"{leagues} leagues, {total} kills: nothing lost, doubled or altered, nobody shut out")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
