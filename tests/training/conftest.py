"""As in a training run: one core, because on worlds this small threads cost more than they bring."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

from attnknn.models.embedders import single_thread


@pytest.fixture(autouse=True, scope="package")
def one_core():
    with single_thread(), threadpool_limits(limits=1):
        yield
