"""The numbers of an attention vote as one vector: where they start, what bounds them, and how they get their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnknn.calibration import PLAIN, SINK_START, calibrator_start, coefficient_bounds
from attnknn.models.attention import HEADS, Attention, terms_of
from attnknn.models.terms import TERMS, Surroundings

Bounds = tuple[float | None, float | None]
FREE: Bounds = (None, None)
POSITIVE: Bounds = (0.0, None)
METRIC_RANK = 8
FACTS = 2 * PLAIN  # that a calibrator of votes looks at


class Layout:
    """Where each number of an `Attention` lies in the vector that the optimizer moves, and where it starts.

    Args:
        heads: Names of the H heads.
        around: Queries of the fit, from which a learned metric starts.
        sharpness: θ of the tuned distance vote.
        pull: s of the tuned prototype vote, if class averages sit at the table.
        is_only_softer: Whether the calibrator that is fitted along may only soften.
    """

    def __init__(
        self, heads: Sequence[str], around: Surroundings, sharpness: float, pull: float | None, is_only_softer: bool
    ) -> None:
        self.heads, self.terms = tuple(heads), terms_of(heads)
        self.seen = np.array([[term in HEADS[head].terms for term in self.terms] for head in heads])
        self.added = torch.tensor(self.seen & (np.array(self.terms) != "distance"))
        start = np.where(np.array(self.terms) == "distance", sharpness, 0.05) * self.seen
        lowest = [0.0 if TERMS[term].reads_labels or term in ("distance", "content") else None for term in self.terms]
        of_heads = len(heads)
        parts: list[tuple[str, NDArray[np.float64], Sequence[Bounds]]] = [
            ("coefficients", start[self.seen], [(lowest[t], None) for _, t in np.argwhere(self.seen)]),
            ("sink", np.tile([SINK_START, 0.0, 0.0, 0.0], (of_heads, 1)), [FREE, POSITIVE, POSITIVE, FREE] * of_heads),
        ]
        if pull is not None:
            calibrator = calibrator_start(FACTS).reshape(2, FACTS)
            parts.append(("calibrator", calibrator, coefficient_bounds(FACTS, is_only_softer)))
            parts.append(("seat", np.zeros((of_heads, 2)), [FREE, POSITIVE] * of_heads))
            parts.append(("pull", np.tile([pull, 0.0], (of_heads, 1)), [POSITIVE] * 2 * of_heads))
        if "content" in self.terms:
            metric = first_metric(around)
            parts.append(("metric", metric, [FREE] * metric.size))
        self.shapes = {name: values.shape for name, values, _ in parts}
        self.start = np.concatenate([values.ravel() for _, values, _ in parts])
        self.bounds = [bounds for _, _, of_part in parts for bounds in of_part]

    def unpack(self, vector: Tensor) -> tuple[Attention, Tensor | None]:
        """Give the numbers their names and shapes: those of the attention, and sink and heat of a calibrator."""
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        pieces = dict(zip(self.shapes, torch.split(vector, sizes), strict=True))
        arrays = {name: pieces[name].reshape(shape) for name, shape in self.shapes.items()}
        where = tuple(torch.as_tensor(axis) for axis in np.nonzero(self.seen))
        arrays["coefficients"] = torch.zeros(self.seen.shape, dtype=vector.dtype).index_put(
            where, pieces["coefficients"]
        )
        return Attention.from_arrays(self.heads, self.terms, arrays), arrays.get("calibrator")


def first_metric(around: Surroundings) -> NDArray[np.float64]:
    """Start W at the leading principal directions of (query − neighbor), scaled to unit mean square."""
    if around.queries is None or around.keys is None:
        raise ValueError("the content term needs queries and keys, however: one of them is None")
    moved = (around.queries[:, None, :] - around.keys).reshape(-1, around.keys.shape[-1])[:20_000]
    _, spread, directions = np.linalg.svd(moved - moved.mean(axis=0), full_matrices=False)
    rank = min(METRIC_RANK, len(spread))
    return directions[:rank] / max(float(np.sqrt((moved**2).sum(axis=1).mean())), 1e-6)
