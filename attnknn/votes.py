"""Votes: rules that turn neighbors into weights, and weights into probabilities.

Uniform, distance and attention are one formula: the softmax of a score that is constant, only the
distance, or a sum of terms. Edited and nearest prototype are the honest rivals that cost nothing.
Written in the array API; the same functions run in the page, in training and in the tests.

    uniform    w_j = 1/K
    distance   w_j = softmax_j(θ · −d_j / r)
    edited     w_j = 1/K over the K nearest entries whose label their own neighborhood confirms
    prototype  p(c) = softmax_c(s · cos(z, μ_c)),  μ_c the average of the entries of class c that survive editing
    attention  see `attnknn.models.attention`
"""

from __future__ import annotations

from dataclasses import dataclass

from attnknn.arrays import Array, namespace, softmax
from attnknn.models.attention import HeadVotes
from attnknn.models.terms import Surroundings, relative_distance

COMPARED = ("uniform", "distance", "edited", "prototype", "attention", "attention_averages", "baseline")
"""Every vote that is compared, in the order in which it is shown."""

TITLES = {
    "uniform": "uniform",
    "distance": "distance",
    "edited": "edited",
    "prototype": "nearest prototype",
    "attention": "attention",
    "attention_averages": "attention + averages",
    "baseline": "parametric baseline",
}


@dataclass(frozen=True)
class Vote:
    """What one rule says about B queries.

    Attributes:
        probabilities: Shape (B, C); rows sum to one. Where there are `weights` it is exactly additive:
            weights tallied by label, plus the averages' shares, plus the sink's mass spread over the prior.
        weights: Each neighbor's share of the vote, shape (B, K); None where no neighbor is asked.
        averages: Each class average's share, shape (B, C); None where they do not sit at the table.
        sink: Mass that went to none of these, shape (B,); None where the vote has no sink.
    """

    probabilities: Array
    weights: Array | None = None
    averages: Array | None = None
    sink: Array | None = None


def uniform_weights(distances: Array) -> Array:
    """Give every neighbor the same say: w = 1/K, shape (B, K)."""
    return namespace(distances).ones_like(distances) / distances.shape[-1]


def distance_weights(around: Surroundings, sharpness: float, temperature: float = 1.0) -> Array:
    """Give a neighbor more say the closer it is to the query.

    w[b, j] = softmax_j(−θ d[b, j] / (r[b] t)),  r = the query's mean distance

    Args:
        around: B queries and their K neighbors.
        sharpness: θ, tuned on held-out queries; 0 is a uniform vote.
        temperature: Softness of the vote. A small value lets the nearest neighbor decide; a large one
            approaches a uniform vote.

    Returns:
        Weights of shape (B, K). Each row is non-negative and sums to one.

    Raises:
        ValueError: If the temperature is not positive.

    References:
        Wu et al. (2018), https://arxiv.org/abs/1805.01978
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, however: temperature={temperature}")
    return softmax(sharpness * relative_distance(around), temperature=temperature)


def edited_weights(keeps: Array, k: int) -> Array:
    """Share the vote among the k nearest entries that survive editing.

    Wilson's editing drops entries whose label loses among their own neighbors. The survivors are
    looked for in the pool of M ≥ k nearest; if none survives, the k nearest vote as they are.

    Args:
        keeps: Whether each entry of the pool survives, nearest first, shape (B, M).
        k: How many survivors vote, at most.

    Returns:
        Weights over the pool, shape (B, M), float64; rows sum to one.

    References:
        Wilson (1972), https://doi.org/10.1109/TSMC.1972.4309137
    """
    xp = namespace(keeps)
    survives = xp.astype(keeps, xp.float64)
    places = xp.cumulative_sum(survives, axis=-1)
    chosen = survives * xp.astype(places <= k, xp.float64)
    everyone = xp.zeros_like(survives) + xp.astype(xp.arange(keeps.shape[-1]) < k, xp.float64)
    found = xp.sum(chosen, axis=-1, keepdims=True)
    chosen = xp.where(found > 0, chosen, everyone)
    return chosen / xp.sum(chosen, axis=-1, keepdims=True)


def prototype_probabilities(average_distances: Array, sharpness: float) -> Array:
    """Vote for the class whose average key is closest.

    p[b, c] = softmax_c(s · cos(z_b, μ_c)),  cos = 1 − d² / 2 on the unit sphere

    Args:
        average_distances: Distance to each class prototype, shape (B, C).
        sharpness: s, tuned on held-out queries.

    Returns:
        Shape (B, C); rows sum to one.

    References:
        Snell et al. (2017), https://arxiv.org/abs/1703.05175
    """
    return softmax(-sharpness * average_distances**2 / 2)


def attention_vote(heads: HeadVotes, k: int) -> Vote:
    """Let heads count equally: p = (1/H) Σ_h p_h, and each neighbor's share is its mean weight.

    Args:
        heads: Every head's vote.
        k: Neighbors; what lies behind them in the weights are class averages.
    """
    xp = namespace(heads.weights)
    shares = xp.mean(heads.weights, axis=1)
    averages = shares[:, k:] if shares.shape[1] > k else None
    return Vote(xp.mean(heads.probabilities, axis=1), shares[:, :k], averages, xp.mean(heads.sink, axis=1))
