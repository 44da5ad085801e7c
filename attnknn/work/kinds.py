"""Kinds of job by name. Each imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnknn.checkpoints import root_from_environment
from attnknn.jobs.child import Work
from attnknn.jobs.context import Context

SHARES = {"Downloading": (0.0, 0.9), "Unpacking": (0.9, 0.95), "Decoding": (0.95, 1.0)}
"""Where the share of the bar of each stage of a download begins and ends."""


def train(context: Context) -> Mapping[str, Any]:
    """Train as the spec says, going on from the draft if there is one, and save the checkpoint."""
    from attnknn.work.train import train_checkpoint

    return train_checkpoint(context)


def download(context: Context) -> Mapping[str, Any]:
    """Bring a dataset onto this machine, and decode it once, so that others find it ready."""
    from attnknn.data import fetch, load_dataset

    def report(stage: str, done: float, numbers: Mapping[str, Any]) -> None:
        begin, end = SHARES[stage]
        context.report(stage, begin + (end - begin) * done, numbers)

    name = context.job.spec["dataset"]
    fetch(name, report, context.pause_point)
    return {"dataset": name, "items": len(load_dataset(name).labels)}


def prepare(context: Context) -> Mapping[str, Any]:
    """Embed the bank and the test items of a checkpoint, find neighbors, and draw the map."""
    from attnknn.training.prepare import prepare_checkpoint

    name = context.job.spec["checkpoint"]
    card = prepare_checkpoint(name, root_from_environment(), context.report, context.pause_point)
    return {"checkpoint": name, "trustworthiness": card["projection"]["trustworthiness"]}


def evaluate(context: Context) -> Mapping[str, Any]:
    """Measure every vote for each k under each label noise, going on from the draft if there is one."""
    from attnknn.work.measure import measure_votes

    return measure_votes(context)


def encode(context: Context) -> Mapping[str, Any]:
    """Embed and classify one raw input."""
    from attnknn.work.encoding import encode_input

    return encode_input(context.job.spec)


KINDS: dict[str, Work] = {
    "train": train,
    "download": download,
    "prepare": prepare,
    "evaluate": evaluate,
    "encode": encode,
}
