"""Terms: the additive parts of a score, each one drawable.

score[b, h, j] = Σ_t θ[h, t] · φ_t[b, j]

A term φ_t looks at B queries and their K neighbors (`Surroundings`) and says one number about each
pair. To add a term: write a function from `Surroundings` to (B, K), give it a `Term` in `TERMS`, and
name it in a head of `attnknn.models.attention.HEADS`. Written in the array API: the same function runs
on NumPy arrays in the page and on torch tensors in the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attnknn.arrays import Array, namespace, pick, softmax, tally

FELLOW_TEMPERATURE = 0.1


@dataclass(frozen=True)
class Surroundings:
    """Everything a vote may look at, for B queries and their K neighbors, nearest first.

    Attributes:
        distances: Shape (B, K), Euclidean on the unit sphere.
        labels: Observed labels of the neighbors, integers of shape (B, K).
        trust: Logit of the leave-one-out agreement of each neighbor's label with the neighbor's own
            neighborhood, shape (B, K).
        contrast: How much closer each neighbor lies to the prototype of its own label than to the best
            rival prototype, shape (B, K).
        average_distances: Distance of each query to each class prototype, shape (B, C).
        prior: Share of each observed label in the bank, shape (B, C); rows sum to one.
        queries: Embeddings of the queries, shape (B, D); only read by terms on keys.
        keys: Keys of the neighbors, shape (B, K, D); likewise.
        dissent: Share of pairs of close entries in the bank whose observed labels differ, shape (B,); only read by
            calibrators.
    """

    distances: Array
    labels: Array
    trust: Array
    contrast: Array
    average_distances: Array
    prior: Array
    queries: Array | None = None
    keys: Array | None = None
    dissent: Array | None = None

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""
        return int(self.prior.shape[-1])


@dataclass(frozen=True)
class Term:
    """One additive part of a score.

    Attributes:
        formula: φ as the ledger shows it.
        why: One sentence for a visitor.
        reads_labels: Whether φ depends on observed labels. Coefficients of such terms are kept
            non-negative: left free, the likelihood abuses them to flatten confidence.
        feature: φ; from `Surroundings` and the learned metric W to (B, K).
    """

    formula: str
    why: str
    reads_labels: bool
    feature: Callable[[Surroundings, Array | None], Array]


def relative_distance(around: Surroundings, metric: Array | None = None) -> Array:
    """Score a neighbor by its closeness, in units of the query's mean distance.

    φ[b, j] = −d[b, j] / r[b],  r[b] = mean over the K neighbors of d[b, ·]

    Returns:
        Shape (B, K), with row mean −1 (0 where all K neighbors coincide with the query).
    """
    xp = namespace(around.distances)
    mean = xp.mean(around.distances, axis=-1, keepdims=True)
    return -around.distances / xp.where(mean > 0, mean, xp.ones_like(mean))


def log_rank(around: Surroundings, metric: Array | None = None) -> Array:
    """Score a neighbor by its place in the list: φ[b, j] = −log(1 + j), j = 0 for the nearest."""
    xp = namespace(around.distances)
    places = xp.arange(around.distances.shape[-1], dtype=around.distances.dtype)
    return xp.zeros_like(around.distances) - xp.log(1 + places)


def content(around: Surroundings, metric: Array | None = None) -> Array:
    """Score a neighbor by its distance in a learned metric, one key for query and entry alike.

    φ[b, j] = −‖W (z[b] − z[b, j])‖²

    Args:
        around: Needs `queries` and `keys`.
        metric: W, shape (R, D).

    References:
        TabR, Gorishniy et al. (2023), https://arxiv.org/abs/2307.14338: L2 on a shared key instead of
        dot products of separate queries and keys.
    """
    if metric is None or around.queries is None or around.keys is None:
        raise ValueError("the content term needs queries, keys and a metric, however: one of them is None")
    xp = namespace(around.keys)
    moved = (around.queries[:, None, :] - around.keys) @ xp.matrix_transpose(metric)
    return -xp.sum(moved * moved, axis=-1)


def trust(around: Surroundings, metric: Array | None = None) -> Array:
    """Score a neighbor by how much its own neighborhood agrees with its label (a logit)."""
    return around.trust


def agreement(around: Surroundings, metric: Array | None = None) -> Array:
    """Score a neighbor by the share of the other K − 1 neighbors that carry its label.

    φ[b, j] = (n[b, y_j] − 1) / (K − 1),  n[b, c] = neighbors of query b with observed label c

    Returns:
        Shape (B, K), between 0 and 1; 0 where K = 1.
    """
    xp = namespace(around.distances)
    k = around.distances.shape[-1]
    counts = tally(xp.ones_like(around.distances), around.labels, around.n_classes)
    return (pick(counts, around.labels) - 1) / max(k - 1, 1)


def contrast(around: Surroundings, metric: Array | None = None) -> Array:
    """Score a neighbor by cos(z_j, μ of its label) − max over rival classes of cos(z_j, μ_c)."""
    return around.contrast


def fellows(around: Surroundings, metric: Array | None = None) -> Array:
    """Score a neighbor by how close to the query the fellow neighbors lie that resemble it.

    A[j, l] = softmax over l ≠ j of (cos(z_j, z_l) / 0.1);  φ[b, j] = Σ_l A[j, l] · (−d[b, l] / r[b])

    One round of attention among the neighbors themselves; 0 where K = 1.
    """
    if around.keys is None:
        raise ValueError("the fellows term needs keys, however: keys=None")
    xp = namespace(around.keys)
    k = around.distances.shape[-1]
    closeness = relative_distance(around)
    if k == 1:
        return xp.zeros_like(closeness)
    similarity = around.keys @ xp.matrix_transpose(around.keys) / FELLOW_TEMPERATURE
    itself = xp.eye(k, dtype=similarity.dtype)
    among = softmax(similarity - 1e9 * itself, axis=-1)
    return xp.sum(xp.astype(among, closeness.dtype) * closeness[:, None, :], axis=-1)


TERMS: dict[str, Term] = {
    "distance": Term(
        "−d / r", "Closer to the query counts more; r is the query's mean distance.", False, relative_distance
    ),
    "rank": Term("−log(1 + rank)", "Being the first, second, third on the list.", False, log_rank),
    "content": Term("−‖W(z − z_j)‖²", "Closer in a metric learned for this vote.", False, content),
    "trust": Term("logit(agreement of its own neighbors)", "Its own neighbors confirm its label.", True, trust),
    "agreement": Term("share of fellows with its label", "The other neighbors carry its label too.", True, agreement),
    "prototype": Term(
        "cos(z_j, μ_y) − max cos(z_j, μ_c)", "It looks like the average of its class, not of another.", True, contrast
    ),
    "fellows": Term("Σ A_jl · (−d_l / r)", "The neighbors that resemble it are close to the query.", False, fellows),
}


def stack_features(around: Surroundings, terms: Sequence[str], metric: Array | None = None) -> Array:
    """Evaluate terms: φ of shape (B, T, K), in the order of `terms`."""
    xp = namespace(around.distances)
    return xp.stack([TERMS[name].feature(around, metric) for name in terms], axis=1)


def reads_keys(terms: Sequence[str]) -> bool:
    """Say whether any of the terms needs the neighbors' keys."""
    return not {"content", "fellows"}.isdisjoint(terms)
