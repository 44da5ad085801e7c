"""A real training in the background: killed in the middle, it ends with the weights of one that was not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from attnknn.checkpoints import checkpoint_names, open_checkpoint
from attnknn.config import AttentionConfig, TrainingConfig
from attnknn.errors import SettingError, UnknownDataset
from attnknn.training.run import fit
from attnknn.work import submit
from attnknn.work.submit import ensure_worker, free_name, hand_over, submit_training
from attnknn.work.train import choose_place
from tests.conftest import QUICK, QUICK_EMBEDDER
from tests.jobs.bench import Bench, is_alive, kill, wait_until

SLOW = replace(QUICK, embedder=replace(QUICK_EMBEDDER, epochs=300, batch_size=8))  # longer than it takes to remember


def worker_of(bench: Bench) -> int:
    return submit._started[bench.settings.folder][0].pid


def sha(name: str, root: Path) -> str:
    return open_checkpoint(name, root).card["files"]["weights.safetensors"]["sha256"]


def test_killed_in_the_middle_it_ends_with_the_same_weights(shop, tmp_path):
    """First the child, then the worker; the uninterrupted run is one of the same configuration by itself."""
    root = tmp_path / "checkpoints"
    job = submit_training(shop.store, SLOW, "killed", command="again")
    memory = shop.settings.draft(job.id) / "epoch.safetensors"
    wait_until(memory.exists, "it remembers", shop.look(job))
    first = shop.store.get(job.id).pid
    n_points = len(shop.store.events(job.id, kind="numbers"))
    kill(first)
    wait_until(lambda: shop.store.get(job.id).pid not in (None, first), "another child", shop.look(job))
    second = shop.store.get(job.id).pid
    wait_until(lambda: len(shop.store.events(job.id, kind="numbers")) > n_points, "it goes on", shop.look(job))
    kill(worker_of(shop))
    submit._started[shop.settings.folder][0].wait()
    ensure_worker(shop.store)
    job = shop.wait_for(job, "done", "failed")
    assert job.result == {"checkpoint": "killed"}, job
    assert job.attempt == 3
    assert not is_alive(first)
    assert not is_alive(second)
    fit("iris", SLOW).save("whole", root)
    assert sha("killed", root) == sha("whole", root)
    assert (root / "killed/weights.safetensors").read_bytes() == (root / "whole/weights.safetensors").read_bytes()
    assert open_checkpoint("killed", root).card["command"] == "again"
    epochs = {event.data["epoch"] for event in shop.store.events(job.id, kind="numbers") if "epoch" in event.data}
    assert max(epochs) == 300
    assert sorted(path.name for path in root.iterdir()) == ["killed", "whole"]


HAND_OVER = """
import json, sys
from attnknn.jobs import JobSettings, JobStore
from attnknn.work import submit

store = JobStore(JobSettings.from_environment())
submit.hand_over(store, store.get(sys.argv[1]))
print(json.dumps([process.pid for process, _ in submit._started.values()]))
"""


def test_the_worker_outlives_who_started_it_and_is_not_started_twice(shop):
    job = shop.store.submit("dance", "Dancing", {})
    environment = {**os.environ, **shop.settings.to_environment()}
    command = [sys.executable, "-c", HAND_OVER, job.id]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    (pid,) = json.loads(done.stdout)
    assert "A job must be one of: train" in shop.wait_for(job, "failed").error
    ensure_worker(shop.store)
    assert submit._started == {}
    wait_until(lambda: not is_alive(pid), "it leaves when it has been idle")
    ensure_worker(shop.store)
    assert worker_of(shop) != pid


def test_an_external_worker_is_left_to_others(shop, monkeypatch):
    monkeypatch.setenv("ATTNKNN_WORKER", "external")
    hand_over(shop.store, shop.store.submit("train", "", {}))
    assert submit._started == {}


# ---- What may be asked for


@pytest.fixture
def counter(shop, monkeypatch):
    """Where jobs are handed in, and nobody does them."""
    monkeypatch.setenv("ATTNKNN_WORKER", "external")
    return shop.store


def test_the_same_configuration_is_one_run_and_another_gets_another_name(counter):
    first = submit_training(counter, QUICK)
    assert first.spec["name"] == "iris-2"
    assert submit_training(counter, QUICK).id == first.id
    second = submit_training(counter, replace(QUICK, seed=1))
    assert second.spec["name"] == "iris-3"
    assert free_name("iris", counter) == "iris-4"
    with pytest.raises(SettingError, match="one that no other run will save under"):
        submit_training(counter, replace(QUICK, seed=2), "iris-2")


@pytest.mark.parametrize(
    "changes",
    [
        {"epochs": 0},
        {"epochs": 501},
        {"batch_size": 1},
        {"dimension": 1000},
        {"width": 2},
        {"members": 5},
        {"shift": 9},
        {"cutout": -1},
        {"ascent": 1.5},
        {"learning_rate": float("nan")},
        {"learning_rate": 1.0},
    ],
)
def test_bounds_are_checked_where_the_work_is_accepted(counter, changes):
    with pytest.raises(SettingError, match=f"{next(iter(changes))} must be between"):
        submit_training(counter, replace(QUICK, embedder=replace(QUICK_EMBEDDER, **changes)))
    assert counter.all() == []


def test_other_things_that_cannot_be_asked_for(counter):
    with pytest.raises(SettingError, match="members must be at most the dimension, 2"):
        submit_training(counter, replace(QUICK, embedder=replace(QUICK_EMBEDDER, dimension=2, members=3)))
    with pytest.raises(SettingError, match="k must be between 1 and 64"):
        submit_training(counter, replace(QUICK, attention=AttentionConfig(k=65)))
    with pytest.raises(UnknownDataset, match='Did you mean "iris"'):
        submit_training(counter, TrainingConfig("irs"))
    with pytest.raises(SettingError, match="name must be lower-case"):
        submit_training(counter, QUICK, "../escape")


def test_a_name_that_is_taken_meanwhile_gets_a_number_and_a_resumed_save_the_same_one(tmp_path):
    draft, root = tmp_path / "draft", tmp_path / "root"
    draft.mkdir()
    (root / "iris-2").mkdir(parents=True)
    assert choose_place(draft, "iris-2", root) == "iris-2-2"
    (root / "iris-2-2").mkdir()
    (root / ".iris-2-2.123").mkdir()  # half written by a process that is no more
    assert choose_place(draft, "iris-2", root) == "iris-2-2"
    assert checkpoint_names(root) == ()
    assert not (root / ".iris-2-2.123").exists()
