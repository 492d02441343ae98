"""Local recoding depends on quasi-identifying values and the job alone: rows, order, labels, layers, to the byte."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from sqldeid.job import Job
from tests.support.examples import examples
from tests.support.local_unmoved import Case, cases, in_file, job_of, parts_of, released

FINDING = (Phase.explicit, Phase.reuse, Phase.generate)
"""A case takes a second: what fails is told as it was drawn."""


@pytest.mark.deep
@settings(deadline=None, max_examples=examples(60), phases=FINDING, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_order_and_values_that_no_criterion_reads_change_nothing(case: Case) -> None:
    """Parquet files to the byte, but for the salted marks of the source in the footer."""
    found = []
    for rows in (case.rows, case.moved):
        with TemporaryDirectory() as folder:
            source = in_file(Path(folder) / "source.duckdb", rows)
            told = released(case, _job(case, folder), source)
            found.append((told, parts_of(Path(folder) / "out", case)))
    first, moved = found
    assert first == moved
    assert first[0] is not None or "l_diversity" in case.table["privacy"]


def _job(case: Case, folder: str) -> Job:
    return job_of(case, {"into": "out", "as": "parquet"}, folder)
