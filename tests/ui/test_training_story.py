"""What a run said, as curves, neighbors and times."""

import base64
import time
from dataclasses import replace

import pytest

from attnknn.training.defaults import default_config
from attnknn.ui import palette
from attnknn.ui.training import estimate, story
from tests.ui.training import data, numbers, spec

# What a run said


def test_an_epoch_done_again_counts_once_as_it_was_last(checkpoints, table):
    job = table.submit("train", "x", spec("iris"))
    for epoch, loss in ((1, 0.9), (2, 0.8), (2, 0.7), (3, 0.6)):
        table.say(job.id, "numbers", numbers(epoch, loss=loss))
    table.say(job.id, "log", {"line": "interrupted"})
    table.say(job.id, "numbers", {"stage": "odd", "epoch": "many", "loss": None})
    assert story.curve_table(table.events(job.id))["loss"] == [0.9, 0.7, 0.6]
    strip = story.strip(table.events(job.id))
    assert [look["epoch"] for look in strip["looks"]] == [1, 2, 3]
    assert strip["colors"] == palette.class_colors(2)
    assert strip["looks"][2]["shown"][2] == {
        "id": "iris/train/4",
        "label": "virginica",
        "class": 1,
        "tile": None,
        "values": [("petal", "1")],
    }


def test_tiles_become_one_atlas_and_broken_ones_none(checkpoints, table):
    tile = base64.b64encode(bytes(range(64))).decode()
    job = table.submit("train", "x", spec("iris"))
    table.say(job.id, "numbers", numbers(1, tile_shape=[8, 8], tiles=[tile] * 3))
    table.say(job.id, "numbers", numbers(2, tile_shape=[8, 9], tiles=["?"] * 3))
    strip = story.strip(table.events(job.id))
    assert strip["atlas"]["columns"] * strip["atlas"]["rows"] >= 3
    assert [one["tile"] for one in strip["looks"][0]["shown"]] == [0, 1, 2]
    assert story.strip([]) is None


def test_the_time_left_is_what_the_pace_says(checkpoints, table):
    job = table.submit("train", "x", spec("iris"))
    table.claim(job.id, "token")
    start = time.time()
    events = [replace_time(table, job, epoch, start + 2 * epoch) for epoch in range(1, 11)]
    table.report(job.id, "token", stage=story.TRAINING, progress=0.25)
    assert story.time_left(table.get(job.id), events) == pytest.approx(60)
    after_a_pause = [*events, *(replace_time(table, job, e, start + 1000 + 4 * e) for e in (11, 12, 13))]
    assert story.time_left(table.get(job.id), after_a_pause) == pytest.approx(4 * 13 * 3)
    assert story.time_left(table.get(job.id), events[:1]) is None
    table.report(job.id, "token", stage="Fitting the votes")
    assert story.time_left(table.get(job.id), events) is None


def replace_time(table, job, epoch, when):
    table.say(job.id, "numbers", numbers(epoch))
    return replace(table.events(job.id)[-1], time=when)


def test_an_estimate_is_what_finished_runs_took(checkpoints, table):
    config = default_config(data("iris"))
    assert estimate.estimate(config, 84, []).n_runs == 0
    known = [estimate.Timing("mlp", 1.0, 10.0), estimate.Timing("cnn", 99.0, 99.0)]
    found = estimate.estimate(config, 84, known)
    assert found.low < 100 * 0.084 * 1.0 + 10 < found.high
    assert found.n_runs == 1
    assert "1 finished run" in found.sentence()
