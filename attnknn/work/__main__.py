"""The child of a worker: `python -m attnknn.work TOKEN` does the jobs whose ids come in on standard input."""

import logging
import sys

from attnknn.jobs.child import serve
from attnknn.jobs.settings import JobSettings
from attnknn.work.kinds import KINDS

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
serve(JobSettings.from_environment(), sys.argv[1], KINDS)
