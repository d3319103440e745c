"""The bundle of each target."""

from __future__ import annotations

import pytest
from bundle_files import (
    GIVEN,
    MAIN,
    ROOT,
)

from ticdc_local.runner.bundle import Bundle, load_bundle


@pytest.fixture(scope="module", params=MAIN["targets"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return load_bundle(ROOT, request.param, GIVEN)
