#!/usr/bin/env python3
"""A league on two machines, of which a laptop with two players gets another address between two rounds.

    cargo build && python3 tests/readdressed.py        on Linux, as root: the machines are network namespaces

The players, one in Rust and one in Python, must register again, and nobody may lose technically. The times are those of
the shipped configuration.
"""

import os, pathlib, shutil, subprocess, sys, tempfile
from real_league import PROJECT, League, free_ports, wait_for

SECONDS = 180  # until the league must be over
SCHOOL, LAPTOP = (f"league-{os.getpid()}-{name}" for name in ("school", "laptop"))
ON_LAPTOP = ("P01", "P02")


def ip(line):
    subprocess.run(["ip", *line.split()], check=True)


def new_league(folder):
    """Returns a league whose manager is called at its address in the network of the school."""
    league = League(folder, free_ports(7), players=4, referees=2, short_times=False)
    manager = league.commands["manager"]
    url = f"http://10.77.0.1:{manager[manager.index('--port') + 1]}/mcp"
    manager += ["--host", "0.0.0.0", "--contact-endpoint", url, "--lead-sec", "4"]
    for name in ON_LAPTOP:
        command = league.commands[name]
        command[command.index("--manager") + 1] = url
        del command[command.index("--contact-endpoint"):]
    return league


def play(league):
    for name, command in league.commands.items():
        program = [PROJECT / "target" / "debug" / command[0]]
        if name == "P02":
            program = [sys.executable, PROJECT / "bin" / "player.py"]
        machine = LAPTOP if name in ON_LAPTOP else SCHOOL
        with open(league.folder / f"{name}.txt", "a") as output:
            league.running[name] = subprocess.Popen(
                ["ip", "netns", "exec", machine, *program, *command[1:]], cwd=league.folder, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT)
        if name == "manager":
            wait_for("the manager listens", lambda: "listening" in league.output("manager"), SECONDS)
    wait_for("the first round is played", lambda: len(league.events("Recorded")) >= 2, SECONDS)
    ip(f"-n {LAPTOP} addr del 10.77.0.2/24 dev laptop")
    ip(f"-n {LAPTOP} addr add 10.77.0.9/24 dev laptop")
    faults = [*league.wait_for_end(SECONDS), *league.faults()]
    moved = {line["id"] for line in league.events("Registered") if "//10.77.0.9:" in line["meta"]["contact_endpoint"]}
    if moved != {*ON_LAPTOP}:
        faults.append(f"at the new address are registered: {sorted(moved)}")
    for line in league.events("Recorded"):
        if line["result"]["details"]["drawn_number"] is None:
            faults.append(f"{line['match_id']}: {line['result']['details']['reason']}")
    return faults


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="readdressed-"))
    league = new_league(folder)
    for machine in (SCHOOL, LAPTOP):
        ip(f"netns add {machine}")
    try:
        ip(f"link add school netns {SCHOOL} type veth peer name laptop netns {LAPTOP}")
        for machine, link, address in ((SCHOOL, "school", "10.77.0.1"), (LAPTOP, "laptop", "10.77.0.2")):
            ip(f"-n {machine} link set lo up")
            ip(f"-n {machine} addr add {address}/24 dev {link}")
            ip(f"-n {machine} link set {link} up")
        faults = play(league)
    finally:
        for process in league.running.values():
            process.kill()
            process.wait()
        for machine in (SCHOOL, LAPTOP):
            ip(f"netns del {machine}")
    if faults:
        sys.exit("\n".join([f"in {folder}:", *faults]))
    shutil.rmtree(folder)
    print("two players at a new address: nobody lost technically")


if __name__ == "__main__":
    main()
