"""The Training page: what the form asks for, what runs, and what is said when something cannot be had."""

import json
import sys
from dataclasses import replace

import pytest

from attnknn.config import TrainingConfig
from attnknn.data import describe_datasets, sources
from attnknn.training.defaults import default_config
from attnknn.ui.training import story
from tests.ui.apps import checked, errors, notices, plain
from tests.ui.training import buttons, data, finish, markdown, numbers, press, unfold

CONTROLS = {"data", "budget", "heads", "fit_k", "fit_seed", "held_out", "name", "view"}


# The form


BUNDLED = [one for one in describe_datasets() if not one.by_hand]


@pytest.mark.parametrize("one", BUNDLED, ids=lambda one: one.name)
def test_untouched_the_form_asks_for_what_suits_the_data(checkpoints, table, one, open_training):
    app = open_training(data=one.name)
    assert not app.error
    assert not app.warning
    press(app, "start")
    (job,) = table.all()
    asked = TrainingConfig.from_dict(job.spec["config"])
    assert asked == default_config(one)
    assert (job.state, job.spec["name"]) == ("queued", f"{one.name}-2")
    assert job.spec["command"].startswith(f"python -m attnknn train {one.name} --name {one.name}-2 --seed 0")


def test_every_control_reaches_the_run(checkpoints, table, open_training):
    app = open_training(data="wine", budget="quick")
    keys = {one.key for kind in (app.selectbox, app.number_input, app.text_input) for one in kind}
    assert keys >= CONTROLS - {"budget", "heads", "view"}
    app.number_input(key="fit_k").set_value(5)
    app.number_input(key="fit_seed").set_value(7)
    app.number_input(key="held_out").set_value(30)
    unfold(app, "embedder")
    app.number_input(key="mlp_width").set_value(24)
    app.number_input(key="mlp_learning_rate").set_value(0.01)
    app.text_input(key="name").set_value("my-wine")
    app.get("button_group")[1].set_value(["nearest"])
    press(checked(app.run()), "start")
    (job,) = table.all()
    asked, usual = TrainingConfig.from_dict(job.spec["config"]), default_config(data("wine"))
    embedder = replace(usual.embedder, epochs=25, width=24, learning_rate=0.01)
    attention = replace(usual.attention, k=5, heads=("nearest",))
    assert asked == TrainingConfig("wine", 7, 0.3, embedder, attention)
    command = "python -m attnknn train wine --name my-wine --seed 7 --epochs 25 --k 5 --heads nearest"
    command += " --held-out 0.3 --width 24 --learning-rate 0.01"
    assert (job.spec["name"], job.spec["command"]) == ("my-wine", command)


def test_the_same_run_twice_is_one_job_and_another_gets_another_name(checkpoints, table, pressed_start):
    app = pressed_start(data="iris")
    press(app, "start")
    pressed_start(data="iris")
    assert len(table.all()) == 1
    app.number_input(key="fit_seed").set_value(1)
    press(checked(app.run()), "start")
    assert {job.spec["name"] for job in table.all()} == {"iris-2", "iris-3"}


@pytest.mark.parametrize("name", ["iris", "Iris", "a b", "../x", "-x"])
def test_a_name_that_cannot_be_had_is_a_sentence_and_nothing_is_started(checkpoints, table, name, open_training):
    app = open_training(data="iris")
    app.text_input(key="name").set_value(name)
    press(checked(app.run()), "start")
    assert len(errors(app)) == 1
    assert "name must be" in errors(app)[0]
    assert table.all() == []
    assert "view" in app.session_state, "the rest of the page is there"


def test_no_head_is_a_sentence(checkpoints, table, open_training):
    app = open_training(data="iris")
    app.get("button_group")[1].set_value([])
    press(checked(app.run()), "start")
    assert "Heads must be at least one of" in errors(app)[0]
    assert table.all() == []


def test_a_visitor_cannot_fill_the_queue(checkpoints, table, open_training):
    app = open_training(data="iris")
    for seed in range(9):
        app.number_input(key="fit_seed").set_value(seed)
        press(checked(app.run()), "start")
    assert len(table.all()) == 8
    assert "At most 8 jobs" in errors(app)[0]


@pytest.mark.parametrize(
    "link", [{"data": "![x](http://evil)"}, {"budget": "endless"}, {"view": "7"}, {"job": "no-job"}]
)
def test_a_link_that_says_nonsense_falls_back_with_a_notice(checkpoints, link, open_training):
    (name,) = link
    app = open_training(**link)
    assert len(notices(app)) == 1
    assert name in notices(app)[0]
    assert "![x](" not in app.warning[0].value


def test_without_torch_there_is_a_sentence_instead_of_start(checkpoints, monkeypatch, open_training):
    monkeypatch.delenv("ATTNKNN_WORKER")
    monkeypatch.setitem(sys.modules, "torch", None)
    app = open_training()
    assert "start" not in buttons(app)
    assert any("Training needs PyTorch" in plain(one.value) for one in app.info)


# Data that are not here


@pytest.fixture
def nothing_here(tmp_path, monkeypatch):
    """A machine without any data but those that come with the product."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ATTNKNN_DATA", str(tmp_path / "no-data"))
    monkeypatch.setattr(sources, "SYSTEM_FOLDERS", ())


@pytest.mark.parametrize("one", [one for one in describe_datasets() if one.by_hand], ids=lambda one: one.name)
def test_data_that_are_not_here_are_named_and_cannot_be_trained_on(checkpoints, nothing_here, one, open_training):
    app = open_training(data=one.name)
    assert any(line.endswith(f"{one.title}** is not on this machine.") for line in markdown(app))
    assert any("ATTNKNN_DATA" in line and one.by_hand in line.replace("\u2060", "") for line in markdown(app))
    assert buttons(app)["start"].disabled
    offered = [buttons(app)["download"].label] if "download" in buttons(app) else []
    assert offered == ([f"Download ({one.download})"] if one.can_be_downloaded else [])


def test_a_download_is_asked_for_once_and_watched_like_any_job(checkpoints, nothing_here, table, open_training):
    app = press(open_training(data="mnist"), "download")
    (job,) = table.all()
    assert (job.kind, job.spec["dataset"], job.state) == ("download", "mnist", "queued")
    assert app.query_params["job"] in (job.id, [job.id])
    assert buttons(app)["download"].disabled
    table.claim(job.id, "token")
    table.report(job.id, "token", stage="Downloading train-images", progress=0.5)
    checked(app.run())
    assert "Downloading train-images" in plain(app.get("progress")[0].proto.text)
    assert not app.get("plotly_chart")
    press(app, f"cancel_{job.id}")
    table.release(job.id, "token")
    assert not buttons(checked(app.run()))["download"].disabled


# What runs


def test_when_nothing_runs_the_page_says_what_to_do(checkpoints, open_training):
    assert any("Nothing runs." in line for line in markdown(open_training()))
    app = open_training(view="history")
    assert "No run was started yet" in app.info[0].value


def test_a_queued_job_pauses_resumes_and_is_cancelled_in_the_table(checkpoints, table, pressed_start):
    app = pressed_start(data="iris")
    (job,) = table.all()
    assert app.query_params["job"] in (job.id, [job.id])
    for verb, state, offered in (
        ("pause", "paused", {"resume", "cancel"}),
        ("resume", "queued", {"pause", "cancel"}),
        ("cancel", "cancelled", set()),
    ):
        press(app, f"{verb}_{job.id}")
        assert table.get(job.id).state == state
        assert {*buttons(app)} & {"pause", "resume", "cancel"} == offered


def test_a_running_job_is_asked_and_the_page_says_so_at_once(checkpoints, table, pressed_start):
    app = pressed_start(data="iris")
    (job,) = table.all()
    table.claim(job.id, "token")
    table.report(job.id, "token", stage=story.TRAINING, progress=0.4)
    press(checked(app.run()), f"pause_{job.id}")
    assert table.get(job.id).wish == "pause"
    assert buttons(app)["pause"].disabled
    assert not buttons(app)["cancel"].disabled
    table.end(job.id, "token", "paused")
    assert "resume" in buttons(checked(app.run()))


def test_curves_and_neighbors_grow_with_the_events(checkpoints, table, pressed_start):
    app = pressed_start(data="iris")
    (job,) = table.all()
    assert [len(points(chart)) for chart in app.get("plotly_chart")] == [0, 0]
    table.claim(job.id, "token")
    for epoch in (1, 2, 2, 3):
        table.say(job.id, "numbers", numbers(epoch))
    checked(app.run())
    assert [len(points(chart)) for chart in app.get("plotly_chart")] == [3, 3]
    assert len(app.get("bidi_component")) == 1


def points(chart):
    return json.loads(chart.proto.spec)["data"][0]["x"]


@pytest.mark.parametrize("state", ["done", "failed", "cancelled"])
def test_an_ended_run_starts_again_with_its_settings_under_a_free_name(checkpoints, table, state, pressed_start):
    app = pressed_start(data="iris")
    (job,) = table.all()
    if state == "cancelled":
        table.wish(job.id, "cancel")
    else:
        table.claim(job.id, "token")
        table.end(job.id, "token", state)
    (checkpoints / "iris").rename(checkpoints / "iris-2")
    app.number_input(key="fit_seed").set_value(5)
    press(checked(app.run()), f"again_{job.id}")
    again = next(one for one in table.all() if one.id != job.id)
    assert (again.spec["config"], again.spec["name"]) == (job.spec["config"], "iris-3")
    assert "--name iris-3 --seed 0" in again.spec["command"]
    assert app.query_params["job"] in (again.id, [again.id])


def test_quick_jobs_are_nobodys_business(checkpoints, table, open_training):
    table.submit("encode", "digits: one picture", {"checkpoint": "iris"}, lane="quick")
    assert any("Nothing runs." in line for line in markdown(open_training()))
    assert "No run was started yet" in open_training(view="history").info[0].value


def test_a_finished_run_opens_in_neighbors(checkpoints, table, pressed_start):
    app = pressed_start(data="iris")
    (job,) = table.all()
    finish(table, job)
    checked(app.run())
    (link,) = app.get("page_link")
    assert link.proto.query_string == "checkpoint=iris"
    assert buttons(app).keys().isdisjoint({"pause", "resume", "cancel"})


def test_another_run_waits_in_a_line_below(checkpoints, table, pressed_start):
    app = pressed_start(data="iris")
    app.number_input(key="fit_seed").set_value(1)
    press(checked(app.run()), "start")
    second, first = table.all()
    assert app.query_params["job"] in (second.id, [second.id])
    press(app, f"watch_{first.id}")
    assert app.query_params["job"] in (first.id, [first.id])


def test_what_a_job_says_cannot_put_markup_on_the_page(checkpoints, table, pressed_start):
    app = pressed_start(data="iris")
    (job,) = table.all()
    table.claim(job.id, "token")
    table.end(job.id, "token", "failed", error="![x](http://evil) broke", stage="[a](http://evil)")
    checked(app.run())
    assert errors(app) == ["![x](http:\u2060//evil) broke".replace("\u2060//", "//\u2060")]
    assert not any("](http" in one.value for one in [*app.error, *app.markdown, *app.caption])


def test_a_damaged_table_is_moved_aside_with_a_notice(checkpoints, jobs_folder, open_training):
    jobs_folder.mkdir()
    (jobs_folder / "jobs.db").write_bytes(b"this is no database, and long enough to be looked at" * 40)
    app = open_training()
    assert any("damaged" in line and "nothing was deleted" in line for line in notices(app))
    assert list(jobs_folder.glob("jobs.db.damaged-*"))
    assert any("Nothing runs." in line for line in markdown(app))


def test_a_table_that_is_damaged_while_the_page_is_open_is_no_end(checkpoints, jobs_folder, table, pressed_start):
    app = pressed_start(data="iris")
    for part in jobs_folder.glob("jobs.db-*"):
        part.unlink()
    (jobs_folder / "jobs.db").write_bytes(b"this is no database, and long enough to be looked at" * 400)
    checked(app.run())
    assert any("damaged" in line for line in notices(app))


def test_a_folder_that_cannot_be_made_is_a_sentence(checkpoints, tmp_path, monkeypatch, open_training):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTNKNN_JOBS", str(tmp_path / "file" / "jobs"))
    app = open_training()
    assert len(errors(app)) == 1
    assert "ATTNKNN_JOBS" in errors(app)[0]
    (tmp_path / "file").unlink()
    assert any("Nothing runs." in line for line in markdown(checked(app.run()))), "once it can be made, all is well"
