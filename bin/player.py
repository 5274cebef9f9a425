#!/usr/bin/env python3
"""A player of the AI Agent League for Python 3.8 or newer, without packages.

To write your own, copy this file and change `choose`: nothing else is needed. `league_player.py` must lie beside it.
"""
from league_player import choices_of, run


def choose(turn):
    """Your strategy. Say "even" or "odd": whoever alone guesses whether the drawn number (1 to 10) is even or odd wins.

    turn["opponent_id"], turn["player_id"]  whom you play, and who you are
    turn["round_id"], turn["standings"]     the round; your wins, losses and draws, or None
    choices_of(turn, turn["opponent_id"])   what somebody chose in your matches, oldest first
    turn["history"]                         all your matches so far: {"match_id", "opponent_id", "result": {...}}
    turn["seconds"]                         how long you may think

    It is called once in each match, in a thread of its own. If it raises, the referee asks again, three times in all.
    """
    return mirror(turn)


def mirror(turn):
    """An idea: what the opponent chose last time against us; even if we have never met."""
    seen = choices_of(turn, turn["opponent_id"])
    return seen[-1] if seen else "even"


if __name__ == "__main__":
    run(choose)
