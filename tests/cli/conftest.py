"""A tiny world, made by the command under test: iris, a few epochs, trained once per session."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from attnknn.cli import app

WIDE = {"COLUMNS": "140"}
TRAIN = ["train", "iris", "--epochs", "5", "--k", "8", "--heads", "nearest,trusted"]

WITHOUT_WORKER = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torchvision", "faiss", "umap", "numba"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from attnknn.cli import main
main()
"""
"""The terminal where the worker's libraries are not installed."""


def run_process(*arguments: object, root: Path, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the terminal as a process of its own, and check its exit code."""
    command = [sys.executable, "-m", "attnknn", *map(str, arguments)]
    environment = os.environ | WIDE | {"ATTNKNN_CHECKPOINTS": str(root)} | variables
    encoding = variables.get("PYTHONIOENCODING", "utf-8")
    done = subprocess.run(command, capture_output=True, encoding=encoding, env=environment, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    root = tmp_path_factory.mktemp("terminal") / "made" / "by-train"
    return root, run_process(*TRAIN, "--json", root=root)


@pytest.fixture(scope="session")
def root(training) -> Path:
    """The folder that holds the checkpoint `iris`."""
    return training[0]


@pytest.fixture
def own_root(root: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may spoil."""
    return Path(shutil.copytree(root, tmp_path / "checkpoints"))


@pytest.fixture
def run(root: Path) -> Callable[..., Result]:
    """Run the terminal in this process, and check its exit code."""

    def run_here(*arguments: object, code: int = 0, root: Path = root) -> Result:
        result = CliRunner(env=WIDE).invoke(app, ["--checkpoints", str(root), *map(str, arguments)])
        assert result.exit_code == code, result.output
        return result

    return run_here


@pytest.fixture
def run_json(run) -> Callable[..., Any]:
    """Run a command with `--json`, and read the one document on its stdout."""
    return lambda *arguments, **choices: json.loads(run(*arguments, "--json", **choices).stdout)
