"""Who sees what in a run: the labels as they are observed, and which rows are for what."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from attnknn.config import LabelNoise, TrainingConfig
from attnknn.data import Dataset, split_by_group
from attnknn.data.noise import draw_noise, flip_labels


@dataclass(frozen=True)
class Parts:
    """A dataset as a run sees it.

    Attributes:
        dataset: Its labels are the observed ones; those of test are the dataset's own.
        rows: Of each part: `fit` (embedder and bank), `held_out` (votes) and `test`.
    """

    dataset: Dataset
    rows: dict[str, NDArray[np.intp]]

    def inputs(self, part: str) -> NDArray[np.generic]:
        """Raw inputs of a part."""
        return self.dataset.inputs[self.rows[part]]

    def labels(self, part: str) -> NDArray[np.integer]:
        """Observed labels of a part."""
        return self.dataset.labels[self.rows[part]]

    def ids(self, part: str) -> NDArray[np.str_]:
        """Stable ids of a part."""
        return self.dataset.ids[self.rows[part]]

    def groups(self, part: str) -> NDArray[np.integer]:
        """Duplicate groups of a part."""
        return self.dataset.groups[self.rows[part]]

    def with_fit(self, rows: NDArray[np.intp], labels: NDArray[np.integer]) -> Parts:
        """Return the same with other items in the fit part, under these labels."""
        changed = self.dataset.labels.copy()
        changed[rows] = labels
        return Parts(replace(self.dataset, labels=changed), self.rows | {"fit": rows})


def part(dataset: Dataset, config: TrainingConfig) -> Parts:
    """Observe the labels and part the items; duplicates stay together.

    Held-out items are drawn class by class, by the labels that are observed.
    """
    seen = observe_labels(dataset, config.label_noise)
    train = seen.where("train")
    is_held = split_by_group(seen.labels[train], seen.groups[train], config.held_out, config.seed)
    return Parts(seen, {"fit": train[~is_held], "held_out": train[is_held], "test": seen.where("test")})


def observe_labels(dataset: Dataset, noise: LabelNoise | None) -> Dataset:
    """Return the dataset with label noise on its training items; without noise, the same dataset.

    The draws are nested and hang on ids, as those of a bank do. They are other draws, though: whoever then flips
    labels of the bank, under whatever seed, must not meet the same items again.
    """
    if noise is None:
        return dataset
    train, labels = dataset.where("train"), dataset.labels.copy()
    draws = draw_noise([f"training label of {item}" for item in dataset.ids[train]], noise.seed)
    labels[train] = flip_labels(labels[train], draws, noise, dataset.n_classes)
    return replace(dataset, labels=labels)
