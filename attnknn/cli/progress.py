"""Progress of a training run, on stderr: a bar per stage on a terminal, a line per stage in a log."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

STAGES = {
    "embedder": "Training the embedder",
    "bank": "Filling the memory bank",
    "votes": "Fitting the votes",
    "evaluation": "Measuring on test",
}


class StageBars:
    """Shows what a training run reports; a context manager, because a bar must be put away.

    Args:
        quiet: Show nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
        )
        self._begun: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def report(self, stage: str, done: float, numbers: dict[str, float]) -> None:
        """Show how far a stage is; the first word of a stage ends the one before."""
        if stage not in self._begun:
            self._finish()
        if stage not in STAGES:
            return
        shown = ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())
        if self._bars.disable:
            self._log(stage, done, shown)
            self._begun[stage] = TaskID(len(self._begun))
            return
        if stage not in self._begun:
            self._begun[stage] = self._bars.add_task(STAGES[stage], total=None, numbers="")
        self._bars.update(self._begun[stage], total=1 if done else None, completed=done, numbers=shown)

    def _finish(self) -> None:
        for task in self._begun.values():
            if not self._bars.disable:
                self._bars.update(task, total=1, completed=1)

    def _log(self, stage: str, done: float, shown: str) -> None:
        """Write when a stage begins, and when one that counted comes to its end."""
        if stage not in self._begun or done >= 1:
            self._console.print(f"{STAGES[stage]}: {shown}" if shown else STAGES[stage], soft_wrap=True)
