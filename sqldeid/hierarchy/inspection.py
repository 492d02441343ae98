"""Look at a hierarchy: what it is, what is wrong with it, and its file. For `sqldeid hierarchy show|check|build`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from sqldeid.errors import HierarchyError
from sqldeid.hierarchy.header import refuse_header, unused
from sqldeid.hierarchy.model import Hierarchy, UncoveredValues
from sqldeid.hierarchy.sources import HierarchySource, open_source
from sqldeid.hierarchy.tree import Uncovered
from sqldeid.hierarchy.versions import refuse_versions


@dataclass(frozen=True, slots=True)
class HierarchyReport:
    """What a check found.

    Parameters
    ----------
    name
        Of the hierarchy; as it was asked for if it could not be opened.
    height
        Number of levels, level 0 and the top included; 0 if it could not be opened.
    level_names
        Readable name of each level.
    groups
        Number of groups of each level; empty while the leaves are not known.
    leaves
        Number of leaves.
    bits
        Bits of its prefix code.
    values
        Data values looked at; 0 without data.
    uncovered
        How many of them are not covered.
    unused
        How many leaves of a file of one's own none of them has; 0 without data.
    problems
        One sentence each, without data values; empty if all is well.
    null
        Whether one of the leaves is NULL, as it is where a value or the file's own line is empty.
    """

    name: str
    height: int = 0
    level_names: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    leaves: int = 0
    bits: int = 0
    values: int = 0
    uncovered: int = 0
    unused: int = 0
    problems: tuple[str, ...] = ()
    null: bool = False

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def check(
    spec: str | Mapping[str, object],
    folder: Path,
    values: pa.Array | None = None,
    *,
    numeric: bool = False,
    uncovered: Uncovered = "refuse",
    called: str | None = None,
) -> HierarchyReport:
    """Open a hierarchy and, if there is data, bind it; what is wrong is reported, not raised.

    Parameters
    ----------
    spec, folder
        As `open_source` takes them.
    values
        Distinct values of a column; without them only a file can be checked whole.
    numeric, uncovered
        As `bind` takes them.
    called
        The column's name, which no file begins with.
    """
    try:
        source = open_source(spec, folder)
    except HierarchyError as error:
        return HierarchyReport(str(spec) if isinstance(spec, str) else "rule", problems=(error.message,))
    if values is None and source.data_derived:
        return HierarchyReport(source.name, source.height, source.level_names)
    try:
        refuse_header(source, values, numeric=numeric, called=called)
        if values is not None:
            refuse_versions(source, values)
    except HierarchyError as error:
        return HierarchyReport(source.name, source.height, source.level_names, problems=(error.message,))
    there = pa.array([], pa.string()) if values is None else values
    return _check_bound(source, there, numeric, uncovered, called or "")


def _check_bound(
    source: HierarchySource, values: pa.Array, numeric: bool, uncovered: Uncovered, called: str
) -> HierarchyReport:
    lost, problems = 0, []
    try:
        hierarchy = source.bind(values, numeric=numeric, uncovered=uncovered)
    except UncoveredValues as error:
        from sqldeid.hierarchy.mending import mending

        lost = len(error.indices)
        text = pa.types.is_string(values.type) and not numeric
        problems.append(
            f"hierarchy {source.name} does not cover {lost} value{'s' * (lost != 1)} of the column {called}".rstrip()
            + f". {mending(source, lost, uncovered, called, text=text)}"
        )
        covered = np.setdiff1d(np.arange(len(values)), error.indices)  # what the file lacks is no leaf of it
        hierarchy = source.bind(values.take(pa.array(covered)), numeric=numeric, uncovered=uncovered)
    except HierarchyError as error:
        return HierarchyReport(source.name, source.height, source.level_names, problems=(error.message,))
    bits = 0
    try:
        bits = hierarchy.codes()[1][-1]
    except HierarchyError as error:
        problems.append(error.message)
    sizes = tuple(len(labels) for labels in hierarchy.labels)
    return HierarchyReport(
        source.name,
        source.height,
        source.level_names,
        sizes,
        hierarchy.leaves,
        bits,
        len(values),
        lost,
        unused(source, hierarchy) if len(values) else 0,
        tuple(problems),
        any(label is None for label in hierarchy.labels[0]),
    )


def not_covered(spec: str | Mapping[str, object], folder: Path, values: pa.Array, *, numeric: bool = False) -> pa.Array:
    """The values that a hierarchy does not cover, in their order: data, for whoever holds it.

    Raises
    ------
    HierarchyError
        If the hierarchy does not load, or cannot be bound to such values.
    """
    try:
        open_source(spec, folder).bind(values, numeric=numeric, uncovered="refuse")
    except UncoveredValues as error:
        return values.take(pa.array(error.indices))
    return values.slice(0, 0)


def paths(hierarchy: Hierarchy) -> Iterator[tuple[str | None, ...]]:
    """Per leaf its label on each level, from the original to the top; None is NULL."""
    columns = (labels[groups] for labels, groups in zip(hierarchy.labels, hierarchy.groups, strict=True))
    return zip(*columns, strict=True)


def as_csv(hierarchy: Hierarchy) -> str:
    """The text of a file that `open_source` reads back: `;`, one line a leaf, NULL as an empty field.

    Every field is quoted: so no value can be taken for a delimiter, a line end or a byte order mark.

    Raises
    ------
    HierarchyError
        If the hierarchy tells an empty text from NULL, which a file cannot.
    """
    for level, labels in enumerate(hierarchy.labels):
        if "" in set(labels.tolist()):
            raise HierarchyError(
                f"hierarchy {hierarchy.name}: level {level} has an empty text, which a file cannot tell from NULL. "
                "Replace it in the source"
            )
    file = io.StringIO()
    writer = csv.writer(file, delimiter=";", lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows(paths(hierarchy))
    return file.getvalue()


def write_csv(hierarchy: Hierarchy, path: Path) -> None:
    """Write a hierarchy as a file in UTF-8, as `as_csv` has it.

    Raises
    ------
    HierarchyError
        If the hierarchy tells an empty text from NULL, or the file cannot be written.
    """
    text = as_csv(hierarchy)
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise HierarchyError(f"{path.name}: it cannot be written ({error.strerror or 'unknown reason'})") from None
