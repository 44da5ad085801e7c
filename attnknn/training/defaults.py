"""What suits a kind of data; needs no torch, so that the page can show it in a form."""

from __future__ import annotations

from attnknn.config import EmbedderConfig, TrainingConfig
from attnknn.data import Dataset, DatasetDescription

TABLE = EmbedderConfig("mlp", dimension=16, width=64, epochs=100, batch_size=32, learning_rate=2e-3, dropout=0.2)


def default_config(dataset: Dataset | DatasetDescription, seed: int = 0) -> TrainingConfig:
    """Choose an embedder and a schedule that suit images, or tables and points."""
    if dataset.kind == "image":
        return TrainingConfig(dataset.name, seed)
    return TrainingConfig(dataset.name, seed, embedder=TABLE)
