"""As in a training run: one core, because on worlds this small threads cost more than they bring."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

from attnknn.models.embedders import threads


@pytest.fixture(autouse=True, scope="package")
def one_core():
    with threads(1), threadpool_limits(limits=1):
        yield
