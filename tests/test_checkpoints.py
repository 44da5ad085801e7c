"""Checkpoints: what is saved is what is loaded."""

from __future__ import annotations

import json
import os
import shutil
import stat
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from attnknn.checkpoints import MAPPED_FROM, ROOT, SCHEMA, checkpoint_names, open_checkpoint, save_checkpoint
from attnknn.classifier import AttnKNN, load
from attnknn.config import LabelNoise
from attnknn.errors import UnknownCheckpoint
from attnknn.prepared import has_bundle

KEYS = "bundle/entry_keys.npy"


def test_what_is_saved_is_what_is_loaded(tmp_path: Path):
    weights = {
        "one": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "count": np.array(7),
        "empty": np.zeros((0, 3)),
        "odd.name": np.array([1.5]),
    }
    arrays = {"big": np.arange(MAPPED_FROM // 4, dtype=np.float32), "ids": np.array([b"a/1", "ß/2".encode()])}
    arrays |= {"none": np.zeros((0, 4), np.int32), "scalar": np.array(2.5), "turned": np.arange(6.0).reshape(2, 3).T}
    saved = save_checkpoint("some-name_1", {"title": "Straße"}, weights, arrays, tmp_path)
    again = open_checkpoint("some-name_1", tmp_path)
    assert again.card == saved.card
    assert again.card["title"] == "Straße"
    for expected, found in ((weights, again.weights()), (arrays, again.arrays())):
        assert expected.keys() == found.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
    assert again.weights("odd.").keys() == {"name"}


def test_arrays_are_read_only_and_large_ones_are_mapped(tmp_path: Path):
    arrays = {"large": np.zeros(MAPPED_FROM, np.uint8), "small": np.zeros(4)}
    found = save_checkpoint("x", {}, {"w": np.zeros(1)}, arrays, tmp_path).arrays()
    assert isinstance(found["large"], np.memmap)
    assert not isinstance(found["small"], np.memmap)
    for array in found.values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_the_trained_arrays_come_back_equal(iris: AttnKNN, shelf: Path):
    checkpoint = open_checkpoint("iris", shelf)
    for name, array in checkpoint.arrays().items():
        np.testing.assert_array_equal(array, iris.bundle.arrays[name])
    weights = checkpoint.weights()
    for name, array in iris.fitted.to_arrays().items():
        np.testing.assert_array_equal(weights[name], array)
    for name, array in checkpoint.weights("embedder.").items():
        np.testing.assert_array_equal(array, iris._weights[name])


def test_the_card_lists_every_file_with_its_hash(shelf: Path):
    card = json.loads((shelf / "iris" / "card.json").read_text("utf-8"))
    found = {path.relative_to(shelf / "iris").as_posix() for path in (shelf / "iris").rglob("*") if path.is_file()}
    assert {*card["files"]} == found - {"card.json"}
    for file, facts in card["files"].items():
        content = (shelf / "iris" / file).read_bytes()
        assert facts["bytes"] == len(content)
        assert facts["sha256"] == sha256(content).hexdigest()
    assert card["schema"] == SCHEMA
    assert next(iter(card)) == "schema"
    assert card["files"][KEYS]["shape"] == list(np.load(shelf / "iris" / KEYS).shape)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_whoever_may_read_the_card_may_read_the_rest(umask: int, mode: int, tmp_path: Path):
    before = os.umask(umask)
    try:
        save_checkpoint("x", {}, {"w": np.ones(1)}, {"one": np.ones(1)}, tmp_path)
    finally:
        os.umask(before)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [mode] * 3


def test_saving_again_replaces_the_folder_and_leaves_nothing_behind(iris: AttnKNN, tmp_path: Path):
    for _ in range(2):
        iris.save("mine", tmp_path)
    save_checkpoint("mine", {}, {"w": np.ones(1)}, {"only": np.ones(1)}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert [path.name for path in (tmp_path / "mine" / "bundle").iterdir()] == ["only.npy"]


def test_a_copy_goes_by_its_own_name(shelf: Path, bench: Path, tmp_path: Path):
    """Whether it was saved under another name, or its folder was copied by hand."""
    load("iris", shelf).save("copy", tmp_path)
    shutil.copytree(bench / "iris", bench / "by-hand")
    for name, root in (("copy", tmp_path), ("by-hand", bench)):
        assert load(name, root).name == name
        assert open_checkpoint(name, root).card["name"] == name


def test_names_are_listed_digits_first(tmp_path: Path):
    for name in ("wine", "digits", "a", "9x"):
        save_checkpoint(name, {}, {"w": np.ones(1)}, {}, tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / ".draft").mkdir()
    (tmp_path / ".draft" / "card.json").write_text("{}")
    assert checkpoint_names(tmp_path) == ("digits", "9x", "a", "wine")
    assert checkpoint_names(tmp_path / "nowhere") == ()


def test_every_shipped_checkpoint_opens_and_answers():
    for name in checkpoint_names(ROOT):
        if not has_bundle(open_checkpoint(name)):
            assert open_checkpoint(name).weights("calibration."), "its votes are fitted; only the bank is missing"
            continue
        shipped = load(name)
        prediction = shipped.predict_items(shipped.queries.ids[:3].tolist(), noise=LabelNoise("symmetric", 0.3))
        assert prediction.ballot.calibrated["attention"].shape == (3, len(shipped.class_names))


@pytest.mark.parametrize("name", ["", "../x", "a/b", "Iris", ".hidden", "x" * 65, "a b", "ä", "iris\n"])
def test_a_name_that_is_no_folder_name_is_neither_written_nor_looked_for(name: str, bench: Path):
    with pytest.raises(ValueError, match="name must match"):
        save_checkpoint(name, {}, {}, {}, bench / "iris")
    with pytest.raises(UnknownCheckpoint):
        open_checkpoint(name, bench)
    assert not (bench / "x").exists()


@pytest.mark.parametrize("name", ["../x", "A", "entry.keys", ""])
def test_an_array_needs_a_plain_name(name: str, tmp_path: Path):
    with pytest.raises(ValueError, match="an array's name must match"):
        save_checkpoint("x", {}, {"w": np.ones(1)}, {name: np.ones(1)}, tmp_path)
    assert checkpoint_names(tmp_path) == ()


def test_objects_are_not_saved(tmp_path: Path):
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        save_checkpoint("x", {}, {"w": np.ones(1)}, {"objects": np.array([{}])}, tmp_path)
    assert checkpoint_names(tmp_path) == ()
