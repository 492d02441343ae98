"""The file of house rules as pydantic models. Their field descriptions are the reference of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, StringConstraints, ValidationError

from sqldeid.job.about import Day, Line
from sqldeid.job.fields import Positive, Section, Text, Whole, listed, or_one
from sqldeid.job.job import JobSchema
from sqldeid.job.parts import TableMethod
from sqldeid.job.rules import SECTIONS, Problem, Role
from sqldeid.job.sections import section
from sqldeid.job.series import Method as Perturbation

Share = Annotated[float, Field(ge=0, le=1)]
Guard = Literal["l_diversity", "t_closeness", "delta_disclosure", "beta_likeness", "m_concealing"]
Asked = Literal["m_concealing", "average_risk", "at_risk", "k_map", "delta_presence", "game"]
OfTables = Literal[
    "pseudonym",
    "shift",
    "computed-view",
    "blank",
    "link",
    "never-with",
    "other-persons",
    "query",
    "reciprocal",
    "seed",
    "without-person",
    "without-attacks",
]
OfSeries = Literal["seed", "link", "query", "own-shape"]
OfEvents = Literal["seed", "query", "without-attacks"]
Kind = Literal["view", "table", "parquet"]
EventsMethod = Literal["ratio", "laplace", "none"]
Nulls = Literal["null-pattern", "null-strict", "null-aware", "strict", "source"]
Option = Literal["certificate", "ledger", "policy", "without-ledger", "new-persons", "new-values", "replace"]
Roles = Annotated[list[Role], BeforeValidator(listed), Field(min_length=1, json_schema_extra=or_one)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ReleaseRules(Section):
    """Rules of `[release]`: where releases go."""

    allowed_kinds: list[Kind] | None = Field(default=None, description="What a release may become (release.as).")
    outside_the_source: bool = Field(
        default=False, description="true: release.into is stated, so that no release stands in the source database."
    )


class RunRules(Section):
    """Rules of a run, `sqldeid anonymize`, beside its job."""

    required_options: list[Option] | None = Field(default=None, description="Options that a run must have.")
    forbidden_options: list[Option] | None = Field(default=None, description="Options that no run may have.")


class TableRules(Section):
    """Rules of every table release."""

    least_k: Whole | None = Field(default=None, description="Least privacy.k.")
    greatest_suppression_limit: Share | None = Field(
        default=None, description="Greatest share of rows that may be suppressed, for whatever reason: 0 to 1."
    )
    sensitive_needs: list[Guard] | None = Field(
        default=None,
        min_length=1,
        description="Every sensitive column is under at least one of these criteria.",
    )
    required: list[Asked] | None = Field(default=None, description="Criteria that every table release asks for.")
    least_l: Whole | None = Field(default=None, description="Least l, wherever l_diversity is asked for.")
    greatest_t: Share | None = Field(default=None, description="Greatest t, wherever t_closeness is asked for.")
    greatest_delta: Positive | None = Field(
        default=None, description="Greatest delta, wherever delta_disclosure is asked for."
    )
    greatest_beta: Positive | None = Field(
        default=None, description="Greatest beta, wherever beta_likeness is asked for."
    )
    greatest_m: Share | None = Field(default=None, description="Greatest m, wherever m_concealing is asked for.")
    greatest_average_risk: Share | None = Field(
        default=None, description="Greatest average_risk, wherever it is asked for."
    )
    least_k_map: Whole | None = Field(default=None, description="Least k_map, wherever it is asked for.")
    allowed_methods: list[TableMethod] | None = Field(default=None, description="What search.method may be.")
    greatest_epsilon: Positive | None = Field(
        default=None, description="Greatest epsilon of epsilon-safe, where that is the method."
    )
    greatest_dp_delta: Share | None = Field(
        default=None, description="Greatest delta that epsilon-safe may have, where that is the method."
    )
    forbidden_roles: list[Role] | None = Field(default=None, description="Roles that no column may have.")
    roles: dict[Text, Roles] | None = Field(
        default=None,
        description="By column name, whatever its case: the role, or roles, that a column of this name may have.",
    )
    forbidden: list[OfTables] | None = Field(
        default=None,
        description="What no table release may do: keys and words of the job; without-person: a table whose rows are "
        "not counted by a person key; without-attacks: attacks = false.",
    )


class SeriesRules(Section):
    """Rules of every release of time series."""

    least_k: Whole | None = Field(default=None, description="Least privacy.k.")
    least_k_of_durations: Whole | None = Field(default=None, description="Least durations.k.")
    allowed_methods: list[Perturbation] | None = Field(default=None, description="What perturb.method may be.")
    allowed_nulls: list[Nulls] | None = Field(default=None, description="What privacy.nulls may be.")
    forbidden: list[OfSeries] | None = Field(
        default=None,
        description="What no series may do: keys of the job; own-shape: a variable with fewer than all four features.",
    )


class EventsRules(Section):
    """Rules of every release of event sequences."""

    allowed_methods: list[EventsMethod] | None = Field(default=None, description="What privacy.method may be.")
    greatest_epsilon: Positive | None = Field(default=None, description="Greatest privacy.epsilon; one must be stated.")
    forbidden: list[OfEvents] | None = Field(
        default=None, description="What no events may do: keys of the job; without-attacks: attacks = false."
    )


class Exception_(Section):
    """One rule that is another one for one job as it stands: by whom, and why."""

    job_sha256: Sha256 = Field(
        description="SHA-256 of the job file that it is for, as `sha256sum` prints it; a job that is changed has none."
    )
    release: Text | None = Field(
        default=None, description="The release that it is for; not with keys of release and run, which are of all."
    )
    key: Text = Field(description='The rule, such as "tables.least_k".')
    value: Any = Field(description="What stands in its place.")
    reason: Line = Field(description="Why.")
    approved_by: Line = Field(description="Who decided it: one of approvers.")
    approved_on: Day = Field(description="The day from which it holds, as 2026-01-31.")
    until: Day | None = Field(default=None, description="The last day on which it holds; absent: no end.")


SECTION_RULES: Mapping[str, type[Section]] = {
    "release": ReleaseRules,
    "run": RunRules,
    "tables": TableRules,
    "series": SeriesRules,
    "events": EventsRules,
}
"""Sections that hold rules."""


def file_problems(rules: Mapping[str, object]) -> Iterator[Problem]:
    """Exceptions are of rules that are there, each once, by whoever may approve them."""
    exceptions, approvers = rules.get("exceptions"), section(rules, "approvers")
    seen: set[tuple[object, ...]] = set()
    for number, one in enumerate(exceptions if isinstance(exceptions, list) else (), 1):
        if isinstance(one, Mapping):
            yield from (Problem(("exceptions",), f"item {number}: {text}") for text in _wrong(one, rules, approvers))
            mark = (one.get("job_sha256"), one.get("release"), one.get("key"))
            if mark in seen:
                yield Problem(("exceptions",), f"item {number}: is of the job, release and key of another one")
            seen.add(mark)
    for name, keys in approvers.items():
        for key in keys if isinstance(keys, list) else ():
            if not _is_rule(str(key)):
                yield Problem(("approvers", str(name)), f'names a rule that is none; a rule is such as "{_SOME}"')


_SOME = "tables.least_k"


def _is_rule(key: str) -> bool:
    part, _, name = key.partition(".")
    return part in SECTION_RULES and name in SECTION_RULES[part].model_fields


def _wrong(one: Mapping[str, object], rules: Mapping[str, object], approvers: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with an exception."""
    key = str(one.get("key"))
    part, _, name = key.partition(".")
    if not _is_rule(key):
        yield f'key must be that of a rule, such as "{_SOME}"'
    elif section(rules, part).get(name) is None:
        yield "key is not among these rules, so that there is nothing to except; remove the exception"
    else:
        yield from (f"value: {text}" for text in unfit(rules, part, name, one.get("value")))
    if part in SECTIONS and one.get("release") is None:
        yield "release is missing; name the release of the job that it is for"
    if part in ("release", "run") and one.get("release") is not None:
        yield "release goes with rules of tables, series and events alone; remove it"
    may = approvers.get(str(one.get("approved_by")))
    if not isinstance(may, list):
        yield "approved_by must be one of the names in approvers"
    elif key not in may:
        yield "approved_by names somebody who may not approve it; approvers lists the keys of each"
    first, last = one.get("approved_on"), one.get("until")
    if isinstance(first, str) and isinstance(last, str) and last < first:
        yield "until is before approved_on"


def unfit(rules: Mapping[str, object], part: str, name: str, value: object) -> Iterator[str]:
    """Why a value cannot stand in a rule's place."""
    try:
        SECTION_RULES[part].model_validate({name: value})
    except ValidationError:
        yield f"it must be what {part}.{name} may be"
    else:
        if value is None:
            yield f"it must be what {part}.{name} may be"


class HouseRules(Section):
    """A file of house rules. Made by `load` or `parse`.

    Attributes
    ----------
    name
        What messages call it: the file's name.
    sha256
        Of the file's bytes.
    """

    check = file_problems

    organisation: Line = Field(description="Whose rules they are.")
    version: Line | None = Field(default=None, description="Which issue of them.")
    release: ReleaseRules | None = Field(default=None, description="Where releases may go.")
    run: RunRules | None = Field(default=None, description="How `sqldeid anonymize` may be run.")
    tables: TableRules | None = Field(default=None, description="Of table releases; absent: no job may have any.")
    series: SeriesRules | None = Field(default=None, description="Of time series; absent: no job may have any.")
    events: EventsRules | None = Field(default=None, description="Of event sequences; absent: no job may have any.")
    approvers: dict[Text, list[Text]] = Field(
        default_factory=dict, description="Who may approve exceptions, each with the keys of the rules concerned."
    )
    exceptions: list[Exception_] = Field(
        default_factory=list, description="Rules that are others for one job as it stands."
    )

    _name: str = PrivateAttr(default="house rules")
    _sha256: str = PrivateAttr(default="")

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._name

    @property
    def sha256(self) -> str:
        """64 hexadecimal digits."""
        return self._sha256


@cache
def schema() -> dict[str, object]:
    """The JSON schema of the file: types, bounds, words and a description of each key."""
    made = HouseRules.model_json_schema(schema_generator=JobSchema)
    return {"$schema": JobSchema.schema_dialect} | made | {"title": "sqldeid house rules"}
