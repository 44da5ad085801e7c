"""AttnKNN: the whole pipeline, from an input or an id to a prediction that keeps its evidence.

    inputs → embedder → bank → neighbors → votes → Prediction

Items of the bundle (test queries and entries) need no embedder and no search index: their embeddings
and neighbors are stored or found in NumPy. That is all the page does, so torch and faiss are only
imported when new inputs come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnknn.asking import ask_all, ask_guests, ask_items, pool_size
from attnknn.ballot import FittedVotes, cast_over_draws, cast_votes
from attnknn.bank.entries import Entries, Observation, observe
from attnknn.bank.exact import search_prepared
from attnknn.bank.memory import MemoryBank
from attnknn.bundle import Bundle, Queries, open_bundle
from attnknn.checkpoints import ROOT, Checkpoint, save_checkpoint
from attnknn.checks import refuse
from attnknn.checks.card import config_problems
from attnknn.checks.votes import expect_heads, weight_problems
from attnknn.config import LabelNoise, TrainingConfig
from attnknn.data.noise import draw_noise
from attnknn.errors import DamagedCheckpoint, SettingError
from attnknn.models.loading import build_embedder
from attnknn.prediction import Prediction
from attnknn.prepared import open_with_bundle
from attnknn.votes import COMPARED

if TYPE_CHECKING:
    from attnknn.models.embedders import Embedder

OBSERVATIONS_KEPT = 64


class AttnKNN:
    """A trained classifier that looks things up.

    Args:
        bundle: Entries and test queries.
        fitted: The fitted numbers of every vote.
        card: What it is and how it was made.
        weights: The embedder's tensors by name; loaded into an embedder when new inputs come.
    """

    def __init__(
        self,
        bundle: Bundle,
        fitted: FittedVotes,
        card: Mapping[str, Any],
        weights: Mapping[str, NDArray[Any]],
    ) -> None:
        self.bundle = bundle
        self.fitted = fitted
        self.card = card
        self._weights = weights
        self.observe = lru_cache(maxsize=OBSERVATIONS_KEPT)(self._observe)
        self._draw_noise = lru_cache(maxsize=OBSERVATIONS_KEPT)(partial(draw_noise, self.entries.ids))

    @property
    def name(self) -> str:
        """Name of the checkpoint, or of the dataset before it is saved."""
        return str(self.card.get("name", self.config.dataset))

    @cached_property
    def config(self) -> TrainingConfig:
        """How it was trained."""
        return TrainingConfig.from_dict(self.card["config"])

    @property
    def class_names(self) -> tuple[str, ...]:
        """C names."""
        return self.bundle.class_names

    @property
    def entries(self) -> Entries:
        """The bank's entries."""
        return self.bundle.entries

    @property
    def queries(self) -> Queries:
        """The test items."""
        return self.bundle.queries

    @cached_property
    def bank(self) -> MemoryBank:
        """The memory bank, an exact FAISS index over the entries."""
        entries = self.entries
        return MemoryBank.build(entries.keys, entries.labels, entries.ids, entries.groups)

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder, with its weights loaded.

        Raises:
            MissingLibrary: torch is not installed.
            DamagedCheckpoint: The weights do not fit the embedder that the card describes.
        """
        return build_embedder(self.name, self.card, self._weights)

    def predict(
        self,
        inputs: NDArray[Any],
        k: int | None = None,
        noise: LabelNoise | None = None,
        temperature: float = 1.0,
    ) -> Prediction:
        """Classify new inputs.

        Args:
            inputs: Raw inputs like the dataset's, shape (B, ...).
            k: How many neighbors vote; by default as many as in the fit.
            noise: Label noise of the bank; by default none.
            temperature: Divides the scores of the distance and attention votes.

        Raises:
            InputError: The inputs have another shape than the dataset's, or are not finite.
            SettingError: k is not between 1 and the number of entries, or the temperature not positive.
            MissingLibrary: torch or faiss is not installed.
        """
        k = self._checked_k(k)
        keys, logits = self.embedder.embed(np.atleast_1d(inputs))
        pool = self.bank.search(keys, pool_size(self.entries, k))
        return self.decide(ask_guests(keys, logits, pool), k, noise, temperature)

    def ask(self, ids: Sequence[str] | None = None, k: int | None = None) -> Queries:
        """Find test items or entries by id, and their neighbors; an entry is left out of its own.

        Args:
            ids: Ids of test items or entries; by default every test item.
            k: How many neighbors will vote; by default as many as in the fit.

        Raises:
            UnknownItem: An id names neither a test item nor an entry.
            SettingError: k is not between 1 and the number of entries.
        """
        k = self._checked_k(k)
        return ask_all(self.bundle, k) if ids is None else ask_items(self.bundle, ids, k, f'checkpoint "{self.name}"')

    def ask_embedded(
        self,
        keys: NDArray[np.float32],
        logits: NDArray[np.float32],
        k: int | None = None,
        ids: Sequence[str] | None = None,
    ) -> Queries:
        """Find the neighbors of new inputs that the embedder has seen elsewhere; needs neither torch nor FAISS.

        Args:
            keys: Unit embeddings, shape (B, D).
            logits: The parametric baseline's, shape (B, C).
            k: How many neighbors will vote; by default as many as in the fit.
            ids: What the inputs are called, B names; by default input/0, input/1, ….

        Raises:
            InputError: The keys have another dimension than the entries'.
            SettingError: k is not between 1 and the number of entries.
        """
        k = self._checked_k(k)
        pool = search_prepared(self.entries.table, keys, pool_size(self.entries, k))
        return ask_guests(keys, logits, pool, ids)

    def predict_items(
        self,
        ids: Sequence[str] | None = None,
        k: int | None = None,
        noise: LabelNoise | None = None,
        temperature: float = 1.0,
    ) -> Prediction:
        """Classify items by id: test queries, or entries, which never vote for themselves.

        Args:
            ids: Ids of test items or entries; by default every test item.
            k: How many neighbors vote; by default as many as in the fit.
            noise: Label noise of the bank; by default none.
            temperature: Divides the scores of the distance and attention votes.

        Raises:
            UnknownItem: An id names neither a test item nor an entry.
            SettingError: k is not between 1 and the number of entries, or the temperature not positive.
        """
        return self.decide(self.ask(ids, k), k, noise, temperature)

    def decide(
        self,
        queries: Queries,
        k: int | None = None,
        noise: LabelNoise | None = None,
        temperature: float = 1.0,
        votes: Sequence[str] = COMPARED,
    ) -> Prediction:
        """Let the neighbors that `ask` or `ask_embedded` found vote.

        Args:
            queries: B items with pools of at least k entries.
            k: How many neighbors vote; by default as many as in the fit.
            noise: Label noise of the bank; by default none.
            temperature: Divides the scores of the distance and attention votes.
            votes: Which of the compared votes are cast.

        Raises:
            SettingError: The temperature is not positive.
        """
        k, noise = self._checked_k(k), noise or LabelNoise()
        seen = self.observe(noise)
        ballot = cast_votes(queries, k, seen, self.fitted, _checked_temperature(temperature), votes)
        return Prediction(queries, seen, ballot, self.fitted.attention, self.class_names, k, noise, temperature)

    def decide_over_draws(
        self,
        query: Queries,
        k: int | None,
        noises: Sequence[LabelNoise],
        temperature: float = 1.0,
        votes: Sequence[str] = ("attention",),
    ) -> dict[str, NDArray[np.float64]]:
        """Let the neighbors of one query vote under R draws of label noise, faster than one by one.

        Returns:
            Probabilities by vote, shape (R, C), before calibration; see `attnknn.ballot.cast_over_draws`.

        Raises:
            SettingError: The temperature is not positive.
        """
        k, draws = self._checked_k(k), [self.observe(noise) for noise in noises]
        return cast_over_draws(query, k, draws, self.fitted, _checked_temperature(temperature), votes)

    def save(self, name: str, root: Path = ROOT, with_bank: bool = True) -> Checkpoint:
        """Write a checkpoint; see `attnknn.checkpoints`.

        Args:
            name: Of its folder.
            root: Where that lies.
            with_bank: Without it, weights and card travel alone, and the bank is prepared where it is first used.
        """
        weights = {f"embedder.{key}": array for key, array in self._weights.items()}
        arrays = self.bundle.arrays if with_bank else {}
        return save_checkpoint(name, self.card, weights | self.fitted.to_arrays(), arrays, root)

    def _observe(self, noise: LabelNoise) -> Observation:
        """See the bank under label noise; matrix noise without a matrix confuses look-alike classes."""
        if noise.kind == "matrix" and noise.matrix is None:
            rows = self.bundle.arrays["class_confusion"].tolist()
            noise = replace(noise, matrix=tuple(tuple(row) for row in rows))
        return observe(self.entries, noise, self._draw_noise(noise.seed))

    def _checked_k(self, k: int | None) -> int:
        if k is None:
            return min(self.config.attention.k, len(self.entries))
        largest = len(self.entries)
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= largest:
            raise SettingError(
                "k", k, f"a whole number between 1 and {largest}, the number of entries", "Choose a smaller k."
            )
        return int(k)


def _checked_temperature(temperature: float) -> float:
    if not 0 < temperature < np.inf:
        raise SettingError("temperature", temperature, "a positive number", "Use 1 for the votes as they were fitted.")
    return temperature


def load(name: str, root: Path = ROOT) -> AttnKNN:
    """Load a trained classifier from `checkpoints/<name>`.

    Raises:
        UnknownCheckpoint: There is none of that name.
        NotPrepared: Its bank has to be filled on this machine first.
        SchemaMismatch: It was written for another version of the format.
        DamagedCheckpoint: A file is missing, cut short or changed, or the parts do not fit together.
        CheckpointError: It has heads or terms that this version does not know.
    """
    checkpoint = open_with_bundle(name, root)
    card = checkpoint.card
    try:
        bundle = open_bundle(checkpoint)
        refuse(name, config_problems(card))
        expect_heads(name, card)
        heads, terms = (tuple(card["attention"][kind]) for kind in ("heads", "terms"))
        arrays, dimension = checkpoint.weights(), bundle.entries.keys.shape[1]
        refuse(name, weight_problems(arrays, heads, terms, COMPARED, dimension))
        embedder = {
            key.removeprefix("embedder."): value for key, value in arrays.items() if key.startswith("embedder.")
        }
        classifier = AttnKNN(bundle, FittedVotes.from_arrays(heads, terms, arrays), card, embedder)
        _ = classifier.config
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        expected = "Card, weights and bundle must describe one classifier, as docs/formats.md says."
        raise DamagedCheckpoint(name, expected, f"A part is missing or of another shape ({error}).") from error
    return classifier
