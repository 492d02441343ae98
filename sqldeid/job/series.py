"""`[series.NAME]` of a job as pydantic models: clinical time series. Their field descriptions are the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, Discriminator, Field, PlainValidator, Tag, WithJsonSchema

from sqldeid.job.disagreement import Disagreeing, disagreement_problems
from sqldeid.job.parts import MAX_WHOLE, Number, Positive, Section, Source, Text, Whole
from sqldeid.job.rules import Problem
from sqldeid.job.sections import section

Method = Literal["projection", "source", "genetic", "shared"]
METHOD: Literal["shared"] = "shared"
"""How series are changed where nothing is said: the one that protects against who knows raw values."""
Statistic = Literal["mean", "variance", "min", "max"]
STATISTICS: tuple[Statistic, ...] = ("mean", "variance", "min", "max")
MOST_STEP_HOURS = 1_000_000_000
"""A hundred thousand years: more is one step for everybody, and can be beyond what numbers hold in microseconds."""


def _step_hours(value: object) -> int | float:
    if type(value) in (int, float) and 0 < value <= MOST_STEP_HOURS:  # type: ignore[operator]
        return value  # type: ignore[return-value]  # narrowed by `type(...) in`
    raise ValueError(f"not a number above 0 and at most {MOST_STEP_HOURS}")


StepHours = Annotated[
    int | float,
    PlainValidator(_step_hours),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": MOST_STEP_HOURS}),
]
MAX_ITEMS = 512
"""Items of one variable, and variables: what the encoding of "the first listed item wins" has room for."""


def _item(value: object) -> int | str:
    """A code as the data spell it: a whole number or text."""
    if type(value) is int and abs(value) <= MAX_WHOLE:
        return value
    if isinstance(value, str) and value and "\0" not in value:
        return value
    raise ValueError("not a code")


def _shape(value: object) -> str | None:
    """Which branch a value takes."""
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "section" if isinstance(value, (Mapping, BaseModel)) else None


Item = Annotated[int | str, PlainValidator(_item), WithJsonSchema({"type": ["integer", "string"]})]


def variable_problems(variable: Mapping[str, object]) -> Iterator[Problem]:
    """Bounds in order, each item once."""
    low, high = variable.get("low"), variable.get("high")
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low >= high:
        yield Problem(("low",), "must be less than high")
    items = variable.get("items")
    if isinstance(items, list) and len({str(i) for i in items}) < len(items):
        yield Problem(("items",), "names a code twice")


def cohort_problems(cohort: Mapping[str, object]) -> Iterator[Problem]:
    """First needs an order."""
    if cohort.get("first_of") is not None and cohort.get("order") is None:
        yield Problem(("order",), "missing; first_of needs a column that says what comes first")
    if cohort.get("order") is not None and cohort.get("first_of") is None:
        yield Problem(("order",), "goes with first_of alone; remove it")


GENETIC = (
    *("fitness", "weight", "dampening", "cap", "population", "tournament", "initial_sd", "mutation_sd"),
    *("mutation_probability", "parents", "idle_iterations", "most_iterations", "scale_variance"),
)
"""Keys of `perturb` that belong to the genetic algorithm."""

_OF_METHOD = {**dict.fromkeys(GENETIC, "genetic"), "iterations": "source", "noise": "shared"}


def perturb_problems(perturb: Mapping[str, object]) -> Iterator[Problem]:
    """Parameters belong to their method."""
    method = perturb.get("method", METHOD)
    for name, its in _OF_METHOD.items():
        if perturb.get(name) is not None and method != its:
            yield Problem((name,), f'goes with method = "{its}" alone; remove it or change method')
    size, drawn = perturb.get("population", 24), perturb.get("tournament", 5)
    if isinstance(drawn, int) and isinstance(size, int) and drawn > size:
        yield Problem(("tournament",), "must be at most population")
    parents = perturb.get("parents", 2)
    if isinstance(drawn, int) and isinstance(parents, int) and parents > drawn:
        yield Problem(("parents",), "must be at most tournament")


def series_problems(series: Mapping[str, object]) -> Iterator[Problem]:
    """Columns that must be named, and what a preset fixes."""
    fixed = series.get("preset") is not None
    wide = series.get("wide") is not None and not fixed
    for name in ("time",) if wide else ("time", "variable", "value"):
        if series.get(name) is None and not fixed:
            yield Problem((name,), "missing; name the column")
    for name in ("variable", "value") if wide else ():
        if series.get(name) is not None:
            yield Problem((name,), "does not go with wide, whose columns are the variables; remove one of them")
    yield from _wide(series)
    for name in ("time", "time_unit", "variable", "value", "wide", "where", "variables", "cohort"):
        if fixed and series.get(name) is not None:
            yield Problem((name,), "is fixed by the preset; remove it, or remove preset")
    if fixed and not isinstance(series.get("source"), str):
        yield Problem(("source",), "with a preset: the name of the table CHARTEVENTS, its sister tables beside it")
    yield from disagreement_problems(section(series, "disagreement"))
    variables = series.get("variables")
    yield from _mapped_once(variables)
    dropped = series.get("drop")
    for name in dropped if isinstance(dropped, list) else ():
        if isinstance(variables, Mapping) and name not in variables:
            yield Problem(("drop",), "names a variable that is not in variables")
    yield from _features(series.get("features"))
    yield from _rounded(series)
    yield from _shared(series)


def _wide(series: Mapping[str, object]) -> Iterator[Problem]:
    """Each variable is of one column; what is dropped or rounded is one of them where there is no map."""
    wide, dropped = section(series, "wide"), series.get("drop")
    folded: dict[str, str] = {}
    for name, variable in wide.items():
        if isinstance(variable, str) and folded.setdefault(variable.casefold(), str(name)) != name:
            yield Problem(("wide", name), "another column has this variable; list both as items of one in variables")
    if wide and series.get("variables") is None and isinstance(dropped, list):
        for name in dropped:
            if name not in wide.values():
                yield Problem(("drop",), "names a variable that is not in wide")
        if set(wide.values()) <= set(map(str, dropped)):
            yield Problem(("drop",), "leaves no variable")


def _rounded(series: Mapping[str, object]) -> Iterator[Problem]:
    """A step is of a variable that is there, and has targets."""
    variables, features = series.get("variables"), section(series, "features")
    dropped = series.get("drop")
    for name in section(series, "round"):
        if isinstance(dropped, list) and name in dropped:
            yield Problem(("round", name), "is the step of a variable that is dropped; remove it")
        elif isinstance(variables, Mapping) and name not in variables:
            yield Problem(("round", name), "there is no variable of this name; remove it, or name one of variables")
        elif features.get(name) == []:
            yield Problem(("round", name), "is for targets, and features leaves this variable none; remove it")


def _shared(series: Mapping[str, object]) -> Iterator[Problem]:
    """What would undo the promise of `shared`."""
    perturb, privacy = series.get("perturb", {}), series.get("privacy")
    if not isinstance(perturb, Mapping) or perturb.get("method", "shared") != "shared":
        return
    yield from _all_shared(series.get("features"))
    if isinstance(privacy, Mapping) and privacy.get("nulls") == "source":
        yield Problem(
            ("privacy", "nulls"),
            'lets a class have a single value, which perturb.method = "shared" (the default) would release as it is; '
            'take "null-pattern"',
        )


def _all_shared(features: object) -> Iterator[Problem]:
    """A variable that is only shifted, or released as it is, would give its owner away."""
    listed = {"": features} if isinstance(features, list) else features
    for name, asked in listed.items() if isinstance(listed, Mapping) else ():
        if isinstance(asked, list) and sorted(map(str, asked)) in ([], ["mean"]):
            yield Problem(
                ("features", name) if name else ("features",),
                'leaves a series its own shape, and perturb.method = "shared" (the default) must not; drop the '
                'variable, give it all four, or state perturb.method = "projection"',
            )


def _mapped_once(variables: object) -> Iterator[Problem]:
    if not isinstance(variables, Mapping):
        return
    seen: dict[str, str] = {}
    for name, variable in variables.items():
        items = variable.get("items") if isinstance(variable, Mapping) else None
        for item in items if isinstance(items, list) else ():
            if seen.setdefault(str(item), name) != name:
                yield Problem(("variables", name, "items"), "names a code of another variable; each belongs to one")
    folded: dict[str, str] = {}
    for name in variables:
        if folded.setdefault(str(name).casefold(), name) != name:
            yield Problem(("variables", name), "another variable has this name but for upper and lower case")


def _features(features: object) -> Iterator[Problem]:
    listed = {"": features} if isinstance(features, list) else features
    for name, asked in listed.items() if isinstance(listed, Mapping) else ():
        where = ("features", name) if name else ("features",)
        if not isinstance(asked, list):
            if name in STATISTICS:
                yield Problem(where, "is the name of a built-in feature; choose another")
            continue
        if sorted(map(str, asked)) not in ([], ["mean"], sorted(STATISTICS)):
            yield Problem(where, 'must be ["mean", "variance", "min", "max"], ["mean"] or, for one variable, []')


class Variable(Section):
    """A variable: its items in the data, and what is plausible."""

    check = variable_problems

    items: Annotated[list[Item], Field(min_length=1, max_length=MAX_ITEMS)] = Field(
        description="Codes in the variable column; of several at one time the first listed wins, then the greatest "
        "value."
    )
    low: Number | None = Field(default=None, description="Least plausible value, in the variable's unit.")
    high: Number | None = Field(default=None, description="Greatest plausible value, in the variable's unit.")
    factor: Positive = Field(default=1, description="What the data's values are multiplied by, e.g. 0.45359237.")
    repair: Literal["fahrenheit", "fraction", "percent"] | None = Field(
        default=None,
        description="fahrenheit: values above 85 become degrees Celsius. fraction: values above 1 are per cent and "
        "divided by 100. percent: values up to 1 are multiplied by 100.",
    )
    unit: Text | None = Field(default=None, description="The unit of what is released, for readers.")
    resolution: Annotated[float, Field(ge=1e-6, le=1e9)] | None = Field(
        default=None, description='With perturb.method = "shared": released values are multiples of this.'
    )
    round: Annotated[float, Field(ge=1e-6, le=1e9)] | None = Field(
        default=None,
        description="Step of the grid that targets of its feature classes are rounded to; absent: the finer of its "
        "resolution and the greatest power of ten of which low to high has fifty.",
    )


class Cohort(Section):
    """Who is taken: persons with a row of this table."""

    check = cohort_problems

    source: Source = Field(description="A table of the database, or { query = … }, with at most a row per person.")
    person: Text = Field(description="Its column that holds the person key of the series.")
    where: Text | None = Field(default=None, description='One SQL expression over it, such as "age >= 18".')
    first_of: Text | None = Field(
        default=None, description="Keep the first row of each value of this column (first stay of a patient)."
    )
    order: Text | None = Field(default=None, description="With first_of, and always there: what first means.")


class Durations(Section):
    """How many persons share each released length."""

    k: Whole = Field(description="The least number of persons whose series have the same released length.")
    method: Literal["optimal", "source"] = Field(
        default="optimal",
        description="optimal: fewest records lost, exact. source: algorithm 3 of Mazzone 2020.",
    )


class SeriesPrivacy(Section):
    """Feature k-anonymity (Mazzone 2020, §3.2)."""

    k: Whole = Field(description="The least number of persons that share the targets of their features.")
    heuristic: Literal["range", "diversity"] = Field(
        default="range", description="Which dimension is cut: the widest, or the one that leaves classes most diverse."
    )
    nulls: Literal["null-pattern", "null-strict", "null-aware", "strict", "source"] = Field(
        default="null-pattern",
        description="null-pattern: each combination of variables is that of 0 or at least k persons of each class. "
        "null-strict: a variable is there for 0 or at least k persons of each class, and absent for 0 or "
        "at least k. null-aware: there for 0 or at least k. strict: released as absent where fewer than k of a class "
        "have it. source: as written, which gives a lone value its own target.",
    )
    targets: Literal["reachable", "source"] = Field(
        default="reachable", description="Targets that every member can reach, or the means of the class as written."
    )


Bounded = Annotated[float, Field(gt=0, le=1e9)]
"""Values beyond a billion are not read; steps and weights beyond it would only overflow."""


class Perturb(Section):
    """How series are changed so that they meet their targets."""

    check = perturb_problems

    method: Method = Field(
        default=METHOD,
        description="shared: protects also against who knows raw values; nothing of a series' own shape is released. "
        "These keep its shape, and who knows five values finds it nine times in ten: projection: exact. source: its "
        "iterations. genetic: the source's general algorithm.",
    )
    iterations: Whole | None = Field(default=None, description="With source: how many (50).")
    noise: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="With shared: share of variance that is random (0.5)."
    )
    fitness: Literal["weighted", "annealing", "dampened", "capped"] | None = Field(
        default=None, description="With genetic: how distortion and distance from the targets are weighed (weighted)."
    )
    weight: Bounded | None = Field(default=None, description="With genetic: weight of the targets (100).")
    dampening: Bounded | None = Field(default=None, description="With genetic: divisor of dampened (100).")
    cap: Whole | None = Field(default=None, description="With genetic: iteration at which capped stops rising (300).")
    population: Annotated[int, Field(ge=2, le=1000)] | None = Field(
        default=None, description="With genetic: chromosomes (24)."
    )
    tournament: Annotated[int, Field(ge=2, le=1000)] | None = Field(
        default=None, description="With genetic: drawn to choose parents from (5)."
    )
    parents: Annotated[int, Field(ge=2, le=4)] | None = Field(
        default=None, description="With genetic: the best of those drawn, of whom a child is joined (2)."
    )
    initial_sd: Bounded | None = Field(default=None, description="With genetic: sd of the first population (1).")
    mutation_sd: Bounded | None = Field(default=None, description="With genetic: sd of a mutation (3).")
    mutation_probability: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None, description="With genetic: probability that a record is mutated (0.2)."
    )
    idle_iterations: Whole | None = Field(
        default=None, description="With genetic: stop after so many without gain (300)."
    )
    most_iterations: Whole | None = Field(default=None, description="With genetic: the most iterations (6000).")
    scale_variance: bool | None = Field(
        default=None,
        description="With genetic: count the variance's distance as that of the standard deviation, so that it does "
        "not dominate (false).",
    )
    seed: Annotated[int, Field(ge=0, le=MAX_WHOLE)] | None = Field(
        default=None, description="Repeats the release, numbering included. For tests only: it must stay secret."
    )


class Labels(Section):
    """An outcome per person, for the utility figures only; it is never released."""

    source: Source = Field(description="A table of the database, or { query = … }, with at most a row per person.")
    person: Text = Field(description="Its column that holds the person key of the series.")
    column: Text = Field(description="Its column with the outcome: true or false, 1 or 0.")


VariableMap = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[dict[Text, Variable], Field(min_length=1, max_length=MAX_ITEMS), Tag("section")],
    Discriminator(_shape),
]
Listed = Annotated[list[Statistic], Field(max_length=4)]
Feature = Annotated[Annotated[Text, Tag("text")] | Annotated[Listed, Tag("list")], Discriminator(_shape)]
Features = Annotated[
    Annotated[Listed, Field(min_length=1), Tag("list")]
    | Annotated[dict[Text, Feature], Field(min_length=1), Tag("section")],
    Discriminator(_shape),
]

Rounding = (
    Annotated[float, Field(ge=1e-6, le=1e9)]
    | Annotated[dict[Text, Annotated[float, Field(ge=1e-6, le=1e9)]], Field(min_length=1, max_length=MAX_ITEMS)]
)


class Series(Section):
    """One release of time series (Mazzone 2020)."""

    check = series_problems

    preset: Literal["benchmark17"] | None = Field(
        default=None,
        description="benchmark17: every rule of the mortality benchmark for MIMIC-III (origin INTIME, 48 h, no "
        "plausibility ranges, Fahrenheit from 79); source is then CHARTEVENTS, and PATIENTS, ADMISSIONS, ICUSTAYS and "
        "LABEVENTS stand beside it.",
    )
    source: Source = Field(description="A long table: one row per measurement; or { query = … }.")
    person: Text = Field(
        description="Column that names whose series it is; never released. k counts its values: where it is a stay and "
        "a patient may have several, take one of each by cohort.first_of."
    )
    time: Text | None = Field(default=None, description="Column with the time: a timestamp, or a number.")
    time_unit: Literal["seconds", "minutes", "hours"] | None = Field(
        default=None, description="Unit of the time where it is a number."
    )
    variable: Text | None = Field(default=None, description="Column that says what was measured.")
    value: Text | None = Field(default=None, description="Column with the measured number.")
    wide: Annotated[dict[Text, Text], Field(min_length=1, max_length=MAX_ITEMS)] | None = Field(
        default=None,
        description="Of a wide table, instead of variable and value: what each column measures, a variable or an item "
        'of variables (heartrate = "HR"). It is read as a long table, once and without a copy.',
    )
    where: Text | None = Field(default=None, description="One SQL expression; rows for which it holds are the input.")
    variables: VariableMap | None = Field(
        default=None,
        description='A shipped map of items to variables ("mimic3/vitals"), a file of that form, or a table of '
        "variables; absent: the values of the variable column as they are.",
    )
    drop: list[Text] = Field(default_factory=list, description="Variables of the map that are left out.")
    cohort: Cohort | None = Field(default=None, description="Who is taken; absent: everybody with a record.")
    min_steps: Whole = Field(default=1, description="Persons with shorter series are left out.")
    step_hours: StepHours = Field(default=1, description="Length of a step, in hours.")
    resample: Literal["mean", "point"] = Field(
        default="mean",
        description="mean: of each step, then linear between steps. point: linear between records, at exact steps.",
    )
    durations: Durations = Field(description="How lengths are made common; k is mandatory.")
    features: Features = Field(
        default_factory=lambda: list(STATISTICS),
        description="Features that an attacker may know: of every variable; or by variable, [] for none; or a name "
        "with an SQL aggregate over value and position, which forms classes, and is measured but not made common.",
    )
    round: Rounding | None = Field(
        default=None,
        description="Step of the grid that targets of feature classes are rounded to, of variables that state neither "
        "round nor resolution nor low and high; or a table of steps by variable. Absent: three significant digits.",
    )
    privacy: SeriesPrivacy = Field(description="Feature k-anonymity; k is mandatory.")
    perturb: Perturb = Field(default_factory=Perturb, description="How series are changed.")
    labels: Labels | None = Field(default=None, description="Outcomes, for utility figures only.")
    disagreement: Disagreeing | None = Field(
        default=None, description="How far off a guess by features is, before and after; {} for all defaults."
    )
    link: Text | None = Field(
        default=None,
        description="A table release of this job with the same person key: both get the same new person_number, and "
        "classes are formed and checked together.",
    )
    shape: Literal["long", "wide"] = Field(
        default="long", description="long: person_number, step, variable, value. wide: a column for each variable."
    )


def problems_of_series(job: Mapping[str, object]) -> Iterator[Problem]:
    """Every broken rule of the series of a job as written, whatever else is wrong with it."""
    for name, series in section(job, "series").items():
        if isinstance(series, Mapping):
            yield from (p.inside("series", name) for p in _problems(series))


def _problems(series: Mapping[str, object]) -> Iterator[Problem]:
    for name in section(series, "variables"):
        variable = section(section(series, "variables"), name)
        yield from (p.inside("variables", name) for p in variable_problems(variable))
    yield from (p.inside("cohort") for p in cohort_problems(section(series, "cohort")))
    yield from (p.inside("perturb") for p in perturb_problems(section(series, "perturb")))
    yield from series_problems(series)
