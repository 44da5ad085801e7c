"""What is to be seen while a run trains: held-out accuracy, and one query whose neighbors come and go."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.bank.exact import search_exact
from attnknn.data import Dataset
from attnknn.data.telling import most_telling
from attnknn.models.embedders import Embedder
from attnknn.training.fast import fast_numbers

STRIPS = 20  # how often, at most, the neighbors of one query are looked up while training
STRIP = 8  # how many of them
FEATURES = 4  # of a table's row, as many as fit on a card
LOOKED_THROUGH = 4000  # entries, at most: what is seen while training must not cost more than training
LARGEST_TILE = 64 * 64 * 3  # bytes; larger images are told by their ids


class Onlooker:
    """Looks at the embedder after every epoch, and every few epochs at one query's neighbors.

    Whoever shows what it saw may have no data and no scikit-learn, so it hands over what to show as well:
    the pixels of images as `tiles`, a few features of rows as `values`, the query's first.
    """

    def __init__(self, dataset: Dataset, parts: dict[str, NDArray[np.intp]], epochs: int) -> None:
        self.dataset, self.parts, self.every = dataset, parts, max(1, epochs // STRIPS)
        self.query = parts["test"][:1]
        self._brightest = max(float(dataset.inputs.max()), 1.0)
        fit = parts["fit"]
        is_table = dataset.inputs.ndim == 2
        self._telling = most_telling(dataset.inputs[fit], dataset.labels[fit])[:FEATURES] if is_table else []

    def __call__(self, embedder: Embedder, epoch: int) -> dict[str, Any]:
        """Return the held-out accuracy and, now and then, the neighbors of one query."""
        held_out, labels = self.parts["held_out"], self.dataset.labels
        _, logits = self._embed(embedder, held_out)
        seen: dict[str, Any] = {"held_out_accuracy": float(np.mean(logits.argmax(axis=1) == labels[held_out]))}
        return seen | self._neighbors(embedder) if epoch % self.every == 0 or epoch == 1 else seen

    def _neighbors(self, embedder: Embedder) -> dict[str, Any]:
        entries = self.parts["fit"][:: -(-len(self.parts["fit"]) // LOOKED_THROUGH)]
        keys, _ = self._embed(embedder, entries)
        query, _ = self._embed(embedder, self.query)
        near = search_exact(keys, query, min(STRIP, len(keys)), self.dataset.ids[entries])
        rows = np.concatenate([self.query, entries[near.entries[0]]])
        ids, classes = self.dataset.ids[rows].tolist(), self.dataset.labels[rows]
        said = {"query": ids[0], "neighbors": ids[1:], "classes": classes.tolist()}
        said |= {"labels": [self.dataset.class_names[c] for c in classes]}
        return said | self._shown(self.dataset.inputs[rows])

    def _embed(self, embedder: Embedder, rows: NDArray[np.intp]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        with fast_numbers(embedder.config, embedder.mean.device):
            return embedder.embed(self.dataset.inputs[rows])

    def _shown(self, inputs: NDArray[Any]) -> dict[str, Any]:
        """Return what to draw of the query and its neighbors, as plain JSON types."""
        if inputs.ndim == 2:
            named = self.dataset.feature_names or [f"feature {f + 1}" for f in range(inputs.shape[1])]
            names = [named[f] for f in self._telling]
            return {"features": names, "values": [[f"{row[f]:.4g}" for f in self._telling] for row in inputs]}
        if inputs[0].size > LARGEST_TILE:
            return {}
        pixels = np.clip(inputs * (255 / self._brightest), 0, 255).astype(np.uint8)
        tiles = [base64.b64encode(image.tobytes()).decode("ascii") for image in pixels]
        return {"tile_shape": list(pixels.shape[1:]), "tiles": tiles}
