"""Checks: what must hold of a checkpoint before a number of it is believed.

    arrays.py   what must hold among the arrays of a bundle
    card.py     what the card must say, and that it says nothing else than the arrays do
    votes.py    heads, terms and tensors of the votes

A check is a generator of problems, pairs of what was expected and what came. Those that come first
may be taken for granted by those behind them: `refuse` stops at the first problem.
"""

from __future__ import annotations

from collections.abc import Iterator

from attnknn.errors import DamagedCheckpoint

Problem = tuple[str, str]
"""What was expected, and what came instead: two sentences."""


def refuse(name: str, problems: Iterator[Problem]) -> None:
    """Raise the first of the problems of a checkpoint, and look for no more.

    Raises:
        DamagedCheckpoint: There is one.
    """
    for expected, received in problems:
        raise DamagedCheckpoint(name, expected, received)
