"""Fit the votes on queries that the embedder has not seen, under many fresh draws of label noise.

    loss = mean NLL of Tᵀ p  +  ridge · Σ θ_added²  +  mean hinge on effective neighbors

With class averages at the table, p is what the vote says after a calibrator that is fitted along with it: a vote
that may lean on being sharpened or softened by how noisy the bank looks need not do that with its weights. Neighbors
alone are fitted on what they say themselves, so that every head stays good by itself (`docs/decisions.md`).

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

from attnknn.arrays import entropy, likelihoods, tally
from attnknn.ballot import FittedVotes, cast_votes
from attnknn.bank.entries import Entries, observe, stack, surround
from attnknn.bundle import Queries
from attnknn.calibration import (
    FLOOR,
    RIDGE,
    Calibrator,
    calibrate,
    fit_calibrator,
    soften,
    vote_facts,
)
from attnknn.config import AttentionConfig, LabelNoise
from attnknn.models.attention import Attention, attend, terms_of
from attnknn.models.terms import Surroundings, reads_keys, stack_features
from attnknn.training.layout import Layout
from attnknn.votes import COMPARED, distance_weights, prototype_probabilities

Floats = NDArray[np.float64]

SINK_RIDGE = 1e-4
HINGE = 0.1
HIGHEST_RATE = 0.9  # of the rate at which the clean label stops being the most frequent one


def noise_draws(config: AttentionConfig, n_classes: int, seed: int) -> list[LabelNoise]:
    """List the draws of label noise that the fit sees.

    Rates at which a clean label is hardly more frequent than any other, 0.9 · (1 − 1/C), teach nothing
    but to mistrust everything; they are left out (with two classes, symmetric noise above 45 %). Every kind and
    rate counts the same, clean labels too.
    """
    bearable = HIGHEST_RATE * (1 - 1 / n_classes)
    kinds: list[tuple[str, float]] = [("symmetric", rate) for rate in config.rates if rate <= bearable]
    kinds += [("pair", rate) for rate in config.pair_rates]
    start = 1_000_003 * (seed + 1)  # far from the seeds that a visitor draws and an evaluation reports
    return [
        LabelNoise(kind, rate, start + draw)  # type: ignore[arg-type]
        for kind, rate in kinds
        for draw in range(config.draws)
    ]


def noise_transition(queries: Queries, entries: Entries) -> Floats:
    """Estimate how labels were made wrong, from those of queries that surely belong to a class.

    T[c, y] = (n_cy + C T₀[c, y]) / (n_c + C),  T₀ = (1 − ε) I + ε (1 − I) / (C − 1)

    n_cy counts queries that were given the label y where the average of class c is nearest, and leads by at least the
    median of such leads: near a border averages err, and their errors would count as wrong labels. ε is the share of
    these queries that were given another label. Few queries of a class say less than all of them together.

    Args:
        queries: Held-out queries with labels as they were given.
        entries: The bank that will be used.

    Returns:
        Probabilities of a given label (columns) for each true one (rows), shape (C, C).

    References:
        Patrini et al. (2017), Making deep neural networks robust to label noise, https://arxiv.org/abs/1609.03683
    """
    if queries.labels is None:
        raise ValueError("wrong labels are those of queries with labels, however: queries.labels=None")
    n_classes, same = entries.n_classes, np.eye(entries.n_classes)
    similarities = queries.keys @ observe(entries, LabelNoise()).prototypes.T
    nearest, ordered = similarities.argmax(axis=1), np.sort(similarities, axis=1)
    leads = ordered[:, -1] - ordered[:, -2]
    counts = np.zeros((n_classes, n_classes))
    for label in np.unique(nearest):
        near = nearest == label
        is_sure = near & (leads >= np.median(leads[near]))
        counts[label] = np.bincount(queries.labels[is_sure], minlength=n_classes)
    share = 1 - np.trace(counts) / counts.sum()
    counts += n_classes * ((1 - share) * same + share * (1 - same) / max(n_classes - 1, 1))
    return counts / counts.sum(axis=1, keepdims=True)


def fit_votes(
    queries: Queries,
    entries: Entries,
    config: AttentionConfig,
    seed: int,
    transition: Floats | None = None,
) -> FittedVotes:
    """Fit every compared vote with the same draws, the same transition and the same kind of calibrator.

    Args:
        queries: Held-out queries with true labels; none of them is an entry.
        entries: The bank that will be used.
        config: Heads, k, ridge and noise.
        seed: Of the noise draws.
        transition: How labels were made wrong, where the queries' are not all true; see `noise_transition`.
    """
    return fit_votes_on([(queries, entries)], config, seed, transition)


def fit_votes_on(
    folds: Sequence[tuple[Queries, Entries]],
    config: AttentionConfig,
    seed: int,
    transition: Floats | None = None,
) -> FittedVotes:
    """Fit the votes on several banks at once: cross-fitting, where every item is a query once and an entry elsewhere.

    Args:
        folds: Queries with true labels, each with the bank whose embedder has not seen them.
        config: Heads, k, ridge and noise.
        seed: Of the noise draws.
        transition: How labels were made wrong, where the queries' are not all true; see `noise_transition`.
    """
    if any(queries.labels is None for queries, _ in folds):
        raise ValueError("votes are fitted on queries with labels, however: queries.labels=None")
    n_classes, with_keys = folds[0][1].n_classes, reads_keys(terms_of(config.heads))
    draws = noise_draws(config, n_classes, seed)
    worlds = [(queries, observe(entries, noise)) for noise in draws for queries, entries in folds]
    around = stack([surround(one.keys, one.pool.first(config.k), seen, one.groups, with_keys) for one, seen in worlds])
    labels = np.concatenate([queries.labels for queries, _ in worlds])
    distance = _tune_sharpness(
        lambda s: tally(distance_weights(around, s), around.labels, n_classes), around, labels, transition
    )
    prototype = _tune_sharpness(
        lambda s: prototype_probabilities(around.average_distances, s), around, labels, transition
    )
    fitted = FittedVotes(
        distance,
        prototype,
        fit_attention(around, labels, config, distance, transition=transition),
        fit_attention(around, labels, config, distance, prototype, transition=transition),
        calibrators={},
    )
    ballots = [cast_votes(queries, config.k, seen, fitted) for queries, seen in worlds]
    calibrators = {}
    for name in COMPARED:
        p = np.concatenate([ballot.votes[name].probabilities for ballot in ballots])
        calibrators[name] = fit_calibrator(p, vote_facts(around, p), labels, transition=transition)
    return replace(fitted, calibrators=calibrators)


def fit_attention(
    around: Surroundings,
    labels: NDArray[np.integer],
    config: AttentionConfig,
    sharpness: float,
    pull: float | None = None,
    transition: Floats | None = None,
    beginnings: np.random.Generator | None = None,
) -> Attention:
    """Fit one attention vote, starting at the tuned distance vote with every added term near zero.

    Coefficients of terms that read labels, and of the distance, are kept non-negative (L-BFGS-B). So are
    those of distances in the sink: what is far is never a reason to trust the vote more. And so is what the dissent
    of the bank adds to seat and pull of class averages: a noisier bank speaks for them.

    Args:
        around: B queries of the fit, over all noise draws.
        labels: Their true labels, shape (B,).
        config: Heads, ridge and the hinge's floor.
        sharpness: θ of the tuned distance vote.
        pull: s of the tuned prototype vote, if class averages sit at the table; None if only neighbors vote.
        transition: Probabilities of a given label for each true one, where `labels` are not all true; shape (C, C).
        beginnings: Multiplies every number of the start by exp(N(0, 1)); heads that see the same terms would
            otherwise stay equal, as they begin.

    Returns:
        NumPy arrays, float64.
    """
    layout = Layout(config.heads, around, sharpness, pull, transition is not None)
    world = _to_torch(around)
    fixed = None if "content" in layout.terms else stack_features(world, layout.terms)
    likely = torch.as_tensor(likelihoods(labels, around.n_classes, transition))

    def loss_and_gradient(vector: Floats) -> tuple[float, Floats]:
        moving = torch.tensor(vector, requires_grad=True)
        loss = _loss(layout, moving, world, fixed, likely, config)
        (gradient,) = torch.autograd.grad(loss, moving)
        return loss.item(), gradient.numpy()

    start = layout.start
    if beginnings is not None:
        start = start * np.exp(beginnings.normal(size=start.shape))
    found = minimize(
        loss_and_gradient, start, jac=True, method="L-BFGS-B", bounds=layout.bounds, options={"maxiter": 300}
    )
    fitted, _ = layout.unpack(torch.tensor(found.x))
    return replace(
        fitted,
        **{name: array.numpy().copy() for name, array in fitted.to_arrays().items()},
    )


def _loss(
    layout: Layout,
    vector: Tensor,
    world: Surroundings,
    features: Tensor | None,
    likely: Tensor,
    config: AttentionConfig,
) -> Tensor:
    attention, calibrator = layout.unpack(vector)
    heads = attend(world, attention, features=features)
    said = heads.probabilities.mean(dim=1)
    ridge = config.ridge * (attention.coefficients[layout.added] ** 2).sum()
    if calibrator is None:
        said = (1 - FLOOR) * said + FLOOR / world.n_classes
    else:
        said = soften(said, vote_facts(world, said), calibrator[0], calibrator[1])
        ridge = ridge + RIDGE / len(likely) * (calibrator[:, 1:] ** 2).sum()
    fit = -torch.log((said * likely).sum(dim=1)).mean()
    listened = heads.weights / heads.weights.sum(dim=-1, keepdim=True)
    missing = torch.relu(config.minimum_effective - torch.exp(entropy(listened)))
    return fit + ridge + SINK_RIDGE * (attention.sink[:, 1:] ** 2).sum() + HINGE * (missing**2).mean()


def _tune_sharpness(
    probabilities: Callable[[float], Floats],
    around: Surroundings,
    labels: NDArray[np.integer],
    transition: Floats | None,
) -> float:
    """Choose the sharpness of a one-number vote by its NLL after the shared calibrator."""
    likely = likelihoods(labels, around.n_classes, transition)

    def calibrated_loss(log_sharpness: float) -> float:
        p = probabilities(float(np.exp(log_sharpness)))
        facts = vote_facts(around, p)
        fitted: Calibrator = fit_calibrator(p, facts, labels, transition=transition)
        return float(-np.log((calibrate(p, facts, fitted) * likely).sum(axis=1)).mean())

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
