"""Images come out of every format as they went in, and nothing that is damaged comes out at all."""

from __future__ import annotations

import pickle
import zipfile
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from attnknn.data import load_dataset
from attnknn.data.idx import read_idx
from attnknn.data.pictures import CIFAR10_CLASSES
from attnknn.errors import DamagedData, MissingLibrary
from tests.data.worlds import (
    batches,
    draw,
    expect_batches,
    idx_bytes,
    idx_files,
    image_bytes,
    write_batches,
    write_idx,
    write_zip,
    zip_members,
)

FIRST = "train/airplane/0000.jpg"


@pytest.fixture
def zip_path(machine, resize):
    resize("cifar10", n_items=30)
    return machine / "data" / "cifar10-images.zip"


# IDX


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("name", "folder"), [("mnist", "MNIST"), ("fashion_mnist", "FashionMNIST")])
def test_a_set_like_mnist_keeps_its_order_and_its_split(machine, resize, name, folder, packed):
    resize(name, n_items=60)
    write_idx(machine / "data" / folder / "raw", packed)
    dataset = load_dataset(name)
    assert (dataset.inputs == np.concatenate([draw(40, 28, 28, seed=0), draw(20, 28, 28, seed=1)])).all()
    assert dataset.labels.tolist() == [*range(10)] * 6
    assert dataset.ids[[0, 39, 40, 59]].tolist() == [
        f"{name}/{i}" for i in ("train/0", "train/39", "test/0", "test/19")
    ]
    assert (dataset.inputs.dtype, dataset.kind) == (np.uint8, "image")


def test_idx_is_what_torchvision_reads(tmp_path):
    from torchvision.datasets.mnist import read_image_file, read_label_file

    raw = write_idx(tmp_path)
    images, labels = raw / "train-images-idx3-ubyte", raw / "train-labels-idx1-ubyte"
    assert (read_idx(images, 3) == read_image_file(str(images)).numpy()).all()
    assert (read_idx(labels, 1) == read_label_file(str(labels)).numpy()).all()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "It begins with nothing"),
        (idx_bytes(draw(5, 28, 28))[:-1], "3920 bytes must follow its header. There are 3919"),
        (idx_bytes(draw(5, 28, 28)) + b"!", "There are more"),
        (idx_bytes(draw(5)), "an IDX array of bytes with 3 axes"),
        (bytes([0, 0, 13, 3]) + bytes(12), "It begins with 00 00 0d 03"),
        (bytes([0, 0, 8, 3]) + b"\xff" * 12, "It announces"),
    ],
)
def test_a_file_that_is_not_idx_is_refused(tmp_path, content, sentence):
    path = tmp_path / "images"
    path.write_bytes(content)
    with pytest.raises(DamagedData, match=sentence):
        read_idx(path, 3)


@pytest.mark.parametrize(
    "spoil", [lambda packed: packed[:-40], lambda packed: b"no" + packed, lambda packed: packed[:30]]
)
def test_a_packed_file_that_is_cut_or_foreign_is_refused(machine, spoil):
    raw = write_idx(machine / "data" / "MNIST" / "raw", packed=True)
    path = raw / "train-images-idx3-ubyte.gz"
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(DamagedData, match="Its gzip packing must be whole"):
        load_dataset("mnist")


@pytest.mark.parametrize(
    ("file", "array"),
    [
        ("train-labels-idx1-ubyte", np.zeros(39, dtype=np.uint8)),
        ("t10k-labels-idx1-ubyte", np.full(20, 10, dtype=np.uint8)),
        ("t10k-images-idx3-ubyte", draw(20, 28, 27)),
    ],
)
def test_images_and_labels_that_do_not_fit_are_refused(machine, file, array):
    raw = write_idx(machine / "data" / "MNIST" / "raw")
    (raw / file).write_bytes(idx_bytes(array))
    with pytest.raises(DamagedData, match="28 × 28 pixels and a label below 10"):
        load_dataset("mnist")


def test_a_set_with_too_few_items_is_refused(machine):
    write_idx(machine / "data" / "MNIST" / "raw")
    with pytest.raises(DamagedData, match=r"must have 70000 images of 10 classes\. There are 60 of 10"):
        load_dataset("mnist")


# A zip of class folders


def test_a_zip_is_sorted_by_split_class_and_file_and_its_title_says_jpeg(zip_path):
    members = zip_members()
    write_zip(zip_path, members)
    dataset = load_dataset("cifar10")
    expected = [f"train/{name}/{i:04}.jpg" for name in CIFAR10_CLASSES for i in range(2)]
    expected += [f"test/{name}/0000.jpg" for name in CIFAR10_CLASSES]
    for row, name in enumerate(expected):
        assert (dataset.inputs[row] == np.asarray(Image.open(BytesIO(members[name])))).all()
        assert dataset.class_names[dataset.labels[row]] == name.split("/")[1]
    assert dataset.ids[[0, 19, 20, 29]].tolist() == [
        f"cifar10/{i}" for i in ("train/0", "train/19", "test/0", "test/9")
    ]
    assert dataset.title == "CIFAR-10 (JPEG)"
    assert dataset.inputs.shape == (30, 32, 32, 3)


def test_a_zip_may_hold_png_gray_images_and_folders(zip_path):
    members = zip_members()
    del members[FIRST]
    members |= {"train/": b"", "train/airplane/0000.png": image_bytes(draw(32, 32), "PNG")}
    write_zip(zip_path, members)
    assert (load_dataset("cifar10").inputs[0] == draw(32, 32)[..., None]).all()


def bomb() -> bytes:
    """A PNG of 20,000 × 20,000 white pixels in 50 kB."""
    content = BytesIO()
    Image.new("1", (20_000, 20_000), 1).save(content, "PNG")
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("../train/airplane/0000.jpg", b"", "must read like"),
        ("/train/airplane/0000.jpg", b"", "must read like"),
        ("train/airplane/../0000.jpg", b"", "must read like"),
        ("train/spaceship/0000.jpg", b"", "with a known class. One reads 'train/spaceship/0000.jpg'"),
        ("train/airplane/0000.gif", b"", "must read like"),
        (FIRST, b"", "must be a whole JPEG or PNG. 'train/airplane/0000.jpg' is not"),
        (FIRST, image_bytes(draw(32, 32, 3))[:-300], "must be a whole JPEG or PNG"),
        (FIRST, image_bytes(draw(32, 32, 3), "GIF"), "must be a whole JPEG or PNG"),
        (FIRST, image_bytes(draw(16, 32, 3)), "must have 32 × 32 pixels. 'train/airplane/0000.jpg' has 32 × 16"),
        (FIRST, bomb(), "must "),
        (FIRST, bytes((1 << 20) + 1), "must take at most 1048576 bytes"),
    ],
)
def test_a_zip_with_something_strange_in_it_is_refused(zip_path, name, content, sentence):
    write_zip(zip_path, zip_members() | {name: content})
    with pytest.raises(DamagedData, match=sentence):
        load_dataset("cifar10")


def test_a_zip_that_is_cut_empty_doubled_or_changed_is_refused(zip_path):
    whole = write_zip(zip_path, zip_members()).read_bytes()
    place = whole.index(b"JFIF") + 400
    for content in (whole[:-100], b"", whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :]):
        zip_path.write_bytes(content)
        with pytest.raises(DamagedData, match="The zip must be whole"):
            load_dataset("cifar10")
    write_zip(zip_path, {})
    with pytest.raises(DamagedData, match="It holds 0 files"):
        load_dataset("cifar10")
    write_zip(zip_path, zip_members())
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(zip_path, "a") as archive:
        archive.writestr(FIRST, b"")
    with pytest.raises(DamagedData, match="Some are there twice"):
        load_dataset("cifar10")


# CIFAR's batches


def test_batches_keep_the_order_of_their_files(machine, resize, monkeypatch):
    resize("cifar10", n_items=24)
    expect_batches(monkeypatch, batches())
    write_batches(machine / "data" / "cifar-10-batches-py")
    dataset = load_dataset("cifar10")
    planes = np.concatenate([draw(4, 3072, seed=seed) for seed in range(6)]).reshape(-1, 3, 32, 32)
    assert (dataset.inputs == planes.transpose(0, 2, 3, 1)).all()
    assert dataset.labels.tolist() == [i % 10 for i in range(24)]
    assert dataset.ids[[0, 19, 20]].tolist() == ["cifar10/train/0", "cifar10/train/19", "cifar10/test/0"]
    assert (dataset.title, dataset.class_names) == ("CIFAR-10", CIFAR10_CLASSES)


class Trap:
    """Does something when it is read from a pickle."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_a_batch_with_another_hash_is_never_opened(machine, monkeypatch):
    expect_batches(monkeypatch, batches())
    folder = write_batches(machine / "data" / "cifar-10-batches-py")
    (folder / "test_batch").write_bytes(pickle.dumps(Trap(str(machine / "sprung"))))
    with pytest.raises(DamagedData, match="must have the hashes that torchvision holds"):
        load_dataset("cifar10")
    assert not (machine / "sprung").exists()


def test_without_torchvision_batches_say_what_to_install_and_idx_still_loads(machine, resize, monkeypatch):
    resize("mnist", n_items=60)
    monkeypatch.setitem(__import__("sys").modules, "torchvision", None)
    write_batches(machine / "data" / "cifar-10-batches-py")
    write_idx(machine / "data" / "MNIST" / "raw")
    with pytest.raises(MissingLibrary, match="needs torchvision"):
        load_dataset("cifar10")
    assert len(load_dataset("mnist").inputs) == len(idx_files()) * 15
