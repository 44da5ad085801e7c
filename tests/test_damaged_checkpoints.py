"""Damaged checkpoints: whatever was done to a folder, nothing in it is believed, run or read into memory first."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from attnknn.checkpoints import SCHEMA, open_checkpoint
from attnknn.classifier import load
from attnknn.errors import AttnKNNError, DamagedCheckpoint, SchemaMismatch, UnknownCheckpoint
from tests.damage import WEIGHTS, edit_card, npy, rewrite

KEYS = "bundle/entry_keys.npy"
RESTORE = 'Restore the folder of checkpoint "iris" from its source, or train it again with the command in its card.'


def test_an_unknown_name_is_told_which_there_are(bench: Path, tmp_path: Path):
    with pytest.raises(UnknownCheckpoint) as caught:
        load("irsi", bench)
    assert str(caught.value).endswith('There is no checkpoint "irsi". Did you mean "iris"? Choose from: iris.')
    with pytest.raises(UnknownCheckpoint, match=r"Train one: python -m attnknn train digits\."):
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
        (True, "Train"),
        (float(SCHEMA), "Train"),
    ],
)
def test_another_schema_is_told_who_has_to_move(schema: object, remedy: str, bench: Path):
    edit_card(bench, lambda card: card.update(schema=schema))
    with pytest.raises(SchemaMismatch, match=f"reads checkpoint cards of schema {SCHEMA}. .*{remedy}"):
        load("iris", bench)


NO_CARDS = [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"null", b'"card"', b"{}", b'{"schema": 3}']
NO_CARDS += [b'{"schema": 3, "files": []}', b'{"schema": 3, "files": {}}', b" " * (4 * 2**20 + 1)]


@pytest.mark.parametrize("content", NO_CARDS)
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
    with pytest.raises(DamagedCheckpoint, match="A card may only list files of its own folder"):
        load("iris", bench)


@pytest.mark.parametrize("name", ["bundle", KEYS, WEIGHTS])
@pytest.mark.parametrize("is_outside", [True, False])
def test_links_are_not_followed(name: str, is_outside: bool, bench: Path, tmp_path: Path):
    """Out of the folder never; within it no file is a link either."""
    linked = bench / "iris" / name
    moved = tmp_path / "elsewhere" if is_outside else bench / "iris" / "moved"
    linked.rename(moved)
    linked.symlink_to(moved)
    if is_outside or name != "bundle":
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


def npy_header(shape: str) -> bytes:
    """An array file that promises a shape and holds nothing."""
    said = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + said.encode().ljust(117) + b"\n"


NO_ARRAYS = [b"", b"no array", zipped(), npy_header("(2,)")[:10], npy_header("{" * 40)]
NO_ARRAYS += [npy_header("(1000000000000,)"), npy_header("(-1,)")]


@pytest.mark.parametrize("content", NO_ARRAYS)
def test_a_file_that_is_no_array_is_refused_before_it_takes_memory(content: bytes, bench: Path):
    rewrite(bench, KEYS, content)
    with pytest.raises(DamagedCheckpoint, match=f"{KEYS} must be one array of numbers"):
        load("iris", bench)


@pytest.mark.parametrize("content", [b"", b"no tensors", b"\xff" * 100, (2).to_bytes(8, "little") + b"[]"])
def test_weights_that_are_no_tensors_are_refused(content: bytes, bench: Path):
    rewrite(bench, WEIGHTS, content)
    with pytest.raises(DamagedCheckpoint, match=f"{WEIGHTS} must hold tensors"):
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
        lambda card: card["attention"].update(terms=["distance"]),
        lambda card: card["attention"].update(terms=3),
    ],
)
def test_a_card_that_describes_something_else_is_refused(change: Callable[[dict], object], bench: Path):
    edit_card(bench, lambda card: (change(card), card)[1])
    with pytest.raises(DamagedCheckpoint):
        load("iris", bench)


def test_every_refusal_is_a_visitors_situation(bench: Path):
    """What `load` raises is a sentence for a visitor; only mistakes of our own are not."""
    (bench / "iris" / "bundle" / "entry_ids.npy").unlink()
    with pytest.raises(AttnKNNError) as caught:
        load("iris", bench)
    assert str(caught.value).endswith(RESTORE)
