"""How a test finds its way on the page, and what the board must read for a prediction."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from playwright.sync_api import Locator, Page, expect

import attnknn
from attnknn import LabelNoise
from attnknn.by_hand import ByHand, decide_by_hand
from attnknn.prediction import Prediction
from attnknn.ui.present import SHOWN_FIRST
from attnknn.votes import TITLES

load = lru_cache(attnknn.load)
VIEW = "?query=digits%2Ftest%2F25&k=12&noise=0.4&seed=3&temperature=1.4"
SETTING: dict[str, Any] = {"k": 12, "noise": LabelNoise("symmetric", 0.4, seed=3), "temperature": 1.4}


def visit(page: Page, link: str = "/") -> None:
    """Follow a link, and wait until the board is drawn."""
    page.goto(link)
    settle(page)


def settle(page: Page) -> None:
    app = page.get_by_test_id("stApp")
    expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")
    expect(app).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.locator(".board .card").first).to_be_visible()


def slider(page: Page, name: str) -> Locator:
    return page.locator(f".controls input[type=range][name={name}]")


def handle_of(card: Locator) -> Locator:
    """Return a part of a card that does nothing by itself: a click on its label would flip it."""
    return card.locator(".rank")


def look_at(page: Page, query: str) -> None:
    """Ask the board for another query by typing its id."""
    page.get_by_label("Another query, by its id").fill(query)
    page.keyboard.press("Enter")
    expect(page.locator(".query .id")).to_have_text(query)


def choose(page: Page, key: str, option: str) -> None:
    """Choose from a select box by typing."""
    box = page.locator(f".st-key-{key}").get_by_role("combobox")
    box.click()
    box.fill(option)
    page.get_by_role("option", name=option, exact=True).click()


def percent(share: float) -> str:
    return "<1\u00a0%" if 0 < share < 0.005 else f"{math.floor(100 * share + 0.5)}\u00a0%"


def whole(share: float) -> str:
    return str(math.floor(100 * share + 0.5))


def about(write: Callable[[float], str], share: float) -> re.Pattern[str]:
    """What a share may read as: the browser agrees with Python within 1e-4, and then rounds."""
    texts = {re.escape(write(max(share + off, 0.0))) for off in (-1e-4, 0.0, 1e-4)}
    return re.compile(f"^({'|'.join(sorted(texts))})$")


def expect_votes(page: Page, prediction: Prediction, order: Sequence[str] = SHOWN_FIRST) -> None:
    """Every vote on the board reads as the prediction says: its name, its class, how sure it is, and its share."""
    votes = prediction.to_dict()["votes"]
    said = [votes[name] for name in order]
    for part, rows, kind in (
        (".answer", slice(None), "calibrated"),
        (".race .title", slice(3), "probabilities"),
        (".other", slice(3, None), "probabilities"),
    ):
        shares = [about(percent, vote[kind][vote["predicted"]]) for vote in said[rows]]
        expect(page.locator(f"{part} .number")).to_have_text(shares)
        expect(page.locator(f"{part} .name")).to_have_text([TITLES[name] for name in order[rows]])
        expect(page.locator(f"{part} .chip")).to_have_text([vote["predicted"] for vote in said[rows]])


def expect_neighbors(page: Page, prediction: Prediction) -> None:
    """Every card and every cell of the heat map reads as the prediction says; heads that are muted have no say."""
    facts = prediction.to_dict()
    neighbors = facts["neighbors"]
    expect(page.locator(".query .id")).to_have_text(facts["query"])
    expect(page.locator(".truth .chip")).to_have_text(facts["label"])
    expect(page.locator(".card .share")).to_have_text([about(percent, one["share"]) for one in neighbors])
    expect(page.locator(".card .distance")).to_have_text([f"{one['distance']:.2f}" for one in neighbors])
    expect(page.locator(".card .chip")).to_have_text([one["observed_label"] for one in neighbors])
    flipped = [one["clean_label"] for one in neighbors if one["is_flipped"]]
    expect(page.locator(".card .was:not([hidden]) s")).to_have_text(flipped)
    heard = page.locator(".heat .row:not(.muted)")
    expect(heard).to_have_count(1 + len(facts["heads"]))
    for h, name in enumerate(facts["heads"]):
        row = heard.nth(h + 1)
        expect(row.get_by_role("rowheader").get_by_role("button")).to_have_text(name)
        expect(row.locator(".cell")).to_have_text([about(whole, one["weights"][h]) for one in neighbors])
        expect(row.locator(".sink")).to_have_text(about(whole, facts["sink"][h]))


def words(page: Page) -> str:
    """Everything that the board says, as text and as labels for those who cannot see it."""
    return page.locator(".board").evaluate(
        "board => [board.textContent, ...[...board.querySelectorAll('[aria-label], [aria-selected]')].map("
        "part => [part.ariaLabel, part.ariaSelected].join())].join('\\n')"
    )


def decide(by_hand: ByHand | None = None) -> Prediction:
    """What the library says of the view, after somebody changed something by hand."""
    digits = load("digits")
    return decide_by_hand(digits, digits.ask(["digits/test/25"]), by_hand or ByHand(), **SETTING)


def ids_of(prediction: Prediction) -> list[str]:
    return [one["id"] for one in prediction.to_dict()["neighbors"]]


def said_by(url: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}


def expect_link(page: Page, **said: str) -> None:
    """The address of the page says this and nothing else."""
    for name, value in said.items():
        expect(page).to_have_url(re.compile(rf"[?&]{name}={re.escape(quote(value, safe=''))}(&|$)"))
    assert said_by(page.url) == said
