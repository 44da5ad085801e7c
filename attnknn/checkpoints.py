"""Checkpoints: folders of a card, weights and arrays that can be trusted before they are read.

    checkpoints/<name>/
        card.json             what it is, how it was made, how well it does, and the hash of every file
        weights.safetensors   the embedder and the fitted numbers of the votes
        bundle/<array>.npy    what the web process reads, one array a file, memory-mapped

Nothing here is pickle. Names are checked before they become paths, sizes before files are read, and
hashes before anything is believed. No torch: a checkpoint can be listed, checked and explored
where torch is not installed. The format is described in `docs/formats.md`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.errors import DamagedCheckpoint, SchemaMismatch, UnknownCheckpoint

SCHEMA = 3
ROOT = Path(__file__).resolve().parent.parent / "checkpoints"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
ARRAY_NAME = re.compile(r"[a-z][a-z_]{0,63}")
LARGEST_CARD = 4 * 2**20
MAPPED_FROM = 2**20  # bytes; smaller arrays are read at once


@dataclass(frozen=True)
class Checkpoint:
    """A checked folder: its card, and where its files are."""

    name: str
    folder: Path
    card: dict[str, Any]

    def weights(self, prefix: str = "") -> dict[str, NDArray[Any]]:
        """Read the tensors whose names start with `prefix`, and drop it from their names.

        Raises:
            DamagedCheckpoint: The file is not a table of tensors.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.folder / "weights.safetensors", framework="numpy") as file:
                return {name[len(prefix) :]: file.get_tensor(name) for name in file.keys() if name.startswith(prefix)}  # noqa: SIM118
        except (SafetensorError, TypeError) as error:
            expected = "weights.safetensors must hold tensors that NumPy knows."
            raise DamagedCheckpoint(self.name, expected, f"It could not be read ({error}).") from error

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Open every array of the bundle, read-only; large ones stay memory-mapped.

        Raises:
            DamagedCheckpoint: A file is not one plain array, without pickle.
        """
        return {Path(file).stem: self._array(file) for file in self.card["files"] if file.startswith("bundle/")}

    def _array(self, file: str) -> NDArray[Any]:
        """Map an array, so that no more is read than the file holds, and copy it if it is small."""
        path = self.folder / file
        try:
            mapped = np.lib.format.open_memmap(path, mode="r")
        except Exception as error:  # a header may be any text, and NumPy does not say what reading it raises
            expected = f"{file} must be one array of numbers, without pickle."
            raise DamagedCheckpoint(self.name, expected, f"It could not be read ({error}).") from error
        array = mapped if path.stat().st_size >= MAPPED_FROM else np.array(mapped)
        array.setflags(write=False)
        return array


def root_from_environment() -> Path:
    """Return the folder of checkpoints: what ATTNKNN_CHECKPOINTS says, or the one that ships."""
    return Path(os.environ.get("ATTNKNN_CHECKPOINTS") or ROOT)


def checkpoint_names(root: Path = ROOT) -> tuple[str, ...]:
    """List the folders under `root` that hold a card, `digits` first and the rest by name."""
    names = [path.parent.name for path in root.glob("*/card.json") if NAME.fullmatch(path.parent.name)]
    return tuple(sorted(names, key=lambda name: (name != "digits", name)))


def open_checkpoint(name: str, root: Path = ROOT) -> Checkpoint:
    """Check a checkpoint: its name, schema, and the size and hash of every file it lists.

    Raises:
        UnknownCheckpoint: No folder of that name holds a card.
        SchemaMismatch: The card was written for another version of the format.
        DamagedCheckpoint: A file is missing, cut short, changed, or named outside the folder.
    """
    if name not in checkpoint_names(root):
        raise UnknownCheckpoint(name, checkpoint_names(root))
    folder = root / name
    card = _read_card(folder / "card.json", name)
    for file, facts in card["files"].items():
        _check_file(folder, file, facts, name)
    return Checkpoint(name, folder, card | {"name": name})


def save_checkpoint(
    name: str,
    card: Mapping[str, Any],
    weights: Mapping[str, NDArray[Any]],
    arrays: Mapping[str, NDArray[Any]],
    root: Path = ROOT,
) -> Checkpoint:
    """Write a checkpoint beside its place, then move it there in one step, so none is ever half there.

    Raises:
        ValueError: If the name, or the name of an array, is not one that `open_checkpoint` accepts.
    """
    from safetensors.numpy import save

    if not NAME.fullmatch(name):
        raise ValueError(f"name must match {NAME.pattern}, however: name={name!r}")
    draft = root / f".{name}.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    (draft / "bundle" if arrays else draft).mkdir(parents=True)
    tensors = {key: np.asarray(value, order="C") for key, value in sorted(weights.items())}
    (draft / "weights.safetensors").write_bytes(save(tensors))  # save_file would let nobody else read it
    for key, array in sorted(arrays.items()):
        if not ARRAY_NAME.fullmatch(key):
            raise ValueError(f"an array's name must match {ARRAY_NAME.pattern}, however: {key!r}")
        np.save(draft / "bundle" / f"{key}.npy", array, allow_pickle=False)
    written = sorted(path for path in draft.rglob("*") if path.is_file())
    files = {path.relative_to(draft).as_posix(): _file_facts(path) for path in written}
    own = {"schema": SCHEMA, "name": name}
    full = own | dict(card) | own | {"files": files}  # first to read, and never those of the card given
    (draft / "card.json").write_text(json.dumps(full, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _replace_folder(draft, root / name)
    return open_checkpoint(name, root)


def _read_card(path: Path, name: str) -> dict[str, Any]:
    whole = f'The card of checkpoint "{name}" must be a JSON document with a schema and a list of files.'
    if path.stat().st_size > LARGEST_CARD:
        raise DamagedCheckpoint(name, whole, f"It has {path.stat().st_size:,} bytes.")
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise DamagedCheckpoint(name, whole, f"It could not be read as JSON ({error}).") from error
    if not isinstance(card, dict) or "schema" not in card:
        raise DamagedCheckpoint(name, whole, "It has no schema.")
    if type(card["schema"]) is not int or card["schema"] != SCHEMA:
        raise SchemaMismatch(name, SCHEMA, card["schema"])
    if not isinstance(card.get("files"), dict) or "weights.safetensors" not in card["files"]:
        raise DamagedCheckpoint(name, whole, "It lists no weights.safetensors.")
    return card


def _check_file(folder: Path, file: str, facts: Any, name: str) -> None:
    path = folder / file
    known = file == "weights.safetensors" or re.fullmatch(rf"bundle/{ARRAY_NAME.pattern}\.npy", file)
    if not known or path.is_symlink() or not path.resolve().is_relative_to(folder.resolve()):
        raise DamagedCheckpoint(name, "A card may only list files of its own folder.", f'It lists "{file}".')
    if not isinstance(facts, dict) or type(facts.get("bytes")) is not int or "sha256" not in facts:
        raise DamagedCheckpoint(name, f"The card must say bytes and sha256 of {file}.", f"It says {facts!r:.80}.")
    expected = f"{file} must have {facts['bytes']:,} bytes, as its card says."
    if not path.is_file():
        raise DamagedCheckpoint(name, expected, "It is missing.")
    if path.stat().st_size != facts["bytes"]:
        raise DamagedCheckpoint(name, expected, f"It has {path.stat().st_size:,}; it was cut short or changed.")
    if _sha256(path) != facts["sha256"]:
        raise DamagedCheckpoint(name, f"{file} must have the hash in its card.", "Its content has changed.")


def _file_facts(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = {"bytes": path.stat().st_size, "sha256": _sha256(path)}
    if path.suffix == ".npy":
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        facts |= {"dtype": array.dtype.str, "shape": list(array.shape)}
    return facts


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _replace_folder(draft: Path, place: Path) -> None:
    """Move a folder to its place, moving an older one of that name aside first."""
    aside = draft.with_suffix(".old")
    shutil.rmtree(aside, ignore_errors=True)
    if place.exists():
        place.rename(aside)
    draft.rename(place)
    shutil.rmtree(aside, ignore_errors=True)
