"""Weights travel without arrays: the bank that is made of them is the one that they were measured with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from attnknn import projection
from attnknn.checkpoints import open_checkpoint
from attnknn.classifier import load
from attnknn.errors import CheckpointError, DamagedCheckpoint, NotPrepared
from attnknn.prepared import is_prepared, prepared_root
from attnknn.training import prepare
from attnknn.training.prepare import prepare_checkpoint


@pytest.fixture
def bare(bench: Path, tmp_path: Path, monkeypatch) -> Path:
    """A folder with `iris` as it travels: card and weights; PCA draws the map, since UMAP compiles for a minute."""
    monkeypatch.setenv("ATTNKNN_PREPARED", str(tmp_path / "prepared"))
    monkeypatch.setattr(prepare, "METHOD", "pca")
    shutil.rmtree(bench / "iris" / "bundle")
    change_card(bench, lambda card: card.update(files={"weights.safetensors": card["files"]["weights.safetensors"]}))
    return bench


def change_card(root: Path, change) -> None:
    path = root / "iris" / "card.json"
    card = json.loads(path.read_text())
    change(card)
    path.write_text(json.dumps(card))


def test_weights_alone_are_not_shown_before_they_are_prepared(bare):
    with pytest.raises(NotPrepared, match="python -m attnknn prepare iris"):
        load("iris", bare)


def test_a_prepared_checkpoint_answers_as_the_one_that_was_trained(bare, iris):
    said: list[str] = []
    card = prepare_checkpoint("iris", bare, lambda stage, done, numbers: said.append(stage))
    assert said == ["Reading the data", "Embedding the bank", "Drawing the map", "Saving"]
    prepared = load("iris", bare)
    assert prepared.name == "iris"
    for name, array in iris.bundle.arrays.items():
        np.testing.assert_array_equal(prepared.bundle.arrays[name], array, err_msg=name)
    np.testing.assert_array_equal(prepared.predict_items(k=5).weights, iris.predict_items(k=5).weights)
    positions = prepared.bundle.arrays["entry_positions"]
    expected, _ = projection.fit_projection(iris.entries.keys, iris.queries.keys, "pca")
    np.testing.assert_array_equal(positions, expected)
    assert card["projection"]["trustworthiness"] == pytest.approx(
        projection.trustworthiness(iris.entries.keys, positions), abs=1e-4
    )


def test_what_was_interrupted_goes_on_with_the_bank_it_filled(bare):
    class Enough(Exception):
        pass

    def stop_at_the_map(stage: str, done: float, numbers: dict) -> None:
        if stage == "Drawing the map":
            raise Enough

    with pytest.raises(Enough):
        prepare_checkpoint("iris", bare, stop_at_the_map)
    assert "entry_positions" not in load("iris", bare).bundle.arrays, "the page can show it already"
    said: list[str] = []
    prepare_checkpoint("iris", bare, lambda stage, done, numbers: said.append(stage))
    assert "Embedding the bank" not in said
    assert "entry_positions" in load("iris", bare).bundle.arrays


def test_other_weights_under_the_same_name_are_prepared_again(bare, iris):
    prepare_checkpoint("iris", bare)
    iris.save("iris", bare)
    changed = open_checkpoint("iris", bare)
    assert is_prepared(changed), "the same weights"
    weights = {name: array + 1 for name, array in changed.weights().items()}
    from attnknn.checkpoints import save_checkpoint

    assert not is_prepared(save_checkpoint("iris", changed.card, weights, {}, bare))


def test_other_data_than_it_was_trained_on_is_refused(bare):
    change_card(bare, lambda card: card["dataset"].update(hash="0" * 64))
    with pytest.raises(CheckpointError, match="must hold what it was trained on: Iris"):
        prepare_checkpoint("iris", bare)


def test_a_prepared_bank_is_checked_like_any_other(bare):
    prepare_checkpoint("iris", bare)
    folder = prepared_root(open_checkpoint("iris", bare)) / "iris" / "bundle"
    (folder / "entry_labels.npy").write_bytes(b"nonsense")
    with pytest.raises(DamagedCheckpoint, match="entry_labels"):
        load("iris", bare)
