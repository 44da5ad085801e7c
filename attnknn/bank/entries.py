"""The entries of a bank, and how one draw of label noise makes them look.

An `Observation` is everything that depends on observed labels: it is computed again at every move of
the noise slider, from arrays alone, so that the web process needs no search index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnknn.bank import statistics
from attnknn.bank.neighbors import Neighbors
from attnknn.config import LabelNoise
from attnknn.data.noise import NoiseDraws, draw_noise, flip_labels
from attnknn.models.terms import Surroundings


@dataclass(frozen=True)
class Entries:
    """The N labelled items that may be retrieved.

    Attributes:
        ids: Stable ids, shape (N,).
        keys: Unit embeddings, shape (N, D).
        labels: Clean labels, integers of shape (N,).
        groups: Equal numbers mark exact duplicates, shape (N,).
        neighborhoods: Each entry's nearest other entries, rows of the bank, shape (N, M); −1 pads.
        n_classes: C.
    """

    ids: NDArray[np.str_]
    keys: NDArray[np.float32]
    labels: NDArray[np.int32]
    groups: NDArray[np.int32]
    neighborhoods: NDArray[np.int32]
    n_classes: int

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Observation:
    """The bank as one draw of label noise shows it; all of shape (N,) unless said.

    Attributes:
        labels: Observed labels.
        is_flipped: Whether an observed label differs from the clean one.
        trust: Logit of the leave-one-out agreement of the label with the entry's own neighborhood.
        keeps_label: Whether the entry survives Wilson's editing.
        contrast: Closeness to the prototype of the own label, beyond the best rival prototype.
        prototypes: Unit mean key of each observed class, shape (C, D).
        prior: Share of each observed label, shape (C,).
    """

    labels: NDArray[np.int32]
    is_flipped: NDArray[np.bool_]
    trust: NDArray[np.float64]
    keeps_label: NDArray[np.bool_]
    contrast: NDArray[np.float64]
    prototypes: NDArray[np.float64]
    prior: NDArray[np.float64]


def observe(entries: Entries, noise: LabelNoise, draws: NoiseDraws | None = None) -> Observation:
    """Flip labels as `noise` says, and compute what follows from the observed labels.

    Args:
        entries: The bank.
        noise: Kind, rate and seed.
        draws: `draw_noise(entries.ids, noise.seed)`, where the caller has them already.
    """
    labels = flip_labels(entries.labels, draws or draw_noise(entries.ids, noise.seed), noise, entries.n_classes)
    prototypes = statistics.prototypes(entries.keys, labels, entries.n_classes)
    return Observation(
        labels=labels,
        is_flipped=labels != entries.labels,
        trust=statistics.trust(entries.neighborhoods, labels),
        keeps_label=statistics.keeps_label(entries.neighborhoods, labels, entries.n_classes),
        contrast=statistics.contrast(entries.keys, labels, prototypes),
        prototypes=prototypes,
        prior=np.bincount(labels, minlength=entries.n_classes) / len(entries),
    )


def surround(
    queries: NDArray[np.float32],
    neighbors: Neighbors,
    entries: Entries,
    seen: Observation,
    exclude_groups: NDArray[np.int32] | None = None,
    with_keys: bool = False,
) -> Surroundings:
    """Collect what the votes may look at.

    Args:
        queries: Unit embeddings, shape (B, D).
        neighbors: K neighbors for each query.
        entries: The bank.
        seen: The bank under the label noise in force.
        exclude_groups: Duplicate group of each query that is itself an entry, −1 for others, shape
            (B,). Such a query is left out of the trust of its neighbors as well ("leave two out").
        with_keys: Whether to gather the neighbors' keys, which only some terms read.
    """
    rows = neighbors.entries
    is_entry = exclude_groups is not None and bool(np.any(exclude_groups >= 0))
    similarity = queries.astype(np.float64) @ seen.prototypes.T
    return Surroundings(
        distances=neighbors.distances,
        labels=seen.labels[rows],
        trust=(
            statistics.trust_of_neighbors(rows, entries.neighborhoods, seen.labels, entries.groups, exclude_groups)
            if is_entry
            else seen.trust[rows]
        ),
        contrast=seen.contrast[rows],
        average_distances=np.sqrt(np.maximum(2 - 2 * similarity, 0)),
        prior=np.broadcast_to(seen.prior, (len(rows), entries.n_classes)),
        queries=queries.astype(np.float64) if with_keys else None,
        keys=entries.keys[rows].astype(np.float64) if with_keys else None,
    )
