"""A plain torch implementation of the original's evaluation, written from its description: the rival of revote.

Queries come in batches. The attention has separate projections of queries and keys in four heads, a temperature
each, and a bias that a small network makes of the squared distance; its heads are averaged after the softmax, and
the weights are multiplied with one-hot labels. The uniform and the distance vote are added up in Python, neighbor
by neighbor. The metrics come at the end. It gets the neighbors as they were found and the labels as they are
observed; it has no trust, no prototypes, no sink and no calibration to compute. Its weights are untrained: they
cost the same.

`batched=True` is the same without the loops over queries: what torch can do where the original did not ask for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from torch import Tensor, nn
from torch.nn import functional as F

BATCH, HEADS, HIDDEN, BINS = 256, 4, 32, 15
TINY = 1e-8


class NeighborAttention(nn.Module):
    """Weights over neighbors from queries, keys and distances."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(dimension, dimension), nn.Linear(dimension, dimension)
        self.bias = nn.Sequential(nn.Linear(1, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HEADS))
        self.temperature = nn.Parameter(torch.full((HEADS,), 0.5))

    def forward(self, queries: Tensor, keys: Tensor, squared: Tensor) -> Tensor:
        """From (B, D), (B, K, D) and (B, K) to weights (B, K)."""
        b, k, dimension = keys.shape
        asked = self.query(queries).view(b, HEADS, -1)
        offered = self.key(keys).view(b, k, HEADS, -1)
        scores = torch.einsum("bhd,bkhd->bhk", asked, offered) / (dimension // HEADS) ** 0.5
        scores = scores / self.temperature.clamp(0.05, 2.0)[:, None]
        scores = scores + self.bias(squared[..., None]).transpose(1, 2)
        return scores.softmax(dim=-1).mean(dim=1)


@dataclass
class Evaluation:
    """Everything that does not change with the noise, as tensors."""

    keys: Tensor
    queries: Tensor
    neighbors: Tensor
    squared: Tensor
    truth: NDArray[np.int32]
    n_classes: int

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        self.attention = NeighborAttention(self.keys.shape[1]).eval()

    @torch.no_grad()
    def run(self, labels: NDArray[np.int32], batched: bool = False) -> dict[str, dict[str, float]]:
        """Vote with observed labels, and measure the three votes."""
        observed = torch.from_numpy(labels.astype(np.int64))
        said: dict[str, list[NDArray[np.float32]]] = {"uniform": [], "distance": [], "attention": []}
        for start in range(0, len(self.queries), BATCH):
            rows = slice(start, start + BATCH)
            near, squared = self.neighbors[rows], self.squared[rows]
            theirs = observed[near]
            one_hot = F.one_hot(theirs, self.n_classes).float()
            weights = self.attention(self.queries[rows], self.keys[near], squared)
            closeness = torch.softmax(-squared, dim=-1)
            said["attention"].append(torch.einsum("bk,bkc->bc", weights, one_hot).clamp(min=TINY).numpy())
            if batched:
                said["uniform"].append(one_hot.mean(dim=1).numpy())
                said["distance"].append(torch.einsum("bk,bkc->bc", closeness, one_hot).numpy())
            else:
                said["uniform"].append(self._add_up(theirs, torch.full_like(closeness, 1 / near.shape[1])))
                said["distance"].append(self._add_up(theirs, closeness))
        return {vote: self._measure(np.concatenate(parts)) for vote, parts in said.items()}

    def _add_up(self, labels: Tensor, weights: Tensor) -> NDArray[np.float32]:
        """Give each neighbor's weight to its class, one by one."""
        p = np.zeros((len(labels), self.n_classes), np.float32)
        for query, (their_labels, their_weights) in enumerate(zip(labels.numpy(), weights.numpy(), strict=True)):
            for label, weight in zip(their_labels, their_weights, strict=True):
                p[query, label] += weight
        return p

    def _measure(self, p: NDArray[np.float32]) -> dict[str, float]:
        """Accuracy, macro-F1, NLL, and the gap between confidence and accuracy in 15 bins."""
        predicted, confidence = p.argmax(axis=1), p.max(axis=1)
        right = predicted == self.truth
        gap = 0.0
        for low in np.arange(BINS) / BINS:
            inside = (confidence > low) & (confidence <= low + 1 / BINS)
            if inside.any():
                gap += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
        return {
            "accuracy": float(right.mean()),
            "macro_f1": float(f1_score(self.truth, predicted, average="macro")),
            "nll": float(-np.log(np.maximum(p[np.arange(len(p)), self.truth], TINY)).mean()),
            "ece": float(gap),
        }
