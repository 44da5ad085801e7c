"""MemoryBank: the entries that may be retrieved, and a FAISS index over their keys.

    queries → index (fast, float32) → some candidates too many → rank_candidates → Neighbors

An index only proposes. Distances, ties and exclusions are decided by the same rule as in plain NumPy, so
an exact index finds exactly what `search_exact` finds, and an approximate one can say what it missed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from attnknn.bank.exact import check_entries, chunks, concatenate, require_all, search_table
from attnknn.bank.neighbors import Neighbors
from attnknn.bank.ranking import EntryTable, Exclusions, rank_candidates
from attnknn.bank.storage import read_bank, write_bank
from attnknn.errors import MissingLibrary, SettingError

IndexKind = Literal["exact", "l2", "hnsw", "ivf"]
INDEX_KINDS: tuple[IndexKind, ...] = get_args(IndexKind)

SPARE = 32
"""Candidates asked of an index beyond 2 k: room for exclusions and ties."""

MARGIN = 1e-5
"""More than the rounding of float32 similarities and of six-digit distances together."""


@dataclass(frozen=True, eq=False)
class MemoryBank:
    """N labelled entries that can be searched; make one with `build` or `load`.

    Attributes:
        keys: (N, D) keys as they were given, in float32.
        labels: (N,) observed labels.
        kind: `exact` (inner product), `l2` (also exact), `hnsw` (a graph) or `ivf` (cells).
        table: The entries as the ranking sees them: unit keys, ids and duplicate groups.
    """

    keys: np.ndarray
    labels: np.ndarray
    kind: IndexKind
    table: EntryTable
    _index: Any

    @classmethod
    def build(
        cls,
        keys: np.ndarray,
        labels: Sequence[int] | np.ndarray,
        ids: Sequence[str] | np.ndarray,
        groups: Sequence[int] | np.ndarray | None = None,
        index: IndexKind = "exact",
    ) -> MemoryBank:
        """Build a bank and its index.

        Args:
            keys: (N, D) keys. Vectors are scaled to length one.
            labels: (N,) observed labels, numbers from 0.
            ids: (N,) ids, each once.
            groups: (N,) duplicate groups; without them, every entry is its own.
            index: `exact` or `l2` compare a query with every entry; right up to about 100,000 of them.
                `hnsw` walks a graph and `ivf` looks into some cells: faster, but they miss neighbors.

        Returns:
            A bank whose answers do not depend on the order in which the entries came.

        Raises:
            SettingError: If there is no such index.
            InputError: If the keys are not a table of finite numbers.
            MissingLibrary: If FAISS is not installed.

        Example:
            >>> bank = MemoryBank.build(np.eye(3), labels=[0, 1, 1], ids=["a", "b", "c"])
            >>> bank.search(np.array([[1.0, 0.1, 0.0]]), k=2).entries.tolist()
            [[0, 1]]
        """
        if index not in INDEX_KINDS:
            raise SettingError("index", index, f"one of {', '.join(INDEX_KINDS)}", "`exact` is right for most banks.")
        given = _frozen(keys, np.float32)
        table, classes = EntryTable.build(given, ids, groups), _frozen(labels, np.int64)
        if classes.shape != (table.n_entries,):
            raise ValueError(f"one label per key ({table.n_entries}), however: {classes.shape}")
        return cls(given, classes, index, table, _build_index(table.keys.astype(np.float32), index))

    @property
    def ids(self) -> np.ndarray:
        """Stable ids of shape (N,)."""
        return self.table.ids

    @property
    def groups(self) -> np.ndarray:
        """Duplicate groups of shape (N,): entries of one number are exact duplicates."""
        return self.table.groups

    @property
    def n_entries(self) -> int:
        """N, the number of entries."""
        return len(self.ids)

    @property
    def dimension(self) -> int:
        """D, the length of a key."""
        return int(self.keys.shape[1])

    def search(
        self,
        queries: np.ndarray,
        k: int,
        exclude_ids: Sequence[str | None] | np.ndarray | None = None,
        exclude_groups: Sequence[int] | np.ndarray | None = None,
    ) -> Neighbors:
        """Find the k nearest entries of each query.

        d[b, j] = sqrt(2 − 2 cos(z_b, z_j)), rounded to six digits; ties go to the smaller id

        Args:
            queries: (B, D) embeddings. Vectors are scaled to length one.
            k: Neighbors per query.
            exclude_ids: For each query the id it must not retrieve (its own), or None.
            exclude_groups: For each query the duplicate group it must not retrieve, or −1.

        Returns:
            (B, k) neighbors: with an exact index the same as `search_exact`, with the others nearly
            so; see `recall`. There are always k of them: where an index comes up short, or too many
            are equally far to be sure, the query is compared with every entry.

        Raises:
            InputError: If the queries are of another dimension than the keys.
            SettingError: If k is below 1, or more than the entries that a query may retrieve.
        """
        table, units = self.table, self.table.unit_queries(queries)
        check_entries(k, table)
        excluded = Exclusions.build(table, len(units), exclude_ids, exclude_groups)
        return require_all(self._search(units, k, excluded), table)

    def neighborhoods(self, size: int) -> np.ndarray:
        """Find each entry's nearest other entries, its own duplicates left out: (N, size) rows of the bank, int32.

        With an exact index the same as `entry_neighborhoods`, which compares every entry with every other.
        """
        own = Exclusions(np.arange(self.n_entries), self.groups)
        return self._search(self.table.keys, size, own).entries.astype(np.int32)

    def recall(self, queries: np.ndarray, k: int) -> float:
        """Measure which share of the true k nearest entries a search finds.

        recall = (1/B) Σ_b |found_b ∩ true_b| / k

        Returns:
            A number from 0 to 1; exactly 1 for an exact index.
        """
        found = self.search(queries, k).entries
        units = self.table.unit_queries(queries)
        true = search_table(self.table, units, k, Exclusions.build(self.table, len(units))).entries
        hits = (found[:, :, None] == true[:, None, :]).any(axis=2)
        return float(hits.mean()) if hits.size else 1.0

    def save(self, folder: str | Path) -> None:
        """Write the bank into a folder: the index, arrays without pickle, and a card that seals them."""
        arrays = {"keys": self.keys, "labels": self.labels, "ids": self.ids, "groups": self.groups}
        write_bank(Path(folder), arrays, self.kind, lambda path: _faiss().write_index(self._index, path))

    @classmethod
    def load(cls, folder: str | Path) -> MemoryBank:
        """Read a bank that `save` wrote, and check it.

        Raises:
            DamagedCheckpoint: If a file is missing, cut short, or not what the card says.
            SchemaMismatch: If the card was written for another version of the format.
            MissingLibrary: If FAISS is not installed.
        """
        arrays, kind, index = read_bank(Path(folder), INDEX_KINDS, lambda path: _faiss().read_index(path))
        keys, labels = _frozen(arrays["keys"], np.float32), _frozen(arrays["labels"], np.int64)
        return cls(keys, labels, kind, EntryTable.build(keys, arrays["ids"], arrays["groups"]), index)

    def _search(self, units: np.ndarray, k: int, excluded: Exclusions) -> Neighbors:
        width = min(self.n_entries, 2 * k + SPARE)
        parts = [self._search_some(units[p], k, excluded[p], width) for p in chunks(len(units), width * self.dimension)]
        return concatenate(parts, k)

    def _search_some(self, units: np.ndarray, k: int, excluded: Exclusions, width: int) -> Neighbors:
        coarse, candidates = self._propose(units, k, width)
        similarities = np.einsum("bd,bld->bl", units, self.table.keys[candidates])
        found = rank_candidates(similarities, candidates, self.table, excluded, k)
        proposed_all = (candidates[:, -1] < 0) | (width == self.n_entries)
        sure = (found.entries[:, -1] >= 0) & (proposed_all | (found.similarities[:, -1] > coarse[:, -1] + MARGIN))
        if not sure.all():
            exact = search_table(self.table, units[~sure], k, excluded[~sure])
            found.entries[~sure], found.distances[~sure] = exact.entries, exact.distances
        return found

    def _propose(self, units: np.ndarray, k: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        queries = np.ascontiguousarray(units, dtype=np.float32)
        options = _faiss().SearchParametersHNSW(efSearch=max(64, 2 * k)) if self.kind == "hnsw" else None
        scores, candidates = self._index.search(queries, width, params=options)
        return (1 - scores / 2 if self.kind == "l2" else scores), candidates


def _frozen(values: Any, dtype: Any) -> np.ndarray:
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


def _build_index(keys: np.ndarray, kind: IndexKind) -> Any:
    faiss, (n, dimension) = _faiss(), keys.shape
    if kind == "exact":
        index = faiss.IndexFlatIP(dimension)
    elif kind == "l2":
        index = faiss.IndexFlatL2(dimension)
    elif kind == "hnsw":
        index = faiss.IndexHNSWFlat(dimension, 32, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = 200
    else:
        index = _train_cells(faiss, keys, max(1, round(n**0.5)))
    index.add(keys)
    return index


def _train_cells(faiss: Any, keys: np.ndarray, n_cells: int) -> Any:
    index = faiss.index_factory(keys.shape[1], f"IVF{n_cells},Flat", faiss.METRIC_INNER_PRODUCT)
    index.nprobe = min(n_cells, max(8, n_cells // 8))
    index.cp.min_points_per_centroid = 1  # small banks are fine, no warning needed
    index.train(keys)
    return index


def _faiss() -> Any:
    """Import FAISS. On macOS, its OpenMP and torch's crash together unless torch comes first and FAISS keeps to one."""
    try:
        if sys.platform == "darwin":
            importlib.import_module("torch")
        faiss = importlib.import_module("faiss")
    except ImportError as error:
        raise MissingLibrary("faiss-cpu", "Searching a memory bank") from error
    if sys.platform == "darwin":
        faiss.omp_set_num_threads(1)
    return faiss
