"""Lets an agent that speaks another dialect play in the AI Agent League as it is.

The adapter stands between the league and the agent. To the league it is a player: it registers,
keeps the token, checks who calls, and writes every envelope, as player.py does, which must lie in
the same folder. What the league sends is translated for the agent, and what the agent answers is
translated back, by the rules of the command line. `python3 adapter.py --help` explains them.
"""
import argparse, copy, json, re
from urllib.parse import urljoin

import player

METHODS = {  # how the league calls what it sends
    "ROUND_ANNOUNCEMENT": "notify_round", "GAME_INVITATION": "handle_game_invitation",
    "CHOOSE_PARITY_CALL": "choose_parity", "CHOOSE_MOVE_CALL": "choose_move",
    "GAME_OVER": "notify_match_result", "GAME_ERROR": "notify_game_error",
    "LEAGUE_STANDINGS_UPDATE": "update_standings", "ROUND_COMPLETED": "notify_round_completed",
    "LEAGUE_COMPLETED": "notify_league_completed", "LEAGUE_ERROR": "notify_league_error"}
ANSWERS = {"GAME_INVITATION": ("GAME_JOIN_ACK", 4.5), "CHOOSE_PARITY_CALL": (
    "CHOOSE_PARITY_RESPONSE", 29), "CHOOSE_MOVE_CALL": ("CHOOSE_MOVE_RESPONSE", 29)}
NOTICE = (None, 4)  # no message answers a notice; the numbers are how many seconds the agent has
RULES = """
rules; in each of them the league's word stands on the left, and the agent's on the right:
  --method choose_parity=chooseParity    the agent calls a method by another name
  --path choose_parity=/choose           a method has a path of its own
  --field parity_choice=choice           the agent calls a field by another name
  --field match_id=game.id               dots lead into objects: {"game": {"id": "R1M1"}}
  --copy match_id=game.id                the same, but the league's own field stays as well
  --value parity_choice:even=EVEN        the agent has another value for it (EVEN, 0, true, null)
  --field GAME_OVER:match_id=id          such a rule for one message_type; --copy and --value, too
Rules for fields and values hold in both directions: for what the agent is sent, and backwards for
what it answers.

how a message travels:
  --body jsonrpc                         {"jsonrpc": "2.0", "method": M, "params": MESSAGE, "id": N}
  --body tools                           the same for tools/call: {"name": M, "arguments": MESSAGE}
  --body bare                            MESSAGE alone
  --in message                           MESSAGE one level deeper: {"message": MESSAGE}
  --out data.reply                       where the answer stands in what comes back, if not there

Of the answers only accept, parity_choice or move are needed: envelope, ids and token are filled in,
and an answer to an invitation that does not say no is a yes. What the agent answers to notices is
not read. Two examples:

  an agent with its own words, which wants {"type": "choose", "match": ..., ...} as the whole body
  and answers {"choice": "EVEN"}:
    python3 adapter.py --agent http://localhost:9000/api --body bare --field message_type=type
        --value message_type:CHOOSE_PARITY_CALL=choose --field match_id=match
        --field parity_choice=choice --value parity_choice:even=EVEN --value parity_choice:odd=ODD

  a server of the Model Context Protocol with the tools join and pick, whose argument is a message:
    python3 adapter.py --agent http://localhost:9000/mcp --body tools --in message
        --method handle_game_invitation=join --method choose_parity=pick
"""


class Adapter(player.Player):
    """A player that asks an agent what a player would have to know by itself."""

    def answer(self, kind, it):
        answered = super().answer(kind, it)  # which calls `join` or `think`
        if answered == {"status": "ok"}:
            try:
                self.ask(kind, it)
            except player.Failed:
                pass  # it has been told; a notice only informs
        return answered

    def join(self, it):
        accept = self.ask("GAME_INVITATION", it).get("accept", True)
        return {**super().join(it), "accept": accept is not False}

    def think(self, it, game, number, legal):
        name = "move" if it["message_type"] == "CHOOSE_MOVE_CALL" else "parity_choice"
        came = self.ask(it["message_type"], it)
        if came.get(name) in legal:
            game.choices[number] = came[name]
        else:
            self.tell(f"the agent answers {json.dumps(came)}, in which {name} is none of "
                      f"{json.dumps(legal)}; see --field, --value and --out")
        return came.get(name)

    def ask(self, kind, it):
        """The agent's answer to a message, in the words of the league."""
        method, (answer, limit) = METHODS[kind], ANSWERS.get(kind, NOTICE)
        name, path = (dict(rules).get(method) for rules in (self.args.method, self.args.path))
        url = urljoin(self.args.agent, path) if path else self.args.agent
        body = wrap(self.args, name or method, self.to_agent(kind, it))
        came, problem = player.post(url, body, limit)
        if isinstance(came, dict) and came.get("error") and "result" not in came:
            problem = f"answers {json.dumps(came)}"
        if problem:
            self.tell(f"the agent at {url} {problem}")
            raise player.Failed(f"the agent behind the adapter {problem}")
        return self.from_agent(answer, unwrap(self.args, came)) if answer else {}

    def to_agent(self, kind, it):
        """A message of the league in the agent's words."""
        message = copy.deepcopy(it)
        for name, ours, theirs in rules_for(kind, self.args.value):
            if same(find(message, name), ours):
                put(message, name, theirs)
        for rules, stays in ((self.args.copy, True), (self.args.field, False)):
            for ours, theirs in rules_for(kind, rules):
                move(message, ours, theirs, stays)
        return message

    def from_agent(self, kind, message):
        """An answer of the agent in the league's words."""
        for rules, stays in ((self.args.copy, True), (self.args.field, False)):
            for ours, theirs in rules_for(kind, rules):
                move(message, theirs, ours, stays)
        for name, ours, theirs in rules_for(kind, self.args.value):
            if same(find(message, name), theirs):
                put(message, name, ours)
        return message


def wrap(args, method, message):
    """The body of a request to the agent."""
    inner = {}
    put(inner, f"x.{args.inside}" if args.inside else "x", message)
    call = {"jsonrpc": "2.0", "method": method, "params": inner["x"], "id": 1}
    if args.body == "tools":
        call.update(method="tools/call", params={"name": method, "arguments": inner["x"]})
    return inner["x"] if args.body == "bare" else call


def unwrap(args, came):
    """The message in what the agent answers, whether it is wrapped as we would wrap it or not."""
    for path in ("result", "structuredContent", "content.0.text", args.outside or args.inside):
        found = find(came, path) if path else None
        if isinstance(found, str):  # JSON in a text, as tools answer
            try:
                found = json.loads(found)
            except ValueError:
                pass
        came = came if found is None else found
    return came if isinstance(came, dict) else {"answer": came}


def find(message, path):
    """What stands at a path like game.id or content.0.text; None, where nothing does."""
    for step in path.split("."):
        if isinstance(message, list) and step.isdecimal() and int(step) < len(message):
            message = message[int(step)]
        else:
            message = message.get(step) if isinstance(message, dict) else None
    return message


def put(message, path, value):
    """Puts a value at a path; the objects on the way there are made."""
    *way, last = path.split(".")
    for step in way:
        if not isinstance(message.get(step), dict):
            message[step] = {}
        message = message[step]
    message[last] = value


def move(message, source, target, stays):
    """Moves or copies what stands at one path to another one."""
    value = find(message, source)
    if value is not None:
        *way, last = source.split(".")
        holder = find(message, ".".join(way)) if way else message
        if not stays and isinstance(holder, dict):
            del holder[last]
        put(message, target, value)


def same(came, value):
    """Whether a value is the one of a rule; on a command line 1 and "1" look the same."""
    return came is not None and (came == value and type(came) is type(value) or came == str(value))


def rules_for(kind, rules):
    return [rule[1:] for rule in rules if rule[0] in (None, kind)]


def rule(text):
    """[TYPE:]LEFT=RIGHT, for --field and --copy."""
    found = re.fullmatch(r"(?:([A-Z_]+):)?([^=:]+)=([^=]+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a rule like parity_choice=choice")
    return found.groups()


def value_rule(text):
    """[TYPE:]FIELD:LEFT=RIGHT, for --value."""
    found = re.fullmatch(r"(?:([A-Z_]+):)?([^=:]+):([^=]+)=(.+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected one like parity_choice:even=EVEN")
    return (found[1], found[2], literal(found[3]), literal(found[4]))


def literal(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def pair(text):
    left, _, right = text.partition("=")
    return left, right


def main():
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description="Lets an agent of another dialect play in the league.",
        epilog=RULES, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--agent", metavar="URL", required=True, help="where the agent listens")
    add("--body", choices=("jsonrpc", "tools", "bare"), default="jsonrpc", help="[jsonrpc]")
    add("--in", dest="inside", metavar="PATH", help="see below")
    add("--out", dest="outside", metavar="PATH", help="see below")
    for name, kind in (("field", rule), ("copy", rule), ("value", value_rule)):
        add(f"--{name}", metavar="RULE", type=kind, action="append", default=[], help="see below")
    for name in ("method", "path"):
        add(f"--{name}", metavar="RULE", type=pair, action="append", default=[], help="see below")
    player.main(Adapter, parser)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
