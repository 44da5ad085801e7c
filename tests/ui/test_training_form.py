"""The expanders of the form on the Training page: closed, they draw nothing, and forget nothing."""

from dataclasses import replace

import pytest

from attnknn.config import TrainingConfig
from attnknn.training.defaults import default_config
from tests.ui.apps import checked
from tests.ui.training import controls, data, fold, markdown, press, unfold

FOLDED = {
    "embedder": {f"mlp_{one}" for one in ("dimension", "width", "members", "batch_size", "learning_rate", "dropout")}
}
FOLDED |= {"labels": {"wrong_labels", "noise_kind", "cleaning", "cleaning_rule"}}


@pytest.mark.parametrize("key", FOLDED)
def test_a_closed_expander_draws_no_control(checkpoints, key, open_training):
    app = open_training(data="wine")
    before = controls(app)
    assert before.isdisjoint(FOLDED["embedder"] | FOLDED["labels"])
    assert controls(unfold(app, key)) == before | FOLDED[key]
    assert controls(fold(app, key)) == before


def test_what_is_set_in_an_expander_survives_closing_it_and_reaches_the_run(checkpoints, table, open_training):
    app = unfold(open_training(data="wine"), "embedder")
    app.number_input(key="mlp_width").set_value(24)
    app.slider(key="mlp_dropout").set_value(0.5)
    fold(app, "embedder")  # in the run that first hears of them, as where a click on the title ends typing
    assert "Set: width 24, dropout 0.5." in markdown(app)
    checked(app.run())
    app.number_input(key="fit_k").set_value(5)
    press(checked(app.run()), "start")
    (job,) = table.all()
    asked, usual = TrainingConfig.from_dict(job.spec["config"]), default_config(data("wine"))
    assert asked == replace(
        usual,
        embedder=replace(usual.embedder, width=24, dropout=0.5),
        attention=replace(usual.attention, k=5),
    )
    unfold(app, "embedder")
    assert (app.number_input(key="mlp_width").value, app.slider(key="mlp_dropout").value) == (24, 0.5)
    assert not any(line.startswith("Set:") for line in markdown(app)), "what can be seen is not told"
    app.number_input(key="mlp_width").set_value(usual.embedder.width)
    app.slider(key="mlp_dropout").set_value(usual.embedder.dropout)
    assert not any(line.startswith("Set:") for line in markdown(fold(app, "embedder")))


def test_what_is_set_for_one_kind_of_embedder_is_not_set_for_another(checkpoints, table, open_training):
    app = unfold(open_training(data="wine"), "embedder")
    app.number_input(key="mlp_width").set_value(24)
    app.selectbox(key="data").set_value("digits")
    press(checked(app.run()), "start")
    (job,) = table.all()
    assert TrainingConfig.from_dict(job.spec["config"]) == default_config(data("digits"))
