"""Frozen choices, one dataclass per stage.

They are passed in, written into the card of a checkpoint, and read back from it; nothing below
looks at globals or the environment.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

NoiseKind = Literal["symmetric", "pair", "matrix"]
SMALLEST_IMAGE = 10
"""Pixels along a side of what a `fast_cnn` can still halve three times."""

RETIRED = ("first_side",)
"""Choices about an embedder that older cards name, and that change nothing about one that is trained."""

NOISE_KINDS: tuple[NoiseKind, ...] = ("symmetric", "pair", "matrix")

CleaningRule = Literal["drop", "relabel"]
CLEANING_RULES: tuple[CleaningRule, ...] = ("drop", "relabel")
MOST_ROUNDS = 2
AGREEING = (11, 20)
"""Between what the number of neighbors lies, of 20, that are enough to give an item their label: a majority."""


@dataclass(frozen=True)
class LabelNoise:
    """Which labels are replaced, and by what.

    Attributes:
        kind: `symmetric` (any other class, equally likely), `pair` (the next class) or `matrix`
            (a class drawn from the clean class's row of `matrix`).
        rate: Share of labels replaced, in expectation; 0 changes nothing.
        seed: Names the draw. Draws are nested: a larger rate only adds flips.
        matrix: For `matrix` only: C rows of C non-negative numbers; diagonals are ignored.
    """

    kind: NoiseKind = "symmetric"
    rate: float = 0.0
    seed: int = 0
    matrix: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        if self.kind not in NOISE_KINDS:
            raise ValueError(f"kind must be one of {NOISE_KINDS}, however: kind={self.kind!r}")
        if not 0 <= self.rate <= 1:
            raise ValueError(f"rate must be between 0 and 1, however: rate={self.rate}")


@dataclass(frozen=True)
class EmbedderConfig:
    """How inputs become unit vectors.

    Attributes:
        kind: `cnn` for tiny grayscale images, `fast_cnn` for images of about 28 to 32 pixels, gray or in
            color, `mlp` for tables and points.
        dimension: D, the length of an embedding.
        width: Channels of the first convolution, or units of a hidden layer.
        members: Networks side by side, each taught by itself; each makes its share of an embedding.
        epochs: Passes over the fit part.
        batch_size: Items per step.
        learning_rate: Peak of the schedule.
        weight_decay: Of AdamW.
        dropout: Share of hidden units silenced while training.
        shift: Largest random shift of a training image, in pixels.
        jitter: Standard deviation of noise added to a scaled training row.
        flip: Whether training images are mirrored, left to right, in every other epoch (`fast_cnn` alone).
        smoothing: Share of each label that is spread over all classes while training.
        cutout: Side of the square that is blanked somewhere in every training image, in pixels (`fast_cnn` alone).
        ascent: How far the weights of each network go uphill, as one vector, before a gradient is taken in the last
            two fifths of the epochs (`fast_cnn` alone).
    """

    kind: Literal["cnn", "mlp", "fast_cnn"] = "cnn"
    dimension: int = 64
    width: int = 32
    members: int = 1
    epochs: int = 40
    batch_size: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 1e-2
    dropout: float = 0.1
    shift: int = 1
    jitter: float = 0.1
    flip: bool = False
    smoothing: float = 0.0
    cutout: int = 0
    ascent: float = 0.0


@dataclass(frozen=True)
class AttentionConfig:
    """How the attention over neighbors is fitted.

    Attributes:
        heads: Names of the heads, each a complete vote; see `attnknn.models.attention.HEADS`.
        k: Neighbors per query while fitting, and the default afterwards.
        ridge: Weight of the squared coefficients in the loss, per query.
        rates: Symmetric noise rates whose fresh draws the fit sees; none where training labels were made wrong already.
        pair_rates: The same for pair noise.
        draws: Fresh draws per kind and rate.
        minimum_effective: Effective neighbors per head below which the hinge of the loss acts.
    """

    heads: tuple[str, ...] = ("trusted", "typical")
    k: int = 16
    ridge: float = 1e-3
    rates: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8)
    pair_rates: tuple[float, ...] = (0.4,)
    draws: int = 3
    minimum_effective: float = 2.0

    def for_bank_as_it_is(self) -> AttentionConfig:
        """Return the same, fitted without draws: on a bank to whose labels nobody will add noise."""
        return replace(self, rates=(0.0,), pair_rates=())


@dataclass(frozen=True)
class Cleaning:
    """How labels that their own neighbors contradict are taken out before the last embedder is trained.

    Attributes:
        rounds: How often an embedder is trained only to judge the labels: 1 or 2.
        rule: `drop` takes out items whose label loses among their 20 neighbors; `relabel` gives them the
            label of their neighbors where enough of these agree, and takes out the others.
        agreeing: How many of the 20 are enough, from 11 to 20; for `relabel` alone.
    """

    rounds: int = 1
    rule: CleaningRule = "relabel"
    agreeing: int = 12

    def __post_init__(self) -> None:
        if not 1 <= self.rounds <= MOST_ROUNDS:
            raise ValueError(f"rounds must be between 1 and {MOST_ROUNDS}, however: rounds={self.rounds}")
        if self.rule not in CLEANING_RULES:
            raise ValueError(f"rule must be one of {CLEANING_RULES}, however: rule={self.rule!r}")
        if not AGREEING[0] <= self.agreeing <= AGREEING[1]:
            raise ValueError(f"agreeing must be between 11 and 20, however: agreeing={self.agreeing}")


@dataclass(frozen=True)
class TrainingConfig:
    """One training run, from a dataset to a checkpoint.

    Attributes:
        dataset: Name in the registry of `attnknn.data`.
        seed: Seeds the split, the embedder and the noise draws of the fit.
        held_out: Share of the training items that the embedder never sees; the attention and the
            calibration are fitted on them.
        label_noise: What happens to the labels of all training items before anything sees them (protocol A);
            test keeps its own. None leaves them as they are.
        cleaning: Whether, and how, labels are cleaned by their neighbors between two trainings.
    """

    dataset: str = "digits"
    seed: int = 0
    held_out: float = 0.2
    embedder: EmbedderConfig = field(default_factory=EmbedderConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    label_noise: LabelNoise | None = None
    cleaning: Cleaning | None = None

    @property
    def n_trainings(self) -> int:
        """How many embedders are trained, one after the other: the judges, and the last one."""
        return 1 + (self.cleaning.rounds if self.cleaning else 0)

    @property
    def n_epochs(self) -> int:
        """How many epochs that makes."""
        return self.n_trainings * self.embedder.epochs

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, for the card of a checkpoint; what is None is left out, and stays so."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainingConfig:
        """Rebuild a configuration from the card of a checkpoint."""
        attention: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values["attention"].items()
        }
        embedder = {name: value for name, value in values["embedder"].items() if name not in RETIRED}
        noise, cleaning = values.get("label_noise"), values.get("cleaning")
        return replace(
            cls(**{name: values[name] for name in ("dataset", "seed", "held_out")}),
            embedder=EmbedderConfig(**embedder),
            attention=AttentionConfig(**attention),
            label_noise=_read_noise(noise) if noise is not None else None,
            cleaning=Cleaning(**cleaning) if cleaning is not None else None,
        )


def _read_noise(values: dict[str, Any]) -> LabelNoise:
    """Rebuild label noise; JSON knows no tuples."""
    matrix = values.get("matrix")
    return LabelNoise(**values | {"matrix": matrix and tuple(tuple(row) for row in matrix)})
