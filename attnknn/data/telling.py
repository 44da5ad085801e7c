"""Which features of a table tell its classes apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def most_telling(inputs: NDArray[np.floating], labels: NDArray[np.integer]) -> list[int]:
    """Order features by the variance between class means over the variance within classes.

    Args:
        inputs: Rows of features, shape (N, F).
        labels: Integers, shape (N,).

    Returns:
        F column numbers, the most telling first.

    Example:
        >>> rows = np.array([[0.0, 5.0], [1.0, 5.1], [0.0, 9.0], [1.0, 9.1]])
        >>> most_telling(rows, np.array([0, 0, 1, 1]))
        [1, 0]
    """
    means = np.stack([inputs[labels == c].mean(axis=0) for c in np.unique(labels)])
    within = np.mean([inputs[labels == c].var(axis=0) for c in np.unique(labels)], axis=0)
    return [int(f) for f in np.argsort(-means.var(axis=0) / np.maximum(within, 1e-12), kind="stable")]
