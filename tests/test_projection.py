"""Positions on a map: what they keep, and how far they can be trusted."""

import numpy as np
import pytest

from attnknn.errors import SettingError
from attnknn.projection import fit_projection, trustworthiness


@pytest.fixture(scope="module")
def keys() -> np.ndarray:
    """Three bundles of unit vectors in five dimensions, most of whose variance lies in two."""
    random = np.random.default_rng(0)
    centers = np.eye(5)[[0, 1, 2]].repeat(40, axis=0)
    raw = centers + 0.1 * random.normal(size=centers.shape)
    return (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype(np.float32)


def test_principal_components_are_those_of_the_covariance(keys):
    positions, others = fit_projection(keys, keys[:7], "pca")
    centered = keys - keys.mean(axis=0)
    axes = np.linalg.svd(centered.astype(np.float64), full_matrices=False)[2][:2]
    slow = centered @ axes.T
    slow /= np.ptp(slow, axis=0).max() / 2
    for axis in range(2):
        spread = positions[:, axis] - positions[:, axis].mean()
        sign = np.sign(spread @ slow[:, axis])
        np.testing.assert_allclose(spread, sign * (slow[:, axis] - slow[:, axis].mean()), atol=1e-5)
    np.testing.assert_allclose(others, positions[:7], atol=1e-5)


def test_a_map_fills_its_square(keys):
    positions, _ = fit_projection(keys, keys[:1], "pca")
    assert positions.dtype == np.float32
    assert np.ptp(positions, axis=0).max() == pytest.approx(2, abs=1e-5)
    assert np.abs(positions).max() <= 1 + 1e-5


def test_trustworthiness_tells_a_map_from_chance(keys):
    positions, _ = fit_projection(keys, keys[:1], "pca")
    shuffled = np.random.default_rng(1).permutation(positions)
    assert trustworthiness(keys, positions) > 0.85
    assert trustworthiness(keys, shuffled) < 0.65
    directions = positions / np.linalg.norm(positions, axis=1, keepdims=True)
    assert trustworthiness(directions, directions, seed=3) == pytest.approx(1)


def test_an_unknown_method_is_a_sentence(keys):
    with pytest.raises(SettingError, match="method must be umap or pca"):
        fit_projection(keys, keys, "tsne")  # type: ignore[arg-type]
