"""A player of the AI Agent League, for Python 3.8 or newer, without packages.

Copy this file, change `choose`, and join a league:

    python3 player.py --manager http://10.0.0.5:8000 --display-name Ada

`league_player.py`, which does the rest, must be in the same folder. You need not read it.
"""
import random

from league_player import run


def choose(turn):
    """Your strategy: returns one of turn.legal_moves, which are "even" and "odd" in Even/Odd.

    A number from 1 to 10 is drawn. A player wins if it guessed the parity and its opponent did not.

    turn.player_id, turn.opponent_id   you and your opponent
    turn.match_id, turn.round_id       for example "R1M1" and 1
    turn.theirs                        what this opponent chose against you so far, oldest first
    turn.history                       all your matches so far, oldest first, each like {"match_id":
                                       "R1M1", "opponent_id": "P02", "winner_player_id": "P01",
                                       "drawn_number": 8, "choices": {"P01": "even", "P02": "odd"}}
    turn.standings                     like {"wins": 2, "losses": 0, "draws": 1}, or None
    turn.deadline                      when the referee gives up, for example "2025-01-15T10:30:30Z"
    turn.game_type, turn.position, turn.move_number     for games that have more than one move

    It is called in a thread of its own, once for each move. If it raises, the referee asks again.
    """
    # An idea: what this opponent chose last time.  if turn.theirs: return turn.theirs[-1]
    return random.choice(turn.legal_moves)


if __name__ == "__main__":
    run(choose)
