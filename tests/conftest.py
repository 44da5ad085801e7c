"""Tiny worlds that many tests look at: one classifier, trained once in a few seconds, and its checkpoint."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import array_api_strict
import numpy as np
import pytest
import torch

from attnknn.classifier import AttnKNN
from attnknn.config import AttentionConfig, EmbedderConfig, TrainingConfig
from attnknn.data import load_dataset
from attnknn.training.run import fit

LIBRARIES = {"numpy": np.asarray, "torch": torch.asarray, "array_api_strict": array_api_strict.asarray}

QUICK_EMBEDDER = EmbedderConfig("mlp", dimension=8, width=16, epochs=12, batch_size=32, learning_rate=5e-3)
QUICK_ATTENTION = AttentionConfig(("nearest", "trusted", "typical"), k=8, rates=(0.0, 0.4), pair_rates=(0.3,), draws=1)
QUICK = TrainingConfig("iris", seed=0, held_out=0.25, embedder=QUICK_EMBEDDER, attention=QUICK_ATTENTION)
"""A training that takes seconds; everything it shows is real, only small."""

FAMILIAR = replace(QUICK_ATTENTION, heads=("nearest", "familiar"))
"""Heads that read keys and learn a metric."""


@pytest.fixture(params=LIBRARIES)
def asarray(request):
    return LIBRARIES[request.param]


@pytest.fixture(scope="session")
def iris() -> AttnKNN:
    """Flowers in 4 features, 3 classes: 78 entries, two of them duplicates, and 45 test queries."""
    return fit(load_dataset("iris"), QUICK)


@pytest.fixture(scope="session")
def shelf(iris: AttnKNN, tmp_path_factory) -> Path:
    """A folder of checkpoints that holds `iris`; nobody writes to it."""
    root = tmp_path_factory.mktemp("checkpoints")
    iris.save("iris", root)
    return root


@pytest.fixture
def bench(shelf: Path, tmp_path: Path) -> Path:
    """A copy of the shelf, to damage."""
    shutil.copytree(shelf, tmp_path / "checkpoints")
    return tmp_path / "checkpoints"
