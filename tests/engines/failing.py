"""Have something happen in the middle of a run, and wait for conditions, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from sqldeid.engine.remote import Remote
from sqldeid.sql import Statement

SECRETS = ("hidden-word", "canary7f3a", "Traceback")
"""A password, a value of the source, and what no user should have to read."""


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
