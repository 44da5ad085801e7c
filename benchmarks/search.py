"""Indexes against what people use for search: python -m benchmarks.search.

The product's banks (`MemoryBank`, and NumPy alone as the page searches) against bare FAISS, scikit-learn and
usearch, on the same unit keys and the same 50 neighbors. The product's distances are decided in float64 with ties
to the smaller id, so that its recall is against itself one; everybody else's is against that. Graphs have the
same 32 links and 200 candidates while they are built. Each index lives in a process of its own: *memory* is what
the process has grown by, keys included.
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from attnknn.arrays import tally
from attnknn.bank.exact import search_table
from attnknn.bank.memory import IndexKind, MemoryBank
from attnknn.bank.ranking import EntryTable, Exclusions
from benchmarks.clock import milliseconds
from benchmarks.large import ENTRIES, QUERIES, Items, large_items

K = 50
LINKS, WHILE_BUILT, WHILE_SEARCHED = 32, 200, 100  # of graphs; the product searches with 2 k candidates, the same
SINGLE = 200  # queries that are asked one by one
TINY = 2000
CORES = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)

Search = Callable[[NDArray[np.float32]], NDArray[np.integer]]
"""From queries (B, D) to rows of the bank (B, K)."""


def build_numpy(items: Items) -> Search:
    table = EntryTable.build(items.keys, items.ids)

    def search(queries: NDArray[np.float32]) -> NDArray[np.integer]:
        excluded = Exclusions.build(table, len(queries))
        return search_table(table, table.unit_queries(queries), K, excluded).entries

    return search


def build_bank(kind: IndexKind, items: Items) -> Search:
    bank = MemoryBank.build(items.keys, items.labels, items.ids, index=kind)
    return lambda queries: bank.search(queries, K).entries


def build_faiss(kind: str, items: Items) -> Search:
    import faiss

    index: Any = faiss.index_factory(items.keys.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
    if kind.startswith("HNSW"):
        index.hnsw.efConstruction, index.hnsw.efSearch = WHILE_BUILT, WHILE_SEARCHED
    if kind.startswith("IVF"):
        index.nprobe = index.nlist // 8
        index.train(items.keys)
    index.add(items.keys)
    return lambda queries: index.search(queries, K)[1]


def build_sklearn(items: Items) -> Search:
    from sklearn.neighbors import NearestNeighbors

    nearest = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(items.keys)
    return lambda queries: nearest.kneighbors(queries, return_distance=False)


def build_usearch(items: Items) -> Search:
    from usearch.index import Index

    settings: Any = {"connectivity": LINKS, "expansion_add": WHILE_BUILT, "expansion_search": WHILE_SEARCHED}
    index = Index(ndim=items.keys.shape[1], metric="ip", dtype="f32", **settings)
    index.add(np.arange(len(items.keys)), items.keys, threads=CORES)
    return lambda queries: index.search(queries, K, threads=CORES).keys.astype(np.int64).reshape(len(queries), K)


def contestants(n_entries: int) -> dict[str, Callable[[Items], Search]]:
    """Who searches; the first says what is true."""
    cells = f"IVF{round(n_entries**0.5)},Flat"
    return {
        "ours, NumPy, as the page": build_numpy,
        "ours, `exact`": partial(build_bank, "exact"),
        "ours, `l2`": partial(build_bank, "l2"),
        "ours, `hnsw`": partial(build_bank, "hnsw"),
        "ours, `ivf`": partial(build_bank, "ivf"),
        "FAISS, exact": partial(build_faiss, "Flat"),
        "FAISS, HNSW": partial(build_faiss, f"HNSW{LINKS},Flat"),
        "FAISS, IVF": partial(build_faiss, cells),
        "scikit-learn, brute force": build_sklearn,
        "usearch, HNSW": build_usearch,
    }


@dataclass(frozen=True)
class Found:
    """What one index cost, and what it found: rows of the bank, (B, K)."""

    build_seconds: float
    per_second: float
    single_ms: float
    megabytes: float
    rows: NDArray[np.integer]


def resident_megabytes() -> float:
    """Memory of this process, after it has given back to Linux what it holds for nobody."""
    ctypes.CDLL(None).malloc_trim(0)
    return psutil.Process().memory_info().rss / 2**20


def measure(name: str, n_entries: int, n_queries: int) -> Found:
    """Build one index and ask it; a tiny one comes first, so that importing is not measured."""
    items = large_items(n_entries, n_queries)
    build = contestants(n_entries)[name]
    contestants(TINY)[name](large_items(TINY, 1))(items.queries[:1])
    before = resident_megabytes()
    begun = time.perf_counter()
    search = build(items)
    built = time.perf_counter() - begun
    grown = resident_megabytes() - before
    search(items.queries[:SINGLE])
    begun = time.perf_counter()
    rows = search(items.queries)
    per_second = n_queries / (time.perf_counter() - begun)
    one_by_one = iter(np.resize(np.arange(n_queries), SINGLE + 1))
    single = milliseconds(lambda: search(items.queries[(row := next(one_by_one)) : row + 1]), SINGLE)
    return Found(built, per_second, statistics.median(single), grown, rows)


def write_row(name: str, found: Found, true: NDArray[np.integer], items: Items) -> str:
    recall = np.mean([len(np.intersect1d(mine, best)) / K for mine, best in zip(found.rows, true, strict=True)])
    cells = [f"{found.build_seconds:.1f}", f"{found.per_second:,.0f}", f"{found.single_ms:.2f}"]
    cells += [f"{recall:.4f}", f"{found.megabytes:.0f}"]
    if items.are_real:
        said = tally(np.full(found.rows.shape, 1 / K), items.labels[found.rows], int(items.labels.max()) + 1)
        cells.append(f"{100 * np.mean(said.argmax(axis=1) == items.query_labels):.2f}")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--queries", type=int, default=QUERIES)
    asked = parser.parse_args()
    items = large_items(asked.entries, asked.queries)
    print(f"{items}, k = {K}, {CORES} cores\n")
    titles = ["index", "build, s", "queries a second, batched", "ms for one query", f"recall@{K}", "memory, MB"]
    titles += ["uniform vote, %"] * items.are_real
    print(f"| {' | '.join(titles)} |", "|---" * len(titles) + "|", sep="\n")
    true = None
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        for name in contestants(asked.entries):
            found = pool.submit(measure, name, asked.entries, asked.queries).result()
            true = found.rows if true is None else true
            print(write_row(name, found, true, items), flush=True)


if __name__ == "__main__":
    main()
