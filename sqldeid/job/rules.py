"""What a job must keep beyond the type of each key: rules that read two keys or more. Pure.

Each rule reads a plain mapping and takes nothing about it for granted, so that one reading of a file reports these
problems beside those of single keys, also where other keys are wrong. The models hold themselves to the same rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from pathlib import PurePath
from typing import Literal, TypeGuard, get_args

from sqldeid.job import link_rules, stack_rules
from sqldeid.job.attack_rules import attack_problems
from sqldeid.job.child_rules import child_problems, parent_problems
from sqldeid.job.covering import covering_problems
from sqldeid.job.criteria import CRITERIA, NAMED, PER_CLASS, asked_per_class, entries, named_sensitive
from sqldeid.job.disguises import column_disguises, table_disguises
from sqldeid.job.local_rules import layers_problems, local_problems
from sqldeid.job.medians import median_problems
from sqldeid.job.risk_rules import linked_risk_problems, risk_problems
from sqldeid.job.sections import AMBIGUOUS, is_ambiguous, section
from sqldeid.job.series_links import series_link_problems
from sqldeid.job.unit_rules import linked_sample_problems, sample_problems, unit_problems

Role = Literal["quasi-identifying", "identifying", "sensitive", "insensitive", "free-text"]

SECTIONS = ("tables", "series", "events")
"""Sections of a job that hold releases, in the order in which they are made."""

HIERARCHY_RULES = (
    *("bands", "edges", "mask", "keep_first", "dates", "suppress", "median", "aggregate"),
    *("table", "query", "parents"),
)
IN_DATABASE = ("table", "query", "parents", "columns", "child", "parent", "separation", "depths")
"""Keys of hierarchies whose levels stand in the database."""
DATE_UNITS = ("day", "month", "quarter", "year", "decade")
DATABASE_ENDINGS = frozenset({".duckdb", ".ddb", ".db"})
OTHER_ENDINGS = frozenset(
    {".csv", ".tsv", ".txt", ".json", ".xlsx", ".sqlite", ".sqlite3", ".html", ".pdf", ".toml", ".gz", ".zip"}
)
FILE_ENDINGS = DATABASE_ENDINGS | OTHER_ENDINGS | {".parquet"}
MAX_DECIMALS, MAX_FACTOR = 9, 10**9
MAX_NAME_BYTES = 200
"""Of a release's name in UTF-8: with an ending it must still fit into a file name (255 bytes)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend.

    Parameters
    ----------
    where
        Keys from the part that was read down to the one concerned.
    text
        What is wrong and what to do, without a value of the file; it follows ``<key>: ``.
    names
        A key below `where` that the text itself names (an unknown one).
    """

    where: tuple[str, ...]
    text: str
    names: tuple[str, ...] = ()

    def inside(self, *outer: str) -> Problem:
        """The same problem seen from the part that holds this one under `outer`."""
        return Problem((*outer, *self.where), self.text, self.names)


class BrokenRules(ValueError):
    """Carries problems through pydantic, which knows ValueError."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(p.text for p in problems))
        self.problems = problems


def all_problems(job: Mapping[str, object]) -> Iterator[Problem]:
    """Every broken rule of a job as written, whatever else is wrong with it."""
    yield from (p.inside("release") for p in release_problems(section(job, "release")))
    tables = section(job, "tables")
    for name in tables:
        table = section(tables, name)
        yield from (p.inside("tables", name) for p in _parts_of_table(table))
        yield from (p.inside("tables", name) for p in table_problems(table))
    yield from job_problems(job)


def _parts_of_table(table: Mapping[str, object]) -> Iterator[Problem]:
    columns = section(table, "columns")
    for name in columns:
        column = section(columns, name)
        yield from (p.inside("columns", name) for p in column_problems(column))
        rule = column.get("hierarchy")
        if isinstance(rule, Mapping):
            yield from (p.inside("columns", name, "hierarchy") for p in hierarchy_problems(rule))
    stacks = section(table, "stack")
    for name in stacks:
        yield from (p.inside("stack", name) for p in stack_problems(section(stacks, name)))
    yield from (p.inside("search") for p in search_problems(section(table, "search")))


def hierarchy_problems(rule: Mapping[str, object]) -> Iterator[Problem]:
    """Exactly one way to build, and its levels in order from fine to coarse."""
    given = [name for name in HIERARCHY_RULES if rule.get(name) is not None]
    if len(given) != 1:
        found = f"has {' and '.join(given)}" if given else "has none of them"
        yield Problem((), f"must hold exactly one of {', '.join(HIERARCHY_RULES)}; it {found}")
    if rule.get("tails") is not None and rule.get("edges") is None:
        yield Problem(("tails",), "goes with edges alone; remove it")
    if rule.get("grid") is not None and rule.get("median") is None and rule.get("aggregate") is None:
        yield Problem(("grid",), "goes with median or aggregate alone; remove it")
    if not rule.keys().isdisjoint(IN_DATABASE):
        from sqldeid.job.database_rules import in_database_problems

        yield from (Problem(*found) for found in in_database_problems(rule))
    for name in ("bands", "mask"):
        if not _rising(rule.get(name)):
            yield Problem((name,), "must rise from each level to the next, finest first")
    kept = rule.get("keep_first")
    if isinstance(kept, list) and not _rising(kept[::-1]):
        yield Problem(("keep_first",), "must fall from each level to the next, finest first")
    edges = rule.get("edges")
    if isinstance(edges, list) and not all(_rising(level) for level in edges):
        yield Problem(("edges",), "must rise within each level")
    dates = rule.get("dates")
    known = isinstance(dates, list) and all(isinstance(u, str) and u in DATE_UNITS for u in dates)
    if isinstance(dates, list) and known and not _rising([DATE_UNITS.index(u) for u in dates]):
        yield Problem(("dates",), f"must go from fine to coarse, each once: {', '.join(DATE_UNITS)}")


def column_problems(column: Mapping[str, object]) -> Iterator[Problem]:
    """A quasi-identifying column has a hierarchy, and no other has one."""
    role = column.get("role")
    if role not in get_args(Role):
        return
    yield from (Problem(*found) for found in column_disguises(column))
    if role == "quasi-identifying":
        if column.get("hierarchy") is None:
            yield Problem(
                ("hierarchy",),
                "missing; a quasi-identifying column needs one: a file, a shipped one, or a rule such as "
                "{ suppress = true }",
            )
        return
    for name in ("hierarchy", "uncovered", "version"):
        if column.get(name) is not None:
            yield Problem((name,), f'is for quasi-identifying columns; this one is "{role}": remove it')


def stack_problems(stack: Mapping[str, object]) -> Iterator[Problem]:
    """What a stack takes goes together, and its columns are said what columns are."""
    yield from (Problem(*found) for found in stack_rules.stack_problems(stack))
    yield from column_problems(
        {key: stack[key] for key in ("role", "hierarchy", "uncovered", "version") if key in stack}
    )
    rule = stack.get("hierarchy")
    if isinstance(rule, Mapping):
        yield from (p.inside("hierarchy") for p in hierarchy_problems(rule))


def few_digits(name: str, value: object) -> Iterator[Problem]:
    """Criteria are compared in integers, which must fit."""
    if type(value) not in (int, float) or not isfinite(number := float(str(value))):
        return
    if number > MAX_FACTOR:
        yield Problem((name,), f"must be at most {MAX_FACTOR:,}")
    elif Fraction(repr(number)).denominator > 10**MAX_DECIMALS:
        yield Problem((name,), f"has more than {MAX_DECIMALS} decimals; round it")


_CHOOSING: Mapping[object, str] = {
    "inverse-ola": "which seeks the greatest k, or by m_concealing the least m",
    "epsilon-safe": "which draws its node",
    "mondrian": "whose cuts are chosen by all criteria together; use a method that has a lattice",
}


_SHARES = ("loss", "prec", "normalised_entropy", "class_size", "payout")
"""Losses between 0 and 1."""

_UNREAD = {
    "mondrian": ("loss", "weights", "time_limit", "checks_limit"),
    "epsilon-safe": ("time_limit", "checks_limit"),
}
"""Keys of `search` that a method does not look at."""

_WHY = {
    "loss": "minimises none",
    "weights": "weighs no columns",
    "time_limit": "does not go on until a time",
    "checks_limit": "has no number of checks to end at",
}


def search_problems(search: Mapping[str, object]) -> Iterator[Problem]:
    """`max_loss` belongs to inverse-ola, weights to the losses that are means over columns."""
    inverse = search.get("method") == "inverse-ola"
    most = search.get("max_loss")
    loss = search.get("loss", "loss")
    if inverse and most is None:
        yield Problem(("max_loss",), 'missing; method = "inverse-ola" needs the greatest loss accepted')
    if most is not None and not inverse:
        yield Problem(("max_loss",), 'goes with method = "inverse-ola" alone; remove it or change method')
    if loss in _SHARES and isinstance(most, (int, float)) and most > 1:
        yield Problem(("max_loss",), f'must be at most 1: loss = "{loss}" is a share between 0 and 1')
    drawn = search.get("method") == "epsilon-safe"
    if drawn and search.get("epsilon_safe") is None:
        yield Problem(
            ("epsilon_safe",), 'missing; method = "epsilon-safe" needs { beta = …, epsilon = …, population = … }'
        )
    asked = search.get("epsilon_safe")
    if drawn and isinstance(asked, Mapping) and asked.get("delta") is None and asked.get("population") is None:
        yield Problem(
            ("epsilon_safe", "delta"),
            "missing; state the most that delta may be, or population, a public number of persons: delta is then below "
            "one in so many. What is proven is compared with it",
        )
    if not drawn and search.get("epsilon_safe") is not None:
        yield Problem(("epsilon_safe",), 'goes with method = "epsilon-safe" alone; remove it or change method')
    for name in _UNREAD.get(str(search.get("method")), ()):
        if search.get(name) is not None:
            yield Problem((name,), f"is for methods that search a lattice; {search['method']} {_WHY[name]}: remove it")
    if search.get("weights") and loss in link_rules.UNWEIGHTED:
        yield Problem(("weights",), f'are defined for losses that weigh columns, not for "{loss}"; remove them')


def table_problems(table: Mapping[str, object]) -> Iterator[Problem]:
    """Rules between the keys of one table release."""
    columns = stack_rules.with_stacked(table)
    yield from (Problem(*found) for found in stack_rules.stacks_problems(table))
    yield from (p.inside("columns") for p in _column_names(columns))
    roles = {name: section(columns, name).get("role") for name in columns}
    known = all(isinstance(role, str) and role in get_args(Role) for role in roles.values())
    if known and isinstance(table.get("columns"), Mapping) and "quasi-identifying" not in roles.values():
        yield Problem(("columns",), 'none is quasi-identifying; give role = "quasi-identifying" to at least one')
    yield from _person(table.get("person"), roles)
    yield from _weights(section(section(table, "search"), "weights"), roles)
    yield from _undecided(section(table, "privacy"))
    yield from _criteria(table, roles)
    yield from _joint(table, roles)
    yield from _choosing(table)
    yield from (Problem(*found) for found in covering_problems(table))
    yield from _computed(table, roles)
    yield from (Problem(*found) for found in unit_problems(table))
    yield from (Problem(*found) for found in sample_problems(table))
    yield from (Problem(*found) for found in table_disguises(table))
    yield from (Problem(*found) for found in median_problems(table))
    yield from _aggregated(table)
    yield from (Problem(*found) for found in local_problems(table))
    yield from (Problem(*found) for found in risk_problems(table))
    yield from (Problem(*found) for found in attack_problems(table, roles))
    yield from (Problem(*found) for found in child_problems(table))


def _aggregates(table: Mapping[str, object]) -> bool:
    columns = stack_rules.with_stacked(table)
    return any(section(section(columns, name), "hierarchy").get("aggregate") is not None for name in columns)


def _aggregated(table: Mapping[str, object]) -> Iterator[Problem]:
    if _aggregates(table):
        from sqldeid.job.aggregate_rules import aggregate_problems

        yield from (Problem(*found) for found in aggregate_problems(table))


def _aggregated_beside(job: Mapping[str, object], name: str) -> Iterator[Problem]:
    if _aggregates(section(section(job, "tables"), name)):
        from sqldeid.job.aggregate_rules import linked_aggregate_problems

        yield from (Problem(*found) for found in linked_aggregate_problems(job, name))


def _undecided(privacy: Mapping[str, object]) -> Iterator[Problem]:
    """What was asked for elsewhere, and nobody has decided about, refuses the job."""
    if privacy.get("undecided") is not None:
        yield Problem(
            ("undecided",),
            "the project that this job was taken from asks for what is listed there, and the job does not; write what "
            "is to hold instead, or decide that it need not, then remove this line",
        ).inside("privacy")


def _criteria(table: Mapping[str, object], roles: Mapping[str, object]) -> Iterator[Problem]:
    """Criteria speak of sensitive columns; of each, at most one t-closeness."""
    privacy = section(table, "privacy")
    method = section(table, "search").get("method")
    if asked_per_class(privacy) and method == "inverse-ola":
        yield Problem(
            ("search", "method"),
            "inverse-ola seeks the greatest k, or the least m of m_concealing, and knows no other criterion; use "
            "frontier, best-first, flash or ola",
        )
    if any(privacy.get(c) for c in CRITERIA) and table.get("view") == "computed":
        yield Problem(("view",), "a computed view knows k-anonymity alone; use a snapshot")
    if method == "epsilon-safe":
        yield from _drawn(table, privacy)
    for known in section(section(privacy, "m_concealing"), "known"):
        if roles.get(known) != "sensitive":
            yield Problem(
                ("privacy", "m_concealing", "known", known),
                f'is not a column of this release with role = "sensitive"{named_sensitive(known, roles)}',
            )
    for criterion, number in PER_CLASS.items():
        columns = [e.get("column") for e in entries(privacy, criterion)]
        for column in columns:
            if isinstance(column, str) and roles.get(column) != "sensitive":
                text = f'must name a column of this release with role = "sensitive"{named_sensitive(column, roles)}'
                yield Problem(("privacy", criterion, "column"), text)
        if criterion != "l_diversity" and len(set(map(str, columns))) < len(columns):
            yield Problem(("privacy", criterion), f"names a column twice; give each its strictest {number}")


def _joint(table: Mapping[str, object], roles: Mapping[str, object]) -> Iterator[Problem]:
    """Joint l-diversity looks at each column beside the other sensitive ones."""
    asked = section(table, "privacy").get("l_diversity")
    joint = any(
        isinstance(e, Mapping) and e.get("scope") == "joint" for e in (asked if isinstance(asked, list) else [asked])
    )
    if joint and sum(role == "sensitive" for role in roles.values()) < 2:
        yield Problem(
            ("privacy", "l_diversity", "scope"),
            'joint is for two columns or more with role = "sensitive"; with one, leave scope out',
        )


def _choosing(table: Mapping[str, object]) -> Iterator[Problem]:
    """A node is chosen by k alone only where more is asked for and a search looks for one; then two limits hold."""
    privacy, search = section(table, "privacy"), section(table, "search")
    method, choose = search.get("method", "frontier"), search.get("choose", "by-all")
    if choose != "by-k":
        if choose == "by-all" and privacy.get("criteria_limit") is not None:
            yield Problem(("privacy", "criteria_limit"), 'goes with search.choose = "by-k" alone; remove it')
        return
    key = ("search", "choose")
    if method in _CHOOSING:
        yield Problem(key, f'"by-k" does not go with {method}, {_CHOOSING[method]}')
    elif not any(privacy.get(c) for c in CRITERIA) and not _linked(table):
        yield Problem(key, f'"by-k" is for jobs with {NAMED}; remove it')
    elif privacy.get("criteria_limit") is None:
        yield Problem(
            ("privacy", "criteria_limit"),
            'missing; with search.choose = "by-k" say what share of the rows (0 to 1) may be suppressed because their '
            "classes fail another criterion than k",
        )


def _linked(table: Mapping[str, object]) -> bool:
    """Whether a table is, or may be, linked with others, whose criteria hold for it, too."""
    columns = section(table, "columns")
    return table.get("link") is not None or any(section(columns, c).get("pseudonym") is True for c in columns)


def _drawn(table: Mapping[str, object], privacy: Mapping[str, object]) -> Iterator[Problem]:
    """epsilon-safe releases its node and classes of k, nothing else."""
    if privacy.get("suppression") == "blank":
        yield Problem(("privacy", "suppression"), "epsilon-safe drops rows: blanked ones would tell how many there are")
    for criterion in CRITERIA:
        if privacy.get(criterion):
            yield Problem(
                ("privacy", criterion), "does not go with epsilon-safe, whose columns are all quasi-identifying"
            )
    if table.get("view") == "computed":
        yield Problem(("view",), "epsilon-safe releases a sample, which a view cannot repeat")


def _column_names(columns: Mapping[str, object]) -> Iterator[Problem]:
    for name in columns:
        if not name or "\0" in name:
            yield Problem((name,), "a column name may not be empty or hold a NUL character")
    yield from _same_names(columns, "column")


def _person(person: object, roles: Mapping[str, object]) -> Iterator[Problem]:
    if not isinstance(person, str):
        return
    for name, role in roles.items():
        if name.casefold() == person.casefold() and role != "identifying":
            yield Problem(
                ("columns", name),
                'is the person key, which is never released; give it role = "identifying" or leave it out',
            )


def _weights(weights: Mapping[str, object], roles: Mapping[str, object]) -> Iterator[Problem]:
    for name in weights:
        if name not in roles or (roles[name] in get_args(Role) and roles[name] != "quasi-identifying"):
            there = ", ".join(n for n, role in roles.items() if role == "quasi-identifying")
            told = f"is not a quasi-identifying column of this release; it has {there}"
            yield Problem(("search", "weights", name), told if there else told.partition(";")[0])


def _computed(table: Mapping[str, object], roles: Mapping[str, object]) -> Iterator[Problem]:
    """A view over a changing table shows single rows as classes grow past k, so it needs a promise or bare QIs."""
    computed = table.get("view") == "computed"
    frozen = table.get("frozen") is True
    if frozen and not computed:
        yield Problem(("frozen",), 'goes with view = "computed" alone: a snapshot is frozen anyway; remove it')
    if computed and section(table, "privacy").get("suppression") == "blank":
        yield Problem(("privacy", "suppression"), 'must be "drop": a computed view cannot blank rows')
    if computed and not frozen and {"sensitive", "insensitive"} & {r for r in roles.values() if isinstance(r, str)}:
        yield Problem(
            ("view",),
            "a computed view with more than quasi-identifying columns loses k when its source changes; set "
            'frozen = true if the source never changes, or view = "snapshot"',
        )


def release_problems(release: Mapping[str, object]) -> Iterator[Problem]:
    """Parquet goes to a folder that the job names, all else into a database. The file system is not asked."""
    into = release.get("into")
    if release.get("as") != "parquet":
        ending = PurePath(into).suffix.casefold() if isinstance(into, str) else ""
        if ending in OTHER_ENDINGS or ending == ".parquet":
            yield Problem(
                ("into",),
                f"a DuckDB database is written there, which is no {ending} file: name one that ends in .duckdb, or a "
                'folder for as = "parquet"',
            )
        if release.get("as") == "view" and is_ambiguous(into, release.get("schema", "release")):
            yield Problem(("into",), f"nobody can read a view there: {AMBIGUOUS}")
        return
    if into is None:
        yield Problem(("into",), 'missing; as = "parquet" writes into a folder: name it')
    elif isinstance(into, str) and PurePath(into).suffix.casefold() in FILE_ENDINGS:
        yield Problem(("into",), 'must be a folder, not a file: as = "parquet" writes one file a release into it')


def job_problems(job: Mapping[str, object]) -> Iterator[Problem]:
    """Rules between releases: names, and what the kind of release allows."""
    tables = section(job, "tables")
    named = [(kind, name) for kind in SECTIONS for name in section(job, kind)]
    if not named and job.keys() <= {"about", "release", *SECTIONS}:
        yield Problem(("tables",), "there is no release; add a section [tables.NAME]")
    for kind, name in named:
        if flaw := name_flaw(name):
            yield Problem((kind, name), f"a release is named like a table and a file, so its name {flaw}")
    yield from _same_releases(named)
    yield from (Problem(*found) for found in link_rules.link_problems(job))
    yield from (Problem(*found) for found in link_rules.apart_problems(job))
    yield from (Problem(*found) for found in link_rules.other_persons_problems(job))
    yield from (Problem(*found) for found in series_link_problems(job))
    yield from (Problem(*found) for found in parent_problems(job))
    yield from (Problem(*found) for found in layers_problems(job))
    yield from (Problem(*found) for found in linked_risk_problems(job))
    yield from (Problem(*found) for found in linked_sample_problems(job))
    yield from (p for name in tables for p in _aggregated_beside(job, name))
    target = section(job, "release").get("as", "table")
    for name in tables:
        if section(tables, name).get("view") == "computed" and target in ("table", "parquet"):
            yield Problem(("tables", name, "view"), 'view = "computed" needs release.as = "view"')


def _same_releases(named: list[tuple[str, str]]) -> Iterator[Problem]:
    seen: dict[str, tuple[str, str]] = {}
    for kind, name in named:
        if (first := seen.setdefault(name.casefold(), (kind, name))) != (kind, name):
            twice = "" if first[1] == name else " but for upper and lower case"
            yield Problem((kind, name), f"another release has this name{twice}; rename one of them")


def name_flaw(name: str) -> str:
    """Why `name` cannot be a release's, to follow "its name"; empty if it can."""
    if not name:
        return "may not be empty"
    if name.startswith("."):
        return 'may not start with "."'
    if any(c in name for c in "\0/\\"):
        return 'may not hold "/", "\\" or a NUL character'
    if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        return f"may not be longer than {MAX_NAME_BYTES} bytes"
    return ""


def _same_names(names: Mapping[str, object], what: str) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name in names:
        if seen.setdefault(name.casefold(), name) != name:
            yield Problem((name,), f"another {what} has this name but for upper and lower case; rename one of them")


def _rising(values: object) -> bool:
    """Whether a list of numbers rises strictly; anything else is another check's to refuse."""
    return not _numbers(values) or all(a < b for a, b in pairwise(values))


def _numbers(values: object) -> TypeGuard[list[int | float]]:
    return isinstance(values, list) and all(type(v) in (int, float) for v in values)
