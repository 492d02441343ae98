"""Form classes in a process of its own, while this one goes on with other work.

A partition is a function of its problem (where no time limit cuts it short), so it is the same wherever it is formed.
The steps of it are short calls of NumPy, between which threads wait for each other: two of them take as long as one
after the other. So it is a process. The problem goes to it and the partition comes back through pipes; nothing is
written to disk. Where a process cannot be had, or does not answer, classes are formed here.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from sqldeid.errors import NoSolutionError
from sqldeid.tables.peel.nodes import LISTED
from sqldeid.tables.peel.partition import partition
from sqldeid.tables.peel.problem import LocalProblem, Partition

_WORTH = 20_000_000
"""Combinations times nodes below which classes are formed sooner than a process starts."""

_CODE = "import sys; sys.path[:] = sys.argv[1:]; from sqldeid.tables.peel.apart import serve; serve()"
"""What the process runs: this package, found where this process found it, and nothing else on its way."""


class Apart:
    """A partition that is formed beside other work.

    Parameters
    ----------
    roomy
        Whether there is memory for the work on the problem beside other work of the kind; asked only where it pays.
    """

    def __init__(self, problem: LocalProblem, roomy: Callable[[], bool]) -> None:
        self._problem = problem
        self._child = _started() if _worth(problem) and roomy() else None
        self._answer: Future[Any] | None = None
        if self._child is not None:
            with_pipes = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqldeid-apart")
            self._answer = with_pipes.submit(self._child.communicate, pickle.dumps(problem))
            with_pipes.shutdown(wait=False)

    def partition(self) -> Partition:
        """The partition, once it is there.

        Raises
        ------
        NoSolutionError
            As `sqldeid.tables.peel.partition`.
        """
        if self._child is None or self._answer is None:
            return partition(self._problem)
        told, _ = self._answer.result()
        if self._child.returncode:
            return partition(self._problem)
        found = pickle.loads(told)  # noqa: S301 - from `serve`
        if isinstance(found, Partition):
            return found
        raise NoSolutionError(found)

    def stop(self) -> None:
        """End the process, if it still runs: nobody asks for its answer any more."""
        if self._child is not None and self._answer is not None and not self._answer.done():
            self._child.kill()
            self._answer.result()


def serve() -> None:
    """The work of the process: a problem from standard input, its partition or why there is none to standard output."""
    problem = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - from `Apart`
    try:
        found: Partition | str = partition(problem)
    except NoSolutionError as error:
        found = str(error)
    sys.stdout.buffer.write(pickle.dumps(found))


def _worth(problem: LocalProblem) -> bool:
    """Whether forming classes takes longer than starting a process, and there is a second core for it."""
    nodes = 1
    for a in problem.attributes:
        nodes = min(nodes * a.height, LISTED)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores > 1 and nodes * len(problem.rows) >= _WORTH


def _started() -> subprocess.Popen[bytes] | None:
    """The interpreter once more; None where there is none (in a program that holds its own)."""
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    command = [sys.executable, "-P", "-c", _CODE, *sys.path]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    try:
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing)  # noqa: S603 - no shell, no input
    except OSError:
        return None
