"""Small banks full of trouble: equal keys, equal distances, duplicate groups, ids in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

law = settings(max_examples=30, deadline=None)
"""How often a law of the bank is tried."""


@dataclass(frozen=True)
class World:
    keys: np.ndarray
    ids: np.ndarray
    groups: np.ndarray
    labels: np.ndarray
    queries: np.ndarray

    @property
    def n(self) -> int:
        return len(self.keys)

    def shuffled(self, order: np.ndarray) -> World:
        return World(self.keys[order], self.ids[order], self.groups[order], self.labels[order], self.queries)


def unit(vectors) -> np.ndarray:
    rows = np.asarray(vectors, dtype=np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@st.composite
def worlds(draw, min_entries: int = 3, max_entries: int = 14) -> World:
    """Keys on a lattice, so that ties are common; groups number the distinct keys, as for a Dataset."""
    n, d = draw(st.integers(min_entries, max_entries)), draw(st.integers(2, 4))
    vector = st.lists(st.integers(-2, 2), min_size=d, max_size=d).filter(any)
    keys = unit(draw(st.lists(vector, min_size=n, max_size=n)))
    queries = unit(draw(st.lists(vector, min_size=1, max_size=5)))
    names = draw(st.permutations([f"toy/train/{i}" for i in range(n)]))
    groups = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    labels = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    return World(keys, np.array(names), groups, np.array(labels), queries)


def cloud(n: int, b: int, dimension: int = 16, seed: int = 0) -> World:
    """Clustered keys in general position, as an embedder makes them."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(10, dimension))
    labels = rng.integers(0, 10, n)
    keys = unit(centers[labels] + 0.5 * rng.normal(size=(n, dimension)))
    queries = unit(centers[rng.integers(0, 10, b)] + 0.5 * rng.normal(size=(b, dimension)))
    ids = np.array([f"cloud/train/{i}" for i in rng.permutation(n)])
    return World(keys, ids, np.arange(n), labels, queries)
