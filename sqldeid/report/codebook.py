"""A release explained to whoever receives it: each column's type and meaning, and what coarser values stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sqldeid.report.sections import Section, grid
from sqldeid.result import Tree

RANGE = "from {0} to {1}"

_FORMS = (
    (re.compile(r"^\[(.+), (.+)\)$"), "from {0} to below {1}"),
    (re.compile(r"^\[(.+), (.+)\]$"), "from {0} to {1}"),
    (re.compile(r"^(?:≥|>=) ?(.+) or missing$"), "{0} or more, or no value (missing)"),
    (re.compile(r"^(?:≥|>=) ?(.+)$"), "{0} or more"),
    (re.compile(r"^> ?(.+)$"), "more than {0}"),
    (re.compile(r"^(?:≤|<=) ?(.+)$"), "{0} or less"),
    (re.compile(r"^< ?(.+)$"), "less than {0}"),
    (re.compile(r"^([^*]+?)\*+$"), "everything that begins with {0}"),
    (re.compile(r"^\*+$"), "any value: it is not told"),
    (re.compile(r"^NULL$"), "no value (missing)"),
    (re.compile(r"^([A-Z]?\d+) ?[-–] ?([A-Z]?\d+)$"), RANGE),
    (re.compile(r"^([A-Z]?\d+) ?[-–] ?([A-Z]?\d+) (\D.*)$"), f"{{2}}: {RANGE}"),
)
"""How built hierarchies write their labels."""

_RULE = re.compile(r"^dates ((day|month|quarter|year|decade)(, |$))+$")
"""The name of a rule for dates; a file may be called `dates 2025.csv`."""

_DATES = (
    (re.compile(r"^(\d{4})-(0[1-9]|1[0-2])$"), "month {1} of {0}"),
    (re.compile(r"^(\d{4})-Q([1-4])$"), "quarter {1} of {0}"),
    (re.compile(r"^(\d{4})s$"), "from {0} on, ten years"),
    (re.compile(r"^(\d{4})$"), "the year {0}"),
    (re.compile(r"^(\d{4}-\d\d-\d\d)$"), "that day"),
)
"""The same of the rule for dates, whose labels look like ranges of codes."""

UNTOLD = (
    "A dash: what such a value stands for is not told here, for a hierarchy of the data holder's own may name a value "
    "that a single person has. Ask the data holder."
)
"""Why a value stands without an explanation; under the tables of a release that has one."""

TYPES = {"VARCHAR": "text", "TEXT": "text", "STRING": "text", "BIGINT": "whole number", "INTEGER": "whole number"}
TYPES |= {"DOUBLE": "number", "DOUBLE PRECISION": "number", "REAL": "number", "BOOLEAN": "true or false"}


EMPTY = "(the empty text)"
"""What stands for a value that would show nothing."""

IN_BLANKED = "; in blanked rows its label for any value, mostly *"

DISGUISED = {
    "pseudonym": "a pseudonym: without the key nobody can tell what it stands for",
    "shifted by person": "dates, all of a person moved by one secret number of days: intervals stay",
    "shifted by person, none over 89": "dates of birth, moved likewise; missing for who was 90 or more",
}
"""What a run calls what it did to a column, in words for recipients."""


def codebook(columns: Mapping[str, Tree], *, blanks: bool = False) -> list[dict[str, Any]]:
    """A line for each released column: its name, role, type and what stands in it.

    Parameters
    ----------
    blanks
        Whether blanked rows stand in the release.
    """
    return [
        {
            "name": name,
            "role": c.get("role", ""),
            "type": _type(c.get("type")),
            "meaning": meaning(c) + (IN_BLANKED if blanks and c.get("level") is not None and not _is_top(c) else ""),
        }
        for name, c in columns.items()
        if _released(c)
    ]


_CUT = re.compile(r"^from (.+) on one value$")
"""What a run says of a column that was cut at the top; at level 0 the greatest value is labelled `≥`."""


def coded_sections(columns: Mapping[str, Tree], untold: str = "") -> list[Section]:
    """The same of a release whose columns are of several levels each; none where nothing is coarser.

    Parameters
    ----------
    untold
        What is said of a value of which nothing else is known; without it a dash stands there, with its reason.
    """
    found = coded(columns)
    if not found:
        return []
    grids = []
    for one in found:
        more = ", the most frequent ones" if one["more"] else ""
        rows = [(shown, stands or untold or "–") for shown, stands in one["codes"]]
        grids.append(grid(f"{one['name']}{more}", ("In the release", "Stands for"), rows))
    words = ["Other values are as in the source."] if not any(one["more"] for one in found) else []
    words += [UNTOLD] if not untold and any(not stands for one in found for _, stands in one["codes"]) else []
    return [Section("What do the values stand for?", words=tuple(words), grids=tuple(grids))]


def coded(columns: Mapping[str, Tree]) -> list[dict[str, Any]]:
    """The columns whose values are coarser than the source's, with the values that released rows show."""
    return [
        {"name": name, "codes": list(_codes(c)), "more": bool(c.get("more_codes"))}
        for name, c in columns.items()
        if c.get("codes") and not _is_top(c)
    ]


def blanked(release: Tree) -> bool:
    """Whether suppressed rows stand in the release; of a result for the data holder, or of what may be published."""
    if "rows" not in release:
        return bool(release.get("blanked"))
    return int(release["released"]) + int(release.get("suppressed") or 0) > int(release["rows"])


def limit_told(release: Tree) -> str:
    """How many rows may have been suppressed, which is a part of the job; how many were is not told of dropped ones."""
    limit = release.get("suppression_limit")
    if limit is None or release.get("guarantee"):
        return ""
    if (more := _criteria_limit(release)) is not None:
        most = f"{_per_cent(min(float(limit) + more, 1.0))} in all" if limit and more else "no more"
        return (
            f"Levels were chosen by k-anonymity alone, so that at most {_per_cent(limit)} of the rows fail it and are "
            f"suppressed. Besides, at most {_per_cent(more)} of the rows are suppressed whose classes have k and fail "
            f"another criterion: {most}. {_counted(release)} The limits are parts of the job, no secret."
        )
    if not limit:
        return "Levels were chosen so that no row fails what they are chosen by."
    return (
        f"Levels were chosen so that at most {_per_cent(limit)} of the rows fail what they are chosen by "
        f"and are suppressed. {_counted(release)} The limit is a part of how levels are chosen, no secret."
    )


def _counted(release: Tree) -> str:
    """Whether whoever has the release can tell how many rows were suppressed."""
    if not blanked(release):
        return "How many were is not told."
    return (
        "Suppressed rows are blanked: they stand in the release with one value for everybody, mostly *, in each "
        "quasi-identifying column, where they can be counted; their other columns are as everybody's."
    )


def _criteria_limit(release: Tree) -> float | None:
    """The share of rows that criteria beyond k may suppress besides; of a result, or of what may be published."""
    searched = release.get("search")
    found = release.get("criteria_limit", searched.get("criteria_limit") if isinstance(searched, Mapping) else None)
    return None if found is None else float(found)


def _per_cent(limit: float) -> str:
    return f"{100 * float(limit):.4g} %"


def meaning(column: Tree) -> str:
    """What stands in a column, in a sentence."""
    level = column.get("level")
    shown = DISGUISED.get(str(column.get("shown")), column.get("shown"))
    if level is None:
        return str(shown) if shown else "as in the source"
    if _is_top(column):
        cells = [str(code["shown"]) for code in column.get("codes") or ()]
        told = f", {' or '.join(f'“{cell}”' for cell in cells)}" if 0 < len(cells) < 3 else ""
        return f"one value for everybody{told}: it tells nothing"
    if level == 0:
        cut = _CUT.match(str(shown))
        return f"as in the source; {shown}, “≥ {cut[1]}”" if cut else str(shown) if shown else "as in the source"
    return f"coarser than in the source: {how(column)}" + (f"; {_cut(column, str(shown))}" if shown else "")


def how(column: Tree) -> str:
    """How a level groups values, by its name; a number is the width of bands."""
    named, hierarchy = str(column.get("level_name") or ""), str(column.get("hierarchy"))
    if hierarchy.startswith("bands ") or (hierarchy.startswith("age/") and named.isdigit()):
        return f"bands of {named}"
    if named.isdigit():
        return f"level “{named}” of the hierarchy {hierarchy}"
    return named if named and not named.startswith("level ") else f"grouped by the hierarchy {hierarchy}"


def _cut(column: Tree, shown: str) -> str:
    """What became of the greatest values before they were grouped, and the value that they stand in now."""
    open_ = [str(code["shown"]) for code in column.get("codes") or () if str(code["shown"]).startswith(("≥", ">"))]
    return f"{shown}, which stands in “{open_[0]}” now" if len(open_) == 1 else shown


def column_sections(columns: Mapping[str, Tree]) -> list[Section]:
    """The codebook of series and events, as sections; none of a result that has none (of an earlier version)."""
    if not columns:
        return []
    rows = [(name, str(c["type"]), str(c["meaning"]), str(c.get("unit") or "–")) for name, c in columns.items()]
    book = grid("Codebook", ("Column", "Type", "What stands in it", "Unit"), rows)
    coded = tuple(_words(name, c) for name, c in columns.items() if c.get("codes"))
    told = [Section("What values are there?", grids=coded)] if coded else []
    return [Section("Columns", grids=(book,)), *told]


def _words(name: str, column: Tree) -> Any:
    """The words of a column; with units where it is one of variables."""
    more = ", the most frequent ones" if column.get("more_codes") else ""
    if not any("meaning" in code for code in column["codes"]):
        return grid(f"{name}{more}", ("Value",), [(str(code["shown"]) or EMPTY,) for code in column["codes"]])
    rows = [(str(c["shown"]) or EMPTY, str(c.get("unit") or "–"), str(c.get("meaning", ""))) for c in column["codes"]]
    return grid(f"{name}{more}", ("Value", "Unit", "What became of it"), rows)


def form(label: str, hierarchy: str = "") -> str:
    """A label that a built hierarchy writes, in words; empty for any other, and for a range that ends before it begins.

    Parameters
    ----------
    hierarchy
        The hierarchy's name, by which dates are known.
    """
    for pattern, words in (*_DATES, *_FORMS) if _RULE.match(hierarchy) else _FORMS:
        if (found := pattern.match(label)) is not None:
            return words.format(*found.groups()) if RANGE not in words or _ordered(*found.groups()[:2]) else ""
    return ""


def _ordered(low: str, high: str) -> bool:
    """Whether two codes, each with or without a letter, can be the ends of a range."""
    if low[0].isdigit() != high[0].isdigit():
        return False
    if low[0].isdigit():
        return int(low) <= int(high)
    return (low[0], int(low[1:])) <= (high[0], int(high[1:]))


def _codes(column: Tree) -> Iterable[tuple[str, str]]:
    ordered = sorted(column["codes"], key=lambda code: _order(str(code["shown"])))
    for code in ordered:
        leaves, of = list(code.get("stands_for") or ()), int(code.get("of") or 0)
        if leaves == [code["shown"]]:
            yield code["shown"], "as it is"
        elif of > len(leaves):
            yield code["shown"], f"{', '.join(leaves[:-1])}, … {leaves[-1]} ({of:,} values)"
        else:
            told = [form(leaves[0]) or leaves[0]] if len(leaves) == 1 and leaves[0].startswith(_BOUNDS) else leaves
            yield code["shown"], ", ".join(told) or form(str(code["shown"]), str(column.get("hierarchy")))


_BOUNDS = ("[", "< ", ">= ", "*")
"""How bounds begin that a rule states for a class with a name."""


def _order(label: str) -> tuple[float, str]:
    """Numbers before words, small ones first."""
    number = re.search(r"-?\d+(\.\d+)?", label)
    low = label.startswith(("<", "≤"))
    return (float("-inf") if low else float(number[0]) if number else float("inf"), label)


def _released(column: Tree) -> bool:
    return column.get("role") in ("quasi-identifying", "sensitive", "insensitive") or bool(column.get("shown"))


def _is_top(column: Tree) -> bool:
    level, height = column.get("level"), column.get("height")
    return isinstance(level, int) and isinstance(height, int) and height > 1 and level == height - 1


def _type(name: object) -> str:
    known = str(name or "").upper()
    return TYPES.get(known, known.lower() or "–")
