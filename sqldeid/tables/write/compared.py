"""Keep the class of every row of a release beside it, for whoever compares the tables of a run by their persons."""

from __future__ import annotations

from sqldeid.making import Cohorts
from sqldeid.sql import render
from sqldeid.sql.steps import as_needed
from sqldeid.stages import Stage
from sqldeid.tables.write.draft import Beside, Draft
from sqldeid.tables.write.stage import keep_classes

_PLACING = (
    *("tables/write/label_values", "tables/write/keep_classes", "tables/write/place_rows"),
    *("tables/check/merge_blanked", "tables/check/merge_known"),
)


def compared_by(cohorts: Cohorts) -> Beside:
    """Place the rows of a release that is verified where the run's other tables can be held to it.

    Cost: one scan of the source, none where the release is compared with no other.
    """

    def place(draft: Draft) -> None:
        out, engine = draft.out, draft.engine
        source = out.folded.source
        placed = cohorts.place(out.plan.name, out.k, source, engine)
        if placed is None:
            return
        kept = keep_classes(out, engine)
        columns = placed.columns
        engine.execute(
            render(
                "tables/write/place_rows",
                placed=placed.table,
                columns=columns,
                source=source,
                kept=kept,
                words=out.words,
            )
        )
        engine.drop(kept)

    return Beside(after=(Stage("", place, lambda _: as_needed(*_PLACING)),))
