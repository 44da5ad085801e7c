"""`train`: from a dataset to a checkpoint."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attnknn.cli import train_options as options
from attnknn.cli.options import AsJson, refuse
from attnknn.cli.show import print_json, print_table, write_interval, write_noise
from attnknn.cli.terminal import root_of
from attnknn.errors import CheckpointError, MissingLibrary

if TYPE_CHECKING:
    from attnknn.checkpoints import Checkpoint
    from attnknn.classifier import AttnKNN
    from attnknn.config import TrainingConfig
    from attnknn.data import Dataset
    from attnknn.reporting import Report

DRAFTS = ".drafts"  # in the folder of checkpoints: what interrupted runs go on from


def train_checkpoint(
    context: typer.Context,
    dataset: options.DatasetName,
    name: options.Name = None,
    seed: options.Seed = "0",
    epochs: options.Epochs = None,
    k: options.K = None,
    heads: options.Heads = None,
    held_out: options.HeldOut = None,
    dimension: options.Dimension = None,
    width: options.Width = None,
    members: options.Members = None,
    batch_size: options.BatchSize = None,
    learning_rate: options.LearningRate = None,
    dropout: options.Dropout = None,
    shift: options.Shift = None,
    cutout: options.Cutout = None,
    ascent: options.Ascent = None,
    label_noise: options.Noise = None,
    noise_kind: options.NoiseKindName = None,
    noise_seed: options.NoiseSeed = None,
    cleaning: options.Rounds = None,
    cleaning_rule: options.CleaningRule = None,
    agreeing: options.Agreeing = None,
    without_bank: options.WithoutBank = False,
    log: options.Log = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train on DATASET, measure once on its test items, and save a checkpoint."""
    from attnknn.cli.progress import keep_log, open_progress
    from attnknn.data import load_dataset

    loaded, root = load_dataset(dataset), root_of(context)
    place = dataset if name is None else name
    check_place(place, root, force)
    asked = {"seed": seed, "epochs": epochs, "k": k, "heads": heads, "held_out": held_out, "dimension": dimension}
    asked |= {
        "width": width,
        "members": members,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "dropout": dropout,
        "shift": shift,
        "cutout": cutout,
        "ascent": ascent,
    }
    asked |= {"label_noise": label_noise, "noise_kind": noise_kind, "noise_seed": noise_seed}
    asked |= {"cleaning": cleaning, "cleaning_rule": cleaning_rule, "agreeing": agreeing}
    config = options.choose(loaded, asked)
    if without_bank and config.cleaning:
        expected = "0 beside --without-bank, since a cleaned bank has to travel with its checkpoint"
        raise refuse("--cleaning", str(cleaning), expected, "Leave one of them out.")
    with open_progress(quiet) as shown, keep_log(shown, log) as report:
        checkpoint = run(loaded, config, place, root, report, with_bank=not without_bank)
    if as_json:
        print_json({"checkpoint": checkpoint.name, "folder": str(checkpoint.folder), "card": checkpoint.card})
    else:
        show_checkpoint(checkpoint)


def check_place(name: str, root: Path, force: bool) -> None:
    """Make sure, before the work, that a checkpoint of that name can be written.

    Raises:
        SettingError: The name cannot be one of a folder.
        CheckpointError: The name is taken.
    """
    from attnknn.checkpoints import NAME

    if not NAME.fullmatch(name):
        expected = "up to 64 lower-case letters, digits, - and _, with a letter or digit first"
        raise refuse("--name", name, expected, "Choose a name like digits-k8.")
    if (root / name).exists() and not force:
        expected, received = "A new checkpoint needs a name of its own.", f'There is already a checkpoint "{name}".'
        raise CheckpointError(expected, received, "Choose another with --name, or replace it with --force.")


def import_fit() -> Callable[..., AttnKNN]:
    """Import `fit`, which needs torch.

    Raises:
        MissingLibrary: A library of the worker is not installed.
    """
    try:
        from attnknn.training.run import fit
    except ModuleNotFoundError as error:
        raise MissingLibrary(str(error.name).split(".")[0], "Training") from error
    return fit


def run(
    dataset: Dataset, config: TrainingConfig, name: str, root: Path, report: Report, with_bank: bool = True
) -> Checkpoint:
    """Train, note in the card how to do it again, and save.

    What was trained is remembered in a draft until the checkpoint is there: after Ctrl-C, or a crash, the same
    command goes on, and ends with the same weights.

    Raises:
        CheckpointError: The folder of checkpoints cannot be made.
        KeyboardInterrupt: Somebody pressed Ctrl-C; how to go on was said.
    """
    from attnknn.training.defaults import command_line

    fit = import_fit()
    with open_draft(config, root) as draft:
        try:
            classifier = fit(dataset, config, report, draft)
        except KeyboardInterrupt:
            typer.echo(how_to_go_on(draft), err=True)
            raise
        command = command_line(config, name) + ("" if with_bank else " --without-bank")
        classifier.card = {**classifier.card, "command": command}
        return classifier.save(name, root, with_bank)


@contextmanager
def open_draft(config: TrainingConfig, root: Path) -> Iterator[Path]:
    """Yield the folder in which a run with this configuration remembers; removed when the block ends well.

    A folder in which nothing was remembered is removed in any case.

    Raises:
        CheckpointError: The folder cannot be made, or another process trains the same.
    """
    from filelock import FileLock, Timeout

    digest = hashlib.sha256(json.dumps(config.to_dict(), sort_keys=True).encode()).hexdigest()[:16]
    drafts = root / DRAFTS
    draft = drafts / digest
    lock = FileLock(drafts / f"{digest}.lock")
    try:
        draft.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout as error:
        expected, received = "A run is trained by one process at a time.", "Another one trains this run already."
        raise CheckpointError(expected, received, "Wait for it, or choose another --seed.") from error
    except OSError as error:
        expected, received = "The folder of checkpoints must be one that can be made.", f"{root}: {error.strerror}."
        raise CheckpointError(expected, received, "Choose another with --checkpoints.") from error
    try:
        yield draft
        shutil.rmtree(draft, ignore_errors=True)
    finally:
        if not remembers(draft):
            shutil.rmtree(draft, ignore_errors=True)
        lock.release()
        with suppress(OSError):
            Path(lock.lock_file).unlink(missing_ok=True)
            drafts.rmdir()


def remembers(draft: Path) -> bool:
    """Say whether there is anything to go on from; each round of cleaning has a folder of its own."""
    return any(path.is_file() for path in draft.rglob("*"))


def how_to_go_on(draft: Path) -> str:
    """Say what Ctrl-C left, and how to make use of it."""
    if remembers(draft):
        return "What was trained is kept. Go on with the same command."
    return "Nothing was trained yet that could be kept. Start again with the same command."


def show_checkpoint(checkpoint: Checkpoint) -> None:
    """Print what was measured, where it was saved, and how to make it again."""
    from attnknn.votes import TITLES

    cells: dict[str, dict[str, str]] = {}
    for row in checkpoint.card["metrics"]:
        noise = write_noise(row["noise_rate"], row["noise_kind"]).replace(" label", "")
        cells.setdefault(row["vote"], {})[noise] = write_interval(row["accuracy"], row["accuracy_interval"])
    noises = list(next(iter(cells.values())))
    rows = [[TITLES[vote], *(found[noise] for noise in noises)] for vote, found in cells.items()]
    n_queries = checkpoint.card["sizes"]["test"]
    print_table(f"{checkpoint.name}: accuracy on {n_queries} test queries, with 95 % interval", ["vote", *noises], rows)
    typer.echo(
        "\n".join(
            [*labels_story(checkpoint.card), f"Saved in {checkpoint.folder}\nMade by  {checkpoint.card['command']}"]
        )
    )


def labels_story(card: Mapping[str, Any]) -> Iterator[str]:
    """Say in lines what was done to the training labels, where something was."""
    noise = card["config"].get("label_noise")
    if noise:
        said = write_noise(noise["rate"], noise["kind"])
        yield f"Trained with {said}, held-out items too; noise in the table comes on top of it"
    for one in card.get("cleaning", []):
        done = ", ".join(f"{one[what]} {what}" for what in ("kept", "relabeled", "dropped"))
        right = f"; labels right: {one['purity_before']:.1%} → {one['purity']:.1%}" if "purity" in one else ""
        yield f"Cleaning {one['round']}: {done}{right}"
