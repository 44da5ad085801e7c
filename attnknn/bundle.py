"""Bundle: the arrays that the worker writes and the web process reads, with their shapes checked.

One frozen object stands for one trained bank with its test queries: entries, each query's pool of
nearest entries, the inputs for showing them, and the fitted numbers of every vote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.bank.entries import Entries
from attnknn.bank.neighbors import Neighbors
from attnknn.checkpoints import Checkpoint
from attnknn.checks import Problem, refuse
from attnknn.checks.arrays import array_problems
from attnknn.checks.card import agreement_problems, dataset_problems

POOL = 64
"""How many nearest entries are stored with each query; fewer in a smaller bank."""

SHAPES: dict[str, tuple[str, str]] = {
    "entry_ids": ("S", "N"),
    "entry_keys": ("f", "N D"),
    "entry_labels": ("i", "N"),
    "entry_groups": ("i", "N"),
    "entry_neighborhoods": ("i", "N M"),
    "entry_logits": ("f", "N C"),
    "entry_inputs": ("uf", "N *"),
    "query_ids": ("S", "Q"),
    "query_keys": ("f", "Q D"),
    "query_labels": ("i", "Q"),
    "query_neighbors": ("i", "Q P"),
    "query_distances": ("f", "Q P"),
    "query_logits": ("f", "Q C"),
    "query_inputs": ("uf", "Q *"),
    "class_confusion": ("f", "C C"),
}
"""Name → kinds of number, and axes. N entries, Q queries, D embedding size, C classes, M neighbors of
an entry, P the pool of each query; `*` is the shape of one input."""


@dataclass(frozen=True)
class Queries:
    """B items to classify, with the pool of their nearest entries.

    Attributes:
        ids: Stable ids, or names made up for new inputs, shape (B,).
        keys: Unit embeddings, shape (B, D).
        pool: The P nearest entries of each; where a query has fewer, entry −1 at distance infinity.
        logits: The parametric baseline's, shape (B, C).
        labels: True labels, shape (B,); None for new inputs.
        groups: Duplicate group of a query that is itself an entry, −1 for others, shape (B,).
    """

    ids: NDArray[np.str_]
    keys: NDArray[np.float32]
    pool: Neighbors
    logits: NDArray[np.float32]
    labels: NDArray[np.int32] | None
    groups: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[np.intp]) -> Queries:
        """Keep some of the queries, in the order of `rows`."""
        return Queries(
            self.ids[rows],
            self.keys[rows],
            Neighbors(self.pool.entries[rows], self.pool.distances[rows]),
            self.logits[rows],
            None if self.labels is None else self.labels[rows],
            self.groups[rows],
        )

    @classmethod
    def join(cls, parts: Sequence[Queries]) -> Queries:
        """Put queries with labels under each other; shorter pools are filled up with nobody.

        So each keeps the pool that it has alone, and no vote depends on its company.
        """
        size = max(part.pool.k for part in parts)
        return cls(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.keys for part in parts]),
            Neighbors(
                np.concatenate([_widen(part.pool.entries, size, -1) for part in parts]),
                np.concatenate([_widen(part.pool.distances, size, np.inf) for part in parts]),
            ),
            np.concatenate([part.logits for part in parts]),
            np.concatenate([part.labels for part in parts if part.labels is not None]),
            np.concatenate([part.groups for part in parts]),
        )


@dataclass(frozen=True)
class Bundle:
    """Arrays of one checkpoint, as listed in `SHAPES`; read-only."""

    arrays: Mapping[str, NDArray[Any]]
    class_names: tuple[str, ...]

    @cached_property
    def entries(self) -> Entries:
        """The bank's entries."""
        return Entries(
            ids=_text(self.arrays["entry_ids"]),
            keys=self.arrays["entry_keys"],
            labels=self.arrays["entry_labels"],
            groups=self.arrays["entry_groups"],
            neighborhoods=self.arrays["entry_neighborhoods"],
            n_classes=len(self.class_names),
        )

    @cached_property
    def queries(self) -> Queries:
        """The test items, with their pools; distances are again the six digits that were found."""
        distances = self.arrays["query_distances"].astype(np.float64).round(6)
        pool = Neighbors(self.arrays["query_neighbors"], distances)
        return Queries(
            ids=_text(self.arrays["query_ids"]),
            keys=self.arrays["query_keys"],
            pool=pool,
            logits=self.arrays["query_logits"],
            labels=self.arrays["query_labels"],
            groups=np.full(len(self.arrays["query_ids"]), -1, np.int32),
        )

    @cached_property
    def rows(self) -> dict[str, tuple[str, int]]:
        """Where each id is: `("query", row)` or `("entry", row)`."""
        found = {str(item): ("entry", row) for row, item in enumerate(self.entries.ids)}
        return found | {str(item): ("query", row) for row, item in enumerate(self.queries.ids)}

    def is_entry(self, item_id: str) -> bool:
        """Whether an id names an entry of the bank."""
        return self.rows.get(item_id, ("",))[0] == "entry"

    def input_of(self, item_id: str) -> NDArray[Any]:
        """Return the raw input of an item, for showing it: an image or a row of features."""
        kind, row = self.rows[item_id]
        return self.arrays[f"{kind}_inputs"][row]


def open_bundle(checkpoint: Checkpoint) -> Bundle:
    """Open the arrays of a checkpoint, and check that they fit together, and the card.

    Raises:
        DamagedCheckpoint: An array is missing, of another kind, does not fit the others or what the card says
            of it, or holds what cannot be.
    """
    name, card = checkpoint.name, checkpoint.card
    refuse(name, dataset_problems(card))
    class_names, arrays = tuple(card["dataset"]["class_names"]), checkpoint.arrays()
    refuse(name, _shape_problems(arrays, len(class_names)))
    refuse(name, array_problems(arrays))
    refuse(name, agreement_problems(card, arrays))
    return Bundle(arrays, class_names)


def _shape_problems(arrays: Mapping[str, NDArray[Any]], n_classes: int) -> Iterator[Problem]:
    """Compare kinds and shapes with `SHAPES`."""
    sizes = {"C": n_classes}
    for name, (kinds, axes) in SHAPES.items():
        expected = f"The bundle must hold {name} of shape ({axes.replace(' ', ', ')})."
        if name not in arrays:
            yield expected, "It is missing."
        array = arrays[name]
        if array.dtype.kind not in kinds or not _fits(array.shape, axes.split(), sizes):
            yield expected, f"It is {array.dtype} of shape {array.shape}."


def _fits(shape: tuple[int, ...], axes: list[str], sizes: dict[str, int]) -> bool:
    """Compare a shape with named axes, learning the sizes of names seen for the first time."""
    if axes[-1] == "*":
        axes, shape = axes[:-1], shape[: len(axes) - 1]
    if len(axes) != len(shape):
        return False
    return all(sizes.setdefault(axis, size) == size for axis, size in zip(axes, shape, strict=True))


def _widen(table: NDArray[Any], size: int, filling: float) -> NDArray[Any]:
    return np.pad(table, ((0, 0), (0, size - table.shape[1])), constant_values=filling)


def _text(ids: NDArray[Any]) -> NDArray[np.str_]:
    return np.char.decode(ids, "utf-8")
