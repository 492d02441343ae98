"""What a notebook shows of results: small tables of HTML, every text escaped, nothing loaded from anywhere.

All of it is for the data holder, as the results are, and says so: whoever passes the notebook on passes it on, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from sqldeid.errors import JobError

HEAD = "For the data holder only: these counts are statistics about people."
PLANNED = "The plan, from the job and the catalogue. No row was read, nothing was written."


@dataclass(frozen=True, slots=True)
class Released:
    """A release with its rows, where they are in memory: its fields are also those of the release.

    Parameters
    ----------
    release
        What the run tells of it; for the data holder.
    rows_in_memory
        The released rows as an Arrow table; None where they were written to a database or a file.
    """

    release: Any
    rows_in_memory: Any = field(default=None, repr=False, compare=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("release", "rows_in_memory"):  # also while it is copied or unpickled
            raise AttributeError(name)
        return getattr(self.release, name)

    def to_arrow(self) -> Any:
        """The released rows as an Arrow table: nothing of the source, no index, no suppressed row.

        Raises
        ------
        JobError
            If the release was written elsewhere.
        """
        if self.rows_in_memory is None:
            raise JobError(
                f"{self.release.name}: its rows are where they were written ({', '.join(self.release.written)}); only "
                "what is made of data frames without release.into is held in memory"
            )
        return self.rows_in_memory

    def to_pandas(self) -> Any:
        """The same as a data frame of pandas, with an index of row numbers."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        """Name and kind: a notebook keeps this text unseen beside what it shows."""
        return f"<{self.release.name} ({self.release.kind})>"

    def _repr_html_(self) -> str:
        """What a notebook shows; for the data holder."""
        return html_of_result({self.release.name: self.release})


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with its caption; the first cell of a row is its head."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = "".join(
        f'<tr><th scope="row">{_cell(first)}</th>{"".join(f"<td>{_cell(cell)}</td>" for cell in others)}</tr>'
        for first, *others in rows
    )
    title = f"<caption>{escape(caption)}</caption>"
    return f"<table>{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def html_of_result(releases: Mapping[str, Any]) -> str:
    """Each release with the figures that are asked for first, and its warnings."""
    parts = [
        table(f"{name} ({release.kind})", ("what", "value"), _facts(release)) for name, release in releases.items()
    ]
    return f"<div><p>{HEAD}</p>{''.join(parts)}</div>"


def html_of_risk(risk: Any) -> str:
    """Risks of re-identification, rows in small classes, and criteria as measured."""
    weighed = " (by the sum of weights, an estimate)" if any("by weights" in c.name for c in risk.criteria) else ""
    rows: list[Sequence[object]] = [
        ("highest risk of one person known to be in it", _share(risk.prosecutor)),
        (f"the same, not known to be in it{weighed}", _share(risk.journalist)),
        ("expected share if all are matched", _share(risk.marketer)),
        *((f"rows in classes smaller than {size}", count) for size, count in risk.rows_below.items()),
        *((" of ".join(filter(None, (c.name, c.column))), _number(c.achieved)) for c in risk.criteria),
    ]
    return f"<div><p>{HEAD}</p>{table(f'Risk, counted in {risk.counted}', ('what', 'value'), rows)}</div>"


def html_of_explored(name: str, tried: Sequence[Any]) -> str:
    """Of each set of columns that was tried, how many persons are alone by it, or among few."""
    heads = ("known", "alone", *(f"among fewer than {size}" for size in _few(tried)), "persons", "classes")
    rows = [
        (
            ", ".join(found.columns),
            _share(found.alone),
            *(found.persons_below[size] for size in _few(tried)),
            *(found.persons, found.classes),
        )
        for found in tried
    ]
    return f"<div><p>{HEAD}</p>{table(f'{name}: who stands alone', heads, rows)}</div>"


def _few(tried: Sequence[Any]) -> Sequence[int]:
    return [size for size in tried[0].persons_below if size > 2] if tried else []


def html_of_tradeoff(traded: Any) -> str:
    """The least loss for each pair of k and limit."""
    by = "least loss" if traded.loss == "loss" else f"least loss by {traded.loss}"
    heads = ("k", "suppression limit", "least loss", "proven", "suppressed", "classes", "node")
    rows = [
        (
            *(p.k, _share(p.suppression_limit), _number(p.loss), "yes" if p.optimal else "no"),
            *("–" if p.suppressed is None else p.suppressed, "–" if p.classes is None else p.classes, _node(p.node)),
        )
        for p in traded.points
    ]
    return f"<div><p>{HEAD}</p>{table(f'{traded.name}: {by}, {traded.rows:,} rows', heads, rows)}</div>"


def html_of_plan(plans: Sequence[Any]) -> str:
    """Each planned release: its facts, its columns with their levels, and what statements run, folded away."""
    shown = "".join(_part(part) for planned in plans for part in planned.parts)
    steps = [(step.template, step.purpose, _times(step.times)) for p in plans for step in p.statements or ()]
    listed = table("Statements, in order", ("template", "what it does", "how often"), steps) if steps else ""
    folded = f"<details><summary>{len(steps)} statements</summary>{listed}</details>" if steps else ""
    return f"<div><p>{PLANNED}</p>{shown}{folded}</div>"


def _part(part: Any) -> str:
    told = table(" ".join(filter(None, (part.name, part.said))), ("what", "value"), part.facts)
    if part.columns is None:
        return told
    columns = [(c.name, c.hierarchy, " → ".join(c.levels)) for c in part.columns]
    return told + table(f"{part.name}: columns that are generalised", ("column", "hierarchy", "levels"), columns)


def _times(times: int | None) -> str:
    return "as needed" if times is None else "once" if times == 1 else f"{times} times"


def _facts(release: Any) -> Iterable[Sequence[object]]:
    if callable(getattr(release, "facts", None)):  # series and events tell of themselves
        yield from release.facts()
    else:
        yield from _of_table(release.to_dict())
    for place in release.written:
        yield "written", place
    for warning in release.warnings:
        yield "warning", warning


def _of_table(release: Mapping[str, Any]) -> Iterable[Sequence[object]]:
    """Of a table, what its result has; of what it has not, nothing is made up."""
    for key, name in (("k", "smallest class"), ("classes", "classes"), ("rows", "rows of the source")):
        if key in release:
            yield name, release[key]
    if "released" in release:
        yield "rows released", release["released"]
    if "suppressed" in release:
        yield "rows suppressed", release["suppressed"]
    if (loss := (release.get("loss") or {}).get("loss")) is not None:
        yield "loss (0 … 1)", _number(loss)
    if "optimal" in (release.get("search") or {}):
        yield "the least possible, proven", "yes" if release["search"]["optimal"] else "no"
    if "release" in (release.get("risk") or {}):
        yield "highest risk of one person", _share(release["risk"]["release"]["prosecutor"])
    if release.get("node"):
        yield "levels", _node(release["node"])
    for criterion in release.get("criteria") or ():
        yield " of ".join(filter(None, (criterion["name"], criterion.get("column")))), criterion["guarantee"]


def _node(node: Mapping[str, int] | None) -> str:
    return "none is admissible" if node is None else ", ".join(f"{name} {level}" for name, level in node.items())


def _cell(value: object) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if whole else escape(str(value))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"
