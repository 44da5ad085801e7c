"""Exact search: the rule of distances, ties and exclusions, against its slow twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnknn.bank import Neighbors, entry_neighborhoods, exact, search_exact
from attnknn.errors import InputError, SettingError
from tests import oracles
from tests.bank.worlds import World, cloud, law, unit, worlds


def test_neighbors_hold_a_row_per_query_and_know_their_similarities():
    found = Neighbors(np.array([[3, 1]]), np.array([[0.0, 2.0]]))
    assert (found.n_queries, found.k) == (1, 2)
    assert found.similarities.tolist() == [[1.0, -1.0]]
    with pytest.raises(ValueError, match=r"\(B, K\)"):
        Neighbors(np.zeros((2, 3)), np.zeros((2, 2)))


@law
@given(worlds(), st.data())
def test_search_finds_what_its_slow_twin_finds(world: World, data: st.DataObject):
    k = data.draw(st.integers(1, world.n))
    found = search_exact(world.keys, world.queries, k, world.ids)
    for b, query in enumerate(world.queries):
        rows, distances = oracles.nearest(world.keys, world.ids, query, k)
        assert found.entries[b].tolist() == rows
        assert found.distances[b].tolist() == distances


@law
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_the_bank_does_not_matter(world: World, random):
    """Law 2: ties are broken by id, so a shuffled bank answers with the same ids."""
    order = np.array(random.sample(range(world.n), world.n))
    other = world.shuffled(order)
    k = min(5, world.n)
    one = search_exact(world.keys, world.queries, k, world.ids)
    two = search_exact(other.keys, world.queries, k, other.ids)
    assert (world.ids[one.entries] == other.ids[two.entries]).all()
    assert (one.distances == two.distances).all()


def test_equal_keys_are_equally_far_and_come_in_the_order_of_their_ids():
    keys = unit([[1, 2, 3]] * 4 + [[3, 2, 1]])
    found = search_exact(keys, unit([[1, 2, 3], [1, 1, 0]]), 4, ["d", "b", "c", "a", "0"])
    assert found.entries[0].tolist() == [3, 1, 2, 0]
    assert found.distances[0].tolist() == [0.0] * 4
    assert found.entries[1].tolist() == [4, 3, 1, 2]


@law
@given(worlds())
def test_a_query_never_retrieves_itself_nor_its_duplicates(world: World):
    """Law 3, for queries that are entries."""
    rows = np.flatnonzero(np.bincount(world.groups)[world.groups] < world.n)
    k = world.n - int(np.bincount(world.groups).max())
    if not (len(rows) and k):
        return
    ids, groups = world.ids[rows], world.groups[rows]
    found = search_exact(world.keys, world.keys[rows], k, world.ids, world.groups, ids, groups)
    assert (world.groups[found.entries] != groups[:, None]).all()
    for b, row in enumerate(rows):
        twin = oracles.nearest(world.keys, world.ids, world.keys[row], k, world.groups, ids[b], groups[b])
        assert (found.entries[b].tolist(), found.distances[b].tolist()) == twin


@law
@given(worlds())
def test_excluding_an_id_alone_leaves_its_duplicates(world: World):
    found = search_exact(world.keys, world.keys, world.n - 1, world.ids, exclude_ids=world.ids)
    for row in range(world.n):
        assert set(found.entries[row]) == set(range(world.n)) - {row}


def test_an_exclusion_may_be_nobody():
    world = cloud(30, 3)
    everyone = search_exact(world.keys, world.queries, 5, world.ids)
    nobody = search_exact(
        world.keys, world.queries, 5, world.ids, world.groups, [None, "cloud/test/0", None], [-1, -1, -1]
    )
    assert (everyone.entries == nobody.entries).all()
    one = search_exact(world.keys, world.queries, 5, world.ids, world.groups, None, [-1, everyone.entries[1, 0], -1])
    assert (one.entries[[0, 2]] == everyone.entries[[0, 2]]).all()
    assert one.entries[1].tolist()[:4] == everyone.entries[1].tolist()[1:]


def test_group_minus_one_is_no_group():
    found = search_exact(np.eye(3), np.eye(3)[:2], 2, list("abc"), [-1, -1, 4], exclude_groups=[-1, 4])
    assert found.entries.tolist() == [[0, 1], [1, 0]]


def test_the_first_neighbors_are_those_of_a_smaller_search():
    world = cloud(200, 20)
    wide = search_exact(world.keys, world.queries, 40, world.ids)
    for k in (1, 7, 40):
        narrow = search_exact(world.keys, world.queries, k, world.ids)
        assert (wide.first(k).entries == narrow.entries).all()
        assert (wide.first(k).distances == narrow.distances).all()
    with pytest.raises(SettingError, match="Only 40 neighbors were retrieved"):
        wide.first(41)


def test_searching_in_pieces_changes_nothing(monkeypatch):
    world = cloud(100, 33)
    whole = search_exact(world.keys, world.queries, 9, world.ids)
    monkeypatch.setattr(exact, "CHUNK", 750)
    pieces = search_exact(world.keys, world.queries, 9, world.ids)
    assert (whole.entries == pieces.entries).all()


def test_no_queries_have_no_neighbors():
    world = cloud(10, 1)
    assert search_exact(world.keys, world.queries[:0], 3, world.ids).entries.shape == (0, 3)


def test_queries_of_another_dimension_are_told_what_to_do():
    with pytest.raises(InputError) as caught:
        search_exact(np.eye(4), np.eye(3), 1, list("abcd"))
    assert str(caught.value) == (
        "The memory bank holds keys of dimension 4, but the queries have dimension 3. "
        "Rebuild the bank with the embedder that made the queries."
    )


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="queries must be finite numbers"):
        search_exact(np.eye(2), np.array([[np.nan, 1.0]]), 1, ["a", "b"])
    with pytest.raises(InputError, match=r"shape \(2,\)"):
        search_exact(np.eye(2), np.ones(2), 1, ["a", "b"])


@pytest.mark.parametrize("k", [0, -1, 13, 2.5, True])
def test_a_k_out_of_range_is_told_the_range(k):
    world = cloud(12, 1)
    with pytest.raises(SettingError, match=f"k must be a whole number between 1 and 12. It was {k}. The memory bank"):
        search_exact(world.keys, world.queries, k, world.ids)


def test_a_k_beyond_what_exclusions_leave_is_told_how_many_are_left():
    world = cloud(12, 1)
    with pytest.raises(SettingError, match="k must be at most 11, the entries that every query may retrieve"):
        search_exact(world.keys, world.keys[:1], 12, world.ids, exclude_ids=world.ids[:1])


def test_mistakes_of_our_own_are_value_errors():
    with pytest.raises(ValueError, match="unique"):
        search_exact(np.eye(2), np.eye(2), 1, ["a", "a"])
    with pytest.raises(ValueError, match="one id and group per key"):
        search_exact(np.eye(2), np.eye(2), 1, ["a"])
    with pytest.raises(ValueError, match="one exclusion per query"):
        search_exact(np.eye(2), np.eye(2), 1, ["a", "b"], exclude_ids=["a"])
    with pytest.raises(ValueError, match="needs the groups"):
        search_exact(np.eye(2), np.eye(2), 1, ["a", "b"], exclude_groups=[0, 1])


@law
@given(worlds())
def test_neighborhoods_hold_the_nearest_others_and_pad_at_the_end(world: World):
    neighborhoods = entry_neighborhoods(world.keys, world.ids, world.groups, size=6)
    assert neighborhoods.dtype == np.int32
    assert neighborhoods.shape == (world.n, 6)
    for row in range(world.n):
        rows, _ = oracles.nearest(
            world.keys, world.ids, world.keys[row], 6, world.groups, world.ids[row], world.groups[row]
        )
        assert neighborhoods[row].tolist() == rows + [-1] * (6 - len(rows))
