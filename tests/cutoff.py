#!/usr/bin/env python3
"""Leagues whose agents are cut off or whose addresses change: all of them come back, or end.

    cargo build && python3 tests/cutoff.py ends 10      each case of an agent that is cut off at the end, ten times
    python3 tests/cutoff.py moved 3                     the manager gets another port, and its agents follow
    python3 tests/cutoff.py readdressed 3               a laptop with two players gets another address (Linux, root)

All times are those of the shipped configuration. At the beginning of the last round one agent is cut off for a while:
the manager's requests to it are lost, or its requests to the manager, or all. It must end, or with --stay be in the
next league, three minutes after the cut began. A cut of 90 seconds is longer than the manager repeats the end.
"""

import concurrent.futures, itertools, os, pathlib, random, shutil, subprocess, sys, tempfile, threading, time
from network import Proxy
from real_league import PLAYERS, PROJECT, REFEREES, League, free_ports

LIMIT = 180  # seconds from the beginning of a cut
AGENTS = [f"REF{n:02}" for n in range(1, REFEREES + 1)] + [f"P{n:02}" for n in range(1, PLAYERS + 1)]
JOURNAL = "data/leagues/league_2025_even_odd/journal.jsonl"
CASES = [*itertools.product(["player", "referee"], ["to", "from", "all"], [False, True], [30])]
CASES += [*itertools.product(["player", "referee"], ["to", "all"], [True], [90])]
USED, LOCK = set(), threading.Lock()  # the ports that a league of this run has


def new_ports(count):
    """Returns free ports that no other league of this run has."""
    with LOCK:
        ports = free_ports(count)
        while USED & {*ports}:
            ports = free_ports(count)
        USED.update(ports)
        return ports


class Cut:
    """The cut of a league: it begins with the first request of the last round to the agent."""

    def __init__(self, seconds):
        self.seconds, self.began = seconds, None

    def begin(self):
        self.began = self.began or time.monotonic()

    def is_on(self):
        return self.began is not None and time.monotonic() < self.began + self.seconds


class Line(Proxy):
    """Passes requests on to a program, but during the cut those for which `is_lost` is true."""

    def __init__(self, target, cut, is_lost, begins):
        self.cut, self.is_lost, self.begins = cut, is_lost, begins
        super().__init__(target, random.Random(), 0, {})

    def serve(self, connection, fault, part):
        try:
            with connection:
                connection.settimeout(15)
                request = self.read(connection)
                if self.begins and (b'"round_id":3' in request or b"LEAGUE_COMPLETED" in request):
                    self.cut.begin()
                if self.cut.is_on() and self.is_lost(request):
                    return time.sleep(12)  # no answer within the limit of ten seconds
                connection.sendall(self.pass_on(request))
        except OSError:
            pass  # one of the two sides has gone


def new_league(kind, *arguments):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"cutoff-{kind}-"))
    league = League(folder, *arguments)
    shutil.rmtree(folder / "config")
    shutil.copytree(PROJECT / "config", folder / "config")
    return league


def wait(fact, until):
    """Waits until a fact holds; returns false if it does not in time."""
    while not fact():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def end_all(league):
    for process in league.running.values():
        process.kill()
        process.wait()


def ends(kind, direction, stays, seconds):
    """Cuts an agent off around the end of a league. Returns the league and what was wrong."""
    name = {"player": "P01", "referee": "REF02"}[kind]
    ports = new_ports(1 + len(AGENTS))
    cut, public = Cut(seconds), [*ports]
    number = 1 + AGENTS.index(name)
    is_lost = {"to": lambda request: b'"sender":"referee:' not in request, "from": lambda _: False}
    to_agent = Line(ports[number], cut, is_lost.get(direction, lambda _: True), True)
    to_manager = Line(ports[0], cut, lambda _: direction != "to", False)
    public[number] = to_agent.port
    league = new_league("ends", ports, public)
    command = league.commands[name]
    command[command.index("--manager") + 1] = f"http://127.0.0.1:{to_manager.port}/mcp"
    if stays:
        for agent in AGENTS:
            league.commands[agent].append("--stay")
        league.commands["manager"][:1] = ["league", "serve", "--stay"]
    league.start_all()
    faults = []
    if not wait(lambda: cut.began, time.monotonic() + LIMIT):
        faults = ["the last round did not come"]
    elif stays:
        faults = [*rejoin(league, name, cut)]
    else:
        faults = [*league.wait_for_end(cut.began + LIMIT - time.monotonic()), *league.faults()]
    end_all(league)
    to_agent.server.close()
    to_manager.server.close()
    return league, faults


def rejoin(league, name, cut):
    """Opens the next lobby. Yields what is wrong with the way of the agents into it."""
    until = cut.began + LIMIT

    def closed():
        return any(line.get("event") == "Closed" for line in league.lines(JOURNAL))

    if not wait(closed, until):
        yield "the league has not ended"
        return
    url = f"http://127.0.0.1:{league.commands['manager'][-1]}/mcp"
    order = [PROJECT / "target" / "debug" / "league", "new-lobby", "--manager", url]
    subprocess.run(order, cwd=league.folder, capture_output=True)

    def members():
        lines = league.lines(JOURNAL)
        return {line["id"] for line in lines if line.get("event") == "Registered"}

    def is_full():
        archived = [*league.folder.glob("data/leagues/*~*")]
        return archived and len(members()) == len(AGENTS)

    if not wait(is_full, until):
        yield f"{name} is cut off, and in the next lobby are {sorted(members())}"


def moved(_):
    """Kills all programs after the first round, and starts them again with the manager at another port."""
    ports = new_ports(2 + len(AGENTS))
    league = new_league("moved", ports[:-1])
    manager = league.commands["manager"]
    manager[manager.index("--lead-sec") + 1] = "2"
    league.start_all()
    if not wait(lambda: len(league.events("Recorded")) >= 2, time.monotonic() + LIMIT):
        return league, ["the first round was not played"]
    for name in league.commands:
        league.kill(name)
    manager[-1] = str(ports[-1])
    for name in AGENTS:
        command = league.commands[name]
        command[command.index("--manager") + 1] = f"http://127.0.0.1:{ports[-1]}/mcp"
    league.start_all()
    faults = [*league.wait_for_end(LIMIT), *league.faults(), *unjust(league)]
    end_all(league)
    return league, faults


def unjust(league):
    for line in league.events("Recorded"):
        if line["result"]["details"]["drawn_number"] is None:
            yield f"{line['match_id']} was lost technically: {line['result']['details']['reason']}"


def readdressed(number):
    """Plays a league on two machines. The one with two of the players gets another address between two rounds."""
    school, laptop = (f"cutoff-{os.getpid()}-{number}-{name}" for name in ("school", "laptop"))

    def command(line):
        subprocess.run(["ip", *line.split()], check=True)

    for machine in (school, laptop):
        command(f"netns add {machine}")
    try:
        command(f"link add c{number}a netns {school} type veth peer name c{number}b netns {laptop}")
        for machine, link, address in ((school, "a", 1), (laptop, "b", 2)):
            command(f"-n {machine} link set lo up")
            command(f"-n {machine} addr add 10.77.0.{address}/24 dev c{number}{link}")
            command(f"-n {machine} link set c{number}{link} up")
        return play_readdressed(school, laptop, command, f"c{number}b")
    finally:
        for machine in (school, laptop):
            command(f"netns del {machine}")


def play_readdressed(school, laptop, command, link):
    ports = new_ports(1 + len(AGENTS))
    league = new_league("readdressed", ports)
    url = f"http://10.77.0.1:{ports[0]}/mcp"
    built = PROJECT / "target" / "debug"
    programs = {name: [str(built / line[0]), *line[1:]] for name, line in league.commands.items()}
    programs["manager"] += ["--host", "0.0.0.0", "--contact-endpoint", url, "--lead-sec", "4"]
    programs["P02"][:1] = [sys.executable, str(PROJECT / "bin" / "player.py")]
    for name in ("P01", "P02"):
        line = programs[name]
        line[line.index("--manager") + 1] = url
        del line[line.index("--contact-endpoint"):]
    for name, line in programs.items():
        machine = laptop if name in ("P01", "P02") else school
        with open(league.folder / f"{name}.txt", "a") as output:
            league.running[name] = subprocess.Popen(
                ["ip", "netns", "exec", machine, *line], cwd=league.folder, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT)
        if name == "manager":
            wait(lambda: "listening" in league.output("manager"), time.monotonic() + 20)
    faults = []
    if wait(lambda: len(league.events("Recorded")) >= 2, time.monotonic() + LIMIT):
        command(f"-n {laptop} addr del 10.77.0.2/24 dev {link}")
        command(f"-n {laptop} addr add 10.77.0.9/24 dev {link}")
    else:
        faults = ["the first round was not played"]
    faults += [*league.wait_for_end(LIMIT), *league.faults(), *unjust(league)]
    end_all(league)
    return league, faults


def examine(what, play, case):
    """Plays a league, and returns whether it was right."""
    league, faults = play(*case)
    if faults:
        print(f"{what} {case}, in {league.folder}: " + "; ".join(faults), flush=True)
    else:
        shutil.rmtree(league.folder)
    return not faults


def main(what, times=1):
    play = {"ends": ends, "moved": moved, "readdressed": readdressed}[what]
    cases = CASES * int(times) if what == "ends" else [(number,) for number in range(int(times))]
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        right = sum(pool.map(lambda case: examine(what, play, case), cases))
    print(f"{what}: {right} of {len(cases)} are right")
    sys.exit(right < len(cases))


if __name__ == "__main__":
    main(*sys.argv[1:])
