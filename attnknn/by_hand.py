"""What somebody changed by hand: labels flipped, neighbors left out, heads not heard; and the decision under it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from attnknn.ballot import FittedVotes, cast_votes
from attnknn.bank.entries import Observation
from attnknn.bank.neighbors import Neighbors
from attnknn.bank.walk import relabel
from attnknn.bundle import Queries
from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.models.attention import Attention
from attnknn.prediction import Prediction


@dataclass(frozen=True)
class ByHand:
    """Changes to one decision.

    Attributes:
        flips: Class by id of entry: labels of the bank that are changed after the noise; all that reads labels follows.
        dropped: Ids of entries that the search is not to find, if it would; the next nearest move up.
        muted: Names of heads that are not heard, if they are there; those that are left count equally.
    """

    flips: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    muted: tuple[str, ...] = ()

    def change_bank(self, seen: Observation) -> Observation:
        """Change labels of a bank.

        Raises:
            ValueError: If an id names no entry, or a class is none of the bank's.
        """
        return relabel(seen, self.flips) if self.flips else seen

    def change_query(self, query: Queries, seen: Observation) -> Queries:
        """Leave entries out of the pool of one query."""
        rows = query.pool.entries[0]
        kept = (rows >= 0) & ~np.isin(seen.entries.ids[rows], self.dropped)
        return replace(query, pool=Neighbors(query.pool.entries[:, kept], query.pool.distances[:, kept]))

    def change_votes(self, fitted: FittedVotes) -> FittedVotes:
        """Mute heads of both attention votes.

        Raises:
            ValueError: If no head is left.
        """
        heard = [h for h, name in enumerate(fitted.attention.heads) if name not in self.muted]
        if not heard:
            raise ValueError(f"one head at least must be heard, however: muted={self.muted}")
        attention, averages = _hear(fitted.attention, heard), _hear(fitted.attention_averages, heard)
        return replace(fitted, attention=attention, attention_averages=averages)


def read_flip(text: str, is_entry: Callable[[str], bool], n_classes: int) -> tuple[str, int]:
    """Read `ID:CLASS`: which entry gets which label.

    Raises:
        ValueError: There is no such entry, or no such class.
    """
    entry, _, label = text.rpartition(":")
    if not (is_entry(entry) and re.fullmatch("[0-9]{1,9}", label) and int(label) < n_classes):
        raise ValueError(text)
    return entry, int(label)


def decide_by_hand(
    classifier: AttnKNN,
    query: Queries,
    by_hand: ByHand,
    k: int,
    noise: LabelNoise | None = None,
    temperature: float = 1.0,
) -> Prediction:
    """Let the neighbors of one query vote, after somebody changed something by hand.

    Args:
        classifier: Who is asked.
        query: One item and its pool, from `AttnKNN.ask` or `AttnKNN.ask_embedded`.
        by_hand: What is changed.
        k: How many neighbors vote; fewer, where fewer are left.
        noise: Label noise of the bank, before labels are changed by hand; by default none.
        temperature: Divides the scores of the distance and attention votes.

    Raises:
        ValueError: If a label is flipped of no entry or to no class, or no head or no neighbor is left.
    """
    noise = noise or LabelNoise()
    seen = by_hand.change_bank(classifier.observe(noise))
    asked, fitted = by_hand.change_query(query, seen), by_hand.change_votes(classifier.fitted)
    if not asked.pool.k:
        raise ValueError("one neighbor at least must be left, however: all of the pool are dropped")
    k = min(k, asked.pool.k)
    ballot = cast_votes(asked, k, seen, fitted, temperature)
    return Prediction(asked, seen, ballot, fitted.attention, classifier.class_names, k, noise, temperature)


def _hear(attention: Attention, heard: list[int]) -> Attention:
    by_head = {name: array[heard] for name, array in attention.to_arrays().items() if name != "metric"}
    return replace(attention, heads=tuple(attention.heads[h] for h in heard), **by_head)
