"""The child of a worker: `python -m attnknn.work TOKEN LANE` does the jobs whose ids come in on standard input."""

import logging
import sys

from attnknn.config import EmbedderConfig
from attnknn.jobs.child import serve
from attnknn.jobs.settings import JobSettings
from attnknn.work.kinds import KINDS

TINY = EmbedderConfig("mlp", dimension=2, width=4, epochs=1)


def warm_up() -> None:
    """Import what jobs need; in the long lane also train for a moment, as the first step of AdamW takes seconds."""
    from attnknn.training.run import load_dataset, train_embedder

    if sys.argv[2] == "long":
        iris = load_dataset("iris")
        train_embedder(iris.inputs, iris.labels, iris.n_classes, TINY, seed=0)


logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
serve(JobSettings.from_environment(), sys.argv[1], KINDS, warm_up)
