"""Ask for work: check what is asked, queue it, and see that somebody does it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from attnknn.bundle import POOL
from attnknn.checkpoints import NAME, checkpoint_names, open_checkpoint, root_from_environment
from attnknn.config import EmbedderConfig, LabelNoise, NoiseKind, TrainingConfig
from attnknn.data import dataset_names, describe_dataset
from attnknn.errors import SettingError, UnknownDataset
from attnknn.jobs import Job, JobSettings, JobStore
from attnknn.jobs.doorbell import Doorbell
from attnknn.jobs.processes import has_worker_here, start_worker
from attnknn.jobs.table import ACTIVE
from attnknn.work.encoding import pack, unpack

LIMITS: dict[str, tuple[float, float]] = {
    "epochs": (1, 500),
    "batch_size": (4, 4096),
    "dimension": (2, 512),
    "width": (4, 512),
    "members": (1, 4),
    "shift": (0, 8),
    "cutout": (0, 24),
    "ascent": (0.0, 1.0),
    "learning_rate": (1e-5, 0.5),
    "k": (1, POOL),
    "seed": (0, 2**32 - 1),
    "label_noise": (0.0, 0.9),
    "noise_seed": (0, 2**32 - 1),
}
TRAINED_NOISES: tuple[NoiseKind, ...] = ("symmetric", "pair")
"""Kinds of label noise that need no matrix."""

MOST_LEVELS = 2000  # of a sweep
SWEEP_KS = (5, 16, 50)
SWEEP_NOISES = (
    LabelNoise(),
    *(LabelNoise("symmetric", rate, seed) for rate in (0.2, 0.4, 0.6, 0.8) for seed in range(5)),
    *(LabelNoise("pair", rate, seed) for rate in (0.2, 0.4) for seed in range(5)),
)
"""A sweep that suits most: protocol B, with five draws of each noise."""

STARTING = 15.0  # seconds that a worker may take from its start until it holds its lock
WORKER = [sys.executable, "-m", "attnknn", "worker"]

_started: dict[Path, tuple[subprocess.Popen[bytes], float]] = {}
"""Workers that this process started, by folder: waited for when they end, and not started twice."""


def submit_training(
    store: JobStore, config: TrainingConfig, name: str | None = None, owner: str = "terminal", command: str = ""
) -> Job:
    """Queue a training run, after checking its bounds on this side of the wire.

    The same configuration as one that is queued, running or paused is that one, under whatever name.

    Raises:
        UnknownDataset: No dataset of that name is registered.
        SettingError: A number is outside its bounds, or the name is taken or not allowed.
        JobError: The owner has too many jobs waiting.
        StorageError: The table of jobs, or the folder of the worker, cannot be written.
    """
    check_bounds(config)
    values = config.to_dict()
    active = [job for job in store.all(ACTIVE) if job.kind == "train"]
    same = next((job for job in active if _plain(job.spec["config"]) == _plain(values)), None)
    if same and name in (None, same.spec["name"]):
        return hand_over(store, same)
    name = name or free_name(config.dataset, store)
    if not NAME.fullmatch(name):
        raise SettingError("name", name, "lower-case letters, digits, - and _, at most 64", "Choose another name.")
    if name in checkpoint_names(root_from_environment()):
        raise SettingError("name", name, "one that no checkpoint has yet", "Choose another name.")
    if name in {job.spec["name"] for job in active}:
        raise SettingError("name", name, "one that no other run will save under", "Choose another name.")
    spec = {"config": values, "name": name, "command": command}
    return hand_over(store, store.submit("train", f"{config.dataset} → {name}", spec, owner))


def submit_download(store: JobStore, dataset: str, owner: str = "terminal") -> Job:
    """Queue the download of a dataset that is not on this machine.

    Raises:
        UnknownDataset: No dataset of that name is registered.
        SettingError: It comes with the product, or nobody may download it.
        JobError: The owner has too many jobs waiting.
        StorageError: The table of jobs, or the folder of the worker, cannot be written.
    """
    description = describe_dataset(dataset)
    if not description.can_be_downloaded:
        ways = f"Put {description.by_hand}." if description.by_hand else "It is here already."
        raise SettingError("dataset", dataset, "one that can be downloaded", ways)
    return hand_over(store, store.submit("download", f"Download {description.title}", {"dataset": dataset}, owner))


def submit_preparation(store: JobStore, checkpoint: str, owner: str = "terminal") -> Job:
    """Queue the preparation of a checkpoint: its bank, its neighbors and its map.

    Raises:
        CheckpointError: There is none of that name, or it cannot be trusted.
        JobError: The owner has too many jobs waiting.
        StorageError: The table of jobs, or the folder of the worker, cannot be written.
    """
    return hand_over(store, store.submit("prepare", f"Prepare {checkpoint}", _spec_of(checkpoint), owner))


def submit_evaluation(
    store: JobStore, checkpoint: str, ks: Sequence[int], noises: Sequence[LabelNoise], owner: str = "terminal"
) -> Job:
    """Queue a sweep: every vote, for each k, under each draw of label noise.

    Raises:
        CheckpointError: There is no checkpoint of that name, or it cannot be trusted.
        SettingError: A k is out of its bounds, or there is nothing, or too much, to measure.
        JobError: The owner has too many jobs waiting.
        StorageError: The table of jobs, or the folder of the worker, cannot be written.
    """
    spec = _spec_of(checkpoint)
    for k in ks:
        _check_bound("k", k)
    levels = len(ks) * len(noises)
    if not 1 <= levels <= MOST_LEVELS:
        raise SettingError("k × noise", f"{levels} levels", f"between 1 and {MOST_LEVELS} levels", "Choose fewer.")
    spec |= {"ks": list(ks), "noises": [[n.kind, n.rate, n.seed] for n in noises]}
    return hand_over(store, store.submit("evaluate", f"Measure {checkpoint}, {levels} levels", spec, owner))


def submit_encoding(store: JobStore, checkpoint: str, values: NDArray[Any], owner: str = "terminal") -> Job:
    """Queue the embedding of one raw input; it does not wait behind long jobs.

    Raises:
        CheckpointError: There is none of that name, or it cannot be trusted.
        InputError: The input is too large, or of another type than bytes or 32-bit floats.
        JobError: The owner has too many jobs waiting.
        StorageError: The table of jobs, or the folder of the worker, cannot be written.
    """
    packed = pack(values)
    unpack(packed)
    spec = _spec_of(checkpoint) | {"input": packed}
    return hand_over(store, store.submit("encode", f"Embed one input for {checkpoint}", spec, owner, lane="quick"))


def check_bounds(config: TrainingConfig) -> None:
    """Check what a visitor may ask for.

    Raises:
        UnknownDataset: No dataset of that name is registered.
        SettingError: A number is outside its bounds, or the label noise of a kind that needs more than a rate.
    """
    if config.dataset not in dataset_names():
        raise UnknownDataset(config.dataset, dataset_names())
    noise = config.label_noise or LabelNoise()
    if noise.kind not in TRAINED_NOISES:
        raise SettingError("noise kind", noise.kind, f"one of {', '.join(TRAINED_NOISES)}", "Choose one of these.")
    values = {**vars(config.embedder), "k": config.attention.k, "seed": config.seed}
    values |= {"label_noise": noise.rate, "noise_seed": noise.seed}
    for setting in LIMITS:
        _check_bound(setting, values[setting])
    check_shares(config.embedder)


def check_shares(embedder: EmbedderConfig) -> None:
    """Check that every member has a share of the embedding.

    Raises:
        SettingError: There are more members than numbers in an embedding.
    """
    if embedder.members > embedder.dimension:
        expected = f"at most the dimension, {embedder.dimension}"
        raise SettingError("members", embedder.members, expected, "Choose fewer members, or more dimensions.")


def hand_over(store: JobStore, job: Job) -> Job:
    """Ring for a queued job, and see that somebody hears it."""
    if job.state == "queued":
        Doorbell(store.settings.queue).ring(job.id, job.lane)
    if job.is_active:
        ensure_worker(store)
    return job


def free_name(dataset: str, store: JobStore | None = None) -> str:
    """Return the dataset's name with the lowest number that no checkpoint has: digits-2.

    Args:
        dataset: Name of a dataset.
        store: Names under which its unfinished runs will save are not free either.
    """
    taken = {*checkpoint_names(root_from_environment())}
    if store:
        taken |= {job.spec.get("name", "") for job in store.all(ACTIVE)}
    number = 2
    while f"{dataset}-{number}" in taken:
        number += 1
    return f"{dataset}-{number}"


def ensure_worker(store: JobStore) -> None:
    """Start a worker on this machine, unless one is alive or ATTNKNN_WORKER=external says that others run it.

    Cheap enough to be called whenever something waits.

    Raises:
        StorageError: The folder of the worker cannot be written.
    """
    settings: JobSettings = store.settings
    if os.environ.get("ATTNKNN_WORKER") == "external" or _is_starting(settings.folder):
        return
    if has_worker_here(settings) or store.has_worker(besides=socket.gethostname()):
        return
    _started[settings.folder] = start_worker(WORKER, settings), time.monotonic()


def _spec_of(checkpoint: str) -> dict[str, Any]:
    """Name a checkpoint together with its weights, since another may come under the same name."""
    found = open_checkpoint(checkpoint, root_from_environment())
    return {"checkpoint": checkpoint, "weights": found.card["files"]["weights.safetensors"]["sha256"]}


def _check_bound(setting: str, value: float) -> None:
    low, high = LIMITS[setting]
    if not low <= value <= high:
        raise SettingError(setting, value, f"between {low:g} and {high:g}", "Choose a value in that range.")


def _is_starting(folder: Path) -> bool:
    """Whether a worker that was started a moment ago is on its way; one that ended is waited for and forgotten."""
    if folder not in _started:
        return False
    process, since = _started[folder]
    if process.poll() is not None:
        del _started[folder]
        return False
    return time.monotonic() - since < STARTING


def _plain(values: object) -> object:
    """Lists and tuples alike, as JSON makes them."""
    if isinstance(values, dict):
        return {name: _plain(value) for name, value in values.items()}
    return [_plain(value) for value in values] if isinstance(values, list | tuple) else values
