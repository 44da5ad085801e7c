"""Calibration: what it promises, and that it does it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attnknn import metrics, reliability
from attnknn.arrays import likelihoods
from attnknn.calibration import (
    COEFFICIENT_BOUND,
    FLOOR,
    NO_SINK,
    SINK_START,
    TEMPERATURE_BOUNDS,
    Calibrator,
    _objective,
    calibrate,
    certainty_facts,
    fit_calibrator,
    sink_mass,
    temperature,
    vote_facts,
)
from attnknn.models.terms import Surroundings
from tests import oracles
from tests.strategies import draw_labels

SOME = Calibrator(np.array([-3.0, 1.5, 0.8, 0.3]), np.array([0.5, 0.2, -0.4, 0.1]))


def of_temperature(t, sink=NO_SINK):
    return Calibrator(np.array(sink), np.array([np.log(t), 0, 0, 0]))


def softened(scores):
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def overconfident(n=800, seed=0, sharpness=2.0):
    """Draw votes that are too sure, the more so the farther the neighbors: (p, facts, labels)."""
    rng = np.random.default_rng(seed)
    distances = np.sort(rng.uniform(0.1, 0.5, (n, 8)) + rng.uniform(0, 1, (n, 1)), axis=1)
    scores = 2 * rng.normal(size=(n, 5))
    far = np.clip(distances.mean(axis=1, keepdims=True) - 0.5, 0, 0.6)
    truth = (1 - far) * softened(scores) + far / 5
    p = softened(sharpness * scores)
    return p, certainty_facts(distances, p), draw_labels(truth, rng)


def loss(p, facts, labels, calibrator):
    return metrics.negative_log_likelihood(calibrate(p, facts, calibrator), labels)


# ---- Applying


def test_calibrating_equals_its_slow_twin():
    p, facts, _ = overconfident(50)
    expected = oracles.calibrate(p, facts, SOME.sink, SOME.heat, FLOOR)
    np.testing.assert_allclose(calibrate(p, facts, SOME), expected, atol=1e-12)


rows = arrays.arrays(np.float64, (4, 5), elements=st.floats(0, 1)).filter(lambda p: bool((p.sum(axis=1) > 0.1).all()))
coefficients = arrays.arrays(np.float64, 4, elements=st.floats(-50, 50))


@settings(deadline=None, max_examples=200)
@given(p=rows, sink=coefficients, heat=coefficients, distance=st.floats(0, 2))
def test_calibrated_rows_sum_to_one_and_keep_the_order_of_classes(p, sink, heat, distance):
    p = p / p.sum(axis=1, keepdims=True)
    facts = certainty_facts(np.full((4, 3), distance), p)
    q = calibrate(p, facts, Calibrator(sink, heat))
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-12)
    assert (q >= 0).all()
    ordered = np.take_along_axis(q, p.argsort(axis=1, kind="stable"), axis=1)
    assert (np.diff(ordered, axis=1) >= -1e-13).all()


def test_an_almost_certain_sink_leaves_the_winner_in_place():
    p = np.array([[0.2, 0.3 - 1e-6, 0.5 - 2e-6, 3e-6], [0.5, 0.5 - 1e-6, 5e-7, 5e-7], [0, 0, 0.4, 0.6]])
    facts = certainty_facts(np.full((3, 2), 2.0), p)
    q = calibrate(p, facts, Calibrator(np.full(4, 50.0), np.full(4, 50.0)))
    assert np.array_equal(q.argmax(axis=1), p.argmax(axis=1))
    np.testing.assert_allclose(q, 0.25, atol=1e-6)


def test_the_default_calibrator_changes_nothing_but_the_floor():
    p, facts, _ = overconfident(20)
    np.testing.assert_allclose(sink_mass(facts, Calibrator()), FLOOR, atol=1e-15)
    np.testing.assert_allclose(calibrate(p, facts, Calibrator()), (1 - FLOOR) * p + FLOOR / 5, atol=1e-12)


def test_no_class_is_ever_impossible():
    p = np.array([[1.0, 0.0]])
    assert calibrate(p, certainty_facts(np.ones((1, 1)), p), Calibrator())[0, 1] == pytest.approx(FLOOR / 2)


def test_heat_softens_and_cold_sharpens():
    p, facts, _ = overconfident(30)
    tops = [calibrate(p, facts, of_temperature(t)).max(axis=1) for t in (0.3, 1.0, 3.0)]
    assert (tops[0] > tops[1]).all()
    assert (tops[1] > tops[2]).all()


def test_a_far_query_is_less_sure_when_the_sink_heeds_distance():
    p = np.tile([0.9, 0.1], (3, 1))
    facts = certainty_facts(np.array([[0.1, 0.2], [0.5, 0.9], [1.2, 1.4]]), p)
    top = calibrate(p, facts, Calibrator(np.array([-4.0, 3.0, 0, 0])))[:, 0]
    assert (np.diff(top) < 0).all()


def test_facts_are_what_they_say():
    facts = certainty_facts(np.array([[0.2, 0.4, 0.9], [0.1, 0.1, 0.1]]), np.array([[0.5, 0.5, 0], [1.0, 0, 0]]))
    np.testing.assert_allclose(facts, [[1, 0.5, np.log(2), np.log(2) ** 2], [1, 0.1, 0, 0]], atol=1e-12)


def test_libraries_agree():
    torch, strict = pytest.importorskip("torch"), pytest.importorskip("array_api_strict")
    p, facts, _ = overconfident(40)
    distances = np.random.default_rng(0).random((40, 6))
    for library in (torch, strict):
        theirs, their_facts = library.asarray(p), library.asarray(facts)
        found = calibrate(theirs, their_facts, SOME)
        assert type(found) is type(theirs)
        np.testing.assert_allclose(np.asarray(found), calibrate(p, facts, SOME), atol=1e-12)
        found = certainty_facts(library.asarray(distances), theirs)
        np.testing.assert_allclose(np.asarray(found), certainty_facts(distances, p), atol=1e-12)


def test_facts_about_a_vote_are_those_about_the_query_and_again_times_the_dissent():
    rng = np.random.default_rng(0)
    around = replace(Surroundings(*[rng.random((3, 4))] * 6), dissent=np.array([0.0, 0.5, 1.0]))
    p = rng.dirichlet(np.ones(4), 3)
    facts = certainty_facts(around.distances, p)
    np.testing.assert_array_equal(vote_facts(around, p), np.hstack([facts, [[0], [0.5], [1]] * facts]))


def test_facts_take_the_type_of_the_vote():
    torch = pytest.importorskip("torch")
    p = torch.tensor([[0.7, 0.3]], requires_grad=True)
    facts = certainty_facts(torch.tensor([[0.1, 0.3]], dtype=torch.float64), p)
    assert facts.dtype == torch.float32
    calibrate(p, facts, SOME)[0, 0].backward()
    assert torch.isfinite(p.grad).all()


# ---- Fitting


@pytest.mark.parametrize("sharpness", [1.5, 2.0, 3.0])
def test_the_fit_lowers_nll_and_ece_on_new_items(sharpness):
    fitted = fit_calibrator(*overconfident(sharpness=sharpness))
    p, facts, labels = overconfident(seed=1, sharpness=sharpness)
    q = calibrate(p, facts, fitted)
    assert metrics.negative_log_likelihood(q, labels) < metrics.negative_log_likelihood(p, labels) - 0.02
    assert metrics.brier(q, labels) < metrics.brier(p, labels)
    assert reliability.ece(q, labels) < 0.5 * reliability.ece(p, labels)
    assert metrics.accuracy(q, labels) == metrics.accuracy(p, labels)


@pytest.mark.parametrize("truth", [SOME, of_temperature(0.8, [-6, 4, 0, 0]), of_temperature(3.0)])
def test_the_fit_finds_the_calibrator_that_drew_the_labels(truth):
    p, facts, _ = overconfident(4000)
    labels = draw_labels(calibrate(p, facts, truth), np.random.default_rng(0))
    fitted = fit_calibrator(p[:3000], facts[:3000], labels[:3000])
    q = calibrate(p[3000:], facts[3000:], fitted)
    assert np.abs(q - calibrate(p[3000:], facts[3000:], truth)).mean() < 0.015
    assert reliability.ece(q, labels[3000:]) <= reliability.chance_ece(q).high


def test_the_fit_sharpens_a_timid_vote():
    p, facts, labels = overconfident(sharpness=0.4)
    assert np.quantile(temperature(facts, fit_calibrator(p, facts, labels)), 0.99) < 1


@settings(deadline=None, max_examples=25)
@given(n=st.integers(1, 30), n_classes=st.integers(1, 4), seed=st.integers(0, 10_000))
def test_the_fit_is_never_worse_than_the_start(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    p, labels = rng.dirichlet(np.full(n_classes, 0.3), n), rng.integers(0, n_classes, n)
    facts = certainty_facts(rng.uniform(0, 2, (n, 3)), p)
    fitted = fit_calibrator(p, facts, labels)
    start = Calibrator(np.array([SINK_START, 0, 0, 0]))
    assert loss(p, facts, labels, fitted) <= loss(p, facts, labels, start) + 1e-12
    heated = temperature(facts, fitted)
    assert TEMPERATURE_BOUNDS[0] - 1e-12 <= heated.min()
    assert heated.max() <= TEMPERATURE_BOUNDS[1] + 1e-12
    for numbers in (fitted.sink, fitted.heat):
        assert np.abs(numbers).max() <= COEFFICIENT_BOUND
        assert numbers[1] >= 0  # farther away is never surer


def test_no_step_away_from_the_fit_lowers_the_loss():
    p, facts, labels = overconfident()
    fitted = fit_calibrator(p, facts, labels)

    def penalized(sink, heat):
        ridge = 0.5 / len(p) * (np.sum(sink[1:] ** 2) + np.sum(heat[1:] ** 2))
        return loss(p, facts, labels, Calibrator(sink, heat)) + ridge

    least = penalized(fitted.sink, fitted.heat)
    for step in np.vstack([np.eye(4), -np.eye(4)]):
        for sink, heat in ((fitted.sink + 0.05 * step, fitted.heat), (fitted.sink, fitted.heat + 0.03 * step)):
            if sink[1] >= 0 and heat[1] >= 0:
                assert penalized(sink, heat) > least


def test_the_same_items_give_the_same_calibrator_in_any_order():
    p, facts, labels = overconfident(300)
    fitted = fit_calibrator(p, facts, labels)
    assert fit_calibrator(p, facts, labels) == fitted
    again = fit_calibrator(p[::-1], facts[::-1], labels[::-1])
    np.testing.assert_allclose(calibrate(p, facts, again), calibrate(p, facts, fitted), atol=1e-4)


def test_a_strong_ridge_leaves_sink_and_temperature_the_same_for_every_query():
    fitted = fit_calibrator(*overconfident(), ridge=1e6)
    np.testing.assert_allclose(fitted.sink[1:], 0, atol=1e-5)
    np.testing.assert_allclose(fitted.heat[1:], 0, atol=1e-4)


def test_the_gradient_is_that_of_the_loss():
    p, facts, labels = overconfident(60)
    facts = np.concatenate([facts, facts * np.random.default_rng(0).random((60, 1))], axis=1)
    theta = np.random.default_rng(1).normal(size=16)
    for known in (None, alike(0.2), PAIR):
        items = (p, facts, likelihoods(labels, 5, known), 0.01)
        by_steps = [
            (_objective(theta + s, *items)[0] - _objective(theta - s, *items)[0]) / 2e-6 for s in np.eye(16) * 1e-6
        ]
        np.testing.assert_allclose(_objective(theta, *items)[1], by_steps, atol=1e-6)


def test_one_calibrator_suits_a_quiet_and_a_noisy_bank():
    """Votes that are too sure where the bank is noisy, and not sure enough where it is not."""

    def world(seed):
        p, facts, _ = overconfident(3000, seed, sharpness=1.0)
        z = np.where(np.arange(3000) % 2, 0.9, 0.1)
        true = of_temperature(0.5), of_temperature(2.5)
        q = np.where(z[:, None] > 0.5, calibrate(p, facts, true[1]), calibrate(p, facts, true[0]))
        return p, np.concatenate([facts, facts * z[:, None]], axis=1), draw_labels(q, np.random.default_rng(seed)), q

    p, facts, labels, _ = world(0)
    blind, seeing = fit_calibrator(p, facts[:, :4], labels), fit_calibrator(p, facts, labels)
    p, facts, labels, q = world(1)
    best = metrics.negative_log_likelihood(q, labels)
    assert loss(p, facts, labels, seeing) < best + 0.02
    assert loss(p, facts[:, :4], labels, blind) > best + 0.05


# ---- Wrong labels to fit on

PAIR = 0.6 * np.eye(5) + 0.4 * np.roll(np.eye(5), 1, axis=1)


def alike(share):
    """A share of labels may have become any class; the others are true."""
    return (1 - share) * np.eye(5) + share / 5


def with_wrong_labels(transition, seed=2):
    """Overconfident votes, their labels, and the same labels made wrong."""
    p, facts, labels = overconfident(3000, seed, sharpness=1.5)
    return p, facts, labels, draw_labels(transition[labels], np.random.default_rng(seed))


@pytest.mark.parametrize("transition", [alike(0.2), alike(0.5), PAIR])
def test_knowing_how_labels_were_made_wrong_the_fit_is_about_true_ones(transition):
    p, facts, labels, given = with_wrong_labels(transition)
    clean, knowing, naive = (
        loss(p, facts, labels, fit_calibrator(p, facts, seen, transition=known))
        for seen, known in ((labels, None), (given, transition), (given, None))
    )
    assert naive > clean + 0.015
    assert knowing - clean < 0.25 * (naive - clean)


@pytest.mark.parametrize("known", [None, alike(0.3), PAIR])
def test_no_step_away_from_the_fit_makes_the_given_labels_likelier(known):
    p, facts, _, given = with_wrong_labels(alike(0.3))
    fitted = fit_calibrator(p, facts, given, transition=known)

    def penalized(sink, heat):
        q = calibrate(p, facts, Calibrator(sink, heat)) @ (np.eye(5) if known is None else known)
        return metrics.negative_log_likelihood(q, given) + 0.5 / len(p) * (
            np.sum(sink[1:] ** 2) + np.sum(heat[1:] ** 2)
        )

    least = penalized(fitted.sink, fitted.heat)
    for step in np.vstack([np.eye(4), -np.eye(4)]) * 0.1:
        for sink, heat in ((fitted.sink + step, fitted.heat), (fitted.sink, fitted.heat + step)):
            if sink[1] >= 0 and heat[1] >= 0 and (known is None or (heat >= 0).all()):
                assert penalized(sink, heat) > least


def test_allowing_for_wrong_labels_only_softens_and_true_ones_change_nothing():
    p, facts, labels = overconfident(sharpness=0.4)
    assert np.quantile(temperature(facts, fit_calibrator(p, facts, labels)), 0.99) < 1
    assert temperature(facts, fit_calibrator(p, facts, labels, transition=alike(0.3))).min() >= 1
    np.testing.assert_array_equal(likelihoods(labels, 5), likelihoods(labels, 5, np.eye(5)))


# ---- The calibrator as a thing


def test_calibrators_are_equal_when_their_numbers_are():
    same = Calibrator(SOME.sink.tolist(), SOME.heat.tolist())
    assert same == SOME
    assert hash(same) == hash(SOME)
    assert Calibrator() != SOME
    assert Calibrator(SOME.sink) != SOME
    assert SOME != "banana"


def test_a_calibrator_cannot_be_changed():
    numbers = np.array([-3.0, 1, 1, 1])
    calibrator = Calibrator(numbers)
    numbers[0] = 7
    assert calibrator.sink[0] == -3
    with pytest.raises(ValueError, match="read-only"):
        calibrator.sink[0] = 7


P, FACTS, LABELS = overconfident(5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Calibrator(np.zeros(3)), "sink must be 4 or 8 finite numbers"),
        (lambda: Calibrator(np.full(4, np.nan)), "sink must be 4 or 8 finite numbers"),
        (lambda: Calibrator(heat=np.full(4, np.inf)), "heat must be 4 or 8 finite numbers"),
        (lambda: Calibrator(np.zeros(8)), "sink and heat must be of one length"),
        (lambda: vote_facts(Surroundings(*[np.ones((2, 2))] * 6), np.ones((2, 2))), "dissent"),
        (lambda: certainty_facts(np.ones((2, 3)), np.ones((3, 2))), "distances and a vote must be of shapes"),
        (lambda: calibrate(P, FACTS[:3], SOME), "p and facts must be of shapes"),
        (lambda: calibrate(P, FACTS[:, :3], SOME), "p and facts must be of shapes"),
        (lambda: fit_calibrator(P[:0], FACTS[:0], LABELS[:0]), "n > 0"),
        (lambda: fit_calibrator(P, FACTS, LABELS[:3]), "p, facts and labels must be of shapes"),
        (lambda: fit_calibrator(P, FACTS[:, :2], LABELS), "p, facts and labels must be of shapes"),
        (lambda: fit_calibrator(5 * P, FACTS, LABELS), "p must hold numbers between 0 and 1"),
        (lambda: fit_calibrator(P * np.nan, FACTS, LABELS), "p must hold numbers between 0 and 1"),
        (lambda: fit_calibrator(P, FACTS / 0.0, LABELS), "facts finite"),
        (lambda: fit_calibrator(P, FACTS, LABELS + 5), "labels must be integers between 0 and 4"),
        (lambda: fit_calibrator(P, FACTS, LABELS * 1.0), "labels must be integers"),
        (lambda: fit_calibrator(P, FACTS, LABELS, ridge=-1), "ridge must not be negative"),
        (
            lambda: fit_calibrator(P, FACTS, LABELS, transition=np.eye(4)),
            "transition must be 5 rows of 5 probabilities",
        ),
        (
            lambda: fit_calibrator(P, FACTS, LABELS, transition=np.eye(5) / 2),
            "transition must be 5 rows of 5 probabilities",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_impossible_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "however:" in str(error.value)
