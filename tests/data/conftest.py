"""A machine of one's own: a folder the visitor points at, a cache folder, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from attnknn.data import load_dataset, registry, sources


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that holds `data` (ATTNKNN_DATA points at it), `cache` and `system`."""
    monkeypatch.setenv("ATTNKNN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sources, "SYSTEM_FOLDERS", (tmp_path / "system",))
    load_dataset.cache_clear()
    yield tmp_path
    load_dataset.cache_clear()


@pytest.fixture
def resize(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let a registered dataset be as small as the files that a test writes."""

    def change(name: str, **facts: int) -> None:
        registered = registry._REGISTERED[name]
        description = registry.DatasetDescription(**(vars(registered.description) | facts))
        monkeypatch.setitem(registry._REGISTERED, name, registered._replace(description=description))

    return change
