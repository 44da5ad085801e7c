"""Ways to damage a checkpoint, after which the card still agrees: no hash can protect from its own author."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

WEIGHTS = "weights.safetensors"


def edit_card(root: Path, change: Callable[[dict], object], name: str = "iris") -> None:
    path = root / name / "card.json"
    card = json.loads(path.read_text("utf-8"))
    changed = change(card)
    path.write_text(json.dumps(card if changed is None else changed), "utf-8")


def rewrite(root: Path, file: str, content: bytes) -> None:
    """Change a file and make the card agree with it."""
    (root / "iris" / file).write_bytes(content)
    facts = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
    edit_card(root, lambda card: card["files"].update({file: facts}))


def npy(array: np.ndarray, allow_pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def change_arrays(root: Path, changes: Mapping[str, Callable[[np.ndarray], object]]) -> None:
    for name, change in changes.items():
        file = f"bundle/{name}.npy"
        rewrite(root, file, npy(np.asarray(change(np.load(root / "iris" / file)))))


def change_tensors(root: Path, changes: Mapping[str, np.ndarray | None]) -> None:
    """Replace tensors, add them, or leave them out (None)."""
    tensors = load((root / "iris" / WEIGHTS).read_bytes())
    changed = {name: array for name, array in (tensors | changes).items() if array is not None}
    rewrite(root, WEIGHTS, save(changed))
