"""How one query's votes answer to label noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise

RATES = tuple(round(0.05 * step, 2) for step in range(19))  # 0 to 90 %
RACING = ("uniform", "distance", "attention")


@dataclass(frozen=True)
class NoiseResponse:
    """What a growing noise rate does to one query, the draw being nested.

    Attributes:
        rates: R noise rates, ascending.
        probability: Of the true label, by vote, R numbers each; before calibration.
        leaves: The first rate at which a vote no longer predicts the true label; None: never.
    """

    rates: tuple[float, ...]
    probability: dict[str, tuple[float, ...]]
    leaves: dict[str, float | None]


def respond_to_noise(
    classifier: AttnKNN,
    item_id: str,
    k: int,
    noise: LabelNoise,
    temperature: float = 1.0,
    rates: Sequence[float] = RATES,
    votes: Sequence[str] = RACING,
) -> NoiseResponse:
    """Classify one item at every rate, with the kind and seed of `noise`.

    Raises:
        UnknownItem: If there is no item of that id.
    """
    probability: dict[str, list[float]] = {vote: [] for vote in votes}
    leaves: dict[str, float | None] = dict.fromkeys(votes)
    for rate in rates:
        prediction = classifier.predict_items([item_id], k, replace(noise, rate=rate), temperature)
        if prediction.queries.labels is None:
            raise ValueError("a response to noise needs the true label, however: queries.labels=None")
        truth = int(prediction.queries.labels[0])
        for vote in votes:
            probability[vote].append(float(prediction.ballot.votes[vote].probabilities[0, truth]))
            if leaves[vote] is None and prediction.predicted(vote)[0] != truth:
                leaves[vote] = rate
    return NoiseResponse(tuple(rates), {vote: tuple(line) for vote, line in probability.items()}, leaves)
