"""Data that are not on this machine: a sentence, a download, or how to say where they lie."""

from __future__ import annotations

import streamlit as st

from attnknn.data import DatasetDescription, is_here
from attnknn.jobs import Job
from attnknn.ui.display import explained, literal
from attnknn.ui.training import table
from attnknn.ui.training.starting import follow
from attnknn.work import submit


def offer_data(description: DatasetDescription) -> bool:
    """Return whether data are on this machine; if not, offer to bring them here."""
    if is_here(description.name):
        return True
    with st.container(border=True, key="not_here", gap="small"):
        st.markdown(f":material/cloud_download: **{literal(description.title)}** is not on this machine.")
        if description.can_be_downloaded:
            _offer_download(description)
        lead = "Or set" if description.can_be_downloaded else "Set"
        st.caption(f"{lead} `ATTNKNN_DATA` to {literal(description.by_hand)}, and start the app again.")
    return False


def _offer_download(description: DatasetDescription) -> None:
    """Offer the download once: while it waits, runs or rests, say where it is seen."""
    job = next((one for one in table.all_jobs() if _brings(one, description.name)), None)
    label = f"Download ({description.download})"
    if st.button(label, key="download", icon=":material/download:", width="stretch", disabled=job is not None):
        with explained(then_stop=False):
            follow(table.read(lambda store: submit.submit_download(store, description.name, table.owner())))
    if job is not None:
        st.caption(f"Its download is {job.status}; see what runs.")


def _brings(job: Job, dataset: str) -> bool:
    is_under_way = job.is_active or job.state == "paused"
    return is_under_way and job.kind == "download" and job.spec.get("dataset") == dataset
