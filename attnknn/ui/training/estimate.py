"""How long a run will take: from the timings of finished runs on this machine, or else an honest range. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from attnknn.config import TrainingConfig
from attnknn.data import DatasetDescription
from attnknn.jobs import Event, Job
from attnknn.ui.training.story import n_epochs, write_duration

TRAIN_SHARE = 0.7  # of a dataset's items; the others are test
SPREAD = 0.3  # of a measured time: how far the next run may lie from it, either way
FIRST = {"cnn": ((0.2, 2.0), (10, 40)), "mlp": ((0.1, 0.8), (6, 30))}
"""Before anything was measured, by kind of embedder: seconds per epoch and 1,000 items, and seconds around it."""


@dataclass(frozen=True)
class Timing:
    """What one finished run took.

    Attributes:
        kind: Of its embedder.
        per_epoch: Seconds per epoch and 1,000 items.
        around: Seconds for everything else.
    """

    kind: str
    per_epoch: float
    around: float


@dataclass(frozen=True)
class Estimate:
    """A range of seconds, and how many finished runs it rests on."""

    low: float
    high: float
    n_runs: int

    def sentence(self) -> str:
        """Say how long it will take, and how that is known."""
        low, high = write_duration(_round(self.low)), write_duration(_round(self.high))
        span = low if low == high else f"{low} to {high}"
        runs = "1 finished run" if self.n_runs == 1 else f"{self.n_runs} finished runs"
        how = f"as measured in {runs} on this machine" if self.n_runs else "nothing was measured on this machine yet"
        return f"Takes about {span} ({how})."


def n_items(description: DatasetDescription, config: TrainingConfig) -> float:
    """Return about how many items the embedder will be trained on."""
    return description.n_items * TRAIN_SHARE * (1 - config.held_out)


def time_run(job: Job, events: Sequence[Event], n_trained: float) -> Timing | None:
    """Measure a finished run; None if it was interrupted, or said too little."""
    ended = [event for event in events if isinstance(event.data.get("epoch"), int)]
    is_whole = job.state == "done" and job.attempt == 1 and len(ended) == n_epochs(job) > 1
    if not is_whole or job.started is None or job.ended is None or n_trained <= 0:
        return None
    training = (ended[-1].time - ended[0].time) * len(ended) / (len(ended) - 1)
    per_epoch = training / len(ended) / (n_trained / 1000)
    return Timing(str(job.spec["config"]["embedder"]["kind"]), per_epoch, max(job.ended - job.started - training, 0.0))


def estimate(config: TrainingConfig, n_trained: float, timings: Sequence[Timing]) -> Estimate:
    """Estimate a run from finished ones whose embedder is of the same kind."""
    amount = config.embedder.epochs * n_trained / 1000
    known = [one for one in timings if one.kind == config.embedder.kind]
    if not known:
        pace, around = FIRST[config.embedder.kind]
        return Estimate(pace[0] * amount + around[0], pace[1] * amount + around[1], 0)
    middle = median(one.per_epoch for one in known) * amount + median(one.around for one in known)
    return Estimate(middle * (1 - SPREAD), middle * (1 + SPREAD), len(known))


def _round(seconds: float) -> float:
    """Round to what is worth saying: seconds, then fives, then minutes."""
    step = 1 if seconds < 10 else 5 if seconds < 120 else 60
    return step * max(1, round(seconds / step))
