"""Wrong labels and their cleaning on the Training page: what the form asks for, what is shown, what is refused."""

import json
from dataclasses import replace

import pytest

from attnknn.config import Cleaning, LabelNoise, TrainingConfig
from attnknn.errors import SettingError
from attnknn.training.defaults import default_config
from attnknn.ui.labels import write_round
from attnknn.ui.training import story
from attnknn.work.submit import check_bounds
from attnknn.work.train import STAGES
from tests.ui.apps import checked, open_app, plain
from tests.ui.training import data, fold, markdown, pick, press, unfold


def test_noise_and_cleaning_reach_the_run(checkpoints, table, open_training):
    app = unfold(open_training(data="wine"), "labels")
    assert app.selectbox(key="noise_kind").disabled
    assert app.selectbox(key="cleaning_rule").disabled
    app.number_input(key="wrong_labels").set_value(40)
    app.selectbox(key="cleaning").set_value("twice")
    checked(app.run())
    app.selectbox(key="noise_kind").set_value("pair")
    app.selectbox(key="cleaning_rule").set_value("drop")
    fold(app, "labels")
    assert "Set: 40% pair label noise, cleaned twice (drop)." in markdown(app)
    press(app, "start")
    (job,) = table.all()
    asked = TrainingConfig.from_dict(job.spec["config"])
    changes = {"label_noise": LabelNoise("pair", 0.4), "cleaning": Cleaning(2, "drop")}
    assert asked == replace(default_config(data("wine")), **changes)
    said = "--label-noise 0.4 --noise-kind pair --cleaning 2 --cleaning-rule drop"
    assert job.spec["command"].endswith(said)


@pytest.mark.parametrize(
    ("noise", "sentence"),
    [
        (LabelNoise(rate=0.95), "label_noise must be between 0 and 0.9"),
        (LabelNoise(seed=-1, rate=0.1), "noise_seed must be between 0 and"),
        (LabelNoise("matrix", 0.1), "noise kind must be one of symmetric, pair"),
    ],
)
def test_noise_that_cannot_be_had_is_refused_where_the_work_is_accepted(noise, sentence):
    with pytest.raises(SettingError, match=sentence):
        check_bounds(replace(default_config(data("wine")), label_noise=noise))


# A run that cleans, as its own reports tell it


@pytest.fixture
def run(table, cleaned):
    """A job that will train as `cleaned` was, and what is said of it up to the n-th report."""
    classifier, reports = cleaned
    job = table.submit(
        "train", "iris → iris-2", {"config": classifier.config.to_dict(), "name": "iris-2", "command": ""}
    )
    table.claim(job.id, "token")

    def say(begin, end):
        for stage, done, numbers in reports[begin:end]:
            title, low, high = STAGES[stage]
            table.report(job.id, "token", stage=title, progress=low + (high - low) * done)
            if numbers:
                table.say(job.id, "numbers", {"stage": title} | numbers)
        return table.get(job.id)

    return say


def lines(app):
    """Of each chart: the epochs of every round."""
    return [[line["x"] for line in json.loads(chart.proto.spec)["data"]] for chart in app.get("plotly_chart")]


def test_the_curves_of_a_cleaned_run_show_every_round(checkpoints, cleaned, run, open_training):
    epochs = cleaned[0].config.embedder.epochs
    run(0, epochs + 3)  # with the cleaning after the first round: two epochs of the second
    app = open_training()
    first, second = list(range(1, epochs + 1)), [epochs + 1, epochs + 2]
    assert lines(app) == [[first, second]] * 2
    (progress,) = app.get("progress")
    assert plain(progress.proto.text).startswith(f"Epoch {epochs + 2} of {2 * epochs} · round 2 of 2")
    run(epochs + 3, None)
    assert lines(checked(app.run())) == [[first, list(range(epochs + 1, 2 * epochs + 1))]] * 2


def test_what_a_cleaning_did_is_told_where_it_was_announced(checkpoints, cleaned, run, open_training):
    epochs = cleaned[0].config.embedder.epochs
    (facts,) = cleaned[0].card["cleaning"]
    run(0, epochs)
    app = open_training()
    (place,) = (i for i, line in enumerate(markdown(app)) if line == "Cleaning after round 1: to come.")
    run(epochs, epochs + 1)
    told = markdown(checked(app.run()))[place]
    assert told == write_round(facts)
    assert f"{facts['kept']} labels kept, 0 relabeled, {facts['dropped']} dropped. Right before: " in told
    assert f"{facts['purity_before']:.1%}; right after: {facts['purity']:.1%}." in told


def test_how_right_labels_are_is_not_told_where_nobody_knows():
    counts = {"round": 2, "kept": 5, "relabeled": 1, "dropped": 0, "judge_epoch": 3}
    assert "ight" not in write_round(counts)


def test_a_cancelled_run_promises_no_cleaning(checkpoints, table, run, open_training):
    job = run(0, 3)
    table.end(job.id, "token", "cancelled")
    app = open_training(job=job.id)
    assert not any("Cleaning after" in line for line in markdown(app))


def test_settings_log_and_history_of_a_cleaned_run_tell_its_labels(checkpoints, cleaned, table, run, open_training):
    job = run(0, None)
    table.end(job.id, "token", "done", result={"checkpoint": "iris"})
    app = pick(open_training(view="history"), "job_list_", 0)
    epochs = cleaned[0].config.embedder.epochs
    assert list(app.dataframe[0].value["epochs"]) == [2 * epochs]
    settings = next(line for line in markdown(app) if job.id[:8] in line)
    assert settings.startswith(f"2 × {epochs} epochs · ")
    assert "40% symmetric label noise, cleaned once (drop)" in settings
    log = app.code[-1].value
    assert f"epoch {epochs + 1} · round 2 of 2 · loss" in log
    assert write_round(cleaned[0].card["cleaning"][0]) in log


def test_held_out_accuracy_is_not_called_accuracy_where_held_out_labels_are_noisy(checkpoints, run, open_training):
    run(0, 2)
    titles = [json.loads(chart.proto.spec)["layout"]["title"]["text"] for chart in open_training().get("plotly_chart")]
    assert titles[1] == "Baseline against noisy held-out labels"


def test_a_cleaning_done_again_counts_as_it_was_last(checkpoints, table, run):
    job = run(0, None)
    said = [event.data for event in table.events(job.id) if "kept" in event.data]
    table.say(job.id, "numbers", said[0] | {"kept": 3})
    table.say(job.id, "numbers", {"round": 2, "kept": "many"})
    assert [one["kept"] for one in story.cleanings(table.events(job.id)).values()] == [3]


# A checkpoint whose labels are not the dataset's


def test_a_checkpoint_says_which_labels_it_was_trained_with(checkpoints, cleaned, open_training):
    cleaned[0].save("noisy", checkpoints)
    app = open_training(view="checkpoints")
    listed = app.dataframe[0].value.set_index("name")["labels"]
    assert listed.to_dict() == {"iris": "the dataset's", "noisy": "40% symmetric label noise, cleaned once (drop)"}
    told = markdown(pick(app, "checkpoint_list_", 1))
    assert any("not the dataset's own: 40% symmetric label noise, cleaned once (drop)" in line for line in told)
    assert any(line.endswith(write_round(cleaned[0].card["cleaning"][0])) for line in told)
    assert not any("not the dataset's own" in line for line in markdown(pick(app, "checkpoint_list_", 0)))


@pytest.mark.parametrize("said", [7, [7], [{"round": 1, "kept": "many"}]])
def test_a_stranger_s_card_that_says_nonsense_of_its_cleaning_is_still_listed(checkpoints, said, open_training):
    path = checkpoints / "iris" / "card.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cleaning": said}))
    app = pick(open_training(view="checkpoints"), "checkpoint_list_", 0)
    assert "delete" in {one.key for one in app.button}
    assert not app.error


def test_the_neighbors_page_says_which_labels_the_entries_carry(checkpoints, cleaned):
    cleaned[0].save("noisy", checkpoints)
    told = "The entries carry the labels that training saw: **40% symmetric label noise, cleaned once (drop)**."
    assert any(line.startswith(told) for line in markdown(open_app(checkpoint="noisy")))
    assert not any("training saw" in line for line in markdown(open_app(checkpoint="iris")))


def test_a_comparison_tells_labels_apart_and_calls_none_clean(checkpoints, cleaned, open_training):
    cleaned[0].save("noisy", checkpoints)
    app = pick(open_training(view="checkpoints"), "checkpoint_list_", 0, 1)
    metrics, settings = app.dataframe[1].value, app.dataframe[2].value.set_index("setting")
    assert set(metrics["noise added"]) == {"none", "symmetric 40%", "pair 40%"}
    assert settings.loc["label noise in training"].to_list() == ["none", "40% symmetric label noise"]
    assert settings.loc["labels"].to_list() == ["not cleaned", "cleaned once (drop)"]
    assert int(settings.loc["entries", "noisy"]) < int(settings.loc["entries", "iris"])
    assert not any("clean labels" in line for line in markdown(app))
