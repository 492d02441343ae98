"""What an ARX project says, from the XML and CSV in it; its Java objects (`*.dat`) are never read.

The entries, as ARX 2.1 to 3.9 write them (vocabulary 2.0): ``metadata.xml`` has the version; ``project.xml`` the
separator of the CSV entries; ``data/input.csv`` the rows under a header; ``input/definition.xml`` each attribute's
type, data type, hierarchy (``input/hierarchies/NAME.csv``, no header) and range of levels; ``input/config.xml`` the
suppression limit, the weights, and metric and criteria in ARX's words for them.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow as pa

from sqldeid.arx.archive import Archive, Element
from sqldeid.errors import JobError

VOCABULARY = "2.0"
_ROLES = {
    "IDENTIFYING_ATTRIBUTE": "identifying",
    "QUASI_IDENTIFYING_ATTRIBUTE": "quasi-identifying",
    "SENSITIVE_ATTRIBUTE": "sensitive",
    "INSENSITIVE_ATTRIBUTE": "insensitive",
}
_OF_ATTRIBUTE = frozenset(
    "name type datatype format locale ref min max response "
    "microaggregationFunction microaggregationIgnoreMissingData".split()
)
_OF_CONFIG = frozenset(
    "suppressTuplesInNonAnonymousOutput suppressionString suppressedAttributeTypes practicalMonotonicity "
    "relativeMaxOutliers metric attributeWeights criteria removeOutliers".split()
)
_CHUNK = 50_000
"""Rows that are held as Python objects at a time."""

Rows = list[list[str]]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column of the project.

    Parameters
    ----------
    name
        As the header has it.
    role
        The job's word for ARX's attribute type.
    datatype
        ARX's label ("String", "Integer", …).
    hierarchy
        Its lines, `original, level 1, …`; None where it has none.
    least, greatest
        The lowest and highest level that may be released; None where any may.
    aggregated
        ARX's label of the function that it is to be microaggregated by; None where it is not.
    whole
        Whether a missing value makes the statistic of its class missing, rather than being passed over.
    unknown
        Whether the project says something of it that this reader does not know.
    """

    name: str
    role: str
    datatype: str
    hierarchy: Rows | None
    least: int | None
    greatest: int | None
    aggregated: str | None
    whole: bool
    unknown: bool


@dataclass(frozen=True, slots=True)
class Config:
    """What is asked of the release.

    Parameters
    ----------
    limit
        Greatest share of suppressed rows, as written.
    metric
        ARX's words for its measure of what is lost.
    weights
        Attribute to weight, as written.
    criteria
        ARX's words for each criterion.
    practical
        Whether ARX was told to prune as if criteria were monotone.
    unknown
        Whether it says something that this reader does not know.
    """

    limit: str
    metric: str
    weights: dict[str, str]
    criteria: tuple[str, ...]
    practical: bool
    unknown: bool


@dataclass(frozen=True, slots=True)
class Project:
    """An ARX project; `rows` has a column of text for each attribute, in order."""

    attributes: tuple[Attribute, ...]
    config: Config
    rows: pa.Table


def read_project(archive: Archive, encoding: str = "utf-8-sig") -> Project:
    """Read the project.

    Parameters
    ----------
    encoding
        Of its CSV entries, which ARX writes in that of the machine it runs on.

    Raises
    ------
    JobError
        If it is of another version, damaged, or contradicts itself; in one line, with what to do.
    """
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise JobError("--encoding: there is no such encoding; write one like windows-1252", key="encoding") from None
    try:
        _check_version(archive)
        separator = _text(archive.xml("project.xml", "project"), "separator")
        if separator is None or len(separator) != 1 or separator in '"\r\n':
            raise archive.error("project.xml names no separator of one character; save the project anew in ARX")
        definition = archive.xml("input/definition.xml", "definition")
        given = [_attribute(archive, element) for element in definition.every("assigment")]
        config = _config(archive, archive.xml("input/config.xml", "config"))
        attributes = tuple(
            attribute if ref is None else replace(attribute, hierarchy=_hierarchy(archive, ref, separator, encoding))
            for attribute, ref in given
        )
    except ValueError as twice:  # of `Element.child`
        raise archive.error(f"an element <{twice}> stands there twice; save the project anew in ARX") from None
    _refuse_names(archive, [a.name for a in attributes])
    return Project(attributes, config, _rows(archive, attributes, separator, encoding))


def _check_version(archive: Archive) -> None:
    metadata = archive.xml("metadata.xml", "metadata")
    version, vocabulary = _text(metadata, "version") or "", _text(metadata, "vocabulary") or "1.0"
    if vocabulary.strip() != VOCABULARY or version.strip()[:2] not in ("2.", "3."):
        raise archive.error(
            "the project is of a version of ARX whose files are not known here (known are ARX 2.1 to 3.9, vocabulary "
            f"{VOCABULARY}); open it in ARX 3.9 and save it again"
        )


def _text(element: Element, tag: str) -> str | None:
    found = element.child(tag)
    return None if found is None else found.text


def _attribute(archive: Archive, element: Element) -> tuple[Attribute, str | None]:
    """An attribute without its hierarchy, and where that is."""
    name, kind = _text(element, "name"), (_text(element, "type") or "").strip()
    if not name:
        raise archive.error("input/definition.xml has an attribute without a name; name it in ARX")
    if kind not in _ROLES:
        raise archive.error("input/definition.xml has an attribute of no known type; set its type in ARX")
    ref = (_text(element, "ref") or "").strip() or None
    known = all(child.tag in _OF_ATTRIBUTE and not child.children for child in element.children)
    least, greatest = (_level(archive, _text(element, tag)) for tag in ("min", "max"))
    attribute = Attribute(
        name=name,
        role=_ROLES[kind],
        datatype=(_text(element, "datatype") or "String").strip(),
        hierarchy=None,
        least=least,
        greatest=greatest,
        aggregated=None if (function := _text(element, "microaggregationFunction")) is None else function.strip(),
        whole=(_text(element, "microaggregationIgnoreMissingData") or "true").strip() != "true",
        unknown=not known,
    )
    saved = f"hierarchies/{name}.csv"  # ARX saves all, and may refer to those of quasi-identifying attributes alone
    if _ROLES[kind] == "sensitive" and ref is None and f"input/{saved}" in archive:
        ref = saved
    return attribute, ref if _ROLES[kind] in ("quasi-identifying", "sensitive") else None


def _level(archive: Archive, text: str | None) -> int | None:
    if text is None or text.strip() == "All":
        return None
    if not (text.strip().isascii() and text.strip().isdigit() and len(text.strip()) < 6):
        raise archive.error("input/definition.xml has a level that is no number; save the project anew in ARX")
    return int(text)


def _config(archive: Archive, element: Element) -> Config:
    limit, metric = _text(element, "relativeMaxOutliers"), _text(element, "metric")
    criteria = element.child("criteria")
    if limit is None or metric is None or criteria is None:
        raise archive.error("input/config.xml lacks the limit, the metric or the criteria; save the project in ARX 3")
    weights: dict[str, str] = {}
    listed = element.child("attributeWeights") or Element("")
    for weight in listed.children:
        name, value = _text(weight, "attribute"), _text(weight, "weight")
        if name is None or value is None or name in weights:
            raise archive.error("input/config.xml has a weight of no attribute; save the project anew in ARX")
        weights[name] = value.strip()
    strange = [child for child in element.children if child.tag not in _OF_CONFIG]
    # Once "protect sensitive associations" was a criterion of its own; written as false, it asks for nothing.
    strange = [c for c in strange if (c.tag, c.text.strip()) != ("protectSensitiveAssociations", "false")]
    return Config(
        limit=limit.strip(),
        metric=metric.strip(),
        weights=weights,
        criteria=tuple(child.text.strip() for child in criteria.children),
        practical=(_text(element, "practicalMonotonicity") or "").strip() == "true",
        unknown=bool(strange),
    )


def _records(archive: Archive, entry: str, separator: str, encoding: str) -> Iterator[list[str]]:
    """The records of a CSV entry; a blank line is one empty field."""
    content = archive.read(entry)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise archive.error(
            f"{entry}: line {line} is not {encoding.removesuffix('-sig')}; name its encoding, as in --encoding "
            "windows-1252 (ARX writes that of the machine it runs on)"
        ) from None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        yield from (record or [""] for record in reader)
    except csv.Error:
        raise archive.error(
            f"{entry}: after line {reader.line_num} it is not CSV: a quote is not closed, text follows it, or a field "
            "is too long; mend the data in ARX and save the project"
        ) from None


def _hierarchy(archive: Archive, ref: str, separator: str, encoding: str) -> Rows:
    entry = f"input/{ref}"
    if entry not in archive:
        raise archive.error(
            f"a hierarchy that input/definition.xml names is not in the archive ({_plain(entry)}); open the project in "
            "ARX, look at that attribute's hierarchy, and save it again"
        )
    return list(_records(archive, entry, separator, encoding))


def _plain(text: str) -> str:
    """A name from the archive as a message may show it."""
    return "".join(c if c.isprintable() else "?" for c in text[:80])


def _refuse_names(archive: Archive, names: list[str]) -> None:
    """Refuse names that are one name to a database, or none."""
    folded = [name.casefold() for name in names]
    if len(set(folded)) < len(folded):
        raise archive.error(
            "two attributes have one name, or names that differ in case alone, which is one column to a database; "
            "rename one in ARX"
        )
    if any(not name.strip() for name in names):
        raise archive.error("an attribute's name is blank; rename it in ARX")


def _rows(archive: Archive, attributes: tuple[Attribute, ...], separator: str, encoding: str) -> pa.Table:
    entry = "data/input.csv"
    records = _records(archive, entry, separator, encoding)
    header = next(records, [])
    _refuse_names(archive, header)
    if header != [a.name for a in attributes]:
        raise archive.error(
            f"{entry} does not begin with the attributes of input/definition.xml when it is split at the project's "
            "separator; import the data into ARX again with the separator that it has, and save the project"
        )
    done, chunks = 0, []
    schema = pa.schema([(name, pa.string()) for name in header])
    while chunk := list(islice(records, _CHUNK)):
        for number, record in enumerate(chunk, done + 1):
            if len(record) != len(header):
                raise archive.error(
                    f"{entry}: row {number} has {len(record)} fields, the header {len(header)}; mend the data in ARX"
                )
        done += len(chunk)
        columns = [pa.array(column, pa.string()) for column in zip(*chunk, strict=True)]
        chunks.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    if not chunks:
        raise archive.error(f"{entry} has no rows; import data into the project in ARX")
    return pa.Table.from_batches(chunks, schema)
