"""How good the answers are.

Everything runs in float64 NumPy on clipped, renormalized probabilities, whatever came in. Proper
scores (`negative_log_likelihood`, `brier`) decide; `attnknn.reliability` explains; an interval
(`attnknn.intervals`) says whether a difference is one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnknn.arrays import Array, entropy, namespace

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOLERANCE = 1e-3  # how far outside [0, 1] a number may be and still be taken for a probability


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


def check_probabilities(p: ArrayLike) -> Floats:
    """Return clean probabilities of shape (n, C).

    Raises:
        ValueError: If they are none, or of another shape.
    """
    p = clean_probabilities(p)
    if p.ndim != 2 or p.size == 0:
        raise ValueError(f"p must be of shape (n, C), none of them 0, however: p.shape={p.shape}")
    return p


def check_answers(p: ArrayLike, labels: ArrayLike) -> tuple[Floats, Integers]:
    """Return clean probabilities of shape (n, C) and their true classes, shape (n,).

    Raises:
        ValueError: If they are none, or do not fit each other.
    """
    p, labels = check_probabilities(p), np.asarray(labels)
    if labels.shape != p.shape[:1] or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be {len(p)} integers, however: {labels.dtype} of shape {labels.shape}")
    if labels.min() < 0 or labels.max() >= p.shape[1]:
        raise ValueError(f"labels must be between 0 and {p.shape[1] - 1}, however: {labels.min()}..{labels.max()}")
    return p, labels.astype(np.int64)


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
    p, labels = check_answers(p, labels)
    return float(np.mean(p.argmax(axis=1) == labels))


def macro_f1(p: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean over classes of F1 = 2 hits / (items + predictions), from 0 to 1.

    A class that is neither the label nor the prediction of any item is left out, as in scikit-learn.

    Args:
        p: Probabilities, shape (n, C).
        labels: True classes, shape (n,).
    """
    p, labels = check_answers(p, labels)
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
    p, labels = check_answers(p, labels)
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
    p, labels = check_answers(p, labels)
    return float(np.mean(((p - np.eye(p.shape[1])[labels]) ** 2).sum(axis=1)))


def auroc(higher: ArrayLike, lower: ArrayLike) -> float:
    """Return how well a score tells two sets apart: how often one of the first has more than one of the second.

    AUROC = mean_ij ([a_i > b_j] + [a_i = b_j] / 2)

    For the sink as a detector of unfamiliar items, `higher` is its mass on them, `lower` its mass on test
    items; for confidence it is the other way round.

    Args:
        higher: Scores of the items that should have more, shape (n,).
        lower: Scores of the others, shape (m,).

    Returns:
        1 where every pair is in order, 0.5 by chance or where all are equal, 0 where every pair is out of order.

    Raises:
        ValueError: If one of the sets is empty, or a score is no number.

    Example:
        >>> auroc([0.9, 0.4], [0.1, 0.4])
        0.875

    References:
        Hendrycks and Gimpel (2017), https://arxiv.org/abs/1610.02136
    """
    a, b = np.asarray(higher, dtype=np.float64), np.sort(np.asarray(lower, dtype=np.float64), axis=None)
    if not (a.ndim == np.ndim(lower) == 1 and a.size and b.size) or np.isnan(a).any() or np.isnan(b).any():
        raise ValueError(
            f"both sets must hold numbers, at least one each, however: shapes {a.shape} and {np.shape(lower)}"
        )
    twice_below = np.searchsorted(b, a, side="left") + np.searchsorted(b, a, side="right")
    return float(np.mean(twice_below) / (2 * len(b)))


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
