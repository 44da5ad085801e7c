"""Keys → two dimensions, for a map. Positions on a map are not distances; how far to trust it is measured.

positions = UMAP(keys)   neighbors stay neighbors as well as two dimensions allow
positions = PCA(keys)    the two directions of largest variance
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attnknn.errors import MissingLibrary, SettingError

Method = Literal["umap", "pca"]
NEIGHBORS = 15
SAMPLE = 2000  # rows on which trustworthiness is measured; its cost grows with their square


def fit_projection(
    keys: NDArray[np.float32], more: NDArray[np.float32], method: Method = "umap", seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Lay keys out in two dimensions, and place more of them among the first.

    Args:
        keys: (N, D) unit keys that make the map.
        more: (Q, D) unit keys that are placed on it and change nothing.
        method: `umap` with 15 neighbors and cosine distance, or `pca`.
        seed: Of UMAP's random start; PCA has none.

    Returns:
        Positions of shape (N, 2) and (Q, 2), scaled so that the keys' larger side spans −1 to 1.

    Raises:
        SettingError: There is no such method.
        MissingLibrary: Its library is not installed.

    References:
        McInnes et al. (2018), https://arxiv.org/abs/1802.03426
    """
    if method not in ("umap", "pca"):
        raise SettingError("method", method, "umap or pca", "Choose one of them.")
    try:
        if method == "umap":
            import umap

            n_neighbors = min(NEIGHBORS, len(keys) - 1)
            reducer = umap.UMAP(n_neighbors=n_neighbors, metric="cosine", random_state=seed, n_jobs=1)
        else:
            from sklearn.decomposition import PCA

            reducer = PCA(n_components=2, svd_solver="full")
    except ImportError as error:
        raise MissingLibrary(str(error.name).split(".")[0], "Drawing a map") from error
    first, others = reducer.fit_transform(keys), reducer.transform(more)
    center = (first.min(axis=0) + first.max(axis=0)) / 2
    half = max(float(np.ptp(first, axis=0).max()) / 2, 1e-12)
    return ((first - center) / half).astype(np.float32), ((others - center) / half).astype(np.float32)


def trustworthiness(keys: NDArray[np.float32], positions: NDArray[np.float32], seed: int = 0) -> float:
    """Measure how far neighbors on the map are neighbors in truth: 1 is perfect, 0.5 is chance.

    T = 1 − 2 / (n k (2n − 3k − 1)) Σ_i Σ_(j among the k nearest of i on the map) max(0, rank(i, j) − k)

    Args:
        keys: (N, D) unit keys.
        positions: (N, 2) positions of the same rows.
        seed: Of the sample of at most 2,000 rows on which it is measured.

    References:
        Venna & Kaski (2001), https://doi.org/10.1007/3-540-44668-0_68
    """
    from sklearn.manifold import trustworthiness as measure

    rows = np.random.default_rng(seed).permutation(len(keys))[:SAMPLE]
    k = max(1, min(NEIGHBORS, len(rows) // 2 - 1))
    return float(measure(keys[rows], positions[rows], n_neighbors=k, metric="cosine"))
