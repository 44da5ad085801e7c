"""Claims: counted again from the numbers behind them, and true in worlds where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from attnknn.classifier import AttnKNN
from attnknn.config import LabelNoise
from attnknn.evaluation.claims import BETTER, OURS, RIVALS, Claim, Level, Outcome, estimate, judge
from attnknn.evaluation.protocol import compare, examine
from attnknn.intervals import bootstrap_interval, holm, paired_interval, paired_p_value
from attnknn.votes import COMPARED
from tests.strategies import lattice_classifier

LEVEL = Level("B", "symmetric", 0.4)
DRAWS = [LabelNoise("symmetric", 0.4, seed) for seed in (0, 1, 2)]


@pytest.fixture(scope="module")
def embedders() -> list[AttnKNN]:
    return [lattice_classifier(seed) for seed in (0, 1)]


@pytest.fixture(scope="module")
def outcome(embedders: list[AttnKNN]) -> Outcome:
    return Outcome.join(LEVEL, 5, [examine(one, 5, DRAWS) for one in embedders])


def world(rng: np.random.Generator, advantage: dict[str, float], queries: int = 800) -> Outcome:
    """Votes that are right half of the time and lose one nat, but for an advantage; difficulty is shared."""
    difficulty, shape = rng.normal(size=queries), (1, 3, queries)
    hits = {vote: 100.0 * (difficulty < advantage.get(vote, 0.0)) + np.zeros(shape) for vote in COMPARED}
    losses = {vote: 1 + difficulty - advantage.get(vote, 0.0) + rng.normal(0, 0.1, shape) for vote in COMPARED}
    return Outcome(LEVEL, 16, {"accuracy": hits, "nll": losses})


def of(claims: list[Claim], measure: str, vote: str) -> Claim:
    (found,) = [claim for claim in claims if (claim.measure, claim.vote) == (measure, vote)]
    return found


def test_an_outcome_holds_every_query_of_every_draw_of_every_embedder(embedders: list[AttnKNN], outcome: Outcome):
    for row, embedder in enumerate(embedders):
        for vote, found in compare(embedder, 5, DRAWS).items():
            np.testing.assert_array_equal(outcome.values["accuracy"][vote][row], 100 * found["hits"])
            np.testing.assert_array_equal(outcome.values["nll"][vote][row], found["losses"])


def test_a_cell_is_the_mean_with_the_interval_of_its_queries(outcome: Outcome):
    found = estimate(outcome)
    assert [*found] == [(measure, vote) for measure in BETTER for vote in COMPARED]
    for (measure, vote), cell in found.items():
        by_query = outcome.values[measure][vote].mean(axis=(0, 1))
        assert cell.mean == pytest.approx(by_query.mean())
        assert (cell.low, cell.high) == pytest.approx(bootstrap_interval(by_query))


def test_a_claim_is_the_paired_difference_from_the_best_rival(outcome: Outcome):
    claims = judge([outcome], resamples=500)[outcome]
    assert [(claim.measure, claim.vote) for claim in claims] == [(one, vote) for one in BETTER for vote in OURS]
    for claim in claims:
        values = outcome.values[claim.measure]
        means = {vote: BETTER[claim.measure] * values[vote].mean() for vote in RIVALS}
        assert means[claim.rival] == max(means.values())
        ours, theirs = values[claim.vote], values[claim.rival]
        assert claim.gap == pytest.approx(ours.mean() - theirs.mean())
        assert (claim.low, claim.high) == pytest.approx(paired_interval(ours, theirs, resamples=500))
        assert claim.p == paired_p_value(ours, theirs, resamples=500)
    assert [claim.adjusted for claim in claims] == holm([claim.p for claim in claims]).tolist()


def test_claims_that_are_made_together_are_adjusted_together(outcome: Outcome):
    rng = np.random.default_rng(0)
    others = [world(rng, {"attention": 0.03}) for _ in range(3)]
    alone, together = judge([outcome], resamples=300), judge([outcome, *others], resamples=300)
    assert [*together] == [outcome, *others]
    everyone = [claim for claims in together.values() for claim in claims]
    assert [claim.adjusted for claim in everyone] == holm([claim.p for claim in everyone]).tolist()
    assert [claim.p for claim in together[outcome]] == [claim.p for claim in alone[outcome]]


def test_verdicts_know_which_way_is_better():
    found = world(np.random.default_rng(1), {"attention": 0.4, "attention_averages": -0.4, "edited": 0.1})
    claims = judge([found], resamples=2000)[found]
    for measure in BETTER:
        ahead, behind = of(claims, measure, "attention"), of(claims, measure, "attention_averages")
        assert (ahead.rival, behind.rival) == ("edited", "edited")
        assert (ahead.verdict, behind.verdict) == ("better", "worse")
        assert ahead.is_ahead
        assert not behind.is_ahead
        assert np.sign(ahead.gap) == BETTER[measure] == -np.sign(behind.gap)


def test_equals_are_no_different():
    found = world(np.random.default_rng(2), {})
    for claim in judge([found], resamples=500)[found]:
        assert claim.verdict == "no difference"
        assert claim.adjusted > 0.05 or claim.measure == "nll"


def test_the_baseline_is_no_rival():
    found = world(np.random.default_rng(3), {"baseline": 2.0, "distance": 0.2})
    assert {claim.rival for claim in judge([found], resamples=200)[found]} == {"distance"}


def test_levels_say_what_is_noisy():
    assert [Level("B", "pair", rate).title for rate in (0.0, 0.4)] == ["none", "40 % pair"]
