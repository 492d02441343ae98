"""What other runs of sqldeid publish into a schema of Spark's catalogue while a run is at work, for it has no lock.

A run is held to the releases that are there as it begins. So it does not begin while another one's staged table is
there, whatever its release is called, and it looks again just before it publishes: nothing may have come since. It has
staged its own tables by then, and another run sees these. Dead runs publish nothing (`sqldeid.publish.spark_runs`).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from sqlglot import exp

from sqldeid.engine.base import Relation
from sqldeid.engine.spark import SparkEngine
from sqldeid.errors import EngineError
from sqldeid.publish.notes import STAGED, Note, read_note
from sqldeid.publish.spark_runs import FOLDER, is_over, snapshots, staged_by, when_and_where
from sqldeid.sql import table_name


@dataclass(frozen=True, slots=True)
class Beside:
    """What tells a table or view of sqldeid's from any other: its name, its note, and when it was made.

    That a table was staged does not count: the note loses it once the table is published.
    """

    name: str
    note: str
    made: str


def beside_in(engine: SparkEngine, schema: str) -> frozenset[Beside]:
    """All that runs of sqldeid have left in a schema, as the catalogue was read last."""
    return frozenset(_known(engine, relation) for relation in _noted(engine, schema))


def refuse_staged_beside(engine: SparkEngine, schema: str, names: Sequence[str]) -> None:
    """Refuse to begin where another run has staged a release of another name than these.

    Raises
    ------
    EngineError
        Naming the table that it staged.
    """
    given = {name.casefold() for name in names}
    noted = _noted(engine, schema)
    views = {r.parts[-1].casefold(): r for r in noted if r.is_view}
    for relation in noted:
        release, name = _release(relation), relation.parts[-1].casefold()
        if release in given or name == release or not _is_live(relation):
            continue
        view = views.get(release)
        if view is None or name not in snapshots(definition(engine, table_name(*view.parts)), release):
            raise _busy(relation, schema)


def refuse_beside(engine: SparkEngine, schema: str, before: Set[Beside], own: Set[str]) -> None:
    """Refuse to publish where another run has staged or published since this one began.

    Parameters
    ----------
    before
        What was there then.
    own
        Names, in small letters, of what the run staged, and of what stands at its releases' names as it did then.

    Raises
    ------
    EngineError
        Naming what came.
    """
    for relation in _noted(engine, schema):
        name = relation.parts[-1]
        if name.casefold() in own or _known(engine, relation) in before:
            continue
        if staged_by(relation) is None or name.casefold() == _release(relation):
            raise EngineError.at(
                "release.schema",
                f"another run of sqldeid published {schema}.{name} meanwhile, and each must know of the other's "
                "releases; nothing was published: run again",
            )
        if _is_live(relation):
            raise _busy(relation, schema)


def definition(engine: SparkEngine, view: exp.Table) -> str:
    """The statement that makes a view as it is now."""
    return str(engine.read("publish/show_view", view=view)[0]["createtab_stmt"])


def _noted(engine: SparkEngine, schema: str) -> list[Relation]:
    there = (r for r in engine.relations() if r.parts[-2].casefold() == schema.casefold())
    return [r for r in there if read_note(r.comment) is not None]


def _known(engine: SparkEngine, relation: Relation) -> Beside:
    content = {key: value for key, value in (read_note(relation.comment) or {}).items() if key != STAGED}
    note = Note(str(content["release"]), content, {}).to_json()
    return Beside(relation.parts[-1].casefold(), note, engine.made_at(relation))


def _release(relation: Relation) -> str:
    return str((read_note(relation.comment) or {}).get("release", "")).casefold()


def _is_live(relation: Relation) -> bool:
    """Whether a run that may be alive staged a table, to publish it in the catalogue."""
    staged = staged_by(relation)
    return staged is not None and not is_over(staged) and FOLDER not in staged


def _busy(relation: Relation, schema: str) -> EngineError:
    staged, table = staged_by(relation) or {}, ".".join(relation.parts)
    return EngineError.at(
        "release.schema",
        f"another run of sqldeid is publishing into the schema {schema}, and each must know of the other's releases: "
        f"it staged {table} {when_and_where(staged)}; nothing was published: run again when it is done, or, once its "
        f"process is no more, DROP TABLE {table} (a day later it is passed over)",
    )
