"""A bank of CIFAR-10's size: the checkpoint `cifar10` where it is prepared, otherwise synthetic keys of its size.

Synthetic keys are ten Gaussian clouds in a few directions, bent onto the sphere. Some items stray into the cloud of
another class: of the queries one in ten, of the entries, on which an embedder trains, hardly any.
`python -m benchmarks.large FOLDER` writes a whole checkpoint of them, with the fitted numbers of `digits`.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.bank.statistics import KEPT
from attnknn.bundle import POOL, Bundle
from attnknn.checkpoints import root_from_environment
from attnknn.classifier import AttnKNN, load
from attnknn.errors import NotPrepared, UnknownCheckpoint

ENTRIES, QUERIES, DIMENSION, CLASSES = 45_000, 10_000, 128, 10
DIRECTIONS, SPREAD = 24, 0.2  # of the clouds
STRAYING = {"entries": 0.004, "queries": 0.1}
NAME = "synthetic"


@dataclass(frozen=True)
class Items:
    """Unit keys and labels of N entries and of B queries, and what they are, for the heading of a table."""

    title: str
    keys: NDArray[np.float32]
    labels: NDArray[np.int32]
    queries: NDArray[np.float32]
    query_labels: NDArray[np.int32]
    ids: NDArray[np.str_]

    @property
    def are_real(self) -> bool:
        """Whether somebody could care for the accuracy of a vote on them."""
        return self.title != NAME

    def __str__(self) -> str:
        (n, dimension), b = self.keys.shape, len(self.queries)
        title = f"checkpoint `{self.title}`" if self.are_real else "synthetic keys (no `cifar10` is prepared here)"
        return f"{title}: {n:,} entries of {dimension} dimensions, {b:,} queries"


def open_cifar10() -> AttnKNN | None:
    """Load the checkpoint if it is there with its bank."""
    try:
        return load("cifar10", root_from_environment())
    except (UnknownCheckpoint, NotPrepared):
        return None


def draw_items(n_entries: int = ENTRIES, n_queries: int = QUERIES) -> Items:
    """Draw synthetic keys."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0][:DIRECTIONS]
    centers = rng.normal(size=(CLASSES, DIRECTIONS))
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    labels = rng.integers(0, CLASSES, n_entries + n_queries).astype(np.int32)
    share = np.repeat([STRAYING["entries"], STRAYING["queries"]], [n_entries, n_queries])
    clouds = np.where(rng.random(len(labels)) < share, rng.integers(0, CLASSES, len(labels)), labels)
    places = centers[clouds] + SPREAD * rng.normal(size=(len(labels), DIRECTIONS))
    keys = places @ turn + 0.01 * rng.normal(size=(len(labels), DIMENSION))
    keys = (keys / np.linalg.norm(keys, axis=1, keepdims=True)).astype(np.float32)
    ids = np.array([f"{NAME}/train/{row}" for row in range(n_entries)])
    return Items(NAME, keys[:n_entries], labels[:n_entries], keys[n_entries:], labels[n_entries:], ids)


def large_items(n_entries: int = ENTRIES, n_queries: int = QUERIES) -> Items:
    """Take so many items of `cifar10`, which lie there class by class, or of the synthetic ones."""
    classifier = open_cifar10()
    if classifier is None:
        return draw_items(n_entries, n_queries)
    entries, queries = classifier.entries, classifier.queries
    some, asked = _spread(len(entries), n_entries), _spread(len(queries), n_queries)
    labels = classifier.bundle.arrays["query_labels"][asked]
    return Items("cifar10", entries.keys[some], entries.labels[some], queries.keys[asked], labels, entries.ids[some])


def _spread(n: int, wanted: int) -> NDArray[np.intp]:
    """Rows from the first to the last, evenly."""
    return np.linspace(0, n - 1, min(n, wanted)).astype(np.intp)


def open_large(folder: Path) -> AttnKNN:
    """Load `cifar10`, or a synthetic checkpoint that another process writes into a folder; imports no FAISS."""
    classifier = open_cifar10()
    if classifier is None:
        subprocess.run([sys.executable, "-m", "benchmarks.large", str(folder)], check=True)
        classifier = load(NAME, folder)
    return classifier


def write_checkpoint(folder: Path, n_entries: int = ENTRIES, n_queries: int = QUERIES) -> None:
    """Search for everybody's neighbors, in some cells alone to be quick, and write what training would write."""
    from attnknn.bank.memory import MemoryBank

    items, digits = draw_items(n_entries, n_queries), load("digits")
    bank = MemoryBank.build(items.keys, items.labels, items.ids, index="ivf")
    pool = bank.search(items.queries, POOL)
    arrays: dict[str, NDArray[Any]] = {
        "entry_ids": np.char.encode(items.ids, "utf-8"),
        "entry_keys": items.keys,
        "entry_labels": items.labels,
        "entry_groups": np.arange(n_entries, dtype=np.int32),
        "entry_neighborhoods": bank.neighborhoods(KEPT),
        "entry_logits": np.zeros((n_entries, CLASSES), np.float32),
        "entry_inputs": np.zeros((n_entries, 1), np.uint8),
        "query_ids": np.array([f"{NAME}/test/{row}" for row in range(n_queries)], np.bytes_),
        "query_keys": items.queries,
        "query_labels": items.query_labels,
        "query_neighbors": pool.entries.astype(np.int32),
        "query_distances": pool.distances.astype(np.float32),
        "query_logits": np.zeros((n_queries, CLASSES), np.float32),
        "query_inputs": np.zeros((n_queries, 1), np.uint8),
        "class_confusion": np.ones((CLASSES, CLASSES), np.float32),
    }
    config, attention = digits.card["config"], digits.card["attention"]
    card = {
        "dataset": {"name": NAME, "title": "Synthetic keys", "kind": "points", "class_names": digits.class_names},
        "config": config | {"dataset": NAME, "embedder": config["embedder"] | {"dimension": DIMENSION}},
        "attention": attention,
    }
    AttnKNN(Bundle(arrays, digits.class_names), digits.fitted, card, {}).save(NAME, folder)


if __name__ == "__main__":
    write_checkpoint(Path(sys.argv[1]))
