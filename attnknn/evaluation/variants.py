"""Variants of every vote: several k at once, a k of its own for each query, or several views of a query.

    plain        p(q; k)
    tuned k      p(q; k'),  one k' for all queries, from the held-out ones: what an adaptive k has to beat
    k-ensemble   (1/|S|) Σ_(k in S) p(q; k)
    adaptive k   p(q; k(q)),  see `choose_k`
    views        (1/V) Σ_v p(v(q); k),  each view embedded, and with neighbors of its own

Probabilities are averaged before calibration; `attnknn.evaluation.gains` fits and measures. Nearest prototype and
baseline ask no neighbors: another k only moves the distances that their calibrator looks at. Edited looks for as many
survivors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnknn.arrays import one_hot
from attnknn.bank.entries import Observation
from attnknn.bundle import Queries
from attnknn.calibration import certainty_facts, vote_facts
from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.metrics import Floats
from attnknn.votes import COMPARED

PLAIN = "plain"
ENSEMBLE = (5, 10, 16, 32, 50)
MARGINS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
"""A of `choose_k`, of which each vote takes one."""

Variant = Callable[[Sequence[Queries], Observation], list[tuple[Queries, NDArray[np.intp]]]]
"""From the views of B queries, the first as they are, to what is averaged: queries, and how many neighbors of each
vote, shape (B,). No entry of their pools may be missing."""


def choose_k(labels: NDArray[np.integer], n_classes: int, margin: float) -> NDArray[np.intp]:
    """Ask as many neighbors of each query as it takes for one class to stand out from chance.

    k(q) = min { k : max_c n_c(k) / k − 1/C > A / sqrt(k) },  n_c(k) = how many of the first k are of class c

    Few are asked where all agree, many where labels are torn or noisy.

    Args:
        labels: Observed labels of the P nearest entries, nearest first, shape (B, P).
        n_classes: C.
        margin: A, how wide a confidence interval is, in units of 1 / sqrt(k). A large one asks more neighbors.

    Returns:
        Shape (B,), from 1 to P. All P where no class stands out: the paper answers "don't know" instead.

    Example:
        >>> choose_k(np.array([[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 0, 1]]), 2, 0.6).tolist()
        [2, 4, 4]

    References:
        Balsubramani et al. (2019), An adaptive nearest neighbor rule for classification,
        https://arxiv.org/abs/1905.12717; several classes and A / sqrt(k) as in their experiments.
    """
    asked = np.arange(1, labels.shape[1] + 1)
    most = one_hot(labels, n_classes, np.int64).cumsum(axis=1).max(axis=2)
    stands_out = most / asked - 1 / n_classes > margin / np.sqrt(asked)
    return np.where(stands_out.any(axis=1), stands_out.argmax(axis=1) + 1, labels.shape[1])


def fixed(*ks: int) -> Variant:
    """Average over these k: the plain vote for one of them, a k-ensemble for several."""
    return lambda views, seen: [(views[0], np.full(len(views[0]), k)) for k in ks]


def adaptive(margin: float) -> Variant:
    """Ask as many neighbors as `choose_k` says."""

    def ask(views: Sequence[Queries], seen: Observation) -> list[tuple[Queries, NDArray[np.intp]]]:
        queries, n_classes = views[0], seen.entries.n_classes
        return [(queries, choose_k(seen.labels[queries.pool.entries], n_classes, margin))]

    return ask


def viewed(k: int) -> Variant:
    """Average over all views, with k neighbors each."""
    return lambda views, seen: [(view, np.full(len(view), k)) for view in views]


def list_variants(k: int, pool: int, n_views: int) -> dict[str, list[Variant]]:
    """List the variants by name; of several candidates each vote takes the one that suits held-out queries best.

    Args:
        k: How many neighbors vote in the plain vote.
        pool: How many there are to ask.
        n_views: How many views there are; with one, nothing is averaged over views.
    """
    ks = [one for one in ENSEMBLE if one <= pool]
    found = {
        PLAIN: [fixed(k)],
        "tuned k": [fixed(one) for one in sorted({*ks, pool})],
        "k-ensemble": [fixed(*ks)],
        "adaptive k": [adaptive(margin) for margin in MARGINS],
    }
    return found | ({"views": [viewed(k)]} if n_views > 1 else {})


@dataclass(frozen=True)
class Said:
    """What one vote of one variant says about B queries.

    Attributes:
        probabilities: Before calibration, shape (B, C).
        facts: What its calibrator looks at, shape (B, 8): distances are means over what was averaged.
        k: How many neighbors were asked, mean over what was averaged, shape (B,).
        effective_neighbors: Likewise; NaN where no neighbor is asked.
    """

    probabilities: Floats
    facts: Floats
    k: Floats
    effective_neighbors: Floats


def cast_variant(
    classifier: AttnKNN,
    variant: Variant,
    views: Sequence[Queries],
    noise: LabelNoise,
    votes: Sequence[str] = COMPARED,
) -> dict[str, Said]:
    """Cast votes as a variant has them, under one draw of label noise.

    Args:
        classifier: Whose fitted numbers; they are those of the plain vote.
        variant: What is averaged.
        views: Of B queries, from `attnknn.evaluation.views`, or the queries alone if the variant needs no more.
        noise: Label noise of the bank.
        votes: Which of the compared votes.
    """
    parts = [_cast(classifier, queries, ks, noise, votes) for queries, ks in variant(views, classifier.observe(noise))]
    return {vote: _average([part[vote] for part in parts]) for vote in votes}


def _cast(
    classifier: AttnKNN, queries: Queries, ks: NDArray[np.intp], noise: LabelNoise, votes: Sequence[str]
) -> dict[str, Said]:
    """Let ks[b] neighbors vote on query b."""
    n, n_classes = len(queries), len(classifier.class_names)
    said = {
        vote: Said(np.empty((n, n_classes)), np.empty((n, 8)), ks.astype(np.float64), np.full(n, np.nan))
        for vote in votes
    }
    for k in np.unique(ks):
        rows = np.flatnonzero(ks == k)
        prediction = classifier.decide(queries.take(rows), int(k), noise, votes=votes)
        for vote in votes:
            p, effective = prediction.ballot.votes[vote].probabilities, prediction.effective_neighbors(vote)
            said[vote].probabilities[rows] = p
            said[vote].facts[rows] = vote_facts(prediction.ballot.around, p)
            if effective is not None:
                said[vote].effective_neighbors[rows] = effective
    return said


def _average(parts: Sequence[Said]) -> Said:
    """Average what one vote says; its entropy is that of the average."""
    names = ("probabilities", "facts", "k", "effective_neighbors")
    p, facts, k, effective = (np.mean([getattr(part, name) for part in parts], axis=0) for name in names)
    distance, dissent = facts[:, 1:2], facts[:, 4:5]
    plain = certainty_facts(distance, p)
    return Said(p, np.hstack([plain, dissent * plain]), k, effective)
