"""Train an embedder with its classifier head, on the fit part only.

Cross-entropy without label smoothing (smoothing collapses classes to points, and neighbors with
them), AdamW, a one-cycle schedule, a fixed number of epochs: nothing is chosen on test.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from attnknn.config import EmbedderConfig
from attnknn.models.embedders import Embedder, augment

Report = Callable[[str, float, dict[str, float]], None]
"""Called as report(stage, share done between 0 and 1, numbers to show)."""


def silent(stage: str, done: float, numbers: dict[str, float]) -> None:
    """Report nothing."""


def train_embedder(
    inputs: NDArray[np.generic],
    labels: NDArray[np.integer],
    n_classes: int,
    config: EmbedderConfig,
    seed: int,
    report: Report = silent,
) -> Embedder:
    """Train on raw inputs and labels; the same seed gives the same weights on the same machine.

    Args:
        inputs: Shape (N, ...), unscaled; the embedder learns its own scale from them.
        labels: Integers in 0..C−1, shape (N,).
        n_classes: C.
        config: Body, size and schedule.
        seed: Of weights, order, augmentation and dropout.
        report: Told after every epoch.

    Returns:
        The embedder, in evaluation mode.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    embedder = Embedder(config, inputs.shape[1:], n_classes)
    embedder.learn_scale(inputs)
    scaled, targets = embedder.prepare(inputs), torch.as_tensor(labels.astype(np.int64))
    optimizer = torch.optim.AdamW(embedder.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    steps = -(-len(targets) // config.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=config.learning_rate, total_steps=max(config.epochs * steps, 10), pct_start=0.2
    )
    for epoch in range(config.epochs):
        embedder.train()
        loss_sum = 0.0
        for batch in torch.randperm(len(targets), generator=generator).split(config.batch_size):
            if len(batch) == 1:
                continue  # batch normalization needs company
            logits = embedder.logits(embedder(augment(scaled[batch], config, generator)))
            loss = F.cross_entropy(logits, targets[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            loss_sum += loss.item() * len(batch)
        report("embedder", (epoch + 1) / config.epochs, {"epoch": epoch + 1, "loss": loss_sum / len(targets)})
    return embedder.eval()
