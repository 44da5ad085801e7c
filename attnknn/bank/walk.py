"""The bank at every stop of the noise slider, worked out in one walk from clean to noisy.

Draws are nested, so that from one stop to the next only few labels flip. What all labels together decide is
carried along: who counts for class averages, class sums, counts, and dissent. It depends on the bank and the seed
alone; queries share it. At each stop it is what `attnknn.bank.entries.Observation` says there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.arrays import one_hot, tally
from attnknn.bank.entries import Entries, Observation
from attnknn.bank.statistics import NEIGHBORHOOD
from attnknn.data.noise import NoiseDraws

RATES: tuple[float, ...] = tuple(stop / 100 for stop in range(91))
"""The noise rate at each stop: 0 to 90 %."""

MOST_CLASSES = 256


@dataclass(frozen=True, eq=False)
class NoiseWalk:
    """The bank under one seed, for G kinds of noise and S stops; make one with `walk_noise`.

    Attributes:
        entries: The bank.
        labels: Labels before noise, shape (N,).
        flips_at: The first stop at which each label is flipped; S is never. Shape (N,).
        others: What each label then becomes, by kind, shape (G, N).
        counted: Whether an entry counts for the average of its class, shape (G, S, N).
        sums: Σ of the keys of each observed class, of those that count, shape (G, S, C, D).
        counts: Entries of each observed class, shape (G, S, C).
        dissents: Share of pairs of close entries whose labels differ, shape (G, S).
    """

    entries: Entries
    labels: NDArray[np.int32]
    flips_at: NDArray[np.uint8]
    others: NDArray[np.int32]
    counted: NDArray[np.bool_]
    sums: NDArray[np.float64]
    counts: NDArray[np.int64]
    dissents: NDArray[np.float64]

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """‖m_c‖² of each class sum m, shape (G, S, C)."""
        return np.einsum("gscd,gscd->gsc", self.sums, self.sums)

    def cosines(self, keys: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return cos(z, μ_c) = z · m_c / ‖m_c‖ of unit keys to the class averages at every stop; 0 for an empty class.

        Args:
            keys: z, shape (R, D).

        Returns:
            Shape (G, S, C, R).
        """
        lengths = np.sqrt(self.squares)
        dots: NDArray[np.float64] = np.tensordot(self.sums, keys, (-1, -1))
        dots *= np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 1e-9)[..., None]
        return dots

    def count_averaged(self, here: tuple[int, int]) -> NDArray[np.int64]:
        """Count the entries whose keys are in each class sum, at one kind of noise and one stop: shape (C,)."""
        kind, stop = here
        labels = np.where(stop >= self.flips_at, self.others[kind], self.labels)
        return np.bincount(labels[self.counted[here]], minlength=self.entries.n_classes)

    @cached_property
    def n_pairs(self) -> int:
        """How many pairs (entry, near entry) dissent is a share of."""
        return int((self.entries.neighborhoods[:, :NEIGHBORHOOD] >= 0).sum())

    def labels_of(self, rows: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return observed labels at every stop: y_j before the stop at which j flips, then its other label.

        Args:
            rows: Entries, of any shape.

        Returns:
            Shape (G, S) + `rows.shape`.
        """
        stops = np.arange(len(RATES)).reshape(-1, *(1,) * rows.ndim)
        return np.where(stops >= self.flips_at[rows], self.others[:, None, rows], self.labels[rows])

    def followers_of(self, rows: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Find who else has one of some entries in its neighborhood: rows of followers, and whom each follows."""
        followers, sizes = self.entries.followers_of(rows)
        followed = np.repeat(rows, sizes)
        order = np.argsort(followers, kind="stable")
        order = order[~np.isin(followers[order], rows)]
        return followers[order], followed[order]

    def change_labels(self, flips: Mapping[int, int]) -> NoiseWalk:
        """Return the bank with some labels changed by hand, after the noise: they are the same at every stop.

        Sums and counts move keys, sums those of entries that count, which no hand decides; dissent changes by the
        pairs that these entries are part of.

        Args:
            flips: Class by row.
        """
        if not flips:
            return self
        rows, becomes = np.array(list(flips)), np.array(list(flips.values()))
        before, keys = self.labels_of(rows), self.entries.table.keys[rows]
        kinds, stops = np.indices(before.shape[:2])
        sums, counts = self.sums.copy(), self.counts.copy()
        for place, label in enumerate(becomes):
            moved = self.counted[..., rows[place], None] * keys[place]
            sums[kinds, stops, before[..., place]] -= moved
            counts[kinds, stops, before[..., place]] -= 1
            sums[:, :, label] += moved
            counts[:, :, label] += 1
        labels, others = self.labels.copy(), self.others.copy()
        labels[rows], others[:, rows] = becomes, becomes
        changed = replace(self, labels=labels, others=others, sums=sums, counts=counts)
        pairs = self._pairs_of(rows)
        shift = changed._differing(*pairs) - self._differing(*pairs)
        return replace(changed, dissents=self.dissents + shift / max(self.n_pairs, 1))

    def _pairs_of(self, rows: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Find the pairs (entry, near entry) that some entries are part of."""
        near, (followers, followed) = self.entries.neighborhoods[rows, :NEIGHBORHOOD], self.followers_of(rows)
        ones, places = np.nonzero(near >= 0)
        return np.concatenate([rows[ones], followers]), np.concatenate([near[ones, places], followed])

    def _differing(self, ones: NDArray[np.integer], others: NDArray[np.integer]) -> NDArray[np.int64]:
        """Count the pairs whose labels differ, shape (G, S)."""
        return np.asarray((self.labels_of(ones) != self.labels_of(others)).sum(axis=-1))


def walk_noise(entries: Entries, draws: NoiseDraws, others: Sequence[NDArray[np.int32]]) -> NoiseWalk:
    """Walk from clean to noisy.

    Args:
        entries: The bank.
        draws: `draw_noise(entries.ids, seed)`.
        others: What each label becomes once it is flipped, by kind of noise, G arrays of shape (N,): observed
            labels at rate 1.

    Raises:
        ValueError: If there are more than 256 classes: labels are kept in bytes.
    """
    if entries.n_classes > MOST_CLASSES:
        raise ValueError(f"n_classes must be at most {MOST_CLASSES}, however: n_classes={entries.n_classes}")
    flips_at = np.searchsorted(RATES, draws.u, side="right").astype(np.uint8)
    turned = np.stack(others)
    counts, dissents = _walk_counts(entries, flips_at, turned), _walk_dissent(entries, flips_at, turned)
    averages = [_walk_averages(entries, flips_at, one) for one in turned]
    counted, sums = (np.stack(part) for part in zip(*averages, strict=True))
    return NoiseWalk(entries, entries.labels, flips_at, turned, counted, sums, counts, dissents)


def relabel(seen: Observation, flips: Mapping[str, int]) -> Observation:
    """Change some labels of a bank by hand, after the noise; everything that reads labels follows.

    Args:
        seen: The bank under the label noise in force.
        flips: Class by id of entry.

    Raises:
        ValueError: If an id names no entry, or a class is none of the bank's.
    """
    labels = seen.labels.copy()
    for entry, label in flips.items():
        labels[row_of(seen.entries, entry)] = checked_class(label, seen.entries.n_classes)
    return Observation(seen.entries, labels, seen.before or seen)


def row_of(entries: Entries, entry: str) -> int:
    """Return the row of an entry by its id."""
    table = entries.table
    place = int(np.searchsorted(table.ids, entry, sorter=table.rows_by_id))
    row = int(table.rows_by_id[min(place, len(entries) - 1)])
    if table.ids[row] != entry:
        raise ValueError(f"labels are changed of entries of the bank, however: {entry!r}")
    return row


def checked_class(label: int, n_classes: int) -> int:
    """Return a class that exists."""
    if not 0 <= label < n_classes:
        raise ValueError(f"a label must be in 0..{n_classes - 1}, however: {label}")
    return int(label)


def _walk_counts(entries: Entries, flips_at: NDArray[np.uint8], others: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count entries by class and stop: at each stop, who flips leaves one class for another."""
    n_classes, shape = entries.n_classes, (entries.n_classes, len(RATES) + 1)

    def arrivals(stops: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(labels * shape[1] + stops, minlength=n_classes * shape[1]).reshape(shape)

    start = arrivals(np.zeros_like(flips_at), entries.labels) - arrivals(flips_at, entries.labels)
    return np.stack([np.cumsum(start + arrivals(flips_at, turned), axis=1)[:, : len(RATES)].T for turned in others])


def _walk_averages(
    entries: Entries, flips_at: NDArray[np.uint8], others: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Say who survives editing at each stop, shape (S, N), and add up their keys by class, shape (S, C, D).

    Votes of neighborhoods are carried along: who flips changes those of its followers, and nobody else's.
    """
    keys, n_classes, near = entries.table.keys, entries.n_classes, entries.neighborhoods[:, :NEIGHBORHOOD]
    labels = entries.labels.copy()
    order = np.argsort(flips_at, kind="stable")
    bounds = np.searchsorted(flips_at[order], np.arange(len(RATES) + 1))
    votes = tally((near >= 0).astype(np.float64), labels[near], n_classes).astype(np.int16)

    def keeps_label(rows: NDArray[np.integer]) -> NDArray[np.bool_]:
        return np.asarray(votes[rows].max(axis=1) == votes[rows, labels[rows]])

    counts = keeps_label(np.arange(len(near)))
    sums, counted = np.empty((len(RATES), n_classes, keys.shape[1])), np.empty((len(RATES), len(near)), np.bool_)
    sums[0], counted[0] = (one_hot(labels, n_classes, np.float64) * counts[:, None]).T @ keys, counts
    for stop in range(1, len(RATES)):
        rows = order[bounds[stop] : bounds[stop + 1]]
        theirs, sizes = entries.followers_of(rows)
        np.subtract.at(votes, (theirs, np.repeat(labels[rows], sizes)), 1)
        np.add.at(votes, (theirs, np.repeat(others[rows], sizes)), 1)
        touched = np.union1d(theirs, rows)
        before, did_count = labels[touched], counts[touched]
        labels[rows] = others[rows]
        counts[touched] = keeps_label(touched)
        is_new = (before != labels[touched]) | (did_count != counts[touched])
        some, gone, come = touched[is_new], before[is_new], labels[touched][is_new]
        leave = one_hot(gone, n_classes, np.float64) * did_count[is_new][:, None]
        arrive = one_hot(come, n_classes, np.float64) * counts[some][:, None]
        sums[stop], counted[stop] = sums[stop - 1] + (arrive - leave).T @ keys[some], counts
    return counted, sums


def _walk_dissent(entries: Entries, flips_at: NDArray[np.uint8], others: NDArray[np.int32]) -> NDArray[np.float64]:
    """Count differing pairs by stop: a pair changes only where the one or the other of the two flips."""
    near, end = entries.neighborhoods[:, :NEIGHBORHOOD], len(RATES) + 1
    is_pair = near >= 0
    sizes, partners = is_pair.sum(axis=1), near[is_pair]

    def ends(values: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        small = values.astype(np.uint8)  # a million pairs are looked up: bytes stay close to the processor
        return np.repeat(small, sizes), small[partners]

    (mine, theirs), (own, near_by) = ends(flips_at), ends(entries.labels)
    first, last = np.minimum(mine, theirs), np.maximum(mine, theirs)
    before = (own != near_by).astype(np.int8)
    walked = []
    for turned in others:
        own_then, near_by_then = ends(turned)
        between = np.where(mine <= theirs, own_then != near_by, own != near_by_then).astype(np.int8)
        steps = np.bincount(first, between - before, end)
        steps += np.bincount(last, (own_then != near_by_then) - between, end)
        walked.append((before.sum(dtype=np.int64) + np.cumsum(steps))[: len(RATES)])
    return np.array(walked) / max(len(partners), 1)
