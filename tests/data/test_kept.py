"""What was decoded once is read back as it was, or decoded again."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from attnknn.data import Dataset, load_dataset
from attnknn.data.kept import Decoded, decode_once
from attnknn.data.sources import Layout, Source, find_source
from tests.data.worlds import draw, write_idx


class Decoder:
    """Reads the file's bytes as the label of each of its images, and counts how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, source: Source) -> Decoded:
        self.times += 1
        labels = np.frombuffer(source.files[0].read_bytes(), dtype=np.uint8).astype(np.int64)
        return Decoded(draw(len(labels), 4, 4), labels, 2, ("a", "b"))


@pytest.fixture
def file(machine) -> Path:
    (machine / "data").mkdir()
    (machine / "data" / "toy.bin").write_bytes(bytes([0, 1, 0]))
    return machine / "data" / "toy.bin"


def found() -> Source:
    source = find_source([Layout("toy", "toys", ("toy.bin",))])
    assert source is not None
    return source


def kept(machine: Path) -> list[Path]:
    return sorted((machine / "cache" / "attnknn" / "data" / "arrays").iterdir())


def test_the_second_time_nothing_is_decoded_and_all_is_the_same(machine, file):
    decode = Decoder()
    one, two = (decode_once("toy", found(), decode) for _ in range(2))
    assert decode.times == 1
    for decoded in (one, two):
        assert (decoded.inputs == draw(3, 4, 4)).all()
        assert (decoded.labels.tolist(), decoded.labels.dtype) == ([0, 1, 0], np.int64)
        assert (decoded.n_train, decoded.class_names) == (2, ("a", "b"))
        assert decoded.is_test().tolist() == [False, False, True]
        with pytest.raises(ValueError, match="read-only"):
            decoded.inputs[0, 0, 0] = 1


def test_the_cache_says_what_it_holds_and_holds_no_pickle(machine, file):
    decode_once("toy", found(), Decoder())
    (folder,) = kept(machine)
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    facts = file.stat()
    assert meta["source"] == [[str(file), facts.st_size, facts.st_mtime_ns]]
    for name in ("inputs", "labels"):
        array = np.load(folder / f"{name}.npy", allow_pickle=False)
        assert meta["arrays"][name]["sha256"] == sha256(array.tobytes()).hexdigest()
        assert meta["arrays"][name]["shape"] == list(array.shape)


def longer(file: Path) -> None:
    file.write_bytes(bytes([1, 1, 1, 0]))


def later(file: Path) -> None:
    os.utime(file, ns=(1, 1))


def moved(file: Path) -> None:
    target = file.rename(file.with_name("other.bin"))
    file.symlink_to(target)


@pytest.mark.parametrize("change", [longer, later, moved])
def test_another_source_is_decoded_anew_and_takes_the_place_of_the_old(machine, file, change):
    decode = Decoder()
    decode_once("toy", found(), decode)
    before = kept(machine)
    change(file)
    assert decode_once("toy", found(), decode).labels.tolist() == [*file.read_bytes()]
    assert decode.times == 2
    assert len(kept(machine)) == 1
    assert kept(machine) != before


def cut(folder: Path) -> None:
    path = folder / "inputs.npy"
    path.write_bytes(path.read_bytes()[:-1])


def flip(folder: Path) -> None:
    content = bytearray((folder / "inputs.npy").read_bytes())
    content[-1] ^= 1
    (folder / "inputs.npy").write_bytes(content)


def reshape(folder: Path) -> None:
    np.save(folder / "inputs.npy", draw(3, 4, 4).reshape(3, 16))


def pickled(folder: Path) -> None:
    np.save(folder / "labels.npy", np.array([0, 1, None]), allow_pickle=True)


def spoil_meta(folder: Path) -> None:
    (folder / "meta.json").write_text("[]", encoding="utf-8")


def lose_meta(folder: Path) -> None:
    (folder / "meta.json").unlink()


@pytest.mark.parametrize("damage", [cut, flip, reshape, pickled, spoil_meta, lose_meta])
def test_a_damaged_cache_is_decoded_again_and_repaired(machine, file, damage):
    decode = Decoder()
    decode_once("toy", found(), decode)
    damage(kept(machine)[0])
    for _ in range(2):
        again = decode_once("toy", found(), decode)
        assert (again.inputs == draw(3, 4, 4)).all()
        assert again.labels.tolist() == [0, 1, 0]
    assert decode.times == 2


def test_where_nothing_can_be_kept_the_arrays_come_all_the_same(machine, file):
    (machine / "cache").write_text("a file where the folder should be", encoding="utf-8")
    decode = Decoder()
    assert [len(decode_once("toy", found(), decode).inputs) for _ in range(2)] == [3, 3]
    assert decode.times == 2


def test_what_fails_to_decode_leaves_nothing_behind(machine, file):
    with pytest.raises(ZeroDivisionError):
        decode_once("toy", found(), lambda source: 1 / 0)
    assert not (machine / "cache").exists()


def test_images_from_the_cache_are_mapped_and_not_copied(machine, resize):
    resize("mnist", n_items=60)
    write_idx(machine / "data" / "MNIST" / "raw")
    inputs = load_dataset("mnist").inputs
    assert isinstance(inputs.base, np.memmap)
    shutil.rmtree(machine / "cache")  # what is mapped stays readable
    assert inputs.sum() > 0


def test_a_view_that_somebody_else_can_write_through_is_copied():
    values = np.zeros((2, 2))
    view = values.view()
    view.setflags(write=False)
    parts = {"labels": np.array([0, 0]), "ids": np.array(["a", "b"]), "splits": np.array(["train", "test"])}
    about = {"name": "t", "title": "T", "kind": "points", "class_names": ("a",), "feature_names": ()}
    dataset = Dataset(inputs=view, groups=np.array([0, 1]), licence="none", source="here", **parts, **about)
    values[:] = 7
    assert (dataset.inputs == 0).all()
