"""`train`: from a dataset to a checkpoint."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnknn.cli.catalogue import write_interval
from attnknn.cli.options import LARGEST_SEED, AsJson, read_whole
from attnknn.cli.show import print_json, print_table, write_share
from attnknn.cli.terminal import PROGRAM, root_of
from attnknn.errors import CheckpointError, MissingLibrary, SettingError

if TYPE_CHECKING:
    from attnknn.checkpoints import Checkpoint
    from attnknn.classifier import AttnKNN
    from attnknn.config import TrainingConfig
    from attnknn.data import Dataset

MOST_EPOCHS = 100_000


def train_checkpoint(
    context: typer.Context,
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="Name of a registered dataset.", show_default=False)
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the checkpoint.", show_default="that of the dataset")
    ] = None,
    seed: Annotated[
        str, typer.Option(metavar="N", help="Seeds the split, the embedder and the noise of the fit.")
    ] = "0",
    epochs: Annotated[
        str | None, typer.Option(metavar="N", help="Passes over the training items.", show_default="suits the data")
    ] = None,
    k: Annotated[str | None, typer.Option("--k", metavar="N", help="Neighbors per query.", show_default="16")] = None,
    heads: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Heads of the attention, with commas between.", show_default="nearest,trusted,typical"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a checkpoint of that name.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train on DATASET, measure once on its test items, and save a checkpoint."""
    from attnknn.data import load_dataset

    loaded, root = load_dataset(dataset), root_of(context)
    place = name or dataset
    check_place(place, root, force)
    asked = {"--epochs": epochs, "--k": k, "--heads": heads}
    command = command_line(dataset, place, seed, asked)
    checkpoint = run(loaded, choose(loaded, seed, asked), place, root, command, quiet)
    if as_json:
        print_json({"checkpoint": checkpoint.name, "folder": str(checkpoint.folder), "card": checkpoint.card})
    else:
        show_checkpoint(checkpoint)


def check_place(name: str, root: Path, force: bool) -> None:
    """Make sure, before the work, that a checkpoint of that name can be written.

    Raises:
        SettingError: The name cannot be one of a folder.
        CheckpointError: The name is taken, or the folder of checkpoints cannot be made.
    """
    from attnknn.checkpoints import NAME

    if not NAME.fullmatch(name):
        expected = "up to 64 lower-case letters, digits, - and _, with a letter or digit first"
        raise SettingError("--name", name, expected, "Choose a name like digits-k8.")
    if (root / name).exists() and not force:
        expected, received = "A new checkpoint needs a name of its own.", f'There is already a checkpoint "{name}".'
        raise CheckpointError(expected, received, "Choose another with --name, or replace it with --force.")
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        expected, received = "The folder of checkpoints must be one that can be made.", f"{root}: {error.strerror}."
        raise CheckpointError(expected, received, "Choose another with --checkpoints.") from error


def choose(dataset: Dataset, seed: str, asked: dict[str, str | None]) -> TrainingConfig:
    """Take the defaults that suit the data, and change what was asked for.

    Raises:
        SettingError: A number is out of its range, or a head unknown.
        MissingLibrary: torch is not installed.
    """
    from attnknn.bundle import POOL

    number = read_whole("--seed", seed, 0, LARGEST_SEED)
    epochs, k, heads = asked["--epochs"], asked["--k"], asked["--heads"]
    epochs_changed: dict[str, Any] = (
        {} if epochs is None else {"epochs": read_whole("--epochs", epochs, 1, MOST_EPOCHS)}
    )
    attention_changed: dict[str, Any] = {} if k is None else {"k": read_whole("--k", k, 1, POOL)}
    if heads is not None:
        attention_changed["heads"] = read_heads(heads)
    default_config, _ = import_training()
    config = default_config(dataset, number)
    return replace(
        config,
        embedder=replace(config.embedder, **epochs_changed),
        attention=replace(config.attention, **attention_changed),
    )


def read_heads(text: str) -> tuple[str, ...]:
    """Read names of heads, with commas between.

    Raises:
        SettingError: A name is unknown, or there twice.

    Example:
        >>> read_heads("nearest, trusted")
        ('nearest', 'trusted')
    """
    from attnknn.models.attention import HEADS

    names = tuple(name.strip() for name in text.split(","))
    if not set(names) <= set(HEADS) or len(set(names)) < len(names):
        raise SettingError(
            "--heads", text, f"different names among {', '.join(HEADS)}", "Write --heads nearest,trusted."
        )
    return names


def import_training() -> tuple[Callable[..., TrainingConfig], Callable[..., AttnKNN]]:
    """Import `default_config` and `fit`, which need torch.

    Raises:
        MissingLibrary: A library of the worker is not installed.
    """
    try:
        from attnknn.training.run import default_config, fit
    except ImportError as error:
        raise MissingLibrary(error.name or "torch", "Training") from error
    return default_config, fit


def run(dataset: Dataset, config: TrainingConfig, name: str, root: Path, command: str, quiet: bool) -> Checkpoint:
    """Train with progress on stderr, note the command in the card, and save."""
    from attnknn.cli.progress import StageBars

    _, fit = import_training()
    with StageBars(quiet) as bars:
        classifier = fit(dataset, config, bars.report)
    classifier.card = {**classifier.card, "command": command}
    return classifier.save(name, root)


def command_line(dataset: str, name: str, seed: str, asked: dict[str, str | None]) -> str:
    """Write the command that makes a checkpoint again, with everything that was asked for.

    Example:
        >>> command_line("iris", "iris", "0", {"--epochs": "20", "--k": None})
        'python -m attnknn train iris --seed 0 --epochs 20'
    """
    options = {"--name": None if name == dataset else name, "--seed": seed} | asked
    words = [word for option, value in options.items() if value is not None for word in (option, value)]
    return f"{PROGRAM} {shlex.join(['train', dataset, *words])}"


def show_checkpoint(checkpoint: Checkpoint) -> None:
    """Print what was measured, where it was saved, and how to make it again."""
    from attnknn.votes import TITLES

    cells: dict[str, dict[str, str]] = {}
    for row in checkpoint.card["metrics"]:
        noise = f"{write_share(row['noise_rate'])} {row['noise_kind']}" if row["noise_rate"] else "no noise"
        cells.setdefault(row["vote"], {})[noise] = write_interval(row["accuracy"], row["accuracy_interval"])
    noises = list(next(iter(cells.values())))
    rows = [[TITLES[vote], *(found[noise] for noise in noises)] for vote, found in cells.items()]
    n_queries = checkpoint.card["sizes"]["test"]
    print_table(f"{checkpoint.name}: accuracy on {n_queries} test queries, with 95 % interval", ["vote", *noises], rows)
    typer.echo(f"Saved in {checkpoint.folder}\nMade by  {checkpoint.card['command']}")
