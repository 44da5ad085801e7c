"""Does it notice what does not belong? Items from elsewhere against test items, by scores of strangeness.

sink       mass that goes to none of the neighbors, from the heads or from the calibrator of the attention vote
distance   to the last of the k neighbors, or to a further one of the pool
doubt      1 − the largest calibrated probability of a vote
softmax    1 − the largest probability of the parametric baseline, as it comes
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attnknn.metrics import Floats, auroc
from attnknn.prediction import Prediction
from attnknn.votes import COMPARED, TITLES

if TYPE_CHECKING:
    import pandas as pd

RIVAL_K = 50
"""The neighbor whose distance counts for Sun et al. on CIFAR-10."""
BOTH_SIDES = 1.959964  # standard errors to either side of the mean, for 95 %


def strangeness(prediction: Prediction) -> dict[str, Floats]:
    """Score how little each query looks like what the bank knows; larger is stranger.

    Args:
        prediction: Of every compared vote.

    Returns:
        By score, shape (B,). The distance is that of the rival, to neighbor `RIVAL_K` or the last of a smaller pool,
        and comes first.

    References:
        Distance: Sun et al. (2022), Out-of-distribution detection with deep nearest neighbors,
        https://arxiv.org/abs/2204.06507. Softmax: Hendrycks and Gimpel (2017), https://arxiv.org/abs/1610.02136
    """
    ballot, pool = prediction.ballot, prediction.queries.pool
    found: dict[str, Any] = {
        f"distance to neighbor {k}": pool.distances[:, k - 1] for k in (min(RIVAL_K, pool.k), prediction.k)
    }
    for vote in ("attention", "attention_averages"):
        found[f"sink of {TITLES[vote]}"] = ballot.votes[vote].sink
    found |= {f"doubt of {TITLES[vote]}": 1 - ballot.calibrated[vote].max(axis=1) for vote in COMPARED}
    return found | {"softmax": 1 - ballot.votes["baseline"].probabilities.max(axis=1)}


def tell_apart(inside: Prediction, outside: Mapping[str, Prediction]) -> pd.DataFrame:
    """Measure how well each score of `strangeness` tells items from elsewhere from test items.

    Args:
        inside: Test items.
        outside: By name, items that belong to none of the classes.

    Returns:
        One row per set and score: outside, score, auroc; and gap, low, high: the difference to the rival's distance
        with its 95 % interval, paired over items.

    References:
        Intervals: DeLong, DeLong and Clarke-Pearson (1988), Comparing the areas under two or more correlated receiver
        operating characteristic curves, https://doi.org/10.2307/2531595
    """
    import pandas as pd

    known, rows = strangeness(inside), []
    for name, prediction in outside.items():
        strange = strangeness(prediction)
        (rival, *_) = found = {score: _placements(strange[score], known[score]) for score in known}
        for score, placements in found.items():
            gaps = [ours - theirs for ours, theirs in zip(placements, found[rival], strict=True)]
            error = np.sqrt(sum(np.var(gap, ddof=1) / len(gap) for gap in gaps))
            gap = float(gaps[0].mean())
            area = auroc(strange[score], known[score])
            ends = {"gap": gap, "low": gap - BOTH_SIDES * error, "high": gap + BOTH_SIDES * error}
            rows.append({"outside": name, "score": score, "auroc": area} | ends)
    return pd.DataFrame(rows)


def _placements(higher: Floats, lower: Floats) -> tuple[Floats, Floats]:
    """Return for each item of one set the share of the other that it is in order with; both have the AUROC as mean."""

    def share_below(a: Floats, b: Floats) -> Floats:
        ranked = np.sort(b)
        return (np.searchsorted(ranked, a, "left") + np.searchsorted(ranked, a, "right")) / (2 * len(b))

    return share_below(higher, lower), 1 - share_below(lower, higher)
