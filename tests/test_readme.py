"""Words that run: every block of the README does what it says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
BLOCKS = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
COMMANDS = [line for language, text in BLOCKS if language == "bash" for line in text.splitlines() if line]


def test_the_python_blocks_run_and_give_what_their_comments_say():
    blocks = [text for language, text in BLOCKS if language == "python"]
    assert blocks
    for text in blocks:
        names: dict = {}
        exec(compile(text, "README.md", "exec"), names)
        prediction = names["prediction"]
        assert prediction.predicted("attention").shape == (3,)
        assert prediction.weights.shape == (3, 2, 16)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_run(command):
    words = shlex.split(command)
    assert words[0] == "python"
    done = subprocess.run([sys.executable, *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_two_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    promised = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert promised == ["app", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in promised)


def test_every_picture_and_file_that_is_named_exists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    files = re.findall(r"`((?:docs|attnknn|pages)/[\w/.]*)`", text)
    assert pictures
    assert all((ROOT / name).exists() for name in pictures + files)
