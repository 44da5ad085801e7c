"""The honest protocol: every vote on the same neighbors, the same calibrator, paired differences.

Protocol B: the bank's labels are corrupted after clean training; queries and their labels stay clean.
Protocol A: everything but test is noisy from the start; such a checkpoint says so in its configuration.

    checkpoint ─→ evaluate     one row per draw and vote
             └──→ examine      the same rows with chance bands, and what claims need: one number per query
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnknn import metrics
from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.evaluation.selective import augrc
from attnknn.intervals import bootstrap_interval
from attnknn.prediction import Prediction
from attnknn.reliability import chance_ece, ece, smooth_ece
from attnknn.votes import COMPARED

if TYPE_CHECKING:
    import pandas as pd

CHANCE_DRAWS = 500
"""How often a perfectly calibrated model is drawn for a chance band."""


@dataclass(frozen=True)
class Findings:
    """What every vote did on all Q test queries under S draws of label noise.

    Attributes:
        rows: One per draw and vote: those of `evaluate`, with what `measure_chance` measures.
        hits: Per vote, 1 where it was right and 0 elsewhere, shape (S, Q).
        losses: Per vote, −log of the calibrated probability of the true label, in nats, shape (S, Q).
    """

    rows: list[dict[str, Any]]
    hits: Mapping[str, NDArray[np.float64]]
    losses: Mapping[str, NDArray[np.float64]]


def examine(classifier: AttnKNN, k: int | None, noises: Sequence[LabelNoise]) -> Findings:
    """Cast all votes on all test queries once per draw, and keep everything that a table and its claims need."""
    rows = []
    hit: dict[str, list[NDArray[np.float64]]] = {vote: [] for vote in COMPARED}
    lost: dict[str, list[NDArray[np.float64]]] = {vote: [] for vote in COMPARED}
    for noise in noises:
        prediction = classifier.predict_items(k=k, noise=noise)
        for vote in COMPARED:
            rows.append(_describe(prediction, vote) | measure_chance(prediction, vote))
            hit[vote].append(hits(prediction, vote))
            lost[vote].append(losses(prediction, vote))
    return Findings(rows, *({vote: np.stack(each) for vote, each in found.items()} for found in (hit, lost)))


def evaluate(classifier: AttnKNN, k: int | None, noises: Iterable[LabelNoise]) -> pd.DataFrame:
    """Measure every vote on all test queries, once per draw of label noise.

    Returns:
        One row per draw and vote: vote, k, noise_kind, noise_rate, seed, and what `measure` measures.
    """
    import pandas as pd

    predictions = (classifier.predict_items(k=k, noise=noise) for noise in noises)
    return pd.DataFrame([_describe(prediction, vote) for prediction in predictions for vote in COMPARED])


def measure(prediction: Prediction, vote: str) -> dict[str, float]:
    """Measure one vote of one prediction against the true labels.

    Returns:
        accuracy, macro_f1, nll (nats), brier, ece (equal-mass bins), ece_debiased, smooth_ece and augrc of
        calibrated probabilities, which have the same winners as before; ece_raw and nll_raw before
        calibration; effective_neighbors (mean over queries; NaN where no neighbor is asked) and unanimity.
    """
    labels, p = _labels(prediction), prediction.ballot.calibrated[vote]
    raw = prediction.ballot.votes[vote].probabilities
    effective = prediction.effective_neighbors(vote)
    return {
        "accuracy": float(np.mean(prediction.predicted(vote) == labels)),
        "macro_f1": metrics.macro_f1(p, labels),
        "nll": float(np.mean(losses(prediction, vote))),
        "brier": metrics.brier(p, labels),
        "ece": ece(p, labels),
        "ece_debiased": ece(p, labels, debiased=True),
        "smooth_ece": smooth_ece(p, labels),
        "augrc": augrc(p, labels),
        "ece_raw": ece(raw, labels),
        "nll_raw": metrics.negative_log_likelihood(raw, labels),
        "effective_neighbors": float("nan") if effective is None else float(np.mean(effective)),
        "unanimity": metrics.unanimity(prediction.ballot.around.labels),
    }


def measure_chance(prediction: Prediction, vote: str) -> dict[str, float]:
    """Measure the debiased ECE before calibration as well, and which ECE chance alone would show.

    Returns:
        ece_debiased_raw, before calibration; chance_low and chance_high, the 95 % band of the debiased ECE of
        a perfectly calibrated model with the same confidences; chance_raw_low and chance_raw_high, before.
    """
    p, raw = prediction.ballot.calibrated[vote], prediction.ballot.votes[vote].probabilities
    after, before = (chance_ece(said, resamples=CHANCE_DRAWS, debiased=True) for said in (p, raw))
    return {
        "ece_debiased_raw": ece(raw, _labels(prediction), debiased=True),
        "chance_low": after.low,
        "chance_high": after.high,
        "chance_raw_low": before.low,
        "chance_raw_high": before.high,
    }


def hits(prediction: Prediction, vote: str) -> NDArray[np.float64]:
    """Say for each query whether the vote was right: 1 or 0, shape (B,)."""
    return (prediction.predicted(vote) == _labels(prediction)).astype(np.float64)


def losses(prediction: Prediction, vote: str) -> NDArray[np.float64]:
    """Return −log of the calibrated probability of each true label, in nats, shape (B,)."""
    p = metrics.clean_probabilities(prediction.ballot.calibrated[vote])
    return -np.log(np.maximum(p[np.arange(len(p)), _labels(prediction)], 1e-12))


def compare(
    classifier: AttnKNN, k: int | None, noises: Sequence[LabelNoise], votes: Sequence[str] = COMPARED
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Collect what paired intervals need: per vote, hits and losses of shape (draws, queries)."""
    predictions = [classifier.predict_items(k=k, noise=noise) for noise in noises]
    return {
        vote: {
            "hits": np.stack([hits(prediction, vote) for prediction in predictions]),
            "losses": np.stack([losses(prediction, vote) for prediction in predictions]),
        }
        for vote in votes
    }


def summarize(classifier: AttnKNN, seeds: Sequence[int] = (0, 1, 2, 3, 4)) -> list[dict[str, Any]]:
    """Measure for a card: every vote at no noise and at 40 % pair and symmetric noise, with 95 % intervals."""
    rows = []
    for kind, rate in (("symmetric", 0.0), ("symmetric", 0.4), ("pair", 0.4)):
        noises = [LabelNoise(kind, rate, seed) for seed in (seeds[:1] if rate == 0 else seeds)]  # type: ignore[arg-type]
        for vote, found in compare(classifier, None, noises).items():
            interval = bootstrap_interval(found["hits"].mean(axis=0))
            rows.append(
                {
                    "vote": vote,
                    "k": classifier.config.attention.k,
                    "noise_kind": kind,
                    "noise_rate": rate,
                    "seeds": [noise.seed for noise in noises],
                    "accuracy": round(float(found["hits"].mean()), 4),
                    "accuracy_interval": [round(float(end), 4) for end in interval],
                    "nll": round(float(found["losses"].mean()), 4),
                }
            )
    return rows


def _describe(prediction: Prediction, vote: str) -> dict[str, Any]:
    """One row of `evaluate`."""
    noise = prediction.noise
    facts = {"k": prediction.k, "noise_kind": noise.kind, "noise_rate": noise.rate, "seed": noise.seed}
    return {"vote": vote} | facts | measure(prediction, vote)


def _labels(prediction: Prediction) -> NDArray[np.int32]:
    if prediction.queries.labels is None:
        raise ValueError("only queries with labels can be measured, however: queries.labels=None")
    return prediction.queries.labels
