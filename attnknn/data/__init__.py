"""Name → Dataset, with stable ids, duplicate groups and label noise.

    load_dataset("digits")                      inputs, clean labels, ids, split, duplicate groups
    draw_noise(ids, seed) → flip_labels(...)    observed labels, nested in the noise rate
    is_here("cifar10") or fetch("cifar10")      the only thing here that uses the network

scikit-learn and torchvision are imported only when a dataset that needs them is loaded or fetched.
`attnknn/data/registry.py` says how to add a dataset, `sources.py` where files are looked for.
"""

from attnknn.data import bundled, pictures, tables, toys  # noqa: F401  (their datasets register themselves)
from attnknn.data.dataset import Dataset, DatasetDescription, make_dataset
from attnknn.data.fetching import fetch
from attnknn.data.noise import NoiseDraws, draw_noise, flip_labels
from attnknn.data.registry import (
    dataset_names,
    describe_dataset,
    describe_datasets,
    is_here,
    load_dataset,
    register_dataset,
    where_found,
)
from attnknn.data.splits import group_duplicates, split_by_group

__all__ = [
    "Dataset",
    "DatasetDescription",
    "NoiseDraws",
    "dataset_names",
    "describe_dataset",
    "describe_datasets",
    "draw_noise",
    "fetch",
    "flip_labels",
    "group_duplicates",
    "is_here",
    "load_dataset",
    "make_dataset",
    "register_dataset",
    "split_by_group",
    "where_found",
]
