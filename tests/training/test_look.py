"""What is to be seen while a run trains: enough to draw it where there is neither data nor scikit-learn."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from attnknn.config import EmbedderConfig
from attnknn.data import load_dataset
from attnknn.models.embedders import Embedder
from attnknn.training.look import STRIP, STRIPS, Onlooker


def look(name: str, epochs: int = 40):
    data = load_dataset(name)
    train = data.where("train")
    parts = {"fit": train[20:], "held_out": train[:20], "test": data.where("test")}
    kind = "cnn" if data.kind == "image" else "mlp"
    embedder = Embedder(EmbedderConfig(kind, dimension=8, width=8), data.inputs.shape[1:], data.n_classes)
    return data, embedder, Onlooker(data, parts, epochs)


@pytest.mark.parametrize("name", ["digits", "wine", "moons"])
def test_what_is_seen_is_plain_and_names_the_query_and_its_nearest_entries(name: str):
    data, embedder, onlooker = look(name)
    seen = onlooker(embedder, 1)
    assert json.loads(json.dumps(seen)) == seen
    assert seen["query"] == f"{name}/test/0"
    assert len(seen["neighbors"]) == STRIP
    rows = [data.index_of(item) for item in [seen["query"], *seen["neighbors"]]]
    assert seen["classes"] == data.labels[rows].tolist()
    assert seen["labels"] == [data.class_names[data.labels[row]] for row in rows]
    assert 0 <= seen["held_out_accuracy"] <= 1


def test_pixels_of_images_come_along():
    data, embedder, onlooker = look("digits")
    seen = onlooker(embedder, 1)
    assert seen["tile_shape"] == [8, 8]
    for item, tile in zip([seen["query"], *seen["neighbors"]], seen["tiles"], strict=True):
        pixels = np.frombuffer(base64.b64decode(tile), np.uint8).reshape(8, 8)
        np.testing.assert_allclose(pixels / 255, data.inputs[data.index_of(item)] / data.inputs.max(), atol=1 / 255)


def test_a_few_features_of_rows_come_along():
    data, embedder, onlooker = look("wine")
    seen = onlooker(embedder, 1)
    columns = [data.feature_names.index(name) for name in seen["features"]]
    assert len(columns) == 4
    for item, values in zip([seen["query"], *seen["neighbors"]], seen["values"], strict=True):
        assert values == [f"{data.inputs[data.index_of(item)][column]:.4g}" for column in columns]


def test_neighbors_are_looked_up_now_and_then_only():
    _, embedder, onlooker = look("iris", epochs=100)
    seen = [epoch for epoch in range(1, 101) if "neighbors" in onlooker(embedder, epoch)]
    assert seen[0] == 1
    assert len(seen) <= STRIPS + 1
    assert seen[-1] == 100
