"""Views of a query: what augmentation made of training images, at the time of asking; each finds its own neighbors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.bundle import Queries
from attnknn.classifier import AttnKNN
from attnknn.config import EmbedderConfig


def make_views(images: NDArray[Any], config: EmbedderConfig) -> Iterator[NDArray[Any]]:
    """Show images as the embedder saw them in training: unmoved, moved up, down, left, right, and all that mirrored.

    Args:
        images: Shape (B, H, W) or (B, H, W, 3).
        config: Moves are of `shift` pixels, and mirrored ones come where training mirrored. Borders are filled as
            in training. Rows of a table have no such views.

    Yields:
        Arrays of the shape of `images`, the first of them equal to it.
    """
    if config.kind == "mlp":
        yield images
        return
    shift, (height, width), is_large = config.shift, images.shape[1:3], config.kind == "fast_cnn"
    margins = [(0, 0), (shift, shift), (shift, shift)] + [(0, 0)] * (images.ndim - 3)
    padded = np.pad(images, margins, "reflect") if is_large else np.pad(images, margins, constant_values=images.min())
    for step in (1, -1) if is_large and config.flip else (1,):
        for down, right in dict.fromkeys([(0, 0), (-shift, 0), (shift, 0), (0, -shift), (0, shift)]):
            top, left = shift + down, shift + right
            yield padded[:, top : top + height, left : left + width][:, :, ::step]


def ask_views(classifier: AttnKNN, images: NDArray[Any], queries: Queries) -> list[Queries]:
    """Embed every view of B queries, and find the neighbors of each.

    Args:
        classifier: Whose embedder and bank; needs torch and FAISS if there is more than one view.
        images: The inputs of the queries, raw, shape (B, ...).
        queries: As they are: the first view.

    Returns:
        The same queries once for each view.
    """
    asked = [queries]
    for view in list(make_views(images, classifier.config.embedder))[1:]:
        keys, logits = classifier.embedder.embed(view)
        pool = classifier.bank.search(keys, queries.pool.k, exclude_groups=queries.groups)
        asked.append(replace(queries, keys=keys, logits=logits, pool=pool))
    return asked
