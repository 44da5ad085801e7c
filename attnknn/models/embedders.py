"""Embedders: inputs → unit vectors, with a classifier head on top that serves as the baseline.

    z = embed(x), ‖z‖ = 1;  logits = s · W z + b;  of M members, z = [z_1, …, z_M] / √M

Scaling belongs to the embedder: what it learned about its inputs (mean and standard deviation of the fit
part, and of images the directions of their patches) is saved with its weights.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from attnknn.config import EmbedderConfig
from attnknn.errors import InputError
from attnknn.models.image_network import ImageNetwork

LOGIT_SCALE = 12.0
CHUNK = 1000  # images that are float64 at one time
SAMPLE = 1000  # images that the first layer is fitted to
SMALL_BATCH = 64  # up to here, waking a second thread costs more than it brings


class Embedder(nn.Module):
    """A scaled input, a body, a projection onto the unit sphere, and a classifier head.

    Args:
        config: Which body, and how large.
        input_shape: Shape of one item: (height, width) or (height, width, 3) for an image, (features,) for a row.
        n_classes: C.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, config: EmbedderConfig, input_shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.config = config
        self.input_shape = tuple(input_shape)
        statistics_shape = self.input_shape if config.kind == "mlp" else self.input_shape[2:]
        self.register_buffer("mean", torch.zeros(statistics_shape))
        self.register_buffer("scale", torch.ones(statistics_shape))
        self.body = (BODIES[config.kind] if config.members == 1 else Ensemble)(config, self.input_shape)
        self.classifier = nn.Linear(config.dimension, n_classes)

    def learn_scale(self, inputs: NDArray[np.generic]) -> None:
        """Take mean and standard deviation from the fit part: per feature, or over all pixels of each color."""
        axes = (0,) if self.config.kind == "mlp" else (0, 1, 2)
        mean, spread = moments(inputs, axes)
        self.mean.copy_(torch.as_tensor(mean))
        self.scale.copy_(torch.as_tensor(np.where(spread > 0, spread, 1.0)))
        if self.config.kind == "fast_cnn":
            sample = self.prepare(inputs[:: -(-len(inputs) // SAMPLE)])
            for network in self.image_networks():
                network.learn_whitening(sample)

    def image_networks(self) -> list[ImageNetwork]:
        """List the networks for larger images, side by side."""
        return [network for network in self.modules() if isinstance(network, ImageNetwork)]

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
        return (values.to(self.mean.device) - self.mean) / self.scale

    def forward(self, scaled: Tensor) -> Tensor:
        """Embed scaled inputs: unit vectors of shape (B, D)."""
        return F.normalize(self.body(scaled).float(), dim=-1)

    def logits(self, embeddings: Tensor) -> Tensor:
        """Classify embeddings: logits of shape (B, C), the parametric baseline."""
        return self.classifier(LOGIT_SCALE * embeddings).float()

    def member_logits(self, embeddings: Tensor) -> Tensor:
        """Classify by each member's share of the embeddings alone: shape (M, B, C). Their mean is `logits`.

        logits_m = M s · W_m z_m + b
        """
        members, weights = self.config.members, self.classifier.weight
        shares = zip(embeddings.tensor_split(members, dim=1), weights.tensor_split(members, dim=1), strict=True)
        bias = self.classifier.bias
        return torch.stack([F.linear(members * LOGIT_SCALE * share, weight, bias) for share, weight in shares])

    @torch.no_grad()
    def embed(
        self, inputs: NDArray[np.generic], batch_size: int = 1024
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Embed and classify raw inputs in evaluation mode.

        Returns:
            Embeddings (B, D), rows of length one, and logits (B, C); both float32.
        """
        self.eval()
        with threads(1 if len(inputs) <= SMALL_BATCH else threads_for(self.config)):
            parts = [inputs[start : start + batch_size] for start in range(0, max(len(inputs), 1), batch_size)]
            embeddings = torch.cat([self(self.prepare(part)) for part in parts])
            return embeddings.cpu().numpy(), self.logits(embeddings).cpu().numpy()

    @torch.no_grad()
    def round_weights(self) -> None:
        """Round a large network's numbers to what float16 holds, so that it can be saved in half the room."""
        if self.config.kind == "fast_cnn":
            for tensor in self.state_dict().values():
                if tensor.is_floating_point():
                    tensor.copy_(tensor.half())

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what a checkpoint saves, by name: a large network in float16, if that is exact."""
        saved = {name: tensor.detach().cpu().numpy() for name, tensor in self.state_dict().items()}
        if self.config.kind != "fast_cnn":
            return saved
        halved = {
            name: array.astype(np.float16) if array.dtype == np.float32 else array for name, array in saved.items()
        }
        is_exact = all(np.array_equal(halved[name], array) for name, array in saved.items())
        return halved if is_exact else saved


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch work on so many cores inside this block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def threads_for(config: EmbedderConfig) -> int:
    """Say how many cores an embedder is worth: ATTNKNN_THREADS or all there are for large images, else one.

    On small networks threads cost more than they bring, and on one core small sums stay in order.
    """
    if config.kind != "fast_cnn":
        return 1
    asked, there = os.environ.get("ATTNKNN_THREADS", ""), os.cpu_count() or 1
    return min(max(1, int(asked)), there) if asked.isdecimal() else there


def moments(inputs: NDArray[np.generic], axes: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation over axes, the first among them: in float64, and a piece at a time."""
    pieces = [slice(start, start + CHUNK) for start in range(0, len(inputs), CHUNK)]
    count = np.prod([inputs.shape[axis] for axis in axes])
    mean = sum(inputs[piece].astype(np.float64).sum(axis=axes) for piece in pieces) / count
    squares = sum(((inputs[piece].astype(np.float64) - mean) ** 2).sum(axis=axes) for piece in pieces)
    return np.asarray(mean), np.sqrt(np.asarray(squares) / count)


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


class Ensemble(nn.Module):
    """Networks side by side, whose unit vectors are joined: they err in different places.

    Args:
        config: Kind and size of the M networks; each makes its share of the D numbers.
        input_shape: Shape of one item.

    Raises:
        ValueError: If there are more members than numbers in an embedding.

    References:
        Lakshminarayanan et al. (2017), https://arxiv.org/abs/1612.01474
    """

    def __init__(self, config: EmbedderConfig, input_shape: tuple[int, ...]) -> None:
        super().__init__()
        if not 1 <= config.members <= config.dimension:
            raise ValueError(f"members must be 1 to {config.dimension}, the dimension, however: {config.members}")
        shares = [len(share) for share in np.array_split(np.arange(config.dimension), config.members)]
        build = BODIES[config.kind]
        self.networks = nn.ModuleList(build(replace(config, dimension=share), input_shape) for share in shares)

    def forward(self, scaled: Tensor) -> Tensor:
        """Join what each network says, each share of length one."""
        return torch.cat([F.normalize(network(scaled).float(), dim=-1) for network in self.networks], dim=-1)


BODIES: dict[str, Callable[[EmbedderConfig, tuple[int, ...]], nn.Module]] = {
    "cnn": small_cnn,
    "mlp": mlp,
    "fast_cnn": ImageNetwork,
}


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
