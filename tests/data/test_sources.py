"""Where data is looked for, and what is said when it is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from attnknn.data import dataset_names, describe_dataset, is_here, load_dataset, sources, where_found
from attnknn.errors import DatasetNotHere, UnknownDataset
from tests.data.worlds import write_batches, write_idx, write_zip, zip_members

ELSEWHERE = ("cifar10", "cifar100", "mnist", "fashion_mnist", "wine_red", "adult")


def test_a_bare_machine_holds_what_comes_with_the_product_and_nothing_else(machine):
    assert {name for name in dataset_names() if not is_here(name)} == {*ELSEWHERE}
    assert [where_found(name) for name in ("digits", "mnist")] == ["comes with the product", None]


def test_the_folder_of_the_visitor_comes_before_the_cache_and_the_cache_before_the_system(machine):
    places = {"system": "fashion-mnist", "cache/attnknn/data": "FashionMNIST/raw", "data": "FashionMNIST/raw"}
    for folder, layout in places.items():
        write_idx(machine / folder / layout)
        assert where_found("fashion_mnist").endswith(f" in {machine / folder}")


def test_in_one_folder_torchvisions_files_come_before_a_zip(machine):
    write_zip(machine / "data" / "cifar10-images.zip", zip_members())
    assert where_found("cifar10") == f"cifar10-images.zip in {machine / 'data'}"
    write_batches(machine / "data" / "cifar-10-batches-py")
    assert where_found("cifar10") == f"torchvision's files in {machine / 'data'}"


def test_a_set_of_which_one_file_is_missing_is_not_here(machine):
    raw = write_idx(machine / "data" / "MNIST" / "raw", packed=True)
    assert is_here("mnist")
    (raw / "t10k-labels-idx1-ubyte.gz").unlink()
    assert not is_here("mnist")


def test_a_table_is_not_looked_for_in_packed_form(machine):
    folder = machine / "data" / "uci"
    folder.mkdir(parents=True)
    (folder / "winequality-red.csv.gz").write_bytes(b"")
    assert not is_here("wine_red")
    (folder / "winequality-red.csv").write_bytes(b"")
    assert is_here("wine_red")


def test_without_variables_the_cache_is_in_the_home_folder(monkeypatch):
    monkeypatch.delenv("ATTNKNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/paths/are/to/be/ignored")
    assert sources.data_folders() == [Path.home() / ".cache" / "attnknn" / "data", *sources.SYSTEM_FOLDERS]


def test_a_tilde_means_the_home_folder(monkeypatch):
    monkeypatch.setenv("ATTNKNN_DATA", "~/my data")
    assert sources.data_folders()[0] == Path.home() / "my data"


def test_a_downloadable_set_that_is_not_here_offers_both_ways_out(machine):
    with pytest.raises(DatasetNotHere) as caught:
        load_dataset("cifar10")
    assert str(caught.value) == (
        'The dataset "cifar10" must be on this machine. It is not; it is a download of 170 MB. '
        "Download it with: python -m attnknn download cifar10. Or set ATTNKNN_DATA to a folder that holds "
        "cifar-10-batches-py, as torchvision lays it out, or cifar10-images.zip."
    )


def test_a_table_that_is_not_here_says_where_to_get_its_files(machine):
    with pytest.raises(DatasetNotHere) as caught:
        load_dataset("adult")
    assert str(caught.value) == (
        'The dataset "adult" must be on this machine. It is not, and has to be put there by hand. '
        "Set ATTNKNN_DATA to a folder that holds uci/adult.data and uci/adult.test, which are at "
        "https://archive.ics.uci.edu/dataset/2/adult."
    )


def test_what_was_not_here_can_be_loaded_once_it_is(machine, resize):
    resize("mnist", n_items=60)
    with pytest.raises(DatasetNotHere):
        load_dataset("mnist")
    write_idx(machine / "data" / "MNIST" / "raw")
    assert len(load_dataset("mnist").inputs) == 60


@pytest.mark.parametrize("name", dataset_names())
def test_a_description_says_what_can_be_downloaded(name):
    about = describe_dataset(name)
    assert bool(about.download) == bool(about.by_hand) == (name in ELSEWHERE)
    assert about.can_be_downloaded == (name in ELSEWHERE[:4])


@pytest.mark.parametrize("ask", [is_here, where_found, describe_dataset])
def test_an_unknown_name_is_said_to_be_unknown(ask):
    with pytest.raises(UnknownDataset, match='Did you mean "cifar10"'):
        ask("cifar-10")


def test_looking_imports_no_library_that_takes_time():
    slow = ["torch", "torchvision", "sklearn", "pandas", "PIL"]
    script = f"""
import sys
from attnknn.data import dataset_names, is_here
[is_here(name) for name in dataset_names()]
print([name for name in {slow} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
