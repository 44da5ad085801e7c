"""Who is nearer: one rule for every kind of search.

    candidates (every entry, or what an index returned) → rank_candidates → Neighbors

Distances are computed in float64 and rounded to six digits, so that equal keys tie exactly; ties go
to the smaller id. The order of the bank therefore never matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnknn.bank.neighbors import Neighbors
from attnknn.errors import InputError

STEPS = 1_000_000
"""Distances are whole multiples of 1 / STEPS."""


@dataclass(frozen=True, eq=False)
class EntryTable:
    """What ranking needs to know of the entries.

    Attributes:
        keys: (N, D) unit keys in float64.
        ids: (N,) stable ids, each once.
        groups: (N,) numbers; entries of one number are exact duplicates, −1 has no duplicate.
        rows_by_id: (N,) rows in the order of their ids.
        places: (N,) the place of each row in that order, in float64.
    """

    keys: np.ndarray
    ids: np.ndarray
    groups: np.ndarray
    rows_by_id: np.ndarray
    places: np.ndarray

    @classmethod
    def build(
        cls,
        keys: np.ndarray,
        ids: Sequence[str] | np.ndarray,
        groups: Sequence[int] | np.ndarray | None = None,
    ) -> EntryTable:
        """Normalize the keys and put the ids in order; without groups, every entry is its own."""
        units, names = unit_rows(keys, "keys"), np.array(ids, dtype=np.str_)
        numbers = np.arange(len(names)) if groups is None else np.array(groups, dtype=np.int64)
        if not len(units) == len(names) == len(numbers) > 0:
            raise ValueError(f"one id and group per key, however: {len(units)}, {len(names)}, {len(numbers)}")
        rows_by_id = np.argsort(names, kind="stable")
        if (names[rows_by_id][1:] == names[rows_by_id][:-1]).any():
            raise ValueError("ids must be unique, however: one id names two entries")
        places = np.empty(len(names))
        places[rows_by_id] = np.arange(len(names))
        for array in (units, names, numbers, rows_by_id, places):
            array.setflags(write=False)
        return cls(units, names, numbers, rows_by_id, places)

    @property
    def n_entries(self) -> int:
        """N, the number of entries."""
        return len(self.ids)

    def unit_queries(self, queries: np.ndarray) -> np.ndarray:
        """Return queries as (B, D) unit vectors in float64.

        Raises:
            InputError: If they are not finite vectors of the dimension of the keys.
        """
        units = unit_rows(queries, "queries")
        if units.shape[1] != self.keys.shape[1]:
            raise InputError(
                f"The memory bank holds keys of dimension {self.keys.shape[1]},",
                f"but the queries have dimension {units.shape[1]}.",
                "Rebuild the bank with the embedder that made the queries.",
            )
        return units


@dataclass(frozen=True, eq=False)
class Exclusions:
    """What each of B queries must not retrieve.

    Attributes:
        rows: (B,) the row of the query's own entry; −1 if it has none.
        groups: (B,) the query's duplicate group; −1 if none is to be left out.
    """

    rows: np.ndarray
    groups: np.ndarray

    @classmethod
    def build(
        cls,
        table: EntryTable,
        n_queries: int,
        ids: Sequence[str | None] | np.ndarray | None = None,
        groups: Sequence[int] | np.ndarray | None = None,
    ) -> Exclusions:
        """Look the ids up; an id that is not in the bank excludes nothing."""
        rows, numbers = np.full(n_queries, -1), np.full(n_queries, -1)
        if ids is not None:
            row_of: dict[str | None, int] = {name: row for row, name in enumerate(table.ids.tolist())}
            rows = np.array([row_of.get(name, -1) for name in ids], dtype=np.int64)
        if groups is not None:
            numbers = np.asarray(groups, dtype=np.int64)
        if rows.shape != (n_queries,) or numbers.shape != (n_queries,):
            raise ValueError(f"one exclusion per query ({n_queries}), however: {rows.shape}, {numbers.shape}")
        return cls(rows, numbers)

    def __getitem__(self, which: slice | np.ndarray) -> Exclusions:
        return Exclusions(self.rows[which], self.groups[which])

    def of(self, candidates: np.ndarray, table: EntryTable) -> np.ndarray:
        """Say which of the (B, L) candidates may not be neighbors."""
        banned = (candidates < 0) | (candidates == self.rows[:, None])
        if (self.groups >= 0).any():
            groups = self.groups[:, None]
            banned |= (table.groups[candidates] == groups) & (groups >= 0)
        return banned


def unit_rows(vectors: np.ndarray, name: str) -> np.ndarray:
    """Scale each row to length one, in float64; a row of zeros stays.

    Raises:
        InputError: If this is not a table of finite numbers.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        came = f"They have shape {rows.shape}." if rows.ndim != 2 else "Some are infinite or not a number."
        raise InputError(f"The {name} must be finite numbers, one row per item.", came, "Embed the items again.")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def rank_candidates(
    similarities: np.ndarray, candidates: np.ndarray, table: EntryTable, excluded: Exclusions, k: int
) -> Neighbors:
    """Sort candidates by distance, then by id, and keep the k nearest that are allowed.

    d = round(sqrt(max(0, 2 − 2 s)), 6)

    Both keys of the sort are packed into one number, 10⁶ d · N + (place of the id), which float64
    holds exactly for any bank of less than four billion entries.

    Args:
        similarities: (B, L) cosines in float64; overwritten, to save memory.
        candidates: Rows of the bank, (B, L), or (1, L) if all queries share them; −1 is nobody.
        table: The entries.
        excluded: What each query must not retrieve.
        k: Neighbors to keep.

    Returns:
        (B, k) neighbors; where fewer are left, entry −1 at distance infinity.
    """
    codes = np.add(np.multiply(similarities, -2, out=similarities), 2, out=similarities)
    np.sqrt(np.maximum(codes, 0, out=codes), out=codes)
    np.rint(np.multiply(codes, STEPS, out=codes), out=codes)
    codes *= table.n_entries
    codes += table.places[candidates]
    codes[excluded.of(candidates, table)] = np.inf
    if codes.shape[1] > k:
        codes = np.partition(codes, k - 1, axis=1)[:, :k]
    missing = ((0, 0), (0, k - codes.shape[1]))
    return _unpack(np.pad(np.sort(codes, axis=1), missing, constant_values=np.inf), table)


def _unpack(codes: np.ndarray, table: EntryTable) -> Neighbors:
    found = np.isfinite(codes)
    steps, places = np.divmod(np.where(found, codes, 0).astype(np.int64), table.n_entries)
    return Neighbors(np.where(found, table.rows_by_id[places], -1), np.where(found, steps / STEPS, np.inf))
