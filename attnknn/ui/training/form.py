"""What to train, how long it will take, and Start."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from math import prod
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

from attnknn.bundle import POOL
from attnknn.config import CLEANING_RULES, AttentionConfig, Cleaning, EmbedderConfig, LabelNoise, TrainingConfig
from attnknn.data import DatasetDescription, dataset_names, describe_dataset, describe_datasets
from attnknn.errors import SettingError
from attnknn.models.attention import HEADS
from attnknn.training.defaults import SHARES, default_config
from attnknn.ui import state
from attnknn.ui.display import explained, literal, notice
from attnknn.ui.labels import TIMES, write_labels
from attnknn.ui.training import bring, table
from attnknn.ui.training.estimate import Amount, Estimate, Timing, estimate, n_trained, time_run, weigh
from attnknn.ui.training.starting import new_name, start
from attnknn.work.submit import LIMITS, TRAINED_NOISES

BUDGETS = {"quick": 0.25, "usual": 1.0, "thorough": 3.0}
"""Names of budgets, and how many times the usual epochs each has."""

TITLES = {"cnn": "network for tiny images", "fast_cnn": "network for small images", "mlp": "small network for rows"}
TIMED = 8  # finished runs that an estimate rests on, at most


@dataclass(frozen=True)
class Choice:
    """What the form says."""

    description: DatasetDescription
    config: TrainingConfig
    name: str


def choose() -> Choice:
    """Let the visitor choose what to train; every control starts with what suits the data."""
    description = _choose_data()
    usual = default_config(description)
    epochs = _choose_budget(usual.embedder.epochs)
    heads = st.pills(
        "Heads of the attention",
        list(HEADS),
        selection_mode="multi",
        default=list(usual.attention.heads),
        key="heads",
        help="Each head is a complete vote. " + ". ".join(f"**{name}** {head.why}" for name, head in HEADS.items()),
    )
    row = st.container(horizontal=True, gap="xsmall", key="numbers_of_a_run")
    k = row.number_input("Neighbors k", 1, POOL, usual.attention.k, key="fit_k", help="Who votes.")
    seed = row.number_input("Seed", 0, state.LARGEST_SEED, 0, key="fit_seed", help="Of the split and the weights.")
    held_out = row.number_input(
        "Held out, %",
        round(100 * SHARES["held_out"][0]),
        round(100 * SHARES["held_out"][1]),
        round(100 * usual.held_out),
        5,
        key="held_out",
        help="Share of the training items that the embedder never sees. The votes are fitted on them.",
    )
    embedder = _choose_embedder(replace(usual.embedder, epochs=epochs))
    attention = AttentionConfig(heads=tuple(heads), k=int(k))
    noise, cleaning = _choose_labels()
    config = TrainingConfig(description.name, int(seed), held_out / 100, embedder, attention, noise, cleaning)
    name = st.text_input(
        "Name of the checkpoint",
        key="name",
        max_chars=64,
        placeholder=new_name(config),
        help="Lower-case letters, digits, - and _. Left empty, it gets the name shown.",
    )
    return Choice(description, config, name.strip())


def offer_start(choice: Choice) -> None:
    """Say how long it will take, and start it where it can be done."""
    if not can_train():
        st.info(
            "Training needs PyTorch, which is not installed here. Checkpoints can be explored, compared and imported "
            "without it. To train here: `pip install -r requirements.txt`.",
            icon=":material/info:",
        )
        return
    is_here = bring.offer_data(choice.description)
    st.caption(_count_rounds(choice.config) + _expect(choice).sentence())
    if st.button(
        "Start", type="primary", icon=":material/play_arrow:", key="start", width="stretch", disabled=not is_here
    ):
        with explained(then_stop=False):
            if not choice.config.attention.heads:
                raise SettingError("Heads", "none", f"at least one of {', '.join(HEADS)}", "Choose one.")
            start(choice.config, choice.name)


def can_train() -> bool:
    """Whether a worker with PyTorch can be had: on this machine, or run by others."""
    return os.environ.get("ATTNKNN_WORKER") == "external" or find_spec("torch") is not None


def _choose_data() -> DatasetDescription:
    known = {one.name: one for one in describe_datasets()}
    asked = st.query_params.get("data")
    if asked is not None and asked not in known:
        notice(f"data must be one of {', '.join(known)}; the link says data={state.shorten(asked)}.")
    one = known[st.selectbox("Data", list(known), key="data", bind="query-params")]
    facts = f"{one.n_items:,} items, {one.n_classes} classes, {one.kind}"
    st.caption(f"{literal(one.title)} · {facts} · {literal(one.licence)}")
    return one


def _choose_budget(usual: int) -> int:
    asked = st.query_params.get("budget")
    if asked is not None and asked not in BUDGETS:
        notice(f"budget must be one of {', '.join(BUDGETS)}; the link says budget={state.shorten(asked)}.")
    budget = st.segmented_control(
        "Budget",
        list(BUDGETS),
        default="usual",
        required=True,
        key="budget",
        bind="query-params",
        help="How many epochs: passes over the training items.",
        width="stretch",
    )
    epochs = max(1, round(BUDGETS[str(budget)] * usual))
    st.caption(f"{epochs} epochs")
    return epochs


def _choose_embedder(usual: EmbedderConfig) -> EmbedderConfig:
    """Offer what shapes the embedder; keys carry its kind, so that each kind starts with what suits it."""
    place = st.expander(f"Embedder: {TITLES[usual.kind]}", icon=":material/tune:", key="embedder", on_change="rerun")
    ask, (left, right) = partial(_ask, place.open), _halve(place)

    def number(column: DeltaGenerator, setting: str, title: str, step: float, why: str, form: str = "%d") -> Any:
        low, high = LIMITS[setting]
        value, kind = getattr(usual, setting), type(getattr(usual, setting))
        asked = (title, kind(low), kind(high), value, kind(step), form)
        return ask(column.number_input, f"{usual.kind}_{setting}", value, *asked, help=why)

    chosen = replace(
        usual,
        dimension=number(left, "dimension", "Dimension", 8, "Length of an embedding."),
        width=number(right, "width", "Width", 8, "Channels of the first layer, or units of a hidden one."),
        batch_size=number(left, "batch_size", "Batch size", 16, "Items per step."),
        members=number(left, "members", "Members", 1, "Networks side by side, which share an embedding."),
        learning_rate=number(right, "learning_rate", "Learning rate", 1e-3, "At its peak.", "%.4f"),
    )
    if usual.kind != "fast_cnn":
        asked = ("Dropout", *SHARES["dropout"], usual.dropout, 0.05)
        share = ask(place.slider, f"{usual.kind}_dropout", usual.dropout, *asked, help="Share of units silenced.")
        chosen = replace(chosen, dropout=share)
    changed = [one for one in asdict(usual) if getattr(chosen, one) != getattr(usual, one)]
    _tell(place, ", ".join(f"{one.replace('_', ' ')} {getattr(chosen, one):g}" for one in changed))
    return chosen


def _choose_labels() -> tuple[LabelNoise | None, Cleaning | None]:
    """Offer to make training labels wrong, and to clean them by their neighbors."""
    place = st.expander("Labels: noise and cleaning", icon=":material/label:", key="labels", on_change="rerun")
    ask, (left, right) = partial(_ask, place.open), _halve(place)
    most, kinds = round(100 * LIMITS["label_noise"][1]), TRAINED_NOISES
    why = "Share of all training labels that are replaced before anything sees them. Test keeps its own."
    percent = ask(left.number_input, "wrong_labels", 0, "Wrong labels, %", 0, most, 0, 5, help=why)
    why = "symmetric: any other class, equally likely. pair: always the next class."
    kind = ask(right.selectbox, "noise_kind", kinds[0], "Kind of noise", kinds, disabled=not percent, help=why)
    left, right = _halve(place)  # one row of columns per choice: on a narrow screen, what belongs together stays so
    why = "Each time an embedder is trained only to find labels that their neighbors contradict."
    rounds = TIMES.index(ask(left.selectbox, "cleaning", TIMES[0], "Clean the labels", TIMES, help=why))
    why = "drop: outvoted items are left out. relabel: where 12 of 20 neighbors agree, their label is taken."
    rules = CLEANING_RULES[::-1]
    rule = ask(right.selectbox, "cleaning_rule", rules[0], "Outvoted labels", rules, disabled=not rounds, help=why)
    noise, cleaning = LabelNoise(kind, percent / 100) if percent else None, Cleaning(rounds, rule) if rounds else None
    _tell(place, write_labels(TrainingConfig(label_noise=noise, cleaning=cleaning)))
    return noise, cleaning


def _ask(is_open: bool | None, control: Callable[..., Any], key: str, usual: Any, *asked: Any, **more: Any) -> Any:
    """Draw a control where its expander is open; else return what it was set to, or else what is usual.

    What a closed expander hides costs the browser as much as what it shows, while a visitor waits for the page.
    """
    return control(*asked, key=key, persist_state="page", **more) if is_open else st.session_state.get(key, usual)


def _halve(place: ExpanderContainer) -> Sequence[DeltaGenerator]:
    """Return two columns, or nothing drawn where the expander is closed."""
    return place.columns(2) if place.open else (place, place)


def _tell(place: ExpanderContainer, what: str) -> None:
    """Say below a closed expander what is set in it otherwise than usual."""
    if what and not place.open:
        st.caption(f"Set: {what}.")


def _expect(choice: Choice) -> Estimate:
    done = [job for job in table.all_jobs() if job.state == "done" and job.kind == "train"]
    timings = [timing for job in done[: 4 * TIMED] if (timing := _time(job.id)) is not None]
    return estimate(_weigh(choice.description, choice.config), timings[:TIMED])


@st.cache_data(max_entries=128, show_spinner=False)
def _time(job_id: str) -> Timing | None:
    """Time a finished run; it never changes any more."""
    job = table.read(lambda store: store.get(job_id))
    config = TrainingConfig.from_dict(job.spec["config"])
    if config.dataset not in dataset_names():
        return None
    return time_run(job, table.events_of(job), _weigh(describe_dataset(config.dataset), config))


def _count_rounds(config: TrainingConfig) -> str:
    """Say how many embedders are trained one after the other, where it is more than one."""
    rounds = config.n_trainings
    return f"{rounds} rounds of {config.embedder.epochs} epochs, labels cleaned in between. " if rounds > 1 else ""


def _weigh(description: DatasetDescription, config: TrainingConfig) -> Amount:
    whole = replace(config, embedder=replace(config.embedder, epochs=config.n_epochs))
    return weigh(whole, n_trained(description, config), prod(description.shape[:2]))
