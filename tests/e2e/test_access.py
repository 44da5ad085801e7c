"""Those who cannot see or point: axe-core finds nothing serious, the keyboard reaches everything, all has a name."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.e2e.boards import settle, visit

pytestmark = pytest.mark.e2e

VIEW = "/?noise=0.4&averages=1&query=digits/test/25&flips=digits/train/3:1"


def serious(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("link", [VIEW, "/?checkpoint=iris&k=5"])
def test_axe_finds_nothing_serious(page, scheme, link):
    page.emulate_media(color_scheme=scheme)
    visit(page, link)
    expect(page.locator(".board")).to_have_attribute("data-theme", scheme)
    assert serious(page) == []


def focused(page: Page) -> str:
    """What has the focus, inside the board: its name or its words."""
    return page.locator(".board").evaluate(
        "board => { const here = board.getRootNode().activeElement; "
        "return here ? (here.name || here.ariaLabel || here.textContent) : '' }"
    )


def test_the_keyboard_alone_reaches_and_does_everything(page):
    visit(page, "/?query=digits/test/25&k=8")
    page.locator(".controls [name=k]").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".card")).to_have_count(9)
    met = [focused(page)]
    for _ in range(60):
        page.keyboard.press("Tab")
        met.append(focused(page))
        if met[-1] == "find it":
            break
    order = ["k", "temperature", "noise", "kind", "seed", "averages", "trusted", "typical", "ask about this one"]
    places = [met.index(name) for name in [*order, "leave it out", "find it"]]
    assert places == sorted(places)
    page.keyboard.press("Enter")
    expect(page.locator(".mind .found")).not_to_be_empty()
    page.locator('.cards [tabindex="0"]').focus()
    page.keyboard.press("ArrowRight")
    second = page.locator(".card").nth(1)
    before = second.locator(".label .chip").inner_text()
    page.keyboard.press("f")
    expect(second.locator(".label .chip")).not_to_have_text(before)
    page.keyboard.press("x")
    expect(page.locator(".by-hand")).to_contain_text("1 neighbor left out")
    page.locator(".mute").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".mute").first).to_have_attribute("aria-pressed", "true")
    page.locator(".by-hand button").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".by-hand")).to_be_hidden()
    page.locator('.cards [tabindex="0"]').focus()
    page.keyboard.press("q")
    expect(page.locator(".trail")).to_be_visible()
    page.locator(".trail button").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".query .id")).to_have_text("digits/test/25")
    settle(page)


def test_a_screen_reader_is_told_all_parts_in_order(page):
    visit(page, VIEW)
    board = page.get_by_role("article", name="One query, its neighbors, heads and votes")
    for role, name in [
        ("group", "How the votes are cast"),
        ("slider", "neighbors k"),
        ("slider", "temperature"),
        ("slider", "label noise"),
        ("combobox", "noise kind"),
        ("spinbutton", "seed"),
        ("checkbox", "class averages at the table"),
        ("list", "What each vote answers"),
        ("listbox", "Neighbors, nearest first"),
        ("table", "Weight of each neighbor under each head"),
        ("button", "trusted"),
        ("button", "ask about this one"),
        ("combobox", "Label of this neighbor"),
        ("button", "find it"),
    ]:
        expect(board.get_by_role(role, name=name).first, f"{role} {name}").to_be_attached()
    said = board.aria_snapshot()
    parts = ("slider", "What each vote answers", "listbox", 'table "Weight', "attention + averages answers")
    places = [said.index(part) for part in parts]
    assert places == sorted(places), said
