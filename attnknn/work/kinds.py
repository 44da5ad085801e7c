"""Kinds of job by name. Each imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnknn.checkpoints import root_from_environment
from attnknn.config import TrainingConfig
from attnknn.jobs.child import Context, Work

STAGES = {  # what a report calls it → what a visitor reads, and where its share of the bar begins and ends
    "embedder": ("Training the embedder", 0.02, 0.75),
    "bank": ("Filling the memory bank", 0.75, 0.78),
    "votes": ("Fitting the votes", 0.78, 0.95),
    "evaluation": ("Measuring on test", 0.95, 0.99),
    "done": ("Saving", 0.99, 0.99),
}


def train(context: Context) -> Mapping[str, Any]:
    """Train as the spec says, going on from the draft if there is one, and save the checkpoint."""
    context.report("Starting", 0.0)
    from attnknn.training.run import fit

    spec = context.job.spec

    def report(stage: str, done: float, numbers: Mapping[str, Any]) -> None:
        title, begin, end = STAGES[stage]
        context.report(title, begin + (end - begin) * done, numbers)

    config = TrainingConfig.from_dict(spec["config"])
    classifier = fit(config.dataset, config, report, context.draft, context.pause_point)
    classifier.card["command"] = spec["command"]  # type: ignore[index]
    classifier.save(spec["name"], root_from_environment())
    return {"checkpoint": spec["name"]}


KINDS: dict[str, Work] = {"train": train}
