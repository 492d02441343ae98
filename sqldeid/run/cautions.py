"""What a run says of the database itself: rows that it may not be shown, and copies of rows that it leaves bare.

Postgres leaves out, without a word, the rows that row-level security hides from a role. A release of the others is
sound, but it is a release of these alone: its counts, risks and attacks know no others, and `verify` by another role
finds that rows are missing.

DuckDB writes what does not fit into memory to temporary files, which are as bare as the rows are, also where the
database is encrypted, unless it is told otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqldeid.catalogue.beneath import beneath
from sqldeid.engine.base import Engine
from sqldeid.engine.duckdb import DuckDBEngine
from sqldeid.errors import listed
from sqldeid.run.wings import Plan, nature_of


def cautions(units: Sequence[Plan], engine: Engine) -> tuple[str, ...]:
    """Sentences to stand in a result: of each release whose source hides rows, and of the connection."""
    return (*_hiding(units, engine), *_spilling(engine))


def _hiding(units: Sequence[Plan], engine: Engine) -> list[str]:
    """Of a view's tables the role that owns the view may be asked; it is not known here, so that the text says may.

    All tables are named where it is not known which ones a view reads.
    """
    hiding = sorted(".".join(r.parts[-2:]) for r in engine.relations() if r.hides)
    if not hiding:
        return []
    said = []
    for unit in units:
        tables = beneath(nature_of(unit).source, engine)
        read = {name for of in tables for name in of or ()}
        if names := [name for name in hiding if None in tables or name.casefold() in read]:
            said.append(
                f"{unit.key}: row-level security applies to {listed(names)} for this role: rows that its policies hide "
                "may be missing from the release and from every count; release it as a role that sees all rows "
                "(BYPASSRLS, or the table's owner) if all are meant"
            )
    return said


def _spilling(engine: Engine) -> list[str]:
    if not isinstance(engine, DuckDBEngine) or not engine.spills_plain:
        return []
    return [
        "the source database is encrypted, and temporary files of this connection are not: rows that do not fit into "
        "memory may have been written to them as they are; set temp_file_encryption = true on the connection, or "
        "temp_directory = '' to write none"
    ]
