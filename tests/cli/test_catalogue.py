"""What there is: datasets and checkpoints, the damaged ones too."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from attnknn.checkpoints import open_checkpoint
from attnknn.data import describe_datasets, sources

from .conftest import run_process


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine that holds nothing but the product, and the wines in a folder of the visitor's."""
    file = tmp_path / "data" / "uci" / "winequality-red.csv"
    file.parent.mkdir(parents=True)
    file.write_text("", encoding="utf-8")
    monkeypatch.setattr(sources, "SYSTEM_FOLDERS", ())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ATTNKNN_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_datasets_are_the_registered_ones_and_where_they_are(run_json, bare):
    rows = run_json("datasets")["datasets"]
    where = {row["name"]: (row.pop("here"), row.pop("where")) for row in rows}
    assert rows == [asdict(one) | {"shape": list(one.shape)} for one in describe_datasets()]
    assert where["digits"] == (True, "comes with the product")
    assert where["wine_red"] == (True, f"UCI's file in {bare}")
    assert where["cifar10"] == where["adult"] == (False, None)


def test_the_table_says_what_is_here_and_how_to_get_the_rest(run, bare):
    lines = run("datasets").stdout.splitlines()
    table = {line.split()[0]: " ".join(line.split()) for line in reversed(lines) if line.strip()}
    assert "image comes with it 1797" in table["digits"]
    assert "table yes 1599" in table["wine_red"]
    assert "image no; 170 MB 60000" in table["cifar10"]
    assert "table no; by hand 48842" in table["adult"]
    (told,) = (at for at, line in enumerate(lines) if "download NAME, or set ATTNKNN_DATA to" in line)
    names = [line.split(":")[0].strip() for line in lines[told + 2 : told + 7]]
    assert names == ["cifar10", "cifar100", "mnist", "fashion_mnist", "adult"]


def test_the_table_of_datasets_names_each_with_licence_and_source(run):
    table = run("datasets").stdout
    for description in describe_datasets():
        assert f"{description.name}: {description.licence}. {description.source}" in table


def test_datasets_can_be_listed_where_only_latin_letters_can_be_printed(tmp_path):
    assert "spirals" in run_process("datasets", root=tmp_path, PYTHONIOENCODING="cp1252").stdout


def test_a_checkpoint_is_described_key_by_key(run_json, root):
    (row,) = run_json("checkpoints")["checkpoints"]
    card = open_checkpoint("iris", root).card
    measured = next(row for row in card["metrics"] if row["vote"] == "attention" and row["noise_rate"] == 0)
    size = sum(path.stat().st_size for path in (root / "iris").rglob("*") if path.is_file())
    assert row == {
        "name": "iris",
        "title": "Iris flowers, residual attention",
        "dataset": "iris",
        "entries": 84,
        "test_queries": 45,
        "heads": ["nearest", "trusted"],
        "accuracy": measured["accuracy"],
        "accuracy_interval": measured["accuracy_interval"],
        "kilobytes": pytest.approx(size / 1000, abs=0.06),
        "problem": None,
    }


def test_a_damaged_checkpoint_is_listed_with_its_sentence_beside_whole_ones(run, run_json, own_root):
    (own_root / "iris").rename(own_root / "whole")
    broken = own_root / "broken"
    (broken / "bundle").mkdir(parents=True)
    (broken / "card.json").write_text((own_root / "whole" / "card.json").read_text(), encoding="utf-8")
    rows = {row["name"]: row for row in run_json("checkpoints", root=own_root)["checkpoints"]}
    assert rows["whole"]["problem"] is None
    assert rows["whole"]["entries"] == 84
    assert "It is missing." in rows["broken"]["problem"]
    assert rows["broken"]["accuracy"] is rows["broken"]["title"] is None
    table = run("checkpoints", root=own_root).stdout
    assert f"broken: {rows['broken']['problem']}" in table
    assert "whole: Iris flowers" in table


def test_a_card_without_measurements_is_listed_all_the_same(run, run_json, own_root):
    card = own_root / "iris" / "card.json"
    values = json.loads(card.read_text(encoding="utf-8"))
    del values["metrics"]
    card.write_text(json.dumps(values), encoding="utf-8")
    (row,) = run_json("checkpoints", root=own_root)["checkpoints"]
    assert row["problem"] is row["accuracy"] is row["accuracy_interval"] is None
    assert row["entries"] == 84
    assert "iris" in run("checkpoints", root=own_root).stdout


def test_an_empty_folder_says_how_to_fill_it(run, run_json, tmp_path):
    assert run_json("checkpoints", root=tmp_path / "nowhere") == {"checkpoints": []}
    assert "python -m attnknn train digits" in run("checkpoints", root=tmp_path).stdout
