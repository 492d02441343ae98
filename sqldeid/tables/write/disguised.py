"""What accompanies a release whose keys or dates are replaced: secrets, and the source with what they make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sqldeid.keys import Key
from sqldeid.stages import Stage, Step
from sqldeid.tables.disguise.disguise import RUN_NOTE, disguise, fresh_secrets, pseudonyms, refuse_fine_dates
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.write.draft import Beside, Draft


def drawing(draft: Draft, key: Callable[[], Key | None], *, repeated: bool) -> None:
    """Draw the secrets before anything is read, so that a missing key is missed first.

    Parameters
    ----------
    repeated
        Whether later releases of the same persons are held to this one.
    """
    draft.secrets = fresh_secrets(draft.plan, key() if pseudonyms(draft.plan) else None, repeated=repeated)


def disguised(plan: TablePlan) -> Beside:
    """The source is disguised before it is written; the note has the public number of the pseudonyms."""
    return Beside(before=(Stage("", _disguise, lambda _: _named(plan)),))


def _named(plan: TablePlan) -> Iterator[Step]:
    """What the stage runs, for who shows it: a run does not wait for that."""
    from sqldeid.tables.disguise.statements import disguising

    return disguising(plan)


def _disguise(draft: Draft) -> None:
    if draft.secrets is None:
        return
    plan, folded = draft.chosen.plan, draft.chosen.folded
    refuse_fine_dates(plan, [draft.outcome.node])
    source = disguise(plan, draft.engine, folded.source, draft.secrets)
    draft.chosen = draft.out = replace(draft.chosen, folded=replace(folded, source=source))
    if pseudonyms(plan):  # by it who has the key can compute them again
        draft.note = draft.note.also({RUN_NOTE: draft.secrets.run})
