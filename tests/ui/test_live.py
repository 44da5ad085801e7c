"""The votes that the browser casts are those of Python, number by number."""

import json
import shutil
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import attnknn
from attnknn import LabelNoise
from attnknn.ballot import Ballot, FittedVotes, cast_over_draws, cast_votes
from attnknn.bank.walk import RATES
from attnknn.bundle import POOL
from attnknn.by_hand import ByHand
from attnknn.config import NOISE_KINDS
from attnknn.evaluation.response import RACING
from attnknn.models.attention import HEADS, Attention, explain_scores, terms_of
from attnknn.ui import board, live
from attnknn.ui.state import TEMPERATURES
from tests.ui.boards import make_world

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")]

CHECKPOINTS = ("digits", "iris", "breast_cancer")
AGREES = {"rtol": 0, "atol": 1e-4}
SCRIPTS = [Path(board.__file__).with_name(f"{name}.js").read_text(encoding="utf-8") for name in ("bank", "votes")]
OPEN = """async (js) => {
  window.votes = await import(URL.createObjectURL(new Blob([js], { type: "text/javascript" })))
}"""
walk = lru_cache(lambda name, seed: live.walk(load(name), seed))


@lru_cache
def load(name):
    return make_world(100, n=1000).trained if name == "a hundred classes" else attnknn.load(name)


@dataclass(frozen=True)
class State:
    """What a visitor set: everything that a board may ask of the votes."""

    checkpoint: str
    query: str
    k: int
    temperature: float
    noise: LabelNoise
    muted: tuple[str, ...]
    flips: dict[str, int]
    dropped: tuple[str, ...]

    @property
    def by_hand(self):
        return ByHand(self.flips, self.dropped, self.muted)

    @property
    def in_browser(self):
        return {
            "k": self.k,
            "temperature": self.temperature,
            "kind": self.noise.kind,
            "rate": self.noise.rate,
            "muted": self.muted,
            "flips": self.flips,
            "dropped": self.dropped,
        }


@pytest.fixture
def browser_votes(page):
    """A blank page that knows the votes; call a function of theirs on a payload."""
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.evaluate(OPEN, "\n".join(SCRIPTS))
    yield lambda name, payload, *more: page.evaluate(
        "([name, payload, more]) => votes[name](votes.readPayload(JSON.parse(payload)), ...more)",
        [name, json.dumps(payload), more],
    )
    assert not problems


def draw_state(rng, checkpoint, fitted):
    """Any query, a test item or an entry, under any setting; near neighbors are flipped and dropped most."""
    trained = load(checkpoint)
    query = str(rng.choice(trained.queries.ids if rng.uniform() < 0.7 else trained.entries.ids))
    rows = trained.ask([query]).pool.entries[0]
    ids = [str(trained.entries.ids[row]) for row in rows[rows >= 0][:POOL]]
    heads, n_classes = fitted.attention.heads, trained.entries.n_classes
    noise = LabelNoise(str(rng.choice(NOISE_KINDS)), float(rng.choice(RATES)), int(rng.integers(3)))
    near = ids[: int(rng.integers(1, len(ids)))]
    flipped = rng.choice(near, min(len(near), int(rng.choice([0, 1, 2, 5]))), replace=False)
    return State(
        checkpoint,
        query,
        int(rng.integers(1, len(ids) + 1)),
        float(rng.choice(TEMPERATURES)),
        noise,
        tuple(str(head) for head in rng.choice(heads, int(rng.integers(len(heads))), replace=False)),
        {str(entry): int(rng.integers(n_classes)) for entry in flipped},
        tuple(
            str(entry) for entry in rng.choice(near, min(len(near) // 2, int(rng.choice([0, 0, 1, 3]))), replace=False)
        ),
    )


def cast_in_python(state: State, fitted: FittedVotes) -> tuple[Ballot, list[str]]:
    trained = load(state.checkpoint)
    seen = state.by_hand.change_bank(trained.observe(state.noise))
    query = state.by_hand.change_query(trained.ask([state.query]), seen)
    k = min(state.k, query.pool.k)
    ballot = cast_votes(query, k, seen, state.by_hand.change_votes(fitted), state.temperature)
    return ballot, [str(entry) for entry in trained.entries.ids[query.pool.first(k).entries[0]]]


def make_payload(state: State, fitted, noise=None, flips=None):
    trained, noise = load(state.checkpoint), noise or state.noise
    return live.lay_out(walk(state.checkpoint, noise.seed), trained.ask([state.query]), fitted, noise, flips)


def assert_same(said, state: State, fitted) -> None:
    ballot, ids = cast_in_python(state, fitted)
    around, heard = ballot.around, [name for name in fitted.attention.heads if name not in state.muted]
    assert [neighbor["id"] for neighbor in said["neighbors"]] == ids
    assert [neighbor["observed_label"] for neighbor in said["neighbors"]] == around.labels[0].tolist()
    np.testing.assert_array_equal([neighbor["distance"] for neighbor in said["neighbors"]], around.distances[0])
    voices = [h for h, head in enumerate(said["heads"]) if head["name"] in heard]
    weights = np.array([neighbor["weights"] for neighbor in said["neighbors"]])
    terms = [[neighbor["terms"][name] for neighbor in said["neighbors"]] for name in fitted.attention.terms]
    attention = state.by_hand.change_votes(fitted).attention
    expected = explain_scores(around, attention)[0].transpose(1, 2, 0)
    np.testing.assert_allclose(np.array(terms)[..., voices], expected, **AGREES)
    np.testing.assert_allclose(weights[:, voices].T, ballot.heads.weights[0], **AGREES)
    np.testing.assert_allclose([said["heads"][h]["sink"] for h in voices], ballot.heads.sink[0], **AGREES)
    said_by_head = [said["heads"][h]["probabilities"] for h in voices]
    np.testing.assert_allclose(said_by_head, ballot.heads.probabilities[0], **AGREES)
    assert set(said["votes"]) == set(ballot.votes)
    for name, vote in ballot.votes.items():
        told = said["votes"][name]
        np.testing.assert_allclose(told["probabilities"], vote.probabilities[0], **AGREES, err_msg=name)
        np.testing.assert_allclose(told["calibrated"], ballot.calibrated[name][0], **AGREES, err_msg=name)
        assert vote.probabilities[0, told["predicted"]] >= vote.probabilities[0].max() - 1e-4, name
        for part in ("weights", "averages", "sink"):
            if told[part] is not None:
                np.testing.assert_allclose(told[part], getattr(vote, part)[0], **AGREES, err_msg=f"{name}.{part}")


def check_states(browser_votes, seed, n, fitted_of, checkpoints=CHECKPOINTS, **fixed):
    """Half of the payloads do not know the flips of their state; half know them, and were made for other noise."""
    rng = np.random.default_rng(seed)
    for number in range(n):
        checkpoint = checkpoints[number % len(checkpoints)]
        fitted = fitted_of(checkpoint)
        state = replace(draw_state(rng, checkpoint, fitted), **fixed)
        if number % 2:
            payload = make_payload(state, fitted)
        else:
            elsewhere = LabelNoise(str(rng.choice(NOISE_KINDS)), float(rng.choice(RATES)), state.noise.seed)
            payload = make_payload(state, fitted, elsewhere, state.flips)
        assert_same(browser_votes("castVotes", payload, state.in_browser), state, fitted)


def every_head(checkpoint) -> FittedVotes:
    """All heads there are, with numbers made up: as sharp as fitted ones."""
    fitted, rng = load(checkpoint).fitted, np.random.default_rng(1)
    dimension, heads, terms = load(checkpoint).entries.keys.shape[1], tuple(HEADS), terms_of(tuple(HEADS))
    is_seen = np.array([[term in HEADS[head].terms for term in terms] for head in heads])

    def attention(**seats):
        theta, sink = rng.uniform(0, 4, is_seen.shape) * is_seen, rng.normal(size=(len(heads), 4))
        return Attention(heads, terms, theta, sink, metric=rng.normal(size=(4, dimension)), **seats)

    seats = {"seat": rng.normal(size=(len(heads), 2)), "pull": rng.uniform(0, 5, (len(heads), 2))}
    return replace(fitted, attention=attention(), attention_averages=attention(**seats))


def test_the_browser_casts_the_votes_that_python_casts(browser_votes):
    check_states(browser_votes, 0, 24, lambda name: load(name).fitted)


def test_so_it_does_for_every_head_there_is(browser_votes):
    check_states(browser_votes, 1, 6, lru_cache(every_head))


def test_so_it_does_for_a_hundred_classes(browser_votes):
    check_states(browser_votes, 6, 8, lambda name: load(name).fitted, ["a hundred classes"])


def test_so_it_does_where_a_low_temperature_makes_most_of_what_is_rounded(browser_votes):
    check_states(browser_votes, 7, 12, lambda name: load(name).fitted, temperature=min(TEMPERATURES))


def test_so_it_does_where_all_but_one_of_a_class_are_flipped(browser_votes):
    """Rounding adds up over all that was moved, and little is left of the class sum."""
    fitted = every_head("iris")
    for query in load("iris").queries.ids[:8]:
        state = State("iris", str(query), 64, 0.05, LabelNoise(), (), {}, ())
        neighbors = cast_in_python(state, fitted)[0].around.labels[0]
        ids = load("iris").entries.ids[load("iris").ask([state.query]).pool.entries[0]]
        gone = int(np.bincount(neighbors).argmax())
        flips = {str(entry): (gone + 1) % 3 for entry in ids[:64][neighbors == gone][:-1]}
        payload = make_payload(state, fitted)
        state = replace(state, flips=flips)
        assert_same(browser_votes("castVotes", payload, state.in_browser), state, fitted)


@pytest.mark.slow
def test_the_browser_casts_the_votes_that_python_casts_whatever_the_state(browser_votes):
    check_states(browser_votes, 2, 240, lambda name: load(name).fitted)
    check_states(browser_votes, 3, 60, lru_cache(every_head))


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_the_curve_is_that_of_python(browser_votes, checkpoint):
    trained, rng = load(checkpoint), np.random.default_rng(5)
    state = draw_state(rng, checkpoint, trained.fitted)
    state = replace(state, muted=(), noise=replace(state.noise, seed=0))
    query = state.by_hand.change_query(trained.ask([state.query]), trained.observe(state.noise))
    k = min(state.k, query.pool.k)
    draws = [state.by_hand.change_bank(trained.observe(replace(state.noise, rate=rate))) for rate in RATES]
    votes = [*RACING, "attention_averages", "prototype"]
    expected = cast_over_draws(query, k, draws, trained.fitted, state.temperature, votes)
    followed = int(query.labels[0])
    payload = make_payload(state, trained.fitted, flips=state.flips)
    curve = browser_votes("respondToNoise", payload, state.in_browser, followed, votes)
    assert curve["rates"] == list(RATES)
    for name in votes:
        np.testing.assert_allclose(curve["probability"][name], expected[name][:, followed], **AGREES)
        leaves = [rate for rate, p in zip(RATES, expected[name], strict=True) if p.argmax() != followed]
        assert curve["leaves"][name] == (leaves[0] if leaves else None)


def test_a_label_flipped_by_hand_stays_flipped_when_another_query_is_asked(browser_votes):
    trained = load("iris")
    query, other = (str(item) for item in trained.queries.ids[:2])
    everyone = {str(entry): row % 3 for row, entry in enumerate(trained.entries.ids[::5])}
    state = State("iris", other, 9, 1.0, LabelNoise("pair", 0.3), (), everyone, ())
    assert query != other
    payload = make_payload(state, trained.fitted, LabelNoise(), everyone)
    assert 0 < len(payload["flips"]) < len(everyone)  # some are far away
    assert_same(browser_votes("castVotes", payload, state.in_browser), state, trained.fitted)


def test_before_the_server_answers_only_class_averages_wait(browser_votes):
    """A flip that the payload does not know, at noise it was not made for: all that reads no prototype is right."""
    trained, rng = load("digits"), np.random.default_rng(4)
    for _ in range(5):
        state = replace(draw_state(rng, "digits", trained.fitted), muted=(), noise=LabelNoise("symmetric", 0.2))
        payload = make_payload(state, trained.fitted, LabelNoise("pair", 0.5))
        said = browser_votes("castVotes", payload, state.in_browser)
        ballot, _ = cast_in_python(state, trained.fitted)
        for name in ("uniform", "distance", "edited"):
            np.testing.assert_allclose(said["votes"][name]["calibrated"], ballot.calibrated[name][0], **AGREES)
        expected = explain_scores(ballot.around, trained.fitted.attention)[0]
        for t, name in enumerate(trained.fitted.attention.terms):
            if name != "prototype":
                terms = [neighbor["terms"][name] for neighbor in said["neighbors"]]
                np.testing.assert_allclose(np.transpose(terms), expected[:, t], **AGREES)


def test_averages_at_the_table_show_their_own_heads(browser_votes):
    fitted = load("digits").fitted
    state = State("digits", str(load("digits").queries.ids[3]), 12, 1.0, LabelNoise("symmetric", 0.6), (), {}, ())
    said = browser_votes("castVotes", make_payload(state, fitted), {**state.in_browser, "averages": True})
    vote = cast_in_python(state, fitted)[0].votes["attention_averages"]
    np.testing.assert_allclose([neighbor["share"] for neighbor in said["neighbors"]], vote.weights[0], **AGREES)
    np.testing.assert_allclose(said["averages"], vote.averages[0], **AGREES)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_a_payload_is_small(checkpoint):
    trained = load(checkpoint)
    state = State(checkpoint, str(trained.queries.ids[0]), 16, 1.0, LabelNoise(), (), {}, ())
    size = len(json.dumps(make_payload(state, trained.fitted), allow_nan=False))
    print(f"{checkpoint}: {size / 1000:.0f} kB")
    assert size < 85_000
