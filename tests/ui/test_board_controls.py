"""What is set on the board acts at once, and is told once it is let go."""

import shutil

import numpy as np
import pytest

from attnknn import LabelNoise
from attnknn.ui.state import Setting
from tests.ui.boards import make_board, make_world
from tests.ui.drawing import KNOBS, NOISE, TOLD_AFTER, assert_drawn, assert_told, percent_of, told

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")]


@pytest.mark.parametrize("name", KNOBS)
def test_a_slider_acts_while_it_is_dragged_and_tells_once_it_is_let_go(drawn, name):
    page = drawn(make_board())
    slider = page.locator(f'[name="{name}"]')
    box, seen = slider.bounding_box(), []
    for part in (0.3, 0.5, 0.7):
        page.mouse.move(box["x"] + part * box["width"], box["y"] + box["height"] / 2)
        if not seen:
            page.mouse.down()
        page.wait_for_timeout(TOLD_AFTER)
        seen.append(slider.locator("..").locator(".value").inner_text())
        assert_drawn(page, Setting(**{"k": 16} | KNOBS[name](int(slider.input_value()))))
    assert len(set(seen)) == 3
    assert slider.get_attribute("aria-valuetext") == seen[-1]
    page.wait_for_timeout(TOLD_AFTER)
    assert page.evaluate("sent") == []
    page.mouse.up()
    assert_told(page, 1, Setting(**{"k": 16} | KNOBS[name](int(slider.input_value()))))


def test_an_arrow_key_that_is_held_down_tells_once(drawn, page):
    page.clock.install(time=0)
    drawn(make_board())
    page.clock.pause_at(60_000)
    page.locator('[name="k"]').focus()
    for _ in range(6):
        page.keyboard.down("ArrowRight")
        page.clock.run_for(40)
    assert page.locator(".card").count() == 22
    assert page.evaluate("sent") == []
    page.keyboard.up("ArrowRight")
    page.clock.run_for(TOLD_AFTER)
    assert page.evaluate("sent.length") == 1
    assert told(page, 1) == (Setting(22), None)


def test_an_answer_that_arrives_while_a_slider_is_held_does_not_move_it(drawn):
    page = drawn(make_board())
    slider = page.locator('[name="k"]')
    box = slider.bounding_box()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + box["height"] / 2)
    page.mouse.down()
    held = int(slider.input_value())
    drawn(make_board(k=3))
    assert (int(slider.input_value()), page.locator(".card").count()) == (held, held)
    page.mouse.up()
    assert_told(page, 1, Setting(held))
    drawn(make_board(k=3, heard=1))
    assert (slider.input_value(), page.locator(".card").count()) == ("3", 3)


@pytest.mark.parametrize("kind", ["pair", "matrix"])
def test_another_kind_of_noise_is_drawn_at_once(drawn, kind):
    page = drawn(make_board(noise=LabelNoise("symmetric", 0.6)))
    page.locator('[name="kind"]').select_option(kind)
    setting = Setting(16, noise=LabelNoise(kind, 0.6))
    assert_drawn(page, setting)
    assert_told(page, 1, setting)
    assert page.locator(".provenance").inner_text().count(f"{kind} label noise 60\u00a0%, seed 0") == 1


def test_another_seed_is_drawn_once_the_server_has_answered(drawn):
    page = drawn(make_board(noise=NOISE))
    page.locator('[name="seed"]').fill("7")
    assert_drawn(page, Setting(16, noise=NOISE))
    other = LabelNoise("symmetric", 0.3, seed=7)
    page.keyboard.press("Enter")
    assert_told(page, 1, Setting(16, noise=other))
    drawn(make_board(noise=other, heard=1))
    assert_drawn(page, Setting(16, noise=other))


def test_class_averages_come_to_the_table(drawn):
    page = drawn(make_board(noise=NOISE))
    assert not page.locator(".averages").is_visible()
    page.locator('[name="averages"]').check()
    setting = Setting(16, noise=NOISE, averages=True)
    assert_drawn(page, setting)
    assert page.locator(".race .name").last.inner_text() == "attention + averages"
    shares = make_world().decide(setting).ballot.votes["attention_averages"].averages[0]
    shown = [percent_of(text) for text in page.locator(".mean .share").all_inner_texts()]
    np.testing.assert_allclose(shown, 100 * shares, rtol=0, atol=0.51)
    assert_told(page, 1, setting)
    page.locator('[name="averages"]').uncheck()
    assert_drawn(page, Setting(16, noise=NOISE))
    assert not page.locator(".averages").is_visible()
