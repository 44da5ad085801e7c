"""Tables are read in a real browser as they were written, and boards are small."""

import shutil

import numpy as np
import pytest

from attnknn.bank.walk import RATES
from attnknn.config import NOISE_KINDS
from attnknn.ui import board
from attnknn.ui.board import read_js
from attnknn.ui.packing import LARGEST, pack_tables
from attnknn.ui.state import Setting
from tests.ui.boards import make_world

UNIT = 2.0**-20
READ = """async ([scripts, packed]) => {
  const { unpackTables } = await import(URL.createObjectURL(new Blob([scripts], { type: "text/javascript" })))
  return Object.fromEntries(Object.entries(unpackTables(packed)).map(([name, table]) => [name, [...table]]))
}"""


def some_tables(rng):
    """Small and large numbers, alone and among others of another size, in tables of all shapes."""
    sizes = [0, 1, 3, 1000, LARGEST]
    tables = {
        f"{shape} of {size}": rng.integers(-size, size + 1, shape)
        for size in sizes
        for shape in [(0, 2), (1,), (7,), (91, 1), (3, 91, 5)]
    }
    rare = rng.choice([0, LARGEST, -LARGEST], (91, 64), p=[0.99, 0.005, 0.005])
    return tables | {
        "bits": rng.uniform(size=40) < 0.5,
        "bytes": rng.integers(0, 256, 40).astype(np.uint8),
        "rare": rare,
    }


@pytest.mark.e2e
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
def test_what_is_packed_is_what_is_read(page):
    rng = np.random.default_rng(0)
    tables = some_tables(rng)
    reals = {"steps": 0.01 * rng.normal(size=(91, 64)).cumsum(axis=0), "ends": np.array([-2.0, 2.0, UNIT / 2, 0.0])}
    read = page.evaluate(READ, [read_js(), pack_tables(tables | reals, dict.fromkeys(reals, UNIT))])
    assert list(read) == [*tables, *reals]
    for name, table in tables.items():
        assert read[name] == table.ravel().tolist()
    for name, table in reals.items():
        np.testing.assert_allclose(read[name], table.ravel(), rtol=0, atol=UNIT / 2)


@pytest.mark.parametrize("table", [np.array([LARGEST + 1]), np.array([[0], [-LARGEST - 1]])])
def test_what_the_browser_could_not_read_is_refused(table):
    with pytest.raises(ValueError, match="far: numbers must be at most"):
        pack_tables({"far": table}, {})


def test_small_steps_take_little_room():
    walked = np.random.default_rng(0).normal(size=(len(NOISE_KINDS), len(RATES), 64)).cumsum(axis=1) / 500
    assert (
        len(pack_tables({"walked": walked}, {"walked": UNIT})["codes"]) < 2.3 * walked.size
    )  # a float of 32 bits takes 5.3


@pytest.mark.parametrize(("n_classes", "n", "most"), [(10, 1000, 115_000), (100, 200, 150_000), (100, 4000, 260_000)])
def test_a_board_is_small(n_classes, n, most):
    data = make_world(n_classes, kind="photo", n=n).board(Setting(16))
    size = len(board._pack(data))
    print(f"{n_classes} classes, {n} entries: {size / 1000:.0f} kB")
    assert size < most
