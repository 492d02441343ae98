"""Have something happen in the middle of a run, and wait for conditions, never for a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqldeid.engine.remote import Remote
from sqldeid.sql import Statement, render
from tests.support.cli import Ran, run

SECRETS = ("hidden-word", "canary7f3a", "Traceback")
"""A password, a value of the source, and what no user should have to read."""


def rendering(monkeypatch: pytest.MonkeyPatch, instead: Callable[..., str]) -> None:
    """Have every room render its templates by another function, which may make a mistake in one of them."""
    rooms = [room for name, room in sys.modules.items() if name.startswith("sqldeid.") and "sqldeid.sql" not in name]
    for room in rooms:
        if getattr(room, "render", None) is render:
            monkeypatch.setattr(room, "render", instead)


def anonymizing(capsys: pytest.CaptureFixture[str], job: str) -> Callable[..., Ran]:
    """`sqldeid anonymize` with a job's text in this folder, and what `--json` wrote in place of standard output.

    No secret may be shown.
    """

    def anonymize(url: str, *more: object, source: str, as_: str = "table", schema: str = "out") -> Ran:
        Path("job.toml").write_text(job % {"source": source, "as_": as_, "schema": schema})
        Path("told.json").unlink(missing_ok=True)  # a failure does not take the place of an earlier result
        done = run(capsys, "anonymize", url, "--job", "job.toml", "--json", "told.json", *more)
        told = Path("told.json").read_text()
        assert not [word for word in SECRETS if word in done.out + done.err + told], done.err
        return Ran(done.code, told, done.err)

    return anonymize


def refusal(done: Ran, code: int = 1) -> dict[str, Any]:
    """What a run that failed says: one line, and the same in `--json`."""
    lines = [line for line in done.err.splitlines() if line.startswith("Error: ")]
    assert done.code == code and len(lines) == 1, done.err
    error: dict[str, Any] = done.json["error"]
    assert error["code"] == code and lines[0] == f"Error: {error['message']}"
    return error


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.02)


def before_statement(patched: pytest.MonkeyPatch, template: str, action: Callable[[], object]) -> None:
    """Do something once, just before the first statement of a template reaches its engine."""
    written, act = Remote.written, once(action)

    def watched(self: Remote, sql: str) -> str:
        if isinstance(sql, Statement) and sql.template == template:
            act()
        return written(self, sql)

    patched.setattr(Remote, "written", watched)


def before_method(patched: pytest.MonkeyPatch, owner: Any, name: str, action: Callable[[], object]) -> None:
    """Do something once, just before a method is called for the first time."""
    method, act = getattr(owner, name), once(action)

    def watched(self: Any, *arguments: Any, **named: Any) -> Any:
        act()
        return method(self, *arguments, **named)

    patched.setattr(owner, name, watched)


def once(action: Callable[[], object]) -> Callable[[], None]:
    """The action, which is done when it is called for the first time."""
    waiting = [action]

    def act() -> None:
        while waiting:
            waiting.pop()()

    return act
