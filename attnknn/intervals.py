"""How sure we may be: intervals by drawing the same number of items again, with replacement.

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
    return _interval(values[np.newaxis], level, seed, resamples)


def paired_interval(
    a: ArrayLike, b: ArrayLike, level: float = 0.95, seed: int = 0, resamples: int = 2000
) -> tuple[float, float]:
    """Return an interval of mean(a - b), both measured on the same items.

    Each resample draws n items, the same ones for every seed; and, independently, S seeds, when
    there is more than one. So it holds for other items and for other noise draws.

    Args:
        a: Numbers of the one vote, shape (n,), or (S, n) for S seeds on the same n items.
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
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape or a.ndim not in (1, 2):
        raise ValueError(f"a and b must share a shape (n,) or (S, n), however: {a.shape} and {b.shape}")
    return _interval(np.atleast_2d(a - b), level, seed, resamples)


def chunks(resamples: int, n: int) -> Iterator[int]:
    """Cut `resamples` draws of n numbers each into portions that fit in little memory."""
    size = max(1, CHUNK // n)
    for start in range(0, resamples, size):
        yield min(size, resamples - start)


def band(draws: Floats, level: float) -> tuple[float, float]:
    """Return the two percentiles that hold the middle `level` of these draws between them."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def check_resampling(level: float, resamples: int) -> None:
    """Raise a ValueError if there is no such band, or nothing to draw."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, however: level={level}")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, however: resamples={resamples}")


def _interval(values: Floats, level: float, seed: int, resamples: int) -> tuple[float, float]:
    """Resample the columns (items) of an (S, n) array, and its rows (seeds) if there are several."""
    check_resampling(level, resamples)
    n_seeds, n = values.shape
    if values.size == 0 or not bool(np.all(np.isfinite(values))):
        raise ValueError(f"values must be finite numbers, at least one, however: shape={values.shape}")
    rng = np.random.default_rng(seed)
    means = []
    for size in chunks(resamples, n):
        by_seed = _draw_counts(rng, size, n) @ values.T / n
        if n_seeds > 1:
            by_seed = by_seed * _draw_counts(rng, size, n_seeds)
        means.append(by_seed.sum(axis=1) / n_seeds)
    return band(np.concatenate(means), level)


def _draw_counts(rng: np.random.Generator, size: int, n: int) -> Floats:
    """Draw n of n with replacement, `size` times: how often each was drawn, shape (size, n)."""
    drawn = rng.integers(0, n, size=(size, n)) + np.arange(size)[:, np.newaxis] * n
    return np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
