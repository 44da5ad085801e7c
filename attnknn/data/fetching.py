"""Bring a dataset onto this machine.

Addresses, hashes and unpacking are torchvision's. Its own download can neither be watched nor
stopped, so the archives are brought here first, to where it looks for them; it then finds them whole,
compares their hashes, and unpacks. All this happens in a folder beside the place where datasets are
looked for, and one rename moves the unpacked files there: half a dataset is never taken for a whole one.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from attnknn.data.dataset import DatasetDescription
from attnknn.data.download import Interrupted, download
from attnknn.data.registry import describe_dataset, is_here, load_dataset, source_of, torchvision_datasets
from attnknn.data.sources import cache_folder
from attnknn.errors import DownloadFailed
from attnknn.reporting import PausePoint, Report, never, silent

KINDS = {"cifar10": "CIFAR10", "cifar100": "CIFAR100", "mnist": "MNIST", "fashion_mnist": "FashionMNIST"}
BYTES = {"cifar10": 170_498_071, "cifar100": 169_001_437, "mnist": 11_594_722, "fashion_mnist": 30_878_645}
"""What the archives of a dataset take together."""

MEGABYTE = 1_000_000
SELDOM = 0.25  # seconds between two reports


@dataclass(frozen=True)
class Archive:
    """One file to download: where torchvision will look for it, where it may be had, its hash."""

    path: Path
    addresses: tuple[str, ...]
    md5: str


def fetch(name: str, report: Report = silent, pause_point: PausePoint = never) -> None:
    """Bring a dataset onto this machine, unless it is there, and decode it once.

    Args:
        name: One of `dataset_names()`.
        report: Told how far it is; the share of "Downloading" counts bytes.
        pause_point: Called between chunks. After whatever it raises, and after any error, the next
            call goes on from the bytes that came.

    Raises:
        UnknownDataset: If no dataset of that name is registered.
        DatasetNotHere: If it has to be put there by hand.
        DownloadFailed: If not all of it came, or not what was expected.
        OSError: If there is no space, or the cache folder cannot be written.
    """
    description = describe_dataset(name)
    if not is_here(name):
        if not description.can_be_downloaded:
            source_of(description)  # says how to put it there
        with _alone(name, pause_point) as folder:
            if not is_here(name):
                _bring(description, folder, report, pause_point)
    report("Decoding", 0.0, {})
    load_dataset(name)
    report("Decoding", 1.0, {})


@contextmanager
def _alone(name: str, pause_point: PausePoint) -> Iterator[Path]:
    """Wait until no other process downloads this dataset; give the folder to download into."""
    from filelock import FileLock, Timeout

    folder = cache_folder() / ".downloads" / name
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_suffix(".lock"))
    while not lock.is_locked:
        pause_point()
        try:
            lock.acquire(timeout=0.5)
        except Timeout:
            continue
    try:
        yield folder
    finally:
        lock.release()


def _bring(description: DatasetDescription, folder: Path, report: Report, pause_point: PausePoint) -> None:
    name, kind = description.name, getattr(torchvision_datasets(), KINDS[description.name])
    archives = _archives(kind, folder)
    earlier = 0
    for archive in archives:
        _download_archive(description, archive, _watcher(name, earlier, report, pause_point))
        earlier += archive.path.stat().st_size
    report("Unpacking", 0.0, {})
    _remove_all_but({archive.path for archive in archives}, folder)
    kind(folder, download=True)
    _move_into_place(folder / getattr(kind, "base_folder", kind.__name__))
    shutil.rmtree(folder)
    report("Unpacking", 1.0, {})


def _archives(kind: Any, folder: Path) -> list[Archive]:
    """List what torchvision would download: one archive for CIFAR, four files for MNIST and its kin."""
    if hasattr(kind, "url"):
        return [Archive(folder / kind.filename, (kind.url,), kind.tgz_md5)]
    raw = folder / kind.__name__ / "raw"
    return [Archive(raw / file, tuple(f"{at}{file}" for at in kind.mirrors), md5) for file, md5 in kind.resources]


def _watcher(name: str, earlier: int, report: Report, pause_point: PausePoint) -> Callable[[int], None]:
    """Make what is told of every chunk: it lets the work be stopped, and reports a few times a second."""
    last = 0.0

    def see(got: int) -> None:
        nonlocal last
        pause_point()
        if time.monotonic() - last >= SELDOM:
            last = time.monotonic()
            megabytes = round((earlier + got) / MEGABYTE, 1)
            report("Downloading", min(1.0, (earlier + got) / BYTES[name]), {"megabytes": megabytes})

    return see


def _download_archive(description: DatasetDescription, archive: Archive, see: Callable[[int], None]) -> None:
    """Bring one archive here, from the first address that gives it whole."""
    from torchvision.datasets.utils import check_integrity

    if archive.path.exists():
        return  # it got its name when it was whole
    archive.path.parent.mkdir(parents=True, exist_ok=True)
    part = archive.path.with_name(f"{archive.path.name}.part")
    reasons = []
    for address in archive.addresses:
        try:
            download(address, part, see)
        except Interrupted as error:
            reasons.append(str(error))
            continue
        if check_integrity(part, archive.md5):
            part.rename(archive.path)
            return
        part.unlink()
        reasons.append(f"What {urlparse(address).netloc} sent is not the file that torchvision expects.")
    hosts = " or ".join(dict.fromkeys(urlparse(address).netloc for address in archive.addresses))
    raise DownloadFailed(
        description.name, f"an answer from {hosts}", " ".join(dict.fromkeys(reasons)), description.by_hand
    )


def _remove_all_but(paths: set[Path], folder: Path) -> None:
    """Remove what an earlier try may have unpacked by half."""
    for path in folder.rglob("*"):
        if path.is_file() and path not in paths:
            path.unlink()


def _move_into_place(unpacked: Path) -> None:
    """Move the unpacked folder to where it is looked for; what lies there was found not to be whole."""
    place = cache_folder() / unpacked.name
    shutil.rmtree(place, ignore_errors=True)
    unpacked.rename(place)
