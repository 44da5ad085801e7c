"""From a dataset to a checkpoint: what is printed, what is saved, what is refused."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from attnknn.checkpoints import open_checkpoint
from attnknn.classifier import load
from attnknn.cli.train import how_to_go_on, open_draft
from attnknn.config import Cleaning, LabelNoise
from attnknn.errors import CheckpointError, NotPrepared
from attnknn.models.attention import HEADS

from .conftest import TRAIN, WITHOUT_WORKER

QUICK = ["--epochs", "1", "--k", "2", "--heads", "nearest"]


def test_json_is_the_checkpoint_its_folder_and_its_card(training):
    root, done = training
    document = json.loads(done.stdout)
    assert set(document) == {"checkpoint", "folder", "card"}
    assert document["checkpoint"] == "iris"
    assert document["folder"] == str(root / "iris")
    assert document["card"] == open_checkpoint("iris", root).card


def test_progress_goes_to_stderr_stage_by_stage(training):
    lines = training[1].stderr.splitlines()
    assert lines[0].startswith("Training the embedder: epoch 1, loss ")
    assert lines[1].startswith("Training the embedder: epoch 5, loss ")
    assert lines[2:] == ["Filling the memory bank", "Fitting the votes", "Measuring on test"]
    assert "embedder: epoch" not in training[1].stdout


def test_what_was_asked_for_is_what_was_trained(root):
    config = load("iris", root).config
    assert (config.dataset, config.seed, config.embedder.epochs) == ("iris", 0, 5)
    assert (config.attention.k, config.attention.heads) == (8, ("nearest", "trusted"))


def test_the_command_in_the_card_makes_the_checkpoint_again(root, run_json, tmp_path):
    card = open_checkpoint("iris", root).card
    words = shlex.split(card["command"])
    assert words == ["python", "-m", "attnknn", "train", "iris", "--seed", "0", *TRAIN[2:]]
    again = run_json(*words[3:], "--quiet", root=tmp_path)["card"]
    for part in ("config", "sizes", "command"):
        assert again[part] == card[part]
    assert again["files"]["weights.safetensors"]["sha256"] == card["files"]["weights.safetensors"]["sha256"]


def test_a_table_a_name_and_silence_when_quiet(run, tmp_path):
    result = run("train", "iris", "--name", "second", *QUICK, "--seed", "3", "--quiet", root=tmp_path)
    assert result.stderr == ""
    assert "second: accuracy on 45 test queries" in result.stdout
    assert "attention" in result.stdout
    assert "40 % pair noise" in result.stdout
    assert f"Saved in {tmp_path / 'second'}" in result.stdout
    assert (
        "Made by  python -m attnknn train iris --name second --seed 3 --epochs 1 --k 2 --heads nearest\n"
        in result.stdout
    )
    assert load("second", tmp_path).name == "second"


def test_every_choice_of_an_embedder_is_trained_and_said_again_in_the_command(run_json, tmp_path):
    chosen = ["--held-out", "0.3", "--dimension", "8", "--width", "12", "--members", "2", "--batch-size", "16"]
    chosen += ["--learning-rate", "0.01", "--dropout", "0.1", "--shift", "2", "--cutout", "3", "--ascent", "0.2"]
    card = run_json("train", "iris", *QUICK, *chosen, root=tmp_path)["card"]
    config = load("iris", tmp_path).config
    embedder = config.embedder
    assert (config.held_out, embedder.dimension, embedder.width, embedder.batch_size) == (0.3, 8, 12, 16)
    assert (embedder.learning_rate, embedder.dropout, embedder.members) == (0.01, 0.1, 2)
    assert (embedder.shift, embedder.cutout, embedder.ascent) == (2, 3, 0.2)
    assert shlex.split(card["command"])[3:] == ["train", "iris", "--seed", "0", *QUICK, *chosen]


def test_wrong_labels_and_their_cleaning_are_asked_for_told_and_said_again_in_the_command(run, tmp_path):
    chosen = ["--label-noise", "0.3", "--noise-kind", "pair", "--noise-seed", "2"]
    chosen += ["--cleaning", "1", "--cleaning-rule", "drop"]
    result = run("train", "iris", *QUICK, *chosen, root=tmp_path)
    card = open_checkpoint("iris", tmp_path).card
    assert load("iris", tmp_path).config.label_noise == LabelNoise("pair", 0.3, 2)
    assert load("iris", tmp_path).config.cleaning == Cleaning(1, "drop")
    assert shlex.split(card["command"])[3:] == ["train", "iris", "--seed", "0", *QUICK, *chosen]
    (said,) = card["cleaning"]
    assert "Trained with 30 % pair label noise, held-out items too" in result.stdout
    told = f"Cleaning 1: {said['kept']} kept, 0 relabeled, {said['dropped']} dropped; labels right: "
    assert told + f"{said['purity_before']:.1%} → {said['purity']:.1%}\n" in result.stdout
    assert "round 1" in result.stderr


def test_weights_travel_without_their_bank_and_every_report_is_logged(run, tmp_path):
    log = tmp_path / "iris.jsonl"
    result = run("train", "iris", "--epochs", "3", *QUICK[2:], "--without-bank", "--log", str(log), root=tmp_path)
    card = open_checkpoint("iris", tmp_path).card
    assert set(card["files"]) == {"weights.safetensors"}
    assert not (tmp_path / "iris" / "bundle").exists(), "nor does an empty folder travel"
    assert card["command"].endswith("--heads nearest --without-bank")
    assert "attention" in result.stdout, "it was measured all the same"
    with pytest.raises(NotPrepared):
        load("iris", tmp_path)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["stage"] for line in lines] == ["embedder"] * 3 + ["bank", "votes", "evaluation", "done"]
    assert [line["epoch"] for line in lines[:3]] == [1, 2, 3]
    assert all(0 < line["held_out_accuracy"] <= 1 and line["loss"] > 0 for line in lines[:3])
    seconds = [line["seconds"] for line in lines]
    assert 0 <= seconds[0] <= seconds[-1] < 120
    assert seconds == sorted(seconds)


def test_an_existing_checkpoint_is_kept_without_force_and_replaced_with_it(run, own_root):
    before = (own_root / "iris" / "card.json").read_bytes()
    refused = run("train", "iris", *QUICK, code=2, root=own_root)
    assert refused.stdout == ""
    assert 'There is already a checkpoint "iris".' in refused.stderr
    assert "--force" in refused.stderr
    assert (own_root / "iris" / "card.json").read_bytes() == before
    run("train", "iris", *QUICK, "--force", root=own_root)
    assert load("iris", own_root).config.attention.k == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["irs"], 'There is no dataset "irs". Did you mean "iris"?'),
        (["iris", "--name", "Second one"], "--name must be up to 64 lower-case letters"),
        (["iris", "--name", "../out"], "It was ../out."),
        (["iris", "--name", ""], "It was empty."),
        (["iris", "--epochs", "0"], "--epochs must be a whole number between 1 and"),
        (["iris", "--epochs", "many"], "It was many."),
        (["iris", "--k", "65"], "--k must be a whole number between 1 and 64. It was 65."),
        (["iris", "--k", "1.5"], "It was 1.5."),
        (["iris", "--seed", "-1"], "--seed must be a whole number between 0 and 4294967295. It was -1."),
        (["iris", "--heads", "nearest,loudest"], f"--heads must be different names among {', '.join(HEADS)}."),
        (["iris", "--heads", "nearest,nearest"], "It was nearest,nearest."),
        (["iris", "--heads", ""], "It was empty."),
        (["iris", "--held-out", "0.9"], "--held-out must be a number between 0.1 and 0.4. It was 0.9."),
        (["iris", "--dropout", "half"], "--dropout must be a number between 0 and 0.7. It was half."),
        (["iris", "--learning-rate", "nan"], "--learning-rate must be a number between 1e-05 and 0.5. It was nan."),
        (["iris", "--width", "2"], "--width must be a whole number between 4 and 512. It was 2."),
        (["iris", "--batch-size", "32.5"], "--batch-size must be a whole number between 4 and 4096. It was 32.5."),
        (["iris", "--label-noise", "1.5"], "--label-noise must be a number between 0 and 0.9. It was 1.5."),
        (["iris", "--noise-kind", "pair"], "--noise-kind must be given together with --label-noise. It was pair."),
        (["iris", "--label-noise", "0.2", "--noise-kind", "matrix"], "must be one of symmetric, pair. It was matrix."),
        (["iris", "--cleaning", "3"], "--cleaning must be a whole number between 0 and 2. It was 3."),
        (["iris", "--cleaning", "0", "--agreeing", "15"], "--agreeing must be given together with --cleaning."),
        (["iris", "--cleaning", "1", "--agreeing", "10"], "--agreeing must be a whole number between 11 and 20."),
        (["iris", "--cleaning", "1", "--cleaning-rule", "burn"], "must be one of drop, relabel. It was burn."),
        (["iris", "--cleaning", "1", "--without-bank"], "--cleaning must be 0 beside --without-bank"),
        (["iris", "--log", "/"], "--log must be a file in a folder that is there. It was /."),
        (["iris", "--log", "nowhere/log"], "--log must be a file in a folder that is there. It was nowhere/log."),
        (["iris", "--dimension", "0"], "--dimension must be a whole number between 2 and 512. It was 0."),
    ],
)
def test_what_cannot_be_trained_is_said_before_anything_is_written(run, tmp_path, arguments, sentence):
    result = run("train", *arguments, code=2, root=tmp_path / "new")
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_a_sentence(run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = run("train", "iris", *QUICK, code=2, root=tmp_path / "file" / "below")
    assert result.stdout == ""
    assert "The folder of checkpoints must be one that can be made." in result.stderr


def test_without_torch_training_says_what_is_missing(tmp_path):
    command = [sys.executable, "-c", WITHOUT_WORKER, "--checkpoints", str(tmp_path), "train", "iris"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Training needs torch.")
    assert len(done.stderr.splitlines()) == 1


TRAIN_LISTENING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from attnknn.training import embedder
embedder.REMEMBER = 0.0
from attnknn.cli import main
main()
"""
"""The terminal where Ctrl-C is heard, though started from a test, and every epoch is remembered."""


def interrupt(root, *arguments: object) -> tuple[int, str, str]:
    """Train, press Ctrl-C once it trains, and wait for the end."""
    command = [sys.executable, "-c", TRAIN_LISTENING, "--checkpoints", str(root), "train", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("Training the embedder")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    return process.returncode, stdout, stderr


def test_ctrl_c_stops_with_130_says_how_to_go_on_and_leaves_no_half_checkpoint(tmp_path):
    said = interrupt(tmp_path, "iris", "--epochs", "100000")
    assert said == (130, "", "What was trained is kept. Go on with the same command.\nStopped.\n")
    assert [path.name for path in tmp_path.iterdir()] == [".drafts"]


def test_the_same_command_goes_on_and_ends_with_the_same_weights(tmp_path, run_json):
    arguments = ["iris", "--epochs", "120", *QUICK[2:]]
    assert interrupt(tmp_path, *arguments)[0] == 130
    again = run_json("train", *arguments, root=tmp_path)["card"]
    whole = run_json("train", *arguments, root=tmp_path / "whole")["card"]
    assert again["files"]["weights.safetensors"] == whole["files"]["weights.safetensors"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["iris", "whole"]


def test_a_run_that_cleans_goes_on_too_and_ends_with_the_same_weights(tmp_path, run_json):
    arguments = ["iris", "--epochs", "60", *QUICK[2:], "--label-noise", "0.4", "--cleaning", "1"]
    assert interrupt(tmp_path, *arguments)[0] == 130
    again = run_json("train", *arguments, root=tmp_path)["card"]
    whole = run_json("train", *arguments, root=tmp_path / "whole")["card"]
    assert again["files"]["weights.safetensors"] == whole["files"]["weights.safetensors"]
    assert again["cleaning"] == whole["cleaning"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["iris", "whole"]


def test_a_draft_in_which_nothing_was_trained_is_put_away(tmp_path, iris):
    with suppress(KeyboardInterrupt), open_draft(iris.config, tmp_path) as draft:
        (draft / "round-1").mkdir()
        assert how_to_go_on(draft).startswith("Nothing was trained yet")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_one_run_is_trained_by_one_process_at_a_time(tmp_path, iris):
    with open_draft(iris.config, tmp_path), pytest.raises(CheckpointError, match="Another one trains this run already"):
        open_draft(iris.config, tmp_path).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal_progress_is_drawn_as_bars_and_stdout_stays_one_document(tmp_path):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "attnknn", "--checkpoints", str(tmp_path), "train", "iris", *QUICK, "--json"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    drawn = _read_all(ours)
    assert process.stdout is not None
    assert json.loads(process.stdout.read())["checkpoint"] == "iris"
    assert process.wait(timeout=60) == 0
    for words in ("Training the embedder", "Fitting the votes", "Measuring on test", "━", "epoch 1, loss "):
        assert words in drawn


def _read_all(descriptor: int) -> str:
    """Read what a process draws until it closes its terminal, which Linux reports as an error."""
    parts = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode()
