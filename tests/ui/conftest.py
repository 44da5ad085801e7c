"""Jobs of a test lie in a folder of its own, nobody works on them, and no page looks again by itself."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from attnknn.config import Cleaning, LabelNoise
from attnknn.data import load_dataset
from attnknn.jobs import JobSettings, JobStore
from attnknn.training.run import fit
from tests.conftest import QUICK
from tests.ui.apps import REPOSITORY, checked
from tests.ui.training import press


@pytest.fixture(autouse=True)
def jobs_folder(tmp_path, monkeypatch):
    folder = tmp_path / "jobs"
    monkeypatch.setenv("ATTNKNN_JOBS", str(folder))
    monkeypatch.setenv("ATTNKNN_POLL", "0")
    monkeypatch.setenv("ATTNKNN_WORKER", "external")
    return folder


@pytest.fixture
def checkpoints(bench, monkeypatch):
    """A folder of checkpoints of this test's own, which holds `iris`."""
    monkeypatch.setenv("ATTNKNN_CHECKPOINTS", str(bench))
    return bench


@pytest.fixture(scope="session")
def cleaned():
    """A classifier whose training labels were wrong and then cleaned, and what its run reported."""
    reports = []
    config = replace(QUICK, label_noise=LabelNoise("symmetric", 0.4, seed=3), cleaning=Cleaning(1, "drop"))
    return fit(load_dataset("iris"), config, lambda *one: reports.append(one)), reports


@pytest.fixture
def table():
    return JobStore(JobSettings.from_environment())


@pytest.fixture
def open_training(tmp_path):
    """Open the page as a server would that is no longer fresh: in a fresh one, a click is lost with the first run."""
    (tmp_path / "app.py").write_text((REPOSITORY / "app.py").read_text())

    def open_page(**link):
        app = AppTest.from_file(tmp_path / "app.py", default_timeout=60)
        app.query_params.update(link)
        return checked(app.switch_page(str(REPOSITORY / "pages" / "training.py")).run())

    return open_page


@pytest.fixture
def pressed_start(open_training):
    return lambda **link: press(open_training(**link), "start")
