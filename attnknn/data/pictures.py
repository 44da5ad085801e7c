"""Small images in their ten thousands, which do not come with the product.

They are found on this machine (`attnknn/data/sources.py` says where) or brought there by `fetch`,
decoded once, and memory-mapped from then on (`attnknn/data/kept.py`). Splits are the official ones,
and items keep the order of the official files; a zip's are sorted by split, class and file name.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attnknn.data.dataset import Dataset, DatasetDescription, make_dataset
from attnknn.data.idx import read_idx
from attnknn.data.kept import Decoded, decode_once
from attnknn.data.registry import register_dataset, source_of, torchvision_datasets
from attnknn.data.sources import Finder, Layout, Source, find_source
from attnknn.data.zips import read_class_folders
from attnknn.errors import DamagedData

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
DIGITS = tuple("0123456789")
CLOTHES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")

IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch", "batches.meta")
TINY_IMAGES = (
    "Krizhevsky, A. (2009). Learning Multiple Layers of Features from Tiny Images. "
    "https://www.cs.toronto.edu/~kriz/cifar.html"
)
NO_LICENCE = "No licence is stated; its page asks for the citation of its report"


def _find(*layouts: Layout) -> Finder:
    return lambda: find_source(layouts)


def _batches(folder: str, files: tuple[str, ...]) -> Layout:
    return Layout("batches", "torchvision's files", tuple(f"{folder}/{file}" for file in files))


def _idx(folder: str, words: str) -> Layout:
    return Layout("idx", words, tuple(f"{folder}/{file}" for file in IDX_FILES), may_be_packed=True)


@register_dataset(
    "cifar10",
    title="CIFAR-10",
    kind="image",
    n_items=60_000,
    n_classes=10,
    shape=(32, 32, 3),
    licence=NO_LICENCE,
    source=TINY_IMAGES,
    download="170 MB",
    by_hand="a folder that holds cifar-10-batches-py, as torchvision lays it out, or cifar10-images.zip",
    find=_find(
        _batches("cifar-10-batches-py", BATCHES),
        Layout("zip", "cifar10-images.zip", ("cifar10-images.zip",)),
    ),
)
def build_cifar10(description: DatasetDescription) -> Dataset:
    """Build CIFAR-10: 32×32 photographs of animals and vehicles; from a zip of JPEGs, the title says so."""
    source = source_of(description)
    if source.form == "zip":
        description = replace(description, title=f"{description.title} (JPEG)")
        decoded = decode_once(description.name, source, _decode_zip)
    else:
        decoded = decode_once(description.name, source, lambda source: _decode_batches(source, "CIFAR10"))
    return _make(description, source, decoded)


@register_dataset(
    "cifar100",
    title="CIFAR-100",
    kind="image",
    n_items=60_000,
    n_classes=100,
    shape=(32, 32, 3),
    licence=NO_LICENCE,
    source=TINY_IMAGES,
    download="169 MB",
    by_hand="a folder that holds cifar-100-python, as torchvision lays it out",
    find=_find(_batches("cifar-100-python", ("train", "test", "meta"))),
)
def build_cifar100(description: DatasetDescription) -> Dataset:
    """Build CIFAR-100: 32×32 photographs of a hundred kinds of things."""
    source = source_of(description)
    decoded = decode_once(description.name, source, lambda source: _decode_batches(source, "CIFAR100"))
    return _make(description, source, decoded)


@register_dataset(
    "mnist",
    title="MNIST handwritten digits",
    kind="image",
    n_items=70_000,
    n_classes=10,
    shape=(28, 28),
    licence="CC BY-SA 3.0",
    source=(
        "LeCun, Y., Bottou, L., Bengio, Y., & Haffner, P. (1998). Gradient-based learning applied to document "
        "recognition. Proceedings of the IEEE 86(11), 2278-2324. https://doi.org/10.1109/5.726791"
    ),
    download="12 MB",
    by_hand="a folder that holds MNIST/raw, as torchvision lays it out",
    find=_find(_idx("MNIST/raw", "torchvision's files")),
)
def build_mnist(description: DatasetDescription) -> Dataset:
    """Build MNIST: 28×28 digits in gray."""
    source = source_of(description)
    decoded = decode_once(description.name, source, lambda source: _decode_idx(source, DIGITS))
    return _make(description, source, decoded)


@register_dataset(
    "fashion_mnist",
    title="Fashion-MNIST",
    kind="image",
    n_items=70_000,
    n_classes=10,
    shape=(28, 28),
    licence="MIT",
    source=(
        "Xiao, H., Rasul, K., & Vollgraf, R. (2017). Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine "
        "Learning Algorithms. https://arxiv.org/abs/1708.07747"
    ),
    download="31 MB",
    by_hand=(
        "a folder that holds FashionMNIST/raw, as torchvision lays it out; "
        "on Debian and Ubuntu, apt-get install dataset-fashion-mnist brings it too"
    ),
    find=_find(
        _idx("FashionMNIST/raw", "torchvision's files"),
        _idx("fashion-mnist", "the package dataset-fashion-mnist"),
    ),
)
def build_fashion_mnist(description: DatasetDescription) -> Dataset:
    """Build Fashion-MNIST: 28×28 pictures of clothes in gray."""
    source = source_of(description)
    decoded = decode_once(description.name, source, lambda source: _decode_idx(source, CLOTHES))
    return _make(description, source, decoded)


def _make(description: DatasetDescription, source: Source, decoded: Decoded) -> Dataset:
    """Make the dataset.

    Raises:
        DamagedData: If it does not have as many items and classes as its description says.
    """
    expected = (description.n_items, description.n_classes)
    came = (len(decoded.inputs), len(decoded.class_names))
    if came != expected:
        raise DamagedData(
            str(source.files[0]),
            f"{description.title} must have {expected[0]} images of {expected[1]} classes.",
            f"There are {came[0]} of {came[1]}.",
        )
    return make_dataset(description, decoded.inputs, decoded.labels, decoded.class_names, is_test=decoded.is_test())


def _decode_zip(source: Source) -> Decoded:
    return read_class_folders(source.files[0], CIFAR10_CLASSES, (32, 32))


def _decode_idx(source: Source, class_names: tuple[str, ...]) -> Decoded:
    """Read the four files of a set in MNIST's format: images and labels, of training and of testing."""
    images = [read_idx(path, 3) for path in source.files[0::2]]
    labels = [read_idx(path, 1) for path in source.files[1::2]]
    for path, some, theirs in zip(source.files[0::2], images, labels, strict=True):
        if some.shape != (len(theirs), 28, 28) or (theirs >= len(class_names)).any():
            raise DamagedData(
                str(path.parent),
                f"Each image must have 28 × 28 pixels and a label below {len(class_names)}.",
                f"{path.name} has images {some.shape} for {len(theirs)} labels up to {theirs.max(initial=0)}.",
            )
    return Decoded(
        np.concatenate(images), np.concatenate(labels).astype(np.int64), n_train=len(labels[0]), class_names=class_names
    )


def _decode_batches(source: Source, kind: str) -> Decoded:
    """Read CIFAR's batches, always through torchvision.

    They are pickles, and a pickle can run any code when it is opened. torchvision compares each file
    with a hash that it holds before it opens it; we never open one ourselves.
    """
    reader = getattr(torchvision_datasets(), kind)
    try:
        parts = [reader(source.folder, train=is_train) for is_train in (True, False)]
    except RuntimeError as error:
        expected = f"The files of {kind} must have the hashes that torchvision holds."
        raise DamagedData(str(source.files[0].parent), expected, "At least one has another.") from error
    return Decoded(
        np.ascontiguousarray(np.concatenate([part.data for part in parts])),  # torchvision's are planes of color
        np.concatenate([part.targets for part in parts]).astype(np.int64),
        n_train=len(parts[0].data),
        class_names=tuple(parts[0].classes),
    )
