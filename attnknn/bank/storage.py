"""A memory bank on disk: index.faiss, four arrays, and bank.json, the card that seals them.

The card is written last and holds the digest of every file: a folder that was cut short, mixed up or
altered is refused before anything in it is parsed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnknn.errors import DamagedCheckpoint, SchemaMismatch

SCHEMA = 1
CARD = "bank.json"
INDEX = "index.faiss"
KINDS_OF_ARRAYS = {"keys": ("f", 2), "labels": ("i", 1), "ids": ("U", 1), "groups": ("i", 1)}
"""Name → the letter of its NumPy type, and how many axes it has."""


def write_bank(folder: Path, arrays: dict[str, np.ndarray], kind: str, write_index: Callable[[str], None]) -> None:
    """Write arrays without pickle, the index, and last the card."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CARD).unlink(missing_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    write_index(str(folder / INDEX))
    n, dimension = arrays["keys"].shape
    files = {name: _digest(folder / name) for name in _file_names()}
    card = {"schema": SCHEMA, "index": kind, "n_entries": n, "dimension": dimension, "files": files}
    (folder / CARD).write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def read_bank(
    folder: Path, kinds: Sequence[str], read_index: Callable[[str], Any]
) -> tuple[dict[str, np.ndarray], Any, Any]:
    """Read arrays, kind and index, and check that they belong together.

    Raises:
        DamagedCheckpoint: If a file is missing, cut short, or not what the card says.
        SchemaMismatch: If the card was written for another version of the format.
    """
    card = _read_card(folder, kinds)
    for name in _file_names():
        _check_file(folder, name, card["files"].get(name))
    arrays = {name: _read_array(folder, name, card) for name in KINDS_OF_ARRAYS}
    try:
        index = read_index(str(folder / INDEX))
    except RuntimeError as error:
        raise _damaged(folder, f"{INDEX} must be an index that FAISS wrote.", "FAISS cannot read it.") from error
    if (index.ntotal, index.d) != (card["n_entries"], card["dimension"]):
        raise _damaged(folder, f"{INDEX} must hold the keys.", f"It holds {index.ntotal} of dimension {index.d}.")
    return arrays, card["index"], index


def _read_card(folder: Path, kinds: Sequence[str]) -> dict[str, Any]:
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise _damaged(folder, f"The folder of a bank must hold {CARD}.", "It is missing.") from error
    except ValueError as error:
        raise _damaged(folder, f"{CARD} must be JSON.", "It cannot be read as such.") from error
    schema = card.get("schema") if isinstance(card, dict) else None
    if schema != SCHEMA:
        raise SchemaMismatch(folder.name, SCHEMA, schema)
    numbers = isinstance(card.get("n_entries"), int) and isinstance(card.get("dimension"), int)
    if card.get("index") not in kinds or not numbers or not isinstance(card.get("files"), dict):
        raise _damaged(folder, f"{CARD} must name an index, its size and its files.", "Something is missing.")
    return card


def _check_file(folder: Path, name: str, digest: object) -> None:
    if not (folder / name).is_file():
        raise _damaged(folder, f"The folder of a bank must hold {name}.", "It is missing.")
    if _digest(folder / name) != digest:
        raise _damaged(folder, f"{name} must be as {CARD} sealed it.", "It was cut short or altered.")


def _read_array(folder: Path, name: str, card: dict[str, Any]) -> np.ndarray:
    letter, axes = KINDS_OF_ARRAYS[name]
    shape = (card["n_entries"], card["dimension"])[:axes]
    try:
        array = np.load(folder / f"{name}.npy", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise _damaged(folder, f"{name}.npy must be a NumPy array.", "It cannot be read as such.") from error
    if array.shape != shape or array.dtype.kind != letter:
        raise _damaged(folder, f"{name}.npy must have shape {shape}.", f"It holds {array.dtype} {array.shape}.")
    return np.asarray(array)


def _file_names() -> list[str]:
    return [INDEX, *(f"{name}.npy" for name in KINDS_OF_ARRAYS)]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(folder: Path, expected: str, received: str) -> DamagedCheckpoint:
    return DamagedCheckpoint(folder.name, expected, received)
