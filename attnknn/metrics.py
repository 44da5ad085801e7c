"""How good the answers are, and how sure we may be of it.

Everything runs in float64 NumPy on clipped, renormalized probabilities, whatever came in: the law
that no rounding of a sum may push an item out of its bin. Proper scores (`negative_log_likelihood`,
`brier`) decide; `ece` explains; an interval says whether a difference is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnknn.arrays import Array, entropy, namespace
from attnknn.intervals import band, bootstrap_interval, check_resampling, chunks, paired_interval

__all__ = [
    "ChanceBand",
    "ReliabilityBins",
    "accuracy",
    "bootstrap_interval",
    "brier",
    "chance_ece",
    "clean_probabilities",
    "ece",
    "effective_neighbors",
    "macro_f1",
    "negative_log_likelihood",
    "paired_interval",
    "reliability",
    "unanimity",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Binning = Literal["equal_mass", "equal_width"]

TOLERANCE = 1e-3  # how far outside [0, 1] a number may be and still be taken for a probability
DECIMALS = 6  # confidences that agree to so many decimals share a bin, however they were added up


@dataclass(frozen=True, eq=False)
class ReliabilityBins:
    """What was claimed and what was true, bin by bin, from low to high confidence.

    Attributes:
        lower: Where each bin begins. Equal width: its edge; equal mass: its smallest confidence.
        upper: Where each bin ends: its edge, or its largest confidence. The last one is inside.
        count: Items in each bin. Their sum is N, always.
        confidence: Mean probability of the predicted class; NaN for an empty bin.
        accuracy: Share of right predictions; NaN for an empty bin.
    """

    lower: Floats
    upper: Floats
    count: Integers
    confidence: Floats
    accuracy: Floats


@dataclass(frozen=True)
class ChanceBand:
    """The ECE that chance alone gives a perfectly calibrated model: its mean and its band."""

    mean: float
    low: float
    high: float


def clean_probabilities(p: ArrayLike) -> Floats:
    """Turn what rounding made of probabilities back into probabilities.

    p'[c] = clip(p[c], 0, 1) / sum_i clip(p[i], 0, 1)

    Args:
        p: Probabilities of any float type, shape (..., C).

    Returns:
        float64 of the same shape; non-negative, rows sum to one.

    Raises:
        ValueError: If a number is not a probability (NaN, or outside [0, 1] by more than 0.001), or
            a row is all zeros.

    Example:
        >>> clean_probabilities(np.float32([[1.0000001, 0.0]])).tolist()
        [[1.0, 0.0]]
    """
    p = np.asarray(p, dtype=np.float64)
    if p.ndim == 0 or not bool(np.all((p >= -TOLERANCE) & (p <= 1 + TOLERANCE))):
        raise ValueError(f"p must hold numbers between 0 and 1, however: p={p}")
    clipped = np.clip(p, 0.0, 1.0)
    total = clipped.sum(axis=-1, keepdims=True)
    if not bool(np.all(total > 0)):
        raise ValueError("every row of p must have a positive number, however: a row is all zeros")
    return clipped / total


def accuracy(p: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of items whose most probable class is their label; of equals, the first.

    Args:
        p: Probabilities, shape (n, C).
        labels: True classes in 0..C-1, shape (n,).

    Raises:
        ValueError: If shapes or numbers do not fit. The same holds for every metric below.

    Example:
        >>> accuracy([[0.9, 0.1], [0.4, 0.6]], [0, 0])
        0.5
    """
    p, labels = _checked(p, labels)
    return float(np.mean(p.argmax(axis=1) == labels))


def macro_f1(p: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean over classes of F1 = 2 hits / (items + predictions), from 0 to 1.

    A class that is neither the label nor the prediction of any item is left out, as in scikit-learn.

    Args:
        p: Probabilities, shape (n, C).
        labels: True classes, shape (n,).
    """
    p, labels = _checked(p, labels)
    predicted, n_classes = p.argmax(axis=1), p.shape[1]
    hits = np.bincount(labels[predicted == labels], minlength=n_classes)
    either = np.bincount(labels, minlength=n_classes) + np.bincount(predicted, minlength=n_classes)
    return float(np.mean(2 * hits[either > 0] / either[either > 0]))


def negative_log_likelihood(p: ArrayLike, labels: ArrayLike, floor: float = 1e-12) -> float:
    """Return the mean surprise at the truth, in nats; lower is better.

    NLL = - mean_i log max(p[i, y_i], floor)

    Args:
        p: Probabilities, shape (n, C).
        labels: True classes, shape (n,).
        floor: Smallest probability counted, so that one certain error does not cost infinity.
            Compare votes with the same floor only.
    """
    p, labels = _checked(p, labels)
    if not 0 < floor <= 1:
        raise ValueError(f"floor must be above 0 and at most 1, however: floor={floor}")
    return float(-np.mean(np.log(np.maximum(p[np.arange(len(labels)), labels], floor))))


def brier(p: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean squared distance from the truth, over all classes: 0 (best) to 2.

    Brier = mean_i sum_c (p[i, c] - [c = y_i])^2

    Args:
        p: Probabilities, shape (n, C).
        labels: True classes, shape (n,).

    References:
        Brier (1950). For two classes it is twice the score of the second class alone.
    """
    p, labels = _checked(p, labels)
    return float(np.mean(((p - np.eye(p.shape[1])[labels]) ** 2).sum(axis=1)))


def reliability(p: ArrayLike, labels: ArrayLike, n_bins: int = 15, binning: Binning = "equal_mass") -> ReliabilityBins:
    """Compare, bin by bin, how sure the predictions were with how often they were right.

    Args:
        p: Probabilities, shape (n, C). The confidence of an item is its largest one.
        labels: True classes, shape (n,).
        n_bins: How many bins; few hide a gap, many drown it in chance.
        binning: `equal_mass`: bins of as many items each as ties allow (equal confidences stay
            together, at their middle rank), the less biased choice. `equal_width`: [i/n, (i+1)/n),
            the last one closed.

    Returns:
        `n_bins` bins, the empty ones too. The order of the items does not matter.

    References:
        Guo et al. (2017), https://arxiv.org/abs/1706.04599;
        equal mass: Roelofs et al. (2022), https://arxiv.org/abs/2012.08668
    """
    p, labels = _checked(p, labels)
    confidence, right = p.max(axis=1), p.argmax(axis=1) == labels
    place = _place(confidence, n_bins, binning)
    count = np.bincount(place, minlength=n_bins)
    divisor = np.where(count > 0, count, np.nan)
    bins = ReliabilityBins(
        *_edges(confidence, place, n_bins, binning),
        count=count,
        confidence=np.bincount(place, confidence, n_bins) / divisor,
        accuracy=np.bincount(place, right, n_bins) / divisor,
    )
    for array in (bins.lower, bins.upper, bins.count, bins.confidence, bins.accuracy):
        array.setflags(write=False)
    return bins


def ece(
    p: ArrayLike, labels: ArrayLike, n_bins: int = 15, binning: Binning = "equal_mass", debiased: bool = False
) -> float:
    """Return the expected calibration error: the mean gap between confidence and accuracy.

    ECE = sum_b count_b / N * |accuracy_b - confidence_b|

    A perfectly calibrated model has an ECE above zero too, by chance: read it beside `chance_ece`.

    Args:
        p: Probabilities, shape (n, C).
        labels: True classes, shape (n,).
        n_bins: How many bins, see `reliability`.
        binning: How they are cut, see `reliability`.
        debiased: Replace each gap g by 2 g - E|g + s Z|, with s^2 = accuracy (1 - accuracy) / count
            and Z standard normal. It takes away much of the bias where the gap is real, and two
            fifths of it where there is none; nothing in a bin that is all right or all wrong.

    Returns:
        Between 0 and 1.

    References:
        Kumar et al. (2019), https://arxiv.org/abs/1909.10155.
        NOTE[Kumar2019]: they draw Z a thousand times; its mean is that of a folded normal, exactly.
        A sum below zero is shown as zero.
    """
    bins = reliability(p, labels, n_bins, binning)
    full = bins.count > 0
    return float(_error(bins.count[full], bins.confidence[full], bins.accuracy[full], debiased))


def chance_ece(
    p: ArrayLike,
    n_bins: int = 15,
    resamples: int = 1000,
    seed: int = 0,
    binning: Binning = "equal_mass",
    debiased: bool = False,
    level: float = 0.95,
) -> ChanceBand:
    """Measure the ECE that a perfectly calibrated model with these confidences shows by chance.

    Item i is right with probability confidence_i: drawn anew `resamples` times, binned as ever.

    Args:
        p: Probabilities, shape (n, C). The true labels are not needed.
        n_bins: How many bins; take the same, as `binning` and `debiased`, as for `ece`.
        resamples: How many draws.
        seed: Names the draws.
        binning: How bins are cut.
        debiased: Whether each gap is debiased.
        level: Share of the draws inside the band.

    Returns:
        Mean and band. An ECE inside the band is no evidence of miscalibration.

    References:
        Consistency resampling: Bröcker and Smith (2007); Vaicenavicius et al. (2019),
        https://arxiv.org/abs/1902.06977
    """
    confidence = np.sort(_matrix(p).max(axis=1))
    check_resampling(level, resamples)
    place = _place(confidence, n_bins, binning)
    full, starts, count = np.unique(place, return_index=True, return_counts=True)
    mean = np.bincount(place, confidence)[full] / count
    rng = np.random.default_rng(seed)
    errors = []
    for size in chunks(resamples, len(confidence)):
        right = rng.random((size, len(confidence))) < confidence
        hits = np.add.reduceat(right, starts, axis=1, dtype=np.int64)
        errors.append(_error(count, mean, hits / count, debiased))
    draws = np.concatenate(errors)
    return ChanceBand(float(draws.mean()), *band(draws, level))


def effective_neighbors(weights: Array) -> Array:
    """Count the neighbors that really vote: how many equal weights would be spread as evenly.

    n = exp(- sum_j w_j log w_j)

    Args:
        weights: Shape (..., K), any array of the array API; rows sum to one.

    Returns:
        Shape (...), from 1 (one neighbor decides) to K (all equal).

    Example:
        >>> effective_neighbors(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])).round(9).tolist()
        [2.0, 1.0]
    """
    return namespace(weights).exp(entropy(weights))


def unanimity(labels: ArrayLike) -> float:
    """Return the share of queries whose neighbors all carry one label, so that no vote can differ.

    Args:
        labels: Observed labels of the neighbors, shape (B, K), K at least 1.

    Raises:
        ValueError: If there is no query or no neighbor.

    Example:
        >>> unanimity([[3, 3, 3], [3, 3, 1]])
        0.5
    """
    labels = np.asarray(labels)
    if labels.ndim != 2 or labels.size == 0:
        raise ValueError(f"labels must be of shape (B, K), none of them 0, however: shape={labels.shape}")
    return float(np.mean(np.all(labels == labels[:, :1], axis=1)))


def _matrix(p: ArrayLike) -> Floats:
    p = clean_probabilities(p)
    if p.ndim != 2 or p.size == 0:
        raise ValueError(f"p must be of shape (n, C), none of them 0, however: p.shape={p.shape}")
    return p


def _checked(p: ArrayLike, labels: ArrayLike) -> tuple[Floats, Integers]:
    p, labels = _matrix(p), np.asarray(labels)
    if labels.shape != p.shape[:1] or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be {len(p)} integers, however: {labels.dtype} of shape {labels.shape}")
    if labels.min() < 0 or labels.max() >= p.shape[1]:
        raise ValueError(f"labels must be between 0 and {p.shape[1] - 1}, however: {labels.min()}..{labels.max()}")
    return p, labels.astype(np.int64)


def _place(confidence: Floats, n_bins: int, binning: Binning) -> Integers:
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, however: n_bins={n_bins}")
    if binning not in get_args(Binning):
        raise ValueError(f"binning must be one of {get_args(Binning)}, however: binning={binning!r}")
    rounded = confidence.round(DECIMALS)
    if binning == "equal_width":
        edges = (np.arange(n_bins) / n_bins).round(DECIMALS)
        return np.searchsorted(edges, rounded, side="right") - 1
    ranked = np.sort(rounded)
    twice_the_rank = np.searchsorted(ranked, rounded, "left") + np.searchsorted(ranked, rounded, "right") - 1
    return twice_the_rank * n_bins // (2 * len(ranked))


def _edges(confidence: Floats, place: Integers, n_bins: int, binning: Binning) -> tuple[Floats, Floats]:
    if binning == "equal_width":
        return np.arange(n_bins) / n_bins, np.arange(1, n_bins + 1) / n_bins
    lower, upper = np.full(n_bins, np.nan), np.full(n_bins, np.nan)
    np.fmin.at(lower, place, confidence)
    np.fmax.at(upper, place, confidence)
    return lower, upper


def _error(count: Integers, confidence: Floats, accuracy: Floats, debiased: bool) -> Floats:
    gap = np.abs(accuracy - confidence)
    if debiased:
        gap = 2 * gap - _folded_mean(gap, np.sqrt(accuracy * (1 - accuracy) / count))
    return np.maximum(0.0, (gap * count).sum(axis=-1) / count.sum())


def _folded_mean(mean: Floats, deviation: Floats) -> Floats:
    """Return E|mean + deviation Z|."""
    z = mean / np.maximum(deviation, 1e-12)
    erf = np.vectorize(math.erf, otypes=[np.float64])(z / math.sqrt(2))
    return deviation * math.sqrt(2 / math.pi) * np.exp(-(z**2) / 2) + mean * erf
