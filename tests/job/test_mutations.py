"""Whatever is done to a job, it is a job or a `JobError`; what is accepted keeps the rules, stated here once more."""

from __future__ import annotations

import math
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sqldeid.errors import JobError
from sqldeid.job import Job, schema
from tests.support.examples import examples

CONTRACT = """
[release]
into = "out.duckdb"
as = "view"
[tables.patients]
source = { query = "SELECT 1" }
person = "subject_id"
where = "age >= 18"
view = "computed"
frozen = true
[tables.patients.columns]
subject_id = { role = "identifying" }
gender = { role = "quasi-identifying", hierarchy = "mimic3/gender", uncovered = "prefix" }
age = { role = "quasi-identifying", hierarchy = { bands = [5, 10, 20] } }
weight = { role = "quasi-identifying", hierarchy = { edges = [[50, 60.5, 70], [60.5]], tails = true } }
diagnosis = { role = "sensitive" }
[tables.patients.privacy]
k = 10
suppression_limit = 0.1
suppression = "drop"
[tables.patients.search]
method = "inverse-ola"
max_loss = 0.5
weights = { age = 3.0 }
[tables.stays]
source = "mimiciii.icustays"
rows_are_persons = true
columns.unit = { role = "quasi-identifying", hierarchy = { suppress = true } }
privacy.k = 5
"""
VALID: dict[str, Any] = tomllib.loads(CONTRACT)
CANARY = "C4nary"
QI = "quasi-identifying"
UNSEEN = {"identifying", "free-text"}


def words(node: object) -> set[str]:
    """Every key and word that the schema knows."""
    if isinstance(node, dict):
        return {str(k) for k in node} | {w for v in node.values() for w in words(v)}
    if isinstance(node, list):
        return {w for v in node for w in words(v)}
    return {node} if isinstance(node, str) and len(node) < 20 else set()


WORDS = sorted(words(schema()) | {"series", "stack", "mondrian", "pseudonym", "patients", "age", "AGE", "subject_id"})
KEYS = st.sampled_from(WORDS) | st.text(max_size=4) | st.sampled_from(["", ".", "a/b", "a\0", "\ud800", "ß", "SS"])
NUMBERS = st.integers(-2, 5) | st.floats() | st.sampled_from([2**63 - 1, 2**63, 10**400, -(10**400), 0.999, 1.0])
SCALARS = (
    st.none() | st.booleans() | NUMBERS | st.sampled_from(WORDS) | st.dates() | st.binary(max_size=2)
    | st.text(max_size=3).map(CANARY.__add__) | st.just("") | st.just(CANARY + "\ud800")
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3) | st.tuples(inner),
    max_leaves=6,
)


def sections(node: object) -> list[dict[str, Any]]:
    if not isinstance(node, dict):
        return []
    return [node, *(found for value in node.values() for found in sections(value))]


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A valid job with one to four keys replaced, removed, added, renamed or moved."""
    job = deepcopy(VALID)
    for _ in range(draw(st.integers(1, 4))):
        here = draw(st.sampled_from(sections(job)))
        old = draw(st.sampled_from(sorted(here, key=repr))) if here else None
        match draw(st.sampled_from(["replace", "remove", "add", "rename", "copy"])):
            case "replace" if old is not None:
                here[old] = draw(VALUES)
            case "remove" if old is not None:
                del here[old]
            case "rename" if old is not None:
                here[draw(KEYS)] = here.pop(old)
            case "copy":
                here[draw(KEYS)] = deepcopy(draw(st.sampled_from(sections(job))))
            case _:
                here[draw(KEYS)] = draw(VALUES)
    return job


def keeps_the_rules(job: Job) -> bool:
    """The contract again, naively, from the job that came out."""
    names = [name.casefold() for name in job.tables]
    return (
        len(set(names)) == len(names) > 0
        and all(n and n[0] != "." and not set(n) & set("/\\\0") for n in names)
        and (job.release.kind != "parquet" or bool(job.release.into))
        and all(
            any(c.role == "quasi-identifying" for c in t.columns.values())
            and all((c.hierarchy is not None) == (c.role == "quasi-identifying") for c in t.columns.values())
            and len({n.casefold() for n in t.columns}) == len(t.columns)
            and all(
                c.role == "identifying"
                for n, c in t.columns.items()
                if t.person and n.casefold() == t.person.casefold()
            )
            and type(t.privacy.k) is int
            and t.privacy.k >= 1
            and 0 <= t.privacy.suppression_limit < 1
            and (t.search.method == "inverse-ola") == (t.search.max_loss is not None)
            and all(
                w > 0 and math.isfinite(w) and t.columns[n].role == "quasi-identifying"
                for n, w in t.search.weights.items()
            )
            and (not t.search.weights or t.search.loss in ("loss", "prec"))
            and (not t.frozen or t.view == "computed")
            and (t.view == "snapshot" or t.frozen or {c.role for c in t.columns.values()} <= UNSEEN | {QI})
            and (t.view == "snapshot" or (job.release.kind == "view" and t.privacy.suppression == "drop"))
            and (t.person is None) == (t.rows_are_persons is True)
            and (t.rows == "one" or (t.person is not None and t.view == "snapshot" and t.search.method != "mondrian"))
            for t in job.tables.values()
        )
    )


@settings(max_examples=examples(400), deadline=None)
@given(mutated())
def test_a_mutated_job_is_a_job_or_a_job_error(data: dict[str, Any]) -> None:
    try:
        job = Job.parse(data)
    except JobError as error:
        lines = error.message.splitlines()
        assert lines and all(line.startswith("job: ") for line in lines)
        assert len(set(lines)) == len(lines)
        assert (
            CANARY not in error.message and "Input should" not in error.message and "another value" not in error.message
        )
        error.message.encode()
        return
    assert keeps_the_rules(job)
    again = Job.parse(job.model_dump(by_alias=True, exclude_unset=True))
    assert (again.release, again.tables) == (job.release, job.tables)
    assert len(job.sha256) == 64 and all(isinstance(text, str) for text in job.warnings())


@settings(max_examples=examples(200), deadline=None)
@given(place=st.integers(0, len(CONTRACT) - 1), size=st.integers(0, 12), new=st.binary(max_size=6))
def test_a_damaged_file_is_a_job_or_a_job_error(tmp_path_factory: Any, place: int, size: int, new: bytes) -> None:
    text = CONTRACT.encode()
    file: Path = tmp_path_factory.getbasetemp() / "damaged.toml"
    file.write_bytes(text[:place] + new + text[place + size :])
    try:
        job = Job.load(file)
    except JobError as error:
        assert error.message and all(line.startswith("damaged.toml") for line in error.message.splitlines())
        return
    assert keeps_the_rules(job)


OPTIONAL: dict[str, list[object]] = {
    "release.as": [None, "view", "table", "parquet"],
    "release.into": [None, "folder", "x.DuckDB"],
    "view": [None, "snapshot", "computed"],
    "frozen": [None, False, True],
    "person": ["z", None, "A", "c"],
    "rows": [None, "one", "many"],
    "rows_are_persons": [None, True],
    "privacy.suppression": [None, "drop", "blank"],
    "search.method": [None, "ola", "inverse-ola"],
    "search.max_loss": [None, 0.5, 7.0],
    "search.loss": [None, "prec", "entropy"],
    "search.weights": [None, {}, {"a": 1}, {"b": 1}],
    "columns.a": [{"role": QI, "hierarchy": "h"}, {"role": QI}, {"role": "identifying"}],
    "columns.b": [
        None,
        {"role": "sensitive"},
        {"role": QI, "hierarchy": "h"},
        {"role": "free-text", "uncovered": "top"},
    ],
}
"""For each key, values that are good by themselves, the first of them the most harmless (None: left out)."""


@st.composite
def combined(draw: st.DrawFn) -> dict[str, object]:
    """Some keys away from their harmless value, the others there."""
    changed = draw(st.sets(st.sampled_from(sorted(OPTIONAL)), max_size=5))
    return {key: draw(st.sampled_from(values)) if key in changed else values[0] for key, values in OPTIONAL.items()}


def broken(v: dict[str, Any]) -> set[str]:
    """The keys at which a combination breaks the contract, written out case by case."""
    columns = {name: v[f"columns.{name}"] for name in ("a", "b") if v[f"columns.{name}"]}
    roles = {name: column["role"] for name, column in columns.items()}
    person = (v["person"] or "").lower()
    computed, inverse, loss = v["view"] == "computed", v["search.method"] == "inverse-ola", v["search.loss"] or "loss"
    most, many = v["search.max_loss"], v["rows"] == "many"
    cases = {
        "release.into": v["release.as"] == "parquet" and v["release.into"] != "folder",
        "tables.t.view": computed
        and (v["release.as"] != "view" or many or ("sensitive" in roles.values() and not v["frozen"])),
        "tables.t.frozen": v["frozen"] and not computed,
        "tables.t.privacy.suppression": (computed or many) and v["privacy.suppression"] == "blank",
        "tables.t.search.max_loss": inverse != (most is not None) or (most == 7.0 and loss != "entropy"),
        "tables.t.search.weights": v["search.weights"] and loss == "entropy",
        "tables.t.columns": QI not in roles.values(),
        "tables.t.person": not v["person"] and not v["rows_are_persons"],
        "tables.t.rows": many and not v["person"],
        "tables.t.search.method": many and inverse,
        "tables.t.rows_are_persons": v["person"] and v["rows_are_persons"],
        "tables.t.columns.a.hierarchy": roles["a"] == QI and "hierarchy" not in columns["a"],
        "tables.t.columns.b.uncovered": roles.get("b") == "free-text",
    }
    found = {key for key, bad in cases.items() if bad}
    found |= {f"tables.t.columns.{n}" for n in roles if n == person and roles[n] != "identifying"}
    return found | {f"tables.t.search.weights.{n}" for n in v["search.weights"] or {} if roles.get(n) != QI}


@settings(max_examples=examples(500), deadline=None)
@given(combined())
def test_exactly_the_broken_rules_are_named(values: dict[str, Any]) -> None:
    """Accepted if and only if no rule is broken, and else every broken one is named at its key."""
    job: dict[str, Any] = {"tables": {"t": {"source": "s", "privacy": {"k": 2}}}}
    for path, value in values.items():
        here = job if path.startswith("release.") else job["tables"]["t"]
        *steps, last = path.split(".")
        for step in steps:
            here = here.setdefault(step, {})
        if value is not None:
            here[last] = deepcopy(value)
    try:
        Job.parse(job)
        found: set[str] = set()
    except JobError as error:
        found = {line.removeprefix("job: ").split(": ")[0] for line in error.message.splitlines()}
    assert found == broken(values)
