"""The memory bank: FAISS proposes, and must end where brute force ends."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnknn.bank import INDEX_KINDS, MemoryBank, entry_neighborhoods, memory, search_exact
from attnknn.errors import DamagedCheckpoint, InputError, MissingLibrary, SchemaMismatch, SettingError
from tests import oracles
from tests.bank.worlds import World, cloud, law, unit, worlds

EXACT = ("exact", "l2")


def bank_of(world: World, index="exact") -> MemoryBank:
    return MemoryBank.build(world.keys, world.labels, world.ids, world.groups, index)


def assert_same(found, expected):
    assert found.entries.tolist() == expected.entries.tolist()
    assert found.distances.tolist() == expected.distances.tolist()


@pytest.mark.parametrize("index", EXACT)
@law
@given(world=worlds(), data=st.data())
def test_exact_indexes_equal_brute_force(index, world: World, data: st.DataObject):
    """Law 10, with ties, ids and duplicate groups."""
    k = data.draw(st.integers(1, world.n))
    found = bank_of(world, index).search(world.queries, k)
    for b, query in enumerate(world.queries):
        twin = oracles.nearest(world.keys, world.ids, query, k)
        assert (found.entries[b].tolist(), found.distances[b].tolist()) == twin


@pytest.mark.parametrize("index", EXACT)
@pytest.mark.parametrize("k", [1, 16, 100])
def test_exact_indexes_equal_brute_force_on_a_large_bank(index, k):
    world = cloud(1500, 200)
    bank = bank_of(world, index)
    assert_same(bank.search(world.queries, k), search_exact(world.keys, world.queries, k, world.ids))
    assert bank.recall(world.queries, k) == 1.0


@pytest.mark.parametrize("index", EXACT)
@law
@given(world=worlds(), size=st.integers(1, 30))
def test_neighborhoods_equal_those_of_brute_force(index, world: World, size: int):
    found = bank_of(world, index).neighborhoods(size)
    assert found.tolist() == entry_neighborhoods(world.keys, world.ids, world.groups, size).tolist()


@pytest.mark.parametrize("index", INDEX_KINDS)
def test_a_query_never_votes_for_itself_nor_do_its_duplicates(index):
    """Law 3, with far more duplicates than the index is asked for."""
    world = cloud(400, 1)
    keys, groups = world.keys.copy(), world.groups.copy()
    keys[:120], groups[:120] = keys[0], 0
    bank = MemoryBank.build(keys, world.labels, world.ids, groups, index)
    found = bank.search(keys, 5, exclude_ids=world.ids, exclude_groups=groups)
    assert (groups[found.entries] != groups[:, None]).all()
    alone = bank.search(keys, 5, exclude_ids=world.ids)
    assert (alone.entries != np.arange(400)[:, None]).all()
    assert (alone.distances[:120] == 0).all()
    if index in EXACT:
        assert_same(found, search_exact(keys, keys, 5, world.ids, groups, world.ids, groups))


@pytest.mark.parametrize("index", EXACT)
def test_a_tie_at_the_last_rank_goes_to_the_smaller_id(index):
    keys = unit([[1, 0]] * 300 + [[0, 1]] * 50)
    ids = np.array([f"{i:03d}" for i in np.random.default_rng(0).permutation(350)])
    found = MemoryBank.build(keys, np.zeros(350), ids, index=index).search(unit([[1, 0.2]]), 7)
    assert ids[found.entries[0]].tolist() == sorted(ids[:300])[:7]


@pytest.mark.parametrize("index", ["hnsw", "ivf"])
def test_approximate_indexes_report_their_true_recall(index):
    world = cloud(2500, 150, dimension=32)
    bank = bank_of(world, index)
    found = bank.search(world.queries, 16)
    true = search_exact(world.keys, world.queries, 16, world.ids)
    hits = sum(len(set(a) & set(b)) for a, b in zip(found.entries.tolist(), true.entries.tolist(), strict=True))
    assert bank.recall(world.queries, 16) == hits / (150 * 16)
    assert bank.recall(world.queries, 16) > 0.8
    assert (np.diff(found.distances, axis=1) >= 0).all()


def test_recall_falls_when_an_index_looks_into_one_cell_only():
    world = cloud(2500, 150, dimension=32)
    bank = bank_of(world, "ivf")
    before = bank.recall(world.queries, 16)
    bank._index.nprobe = 1
    assert bank.recall(world.queries, 16) < before - 0.01


@pytest.mark.parametrize("index", INDEX_KINDS)
def test_every_index_serves_every_k(index):
    """An approximate index that comes up short is helped out."""
    world = cloud(60, 4)
    found = bank_of(world, index).search(world.queries, 60)
    assert_same(found, search_exact(world.keys, world.queries, 60, world.ids))


def test_large_batches_are_cut_without_a_trace(monkeypatch):
    world = cloud(300, 90)
    bank = bank_of(world)
    whole = bank.search(world.queries, 8, exclude_groups=np.arange(90))
    monkeypatch.setattr("attnknn.bank.exact.CHUNK", 5000)
    assert_same(bank.search(world.queries, 8, exclude_groups=np.arange(90)), whole)


def test_a_bank_cannot_be_changed_from_outside():
    world = cloud(20, 1)
    bank, keys = bank_of(world), world.keys
    before = bank.search(world.queries, 3).entries
    keys[:] = 0
    assert (bank.search(world.queries, 3).entries == before).all()
    with pytest.raises(ValueError, match="read-only"):
        bank.labels[0] = 5


def test_wrong_questions_get_a_sentence():
    world = cloud(12, 1)
    bank = bank_of(world)
    assert (bank.n_entries, bank.dimension) == (12, 16)
    with pytest.raises(InputError, match=r"holds keys of dimension 16, but the queries have dimension 3. Rebuild"):
        bank.search(np.eye(3), 1)
    with pytest.raises(SettingError, match=r"between 1 and 12. It was 13. The memory bank holds 12 entries"):
        bank.search(world.queries, 13)
    with pytest.raises(SettingError, match="at most 11"):
        bank.search(world.keys[:1], 12, exclude_ids=world.ids[:1])
    with pytest.raises(SettingError, match=r"index must be one of exact, l2, hnsw, ivf. It was annoy."):
        bank_of(world, "annoy")
    with pytest.raises(ValueError, match="one label per key"):
        MemoryBank.build(world.keys, [1], world.ids)


@pytest.mark.parametrize("index", INDEX_KINDS)
def test_what_is_saved_is_what_is_loaded(index, tmp_path):
    world = cloud(500, 40)
    bank = bank_of(world, index)
    bank.save(tmp_path / "Bänk")
    again = MemoryBank.load(tmp_path / "Bänk")
    assert again.kind == index
    for name in ("keys", "labels", "ids", "groups"):
        one, two = getattr(bank, name), getattr(again, name)
        assert one.dtype == two.dtype
        assert (one == two).all()
    assert_same(again.search(world.queries, 9), bank.search(world.queries, 9))


@pytest.fixture
def folder(tmp_path):
    bank_of(cloud(50, 1)).save(tmp_path / "toy")
    return tmp_path / "toy"


FILES = ("index.faiss", "keys.npy", "labels.npy", "ids.npy", "groups.npy")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["truncated", "altered", "missing"])
def test_a_damaged_file_is_refused_by_name(folder, name, damage):
    path = folder / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-9] if damage == "truncated" else content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DamagedCheckpoint, match=rf'{name}.*Restore the folder of checkpoint "toy"'):
        MemoryBank.load(folder)


@pytest.mark.parametrize(
    "content", ["", "[", "\udcff", '{"schema": 1}', '{"schema": 1, "index": "exact", "files": {}}']
)
def test_a_damaged_card_is_refused(folder, content):
    (folder / "bank.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(DamagedCheckpoint, match=r"bank\.json must"):
        MemoryBank.load(folder)


def test_a_folder_without_a_card_or_with_a_newer_one_is_refused(folder):
    card = json.loads((folder / "bank.json").read_text())
    (folder / "bank.json").write_text(json.dumps(card | {"schema": 2}))
    with pytest.raises(SchemaMismatch, match="schema 2"):
        MemoryBank.load(folder)
    (folder / "bank.json").unlink()
    with pytest.raises(DamagedCheckpoint, match=r"bank\.json. It is missing"):
        MemoryBank.load(folder)


def test_files_that_do_not_belong_together_are_refused(folder, tmp_path):
    """Each file is whole and sealed, yet the card speaks of another bank."""
    card = json.loads((folder / "bank.json").read_text())
    (folder / "bank.json").write_text(json.dumps(card | {"n_entries": 49}))
    with pytest.raises(DamagedCheckpoint, match=r"keys\.npy must have shape \(49, 16\)"):
        MemoryBank.load(folder)
    bank_of(cloud(40, 1)).save(tmp_path / "other")
    (folder / "index.faiss").write_bytes((tmp_path / "other" / "index.faiss").read_bytes())
    seal = json.loads((tmp_path / "other" / "bank.json").read_text())["files"]["index.faiss"]
    (folder / "bank.json").write_text(json.dumps(card | {"files": card["files"] | {"index.faiss": seal}}))
    with pytest.raises(DamagedCheckpoint, match=r"index\.faiss must hold the keys. It holds 40"):
        MemoryBank.load(folder)


def test_nothing_in_a_saved_bank_needs_pickle(folder):
    assert {path.name for path in folder.iterdir()} == {*FILES, "bank.json"}
    for name in FILES[1:]:
        np.load(folder / name, allow_pickle=False)


def test_without_faiss_a_search_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingLibrary, match=r"Searching a memory bank needs faiss-cpu.*pip install"):
        bank_of(cloud(10, 1))


def test_on_macos_torch_comes_before_faiss_and_faiss_keeps_to_one_thread(monkeypatch):
    import faiss

    order = []
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(memory.importlib, "import_module", lambda name: order.append(name) or faiss)
    monkeypatch.setattr(faiss, "omp_set_num_threads", lambda n: order.append(n))
    assert memory._faiss() is faiss
    assert order == ["torch", "faiss", 1]


def test_importing_the_bank_imports_no_search_library():
    code = (
        "import sys, attnknn.bank; "
        "print(sorted({'faiss', 'torch', 'sklearn', 'scipy', 'pandas', 'umap', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
