"""Tables of numbers as short text; `unpackTables` in board/bank.js reads them.

    table → steps from row to row → folded 0 −1 1 −2 2 … → codes, one after the other → base64

What a bank knows of itself hardly changes from one stop of the noise to the next, and small numbers take few bits in
exponential Golomb codes, as in video. Deflate would not do: browsers inflate asynchronously, so that a board would
be drawn a moment after its data came.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 2**27
"""How large a number may be, in its unit: 32 bits of a code are read at once."""


def pack_tables(tables: Mapping[str, NDArray[Any]], units: Mapping[str, float]) -> dict[str, Any]:
    """Pack tables: integers exactly, real numbers as multiples of a unit.

    A step x becomes u = 2x, or −2x − 1 below zero. It is written as v = u + 2^q in binary, after as many zeros as v
    has digits beyond q + 1; q suits most numbers of its table.

    Args:
        tables: Arrays of shape (..., n) by name. All axes but the last are rows, in their order; each row but the
            first is told as its difference from the row above.
        units: Of tables of real numbers, by name; each number is right within half of it.

    Returns:
        `codes`, and by name in `heads`: how many numbers, n, q, and the unit.

    Raises:
        ValueError: If a number is beyond `LARGEST`.

    References:
        Teuhola (1978), A compression method for clustered bit-vectors, https://doi.org/10.1016/0020-0190(78)90024-8
    """
    heads, values, orders = {}, [], []
    for name, table in tables.items():
        unit = units.get(name, 1)
        rows = np.rint(table / unit).astype(np.int64).reshape(-1, table.shape[-1])
        if np.abs(rows).max(initial=0) > LARGEST:
            raise ValueError(f"{name}: numbers must be at most {LARGEST}, however: {np.abs(rows).max()}")
        steps = np.concatenate([rows[:1], rows[1:] - rows[:-1]]).ravel()
        folded = np.abs(2 * steps + (steps < 0))
        middle = steps.size // 2
        q = max(int(np.partition(folded, middle)[middle]).bit_length() - 1, 0) if steps.size else 0
        heads[name] = [steps.size, table.shape[-1], q, unit]
        values.append(folded + 2**q)
        orders.append(q)
    codes = _write_codes(np.concatenate(values), np.repeat(orders, [len(some) for some in values]))
    return {"heads": heads, "codes": b64encode(codes.tobytes()).decode("ascii")}


def _write_codes(values: NDArray[np.int64], orders: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Write codes one after the other, and a spare word behind them; the zeros before a value are there already."""
    digits = np.frexp(values)[1].astype(np.int64)
    ends = np.cumsum(2 * digits - orders - 1)
    word, bit = (ends - digits) >> 5, (ends - digits) & 31
    placed = values << (64 - digits - bit)  # in two words of 32 bits; no two codes share a bit
    words = np.zeros(int(ends[-1]) // 32 + 2, np.int64)
    np.add.at(words, word, placed >> 32 & 0xFFFFFFFF)
    np.add.at(words, word + 1, placed & 0xFFFFFFFF)
    return words.astype("<u4")
