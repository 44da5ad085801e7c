"""IDX, the format of MNIST: a header of big-endian integers, then bytes.

00 00 08 d   n_1 … n_d   n_1 · … · n_d unsigned bytes
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from attnknn.errors import DamagedData

UNSIGNED_BYTE = 8
MOST_BYTES = 1 << 30


def read_idx(path: Path, n_axes: int) -> np.ndarray:
    """Read an array of bytes from an IDX file, packed with gzip or not.

    Args:
        path: The file; `.gz` at the end of its name means packed.
        n_axes: How many axes the array must have.

    Returns:
        uint8 array with `n_axes` axes.

    Raises:
        DamagedData: If the file is not such an array, whole and without anything after it.
    """
    try:
        with cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb") as file:
            return _read(path, file, n_axes)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedData(str(path), "Its gzip packing must be whole.", f"It is not: {error}.") from error


def _read(path: Path, file: BinaryIO, n_axes: int) -> np.ndarray:
    header = file.read(4 + 4 * n_axes)
    expected = f"The file must be an IDX array of bytes with {n_axes} axes."
    if len(header) < 4 + 4 * n_axes or header[:4] != bytes([0, 0, UNSIGNED_BYTE, n_axes]):
        raise DamagedData(str(path), expected, f"It begins with {header[:4].hex(' ') or 'nothing'}.")
    shape = [int(n) for n in np.frombuffer(header[4:], dtype=">u4")]
    size = math.prod(shape)
    if size > MOST_BYTES:
        raise DamagedData(str(path), f"The file must hold at most {MOST_BYTES} bytes.", f"It announces {size}.")
    content = file.read(size + 1)
    if len(content) != size:
        came = "more" if len(content) > size else f"{len(content)}"
        raise DamagedData(str(path), f"{size} bytes must follow its header.", f"There are {came}.")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
