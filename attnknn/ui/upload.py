"""A visitor's own picture as the query: fitted here, embedded by the worker, and kept in its table.

`query=upload/<id of the job>` in a link names it, for as long as the table of jobs knows it.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attnknn.classifier import AttnKNN
from attnknn.errors import AttnKNNError, JobError
from attnknn.ui.display import explained

if TYPE_CHECKING:
    from attnknn.jobs import Job
    from attnknn.work.encoding import Encoded

BEFORE = "upload/"
TYPES = ["png", "jpg", "jpeg", "webp"]
LARGEST_MEGABYTES = 5
AWAITED = "awaited_upload"  # id of the job whose end is waited for
SEEN = "seen_upload"  # the last file, and the checkpoint it was given to
NEXT = "next_query"  # what the select box shows when the page is drawn again
AT_ONCE = 0.4  # seconds that an answer may take without anything being said
MOMENT = 0.02
AGAIN = 0.5


def find(query: str, trained: AttnKNN) -> Encoded | None:
    """Return the picture that a query id names, if it was embedded for this checkpoint as it is now."""
    if not query.startswith(BEFORE):
        return None
    job_id = query.removeprefix(BEFORE)
    try:
        return _encoded(job_id, trained.name, _weights(trained))
    except AttnKNNError:
        return None


def offer(trained: AttnKNN, row: DeltaGenerator) -> None:
    """Offer to ask about a picture of one's own; a picture that waits for the embedder is waited for here."""
    if trained.card["dataset"]["kind"] != "image":
        return
    with row.popover("your own", icon=":material/upload:", key="own_image"):
        from attnknn.ui.training.form import can_train

        if not can_train():
            st.caption("Embedding a new picture needs PyTorch: `pip install -r requirements.txt`.")
            return
        height, width = trained.card["dataset"]["input_shape"][:2]
        st.caption(f"It is cropped to a square and shrunk to {height}×{width} pixels, as the checkpoint knows them.")
        file = st.file_uploader("A picture", TYPES, key="uploaded", max_upload_size=LARGEST_MEGABYTES)
        if file is not None and st.session_state.get(SEEN) != (file.file_id, trained.name):
            st.session_state[SEEN] = (file.file_id, trained.name)
            with explained(then_stop=False):
                _submit(trained, file.getvalue())
        if st.session_state.get(AWAITED):
            st.fragment(partial(_wait, trained), run_every=AGAIN)()


def show_next() -> None:
    """Choose the picture whose answer has come, before the select box is drawn."""
    if NEXT in st.session_state:
        st.session_state["query"] = st.session_state.pop(NEXT)


def _submit(trained: AttnKNN, content: bytes) -> None:
    from attnknn.data.uploads import fit_picture, read_picture
    from attnknn.ui.training import table
    from attnknn.work.submit import submit_encoding

    fitted = fit_picture(read_picture(content), trained.bundle.arrays["entry_inputs"])
    if fitted.is_inverted:
        st.toast(
            "Light and dark were exchanged: the bank's pictures have the other background.", icon=":material/contrast:"
        )
    job = table.read(lambda store: submit_encoding(store, trained.name, fitted.values, table.owner()))
    st.session_state[AWAITED] = job.id
    until = time.monotonic() + AT_ONCE
    while _look(job.id).is_active and time.monotonic() < until:
        time.sleep(MOMENT)


def _wait(trained: AttnKNN) -> None:
    """See whether the answer is there; if so, draw the page with it."""
    with explained(then_stop=False):
        job = _look(st.session_state[AWAITED])
        if job.is_active:
            from attnknn.ui.training import table
            from attnknn.work.submit import ensure_worker

            ensure_worker(table.store())
            st.caption("The embedder is waking up; the first picture takes some seconds.")
            return
        del st.session_state[AWAITED]
        if job.state != "done":
            raise JobError("The picture should have been embedded.", job.error or f"It was {job.state}.", "Try again.")
        st.session_state[NEXT] = BEFORE + job.id
    if NEXT in st.session_state:
        st.rerun()


def _look(job_id: str) -> Job:
    from attnknn.ui.training import table

    return table.read(lambda store: store.get(job_id))


@st.cache_data(max_entries=64, show_spinner=False)
def _encoded(job_id: str, name: str, weights: str) -> Encoded | None:
    """Read what a job made; an error, such as that there is no such job, is not kept."""
    from attnknn.work.encoding import read_encoded

    job = _look(job_id)
    spec = (job.kind, job.spec.get("checkpoint"), job.spec.get("weights"))
    if job.state != "done" or spec != ("encode", name, weights):
        raise JobError(
            "The link must name a picture for this checkpoint.", f"It names {job.title}.", "Upload it again."
        )
    return read_encoded(job)


def _weights(trained: AttnKNN) -> str:
    return str(trained.card["files"]["weights.safetensors"]["sha256"])
