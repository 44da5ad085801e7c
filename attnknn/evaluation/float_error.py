"""What adding up in float32 does to a calibration error: the original's headline, taken apart.

A unanimous vote of ten or twenty neighbors, 1/k added k times in float32, sums to 1.0000001. In bins that are open
on the left and closed on the right it lies behind the last one, and its error is counted for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnknn.arrays import tally
from attnknn.reliability import DECIMALS, ece

N_BINS = 15


@dataclass(frozen=True)
class FloatError:
    """The calibration error of one vote, as the original computed it and as it is.

    Attributes:
        published: Added up in float32, bins open on the left and closed on the right, nothing clipped.
        repaired: In the same bins, added up in float64, and no item lost.
        equal_mass: As everywhere else here.
        lost: Share of the items that fell behind the last bin.
    """

    published: float
    repaired: float
    equal_mass: float
    lost: float


def add_in_float32(
    weights: NDArray[np.float32], neighbor_labels: NDArray[np.integer], n_classes: int
) -> NDArray[np.float32]:
    """Add weights by class, one neighbor after the other, in float32, as the original did: shape (B, C)."""
    p, everyone = np.zeros((len(weights), n_classes), np.float32), np.arange(len(weights))
    for j in range(weights.shape[1]):
        p[everyone, neighbor_labels[:, j]] += weights[:, j]
    return p


def float_error(
    weights: NDArray[np.float32], neighbor_labels: NDArray[np.integer], labels: NDArray[np.integer], n_classes: int
) -> FloatError:
    """Compare the original's calibration error of a vote with ours, in `N_BINS` bins.

    published = Σ_b |Σ_{i in b} (right_i − confidence_i)| / N,   b = (b / 15, (b + 1) / 15]

    Args:
        weights: Of the vote, shape (B, K).
        neighbor_labels: Shape (B, K).
        labels: True labels, shape (B,).
        n_classes: C.
    """
    rough = add_in_float32(weights, neighbor_labels, n_classes)
    exact = tally(weights.astype(np.float64), neighbor_labels, n_classes)
    exact /= exact.sum(axis=1, keepdims=True)
    edges = np.linspace(0, 1, N_BINS + 1)
    return FloatError(
        _right_closed(rough.max(axis=1), rough.argmax(axis=1) == labels, edges.astype(np.float32)),
        _right_closed(exact.max(axis=1).round(DECIMALS), exact.argmax(axis=1) == labels, edges.round(DECIMALS)),
        ece(exact, labels, N_BINS),
        float(np.mean(rough.max(axis=1) > 1)),
    )


def _right_closed(confidence: NDArray[np.floating], right: NDArray[np.bool_], edges: NDArray[np.floating]) -> float:
    """Sum the gaps of bins (b / 15, (b + 1) / 15]; what lies behind the last one is counted for nothing."""
    place = np.searchsorted(edges, confidence, side="left") - 1
    gaps = np.bincount(place, right - confidence.astype(np.float64), N_BINS + 1)
    return float(np.abs(gaps[:N_BINS]).sum() / len(right))
