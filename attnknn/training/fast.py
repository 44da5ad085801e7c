"""Orthogonalized momentum, which makes the most of few steps, and where the numbers are fastest.

    M ← μ M + G;  W ← W · sqrt(rows) / ‖W‖ − r · orthogonal(G + μ M)         matrices and convolutions
    biases and the classifier take Adam's steps

Its price is three percent of a step on 500 images, where bfloat16 is fast.

References:
    Jordan et al. (2024), Muon, https://kellerjordan.github.io/posts/muon/
    Kingma and Ba (2015), https://arxiv.org/abs/1412.6980
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from attnknn.config import EmbedderConfig
from attnknn.models.embedders import Embedder

MATRIX_RATE = 350.0  # learning rate of matrices, in units of the configured one over √steps
ITERATIONS = 3
QUINTIC = (3.4445, -4.7750, 2.0315)
FIRST, SECOND, TINY = 0.85, 0.95, 1e-8
MOMENTUM = 0.6
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4  # what mallopt calls them
USUAL = {TRIM_THRESHOLD: 2**26, MMAP_THRESHOLD: 2**25, MMAP_MAX: 2**16}  # what glibc itself arrives at


class Muon(Optimizer):
    """Steps whose singular values are about one for matrices, Adam's for the rest.

    Args:
        matrices: Weights of convolutions and projections.
        others: Biases and the classifier.
        lr: Adam's rate; matrices move `MATRIX_RATE` / √steps times as much. Since they keep their length, a step
            r turns them by about r, and they forget in 2 / r² steps: a sixth of all, however many there are.
        steps: How many will be taken.
        momentum: μ.
        weight_decay: Shrinks what Adam moves, as in AdamW; matrices keep their length anyway.
    """

    def __init__(
        self,
        matrices: Sequence[Tensor],
        others: Sequence[Tensor],
        lr: float,
        steps: int,
        momentum: float = MOMENTUM,
        weight_decay: float = 0.0,
    ) -> None:
        groups: list[dict[str, Any]] = [
            {"params": list(matrices), "lr": MATRIX_RATE / math.sqrt(steps) * lr, "is_matrix": True},
            {"params": list(others), "lr": lr, "is_matrix": False},
        ]
        super().__init__(groups, {"momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take one step."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    (self._turn if group["is_matrix"] else self._walk)(weight, weight.grad, group)

    def _turn(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(gradient)
        momentum = state["momentum"].mul_(group["momentum"]).add_(gradient)
        direction = gradient + group["momentum"] * momentum
        weight.mul_(len(weight) ** 0.5 / weight.norm())
        kind = torch.bfloat16 if has_fast_bfloat16(weight.device) else weight.dtype
        weight.sub_(group["lr"] * orthogonal(direction.flatten(1).to(kind)).reshape(weight.shape))

    def _walk(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if not state:
            state |= {"step": torch.zeros(()), "first": torch.zeros_like(weight), "second": torch.zeros_like(weight)}
        step = float(state["step"].add_(1))
        first = state["first"].lerp_(gradient, 1 - FIRST) / (1 - FIRST**step)
        second = state["second"].lerp_(gradient.square(), 1 - SECOND) / (1 - SECOND**step)
        weight.mul_(1 - group["lr"] * group["weight_decay"]).sub_(group["lr"] * first / (second.sqrt() + TINY))


def orthogonal(matrix: Tensor) -> Tensor:
    """Bring the singular values of a matrix close to one, by a few Newton-Schulz iterations.

    X ← a X + (b X Xᵀ + c (X Xᵀ)²) X
    """
    a, b, c = QUINTIC
    is_tall = len(matrix) > matrix.shape[1]
    x = matrix.T if is_tall else matrix
    x = x / (x.norm() + TINY)
    for _ in range(ITERATIONS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if is_tall else x


def make_muon(embedder: Embedder, steps: int) -> Muon:
    """Part the weights of an embedder of images into matrices and others, for so many steps."""
    config = embedder.config
    matrices = [weight for weight in embedder.body.parameters() if weight.ndim > 1 and weight.requires_grad]
    known = {id(weight) for weight in matrices}
    others = [weight for weight in embedder.parameters() if weight.requires_grad and id(weight) not in known]
    return Muon(matrices, others, config.learning_rate, steps, weight_decay=config.weight_decay)


def triangle(step: int, steps: int, rising: float = 0.1) -> float:
    """Say which share of the learning rate a step gets: up to one, then down to zero.

    Example:
        >>> [round(triangle(step, 100), 2) for step in (0, 4, 9, 10, 55, 99)]
        [0.1, 0.5, 1.0, 1.0, 0.5, 0.01]
    """
    return min((step + 1) / max(1, rising * steps), (steps - step) / max(1, (1 - rising) * steps))


@contextmanager
def uphill(embedder: Embedder, length: float) -> Iterator[None]:
    """Within the block, every network's matrices stand further along the gradients that lie in them.

    W + ρ G / ‖G‖,  G all gradients of one network's matrices, of length ‖G‖

    A gradient taken there leads to where the loss is flat, and a network that lies flat errs less on what it has not
    seen.

    Args:
        embedder: Its networks for larger images, each by itself; at the end, their weights are what they were.
        length: ρ.

    References:
        Foret et al. (2021), Sharpness-aware minimization, https://arxiv.org/abs/2010.01412; that late is enough: Zhou
        et al. (2025), https://arxiv.org/abs/2410.10373
    """
    before: list[tuple[Tensor, Tensor]] = []
    with torch.no_grad():
        for network in embedder.image_networks():
            slopes = {w: w.grad for w in network.parameters() if w.ndim > 1 and w.grad is not None}
            norm = torch.stack([slope.norm() for slope in slopes.values()]).norm()
            for weight, slope in slopes.items():
                before.append((weight, weight.clone()))
                weight.add_(slope * (length / (norm + TINY)))
    try:
        yield
    finally:
        with torch.no_grad():
            for moved, original in before:
                moved.copy_(original)


@contextmanager
def still_statistics(embedder: Embedder) -> Iterator[None]:
    """Within the block, batches leave the running statistics of batch normalization as they are."""
    norms = [module for module in embedder.modules() if isinstance(module, nn.BatchNorm2d)]
    fading = [norm.momentum for norm in norms]
    try:
        for norm in norms:
            norm.momentum = 0.0
        yield
    finally:
        for norm, usual in zip(norms, fading, strict=True):
            norm.momentum = usual


def best_device() -> torch.device:
    """Choose where images are trained on: CUDA, Apple's GPU, or the processor."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def has_fast_bfloat16(device: torch.device) -> bool:
    """Say whether bfloat16 is faster than float32 here: on CUDA, and on processors that multiply it (AVX-512, AMX)."""
    if device.type != "cpu":
        return device.type == "cuda"
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def fast_numbers(config: EmbedderConfig, device: torch.device) -> AbstractContextManager[Any]:
    """Multiply large images in bfloat16 where that is faster; weights and steps stay in float32."""
    if config.kind == "fast_cnn" and has_fast_bfloat16(device):
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


@contextmanager
def kept_memory() -> Iterator[None]:
    """Within the block, keep the memory that a batch frees for the next one; give it back at the end.

    Otherwise glibc returns every large block to the system, which clears its pages when they are asked for again:
    an eighth of a step on 500 images. Where there is no glibc, nothing changes.

    References:
        mallopt(3), malloc_trim(3)
    """
    libc: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not hasattr(libc, "mallopt"):
        yield
        return
    libc.mallopt(MMAP_MAX, 0)
    libc.mallopt(TRIM_THRESHOLD, -1)
    try:
        yield
    finally:
        for parameter, usual in USUAL.items():
            libc.mallopt(parameter, usual)
        libc.malloc_trim(0)
