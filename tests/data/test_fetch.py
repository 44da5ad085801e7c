"""Downloads against a real server: whole, watched, stopped, taken up again, and never half."""

from __future__ import annotations

import gzip
import socket
import threading
from hashlib import md5

import pytest

from attnknn.data import describe_dataset, fetch, fetching, is_here, load_dataset, where_found
from attnknn.errors import DatasetNotHere, DownloadFailed, UnknownDataset
from tests.data.worlds import batches, expect_batches, idx_files, serving, tar_of

MNIST = {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in idx_files(400, 200).items()}
IMAGES = "train-images-idx3-ubyte.gz"
N_BYTES = sum(map(len, MNIST.values()))
TAR = "cifar-10-python.tar.gz"


@pytest.fixture
def server(machine, resize, monkeypatch):
    """Serves a small MNIST, of which torchvision holds addresses and hashes."""
    from torchvision import datasets

    resize("mnist", n_items=600)
    monkeypatch.setitem(fetching.BYTES, "mnist", N_BYTES)
    with serving(dict(MNIST)) as server:
        monkeypatch.setattr(datasets.MNIST, "mirrors", [server.address])
        monkeypatch.setattr(
            datasets.MNIST, "resources", [(name, md5(data).hexdigest()) for name, data in MNIST.items()]
        )
        yield server


class Stopped(Exception):
    pass


def stop_after(n: int):
    """Pause at the n-th asking."""
    left = iter(range(n))

    def pause_point() -> None:
        if next(left, None) is None:
            raise Stopped

    return pause_point


def test_a_download_is_whole_and_then_the_dataset_is_here(machine, server):
    told = []
    fetch("mnist", lambda stage, done, numbers: told.append((stage, done, numbers)))
    cache = machine / "cache" / "attnknn" / "data"
    assert where_found("mnist") == f"torchvision's files in {cache}"
    assert len(load_dataset("mnist").inputs) == 600
    assert sorted(path.name for path in cache.iterdir()) == [".downloads", "MNIST", "arrays"]
    assert [path.name for path in (cache / ".downloads").iterdir()] == ["mnist.lock"]
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages == ["Downloading", "Unpacking", "Decoding"]
    assert told[-1] == ("Decoding", 1.0, {})


def test_progress_counts_bytes_over_all_files(server, monkeypatch):
    monkeypatch.setattr(fetching, "SELDOM", 0)
    told = []
    fetch("mnist", lambda stage, done, numbers: told.append((stage, done)))
    shares = [done for stage, done in told if stage == "Downloading"]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    assert len(MNIST[IMAGES]) / N_BYTES in shares


def test_what_is_here_is_not_downloaded_again(server):
    fetch("mnist")
    server.asked.clear()
    load_dataset.cache_clear()
    fetch("mnist")
    assert server.asked == []


def test_a_stopped_download_is_not_here_and_goes_on_where_it_was(server):
    with pytest.raises(Stopped):
        fetch("mnist", pause_point=stop_after(3))
    assert not is_here("mnist")
    server.asked.clear()
    fetch("mnist")
    first, part = server.asked[0]
    assert first == IMAGES
    assert int(part.removeprefix("bytes=").removesuffix("-")) > 0
    assert len(load_dataset("mnist").inputs) == 600


@pytest.mark.parametrize("knows_parts", [True, False])
def test_a_connection_that_breaks_is_said_and_the_rest_is_fetched_next_time(machine, server, knows_parts):
    server.most, server.knows_parts = 100_000, knows_parts
    with pytest.raises(DownloadFailed) as caught:
        fetch("mnist")
    assert f"The connection ended after 100000 of {len(MNIST[IMAGES])} bytes." in str(caught.value)
    assert not is_here("mnist")
    assert not (machine / "cache" / "attnknn" / "data" / "MNIST").exists()
    server.most = None
    server.asked.clear()
    fetch("mnist")
    assert server.asked[0] == (IMAGES, "bytes=100000-")
    assert len(load_dataset("mnist").inputs) == 600


def test_another_file_of_the_same_name_is_refused_and_not_kept(server):
    server.files[IMAGES] = b"a page that asks for a login"
    with pytest.raises(DownloadFailed, match="sent is not the file that torchvision expects"):
        fetch("mnist")
    assert not is_here("mnist")
    server.files[IMAGES] = MNIST[IMAGES]
    server.asked.clear()
    fetch("mnist")
    assert server.asked[0] == (IMAGES, None)


def test_a_part_longer_than_the_file_is_thrown_away(machine, server):
    raw = machine / "cache" / "attnknn" / "data" / ".downloads" / "mnist" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / f"{IMAGES}.part").write_bytes(bytes(len(MNIST[IMAGES]) + 5))
    fetch("mnist")
    assert len(load_dataset("mnist").inputs) == 600


def test_what_was_unpacked_by_half_is_unpacked_again(machine, server):
    raw = machine / "cache" / "attnknn" / "data" / ".downloads" / "mnist" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name in MNIST:
        (raw / name.removesuffix(".gz")).write_bytes(b"half")
    fetch("mnist")
    assert len(load_dataset("mnist").inputs) == 600


def test_a_half_copy_in_the_cache_is_replaced(machine, server):
    raw = machine / "cache" / "attnknn" / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / IMAGES).write_bytes(b"half")
    fetch("mnist")
    assert len(load_dataset("mnist").inputs) == 600


def test_a_second_mirror_is_asked_when_the_first_does_not_have_it(server, monkeypatch):
    from torchvision import datasets

    monkeypatch.setattr(datasets.MNIST, "mirrors", [f"{server.address}nothing/", server.address])
    fetch("mnist")
    assert server.asked[0][0] == f"nothing/{IMAGES}"
    assert is_here("mnist")


def test_without_a_network_both_ways_out_are_said(machine, monkeypatch):
    from torchvision import datasets

    with socket.socket() as closed:  # bound and not listening: nobody else gets the port, and nobody answers
        closed.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setattr(datasets.CIFAR10, "url", f"http://{host}/{TAR}")
        with pytest.raises(DownloadFailed) as caught:
            fetch("cifar10")
    assert caught.value.expected == f'Downloading the dataset "cifar10" needs an answer from {host}.'
    assert caught.value.received.startswith("There was no answer: ")
    assert caught.value.remedy == f"Try again later, or set ATTNKNN_DATA to {describe_dataset('cifar10').by_hand}."
    assert not is_here("cifar10")


def test_cifars_archive_is_unpacked_and_removed(machine, resize, monkeypatch):
    from torchvision import datasets

    files = batches()
    archive = tar_of(files, "cifar-10-batches-py")
    resize("cifar10", n_items=24)
    expect_batches(monkeypatch, files)
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", md5(archive).hexdigest())
    with serving({TAR: archive}) as server:
        monkeypatch.setattr(datasets.CIFAR10, "url", f"{server.address}{TAR}")
        fetch("cifar10")
    assert load_dataset("cifar10").title == "CIFAR-10"
    assert not list((machine / "cache").rglob(TAR))


def test_two_who_fetch_at_once_download_once(server):
    both = [threading.Thread(target=fetch, args=["mnist"]) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert sorted(name for name, _ in server.asked) == sorted(MNIST)


def test_who_waits_for_another_download_can_be_stopped(machine, server):
    from filelock import FileLock

    folder = machine / "cache" / "attnknn" / "data" / ".downloads"
    folder.mkdir(parents=True)
    with FileLock(folder / "mnist.lock"), pytest.raises(Stopped):
        fetch("mnist", pause_point=stop_after(2))
    assert server.asked == []


def test_a_folder_that_cannot_be_written_is_an_error_of_the_system(machine, server):
    (machine / "cache").write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(OSError, match="cache"):
        fetch("mnist")


def test_a_full_disk_is_an_error_of_the_system_and_nothing_half_is_taken_for_whole(machine, server):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            fetch("mnist")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not is_here("mnist")
    fetch("mnist")
    assert len(load_dataset("mnist").inputs) == 600


def test_tables_say_how_to_put_them_there_and_what_comes_with_the_product_needs_nothing(machine):
    with pytest.raises(DatasetNotHere, match="has to be put there by hand"):
        fetch("wine_red")
    with pytest.raises(UnknownDataset):
        fetch("cifar11")
    fetch("moons")
    assert not (machine / "cache").exists()
