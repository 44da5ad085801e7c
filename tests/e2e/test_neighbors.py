"""A visitor on the Neighbors page, from the first look to a link that is passed on."""

import re
from urllib.parse import quote, urlencode

import numpy as np
import pytest
from playwright.sync_api import expect

from attnknn import LabelNoise
from tests.e2e.boards import (
    SETTING,
    VIEW,
    about,
    choose,
    decide,
    expect_link,
    expect_neighbors,
    expect_votes,
    handle_of,
    ids_of,
    load,
    look_at,
    percent,
    said_by,
    settle,
    slider,
    visit,
    words,
)
from tests.e2e.conftest import watch
from tests.e2e.servers import serve

pytestmark = pytest.mark.e2e

STICKS_OUT = """async (box) => {
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame)
  return Math.max(box.scrollWidth - box.clientWidth, box.getBoundingClientRect().right - innerWidth)
}"""


def test_what_is_set_by_hand_is_what_the_board_computes_and_the_address_says(page):
    visit(page)
    digits = load("digits")
    expect_votes(page, digits.predict_items(["digits/test/0"]))
    look_at(page, "digits/test/25")
    slider(page, "k").press("ArrowLeft")
    expect(page.locator(".card")).to_have_count(15)
    slider(page, "k").press("ArrowLeft")
    expect(page.locator(".card")).to_have_count(14)
    slider(page, "noise").press("End")
    expect(page.locator(".provenance")).to_contain_text(f"label noise {percent(0.9)}")
    prediction = digits.predict_items(["digits/test/25"], 14, LabelNoise("symmetric", 0.9))
    expect_votes(page, prediction)
    expect_neighbors(page, prediction)
    expect_link(page, query="digits/test/25", k="14", noise="0.9")
    page.reload()
    settle(page)
    expect_neighbors(page, prediction)


def test_a_link_shows_the_numbers_of_the_library_and_the_ledger_explains_them(page):
    visit(page, f"/{VIEW}")
    prediction = decide()
    expect_votes(page, prediction)
    expect_neighbors(page, prediction)
    expect(page.get_by_test_id("stAlert")).to_have_count(0)
    facts = prediction.to_dict()
    third = facts["neighbors"][2]
    handle_of(page.locator(".card").nth(2)).click()
    title = page.locator(".why h2")
    expect(title).to_have_text(about(lambda share: f"Why neighbor 3 has {percent(share)}", third["share"]))
    for h, head in enumerate(facts["heads"]):
        page.locator(".tab", has_text=head).click()
        expect(title).to_contain_text(re.compile(f"^Why neighbor 3 has .* from {head}$"))
        expected = [part[0, h, 2] - part[0, h].mean() for part in prediction.terms.values()]
        numbers = page.locator(".ledger tbody .number").all_inner_texts()
        shown = [0.0 if text == "–" else float(text.replace("−", "-")) for text in numbers]
        np.testing.assert_allclose(shown, [*expected, sum(expected)], atol=0.0051)


def test_a_view_survives_a_reload_and_travels_in_a_link(page, browser, base_url):
    visit(page, f"/{VIEW}")
    ids, said = ids_of(decide()), said_by(VIEW)
    handle_of(page.locator(".card").nth(4)).click()
    expect(page).to_have_url(re.compile(quote(ids[4], safe="")))
    page.mouse.move(0, 0)
    page.locator('.cards [tabindex="0"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect_link(page, **said, neighbor=ids[6])
    expect(page.locator('.card[aria-selected="true"] .rank')).to_have_text("7")
    before = words(page)
    page.reload()
    settle(page)
    expect(page.locator('.card[aria-selected="true"] .rank')).to_have_text("7")
    assert words(page) == before
    stranger = browser.new_context(base_url=base_url, viewport=page.viewport_size)
    other = stranger.new_page()
    problems = watch(other)
    visit(other, page.url)
    expect(other.locator('.card[aria-selected="true"] .rank')).to_have_text("7")
    assert words(other) == before
    assert not problems
    stranger.close()


def test_a_choice_given_back_leaves_the_nearest_and_the_address_agrees(page):
    ids = ids_of(decide())
    said, chosen = said_by(VIEW), page.locator('.card[aria-selected="true"] .rank')
    visit(page, f"/{VIEW}&neighbor={quote(ids[4], safe='')}")
    slider(page, "noise").press("ArrowRight")
    expect(page.locator(".provenance")).not_to_contain_text(f"label noise {percent(0.4)}")
    expect(chosen).to_have_text("5")
    slider(page, "noise").press("ArrowLeft")
    expect(page.locator(".provenance")).to_contain_text(f"label noise {percent(0.4)}")
    expect_link(page, **said, neighbor=ids[4])
    handle_of(page.locator(".card").nth(4)).click()
    expect(chosen).to_have_text("1")
    expect(page.locator(".why h2")).to_contain_text("neighbor 1 has")
    expect(page).not_to_have_url(re.compile("neighbor="))
    expect_link(page, **said)
    handle_of(page.locator(".card").nth(2)).click()
    expect_link(page, **said, neighbor=ids[2])
    page.keyboard.press("Escape")
    expect(chosen).to_have_text("1")
    expect(page).not_to_have_url(re.compile("neighbor="))
    page.reload()
    settle(page)
    expect(chosen).to_have_text("1")


def test_another_checkpoint_shows_features_and_blames_no_link(page):
    visit(page, f"/{VIEW}&neighbor=digits%2Ftrain%2F1")
    expect(page.get_by_test_id("stAlert")).to_contain_text("neighbor must be the id of an entry that is shown")
    choose(page, "checkpoint", "iris")
    expect(page.locator(".query .id")).to_have_text("iris/test/0")
    expect(page.get_by_test_id("stAlert")).to_have_count(0)
    iris = load("iris")
    expect_votes(page, iris.predict_items(["iris/test/0"], **SETTING))
    values = np.asarray(iris.bundle.input_of("iris/test/0"), float)
    expect(page.locator(".facts dt")).to_have_text(iris.card["dataset"]["feature_names"])
    expect(page.locator(".facts dd")).to_have_text([f"{value:.4g}" for value in values])
    expect(page.locator(".card").first.locator("dd")).to_have_count(4)
    expect(page.locator(".tile:visible")).to_have_count(0)
    expect(page).to_have_url(re.compile("checkpoint=iris"))
    assert "query" not in said_by(page.url)


def test_pictures_come_in_one_atlas_and_none_is_fetched(page):
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url) if request.resource_type == "image" else None)
    visit(page, "/?k=40")
    tiles = page.locator(".tile:visible")
    expect(page.locator(".card .tile:visible")).to_have_count(40)
    pictures = tiles.evaluate_all("tiles => [...new Set(tiles.map((tile) => getComputedStyle(tile).backgroundImage))]")
    assert len(pictures) == 1
    assert pictures[0].startswith('url("data:image/png;base64,')
    assert page.locator(".board img").count() == 0
    assert not fetched


def test_what_waits_for_its_script_is_dimmed_later_and_without_a_layer(page):
    visit(page)
    waiting = page.locator(".st-key-board")
    fades = """part => {
      part.dataset.stale = "true"
      const { opacity, transitionProperty } = getComputedStyle(part)
      return [opacity, transitionProperty]
    }"""
    assert waiting.evaluate(fades) == ["1", "--shown"]
    expect(waiting).to_have_css("opacity", "0.33")


def test_a_link_that_does_not_fit_is_answered_in_words(page):
    visit(page, "/?k=banana&noise=0.2")
    alert = page.get_by_test_id("stAlert")
    expect(alert).to_contain_text("k must be a whole number between 1 and 64; the link says k=banana. Showing k = 16.")
    expect_votes(page, load("digits").predict_items(["digits/test/0"], 16, LabelNoise("symmetric", 0.2)))
    slider(page, "k").press("ArrowRight")
    expect(page.locator(".card")).to_have_count(17)
    expect(alert).to_have_count(0)
    expect_link(page, k="17", noise="0.2")


def test_a_link_cannot_put_anything_on_the_page(page):
    evil = "![x](http://example.com/x.png) <img src=http://example.com/y.png> www.example.com a@example.com"
    said = {"checkpoint": evil[:39], "k": evil[:30], "kind": evil[30:69], "seed": evil[66:]}
    visit(page, f"/?{urlencode(said)}")
    alerts = page.get_by_test_id("stAlert")
    expect(alerts).to_have_count(4)
    expect(alerts.nth(1)).to_contain_text("![x](http://")
    assert alerts.locator("a, img").count() == 0


@pytest.mark.parametrize(("name", "scheme"), [("digits", "light"), ("breast_cancer", "dark")])
def test_no_width_and_no_theme_scrolls_sideways(page, name, scheme):
    page.emulate_media(color_scheme=scheme)
    visit(page, f"/?checkpoint={name}&k=64&noise=0.3")
    expect(page.locator(".board")).to_have_attribute("data-theme", scheme)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        for part in ("html", "[data-testid=stMain]", "[data-testid=stMainBlockContainer]", ".board"):
            assert page.locator(part).first.evaluate(STICKS_OUT) <= 0, (part, width)


def test_a_fresh_server_answers_the_address_of_a_page(browser):
    """Streamlit runs the page alone at first, and says 404 where it looks for its own address."""
    with serve() as url:
        tab = browser.new_page()
        problems = watch(tab)
        visit(tab, f"{url}/neighbors?checkpoint=iris&k=5")
        expect(tab.locator(".card")).to_have_count(5)
        expect(tab).to_have_title("Attn-KNN Explorer")
        expect(tab.locator("h1")).to_have_text("Attn-KNN Explorer")
        tab.close()
        assert [problem for problem in problems if not problem.startswith("console: ")] == []
