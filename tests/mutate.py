#!/usr/bin/env python3
"""Forty ways to spoil a finished league: `verify` is red for what is a fault, and green for what is none.

    cargo build --bins --examples && python3 tests/mutate.py

A league of four players and two referees is played once. Each way changes a copy of it; a way that is a fault names words
that verify must print. The last line counts the ways that verify has judged wrongly.
"""

import json, os, pathlib, shutil, subprocess, sys, tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent
LEAGUE = pathlib.Path(os.environ.get("LEAGUE", PROJECT / "target" / "debug" / "league")).resolve()
JOURNAL = "data/leagues/league_2025_even_odd/journal.jsonl"
HISTORY, SCREEN, LOG = "data/players/P01/history.json", "P01.txt", "logs/agents/P01.log.jsonl"
TOKEN = "tok-p01-0123456789abcdef"


class Spoilt:
    """A copy of the league, and what a way needs to change it."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return self.folder / name

    def lines(self, name):
        return [json.loads(line) for line in self.path(name).read_text().splitlines()]

    def write_lines(self, name, lines):
        self.path(name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    def change(self, name, change):
        """Changes the lines of a file by a function that returns the new lines."""
        self.write_lines(name, change(self.lines(name)))

    def change_event(self, event, change):
        """Changes the first event of a kind in the journal."""
        lines = self.lines(JOURNAL)
        change(next(line for line in lines if line.get("event") == event))
        self.write_lines(JOURNAL, lines)

    def without(self, event, key=None, value=None):
        """Takes the events of a kind out of the journal, those with that value if there is one."""
        self.change(JOURNAL, lambda lines: [
            line for line in lines if line.get("event") != event or key and line[key] != value
        ])

    def change_history(self, change):
        history = json.loads(self.path(HISTORY).read_text())
        change(history)
        self.path(HISTORY).write_text(json.dumps(history))

    def forget(self, match_id):
        """Takes a match out of all histories."""
        for path in self.folder.glob("data/players/*/history.json"):
            history = json.loads(path.read_text())
            history["matches"] = [past for past in history["matches"] if past["match_id"] != match_id]
            path.write_text(json.dumps(history))

    def referee(self):
        """The outbox of the referee of R1M1."""
        recorded = next(line for line in self.lines(JOURNAL) if line.get("match_id") == "R1M1")
        return f"data/referees/{recorded['referee_id']}/outbox.jsonl"

    def key(self):
        members = (line for line in self.lines(JOURNAL) if line.get("event") == "Registered")
        return next(member for member in members if member["id"] == "P01")["meta"]["registration_key"]

    def append(self, name, text):
        with open(self.path(name), "a") as file:
            file.write(text)


def lose_result(spoilt):
    spoilt.without("Recorded", "match_id", "R1M1")
    spoilt.forget("R1M1")


def lose_result_everywhere(spoilt):
    lose_result(spoilt)
    spoilt.change(spoilt.referee_of["R1M1"], lambda lines: [
        line for line in lines if line["assignment"]["match_id"] != "R1M1"
    ])


def swap(spoilt, names):
    one, other = (spoilt.path(name) for name in names)
    text = one.read_text()
    one.write_text(other.read_text())
    other.write_text(text)


def other_result(result):
    result["details"]["drawn_number"] = 11 - result["details"]["drawn_number"]


def other_told(result):
    result["drawn_number"] = 11 - result["drawn_number"]


def elsewhere(spoilt):
    """The folder has the files of a P01 that was in another league; that of this league runs elsewhere."""
    path = spoilt.path("data/agents/P01.json")
    path.write_text(path.read_text().replace(spoilt.key(), "f" * 32))
    spoilt.path(HISTORY).write_text(spoilt.path(HISTORY).read_text().replace("R1M1", "R9M9"))


# What is done, and the words that verify must print; none if it is no fault.
WAYS = {
    "nothing": (lambda spoilt: None, None),
    # The journal.
    "a result is lost, its referee has it": (lose_result, "has decided R1M1, which has no result"),
    "a result is lost everywhere": (lose_result_everywhere, "R1M1 has no result"),
    "a result is lost, its players have it": (
        lambda spoilt: spoilt.without("Recorded", "match_id", "R1M1"), "remembers R1M1 otherwise"),
    "no result at all": (lambda spoilt: spoilt.without("Recorded"), "R3M2 has no result"),
    "only the first line is left": (
        lambda spoilt: spoilt.change(JOURNAL, lambda lines: lines[:1]), "has not begun"),
    "no start": (lambda spoilt: spoilt.without("Started"), "has not begun"),
    "a result twice": (
        lambda spoilt: spoilt.change(JOURNAL, lambda lines: [*lines, lines[-2]]), "is recorded twice"),
    "another result": (
        lambda spoilt: spoilt.change_event("Recorded", lambda line: other_result(line["result"])), "is not in the outbox"),
    "another winner": (
        lambda spoilt: spoilt.change_event("Recorded", lambda line: line["result"].update(winner="P09")), "otherwise than"),
    "an unknown referee": (
        lambda spoilt: spoilt.change_event("Recorded", lambda line: line.update(referee_id="REF09")),
        "result of REF09, which did not have it"),
    "the other referee": (
        lambda spoilt: spoilt.change_event("Recorded", lambda line: line.update(
            referee_id="REF02" if line["referee_id"] == "REF01" else "REF01")), "which did not have it"),
    "no assignment": (lambda spoilt: spoilt.without("Assigned"), "which did not have it"),
    "a player has not registered": (
        lambda spoilt: spoilt.without("Registered", "id", "P02"), "P02 plays, but has not registered"),
    "a damaged line": (lambda spoilt: spoilt.append(JOURNAL, "{\n"), "journal.jsonl"),
    "no journal": (lambda spoilt: spoilt.path(JOURNAL).unlink(), "journal.jsonl"),
    "not closed": (lambda spoilt: spoilt.without("Closed"), None),
    "CRLF and a byte order mark": (
        lambda spoilt: spoilt.path(JOURNAL).write_text(
            "\ufeff" + spoilt.path(JOURNAL).read_text().replace("\n", "\r\n"), encoding="utf-8", newline=""), None),
    # The outboxes.
    "another result in an outbox": (
        lambda spoilt: spoilt.change(spoilt.referee(), lambda lines: [
            other_told(line["result"]) or line for line in lines]), "is not in the outbox"),
    "an empty outbox": (lambda spoilt: spoilt.path(spoilt.referee()).write_text(""), "is not in the outbox"),
    "a damaged outbox": (lambda spoilt: spoilt.append(spoilt.referee(), "{\n"), "outbox.jsonl"),
    "a match of no league in an outbox": (
        lambda spoilt: spoilt.change(spoilt.referee(), lambda lines: [*lines, {**lines[0], "assignment": {
            **lines[0]["assignment"], "match_id": "R9M9"}}]), "has decided R9M9, which has no result"),
    "outboxes of each other": (
        lambda spoilt: swap(spoilt, [f"data/referees/REF0{n}/outbox.jsonl" for n in (1, 2)]), "is not in the outbox"),
    "a second result in an outbox": (
        lambda spoilt: spoilt.change(spoilt.referee(), lambda lines: [lines[0], *lines]), None),
    "an outbox elsewhere": (lambda spoilt: spoilt.path(spoilt.referee()).unlink(), None),
    # The histories.
    "a match twice in a history": (
        lambda spoilt: spoilt.change_history(lambda history: history["matches"].append(history["matches"][0])), "twice"),
    "another result in a history": (
        lambda spoilt: spoilt.change_history(lambda history: history["matches"][0]["result"].update(
            winner_player_id="P09")), "P01 remembers"),
    "another opponent in a history": (
        lambda spoilt: spoilt.change_history(lambda history: history["matches"][0].update(opponent_id="P01")),
        "P01 remembers"),
    "a history that is no JSON": (lambda spoilt: spoilt.path(HISTORY).write_text("{"), "history.json"),
    "an empty history": (lambda spoilt: spoilt.path(HISTORY).write_text(""), "history.json"),
    "histories of each other": (
        lambda spoilt: swap(spoilt, [f"data/players/P0{n}/history.json" for n in (1, 2)]), "is that of P02"),
    "the history of another league": (
        lambda spoilt: spoilt.change_history(lambda history: history.update(league_id="other")), "is that of P01 in other"),
    "a forgotten match": (lambda spoilt: spoilt.change_history(lambda history: history["matches"].pop()), None),
    "a missing history": (lambda spoilt: spoilt.path(HISTORY).unlink(), None),
    "an agent elsewhere, and the files of another": (elsewhere, None),
    # What is shown.
    "a token in a log": (lambda spoilt: spoilt.append(LOG, json.dumps({"message": TOKEN})), "shows a token"),
    "a key in a log": (lambda spoilt: spoilt.append(LOG, spoilt.key()), "shows a registration key"),
    "a token on a screen": (lambda spoilt: spoilt.append(SCREEN, TOKEN), "P01.txt shows a token"),
    "a masked token on a screen": (lambda spoilt: spoilt.append(SCREEN, "tok-p01-***"), None),
    "no logs": (lambda spoilt: shutil.rmtree(spoilt.path("logs")), None),
}


# What the summary says of files that are not seen, and of what players forgot.
SUMMARIES = {
    "nothing": "6 of 6 results in the journal; outboxes: 2 of 2, histories: 4 of 4 (they lack 0 results), logs: 8 of 8;",
    "an outbox elsewhere": "outboxes: 1 of 2",
    "a missing history": "histories: 3 of 4 (they lack 3 results; P01 has no file)",
    "an agent elsewhere, and the files of another": "histories: 3 of 4",
    "a forgotten match": "(they lack 1 result)",
    "no logs": "logs: 0 of 8",
}


def run(folder, *arguments):
    return subprocess.run([LEAGUE, *arguments], cwd=folder, capture_output=True, text=True, encoding="utf-8")


def judge(whole, name, spoil, words):
    """Returns what verify says of a league that is spoilt, if that is wrong."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        spoilt = Spoilt(pathlib.Path(folder, "league"))
        shutil.copytree(whole, spoilt.folder)
        spoilt.referee_of = {"R1M1": spoilt.referee()}
        spoil(spoilt)
        verify = [LEAGUE.parent / "examples" / "verify", SCREEN]
        verified = subprocess.run(verify, cwd=spoilt.folder, capture_output=True, text=True, encoding="utf-8")
        said = verified.stdout + verified.stderr
        is_right = verified.returncode == (words is not None) and (words or "all agree") in said
        if is_right and SUMMARIES.get(name, "") in said and "\ufffd" not in said:
            return None
        return f"{name}: ended with {verified.returncode}:\n{said}"


def main():
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        played = run(folder, "local", "--players", "4", "--referees", "2", "--port", "0", "--seed", "7", "--quiet")
        if played.returncode:
            sys.exit(f"the league ended with {played.returncode}: {played.stdout}{played.stderr}")
        pathlib.Path(folder, SCREEN).write_text(played.stdout)
        wrong = [judge(folder, name, *way) for name, way in WAYS.items()]
    wrong = [text for text in wrong if text]
    print("\n".join(wrong + [f"{len(WAYS)} ways to spoil a league: {len(wrong)} judged wrongly"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
