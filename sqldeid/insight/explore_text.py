"""How far free text tells people apart, and what it tells about them (Mazzone 2019, §3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

from sqlglot import exp

from sqldeid.engine.base import Column, Engine
from sqldeid.errors import JobError
from sqldeid.findings import ExploredText, KeywordCount
from sqldeid.insight.explore_source import Arm, Source, measure, open_table
from sqldeid.insight.keywords import pattern
from sqldeid.sql import column, identifier, literal, render

FIRST = (10, 20, 40)
"""Characters from the beginning, where nothing is said."""

KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "age": ("year old", "year-old", "years old", "years-old", "yo", "y/o", "born in"),
    "sex": ("she", "he", "her", "his", "male", "female", "man", "woman"),
    "ethnicity": ("white", "black", "african american", "native american", "asian", "caucasian", "hispanic", "arabic"),
    "religion": ("religion", "catholic", "protestant", "muslim", "jewish", "buddhist", "hindu", "church", "mosque"),
    "orientation": ("heterosexual", "homosexual", "bisexual", "gay", "lesbian", "transgender", "cisgender"),
    "family": ("wife", "husband", "partner", "son", "daughter", "mother", "father", "married", "divorced", "widowed"),
    "work": ("employed", "works as", "worked as", "retired", "occupation", "veteran", "homeless"),
    "habits": ("alcohol", "etoh", "smoker", "tobacco", "cocaine", "heroin", "abuse"),
}
"""Groups of English words that give a person's attributes away, after table 3.1 of the source."""


@dataclass(frozen=True, slots=True)
class TextQuestion:
    """What is asked about a column of free text.

    Parameters
    ----------
    first
        Numbers of characters from the beginning, each at least 1.
    keywords
        Group → words or phrases; a text belongs to a group if one of them stands in it as a word, whatever its case.
    person
        Column whose distinct values are persons; classes then count persons.
    """

    table: str
    column: str
    first: tuple[int, ...] = FIRST
    keywords: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: KEYWORDS)
    person: str | None = None


def explore_text(asked: TextQuestion, engine: Engine) -> ExploredText:
    """Count texts whose beginning is nobody else's, and texts with a keyword. Rows without a text are left out.

    Cost: three scans of the column.

    Raises
    ------
    JobError
        If a table or column is not there, the column holds no text, or a keyword is empty.
    """
    started = monotonic()
    source = open_table(asked.table, asked.person, engine)
    found = source.find(asked.column, "--text")
    if found.kind != "text":
        raise JobError.at("--text", f"{found.name} is of type {found.shown_type}; name a column of text")
    text = _text_of(found)
    row = engine.row("insight/count_texts", source=source.relation, text=text, person=source.person_column)
    if not row["n"]:
        raise JobError.at("--text", f"{found.name} is NULL in every row of {source.label}")
    lengths = sorted(set(asked.first))
    if lengths and lengths[0] < 1:
        raise JobError.at("--first", "a number of characters is at least 1")
    prefixes = [{"name": identifier(f"p{i}"), "length": n} for i, n in enumerate(lengths)]
    arms = []
    if prefixes:
        person = source.person_column
        folded = engine.make(
            "insight/fold_prefixes",
            "explore_prefixes",
            source=source.relation,
            text=text,
            person=person,
            prefixes=prefixes,
        )
        arms = [Arm((f"first {n}",), folded, (column(f"p{i}"),)) for i, n in enumerate(lengths)]
    return ExploredText(
        table=asked.table,
        column=found.name,
        person=source.person_name,
        rows=int(row["n"]),
        persons=int(row["persons"]),
        prefixes=tuple(measure(arms, engine, shared=source.person is not None)),
        keywords=_count_keywords(asked, text, source, engine),
        seconds=round(monotonic() - started, 3),
    )


def _text_of(found: Column) -> exp.Expr:
    """The column as text, which not every engine makes by itself of an enumeration, say."""
    value = column(found.name, "s")
    return value if found.type == "VARCHAR" else exp.cast(value, exp.DataType.build("varchar", dialect="duckdb"))


def _count_keywords(asked: TextQuestion, text: exp.Expr, source: Source, engine: Engine) -> tuple[KeywordCount, ...]:
    if not asked.keywords:
        return ()
    dialect = engine.capabilities.dialect
    groups = [
        {
            "hit": identifier(f"hit_{i}"),
            "pattern": literal(pattern(group, words, dialect)),
            "rows": identifier(f"rows_{i}"),
            "persons": identifier(f"persons_{i}"),
        }
        for i, (group, words) in enumerate(asked.keywords.items())
    ]
    found = render(
        "insight/count_keywords", source=source.relation, text=text, person=source.person_column, groups=groups
    )
    row = engine.query(found).to_pylist()[0]
    return tuple(
        KeywordCount(group, int(row[f"rows_{i}"]), int(row[f"persons_{i}"])) for i, group in enumerate(asked.keywords)
    )
