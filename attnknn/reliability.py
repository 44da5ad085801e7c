"""When it says 80 %, is it right 80 % of the time? Bins, their error, and what chance alone would show.

A vote that was added up in float32 may exceed one: probabilities are clipped and renormalized first,
so that no rounding of a sum pushes an item out of its bin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from attnknn.intervals import band, chunks
from attnknn.metrics import Floats, Integers, check_answers, check_probabilities

Binning = Literal["equal_mass", "equal_width"]

DECIMALS = 6  # confidences that agree to so many decimals share a bin, however they were added up
CELLS = 8192  # of the grid from 0 to 1 on which gaps are smoothed
NARROWEST = 2 / CELLS  # the smallest bandwidth that this grid resolves


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
    p, labels = check_answers(p, labels)
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


def smooth_ece(p: ArrayLike, labels: ArrayLike) -> float:
    """Return the calibration error without bins: gaps are smoothed as widely as the error is large.

    smECE = σ where E(σ) = σ,   E(σ) = ∫_0^1 |(1/N) Σ_i (confidence_i − right_i) K_σ(t, confidence_i)| dt

    K_σ is a Gaussian of standard deviation σ, reflected at 0 and at 1. More smoothing hides more, so E falls
    while σ rises: they meet once.

    Args:
        p: Probabilities, shape (n, C).
        labels: True classes, shape (n,).

    Returns:
        Between 0 and 1; not below |mean confidence − accuracy|. It moves little where the probabilities move
        little, which no ECE in bins does. Calibrated models have more than zero, by chance.

    References:
        Błasiok and Nakkiran (2023), https://arxiv.org/abs/2309.12236.
        NOTE[Blasiok2023]: their package `relplot` convolves; here a reflected Gaussian is what it is in the
        basis of cosines, a factor exp(−(πkσ)² / 2) each. Bandwidths below 0.00025 are not tried.
    """
    p, labels = check_answers(p, labels)
    confidence, right = p.max(axis=1), p.argmax(axis=1) == labels
    cosines = _cosines(confidence, (confidence - right) / len(labels))
    low, high = NARROWEST, 1.0
    while high - low > NARROWEST / 100:
        middle = (low + high) / 2
        low, high = (middle, high) if _smoothed_error(cosines, middle) > middle else (low, middle)
    return min(1.0, _smoothed_error(cosines, high))


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
    confidence = np.sort(check_probabilities(p).max(axis=1))
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


def _cosines(places: Floats, masses: Floats) -> Floats:
    """Return 2 Σ_i mass_i cos(πk place_i) for k = 0..CELLS, each mass shared by the two nodes of its cell."""
    cell = np.minimum((places * CELLS).astype(np.int64), CELLS - 1)
    share = places * CELLS - cell
    nodes = np.bincount(cell, masses * (1 - share), CELLS + 1) + np.bincount(cell + 1, masses * share, CELLS + 1)
    nodes[[0, -1]] *= 2
    return np.fft.rfft(np.concatenate([nodes, nodes[-2:0:-1]])).real


def _smoothed_error(cosines: Floats, bandwidth: float) -> float:
    """Return ∫ |smoothed masses|, by the trapezoid rule on the nodes."""
    kept = np.exp(-((np.pi * bandwidth * np.arange(CELLS + 1)) ** 2) / 2)
    smoothed = CELLS * np.fft.irfft(cosines * kept, 2 * CELLS)[: CELLS + 1]
    return float(np.trapezoid(np.abs(smoothed), dx=1 / CELLS))
