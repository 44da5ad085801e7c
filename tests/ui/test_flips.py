"""The smallest set of flips that the browser finds is that of brute force, and it says what it did not try."""

import json
import shutil
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from attnknn import LabelNoise
from attnknn.ui import board
from attnknn.votes import COMPARED
from tests.ui.test_live import OPEN, SCRIPTS, State, cast_in_python, draw_state, every_head, load, make_payload

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")]

MORE = [Path(board.__file__).with_name(f"{name}.js").read_text(encoding="utf-8") for name in ("reach", "flips")]
EXHAUSTIVE = 1e9
CALL = """([name, payload, all]) => {
  const live = votes.readPayload(JSON.parse(payload))
  return all.map((more) => votes[name](live, ...more))
}"""
OVERREACH = """([payload, state, vote, seed, n_sets]) => {
  const live = votes.readPayload(JSON.parse(payload))
  const desk = votes.openDesk(live, state, vote, Infinity)
  const random = () => ((seed = (seed * 48271) % 2147483647) / 2147483647)
  const pick = (all) => all[Math.floor(random() * all.length)]
  const { K, now } = desk
  let worst = -Infinity
  for (let set = 0; set < n_sets; set++) {
    const places = [...new Array(K).keys()].filter(() => random() < 0.4)
    const few = pick([0, 0, 1]) && places.length > 1 // flips that were made before
    const to = pick(desk.rivals)
    const draw = (place) => [desk.order[place], random() < 0.7 ? to : Math.floor(random() * live.C)]
    const flips = places.map(draw)
    const real = flips.filter(([rank, label]) => label !== now.labels[rank])
    const [before, after] = [real.slice(0, +few), real.slice(+few)]
    if (!after.length) continue
    const told = votes.attempt(desk, Object.fromEntries(before))
    const from = before.length ? desk.place[before[0][0]] + 1 : 0
    const p = votes.attempt(desk, Object.fromEntries(real)).probabilities
    const reach = votes.reachAfter(desk, told, after.length, from)
    for (const c of desk.rivals) {
      const margin = p[c] - p[now.predicted]
      const forced = { rank: after[0][0], to: after[0][1] }
      if (vote === "prototype" || vote === "edited") { // these bound who wins, and the margin only where c does
        if (margin > 1e-9) worst = Math.max(worst, -reach(c), -reach(c, forced))
        continue
      }
      worst = Math.max(worst, margin - reach(c), margin - reach(c, forced))
    }
  }
  return worst
}"""


@pytest.fixture
def ask_browser(page):
    """A blank page that knows the votes; call a function of theirs on a payload, once or for each of a list."""
    page.evaluate(OPEN, "\n".join([*SCRIPTS, *MORE]))
    return lambda name, payload, *all_arguments: page.evaluate(CALL, [name, json.dumps(payload), all_arguments])


def brute_force(state: State, fitted):
    """The margins of all sets of flips, by vote and by set; a margin is that of the strongest other class."""
    ballot, ids = cast_in_python(state, fitted)
    labels, n_classes = ballot.around.labels[0], load(state.checkpoint).entries.n_classes
    answers = {name: winner(vote.probabilities[0]) for name, vote in ballot.votes.items()}
    margins = {name: {} for name in answers}
    for size in range(1, len(ids) + 1):
        for ranks in combinations(range(len(ids)), size):
            for classes in product(*[[c for c in range(n_classes) if c != labels[rank]] for rank in ranks]):
                more = {ids[rank]: c for rank, c in zip(ranks, classes, strict=True)}
                flipped, _ = cast_in_python(replace(state, flips=state.flips | more), fitted)
                for name, vote in flipped.votes.items():
                    p, w = vote.probabilities[0], answers[name]
                    if winner(p) != w:
                        margins[name][tuple(more.items())] = np.delete(p, w).max() - p[w]
    return answers, margins


def winner(p) -> int:
    """Who wins, where what differs by rounding alone is a tie."""
    return int(np.round(p, 9).argmax())


def draw(rng, checkpoint, k):
    state = draw_state(rng, checkpoint, load(checkpoint).fitted)
    noise = replace(state.noise, rate=float(rng.choice([0.0, 0.2, 0.4])), seed=0)
    return replace(state, k=k, noise=noise)


def by_vote(state: State, *limit):
    return [[state.in_browser, name, *limit] for name in COMPARED]


@pytest.mark.parametrize(
    ("checkpoint", "k", "n"), [("iris", 4, 3), ("iris", 1, 1), ("digits", 2, 3), ("breast_cancer", 6, 2)]
)
def test_no_smaller_set_and_none_of_its_size_does_more(ask_browser, checkpoint, k, n):
    rng = np.random.default_rng(k)
    for _ in range(n):
        state = draw(rng, checkpoint, k)
        answers, margins = brute_force(state, load(checkpoint).fitted)
        said = ask_browser("smallestFlips", make_payload(state, load(checkpoint).fitted), *by_vote(state, EXHAUSTIVE))
        for name, told in zip(COMPARED, said, strict=True):
            assert told["is_exact"]
            working = margins[name]
            if not working:
                assert told == {"found": [], "predicted": answers[name], "at_least": k + 1, "is_exact": True}
                continue
            size = min(len(flips) for flips in working)
            assert len(told["found"]) == told["at_least"] == size, name
            found = tuple((flip["id"], flip["to"]) for flip in told["found"])
            best = max(margin for flips, margin in working.items() if len(flips) == size)
            assert working[found] >= best - 1e-4, name


def check_laws(ask_browser, state, payload, name, told):
    """The answer is another after all of the flips, and if there are no fewer, the same after all but one."""
    found = {flip["id"]: flip["to"] for flip in told["found"]}
    sets = [{}, found, *[{one: to for one, to in found.items() if one != left} for left in found]]
    states = [[{**state.in_browser, "flips": state.flips | flips}] for flips in sets]
    before, after, *fewer = ask_browser("castVotes", payload, *states)
    labels = {neighbor["id"]: neighbor["observed_label"] for neighbor in before["neighbors"]}
    answer = before["votes"][name]["predicted"]
    assert all(labels[flip["id"]] == flip["from"] != flip["to"] for flip in told["found"])
    assert after["votes"][name]["predicted"] == told["predicted"]
    assert (told["predicted"] != answer) == bool(found)
    assert 1 <= told["at_least"] <= (len(found) or len(labels) + 1)
    assert told["is_exact"] == (told["at_least"] == (len(found) or len(labels) + 1))
    if told["is_exact"]:
        assert all(cast["votes"][name]["predicted"] == answer for cast in fewer)
    return told


@pytest.mark.parametrize(("checkpoint", "k"), [("iris", 9), ("digits", 5), ("digits", 16), ("breast_cancer", 32)])
def test_the_answer_changes_with_the_set_and_not_before(ask_browser, checkpoint, k):
    rng = np.random.default_rng(k)
    for known in (True, False):
        state = draw(rng, checkpoint, k)
        elsewhere = state.noise if known else LabelNoise("pair", 0.3)
        payload = make_payload(state, load(checkpoint).fitted, elsewhere)
        for name, told in zip(COMPARED, ask_browser("smallestFlips", payload, *by_vote(state)), strict=True):
            check_laws(ask_browser, state, payload, name, told)
            if name in ("uniform", "distance", "baseline"):
                assert told["is_exact"]
            if name == "baseline":
                assert told["found"] == []


def test_a_search_that_was_cut_short_says_so(ask_browser):
    state = State("digits", str(load("digits").queries.ids[0]), 12, 1.0, LabelNoise(), (), {}, ())
    payload = make_payload(state, load("digits").fitted)
    limits = (1, 20, 100, 600)
    said = ask_browser("smallestFlips", payload, *[[state.in_browser, "attention", limit] for limit in limits])
    for told in said:
        check_laws(ask_browser, state, payload, "attention", told)
    assert not said[0]["is_exact"]
    assert said[0]["found"] == []
    assert said[-1]["found"]
    lowest = [told["at_least"] for told in said]
    assert lowest == sorted(lowest)
    assert lowest[0] <= len(said[-1]["found"])


@pytest.mark.parametrize(
    "fitted_of", [lambda name: load(name).fitted, lru_cache(every_head)], ids=["fitted", "all_heads"]
)
@pytest.mark.parametrize("checkpoint", ["iris", "digits", "breast_cancer"])
def test_no_flips_do_more_than_their_bound(page, checkpoint, fitted_of):
    page.evaluate(OPEN, "\n".join([*SCRIPTS, *MORE]))
    rng, fitted = np.random.default_rng(3), fitted_of(checkpoint)
    for k in (4, 16):
        state = draw(rng, checkpoint, k)
        for noise in (state.noise, LabelNoise("pair", 0.3)):
            payload = json.dumps(make_payload(state, fitted, noise))
            for vote in ("edited", "prototype", "attention", "attention_averages"):
                assert page.evaluate(OVERREACH, [payload, state.in_browser, vote, 12345 + k, 40]) <= 1e-6, (vote, k)
