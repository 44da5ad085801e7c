"""Training as a job: what a visitor reads meanwhile, and the name that the checkpoint gets."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnknn.checkpoints import root_from_environment
from attnknn.config import TrainingConfig
from attnknn.jobs.context import Context

STAGES = {  # what a report calls it → what a visitor reads, and where its share of the bar begins and ends
    "embedder": ("Training the embedder", 0.02, 0.75),
    "bank": ("Filling the memory bank", 0.75, 0.78),
    "votes": ("Fitting the votes", 0.78, 0.95),
    "evaluation": ("Measuring on test", 0.95, 0.99),
    "done": ("Saving", 0.99, 0.99),
}
PLACE = "place"  # in the draft: the name that this job saves under, once it began to


def train_checkpoint(context: Context) -> Mapping[str, Any]:
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
    context.check()
    name = choose_place(context.draft, spec["name"], root_from_environment())
    if name != spec["name"]:
        context.say("log", {"line": f"{spec['name']} was taken meanwhile; saved as {name}"})
    classifier.save(name, root_from_environment())
    return {"checkpoint": name}


def choose_place(draft: Path, wanted: str, root: Path) -> str:
    """Return the name to save under: the one wanted, or with a number if another run has taken it meanwhile.

    A job that died while it saved, and goes on, saves under the same name again.
    """
    note = draft / PLACE
    if note.exists():
        name = note.read_text(encoding="utf-8")
        for half in root.glob(f".{name}.*"):
            shutil.rmtree(half, ignore_errors=True)
        return name
    name, number = wanted, 2
    while (root / name).exists():
        name, number = f"{wanted[:60]}-{number}", number + 1
    note.write_text(name, encoding="utf-8")
    return name
