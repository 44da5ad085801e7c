"""Name → Dataset, with stable ids, duplicate groups and label noise.

    load_dataset("digits")                      inputs, clean labels, ids, split, duplicate groups
    draw_noise(ids, seed) → flip_labels(...)    observed labels, nested in the noise rate

Nothing is downloaded, and scikit-learn is imported only when a dataset that needs it is loaded.
`attnknn/data/registry.py` says how to add a dataset.
"""

from attnknn.data import bundled, toys  # noqa: F401  (their datasets register themselves)
from attnknn.data.dataset import Dataset, DatasetDescription, make_dataset
from attnknn.data.noise import NoiseDraws, draw_noise, flip_labels
from attnknn.data.registry import dataset_names, describe_datasets, load_dataset, register_dataset
from attnknn.data.splits import group_duplicates, split_by_group

__all__ = [
    "Dataset",
    "DatasetDescription",
    "NoiseDraws",
    "dataset_names",
    "describe_datasets",
    "draw_noise",
    "flip_labels",
    "group_duplicates",
    "load_dataset",
    "make_dataset",
    "register_dataset",
    "split_by_group",
]
