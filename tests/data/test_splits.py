"""A split keeps duplicates together, classes in proportion, and never moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnknn.data import describe_datasets, group_duplicates, load_dataset, split_by_group
from tests.data.oracles import slow_groups, slow_quotas, slow_split

SHARES = st.floats(0.05, 0.95)
SEEDS = st.integers(0, 2**31)


@st.composite
def grouped_labels(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    labels = draw(st.lists(st.integers(0, 3), min_size=1, max_size=50))
    groups = draw(st.lists(st.integers(0, 60), min_size=len(labels), max_size=len(labels)))
    return np.array(labels), np.array(groups)


@given(hnp.arrays(np.float64, st.tuples(st.integers(0, 12), st.just(2)), elements=st.sampled_from([-0.0, 0.0, 1.5])))
def test_groups_equal_their_slow_twin(inputs):
    assert group_duplicates(inputs).tolist() == slow_groups(inputs)


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 12), st.just(2), st.just(2)), elements=st.integers(0, 1)))
def test_images_are_grouped_too(images):
    assert group_duplicates(images).tolist() == slow_groups(images)


@given(grouped_labels(), SHARES, SEEDS)
def test_a_split_equals_its_slow_twin(items, share, seed):
    labels, groups = items
    held = split_by_group(labels, groups, share, seed)
    assert held.tolist() == slow_split(labels.tolist(), groups.tolist(), share, seed)


@given(grouped_labels(), SHARES, SEEDS)
def test_no_group_straddles_and_no_class_exceeds_its_quota(items, share, seed):
    labels, groups = items
    held = split_by_group(labels, groups, share, seed)
    assert not set(groups[held]) & set(groups[~held])
    for c in range(4):
        assert (labels[held] == c).sum() < share * (labels == c).sum() + 1


@given(grouped_labels(), SHARES, SEEDS)
def test_without_duplicates_every_quota_is_filled(items, share, seed):
    labels = items[0]
    held = split_by_group(labels, np.arange(len(labels)), share, seed)
    quotas = slow_quotas(labels.tolist(), share)
    assert {c: (labels[held] == c).sum() for c in quotas} == quotas
    assert share * len(labels) - 1e-6 <= held.sum() < share * len(labels) + 1


@given(grouped_labels(), SHARES, SEEDS)
def test_a_class_misses_less_than_its_largest_group(items, share, seed):
    labels, groups = items
    groups = groups * 4 + labels
    held = split_by_group(labels, groups, share, seed)
    for c, places in slow_quotas(labels.tolist(), share).items():
        largest = np.bincount(groups[labels == c]).max()
        assert places - largest < (labels[held] == c).sum() <= places


@given(grouped_labels(), SHARES, SEEDS, st.randoms(use_true_random=False))
def test_the_order_of_items_does_not_matter(items, share, seed, random):
    labels, groups = items
    order = random.sample(range(len(labels)), k=len(labels))
    shuffled = split_by_group(labels[order], groups[order], share, seed)
    assert (shuffled == split_by_group(labels, groups, share, seed)[order]).all()


def test_every_item_is_held_out_by_its_share_of_seeds():
    labels, groups = np.repeat([0, 1], 20), np.arange(40) // 2
    held = np.mean([split_by_group(labels, groups, 0.3, seed) for seed in range(2000)], axis=0)
    assert np.abs(held - 0.3).max() < 5 * np.sqrt(0.3 * 0.7 / 2000)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5])
def test_a_share_of_nothing_or_everything_is_refused(share):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        split_by_group(np.array([0, 1]), np.array([0, 1]), share, seed=0)


BUNDLED = [one.name for one in describe_datasets() if not one.download]


@pytest.mark.parametrize("name", BUNDLED)
def test_a_test_part_is_as_large_as_scikit_learns(name):
    from sklearn.model_selection import train_test_split

    dataset = load_dataset(name)
    _, theirs = train_test_split(dataset.labels, test_size=0.3, stratify=dataset.labels, random_state=0)
    ours = dataset.labels[dataset.where("test")]
    assert len(ours) == len(theirs)
    assert np.abs(np.bincount(ours) - np.bincount(theirs)).max() <= 1
