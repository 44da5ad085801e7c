"""Parting items so that no exact duplicate sees both sides."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from attnknn.data.chance import hash_to_units


def group_duplicates(inputs: np.ndarray) -> np.ndarray:
    """Number the items so that exact duplicates share a number.

    Two items are duplicates when every value of their inputs is equal. Labels are not compared:
    a picture that occurs twice gives its label away even where the second label is wrong.

    Args:
        inputs: n items of numbers, of shape (n, ...).

    Returns:
        Integers of shape (n,), counted from 0 in order of first appearance.

    Example:
        >>> group_duplicates(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])).tolist()
        [0, 1, 0]
    """
    rows = np.ascontiguousarray(inputs if inputs.dtype.kind in "bui" else inputs + 0)  # 0 turns -0.0 into 0.0
    numbers: dict[bytes, int] = {}
    digests = (blake2b(row.tobytes(), digest_size=16).digest() for row in rows)
    return np.array([numbers.setdefault(digest, len(numbers)) for digest in digests], dtype=np.int64)


def split_by_group(labels: np.ndarray, groups: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Hold out a share of the items of every class, a duplicate group always as a whole.

    Each class gets a quota of round(share · n_c) places, the rounding shared out so that quotas add
    up to ceil(share · n). Groups come in a drawn order and are held out while all classes they
    touch have places left.

    NOTE: scikit-learn's StratifiedGroupKFold does the same work, but its folds may change with its
    version, and with them the ids of every dataset.

    Args:
        labels: Integers of shape (n,), the classes to keep in proportion.
        groups: Integers of shape (n,); equal numbers stay together.
        share: Share of items to hold out, strictly between 0 and 1.
        seed: Names the draw. A group's place in the order depends on its number and the seed alone.

    Returns:
        Booleans of shape (n,), true for held-out items. No class exceeds its quota; each fills it
        exactly where no items are duplicates, else to within the size of its largest group.

    Raises:
        ValueError: If `share` is not strictly between 0 and 1.

    Example:
        >>> held = split_by_group(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 2, 3, 4]), 1 / 3, seed=0)
        >>> held.tolist()
        [False, False, True, True, False, False]
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be strictly between 0 and 1, however: share={share}")
    places = _quotas(np.bincount(labels), share)
    held = np.zeros(len(labels), dtype=bool)
    for rows in _groups_in_drawn_order(groups, seed):
        wanted = np.bincount(labels[rows], minlength=len(places))
        if (wanted <= places).all():
            held[rows] = True
            places = places - wanted
    return held


def _quotas(counts: np.ndarray, share: float) -> np.ndarray:
    """Round share · counts down, then up again for the largest remainders, to add up to the ceiling."""
    exact = np.round(counts * share, 9)
    quotas = np.floor(exact).astype(np.int64)
    missing = int(np.ceil(np.round(exact.sum(), 6))) - int(quotas.sum())
    by_remainder = np.argsort(quotas - exact, kind="stable")
    quotas[by_remainder[:missing]] += 1
    return quotas


def _groups_in_drawn_order(groups: np.ndarray, seed: int) -> list[np.ndarray]:
    """List the rows of each group, the groups in an order drawn from their numbers and the seed."""
    numbers, starts = np.unique(np.sort(groups), return_index=True)
    members = np.split(np.argsort(groups, kind="stable"), starts[1:])
    draws = hash_to_units(f"{seed}:{number}" for number in numbers)[:, 0]
    return [members[i] for i in np.argsort(draws, kind="stable")]
