"""Checkpoints: what is saved is what is loaded, and nothing damaged is believed."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attnknn.checkpoints import MAPPED_FROM, ROOT, SCHEMA, checkpoint_names, open_checkpoint, save_checkpoint
from attnknn.classifier import AttnKNN, load
from attnknn.config import LabelNoise
from attnknn.errors import AttnKNNError, DamagedCheckpoint, SchemaMismatch, UnknownCheckpoint

WEIGHTS = "weights.safetensors"
KEYS = "bundle/entry_keys.npy"
RESTORE = 'Restore the folder of checkpoint "iris" from its source, or train it again with the command in its card.'


def edit_card(root: Path, change: Callable[[dict], object], name: str = "iris") -> None:
    path = root / name / "card.json"
    card = json.loads(path.read_text("utf-8"))
    changed = change(card)
    path.write_text(json.dumps(card if changed is None else changed), "utf-8")


def rewrite(root: Path, file: str, content: bytes) -> None:
    """Change a file and make the card agree with it: no hash can protect from its own author."""
    (root / "iris" / file).write_bytes(content)
    facts = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
    edit_card(root, lambda card: card["files"].update({file: facts}))


def npy(array: np.ndarray, allow_pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


# ---- Round trip


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


# ---- What is refused


def test_an_unknown_name_is_told_which_there_are(bench: Path, tmp_path: Path):
    with pytest.raises(UnknownCheckpoint) as caught:
        load("irsi", bench)
    assert str(caught.value).endswith('There is no checkpoint "irsi". Did you mean "iris"? Choose from: iris.')
    with pytest.raises(UnknownCheckpoint, match="Train one: python -m attnknn train digits."):
        load("iris", tmp_path / "nowhere")


@pytest.mark.parametrize("file", [WEIGHTS, KEYS])
def test_a_file_cut_short_is_refused_by_its_size(file: str, bench: Path):
    path = bench / "iris" / file
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DamagedCheckpoint, match=f"{file} must have .* bytes.*; it was cut short or changed. Restore"):
        load("iris", bench)


@pytest.mark.parametrize("file", [WEIGHTS, KEYS])
def test_one_changed_byte_is_refused_by_its_hash(file: str, bench: Path):
    path = bench / "iris" / file
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedCheckpoint) as caught:
        load("iris", bench)
    assert str(caught.value) == f"{file} must have the hash in its card. Its content has changed. {RESTORE}"


@pytest.mark.parametrize("file", [WEIGHTS, KEYS])
def test_a_missing_file_is_refused_by_name(file: str, bench: Path):
    (bench / "iris" / file).unlink()
    with pytest.raises(DamagedCheckpoint, match=f"{file} must have .* bytes, as its card says. It is missing."):
        load("iris", bench)


@pytest.mark.parametrize(
    ("schema", "remedy"),
    [
        (SCHEMA + 1, "Update Attn-KNN Explorer."),
        (0, "Train the checkpoint again"),
        ("banana", "Train"),
        (None, "Train"),
    ],
)
def test_another_schema_is_told_who_has_to_move(schema: object, remedy: str, bench: Path):
    edit_card(bench, lambda card: card.update(schema=schema))
    with pytest.raises(SchemaMismatch, match=f"reads checkpoint cards of schema {SCHEMA}. .*{remedy}"):
        load("iris", bench)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"null", b'"card"', b"{}", b'{"schema": 1}']
    + [b'{"schema": 1, "files": []}', b'{"schema": 1, "files": {}}', b" " * (4 * 2**20 + 1)],
)
def test_a_card_that_is_no_card_is_refused(content: bytes, bench: Path):
    (bench / "iris" / "card.json").write_bytes(content)
    with pytest.raises(DamagedCheckpoint, match='The card of checkpoint "iris" must be a JSON document') as caught:
        open_checkpoint("iris", bench)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "facts", [None, [], "abc", 3, {}, {"bytes": 8}, {"sha256": "0"}, {"bytes": "8", "sha256": "0"}]
)
@pytest.mark.parametrize("file", [WEIGHTS, KEYS])
def test_malformed_facts_of_a_file_are_refused(file: str, facts: object, bench: Path):
    edit_card(bench, lambda card: card["files"].update({file: facts}))
    with pytest.raises(DamagedCheckpoint, match=f"The card must say bytes and sha256 of {file}."):
        load("iris", bench)


@pytest.mark.parametrize(
    "file", ["../secret.npy", "/etc/passwd", "bundle/../../secret.npy", "secret.npy", "bundle/x/y.npy", "bundle/\0.npy"]
)
def test_a_file_outside_the_folder_is_not_even_read(file: str, bench: Path):
    content = npy(np.ones(2))
    (bench / "secret.npy").write_bytes(content)
    facts = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
    edit_card(bench, lambda card: card["files"].update({file: facts}))
    with pytest.raises(DamagedCheckpoint, match="A card may only list files of its own folder. It lists"):
        load("iris", bench)


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_link_out_of_the_folder_is_not_followed(is_folder: bool, bench: Path, tmp_path: Path):
    linked = bench / "iris" / ("bundle" if is_folder else KEYS)
    moved = tmp_path / "elsewhere"
    linked.rename(moved)
    linked.symlink_to(moved)
    with pytest.raises(DamagedCheckpoint, match="files of its own folder"):
        load("iris", bench)


class Bomb:
    """Unpickling this would leave a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return (Path.touch, (self.trace,))


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("entry_keys.npy", npy(np.ones(3)))
    return buffer.getvalue()


def test_pickle_is_never_read(bench: Path, tmp_path: Path):
    trace = tmp_path / "it ran"
    for content in (npy(np.array([Bomb(trace)]), allow_pickle=True), pickle.dumps(Bomb(trace))):
        rewrite(bench, KEYS, content)
        with pytest.raises(DamagedCheckpoint, match=f"{KEYS} must be one array of numbers, without pickle."):
            load("iris", bench)
    assert not trace.exists()


HEADER = b"\x93NUMPY\x01\x00\x76\x00"


@pytest.mark.parametrize(
    "content",
    [b"", b"no array", zipped(), HEADER, HEADER + b"{" * 118]
    + [HEADER + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(117) + b"\n"]
    + [HEADER + b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }".ljust(117) + b"\n"],
)
def test_a_file_that_is_no_array_is_refused_before_it_takes_memory(content: bytes, bench: Path):
    rewrite(bench, KEYS, content)
    with pytest.raises(DamagedCheckpoint, match=f"{KEYS} must be one array of numbers"):
        load("iris", bench)


@pytest.mark.parametrize("content", [b"", b"no tensors", b"\xff" * 100, (2).to_bytes(8, "little") + b"[]"])
def test_weights_that_are_no_tensors_are_refused(content: bytes, bench: Path):
    rewrite(bench, WEIGHTS, content)
    with pytest.raises(DamagedCheckpoint, match="weights.safetensors must hold tensors"):
        load("iris", bench)


# ---- Card, weights and bundle that do not fit together


@pytest.mark.parametrize(
    "change",
    [
        lambda card: card.pop("attention"),
        lambda card: card.pop("config"),
        lambda card: card.pop("dataset"),
        lambda card: card.update(dataset="iris"),
        lambda card: card["dataset"].update(class_names=None),
        lambda card: card["dataset"].update(class_names=["one", "two"]),
        lambda card: card["config"].pop("attention"),
        lambda card: card["config"].update(attention=3),
        lambda card: card["config"]["embedder"].update(colour="red"),
        lambda card: card["attention"].update(heads=["nearest", "trusted"]),
        lambda card: card["attention"].update(heads=["nearest", "trusted", "wise"]),
        lambda card: card["attention"].update(terms=["distance"]),
        lambda card: card["attention"].update(terms=3),
    ],
)
def test_a_card_that_describes_something_else_is_refused(change: Callable[[dict], object], bench: Path):
    edit_card(bench, lambda card: (change(card), card)[1])
    with pytest.raises(DamagedCheckpoint):
        load("iris", bench)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("sharpness", None),
        ("sharpness", np.ones(3)),
        ("attention.coefficients", None),
        ("attention.coefficients", np.ones((1, 2))),
        ("attention_averages.seat", np.ones(9)),
        ("calibration.uniform", None),
        ("calibration.uniform", np.ones(3)),
        ("calibration.uniform", np.full(5, np.nan)),
        ("calibration.baseline", np.array([1.0, 0, 0, 0, -1])),
    ],
)
def test_weights_that_describe_something_else_are_refused(name: str, array: np.ndarray | None, bench: Path):
    path = bench / "iris" / WEIGHTS
    tensors = load_file(path)
    tensors.pop(name)
    save_file(tensors if array is None else tensors | {name: array}, path)
    rewrite(bench, WEIGHTS, path.read_bytes())
    with pytest.raises(DamagedCheckpoint, match="must describe one classifier"):
        load("iris", bench)


def test_every_refusal_is_a_visitors_situation(bench: Path):
    """What `load` raises is a sentence for a visitor; only mistakes of our own are not."""
    (bench / "iris" / "bundle" / "entry_ids.npy").unlink()
    with pytest.raises(AttnKNNError) as caught:
        load("iris", bench)
    assert str(caught.value).endswith(RESTORE)
