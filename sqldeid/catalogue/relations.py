"""What a job names as a source, as a relation that statements read: a table, or a query, with its filter."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.job.parts import Query, Source
from sqldeid.sql import bind, outward, parse_expression, parse_query, parse_table
from sqldeid.sql.names import refuse_same_names


def resolve(source: Source, engine: Engine, key: str, *, query: str = "the source query") -> tuple[exp.Expr, str]:
    """A table or query of the job as a relation, and what messages call it: the table's name, or `query`.

    Raises
    ------
    JobError
        If there is no such table, or the query is none, or returns two columns of one name.
    """
    if not isinstance(source, Query):
        return engine.resolve(parse_table(source, key=key), key=key), source
    key = f"{key}.query"
    bound = bind(parse_query(source.query, key=key), lambda parts: engine.resolve(parts, key=key))
    if not isinstance(bound, exp.Query):
        raise JobError.at(key, "only a query is allowed here; write one SELECT")
    refuse_same_names(engine.output_names(bound, key=key), what=key, key=key)
    return exp.Subquery(this=bound), query


def parts_of(table: str, engine: Engine, key: str) -> tuple[str, ...]:
    """The parts of a table's name from the command line: as SQL writes it, or bare as a file or database has it.

    A file `my people.csv` holds the table `my people`, and a shell takes the double quotes away that SQL wants.

    Raises
    ------
    JobError
        If the text is no name as SQL writes one, and no table is called so.
    """
    try:
        return parse_table(table, key=key)
    except JobError:
        if any(r.parts[-1] == table for r in engine.relations()):
            return (table,)
        raise


def resolve_expression(text: str, engine: Engine, key: str) -> exp.Expr:
    """A condition or value of the job, whose tables are those of the catalogue."""
    return bind(parse_expression(text, key=key), lambda parts: engine.resolve(parts, key=key))


def named(relation: exp.Expr) -> exp.Expr:
    """A relation under the name by which the job's own SQL knows it; a query is called `source`."""
    found = relation.copy()
    found.set("alias", exp.TableAlias(this=exp.to_identifier(relation.name or "source", quoted=True)))
    return found


def filtered(relation: exp.Expr, where: str, engine: Engine, key: str) -> exp.Subquery:
    """The rows of a relation that the job's filter keeps.

    Raises
    ------
    JobError
        If the filter names what is not there.
    """
    found = exp.Subquery(this=exp.select("*").from_(named(relation)).where(resolve_expression(where, engine, key)))
    engine.columns(found, key=key)
    return found


def outward_in(source: Source, texts: Iterable[str | None]) -> list[str]:
    """What looks across rows in a source and in expressions of the job, which were parsed before."""
    found = outward(parse_query(source.query, key="query")) if isinstance(source, Query) else []
    for text in texts:
        found += outward(parse_expression(text, key="where")) if text is not None else []
    return found
