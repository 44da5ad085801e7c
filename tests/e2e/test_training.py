"""A visitor trains: starts, watches, pauses, loses the server, resumes, and opens what was made. Nobody reloads."""

import re
import shutil
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Page, expect

from attnknn.checkpoints import ROOT, checkpoint_names
from attnknn.jobs import JobSettings, JobStore
from tests.e2e.servers import end_workers, free_port, serve

pytestmark = pytest.mark.e2e
LONG = 60_000  # milliseconds; the machine may be busy with other tests
BEYOND_ITS_ROOM = "(card) => card.offsetHeight - parseInt(getComputedStyle(card).minHeight)"
A_RUN = 240_000  # milliseconds for the rest of a run, which is half a minute where nothing else runs


@pytest.fixture
def world(tmp_path):
    """Folders of this test's own; whoever works in them is ended afterwards."""
    shutil.copytree(ROOT, tmp_path / "checkpoints")
    variables = {
        "ATTNKNN_JOBS": str(tmp_path / "jobs"),
        "ATTNKNN_CHECKPOINTS": str(tmp_path / "checkpoints"),
        "ATTNKNN_IDLE": "120",
    }
    yield variables
    end_workers(variables)


@pytest.fixture
def tabs(browser: Browser, browser_type_launch_args):
    """Two tabs of one browser, in which no script may break."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    pages, broken = [context.new_page(), context.new_page()], []
    for page in pages:
        page.on("pageerror", lambda error: broken.append(str(error)))
    yield pages
    context.close()
    assert not broken


def card(page: Page):
    return page.locator("[class*='st-key-run_']")


def epoch(page: Page) -> int:
    """The epoch that a page says has ended."""
    said = re.search(r"Epoch (\d+) of", card(page).inner_text())
    return int(said[1]) if said else 0


def test_a_run_outlives_the_server_and_ends_as_a_checkpoint(world, tabs):
    first, second = tabs
    port = free_port()
    with ExitStack() as server:
        address = server.enter_context(serve(port, **world))
        first.goto(address)
        first.get_by_role("link", name="Training").click()
        expect(first.get_by_text("Nothing runs.")).to_be_visible()
        expect(first.get_by_text("40 epochs", exact=True)).to_be_visible()  # long enough to be watched and paused
        second.goto(f"{address}/training")
        expect(second.get_by_text("Nothing runs.")).to_be_visible()
        first.get_by_role("button", name="Start").click()
        expect(first).to_have_url(re.compile(r"[?&]job=[0-9a-f]{32}"))
        expect(card(first)).to_contain_text(re.compile(r"Epoch \d+ of 40"), timeout=LONG)
        expect(card(first).locator(".scatterlayer path.js-line")).to_have_count(2)
        expect(card(first).locator(".item")).to_have_count(9)
        assert abs(card(first).evaluate(BEYOND_ITS_ROOM)) < 8, "what comes below a run stays where it is"
        before = epoch(first)

        expect(card(second)).to_contain_text("digits → digits-2")
        expect(card(second)).to_contain_text(re.compile(r"Epoch \d+ of 40"), timeout=LONG)
        assert epoch(second) >= before
        first.get_by_role("button", name="Pause").click()
        for page in tabs:
            expect(page.get_by_role("button", name="Resume")).to_be_visible(timeout=LONG)
            expect(card(page)).to_contain_text("paused at")
    with serve(port, **world):
        for page in tabs:
            expect(page.locator("[data-testid=stApp][data-test-connection-state=CONNECTED]")).to_be_visible(
                timeout=LONG
            )
        second.get_by_role("button", name="Resume").click()  # while the new server draws the page for the first time
        for page in tabs:
            expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=LONG)
        link = first.get_by_role("link", name="Open digits-2 in Neighbors")
        expect(link).to_be_visible(timeout=A_RUN)
        expect(card(second)).to_contain_text("done in", timeout=LONG)
        scrubber = second.get_by_role("slider", name="Epoch")
        scrubber.press("Home")
        expect(second.locator(".strip .when")).to_have_text("epoch 1")
        scrubber.press("End")
        expect(second.locator(".strip .when")).to_have_text("epoch 40")
        link.click()
        expect(first.locator(".query .id")).to_have_text("digits/test/0")
        expect(first.locator(".provenance")).to_contain_text("checkpoint digits-2")
        assert "checkpoint=digits-2" in first.url
        for page in tabs:
            expect(page.get_by_test_id("stException")).to_have_count(0)
    settings = JobSettings.from_environment(world)
    (job,) = JobStore(settings).all()
    assert (job.state, job.result) == ("done", {"checkpoint": "digits-2"})
    assert "digits-2" in checkpoint_names(settings.folder.parent / "checkpoints")
