"""Start a run: from the form, or again with the settings of an earlier one."""

from __future__ import annotations

import streamlit as st

from attnknn.config import TrainingConfig
from attnknn.jobs import Job
from attnknn.training.defaults import command_line
from attnknn.ui.training import table, views
from attnknn.work.submit import free_name, submit_training


def new_name(config: TrainingConfig) -> str:
    """Return a name that no checkpoint has, and under which no other run will save."""
    return table.read(lambda store: free_name(config.dataset, store))


def start(config: TrainingConfig, name: str = "") -> None:
    """Queue a run, and show it; the same settings as one that is active are that one.

    Raises:
        SettingError: A number is out of its bounds, or the name is taken.
        JobError: This visitor has too many jobs waiting.
        StorageError: The table of jobs cannot be written.
    """
    command = command_line(config, name or new_name(config))
    follow(table.read(lambda store: submit_training(store, config, name or None, table.owner(), command)))


def follow(job: Job) -> None:
    """Draw the page again, with a job that was just submitted in focus."""
    table.changed()
    st.query_params["job"] = job.id
    views.show_next("now")
    st.rerun()
