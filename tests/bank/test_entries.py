"""An observation: what is computed for few entries is what is computed for all."""

from __future__ import annotations

import numpy as np
import pytest

from attnknn.bank import entries as module
from attnknn.bank import entry_neighborhoods
from attnknn.bank.entries import Entries, observe, stack, surround
from attnknn.bank.neighbors import Neighbors
from attnknn.bank.walk import relabel
from attnknn.config import LabelNoise
from tests.bank.worlds import cloud

NOISE = LabelNoise("symmetric", 0.4, seed=1)


@pytest.fixture
def bank() -> Entries:
    world = cloud(300, 1)
    neighborhoods = entry_neighborhoods(world.keys, world.ids, world.groups)
    keys, labels = world.keys.astype(np.float32), world.labels.astype(np.int32)
    return Entries(np.asarray(world.ids), keys, labels, world.groups.astype(np.int32), neighborhoods, 10)


def test_few_entries_are_judged_as_all_are(bank: Entries, monkeypatch):
    monkeypatch.setattr(module, "SMALL", 0)
    rows = np.array([[3, 299, 3], [0, 17, 42]])
    some, every = observe(bank, NOISE), observe(bank, NOISE)
    np.testing.assert_array_equal(some.trust_of(rows), every.trust[rows])
    np.testing.assert_allclose(some.contrast_of(rows), every.contrast[rows], atol=1e-12)
    assert not {"trust", "contrast"} & set(vars(some)), "nothing was computed for the others"
    np.testing.assert_array_equal(every.trust_of(rows), every.trust[rows])


def test_many_entries_are_judged_at_once_and_remembered(bank: Entries, monkeypatch):
    monkeypatch.setattr(module, "SMALL", 0)
    seen, rows = observe(bank, NOISE), np.arange(200).reshape(20, 10)
    seen.trust_of(rows)
    assert "trust" in vars(seen)
    assert seen.trust is seen.trust


def test_an_observation_counts_what_it_shows(bank: Entries):
    seen = observe(bank, NOISE)
    np.testing.assert_array_equal(seen.is_flipped, seen.labels != bank.labels)
    assert 0.25 < seen.is_flipped.mean() < 0.55
    assert seen.prior.tolist() == [float(np.mean(seen.labels == c)) for c in range(10)]


def test_class_averages_are_of_those_who_survive_editing_and_no_hand_decides_who(bank: Entries):
    seen = observe(bank, NOISE)
    kept = seen.keeps_label
    assert 0.1 < kept.mean() < 0.9
    for c in range(10):
        total = bank.keys[kept & (seen.labels == c)].astype(np.float64).sum(axis=0)
        np.testing.assert_allclose(seen.prototypes[c], total / np.linalg.norm(total), atol=1e-6)
    left_out, counted = (int(np.flatnonzero(one)[0]) for one in (~kept, kept))
    for row, is_moved in ((left_out, False), (counted, True)):
        changed = relabel(seen, {str(bank.ids[row]): int(seen.labels[row] + 1) % 10})
        assert np.allclose(changed.prototypes, seen.prototypes, atol=1e-9) != is_moved
        again = relabel(changed, {str(bank.ids[row]): int(seen.labels[row])})
        np.testing.assert_array_equal(again.prototypes, seen.prototypes)


def test_stacked_draws_lie_under_one_another(bank: Entries):
    neighbors = Neighbors(np.array([[1, 2, 3]]), np.array([[0.1, 0.2, 0.3]]))
    draws = [observe(bank, LabelNoise("pair", rate, 2)) for rate in (0.0, 0.5, 0.9)]
    parts = [surround(bank.keys[:1], neighbors, seen) for seen in draws]
    together = stack(parts)
    assert together.keys is None
    for place, part in enumerate(parts):
        np.testing.assert_array_equal(together.labels[place], part.labels[0])
        np.testing.assert_array_equal(together.trust[place], part.trust[0])
