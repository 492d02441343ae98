"""What a report reads of series and events, and the types that all shapes share (`shape`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

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


P = TypeVar("P", bound=Part)


def _together(part: P, first: str, *others: str) -> P:
    """Keys that stand where `first` does."""
    for name in others:
        if first in part.model_fields_set and name not in part.model_fields_set:
            raise ValueError(f"{name} is missing")
    return part


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


class _Link(Part):
    table: str
    k: Count
    in_table: Count
    in_series: Count
    in_both: Count
    released: Count
    lost_of_table: Loose
    lost_of_series: Loose
    combined_classes: Count
    smallest: Count


class _Named(Part):
    table: str


class _Moved(Part):
    mean: Loose
    unit: str


class _Own(Part):
    tau: Loose
    mean_distance: Loose
    before: Loose


class _Scores(Part):
    test_roc_auc: Loose
    test_roc_auc_change: Loose
    test_roc_auc_change_sd: Loose
    test_pr_auc: Loose
    test_pr_auc_change: Loose
    test_pr_auc_change_sd: Loose


class _Utility(Part):
    not_measured: str | None = None
    settings: Mapping[str, _Scores] = Field(default_factory=dict)
    persons: Count = 0
    splits: Count = 0

    @model_validator(mode="after")
    def _whole(self) -> _Utility:
        return _together(self, "settings", "persons", "splits")


class _Side(Part):
    first_mean: Loose = 0.0
    first_median: Loose = 0.0
    delta_auc_mean: Loose = 0.0
    delta_auc_least: Loose = 0.0


class _OfLength(Part):
    length: Count
    persons: Count
    before: _Side
    after: _Side


_Values = Sequence[Loose | None]


class _Plain(Part):
    mean: _Values
    least: _Values


class _Normalised(_Plain):
    greatest: _Values


class _Curve(Part):
    plain: _Plain
    normalised: _Normalised
    first: Sequence[Loose]


class _Curves(Part):
    length: Count
    inclusion: Sequence[Loose]
    shares: Sequence[Loose]
    before: _Curve
    after: _Curve

    @model_validator(mode="after")
    def _as_long(self) -> _Curves:
        for side, found in (("before", self.before), ("after", self.after)):
            drawn = {"mean": found.plain.mean, "least": found.plain.least}
            if side == "after":
                drawn |= {f"normalised {of}": getattr(found.normalised, of) for of in ("greatest", "mean", "least")}
            for of, values in drawn.items():
                if len(values) != len(self.inclusion):
                    raise ValueError(f"{of} of {side} must have as many values as inclusion")
            if len(found.first) > len(self.shares):
                raise ValueError(f"first of {side} must not have more values than shares")
        return self


class _Disagreement(Part):
    distance: str = ""
    by_length: Sequence[_OfLength] = ()
    curves: _Curves | None = None

    @model_validator(mode="after")
    def _whole(self) -> _Disagreement:
        return _together(self, "by_length", "distance")


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


class _Asked(Part):
    asked: Count
    nulls: str = ""


class Series(Part):
    """A release of series, for the data holder."""

    variables: Sequence[str] = ()
    features: Sequence[str]
    method: str
    guarantee: str
    asked: _SeriesAsked
    nulls: Annotated[str, Field(min_length=1)]
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
    own_features: Mapping[str, _Own] | None = None
    attacks: _Attacks | None = None
    utility: _Utility | None = None
    link: _Link | None = None
    too_short: Loose = 0
    distortion_by: Mapping[str, _Moved] | None = None
    disagreement: _Disagreement | None = None
    as_they_are: Sequence[str] | None = None
    warnings: Sequence[str] = ()
    written: Sequence[str] = ()


class PublicSeries(Part):
    """What may be published of a release of series."""

    variables: Sequence[str]
    features: Sequence[str]
    method: str
    guarantee: str
    asked: _SeriesAsked | None = None
    criteria: Sequence[_Asked] = ()
    nulls: Annotated[str, Field(min_length=1)] | None = None
    link: _Named | None = None
    linked: str | None = None
    columns: Mapping[str, _Told] = Field(default_factory=dict)

    _absent = without_null("asked")

    @model_validator(mode="after")
    def _both(self) -> PublicSeries:
        if self.asked is None and "criteria" not in self.model_fields_set:
            raise ValueError("asked is missing")
        if self.asked is None and len(self.criteria) != 2:
            raise ValueError("criteria must be two: of durations and of features")
        if self.nulls is None and self.asked is not None:
            raise ValueError("nulls is missing")
        return self


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
    p_value: Loose = 1.0


class _EventAttacks(Part):
    membership: _Membership | None = None
    canary: _Canary | None = None


class _Gaps(Part):
    threshold_hours: Number | None = None
    rule: str = ""
    histogram: Mapping[Annotated[int, Field(strict=False, ge=-1000, le=1000)], Count] | None = None

    @model_validator(mode="after")
    def _whole(self) -> _Gaps:
        return _together(self, "threshold_hours", "rule") if self.threshold_hours is not None else self


class _Figures(Part):
    similarity: Loose = 0.0
    cover: Loose = 0.0
    top20: Loose = 0.0
    tvd_2gram: Loose = 0.0
    tvd_length: Loose = 0.0
    tvd_gap: Loose = 0.0
    suppressed_entries: Loose = 0.0
    suppressed_records: Loose = 0.0
    mean_support: Loose = 0.0

    @model_validator(mode="after")
    def _whole(self) -> _Figures:
        _together(self, "cover", "tvd_2gram")
        return _together(self, "suppressed_records", "suppressed_entries", "mean_support")


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
    evaluation: _Figures = Field(default_factory=_Figures)
    attacks: _EventAttacks | None = None
    verified: Mapping[str, object] = Field(default_factory=dict)
    warnings: Sequence[str] = ()
    written: Sequence[str] = ()


class PublicEvents(Part):
    """What may be published of a release of events."""

    guarantee: _Guarantee
    ledger: Sequence[_Spend] = ()
    columns: Mapping[str, _Told] = Field(default_factory=dict)


class Code(Part):
    """A shown value with what it stands for."""

    shown: str
    stands_for: Sequence[str] = ()
    of: Count | None = None


class _ChildColumn(Part):
    role: str
    shown: str = ""
    hierarchy: str | None = None
    codes: Sequence[Code] | None = None
    more_codes: bool | None = None


class Child(Part):
    """A child table, for the data holder."""

    parent: str
    known: Count
    k: Count
    fewest: Count | None = None
    pairs: Count
    released: Count
    suppressed: Count
    rows: Count
    persons: Count
    parents: Count
    loss: Number
    bound: Number
    optimal: bool = False
    levels: Mapping[str, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=dict)
    columns: Mapping[str, _ChildColumn]
    suppression_limit: Number | None = None
    guarantee: str
    limits: str
    warnings: Sequence[str] = ()
    written: Sequence[str] = ()


class PublicChild(Part):
    """What may be published of a child table."""

    parent: str
    columns: Mapping[str, _ChildColumn]
    criteria: Sequence[Mapping[str, object]] = ()
    guarantee: str | None = None
    limits: str
    suppression_limit: Number | None = None
