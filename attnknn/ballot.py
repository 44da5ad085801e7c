"""Ballot: every compared vote, cast on the same neighbors with the same fitted numbers.

One call gives the votes of `attnknn.votes.COMPARED` for B queries under one draw of label noise, before and
after the kind of calibrator that all of them share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.arrays import softmax, tally
from attnknn.bank.entries import Observation, stack, surround
from attnknn.bundle import Queries
from attnknn.calibration import Calibrator, calibrate, vote_facts
from attnknn.models.attention import Attention, HeadVotes, attend
from attnknn.models.terms import Surroundings, reads_keys
from attnknn.votes import (
    COMPARED,
    Vote,
    attention_vote,
    distance_weights,
    edited_weights,
    prototype_probabilities,
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
            f"calibration.{vote}": np.stack([fitted.sink, fitted.heat]) for vote, fitted in self.calibrators.items()
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
        calibrators = {vote: Calibrator(sink, heat) for vote, (sink, heat) in numbers.items()}
        distance, prototype = arrays["sharpness"]
        return cls(float(distance), float(prototype), calibrators=calibrators, **attentions)


@dataclass(frozen=True, eq=False)
class Ballot:
    """The votes on B queries, with what they looked at.

    Attributes:
        around: The K neighbors of each query, as the votes saw them.
        heads: Every head of the attention vote.
        votes: By name, before calibration.
        calibrators: By name, where one was fitted.
    """

    around: Surroundings
    heads: HeadVotes
    votes: Mapping[str, Vote]
    calibrators: Mapping[str, Calibrator]

    @cached_property
    def calibrated(self) -> dict[str, NDArray[np.float64]]:
        """Calibrated probabilities by name, shape (B, C)."""
        return {
            name: calibrate(vote.probabilities, vote_facts(self.around, vote.probabilities), calibrator)
            for name, vote in self.votes.items()
            if (calibrator := self.calibrators.get(name))
        }


def cast_votes(
    queries: Queries,
    k: int,
    seen: Observation,
    fitted: FittedVotes,
    temperature: float = 1.0,
    names: Sequence[str] = COMPARED,
) -> Ballot:
    """Cast votes on queries.

    Args:
        queries: B items and their pools of P ≥ k nearest entries, the first k of which are not −1.
        k: How many neighbors vote.
        seen: The bank under the label noise in force.
        fitted: The fitted numbers.
        temperature: Divides the scores of the distance and the attention votes.
        names: Which votes; the heads of the attention vote are heard in any case.
    """
    around = surround(queries.keys, queries.pool.first(k), seen, queries.groups, reads_keys(fitted.attention.terms))
    heads = attend(around, fitted.attention, temperature)
    votes = {}
    for name in names:
        if name == "edited":
            votes[name] = _cast_edited(queries, k, seen)
        elif name == "baseline":
            votes[name] = Vote(softmax(queries.logits.astype(np.float64)))
        else:
            votes[name] = _cast(name, around, heads, fitted, temperature)
    return Ballot(around, heads, votes, fitted.calibrators)


def cast_over_draws(
    query: Queries,
    k: int,
    draws: Sequence[Observation],
    fitted: FittedVotes,
    temperature: float,
    names: Sequence[str],
) -> dict[str, NDArray[np.float64]]:
    """Cast votes on one query under R draws of label noise, all at once.

    Args:
        query: One item and its pool.
        k: How many neighbors vote.
        draws: The bank as each draw shows it.
        fitted: The fitted numbers.
        temperature: As in `cast_votes`.
        names: Which votes, except `edited` and `baseline`: those that look at the k neighbors or the prototypes.

    Returns:
        Probabilities by name, shape (R, C), before calibration.
    """
    neighbors, with_keys = query.pool.first(k), reads_keys(fitted.attention.terms)
    has_averages = "attention_averages" in names
    around = stack([surround(query.keys, neighbors, seen, query.groups, with_keys, has_averages) for seen in draws])
    heads = attend(around, fitted.attention, temperature)
    return {name: _cast(name, around, heads, fitted, temperature).probabilities for name in names}


def _cast(name: str, around: Surroundings, heads: HeadVotes, fitted: FittedVotes, temperature: float) -> Vote:
    """Cast one of the votes that only look at the surroundings."""
    k = around.distances.shape[1]
    if name == "attention":
        return attention_vote(heads, k)
    if name == "attention_averages":
        return attention_vote(attend(around, fitted.attention_averages, temperature), k)
    if name == "prototype":
        return Vote(prototype_probabilities(around.average_distances, fitted.prototype))
    if name == "uniform":
        weights = uniform_weights(around.distances)
    elif name == "distance":
        weights = distance_weights(around, fitted.distance, temperature)
    else:
        raise ValueError(f"votes over neighbors are among {COMPARED}, however: {name!r}")
    return Vote(tally(weights, around.labels, around.n_classes), weights)


def _cast_edited(queries: Queries, k: int, seen: Observation) -> Vote:
    """Let the nearest entries of the pool that survive editing vote."""
    pool = queries.pool.entries
    weights = edited_weights(seen.keeps_label[pool] & (pool >= 0), k)
    return Vote(tally(weights, seen.labels[pool], seen.entries.n_classes), weights)
