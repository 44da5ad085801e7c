"""Who is asked about: test items, entries, and guests nobody has seen before, each with its nearest entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from attnknn.bank.entries import Entries
from attnknn.bank.exact import require_all, search_prepared, search_table
from attnknn.bank.neighbors import Neighbors
from attnknn.bank.ranking import Exclusions
from attnknn.bundle import POOL, Bundle, Queries
from attnknn.errors import UnknownItem


def pool_size(entries: Entries, k: int) -> int:
    """Say how many nearest entries are looked for where k vote."""
    return min(max(POOL, k), len(entries))


def ask_all(bundle: Bundle, k: int) -> Queries:
    """Ask about every test item; their pools are searched anew if they are too small for k."""
    return _reach(bundle, bundle.queries, k)


def ask_items(bundle: Bundle, ids: Sequence[str], k: int, where: str) -> Queries:
    """Ask about test items and entries by id, with the pools that each has alone.

    Args:
        bundle: Entries and test items.
        ids: In any order.
        k: How many neighbors will vote.
        where: What the ids are looked up in, for the error's sentence.

    Raises:
        UnknownItem: An id names neither a test item nor an entry.
        SettingError: An entry may retrieve fewer than k.
    """
    rows = bundle.rows
    for item in ids:
        if item not in rows:
            raise UnknownItem(item, where, str(bundle.queries.ids[0]))
    found = [rows[item] for item in ids]
    order = np.argsort([kind == "entry" for kind, _ in found], kind="stable")
    kinds = {kind: np.array([row for one, row in found if one == kind], np.intp) for kind in ("query", "entry")}
    parts = [_reach(bundle, bundle.queries.take(kinds["query"]), k)]
    if len(kinds["entry"]):
        parts.append(_ask_entries(bundle, kinds["entry"], k))
    return Queries.join(parts).take(np.argsort(order))


def ask_guests(
    keys: NDArray[np.float32], logits: NDArray[np.float32], pool: Neighbors, ids: Sequence[str] | None = None
) -> Queries:
    """Ask about new inputs, whose labels nobody knows; by default they are called input/0, input/1, …."""
    names = np.array(ids or [f"input/{number}" for number in range(len(keys))], dtype=np.str_)
    return Queries(names, keys, pool, logits, None, np.full(len(keys), -1, np.int32))


def _reach(bundle: Bundle, queries: Queries, k: int) -> Queries:
    if k <= queries.pool.k:
        return queries
    return replace(queries, pool=search_prepared(bundle.entries.table, queries.keys, k))


def _ask_entries(bundle: Bundle, rows: NDArray[np.intp], k: int) -> Queries:
    """Leave each entry out of its own neighborhood, with its duplicates."""
    entries = bundle.entries
    keys, groups = entries.keys[rows], entries.groups[rows]
    excluded = Exclusions.build(entries.table, len(rows), groups=groups)
    pool = search_table(entries.table, entries.table.unit_queries(keys), pool_size(entries, k), excluded)
    require_all(pool.first(k), entries.table)
    return Queries(entries.ids[rows], keys, pool, bundle.arrays["entry_logits"][rows], entries.labels[rows], groups)
