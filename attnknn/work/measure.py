"""A sweep as a job: every vote on all test queries, for each k, under each draw of label noise.

Rows are written into the draft after every draw, so a sweep that was interrupted goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnknn.checkpoints import root_from_environment
from attnknn.config import LabelNoise
from attnknn.jobs.context import Context
from attnknn.work.results import write_table

ROWS = "rows.json"


def measure_votes(context: Context) -> Mapping[str, Any]:
    """Measure as the spec says, and write one tidy table."""
    context.report("Loading the checkpoint", 0.0)
    from attnknn.classifier import load

    spec = context.job.spec
    classifier = load(spec["checkpoint"], root_from_environment())
    levels = [(k, LabelNoise(kind, rate, seed)) for k in spec["ks"] for kind, rate, seed in spec["noises"]]
    measured = _read(context.draft / ROWS)
    for number, (k, noise) in enumerate(levels):
        context.report(f"k = {k}, {noise.kind} noise {noise.rate:.0%}, seed {noise.seed}", number / len(levels))
        if number >= len(measured):
            measured.append(_measure(classifier, k, noise))
            _write(context.draft / ROWS, measured)
    rows = [row for level in measured for row in level]
    context.check()
    write_table(context.draft, rows)
    return {"checkpoint": spec["checkpoint"], "rows": len(rows)}


def _measure(classifier: Any, k: int, noise: LabelNoise) -> list[dict[str, Any]]:
    from attnknn.evaluation.protocol import evaluate

    return json.loads(evaluate(classifier, k, [noise]).to_json(orient="records", double_precision=15))


def _read(path: Path) -> list[list[dict[str, Any]]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def _write(path: Path, levels: list[list[dict[str, Any]]]) -> None:
    half = path.with_suffix(".half")
    half.write_text(json.dumps(levels), encoding="utf-8")
    half.replace(path)
