"""How a test finds its way on the page, and what the board must read for a prediction."""

from __future__ import annotations

import math
from functools import lru_cache

from playwright.sync_api import Locator, Page, expect

import attnknn
from attnknn.prediction import Prediction
from attnknn.ui.present import SHOWN_FIRST
from attnknn.votes import TITLES

load = lru_cache(attnknn.load)


def visit(page: Page, link: str = "/") -> None:
    """Follow a link, and wait until the board is drawn."""
    page.goto(link)
    settle(page)


def settle(page: Page) -> None:
    app = page.get_by_test_id("stApp")
    expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")
    expect(app).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.locator(".board .card").first).to_be_visible()


def slider(page: Page, key: str) -> Locator:
    return page.locator(f".st-key-{key}").get_by_role("slider")


def choose(page: Page, key: str, option: str) -> None:
    """Choose from a select box by typing, as one does among 540 ids."""
    box = page.locator(f".st-key-{key}").get_by_role("combobox")
    box.click()
    box.fill(option)
    page.get_by_role("option", name=option, exact=True).click()


def percent(share: float) -> str:
    return "<1\u00a0%" if 0 < share < 0.005 else f"{math.floor(100 * share + 0.5)}\u00a0%"


def whole(share: float) -> str:
    return str(math.floor(100 * share + 0.5))


def expect_votes(page: Page, prediction: Prediction) -> None:
    """Every vote on the board reads as the prediction says: its name, its share, its class."""
    votes = prediction.to_dict()["votes"]
    said = [votes[name] for name in SHOWN_FIRST]
    shares = [percent(vote["probabilities"][vote["predicted"]]) for vote in said]
    for part, rows in ((".answer", slice(None)), (".race .title", slice(3)), (".other", slice(3, None))):
        expect(page.locator(f"{part} .number")).to_have_text(shares[rows])
        expect(page.locator(f"{part} .name")).to_have_text([TITLES[name] for name in SHOWN_FIRST[rows]])
        expect(page.locator(f"{part} .chip")).to_have_text([vote["predicted"] for vote in said[rows]])


def expect_neighbors(page: Page, prediction: Prediction) -> None:
    """Every card and every cell of the heat map reads as the prediction says."""
    facts = prediction.to_dict()
    neighbors = facts["neighbors"]
    expect(page.locator(".query .id")).to_have_text(facts["query"])
    expect(page.locator(".truth .chip")).to_have_text(facts["label"])
    expect(page.locator(".card .share")).to_have_text([percent(one["share"]) for one in neighbors])
    expect(page.locator(".card .distance")).to_have_text([f"{one['distance']:.2f}" for one in neighbors])
    expect(page.locator(".card .chip")).to_have_text([one["observed_label"] for one in neighbors])
    flipped = [one["clean_label"] for one in neighbors if one["is_flipped"]]
    expect(page.locator(".card .was:not([hidden]) s")).to_have_text(flipped)
    for h, name in enumerate(facts["heads"]):
        row = page.locator(".heat").get_by_role("row").nth(h + 1)
        expect(row.get_by_role("rowheader")).to_have_text(name)
        expect(row.locator(".cell")).to_have_text([whole(one["weights"][h]) for one in neighbors])
        expect(row.locator(".sink")).to_have_text(whole(facts["sink"][h]))


def words(page: Page) -> str:
    """Everything that the board says, as text and as labels for those who cannot see it."""
    return page.locator(".board").evaluate(
        "board => [board.textContent, ...[...board.querySelectorAll('[aria-label], [aria-selected], [title]')].map("
        "part => [part.ariaLabel, part.ariaSelected, part.title].join())].join('\\n')"
    )
