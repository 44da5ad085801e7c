"""What is written once and runs on every kind of array.

The mathematics of votes runs on NumPy arrays in the page and on torch tensors while training. It
uses only the array API, through these few helpers, which the standard lacks.

References:
    The array API standard, https://data-apis.org/array-api/latest/
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array
from numpy.typing import NDArray

Array = Any
"""An array of NumPy, torch, or any library of the array API standard."""


def namespace(*arrays: Array) -> Any:
    """Return the array API namespace that all of these arrays share.

    Args:
        arrays: At least one array. Plain Python numbers are ignored.

    Returns:
        A module with the functions of the standard, conventionally named `xp`.

    Raises:
        TypeError: If the arrays belong to different libraries, or none is an array.

    Example:
        >>> import numpy as np
        >>> float(namespace(np.ones(3)).sum(np.ones(3)))
        3.0
    """
    return array_namespace(*arrays)


def gather(x: Array, index: Array) -> Array:
    """Look up rows: what `x[index]` means in NumPy, for an index of any shape.

    out[i, ...] = x[index[i], ...]

    Args:
        x: N rows, of shape (N, ...).
        index: Row numbers in 0..N-1, of any shape. A negative number is not a row.

    Returns:
        Array of shape `index.shape + x.shape[1:]`.

    Raises:
        IndexError: If a number is not below N.

    Example:
        >>> import numpy as np
        >>> gather(np.array([10, 20, 30]), np.array([[0, 2], [1, 1]])).tolist()
        [[10, 30], [20, 20]]
    """
    xp = namespace(x, index)
    rows = xp.take(x, xp.reshape(index, (-1,)), axis=0)
    return xp.reshape(rows, tuple(index.shape) + tuple(x.shape[1:]))


def one_hot(labels: Array, n_classes: int, dtype: Any) -> Array:
    """Spread labels over classes: a one where the class is the label, zeros elsewhere.

    out[..., c] = [labels[...] = c]

    Args:
        labels: Integers in 0..C-1, of any shape. Any other number gives a row of zeros.
        n_classes: C.
        dtype: Type of the result, of the same library as `labels`.

    Returns:
        Array of shape `labels.shape + (C,)`.

    Example:
        >>> import numpy as np
        >>> one_hot(np.array([2, 0]), 3, np.float64).tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    xp = namespace(labels)
    classes = xp.arange(n_classes, dtype=labels.dtype, device=device(labels))
    return xp.astype(xp.expand_dims(labels, axis=-1) == classes, dtype)


def tally(weights: Array, labels: Array, n_classes: int) -> Array:
    """Add weights by class.

    p[b, ..., c] = Σ_j w[b, ..., j] [y[b, j] = c]

    Args:
        weights: Shape (B, K), or (B, H, K) for H tallies of the same labels.
        labels: Integers in 0..C-1, shape (B, K).
        n_classes: C.

    Returns:
        Shape (B, C) or (B, H, C); rows sum to what the rows of `weights` sum to.

    Example:
        >>> import numpy as np
        >>> tally(np.array([[0.5, 0.25, 0.25]]), np.array([[1, 0, 1]]), 2).tolist()
        [[0.25, 0.75]]
    """
    xp = namespace(weights, labels)
    lead, k = tuple(weights.shape[:-1]), weights.shape[-1]
    if not is_numpy_array(weights):
        spread = one_hot(labels, n_classes, weights.dtype)
        wide = xp.reshape(weights, (lead[0], -1, k)) @ spread
        return xp.reshape(wide, (*lead, n_classes))
    rows = n_classes * np.arange(math.prod(lead)).reshape(*lead, 1)
    places = rows + labels.reshape(lead[0], *(1,) * (len(lead) - 1), k)
    added = np.bincount(places.ravel(), weights.ravel(), math.prod(lead) * n_classes)
    return added.reshape(*lead, n_classes).astype(weights.dtype, copy=False)


def pick(rows: Array, columns: Array) -> Array:
    """Look up some columns of each row: out[b, j] = rows[b, columns[b, j]].

    Args:
        rows: Shape (B, C).
        columns: Integers in 0..C-1, shape (B, K).

    Returns:
        Shape (B, K).

    Example:
        >>> import numpy as np
        >>> pick(np.array([[1, 2], [3, 4]]), np.array([[1, 1, 0], [0, 0, 0]])).tolist()
        [[2, 2, 1], [3, 3, 3]]
    """
    xp = namespace(rows, columns)
    starts = rows.shape[1] * xp.arange(rows.shape[0], dtype=columns.dtype, device=device(columns))
    return gather(xp.reshape(rows, (-1,)), columns + starts[:, None])


def softmax(scores: Array, axis: int = -1, temperature: float = 1.0) -> Array:
    """Turn scores into weights that sum to one.

    w_j = exp(s_j / t) / sum_i exp(s_i / t)

    Args:
        scores: Real numbers of any size; minus infinity gives a weight of exactly zero, as long as
            another score along `axis` is finite.
        axis: The axis along which weights sum to one.
        temperature: t, positive; even the smallest number of the type leaves all weight to the highest score.

    Returns:
        Weights of the shape and type of `scores`. Adding a constant to the scores along `axis`
        changes nothing.

    Example:
        >>> import numpy as np
        >>> softmax(np.array([1000.0, 1000.0, -np.inf])).tolist()
        [0.5, 0.5, 0.0]
    """
    xp = namespace(scores)
    raised = xp.exp((scores - xp.max(scores, axis=axis, keepdims=True)) / temperature)
    return raised / xp.sum(raised, axis=axis, keepdims=True)


def entropy(weights: Array, axis: int = -1) -> Array:
    """Measure how evenly weights are spread.

    H = - sum_j w_j log w_j, with 0 log 0 = 0

    Args:
        weights: Non-negative numbers that sum to one along `axis`.
        axis: The axis to sum over.

    Returns:
        Entropy in nats, without `axis`: 0 when one weight is everything, log n when all n are
        equal. Its gradient is finite at a weight of zero.

    Example:
        >>> import numpy as np
        >>> float(np.exp(entropy(np.array([0.5, 0.5, 0.0]))).round(12))
        2.0
    """
    xp = namespace(weights)
    logs = xp.log(xp.where(weights > 0, weights, xp.ones_like(weights)))
    return 0.0 - xp.sum(weights * logs, axis=axis)


def likelihoods(
    labels: NDArray[np.integer], n_classes: int, transition: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Say how likely an item of each class is to be given the label that it has: shape (n, C).

    L[i, c] = T[c, y_i]; if all labels are true, T is the identity

    Args:
        labels: y, integers in 0..C−1, shape (n,).
        n_classes: C.
        transition: T, probabilities of a given label (columns) for each true one (rows), shape (C, C).

    Raises:
        ValueError: If the rows of T are not C probabilities each.

    References:
        Patrini et al. (2017), https://arxiv.org/abs/1609.03683
    """
    t = np.eye(n_classes) if transition is None else transition
    if t.shape != (n_classes, n_classes) or t.min() < 0 or not np.allclose(t.sum(axis=1), 1):
        rows = f"{n_classes} rows of {n_classes} probabilities"
        raise ValueError(f"transition must be {rows}, however: transition={t.tolist()}")
    return t.T[labels]
