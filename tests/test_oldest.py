"""The lower bounds of pyproject.toml: the environment of DuckDB 1.4 has the oldest release of each library."""

from __future__ import annotations

from importlib.metadata import version

import duckdb
import pytest
from packaging.version import Version

from tests.support.oldest import oldest

pytestmark = pytest.mark.duckdb14


@pytest.mark.parametrize("constraint", list(oldest()))
def test_the_environment_of_duckdb_1_4_has_the_oldest_of_each_library(constraint: str) -> None:
    name, bound = constraint.split("==")
    assert Version(version(name)) >= Version(bound)
    if duckdb.__version__.startswith("1."):
        assert Version(version(name)) == Version(bound)
