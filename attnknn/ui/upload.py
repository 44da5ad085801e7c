"""A visitor's own picture as the query: fitted here, embedded by the worker, and kept in its table.

`query=upload/<id of the job>` in a link names it, for as long as the table of jobs knows it.
"""

from __future__ import annotations

import time
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attnknn.classifier import AttnKNN
from attnknn.errors import AttnKNNError, JobError
from attnknn.ui import links
from attnknn.ui.display import literal, or_sentence

if TYPE_CHECKING:
    from attnknn.jobs import Job
    from attnknn.work.encoding import Encoded

BEFORE = "upload/"
TYPES = ["png", "jpg", "jpeg", "webp"]
LARGEST_MEGABYTES = 5
PLACE = "own_image"  # whether the popover is open
FILE = "uploaded"
AWAITED = "awaited_upload"  # id of the job whose end is waited for
REFUSED = "refused_upload"  # why there is no answer
NEXT = "next_query"  # what is looked at when the page is drawn again
INVERTED = "inverted_uploads"  # queries of which light and dark were exchanged
RECENT = "recent_uploads"
REMEMBERED = 5  # pictures of this visitor
AT_ONCE = 0.4  # seconds that an answer may take without anything being said
MOMENT = 0.02
AGAIN = 0.5
LONG = 30.0  # seconds after which somebody should see whether there is a worker

_one_at_a_time = Lock()
"""A large picture takes 100 MB, and as WebP 250 MB, while it is decoded."""


def find(query: str, trained: AttnKNN) -> Encoded | None:
    """Return the picture that a query id names, if it was embedded for this checkpoint as it is now."""
    if not query.startswith(BEFORE):
        return None
    try:
        return _encoded(query.removeprefix(BEFORE), trained.name, _weights(trained))
    except AttnKNNError:
        return None


def recent(trained: AttnKNN, asked: str) -> list[str]:
    """List ids of the last pictures that this visitor, or a link, showed to this checkpoint, the newest first."""
    kept: list[str] = st.session_state.setdefault(RECENT, [])
    if asked not in kept and find(asked, trained):
        kept.insert(0, asked)
        del kept[REMEMBERED:]
    return [one for one in kept if find(one, trained)]


def offer(trained: AttnKNN, row: DeltaGenerator) -> None:
    """Offer to ask about a picture of one's own; one that waits for the embedder is waited for beside it."""
    if trained.card["dataset"]["kind"] != "image":
        return
    if REFUSED in st.session_state:
        st.session_state[PLACE] = True
    place = row.popover("your own", icon=":material/upload:", key=PLACE, on_change=_forget)
    if place.open:
        with place:
            _choose_file(trained)
    if AWAITED in st.session_state:
        with row:
            st.fragment(_wait, run_every=AGAIN)()


def tell_inverted(query: str) -> None:
    """Say so where light and dark of a picture were exchanged."""
    if query in st.session_state.get(INVERTED, ()):
        st.caption("Light and dark were exchanged: the bank's pictures have the other background.")


def show_next(trained: AttnKNN) -> None:
    """Choose the picture whose answer has come."""
    query = st.session_state.pop(NEXT, "")
    if find(query, trained):  # not if another checkpoint was chosen meanwhile
        links.write({"query": query, "neighbor": None})


def _choose_file(trained: AttnKNN) -> None:
    from attnknn.ui.training.form import can_train

    if not can_train():
        st.caption("Embedding a new picture needs PyTorch: `pip install -r requirements.txt`.")
        return
    height, width = trained.card["dataset"]["input_shape"][:2]
    st.caption(f"It is cropped to a square and shrunk to {height}×{width} pixels, as the checkpoint knows them.")
    st.file_uploader("A picture", TYPES, key=FILE, max_upload_size=LARGEST_MEGABYTES, on_change=_take, args=(trained,))
    if REFUSED in st.session_state:
        st.error(literal(st.session_state[REFUSED]), icon=":material/info:")


def _forget() -> None:
    st.session_state.pop(REFUSED, None)


def _take(trained: AttnKNN) -> None:
    """Hand the chosen file over; the answer that comes at once is on the page that is drawn next."""
    _forget()
    file = st.session_state.get(FILE)
    if file is None:
        return
    said = or_sentence(partial(_submit, trained, file.getvalue()))
    if isinstance(said, str):
        st.session_state[REFUSED] = said


def _submit(trained: AttnKNN, content: bytes) -> None:
    from attnknn.data.uploads import fit_picture, read_picture
    from attnknn.ui.training import table
    from attnknn.work.submit import submit_encoding

    with _one_at_a_time:
        picture = read_picture(content)
    fitted = fit_picture(picture, trained.bundle.arrays["entry_inputs"])
    job = table.read(lambda store: submit_encoding(store, trained.name, fitted.values, table.owner()))
    if fitted.is_inverted:
        st.session_state.setdefault(INVERTED, set()).add(BEFORE + job.id)
    st.session_state[AWAITED] = job.id
    st.session_state[PLACE] = False
    until = time.monotonic() + AT_ONCE
    while not _is_over() and time.monotonic() < until:
        time.sleep(MOMENT)


def _is_over() -> bool:
    """Whether the awaited picture is embedded, which is then shown next.

    Raises:
        JobError: It could not be.
    """
    job = _look(st.session_state[AWAITED])
    if job.is_active:
        return False
    del st.session_state[AWAITED]
    if job.state != "done":
        raise JobError("The picture should have been embedded.", job.error or f"It was {job.state}.", "Try again.")
    st.session_state[NEXT] = BEFORE + job.id
    return True


def _wait() -> None:
    """See whether the answer is there; if so, draw the page with it."""
    from attnknn.ui.training import table
    from attnknn.work.submit import ensure_worker

    said = or_sentence(_is_over) if AWAITED in st.session_state else True
    if isinstance(said, str):
        st.session_state[REFUSED] = said
    if said:
        st.session_state.pop(AWAITED, None)
        st.rerun()
    ensure_worker(table.store())
    job = _look(st.session_state[AWAITED])
    if job.state == "queued" and time.time() - job.created > LONG:
        st.caption("Nobody has taken the picture up yet. Is a worker running? `python -m attnknn worker`")
    else:
        st.caption("The embedder is waking up; the first picture takes some seconds.")


def _look(job_id: str) -> Job:
    from attnknn.ui.training import table

    return table.read(lambda store: store.get(job_id))


@st.cache_data(max_entries=512, show_spinner=False)
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
