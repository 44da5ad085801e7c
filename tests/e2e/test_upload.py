"""A visitor's own picture becomes the query, and the link to it shows the same to others."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, expect

from tests.e2e.boards import look_at, settle, visit
from tests.e2e.servers import end_workers, serve

pytestmark = pytest.mark.e2e
LONG = 60_000  # milliseconds; the embedder is imported first


@pytest.fixture
def seven(tmp_path: Path) -> Path:
    picture = Image.new("RGB", (300, 300), "white")
    ImageDraw.Draw(picture).line([(80, 60), (220, 60), (140, 250)], "black", 30)
    picture.save(tmp_path / "seven.png")
    return tmp_path / "seven.png"


def test_a_picture_is_embedded_and_its_link_shared(browser: Browser, tmp_path: Path, seven: Path):
    variables = {"ATTNKNN_JOBS": str(tmp_path / "jobs")}
    try:
        with serve(**variables) as address:
            page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
            visit(page, address)
            page.get_by_role("button", name="your own").click()
            (tmp_path / "no.png").write_bytes(b"nothing that could be seen")
            upload = page.locator("input[type=file]")
            upload.set_input_files(tmp_path / "no.png")
            expect(page.get_by_text("A picture must be a PNG, JPEG or WEBP file")).to_be_visible()
            upload.set_input_files(seven)
            expect(page.locator(".query .id")).to_contain_text("upload/", timeout=LONG)
            expect(page.locator(".truth")).to_have_text("label unknown; shown as the embedder sees it")
            expect(page.locator(".truth .chip")).to_be_hidden()
            expect(upload).to_have_count(0)  # the board is not covered
            expect(page.get_by_text("Light and dark were exchanged")).to_be_visible()
            expect(page.locator(".answer .chip")).to_have_text(["7"] * 7)
            expect(page.locator(".noise h2")).to_contain_text("attention’s answer")
            answers = page.locator(".answer .number").all_inner_texts()
            link = page.url
            assert "query=upload" in link
            look_at(page, "digits/test/1")
            expect(page.locator(".truth")).to_have_text("true label1")
            look_at(page, parse_qs(urlsplit(link).query)["query"][0])
            expect(page.locator(".answer .number")).to_have_text(answers)
            page.reload()
            settle(page)
            expect(page.locator(".answer .number")).to_have_text(answers)
            other = browser.new_context().new_page()
            visit(other, link)
            expect(other.locator(".answer .number")).to_have_text(answers)
            visit(other, f"{address}/?query=upload/{'0' * 32}")
            expect(other.get_by_text("query must be the id of a test item")).to_be_visible()
            expect(other.locator(".query .id")).to_have_text("digits/test/0")
    finally:
        end_workers(variables)
