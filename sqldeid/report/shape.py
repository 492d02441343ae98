"""What a report reads of a result, by types: an edited or damaged file is refused with the place, never half shown.

Only what a page looks at is asked for; whatever else a result holds is left alone, so that a later version may add.
Messages name the place and what must stand there, never a value: results hold data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from sqldeid.errors import JobError, UnknownKindError
from sqldeid.report.attacked import AttacksTold
from sqldeid.report.shape_parts import (
    Child,
    Code,
    Count,
    Events,
    Number,
    Part,
    PublicChild,
    PublicEvents,
    PublicSeries,
    Series,
    without_null,
)
from sqldeid.report.words import not_protected
from sqldeid.result import Tree
from sqldeid.version import OTHER_FORM, is_known

_WRITES = "`sqldeid anonymize --json FILE` writes a result"
_Loss: TypeAlias = Literal[
    "loss", "prec", "dm_star", "entropy", "height", "ambiguity", "normalised_entropy", "class_size", "payout"
]
_SHOWN = 3
"""Places that a message names."""


def _known(name: str) -> str:
    try:
        not_protected(name)
    except UnknownKindError:
        raise ValueError("must be a criterion that this version knows") from None
    return name


class _Criterion(Part):
    name: Annotated[str, AfterValidator(_known)]
    column: str | None = None
    asked: Number


class _Achieved(_Criterion):
    column: str | None
    achieved: Number | None
    guarantee: str


class _Promised(_Criterion):
    guarantee: str


class _Column(Part):
    role: str
    level: Count | None = None
    level_name: str | None = None
    height: Annotated[int, Field(ge=1, le=10**6)] | None = None
    hierarchy: str | None = None
    loss: Number | None = None
    shown: str | None = None
    example: Sequence[str] | None = None
    type: str | None = None
    codes: Sequence[Code] | None = None

    _absent = without_null("level", "height", "loss", "example", "shown", "level_name", "hierarchy")

    @model_validator(mode="after")
    def _levels(self) -> _Column:
        if self.level is not None and (self.height is None or self.level >= self.height):
            raise ValueError("level must be below height")
        return self


class _Risk(Part):
    prosecutor: Number
    marketer: Number
    journalist: Number
    journalist_is_prosecutor: bool
    class_sizes: Sequence[Annotated[Sequence[Count], Field(min_length=2, max_length=2)]]


class _Risks(Part):
    source: _Risk
    release: _Risk


class _Search(Part):
    method: str
    loss: _Loss
    optimal: bool
    gap: Number
    lattice_size: Count | Annotated[int, Field(ge=0)]
    checks: Count
    seconds: Number
    certificate: str | None = None
    choose: Literal["by-all", "by-k"] = "by-all"
    chosen_loss: Number | None = None
    suppressed_beyond_k: Count | None = None
    criteria_limit: Number | None = None

    @model_validator(mode="after")
    def _both(self) -> _Search:
        if (self.chosen_loss is None) != (self.suppressed_beyond_k is None):
            raise ValueError("chosen_loss and suppressed_beyond_k go together")
        return self


class _WholeSearch(_Search):
    certificate: str | None


class _Neighbour(Part):
    column: str
    level: Count
    suppressed: Count
    allowed: Count
    loss: Number | None


class _Set(Part):
    columns: Sequence[str]
    alone: Count
    below_k: Count


class _Point(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    k: Count
    suppression_limit: Number
    node: Mapping[str, Count] | None
    loss: Number | None
    bound: Number | None
    optimal: bool
    suppressed: Count | None
    classes: Count | None
    checks: Count
    seconds: Number

    @model_validator(mode="after")
    def _whole(self) -> _Point:
        if self.node is not None and (self.loss is None or self.suppressed is None):
            raise ValueError("a node has a loss and suppressed rows")
        return self


class _Greatest(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    max_loss: Number
    suppression_limit: Number
    k: Count | None
    node: Mapping[str, Count] | None
    loss: Number | None
    optimal: bool


class _LocalPoint(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    k: Count
    suppression_limit: Number
    loss: Number | None
    bound: Number | None
    suppressed: Count | None
    classes: Count | None
    layers: Count | None
    stopped: bool
    seconds: Number

    @model_validator(mode="after")
    def _all_of_it(self) -> _LocalPoint:
        if len({found is None for found in (self.loss, self.bound, self.suppressed, self.classes, self.layers)}) > 1:
            raise ValueError("loss, bound, suppressed, classes and layers go together")
        return self


class _Tradeoff(Part):
    name: str
    rows: Count
    loss: _Loss
    heights: Mapping[str, Count]
    points: Sequence[_Point]
    inverse: Sequence[_Greatest]
    lattice_size: Annotated[int, Field(ge=0)]
    checks: Count
    seconds: Number
    warnings: Sequence[str] = ()
    local: Sequence[_LocalPoint] = ()


class _TableLink(Part):
    with_: Sequence[str] = Field(alias="with")


class _Followed(Part):
    series: str
    smallest: Annotated[int, Field(ge=0, le=10**18)]
    lost_of_table: Count


class _Text(Part):
    text: str = ""


class Table(Part):
    """A table release on a lattice, for the data holder."""

    rows: Count
    released: Count
    suppressed: Count
    k: Count
    classes: Count
    node: Mapping[str, Count]
    criteria: Annotated[Sequence[_Achieved], Field(min_length=1)]
    loss: Mapping[str, Number]
    columns: Mapping[str, _Column]
    risk: _Risks
    suppression_by: Mapping[str, Mapping[str, Number]]
    search: _WholeSearch
    warnings: Sequence[str] = ()
    written: Sequence[str] = ()
    neighbours: Sequence[_Neighbour] = ()
    tradeoff: _Tradeoff | None = None
    uniqueness: Sequence[_Set] = ()
    pseudonymised: Sequence[str] = ()
    linked: _TableLink | None = None
    followed: _Followed | None = None
    guarantee: _Text | None = None
    attacks: AttacksTold | None = None


class Parted(Part):
    """A table release by Mondrian, for the data holder."""

    rows: Count
    released: Count
    suppressed: Count = 0
    k: Count
    classes: Count
    asked: Count
    heuristic: str
    columns: Mapping[str, Mapping[str, object]]
    criteria: Sequence[_Achieved] = ()
    limits: str
    warnings: Sequence[str] = ()
    written: Sequence[str] = ()
    attacks: AttacksTold | None = None


class _MixedColumn(Part):
    role: str
    height: Annotated[int, Field(ge=1, le=10**6)] | None = None
    level_names: Sequence[str] | None = None
    levels: Sequence[Annotated[float, Field(ge=0, le=1)]] | None = None
    hierarchy: str | None = None
    loss: Number | None = None
    shown: str | None = None
    type: str | None = None
    codes: Sequence[Code] | None = None
    more_codes: bool | None = None
    top: str | None = None

    _absent = without_null("height", "level_names", "levels", "hierarchy", "loss", "shown", "type", "codes", "top")

    @model_validator(mode="after")
    def _all_levels(self) -> _MixedColumn:
        told = [len(of) for of in (self.level_names, self.levels) if of is not None]
        if any(n != self.height for n in told):
            raise ValueError("levels and level_names must be as many as height")
        return self


class _Layer(Part):
    number: Count
    node: Mapping[str, Count]
    rows: Count | None = None
    classes: Count | None = None


class _LocalSearch(Part):
    method: str
    loss: Literal["loss", "prec"]
    lattice_size: Annotated[int, Field(ge=0)]
    stopped: bool
    criteria_limit: Number | None = None


class Mixed(Part):
    """A table release by local recoding, for the data holder."""

    rows: Count
    released: Count
    suppressed: Count
    k: Count
    classes: Count
    criteria: Annotated[Sequence[_Achieved], Field(min_length=1)]
    loss: Mapping[str, Number]
    bound: Number
    gap: Number
    layers: Sequence[_Layer]
    columns: Mapping[str, _MixedColumn]
    risk: _Risks
    search: _LocalSearch
    limits: str
    recoding: bool = False
    hierarchies: str | None = None
    ledger: Mapping[str, object] | None = None
    tradeoff: _Tradeoff | None = None
    suppression_limit: Number | None = None
    warnings: Sequence[str] = ()
    written: Sequence[str] = ()
    pseudonymised: Sequence[str] = ()
    attacks: AttacksTold | None = None


class PublicMixed(Part):
    """What may be published of a release by local recoding."""

    columns: Mapping[str, _MixedColumn]
    criteria: Sequence[_Promised] = ()
    layers: Sequence[_Layer]
    limits: str
    recoding: bool = False
    hierarchies: str | None = None
    pseudonymised: Sequence[str] = ()
    suppression_limit: Number | None = None
    criteria_limit: Number | None = None


class PublicTable(Part):
    """What may be published of a table release, and what of it a holder's result has."""

    columns: Mapping[str, _Column] = Field(default_factory=dict)
    criteria: Sequence[_Promised] = ()
    choice: str = ""
    search: _Search | None = None
    pseudonymised: Sequence[str] = ()
    linked: _TableLink | Sequence[str] | None = None
    followed: _Followed | str | None = None
    guarantee: _Text | None = None
    suppression_limit: Number | None = None
    criteria_limit: Number | None = None

    _absent = without_null("search", "suppression_limit", "criteria_limit")

    @model_validator(mode="after")
    def _of_holder(self) -> PublicTable:
        if self.search is not None and "criteria" not in self.model_fields_set:
            raise ValueError("criteria are missing")
        return self


class PublicParted(Part):
    """What may be published of a release by Mondrian."""

    asked: Count = 1
    columns: Mapping[str, Mapping[str, object]]
    criteria: Sequence[_Criterion] = ()
    limits: str


class _Result(Part):
    releases: Mapping[str, Mapping[str, object]]
    sqldeid: str = ""
    job: str = ""
    job_sha256: str | None = None
    finished: str = ""
    seconds: Number = 0
    source: Mapping[str, object] = Field(default_factory=dict)
    versions: Mapping[str, str] = Field(default_factory=dict)
    warnings: Sequence[str] = ()


class _Holders(_Result):
    source: Mapping[str, object]


_KINDS: Mapping[str, tuple[type[Part], type[Part]]] = {
    "table": (Table, PublicTable),
    "mondrian": (Parted, PublicParted),
    "local": (Mixed, PublicMixed),
    "child": (Child, PublicChild),
    "series": (Series, PublicSeries),
    "events": (Events, PublicEvents),
}
"""What is asked of a release of each kind: for the data holder, and for the public."""


def kind_of(release: Tree) -> str:
    """What a release is told as; of tables those by Mondrian or local recoding apart, which have no one node."""
    kind, method = release.get("kind"), release.get("method")
    return str(method) if kind == "table" and method in ("mondrian", "local") else str(kind)


def releases_of(result: object, *, public: bool) -> dict[str, Tree]:
    """The releases of a result, each of the shape that a page reads.

    Raises
    ------
    JobError
        If this is no result, or of a form that this version does not know, or a part is missing or is not what must
        stand there; the places are named.
    """
    found = result.get("releases") if isinstance(result, Mapping) else None
    if not isinstance(result, Mapping) or not isinstance(found, Mapping):
        raise JobError(f"this is not a result: releases must be a section; {_WRITES}", key="result")
    if not is_known(result):
        raise JobError(f"the result {OTHER_FORM}", key="result")
    if odd := [name for name, release in found.items() if not _has_kind(release)]:
        raise JobError(f"this is not a result: releases.{odd[0]}.kind is missing; {_WRITES}", key="result")
    _hold(_Result if public else _Holders, result, "")
    for name, release in found.items():
        kind = kind_of(release)
        if kind not in _KINDS:
            raise JobError(
                f"releases.{name}.kind: must be table, child, series or events; {_WRITES}",
                key="result",
            )
        _hold(_KINDS[kind][public], release, f"releases.{name}.")
    return dict(found)


def _has_kind(release: object) -> bool:
    return isinstance(release, Mapping) and "kind" in release


def _hold(shape: type[Part], tree: Tree, where: str) -> None:
    try:
        shape.model_validate(tree)
    except ValidationError as error:
        found = error.errors(include_input=False, include_context=False, include_url=False)
    else:
        return
    places: dict[str, str] = {}
    for one in found:
        places.setdefault(where + ".".join(map(str, one["loc"])) or "the file", one["msg"])
    told = "; ".join(f"{place}: {_lower(what)}" for place, what in list(places.items())[:_SHOWN])
    more = f"; and {len(places) - _SHOWN} more places" if len(places) > _SHOWN else ""
    raise JobError(
        f"the result was changed after it was written, or is of another version: {told}{more}; make it anew with "
        "`sqldeid anonymize --json FILE`",
        key="result",
    )


def _lower(message: str) -> str:
    """Of pydantic's message, as the end of a sentence."""
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
