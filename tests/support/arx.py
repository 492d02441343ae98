"""Projects as ARX 3.9 saves them, made from the format's facts: entries, element names, and the words of criteria.

The Java objects (`*.dat`) are random bytes under the head of a serialised stream: whoever reads them fails.
"""

from __future__ import annotations

import random
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

ROLES = {
    "qi": "QUASI_IDENTIFYING_ATTRIBUTE",
    "sensitive": "SENSITIVE_ATTRIBUTE",
    "insensitive": "INSENSITIVE_ATTRIBUTE",
    "identifying": "IDENTIFYING_ATTRIBUTE",
}
Table = Sequence[Sequence[str]]


@dataclass
class Column:
    """An attribute: its role, its hierarchy if it has one, and what else its definition says."""

    role: str = "qi"
    hierarchy: Table | None = None
    datatype: str = "String"
    least: str = "All"
    greatest: str = "All"
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Arx:
    """A project; `entries` replaces what stands in the archive, None leaves it out."""

    columns: dict[str, Column]
    rows: Table
    criteria: Sequence[str] = ("5-anonymity",)
    limit: str = "0.05"
    metric: str = "Loss (0.5/1.0/1.0)"
    weights: Mapping[str, str] = field(default_factory=dict)
    separator: str = ";"
    version: str = "3.9.1"
    vocabulary: str = "2.0"
    encoding: str = "utf-8"
    config: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, bytes | None] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        """Save it."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            for name, content in (self._entries() | dict(self.entries)).items():
                if content is not None:
                    made.writestr(name, content)
        return path

    def _entries(self) -> dict[str, bytes | None]:
        java = b"\xac\xed\x00\x05" + random.Random(1).randbytes(400)
        made: dict[str, bytes | None] = {
            "metadata.xml": element("metadata", version=self.version, vocabulary=self.vocabulary),
            "project.dat": java,
            "project.xml": element("project", name="p", separator=self.separator, escape='"', quote='"'),
            "data/input.csv": self._csv([list(self.columns), *self.rows]),
            "data/input_subset.csv": self._csv([list(self.columns), *self.rows]),
            "input/config.dat": java,
            "input/config.xml": self._config(),
            "input/definition.xml": f"<definition>{''.join(self._attributes())}</definition>".encode(),
        }
        for name, column in self.columns.items():
            if column.hierarchy is not None:
                made[f"input/hierarchies/{name}.csv"] = self._csv(column.hierarchy)
        return made

    def _attributes(self) -> list[str]:
        made = []
        for name, column in self.columns.items():
            parts = {"name": name, "type": ROLES[column.role], "datatype": column.datatype}
            if column.hierarchy is not None:
                parts |= {"ref": f"hierarchies/{name}.csv", "min": column.least, "max": column.greatest}
            made.append(element("assigment", **parts, **column.more).decode())
        return made

    def _config(self) -> bytes:
        weights = "".join(
            element("attributeWeight", attribute=name, weight=weight).decode() for name, weight in self.weights.items()
        )
        criteria = "".join(f"<criterion>{escape(text)}</criterion>" for text in self.criteria)
        simple = {
            "suppressTuplesInNonAnonymousOutput": "true",
            "suppressionString": "*",
            "practicalMonotonicity": "false",
            "relativeMaxOutliers": self.limit,
            "metric": self.metric,
        } | dict(self.config)
        inside = "".join(f"\t<{tag}>{escape(text)}</{tag}>\n" for tag, text in simple.items())
        return (
            f"<config>\n{inside}<suppressedAttributeTypes><type>{ROLES['qi']}</type></suppressedAttributeTypes>"
            f"<attributeWeights>{weights}</attributeWeights><criteria>{criteria}</criteria></config>"
        ).encode("ascii", "xmlcharrefreplace")

    def _csv(self, lines: Table) -> bytes:
        return "".join(self.separator.join(map(self._field, line)) + "\n" for line in lines).encode(self.encoding)

    def _field(self, text: str) -> str:
        quoted = any(c in text for c in (self.separator, '"', "\n"))
        return '"' + text.replace('"', '""') + '"' if quoted else text


def element(tag: str, **children: str) -> bytes:
    """An element of elements of text, which ARX writes with escapes beyond ASCII."""
    inside = "".join(f"\t<{name}>{escape(text)}</{name}>\n" for name, text in children.items())
    return f"<{tag}>\n{inside}</{tag}>\n".encode("ascii", "xmlcharrefreplace")


def random_project(seed: int, rows: int = 60) -> Arx:
    """A project with columns of every role and names that no SQL expects."""
    r = random.Random(seed)
    names = r.sample(["select", "age", "zip code", "Größe", 'say "hi"', "a;b", "name", "--", "x'y", "../up"], 4)
    columns: dict[str, Column] = {}
    values: dict[str, list[str]] = {}
    for name in names[:2]:
        leaves = [f"{name[:1]}{i}" for i in range(r.randint(3, 6))]
        columns[name] = Column(hierarchy=[[leaf, f"g{i // 2}", "*"] for i, leaf in enumerate(leaves)])
        values[name] = leaves
    columns[names[2]], values[names[2]] = Column("sensitive"), ["flu", "hiv", "none", ""]
    columns[names[3]], values[names[3]] = Column("identifying"), ["secret"]
    table = [[r.choice(values[name]) for name in columns] for _ in range(rows)]
    criteria = [f"{r.randint(2, 4)}-anonymity"]
    if r.random() < 0.7:
        criteria.append(f"distinct-2-diversity for attribute '{names[2]}'")
    return Arx(columns, table, criteria, limit=r.choice(["0.0", "0.1", "1.0"]), separator=r.choice(";,\t"))
