"""A proposed job as commented TOML: only names, rules and reasons stand in it, never a value of the data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap

from sqldeid.insight.proposals import SUPPRESSION_LIMIT, K, Proposal, Proposed
from sqldeid.job.rules import MAX_NAME_BYTES, name_flaw

_WIDTH = 112
_COLUMN = 28
TIME_LIMIT_SECONDS = 60
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_ON_SPARK = re.compile(r"\W", re.ASCII)


def job_text(proposed: Proposed, database: str, into: str | None, dialect: str = "duckdb") -> str:
    """The job file.

    Parameters
    ----------
    database
        As the user named it; for the first comment.
    into
        Database file that the release goes to, relative to the job file; None for a schema of the database itself.
    dialect
        The engine that the database is for.
    """
    name = release_name(proposed.facts.parts[-1], dialect)
    table = f"tables.{_key(name)}"
    lines = [
        *_head(proposed, database),
        "[release]",
        _place(into),
        "",
        f"[{table}]",
        f"source = {_text(_source(proposed.facts.parts))}",
        *_person(proposed),
        "",
        *_comment(
            "Roles: quasi-identifying (known to strangers, generalised), sensitive and insensitive (released as they "
            "are), identifying and free-text (never released). What is not named is not released. Read each line: a "
            "role is a judgement, and the reasons given are guesses from names, types and counts."
        ),
        f"[{table}.columns]",
        *(line for p in proposed.columns for line in _column(p)),
        "",
        f"[{table}.privacy]",
        *_privacy(proposed),
        "",
        f"[{table}.search]",
        'method = "frontier"           # exact: no admissible node loses less',
        f"time_limit = {TIME_LIMIT_SECONDS}               # seconds; then the best node so far, with its proven gap",
    ]
    return "\n".join(lines) + "\n"


def _head(proposed: Proposed, database: str) -> Iterator[str]:
    yield from _comment(
        f"Proposed by sqldeid init for {database}. It runs as it is, and is meant to be read and changed:"
    )
    yield "#     sqldeid anonymize DB --job THIS-FILE --plan    shows what would be done and touches nothing"
    yield "#     sqldeid anonymize DB --job THIS-FILE           does it"
    if not proposed.facts.rows:
        yield from _comment("The table has no rows now; until it has some, there is nothing to release.")
    yield ""


def _place(into: str | None) -> str:
    if into is None:
        return 'schema = "release"    # made if it is not there; give readers this schema and nothing else'
    return f"into = {_text(into)}    # a fresh file: whoever gets it sees nothing else"


def _person(proposed: Proposed) -> Iterator[str]:
    if proposed.person is not None:
        yield from _explained(f"person = {_text(proposed.person)}", proposed.person_why)
    else:
        yield from _comment(f"person is absent: {proposed.person_why}.")


def _column(proposal: Proposal) -> Iterator[str]:
    line = f"{_key(proposal.name)} = {_value(proposal.keys)}"
    if proposal.released:
        yield from _explained(line, proposal.why)
    else:
        yield from _comment(f"{_key(proposal.name)}: {proposal.why}.")


def _explained(line: str, why: str) -> Iterator[str]:
    """A line with its reason behind it, or above it where that is too long."""
    if len(line) + len(why) + 4 <= _WIDTH:
        yield f"{line.ljust(_COLUMN)}  # {_shown(why)}"
    else:
        yield from _comment(why)
        yield line


def _privacy(proposed: Proposed) -> Iterator[str]:
    if proposed.k == K:
        why = "every released row looks like at least four others; 11 and more is usual for public data"
    else:
        why = f"the table has no more rows; at least {K} is usual, and 1 protects nobody"
    yield from _explained(f"k = {proposed.k}", why)
    yield from _explained(
        f"suppression_limit = {SUPPRESSION_LIMIT}",
        f"at most {100 * SUPPRESSION_LIMIT:g} % of the rows may be left out, if that keeps the others finer",
    )
    if proposed.l_diversity is not None:
        name, l = proposed.l_diversity
        line = f"l_diversity = {{ column = {_text(name)}, l = {l} }}"
        yield from _explained(line, "no class may give a sensitive value away by having one only")


def _comment(text: str) -> Iterator[str]:
    for line in wrap(_shown(text), _WIDTH, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"


def release_name(table: str, dialect: str = "duckdb") -> str:
    """The table's name, mended where a release may not be called so: on Spark of letters, digits and _ alone."""
    name = "".join("_" if c in "\0/\\" else c for c in table).lstrip(".") or "release"
    if dialect == "spark":
        name = _NOT_ON_SPARK.sub("_", name)
    name = name.encode("utf-8", "replace")[:MAX_NAME_BYTES].decode("utf-8", "ignore")
    return "release" if name_flaw(name) else name


def _source(parts: tuple[str, ...]) -> str:
    """Schema and table as a job names them; the catalogue is the database that is opened."""
    if all(_BARE_NAME.fullmatch(p) for p in parts[-2:]):
        return ".".join(parts[-2:])
    return ".".join('"' + p.replace('"', '""') + '"' for p in parts[-2:])


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _value(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(str(k))} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    """A basic string of TOML."""
    return _safe(json.dumps(text, ensure_ascii=False))


def _safe(text: str) -> str:
    """Every character that TOML or a terminal takes for a control as an escape; a name is never more than a name."""
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04X}" if code < 2**16 else f"\\U{code:08X}"


def _shown(text: str) -> str:
    """A comment's text on one line."""
    return "".join(c if c.isprintable() else " " for c in text)
