"""One dataset, with everything about it that must not move: ids, split and duplicate groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Literal

import numpy as np

from attnknn.data.splits import group_duplicates, split_by_group
from attnknn.errors import UnknownItem

Kind = Literal["image", "table", "points"]
TEST_SHARE = 0.3
SPLIT_SEED = 0
BY_HAND = "by hand"


@dataclass(frozen=True)
class DatasetDescription:
    """What can be said of a dataset without loading it.

    Attributes:
        name: Word by which it is asked for.
        title: Its name for a reader.
        kind: `image`, `table` or `points` (two numbers per item).
        n_items: Number of items, training and test together.
        n_classes: C.
        shape: Of one item: (features,), (height, width) or (height, width, 3).
        licence: On what terms it may be used.
        source: Whom to cite, and where it comes from.
        download: Empty if it comes with the product; else how large its download is, such as "170 MB",
            or "by hand" where it cannot be downloaded from here.
        by_hand: Which folder ATTNKNN_DATA may name instead, in words; empty if it comes with the product.
    """

    name: str
    title: str
    kind: Kind
    n_items: int
    n_classes: int
    shape: tuple[int, ...]
    licence: str
    source: str
    download: str = ""
    by_hand: str = ""

    @property
    def can_be_downloaded(self) -> bool:
        """Whether `fetch` can bring it onto this machine."""
        return self.download not in ("", BY_HAND)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Items, their clean labels, and how they are parted. Nothing in it can be written to.

    Attributes:
        name: Word by which it is asked for.
        title: Its name for a reader.
        kind: `image`, `table` or `points`.
        inputs: Raw, unscaled inputs of shape (n, ...).
        labels: Clean labels of shape (n,), integers in 0..C-1.
        class_names: C names.
        ids: Stable ids of shape (n,), such as `digits/test/7`.
        splits: `train` or `test` for each item, shape (n,).
        groups: Integers of shape (n,); exact duplicates share a number, whatever their labels.
        feature_names: One name per column; empty for images.
        licence: On what terms it may be used.
        source: Whom to cite, and where it comes from.
    """

    name: str
    title: str
    kind: Kind
    inputs: np.ndarray
    labels: np.ndarray
    class_names: tuple[str, ...]
    ids: np.ndarray
    splits: np.ndarray
    groups: np.ndarray
    feature_names: tuple[str, ...]
    licence: str
    source: str

    def __post_init__(self) -> None:
        for field in ("inputs", "labels", "ids", "splits", "groups"):
            array = _freeze(getattr(self, field))
            object.__setattr__(self, field, array)
        _check(self)

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""
        return len(self.class_names)

    @cached_property
    def hash(self) -> str:
        """SHA-256, in hexadecimal, of the name, the inputs and the labels."""
        digest = sha256(self.name.encode())
        for array in (self.inputs, self.labels):
            digest.update(f"|{array.dtype.str}{array.shape}|".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def where(self, split: str) -> np.ndarray:
        """Return the rows of the items of `train` or of `test`, ascending.

        Raises:
            ValueError: If there is no such split.
        """
        if split not in ("train", "test"):
            raise ValueError(f"split must be 'train' or 'test', however: split={split!r}")
        return np.flatnonzero(self.splits == split)

    def index_of(self, item_id: str) -> int:
        """Return the row of the item with this id.

        Raises:
            UnknownItem: If no item has it.
        """
        if item_id not in self._rows:
            raise UnknownItem(item_id, f'the dataset "{self.name}"', str(self.ids[0]))
        return self._rows[item_id]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {item_id: row for row, item_id in enumerate(self.ids.tolist())}


def make_dataset(
    description: DatasetDescription,
    inputs: np.ndarray,
    labels: np.ndarray,
    class_names: Sequence[str],
    feature_names: Sequence[str] = (),
    is_test: np.ndarray | None = None,
) -> Dataset:
    """Give raw items their duplicate groups, their split and their ids.

    Unless the source has a split of its own, 30 % of each class are for testing, and no duplicate
    group is on both sides. Ids count the items of each split in the order of the source.

    Args:
        description: The facts the dataset was registered with.
        inputs: Raw inputs of shape (n, ...).
        labels: Integers of shape (n,) in 0..C-1.
        class_names: C names.
        feature_names: One name per column; leave empty for images.
        is_test: The source's own split: booleans of shape (n,).

    Returns:
        The dataset; the same items always give the same ids.

    Raises:
        ValueError: If the parts do not fit together.

    Example:
        >>> about = DatasetDescription("coins", "Coins", "points", 4, 2, (2,), "none", "tossed here")
        >>> points = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
        >>> make_dataset(about, points, np.array([0, 1, 0, 1]), ["heads", "tails"]).ids.tolist()
        ['coins/test/0', 'coins/test/1', 'coins/train/0', 'coins/train/1']
    """
    labels = np.asarray(labels, dtype=np.int64)
    groups = group_duplicates(inputs)
    if is_test is None:
        is_test = split_by_group(labels, groups, TEST_SHARE, SPLIT_SEED)
    splits = np.where(is_test, "test", "train")
    return Dataset(
        name=description.name,
        title=description.title,
        kind=description.kind,
        inputs=inputs,
        labels=labels,
        class_names=tuple(str(name) for name in class_names),
        ids=_number(description.name, splits),
        splits=splits,
        groups=groups,
        feature_names=tuple(str(name) for name in feature_names),
        licence=description.licence,
        source=description.source,
    )


def _freeze(values: np.ndarray) -> np.ndarray:
    """Return an array that nobody can write to: a copy, unless it is one already.

    Images in their thousands are memory-mapped for reading only; a copy would bring them all into memory.
    """
    part: object = values
    while isinstance(part, np.ndarray) and not part.flags.writeable:
        part = part.base
    if isinstance(values, np.ndarray) and not isinstance(part, np.ndarray):
        return values
    array = np.array(values)
    array.setflags(write=False)
    return array


def _number(name: str, splits: np.ndarray) -> np.ndarray:
    seen = {"train": 0, "test": 0}
    ids = []
    for split in splits.tolist():
        ids.append(f"{name}/{split}/{seen[split]}")
        seen[split] += 1
    return np.array(ids)


def _check(dataset: Dataset) -> None:
    n = len(dataset.inputs)
    shapes = {field: getattr(dataset, field).shape for field in ("labels", "ids", "splits", "groups")}
    if any(shape != (n,) for shape in shapes.values()):
        raise ValueError(f"each of {n} items needs a label, id, split and group, however: {shapes}")
    if not np.isin(dataset.labels, np.arange(dataset.n_classes)).all():
        raise ValueError(f"labels must be in 0..{dataset.n_classes - 1}, however: {np.unique(dataset.labels)}")
    if len(dataset._rows) != n:
        raise ValueError(f"ids must be unique, however: {n} items have {len(dataset._rows)} ids")
    if dataset.feature_names and dataset.inputs.shape[1:] != (len(dataset.feature_names),):
        raise ValueError(f"{len(dataset.feature_names)} feature names cannot name inputs {dataset.inputs.shape}")
