"""The board itself, drawn by a real browser without Streamlit around it."""

import re
import shutil
import statistics

import numpy as np
import pytest

from attnknn.models.terms import TERMS
from attnknn.ui.state import Setting
from tests.ui.boards import make_board, make_world
from tests.ui.drawing import LOWEST_CONTRAST, NOISE, SETTLED, THEME, TOLD_AFTER, assert_told, card, told

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")]


@pytest.mark.parametrize(
    "world",
    [
        {"k": 1, "n_classes": 2, "n_heads": 1},
        {"k": 16},
        {"k": 64, "n_classes": 25, "n_heads": 16, "averages": True},
        {"k": 9, "n_classes": 3, "kind": "table", "averages": True},
        {"k": 40, "n_classes": 100, "averages": True, "noise": NOISE},
    ],
)
def test_everything_is_drawn_and_nothing_sticks_out(drawn, world):
    data = make_board(**world)
    for width in (390, 800, 1280, 2400):
        page = drawn(data, width)
        page.evaluate(SETTLED)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".card").count() == world["k"]
        assert page.locator(".heat .cell").count() == world["k"] * len(data["heads"])
        assert page.locator(".race").count() == 3
        assert page.locator(".other").count() == len(data["votes"]) - 3
        assert page.locator(".ledger tbody tr").count() == len(TERMS) + 1
        assert page.locator(".mean:visible").count() == (min(len(data["classes"]), 12) if "averages" in world else 0)


def test_a_name_is_text_and_never_markup(drawn):
    evil = "<img src=x onerror=window.hit=1>"
    data = make_board(classes=[evil, "b", "c"], k=6)
    data["heads"][0]["name"] = data["votes"][0]["title"] = data["source"]["search"] = evil
    page = drawn(data)
    page.locator('[name="averages"]').check()
    page.wait_for_timeout(50)
    assert page.evaluate("window.hit") is None
    assert page.locator(".board img").count() == 0
    assert page.locator(".truth .chip").inner_text() == evil
    assert page.locator(".why option").first.text_content() == evil


def test_pointing_at_a_neighbor_shows_it_everywhere(drawn):
    page = drawn(make_board())
    card(page, 4).hover()
    assert page.locator(".card.hot .rank").all_inner_texts() == ["5"]
    assert page.locator(".spot:visible").count() == 3
    assert page.locator(".heat .rank.hot").all_inner_texts() == ["5"]
    assert "neighbor 5 has" in page.locator(".why h2").text_content()
    page.wait_for_timeout(TOLD_AFTER)
    assert page.evaluate("sent") == []


WHO_IS_THERE = [(".picture", "head 0 gives neighbor {} ("), (".bar", "neighbor {}, label ")]


@pytest.mark.parametrize(("part", "words"), WHO_IS_THERE)
def test_pictures_of_many_neighbors_say_whom_the_pointer_is_on(drawn, part, words):
    page = drawn(make_board())
    picture = page.locator(part).first
    box, seen = picture.bounding_box(), []
    for across in (0.1, 0.5, 0.8):
        picture.hover(position={"x": across * box["width"], "y": 30})
        rank = page.locator(".card.hot .rank").inner_text()
        assert picture.get_attribute("title").startswith(words.format(rank))
        seen.append(rank)
    assert len(set(seen)) == 3
    picture.click(position={"x": 0.8 * box["width"], "y": 30})
    assert told(page, 1) == (Setting(16, neighbor=f"train/{int(seen[-1]) - 1}"), None)


# Choosing a neighbor


def test_a_click_chooses_and_a_second_gives_back(drawn):
    for _ in range(5):
        page = drawn(make_board())
    card(page, 2).click()
    assert told(page, 1) == (Setting(16, neighbor="train/2"), None)
    card(page, 7).hover()
    page.mouse.move(2, 2)
    assert page.locator('[aria-selected="true"] .rank').all_inner_texts() == ["3"]
    assert page.locator(".card.hot .rank").all_inner_texts() == ["3"]
    card(page, 2).click()
    assert_told(page, 2, Setting(16))
    assert_nearest_is_shown(page)
    drawn(make_board(neighbor="train/2", heard=1))  # an answer to the first click, late
    assert_nearest_is_shown(page)
    drawn(make_board(heard=2))
    assert_nearest_is_shown(page)


def assert_nearest_is_shown(page):
    assert page.locator('[aria-selected="true"] .rank').all_inner_texts() == ["1"]
    assert page.locator('.cards [tabindex="0"] .rank').all_inner_texts() == ["1"]
    assert page.locator(".card.hot .rank").all_inner_texts() == ["1"]
    assert "neighbor 1 has" in page.locator(".why h2").text_content()


def test_the_keyboard_does_what_the_pointer_does(drawn):
    page = drawn(make_board())
    tops = page.locator(".card").evaluate_all("(cards) => cards.map((card) => card.getBoundingClientRect().top)")
    across = tops.count(tops[0])
    page.locator('.cards [tabindex="0"]').focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert told(page, 1) == (Setting(16, neighbor=f"train/{1 + across}"), None)
    assert page.locator('.cards [tabindex="0"]').count() == 1
    page.keyboard.press("Home")
    assert page.locator(".card.hot .rank").inner_text() == "1"
    page.keyboard.press("End")
    assert page.locator(".card.hot .rank").inner_text() == "16"
    page.keyboard.press("Escape")
    assert_told(page, 2, Setting(16))
    assert_nearest_is_shown(page)


def test_a_late_answer_does_not_undo_a_newer_choice(drawn):
    page = drawn(make_board())
    for n, j in enumerate((2, 5), start=1):
        card(page, j).click()
        told(page, n)
    drawn(make_board(neighbor="train/2", heard=1))
    assert page.locator('[aria-selected="true"] .rank').inner_text() == "6"
    drawn(make_board(neighbor="train/5", heard=2))
    drawn(make_board(neighbor="train/1", heard=2))  # the browser's Back
    assert page.locator('[aria-selected="true"] .rank').inner_text() == "2"


def test_what_was_not_told_yet_is_not_undone_either(drawn):
    page = drawn(make_board())
    page.evaluate(
        """(answer) => {
          const k = document.querySelector("div").shadowRoot.querySelector('[name="k"]')
          k.value = 7
          for (const kind of ["input", "change"]) k.dispatchEvent(new Event(kind, { bubbles: true }))
          draw(answer)
        }""",
        make_board(k=3),
    )
    assert page.locator(".card").count() == 7
    assert_told(page, 1, Setting(7))


# What is drawn


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_the_ledger_adds_up_to_the_weight(drawn, temperature):
    prediction = make_world().decide(Setting(7, temperature))
    page = drawn(make_board(k=7, temperature=temperature))
    card(page, 3).hover()
    page.locator(".tab", has_text="head 1").click()
    terms = np.array([prediction.terms[term][0, 1] for term in TERMS])
    expected = terms[:, 3] - terms.mean(axis=1)
    texts = page.locator(".ledger .number").all_inner_texts()
    shown = [0.0 if text == "–" else float(text.replace("−", "-")) for text in texts]
    np.testing.assert_allclose(shown, [*expected, expected.sum()], rtol=0, atol=0.0052)
    formula = page.locator(".formula")
    assert "exp(" in formula.text_content()
    weight = float(re.match(r"[\d.]+", formula.locator("b").last.text_content())[0])
    assert weight == pytest.approx(100 * prediction.weights[0, 1, 3], abs=0.06)


def test_the_bars_of_a_vote_fill_its_width(drawn):
    page = drawn(make_board(k=20, n_classes=4, averages=True))
    for groups in page.locator(".groups").all():
        widths = groups.evaluate("(groups) => [...groups.children].map((part) => parseFloat(part.style.width))")
        assert sum(widths) == pytest.approx(100, abs=1e-3)


PANEL_AND_ATTENTION = {"light": [[255, 255, 255], [223, 22, 90]], "dark": [[23, 27, 36], [245, 88, 142]]}
READ_CELLS = """([heads, k]) => {
  const canvas = document.querySelector("div").shadowRoot.querySelector(".picture canvas")
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d")
  copy.drawImage(canvas, 0, 0)
  const step = canvas.width / (k + 1)
  const read = (h, j) => [...copy.getImageData(j * step + 6, 17 + 2 + h * 24 + 4, 1, 1).data].slice(0, 3)
  return Array.from({ length: heads }, (_, h) => Array.from({ length: k }, (_, j) => read(h, j)))
}"""


@pytest.mark.parametrize("theme", THEME)
def test_cells_of_the_heat_map_are_as_strong_as_their_weights(drawn, theme):
    page = drawn(make_board(), theme=theme)
    weights = make_world().decide(Setting(16)).weights[0]
    panel, full = np.array(PANEL_AND_ATTENTION[theme])
    strength = weights / weights.max()
    part = np.where(strength < 1 / 64, 0.04, 0.1 + 0.9 * strength)
    expected = panel + part[..., None] * (full - panel)
    shown = np.array(page.evaluate(READ_CELLS, [*weights.shape]))
    np.testing.assert_allclose(shown, expected, rtol=0, atol=255 * 0.9 / 32 / 2 + 1.5)


def test_every_part_says_itself_without_being_seen(drawn):
    page = drawn(make_board(averages=True))
    for part in (".card", ".track", ".plot", ".portrait", ".mini", ".mean"):
        assert all(element.get_attribute("aria-label") for element in page.locator(part).all()), part
    assert page.locator(".cards").get_by_role("option").count() == 16
    assert page.get_by_role("columnheader", name="none").count() == 1
    assert page.get_by_role("radio").count() == 4
    assert page.get_by_role("button", name="head", pressed=False).count() == 3
    assert page.locator(".mark .word").first.text_content() in ("right", "wrong")


@pytest.mark.parametrize("name", ["neighbors k", "temperature", "label noise"])
def test_every_slider_has_its_name(drawn, name):
    assert drawn(make_board()).get_by_role("slider", name=name).count() == 1


@pytest.mark.parametrize("theme", THEME)
def test_words_can_be_read_in_both_themes(drawn, theme):
    data = make_board(k=24, flips={"train/1": 4}, averages=True, noise=NOISE, query="train/9")
    page = drawn(data, theme=theme)
    assert page.locator(".board").get_attribute("data-theme") == theme
    words = [".chip", ".group", ".count", ".leaves", ".marks .name", ".answer .name", ".mark", ".mute"]
    words += [".knob span", ".choice span", ".check span", ".by-hand", ".actions", "button", "select", ".provenance"]
    assert page.evaluate(LOWEST_CONTRAST, words) >= 4.5


def test_a_redraw_is_quick(drawn):
    one, other = make_board(k=64, noise=NOISE), make_board(k=64, query="train/9")
    other["atlas"] = one["atlas"]
    page = drawn(one)
    times = page.evaluate(
        """async ([one, other]) => {
          const root = document.querySelector("div").shadowRoot, times = []
          for (let i = 0; i < 24; i++) {
            await new Promise(requestAnimationFrame)
            const start = performance.now()
            draw(i % 2 ? one : other)
            root.querySelector(".board").getBoundingClientRect()
            times.push(performance.now() - start)
          }
          return times.slice(4)
        }""",
        [one, other],
    )
    print(f"redraw at k = 64: median {statistics.median(times):.1f} ms, worst {max(times):.1f} ms")
    assert statistics.median(times) < 400  # far above what it takes: only another order of magnitude fails
