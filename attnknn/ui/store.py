"""What the web process keeps: trained classifiers and derived tables, keyed by ids and never by arrays."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import streamlit as st
from threadpoolctl import threadpool_limits

from attnknn.bank.walk import NoiseWalk
from attnknn.checkpoints import checkpoint_names, root_from_environment
from attnknn.classifier import AttnKNN, load
from attnknn.config import LabelNoise
from attnknn.evaluation.finders import FINDERS
from attnknn.ui import live, present


def names() -> tuple[str, ...]:
    """List the checkpoints that can be chosen."""
    return checkpoint_names(root_from_environment())


def classifier(name: str) -> AttnKNN:
    """Return a loaded classifier, shared by all visitors and read-only.

    A checkpoint that was trained again under the same name is loaded again: its card's time is part of the key.
    """
    card = root_from_environment() / name / "card.json"
    stamp = card.stat().st_mtime_ns if card.is_file() else 0
    return _load(name, str(root_from_environment()), stamp)


@st.cache_resource(max_entries=8, show_spinner=False)
def _load(name: str, root: str, stamp: int) -> AttnKNN:
    threadpool_limits(limits=1)  # visitors share the cores; threads of one sum would wait for those of another
    return load(name, Path(root))


@st.cache_resource(max_entries=16, show_spinner=False)
def noise_walk(_trained: AttnKNN, digest: str, seed: int) -> NoiseWalk:
    """Return a bank at every stop of the noise slider; `digest` names the checkpoint."""
    return live.walk(_trained, seed)


def known(trained: AttnKNN) -> present.Known:
    """Return what is known of a checkpoint, whatever is asked of it."""
    return _know(trained, digest(trained))


@st.cache_resource(max_entries=8, show_spinner=False)
def _know(_trained: AttnKNN, digest: str) -> present.Known:
    return present.know(_trained, digest)


@st.cache_data(max_entries=256, show_spinner=False)
def found_queries(name: str, digest: str, k: int, noise: LabelNoise, temperature: float) -> dict[str, tuple[str, ...]]:
    """Return ids of test queries worth looking at, by finder, in the order of each."""
    prediction = classifier(name).predict_items(None, k, noise, temperature)
    ids = prediction.queries.ids
    return {finder: tuple(str(item) for item in ids[find(prediction)]) for finder, find in FINDERS.items()}


def digest(trained: AttnKNN) -> str:
    """Name a checkpoint's weights and arrays together, for cache keys and provenance."""
    hashes = sorted(facts["sha256"] for facts in trained.card["files"].values())
    return sha256("".join(hashes).encode()).hexdigest()[:12]
