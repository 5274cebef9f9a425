"""A league of real processes on this machine, for kills.py and network.py: it starts, kills and checks them."""

import collections, functools, json, pathlib, random, re, shutil, socket, subprocess, sys, time

PROJECT = pathlib.Path(__file__).resolve().parent.parent
PLAYERS, REFEREES = 4, 2
MATCHES = PLAYERS * (PLAYERS - 1) // 2
TOKEN = re.compile(r"tok-[a-z0-9]+-[0-9a-f]{8}")


def free_ports(count):
    """Returns different ports that are free. The system itself gives away ports above them, to proxies and to outgoing
    connections, so that none is taken before its program starts."""
    ports = []
    for port in random.sample(range(10000, 30000), 1000):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue  # in use
        ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError("no free ports from 10000 to 30000")


def wait_for(what, fact, seconds=400):
    """Waits for a fact. Returns the seconds until it held."""
    begun = time.monotonic()
    while not fact():
        if time.monotonic() > begun + seconds:
            sys.exit(f"did not happen in {seconds} s: {what}")
        time.sleep(0.2)
    return time.monotonic() - begun


def shorten_times(folder):
    """Configures short times, so that an agent that is gone is soon given up."""
    set_system(folder, "timeouts", move_timeout_sec=2, generic_response_timeout_sec=2)
    set_system(folder, "retry_policy", max_retries=3, base_delay_sec=0.3)


def set_system(folder, section, **values):
    path = folder / "config" / "system.json"
    system = json.loads(path.read_text())
    system[section].update(values)
    path.write_text(json.dumps(system))


@functools.lru_cache
def verify_program():
    """Builds the program that checks the files of a league, and returns its path."""
    subprocess.run(["cargo", "build", "--quiet", "--example", "verify"], cwd=PROJECT, check=True)
    return PROJECT / "target" / "debug" / "examples" / "verify"


def wrong_memories(path, recorded):
    """Yields the results in a player's history that are not those of the journal."""
    history = json.loads(path.read_text())
    results = {line["match_id"]: line["result"] for line in recorded}
    for past in history["matches"]:
        result, own = results.get(past["match_id"]), past["result"]
        if not is_same(result, own):
            yield f"{history['player_id']} remembers another result of {past['match_id']}: {own}, not {result}"


def is_same(recorded, told):
    """Returns true if a result is recorded as it was told; a result of an outbox is as it was told, too."""
    details = recorded and (recorded["winner"], recorded["details"]["drawn_number"], recorded["details"]["choices"])
    return details == (told["winner_player_id"], told["drawn_number"], told["choices"])


class League:
    """A manager, its referees and its players, each with a port of its own.

    `public_ports` are the ports under which others reach the programs, if they are not their own: those of proxies.
    The configuration is the shipped one, with short times unless the league is to have the usual ones.
    """

    def __init__(self, folder, ports, public_ports=None, players=PLAYERS, referees=REFEREES, short_times=True):
        shutil.copytree(PROJECT / "config", folder / "config")
        if short_times:
            shorten_times(folder)
        public_ports = public_ports or ports
        self.folder, self.running, self.killed = folder, {}, 0
        self.matches = players * (players - 1) // 2
        manager = f"http://127.0.0.1:{public_ports[0]}/mcp"
        start = ["--players", str(players), "--referees", str(referees), "--lead-sec", "0"]
        self.commands = {"manager": ["league_manager", *start, "--port", str(ports[0])]}
        for n in range(1, 1 + referees + players):
            kind, id = ("referee", f"REF{n:02}") if n <= referees else ("player", f"P{n - referees:02}")
            endpoint = f"http://127.0.0.1:{public_ports[n]}/mcp"
            options = ["--manager", manager, "--port", str(ports[n]), "--contact-endpoint", endpoint]
            self.commands[id] = [kind, f"--{kind}-id", id, *options]

    def start(self, name):
        program, *arguments = self.commands[name]
        own = PROJECT / "target" / "debug" / program
        command = [own if own.exists() else program, *arguments]
        with open(self.folder / f"{name}.txt", "a") as output:
            self.running[name] = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def start_all(self, but=None):
        for name in self.commands:
            if name != but:
                self.start(name)

    def kill(self, name):
        self.running[name].kill()
        self.running[name].wait()
        self.killed += 1

    def kill_at_random(self, chance):
        """Kills one program after the other and starts it again with the same command."""
        for _ in range(chance.randint(3, 10)):
            time.sleep(chance.expovariate(1 / 0.15))
            alive = [name for name, process in self.running.items() if process.poll() is None]
            if "manager" not in alive:
                return
            name = chance.choice(alive + ["manager"])
            if len(self.events("Recorded")) == self.matches:
                name = "manager"  # an agent that was told the end and starts again would find no manager
            self.kill(name)
            time.sleep(chance.choice([0, 0.05, 0.3]))
            if name == "manager" and self.events("Closed"):
                return  # a new manager would open the lobby of another league
            self.start(name)

    def wait_for_end(self, seconds):
        """Waits until all programs have ended. Yields what is wrong with their ends."""
        until = time.monotonic() + seconds
        for name, process in self.running.items():
            try:
                code = process.wait(max(0.1, until - time.monotonic()))
                if code not in (0, -9):
                    yield f"{name} ended with {code}"
            except subprocess.TimeoutExpired:
                yield f"{name} has not ended"
                process.kill()
                process.wait()

    def lines(self, pattern):
        """The lines of the JSON-lines files that match a pattern, without those that a killed program has not ended."""
        for path in sorted(self.folder.glob(pattern)):
            yield from (json.loads(line) for line in path.read_text().split("\n") if line.endswith("}"))

    def events(self, name):
        return [line for line in self.lines("data/leagues/*/journal.jsonl") if line.get("event") == name]

    def unjust_losses(self):
        """Yields the technical losses of innocent players: the referee had an answer of the loser in time, which said
        that the player knew another token or had not joined the match. (Our players give no other wrong answer.)"""
        for line in self.events("Recorded"):
            result, match_id, referee = line["result"], line["match_id"], line["referee_id"]
            if result["details"]["status"] != "TECHNICAL_LOSS" or not referee.startswith("REF"):
                continue
            log = [*self.lines(f"logs/agents/{referee}.log.jsonl")]
            for loser in sorted({*result["score"]} - {result["winner"]}):
                refused = [
                    entry["message"]["context"]["problem"] for entry in log
                    if (entry.get("match_id"), entry.get("peer")) == (match_id, loser)
                    and (entry["event_type"], entry["message_type"]) == ("reply_received", "GAME_ERROR")
                    and entry["message"]["action_required"] not in ("GAME_OVER", "GAME_ERROR")
                ]
                if refused:
                    yield f"{loser} answered in time, and lost {match_id}: {refused}"

    def forgotten(self):
        """Returns the recorded results that their players do not remember, as `P01 R2M1`."""
        known = set()
        for path in self.folder.glob("data/players/P*/history.json"):
            history = json.loads(path.read_text())
            known |= {f"{history['player_id']} {past['match_id']}" for past in history["matches"]}
        played = {f"{player} {line['match_id']}" for line in self.events("Recorded") for player in line["result"]["score"]}
        return sorted(played - known)

    def count_injustice(self, counts):
        """Adds to the counters the matches that ended with a technical loss, the unjust losses, and the results that
        their players do not remember. Returns the unjust losses."""
        for line in self.events("Recorded"):
            counts["technical losses"] += line["result"]["details"]["status"] == "TECHNICAL_LOSS"
            counts["results to remember"] += len(line["result"]["score"])
        unjust = [*self.unjust_losses()]
        counts["unjust losses"] += len(unjust)
        counts["results forgotten"] += len(self.forgotten())
        return unjust

    def output(self, name):
        return (self.folder / f"{name}.txt").read_text()

    def faults(self):
        """Yields what is wrong with a league that was played: the journal has each match once, with the result that
        its referee has written down; no player remembers another result; no output and no log shows a token."""
        recorded = self.events("Recorded")
        counts = collections.Counter(line["match_id"] for line in recorded)
        if len(counts) != self.matches or set(counts.values()) != {1}:
            yield f"recorded: {dict(counts)}"

        for line in recorded:
            referee, match_id = line["referee_id"], line["match_id"]
            outbox = self.lines(f"data/referees/{referee}/outbox.jsonl")
            written = [entry["result"] for entry in outbox if entry["assignment"]["match_id"] == match_id]
            if referee.startswith("REF") and not any(is_same(line["result"], told) for told in written):
                yield f"{match_id} is not what {referee} wrote: {written}"

        for path in self.folder.glob("data/players/*/history.json"):
            yield from wrong_memories(path, recorded)

        screens = [path.name for path in self.folder.glob("*.txt")]
        verified = subprocess.run([verify_program(), *screens], cwd=self.folder, capture_output=True, text=True)
        if verified.returncode:
            yield f"verify: {verified.stdout}{verified.stderr}"

        for path in [*self.folder.glob("*.txt"), *self.folder.glob("logs/**/*.jsonl")]:
            if TOKEN.search(path.read_text()):
                yield f"a token in {path.name}"
