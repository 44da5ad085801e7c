"""Name → Dataset.

To add a dataset, write one function that returns a `Dataset` and register it with the decorator:

    @register_dataset("coins", title="Tossed coins", kind="points", n_items=100, n_classes=2, shape=(2,),
                      licence="CC0 1.0", source="Tossed by the author")
    def build_coins(description: DatasetDescription) -> Dataset:
        inputs, labels = ...
        return make_dataset(description, inputs, labels, ("heads", "tails"), ("x", "y"))

The facts in the decorator are what the catalogue shows before anything is loaded; the test of the
registry compares them with what the function returns. A module that holds such functions is
imported by `attnknn/data/__init__.py`.

A dataset that does not come with the product also says how large its download is, which folder a
visitor may point at instead, and how it is found on this machine; its function then asks
`source_of(description)` for the files. See `attnknn/data/pictures.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import NamedTuple

from attnknn.data.dataset import Dataset, DatasetDescription, Kind
from attnknn.data.sources import Finder, Source
from attnknn.errors import DatasetNotHere, MissingLibrary, UnknownDataset

Builder = Callable[[DatasetDescription], Dataset]


class Registered(NamedTuple):
    """What is known of a dataset before it is loaded; `find` is None if it comes with the product."""

    description: DatasetDescription
    build: Builder
    find: Finder | None


_REGISTERED: dict[str, Registered] = {}


def register_dataset(
    name: str,
    *,
    title: str,
    kind: Kind,
    n_items: int,
    n_classes: int,
    shape: tuple[int, ...],
    licence: str,
    source: str,
    download: str = "",
    by_hand: str = "",
    find: Finder | None = None,
) -> Callable[[Builder], Builder]:
    """Register the decorated function as the builder of a dataset.

    Args:
        name: Word by which it is asked for; also the first part of its ids.
        title: Its name for a reader.
        kind: `image`, `table` or `points`.
        n_items: Number of items it will have.
        n_classes: Number of classes it will have.
        shape: Of one item.
        licence: On what terms it may be used.
        source: Whom to cite, and where it comes from.
        download: As in `DatasetDescription`; leave empty if it comes with the product.
        by_hand: As in `DatasetDescription`.
        find: Looks for its files on this machine; leave it out if it comes with the product.

    Returns:
        A decorator that leaves the function as it is.

    Raises:
        ValueError: If the name is taken.
    """
    description = DatasetDescription(name, title, kind, n_items, n_classes, shape, licence, source, download, by_hand)

    def register(builder: Builder) -> Builder:
        if name in _REGISTERED:
            raise ValueError(f"every dataset needs its own name, however: {name!r} is taken")
        _REGISTERED[name] = Registered(description, builder, find)
        return builder

    return register


def dataset_names() -> tuple[str, ...]:
    """Return the names of all registered datasets, in the order of the catalogue."""
    return tuple(_REGISTERED)


def describe_datasets() -> list[DatasetDescription]:
    """Return what is known of each registered dataset, without loading any."""
    return [registered.description for registered in _REGISTERED.values()]


def describe_dataset(name: str) -> DatasetDescription:
    """Return what is known of a registered dataset, without loading it.

    Raises:
        UnknownDataset: If no dataset of that name is registered.
    """
    return _look_up(name).description


def is_here(name: str) -> bool:
    """Say whether a dataset can be loaded from what is on this machine; looks for files, opens none.

    Raises:
        UnknownDataset: If no dataset of that name is registered.

    Example:
        >>> is_here("digits")
        True
    """
    return where_found(name) is not None


def where_found(name: str) -> str | None:
    """Say where a dataset would be loaded from; None if it is not on this machine.

    Raises:
        UnknownDataset: If no dataset of that name is registered.

    Example:
        >>> where_found("digits")
        'comes with the product'
    """
    find = _look_up(name).find
    if find is None:
        return "comes with the product"
    source = find()
    return source.words if source else None


def source_of(description: DatasetDescription) -> Source:
    """Return the files of a dataset that does not come with the product.

    Raises:
        DatasetNotHere: If they are not on this machine.
    """
    find = _look_up(description.name).find
    source = find() if find else None
    if source is None:
        size = description.download if description.can_be_downloaded else ""
        raise DatasetNotHere(description.name, size, description.by_hand)
    return source


@cache
def load_dataset(name: str) -> Dataset:
    """Load a registered dataset; a second call returns the same object.

    Args:
        name: One of `dataset_names()`.

    Returns:
        The dataset, with its ids, split and duplicate groups.

    Raises:
        UnknownDataset: If no dataset of that name is registered.
        DatasetNotHere: If it does not come with the product, and is not on this machine.
        DamagedData: If it is on this machine, and its files are not what they should be.
        MissingLibrary: If a library that it needs is not installed.

    Example:
        >>> digits = load_dataset("digits")
        >>> digits.inputs.shape, digits.class_names[digits.labels[digits.index_of("digits/test/0")]]
        ((1797, 8, 8), '0')
    """
    registered = _look_up(name)
    return registered.build(registered.description)


def _look_up(name: str) -> Registered:
    if name not in _REGISTERED:
        raise UnknownDataset(name, dataset_names())
    return _REGISTERED[name]


def sklearn_datasets() -> ModuleType:
    """Import scikit-learn's datasets, at the moment a builder needs them.

    Raises:
        MissingLibrary: If scikit-learn is not installed.
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingLibrary("scikit-learn", "Loading a bundled dataset") from error
    return datasets


def torchvision_datasets() -> ModuleType:
    """Import torchvision's datasets, at the moment something needs them.

    Raises:
        MissingLibrary: If torchvision is not installed.
    """
    try:
        from torchvision import datasets
    except ImportError as error:
        raise MissingLibrary("torchvision", "Reading or downloading this dataset") from error
    return datasets
