"""Accuracy of image embedders against seconds and operations: python -m benchmarks.embedders cifar10 --rival.

Trained on nine tenths of the training items, measured on all test items without averaging over views; nothing
is chosen on them. After every epoch the head's accuracy is told (measuring is not in the seconds), at the end
that of a uniform vote of 16 neighbors. Operations are multiplications and additions of both passes, as PyTorch
counts them. The rival is torchvision's ResNet-18 with a 3×3 stem, with the same images, batches, augmentation and type
of numbers, one SGD cycle that ends when the same seconds are over.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from attnknn.arrays import softmax, tally
from attnknn.bank.exact import search_exact
from attnknn.config import EmbedderConfig
from attnknn.data import Dataset, load_dataset, split_by_group
from attnknn.metrics import accuracy, negative_log_likelihood
from attnknn.models.embedders import Embedder, threads, threads_for
from attnknn.models.image_network import channels_first
from attnknn.training.defaults import default_config
from attnknn.training.embedder import Batches, train_embedder
from attnknn.training.fast import fast_numbers, triangle
from attnknn.training.memory import Moving
from attnknn.votes import uniform_weights

K = 16
FLOOR = 1e-3
HELD_OUT = 0.1
TRILLION = 1e12
RATE, MOMENTUM, DECAY = 0.1, 0.9, 5e-4  # of the rival


@dataclass
class Clock:
    """Wall and processor seconds, without those spent on measuring."""

    wall: float = 0.0
    processor: float = 0.0

    def __post_init__(self) -> None:
        self.resume()

    def stop(self) -> None:
        """Stop counting."""
        self.wall += time.perf_counter() - self._wall
        self.processor += time.process_time() - self._processor

    def resume(self) -> None:
        """Count again."""
        self._wall, self._processor = time.perf_counter(), time.process_time()


@dataclass(frozen=True)
class World:
    """What is trained on, and what is measured on."""

    dataset: Dataset
    fit: np.ndarray
    test: np.ndarray

    @classmethod
    def load(cls, name: str) -> World:
        """Part a registered dataset."""
        dataset = load_dataset(name)
        train = dataset.where("train")
        is_held = split_by_group(dataset.labels[train], dataset.groups[train], HELD_OUT, 0)
        return cls(dataset, train[~is_held], dataset.where("test"))

    def head_accuracy(self, embedder: Embedder) -> float:
        """Measure the classifier's head on test."""
        _, logits = embedder.embed(self.dataset.inputs[self.test])
        return accuracy(softmax(logits), self.dataset.labels[self.test])

    def neighbors_say(self, embedder: Embedder) -> np.ndarray:
        """Probabilities of a uniform vote of the nearest fit items, for every test item."""
        (keys, _), (queries, _) = (embedder.embed(self.dataset.inputs[rows]) for rows in (self.fit, self.test))
        found = search_exact(keys, queries, K, self.dataset.ids[self.fit])
        labels = self.dataset.labels[self.fit][found.entries]
        p = tally(uniform_weights(found.distances), labels, self.dataset.n_classes)
        return (1 - FLOOR) * p + FLOOR / self.dataset.n_classes


def operations(embedder: Embedder, side: int) -> int:
    """Count what one training image of some side costs, forward and backward."""
    images = torch.zeros(2, side, side, *embedder.input_shape[2:])
    with FlopCounterMode(display=False) as counter:
        embedder(images).sum().backward()
    embedder.zero_grad()
    return int(counter.get_total_flops() / len(images))


def train_ours(world: World, config: EmbedderConfig, seed: int) -> tuple[Embedder, float]:
    """Train, print the curve, and return the seconds it took."""
    clock, side, done = Clock(), world.dataset.inputs.shape[1], 0

    def look(embedder: Embedder, epoch: int) -> dict[str, float]:
        nonlocal done
        clock.stop()
        accuracy = world.head_accuracy(embedder)
        done += len(world.fit) * operations(deepcopy(embedder).train(), side)
        tell("ours", epoch, clock, done, accuracy)
        clock.resume()
        return {}

    inputs, labels = world.dataset.inputs[world.fit], world.dataset.labels[world.fit]
    return train_embedder(inputs, labels, world.dataset.n_classes, config, seed, look=look), clock.wall


class ResNet(nn.Module):
    """torchvision's ResNet-18 for small images: a 3×3 stem, no pooling before the first block."""

    def __init__(self, channels: int, dimension: int) -> None:
        from torchvision.models import resnet18

        super().__init__()
        self.network = resnet18(num_classes=dimension)
        self.network.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        self.network.maxpool = nn.Identity()

    def forward(self, scaled: Tensor) -> Tensor:
        """Map images to vectors."""
        return self.network(channels_first(scaled))


def train_rival(world: World, config: EmbedderConfig, seed: int, seconds: float) -> Embedder:
    """Train until the seconds are over, on a schedule that knows them."""
    torch.manual_seed(seed)
    inputs, labels = world.dataset.inputs[world.fit], world.dataset.labels[world.fit]
    embedder = Embedder(config, inputs.shape[1:], world.dataset.n_classes)
    embedder.learn_scale(inputs)
    embedder.body = ResNet(inputs.shape[3] if inputs.ndim == 4 else 1, config.dimension)
    sgd = torch.optim.SGD(embedder.parameters(), RATE, MOMENTUM, nesterov=True, weight_decay=DECAY)
    still = torch.optim.lr_scheduler.ConstantLR(sgd, 1.0)
    moving = Moving(embedder, sgd, still, torch.Generator().manual_seed(seed))
    each = operations(deepcopy(embedder), inputs.shape[1])
    clock, told, done = Clock(), 0, 0
    for epoch, items, targets in endless(Batches(inputs, labels, config, seed), moving):
        clock.stop()
        if clock.wall >= seconds or epoch > told:
            tell("ResNet-18", told + 1, clock, done, world.head_accuracy(embedder))
            told = epoch
        if clock.wall >= seconds:
            return embedder
        clock.resume()
        sgd.param_groups[0]["lr"] = RATE * triangle(int(clock.wall), int(seconds) + 1)
        with fast_numbers(config, items.device):
            embeddings = embedder.train()(items)
        loss = F.cross_entropy(embedder.logits(embeddings), targets)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        done += each * len(items)
    raise AssertionError("batches never end")


def endless(batches: Batches, moving: Moving) -> Iterator[tuple[int, Tensor, Tensor]]:
    epoch = 0
    while True:
        for rows in batches.rows(moving.generator):
            yield epoch, *batches.take(rows, epoch, moving)
        epoch += 1


def tell(name: str, epoch: int, clock: Clock, done: int, share: float) -> None:
    used = f"{clock.wall:.0f} | {clock.processor / 60:.1f} | {done / TRILLION:.1f}"
    print(f"| {name} | {epoch} | {used} | {share:.2%} | | |", flush=True)


def tell_neighbors(name: str, world: World, embedder: Embedder) -> None:
    p, labels = world.neighbors_say(embedder), world.dataset.labels[world.test]
    print(
        f"| {name} | end | | | | | {accuracy(p, labels):.2%} | {negative_log_likelihood(p, labels):.3f} |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", choices=("cifar10", "fashion_mnist"), nargs="?", default="cifar10")
    parser.add_argument(
        "--rival", nargs="?", type=float, const=0.0, metavar="SECONDS", help="ResNet-18: as long as ours, or alone"
    )
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--smoothing", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    world = World.load(asked.dataset)
    usual = default_config(world.dataset).embedder
    config = replace(usual, epochs=asked.epochs or usual.epochs, smoothing=asked.smoothing)
    print(f"{world.dataset.title}, {len(world.fit)} fit, {len(world.test)} test; {config}\n")
    print("| embedder | epoch | seconds | CPU-minutes | 10¹² operations | head | 16 neighbors | their NLL |")
    print("|---" * 8 + "|")
    seconds = asked.rival
    if not seconds:
        embedder, seconds = train_ours(world, config, asked.seed)
        tell_neighbors("ours", world, embedder)
    if asked.rival is not None:
        with threads(threads_for(config)):
            tell_neighbors("ResNet-18", world, train_rival(world, config, asked.seed, seconds))


if __name__ == "__main__":
    main()
