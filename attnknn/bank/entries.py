"""The entries of a bank, and how one draw of label noise makes them look.

An `Observation` is everything that depends on observed labels: it follows every move of the noise
slider, from arrays alone, so that the web process needs no search index. Each of its parts is computed
when somebody asks for it, and for few entries only for these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from attnknn.bank import statistics
from attnknn.bank.neighbors import Neighbors
from attnknn.bank.ranking import EntryTable
from attnknn.config import LabelNoise
from attnknn.data.noise import NoiseDraws, draw_noise, flip_labels
from attnknn.models.terms import Surroundings


@dataclass(frozen=True)
class Entries:
    """The N labelled items that may be retrieved.

    Attributes:
        ids: Stable ids, shape (N,).
        keys: Unit embeddings, shape (N, D).
        labels: Labels before the noise that `observe` adds, integers of shape (N,): the dataset's, or what label
            noise and cleaning in training made of them.
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

    @cached_property
    def table(self) -> EntryTable:
        """The entries as a search sees them: unit keys in float64, ids in order, duplicate groups."""
        return EntryTable.build(self.keys, self.ids, self.groups)

    @cached_property
    def followers(self) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Who has nobody, entry 0, entry 1, … near it; those of entry i lie from ends[i] to ends[i + 1]."""
        near = self.neighborhoods[:, : statistics.NEIGHBORHOOD]
        ends = np.cumsum(np.bincount(near.ravel() + 1, minlength=len(near) + 1))
        return np.argsort(near, axis=None) // near.shape[1], ends

    def followers_of(self, rows: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Find who has one of some entries near it: rows of followers, and how many each entry has."""
        everyone, ends = self.followers
        sizes = ends[rows + 1] - ends[rows]
        return everyone[np.repeat(ends[rows + 1] - np.cumsum(sizes), sizes) + np.arange(sizes.sum())], sizes


FEW, SMALL = 4, 5000
"""Parts of an observation are computed for all entries of a small bank, or if more than one in few is asked for."""


@dataclass(frozen=True, eq=False)
class Observation:
    """The bank as one draw of label noise shows it; make one with `observe`.

    Attributes:
        entries: The bank.
        labels: Observed labels, shape (N,).
        before: The bank before labels were changed by hand: who counts for class averages was decided there.
    """

    entries: Entries
    labels: NDArray[np.int32]
    before: Observation | None = None

    @cached_property
    def is_flipped(self) -> NDArray[np.bool_]:
        """Whether an observed label differs from the one before this noise, shape (N,)."""
        return self.labels != self.entries.labels

    @cached_property
    def trust(self) -> NDArray[np.float64]:
        """Logit of the leave-one-out agreement of the label with the entry's own neighborhood, shape (N,)."""
        return statistics.trust(self.entries.neighborhoods, self.labels)

    @cached_property
    def keeps_label(self) -> NDArray[np.bool_]:
        """Whether the entry survives Wilson's editing, shape (N,)."""
        return statistics.keeps_label(self.entries.neighborhoods, self.labels, self.entries.n_classes)

    @cached_property
    def contrast(self) -> NDArray[np.float64]:
        """Closeness to the prototype of the own label, beyond the best rival prototype, shape (N,)."""
        return statistics.contrast(self.entries.table.keys, self.labels, self.prototypes)

    @cached_property
    def prototypes(self) -> NDArray[np.float64]:
        """Unit mean key of each observed class, of those who survive editing, shape (C, D)."""
        counted = (self.before or self).keeps_label
        return statistics.prototypes(self.entries.table.keys, self.labels, self.entries.n_classes, counted)

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """Share of each observed label, shape (C,)."""
        return np.bincount(self.labels, minlength=self.entries.n_classes) / len(self.entries)

    @cached_property
    def dissent(self) -> float:
        """How much close entries contradict each other: share of pairs (entry, near entry) with different labels.

        Clean banks have little of it and noisy ones much, so that whoever sees it knows how noisy the bank is.
        """
        return statistics.dissent(self.entries.neighborhoods, self.labels)

    def trust_of(
        self, rows: NDArray[np.integer], exclude_groups: NDArray[np.int32] | None = None
    ) -> NDArray[np.float64]:
        """Return the trust in some entries, shape (B, K), one duplicate group per row left out."""
        nobody = exclude_groups is None or not np.any(exclude_groups >= 0)
        if nobody and self._has("trust", rows):
            return self.trust[rows]
        left_out = np.full(len(rows), -1) if exclude_groups is None else exclude_groups
        entries = self.entries
        return statistics.trust_of_neighbors(rows, entries.neighborhoods, self.labels, entries.groups, left_out)

    def contrast_of(self, rows: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the contrast of some entries, shape (B, K)."""
        if self._has("contrast", rows):
            return self.contrast[rows]
        few, places = np.unique(rows, return_inverse=True)
        some = statistics.contrast(self.entries.table.keys[few], self.labels[few], self.prototypes)
        return some[places].reshape(rows.shape)

    def _has(self, part: str, rows: NDArray[np.integer]) -> bool:
        return part in self.__dict__ or len(self.entries) < max(SMALL, FEW * rows.size)


def observe(entries: Entries, noise: LabelNoise, draws: NoiseDraws | None = None) -> Observation:
    """Flip labels as `noise` says.

    Args:
        entries: The bank.
        noise: Kind, rate and seed.
        draws: `draw_noise(entries.ids, noise.seed)`, where the caller has them already.
    """
    draws = draws or draw_noise(entries.ids, noise.seed)
    return Observation(entries, flip_labels(entries.labels, draws, noise, entries.n_classes))


def surround(
    queries: NDArray[np.float32],
    neighbors: Neighbors,
    seen: Observation,
    exclude_groups: NDArray[np.int32] | None = None,
    with_keys: bool = False,
    with_dissent: bool = True,
) -> Surroundings:
    """Collect what the votes may look at.

    Args:
        queries: Unit embeddings, shape (B, D).
        neighbors: K neighbors for each query.
        seen: The bank under the label noise in force.
        exclude_groups: Duplicate group of each query that is itself an entry, −1 for others, shape
            (B,). Such a query is left out of the trust of its neighbors as well ("leave two out").
        with_keys: Whether to gather the neighbors' keys, which only some terms read.
        with_dissent: Whether to ask the whole bank how noisy it looks, as calibrators and class averages do.
    """
    rows = neighbors.entries
    similarity = queries.astype(np.float64) @ seen.prototypes.T
    return Surroundings(
        distances=neighbors.distances,
        labels=seen.labels[rows],
        trust=seen.trust_of(rows, exclude_groups),
        contrast=seen.contrast_of(rows),
        average_distances=np.sqrt(np.maximum(2 - 2 * similarity, 0)),
        prior=np.broadcast_to(seen.prior, (len(rows), seen.entries.n_classes)),
        queries=queries.astype(np.float64) if with_keys else None,
        keys=seen.entries.keys[rows].astype(np.float64) if with_keys else None,
        dissent=np.full(len(rows), seen.dissent) if with_dissent else None,
    )


def stack(arounds: Sequence[Surroundings]) -> Surroundings:
    """Put the queries of several draws under each other."""
    columns = {field.name: [getattr(one, field.name) for one in arounds] for field in fields(Surroundings)}
    return Surroundings(
        **{name: None if parts[0] is None else np.concatenate(parts) for name, parts in columns.items()}
    )
