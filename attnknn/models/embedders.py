"""Embedders: inputs → unit vectors, with a classifier head on top that serves as the baseline.

    z = embed(x), ‖z‖ = 1;  logits = s · W z + b

The only module of this package that imports torch. Scaling belongs to the embedder: what it learned
about its inputs (mean and standard deviation of the fit part) is saved with its weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from attnknn.config import EmbedderConfig
from attnknn.errors import InputError

LOGIT_SCALE = 12.0
SMALL_BATCH = 64  # up to here, waking a second thread costs more than it brings


class Embedder(nn.Module):
    """A scaled input, a body, a projection onto the unit sphere, and a classifier head.

    Args:
        config: Which body, and how large.
        input_shape: Shape of one item: (height, width) for an image, (features,) for a row.
        n_classes: C.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, config: EmbedderConfig, input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.config = config
        self.input_shape = tuple(input_shape)
        statistics_shape = () if config.kind == "cnn" else self.input_shape
        self.register_buffer("mean", torch.zeros(statistics_shape))
        self.register_buffer("scale", torch.ones(statistics_shape))
        self.body = BODIES[config.kind](config, self.input_shape)
        self.classifier = nn.Linear(config.dimension, n_classes)

    def learn_scale(self, inputs: NDArray[np.generic]) -> None:
        """Take mean and standard deviation from the fit part: per feature, or over all pixels of images."""
        axes = None if self.config.kind == "cnn" else 0
        values = inputs.astype(np.float64)
        spread = np.asarray(values.std(axis=axes))
        self.mean.copy_(torch.as_tensor(values.mean(axis=axes)))
        self.scale.copy_(torch.as_tensor(np.where(spread > 0, spread, 1.0)))

    def prepare(self, inputs: NDArray[np.generic]) -> Tensor:
        """Turn raw inputs into scaled float32 tensors of shape (B, *input_shape).

        Raises:
            InputError: If one item has another shape, or is not made of finite numbers.
        """
        if inputs.shape[1:] != self.input_shape:
            raise InputError(
                f"The embedder takes items of shape {self.input_shape}.",
                f"The inputs have shape {inputs.shape}, the first axis counting items.",
                "Reshape them, or use the checkpoint that was trained on such inputs.",
            )
        if inputs.dtype.kind not in "biuf":
            raise InputError(
                "Inputs must be finite numbers.", f"Their type is {inputs.dtype}.", "Convert or drop them."
            )
        values = torch.as_tensor(np.array(inputs, dtype=np.float32))
        if not bool(torch.isfinite(values).all()):
            raise InputError("Inputs must be finite numbers.", "Some are NaN or infinite.", "Fill or drop them.")
        return (values - self.mean) / self.scale

    def forward(self, scaled: Tensor) -> Tensor:
        """Embed scaled inputs: unit vectors of shape (B, D)."""
        return F.normalize(self.body(scaled), dim=-1)

    def logits(self, embeddings: Tensor) -> Tensor:
        """Classify embeddings: logits of shape (B, C), the parametric baseline."""
        return self.classifier(LOGIT_SCALE * embeddings)

    @torch.no_grad()
    def embed(
        self, inputs: NDArray[np.generic], batch_size: int = 1024
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Embed and classify raw inputs in evaluation mode.

        Returns:
            Embeddings (B, D), rows of length one, and logits (B, C); both float32.
        """
        self.eval()
        with single_thread() if len(inputs) <= SMALL_BATCH else nullcontext():
            parts = [inputs[start : start + batch_size] for start in range(0, max(len(inputs), 1), batch_size)]
            embeddings = torch.cat([self(self.prepare(part)) for part in parts])
            return embeddings.numpy(), self.logits(embeddings).numpy()


@contextmanager
def single_thread() -> Iterator[None]:
    """Let torch work on one core inside this block; small sums stay in order, and no thread spins."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def small_cnn(config: EmbedderConfig, input_shape: tuple[int, ...]) -> nn.Module:
    """Build three convolutions for small grayscale images: width, 2·width, 2·width channels, one pooling."""
    height, width = input_shape
    channels = 2 * config.width
    return nn.Sequential(
        nn.Unflatten(1, (1, height)),
        nn.Conv2d(1, config.width, 3, padding=1, bias=False),
        nn.BatchNorm2d(config.width),
        nn.GELU(),
        nn.Conv2d(config.width, channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels),
        nn.GELU(),
        nn.Flatten(),
        nn.Dropout(config.dropout),
        nn.Linear(channels * (height // 2) * (width // 2), config.dimension),
    )


def mlp(config: EmbedderConfig, input_shape: tuple[int, ...]) -> nn.Module:
    """Build two hidden layers for rows of numbers, with layer normalization and dropout."""
    (features,) = input_shape
    return nn.Sequential(
        nn.Linear(features, config.width),
        nn.LayerNorm(config.width),
        nn.GELU(),
        nn.Dropout(config.dropout),
        nn.Linear(config.width, config.width),
        nn.LayerNorm(config.width),
        nn.GELU(),
        nn.Dropout(config.dropout),
        nn.Linear(config.width, config.dimension),
    )


BODIES = {"cnn": small_cnn, "mlp": mlp}


def augment(scaled: Tensor, config: EmbedderConfig, generator: torch.Generator) -> Tensor:
    """Move each image by up to `config.shift` pixels, or add noise of `config.jitter` to each row."""
    if config.kind == "mlp":
        return scaled + config.jitter * torch.randn(scaled.shape, generator=generator)
    shift, (count, height, width) = config.shift, scaled.shape
    padded = F.pad(scaled, (shift, shift, shift, shift), value=float(scaled.min()))
    tops, lefts = torch.randint(0, 2 * shift + 1, (2, count), generator=generator)
    rows = tops[:, None] + torch.arange(height)
    columns = lefts[:, None] + torch.arange(width)
    return padded[torch.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
