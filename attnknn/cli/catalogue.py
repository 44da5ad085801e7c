"""`datasets` and `checkpoints`: what there is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attnknn.cli.options import AsJson
from attnknn.cli.show import print_json, print_table, write_number
from attnknn.cli.terminal import PROGRAM, root_of
from attnknn.errors import CheckpointError

if TYPE_CHECKING:
    from attnknn.classifier import AttnKNN


def list_datasets(as_json: AsJson = False) -> None:
    """List the registered datasets, with their licences and sources."""
    from attnknn.data import describe_datasets

    rows = [asdict(description) for description in describe_datasets()]
    if as_json:
        print_json({"datasets": rows})
        return
    columns = ("name", "title", "kind", "licence", "source", "items", "classes")
    keys = (*columns[:5], "n_items", "n_classes")
    print_table("Datasets", columns, [[str(row[key]) for key in keys] for row in rows], n_words=5)


def list_checkpoints(context: typer.Context, as_json: AsJson = False) -> None:
    """List the trained checkpoints; a damaged one is listed with what is wrong with it."""
    from attnknn.checkpoints import checkpoint_names

    root = root_of(context)
    rows = [describe_checkpoint(name, root) for name in checkpoint_names(root)]
    if as_json:
        print_json({"checkpoints": rows})
        return
    if not rows:
        typer.echo(f"There are no checkpoints in {root}. Train one: {PROGRAM} train digits")
        return
    columns = ("name", "title", "dataset", "heads", "entries", "test queries", "attention at noise 0", "kB")
    whole = [row for row in rows if row["problem"] is None]
    print_table("Checkpoints", columns, map(_cells, whole), n_words=4)
    for row in rows:
        if row["problem"] is not None:
            typer.echo(f"{row['name']}: {row['problem']}")


def describe_checkpoint(name: str, root: Path) -> dict[str, Any]:
    """Describe a checkpoint in plain JSON types; `problem` is None, or says why the rest is."""
    from attnknn.classifier import load

    kilobytes = sum(path.stat().st_size for path in (root / name).rglob("*") if path.is_file()) / 1000
    facts = dict.fromkeys(("title", "dataset", "entries", "test_queries", "heads", "accuracy", "accuracy_interval"))
    row = {"name": name} | facts | {"kilobytes": round(kilobytes, 1), "problem": None}
    try:
        return row | _facts(load(name, root))
    except CheckpointError as error:
        return row | {"problem": str(error)}


def _facts(classifier: AttnKNN) -> dict[str, Any]:
    card = classifier.card
    return {
        "title": card.get("title"),
        "dataset": classifier.config.dataset,
        "entries": len(classifier.entries),
        "test_queries": len(classifier.queries),
        "heads": list(classifier.fitted.attention.heads),
        **_accuracy(card.get("metrics", [])),
    }


def _accuracy(metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """Find how well the attention vote does without label noise."""
    for row in metrics:
        if row["vote"] == "attention" and row["noise_rate"] == 0:
            return {"accuracy": row["accuracy"], "accuracy_interval": row["accuracy_interval"]}
    return {}


def _cells(row: dict[str, Any]) -> list[str]:
    words = [row["name"], row["title"] or "-", row["dataset"], ", ".join(row["heads"])]
    accuracy = write_interval(row["accuracy"], row["accuracy_interval"])
    return [*words, str(row["entries"]), str(row["test_queries"]), accuracy, f"{row['kilobytes']:.0f}"]


def write_interval(value: float | None, interval: list[float] | None) -> str:
    """Write a number with its 95 % interval."""
    if interval is None:
        return write_number(value)
    return f"{write_number(value)} [{write_number(interval[0])}, {write_number(interval[1])}]"
