"""A checkpoint that travelled without its bank: the page offers to fill it, and goes on by itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from attnknn.checkpoints import ROOT
from tests.e2e.servers import end_workers, serve

pytestmark = pytest.mark.e2e
LONG = 120_000  # milliseconds; a worker is started, and torch imported


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """Folders of this test's own, with iris as card and weights alone."""
    folder = tmp_path / "checkpoints" / "iris"
    shutil.copytree(ROOT / "iris", folder)
    shutil.rmtree(folder / "bundle")
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    card["files"] = {"weights.safetensors": card["files"]["weights.safetensors"]}
    (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")
    names = {"ATTNKNN_JOBS": "jobs", "ATTNKNN_CHECKPOINTS": "checkpoints", "ATTNKNN_PREPARED": "prepared"}
    return {name: str(tmp_path / place) for name, place in names.items()}


def test_the_bank_is_filled_where_it_is_missing(browser: Browser, variables: dict[str, str]):
    try:
        with serve(**variables) as address:
            page = browser.new_page()
            page.goto(address)
            expect(page.get_by_text("The bank of iris is filled on first use.")).to_be_visible(timeout=LONG)
            page.get_by_role("button", name="Prepare").click()
            expect(page.locator(".board .card").first).to_be_visible(timeout=LONG)
            expect(page.locator(".provenance")).to_contain_text("checkpoint iris")
    finally:
        end_workers(variables)
