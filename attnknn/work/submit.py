"""Ask for work: check what is asked, queue it, and see that somebody does it."""

from __future__ import annotations

import os
import subprocess
import sys

from attnknn.checkpoints import NAME, checkpoint_names, root_from_environment
from attnknn.config import TrainingConfig
from attnknn.errors import SettingError
from attnknn.jobs import Job, JobSettings, JobStore
from attnknn.jobs.doorbell import Doorbell

LIMITS: dict[str, tuple[float, float]] = {
    "epochs": (1, 500),
    "batch_size": (4, 4096),
    "dimension": (2, 512),
    "width": (4, 512),
    "learning_rate": (1e-5, 0.5),
}


def submit_training(
    store: JobStore, config: TrainingConfig, name: str | None = None, owner: str = "terminal", command: str = ""
) -> Job:
    """Queue a training run, after checking its bounds on this side of the wire.

    Raises:
        SettingError: A number is outside its bounds, or the name is taken or not allowed.
        JobError: The owner has too many jobs waiting.
    """
    for setting, (low, high) in LIMITS.items():
        value = getattr(config.embedder, setting)
        if not low <= value <= high:
            raise SettingError(setting, value, f"between {low:g} and {high:g}", "Choose a value in that range.")
    name = name or free_name(config.dataset)
    if not NAME.fullmatch(name):
        raise SettingError("name", name, "lower-case letters, digits, - and _, at most 64", "Choose another name.")
    if name in checkpoint_names(root_from_environment()):
        raise SettingError("name", name, "one that no checkpoint has yet", "Choose another name.")
    spec = {"config": config.to_dict(), "name": name, "command": command}
    return hand_over(store, store.submit("train", f"{config.dataset} → {name}", spec, owner))


def hand_over(store: JobStore, job: Job) -> Job:
    """Ring for a queued job, and see that somebody hears it."""
    if job.state == "queued":
        Doorbell(store.settings.queue).ring(job.id)
        ensure_worker(store)
    return job


def free_name(dataset: str) -> str:
    """Return the dataset's name with the lowest number that no checkpoint has: digits-2."""
    taken = checkpoint_names(root_from_environment())
    number = 2
    while f"{dataset}-{number}" in taken:
        number += 1
    return f"{dataset}-{number}"


def ensure_worker(store: JobStore) -> None:
    """Start a worker on this machine, unless one is alive or ATTNKNN_WORKER=external says that others run it."""
    if os.environ.get("ATTNKNN_WORKER") == "external" or store.has_worker():
        return
    settings: JobSettings = store.settings
    settings.folder.mkdir(parents=True, exist_ok=True)
    with (settings.folder / "worker.log").open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", "attnknn", "worker"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
