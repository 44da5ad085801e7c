"""`datasets` and `checkpoints`: what there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attnknn.cli.options import AsJson
from attnknn.cli.show import print_json, print_table, write_interval
from attnknn.cli.terminal import PROGRAM, root_of
from attnknn.errors import CheckpointError

if TYPE_CHECKING:
    from attnknn.classifier import AttnKNN


def list_datasets(as_json: AsJson = False) -> None:
    """List the registered datasets: which are on this machine, their licences and their sources."""
    from attnknn.data import describe_datasets, where_found

    rows = [asdict(description) | {"where": where_found(description.name)} for description in describe_datasets()]
    rows = [row | {"here": row["where"] is not None} for row in rows]
    if as_json:
        print_json({"datasets": rows})
        return
    cells = [
        [row["name"], row["title"], row["kind"], _how_far(row), str(row["n_items"]), str(row["n_classes"])]
        for row in rows
    ]
    print_table("Datasets", ["name", "title", "kind", "on this machine", "items", "classes"], cells, n_words=4)
    _tell_how_to_get([row for row in rows if not row["here"]])
    typer.echo("Licences and sources\n")
    for row in rows:
        typer.echo(f"  {row['name']}: {row['licence']}. {row['source']}")


def _how_far(row: dict[str, Any]) -> str:
    """Say whether a dataset is on this machine, or what it takes to bring it there."""
    if not row["download"]:
        return "comes with it"
    return "yes" if row["here"] else f"no; {row['download']}"


def _tell_how_to_get(rows: list[dict[str, Any]]) -> None:
    """Say what can be done about datasets that are not on this machine."""
    if rows:
        typer.echo(f"Not on this machine: {PROGRAM} download NAME, or set ATTNKNN_DATA to\n")
    for row in rows:
        typer.echo(f"  {row['name']}: {row['by_hand']}")
    if rows:
        typer.echo("")


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
    columns = ["name", "dataset", "entries", "test\nqueries", "attention\nat noise 0", "kB"]
    print_table("Checkpoints", columns, [_cells(row) for row in rows if row["problem"] is None], n_words=2)
    for row in rows:
        facts = f"{row['title']}; heads {', '.join(row['heads'])}" if row["problem"] is None else row["problem"]
        typer.echo(f"  {row['name']}: {facts}")


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
    return {
        "title": str(classifier.card.get("title", classifier.name)),
        "dataset": str(classifier.config.dataset),
        "entries": len(classifier.entries),
        "test_queries": len(classifier.queries),
        "heads": list(classifier.fitted.attention.heads),
        **_accuracy(classifier.card),
    }


def _accuracy(card: Mapping[str, Any]) -> dict[str, Any]:
    """Find how well the attention vote does without label noise; a card that does not say is whole all the same."""
    try:
        row = next(row for row in card["metrics"] if row["vote"] == "attention" and row["noise_rate"] == 0)
        low, high = row["accuracy_interval"]
        return {"accuracy": float(row["accuracy"]), "accuracy_interval": [float(low), float(high)]}
    except (KeyError, TypeError, ValueError, StopIteration):
        return {}


def _cells(row: dict[str, Any]) -> list[str]:
    accuracy = write_interval(row["accuracy"], row["accuracy_interval"])
    sizes = [str(row["entries"]), str(row["test_queries"])]
    return [row["name"], row["dataset"], *sizes, accuracy, f"{row['kilobytes']:.0f}"]
