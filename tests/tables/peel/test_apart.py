"""Classes that are formed in a process of its own are those that are formed here, and so they are without one."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import NoSolutionError
from sqldeid.tables.criteria import DistinctLDiversity, TCloseness
from sqldeid.tables.peel import LocalProblem, Partition, apart, partition
from sqldeid.tables.peel.apart import Apart
from tests.support.local_problems import concealing, problems

CRITERIA = st.lists(
    st.sampled_from([DistinctLDiversity("x", 2), TCloseness("x", Fraction(3, 10), "ordered")]), max_size=2
)
PROBLEMS = problems(CRITERIA, hidden=st.none() | concealing())


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the problem, and however few the cores."""
    monkeypatch.setattr(apart, "_worth", lambda _: True)


def answered(form: object) -> tuple[object, ...] | str:
    try:
        p = form()  # type: ignore[operator]
    except NoSolutionError as error:
        return str(error)
    assert isinstance(p, Partition)
    return p.nodes, p.layer.tolist(), p.units, p.bound, p.unit, p.stopped, p.parts, p.share.tolist()


def refuse(_: LocalProblem) -> Partition:
    raise AssertionError("the process did not answer")


@pytest.mark.deep
@settings(deadline=None, max_examples=10)
@given(PROBLEMS)
def test_it_is_the_partition_that_is_formed_here(problem: LocalProblem) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(apart, "partition", refuse)
        found = answered(Apart(problem, lambda: True).partition)
    assert found == answered(lambda: partition(problem))


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "import sys; sys.stdin.buffer.read(); import no_such_module"])
@settings(deadline=None, max_examples=2)
@given(problem=problems())
def test_without_an_answer_classes_are_formed_here(problem: LocalProblem, code: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(apart, "_CODE", code)
        found = answered(Apart(problem, lambda: True).partition)
    assert found == answered(lambda: partition(problem))


@pytest.mark.parametrize("program", ["", "/no/such/program"])
@settings(deadline=None, max_examples=2)
@given(problem=problems())
def test_without_an_interpreter_classes_are_formed_here(problem: LocalProblem, program: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "executable", program)
        way = Apart(problem, lambda: True)
    assert way._child is None and answered(way.partition) == answered(lambda: partition(problem))


@settings(deadline=None, max_examples=2)
@given(problem=problems())
def test_who_stops_waits_for_nothing(problem: LocalProblem) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(apart, "_CODE", "import time; time.sleep(600)")
        way = Apart(problem, lambda: True)
    way.stop()
    assert way._child is not None and way._child.returncode not in (None, 0)


def test_where_memory_is_short_there_is_one_process() -> None:
    problem = LocalProblem(np.zeros((0, 1), dtype=np.int64), np.array([3]), (), 2, 0)
    assert Apart(problem, lambda: False)._child is None
