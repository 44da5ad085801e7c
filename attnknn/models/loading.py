"""From the card and the tensors of a checkpoint back to an embedder; torch is imported only then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnknn.config import TrainingConfig
from attnknn.errors import DamagedCheckpoint, MissingLibrary

if TYPE_CHECKING:
    from attnknn.models.embedders import Embedder


def build_embedder(name: str, card: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]) -> Embedder:
    """Build the embedder that a card describes, with its weights.

    Raises:
        MissingLibrary: torch is not installed.
        DamagedCheckpoint: The weights do not fit the embedder that the card describes.
    """
    try:
        import torch

        from attnknn.models.embedders import Embedder
    except ImportError as error:
        raise MissingLibrary("torch", "Embedding new inputs") from error
    facts, config = card["dataset"], TrainingConfig.from_dict(card["config"])
    embedder = Embedder(config.embedder, tuple(facts["input_shape"]), len(facts["class_names"]))
    try:
        embedder.load_state_dict({key: torch.as_tensor(np.array(array)) for key, array in weights.items()})
    except RuntimeError as error:
        expected = "The weights must fit the embedder that the card describes."
        raise DamagedCheckpoint(name, expected, "Their names or shapes differ.") from error
    return embedder.eval()
