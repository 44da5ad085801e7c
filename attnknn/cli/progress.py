"""Progress of long work, on stderr: a bar per stage on a terminal, a line per stage in a log."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from attnknn.cli.options import refuse

if TYPE_CHECKING:
    from attnknn.reporting import Report

STAGES = {
    "embedder": "Training the embedder",
    "bank": "Filling the memory bank",
    "votes": "Fitting the votes",
    "evaluation": "Measuring on test",
}
"""Titles of the stages of training; other work names its stages in words."""

LAST = "done"


@contextmanager
def open_progress(quiet: bool = False) -> Iterator[Report]:
    """Yield what long work may report to; bars are put away when the block ends, however it ends.

    Args:
        quiet: Show nothing.
    """
    console = Console(stderr=True, quiet=quiet, highlight=False)
    if console.is_terminal and not quiet:
        columns = (BarColumn(), TextColumn("{task.fields[numbers]}"), TimeElapsedColumn())
        with Progress(TextColumn("{task.description}"), *columns, console=console) as bars:
            yield StageBars(bars).report
    else:
        yield StageLines(console).report


@contextmanager
def keep_log(report: Report, path: Path | None) -> Iterator[Report]:
    """Yield a report that also writes what it is told into a file, one JSON object a line, after what is there.

    Each line has the `seconds` since the block began, the `processor_seconds` spent meanwhile, the `stage`, how
    much of it is `done`, and the numbers that were told.

    Args:
        report: Told the same.
        path: Of the file; without one nothing is written.

    Raises:
        SettingError: The file cannot be opened.
    """
    if path is None:
        yield report
        return
    try:
        opened = path.open("a", encoding="utf-8")
    except OSError as error:
        expected, remedy = "a file in a folder that is there", "Make the folder, or choose another place."
        raise refuse("--log", str(path), expected, remedy) from error
    begun, used = time.perf_counter(), time.process_time()
    with opened as file:

        def write(stage: str, done: float, numbers: dict[str, Any]) -> None:
            report(stage, done, numbers)
            spent = {"seconds": time.perf_counter() - begun, "processor_seconds": time.process_time() - used}
            line = {name: round(value, 1) for name, value in spent.items()} | {"stage": stage, "done": round(done, 4)}
            file.write(json.dumps(line | _numbers(numbers)) + "\n")
            file.flush()

        yield write


class StageBars:
    """Keeps a bar per stage."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._begun: dict[str, TaskID] = {}

    def report(self, stage: str, done: float, numbers: dict[str, Any]) -> None:
        """Show how far a stage is; the first word of a stage ends those before. Nothing done yet: the bar pulses."""
        if stage not in self._begun:
            for before in self._begun.values():
                self._bars.update(before, total=1, completed=1)
        if stage != LAST:
            if stage not in self._begun:
                self._begun[stage] = self._bars.add_task(STAGES.get(stage, stage), total=None, numbers="")
            total = 1 if done else None
            self._bars.update(self._begun[stage], total=total, completed=done, numbers=_write(numbers))


class StageLines:
    """Writes a line when a stage begins, and when one that counted comes to its end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun: set[str] = set()

    def report(self, stage: str, done: float, numbers: dict[str, Any]) -> None:
        """Write a line, or nothing where little has changed."""
        if stage != LAST and (stage not in self._begun or done >= 1):
            title = STAGES.get(stage, stage)
            self._console.print(": ".join(filter(None, (title, _write(numbers)))), soft_wrap=True)
        self._begun.add(stage)


def _numbers(numbers: dict[str, Any]) -> dict[str, int | float]:
    return {name: value for name, value in numbers.items() if isinstance(value, int | float)}


def _write(numbers: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in _numbers(numbers).items())
