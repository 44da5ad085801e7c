"""The leak laboratory: the original's faults as switches, each off unless it is asked for.

    items that fit the votes ─→ a bank that holds them too ─→ collect(switches, noises) ─→ the fit sees this
    test items ─→ the ordinary bank under label noise ─→ measure(fitted, switches) ─→ differences, paired

To switch on one fault and nothing else, the items that the votes are fitted on are put into the bank that they
are fitted with. Honestly, each is then left out of its own neighbors and of their trust (leave two out), which
gives the same neighbors and trust as a bank without it; only class averages count it. Test items always meet
the ordinary bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from attnknn import metrics
from attnknn.arrays import tally
from attnknn.bank.entries import Entries, observe, stack, surround
from attnknn.bank.memory import MemoryBank
from attnknn.bundle import Queries
from attnknn.calibration import Calibrator, calibrate, vote_facts
from attnknn.config import AttentionConfig, LabelNoise
from attnknn.intervals import band
from attnknn.models.attention import Attention, attend, terms_of
from attnknn.models.terms import Surroundings, reads_keys, stack_features
from attnknn.reliability import ece

Floats = NDArray[np.float64]

BIAS = 10.0
"""Coefficient of the constant label bias: any number would do."""


@dataclass(frozen=True)
class Switches:
    """Which faults are on; by default none.

    Attributes:
        self_in_bank: An item that fits the votes finds itself among its own neighbors.
        trust_with_query: Its label counts in the trust of its neighbors.
        memorized: Votes are fitted on items that the embedder was trained on.
        noisy_targets: The label it should get is the one that the bank shows, flipped or not.
        clean_only: The fit sees no label noise, as if the bank it will meet had none.
        unbounded: Nothing keeps effective neighbors above a floor while fitting.
        squared: Squared distances stand where distances belong.
        constant_bias: A term that reads labels and is the same for all neighbors joins every score.
    """

    self_in_bank: bool = False
    trust_with_query: bool = False
    memorized: bool = False
    noisy_targets: bool = False
    clean_only: bool = False
    unbounded: bool = False
    squared: bool = False
    constant_bias: bool = False


@dataclass(frozen=True)
class FittedAttention:
    """One attention vote and its calibrator."""

    attention: Attention
    calibrator: Calibrator


@dataclass(frozen=True)
class Measured:
    """What one fit says about n test items under S draws of label noise.

    Attributes:
        probabilities: After calibration, shape (S, n, C).
        hits: 1 where right, 0 where wrong, shape (S, n).
        losses: −log of the probability of the true label, in nats, shape (S, n).
        labels: True labels, shape (n,).
        effective_neighbors: Mean over all of them, the sink left out.
    """

    probabilities: Floats
    hits: Floats
    losses: Floats
    labels: NDArray[np.integer]
    effective_neighbors: float

    def calibration_error(self, debiased: bool = False) -> float:
        """Mean over draws of the calibration error, in equal-mass bins."""
        return float(np.mean([ece(p, self.labels, debiased=debiased) for p in self.probabilities]))


@dataclass(frozen=True)
class Laboratory:
    """The bank with the items in it that the votes are fitted on; make one with `open`.

    Attributes:
        bank: Entries of the classifier, then the held-out items.
        entries: The same, as a fit sees them.
        held_out: Rows of the items that the embedder has not seen.
        memorized: Rows of as many that it was trained on.
    """

    bank: MemoryBank
    entries: Entries
    held_out: NDArray[np.intp]
    memorized: NDArray[np.intp]

    @classmethod
    def open(cls, entries: Entries, held_out: Queries, groups: NDArray[np.integer], seed: int = 0) -> Laboratory:
        """Put the held-out items into the bank, and draw as many of its own entries.

        Args:
            entries: The classifier's.
            held_out: The items that its votes were fitted on, with true labels.
            groups: Their duplicate groups, numbered as those of the entries, shape (B,).
            seed: Of the entries that are drawn.
        """
        if held_out.labels is None:
            raise ValueError("votes are fitted on items with labels, however: held_out.labels=None")
        ids = np.concatenate([entries.ids, held_out.ids])
        keys = np.concatenate([entries.keys, held_out.keys])
        labels = np.concatenate([entries.labels, held_out.labels])
        numbers = np.concatenate([entries.groups, groups.astype(np.int32)])
        bank = MemoryBank.build(keys, labels, ids, numbers)
        neighborhoods = bank.neighborhoods(entries.neighborhoods.shape[1])
        joined = Entries(ids, keys, labels, numbers, neighborhoods, entries.n_classes)
        size = min(len(entries), len(held_out))
        drawn = np.random.default_rng(seed).choice(len(entries), size, replace=False)
        return cls(bank, joined, np.arange(len(entries), len(ids)), drawn)

    def collect(
        self, switches: Switches, noises: Sequence[LabelNoise], config: AttentionConfig
    ) -> tuple[Surroundings, NDArray[np.int32]]:
        """Collect what a fit sees: surroundings under each draw, under each other, and what should come out.

        Args:
            switches: Which faults are on.
            noises: Draws of label noise in the bank; with `clean_only`, one without noise stands for all.
            config: Says how many neighbors there are, and whether any head reads their keys.

        Returns:
            Surroundings of (draws · items) queries, and their targets.
        """
        rows = self.memorized if switches.memorized else self.held_out
        keys, groups = self.entries.keys[rows], self.entries.groups[rows]
        found = self.bank.search(keys, config.k, exclude_groups=None if switches.self_in_bank else groups)
        left_out, with_keys = None if switches.trust_with_query else groups, reads_keys(terms_of(config.heads))
        arounds, targets = [], []
        for noise in [LabelNoise()] if switches.clean_only else noises:
            seen = observe(self.entries, noise)
            arounds.append(surround(keys, found, seen, left_out, with_keys))
            targets.append((seen if switches.noisy_targets else self.entries).labels[rows])
        return with_faulty_distances(stack(arounds), switches), np.concatenate(targets)


def with_faulty_distances(around: Surroundings, switches: Switches) -> Surroundings:
    """Square the distances to the neighbors, if that is switched on."""
    return replace(around, distances=around.distances**2) if switches.squared else around


def with_constant_bias(around: Surroundings, attention: Attention) -> tuple[Attention, Floats]:
    """Give every head one more term: the share of the most frequent label, the same for all neighbors.

    Returns:
        The attention, and its features of shape (B, T + 1, K), for `attend`.
    """
    k = around.labels.shape[1]
    share = tally(np.ones_like(around.distances), around.labels, around.n_classes).max(axis=1) / k
    constant = np.broadcast_to(share[:, None, None], (len(share), 1, k))
    features = np.concatenate([stack_features(around, attention.terms, attention.metric), constant], axis=1)
    coefficients = np.pad(attention.coefficients, ((0, 0), (0, 1)), constant_values=BIAS)
    return replace(attention, terms=(*attention.terms, "label bias"), coefficients=coefficients), features


def measure(
    arounds: Sequence[Surroundings], labels: NDArray[np.integer], fitted: FittedAttention, switches: Switches
) -> Measured:
    """Let a fitted attention vote on test items, once per draw of label noise.

    Args:
        arounds: What the test items meet under each of S draws.
        labels: Their true labels, shape (n,).
        fitted: What was fitted with the same switches.
        switches: `squared` and `constant_bias` are at work here too.
    """
    said, winners, effective = [], [], []
    for around in arounds:
        seen = with_faulty_distances(around, switches)
        attention, features = fitted.attention, None
        if switches.constant_bias:
            attention, features = with_constant_bias(seen, attention)
        heads = attend(seen, attention, features=features)
        raw, shares = heads.probabilities.mean(axis=1), heads.weights.mean(axis=1)
        said.append(calibrate(raw, vote_facts(seen, raw), fitted.calibrator))
        winners.append(raw.argmax(axis=1))
        effective.append(metrics.effective_neighbors(shares / shares.sum(axis=1, keepdims=True)).mean())
    p, hits = np.stack(said), (np.stack(winners) == labels).astype(np.float64)
    of_truth = np.take_along_axis(p, labels[None, :, None], axis=2)[:, :, 0]
    return Measured(p, hits, -np.log(of_truth), labels, float(np.mean(effective)))


def pull(weights: Floats, neighbor_labels: NDArray[np.integer], labels: NDArray[np.integer]) -> Floats:
    """Measure how strongly each item would move the scores of its neighbors, were its loss to fall.

    Σ_j |∂(−log p)/∂score_j| = Σ_j w_j |[y_j = y] − p| / p,  p = Σ_j w_j [y_j = y]

    Args:
        weights: Softmax weights of a vote, shape (B, K).
        neighbor_labels: Labels of the neighbors, shape (B, K).
        labels: What should come out, shape (B,).

    Returns:
        Shape (B,); exactly 0 where all neighbors carry one label, right or wrong.

    Example:
        >>> pull(np.full((2, 4), 0.25), np.array([[1, 1, 1, 1], [1, 1, 1, 0]]), np.array([1, 1])).tolist()
        [0.0, 0.5]
    """
    agrees = neighbor_labels == labels[:, None]
    p = (weights * agrees).sum(axis=1)
    moved = (weights * np.abs(agrees - p[:, None])).sum(axis=1)
    torn = agrees.any(axis=1) & ~agrees.all(axis=1)
    return np.divide(moved, p, out=np.zeros_like(p), where=torn)


def paired_ece_interval(
    a: Measured, b: Measured, level: float = 0.95, seed: int = 0, resamples: int = 400
) -> tuple[float, float]:
    """Return an interval of ECE(a) − ECE(b), both measured on the same items under the same draws.

    As in `attnknn.intervals.paired_interval`, each resample draws items, the same ones for every draw of noise,
    and draws of noise where there are several; bins are cut anew each time.
    """
    rng, n_draws, n, gaps = np.random.default_rng(seed), len(a.hits), len(a.labels), []
    for _ in range(resamples):
        items = rng.integers(0, n, size=n)
        draws: list[int] = rng.integers(0, n_draws, size=n_draws).tolist()
        of_draw = {draw: _ece_of(a, draw, items) - _ece_of(b, draw, items) for draw in {*draws}}
        gaps.append(np.mean([of_draw[draw] for draw in draws]))
    return band(np.array(gaps), level)


def _ece_of(measured: Measured, draw: int, items: NDArray[np.integer]) -> float:
    return ece(measured.probabilities[draw, items], measured.labels[items])
