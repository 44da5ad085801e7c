"""What a run remembers between two epochs, so that an interrupted one ends with the same weights.

One safetensors file holds the embedder, the optimizer's moments and both random states; its metadata hold the
epoch and the schedule as JSON. It is written beside its place and moved there in one step.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Generator, Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from attnknn.models.embedders import Embedder

FILE = "epoch.safetensors"


@dataclass(frozen=True)
class Moving:
    """Everything that changes while an embedder is trained."""

    embedder: Embedder
    optimizer: Optimizer
    schedule: LRScheduler
    generator: Generator

    def save(self, folder: Path, epoch: int) -> None:
        """Write the state after `epoch` whole epochs."""
        tensors = {f"embedder.{name}": tensor.contiguous() for name, tensor in self.embedder.state_dict().items()}
        for number, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"moments.{number}.{name}": tensor.contiguous().clone() for name, tensor in moments.items()}
        tensors |= {"random.global": torch.get_rng_state(), "random.order": self.generator.get_state()}
        plain = {
            "epoch": epoch,
            "groups": self.optimizer.state_dict()["param_groups"],
            "schedule": {name: value for name, value in self.schedule.state_dict().items() if _is_plain(value)},
        }
        draft = folder / f".{FILE}"
        save_file(tensors, draft, metadata={"state": json.dumps(plain)})
        draft.replace(folder / FILE)

    def load(self, folder: Path) -> int:
        """Go back to the saved state, if there is one, and return how many epochs are done."""
        if not (folder / FILE).exists():
            return 0
        with safe_open(folder / FILE, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            plain = json.loads(file.metadata()["state"])
        self.embedder.load_state_dict(_below("embedder.", tensors))
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _below("moments.", tensors).items():
            number, moment = name.split(".")
            moments.setdefault(int(number), {})[moment] = tensor
        groups = [{name: tuple(v) if name == "betas" else v for name, v in one.items()} for one in plain["groups"]]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        self.schedule.load_state_dict(plain["schedule"])
        torch.set_rng_state(tensors["random.global"])
        self.generator.set_state(tensors["random.order"])
        return int(plain["epoch"])


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
