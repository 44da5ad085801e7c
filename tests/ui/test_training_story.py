"""What a run said, as curves, neighbors and times."""

import base64
import time
from dataclasses import replace

import pytest

from attnknn.training.defaults import default_config
from attnknn.ui import palette
from attnknn.ui.training import estimate, story
from tests.ui.training import data, finish, numbers, spec

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


# How long a run will take


def test_before_anything_was_measured_the_range_is_wide_and_says_so():
    found = estimate.estimate(estimate.weigh(default_config(data("iris")), 84, 4), [])
    assert found.n_runs == 0
    assert found.high > 5 * found.low
    assert "nothing was measured on this machine yet" in found.sentence()


def test_an_estimate_is_what_the_amount_of_work_takes_at_the_measured_pace():
    amount = estimate.Amount("iris", "mlp", training=10.0, around=6.0)
    paces = [("iris", "mlp", 2.0, 1.0), ("wine", "mlp", 9.0, 9.0), ("iris", "cnn", 99.0, 99.0)]
    timings = [estimate.Timing(*one) for one in paces]
    found = estimate.estimate(amount, timings)
    assert (found.low, found.high, found.n_runs) == pytest.approx((26 * 0.7, 26 * 1.3, 1))
    assert "1 finished run" in found.sentence()
    elsewhere = estimate.estimate(replace(amount, dataset="flowers"), timings[1:])
    assert elsewhere.high - elsewhere.low > found.high - found.low


@pytest.mark.parametrize("name", ["digits", "iris"])
def test_wider_smaller_batches_and_longer_is_more_work(name):
    config = default_config(data(name))
    usual = estimate.weigh(config, 1000, 64)
    for change in (
        {"width": 2 * config.embedder.width},
        {"members": 2},
        {"batch_size": 8},
        {"epochs": 2 * config.embedder.epochs},
    ):
        other = replace(config, embedder=replace(config.embedder, **change))
        assert estimate.weigh(other, 1000, 64).training > usual.training
        assert estimate.weigh(other, 1000, 64).around == usual.around
    assert estimate.weigh(config, 2000, 64).training == pytest.approx(2 * usual.training, rel=0.05)


def test_a_finished_run_is_timed_and_an_interrupted_one_is_not(checkpoints, table):
    config = default_config(data("iris"))
    n_epochs = config.embedder.epochs
    job = replace(finish(table, table.submit("train", "x", spec("iris")), epochs=n_epochs), started=100.0, ended=180.0)
    events = [replace(one, time=110 + 0.5 * i) for i, one in enumerate(table.events(job.id))]
    amount = estimate.Amount("iris", "mlp", training=25.0, around=10.0)
    assert estimate.time_run(job, events, amount) == estimate.Timing("iris", "mlp", 2.0, 3.0)
    assert estimate.time_run(replace(job, attempt=2), events, amount) is None
    assert estimate.time_run(job, events[:-1], amount) is None
