#!/usr/bin/env python3
"""Leagues whose programs are killed at random: no result may be lost, doubled or altered, and all agents finish.

    cargo build && python3 tests/kills.py 20        twenty leagues, seeds 0 to 19
    python3 tests/kills.py 20 200                   seeds 200 to 219

Each league has a manager, two referees and four players, as processes of their own on free ports of this machine. One
of them after the other is killed with SIGKILL and started again with the same command. What must hold at the end is in
real_league.py; every player must also have been told the champion.
"""

import pathlib, random, shutil, sys, tempfile
from real_league import PLAYERS, REFEREES, League, free_ports

TIMEOUT = 120  # seconds until a league that is left in peace must be over


def play(seed, folder):
    """Plays a league. Returns the number of kills, and what was wrong."""
    league = League(folder, free_ports(1 + REFEREES + PLAYERS))
    league.start_all()
    league.kill_at_random(random.Random(seed))
    faults = [*league.wait_for_end(TIMEOUT), *league.faults()]
    for name in league.commands:
        if name.startswith("P") and "Champion: " not in league.output(name):
            faults.append(f"{name} was not told the champion")
    return league.killed, faults


def main(leagues=20, first=0):
    kills = 0
    for seed in range(first, first + leagues):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kills-"))
        killed, faults = play(seed, folder)
        kills += killed
        if faults:
            sys.exit("\n".join([f"seed {seed}, in {folder}:", *faults]))
        shutil.rmtree(folder)
    print(f"{leagues} leagues, {kills} kills: no result lost, doubled or altered, and all agents finished")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
