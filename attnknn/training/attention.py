"""Fit the votes on queries that the embedder has not seen, under many fresh draws of label noise.

    loss = mean NLL of (1 − ε) p + ε / C  +  ridge · Σ θ_added²  +  mean hinge on effective neighbors

On memorized queries every neighborhood is unanimous and the gradient is exactly zero; hence held-out
queries. One set of numbers serves the whole noise slider, because the fit sees every kind and rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from torch import Tensor

from attnknn.arrays import entropy, tally
from attnknn.ballot import FittedVotes, cast_votes
from attnknn.bank.entries import Entries, observe, stack, surround
from attnknn.bundle import Queries
from attnknn.calibration import FLOOR, Calibrator, calibrate, fit_calibrator
from attnknn.config import AttentionConfig, LabelNoise
from attnknn.metrics import negative_log_likelihood
from attnknn.models.attention import HEADS, Attention, attend, query_facts, terms_of
from attnknn.models.terms import TERMS, Surroundings, reads_keys, stack_features
from attnknn.votes import COMPARED, distance_weights, prototype_probabilities

SINK_RIDGE = 1e-4
SINK_START = -4.0
HINGE = 0.1
METRIC_RANK = 8
HIGHEST_RATE = 0.9  # of the rate at which the clean label stops being the most frequent one


def noise_draws(config: AttentionConfig, n_classes: int, seed: int) -> list[LabelNoise]:
    """List the draws of label noise that the fit sees.

    Rates at which a clean label is hardly more frequent than any other, 0.9 · (1 − 1/C), teach nothing
    but to mistrust everything; they are left out (with two classes, symmetric noise above 45 %).
    """
    bearable = HIGHEST_RATE * (1 - 1 / n_classes)
    kinds: list[tuple[str, float]] = [("symmetric", rate) for rate in config.rates if rate <= bearable]
    kinds += [("pair", rate) for rate in config.pair_rates]
    start = 1_000_003 * (seed + 1)  # far from the seeds that a visitor draws and an evaluation reports
    return [
        LabelNoise(kind, rate, start + draw)  # type: ignore[arg-type]
        for kind, rate in kinds
        for draw in range(1 if rate == 0 else config.draws)
    ]


def fit_votes(queries: Queries, entries: Entries, config: AttentionConfig, seed: int) -> FittedVotes:
    """Fit every compared vote with the same draws, the same floor and the same kind of calibrator.

    Args:
        queries: Held-out queries with true labels; none of them is an entry.
        entries: The bank that will be used.
        config: Heads, k, ridge and noise.
        seed: Of the noise draws.
    """
    if queries.labels is None:
        raise ValueError("votes are fitted on queries with labels, however: queries.labels=None")
    draws = [observe(entries, noise) for noise in noise_draws(config, entries.n_classes, seed)]
    neighbors, with_keys = queries.pool.first(config.k), reads_keys(terms_of(config.heads))
    around = stack([surround(queries.keys, neighbors, seen, queries.groups, with_keys) for seen in draws])
    labels = np.tile(queries.labels, len(draws))
    distance = _tune_sharpness(
        lambda s: tally(distance_weights(around, s), around.labels, entries.n_classes), around, labels
    )
    prototype = _tune_sharpness(lambda s: prototype_probabilities(around.average_distances, s), around, labels)
    fitted = FittedVotes(
        distance,
        prototype,
        fit_attention(around, labels, config, distance, with_averages=False),
        fit_attention(around, labels, config, distance, with_averages=True),
        calibrators={},
    )
    ballots = [cast_votes(queries, config.k, seen, fitted) for seen in draws]
    calibrators = {}
    for name in COMPARED:
        probabilities = np.concatenate([ballot.votes[name].probabilities for ballot in ballots])
        calibrators[name] = fit_calibrator(probabilities, query_facts(around.distances, probabilities), labels)
    return replace(fitted, calibrators=calibrators)


def fit_attention(
    around: Surroundings, labels: NDArray[np.integer], config: AttentionConfig, sharpness: float, with_averages: bool
) -> Attention:
    """Fit one attention vote, starting at the tuned distance vote with every added term near zero.

    Coefficients of terms that read labels, and of the distance, are kept non-negative (L-BFGS-B).

    Args:
        around: B queries of the fit, over all noise draws.
        labels: Their true labels, shape (B,).
        config: Heads, ridge and the hinge's floor.
        sharpness: θ of the tuned distance vote.
        with_averages: Whether class averages sit at the table.

    Returns:
        NumPy arrays, float64.
    """
    layout = _Layout(config.heads, around, sharpness, with_averages)
    world = _to_torch(around)
    fixed = None if "content" in layout.terms else stack_features(world, layout.terms)
    truth = torch.as_tensor(labels.astype(np.int64))

    def loss_and_gradient(vector: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        moving = torch.tensor(vector, requires_grad=True)
        loss = _loss(layout, layout.unpack(moving), world, fixed, truth, config)
        (gradient,) = torch.autograd.grad(loss, moving)
        return loss.item(), gradient.numpy()

    found = minimize(
        loss_and_gradient, layout.start, jac=True, method="L-BFGS-B", bounds=layout.bounds, options={"maxiter": 300}
    )
    fitted = layout.unpack(torch.tensor(found.x))
    return replace(
        fitted,
        **{name: array.numpy().copy() for name, array in fitted.to_arrays().items()},
    )


class _Layout:
    """Where each number of an `Attention` lies in the vector that the optimizer moves."""

    def __init__(self, heads: Sequence[str], around: Surroundings, sharpness: float, with_averages: bool) -> None:
        self.heads, self.terms = tuple(heads), terms_of(heads)
        self.seen = np.array([[term in HEADS[head].terms for term in self.terms] for head in heads])
        self.added = torch.tensor(self.seen & (np.array(self.terms) != "distance"))
        start = np.where(np.array(self.terms) == "distance", sharpness, 0.05) * self.seen
        lowest = [0.0 if TERMS[term].reads_labels or term in ("distance", "content") else None for term in self.terms]
        free: list[float | None] = [None]
        parts: list[tuple[str, NDArray[np.float64], list[float | None]]] = [
            ("coefficients", start[self.seen], [lowest[t] for _, t in np.argwhere(self.seen)]),
            ("sink", np.tile([SINK_START, 0.0, 0.0, 0.0], (len(heads), 1)), free * 4 * len(heads)),
        ]
        if with_averages:
            parts.append(("seat", np.zeros(len(heads)), free * len(heads)))
        if "content" in self.terms:
            metric = _first_metric(around)
            parts.append(("metric", metric, free * metric.size))
        self.shapes = {name: values.shape for name, values, _ in parts}
        self.start = np.concatenate([values.ravel() for _, values, _ in parts])
        self.bounds = [(low, None) for _, _, lows in parts for low in lows]

    def unpack(self, vector: Tensor) -> Attention:
        """Give the numbers their names and shapes."""
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        pieces = dict(zip(self.shapes, torch.split(vector, sizes), strict=True))
        arrays = {name: pieces[name].reshape(shape) for name, shape in self.shapes.items()}
        where = tuple(torch.as_tensor(axis) for axis in np.nonzero(self.seen))
        arrays["coefficients"] = torch.zeros(self.seen.shape, dtype=vector.dtype).index_put(
            where, pieces["coefficients"]
        )
        return Attention.from_arrays(self.heads, self.terms, arrays)


def _loss(
    layout: _Layout,
    attention: Attention,
    world: Surroundings,
    features: Tensor | None,
    truth: Tensor,
    config: AttentionConfig,
) -> Tensor:
    heads = attend(world, attention, features=features)
    said = heads.probabilities.mean(dim=1)
    of_truth = said.gather(1, truth[:, None])[:, 0]
    fit = -torch.log((1 - FLOOR) * of_truth + FLOOR / world.n_classes).mean()
    listened = heads.weights / heads.weights.sum(dim=-1, keepdim=True)
    missing = torch.relu(config.minimum_effective - torch.exp(entropy(listened)))
    ridge = config.ridge * (attention.coefficients[layout.added] ** 2).sum()
    return fit + ridge + SINK_RIDGE * (attention.sink[:, 1:] ** 2).sum() + HINGE * (missing**2).mean()


def _first_metric(around: Surroundings) -> NDArray[np.float64]:
    """Start W at the leading principal directions of (query − neighbor), scaled to unit mean square."""
    if around.queries is None or around.keys is None:
        raise ValueError("the content term needs queries and keys, however: one of them is None")
    moved = (around.queries[:, None, :] - around.keys).reshape(-1, around.keys.shape[-1])[:20_000]
    _, spread, directions = np.linalg.svd(moved - moved.mean(axis=0), full_matrices=False)
    rank = min(METRIC_RANK, len(spread))
    return directions[:rank] / max(float(np.sqrt((moved**2).sum(axis=1).mean())), 1e-6)


def _tune_sharpness(
    probabilities: Callable[[float], NDArray[np.float64]], around: Surroundings, labels: NDArray[np.integer]
) -> float:
    """Choose the sharpness of a one-number vote by its NLL after the shared calibrator."""

    def calibrated_loss(log_sharpness: float) -> float:
        p = probabilities(float(np.exp(log_sharpness)))
        facts = query_facts(around.distances, p)
        fitted: Calibrator = fit_calibrator(p, facts, labels)
        return negative_log_likelihood(calibrate(p, facts, fitted), labels)

    found = minimize_scalar(
        calibrated_loss, bounds=(np.log(0.1), np.log(100.0)), method="bounded", options={"xatol": 0.05}
    )
    return float(np.exp(found.x))


def _to_torch(around: Surroundings) -> Surroundings:
    columns = {field.name: getattr(around, field.name) for field in fields(Surroundings)}
    return Surroundings(
        **{
            name: None if array is None else torch.as_tensor(np.ascontiguousarray(array))
            for name, array in columns.items()
        }
    )
