"""Label noise: which labels are replaced, and by what.

Draws are nested. An item's luck is fixed by its id and the seed; the noise rate only says how much
bad luck it takes. So the flips at 20 % are still flipped, to the same label, at 40 %, and a slider
that moves forth and back shows the same picture again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnknn.config import LabelNoise
from attnknn.data.chance import hash_to_units


@dataclass(frozen=True, eq=False)
class NoiseDraws:
    """The luck of N items under one seed.

    Attributes:
        u: Whether an item is flipped: it is, once the noise rate is above u. Shape (N,), in [0, 1).
        v: What its label then becomes. Shape (N,), in [0, 1).
    """

    u: np.ndarray
    v: np.ndarray


def draw_noise(ids: Sequence[str] | np.ndarray, seed: int) -> NoiseDraws:
    """Draw the luck of each item from its id and the seed.

    (u_j, v_j) = hash("seed:id_j")

    Args:
        ids: Stable ids of N items, in any order.
        seed: Names the draw.

    Returns:
        Two numbers in [0, 1) per item, in the order of `ids`. An item's draw stays the same
        whatever other items there are.

    Example:
        >>> draws = draw_noise(["digits/train/0", "digits/train/1"], seed=0)
        >>> draws.u.round(3).tolist()
        [0.088, 0.433]
    """
    units = hash_to_units(f"{seed}:{item}" for item in ids)
    return NoiseDraws(u=units[:, 0], v=units[:, 1])


def flip_labels(labels: np.ndarray, draws: NoiseDraws, noise: LabelNoise, n_classes: int) -> np.ndarray:
    """Replace a share of the clean labels by other labels.

    observed_j = other(labels_j, v_j) if u_j < rate else labels_j

    `symmetric` picks each of the C - 1 other classes equally likely; `pair` picks the next class,
    (c + 1) mod C; `matrix` picks a class in proportion to the clean class's row of `noise.matrix`,
    its diagonal left out. A class whose row holds nothing beside the diagonal keeps its labels.

    Args:
        labels: Clean labels of shape (N,), integers in 0..C-1.
        draws: Their luck, from `draw_noise`.
        noise: Kind and rate. The seed has done its work in `draws`.
        n_classes: C, at least 2.

    Returns:
        Observed labels, an array of the shape and type of `labels`. In expectation a share `rate`
        of them is flipped; rate 0 changes nothing; a larger rate only adds flips.

    Raises:
        ValueError: If labels and draws differ in length, a label is no class, or the matrix does
            not hold C rows of C non-negative numbers.

    Example:
        >>> clean = np.array([0, 1, 2, 0])
        >>> draws = draw_noise(["a", "b", "c", "d"], seed=0)
        >>> flip_labels(clean, draws, LabelNoise(kind="pair", rate=0.5), n_classes=3).tolist()
        [0, 2, 0, 0]

    References:
        Patrini et al. (2017), https://arxiv.org/abs/1609.03683, for pair and matrix noise.
    """
    _check_labels(labels, draws, n_classes)
    if noise.kind == "symmetric":
        others = _any_other_class(labels, draws.v, n_classes)
    elif noise.kind == "pair":
        others = (labels + 1) % n_classes
    else:
        others = _class_from_row(labels, draws.v, _flip_matrix(noise, n_classes))
    return np.where(draws.u < noise.rate, others, labels).astype(labels.dtype)


def _any_other_class(labels: np.ndarray, v: np.ndarray, n_classes: int) -> np.ndarray:
    """Count v up to one of C - 1 classes, stepping over the clean one."""
    others = np.floor(v * (n_classes - 1)).astype(labels.dtype)
    return others + (others >= labels)


def _class_from_row(labels: np.ndarray, v: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Find where v falls among the stacked shares of the clean class's row."""
    stacked = np.cumsum(matrix, axis=1)[labels]
    total = stacked[:, -1]
    others = np.sum(stacked <= (v * total)[:, None], axis=1)
    return np.where(total > 0, others, labels)


def _flip_matrix(noise: LabelNoise, n_classes: int) -> np.ndarray:
    matrix = np.array(noise.matrix, dtype=np.float64) if noise.matrix is not None else np.empty((0, 0))
    if matrix.shape != (n_classes, n_classes) or not (np.isfinite(matrix) & (matrix >= 0)).all():
        raise ValueError(f"matrix must be {n_classes} rows of {n_classes} non-negative numbers, however: {matrix}")
    np.fill_diagonal(matrix, 0)
    return matrix


def _check_labels(labels: np.ndarray, draws: NoiseDraws, n_classes: int) -> None:
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2, however: n_classes={n_classes}")
    if labels.shape != draws.u.shape:
        raise ValueError(f"labels and draws must have one shape, however: {labels.shape} and {draws.u.shape}")
    if labels.size and not 0 <= labels.min() <= labels.max() < n_classes:
        raise ValueError(f"labels must be in 0..{n_classes - 1}, however: {labels.min()}..{labels.max()}")
