"""How sure we may be: intervals and p-values by drawing the same number of items again, with replacement.

References:
    Efron and Tibshirani (1993), An Introduction to the Bootstrap.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

CHUNK = 1_000_000  # numbers drawn at a time, so that memory stays small


def bootstrap_interval(
    values: ArrayLike, level: float = 0.95, seed: int = 0, resamples: int = 2000
) -> tuple[float, float]:
    """Return where the mean of these values would lie, had other items been drawn.

    Args:
        values: One number per item, shape (n,): right or wrong, a surprise, a difference.
        level: Share of resampled means inside the interval.
        seed: Names the draws.
        resamples: How many times n items are drawn with replacement.

    Returns:
        (low, high), percentiles of the resampled means.

    Raises:
        ValueError: If there are no values, or one is not finite, or a setting is out of range.

    References:
        Efron and Tibshirani (1993), chapter 13.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"values must be of shape (n,), however: shape={values.shape}")
    return band(resampled_means(values[np.newaxis], seed, resamples)[0], level)


def paired_interval(
    a: ArrayLike, b: ArrayLike, level: float = 0.95, seed: int = 0, resamples: int = 2000
) -> tuple[float, float]:
    """Return an interval of mean(a - b), both measured on the same items.

    Each resample draws n items, the same ones for every seed; and, independently, S seeds, when
    there is more than one. So it holds for other items and for other noise draws.

    Args:
        a: Numbers of the one vote, shape (n,), (S, n) for S seeds on the same n items, or (E, S, n) for
            the same S seeds with each of E embedders, which are then drawn independently as well.
        b: Numbers of the other, of the same shape and order.
        level: Share of resampled differences inside the interval.
        seed: Names the draws.
        resamples: How many.

    Returns:
        (low, high). An interval that holds 0 is shown as "no difference". For one seed it equals
        `bootstrap_interval(a - b)`. With fewer than about five seeds it is a rough guide.

    Raises:
        ValueError: If shapes differ, or as for `bootstrap_interval`.

    References:
        Owen (2007), The pigeonhole bootstrap, https://doi.org/10.1214/07-AOAS122 (slightly too wide
        rather than too narrow).
    """
    return band(resampled_means(_differences(a, b), seed, resamples)[0], level)


def paired_p_value(a: ArrayLike, b: ArrayLike, seed: int = 0, resamples: int = 2000) -> float:
    """Return how surprising a mean(a - b) this far from zero would be, were there no difference: `p_value`.

    Args:
        a: Numbers of the one vote, as for `paired_interval`.
        b: Numbers of the other, of the same shape and order.
        seed: Names the draws; those of `paired_interval` with the same seed.
        resamples: R. No p is below 2 / (1 + R): many claims that are judged together need more.

    Returns:
        Above 0, at most 1. Judge several of them by `holm`.

    Raises:
        ValueError: As for `paired_interval`.
    """
    return p_value(resampled_means(_differences(a, b), seed, resamples)[0])


def p_value(means: Floats) -> float:
    """Return how surprising a mean this far from zero would be, were it zero in truth: two-sided.

    p = min(1, 2 (1 + min(#{m <= 0}, #{m >= 0})) / (1 + R)),  m: R resampled means

    So it is the share of draws outside the widest percentile interval that does not hold 0: the two agree.

    Args:
        means: One row of `resampled_means`, or the difference of two, shape (R,).

    Returns:
        Above 0, at most 1.

    Example:
        >>> p_value(np.array([1.0, 2.0, 3.0, -1.0, 4.0, 2.0, 1.0]))
        0.5

    References:
        Efron and Tibshirani (1993), chapter 15; the 1 added to both counts: Davison and Hinkley (1997),
        Bootstrap Methods and Their Application, chapter 4.
    """
    rarer = min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0))
    return float(min(1.0, 2 * (1 + rarer) / (1 + len(means))))


def resampled_means(values: ArrayLike, seed: int = 0, resamples: int = 2000) -> Floats:
    """Return the means of several things measured on the same items, had other items been drawn.

    Every measured thing meets the same draws, so the difference of two rows is that of pairs: many comparisons
    cost hardly more than one.

    Args:
        values: Shape (M, ..., n): M things, and n items last. Axes between them, seeds or embedders, are drawn
            anew as well, each independently, when they are longer than one.
        seed: Names the draws.
        resamples: R.

    Returns:
        Shape (M, R).

    Raises:
        ValueError: If there are no values, or one is not finite, or there are no resamples.

    References:
        Owen and Eckles (2012), Bootstrapping data arrays of arbitrary order,
        https://doi.org/10.1214/12-AOAS547
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim < 2 or values.size == 0 or not bool(np.all(np.isfinite(values))):
        raise ValueError(f"values must be finite numbers, at least one, however: shape={values.shape}")
    (count, *axes, n), rng, means = values.shape, np.random.default_rng(seed), []
    by_item = values.reshape(-1, n).T / n
    for size in chunks(resamples, n):
        drawn = (_draw_counts(rng, size, n) @ by_item).reshape(size, count, *axes)
        for axis, length in enumerate(axes):
            if length > 1:
                often = _draw_counts(rng, size, length)
                drawn = drawn * often.reshape(size, 1, *(length if one == axis else 1 for one in range(len(axes))))
        means.append(drawn.reshape(size, count, -1).mean(axis=2))
    return np.concatenate(means).T


def holm(p_values: ArrayLike) -> Floats:
    """Adjust p-values of claims that are judged together: the more there are, the more each must show.

    adjusted_(i) = max over j <= i of min(1, (m - j + 1) p_(j)),  p_(1) <= ... <= p_(m)

    Reject the claims with an adjusted p-value of at most 0.05: the chance of even one false alarm is at most
    5 %, however the claims depend on each other.

    Args:
        p_values: One per claim, shape (m,).

    Returns:
        Adjusted p-values in the order of the claims, shape (m,); never below those that came.

    Raises:
        ValueError: If one of them is not between 0 and 1.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]

    References:
        Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not bool(np.all((p >= 0) & (p <= 1))):
        raise ValueError(f"p_values must be of shape (m,), between 0 and 1, however: {p}")
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(len(p), 0, -1) * p[order]))
    return adjusted


def chunks(resamples: int, n: int) -> Iterator[int]:
    """Cut `resamples` draws of n numbers each into portions that fit in little memory; a ValueError if none."""
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, however: resamples={resamples}")
    size = max(1, CHUNK // n)
    for start in range(0, resamples, size):
        yield min(size, resamples - start)


def band(draws: Floats, level: float) -> tuple[float, float]:
    """Return the two percentiles that hold the middle `level` of these draws between them."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, however: level={level}")
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _differences(a: ArrayLike, b: ArrayLike) -> Floats:
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape or a.ndim not in (1, 2, 3):
        raise ValueError(f"a and b must share a shape (n,), (S, n) or (E, S, n), however: {a.shape} and {b.shape}")
    return (a - b)[np.newaxis]


def _draw_counts(rng: np.random.Generator, size: int, n: int) -> Floats:
    """Draw n of n with replacement, `size` times: how often each was drawn, shape (size, n)."""
    drawn = rng.integers(0, n, size=(size, n)) + np.arange(size)[:, np.newaxis] * n
    return np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
