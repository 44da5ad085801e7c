"""How one query's votes answer to label noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnknn.bundle import Queries
from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise

RATES = tuple(round(0.05 * step, 2) for step in range(19))  # 0 to 90 %
RACING = ("uniform", "distance", "attention")


@dataclass(frozen=True)
class NoiseResponse:
    """What a growing noise rate does to one query, the draw being nested.

    Attributes:
        rates: R noise rates, ascending.
        probability: Of the class that is followed, by vote, R numbers each; before calibration.
        leaves: The first rate at which a vote no longer predicts that class; None: never.
        followed: The class: the true label, or where nobody knows it, what attention answers at the first rate.
        is_truth: Whether that is the true label.
    """

    rates: tuple[float, ...]
    probability: dict[str, tuple[float, ...]]
    leaves: dict[str, float | None]
    followed: int
    is_truth: bool


def respond_to_noise(
    classifier: AttnKNN,
    query: Queries,
    k: int,
    noise: LabelNoise,
    temperature: float = 1.0,
    rates: Sequence[float] = RATES,
    votes: Sequence[str] = RACING,
) -> NoiseResponse:
    """Classify one query at every rate, and follow one class.

    Args:
        classifier: Who is asked.
        query: One item with its neighbors, from `AttnKNN.ask` or `AttnKNN.ask_embedded`.
        k: How many of them vote.
        noise: Its kind and seed are used.
        temperature: Divides the scores of the distance and attention votes.
        rates: Noise rates, ascending.
        votes: Names of votes that look at the k neighbors or the prototypes.
    """
    draws = [replace(noise, rate=rate) for rate in rates]
    said = classifier.decide_over_draws(query, k, draws, temperature, list(dict.fromkeys([*votes, "attention"])))
    followed = int(said["attention"][0].argmax() if query.labels is None else query.labels[0])
    probability = {vote: tuple(said[vote][:, followed].tolist()) for vote in votes}
    answers = {vote: said[vote].argmax(axis=1) for vote in votes}
    leaves = {
        vote: next((rate for rate, answer in zip(rates, answers[vote], strict=True) if answer != followed), None)
        for vote in votes
    }
    return NoiseResponse(tuple(rates), probability, leaves, followed, query.labels is not None)
