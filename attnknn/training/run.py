"""One training run, from a dataset to a classifier that can be saved.

train items ─┬─ fit part ──→ embedder ──→ keys ──→ bank
└─ held out ──→ queries ──→ votes and their calibration
test items  ────────────────────────────→ queries of the bundle; nothing is chosen on them

Everything but test sees the observed labels: with `label_noise` those are wrong from the start (protocol A), with
`cleaning` the fit part is what its neighbors left of it.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from attnknn.arrays import softmax
from attnknn.ballot import FittedVotes
from attnknn.bank.entries import Entries
from attnknn.bank.memory import MemoryBank
from attnknn.bank.statistics import KEPT, prototypes
from attnknn.bundle import POOL, Bundle, Queries
from attnknn.classifier import AttnKNN
from attnknn.config import AttentionConfig, TrainingConfig
from attnknn.data import Dataset, load_dataset
from attnknn.errors import CheckpointError
from attnknn.evaluation.protocol import summarize
from attnknn.models.embedders import Embedder, threads, threads_for
from attnknn.reporting import PausePoint, Report, never, silent
from attnknn.training.attention import fit_votes, noise_transition
from attnknn.training.cleaning import train_cleaned
from attnknn.training.defaults import default_config
from attnknn.training.embedder import train_embedder
from attnknn.training.look import Onlooker
from attnknn.training.parts import Parts, part

LIBRARIES = ("numpy", "torch", "faiss-cpu", "scikit-learn", "scipy", "safetensors")


def fit(
    dataset: Dataset | str,
    config: TrainingConfig | None = None,
    report: Report = silent,
    remember: Path | None = None,
    pause_point: PausePoint = never,
) -> AttnKNN:
    """Train an embedder, fill a bank, fit the votes, and measure them once on test.

    Args:
        dataset: A dataset, or the name of a registered one.
        config: How to train; by default what suits the kind of data.
        report: Told about progress; see `attnknn.reporting.Report`. After every epoch it learns the
            loss and the held-out accuracy, and now and then who the neighbors of one query are by then;
            after every cleaning, how many items were kept, relabeled and dropped.
        remember: A folder for what an interrupted run goes on from.
        pause_point: Called between steps; whatever it raises ends the run, and it can go on later.

    Returns:
        A classifier; `save` writes it as a checkpoint.

    Raises:
        UnknownDataset: No dataset of that name is registered.
        SettingError: Cleaning left fewer items than neighbors vote.
        ValueError: If the configuration is for another dataset.
    """
    dataset = load_dataset(dataset) if isinstance(dataset, str) else dataset
    config = config or default_config(dataset)
    if config.dataset != dataset.name:
        raise ValueError(f"config.dataset must be {dataset.name!r}, however: config.dataset={config.dataset!r}")
    parts, rounds = part(dataset, config), None
    with working_threads(config):
        if config.cleaning:
            truth = dataset.labels if config.label_noise else None
            cleaned = train_cleaned(parts, config, report, remember, pause_point, truth)
            embedder, parts, rounds = cleaned.embedder, cleaned.parts, cleaned.rounds
        else:
            labels, look = parts.labels("fit"), Onlooker(parts.dataset, parts.rows, config.embedder.epochs)
            how = (config.embedder, config.seed, report, look, remember, pause_point)
            embedder = train_embedder(parts.inputs("fit"), labels, dataset.n_classes, *how)
        return assemble(dataset, parts, config, embedder, report, rounds)


@contextmanager
def working_threads(config: TrainingConfig) -> Iterator[None]:
    """Let torch, FAISS and the linear algebra work on as many cores as the embedder is worth."""
    count = threads_for(config.embedder)
    with threads(count), threadpool_limits(limits=count):
        yield


def refit(classifier: AttnKNN, attention: AttentionConfig, report: Report = silent) -> AttnKNN:
    """Fit the votes again with other heads, k or noise, on the same embedder and the same split.

    Raises:
        UnknownDataset: The dataset it was trained on is not registered.
    """
    config = replace(classifier.config, attention=attention)
    dataset, entries = load_dataset(config.dataset), classifier.entries
    rows = np.array([dataset.index_of(item) for item in entries.ids.tolist()])
    parts = part(dataset, config).with_fit(rows, entries.labels)
    with working_threads(config):
        return assemble(dataset, parts, config, classifier.embedder, report, classifier.card.get("cleaning"))


def held_out_queries(classifier: AttnKNN) -> Queries:
    """Embed again the items that the votes were fitted on, and find their neighbors.

    Raises:
        UnknownDataset: The dataset it was trained on is not registered.
    """
    parts = part(load_dataset(classifier.config.dataset), classifier.config)
    return _ask(parts, "held_out", classifier.embedder, classifier.bank)


def make_bundle(
    dataset: Dataset, config: TrainingConfig, embedder: Embedder, pause_point: PausePoint = never
) -> dict[str, NDArray[Any]]:
    """Fill a bank and find the neighbors of the test items: the arrays of a bundle, without fitting anything.

    Raises:
        CheckpointError: The bank was cleaned, and only the run that did it knows what was left.
    """
    if config.cleaning:
        expected, received = "A cleaned bank has to travel with its checkpoint.", "This one came without its arrays."
        raise CheckpointError(expected, received, "Get the checkpoint with its bundle, or train it again.")
    parts = part(dataset, config)
    bank, entries, entry_logits = _fill_bank(parts, embedder)
    pause_point()
    return _arrays(parts, entries, _ask(parts, "test", embedder, bank), entry_logits)


def assemble(
    dataset: Dataset,
    parts: Parts,
    config: TrainingConfig,
    embedder: Embedder,
    report: Report = silent,
    rounds: list[dict[str, Any]] | None = None,
) -> AttnKNN:
    """Fill a bank with the fit part, fit the votes on the held-out part, measure on test.

    Args:
        dataset: As it is registered, for the card.
        parts: As the run sees it, cleaned if it was.
        config: How the votes are fitted.
        embedder: The trained one.
        report: Told about progress.
        rounds: What each round of cleaning did, for the card.
    """
    report("bank", 0.0, {})
    bank, entries, entry_logits = _fill_bank(parts, embedder)
    report("votes", 0.0, {})
    queries, transition = _ask(parts, "held_out", embedder, bank), None
    if config.label_noise:
        transition = noise_transition(queries, entries)
        config = replace(config, attention=config.attention.for_bank_as_it_is())
    fitted = fit_votes(queries, entries, config.attention, config.seed, transition)
    arrays = _arrays(parts, entries, _ask(parts, "test", embedder, bank), entry_logits)
    card = _card(dataset, config, fitted) | {"sizes": {name: len(rows) for name, rows in parts.rows.items()}}
    card |= {"cleaning": rounds} if rounds else {}
    classifier = AttnKNN(Bundle(arrays, dataset.class_names), fitted, card, embedder.arrays())
    report("evaluation", 0.0, {})
    card["metrics"] = summarize(classifier)
    report("done", 1.0, {})
    return classifier


def _fill_bank(parts: Parts, embedder: Embedder) -> tuple[MemoryBank, Entries, NDArray[np.float32]]:
    """Embed the fit part, and find the neighborhood of each entry; return bank, entries, and their logits."""
    keys, logits = embedder.embed(parts.inputs("fit"))
    ids, labels, groups = parts.ids("fit"), parts.labels("fit").astype(np.int32), parts.groups("fit").astype(np.int32)
    bank, n_classes = MemoryBank.build(keys, labels, ids, groups), parts.dataset.n_classes
    return bank, Entries(ids, keys, labels, groups, bank.neighborhoods(KEPT), n_classes), logits


def _ask(parts: Parts, name: str, embedder: Embedder, bank: MemoryBank) -> Queries:
    """Embed the items of a part, and find the pool of each."""
    keys, logits = embedder.embed(parts.inputs(name))
    pool = bank.search(keys, min(POOL, bank.n_entries))
    labels, groups = parts.labels(name).astype(np.int32), np.full(len(keys), -1, np.int32)
    return Queries(parts.ids(name), keys, pool, logits, labels, groups)


def _arrays(
    parts: Parts, entries: Entries, queries: Queries, entry_logits: NDArray[np.float32]
) -> dict[str, NDArray[Any]]:
    """Lay out the bundle, as `attnknn.bundle.SHAPES` lists it."""
    dtype = np.uint8 if parts.dataset.inputs.dtype == np.uint8 else np.float32
    return {
        "entry_ids": np.char.encode(entries.ids, "utf-8"),
        "entry_keys": entries.keys,
        "entry_labels": entries.labels,
        "entry_groups": entries.groups,
        "entry_neighborhoods": entries.neighborhoods,
        "entry_logits": entry_logits,
        "entry_inputs": parts.inputs("fit").astype(dtype, copy=False),
        "query_ids": np.char.encode(queries.ids, "utf-8"),
        "query_keys": queries.keys,
        "query_labels": parts.labels("test").astype(np.int32),
        "query_neighbors": queries.pool.entries.astype(np.int32),
        "query_distances": queries.pool.distances.astype(np.float32),
        "query_logits": queries.logits,
        "query_inputs": parts.inputs("test").astype(dtype, copy=False),
        "class_confusion": _confusion(entries),
    }


def _confusion(entries: Entries) -> NDArray[np.float32]:
    """Say which class is mistaken for which: a softmax of prototype cosines / 0.1, never itself."""
    centers = prototypes(entries.keys, entries.labels, entries.n_classes)
    likeness = centers @ centers.T / 0.1
    np.fill_diagonal(likeness, -np.inf)
    return softmax(likeness).astype(np.float32)


def _card(dataset: Dataset, config: TrainingConfig, fitted: FittedVotes) -> dict[str, Any]:
    return {
        "title": f"{dataset.title}, residual attention",
        "licence": "MIT",
        "dataset": {
            "name": dataset.name,
            "title": dataset.title,
            "kind": dataset.kind,
            "hash": dataset.hash,
            "licence": dataset.licence,
            "source": dataset.source,
            "class_names": list(dataset.class_names),
            "feature_names": list(dataset.feature_names),
            "input_shape": list(dataset.inputs.shape[1:]),
        },
        "config": config.to_dict(),
        "attention": {
            "preset": "residual",
            "heads": list(fitted.attention.heads),
            "terms": list(fitted.attention.terms),
        },
        **({"protocol": "A"} if config.label_noise else {}),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES},
    }
