"""Neighbors: what every search returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnknn.errors import SettingError


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The K nearest entries of each of B queries, nearest first; ties go to the smaller id.

    Attributes:
        entries: (B, K) rows of the memory bank.
        distances: (B, K) Euclidean distances between unit vectors, from 0 (equal) to 2 (opposite),
            in float64, rounded to six digits.
    """

    entries: np.ndarray
    distances: np.ndarray

    def __post_init__(self) -> None:
        if self.entries.ndim != 2 or self.entries.shape != self.distances.shape:
            raise ValueError(
                f"entries and distances must both be (B, K), however: {self.entries.shape}, {self.distances.shape}"
            )

    @property
    def n_queries(self) -> int:
        """B, the number of queries."""
        return len(self.entries)

    @property
    def k(self) -> int:
        """K, the number of neighbors of each query."""
        return int(self.entries.shape[1])

    @property
    def similarities(self) -> np.ndarray:
        """Cosines of shape (B, K): s = 1 − d² / 2."""
        return np.asarray(1 - self.distances**2 / 2)

    def first(self, k: int) -> Neighbors:
        """Keep the k nearest of each query.

        Args:
            k: Neighbors to keep, at most as many as were retrieved.

        Returns:
            The same neighbors that a search for k would have found.

        Raises:
            SettingError: If k is not between 1 and K.

        Example:
            >>> found = Neighbors(np.array([[4, 2, 7]]), np.array([[0.1, 0.2, 0.3]]))
            >>> found.first(2).entries.tolist()
            [[4, 2]]
        """
        check_k(k, self.k, f"Only {self.k} neighbors were retrieved; ask for fewer, or search again.")
        return Neighbors(self.entries[:, :k], self.distances[:, :k])


def check_k(k: int, largest: int, remedy: str) -> None:
    """Accept a whole number of neighbors from 1 to `largest`.

    Raises:
        SettingError: If k is anything else.
    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= largest:
        raise SettingError("k", k, f"a whole number between 1 and {largest}", remedy)
