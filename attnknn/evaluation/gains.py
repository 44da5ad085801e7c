"""What variants of the votes gain or lose: each with a calibrator of its own, paired with the plain vote.

An average is softer than what it averages. So each vote of each variant gets a calibrator of the same kind, fitted on
the same held-out queries under the same noise draws as that of the plain vote, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnknn.bundle import Queries
from attnknn.calibration import Calibrator, calibrate, fit_calibrator
from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.evaluation.selective import augrc
from attnknn.evaluation.variants import PLAIN, Said, Variant, cast_variant
from attnknn.intervals import paired_interval
from attnknn.metrics import Floats, negative_log_likelihood
from attnknn.reliability import ece
from attnknn.votes import COMPARED

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FittedVariant:
    """What was fitted for one vote: the candidate it took, its calibrator, and their NLL on held-out queries."""

    variant: Variant
    calibrator: Calibrator
    loss: float


def fit_variant(
    classifier: AttnKNN,
    candidates: Sequence[Variant],
    views: Sequence[Queries],
    noises: Sequence[LabelNoise],
) -> dict[str, FittedVariant]:
    """Fit the calibrator of every vote, and of several candidates take the one with the lowest NLL.

    Args:
        classifier: Whose votes.
        candidates: At least one.
        views: Of held-out queries with labels, from `attnknn.evaluation.views`.
        noises: The draws that the votes were fitted under.
    """
    labels = np.tile(_labels(views), len(noises))
    best: dict[str, FittedVariant] = {}
    for variant in candidates:
        said = [cast_variant(classifier, variant, views, noise) for noise in noises]
        for vote in COMPARED:
            p = np.concatenate([one[vote].probabilities for one in said])
            facts = np.concatenate([one[vote].facts for one in said])
            calibrator = fit_calibrator(p, facts, labels)
            loss = negative_log_likelihood(calibrate(p, facts, calibrator), labels)
            if vote not in best or loss < best[vote].loss:
                best[vote] = FittedVariant(variant, calibrator, loss)
    return best


def compare_variants(
    classifier: AttnKNN,
    fitted: Mapping[str, Mapping[str, FittedVariant]],
    views: Sequence[Queries],
    levels: Sequence[Sequence[LabelNoise]],
) -> pd.DataFrame:
    """Measure every vote of every variant, and its difference to the plain vote, paired over draws and queries.

    Args:
        classifier: Whose votes.
        fitted: By variant and vote, from `fit_variant`; `plain` among them.
        views: Of test queries with labels.
        levels: The draws of label noise of each kind and rate.

    Returns:
        One row per level, vote and variant, means over draws: noise_kind, noise_rate, draws, vote, variant, k,
        accuracy, nll (nats), ece_debiased, augrc, effective_neighbors; then accuracy_gap and nll_gap, each with the
        _low and the _high end of its 95 % interval. The intervals are not adjusted for their number.
    """
    import pandas as pd

    labels, rows = _labels(views), []
    for noises in levels:
        found = {name: _measure(classifier, some, views, noises, labels) for name, some in fitted.items()}
        level: dict[str, Any] = {"noise_kind": noises[0].kind, "noise_rate": noises[0].rate, "draws": len(noises)}
        for vote, plain in found[PLAIN].items():
            for name, measured in found.items():
                ours = measured[vote]
                gaps = _gap("accuracy", ours.hits, plain.hits) | _gap("nll", ours.losses, plain.losses)
                rows.append(level | {"vote": vote, "variant": name} | ours.means | gaps)
    return pd.DataFrame(rows)


def _gap(measure: str, ours: Floats, theirs: Floats) -> dict[str, float]:
    low, high = paired_interval(ours, theirs)
    return {f"{measure}_gap": float(np.mean(ours - theirs)), f"{measure}_low": low, f"{measure}_high": high}


@dataclass(frozen=True)
class _Measured:
    """Hits and losses (nats) of shape (draws, B), and means of everything."""

    hits: Floats
    losses: Floats
    means: dict[str, float]


def _measure(
    classifier: AttnKNN,
    fitted: Mapping[str, FittedVariant],
    views: Sequence[Queries],
    noises: Sequence[LabelNoise],
    labels: NDArray[np.integer],
) -> dict[str, _Measured]:
    """Measure each vote as the candidate that it took."""
    said: dict[str, list[Said]] = {vote: [] for vote in fitted}
    for variant in {one.variant for one in fitted.values()}:
        votes = [vote for vote, one in fitted.items() if one.variant is variant]
        for noise in noises:
            for vote, one in cast_variant(classifier, variant, views, noise, votes).items():
                said[vote].append(one)
    return {vote: _count(some, fitted[vote].calibrator, labels) for vote, some in said.items()}


def _count(said: Sequence[Said], calibrator: Calibrator, labels: NDArray[np.integer]) -> _Measured:
    calibrated = [calibrate(one.probabilities, one.facts, calibrator) for one in said]
    hits = np.array([one.probabilities.argmax(axis=1) == labels for one in said], np.float64)
    losses = -np.log([p[np.arange(len(p)), labels] for p in calibrated])
    means = {
        "k": float(np.mean([one.k for one in said])),
        "accuracy": float(hits.mean()),
        "nll": float(losses.mean()),
        "ece_debiased": float(np.mean([ece(p, labels, debiased=True) for p in calibrated])),
        "augrc": float(np.mean([augrc(p, labels) for p in calibrated])),
        "effective_neighbors": float(np.mean([one.effective_neighbors for one in said])),
    }
    return _Measured(hits, losses, means)


def _labels(views: Sequence[Queries]) -> NDArray[np.int32]:
    if views[0].labels is None:
        raise ValueError("only queries with labels can be measured, however: queries.labels=None")
    return views[0].labels
