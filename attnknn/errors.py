"""What can go wrong, as a family tree.

Every error here is a *visitor's situation*: somebody asked for something that cannot be had. Its
message is a sentence of three parts (what was expected, what came, what to do), ready to be shown
as it is. Only `attnknn/ui/display.py` and `attnknn/cli.py` catch these. A mistake in our own code is a
`ValueError`, and is not caught.

    AttnKNNError
    ├── DataError          UnknownDataset · UnknownItem · DatasetNotHere · DownloadFailed · DamagedData
    ├── CheckpointError    UnknownCheckpoint · DamagedCheckpoint · SchemaMismatch · NotPrepared
    ├── SettingError       a number or word out of its range: k=banana
    ├── InputError         inputs of the wrong shape, keys of another dimension
    ├── JobError           UnknownJob · a job that cannot do what was asked
    ├── StorageError       a folder, disk or database that cannot be used
    └── MissingLibrary     this needs the worker's libraries (torch, faiss), which are not installed
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


class AttnKNNError(Exception):
    """A situation that can be explained in a sentence: expected, received, remedy."""

    def __init__(self, expected: str, received: str, remedy: str) -> None:
        super().__init__(f"{expected} {received} {remedy}")
        self.expected = expected
        self.received = received
        self.remedy = remedy


class DataError(AttnKNNError):
    """Something about a dataset or one of its items."""


class UnknownDataset(DataError):
    """No dataset of that name is registered."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(
            "The dataset must be one of the registered ones.",
            f'There is no dataset "{name}".',
            f"{_did_you_mean(name, known)}Choose from: {', '.join(known)}.",
        )


class UnknownItem(DataError):
    """No item of that id exists where it was looked for."""

    def __init__(self, item_id: str, where: str, example: str) -> None:
        self.item_id = item_id
        super().__init__(
            f"The id must name an item of {where}.",
            f'There is no "{item_id}".',
            f"Ids look like {example}.",
        )


class DatasetNotHere(DataError):
    """A registered dataset is not on this machine."""

    def __init__(self, name: str, download: str, by_hand: str) -> None:
        self.name = name
        self.download = download
        offer = f"Download it with: python -m attnknn download {name}. Or set" if download else "Set"
        super().__init__(
            f'The dataset "{name}" must be on this machine.',
            f"It is not; it is a download of {download}."
            if download
            else "It is not, and has to be put there by hand.",
            f"{offer} ATTNKNN_DATA to {by_hand}.",
        )


class DownloadFailed(DataError):
    """A dataset could not be downloaded; what came so far is kept, and is never taken for the whole."""

    def __init__(self, name: str, address: str, received: str, by_hand: str) -> None:
        self.name = name
        super().__init__(
            f'Downloading the dataset "{name}" needs {address}.',
            received,
            f"Try again later, or set ATTNKNN_DATA to {by_hand}.",
        )


class DamagedData(DataError):
    """A file of a dataset is cut short, or is not what it should be."""

    def __init__(self, path: str, expected: str, received: str) -> None:
        self.path = path
        super().__init__(expected, received, f"Replace {path} by a whole copy from its source.")


class CheckpointError(AttnKNNError):
    """Something about a folder under `checkpoints/`."""


class UnknownCheckpoint(CheckpointError):
    """No checkpoint of that name exists."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        choices = f"Choose from: {', '.join(known)}." if known else "Train one: python -m attnknn train digits."
        super().__init__(
            "The checkpoint must be one that exists.",
            f'There is no checkpoint "{name}".',
            f"{_did_you_mean(name, known)}{choices}",
        )


class DamagedCheckpoint(CheckpointError):
    """A file of a checkpoint is missing, cut short, or not what its card says."""

    def __init__(self, name: str, expected: str, received: str) -> None:
        self.name = name
        super().__init__(
            expected,
            received,
            f'Restore the folder of checkpoint "{name}" from its source, or train it again '
            f"with the command in its card.",
        )


class SchemaMismatch(CheckpointError):
    """The card was written for another version of the format."""

    def __init__(self, name: str, expected: int, received: object) -> None:
        self.name = name
        newer = isinstance(received, int) and received > expected
        super().__init__(
            f"This version reads checkpoint cards of schema {expected}.",
            f'The card of "{name}" has schema {received!r}.',
            "Update Attn-KNN Explorer." if newer else "Train the checkpoint again with this version.",
        )


class NotPrepared(CheckpointError):
    """The weights are here, and the arrays of the bank have to be made on this machine first."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        super().__init__(
            f'The bank of checkpoint "{name}" is filled on this machine before its first use.',
            f"That was not done yet; it needs {title} to be here.",
            f"Prepare it on the page, or with: python -m attnknn prepare {name}.",
        )


class SettingError(AttnKNNError):
    """A setting has a value outside its range."""

    def __init__(self, setting: str, value: object, expected: str, remedy: str) -> None:
        self.setting = setting
        self.value = value
        super().__init__(f"{setting} must be {expected}.", f"It was {value}.", remedy)


class InputError(AttnKNNError):
    """Inputs or keys whose shape does not fit the model or the bank."""


class JobError(AttnKNNError):
    """A job cannot do what was asked of it."""


class UnknownJob(JobError):
    """No job of that id exists."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(
            "The id must name a job.", f'There is no job "{job_id}".', "List them with: python -m attnknn jobs list."
        )


class StorageError(AttnKNNError):
    """A folder, a disk or a database that cannot be used."""


class MissingLibrary(AttnKNNError):
    """Work for the worker was asked for where its libraries are not installed."""

    def __init__(self, library: str, work: str) -> None:
        self.library = library
        super().__init__(
            f"{work} needs {library}.",
            "It is not installed here; shipped checkpoints can be explored without it.",
            "Install it with: pip install -r requirements.txt.",
        )


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f'Did you mean "{close[0]}"? ' if close else ""
