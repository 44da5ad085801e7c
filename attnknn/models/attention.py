"""Attention over neighbors: terms → scores → weights and a sink, one complete vote per head.

    score[b, h, j] = Σ_t θ[h, t] · φ_t[b, j]
    g[b, h]        = sigmoid(b_h · ψ[b, h])                    the sink: "none of these"
    w[b, h, j]     = (1 − g[b, h]) · softmax_j(score[b, h, j])   weights and sink sum to one
    p[b, h, c]     = Σ_j w[b, h, j] [y_j = c] + g[b, h] · prior(c)
    p[b, c]        = (1/H) Σ_h p[b, h, c]                        heads count equally

Heads have names and jobs: each sees its own terms, so they differ by construction and each can be
explained in a word. Roads not taken (measured, `docs/decisions.md`): heads that all see every term
converge to one head, and a learned gate over heads collapses onto one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnknn.arrays import Array, entropy, namespace, softmax, tally
from attnknn.models.terms import TERMS, Surroundings, stack_features


@dataclass(frozen=True)
class Head:
    """One complete vote: which terms it sees, and what it listens for in a sentence."""

    terms: tuple[str, ...]
    why: str


HEADS: dict[str, Head] = {
    "nearest": Head(("distance", "rank"), "listens to whoever is closest"),
    "trusted": Head(("distance", "trust", "agreement"), "listens to neighbors whose label their own neighbors confirm"),
    "typical": Head(("distance", "prototype"), "listens to neighbors that look like the average of their class"),
    "familiar": Head(("distance", "content", "fellows"), "listens to neighbors close in a metric learned for the vote"),
}


@dataclass(frozen=True)
class Attention:
    """The fitted numbers of one attention vote.

    Attributes:
        heads: Names of the H heads.
        terms: Names of the T terms that any head sees.
        coefficients: θ, shape (H, T); zero where a head does not see a term.
        sink: b, shape (H, 4): what (1, mean distance, nearest distance, entropy of the head's vote)
            add to the logit of the sink's mass.
        seat: For class averages at the table: what is added to the score of an average, and how much more of it per
            dissent of the bank, shape (H, 2). None: only neighbors vote.
        pull: Likewise, how much a class average's distance counts, shape (H, 2).
        metric: W of the content term, shape (R, D). None: no head sees content.
    """

    heads: tuple[str, ...]
    terms: tuple[str, ...]
    coefficients: Array
    sink: Array
    seat: Array | None = None
    pull: Array | None = None
    metric: Array | None = None

    @property
    def has_averages(self) -> bool:
        """Whether the class averages sit at the table."""
        return self.seat is not None

    def to_arrays(self) -> dict[str, Array]:
        """Return the fitted numbers by name, for a file of weights."""
        named = {
            "coefficients": self.coefficients,
            "sink": self.sink,
            "seat": self.seat,
            "pull": self.pull,
            "metric": self.metric,
        }
        return {name: array for name, array in named.items() if array is not None}

    @classmethod
    def from_arrays(cls, heads: Sequence[str], terms: Sequence[str], arrays: Mapping[str, Array]) -> Attention:
        """Rebuild from `to_arrays`; the names come from the card of the checkpoint.

        Raises:
            ValueError: If a head or a term has no definition here, or an array does not fit their numbers.
        """
        unknown = [name for name in heads if name not in HEADS] + [name for name in terms if name not in TERMS]
        if unknown:
            raise ValueError(f"heads and terms must be defined, however: {unknown} are not")
        widths = {"coefficients": len(terms), "sink": 4, "seat": 2, "pull": 2}
        shapes = {name: (len(heads), width) for name, width in widths.items()}
        if ("seat" in arrays) != ("pull" in arrays):
            raise ValueError(f"seat and pull come together, however: arrays={sorted(arrays)}")
        for name, shape in shapes.items():
            if name in arrays and tuple(arrays[name].shape) != shape:
                raise ValueError(f"{name} must be of shape {shape}, however: {tuple(arrays[name].shape)}")
        return cls(
            tuple(heads),
            tuple(terms),
            arrays["coefficients"],
            arrays["sink"],
            arrays.get("seat"),
            arrays.get("pull"),
            arrays.get("metric"),
        )


@dataclass(frozen=True)
class HeadVotes:
    """What every head says about B queries.

    Attributes:
        scores: Shape (B, H, K), or (B, H, K + C) with class averages behind the neighbors.
        weights: Likewise; with `sink` they sum to one per query and head.
        sink: Shape (B, H), between 0 and 1.
        probabilities: Shape (B, H, C); rows sum to one.
    """

    scores: Array
    weights: Array
    sink: Array
    probabilities: Array


def terms_of(heads: Sequence[str]) -> tuple[str, ...]:
    """List the terms that any of the heads sees, in the order in which they first appear."""
    return tuple(dict.fromkeys(term for name in heads for term in HEADS[name].terms))


def query_facts(distances: Array, probabilities: Array) -> Array:
    """State four facts about a query, from which a sink learns when to say "none of these".

    ψ = (1, mean_j d[b, j], min_j d[b, j], entropy of the vote in nats)

    Args:
        distances: Euclidean distances to the neighbors, shape (B, K).
        probabilities: A vote of shape (B, C), or (B, H, C) for one per head.

    Returns:
        Shape (B, 4), or (B, H, 4), of the type of `probabilities`.

    Raises:
        ValueError: If the numbers of queries differ.

    Example:
        >>> import numpy as np
        >>> query_facts(np.array([[0.2, 0.4]]), np.array([[1.0, 0.0]])).round(9).tolist()
        [[1.0, 0.3, 0.2, 0.0]]
    """
    if distances.ndim != 2 or probabilities.ndim not in (2, 3) or distances.shape[0] != probabilities.shape[0]:
        shapes = f"{tuple(distances.shape)} and {tuple(probabilities.shape)}"
        raise ValueError(f"distances and a vote must be of shapes (B, K) and (B, ..., C), however: {shapes}")
    xp = namespace(distances, probabilities)
    spread = entropy(probabilities)
    distances = xp.astype(distances, spread.dtype)
    mean, nearest = xp.mean(distances, axis=-1), xp.min(distances, axis=-1)
    if spread.ndim == 2:
        mean, nearest = mean[:, None], nearest[:, None]
    blank = xp.zeros_like(spread)
    return xp.stack([blank + 1, blank + mean, blank + nearest, spread], axis=-1)


def certainty_facts(distances: Array, p: Array) -> Array:
    """State four facts about a vote on a query, which say how sure it should be.

    ψ = (1, mean_j d[b, j], H, H²),  H the entropy of the vote in nats

    With H alone, votes torn between two classes and votes torn between all of them would be softened in proportion.

    Args:
        distances: Euclidean distances to the neighbors, shape (B, K).
        p: Its probabilities, shape (B, C).

    Returns:
        Shape (B, 4), of the type of `p`.

    Raises:
        ValueError: If the numbers of queries differ.

    Example:
        >>> import numpy as np
        >>> certainty_facts(np.array([[0.2, 0.4]]), np.array([[0.5, 0.5]])).round(2).tolist()
        [[1.0, 0.3, 0.69, 0.48]]
    """
    facts = query_facts(distances, p)
    spread = facts[:, 3:]
    return namespace(facts).concat([facts[:, :2], spread, spread**2], axis=1)


def sigmoid(logits: Array) -> Array:
    """Map real numbers to (0, 1): 1 / (1 + exp(−x)), written so that it never overflows."""
    return 0.5 * (1 + namespace(logits).tanh(0.5 * logits))


def score_neighbors(features: Array, attention: Attention) -> Array:
    """Add up the terms: score[b, h, j] = Σ_t θ[h, t] φ_t[b, j].

    Args:
        features: φ, shape (B, T, K).
        attention: Its `coefficients` are θ.

    Returns:
        Shape (B, H, K).
    """
    return attention.coefficients @ features


def score_averages(around: Surroundings, attention: Attention) -> Array:
    """Score the class averages as C more neighbors, by their distance and a seat of their own.

    score[b, h, c] = (seat[h, 0] + z seat[h, 1]) − (pull[h, 0] + z pull[h, 1]) ‖z_b − μ_c‖² / 2

    z is the dissent of the bank: the noisier it looks, the more averages are worth beside single neighbors, and the
    closer they move together. With the seat far above all neighbors this is the nearest prototype vote. Terms are
    silent about an average: it has no rank, and no label that could be wrong.

    Returns:
        Shape (B, H, C).
    """
    if attention.seat is None or attention.pull is None or around.dissent is None:
        raise ValueError("class averages need a seat, a pull and the dissent of the bank, however: one of them is None")
    dissent = around.dissent[:, None]
    seat, pull = (numbers[None, :, 0] + dissent * numbers[None, :, 1] for numbers in (attention.seat, attention.pull))
    return seat[:, :, None] - pull[:, :, None] * (around.average_distances**2)[:, None, :] / 2


def attend(
    around: Surroundings, attention: Attention, temperature: float = 1.0, features: Array | None = None
) -> HeadVotes:
    """Let every head vote: the formulas at the top of this module.

    Args:
        around: B queries and their K neighbors.
        attention: The fitted numbers.
        temperature: Divides the scores; small lets the best neighbor decide, large approaches a uniform vote.
        features: `stack_features(around, attention.terms)`, where the caller has it already.

    Returns:
        One vote per query and head.

    Raises:
        ValueError: If the temperature is not positive.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, however: temperature={temperature}")
    xp = namespace(around.distances)
    if features is None:
        features = stack_features(around, attention.terms, attention.metric)
    scores = score_neighbors(features, attention)
    if attention.has_averages:
        scores = xp.concat([scores, score_averages(around, attention)], axis=-1)
    share = softmax(scores, temperature=temperature)
    k = around.labels.shape[1]
    heard = tally(share[..., :k], around.labels, around.n_classes)
    if attention.has_averages:
        heard = heard + share[..., k:]
    facts = query_facts(around.distances, heard)
    sink = sigmoid(xp.sum(facts * attention.sink[None, :, :], axis=-1))
    stay = (1 - sink)[:, :, None]
    probabilities = stay * heard + sink[:, :, None] * around.prior[:, None, :]
    return HeadVotes(scores, stay * share, sink, probabilities)


def explain_scores(around: Surroundings, attention: Attention) -> Array:
    """Split each score into what each term added: θ[h, t] · φ_t[b, j].

    Returns:
        Shape (B, H, T, K). Summed over T it is the score of the neighbor.
    """
    features = stack_features(around, attention.terms, attention.metric)
    return attention.coefficients[None, :, :, None] * features[:, None, :, :]


def head_disagreement(weights: Array) -> Array:
    """Measure how differently heads listen: mean total variation distance over pairs of heads.

    D[b] = mean over pairs h < g of ½ Σ_j |w̃[b, h, j] − w̃[b, g, j]|,  w̃ = w without the sink

    Args:
        weights: Shape (B, H, K).

    Returns:
        Shape (B,), between 0 (all alike) and 1 (no neighbor in common); 0 for one head.
    """
    xp = namespace(weights)
    n_heads = int(weights.shape[1])
    if n_heads == 1:
        return xp.zeros_like(weights[:, 0, 0])
    listened = weights / xp.sum(weights, axis=-1, keepdims=True)
    gaps = xp.abs(listened[:, :, None, :] - listened[:, None, :, :])
    return xp.sum(gaps, axis=(1, 2, 3)) / (2 * n_heads * (n_heads - 1))
