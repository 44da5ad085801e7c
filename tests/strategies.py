"""Hypothesis strategies for what votes look at, and small classifiers that were never trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from attnknn.ballot import FittedVotes
from attnknn.bank import entry_neighborhoods, search_exact
from attnknn.bundle import Bundle
from attnknn.calibration import Calibrator
from attnknn.classifier import AttnKNN
from attnknn.config import AttentionConfig, EmbedderConfig, LabelNoise, TrainingConfig
from attnknn.models.attention import HEADS, Attention, terms_of
from attnknn.models.terms import Surroundings
from attnknn.votes import COMPARED

DIMENSION = 3
NO_SINK = (-1e4, 0.0, 0.0, 0.0)
"""Coefficients of a sink that takes exactly nothing."""

law = settings(max_examples=30, deadline=None)
"""How often a law of the votes is tried."""


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def directions(rng: np.random.Generator, shape: tuple[int, ...], on_lattice: bool) -> np.ndarray:
    """Unit vectors; on a lattice few are different, so that distances tie and are often zero."""
    if not on_lattice:
        return unit(rng.normal(size=(*shape, DIMENSION)))
    return unit(rng.integers(0, 2, (*shape, DIMENSION)) + np.array([1.0, 0.0, 0.0]))


@st.composite
def surroundings(draw, k: int | None = None, n_classes: int | None = None) -> Surroundings:
    """A few queries with their neighbors; distances are those of the keys."""
    n_queries, k = draw(st.integers(1, 4)), k or draw(st.integers(1, 8))
    n_classes, on_lattice = n_classes or draw(st.integers(2, 5)), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    queries, keys = directions(rng, (n_queries,), on_lattice), directions(rng, (n_queries, k), on_lattice)
    distances = np.linalg.norm(queries[:, None] - keys, axis=-1)
    order = np.argsort(distances, axis=1, kind="stable")
    prior = rng.dirichlet(np.ones(n_classes), n_queries)
    prior[:, -1] = 0 if draw(st.booleans()) else prior[:, -1]
    return Surroundings(
        distances=np.take_along_axis(distances, order, axis=1),
        labels=rng.integers(0, n_classes, (n_queries, k)),
        trust=rng.uniform(-3.7, 3.7, (n_queries, k)),
        contrast=rng.uniform(-2, 2, (n_queries, k)),
        average_distances=rng.uniform(0, 2, (n_queries, n_classes)),
        prior=prior / prior.sum(axis=1, keepdims=True),
        queries=queries,
        keys=np.take_along_axis(keys, order[:, :, None], axis=1),
        dissent=rng.random(n_queries),
    )


@st.composite
def attentions(draw, has_averages: bool | None = None, has_sink: bool | None = None) -> Attention:
    """Some of the heads with arbitrary numbers, also ones that no fit would give."""
    heads = draw(st.lists(st.sampled_from(sorted(HEADS)), min_size=1, unique=True))
    has_averages = draw(st.booleans()) if has_averages is None else has_averages
    has_sink = draw(st.booleans()) if has_sink is None else has_sink
    return some_attention(np.random.default_rng(draw(st.integers(0, 2**32))), heads, has_averages, has_sink)


def some_attention(
    rng: np.random.Generator, heads: list[str] | tuple[str, ...], has_averages: bool = False, has_sink: bool = True
) -> Attention:
    terms = terms_of(heads)
    seen = np.array([[term in HEADS[head].terms for term in terms] for head in heads])
    return Attention(
        tuple(heads),
        terms,
        seen * rng.uniform(-3, 6, seen.shape),
        rng.uniform(-2, 2, (len(heads), 4)) if has_sink else np.tile(NO_SINK, (len(heads), 1)),
        seat=rng.uniform(-2, 2, (len(heads), 2)) if has_averages else None,
        pull=rng.uniform(0, 5, (len(heads), 2)) if has_averages else None,
        metric=rng.normal(size=(2, DIMENSION)) if "content" in terms else None,
    )


temperatures = st.sampled_from([0.05, 0.5, 1.0, 3.0])
noises = st.builds(
    LabelNoise, st.sampled_from(["symmetric", "pair", "matrix"]), st.floats(0, 0.9), st.integers(0, 1000)
)


def convert(thing: Any, asarray: Callable[[np.ndarray], Any]) -> Any:
    """The same dataclass with every array in another library."""
    found = {field.name: getattr(thing, field.name) for field in fields(thing)}
    return replace(thing, **{name: asarray(v) for name, v in found.items() if isinstance(v, np.ndarray)})


def some_votes(seed: int = 0, heads: tuple[str, ...] = tuple(HEADS), has_sink: bool = True) -> FittedVotes:
    rng = np.random.default_rng(seed)
    return FittedVotes(
        3.5,
        9.0,
        some_attention(rng, heads, has_averages=False, has_sink=has_sink),
        some_attention(rng, heads, has_averages=True, has_sink=has_sink),
        {vote: Calibrator(rng.uniform(-2, 1, 8), rng.uniform(-0.5, 0.5, 8)) for vote in COMPARED},
    )


def lattice_classifier(
    seed: int = 0, order: np.ndarray | None = None, fitted: FittedVotes | None = None, pool: int = 20, k: int = 7
) -> AttnKNN:
    """A bank of 40 entries full of ties and duplicates, laid out in any order, with 12 queries."""
    rng = np.random.default_rng(seed)
    n, n_classes = 40, 3
    keys, ids = directions(rng, (n,), True).astype(np.float32), rng.permutation([f"toy/train/{i}" for i in range(n)])
    keys[n // 2 :] = directions(rng, (n - n // 2,), False)
    labels = rng.integers(0, n_classes, n).astype(np.int32)
    groups = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)
    logits = rng.normal(size=(n, n_classes)).astype(np.float32)
    queries = np.concatenate([directions(rng, (6,), True), directions(rng, (6,), False)]).astype(np.float32)
    order = np.arange(n) if order is None else order
    keys, ids, labels, groups, logits = keys[order], ids[order], labels[order], groups[order], logits[order]
    found = search_exact(keys, queries, pool, ids)
    arrays = {
        "entry_ids": np.char.encode(ids, "utf-8"),
        "entry_keys": keys,
        "entry_labels": labels,
        "entry_groups": groups,
        "entry_neighborhoods": entry_neighborhoods(keys, ids, groups, 24).astype(np.int32),
        "entry_logits": logits,
        "entry_inputs": keys,
        "query_ids": np.array([f"toy/test/{i}".encode() for i in range(len(queries))]),
        "query_keys": queries,
        "query_labels": rng.integers(0, n_classes, len(queries)).astype(np.int32),
        "query_neighbors": found.entries.astype(np.int32),
        "query_distances": found.distances.astype(np.float32),
        "query_logits": rng.normal(size=(len(queries), n_classes)).astype(np.float32),
        "query_inputs": queries,
        "class_confusion": np.array([[0, 0.7, 0.3], [0.5, 0, 0.5], [1, 0, 0]], np.float32),
    }
    names = ("ash", "birch", "cedar")
    config = TrainingConfig("toy", embedder=EmbedderConfig(dimension=DIMENSION), attention=AttentionConfig(k=k))
    card = {"name": "toy", "config": config.to_dict(), "dataset": {"class_names": list(names)}}
    return AttnKNN(Bundle(arrays, names), fitted or some_votes(seed), card, {})


def draw_labels(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a label for each row of class probabilities."""
    return (rng.random((len(truth), 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
