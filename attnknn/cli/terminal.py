"""Where commands run: the one place that turns what can go wrong into a sentence and an exit code.

0 it was done · 2 a sentence on stderr says what was expected, what came and what to do · 130 Ctrl-C.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import typer
from typer.core import TyperGroup

from attnknn.errors import AttnKNNError, SettingError

PROGRAM = "python -m attnknn"
ASKED_WRONGLY = 2
INTERRUPTED = 130
UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])  # typer does not export it


class Terminal(TyperGroup):
    """A group of commands that never shows a traceback for a visitor's situation."""

    def main(self, args: Sequence[str] | None = None, *others: Any, **settings: Any) -> NoReturn:
        """Run a command and exit; without arguments, show the help."""
        arguments = list(sys.argv[1:] if args is None else args) or ["--help"]
        try:
            code = super().main(arguments, *others, **settings | {"prog_name": PROGRAM, "standalone_mode": False})
        except AttnKNNError as error:
            code = complain(str(error), ASKED_WRONGLY)
        except UsageError as error:
            code = complain(_sentence(error), ASKED_WRONGLY)
        sys.exit(complain("Stopped.", code) if code == INTERRUPTED else code)


def complain(sentence: str, code: int) -> int:
    """Print a sentence on stderr and return the exit code that belongs to it."""
    typer.echo(sentence, err=True)
    return code


def root_of(context: typer.Context) -> Path:
    """Return the folder of checkpoints that the command line or the environment names.

    Raises:
        SettingError: There is something of that name, and it is not a folder.
    """
    from attnknn.checkpoints import ROOT

    root: Path = context.obj or ROOT
    if root.exists() and not root.is_dir():
        raise SettingError("--checkpoints", root, "a folder", "Name the folder that holds the checkpoints.")
    return root


def _sentence(error: typer.BadParameter) -> str:
    """Say what a command line should be, what came, and where to look it up."""
    context = error.ctx
    usage = context.get_usage().removeprefix("Usage:").strip(" .") if context else f"{PROGRAM} COMMAND [OPTIONS]"
    came = " ".join(error.format_message().split()).rstrip(".")
    command = context.command_path if context else PROGRAM
    return f'The command must read "{re.sub("[{}]", "", usage)}". What came does not: {came}. See: {command} --help.'
