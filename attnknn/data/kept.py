"""The array cache: what was decoded once is read back as memory-mapped arrays.

    <cache folder>/arrays/<dataset>-<digest of the source>/
        inputs.npy   labels.npy   meta.json

A change of the source's path, size or time gives another digest, and so another folder. The folder
is written under another name and renamed when it is whole: nobody meets half of one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from attnknn.data.sources import Source, cache_folder

SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Decoded:
    """Raw items as their source has them, the training part first.

    Attributes:
        inputs: Shape (n, ...), C-contiguous.
        labels: int64 of shape (n,), in 0..C-1.
        n_train: How many of them are for training; the others are for testing.
        class_names: C names.
    """

    inputs: np.ndarray
    labels: np.ndarray
    n_train: int
    class_names: tuple[str, ...]

    def is_test(self) -> np.ndarray:
        """Say of each item whether it is for testing, shape (n,)."""
        return np.arange(len(self.labels)) >= self.n_train


def decode_once(name: str, source: Source, decode: Callable[[Source], Decoded]) -> Decoded:
    """Return what `decode` makes of a source, from the array cache where it has been made before.

    Where the cache cannot be written (no space, a read-only folder), the arrays are returned all the
    same, and decoded again next time.

    Args:
        name: Of the dataset.
        source: The files to decode.
        decode: Reads them; whatever it raises passes.

    Returns:
        The arrays; nobody can write to them.
    """
    facts = source.fingerprint()
    digest = sha256(json.dumps([SCHEMA, source.form, facts]).encode()).hexdigest()
    folder = cache_folder() / "arrays" / f"{name}-{digest[:16]}"
    found = _read(folder, facts)
    if found is not None:
        return found
    made = decode(source)
    for array in (made.inputs, made.labels):
        array.setflags(write=False)
    try:
        _write(folder, made, facts)
    except OSError:
        return made
    _remove_others(name, folder)
    return _read(folder, facts) or made


def _read(folder: Path, facts: list[list[str | int]]) -> Decoded | None:
    """Read a folder of the cache; None if it is not there, or anything in it is not what it should be."""
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        if meta["schema"] != SCHEMA or meta["source"] != facts:
            return None
        inputs, labels = (_open(folder, name, meta["arrays"][name]) for name in ("inputs", "labels"))
        names = tuple(str(name) for name in meta["class_names"])
        n_train = int(meta["n_train"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Decoded(inputs, labels, n_train, names)


def _open(folder: Path, name: str, facts: dict[str, Any]) -> np.ndarray:
    """Map an array into memory, and check its type, its shape and every byte.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not the array that the facts tell of.
    """
    array = np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
    if _facts_of(array) != facts:
        raise ValueError(f"the array must be as its facts say, however: {name}")
    return array


def _facts_of(array: np.ndarray) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": sha256(array.data).hexdigest()}


def _write(folder: Path, made: Decoded, facts: list[list[str | int]]) -> None:
    draft = folder.with_name(f".{folder.name}-{uuid4().hex}")
    draft.mkdir(parents=True)
    try:
        arrays = {"inputs": made.inputs, "labels": made.labels}
        for name, array in arrays.items():
            np.save(draft / f"{name}.npy", array, allow_pickle=False)
        meta = {
            "schema": SCHEMA,
            "source": facts,
            "n_train": made.n_train,
            "class_names": made.class_names,
            "arrays": {name: _facts_of(array) for name, array in arrays.items()},
        }
        (draft / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)  # what could not be read
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _remove_others(name: str, folder: Path) -> None:
    """Remove what was decoded from other sources, so that the cache holds each dataset once."""
    for other in folder.parent.glob(f"{name}-*"):
        if other != folder and other.name.rpartition("-")[0] == name:
            shutil.rmtree(other, ignore_errors=True)
