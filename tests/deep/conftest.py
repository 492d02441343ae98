"""Options of the deep tests: how long, and from which seed."""

from __future__ import annotations

import os
import secrets

import pytest


@pytest.fixture
def fuzz(request: pytest.FixtureRequest) -> tuple[int, float, bool]:
    """First seed, minutes, and whether that seed alone is run: `SQLDEID_FUZZ_SEED` repeats one case."""
    given = os.environ.get("SQLDEID_FUZZ_SEED")
    # In CI every change meets the same cases; elsewhere each run meets new ones.
    seed = int(given) if given else 1 if os.environ.get("CI") else secrets.randbelow(1 << 40)
    minutes = float(os.environ.get("SQLDEID_FUZZ_MINUTES", "1"))
    repeat = ".venv/bin/python -m pytest -m deep -s -n0 tests/deep -k"
    print(f"\nTo repeat seed N: SQLDEID_FUZZ_SEED=N {repeat} {request.node.name}")
    return seed, minutes, bool(given)
