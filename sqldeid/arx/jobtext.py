"""The job of an ARX project: as a mapping, and as commented TOML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

import tomlkit
from tomlkit.items import Table

from sqldeid.arx.criteria import demands, loss_of
from sqldeid.arx.project import Attribute, Project
from sqldeid.job.link_rules import UNWEIGHTED

NO_K = "k-anonymity: the project asks for none"
_MOST_WEIGHT, _LEAST_WEIGHT = 1e6, 1e-6
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class JobOf:
    """A project as a job.

    Parameters
    ----------
    content
        The job without what is undecided.
    undecided
        What the project asks for and the job does not, in ARX's words or ours.
    notes
        What else is different, in a sentence each.
    """

    content: dict[str, dict[str, object]]
    undecided: list[str]
    notes: list[str]


def hierarchy_files(attributes: Sequence[Attribute], folder: str) -> dict[str, str]:
    """Attribute to the file of its hierarchy, relative to the job; no name of the project leads out of the folder."""
    return {
        a.name: f"{folder}/{i}_{_UNFIT.sub('_', a.name)[:40] or 'column'}.csv"
        for i, a in enumerate(attributes, 1)
        if a.hierarchy
    }


def job_of(project: Project, table: str, into: str, files: Mapping[str, str], whole: frozenset[str]) -> JobOf:
    """The job that asks what the project asks.

    Parameters
    ----------
    table
        Name of the source's table in schema main, and of the release.
    into
        Database file that the release goes to, relative to the job file.
    files
        As of `hierarchy_files`.
    whole
        Columns that the source has as whole numbers.
    """
    undecided: list[str] = []
    notes: list[str] = []
    columns = {a.name: _column(a, files, undecided, notes) for a in project.attributes}
    taken = _statistics(project, whole, undecided, notes)
    columns |= {name: {"role": "quasi-identifying", "hierarchy": rule} for name, rule in taken.items()}
    sensitive = frozenset(a.name for a in project.attributes if a.role == "sensitive")
    asked = demands(project.config.criteria, sensitive, whole, files)
    if asked.k is None:
        undecided.append(NO_K)
    if project.config.unknown:
        undecided.append("input/config.xml: an element that is not known here")
    loss, differences = loss_of(project.config.metric)
    search: dict[str, object] = {"loss": loss}
    weights = {} if loss in UNWEIGHTED else _weights(project, frozenset(taken), notes)
    if weights:
        search["weights"] = weights
    if project.config.practical:
        notes.append("ARX was told to prune as if criteria were monotone; the job's search proves the optimum")
    privacy: dict[str, object] = {"k": asked.k or 2, "suppression_limit": float(project.config.limit)}
    privacy |= {key: entries[0] if len(entries) == 1 else entries for key, entries in asked.entries.items()}
    privacy |= asked.overall
    release = {
        "source": f"main.{table}",
        "rows_are_persons": True,
        "columns": columns,
        "privacy": privacy,
        "search": search,
    }
    content: dict[str, dict[str, object]] = {"release": {"into": into}, "tables": {table: release}}
    return JobOf(content, [*asked.left, *undecided], [*asked.notes, *notes, *differences])


def _column(
    attribute: Attribute, files: Mapping[str, str], undecided: list[str], notes: list[str]
) -> dict[str, object]:
    """The entry of a column; what it cannot hold is added to the lists."""
    column: dict[str, object] = {"role": attribute.role}
    if attribute.unknown:
        undecided.append(f"column {attribute.name}: an element of its definition that is not known here")
    if attribute.role != "quasi-identifying":
        return column
    column["hierarchy"] = files.get(attribute.name, {"suppress": True})
    if attribute.hierarchy is None and attribute.aggregated is None:
        notes.append(f"column {attribute.name} has no hierarchy in the project; the job may release it whole or not")
    if attribute.least:
        undecided.append(f"column {attribute.name}: no level below {attribute.least} may be released")
    height = len(attribute.hierarchy[0]) if attribute.hierarchy else 1
    if attribute.greatest is not None and attribute.greatest < height - 1:
        notes.append(f"column {attribute.name}: the project stops at level {attribute.greatest}; the job goes on")
    if attribute.hierarchy and len({line[-1] for line in attribute.hierarchy}) > 1:
        notes.append(f"column {attribute.name}: its hierarchy ends in several values; the job adds * above them")
    return column


_FUNCTIONS = {"Arithmetic mean": "mean", "Median": "median", "Mode": "mode", "Interval": "interval"}


def _statistics(
    project: Project, whole: frozenset[str], undecided: list[str], notes: list[str]
) -> dict[str, dict[str, object]]:
    """The columns that are microaggregated, with the job's rule; of whole numbers alone, which have a grid."""
    quasi = [a for a in project.attributes if a.role == "quasi-identifying"]
    split = any(a.aggregated is None for a in quasi)
    found: dict[str, dict[str, object]] = {}
    for a in (a for a in quasi if a.aggregated is not None):
        function = _FUNCTIONS.get(a.aggregated or "")
        if function is None or a.name not in whole or not split:
            undecided.append(f"column {a.name}: microaggregation")
            continue
        found[a.name] = {"aggregate": function}
        notes.append(
            f"column {a.name}: {_TOLD[function]}; it is rounded to whole numbers, and missing where fewer than k rows "
            "of a class have a value"
        )
        if a.whole:
            notes.append(
                f"column {a.name}: ARX makes the statistic missing where one value of the class is; the job not"
            )
        if a.hierarchy is not None:
            notes.append(f"column {a.name}: should ARX have generalised it first (clustering), the job does not")
    return found


_TOLD = {
    "mean": "each row shows the mean of its class",
    "median": "each row shows the mean of the k values in the middle of its class, where ARX shows one person's value",
    "mode": "each row shows the value that most rows of its class have, if k rows do",
    "interval": "each row shows an interval that holds its class, where ARX shows the least and the greatest value",
}


def _weights(project: Project, left_out: frozenset[str], notes: list[str]) -> dict[str, object]:
    """Weights of quasi-identifying columns; none where all are alike, as ARX writes them unasked."""
    names = [a.name for a in project.attributes if a.role == "quasi-identifying" and a.name not in left_out]
    given = {name: float(project.config.weights.get(name, "0.5")) for name in names}
    if len(set(given.values())) <= 1:
        return {}
    if not all(_LEAST_WEIGHT <= weight <= _MOST_WEIGHT for weight in given.values()):
        notes.append("search.weights: a weight of 0 (or beyond a million) is taken as the next that a job may have")
    return {name: min(max(weight, _LEAST_WEIGHT), _MOST_WEIGHT) for name, weight in given.items()}


def job_text(job: JobOf, project: str, database: str, name: str) -> str:
    """The job file: what is undecided stands in it as a line by which it is refused."""
    document = tomlkit.document()
    _comment(document, f"Taken by sqldeid import-arx from {project}, with its data in {database}:")
    document.add(tomlkit.comment(_shown(f"    sqldeid anonymize {database} --job {name} --plan")))
    document.add(tomlkit.comment(_shown(f"    sqldeid anonymize {database} --job {name}")))
    _comment(document, "ARX counts rows, and so does this job; name a person key instead if rows can share a person.")
    for note in job.notes:
        _comment(document, f"- {note}")
    document.add(tomlkit.nl())
    for section, content in job.content.items():
        document.add(section, tomlkit.item(content))
    if job.undecided:
        (table,) = job.content["tables"]
        _undecided(document["tables"][table]["privacy"], job.undecided)
    return _safe(tomlkit.dumps(document))


def _undecided(privacy: Table, undecided: list[str]) -> None:
    """The line that refuses the job, under what it means."""
    lines = tomlkit.array()
    lines.extend([_shown(text)[:200] for text in undecided])
    lines.multiline(True)
    _comment(
        privacy,
        "The project asks for these, and the job does not. While the line stands, the job is refused: write what is to "
        "hold instead, or decide that it need not, and remove the line.",
    )
    privacy.add("undecided", lines)


def _comment(lines: tomlkit.TOMLDocument | Table, text: str) -> None:
    for line in wrap(_shown(text), 112, break_long_words=False, break_on_hyphens=False):
        lines.add(tomlkit.comment(line))


def _shown(text: str) -> str:
    """A text on one line."""
    return "".join(c if c.isprintable() else " " for c in text)


def _safe(text: str) -> str:
    """Escape what a terminal takes for a control; TOML reads the escape of a name as the name."""
    return "".join(c if c.isprintable() or c == "\n" else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04X}" if code < 2**16 else f"\\U{code:08X}"
