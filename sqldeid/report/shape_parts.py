"""What a report reads of series and events, and the types that all shapes share (`shape`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

Number = Annotated[int, Field(ge=-(10**300), le=10**300)] | Annotated[float, Field(allow_inf_nan=False)]
"""A number that can be shown; true and false are none."""
Loose = Annotated[int, Field(ge=-(10**300), le=10**300)] | float
"""Of series and events, where a figure may be missing (NaN)."""
Count = Annotated[int, Field(ge=0, le=10**18)]


class Part(BaseModel):
    """A part of a result: held to types, with whatever else it has left alone."""

    model_config = ConfigDict(strict=True, extra="ignore", arbitrary_types_allowed=False)


def without_null(*names: str) -> Any:
    """A check that keys are absent where there is nothing to say of them, as results are written."""

    def check(found: object) -> object:
        for name in names:
            if isinstance(found, Mapping) and name in found and found[name] is None:
                raise ValueError(f"{name} must have a value, or be absent")
        return found

    return model_validator(mode="before")(check)


class _Length(Part):
    lengths: Loose
    alone: Loose
    below_k: Loose


class _Durations(Part):
    k: Count
    method: str
    moved: Loose
    dropped: Loose
    before: _Length
    after: _Length
    steps_lost_mean: Loose
    steps_lost_sd: Loose
    share_lost_mean: Loose
    share_lost_sd: Loose


class _Found(Part):
    sole: Loose
    link: Loose
    worst_sole: Loose | None = None

    _absent = without_null("worst_sole")


_Ways = Mapping[str, _Found]
_ATTACKS = ("own_features", "null_pattern", "measurement_times", "extreme_times", "rank_order", "all_values")


class _Attacks(Part):
    feature: _Ways | None = None
    own_features: _Found | None = None
    null_pattern: _Found | None = None
    measurement_times: _Found | None = None
    extreme_times: _Found | None = None
    raw_points: Mapping[str, _Ways] | None = None
    raw_points_before: Mapping[str, _Ways] | None = None
    rank_order: _Found | None = None
    all_values: _Found | None = None
    given_table_row: _Attacks | None = None

    _absent = without_null(*_ATTACKS)


class _Withheld(Part):
    series: Loose
    records_share: Loose


class _Unfeasible(Part):
    used: Loose
    class_mean: Loose


class _SeriesAsked(Part):
    durations: Count
    k: Count


class _Word(Part):
    shown: str
    unit: str = ""
    meaning: str = ""


class _Told(Part):
    type: str
    meaning: str
    unit: str = ""
    codes: Sequence[_Word] = ()
    more_codes: bool = False


class Series(Part):
    """A release of series, for the data holder."""

    variables: Sequence[str] = ()
    features: Sequence[str]
    method: str
    guarantee: str
    asked: _SeriesAsked
    nulls: str | None = None
    k: Count
    classes: Count
    released: Count
    persons: Count
    distortion: Loose
    records: Loose
    durations: _Durations
    withheld: _Withheld
    tau: Mapping[str, Loose]
    unfeasibility: _Unfeasible
    own_features: Mapping[str, Mapping[str, Loose]] | None = None
    attacks: _Attacks | None = None
    utility: Mapping[str, object] | None = None
    as_they_are: Sequence[str] | None = None
    warnings: Sequence[str] = ()
    written: Sequence[str] = ()


class PublicSeries(Part):
    """What may be published of a release of series."""

    variables: Sequence[str]
    features: Sequence[str]
    method: str
    guarantee: str
    columns: Mapping[str, _Told] = Field(default_factory=dict)


class _Guarantee(Part):
    method: str
    epsilon: Number | None
    unit: str
    differentially_private: bool
    text: str

    @model_validator(mode="after")
    def _whole(self) -> _Guarantee:
        if self.differentially_private and (self.epsilon is None or not 0 < self.epsilon < 700):
            raise ValueError("epsilon must be above 0 and below 700 where differential privacy is promised")
        return self


class _Spend(Part):
    statistic: str
    epsilon: Number
    sensitivity: Loose
    scale: Number
    cells: Count | None = None


class _Membership(Part):
    auc: Loose
    ceiling: Loose


class _Canary(Part):
    seen_with: Count
    seen_without: Count
    releases: Count
    events: Count


class _EventAttacks(Part):
    membership: _Membership | None = None
    canary: _Canary | None = None


class _Gaps(Part):
    threshold_hours: Number | None = None
    rule: str = ""
    histogram: Mapping[Annotated[int, Field(strict=False)], Count] | None = None


class Events(Part):
    """A release of events, for the data holder."""

    objects: Count
    events: Count
    parts: Count | None = None
    clusters: Count | None = None
    guarantee: _Guarantee
    ledger: Sequence[_Spend] = ()
    source: Mapping[str, Loose] = Field(default_factory=dict)
    gaps: _Gaps = Field(default_factory=_Gaps)
    evaluation: Mapping[str, Loose] = Field(default_factory=dict)
    attacks: _EventAttacks | None = None
    verified: Mapping[str, object] = Field(default_factory=dict)
    warnings: Sequence[str] = ()
    written: Sequence[str] = ()


class PublicEvents(Part):
    """What may be published of a release of events."""

    guarantee: _Guarantee
    ledger: Sequence[_Spend] = ()
    columns: Mapping[str, _Told] = Field(default_factory=dict)
