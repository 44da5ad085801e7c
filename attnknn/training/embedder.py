"""Train an embedder with its classifier head, on the fit part only.

Cross-entropy, by default without label smoothing (smoothing collapses classes to points, and neighbors with
them), a schedule that ends at zero, a fixed number of epochs: nothing is chosen on test. Small networks take
AdamW's steps on one core, large ones orthogonalized momentum on all of them. Inputs stay as raw as they came;
one batch at a time is scaled and moved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from attnknn.config import EmbedderConfig
from attnknn.models.embedders import Embedder, augment, threads, threads_for
from attnknn.models.image_network import cut_out, shift_and_flip
from attnknn.reporting import PausePoint, Report, never, silent
from attnknn.training.fast import (
    best_device,
    fast_numbers,
    kept_memory,
    make_muon,
    still_statistics,
    triangle,
    uphill,
)
from attnknn.training.memory import Moving

Look = Callable[[Embedder, int], dict[str, Any]]
"""Called as look(embedder, epoch) after every epoch; what it sees joins the numbers of the report."""

UPHILL_FROM = 0.6  # of the epochs on: late is where it decides what is found
SAYS_UP = 2  # one of so many items of a batch says where up is
BIAS_EPOCHS = 3  # that the biases of the first layer are learned for; it is the largest, and need not go back then
REMEMBER = 2.0  # seconds between two saves, so that short epochs are not spent on writing


def blind(embedder: Embedder, epoch: int) -> dict[str, Any]:
    """See nothing."""
    return {}


def train_embedder(
    inputs: NDArray[np.generic],
    labels: NDArray[np.integer],
    n_classes: int,
    config: EmbedderConfig,
    seed: int,
    report: Report = silent,
    look: Look = blind,
    remember: Path | None = None,
    pause_point: PausePoint = never,
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
    with threads(threads_for(config)), kept_memory():
        torch.manual_seed(seed)
        embedder = Embedder(config, inputs.shape[1:], n_classes)
        embedder.learn_scale(inputs)
        embedder.to(best_device() if config.kind == "fast_cnn" else "cpu")
        moving, batches = _start(embedder, len(labels), seed), Batches(inputs, labels, config, seed)
        saved = time.monotonic()
        for epoch in range(moving.load(remember) if remember else 0, config.epochs):
            loss = _train_epoch(moving, batches, epoch, pause_point)
            done = epoch + 1
            if done == config.epochs:
                embedder.round_weights()
            if remember and (time.monotonic() - saved >= REMEMBER or done == config.epochs):
                moving.save(remember, done)
                saved = time.monotonic()
            report("embedder", done / config.epochs, {"epoch": done, "loss": loss} | look(embedder, done))
        return embedder.cpu().eval()


class Batches:
    """Raw items in random order, made ready one batch at a time.

    Args:
        inputs: Shape (N, ...), unscaled.
        labels: Shape (N,).
        config: Size of a batch, and how items are altered.
        seed: Decides which images are mirrored in even epochs; the others are in odd ones, so that two
            epochs show every image both ways.
    """

    def __init__(
        self, inputs: NDArray[np.generic], labels: NDArray[np.integer], config: EmbedderConfig, seed: int
    ) -> None:
        self.inputs, self.targets, self.config = inputs, torch.as_tensor(labels.astype(np.int64)), config
        coin = torch.Generator().manual_seed(seed)
        self.flips_in_even = (torch.rand(len(labels), generator=coin) < 0.5) & config.flip

    def __len__(self) -> int:
        """Count the items."""
        return len(self.targets)

    def rows(self, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Shuffle the items, and part them into batches."""
        return torch.randperm(len(self), generator=generator).split(self.config.batch_size)

    def take(self, rows: Tensor, epoch: int, moving: Moving) -> tuple[Tensor, Tensor]:
        """Scale and alter the items of some rows, and return them with their labels."""
        embedder, config, generator = moving.embedder, self.config, moving.generator
        scaled = embedder.prepare(self.inputs[rows.numpy()])
        if config.kind != "fast_cnn":
            return augment(scaled, config, generator), self.targets[rows]
        is_flipped = self.flips_in_even[rows] ^ (config.flip and epoch % 2 == 1)
        moved = shift_and_flip(scaled, is_flipped, config.shift, generator)
        return cut_out(moved, config.cutout, generator), self.targets[rows].to(scaled.device)


def _start(embedder: Embedder, n_items: int, seed: int) -> Moving:
    config, generator = embedder.config, torch.Generator().manual_seed(seed)
    steps = max(10, config.epochs * -(-n_items // config.batch_size))
    if config.kind == "fast_cnn":
        muon = make_muon(embedder, steps)
        falling = torch.optim.lr_scheduler.LambdaLR(muon, lambda step: triangle(step, steps))
        return Moving(embedder, muon, falling, generator)
    optimizer = torch.optim.AdamW(embedder.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=config.learning_rate, total_steps=steps, pct_start=0.2
    )
    return Moving(embedder, optimizer, schedule, generator)


def _train_epoch(moving: Moving, batches: Batches, epoch: int, pause_point: PausePoint) -> float:
    """Pass once over the items in random order, and return the mean loss."""
    embedder, config = moving.embedder.train(), moving.embedder.config
    goes_uphill = config.kind == "fast_cnn" and config.ascent > 0 and epoch >= UPHILL_FROM * config.epochs
    for network in embedder.image_networks():
        network.whitening.bias.requires_grad_(epoch < BIAS_EPOCHS)
    loss_sum = 0.0
    for rows in batches.rows(moving.generator):
        pause_point()
        if len(rows) == 1:
            continue  # batch normalization needs company
        items, targets = batches.take(rows, epoch, moving)
        if goes_uphill:
            some = slice(max(2, len(rows) // SAYS_UP))
            with still_statistics(embedder):
                _find_gradient(embedder, items[some], targets[some])
        with uphill(embedder, config.ascent) if goes_uphill else nullcontext():
            loss = _find_gradient(embedder, items, targets)
        moving.optimizer.step()
        moving.schedule.step()
        loss_sum += loss * len(rows)
    return loss_sum / len(batches)


def _find_gradient(embedder: Embedder, items: Tensor, targets: Tensor) -> float:
    """Leave the gradient of the loss on one batch in the weights, and return the loss."""
    with fast_numbers(embedder.config, items.device):
        embeddings = embedder(items)
    said = embedder.member_logits(embeddings)  # each member learns from its own errors
    loss = F.cross_entropy(said.flatten(0, 1), targets.repeat(len(said)), label_smoothing=embedder.config.smoothing)
    embedder.zero_grad()
    loss.backward()
    return loss.item()
