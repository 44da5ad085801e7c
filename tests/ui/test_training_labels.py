"""Wrong labels and their cleaning on the Training page: what the form asks for, and what is refused."""

from dataclasses import replace

import pytest

from attnknn.config import Cleaning, LabelNoise, TrainingConfig
from attnknn.errors import SettingError
from attnknn.training.defaults import default_config
from attnknn.work.submit import check_bounds
from tests.ui.apps import checked
from tests.ui.training import data, press


def test_noise_and_cleaning_reach_the_run(checkpoints, table, open_training):
    app = open_training(data="wine")
    assert app.selectbox(key="noise_kind").disabled
    assert app.selectbox(key="cleaning_rule").disabled
    app.number_input(key="wrong_labels").set_value(40)
    app.selectbox(key="cleaning").set_value("twice")
    checked(app.run())
    app.selectbox(key="noise_kind").set_value("pair")
    app.selectbox(key="cleaning_rule").set_value("drop")
    press(checked(app.run()), "start")
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
