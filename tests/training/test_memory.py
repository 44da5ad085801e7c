"""An interrupted training that goes on ends with the weights of one that was not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnknn.config import EmbedderConfig
from attnknn.data import load_dataset
from attnknn.models.embedders import Embedder
from attnknn.training import embedder as training
from attnknn.training.embedder import train_embedder
from tests.conftest import QUICK_EMBEDDER

MLP = replace(QUICK_EMBEDDER, epochs=4)
CNN = EmbedderConfig("cnn", dimension=8, width=4, epochs=3, batch_size=32)
STEPS = {"iris": (MLP, 5), "digits": (CNN, 4)}


class Paused(Exception):
    """Somebody pressed pause."""


def train(name: str, remember: Path | None = None, stop_at: int | None = None, report=training.silent) -> Embedder:
    """Train on few items; `stop_at` interrupts before that batch, counted from one over all epochs of this call."""
    data, (config, _) = load_dataset(name), STEPS[name]
    count = 0

    def pause_point() -> None:
        nonlocal count
        count += 1
        if count == stop_at:
            raise Paused

    rows = slice(120 if name == "digits" else 150)
    return train_embedder(
        data.inputs[rows], data.labels[rows], data.n_classes, config, 0, report, training.blind, remember, pause_point
    )


def same_weights(one: Embedder, two: Embedder) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True))


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("stops", [[1], [7], [6, 2], [11]])
def test_an_interrupted_run_ends_with_the_same_weights_bit_for_bit(name: str, stops: list[int], tmp_path, monkeypatch):
    monkeypatch.setattr(training, "REMEMBER", 0.0)
    whole = train(name)
    for stop_at in stops:
        with pytest.raises(Paused):
            train(name, tmp_path, stop_at)
        torch.rand(3)  # whatever happens in between
    assert same_weights(train(name, tmp_path), whole)


def test_remembering_changes_nothing(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(training, "REMEMBER", 0.0)
    assert same_weights(train("iris", tmp_path), train("iris"))


def test_a_run_that_goes_on_does_not_repeat_whole_epochs(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(training, "REMEMBER", 0.0)
    with pytest.raises(Paused):
        train("iris", tmp_path, stop_at=STEPS["iris"][1] * 2 + 1)
    told = []
    train("iris", tmp_path, report=lambda stage, done, numbers: told.append(numbers["epoch"]))
    assert told == [3, 4]


def test_a_finished_run_is_not_run_again(tmp_path: Path):
    first = train("iris", tmp_path)
    told = []
    assert same_weights(train("iris", tmp_path, report=lambda *facts: told.append(facts)), first)
    assert told == []
    assert [path.name for path in tmp_path.iterdir()] == ["epoch.safetensors"]
