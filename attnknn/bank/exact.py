"""Exact search in plain NumPy: for the web process, and to check every index against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from attnknn.bank.neighbors import Neighbors, check_k
from attnknn.bank.ranking import EntryTable, Exclusions, rank_candidates
from attnknn.errors import SettingError

CHUNK = 2_000_000
"""Numbers held at once while searching, 16 MB."""


def search_exact(
    keys: np.ndarray,
    queries: np.ndarray,
    k: int,
    ids: Sequence[str] | np.ndarray,
    groups: Sequence[int] | np.ndarray | None = None,
    exclude_ids: Sequence[str | None] | np.ndarray | None = None,
    exclude_groups: Sequence[int] | np.ndarray | None = None,
) -> Neighbors:
    """Find the k nearest entries of each query by comparing it with all of them.

    d[b, j] = sqrt(2 − 2 cos(z_b, z_j)), rounded to six digits; ties go to the smaller id

    Args:
        keys: (N, D) keys of the entries. Vectors are scaled to length one.
        queries: (B, D) embeddings, likewise.
        k: Neighbors per query.
        ids: (N,) ids of the entries, each once.
        groups: (N,) duplicate groups of the entries; without them, every entry is its own.
        exclude_ids: For each query the id it must not retrieve (its own), or None.
        exclude_groups: For each query the duplicate group it must not retrieve, or −1.

    Returns:
        (B, k) neighbors. They do not depend on the order of the entries.

    Raises:
        InputError: If queries and keys differ in dimension.
        SettingError: If k is below 1, or more than the entries that a query may retrieve.

    Example:
        >>> keys = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        >>> found = search_exact(keys, keys[:1], k=2, ids=["a", "b", "c"], exclude_ids=["a"])
        >>> found.entries.tolist(), found.distances.tolist()
        ([[2, 1]], [[0.0, 1.414214]])
    """
    if exclude_groups is not None and groups is None:
        raise ValueError("exclude_groups needs the groups of the entries, however: groups=None")
    return search_prepared(EntryTable.build(keys, ids, groups), queries, k, exclude_ids, exclude_groups)


def search_prepared(
    table: EntryTable,
    queries: np.ndarray,
    k: int,
    exclude_ids: Sequence[str | None] | np.ndarray | None = None,
    exclude_groups: Sequence[int] | np.ndarray | None = None,
) -> Neighbors:
    """Do what `search_exact` does, on a table that was built before."""
    units = table.unit_queries(queries)
    check_entries(k, table)
    excluded = Exclusions.build(table, len(units), exclude_ids, exclude_groups)
    return require_all(search_table(table, units, k, excluded), table)


def search_table(table: EntryTable, units: np.ndarray, k: int, excluded: Exclusions) -> Neighbors:
    """Search a prepared table; where fewer than k are allowed, entry −1 at distance infinity."""
    everyone = np.arange(table.n_entries)[None, :]
    parts = [
        rank_candidates(units[part] @ table.keys.T, everyone, table, excluded[part], k)
        for part in chunks(len(units), table.n_entries)
    ]
    return concatenate(parts, k)


def chunks(n_rows: int, row_size: int) -> Iterator[slice]:
    """Cut rows into slices that hold about `CHUNK` numbers each."""
    step = max(1, CHUNK // max(1, row_size))
    return (slice(start, start + step) for start in range(0, n_rows, step))


def concatenate(parts: Sequence[Neighbors], k: int) -> Neighbors:
    """Put the neighbors of several slices of queries under one another."""
    if not parts:
        return Neighbors(np.empty((0, k), dtype=np.int64), np.empty((0, k)))
    return Neighbors(
        np.concatenate([part.entries for part in parts]), np.concatenate([part.distances for part in parts])
    )


def check_entries(k: int, table: EntryTable) -> None:
    """Accept a k that the bank can serve."""
    n = table.n_entries
    check_k(k, n, f"The memory bank holds {n} entries; ask for fewer neighbors, or build a larger bank.")


def require_all(found: Neighbors, table: EntryTable) -> Neighbors:
    """Return neighbors in which nobody is missing.

    Raises:
        SettingError: If a query may retrieve fewer than k entries.
    """
    left = int((found.entries >= 0).sum(axis=1).min(initial=found.k))
    if left < found.k:
        raise SettingError(
            "k",
            found.k,
            f"at most {left}, the entries that every query may retrieve",
            f"The memory bank holds {table.n_entries} entries, and a query is not compared with itself "
            "or its duplicates; ask for fewer neighbors.",
        )
    return found
