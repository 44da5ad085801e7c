"""A board on an empty page: opened, read, and compared with what Python computes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from attnknn import LabelNoise
from attnknn.ui import state
from attnknn.ui.state import TEMPERATURES
from tests.ui.boards import make_world

FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync"
THEME = {
    "light": "--st-background-color:#fbfbfc;--st-secondary-background-color:#fff;--st-text-color:#1d2230",
    "dark": "--st-background-color:#0f1218;--st-secondary-background-color:#171b24;--st-text-color:#e8eaf0",
}
LOWEST_CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8").split("\n;", 1)[1]
OPEN = """async ([html, css, js, theme]) => {
  document.body.style.cssText = "margin:0;padding:8px;background:var(--st-background-color);" + theme
  const host = document.body.appendChild(document.createElement("div"))
  const parentElement = host.attachShadow({ mode: "open" })
  parentElement.appendChild(document.createRange().createContextualFragment(html + `<style>${css}</style>`))
  const module = await import(URL.createObjectURL(new Blob([js], { type: "text/javascript" })))
  window.sent = []
  const pack = (data) => new TextEncoder().encode(JSON.stringify(data))
  const setStateValue = (...said) => window.sent.push(said)
  window.draw = (data) => module.default({ data: pack(data), parentElement, setStateValue })
}"""


READ = r"""() => {
  const root = document.querySelector("div").shadowRoot
  const all = (selector, from = root) => [...from.querySelectorAll(selector)]
  const read = (selector, from) => all(selector, from).map((part) => part.textContent)
  const width = (part) => parseFloat(part.style.width) / 100
  const widths = (parts, key) => Object.fromEntries(parts.map((part) => [part.dataset[key] ?? "", width(part)]))
  const vote = (part) => part.querySelector(".dot").dataset.vote
  return {
    labels: read(".card .label .chip"),
    distances: read(".card .distance"),
    heads: all(".heat .row").slice(1).map((row) => read(".cell", row).map(Number)),
    answers: all(".answer").map((row) => [vote(row), read(".number", row)[0], read(".chip", row)[0]]),
    races: all(".race").map((race) => {
      const { pieces } = race.querySelector(".bar")
      const ends = race.querySelector(".cuts path").getAttribute("d").match(/[\d.]+(?= 0v1)/g).map(Number)
      const shares = pieces.map(({ c, j }, i) => ({ c, j, share: (ends[i] - (ends[i - 1] ?? 0)) / 100 }))
      const by = (key, isOne) => Object.fromEntries(shares.filter(isOne).map((piece) => [piece[key], piece.share]))
      return {
        vote: vote(race),
        groups: widths(all(".group:not(.sink)", race), "class"),
        weights: by("j", ({ j }) => j >= 0),
        averages: by("c", ({ c, j }) => c >= 0 && j < 0),
        sink: by("c", ({ c }) => c < 0)[-1] ?? 0,
      }
    }),
    others: all(".other").map((row) => [vote(row), widths(all(".mini i", row), "class")]),
  }
}"""
SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
AT_REST = 220  # milliseconds after which what is said to those who cannot see has been written
TOLD_AFTER = 300  # milliseconds after which whatever is told has been told
NOISE = LabelNoise("symmetric", 0.3)
KNOBS = {
    "k": lambda value: {"k": value},
    "temperature": lambda value: {"temperature": TEMPERATURES[value]},
    "noise": lambda value: {"noise": LabelNoise("symmetric", value / 100)},
}


def assert_drawn(page, setting, **world):
    """Cards, heat map, races and answers are those that Python computes; a text may be rounded either way."""
    page.evaluate(SETTLED)
    page.wait_for_timeout(AT_REST)
    drawn, prediction = page.evaluate(READ), make_world(**world).decide(setting)
    votes, names, around = prediction.ballot.votes, prediction.class_names, prediction.ballot.around
    assert drawn["labels"] == [names[label] for label in around.labels[0]]
    assert drawn["distances"] == [f"{distance:.2f}" for distance in around.distances[0]]
    heard = [h for h in range(len(drawn["heads"])) if f"head {h}" not in setting.muted]
    if not setting.averages:
        shown = [drawn["heads"][h] for h in heard]
        np.testing.assert_allclose(shown, 100 * prediction.weights[0], rtol=0, atol=0.51)
    for name, sure, label in drawn["answers"]:
        assert label == names[prediction.predicted(name)[0]], name
        assert percent_of(sure) == pytest.approx(100 * prediction.ballot.calibrated[name][0].max(), abs=0.51), name
    assert [race["vote"] for race in drawn["races"]] == [*("uniform", "distance"), third(setting)]
    for race in drawn["races"]:
        cast = votes[race["vote"]]
        assert race["weights"] == pytest.approx(by_place(cast.weights[0]), abs=2e-4), race["vote"]
        of_class = np.bincount(around.labels[0], cast.weights[0], len(names))
        shares = by_place(of_class if cast.averages is None else of_class + cast.averages[0])
        assert race["groups"] == pytest.approx({c: shares[c] for c in race["groups"]}, abs=2e-4), race["vote"]
        assert sum(race["groups"].values()) == pytest.approx(sum(shares.values()), abs=1e-3), race["vote"]
        assert race["averages"] == pytest.approx({} if cast.averages is None else by_place(cast.averages[0]), abs=2e-4)
        assert race["sink"] == pytest.approx(0 if cast.sink is None else cast.sink[0], abs=2e-4)
    for name, shares in drawn["others"]:
        assert shares == pytest.approx(by_place(votes[name].probabilities[0]), abs=2e-4), name


def third(setting):
    return "attention_averages" if setting.averages else "attention"


def by_place(shares):
    return {str(place): share for place, share in enumerate(shares.tolist())}


def percent_of(text):
    return 0.0 if text.startswith("<") else float(re.match(r"\d+", text)[0])


def told(page, n):
    """What the board said the n-th time, once it has, as the server reads it; and whom it asked about."""
    page.wait_for_function(f"sent.length >= {n}")
    name, said = page.evaluate(f"sent[{n - 1}]")
    assert (name, said["number"]) == ("said", n)
    link = {name: text for name, text in said["link"].items() if text}
    query, known = link.pop("query", None), {f"train/{j}" for j in range(160)}
    heads = tuple(page.locator(".mute").all_inner_texts())
    setting, complaints = state.read(link, state.Limits(16, 64, 10, heads, known.__contains__, known.__contains__, 63))
    assert not complaints
    return setting, query


def assert_told(page, n, setting, query=None):
    """The board said this the n-th time, and nothing since."""
    assert told(page, n) == (setting, query)
    page.wait_for_timeout(TOLD_AFTER)
    assert page.evaluate("sent.length") == n


def card(page, j):
    """A part of a card that does nothing by itself."""
    return page.locator(".card .rank").nth(j)


def ids_of(page):
    """Who is on the cards, as they say it to those who cannot see."""
    return page.locator(".card").evaluate_all("(cards) => cards.map((card) => card.ariaLabel.split(', ')[1])")


def label_of(page, j):
    return page.locator(".card .label .chip").nth(j)
