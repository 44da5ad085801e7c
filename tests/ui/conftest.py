"""Jobs of a test lie in a folder of its own, nobody works on them, and no page looks again by itself."""

import shutil
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from attnknn.config import Cleaning, LabelNoise
from attnknn.data import load_dataset
from attnknn.jobs import JobSettings, JobStore
from attnknn.training.run import fit
from attnknn.ui import board
from tests.conftest import QUICK
from tests.ui.apps import REPOSITORY, checked
from tests.ui.drawing import FLAGS, OPEN, THEME
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


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return {**browser_type_launch_args, "executable_path": shutil.which("chromium"), "args": FLAGS.split()}


@pytest.fixture
def drawn(page):
    """Open an empty page; return a function that draws a board in it."""
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    is_open = []

    def draw(data, width=1280, theme="light"):
        page.set_viewport_size({"width": width, "height": 900})
        if not is_open:
            page.evaluate(OPEN, [board.read_html(), board.read_css(), board.read_js(), THEME[theme]])
            is_open.append(True)
        page.evaluate("(data) => { draw(data) }", data)
        return page

    yield draw
    assert not problems
