"""Turn pydantic's findings into sentences: the place, what is allowed there, and the nearest valid word.

All that is said about a key comes from the job file's JSON schema, so messages, editors and models agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sqldeid.errors import JobError
from sqldeid.job.rules import BrokenRules, Problem

Schema = Mapping[str, Any]

NOT_YET: frozenset[str] = frozenset()
"""Keys, and words for keys, that the job file's contract has and this version refuses. Built one: remove its line."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class _Place:
    """A location of pydantic's, without its marks of union branches: keys, items in lists (from 1), and the schema."""

    keys: tuple[str, ...]
    items: tuple[int, ...]
    schema: Schema

    @property
    def pattern(self) -> str:
        """The keys dotted, with names of releases and columns as ``*``."""
        free = {1} | ({3} if self.keys[2:3] == ("columns",) else set())
        return ".".join("*" if i in free else key for i, key in enumerate(self.keys))


def refusal(name: str, problems: Iterable[Problem]) -> JobError:
    """One error with one line for each different problem; its key is that of the first."""
    once = list(dict.fromkeys(problems))
    lines = [f"{name}: {dotted(p.where)}: {p.text}" if p.where else f"{name}: {p.text}" for p in once]
    return JobError("\n".join(lines), key=dotted(once[0].where + once[0].names) if once else "")


def dotted(keys: Iterable[str]) -> str:
    """Keys as TOML writes them: bare where possible, else quoted, and never a control character."""
    return ".".join(key if _BARE.fullmatch(key) else quoted(key) for key in keys)


def quoted(word: str) -> str:
    """A word in double quotes, on one line and harmless to a terminal."""
    return json.dumps(word, ensure_ascii=not word.isprintable())


def translate(error: ValidationError, schema: Schema) -> list[Problem]:
    """Every finding of pydantic as problems, in its order."""
    return [p for detail in error.errors(include_url=False) for p in _problems(detail, schema)]


def misshapen(error: ValidationError, schema: Schema) -> set[tuple[str, ...]]:
    """The keys that hold a value of a wrong type, of which rules between keys must not read."""
    return {
        _locate(detail["loc"], schema).keys
        for detail in error.errors(include_url=False)
        if detail["type"].endswith(("_type", "_tag_invalid"))
        or (detail["type"] not in _READABLE and not isinstance(detail["input"], (str, int, float, bool)))
    }


_READABLE = ("missing", "extra_forbidden", "value_error")
"""Findings of which the value is of the right type, or is not there."""


def without(job: Mapping[str, Any], keys: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """The job as if nothing were said under these keys."""
    own = deepcopy(dict(job))
    for path in keys:
        here: Any = own
        for step in path[:-1]:
            here = here.get(step) if isinstance(here, dict) else None
        if isinstance(here, dict) and path and path[-1] in here:
            here[path[-1]] = None
    return own


def _problems(detail: ErrorDetails, schema: Schema) -> list[Problem]:
    place = _locate(detail["loc"], schema)
    broken = detail.get("ctx", {}).get("error")
    if isinstance(broken, BrokenRules):
        return [p.inside(*place.keys) for p in broken.problems]
    if detail["type"] == "extra_forbidden":
        return [_unknown_key(detail["loc"], place, schema)]
    if detail["type"] == "missing":
        return [Problem(place.keys, _missing(place.schema))]
    given = detail["input"]
    if isinstance(given, str) and f"{place.pattern} = {given}" in NOT_YET:
        return [Problem(place.keys, f"{quoted(given)} is not available in this version of sqldeid")]
    item = " of ".join(f"item {number}" for number in reversed(place.items)) + " " * bool(place.items)
    nearest = did_you_mean(given, place.schema.get("enum", ())) if isinstance(given, str) else ""
    return [Problem(place.keys, f"{item}must be {describe(place.schema)}{_too_great(given, place.schema)}{nearest}")]


def _too_great(given: object, schema: Schema) -> str:
    """The greatest whole number, which nobody needs to hear of who wrote none that is greater."""
    most = schema.get("maximum", given)
    return f" and at most {most}" if isinstance(given, int) and given > most >= 2**53 else ""


def _unknown_key(loc: tuple[int | str, ...], place: _Place, schema: Schema) -> Problem:
    if place.pattern in NOT_YET:
        return Problem(place.keys, "is not available in this version of sqldeid")
    valid = list(_locate(loc[:-1], schema).schema.get("properties", ()))
    hint = did_you_mean(place.keys[-1], valid) or f"; valid keys: {', '.join(valid)}"
    return Problem(place.keys[:-1], f"unknown key {quoted(place.keys[-1])}{hint}", place.keys[-1:])


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """The end of a message on a word that is none of the valid ones: the nearest of them; empty where none is near."""
    known = {v.casefold(): v for v in valid}
    plain = word.casefold()
    close = get_close_matches(plain, known, n=1) or [v for v in known if plain and v.startswith(plain)]
    return f"; did you mean {quoted(known[close[0]])}?" if close else ""


def _missing(schema: Schema) -> str:
    if schema.get("required"):
        return f"missing; add this section with {' and '.join(schema['required'])}"
    return f"missing; it must be {describe(schema)}"


def _locate(loc: tuple[int | str, ...], root: Schema) -> _Place:
    """Walk the schema along a location; a step at a union names its branch and is no key of the file."""
    here: Schema = root
    keys: list[str] = []
    items: list[int] = []
    for step in loc:
        if "oneOf" in here and "properties" not in here:
            here = _follow(here["oneOf"][1 if step == "section" else 0], root)
        elif "anyOf" in here and isinstance(step, int):  # one table, or a list of them: one is read as a list of it
            items += [step + 1] if step else []
            here = _follow(here["anyOf"][0], root)
        elif here.get("type") == "array" and isinstance(step, int):
            items.append(step + 1)
            here = _follow(here["items"], root)
        else:
            keys.append(str(step))
            here = _follow(_child(here, str(step)), root)
    return _Place(tuple(keys), tuple(items), here)


def _child(schema: Schema, key: str) -> Schema:
    named = schema.get("properties", {}).get(key)
    other = next(iter(schema.get("patternProperties", {}).values()), schema.get("additionalProperties"))
    found = named if named is not None else other
    return found if isinstance(found, Mapping) else {}


def _follow(schema: Schema, root: Schema) -> Schema:
    """The schema that a ``$ref`` names, or this one."""
    ref = schema.get("$ref")
    return root["$defs"][str(ref).rpartition("/")[2]] if ref else schema


def describe(schema: Schema) -> str:
    """What a schema allows, to follow "must be": ``a whole number, at least 1``."""
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(quoted(word) for word in schema["enum"])
    if "oneOf" in schema and "properties" not in schema:
        words = {"string": "text", "array": "a list"}
        return " or ".join(words.get(branch.get("type"), "a table of keys") for branch in schema["oneOf"])
    if any("enum" in branch for branch in schema.get("anyOf", ())):
        return ", or ".join(map(describe, schema["anyOf"]))
    if "anyOf" in schema:
        texts = schema["anyOf"][0].get("type") == "string"
        one, more = ("text", "texts") if texts else ("a table of keys", "such tables")
        return f"{one}, or a list of {more}, not empty"
    kinds = {
        "integer": "a whole number",
        str(["integer", "string"]): "a whole number or text",
        str(["number", "string"]): '"auto", "none" or a number',
        "number": "a number",
        "string": "text, not empty and without NUL characters",
        "boolean": "true or false, without quotes",
        "array": "a list, not empty",
        "object": "a table of keys",
    }
    return kinds.get(str(schema.get("type")), "another value") + _bounds(schema)


def _bounds(schema: Schema) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "greater than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
    }
    said = [f"{text} {_plain(schema[bound])}" for bound, text in words.items() if schema.get(bound, 2**53) < 2**53]
    return ", " + " and ".join(said) if said else ""


def _plain(number: float) -> str:
    """A bound as a user would write it: 0.000001, not 1e-06."""
    return f"{number:.6f}".rstrip("0").rstrip(".")
