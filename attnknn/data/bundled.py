"""Four small real datasets that come with scikit-learn, so that everything works offline."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnknn.data.dataset import Dataset, DatasetDescription, make_dataset
from attnknn.data.registry import register_dataset, sklearn_datasets

UCI_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository)"


@register_dataset(
    "digits",
    title="Handwritten digits",
    kind="image",
    n_items=1797,
    n_classes=10,
    shape=(8, 8),
    licence=UCI_LICENCE,
    source=(
        "Alpaydin, E., & Kaynak, C. (1998). Optical Recognition of Handwritten Digits, its test part, "
        "as distributed with scikit-learn. https://doi.org/10.24432/C50P49"
    ),
)
def build_digits(description: DatasetDescription) -> Dataset:
    """Build the digits: 8×8 images, each pixel the count of inked dots in a 4×4 block, 0 to 16."""
    bunch = sklearn_datasets().load_digits()
    return make_dataset(description, bunch.images.astype(np.uint8), bunch.target, bunch.target_names)


@register_dataset(
    "iris",
    title="Iris flowers",
    kind="table",
    n_items=150,
    n_classes=3,
    shape=(4,),
    licence=UCI_LICENCE,
    source=(
        "Fisher, R. A. (1936). The use of multiple measurements in taxonomic problems. Annals of Eugenics 7(2), "
        "179-188; as distributed with scikit-learn, which corrects two measurements of the UCI copy after the "
        "article. https://doi.org/10.24432/C56C76"
    ),
)
def build_iris(description: DatasetDescription) -> Dataset:
    """Build the irises: lengths and widths of sepals and petals, in centimeters."""
    return _table(description, sklearn_datasets().load_iris())


@register_dataset(
    "wine",
    title="Wine cultivars",
    kind="table",
    n_items=178,
    n_classes=3,
    shape=(13,),
    licence=UCI_LICENCE,
    source=(
        "Aeberhard, S., & Forina, M. (1992). Wine, as distributed with scikit-learn. https://doi.org/10.24432/C5PC7J"
    ),
)
def build_wine(description: DatasetDescription) -> Dataset:
    """Build the wines: a chemical analysis of wines from three cultivars of one Italian region."""
    return _table(description, sklearn_datasets().load_wine())


@register_dataset(
    "breast_cancer",
    title="Breast cancer cells, Wisconsin (diagnostic)",
    kind="table",
    n_items=569,
    n_classes=2,
    shape=(30,),
    licence=UCI_LICENCE,
    source=(
        "Wolberg, W., Mangasarian, O., Street, N., & Street, W. (1995). Breast Cancer Wisconsin (Diagnostic), "
        "as distributed with scikit-learn. https://doi.org/10.24432/C5DW2B"
    ),
)
def build_breast_cancer(description: DatasetDescription) -> Dataset:
    """Build the cell samples: shape and texture of cell nuclei in a fine needle aspirate."""
    return _table(description, sklearn_datasets().load_breast_cancer())


def _table(description: DatasetDescription, bunch: Any) -> Dataset:
    return make_dataset(description, bunch.data, bunch.target, bunch.target_names, bunch.feature_names)
