"""Name → Dataset.

To add a dataset, write one function that returns a `Dataset` and register it with the decorator:

    @register_dataset("coins", title="Tossed coins", kind="points", n_items=100, n_classes=2,
                      licence="CC0 1.0", source="Tossed by the author")
    def build_coins(description: DatasetDescription) -> Dataset:
        inputs, labels = ...
        return make_dataset(description, inputs, labels, ("heads", "tails"), ("x", "y"))

The facts in the decorator are what the catalogue shows before anything is loaded; the test of the
registry compares them with what the function returns. A module that holds such functions is
imported by `attnknn/data/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType

from attnknn.data.dataset import Dataset, DatasetDescription, Kind
from attnknn.errors import MissingLibrary, UnknownDataset

Builder = Callable[[DatasetDescription], Dataset]
_REGISTERED: dict[str, tuple[DatasetDescription, Builder]] = {}


def register_dataset(
    name: str, *, title: str, kind: Kind, n_items: int, n_classes: int, licence: str, source: str
) -> Callable[[Builder], Builder]:
    """Register the decorated function as the builder of a dataset.

    Args:
        name: Word by which it is asked for; also the first part of its ids.
        title: Its name for a reader.
        kind: `image`, `table` or `points`.
        n_items: Number of items it will have.
        n_classes: Number of classes it will have.
        licence: On what terms it may be used.
        source: Whom to cite, and where it comes from.

    Returns:
        A decorator that leaves the function as it is.

    Raises:
        ValueError: If the name is taken.
    """
    description = DatasetDescription(name, title, kind, n_items, n_classes, licence, source)

    def register(builder: Builder) -> Builder:
        if name in _REGISTERED:
            raise ValueError(f"every dataset needs its own name, however: {name!r} is taken")
        _REGISTERED[name] = (description, builder)
        return builder

    return register


def dataset_names() -> tuple[str, ...]:
    """Return the names of all registered datasets, in the order of the catalogue."""
    return tuple(_REGISTERED)


def describe_datasets() -> list[DatasetDescription]:
    """Return what is known of each registered dataset, without loading any."""
    return [description for description, _ in _REGISTERED.values()]


@cache
def load_dataset(name: str) -> Dataset:
    """Load a registered dataset; a second call returns the same object.

    Args:
        name: One of `dataset_names()`.

    Returns:
        The dataset, with its ids, split and duplicate groups.

    Raises:
        UnknownDataset: If no dataset of that name is registered.
        MissingLibrary: If scikit-learn, which holds the bundled sets, is not installed.

    Example:
        >>> digits = load_dataset("digits")
        >>> digits.inputs.shape, digits.class_names[digits.labels[digits.index_of("digits/test/0")]]
        ((1797, 8, 8), '0')
    """
    if name not in _REGISTERED:
        raise UnknownDataset(name, dataset_names())
    description, builder = _REGISTERED[name]
    return builder(description)


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
