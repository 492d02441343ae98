"""A table release on its way: what each stage has found, for those after it; and what may accompany a release."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.making import Hearing
from sqldeid.publish import Note, Staging
from sqldeid.result import TableRelease
from sqldeid.stages import Stage
from sqldeid.tables.check.check import Checker
from sqldeid.tables.disguise.disguise import Secrets
from sqldeid.tables.fold.fold import Folded
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.search import Outcome
from sqldeid.tables.verify.verify import Verified
from sqldeid.tables.write.stage import Chosen


@dataclass(slots=True, repr=False)
class Draft:
    """A release of a plan, on its way. A stage that reads what no stage before it left raises `AttributeError`.

    Parameters
    ----------
    plan
        As the job asks for it; `chosen.plan` is what was found for it, and what is released.
    moved
        Rows and bytes that had come out of the engine before.
    folded
        The source as it was folded, before anything in it was disguised.
    checker, chooser
        What checks nodes by all criteria, and by those that the node is chosen by.
    chosen, out
        The node on all rows, and on those that are let out.
    held
        Persons who are let out of no class, though it passes.
    whole
        Whether the rows that are let out are those that the search saw.
    warnings
        What was found before there is a result to tell it.
    """

    plan: TablePlan
    engine: Engine
    staging: Staging
    listener: Hearing
    moved: tuple[int, int] = (0, 0)
    folded: Folded = field(init=False)
    outcome: Outcome = field(init=False)
    checker: Checker = field(init=False)
    chooser: Checker = field(init=False)
    chosen: Chosen = field(init=False)
    out: Chosen = field(init=False)
    note: Note = field(init=False)
    written: exp.Expr = field(init=False)
    verified: Verified = field(init=False)
    result: TableRelease = field(init=False)
    secrets: Secrets | None = None
    held: exp.Table | None = None
    whole: bool = True
    warnings: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Tell the listener which stage begins."""
        self.listener.step(self.plan.name, text)


DraftStage = Stage[Draft]


@dataclass(frozen=True, slots=True)
class Beside:
    """What accompanies a release: stages around the release's own, which know nothing of it.

    Parameters
    ----------
    before
        Once the node is chosen, before anything is written.
    after
        Once what was written is verified.
    told
        Once the result is there.
    """

    before: tuple[DraftStage, ...] = ()
    after: tuple[DraftStage, ...] = ()
    told: tuple[DraftStage, ...] = ()
