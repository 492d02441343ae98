"""A column of versions beside codes of which a hierarchy reads one version: the job says which rows are meant."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqldeid import job as jobfile
from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.hierarchy.versions import codes_of
from sqldeid.tables.columns import OtherColumn, QuasiIdentifier
from sqldeid.tables.stack import Stacked

_VERSION = re.compile(
    r"(icd|code|coding|dx|diag\w*|proc\w*)[ _.-]?(code)?[ _.-]?(version|vers|ver|system|vocabulary)(_id)?"
    r"|vocabulary_id|(icd|code)[ _.-]?(9_10|type|rev|revision)|kodesystem|kode_?version",
    re.IGNORECASE,
)
"""What columns that tell ICD-9 from ICD-10 are called."""


def refuse_unsaid(
    columns: Sequence[QuasiIdentifier | OtherColumn],
    there: Sequence[Column],
    stacked: Stacked | None,
    part: jobfile.Table,
    engine: Engine,
    key: str,
) -> None:
    """Refuse codes beside a column of their versions of which no filter speaks. Nothing is read.

    Parameters
    ----------
    there
        The columns of the source before its filter.

    Raises
    ------
    JobError
        If the hierarchy of a column is of one version, and the table has a column of versions that neither `where` nor
        the query names.
    """
    coded = {c.name: c for c in columns if isinstance(c, QuasiIdentifier) and codes_of(c.hierarchy) is not None}
    own = {c.name.casefold() for c in there}
    query = part.source.query if isinstance(part.source, jobfile.Query) else ""
    for name, c in coded.items():
        if c.source.name.casefold() in own:
            _refuse(
                name, c, there, f"{part.where or ''} {_after_where(query)}", f"{key}.where", f"{key}.columns.{name}"
            )
    for s in stacked.stacks if stacked is not None else ():
        made = next((coded[c.name] for c in s.columns if c.name in coded), None)
        if made is not None:
            child = engine.columns(s.relation, key=s.key)
            _refuse(made.name, made, child, s.part.where or "", f"{s.key}.where", s.key)


def _after_where(query: str) -> str:
    """What of a query filters: a column that is only selected is not filtered."""
    return " ".join(re.split(r"\bwhere\b|\bon\b|\bqualify\b|\bhaving\b", query, flags=re.IGNORECASE)[1:])


def _refuse(name: str, c: QuasiIdentifier, there: Sequence[Column], said: str, where: str, key: str) -> None:
    for other in there:
        if not _VERSION.fullmatch(other.name) or other.name.casefold() == c.source.name.casefold():
            continue
        if not re.search(rf"(?<!\w){re.escape(other.name)}(?!\w)", said, re.IGNORECASE):
            raise JobError(
                f"{key}: hierarchy {c.hierarchy_name} reads codes of one version, and {other.name} beside {name} says "
                f'that there may be others, of which some look alike; keep one: {where} = "{other.name} = 9"',
                key=key,
            )
