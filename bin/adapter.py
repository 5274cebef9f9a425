"""Lets an agent that speaks another dialect play in the AI Agent League without a change.

The adapter is a player for the league: it registers, keeps the token, checks the senders, and
writes every envelope, as league_player.py does, which must be in the same folder. It translates the
messages of the league for the agent, and the agent's answers for the league, by the rules of the
command line, which `python3 adapter.py --help` explains.
"""
import argparse, copy, json, re
from urllib.parse import urljoin

import league_player

METHODS = {  # the league's methods for its messages
    "ROUND_ANNOUNCEMENT": "notify_round", "GAME_INVITATION": "handle_game_invitation",
    "CHOOSE_PARITY_CALL": "choose_parity", "CHOOSE_MOVE_CALL": "choose_move",
    "GAME_OVER": "notify_match_result", "GAME_ERROR": "notify_game_error",
    "LEAGUE_STANDINGS_UPDATE": "update_standings", "ROUND_COMPLETED": "notify_round_completed",
    "LEAGUE_COMPLETED": "notify_league_completed", "LEAGUE_ERROR": "notify_league_error"}
ANSWERS = {"GAME_INVITATION": ("GAME_JOIN_ACK", 4.5), "CHOOSE_PARITY_CALL": (
    "CHOOSE_PARITY_RESPONSE", 29), "CHOOSE_MOVE_CALL": ("CHOOSE_MOVE_RESPONSE", 29)}
NOTIFICATION = (None, 4)  # it has no answer message; the numbers are the agent's seconds
RULES = """
rules; in each of them the league's word stands on the left, and the agent's on the right:
  --method choose_parity=chooseParity    the agent calls a method by another name
  --method '*=handle_message'            all methods without a rule of their own have this name
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
not read. The adapter registers for the agent: keep the agent from registering by itself, or the
league has one player too many that never plays well. Two examples:

  an agent with its own words, which wants {"type": "choose", "match": ..., ...} as the whole body
  and answers {"choice": "EVEN"}:
    python3 adapter.py --agent http://localhost:9000/api --body bare --field message_type=type
        --value message_type:CHOOSE_PARITY_CALL=choose --field match_id=match
        --field parity_choice=choice --value parity_choice:even=EVEN --value parity_choice:odd=ODD

  a server of the Model Context Protocol with the tools join and pick, whose argument is a message:
    python3 adapter.py --agent http://localhost:9000/mcp --body tools --in message
        --method handle_game_invitation=join --method choose_parity=pick
"""


class Adapter(league_player.Player):
    """A player that asks an agent for its answers."""

    def handle(self, message_type, message):
        answer = super().handle(message_type, message)  # which calls `join` or `call_choose`
        if answer == {"status": "ok"}:
            try:
                self.ask(message_type, message)
            except league_player.NoAnswer:
                pass  # the problem has been printed; a notification needs no answer
        return answer

    def join(self, invitation):
        accept = self.ask("GAME_INVITATION", invitation).get("accept", True)
        return {**super().join(invitation), "accept": accept is not False}

    def call_choose(self, call, match, number, legal):
        name = "move" if call["message_type"] == "CHOOSE_MOVE_CALL" else "parity_choice"
        answer = self.ask(call["message_type"], call)
        if answer.get(name) in legal:
            match["choices"][number] = answer[name]
        else:
            self.print_once(f"the agent answers {json.dumps(answer)}, in which {name} is none of "
                            f"{json.dumps(legal)}; see --field, --value and --out")
        return answer.get(name)

    def ask(self, message_type, message):
        """Returns the agent's answer to a message, translated for the league."""
        method = METHODS[message_type]
        answer_type, timeout = ANSWERS.get(message_type, NOTIFICATION)
        names, paths = (dict(rules_for(message_type, rules))
                        for rules in (self.args.method, self.args.path))
        name, path = names.get(method, names.get("*")), paths.get(method, paths.get("*"))
        url = urljoin(self.args.agent, path) if path else self.args.agent
        body = wrap(self.args, name or method, self.to_agent(message_type, message))
        answer, problem = league_player.post(url, body, timeout)
        if isinstance(answer, dict) and answer.get("error") and answer.get("result") is None:
            problem = f"answers {json.dumps(answer)}"
        if problem:
            self.print_once(f"the agent at {url} {problem}")
            raise league_player.NoAnswer(f"the agent behind the adapter {problem}")
        return self.from_agent(answer_type, unwrap(self.args, answer)) if answer_type else {}

    def to_agent(self, message_type, message):
        """Returns a message of the league, translated for the agent."""
        message = copy.deepcopy(message)
        self.change_values(message_type, message, 0)
        self.move_fields(message_type, message, 0)
        return message

    def from_agent(self, message_type, message):
        """Returns an answer of the agent, translated for the league."""
        self.move_fields(message_type, message, 1)
        self.change_values(message_type, message, 1)
        return message

    def change_values(self, message_type, message, side):
        for name, *values in rules_for(message_type, self.args.value):
            if is_value(find(message, name), values[side]):
                put(message, name, values[1 - side])

    def move_fields(self, message_type, message, side):
        for rules, stays in ((self.args.copy, True), (self.args.field, False)):
            for names in rules_for(message_type, rules):
                move(message, names[side], names[1 - side], stays)


def wrap(args, method, message):
    """Returns the body of a request to the agent."""
    params = {}
    put(params, f"x.{args.inside}" if args.inside else "x", message)
    call = {"jsonrpc": "2.0", "method": method, "params": params["x"], "id": 1}
    if args.body == "tools":
        call.update(method="tools/call", params={"name": method, "arguments": params["x"]})
    return params["x"] if args.body == "bare" else call


def unwrap(args, answer):
    """Returns the message in the agent's answer, which may be wrapped like our requests or not."""
    for path in ("result", "structuredContent", "content.0.text", args.outside or args.inside):
        found = find(answer, path) if path else None
        if isinstance(found, str):  # JSON in a text, as tools answer
            try:
                found = json.loads(found)
            except ValueError:
                pass
        answer = answer if found is None else found
    return answer if isinstance(answer, dict) else {"answer": answer}


def find(message, path):
    """Returns the value at a path like game.id or content.0.text, or None."""
    for step in path.split("."):
        if isinstance(message, list) and step.isdecimal() and int(step) < len(message):
            message = message[int(step)]
        else:
            message = message.get(step) if isinstance(message, dict) else None
    return message


def put(message, path, value):
    """Sets the value at a path; missing objects on the path are made."""
    *parents, last = path.split(".")
    for step in parents:
        if not isinstance(message.get(step), dict):
            message[step] = {}
        message = message[step]
    message[last] = value


def move(message, source, target, stays):
    """Moves or copies the value at one path to another one."""
    value = find(message, source)
    if value is not None:
        *parents, last = source.split(".")
        parent = find(message, ".".join(parents)) if parents else message
        if not stays and isinstance(parent, dict):
            del parent[last]
        put(message, target, value)


def is_value(found, value):
    """Returns true for the value of a rule; on a command line 1 and "1" look the same."""
    if found is None:
        return False
    return found == value and type(found) is type(value) or found == str(value)


def rules_for(message_type, rules):
    return [rule[1:] for rule in rules if rule[0] in (None, message_type)]


def rule(text):
    """Reads [TYPE:]LEFT=RIGHT."""
    found = re.fullmatch(r"(?:([A-Z_]+):)?([^=:]+)=(.+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a rule like parity_choice=choice")
    return found.groups()


def value_rule(text):
    """Reads [TYPE:]FIELD:LEFT=RIGHT, for --value."""
    found = re.fullmatch(r"(?:([A-Z_]+):)?([^=:]+):([^=]+)=(.+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected one like parity_choice:even=EVEN")
    return (found[1], found[2], literal(found[3]), literal(found[4]))


def literal(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def main():
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description="Lets an agent of another dialect play in the league.",
        epilog=RULES, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--agent", metavar="URL", required=True, help="where the agent listens")
    add("--body", choices=("jsonrpc", "tools", "bare"), default="jsonrpc", help="[jsonrpc]")
    add("--in", dest="inside", metavar="PATH", help="see below")
    add("--out", dest="outside", metavar="PATH", help="see below")
    for name in ("method", "path", "field", "copy", "value"):
        kind = value_rule if name == "value" else rule
        add(f"--{name}", metavar="RULE", type=kind, action="append", default=[], help="see below")
    league_player.play(league_player.parse_args(parser), None, Adapter)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
