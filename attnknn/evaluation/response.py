"""How one query's votes answer to label noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.prediction import Prediction

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
    return follow(lambda draw: classifier.predict_items([item_id], k, draw, temperature), noise, rates, votes)


def follow(
    predict: Callable[[LabelNoise], Prediction],
    noise: LabelNoise,
    rates: Sequence[float] = RATES,
    votes: Sequence[str] = RACING,
) -> NoiseResponse:
    """Classify one query at every rate, whatever it is, and follow one class.

    Args:
        predict: Classifies the query under a draw of label noise.
        noise: Its kind and seed are used.
        rates: Noise rates, ascending.
        votes: Names of votes.
    """
    predictions = [predict(replace(noise, rate=rate)) for rate in rates]
    labels = predictions[0].queries.labels
    followed = int(predictions[0].predicted("attention")[0] if labels is None else labels[0])
    probability = {
        vote: tuple(float(one.ballot.votes[vote].probabilities[0, followed]) for one in predictions) for vote in votes
    }
    leaves = {
        vote: next(
            (rate for rate, one in zip(rates, predictions, strict=True) if one.predicted(vote)[0] != followed), None
        )
        for vote in votes
    }
    return NoiseResponse(tuple(rates), probability, leaves, followed, labels is not None)
