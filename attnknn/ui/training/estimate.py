"""How long a run will take: from the timings of finished runs on this machine, or else an honest range. Pure.

    seconds per epoch = pace · (steps · STEP + items · (activations · ACTIVATION + operations · OPERATION))

The three costs are those of one core of the machine on which they were measured. What differs between machines
is the pace, and that is taken from finished runs, whatever their width, batch size and number of items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from attnknn.config import EmbedderConfig, TrainingConfig
from attnknn.data import DatasetDescription
from attnknn.jobs import Event, Job
from attnknn.ui.training.story import n_epochs, write_duration

TRAIN_SHARE = 0.7  # of a dataset's items; the others are test
STEP = {"cnn": 6e-3, "mlp": 4e-3, "fast_cnn": 5e-2}  # seconds: what a step costs however small the network is
ACTIVATION = 4e-8  # seconds per number that is normalized, bent and kept for the way back
OPERATION = 1 / 6e10  # seconds per multiplication or addition, there and back
WHITENED = 24  # channels of the first layer of the network for small images
AROUND = (8.5, 8e-3)  # seconds for everything else: whatever the data, and per item
UNKNOWN = {"cnn": (0.4, 3.0), "mlp": (0.4, 3.0), "fast_cnn": (0.15, 3.0)}
"""Between which paces a machine lies on which nothing was measured; some multiply large images in bfloat16."""
SPREAD = 0.3  # of a measured time: how far the next run may lie from it, either way
SPREAD_ELSEWHERE = 0.6  # the same, where only other data were measured


@dataclass(frozen=True)
class Amount:
    """How much work a run is, in seconds of the machine on which the costs were measured.

    Attributes:
        dataset: What is trained on.
        kind: Of its embedder.
        training: All epochs together.
        around: Everything else: start, bank, votes, measures on test.
    """

    dataset: str
    kind: str
    training: float
    around: float


@dataclass(frozen=True)
class Timing:
    """What one finished run took, in multiples of what its amount of work says.

    Attributes:
        dataset: What it was trained on.
        kind: Of its embedder.
        pace: Of its epochs.
        around: Of everything else.
    """

    dataset: str
    kind: str
    pace: float
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


def n_trained(description: DatasetDescription, config: TrainingConfig) -> float:
    """Return about how many items the embedder will be trained on."""
    return description.n_items * TRAIN_SHARE * (1 - config.held_out)


def weigh(config: TrainingConfig, n_items: float, n_inputs: int) -> Amount:
    """Weigh a run.

    Args:
        config: What is trained.
        n_items: How many items the embedder is trained on.
        n_inputs: How many pixels or features an item has.
    """
    embedder = config.embedder
    activations, operations = COUNTS[embedder.kind](embedder, n_inputs)
    of_one = activations * ACTIVATION + 6 * operations * OPERATION  # two each: forward, and twice backward
    epoch = ceil(n_items / embedder.batch_size) * STEP[embedder.kind] + n_items * embedder.members * of_one
    return Amount(config.dataset, embedder.kind, embedder.epochs * epoch, AROUND[0] + AROUND[1] * n_items)


def time_run(job: Job, events: Sequence[Event], amount: Amount) -> Timing | None:
    """Measure a finished run; None if it was interrupted, or said too little."""
    ended = [event for event in events if isinstance(event.data.get("epoch"), int)]
    is_whole = job.state == "done" and job.attempt == 1 and len(ended) == n_epochs(job) > 1
    if not is_whole or job.started is None or job.ended is None:
        return None
    training = (ended[-1].time - ended[0].time) * len(ended) / (len(ended) - 1)
    around = max(job.ended - job.started - training, 0.0)
    return Timing(amount.dataset, amount.kind, training / amount.training, around / amount.around)


def estimate(amount: Amount, timings: Sequence[Timing]) -> Estimate:
    """Estimate a run from finished ones whose embedder is of the same kind."""
    known = [one for one in timings if one.kind == amount.kind]
    if not known:
        low, high = (pace * (amount.training + amount.around) for pace in UNKNOWN[amount.kind])
        return Estimate(low, high, 0)
    on_these = [one for one in known if one.dataset == amount.dataset]
    spread, known = (SPREAD, on_these) if on_these else (SPREAD_ELSEWHERE, known)
    training = amount.training * median(one.pace for one in known)
    middle = training + amount.around * median(one.around for one in known)
    return Estimate(middle * (1 - spread), middle * (1 + spread), len(known))


def _count_cnn(config: EmbedderConfig, pixels: int) -> tuple[float, float]:
    """Count activations, and multiplications with additions, of three convolutions and a projection."""
    width, wide = config.width, 2 * config.width
    activations = pixels * (width + wide + wide / 4)
    operations = 9 * pixels * (width + width * wide + wide * wide / 4) + wide * pixels / 4 * config.dimension
    return activations, operations


def _count_mlp(config: EmbedderConfig, features: int) -> tuple[float, float]:
    """The same of two hidden layers and a projection."""
    width = config.width
    return 2 * width, width * (features + width + config.dimension)


def _count_fast_cnn(config: EmbedderConfig, pixels: int) -> tuple[float, float]:
    """Count what two cores do together in three pairs of convolutions, the pooling between those of a pair.

    Beside such convolutions, what is normalized and bent hardly counts.
    """
    width = config.width
    first, middle, last = WHITENED * width + width**2 / 4, (4 + 16 / 4) * width**2 / 4, (16 + 16 / 4) * width**2 / 16
    return 0.0, 9 * pixels * (first + middle + last) / 2


COUNTS = {"cnn": _count_cnn, "mlp": _count_mlp, "fast_cnn": _count_fast_cnn}


def _round(seconds: float) -> float:
    """Round to what is worth saying: seconds, then fives, then minutes."""
    step = 1 if seconds < 10 else 5 if seconds < 120 else 60
    return step * max(1, round(seconds / step))
