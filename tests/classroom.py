#!/usr/bin/env python3
"""A class of fourteen laptops, each in a network namespace of its own (Linux, root).

    cargo build && python3 tests/classroom.py relay     three leagues; no machine can call a laptop
    python3 tests/classroom.py direct                   the same where the teacher's machine can call them

With `relay`, a laptop's firewall drops what its programs answer at the ports that they listen on. Twelve laptops run
`player.py --relay`, and two a player in Rust behind `bin/league_player.py`. The switch never passes anything from laptop
to laptop. The manager stays for three leagues:

    1. two laptops are cut off for thirty seconds
    2. a player is killed and started again, and the manager is killed
    3. nothing happens

In each league the journal must have every match once, no player that was there may lose a match for a technical reason,
and no player may remember another result. In the last one no terminal may show a warning.
"""

import atexit, collections, json, os, pathlib, re, shutil, subprocess, sys, tempfile, time
from real_league import PROJECT, TOKEN, wait_for, wrong_memories

LAPTOPS, CONNECTED = 14, 2
MATCHES = LAPTOPS * (LAPTOPS - 1) // 2
CUT = 30  # seconds
NETWORK = "10.77.0"
MANAGER = f"http://{NETWORK}.1:8000"
TEACHER = f"teacher-{os.getpid()}"
LISTENING = "1024-32767"  # the ports that programs listen on; the system gives higher ones to outgoing connections
ALARMS = re.compile(r"E0\d\d|warning|cannot|does not answer|Traceback|nobody can call this machine:", re.IGNORECASE)


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], check=check, capture_output=True, text=True)


class Program:
    """A program in a network namespace, whose output is a file in its folder."""

    def __init__(self, namespace, folder, command):
        self.namespace, self.folder, self.command = namespace, folder, command
        folder.mkdir(exist_ok=True)
        self.start()

    def start(self):
        command = ["ip", "netns", "exec", self.namespace, *map(str, self.command)]
        with open(self.folder / "screen.txt", "a") as output:
            self.process = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
            )

    def kill(self):
        self.process.kill()
        self.process.wait()

    def screen(self):
        return (self.folder / "screen.txt").read_text()


class Class:
    """The teacher's machine and the laptops."""

    def __init__(self, folder, is_relayed):
        self.folder, self.is_relayed, self.laptops = folder, is_relayed, []
        self.namespaces = [TEACHER, *(f"laptop-{os.getpid()}-{n}" for n in range(1, LAPTOPS + 1))]
        self.programs = []

    def connect(self):
        """Makes the network. An error is that of the first command that this machine refuses."""
        atexit.register(self.end)
        for namespace in self.namespaces:
            ip("netns", "add", namespace)
            ip("-n", namespace, "link", "set", "lo", "up")
        ip("-n", TEACHER, "link", "add", "switch", "type", "bridge")
        ip("-n", TEACHER, "addr", "add", f"{NETWORK}.1/24", "dev", "switch")
        ip("-n", TEACHER, "link", "set", "switch", "up")
        for n, laptop in enumerate(self.namespaces[1:], 1):
            ip("-n", TEACHER, "link", "add", f"port{n}", "type", "veth", "peer", "name", "wifi", "netns", laptop)
            ip("-n", TEACHER, "link", "set", f"port{n}", "master", "switch", "up")
            ip("-n", TEACHER, "link", "set", f"port{n}", "type", "bridge_slave", "isolated", "on")
            ip("-n", laptop, "addr", "add", f"{NETWORK}.{10 + n}/24", "dev", "wifi")
            ip("-n", laptop, "link", "set", "wifi", "up")
            if self.is_relayed:
                firewall = ["to", f"{NETWORK}.0/24", "ipproto", "tcp", "sport", LISTENING, "blackhole"]
                ip("-n", laptop, "rule", "add", *firewall)

    def end(self):
        for program in self.programs:
            program.process.kill()
        for namespace in self.namespaces:
            ip("netns", "del", namespace, check=False)

    def start(self):
        tool = PROJECT / "target" / "debug" / "league"
        teacher = self.folder / "teacher"
        teacher.mkdir()
        shutil.copytree(PROJECT / "config", teacher / "config")
        opened = [tool, "class", "--lead-sec", "1", "--host", f"{NETWORK}.1"]
        self.manager = Program(TEACHER, teacher, opened)
        self.programs.append(self.manager)
        wait_for("the manager listens", lambda: "listening on" in self.manager.screen())
        for n, laptop in enumerate(self.namespaces[1:], 1):
            options = ["--display-name", f"Student{n}", "--stay"]
            command = ["python3", PROJECT / "bin" / "player.py", "--manager", MANAGER, *options]
            if self.is_relayed and n <= CONNECTED:
                player = PROJECT / "target" / "debug" / "player"
                options += ["--config", PROJECT / "config", "--until-stdin-closes"]  # ends with this program
                stand_in = [sys.executable, PROJECT / "bin" / "league_player.py", "--until-stdin-closes"]
                command = [*stand_in, "--manager", MANAGER, "--", player, *options]
            elif self.is_relayed:
                command.append("--relay")
            self.laptops.append(Program(laptop, self.folder / f"laptop{n}", command))
        self.programs += self.laptops

    def order(self, word):
        """Sends an order of the operator. Returns what the tool prints."""
        tool = PROJECT / "target" / "debug" / "league"
        command = ["ip", "netns", "exec", TEACHER, tool, word]
        done = subprocess.run(command, cwd=self.folder / "teacher", capture_output=True, text=True)
        return done.stdout + done.stderr

    def cut(self, laptops, seconds):
        """Cuts laptops off for a while."""
        for n in laptops:
            ip("-n", TEACHER, "link", "set", f"port{n}", "down")
        time.sleep(seconds)
        for n in laptops:
            ip("-n", TEACHER, "link", "set", f"port{n}", "up")

    def journal(self):
        path = self.folder / "teacher/data/leagues/league_2025_even_odd/journal.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def events(self, name):
        return [line for line in self.journal() if line.get("event") == name]

    def has_recorded(self, count):
        return len(self.events("Recorded")) >= count

    def open_lobby(self):
        """Waits until all players are in the lobby, and starts the league."""
        def is_full():
            members = [line for line in self.journal() if line.get("kind") == "player"]
            return len({line["id"] for line in members}) == LAPTOPS and not self.events("Started")

        wait_for("all players are in the lobby", is_full)
        wait_for("the league starts", lambda: "is running" in self.order("start"))

    def faults(self, away):
        """Yields what is wrong with a league that is over. The players at these numbers were away for a while."""
        names = {line["id"]: line["meta"]["display_name"] for line in self.events("Registered")}
        recorded = self.events("Recorded")
        counts = collections.Counter(line["match_id"] for line in recorded)
        if len(counts) != MATCHES or set(counts.values()) != {1}:
            yield f"recorded: {dict(counts)}"
        lost = collections.Counter()
        for line in recorded:
            result = line["result"]
            if result["details"]["status"] == "TECHNICAL_LOSS":
                lost.update(names[loser] for loser in {*result["score"]} - {result["winner"]})
        print("technical losses:", dict(lost))
        for name in lost:
            if name not in {f"Student{n}" for n in away}:
                yield f"{name} was there, and lost {lost[name]} matches for technical reasons"

        for laptop in self.laptops:
            for path in laptop.folder.glob("data/players/P??/history.json"):
                yield from wrong_memories(path, recorded)
        for program in self.programs:
            if TOKEN.search(program.screen()):
                yield f"a token in {program.folder.name}/screen.txt"


def play(school, number):
    """Plays one of the three leagues. Returns what was wrong."""
    begun, seen = time.monotonic(), [len(program.screen()) for program in school.programs]
    school.open_lobby()
    away = []
    if number == 1:
        away = [LAPTOPS - 1, LAPTOPS]
        wait_for("the second round", lambda: school.has_recorded(LAPTOPS // 2))
        school.cut(away, CUT)
    if number == 2:
        away = [LAPTOPS // 2]
        wait_for("the second round", lambda: school.has_recorded(LAPTOPS // 2))
        school.laptops[away[0] - 1].kill()
        time.sleep(1)
        school.laptops[away[0] - 1].start()
        wait_for("the fourth round", lambda: school.has_recorded(3 * LAPTOPS // 2))
        school.manager.kill()
        school.manager.start()
    wait_for("the league is over", lambda: school.events("Closed"))
    faults = [*school.faults(away)]
    if number == 3:
        for program, start in zip(school.programs, seen):
            alarms = [line for line in program.screen()[start:].splitlines() if ALARMS.search(line)]
            faults += [f"{program.folder.name} shows: {line}" for line in alarms]
    print(f"league {number}: {time.monotonic() - begun:.0f} s, {len(faults)} faults", flush=True)
    if number < 3:
        print(school.order("new-lobby").strip())
    return faults


def main(network):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="class-"))
    school = Class(folder, network == "relay")
    try:
        school.connect()
    except (OSError, subprocess.CalledProcessError) as error:
        detail = getattr(error, "stderr", None) or error
        print(f"left out: this machine makes no network namespaces: {detail}")
        return
    school.start()
    faults = [fault for number in (1, 2, 3) for fault in play(school, number)]
    print("\n".join(faults) or f"three leagues of fourteen, {network}: nothing is lost")
    if faults:
        sys.exit(f"the folder is {folder}")
    school.end()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
