"""Claims: what a table of votes may say in words, computed from the same numbers, with how sure it is.

    Findings of each embedder ─→ Outcome ─┬→ estimate     a cell: mean and interval
                                          └→ judge        a claim: against the best rival vote, paired

An outcome is one level of label noise at one k. The rival is whichever rival vote does best on these test items, so
a claim of being no worse is harder to keep than against any vote that was named beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attnknn.evaluation.protocol import Findings
from attnknn.evaluation.tables import name_noise
from attnknn.intervals import band, holm, p_value, resampled_means

Floats = NDArray[np.float64]
Measure = Literal["accuracy", "nll"]
Verdict = Literal["better", "worse", "no difference"]

OURS = ("attention", "attention_averages")
RIVALS = ("uniform", "distance", "edited", "prototype")
"""Votes that read the bank's labels. The parametric baseline does not, so noise in the bank cannot touch it."""

BETTER: dict[Measure, int] = {"accuracy": 1, "nll": -1}
"""Which sign of a difference is good."""

RESAMPLES = 10_000
"""Draws behind a claim: no p is below 2 / 10,001, so that some hundred claims can still be judged together."""


@dataclass(frozen=True)
class Level:
    """Which labels are noisy, and how many.

    Attributes:
        protocol: B: those of the bank, after clean training. A: all but those of test, from the start.
        kind: Of the noise.
        rate: Share of labels replaced.
    """

    protocol: Literal["A", "B"]
    kind: str
    rate: float

    @property
    def title(self) -> str:
        """What a reader calls it."""
        return name_noise(self.kind, self.rate)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What every vote did at one level, for E embedders, S draws of label noise and Q test queries.

    Attributes:
        level: Of label noise.
        k: How many neighbors voted.
        values: By measure and vote, shape (E, S, Q): 100 for a hit and 0 for a miss, so that means are percent
            and differences points; or the loss in nats.
    """

    level: Level
    k: int
    values: Mapping[Measure, Mapping[str, Floats]]

    @classmethod
    def join(cls, level: Level, k: int, findings: Sequence[Findings]) -> Outcome:
        """Put embedders that were asked the same queries, under the same draws, behind each other."""
        votes = findings[0].hits
        return cls(
            level,
            k,
            {
                "accuracy": {vote: np.stack([100 * one.hits[vote] for one in findings]) for vote in votes},
                "nll": {vote: np.stack([one.losses[vote] for one in findings]) for vote in votes},
            },
        )


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Claim:
    """One of our votes against the best rival vote at one level.

    Attributes:
        level: Of label noise.
        k: How many neighbors voted.
        measure: What is compared.
        vote: Ours.
        rival: The best of `RIVALS` by this measure.
        gap: Ours minus the rival's, in points of accuracy or in nats.
        low: Lower end of its paired 95 % interval.
        high: Upper end.
        p: How surprising the gap would be, were there none.
        adjusted: The same after Holm, over all claims that were judged together.
    """

    level: Level
    k: int
    measure: Measure
    vote: str
    rival: str
    gap: float
    low: float
    high: float
    p: float
    adjusted: float

    @property
    def verdict(self) -> Verdict:
        """What the interval says; one that holds zero is no difference."""
        if self.low <= 0 <= self.high:
            return "no difference"
        return "better" if self.gap * BETTER[self.measure] > 0 else "worse"

    @property
    def is_ahead(self) -> bool:
        """Whether the mean itself is better than the rival's, however little."""
        return self.gap * BETTER[self.measure] > 0


def estimate(outcome: Outcome) -> dict[tuple[Measure, str], Estimate]:
    """Average every vote over embedders and draws, with an interval for other test items.

    Returns:
        By measure and vote: mean, and the percentiles of its means over resampled queries.
    """
    names = [(measure, vote) for measure, votes in outcome.values.items() for vote in votes]
    by_query = np.stack([outcome.values[measure][vote].mean(axis=(0, 1)) for measure, vote in names])
    drawn = resampled_means(by_query)
    return {
        name: Estimate(float(values.mean()), *band(means, 0.95))
        for name, values, means in zip(names, by_query, drawn, strict=True)
    }


def judge(outcomes: Sequence[Outcome], resamples: int = RESAMPLES) -> dict[Outcome, list[Claim]]:
    """Compare each of our votes with the best rival vote, in every outcome and by both measures.

    Queries, draws and embedders are resampled, each independently, as in `attnknn.intervals.paired_interval`.

    Args:
        outcomes: All that will be claimed together: Holm's correction counts them all.
        resamples: How many draws.

    Returns:
        By outcome: a claim per measure and vote of `OURS`.
    """
    compared = {outcome: _compare(outcome) for outcome in outcomes}
    drawn: dict[Outcome, Floats] = {}
    for shape in {gaps.shape for _, gaps in compared.values()}:
        alike = [outcome for outcome, (_, gaps) in compared.items() if gaps.shape == shape]
        means = resampled_means(np.concatenate([compared[outcome][1] for outcome in alike]), resamples=resamples)
        drawn |= dict(zip(alike, np.split(means, len(alike)), strict=True))
    surprise = {outcome: [p_value(means) for means in rows] for outcome, rows in drawn.items()}
    adjusted = iter(holm([p for outcome in outcomes for p in surprise[outcome]]).tolist())
    return {
        outcome: [
            Claim(outcome.level, outcome.k, *pair, float(gap.mean()), *band(means, 0.95), p, next(adjusted))
            for pair, gap, means, p in zip(pairs, gaps, drawn[outcome], surprise[outcome], strict=True)
        ]
        for outcome, (pairs, gaps) in compared.items()
    }


def _compare(outcome: Outcome) -> tuple[list[tuple[Measure, str, str]], Floats]:
    """List measure, our vote and its rival, with the difference on every query, shape (pairs, E, S, Q)."""
    pairs, gaps = [], []
    for measure, values in outcome.values.items():
        rival = max(RIVALS, key=lambda vote: BETTER[measure] * values[vote].mean())
        pairs += [(measure, vote, rival) for vote in OURS]
        gaps += [values[vote] - values[rival] for vote in OURS]
    return pairs, np.stack(gaps)
