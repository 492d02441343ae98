"""Find, load and render the SQL templates. Rendering is safe by construction: a plain string is an error."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2
from sqlglot import exp

from sqldeid.errors import UnknownKindError
from sqldeid.sql import lists
from sqldeid.sql.compiled import compiled_in
from sqldeid.sql.dialects import transpile, write

SUFFIX = ".sql.jinja"
ENGINES = ("duckdb", "postgres", "spark")
EACH = "each"
"""In the place of an engine: the template is written for each and asks ``on.spark``; nothing is transpiled."""
COLLECTION = "statements"
"""The name, but for its engine, of a room's file that holds many short statements."""
STATEMENT = "\n{% statement "

KEPT = ("at once", "lazily", "never", "cut off", "brought")
"""How an engine whose temporary tables are views keeps the rows of one: as its statement is run, once they are read,
not at all, at once and without the plan that made them, or here and back. `KEPT_FILE` lists the templates by it;
lazily is what holds for others."""

KEPT_FILE = "kept.toml"


@dataclass(frozen=True, slots=True)
class Fixed:
    """A sqlglot expression written down once, where a statement names it hundreds of times (`fix`); or a whole query.

    Only what `render` or `fix` wrote may be put in here.
    """

    text: str
    dialect: str = "duckdb"


Part = exp.Expr | Fixed | int | float | bool | None
"""What may stand in a template's output."""


class Statement(str):
    """A rendered statement: its text for DuckDB, and what it was made from, so that another engine writes its own.

    Whoever asks a question renders it once and hands it to an engine, without knowing which one it is.
    """

    template: str
    parameters: Mapping[str, object]

    def written_for(self, dialect: str) -> str:
        """The text for an engine: its own template where there is one, else the portable one, transpiled."""
        return str(self) if dialect == "duckdb" else render(self.template, dialect, **self.parameters)

    def kept_on(self, dialect: str) -> str:
        """How the temporary table that it makes or adds to is kept on an engine, one of `KEPT`."""
        return _kept().get(str(load(self.template, dialect).name), "lazily")

    @property
    def tables(self) -> list[exp.Table]:
        """Every table that its parameters name."""
        found: list[exp.Table] = []
        waiting: list[object] = [self.parameters]
        while waiting:
            part = waiting.pop()
            if isinstance(part, exp.Expr):
                found += part.find_all(exp.Table)
            elif isinstance(part, Mapping):
                waiting += part.values()
            elif isinstance(part, list | tuple):
                waiting += part
        return found


def _statement(text: str, template: str, parameters: Mapping[str, object]) -> Statement:
    made = Statement(text)
    made.template, made.parameters = template, parameters
    return made


def fix(part: exp.Expr) -> Fixed:
    """Write an expression down for DuckDB; what a template gets is as safe as the expression."""
    return Fixed(part.sql(dialect="duckdb"))


class _Unknown:
    """What a template prints where it does not know a kind; printing it raises, so that there is no fall-back."""


class UnsafeSqlError(TypeError):
    """A template was given something that is not a sqlglot expression, a finite number or a boolean: a bug."""


def folder() -> Path:
    """The templates' folder: inside an installed package, else the repository's."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "_sql"
    return packaged if packaged.is_dir() else package.parent / "sql" / "templates"


def template_names() -> tuple[str, ...]:
    """All templates as ``room/verb_noun`` or ``room/verb_noun.engine``, the room as in `sqldeid/`, sorted."""
    found: list[str] = []
    for name in _files():
        room, noun, engine = _parted(name)
        found += [f"{room}/{one}{engine}" for one in _collected(name)] if noun == COLLECTION else [name]
    return tuple(sorted(found))


@cache
def source_of(name: str) -> str | None:
    """The text of a template by its full name: its own file, or its part of the room's collection, or None."""
    if name in _files():
        return (folder() / f"{name}{SUFFIX}").read_text(encoding="utf-8")
    room, noun, engine = _parted(name)
    return _collected(f"{room}/{COLLECTION}{engine}").get(noun)


@cache
def _files() -> frozenset[str]:
    root = str(folder())
    found = (os.path.join(room, name) for room, _, names in os.walk(root) for name in names if name.endswith(SUFFIX))
    return frozenset(path[len(root) + 1 : -len(SUFFIX)].replace(os.sep, "/") for path in found)


@cache
def _collected(name: str) -> dict[str, str]:
    return statements_in(source_of(name) or "") if name in _files() else {}


def statements_in(collection: str) -> dict[str, str]:
    """The short statements of a collection by name: each follows its ``{% statement … %}``, up to the next one."""
    parts = [part.partition(" %}\n") for part in collection.split(STATEMENT)[1:]]
    return {name: source for name, _, source in parts}


def _parted(name: str) -> tuple[str, str, str]:
    """Room, verb and noun, and the engine with its dot, if any."""
    room, _, last = name.rpartition("/")
    noun, dot, engine = last.partition(".")
    return room, noun, dot + engine


def load(name: str, dialect: str = "duckdb") -> jinja2.Template:
    """A template to be rendered; ``name.dialect`` is taken before ``name.each`` and ``name``, where it exists."""
    return _parsed(name, dialect)


@cache
def _parsed(name: str, dialect: str) -> jinja2.Template:
    return _environment(dialect).select_template([f"{name}.{dialect}", f"{name}.{EACH}", name])


@cache
def made_by(name: str) -> str:
    """The parameter that names the temporary table which a template makes.

    Raises
    ------
    UnsafeSqlError
        If it makes none: a bug.
    """
    found = re.search(
        r"CREATE TEMPORARY [^{]*(?:\{%[^{]*)*\{\{ (\w+) \}\}", source_of(str(_parsed(name, "duckdb").name)) or ""
    )
    if found is None:
        raise UnsafeSqlError(f"the template {name} makes no temporary table")
    return found[1]


def head_of(source: str) -> str:
    """What a template says of itself in the comment that it begins with; empty where there is none."""
    found = re.match(r"\{#-?(.*?)-?#\}", source, re.DOTALL)
    return found[1] if found else ""


def kept_in(text: str) -> list[tuple[str, str, str]]:
    """What a `KEPT_FILE` says, as often as it says it: template, how its table is kept, and why."""
    tables: dict[str, dict[str, list[str]]] = tomllib.loads(text)
    return [(name, how, why) for how, reasons in tables.items() for why, names in reasons.items() for name in names]


@cache
def _kept() -> dict[str, str]:
    return {name: how for name, how, _ in kept_in((folder() / KEPT_FILE).read_text(encoding="utf-8"))}


def render(name: str, dialect: str = "duckdb", /, **parameters: object) -> str:
    """The text of one statement.

    A template of the engine's own, or one that asks which it is (``on.spark``), is taken as it is; a portable one is
    written for DuckDB and then transpiled.

    Parameters
    ----------
    name
        Template without its suffix, e.g. ``tables/check/check_nodes``.
    dialect
        Engine whose text is wanted; names and literals are written in its way.
    parameters
        sqlglot expressions, finite numbers, booleans, and lists or dataclasses of these. A list that is printed has
        commas between its parts.

    Returns
    -------
    For DuckDB a `Statement`, which other engines can write in their own way; else plain text.

    Raises
    ------
    UnsafeSqlError
        If a plain string (or anything else that is not safe) would reach the text.
    jinja2.UndefinedError
        If the template asks for a parameter that was not given.
    UnknownKindError
        If the template branches on a kind that it does not know (it prints ``unknown_kind`` there), or for an engine
        that is not one of `ENGINES`.
    """
    template = load(name, dialect)
    if dialect == "duckdb":
        return _statement(template.render(**parameters).strip(), name, parameters)
    if template.name != name:
        return template.render(**parameters).strip()
    return transpile(_environment("duckdb").get_template(name).render(**parameters).strip(), dialect)


@cache
def _environment(dialect: str) -> jinja2.Environment:
    if dialect not in ENGINES:
        raise UnknownKindError(dialect, "engine")
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(source_of),
        undefined=jinja2.StrictUndefined,
        finalize=_finalize(dialect),
        extensions=[lists.Lists],
        autoescape=False,  # noqa: S701 - SQL, not HTML; finalize lets no plain string through
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=compiled_in(folder(), dialect, __file__, lists.__file__),
    )
    made.globals |= {"unknown_kind": _Unknown(), "on": {engine: engine == dialect for engine in ENGINES}}
    return made


def _finalize(dialect: str) -> Callable[[object], str]:
    def safe(part: object) -> str:
        if isinstance(part, jinja2.Undefined):
            return str(part)  # raises UndefinedError with the parameter's name
        if isinstance(part, _Unknown):
            raise UnknownKindError("given to a statement", "kind")
        if isinstance(part, exp.Expr):
            return write(part, dialect)
        if isinstance(part, Fixed) and part.dialect == dialect:
            return part.text
        if isinstance(part, bool):
            return "TRUE" if part else "FALSE"
        if isinstance(part, int):
            return f"({part})" if part < 0 else str(part)
        if isinstance(part, float) and math.isfinite(part):
            text = repr(part)
            return text if "e" in text else f"{text}e0"
        if isinstance(part, list | tuple):
            return ", ".join(map(safe, part))
        raise UnsafeSqlError(f"a template would print a {type(part).__name__}; give a sqlglot expression or a number")

    return safe
