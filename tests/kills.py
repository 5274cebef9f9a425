#!/usr/bin/env python3
"""Leagues whose programs are killed at random: no result may be lost, doubled or altered, and all agents finish.

    cargo build && python3 tests/kills.py 20        twenty leagues, seeds 0 to 19
    python3 tests/kills.py 20 200                   seeds 200 to 219

Each league has a manager, two referees and four players, as processes of their own on free ports of this machine. One
of them after the other is killed with SIGKILL and started again with the same command. What must hold at the end is in
real_league.py; every player must also have been told the champion. The last line counts the technical losses and how
many of them are unjust, and the results that a player does not remember: a killed player loses two seconds of its own.
"""

import collections, pathlib, random, shutil, sys, tempfile
from real_league import PLAYERS, REFEREES, League, free_ports

TIMEOUT = 120  # seconds until a league that is left in peace must be over


def play(seed, folder, counts):
    """Plays a league. Returns the number of kills, what was wrong, and the unjust losses."""
    league = League(folder, free_ports(1 + REFEREES + PLAYERS))
    league.start_all()
    league.kill_at_random(random.Random(seed))
    faults = [*league.wait_for_end(TIMEOUT), *league.faults()]
    for name in league.commands:
        if name.startswith("P") and "Champion: " not in league.output(name):
            faults.append(f"{name} was not told the champion")
    return league.killed, faults, league.count_injustice(counts)


def main(leagues=20, first=0):
    kills, counts = 0, collections.Counter()
    for seed in range(first, first + leagues):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kills-"))
        killed, faults, unjust = play(seed, folder, counts)
        kills += killed
        if faults:
            sys.exit("\n".join([f"seed {seed}, in {folder}:", *faults]))
        if unjust:
            print("\n".join([f"seed {seed}, in {folder}:", *unjust]), flush=True)
        else:
            shutil.rmtree(folder)
    print(f"{leagues} leagues, {kills} kills: no result lost, doubled or altered, and all agents finished")
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
