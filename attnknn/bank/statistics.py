"""What a bank knows of its own entries: whom they live among, and whether their labels fit there.

    keys → entry_neighborhoods (once) → trust · dissent · keeps_label · hubness
    keys, labels → prototypes → contrast

Neighborhoods do not depend on labels. Everything else follows the *observed* labels and is computed anew
at every move of a noise slider; it is written in the array API, for NumPy and torch alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnknn.arrays import Array, gather, namespace, one_hot, pick, tally
from attnknn.bank.exact import search_table
from attnknn.bank.ranking import EntryTable, Exclusions

NEIGHBORHOOD = 20
"""Nearest entries that count for trust, dissent and editing."""

KEPT = 24
"""Nearest entries that are kept of each: some to spare, who move up where a query's duplicates are left out."""


def entry_neighborhoods(
    keys: np.ndarray,
    ids: Sequence[str] | np.ndarray,
    groups: Sequence[int] | np.ndarray | None = None,
    size: int = KEPT,
) -> np.ndarray:
    """Find each entry's nearest other entries, its own duplicates left out.

    Args:
        keys: (N, D) keys. Vectors are scaled to length one.
        ids: (N,) ids, each once; ties go to the smaller id.
        groups: (N,) duplicate groups; without them, every entry is its own.
        size: M, entries per neighborhood. A few more than the statistics use, so that another
            duplicate group can be left out later (`trust_of_neighbors`).

    Returns:
        (N, M) rows of the bank as int32, nearest first; −1 at the end where the bank is too small.

    Example:
        >>> entry_neighborhoods(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), ["a", "b", "c"], size=2).tolist()
        [[1, 2], [0, 2], [1, 0]]
    """
    table = EntryTable.build(keys, ids, groups)
    own = Exclusions(np.arange(table.n_entries), table.groups)
    return search_table(table, table.keys, size, own).entries.astype(np.int32)


def agreement_counts(neighborhoods: Array, labels: Array, size: int = NEIGHBORHOOD) -> tuple[Array, Array]:
    """Count the neighbors of each entry that carry its label, and its neighbors.

    a_j = #{i among the first `size` of j : y_i = y_j},   n_j = #{i among the first `size` of j}

    Args:
        neighborhoods: (N, M) rows of the bank, nearest first; −1 at the end is nobody.
        labels: (N,) observed labels.
        size: Neighbors that count.

    Returns:
        Two arrays of shape (N,), int32: a and n, with 0 <= a <= n <= size.
    """
    nearest = neighborhoods[:, :size]
    xp = namespace(nearest, labels)
    agrees = _look_up(nearest, labels) == xp.expand_dims(labels, axis=-1)
    return _count(nearest >= 0, agrees)


def trust(neighborhoods: Array, labels: Array, size: int = NEIGHBORHOOD) -> Array:
    """Measure how much each entry's label agrees with the entry's own neighborhood.

    trust_j = log((a_j + ½) / (n_j − a_j + ½)),   a and n as in `agreement_counts`

    Args:
        neighborhoods: (N, M) rows of the bank, nearest first, the entry itself not among them; −1 is
            nobody.
        labels: (N,) observed labels.
        size: Neighbors that count. A small number is noisy, a large one looks beyond the neighborhood.

    Returns:
        Array of shape (N,), float64: positive where the neighbors agree, 0 when torn or alone. With
        20 neighbors it runs from −3.71 to 3.71.

    Example:
        >>> neighborhoods = np.array([[1, 2], [0, 2], [0, 1]])
        >>> trust(neighborhoods, np.array([0, 0, 1])).round(2).tolist()
        [0.0, 0.0, -1.61]
    """
    return _logit(*agreement_counts(neighborhoods, labels, size))


def trust_of_neighbors(
    entries: Array, neighborhoods: Array, labels: Array, groups: Array, exclude_groups: Array, size: int = NEIGHBORHOOD
) -> Array:
    """Measure trust in the neighbors of queries that are themselves entries ("leave two out").

    A query must not vouch for its own neighbors: while it is classified, its duplicate group (itself
    included) is taken out of each neighbor's neighborhood, and the next one moves up.

    Args:
        entries: (B, K) rows of the neighbors.
        neighborhoods: (N, M) as for `trust`, with M above `size` to have someone to move up.
        labels: (N,) observed labels.
        groups: (N,) duplicate groups of the entries.
        exclude_groups: (B,) the duplicate group of each query, −1 for a query that is no entry.
        size: Neighbors that count.

    Returns:
        Array of shape (B, K), float64. Rows of queries with −1 equal `trust(...)[entries]`.
    """
    xp = namespace(entries, neighborhoods, labels, groups, exclude_groups)
    around = gather(neighborhoods, entries)
    own = xp.reshape(exclude_groups, (-1, 1, 1))
    allowed = (around >= 0) & ((own < 0) | (_look_up(around, groups) != own))
    agrees = _look_up(around, labels) == xp.expand_dims(gather(labels, entries), axis=-1)
    return _logit(*_count(_first(allowed, size), agrees))


def dissent(neighborhoods: Array, labels: Array, size: int = NEIGHBORHOOD) -> float:
    """Measure how much close entries contradict each other.

    dissent = 1 − Σ_j a_j / Σ_j n_j,   a and n as in `agreement_counts`

    Args:
        neighborhoods: (N, M) rows of the bank, nearest first; −1 at the end is nobody.
        labels: (N,) observed labels.
        size: Neighbors that count.

    Returns:
        Between 0 and 1; 0 if nobody has a neighbor.

    Example:
        >>> round(dissent(np.array([[1, 2], [0, 2], [0, 1]]), np.array([0, 0, 1])), 3)
        0.667
    """
    xp = namespace(neighborhoods, labels)
    agreeing, everyone = (int(xp.sum(part)) for part in agreement_counts(neighborhoods, labels, size))
    return 1 - agreeing / everyone if everyone else 0.0


def prototypes(keys: Array, labels: Array, n_classes: int, counted: Array | None = None) -> Array:
    """Average the keys of each class, by their observed labels.

    μ_c = m_c / ‖m_c‖,   m_c = Σ_j [y_j = c] [j counts] z_j

    Args:
        keys: (N, D) unit keys.
        labels: (N,) observed labels.
        n_classes: C.
        counted: (N,) which entries count; by default all.

    Returns:
        Array of shape (C, D), float64: unit vectors, and zeros for a class of which no entry counts.

    Example:
        >>> prototypes(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 0]), 2).round(3).tolist()
        [[0.707, 0.707], [0.0, 0.0]]
    """
    xp = namespace(keys, labels)
    members = one_hot(labels, n_classes, xp.float64)
    if counted is not None:
        members = members * xp.astype(counted, xp.float64)[:, None]
    sums = xp.matmul(xp.matrix_transpose(members), xp.astype(keys, xp.float64, copy=False))
    lengths = xp.sqrt(xp.sum(sums * sums, axis=1, keepdims=True))
    present = lengths > 1e-9
    return xp.where(present, sums / xp.where(present, lengths, xp.ones_like(lengths)), xp.zeros_like(sums))


def contrast(keys: Array, labels: Array, prototypes: Array) -> Array:
    """Measure whether an entry lies nearer to its own class's prototype than to any other.

    contrast_j = cos(z_j, μ_{y_j}) − max over c ≠ y_j of cos(z_j, μ_c)

    Args:
        keys: (N, D) unit keys.
        labels: (N,) observed labels.
        prototypes: (C, D) unit vectors of at least two classes. A class without entries has the zero
            vector, at cosine 0 to everything.

    Returns:
        Array of shape (N,), float64, from −2 to 2: negative where another class is nearer.

    Raises:
        ValueError: If there are fewer than two classes.

    Example:
        >>> contrast(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]), np.eye(2)).tolist()
        [1.0, -1.0]
    """
    n_classes = prototypes.shape[0]
    if n_classes < 2:
        raise ValueError(f"contrast needs at least two classes, however: {n_classes}")
    xp = namespace(keys, labels, prototypes)
    wide = xp.astype(prototypes, xp.float64)
    cosines = xp.matmul(xp.astype(keys, xp.float64, copy=False), xp.matrix_transpose(wide))
    own = pick(cosines, labels[:, None])[:, 0]
    return own - xp.max(xp.where(one_hot(labels, n_classes, xp.bool), -xp.inf, cosines), axis=1)


def keeps_label(neighborhoods: Array, labels: Array, n_classes: int, size: int = NEIGHBORHOOD) -> Array:
    """Say which entries survive editing: those whose label does not lose among their neighbors.

    keeps_j = [ #{i : y_i = y_j} = max_c #{i : y_i = c} ],   i among the first `size` of j

    Args:
        neighborhoods: (N, M) rows of the bank, nearest first, the entry itself not among them; −1 at the
            end is nobody.
        labels: (N,) observed labels.
        n_classes: C.
        size: Neighbors that count.

    Returns:
        Booleans of shape (N,). A tie for first place keeps the label, and so does having no neighbors.

    References:
        Wilson (1972), Asymptotic properties of nearest neighbor rules using edited data,
        https://doi.org/10.1109/TSMC.1972.4309137
    """
    xp = namespace(neighborhoods, labels)
    nearest = neighborhoods[:, :size]
    votes = tally(xp.astype(nearest >= 0, xp.float64), _look_up(nearest, labels), n_classes)
    return xp.max(votes, axis=1) == pick(votes, labels[:, None])[:, 0]


def hubness(neighborhoods: np.ndarray, k: int = 16) -> np.ndarray:
    """Count how many entries have each entry among their k nearest.

    hubness_j = #{i : j among the first k of i}

    Args:
        neighborhoods: (N, M) rows of the bank, nearest first; −1 is nobody.
        k: Neighbors that count, at most M.

    Returns:
        Integers of shape (N,) that sum to N k in a bank of enough entries. A few very large numbers are
        hubs: entries that vote nearly everywhere.

    References:
        Radovanović et al. (2010), https://jmlr.org/papers/v11/radovanovic10a.html

    Example:
        >>> hubness(np.array([[1, 2], [0, 2], [1, 0]]), k=1).tolist()
        [1, 2, 0]
    """
    nearest = neighborhoods[:, :k]
    return np.bincount(nearest[nearest >= 0], minlength=len(neighborhoods))


def _look_up(neighborhoods: Array, values: Array) -> Array:
    xp = namespace(neighborhoods, values)
    return gather(values, xp.where(neighborhoods >= 0, neighborhoods, xp.zeros_like(neighborhoods)))


def _first(valid: Array, size: int) -> Array:
    xp = namespace(valid)
    return valid & (xp.cumulative_sum(xp.astype(valid, xp.int32), axis=-1, dtype=xp.int32) <= size)


def _count(valid: Array, agrees: Array) -> tuple[Array, Array]:
    xp = namespace(valid, agrees)
    agreeing, everyone = (
        xp.sum(xp.astype(part, xp.int32), axis=-1, dtype=xp.int32) for part in (valid & agrees, valid)
    )
    return agreeing, everyone


def _logit(agreeing: Array, everyone: Array) -> Array:
    xp = namespace(agreeing, everyone)
    agree, disagree = xp.astype(agreeing, xp.float64), xp.astype(everyone - agreeing, xp.float64)
    return xp.log((agree + 0.5) / (disagree + 0.5))
