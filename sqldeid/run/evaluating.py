"""What a release is still good for, against the originals: `sqldeid.evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from sqlglot import exp

from sqldeid import tables
from sqldeid.arguments import flag, number, text, unless_none, whole
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.engine.opening import Database, is_connection, path_of
from sqldeid.engine.remote import Remote
from sqldeid.errors import EngineError, JobError
from sqldeid.findings import Classification
from sqldeid.insight.utility import UtilityQuestion, classify
from sqldeid.insight.utility_model import Model, require
from sqldeid.job import Job
from sqldeid.publish import TARGET, Note
from sqldeid.publish.places import TableStatement, ViewStatement
from sqldeid.run.calls import heard_by, taken
from sqldeid.run.foreign import refuse_missing_parts
from sqldeid.run.places import Options, naming_job, naming_release, reading
from sqldeid.run.wings import groups_of, selected
from sqldeid.sql import Statement, identifier, literal, render, table_name
from sqldeid.tables import Listener


def evaluate(
    job: Job,
    database: Database,
    label: str,
    *,
    test: str | None = None,
    test_share: float = 0.3,
    seed: int = 0,
    model: Model = "logistic",
    originals: bool = True,
    options: Options | None = None,
    listener: Listener | None = None,
) -> Classification:
    """Train a classifier on the release of a training part, test it on held-out rows, beside one trained on originals.

    The test part is generalised by the same node, and none of it suppressed (Mazzone 2019, §5.3). Numbers are
    standardised, missing values the most frequent, categories and released quasi-identifiers one-hot. Of a release by
    local recoding, which has no one node, a label is an indicator of itself and of each of its ancestors, and the test
    part is left as it was. From a server
    come combinations of released columns and label with their numbers, never the person key.

    Parameters
    ----------
    label
        A column of the source that the job does not make quasi-identifying. Rows where it is NULL train no model.
    test
        A table of held-out rows with the same columns; then the whole source is the training part.
    test_share
        Else the share of the rows that are held out, about. Above 0, below 1.
    seed
        Of the split, by the hash of the person, or of the row where the job names none.
    model, originals
        ``logistic``: logistic regression; whether one is trained on the originals, too.
    options
        `only` names the release where the job has several tables.

    Raises
    ------
    JobError
        If the label is not there, quasi-identifying, or of one class or over a hundred; if a part is empty.
    """
    options, hearing = taken(job, options), heard_by(listener)
    require()
    test = unless_none(text, "test", test)
    asked = _question(label, model, test_share, seed, originals)
    name = _one_table(job, options, database)
    reader = reading(database, _beside(database), options.settings, command="evaluate")
    with reader as engine, naming_job(job), naming_release(f"tables.{name}"):
        table = job.tables[name]
        trained = tables.plan_part(name, table, engine, job.folder)
        others = table.model_copy(update={"source": test})
        held_out = None if test is None else tables.plan_part(name, others, engine, job.folder)
        layers = table.search.layers
        return classify(asked, trained, held_out, engine, Aside(engine), hearing, layers=layers)


@dataclass(slots=True)
class Aside:
    """A database in memory, of this transaction, or a server's temporary table: what is measured is gone with it."""

    engine: DuckDBEngine | Remote
    written: exp.Table | None = None

    def write(self, statement: TableStatement, note: Note) -> exp.Expr:
        """Create the release as a table, without its note."""
        if isinstance(self.engine, Remote):
            self.written = self.engine.workbench(f"{note.release}_measured")
            made = cast(Statement, statement(self.written))
            self.engine.execute(render(made.template, **{**made.parameters, "temporary": True}))
            return self.written
        if not self.engine.can_attach:
            raise EngineError("the connection is open for reading only; give the database's path instead")
        self.engine.execute(render("engine/create_database", path=literal(":memory:"), catalog=identifier(TARGET)))
        self.written = table_name(TARGET, "main", note.release)
        self.engine.execute(statement(self.written))
        return self.written

    def write_computed(self, statement: ViewStatement, note: Note, tables: Mapping[str, TableStatement]) -> exp.Expr:
        """Never: a release is measured as a table."""
        raise NotImplementedError

    def publish(self) -> tuple[str, ...]:
        """Never: a measured release is not published."""
        raise NotImplementedError


def _beside(database: Database) -> Path | None:
    return None if is_connection(database) else path_of(database)


def _one_table(job: Job, options: Options, database: Database) -> str:
    for name in (name for group in groups_of(job) for name in group if name in options.only):
        raise JobError(
            f"{job.name}: tables.{name}: is linked, and a classifier is trained on one table alone; leave link out "
            "in a job for this, or join the tables in a source query",
            key=f"tables.{name}",
        )
    classes = {name for name, table in job.tables.items() if table.parent is None}
    names = [name for name in selected(job, options.only, apart=True) if name in classes]
    if len(names) != 1:
        known = ", ".join(names or job.tables) or "none"
        raise JobError(
            f"{job.name}: one table release is evaluated at a time, by --only; the job has {known}", key="--only"
        )
    refuse_missing_parts(job, names, database, "evaluate")
    return names[0]


def _question(label: str, model: Model, test_share: float, seed: int, originals: bool) -> UtilityQuestion:
    """What is asked, each argument of its type and in its bounds."""
    if model not in get_args(Model):
        raise JobError.at("--model", f"must be {' or '.join(get_args(Model))}")
    test_share, seed = number("test_share", test_share), whole("seed", seed)
    if not 0 < test_share < 1:
        raise JobError.at("--test-share", "a share is above 0 and below 1")
    if seed < 0:
        raise JobError.at("--seed", "it must be 0 or more")
    return UtilityQuestion(text("label", label), model, test_share, seed, flag("originals", originals))


classification = evaluate
"""The name that it had first; `sqldeid.evaluate.classification` means it, too."""
vars(evaluate)["classification"] = evaluate

__all__ = ["Classification", "classification", "evaluate"]
