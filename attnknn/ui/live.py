"""What the browser needs of one query to cast every vote itself, at every stop of the noise slider.

    bank, seed → NoiseWalk (kept) · query → its 64 nearest, who lives near them, what hangs on prototypes → payload

`board/votes.js` reads it, and its numbers are those of `attnknn.ballot` within 1e-4. A label flipped by hand is a
label of the bank that is changed after the noise, and everything follows it (`attnknn.bank.walk.relabel`): labels,
trust, agreement, prior and dissent at once and at every stop, and class averages at the noise that the payload was
made for; at other stops these follow with the next payload, which knows the flip.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnknn.arrays import softmax
from attnknn.ballot import ATTENTIONS, FittedVotes
from attnknn.bank.walk import RATES, NoiseWalk, checked_class, row_of, walk_noise
from attnknn.bundle import POOL, Queries
from attnknn.classifier import AttnKNN
from attnknn.config import NOISE_KINDS, LabelNoise
from attnknn.data.noise import draw_noise
from attnknn.models.attention import Attention
from attnknn.models.terms import TERMS, Surroundings
from attnknn.ui.packing import pack_tables

NOBODY = -1
"""Stands for no entry where entries are numbered."""

AT_A_STOP, AT_HERE = 2.0**-20, 2.0**-24
UNITS = {
    **dict.fromkeys(("contrast", "query_cosines", "dissents"), AT_A_STOP),
    **dict.fromkeys(("cosines_here", "gram"), AT_HERE),
}
"""How finely real numbers are told: each is right within half of its unit.

Scores that are off by at most δ move no sum of weights by more than tanh(δ / 2). A contrast at a stop that is off by
half a unit, times a coefficient of 5, at the lowest temperature of 0.05: δ = 4.8e-5, and weights are right within
2.4e-5. Where labels are flipped in the browser, errors add up over flips: what is moved there is told more finely.
"""


def walk(classifier: AttnKNN, seed: int) -> NoiseWalk:
    """Walk a classifier's bank through every kind of noise: seconds for a large one, to be kept by seed."""
    others = [classifier.observe(LabelNoise(kind, 1.0, seed)).labels for kind in NOISE_KINDS]
    return walk_noise(classifier.entries, draw_noise(classifier.entries.ids, seed), others)


def lay_out(
    walk: NoiseWalk,
    query: Queries,
    fitted: FittedVotes,
    noise: LabelNoise,
    flips: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Lay out one query for the votes in the browser.

    Args:
        walk: The bank under the seed of the noise.
        query: One item and its pool.
        fitted: The fitted numbers.
        noise: What is in force: around it, class averages follow labels that are flipped by hand in the browser.
        flips: Labels flipped by hand, class by id of entry: of any entries.

    Returns:
        Plain JSON types; tables are packed by `attnknn.ui.packing`. Entries are numbered from 0: first the P nearest,
        in order, then who lives near them.
    """
    rows = _nearest(query)
    keys = walk.entries.table.keys[rows]
    n_classes = walk.entries.n_classes
    by_row = {row_of(walk.entries, one): checked_class(label, n_classes) for one, label in (flips or {}).items()}
    changed = walk.change_labels(by_row)
    here = _stop_of(noise)
    return {
        "ids": walk.entries.ids[rows].tolist(),
        "distances": query.pool.distances[0, : len(rows)].tolist(),
        "n_classes": n_classes,
        "n_entries": len(walk.entries),
        "n_pairs": walk.n_pairs,
        "kinds": list(NOISE_KINDS),
        "rates": list(RATES),
        "here": {"kind": here[0], "stop": here[1]},
        "flips": {str(walk.entries.ids[row]): label for row, label in by_row.items() if row in rows},
        "fitted": _fitted(fitted),
        "content": _content(fitted, query, keys),
        "baseline": softmax(query.logits[0].astype(np.float64)).tolist(),
        "squares": changed.squares[here].tolist(),
        "is_counted": changed.counted[here][rows].tolist(),
        "n_counted": changed.count_averaged(here).tolist(),
        "tables": pack_tables(
            {
                **_neighborhoods(walk, changed, rows, int(query.groups[0])),
                **_class_facts(changed, _around(query, keys), rows, here),
                "gram": (keys @ keys.T)[np.tril_indices(len(keys), -1)],
            },
            UNITS,
        ),
    }


def _nearest(query: Queries) -> NDArray[np.integer]:
    rows = query.pool.entries[0, :POOL]
    return rows[rows >= 0]


def _stop_of(noise: LabelNoise) -> tuple[int, int]:
    """Number the kind and the nearest stop of a noise."""
    return NOISE_KINDS.index(noise.kind), int(np.abs(np.array(RATES) - noise.rate).argmin())


def _around(query: Queries, keys: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put the query's key below its neighbors'."""
    return np.vstack([keys, query.keys.astype(np.float64)])


def _neighborhoods(
    walk: NoiseWalk, changed: NoiseWalk, rows: NDArray[np.integer], group: int
) -> dict[str, NDArray[Any]]:
    """Number everybody whose label some number about the neighbors depends on, with labels and luck.

    The neighbors keep the luck they have without anybody's hand, which the browser plays itself; labels of others
    that were flipped by hand are flipped for good.
    """
    entries = walk.entries
    near = entries.neighborhoods[rows]
    followers, followed = walk.followers_of(rows)
    others = np.setdiff1d(np.concatenate([near[near >= 0], followers]), rows)
    everybody = np.concatenate([rows, others])
    number = np.full(len(entries) + 1, NOBODY)  # the last for −1, nobody
    number[everybody] = np.arange(len(everybody))

    def collect(first: NDArray[Any], then: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([first[..., rows], then[..., others]], axis=-1)

    return {
        "labels": collect(walk.labels, changed.labels),
        "flips_at": walk.flips_at[everybody],
        "others": collect(walk.others, changed.others).ravel(),
        "neighborhoods": number[near].ravel(),
        "is_own_group": (entries.groups[everybody] == group) & (group >= 0),
        "followers": np.stack([number[followers], number[followed]], axis=1),
    }


def _class_facts(
    walk: NoiseWalk, around: NDArray[np.float64], rows: NDArray[np.integer], here: tuple[int, int]
) -> dict[str, NDArray[Any]]:
    """Say at every stop what hangs on all labels of the bank, and more of class sums at the one in force."""
    cosines = walk.cosines(around)  # (G, S, C, P + 1)
    facts = {
        "query_cosines": cosines[..., -1],
        "cosines_here": cosines[here].T.copy(),  # before own labels are struck out of the others
        "counts": walk.counts,
        "dissents": walk.dissents[..., None],
    }
    labels, rivals = walk.labels_of(rows)[..., None, :], cosines[..., :-1]
    own = np.take_along_axis(rivals, labels, axis=2)[:, :, 0]
    np.put_along_axis(rivals, labels, -np.inf, axis=2)
    return facts | {"contrast": own - rivals.max(axis=2)}


def _content(fitted: FittedVotes, query: Queries, keys: NDArray[np.float64]) -> dict[str, list[float]]:
    """Evaluate the content term, by vote: it reads no label, and does not depend on k."""
    blank = np.zeros((1, len(keys)))
    around = Surroundings(blank, blank, blank, blank, blank, blank, query.keys.astype(np.float64), keys[None])
    metrics = {vote: getattr(fitted, vote).metric for vote in ATTENTIONS}
    term = TERMS["content"].feature
    return {vote: term(around, metric)[0].tolist() for vote, metric in metrics.items() if metric is not None}


def _fitted(fitted: FittedVotes) -> dict[str, Any]:
    return {
        "heads": list(fitted.attention.heads),
        "terms": list(fitted.attention.terms),
        "distance": fitted.distance,
        "prototype": fitted.prototype,
        **{vote: _attention(getattr(fitted, vote)) for vote in ATTENTIONS},
        "calibrators": {
            vote: {"sink": one.sink.tolist(), "heat": one.heat.tolist()} for vote, one in fitted.calibrators.items()
        },
    }


def _attention(attention: Attention) -> dict[str, Any]:
    arrays = attention.to_arrays()
    return {name: arrays[name].tolist() for name in ("coefficients", "sink", "seat", "pull") if name in arrays}
