"""Find queries worth looking at: a list of rows for each way of looking."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from attnknn.prediction import Prediction

Rows = NDArray[np.intp]


def find_mistakes(prediction: Prediction) -> Rows:
    """Find queries whose attention vote is wrong, the most confident mistake first."""
    wrong = prediction.predicted("attention") != prediction.queries.labels
    return _ordered(wrong, -_confidence(prediction))


def find_uncertain(prediction: Prediction) -> Rows:
    """Order all queries by the confidence of the attention vote, the least confident first."""
    return _ordered(np.ones(len(prediction), np.bool_), _confidence(prediction))


def find_disagreements(prediction: Prediction) -> Rows:
    """Find queries on which uniform, distance and attention do not all agree, the least confident first."""
    uniform, distance, attention = (prediction.predicted(vote) for vote in ("uniform", "distance", "attention"))
    return _ordered((uniform != attention) | (distance != attention), _confidence(prediction))


FINDERS: dict[str, Callable[[Prediction], Rows]] = {
    "mistakes": find_mistakes,
    "most uncertain": find_uncertain,
    "votes disagree": find_disagreements,
}


def _confidence(prediction: Prediction) -> NDArray[np.float64]:
    return prediction.ballot.calibrated["attention"].max(axis=1)


def _ordered(chosen: NDArray[np.bool_], by: NDArray[np.float64]) -> Rows:
    """Rows that are chosen, in ascending order of `by`; equal ones keep their order."""
    order = np.argsort(by, kind="stable")
    return order[chosen[order]]
