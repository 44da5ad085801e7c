"""Ballot: every compared vote, cast on the same neighbors with the same fitted numbers.

One call gives all votes of `attnknn.votes.COMPARED` for B queries under one draw of label noise, before and
after the calibrator that all of them share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.arrays import softmax
from attnknn.bank.entries import Entries, Observation, surround
from attnknn.bundle import Queries
from attnknn.calibration import Calibrator, calibrate
from attnknn.models.attention import Attention, HeadVotes, attend, query_facts
from attnknn.models.terms import Surroundings, reads_keys
from attnknn.votes import (
    COMPARED,
    Vote,
    attention_vote,
    distance_weights,
    edited_weights,
    prototype_probabilities,
    tally,
    uniform_weights,
)

ATTENTIONS = ("attention", "attention_averages")


@dataclass(frozen=True)
class FittedVotes:
    """What was fitted on held-out queries, for every vote.

    Attributes:
        distance: θ of the distance vote.
        prototype: s of the nearest prototype vote.
        attention: Neighbors only.
        attention_averages: The same with class averages at the table.
        calibrators: One per vote of `COMPARED`.
    """

    distance: float
    prototype: float
    attention: Attention
    attention_averages: Attention
    calibrators: Mapping[str, Calibrator]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return every fitted number by name, for a file of weights."""
        named = {
            f"{vote}.{name}": array for vote in ATTENTIONS for name, array in getattr(self, vote).to_arrays().items()
        }
        named |= {
            f"calibration.{vote}": np.append(np.asarray(fitted.sink, np.float64), fitted.temperature)
            for vote, fitted in self.calibrators.items()
        }
        return named | {"sharpness": np.array([self.distance, self.prototype])}

    @classmethod
    def from_arrays(
        cls, heads: tuple[str, ...], terms: tuple[str, ...], arrays: Mapping[str, NDArray[Any]]
    ) -> FittedVotes:
        """Rebuild from `to_arrays`; the names of heads and terms come from the card of the checkpoint."""
        attentions = {
            vote: Attention.from_arrays(
                heads, terms, {key.split(".")[1]: array for key, array in arrays.items() if key.startswith(f"{vote}.")}
            )
            for vote in ATTENTIONS
        }
        numbers = {vote: arrays[f"calibration.{vote}"] for vote in COMPARED}
        calibrators = {vote: Calibrator(row[:4], float(row[4])) for vote, row in numbers.items()}
        distance, prototype = arrays["sharpness"]
        return cls(float(distance), float(prototype), calibrators=calibrators, **attentions)


@dataclass(frozen=True)
class Ballot:
    """All votes on B queries, with what they looked at.

    Attributes:
        around: The K neighbors of each query, as the votes saw them.
        heads: Every head of the attention vote.
        votes: By name, before calibration.
        calibrated: By name, shape (B, C).
    """

    around: Surroundings
    heads: HeadVotes
    votes: Mapping[str, Vote]
    calibrated: Mapping[str, NDArray[np.float64]]


def cast_votes(
    queries: Queries, k: int, entries: Entries, seen: Observation, fitted: FittedVotes, temperature: float = 1.0
) -> Ballot:
    """Cast every compared vote.

    Args:
        queries: B items and their pools of P ≥ k nearest entries, the first k of which are not −1.
        k: How many neighbors vote.
        entries: The bank.
        seen: The bank under the label noise in force.
        fitted: The fitted numbers.
        temperature: Divides the scores of the distance and the attention votes.
    """
    neighbors = queries.pool.first(k)
    with_keys = reads_keys(fitted.attention.terms)
    around = surround(queries.keys, neighbors, entries, seen, queries.groups, with_keys)
    heads = attend(around, fitted.attention, temperature)
    pool = queries.pool.entries
    edited = edited_weights(seen.keeps_label[pool] & (pool >= 0), k)
    uniform = uniform_weights(around.distances)
    distance = distance_weights(around, fitted.distance, temperature)
    votes = {
        "uniform": Vote(tally(uniform, around.labels, entries.n_classes), uniform),
        "distance": Vote(tally(distance, around.labels, entries.n_classes), distance),
        "edited": Vote(tally(edited, seen.labels[pool], entries.n_classes), edited),
        "prototype": Vote(prototype_probabilities(around.average_distances, fitted.prototype)),
        "attention": attention_vote(heads, k),
        "attention_averages": attention_vote(attend(around, fitted.attention_averages, temperature), k),
        "baseline": Vote(softmax(queries.logits.astype(np.float64))),
    }
    calibrated = {
        name: calibrate(vote.probabilities, query_facts(around.distances, vote.probabilities), fitted.calibrators[name])
        for name, vote in votes.items()
        if name in fitted.calibrators
    }
    return Ballot(around, heads, votes, calibrated)
