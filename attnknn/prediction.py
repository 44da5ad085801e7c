"""Prediction: an answer that keeps its evidence, and hands it out as tidy frames or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnknn.ballot import Ballot
from attnknn.bank.entries import Entries, Observation
from attnknn.bundle import Queries
from attnknn.config import LabelNoise
from attnknn.metrics import effective_neighbors
from attnknn.models.attention import Attention, explain_scores

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Prediction:
    """What was decided for B queries, and everything it was decided from.

    Attributes:
        queries: Ids, embeddings, pools, and true labels where they are known.
        seen: The bank under the label noise in force.
        ballot: Every vote, before and after calibration, and every head.
        attention: The fitted numbers of the attention vote.
        class_names: C names.
        k: How many neighbors voted.
        noise: The label noise in force.
        temperature: What divided the scores.
    """

    queries: Queries
    seen: Observation
    ballot: Ballot
    attention: Attention
    class_names: tuple[str, ...]
    k: int
    noise: LabelNoise
    temperature: float

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def entries(self) -> Entries:
        """The bank."""
        return self.seen.entries

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the H heads."""
        return self.attention.heads

    @property
    def neighbors(self) -> NDArray[np.integer]:
        """Rows of the bank, nearest first, shape (B, K)."""
        return self.queries.pool.first(self.k).entries

    @property
    def weights(self) -> NDArray[np.float64]:
        """Each head's weight on each neighbor, shape (B, H, K); with `sink` they sum to one."""
        return self.ballot.heads.weights

    @property
    def sink(self) -> NDArray[np.float64]:
        """Each head's mass on none of the neighbors, shape (B, H)."""
        return self.ballot.heads.sink

    @cached_property
    def terms(self) -> dict[str, NDArray[np.float64]]:
        """What each term added to each score, by name, shape (B, H, K); over terms they sum to the score."""
        parts = explain_scores(self.ballot.around, self.attention)
        return {name: parts[:, :, place, :] for place, name in enumerate(self.attention.terms)}

    def predicted(self, vote: str = "attention") -> NDArray[np.intp]:
        """Return the winning class of each query, shape (B,); the lowest class number wins a tie."""
        return np.argmax(self.ballot.votes[vote].probabilities, axis=1)

    def effective_neighbors(self, vote: str) -> NDArray[np.float64] | None:
        """Return exp(entropy of the shares, sink left out) of a vote, shape (B,); None where no neighbor is asked."""
        cast = self.ballot.votes[vote]
        if cast.weights is None:
            return None
        shares = cast.weights if cast.averages is None else np.concatenate([cast.weights, cast.averages], axis=1)
        return effective_neighbors(shares / shares.sum(axis=1, keepdims=True))

    def neighbors_frame(self) -> pd.DataFrame:
        """One row per query, neighbor and head: id, rank, distance, labels, weight, and each term."""
        import pandas as pd

        n_queries, n_heads, k = self.weights.shape
        names = np.array(self.class_names)

        def per_neighbor(values: NDArray[Any]) -> NDArray[Any]:
            return np.broadcast_to(values[:, None, :], (n_queries, n_heads, k)).ravel()

        columns: dict[str, Any] = {
            "query": np.repeat(self.queries.ids, n_heads * k),
            "head": np.tile(np.repeat(self.heads, k), n_queries),
            "neighbor": per_neighbor(self.entries.ids[self.neighbors]),
            "rank": np.tile(np.arange(1, k + 1), n_queries * n_heads),
            "distance": per_neighbor(self.ballot.around.distances),
            "clean_label": per_neighbor(names[self.entries.labels[self.neighbors]]),
            "observed_label": per_neighbor(names[self.ballot.around.labels]),
            "is_flipped": per_neighbor(self.seen.is_flipped[self.neighbors]),
            "weight": self.weights.ravel(),
            "score": self.ballot.heads.scores.ravel(),
        }
        return pd.DataFrame(columns | {f"term_{name}": part.ravel() for name, part in self.terms.items()})

    def votes_frame(self) -> pd.DataFrame:
        """One row per query, vote and class: probability, calibrated probability, and who won."""
        import pandas as pd

        n_queries, n_classes = len(self), len(self.class_names)
        frames = [
            pd.DataFrame(
                {
                    "query": np.repeat(self.queries.ids, n_classes),
                    "vote": name,
                    "class": np.tile(self.class_names, n_queries),
                    "probability": cast.probabilities.ravel(),
                    "calibrated": self.ballot.calibrated[name].ravel(),
                    "predicted": np.repeat(np.array(self.class_names)[self.predicted(name)], n_classes),
                }
            )
            for name, cast in self.ballot.votes.items()
        ]
        return pd.concat(frames, ignore_index=True)

    def to_dict(self, row: int = 0) -> dict[str, Any]:
        """Describe one query in plain JSON types: its neighbors, heads, terms and votes."""
        labels = self.queries.labels
        return {
            "query": str(self.queries.ids[row]),
            "label": None if labels is None else self.class_names[labels[row]],
            "k": self.k,
            "noise_rate": self.noise.rate,
            "noise_kind": self.noise.kind,
            "seed": self.noise.seed,
            "temperature": self.temperature,
            "heads": list(self.heads),
            "sink": self.sink[row].tolist(),
            "neighbors": [self._neighbor(row, place) for place in range(self.k)],
            "votes": {name: self._vote(row, name) for name in self.ballot.votes},
        }

    def _neighbor(self, row: int, place: int) -> dict[str, Any]:
        entry = self.neighbors[row, place]
        weights = self.weights[row, :, place]
        return {
            "id": str(self.entries.ids[entry]),
            "rank": place + 1,
            "distance": float(self.ballot.around.distances[row, place]),
            "clean_label": self.class_names[self.entries.labels[entry]],
            "observed_label": self.class_names[self.ballot.around.labels[row, place]],
            "is_flipped": bool(self.seen.is_flipped[entry]),
            "weights": weights.tolist(),
            "share": float(weights.mean()),
            "terms": {name: part[row, :, place].tolist() for name, part in self.terms.items()},
            "scores": self.ballot.heads.scores[row, :, place].tolist(),
        }

    def _vote(self, row: int, name: str) -> dict[str, Any]:
        effective = self.effective_neighbors(name)
        return {
            "probabilities": self._by_class(self.ballot.votes[name].probabilities[row]),
            "calibrated": self._by_class(self.ballot.calibrated[name][row]),
            "predicted": self.class_names[self.predicted(name)[row]],
            "effective_neighbors": None if effective is None else float(effective[row]),
        }

    def _by_class(self, numbers: NDArray[np.float64]) -> Mapping[str, float]:
        return dict(zip(self.class_names, numbers.tolist(), strict=True))
