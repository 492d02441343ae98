"""Watch what the stages of a release run: a statement that its stage does not name fails the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from sqldeid import stages
from sqldeid.publish.steps import in_dialect
from sqldeid.sql import templates
from sqldeid.stages import Stage, Target
from sqldeid.tables.write.draft import Draft

KINDS = ("table", "view", "parquet")
UNNAMED = ("engine/", "ledger/")
"""What engines and the ledger's own file ask for themselves."""
FOLLOWING = ("series/", "mondrian/")
"""What series run that follow a table: in its stage, but they are not its own."""


@dataclass
class Watched:
    """The stages that were walked, each with the templates that it rendered; the engines' own questions are left out.

    A stage within a stage (series that are formed for a table) has its templates alone.
    """

    kept: bool = True
    ran: list[tuple[Stage[Any], list[str]]] = field(default_factory=list)
    _open: list[list[str]] = field(default_factory=list)

    def note(self, template: str) -> None:
        if self._open and (not template.startswith(UNNAMED) or template == "engine/count_rows"):
            self._open[-1].append(template)

    def perform(self, stage: Stage[Any], release: Any) -> None:
        self._open.append([])
        try:
            stage.act(release)
        finally:
            rendered = self._open.pop()
        if self.kept:
            self.ran.append((stage, rendered))
        own = {name for name in rendered if not (isinstance(release, Draft) and name.startswith(FOLLOWING))}
        unnamed = _unnamed(stage, own, release.engine.capabilities.dialect)
        assert not unnamed, f"{stage.said or stage.act}: not among the statements of the stage: {sorted(unnamed)}"


def _unnamed(stage: Stage[Any], rendered: set[str], dialect: str) -> set[str]:
    """What a stage rendered and does not name, wherever the release goes."""
    for kind in KINDS:
        if rendered:
            named = in_dialect(tuple(stage.statements(Target(kind, dialect, str))), dialect)
            rendered = rendered - {step.template for step in named}
    return rendered


@contextmanager
def watched(*, kept: bool = True) -> Iterator[Watched]:
    """Watch all stages meanwhile; `kept` is whether what they ran is wanted afterwards."""
    watch, load = Watched(kept), templates.load

    def noting(name: str, dialect: str = "duckdb") -> Any:
        watch.note(name)
        return load(name, dialect)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(templates, "load", noting)
        patched.setattr(stages, "perform", watch.perform)
        yield watch
