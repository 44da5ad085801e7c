"""Attention over nearest neighbors, and the evidence behind every answer.

    dataset → embedder → memory bank → retrieval → attention → vote → metrics → figure → page

A query is embedded, its k nearest entries are retrieved from a memory bank of labelled items, several
attention heads give each neighbor a weight, and the weighted labels vote. `Prediction` keeps all of it.

    query      the item being classified            head       one complete learned vote
    entry      one labelled item of the bank         weight     a neighbor's share of a vote
    neighbor   an entry retrieved for a query        sink       "none of these": mass no neighbor gets
    score      the sum of terms before the softmax   trust      do an entry's neighbors confirm its label?

Importing this package imports neither torch nor faiss; they come with the first call that needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnknn.bank import MemoryBank, Neighbors
    from attnknn.checkpoints import checkpoint_names
    from attnknn.classifier import AttnKNN, load
    from attnknn.config import AttentionConfig, EmbedderConfig, LabelNoise, TrainingConfig
    from attnknn.data import Dataset, dataset_names, load_dataset
    from attnknn.errors import AttnKNNError
    from attnknn.prediction import Prediction
    from attnknn.training.run import fit

__version__ = "0.1.0"

_HOMES = {
    "AttentionConfig": "attnknn.config",
    "AttnKNN": "attnknn.classifier",
    "AttnKNNError": "attnknn.errors",
    "Dataset": "attnknn.data",
    "EmbedderConfig": "attnknn.config",
    "LabelNoise": "attnknn.config",
    "MemoryBank": "attnknn.bank",
    "Neighbors": "attnknn.bank",
    "Prediction": "attnknn.prediction",
    "TrainingConfig": "attnknn.config",
    "checkpoint_names": "attnknn.checkpoints",
    "dataset_names": "attnknn.data",
    "fit": "attnknn.training.run",
    "load": "attnknn.classifier",
    "load_dataset": "attnknn.data",
}

__all__ = [
    "AttentionConfig",
    "AttnKNN",
    "AttnKNNError",
    "Dataset",
    "EmbedderConfig",
    "LabelNoise",
    "MemoryBank",
    "Neighbors",
    "Prediction",
    "TrainingConfig",
    "checkpoint_names",
    "dataset_names",
    "fit",
    "load",
    "load_dataset",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its home on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'attnknn' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
