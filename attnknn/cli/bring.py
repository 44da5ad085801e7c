"""`download` and `prepare`: bring onto this machine what does not travel with the product."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from attnknn.cli.options import AsJson, CheckpointName
from attnknn.cli.show import print_json
from attnknn.cli.terminal import root_of

Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def download_dataset(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="Name of a registered dataset.", show_default=False)
    ],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Download DATASET, unless it is here, and decode it once."""
    from attnknn.cli.progress import open_progress
    from attnknn.data import fetch, load_dataset, where_found

    with open_progress(quiet) as report:
        fetch(dataset, report)
    loaded = load_dataset(dataset)
    facts = {"dataset": dataset, "title": loaded.title, "items": len(loaded.labels), "found": where_found(dataset)}
    if as_json:
        print_json(facts)
    else:
        typer.echo(f"{loaded.title}: {len(loaded.labels):,} items, {facts['found'] or 'with the product'}")


def prepare_bank(
    context: typer.Context, checkpoint: CheckpointName, quiet: Quiet = False, as_json: AsJson = False
) -> None:
    """Fill the bank of CHECKPOINT, find the neighbors of its test items, and draw its map."""
    from attnknn.cli.progress import open_progress
    from attnknn.training.prepare import prepare_checkpoint

    with open_progress(quiet) as report:

        def name_stage(stage: str, done: float, numbers: dict[str, Any]) -> None:
            report(stage, 0.0, numbers)  # how far the whole is says nothing of a stage

        card = prepare_checkpoint(checkpoint, root_of(context), name_stage)
    if as_json:
        print_json({"checkpoint": checkpoint, "projection": card["projection"]})
    else:
        typer.echo(f"{checkpoint} is prepared; trustworthiness of its map {card['projection']['trustworthiness']:.3f}")
