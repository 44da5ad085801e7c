"""The board itself, drawn by a real browser without Streamlit around it."""

import shutil
import statistics
from pathlib import Path

import numpy as np
import pytest

from attnknn.ui import board
from tests.ui.boards import TERMS, make_board

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")]

FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync"
THEME = {
    "light": "--st-secondary-background-color:#fff;--st-text-color:#1d2230",
    "dark": "--st-secondary-background-color:#171b24;--st-text-color:#e8eaf0",
}
LOWEST_CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8").split("\n;", 1)[1]
OPEN = """async ([html, css, js, theme]) => {
  document.body.style.cssText = "margin:0;padding:8px;" + theme
  const host = document.body.appendChild(document.createElement("div"))
  const parentElement = host.attachShadow({ mode: "open" })
  parentElement.appendChild(document.createRange().createContextualFragment(html + `<style>${css}</style>`))
  const module = await import(URL.createObjectURL(new Blob([js], { type: "text/javascript" })))
  window.sent = []
  const pack = (data) => new TextEncoder().encode(JSON.stringify(data))
  const setStateValue = (...said) => window.sent.push(said)
  window.draw = (data) => module.default({ data: pack(data), parentElement, setStateValue })
}"""


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


@pytest.mark.parametrize("width", [390, 800, 1280, 2400])
@pytest.mark.parametrize(
    "world",
    [
        {"k": 1, "n_classes": 2, "n_heads": 1},
        {"k": 16},
        {"k": 64, "n_classes": 25, "n_heads": 16},
        {"k": 9, "n_classes": 3, "kind": "table"},
    ],
)
def test_everything_is_drawn_and_nothing_sticks_out(drawn, world, width):
    data = make_board(**world)
    page = drawn(data, width)
    assert page.locator(".card").count() == len(data["neighbors"])
    assert page.locator(".heat .cell").count() == len(data["neighbors"]) * len(data["heads"])
    assert page.locator(".race").count() == 3
    assert page.locator(".other").count() == len(data["votes"]) - 3
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".ledger tbody tr").count() == len(TERMS) + 1


def test_a_name_is_text_and_never_markup(drawn):
    evil = "<img src=x onerror=window.hit=1>"
    data = make_board(classes=[evil, "b", "c"], k=6)
    data["heads"][0]["name"] = data["votes"][0]["title"] = data["provenance"] = evil
    page = drawn(data)
    page.wait_for_timeout(50)
    assert page.evaluate("window.hit") is None
    assert page.locator(".board img").count() == 0
    assert page.locator(".truth .chip").inner_text() == evil


def test_pointing_at_a_neighbor_shows_it_everywhere(drawn):
    page = drawn(make_board())
    page.locator(".card").nth(4).hover()
    assert page.locator(".card.hot .rank").all_inner_texts() == ["5"]
    assert page.locator(".segment.hot").count() == 3
    assert page.locator(".heat .rank.hot").all_inner_texts() == ["5"]
    assert "neighbor 5 has" in page.locator(".why h2").text_content()
    assert page.evaluate("sent") == []


def test_a_click_chooses_and_a_second_gives_back(drawn):
    page = drawn(make_board())
    for _ in range(4):
        drawn(make_board())
    page.locator(".card").nth(2).click()
    page.locator(".card").nth(7).hover()
    page.mouse.move(2, 2)
    assert page.locator('[aria-selected="true"] .rank').all_inner_texts() == ["3"]
    assert page.locator(".card.hot .rank").all_inner_texts() == ["3"]
    page.locator(".card").nth(2).click()
    assert page.evaluate("sent") == [["neighbor", "train/2"], ["neighbor", None]]
    assert_nearest_is_shown(page)
    drawn({**make_board(), "selected": "train/2"})  # an answer to the first click, late
    assert_nearest_is_shown(page)
    drawn({**make_board(), "selected": "train/0"})
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
    assert page.evaluate("sent") == [["neighbor", f"train/{1 + across}"]]
    assert page.locator('.cards [tabindex="0"]').count() == 1
    page.keyboard.press("Home")
    assert page.locator(".card.hot .rank").inner_text() == "1"
    page.keyboard.press("End")
    assert page.locator(".card.hot .rank").inner_text() == "16"
    page.keyboard.press("Escape")
    assert page.evaluate("sent")[-1] == ["neighbor", None]
    assert_nearest_is_shown(page)


def test_a_late_answer_does_not_undo_a_newer_choice(drawn):
    page = drawn(make_board())
    page.locator(".card").nth(2).click()
    page.locator(".card").nth(5).click()
    drawn({**make_board(), "selected": "train/2"})
    assert page.locator('[aria-selected="true"] .rank').inner_text() == "6"
    drawn({**make_board(), "selected": "train/5"})
    drawn({**make_board(), "selected": "train/1"})
    assert page.locator('[aria-selected="true"] .rank').inner_text() == "2"


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_the_ledger_adds_up_to_the_weight(drawn, temperature):
    data = make_board(k=7)
    for neighbor in data["neighbors"]:
        neighbor["terms"] = {term: (temperature * np.array(row)).tolist() for term, row in neighbor["terms"].items()}
    page = drawn({**data, "temperature": temperature})
    page.locator(".card").nth(3).hover()
    page.locator(".tab", has_text="head 1").click()
    terms = np.array([[neighbor["terms"][term][1] for term in TERMS] for neighbor in data["neighbors"]])
    expected = terms[3] - terms.mean(axis=0)
    shown = [float(text.replace("−", "-")) for text in page.locator(".ledger .number").all_inner_texts()]
    np.testing.assert_allclose(shown, [*expected, expected.sum()], atol=0.0051)
    weight = data["neighbors"][3]["weights"][1]
    assert "exp(" in page.locator(".formula").text_content()
    assert f"{100 * weight:.1f}" in page.locator(".formula b").last.text_content()


def test_the_bars_of_a_vote_fill_its_width(drawn):
    page = drawn(make_board(k=20, n_classes=4))
    for bar in page.locator(".bar").all():
        widths = bar.evaluate("(bar) => [...bar.children].map((part) => parseFloat(part.style.width))")
        assert sum(widths) == pytest.approx(100, abs=1e-3)


def test_every_part_says_itself_without_being_seen(drawn):
    page = drawn(make_board())
    for part in (".card", ".track", ".plot", ".portrait", ".mini"):
        assert all(element.get_attribute("aria-label") for element in page.locator(part).all()), part
    assert page.get_by_role("option").count() == 16
    assert page.get_by_role("columnheader", name="none").count() == 1
    assert page.get_by_role("radio").count() == 4
    assert page.locator(".mark .word").first.text_content() in ("right", "wrong")


@pytest.mark.parametrize("theme", THEME)
def test_words_can_be_read_in_both_themes(drawn, theme):
    page = drawn(make_board(k=24, n_classes=10), theme=theme)
    assert page.locator(".board").get_attribute("data-theme") == theme
    lowest = page.evaluate(
        LOWEST_CONTRAST,
        [".chip", ".group", ".heat .cell", ".count", ".leaves", ".marks .name", ".answer .name", ".mark"],
    )
    assert lowest >= 4.5


def test_a_redraw_is_quick(drawn):
    one, other = make_board(k=64, seed=1), make_board(k=64, seed=2)
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
