"""Help that is there at once, and situations of every command that end in one sentence and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from attnknn.checkpoints import SCHEMA
from attnknn.config import AttentionConfig

from .conftest import WITHOUT_WORKER, run_process

HEAVY = ("torch", "faiss", "sklearn", "scipy", "pandas", "streamlit")


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["evaluate", "-h"], ["predict", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    script = (
        "import sys\nfrom attnknn.cli import main\n"
        f"try:\n    main()\nfinally:\n    print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert "Usage: python -m attnknn" in done.stdout


def test_without_a_command_the_help_is_shown(tmp_path):
    shown = run_process(root=tmp_path).stdout
    assert shown == run_process("--help", root=tmp_path).stdout
    for command in ("datasets", "checkpoints", "train", "evaluate", "predict"):
        assert f" {command} " in shown


def test_listing_and_predicting_need_no_torch(root):
    for arguments in (["checkpoints"], ["predict", "iris", "--query", "iris/test/0"], ["evaluate", "iris"]):
        command = [sys.executable, "-c", WITHOUT_WORKER, "--checkpoints", str(root), *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)
        assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "came"),
    [
        (["predikt", "iris"], "No such command 'predikt'"),
        (["predict"], "Missing argument 'CHECKPOINT'"),
        (["predict", "iris", "--queri", "iris/test/0"], "No such option"),
        (["evaluate", "iris", "--k"], "Option '--k' requires an argument"),
        (["evaluate", "iris", "wine"], "unexpected extra argument"),
        (["--loud", "datasets"], "No such option"),
    ],
)
def test_a_command_line_that_does_not_parse_is_one_sentence(run, arguments, came):
    result = run(*arguments, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith('The command must read "python -m attnknn ')
    assert came in result.stderr
    assert result.stderr.endswith("--help.\n")
    assert len(result.stderr.splitlines()) == 1


def test_sentences_of_a_process_go_to_stderr_with_exit_code_2(root):
    done = run_process("evaluate", "irs", "--json", root=root, code=2)
    assert done.stdout == ""
    assert done.stderr.startswith("The checkpoint must be one that exists.")
    assert "Traceback" not in done.stderr


def cut_short(folder):
    array = folder / "bundle" / "entry_keys.npy"
    array.write_bytes(array.read_bytes()[:-1])


def change_a_byte(folder):
    weights = folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x55")


def remove(folder):
    (folder / "bundle" / "query_ids.npy").unlink()


def spoil_card(folder):
    (folder / "card.json").write_text("{", encoding="utf-8")


def from_the_future(folder):
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    (folder / "card.json").write_text(json.dumps(card | {"schema": SCHEMA + 1}), encoding="utf-8")


@pytest.mark.parametrize("command", [["evaluate", "iris"], ["predict", "iris", "--query", "iris/test/0"]])
@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (cut_short, "cut short or changed"),
        (change_a_byte, "Its content has changed."),
        (remove, "It is missing."),
        (spoil_card, "It could not be read as JSON"),
        (from_the_future, "Update Attn-KNN Explorer."),
    ],
)
def test_a_checkpoint_that_cannot_be_trusted_is_a_sentence(run, own_root, command, spoil, sentence):
    spoil(own_root / "iris")
    result = run(*command, "--json", code=2, root=own_root)
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_folder_of_checkpoints_must_be_a_folder(run, tmp_path):
    (tmp_path / "file").write_text("no folder")
    for command in (["checkpoints"], ["evaluate", "iris"]):
        assert "--checkpoints must be a folder." in run(*command, code=2, root=tmp_path / "file").stderr


def test_the_option_wins_over_the_environment(root, tmp_path):
    done = run_process("--checkpoints", root, "checkpoints", "--json", root=tmp_path)
    assert [row["name"] for row in json.loads(done.stdout)["checkpoints"]] == ["iris"]
    done = run_process("checkpoints", "--json", root=root)
    assert [row["name"] for row in json.loads(done.stdout)["checkpoints"]] == ["iris"]


def test_help_of_train_names_the_usual_heads_and_k(run):
    usual = AttentionConfig()
    shown = run("train", "--help").stdout
    assert f"({','.join(usual.heads)})" in shown
    assert f"({usual.k})" in shown
