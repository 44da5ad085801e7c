"""A checkpoint whose bank is filled on first use: offer that, show how far it is, and go on when it is done."""

from __future__ import annotations

from functools import partial

import streamlit as st

from attnknn.checkpoints import Checkpoint, root_from_environment
from attnknn.prepared import has_bundle, is_prepared
from attnknn.ui.display import explained, literal
from attnknn.ui.training.cards import read_card

AGAIN = 1.0  # seconds between two looks at the job


def see_to(name: str) -> None:
    """Return where the bank of a checkpoint is there, or its files are damaged; else offer to prepare it, and stop."""
    card = read_card(name)
    if isinstance(card, str):
        return  # who loads it says what is wrong
    checkpoint = Checkpoint(name, root_from_environment() / name, card)
    if has_bundle(checkpoint) or is_prepared(checkpoint):
        return
    with st.container(border=True, key="preparing"):
        st.markdown(f"**The bank of {literal(name)} is filled on first use.**")
        st.caption(
            f"The weights are here; the data, {literal(card['dataset']['title'])}, are embedded on this machine once."
        )
        st.fragment(partial(_follow, checkpoint), run_every=AGAIN)()
    st.stop()


def _follow(checkpoint: Checkpoint) -> None:
    if is_prepared(checkpoint):
        st.rerun()
    with explained(then_stop=False):
        _offer(checkpoint.name, str(checkpoint.card["dataset"]["name"]))


def _offer(name: str, dataset: str) -> None:
    from attnknn.data import describe_dataset
    from attnknn.ui.training import bring, table
    from attnknn.work.submit import ensure_worker, submit_preparation

    jobs = [job for job in table.all_jobs() if job.kind == "prepare" and job.spec.get("checkpoint") == name]
    if jobs and jobs[0].is_active:
        ensure_worker(table.store())
        st.progress(jobs[0].progress, text=literal(jobs[0].stage or "Starting"))
        return
    if jobs and jobs[0].error:
        st.error(literal(jobs[0].error), icon=":material/error:")
    if bring.offer_data(describe_dataset(dataset)) and st.button("Prepare", key="prepare", type="primary"):
        table.read(lambda store: submit_preparation(store, name, table.owner()))
        table.changed()
        st.rerun(scope="fragment")
