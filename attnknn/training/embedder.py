"""Train an embedder with its classifier head, on the fit part only.

Cross-entropy without label smoothing (smoothing collapses classes to points, and neighbors with
them), AdamW, a one-cycle schedule, a fixed number of epochs: nothing is chosen on test.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from attnknn.config import EmbedderConfig
from attnknn.models.embedders import Embedder, augment
from attnknn.training.memory import Moving

Report = Callable[[str, float, dict[str, Any]], None]
"""Called as report(stage, share done between 0 and 1, numbers to show)."""

Look = Callable[[Embedder, int], dict[str, Any]]
"""Called as look(embedder, epoch) after every epoch; what it sees joins the numbers of the report."""

REMEMBER = 2.0  # seconds between two saves, so that short epochs are not spent on writing


def silent(stage: str, done: float, numbers: dict[str, Any]) -> None:
    """Report nothing."""


def blind(embedder: Embedder, epoch: int) -> dict[str, Any]:
    """See nothing."""
    return {}


def never() -> None:
    """Never pause."""


def train_embedder(
    inputs: NDArray[np.generic],
    labels: NDArray[np.integer],
    n_classes: int,
    config: EmbedderConfig,
    seed: int,
    report: Report = silent,
    look: Look = blind,
    remember: Path | None = None,
    pause_point: Callable[[], None] = never,
) -> Embedder:
    """Train on raw inputs and labels; the same seed gives the same weights on the same machine.

    A run that was interrupted at any point, and goes on from the folder it remembers in, ends with the same
    weights as one that was not: bit for bit on one thread.

    Args:
        inputs: Shape (N, ...), unscaled; the embedder learns its own scale from them.
        labels: Integers in 0..C−1, shape (N,).
        n_classes: C.
        config: Body, size and schedule.
        seed: Of weights, order, augmentation and dropout.
        report: Told after every epoch.
        look: Looks at the embedder after every epoch; must draw no random numbers.
        remember: A folder for the state between epochs; training goes on from what lies there.
        pause_point: Called between batches; whatever it raises ends the training.

    Returns:
        The embedder, in evaluation mode.
    """
    torch.manual_seed(seed)
    embedder = Embedder(config, inputs.shape[1:], n_classes)
    embedder.learn_scale(inputs)
    scaled, targets = embedder.prepare(inputs), torch.as_tensor(labels.astype(np.int64))
    moving = _start(embedder, config, len(targets), seed)
    saved = time.monotonic()
    for epoch in range(moving.load(remember) if remember else 0, config.epochs):
        loss = _train_epoch(moving, scaled, targets, pause_point)
        done = epoch + 1
        if remember and (time.monotonic() - saved >= REMEMBER or done == config.epochs):
            moving.save(remember, done)
            saved = time.monotonic()
        report("embedder", done / config.epochs, {"epoch": done, "loss": loss} | look(embedder, done))
    return embedder.eval()


def _start(embedder: Embedder, config: EmbedderConfig, n_items: int, seed: int) -> Moving:
    optimizer = torch.optim.AdamW(embedder.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    steps = config.epochs * -(-n_items // config.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=config.learning_rate, total_steps=max(steps, 10), pct_start=0.2
    )
    return Moving(embedder, optimizer, schedule, torch.Generator().manual_seed(seed))


def _train_epoch(moving: Moving, scaled: Tensor, targets: Tensor, pause_point: Callable[[], None]) -> float:
    """Pass once over the items in random order, and return the mean loss."""
    embedder, config = moving.embedder.train(), moving.embedder.config
    loss_sum = 0.0
    for batch in torch.randperm(len(targets), generator=moving.generator).split(config.batch_size):
        pause_point()
        if len(batch) == 1:
            continue  # batch normalization needs company
        logits = embedder.logits(embedder(augment(scaled[batch], config, moving.generator)))
        loss = F.cross_entropy(logits, targets[batch])
        moving.optimizer.zero_grad()
        loss.backward()
        moving.optimizer.step()
        moving.schedule.step()
        loss_sum += loss.item() * len(batch)
    return loss_sum / len(targets)
