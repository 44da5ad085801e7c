"""Checkpoints whose bank was prepared on this machine: weights travel, arrays are made where they are used.

    checkpoints/cifar10            card.json, weights.safetensors            what travels
    <cache>/prepared/<digest>/cifar10    the same with bundle/*.npy          what `prepare` made of it

The digest names the weights, so a checkpoint that was trained again is prepared again. A prepared checkpoint is
one like any other: every file is checked in the same way before it is believed.
"""

from __future__ import annotations

import os
from pathlib import Path

from attnknn.checkpoints import Checkpoint, checkpoint_names, open_checkpoint
from attnknn.errors import NotPrepared


def has_bundle(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint brings the arrays of its bank with it."""
    return any(file.startswith("bundle/") for file in checkpoint.card["files"])


def prepared_root(checkpoint: Checkpoint) -> Path:
    """Return the folder below which this checkpoint is prepared; ATTNKNN_PREPARED moves it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(os.environ.get("ATTNKNN_PREPARED") or cache / "attnknn" / "prepared")
    return root / str(checkpoint.card["files"]["weights.safetensors"]["sha256"])[:16]


def is_prepared(checkpoint: Checkpoint) -> bool:
    """Whether `prepare` was here."""
    return checkpoint.name in checkpoint_names(prepared_root(checkpoint))


def open_with_bundle(name: str, root: Path) -> Checkpoint:
    """Open a checkpoint with the arrays of its bank, wherever they lie.

    Raises:
        NotPrepared: It brings none, and was not prepared on this machine yet.
        CheckpointError: As in `attnknn.checkpoints.open_checkpoint`.
    """
    checkpoint = open_checkpoint(name, root)
    if has_bundle(checkpoint):
        return checkpoint
    if not is_prepared(checkpoint):
        raise NotPrepared(name, str(checkpoint.card.get("dataset", {}).get("title", name)))
    return open_checkpoint(name, prepared_root(checkpoint))
