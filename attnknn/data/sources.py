"""Where datasets that do not come with the product are looked for on this machine.

    1. the folder that ATTNKNN_DATA names, if it names one
    2. the cache folder: attnknn/data in $XDG_CACHE_HOME, or in ~/.cache; downloads go there
    3. the folders of the system's packages

In each folder, the layouts of a dataset are tried in the order in which it lists them. Looking
means asking whether files exist: nothing is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "ATTNKNN_DATA"
SYSTEM_FOLDERS = (Path("/usr/share/datasets"),)


@dataclass(frozen=True)
class Layout:
    """One way in which the files of a dataset may lie in a folder.

    Attributes:
        form: How the files are written, for whoever reads them.
        words: What a visitor would call it.
        files: Paths inside the folder; all must be there.
        may_be_packed: Whether a file may be there with `.gz` added instead.
    """

    form: str
    words: str
    files: tuple[str, ...]
    may_be_packed: bool = False


@dataclass(frozen=True)
class Source:
    """The files of a dataset on this machine.

    Attributes:
        form: As in its layout.
        words: What was found, and in which folder.
        folder: The folder in which the layout was found.
        files: One path for each file of the layout.
    """

    form: str
    words: str
    folder: Path
    files: tuple[Path, ...]

    def fingerprint(self) -> list[list[str | int]]:
        """Tell the files' paths, sizes in bytes, and times of change in nanoseconds."""
        facts = [(path, path.stat()) for path in self.files]
        return [[str(path.resolve()), fact.st_size, fact.st_mtime_ns] for path, fact in facts]


Finder = Callable[[], Source | None]
"""Looks for a dataset; None if it is not on this machine."""


def cache_folder() -> Path:
    """Return the folder for downloads and decoded arrays; it need not exist."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(root) if Path(root).is_absolute() else Path.home() / ".cache") / "attnknn" / "data"


def data_folders() -> list[Path]:
    """List the folders where data is looked for, the first one first."""
    chosen = os.environ.get(VARIABLE, "")
    return [*([Path(chosen).expanduser()] if chosen else []), cache_folder(), *SYSTEM_FOLDERS]


def find_source(layouts: Sequence[Layout]) -> Source | None:
    """Return the first layout whose files all exist, or None.

    Args:
        layouts: The ways in which the dataset may lie in a folder, the best one first.
    """
    for folder in data_folders():
        for layout in layouts:
            files = [_find_file(folder / name, layout.may_be_packed) for name in layout.files]
            whole = tuple(path for path in files if path is not None)
            if len(whole) == len(files):
                return Source(layout.form, f"{layout.words} in {folder}", folder, whole)
    return None


def _find_file(path: Path, may_be_packed: bool) -> Path | None:
    packed = [path.with_name(f"{path.name}.gz")] if may_be_packed else []
    return next((one for one in (path, *packed) if _is_file(one)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that may not be entered holds nothing for us
        return False
