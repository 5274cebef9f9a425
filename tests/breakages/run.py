"""Shows whether the tests see 120 breakages of the programs, each of one line:

    python3 tests/breakages/run.py [N…] [--in DIR]

list.txt has for each breakage its number, its file, hints (tests that are likely to see it), what is
broken, and the old and the new text. In a copy of the tree, all new texts stand at the same time;
the word BROKEN in them is true if the variable BREAK of the environment has the number. So one build
is enough. The copy is in a temporary folder, or in DIR: a later run there builds only what has changed.

For each number (of all, if none is given) the hinted tests run first, then all others, until one
fails. A test that fails counts only if it passes without the breakage, and fails again with it.
Each number takes from seconds to some minutes. Tests must hand their environment on to the programs.
"""
import os, pathlib, re, shutil, signal, subprocess, sys, tempfile, threading, time

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
TARGETS = {"stack": ["--test=stack"], "tool": ["--bin=league"], "small": ["--test=small"],
           "state": ["--bin=small_manager"], "simulation": ["--example=simulation"],
           "all": ["--lib", "--bins", "--tests", "--examples"]}
TIME_LIMIT = 1200  # seconds for the tests of one hint
BROKEN = {  # how the word BROKEN is written in a file; the first that fits
    "bin/adapter.py": "league_player.broken({})", ".py": "broken({})", ".js": '(BREAK === "{}")',
    "bin/small/": "crate::config::broken({})", "bin/": "league::broken({})", "src/": "crate::broken({})"}
RUST = """
/// Returns true if the environment has chosen this breakage.
pub fn broken(number: u32) -> bool {
    static CHOSEN: std::sync::LazyLock<Option<u32>> =
        std::sync::LazyLock::new(|| std::env::var("BREAK").ok()?.parse().ok());
    *CHOSEN == Some(number)
}
"""
SWITCHES = [  # the switch itself: file, old text, new text
    ("src/lib.rs", "pub mod games;\n", "pub mod games;\n" + RUST),
    ("bin/small/config.rs", "#[derive(Default)]\n", RUST + "#[derive(Default)]\n"),
    ("bin/league_player.py", "\nGAME_TYPES = ", """
broken = lambda number: os.environ.get("BREAK") == str(number)
GAME_TYPES = """),
    ("bin/league/show/parts.js", '"use strict";\n', '"use strict";\nconst BREAK = "{{break}}";\n'),
    ("bin/league/show/render.rs", '.replace("{{nonce}}", &secret(32))', """
        .replace("{{break}}", &std::env::var("BREAK").unwrap_or_default())
        .replace("{{nonce}}", &secret(32))""")]


def read_list(path):
    """Returns the breakages by number: file, old text, new text, hints, what is broken."""
    breakages = {}
    for entry in re.split(r"^## ", path.read_text(), flags=re.M)[1:]:
        head, what, *lines = entry.splitlines()
        number, file, hints = re.fullmatch(r"(\d+) (\S+) \| (.+)", head).groups()
        old, new = ("\n".join(line[1:] for line in lines if line[0] == sign) for sign in "-+")
        style = next(style for part, style in BROKEN.items() if part in file)
        breakages[int(number)] = (file, old, new.replace("BROKEN", style.format(number)),
                                  hints.split("; "), what)
    return breakages


def copy_tree(tree, folder, edits):
    """Copies the files of a tree, with these edits. Files that are the same are not written."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(command, cwd=tree, text=True).splitlines()
    for script in folder.glob("tests/scripts/*/*"):
        if str(script.relative_to(folder)) not in names:
            script.unlink()
    for name in names:
        source, target = tree / name, folder / name
        if not source.is_file():
            continue
        content = source.read_bytes()
        for file, old, new in edits:
            if file == name:
                if content.count(old.encode()) != 1:
                    sys.exit(f"{file}: {content.count(old.encode())} times, expected once:\n{old}")
                content = content.replace(old.encode(), new.encode())
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            shutil.copymode(source, target)


def run(command, folder, number, until_failure=True):
    """Runs tests. Returns None if all pass, or else the program, the test, and what was printed."""
    environment = {name: value for name, value in os.environ.items() if name != "BREAK"}
    if number:
        environment["BREAK"] = str(number)
    process = subprocess.Popen(command, cwd=folder, env=environment, text=True, errors="replace",
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    kill = lambda: os.killpg(process.pid, signal.SIGKILL)
    limit = threading.Timer(TIME_LIMIT, kill)
    limit.start()
    program, test, output = command[0], "", ""
    for line in process.stdout:
        output += line
        program = (re.findall(r"Running .*\((.+)\)", line) or [program])[0]
        failed = re.match(r"test (\S+) .*\bFAILED$", line)
        if failed and not test:
            test = failed[1]
            if until_failure:
                kill()
    code = process.wait()
    limit.cancel()
    if code == -signal.SIGKILL and not test:
        output = f"no end in {TIME_LIMIT} s"
    return (program, test, output) if test or code else None


def judge(folder, number, hints):
    """Returns which test sees a breakage, or that none of the hinted tests does."""
    flaky = []
    for hint in hints:
        target, *names = hint.split()
        while True:
            skipped = [word for test in flaky for word in ("--skip", test)]
            command = ["cargo", "test", "--offline", *TARGETS[target], *names]
            failed = run([*command, *(["--", *skipped] if skipped else [])], folder, number)
            if not failed:
                break
            program, test, output = failed
            if output.startswith("no end"):
                return f"UNCLEAR: {hint}: {output}"
            again = [program, *(["--exact", test] if test else [])]
            if not run(again, folder, 0):
                repeated = run(again, folder, number, until_failure=False)
                if repeated:
                    said = re.search(r"(?:panicked at .*:\n|broken law: )((?:(?!stack backtrace).*\n){1,5})",
                                     repeated[2])
                    said = " / ".join(said[1].split("\n")).strip(" /") if said else ""
                    return f"SEEN by {pathlib.Path(program).name[:-17]} {test}: {said[:300]}"
            if not test or test in flaky:
                return f"UNCLEAR: {program} fails at times: {output[-300:]}"
            flaky.append(test)
    return "NOT SEEN" + f" (at times these fail: {' '.join(flaky)})" * bool(flaky)


def main():
    arguments = sys.argv[1:]
    if "--help" in arguments:
        return print(__doc__)
    place = arguments.index("--in") if "--in" in arguments else len(arguments)
    folder = pathlib.Path((arguments[place + 1:] or [tempfile.mkdtemp()])[0]).resolve()
    breakages = read_list(HERE / "list.txt")
    edits = [(file, old, new) for file, old, new, *_ in breakages.values()]
    copy_tree(TREE, folder, SWITCHES + edits)
    for build in (["build", "--bins", "--examples"], ["test", "--no-run"]):
        subprocess.run(["cargo", *build, "--offline", "--quiet"], cwd=folder, check=True)
    for number in map(int, arguments[:place] or breakages):
        *_, hints, what = breakages[number]
        start = time.monotonic()
        result = judge(folder, number, [*hints, "all"])
        print(f"{number} {what} {time.monotonic() - start:.0f} s: {result}", flush=True)


if __name__ == "__main__":
    main()
