"""The command in a card says every choice that was made, and the terminal understands it."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnknn.checkpoints import open_checkpoint
from attnknn.cli import train_options
from attnknn.config import TrainingConfig
from attnknn.data import describe_datasets, load_dataset
from attnknn.models.attention import HEADS
from attnknn.training.defaults import SHARES, command_line, default_config
from attnknn.work.submit import check_bounds

KNOWN = {one.name: one for one in describe_datasets()}


def read_back(command: str) -> tuple[TrainingConfig, str]:
    """What the terminal makes of a command, and the name it saves under."""
    dataset, *words = shlex.split(command)[4:]
    asked = {option[2:].replace("-", "_"): text for option, text in zip(words[::2], words[1::2], strict=True)}
    name = asked.pop("name", dataset)
    return train_options.choose(KNOWN[dataset], asked), name


@st.composite
def configs(draw: st.DrawFn) -> TrainingConfig:
    usual = default_config(KNOWN[draw(st.sampled_from(sorted(KNOWN)))], draw(st.integers(0, 2**32 - 1)))
    embedder = replace(
        usual.embedder,
        epochs=draw(st.integers(1, 500)),
        dimension=draw(st.integers(2, 512)),
        width=draw(st.integers(4, 512)),
        members=draw(st.integers(1, 2)),
        batch_size=draw(st.integers(4, 4096)),
        learning_rate=draw(st.floats(1e-5, 0.5)),
        dropout=draw(st.floats(*SHARES["dropout"])),
        shift=draw(st.integers(0, 8)),
        cutout=draw(st.integers(0, 24)),
        ascent=draw(st.floats(0.0, 1.0)),
    )
    heads = draw(st.lists(st.sampled_from(sorted(HEADS)), min_size=1, unique=True))
    attention = replace(usual.attention, heads=tuple(heads), k=draw(st.integers(1, 64)))
    held_out = draw(st.floats(*SHARES["held_out"]))
    return replace(usual, held_out=held_out, embedder=embedder, attention=attention)


@given(config=configs(), name=st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True))
def test_a_command_is_read_back_as_what_was_chosen(config, name):
    assert read_back(command_line(config, name)) == (config, name)


@pytest.mark.parametrize("one", KNOWN.values(), ids=KNOWN)
def test_a_command_says_no_more_than_is_needed(one):
    command = command_line(default_config(one), one.name)
    assert [word for word in command.split() if word.startswith("--")] == ["--seed", "--epochs", "--k", "--heads"]


@pytest.mark.parametrize("one", KNOWN.values(), ids=KNOWN)
def test_defaults_are_what_may_be_asked_for(one):
    check_bounds(default_config(one))


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_short_tables_get_what_the_shipped_checkpoints_were_trained_with(name):
    shipped = TrainingConfig.from_dict(open_checkpoint(name).card["config"])
    assert default_config(load_dataset(name), shipped.seed) == default_config(KNOWN[name], shipped.seed) == shipped


@given(n_items=st.integers(20, 200_000))
def test_a_table_of_any_length_trains_in_some_thousands_of_steps(n_items):
    config = default_config(replace(KNOWN["adult"], n_items=n_items))
    steps = config.embedder.epochs * math.ceil((1 - config.held_out) * n_items / config.embedder.batch_size)
    assert steps <= 13_000
    assert config.attention.k <= max(16, n_items / 30)


def test_the_census_is_asked_more_neighbors_and_fewer_draws_of_noise_than_a_short_table():
    short, long = default_config(KNOWN["breast_cancer"]), default_config(KNOWN["adult"])
    assert long.attention.k > short.attention.k
    assert long.attention.draws < short.attention.draws
    assert long.embedder.batch_size > short.embedder.batch_size
