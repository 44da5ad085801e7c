"""Prepare a checkpoint for the page: embed its bank and test items, find neighbors, and draw the map.

The bank is saved before the map is drawn: from then on the page can show it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.checkpoints import Checkpoint, open_checkpoint, save_checkpoint
from attnknn.config import TrainingConfig
from attnknn.data import Dataset, load_dataset
from attnknn.errors import CheckpointError
from attnknn.models.loading import build_embedder
from attnknn.prepared import has_bundle, is_prepared, open_with_bundle, prepared_root
from attnknn.projection import Method, fit_projection, trustworthiness
from attnknn.reporting import PausePoint, Report, never, silent
from attnknn.training.run import make_bundle, working_threads

METHOD: Method = "umap"


def prepare_checkpoint(
    name: str, root: Path, report: Report = silent, pause_point: PausePoint = never
) -> dict[str, Any]:
    """Write a checkpoint with arrays and a map into the cache, from one with or without arrays.

    Args:
        name: Of the checkpoint.
        root: Where it lies.
        report: Told what is being done.
        pause_point: Called between steps; whatever it raises ends the work, and nothing half-made stays.

    Returns:
        The card of the prepared checkpoint; its `projection` says how far the map can be trusted.

    Raises:
        CheckpointError: There is none of that name, it cannot be trusted, or was trained on other data than
            this machine has.
        DatasetNotHere: Its dataset is not on this machine.
    """
    checkpoint = open_checkpoint(name, root)
    report("Reading the data", 0.0, {})
    place, weights = prepared_root(checkpoint), checkpoint.weights()
    if not has_bundle(checkpoint) and not is_prepared(checkpoint):
        save_checkpoint(name, checkpoint.card, weights, _embed(checkpoint, report, pause_point), place)
    pause_point()
    report("Drawing the map", 0.6, {})
    arrays = open_with_bundle(name, root).arrays()
    positions, facts = _draw_map(arrays)
    pause_point()
    report("Saving", 0.95, {})
    return save_checkpoint(name, checkpoint.card | {"projection": facts}, weights, arrays | positions, place).card


def _embed(checkpoint: Checkpoint, report: Report, pause_point: PausePoint) -> dict[str, NDArray[Any]]:
    config = TrainingConfig.from_dict(checkpoint.card["config"])
    dataset = load_dataset(config.dataset)
    _expect_same(checkpoint, dataset)
    report("Embedding the bank", 0.1, {})
    pause_point()
    embedder = build_embedder(checkpoint.name, checkpoint.card, checkpoint.weights("embedder."))
    with working_threads(config):
        return make_bundle(dataset, config, embedder, pause_point)


def _expect_same(checkpoint: Checkpoint, dataset: Dataset) -> None:
    """Refuse to fill a bank with other items than the embedder was trained on."""
    trained_on = checkpoint.card["dataset"].get("hash")
    if trained_on != dataset.hash:
        raise CheckpointError(
            f'The bank of "{checkpoint.name}" must hold what it was trained on: {checkpoint.card["dataset"]["title"]}.',
            f"{dataset.title} on this machine has hash {dataset.hash[:12]} instead of {str(trained_on)[:12]}.",
            f"Point ATTNKNN_DATA at the same files, or train again: {checkpoint.card.get('command', '')}",
        )


def _draw_map(arrays: dict[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    keys, queries = np.asarray(arrays["entry_keys"]), np.asarray(arrays["query_keys"])
    entries, others = fit_projection(keys, queries, METHOD)
    facts = {"method": METHOD, "trustworthiness": round(trustworthiness(keys, entries), 4), "seed": 0}
    return {"entry_positions": entries, "query_positions": others}, facts
