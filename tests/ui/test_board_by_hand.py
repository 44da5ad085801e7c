"""Labels flipped, neighbors left out, heads muted, neighbors asked about: in the browser."""

import re
import shutil

import numpy as np
import pytest
from playwright.sync_api import expect

from attnknn.ui.state import Setting
from tests.ui.boards import make_board, make_world
from tests.ui.drawing import NOISE, TOLD_AFTER, assert_drawn, assert_told, card, ids_of, label_of, told

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")]


# Changing things by hand


def expected_flip(setting, j):
    """To the class that attention answers, or for a neighbor that has it, to the runner-up."""
    ballot = make_world().decide(setting).ballot
    p, label = ballot.votes["attention"].probabilities[0], ballot.around.labels[0, j]
    winner, second = np.argsort(-p, kind="stable")[:2]
    return int(second if label == winner else winner)


@pytest.mark.parametrize("j", [0, 3, 9])
def test_a_click_on_a_label_flips_it_and_a_second_flips_it_back(drawn, j):
    page, setting = drawn(make_board(noise=NOISE)), Setting(16, noise=NOISE)
    flipped = Setting(16, noise=NOISE, flips={f"train/{j}": expected_flip(setting, j)})
    label_of(page, j).click()
    assert_drawn(page, flipped)
    assert page.locator(".card .hand").count() == 1
    assert page.locator(".by-hand span").inner_text() == "1\u00a0label flipped by hand"
    assert "1\u00a0label changed by hand" in page.locator(".provenance").inner_text()
    assert_told(page, 1, flipped)
    drawn(make_board(noise=NOISE, flips=flipped.flips, heard=1))
    assert_drawn(page, flipped)
    label_of(page, j).click()
    assert_drawn(page, setting)
    assert not page.locator(".by-hand").is_visible()
    assert_told(page, 2, setting)


def test_a_label_can_become_that_of_any_class(drawn):
    page = drawn(make_board())
    card(page, 5).hover()
    for n, label in enumerate((8, 2, 0), start=1):
        page.locator(".why select").select_option(str(label))
        flipped = Setting(16, flips={"train/5": label})
        assert_drawn(page, flipped)
        assert told(page, n) == (flipped, None)


def test_a_neighbor_that_is_left_out_makes_room_for_the_next(drawn):
    page = drawn(make_board(k=4))
    page.locator('.cards [tabindex="0"]').focus()
    for key, dropped in (("x", ("train/0",)), ("ArrowRight", ("train/0",)), ("Delete", ("train/0", "train/2"))):
        page.keyboard.press(key)
        assert_drawn(page, Setting(4, dropped=dropped))
    card(page, 3).hover()
    page.locator(".why .out").click()
    setting = Setting(4, dropped=("train/0", "train/2", "train/5"))
    assert_drawn(page, setting)
    expect(page.locator(".card").last).to_have_attribute("aria-label", re.compile("train/6"))
    assert ids_of(page) == ["train/1", "train/3", "train/4", "train/6"]
    assert page.locator(".by-hand span").inner_text() == "3\u00a0neighbors left out"
    page.wait_for_timeout(TOLD_AFTER)
    assert told(page, page.evaluate("sent.length")) == (setting, None)


def test_the_last_neighbor_is_not_left_out(drawn):
    page = drawn(make_board(k=1))
    assert page.locator(".why .out").is_disabled()
    page.locator('.cards [tabindex="0"]').focus()
    page.keyboard.press("x")
    assert_drawn(page, Setting(1))


def test_a_head_that_is_muted_has_no_voice_and_the_last_keeps_it(drawn):
    page = drawn(make_board(noise=NOISE))
    muted = ()
    for h in (1, 0):
        muted = (*muted, f"head {h}")
        page.locator(".mute").nth(h).click()
        assert_drawn(page, Setting(16, noise=NOISE, muted=muted))
        assert page.locator(".mute").nth(h).get_attribute("aria-pressed") == "true"
    page.locator(".mute").nth(2).click()
    assert_drawn(page, Setting(16, noise=NOISE, muted=muted))
    page.wait_for_timeout(TOLD_AFTER)
    n = page.evaluate("sent.length")
    assert told(page, n) == (Setting(16, noise=NOISE, muted=muted), None)
    page.locator(".mute").nth(1).click()
    assert_drawn(page, Setting(16, noise=NOISE, muted=("head 0",)))
    assert_told(page, n + 1, Setting(16, noise=NOISE, muted=("head 0",)))


def test_everything_by_hand_is_undone_at_once(drawn):
    by_hand = {"flips": {"train/1": 4, "train/100": 0}, "dropped": ("train/2",), "muted": ("head 2",)}
    page = drawn(make_board(noise=NOISE, **by_hand))
    assert_drawn(page, Setting(16, noise=NOISE, **by_hand))
    line = "2\u00a0labels flipped by hand · 1\u00a0neighbor left out · head 2 muted"
    assert page.locator(".by-hand span").inner_text() == line
    page.get_by_role("button", name="undo all").click()
    assert_told(page, 1, Setting(16, noise=NOISE))
    drawn(make_board(noise=NOISE, heard=1))
    assert_drawn(page, Setting(16, noise=NOISE))
    assert not page.locator(".by-hand").is_visible()


def test_keys_flip_the_label_of_a_card(drawn):
    page = drawn(make_board())
    page.locator('.cards [tabindex="0"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Control+f")
    assert_drawn(page, Setting(16))
    page.keyboard.press("f")
    flipped = Setting(16, flips={"train/1": expected_flip(Setting(16), 1)})
    assert_drawn(page, flipped)
    assert_told(page, 1, flipped)


# Asking about a neighbor


def press_q(page):
    page.locator('.cards [tabindex="0"]').focus()
    page.keyboard.press("End")
    page.keyboard.press("q")


def press_button(page):
    card(page, 15).hover()
    page.locator(".why .ask").click()


@pytest.mark.parametrize(
    "way", [lambda page: card(page, 15).dblclick(), press_q, press_button], ids=["double", "q", "button"]
)
def test_one_can_ask_about_a_neighbor_and_go_back(drawn, way):
    page = drawn(make_board())
    assert not page.locator(".trail").is_visible()
    way(page)
    page.wait_for_timeout(TOLD_AFTER)
    n = page.evaluate("sent.length")
    assert told(page, n) == (Setting(16), "train/15")
    drawn(make_board(query="train/15", heard=n))
    assert page.locator(".query .id").inner_text() == "train/15"
    assert page.locator(".steps button").all_inner_texts() == ["test/0"]
    page.locator(".steps button").click()
    assert_told(page, n + 1, Setting(16), "test/0")
    drawn(make_board(heard=n + 1))
    assert page.locator(".query .id").inner_text() == "test/0"
    assert not page.locator(".trail").is_visible()


def test_one_may_go_back_several_steps_at_once(drawn):
    page, been = drawn(make_board()), ["test/0"]
    for n in range(3):
        drawn(make_board(query=been[-1], heard=n))
        place, there = next((j, one) for j, one in enumerate(ids_of(page)) if one not in been)
        card(page, place).hover()
        page.locator(".why .ask").click()
        assert told(page, n + 1) == (Setting(16), there)
        been.append(there)
    drawn(make_board(query=been[3], heard=3))
    steps = page.locator(".steps button")
    assert steps.all_inner_texts() == been[:3]
    steps.nth(1).click()
    assert_told(page, 4, Setting(16), been[1])
    drawn(make_board(query=been[1], heard=4))
    assert steps.all_inner_texts() == ["test/0"]
    drawn(make_board(query=been[3], heard=4))  # asked for elsewhere: where one has come from is over
    assert steps.count() == 0


def test_keys_may_be_capitals_and_one_question_is_asked_once(drawn):
    page = drawn(make_board(k=6))
    page.locator('.cards [tabindex="0"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+F")
    page.wait_for_timeout(TOLD_AFTER)
    assert page.locator(".card .label.hand").count() == 1
    asked = ids_of(page)[1]
    for _ in range(3):
        page.keyboard.press("Shift+Q")
    page.wait_for_timeout(TOLD_AFTER)
    assert told(page, len(page.evaluate("sent")))[1] == asked
    drawn(make_board(k=6, query=asked, heard=page.evaluate("sent.length")))
    assert page.locator(".trail .step").count() == 1


def test_a_label_that_is_chosen_back_is_not_a_flip(drawn):
    page = drawn(make_board(k=6, noise=NOISE))
    label = page.get_by_label("Label of this neighbor")
    own = label.input_value()
    label.select_option(str((int(own) + 1) % 10))
    page.wait_for_timeout(TOLD_AFTER)
    assert page.locator(".by-hand").is_visible()
    label.select_option(own)
    page.wait_for_timeout(TOLD_AFTER)
    assert page.locator(".by-hand").is_hidden()


CHOOSE = """(box, id) => {
  box.value = id
  box.dispatchEvent(new InputEvent("input", { inputType: "insertReplacementText", bubbles: true }))
}"""  # the list belongs to the browser, where no script can click


@pytest.mark.parametrize("how", ["typed", "chosen", "found"])
def test_another_query_is_asked_for_at_once_and_once(drawn, how):
    page = drawn(make_board(k=6))
    page.locator(".why .ask").click()
    assert told(page, 1)[1] == ids_of(page)[0]
    been = ids_of(page)[0]
    drawn(make_board(k=6, query=been, heard=1))
    assert page.locator(".step").all_inner_texts() == ["test/0"]
    box = page.get_by_label("Another query, by its id")
    if how == "typed":
        box.press_sequentially("test/0")
        assert page.evaluate("sent.length") == 1, "whoever types may go on"
        box.press("Enter")
    elif how == "chosen":
        box.evaluate(CHOOSE, "test/0")
    else:
        page.get_by_role("button", name="mistakes").click()
    page.wait_for_timeout(TOLD_AFTER)
    assert page.evaluate("sent.length") == 2
    link = page.evaluate("sent[1][1].link")
    assert (link["query"], link["find"]) == (("", "mistakes") if how == "found" else ("test/0", ""))
    assert box.input_value() == ""
    drawn(make_board(k=6, heard=2))
    assert page.locator(".step").count() == 0, "nobody has come here from a neighbor"
