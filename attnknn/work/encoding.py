"""One raw input on its way to the worker and back: numbers in base64, with type and shape beside them.

pixels → spec of a job → child: embed and classify → result of the job → embedding and logits
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnknn.checkpoints import root_from_environment
from attnknn.errors import InputError
from attnknn.jobs import Job

if TYPE_CHECKING:
    from attnknn.classifier import AttnKNN

LARGEST = 2**16  # numbers of one input
DTYPES = ("uint8", "float32")
KEPT = 4  # classifiers that a child keeps loaded


@dataclass(frozen=True)
class Encoded:
    """One input that is no item of any dataset, and what the embedder made of it.

    Attributes:
        values: The raw input, of the dataset's input shape.
        key: Unit embedding, shape (D,).
        logits: The parametric baseline's, shape (C,).
    """

    values: NDArray[Any]
    key: NDArray[np.float32]
    logits: NDArray[np.float32]


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """Write an array of bytes or 32-bit floats as JSON.

    Example:
        >>> pack(np.array([[1, 2]], np.uint8))
        {'dtype': 'uint8', 'shape': [1, 2], 'data': 'AQI='}
    """
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def unpack(packed: Mapping[str, Any]) -> NDArray[Any]:
    """Read what `pack` wrote; sizes are checked before anything is decoded.

    Raises:
        InputError: It is not that.

    Example:
        >>> unpack(pack(np.array([[1, 2]], np.uint8))).tolist()
        [[1, 2]]
    """
    expected = f"An input must be at most {LARGEST:,} numbers of {' or '.join(DTYPES)}, with their shape."
    dtype, shape, data = (packed.get(name) for name in ("dtype", "shape", "data"))
    is_plain = dtype in DTYPES and isinstance(shape, list) and all(type(n) is int and n > 0 for n in shape)
    if not is_plain or not isinstance(data, str) or prod(shape) > LARGEST or len(data) > 8 * LARGEST:  # type: ignore[arg-type]
        raise InputError(expected, f"It was {dtype} of shape {shape}.", "Send a smaller one.")
    try:
        return np.frombuffer(base64.b64decode(data, validate=True), dtype).reshape(shape)
    except (binascii.Error, ValueError) as error:
        raise InputError(expected, f"It could not be read ({error}).", "Send it again.") from error


def encode_input(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Embed and classify the input of a spec.

    Raises:
        CheckpointError: The checkpoint is gone, or cannot be trusted.
        InputError: The input does not fit the checkpoint.
    """
    values = unpack(spec["input"])
    keys, logits = _classifier(spec["checkpoint"]).embedder.embed(values[None])
    return {"key": pack(keys[0]), "logits": pack(logits[0])}


def read_encoded(job: Job) -> Encoded | None:
    """Return what a job of this kind made; None before it is done."""
    if not job.result:
        return None
    found = (unpack(job.spec["input"]), unpack(job.result["key"]), unpack(job.result["logits"]))
    return Encoded(*found)


def _classifier(name: str) -> AttnKNN:
    """Return a loaded classifier; one that was replaced under the same name is loaded again."""
    root = root_from_environment()
    card = root / name / "card.json"
    return _load(name, root, card.stat().st_mtime_ns if card.is_file() else 0)


@lru_cache(maxsize=KEPT)
def _load(name: str, root: Path, stamp: int) -> AttnKNN:
    from attnknn.classifier import load

    return load(name, root)
