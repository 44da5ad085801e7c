"""What must hold among the arrays of a bundle, whose kinds and shapes fit already.

N entries, Q queries, C classes, M neighbors of an entry, P neighbors of a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.checks import Problem

Arrays = Mapping[str, NDArray[Any]]

TOLERANCE = 1e-3
"""How far from one the length of a key may be."""

FARTHEST = 2.0
"""Distance of opposite points of the unit sphere."""

FLOATS = (
    *("entry_keys", "entry_logits", "entry_inputs", "query_keys", "query_logits", "query_inputs"),
    *("query_distances", "class_confusion"),
)


def array_problems(arrays: Arrays) -> Iterator[Problem]:
    """Find what does not hold among the arrays that `attnknn.bundle.SHAPES` lists.

    Every check takes time of order N (D + M) + Q (D + P).
    """
    yield from _sizes(arrays)
    yield from _inputs(arrays)
    yield from _limits(arrays)
    yield from _finite(arrays)
    yield from _keys(arrays)
    yield from _ids(arrays)
    yield from _distances(arrays)
    yield from _repeats(arrays)
    yield from _padding(arrays)
    yield from _own_neighborhoods(arrays)


def _sizes(arrays: Arrays) -> Iterator[Problem]:
    """Nothing is empty, and a query has no more neighbors than there are entries."""
    for name in ("entry_ids", "query_ids", "entry_keys", "entry_neighborhoods", "query_neighbors"):
        if 0 in arrays[name].shape:
            yield f"{name} must not be empty.", f"It has shape {arrays[name].shape}."
    n_entries, pool = len(arrays["entry_ids"]), arrays["query_neighbors"].shape[1]
    if pool > n_entries:
        yield f"query_neighbors must hold at most {n_entries:,}, the number of entries.", f"It holds {pool:,} of each."


def _inputs(arrays: Arrays) -> Iterator[Problem]:
    entry, query = (arrays[f"{kind}_inputs"].shape[1:] for kind in ("entry", "query"))
    if entry != query:
        yield "Inputs of entries and queries must have one shape.", f"They have {entry} and {query}."


def _limits(arrays: Arrays) -> Iterator[Problem]:
    """Labels, groups and rows point inside what they number."""
    n_entries, n_classes = len(arrays["entry_ids"]), len(arrays["class_confusion"])
    limits = {
        "entry_labels": (0, n_classes - 1),
        "query_labels": (0, n_classes - 1),
        "query_neighbors": (0, n_entries - 1),
        "entry_neighborhoods": (-1, n_entries - 1),
        "entry_groups": (0, np.iinfo(np.int64).max),
    }
    for name, (low, high) in limits.items():
        least, most = int(arrays[name].min()), int(arrays[name].max())
        if least < low or most > high:
            between = f"lie between {low} and {high}" if name != "entry_groups" else "be numbered from 0"
            yield f"{name} must {between}.", f"They reach from {least} to {most}."


def _finite(arrays: Arrays) -> Iterator[Problem]:
    for name in FLOATS:
        wrong = ~np.isfinite(arrays[name])
        if wrong.any():
            yield f"{name} must hold finite numbers.", f"It holds NaN or infinity {int(wrong.sum()):,} times."
    if (arrays["class_confusion"] < 0).any():
        yield "class_confusion must not be negative.", f"It reaches down to {arrays['class_confusion'].min():.3g}."


def _keys(arrays: Arrays) -> Iterator[Problem]:
    for name in ("entry_keys", "query_keys"):
        squares = np.einsum("nd,nd->n", arrays[name], arrays[name], dtype=np.float64, casting="same_kind")
        lengths = np.sqrt(squares)
        if (np.abs(lengths - 1) > TOLERANCE).any():
            came = f"Lengths reach from {lengths.min():.4g} to {lengths.max():.4g}."
            yield f"Every row of {name} must have length one.", came


def _ids(arrays: Arrays) -> Iterator[Problem]:
    """Ids are texts, and one names one item."""
    entries, queries = (arrays[name].tolist() for name in ("entry_ids", "query_ids"))
    try:
        b"\n".join(entries + queries).decode("utf-8")  # as valid as each of them
    except UnicodeDecodeError as error:
        yield "Ids must be texts in UTF-8.", f"{error.object[error.start : error.end]!r} is not."
    if b"" in entries or b"" in queries:
        yield "Ids must not be empty.", "One is."
    both = sorted(set(entries) & set(queries))
    if both:
        yield "Queries must not be entries.", f'"{both[0].decode():.80}" is both.'
    ids = sorted(entries + queries)
    twice = [one for one, other in pairwise(ids) if one == other]
    if twice:
        yield "An id must name one item.", f'"{twice[0].decode():.80}" names more.'


def _distances(arrays: Arrays) -> Iterator[Problem]:
    distances = arrays["query_distances"]
    if distances.min() < 0 or distances.max() > FARTHEST:
        came = f"They reach from {distances.min():.4g} to {distances.max():.4g}."
        yield "query_distances must lie between 0 and 2, as on the unit sphere.", came
    backwards = (distances[:, 1:] < distances[:, :-1]).any(axis=1)
    if backwards.any():
        yield "query_distances must ascend from the nearest on.", f"Those of query {backwards.argmax()} do not."


def _repeats(arrays: Arrays) -> Iterator[Problem]:
    for name, kind in (("query_neighbors", "query"), ("entry_neighborhoods", "entry")):
        rows = np.sort(arrays[name], axis=1)
        twice = ((rows[:, 1:] == rows[:, :-1]) & (rows[:, 1:] >= 0)).any(axis=1)
        if twice.any():
            yield f"A row of {name} must name every neighbor once.", f"That of {kind} {twice.argmax()} repeats one."


def _padding(arrays: Arrays) -> Iterator[Problem]:
    is_padding = arrays["entry_neighborhoods"] < 0
    gap = (is_padding[:, :-1] & ~is_padding[:, 1:]).any(axis=1)
    if gap.any():
        yield "entry_neighborhoods must be filled up with −1 at the end only.", f"That of entry {gap.argmax()} goes on."


def _own_neighborhoods(arrays: Arrays) -> Iterator[Problem]:
    neighborhoods, groups = arrays["entry_neighborhoods"], arrays["entry_groups"]
    itself = ((groups[neighborhoods] == groups[:, None]) & (neighborhoods >= 0)).any(axis=1)
    if itself.any():
        came = f"That of entry {itself.argmax()} holds one of them."
        yield "entry_neighborhoods must leave out each entry itself and its duplicates.", came
