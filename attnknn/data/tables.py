"""Two tables of the UCI Machine Learning Repository, read from their original files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from attnknn.data.bundled import UCI_LICENCE
from attnknn.data.dataset import BY_HAND, Dataset, DatasetDescription, make_dataset
from attnknn.data.registry import register_dataset, source_of
from attnknn.data.sources import Layout, find_source
from attnknn.errors import DamagedData

WINE_FILES = Layout("table", "UCI's file", ("uci/winequality-red.csv",))
ADULT_FILES = Layout("table", "UCI's files", ("uci/adult.data", "uci/adult.test"))

ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)
ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
INCOMES = ("<=50K", ">50K")
LARGEST_IN_WINE = 1000  # no red wine has a measurement above 289, so a larger one has lost its decimal point


@register_dataset(
    "wine_red",
    title="Red wine quality",
    kind="table",
    n_items=1599,
    n_classes=6,
    shape=(11,),
    licence=UCI_LICENCE,
    source=(
        "Cortez, P., Cerdeira, A., Almeida, F., Matos, T., & Reis, J. (2009). Wine Quality, its red wines. "
        "https://doi.org/10.24432/C56S3T"
    ),
    download=BY_HAND,
    by_hand=(
        "a folder that holds uci/winequality-red.csv, which is at https://archive.ics.uci.edu/dataset/186/wine+quality"
    ),
    find=lambda: find_source([WINE_FILES]),
)
def build_wine_red(description: DatasetDescription) -> Dataset:
    """Build the red wines: eleven measurements, and a grade from 3 to 8.

    One row in seven repeats another; duplicates are on one side of the split. There are copies of the file in
    which numbers such as 1.00005 are written 100005; they are read as the original.
    """
    path = source_of(description).files[0]
    header, *rows = list(_read_rows(path, ";")) or [[]]
    if len(header) != 12 or header[-1] != "quality":
        raise DamagedData(
            str(path), "Its first line must name eleven measurements and quality.", f"It is {';'.join(header)!r}."
        )
    numbers = np.array([[_number(path, cell) for cell in _cells(path, row, 12)] for row in rows]).reshape(-1, 12)
    grades, labels = np.unique(numbers[:, -1].astype(int), return_inverse=True)
    _check_size(path, description, len(rows), len(grades))
    return make_dataset(
        description, put_points_back(numbers[:, :-1]), labels, [str(grade) for grade in grades], header[:-1]
    )


def put_points_back(measured: np.ndarray) -> np.ndarray:
    """Restore measurements of wine that lost their decimal point.

    x' = x / 10^e,  e = round(log10(x / m)),  for x > 1000;  m = the median of its column

    NOTE: some spreadsheets take the point of "1.00005" for one that parts thousands, and drop it. The 82 numbers
    of such a copy of UCI's file, all of them alcohol, density or volatile acidity, become what they were.

    Args:
        measured: Shape (n, F), in the units of UCI's file; most numbers of a column must be intact.

    Returns:
        Of the same shape; numbers up to 1000 are as they came.

    Example:
        >>> put_points_back(np.array([[0.99], [100005.0], [0.98]])).tolist()
        [[0.99], [1.00005], [0.98]]
    """
    restored, lost = measured.copy(), measured > LARGEST_IN_WINE
    medians = np.broadcast_to(np.median(measured, axis=0), measured.shape)
    restored[lost] /= 10 ** np.round(np.log10(measured[lost] / medians[lost]))
    return restored


@register_dataset(
    "adult",
    title="Adult census income",
    kind="table",
    n_items=48_842,
    n_classes=2,
    shape=(108,),
    licence=UCI_LICENCE,
    source="Becker, B., & Kohavi, R. (1996). Adult. https://doi.org/10.24432/C5XW20",
    download=BY_HAND,
    by_hand=(
        "a folder that holds uci/adult.data and uci/adult.test, which are at "
        "https://archive.ics.uci.edu/dataset/2/adult"
    ),
    find=lambda: find_source([ADULT_FILES]),
)
def build_adult(description: DatasetDescription) -> Dataset:
    """Build the census: six numbers, and a column of zeros and ones for each category of eight others.

    The test part is the official one, and repeats some rows of the training part. A missing answer,
    written "?", is a category of its own.
    """
    files = source_of(description).files
    parts = [[_cells(path, row, 15) for row in _read_rows(path, ",")] for path in files]
    rows = [row for part in parts for row in part]
    incomes = [row[-1].removesuffix(".") for row in rows]
    _check_size(files[0], description, len(rows), len({*incomes} | {*INCOMES}))
    inputs, names = _encode(files[0], rows)
    is_test = np.arange(len(rows)) >= len(parts[0])
    labels = np.array([INCOMES.index(income) for income in incomes], dtype=np.int64)
    return make_dataset(description, inputs, labels, INCOMES, names, is_test)


def _encode(path: Path, rows: Sequence[Sequence[str]]) -> tuple[np.ndarray, list[str]]:
    """Turn each categorical column into one column per category, in alphabetical order."""
    columns: list[np.ndarray] = []
    names: list[str] = []
    for column, name in enumerate(ADULT_COLUMNS):
        cells = [row[column] for row in rows]
        if name in ADULT_NUMBERS:
            columns.append(np.array([_number(path, cell) for cell in cells]))
            names.append(name)
        else:
            categories, codes = np.unique(cells, return_inverse=True)
            columns += [codes == code for code in range(len(categories))]
            names += [f"{name}={category}" for category in categories]
    return np.stack(columns, axis=1).astype(np.float32), names


def _read_rows(path: Path, delimiter: str) -> Iterator[list[str]]:
    """Read the lines of a table; empty ones, and those that begin with a bar, hold no row."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
            yield from (row for row in reader if row and not row[0].startswith("|"))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DamagedData(str(path), "It must be a table as text.", f"It is not: {error}.") from error


def _cells(path: Path, row: list[str], n: int) -> list[str]:
    if len(row) != n:
        raise DamagedData(str(path), f"Every row must have {n} cells.", f"One has {len(row)}.")
    return row


def _number(path: Path, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise DamagedData(str(path), "Measurements must be numbers.", f"One is {cell!r}.")
    return number


def _check_size(path: Path, description: DatasetDescription, n_items: int, n_classes: int) -> None:
    if (n_items, n_classes) != (description.n_items, description.n_classes):
        expected = f"{description.title} must have {description.n_items} rows of {description.n_classes} classes."
        raise DamagedData(str(path), expected, f"There are {n_items} rows of {n_classes}.")
