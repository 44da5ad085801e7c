"""A walk through the noise says at every stop what the bank says there."""

import numpy as np
import pytest

import attnknn
from attnknn import LabelNoise
from attnknn.bank.entries import Observation
from attnknn.bank.statistics import NEIGHBORHOOD
from attnknn.bank.walk import RATES, NoiseWalk, relabel, walk_noise
from attnknn.config import NOISE_KINDS
from attnknn.data.noise import draw_noise

SEED = 7
STOPS = (0, 1, 37, 60, 90)


@pytest.fixture(scope="module", params=["iris", "breast_cancer", "digits"])
def trained(request):
    return attnknn.load(request.param)


@pytest.fixture(scope="module")
def walk(trained) -> NoiseWalk:
    others = [trained.observe(LabelNoise(kind, 1.0, SEED)).labels for kind in NOISE_KINDS]
    return walk_noise(trained.entries, draw_noise(trained.entries.ids, SEED), others)


def assert_same(walk: NoiseWalk, kind: int, stop: int, seen: Observation) -> None:
    np.testing.assert_array_equal(walk.labels_of(np.arange(len(seen.entries)))[kind, stop], seen.labels)
    some = seen.entries.table.keys[::7]
    np.testing.assert_allclose(walk.cosines(some)[kind, stop], seen.prototypes @ some.T, atol=1e-9)
    np.testing.assert_array_equal(walk.counts[kind, stop] / len(seen.entries), seen.prior)
    assert walk.dissents[kind, stop] == pytest.approx(seen.dissent, abs=1e-12)


@pytest.mark.parametrize("kind", range(len(NOISE_KINDS)))
def test_every_stop_is_the_bank_at_that_rate(trained, walk, kind):
    for stop in STOPS:
        assert_same(walk, kind, stop, trained.observe(LabelNoise(NOISE_KINDS[kind], RATES[stop], SEED)))


@pytest.mark.parametrize("kind", range(len(NOISE_KINDS)))
def test_labels_changed_by_hand_are_changed_at_every_stop(trained, walk, kind):
    rng = np.random.default_rng(kind)
    row = int(rng.integers(len(trained.entries)))
    near = trained.entries.neighborhoods[row, :3].tolist()  # they are in each other's neighborhoods
    flips = {one: int(rng.integers(trained.entries.n_classes)) for one in (row, *near)}
    changed = walk.change_labels(flips)
    by_id = {str(trained.entries.ids[one]): label for one, label in flips.items()}
    for stop in STOPS:
        seen = trained.observe(LabelNoise(NOISE_KINDS[kind], RATES[stop], SEED))
        assert_same(changed, kind, stop, relabel(seen, by_id))
        assert_same(walk, kind, stop, seen)


def test_followers_are_the_others_who_have_one_in_their_neighborhood(walk):
    near, rows = walk.entries.neighborhoods[:, :NEIGHBORHOOD], np.array([3, int(walk.entries.neighborhoods[3, 0])])
    pairs = list(zip(*walk.followers_of(rows), strict=True))
    others = [j for j in range(len(near)) if j not in rows]
    assert sorted(pairs) == sorted((j, i) for j in others for i in near[j] if i in rows)


def test_no_flip_is_no_change(walk):
    assert walk.change_labels({}) is walk


def test_only_entries_and_classes_that_exist_are_changed(trained):
    seen = trained.observe(LabelNoise())
    with pytest.raises(ValueError, match="entries of the bank, however: 'nobody'"):
        relabel(seen, {"nobody": 0})
    with pytest.raises(ValueError, match="a label must be in"):
        relabel(seen, {str(trained.entries.ids[0]): trained.entries.n_classes})
