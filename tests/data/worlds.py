"""Small real files in every format that datasets come in, and a server that hands them out."""

from __future__ import annotations

import gzip
import pickle
import re
import tarfile
import zipfile
from contextlib import contextmanager
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread

import numpy as np
from PIL import Image

from attnknn.data.pictures import CIFAR10_CLASSES, IDX_FILES


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def idx_bytes(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.tobytes()


def idx_files(n_train: int = 40, n_test: int = 20) -> dict[str, bytes]:
    """The four files of a set like MNIST: labels count 0 to 9, again and again."""
    parts = {}
    for seed, (part, n) in enumerate({"train": n_train, "t10k": n_test}.items()):
        parts[f"{part}-images-idx3-ubyte"] = idx_bytes(draw(n, 28, 28, seed=seed))
        parts[f"{part}-labels-idx1-ubyte"] = idx_bytes(np.arange(n, dtype=np.uint8) % 10)
    assert tuple(parts) == IDX_FILES
    return parts


def write_idx(folder: Path, packed: bool = False, **counts: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in idx_files(**counts).items():
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(content) if packed else content)
    return folder


def image_bytes(pixels: np.ndarray, form: str = "JPEG") -> bytes:
    content = BytesIO()
    Image.fromarray(pixels).save(content, form)
    return content.getvalue()


def zip_members(n_train: int = 2, n_test: int = 1) -> dict[str, bytes]:
    """Images of every class, each of one gray, in an order of their own: test first, classes backwards."""
    counts = {"test": n_test, "train": n_train}
    names = [
        f"{split}/{name}/{i:04}.jpg" for split, n in counts.items() for name in CIFAR10_CLASSES[::-1] for i in range(n)
    ]
    return {name: image_bytes(np.full((32, 32, 3), 4 * row, dtype=np.uint8)) for row, name in enumerate(names)}


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def batches() -> dict[str, bytes]:
    """CIFAR-10's files as they are, pickles too, with four images in each batch."""
    files = {}
    for seed, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        labels = [(4 * seed + i) % 10 for i in range(4)]
        files[name] = pickle.dumps({"data": draw(4, 3072, seed=seed), "labels": labels})
    return files | {"batches.meta": pickle.dumps({"label_names": list(CIFAR10_CLASSES)})}


def write_batches(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in batches().items():
        (folder / name).write_bytes(content)
    return folder


def tar_of(files: dict[str, bytes], folder: str) -> bytes:
    content = BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(data)
            archive.addfile(info, BytesIO(data))
    return content.getvalue()


def expect_batches(monkeypatch, files: dict[str, bytes]) -> None:
    """Let torchvision hold the hashes of these files instead of CIFAR-10's."""
    from torchvision.datasets import CIFAR10

    hashes = [[name, md5(content).hexdigest()] for name, content in files.items()]
    monkeypatch.setattr(CIFAR10, "train_list", hashes[:5])
    monkeypatch.setattr(CIFAR10, "test_list", hashes[5:6])
    monkeypatch.setattr(CIFAR10, "meta", CIFAR10.meta | {"md5": hashes[6][1]})


class Server(ThreadingHTTPServer):
    """Hands out `files`; breaks off an answer after `most` bytes, and knows parts if `knows_parts`."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.most: int | None = None
        self.knows_parts = True
        self.asked: list[tuple[str, str | None]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name, part = self.path.lstrip("/"), self.headers["Range"]
        self.server.asked.append((name, part))
        if name not in self.server.files:
            self.send_error(404)
            return
        content = self.server.files[name]
        start = int(re.match(r"bytes=(\d+)-", part)[1]) if part and self.server.knows_parts else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(content[start:][: self.server.most])

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def serving(files: dict[str, bytes]):
    with Server(files) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
