"""The job as a whole: its parts, where it came from, and what to say about it before any data is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, PrivateAttr, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from sqldeid.arguments import place, text
from sqldeid.errors import listed
from sqldeid.files import without_parents
from sqldeid.job import rules
from sqldeid.job.about import About
from sqldeid.job.events import Events, problems_of_events
from sqldeid.job.link_rules import link_groups
from sqldeid.job.parts import Query, Release, Section, Table
from sqldeid.job.problems import dotted, misshapen, refusal, translate, without
from sqldeid.job.reading import canonical, plain, read_bytes, read_toml
from sqldeid.job.sections import AMBIGUOUS, is_ambiguous
from sqldeid.job.series import Series, problems_of_series

_NAME_PATTERN = r"^[^\u0000/\\.][^\u0000/\\]*$"


class Job(Section):
    """A job file: one or more named releases. Made by `load` or `parse`.

    Attributes
    ----------
    path
        The file; None for a mapping.
    folder
        What relative paths in the job are relative to.
    name
        What messages call the job: the file's name.
    sha256
        Of the file's bytes, or of a mapping's canonical JSON.
    """

    check = rules.job_problems

    release: Release = Field(default_factory=Release, description="Where the releases go, and as what.")
    tables: dict[str, Table] = Field(
        default_factory=dict,
        description="Table releases by name.",
        json_schema_extra={"minProperties": 1, "propertyNames": {"pattern": _NAME_PATTERN}},
    )

    series: dict[str, Series] = Field(
        default_factory=dict,
        description="Releases of time series by name.",
        json_schema_extra={"propertyNames": {"pattern": _NAME_PATTERN}},
    )

    events: dict[str, Events] = Field(
        default_factory=dict,
        description="Releases of event sequences by name.",
        json_schema_extra={"propertyNames": {"pattern": _NAME_PATTERN}},
    )

    about: About = Field(
        default_factory=About, description="Title, contact, date and text for recipients; published as they stand."
    )

    _path: Path | None = PrivateAttr(default=None)
    _folder: Path = PrivateAttr(default_factory=Path)
    _name: str = PrivateAttr(default="job")
    _sha256: str = PrivateAttr(default="")
    _read: str = PrivateAttr(default="")

    @classmethod
    def load(cls, path: str | Path) -> Job:
        """Read a job file.

        Parameters
        ----------
        path
            A TOML file in UTF-8. Relative paths in it are relative to its folder.

        Raises
        ------
        JobError
            If the file cannot be read, is not TOML, or breaks the contract; one line for each problem.
        """
        file = place("path", path)
        name = file.name or str(path)
        content = read_bytes(file)
        job = cls.parse(read_toml(content, name), folder=without_parents(file.absolute().parent), name=name)
        job._path = file
        job._sha256 = hashlib.sha256(content).hexdigest()
        return job

    @classmethod
    def parse(cls, data: Mapping[str, object], *, folder: str | Path = Path(), name: str = "job") -> Job:
        """Take a job from a mapping of the same shape, for pipelines that hold it in Python.

        Parameters
        ----------
        data
            Sections and keys as in the file; parts of `sqldeid.build` may stand for mappings. It is copied.
        folder
            What relative paths are relative to.
        name
            What messages call this job.

        Raises
        ------
        JobError
            If it breaks the contract; one line for each problem.
        """
        name, folder = text("name", name), Path() if folder == "" else place("folder", folder)
        own = plain(data, name)
        try:
            job = cls.model_validate(own)
        except ValidationError as error:
            wrong = misshapen(error, _schema())
            typed = without(
                own, wrong
            )  # rules read what is of its type alone; else they would have to ask of each value
            broken = (*rules.all_problems(typed), *problems_of_series(typed), *problems_of_events(typed))
            told = [p for p in broken if not any(p.where[: len(keys)] == keys for keys in wrong)]
            raise refusal(name, [*translate(error, _schema()), *told]) from None
        job._folder = Path(folder)
        job._name = name
        job._sha256 = canonical(own)
        job._read = job._stated()
        return job

    @property
    def path(self) -> Path | None:
        """The file that was loaded; None for a mapping."""
        return self._path

    @property
    def folder(self) -> Path:
        """What relative paths in the job are relative to."""
        return self._folder

    @property
    def name(self) -> str:
        """What messages call the job."""
        return self._name

    @property
    def sha256(self) -> str:
        """64 hexadecimal digits: of the file's bytes, or of the mapping's canonical JSON."""
        return self._sha256 or self._stated()

    @property
    def is_as_read(self) -> bool:
        """Whether it is what the rules have looked at: a copy with other values, or one made past them, is not."""
        return self._read == self._stated()

    def _stated(self) -> str:
        return canonical(self.model_dump(by_alias=True, exclude_unset=True))

    def to_toml(self) -> str:
        """The text of a job file that reads as this job: what was said, without comments, defaults left out."""
        from sqldeid.job.writing import toml_of

        return toml_of(self.model_dump(by_alias=True, exclude_unset=True))

    def locate(self, file: str) -> Path:
        """A path as the job writes it, relative to `folder` unless absolute. The file system is not asked."""
        return self._folder / file

    def warnings(self, *, held: Collection[str] = ()) -> list[str]:
        """What holds by the contract and yet deserves a second look; one sentence each, file and key first.

        Parameters
        ----------
        held
            Names of the releases that one ledger holds to each other: what their comparison tells, it has seen to.
        """
        return [f"{self._name}: {text}" for text in self._all_warnings(held)]

    def _all_warnings(self, held: Collection[str]) -> Iterator[str]:
        yield from self._place_warnings()
        yield from self._table_warnings()
        yield from self._shared_persons(held)

    def _place_warnings(self) -> Iterator[str]:
        into, schema = self.release.into, self.release.schema_name
        if self.release.kind == "table" and is_ambiguous(into, schema):
            yield f"release.into: readers cannot ask for {schema}.TABLE: {AMBIGUOUS}"

    def _table_warnings(self) -> Iterator[str]:
        for name, table in self.tables.items():
            key = dotted(("tables", name))
            if table.person is None:
                yield (
                    f"{key}.rows_are_persons: each row is taken for another person, which nothing checks; where rows "
                    "share one, k and every risk are of rows, so name the person key if there is one"
                )
            if table.other_persons:
                yield (
                    f"{key}.other_persons: the data holder states that nobody in it is in "
                    f"{', '.join(table.other_persons)}, which nothing checks; whoever is given both may be able to "
                    "subtract the rows of a person who is"
                )
            if table.privacy.k == 1 and table.search.method != "inverse-ola":
                yield f"{key}.privacy: k = 1 protects nobody; every equivalence class passes"
            if table.view == "computed" and not table.frozen:
                yield f"{key}: a computed view follows its source; who looks twice can see what changed in between"

    def _shared_persons(self, held: Collection[str]) -> Iterator[str]:
        """Releases with one person key or one source: likely the same people, and comparable; linked ones are one."""
        pairs = self.comparable()
        shared = [name for name in self._names() if any(name in pair for pair in pairs)]
        open_ = [p for p in pairs if any(name not in held or self._is_private((of, name)) for of, name in p)]
        told = [name for name in shared if any(name in pair for pair in open_)]
        if told:
            keys = listed([dotted(name) for name in told])
            yield f"{keys}: seem to hold the same persons; who compares these releases may learn more than from each"
        for name in shared:
            if self._is_private(name):
                others = [a if b == name else b for a, b in pairs if name in (a, b)]
                yield from _composed(name, [dotted(o) for o in others if not self._is_private(o)])

    def _is_private(self, name: tuple[str, str]) -> bool:
        """Whether a release by (section, name) is differentially private on its own."""
        section, label = name
        if section == "events":
            return self.events[label].privacy.method == "laplace"
        return section == "tables" and self.tables[label].search.method == "epsilon-safe"

    def comparable(self) -> list[tuple[tuple[str, str], tuple[str, str]]]:
        """Pairs of releases, as (section, name), that may hold the same persons and are not linked, in their order.

        They have a person key of the same name, or the same source.
        """
        links = {name: {"link": table.link} for name, table in self.tables.items()}
        one: dict[tuple[str, str], tuple[str, ...]] = {
            ("tables", name): group for group in link_groups({"tables": links}) for name in group
        }
        one |= {
            ("tables", name): one.get(("tables", table.parent), ("tables", table.parent))
            for name, table in self.tables.items()
            if table.parent is not None
        }
        one |= {("series", name): ("tables", series.link) for name, series in self.series.items() if series.link}
        marks = self._names()
        return [(a, b) for a, b in combinations(marks, 2) if marks[a] & marks[b] and one.get(a, a) != one.get(b, b)]

    def _names(self) -> dict[tuple[str, str], frozenset[tuple[str, str]]]:
        """Every release, and what it may share with another one."""
        parts = (("tables", self.tables), ("series", self.series), ("events", self.events))
        return {(section, name): frozenset(_marks(part)) for section, of in parts for name, part in of.items()}


def _composed(name: tuple[str, str], open_: list[str]) -> Iterator[str]:
    """What other releases of the same persons leave of a differentially private one (soundness.md 6)."""
    if open_:
        yield (
            f"{dotted(name)}: its differential privacy holds for itself alone; {', '.join(open_)} beside it voids the "
            "promise for persons who are in both, so publish one of them only"
        )
    else:
        yield f"{dotted(name)}: differentially private releases of the same persons add up: their epsilons and deltas"


def _marks(table: Table | Series | Events) -> Iterator[tuple[str, str]]:
    source = table.source.query if isinstance(table.source, Query) else table.source
    yield "source", source.casefold()
    person = table.object if isinstance(table, Events) else table.person
    if person is not None:
        yield "person", person.casefold()


class JobSchema(GenerateJsonSchema):
    """JSON schema without null: TOML has none, a key is left out instead."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Of what may be left out, that of what is there."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Without a default that is null."""
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


@cache
def _schema() -> dict[str, Any]:
    made = Job.model_json_schema(schema_generator=JobSchema)
    return {"$schema": GenerateJsonSchema.schema_dialect} | made | {"title": "sqldeid job file"}


P = TypeVar("P", bound=Section)


def make_part(part: type[P], given: Mapping[str, object]) -> P:
    """A part of a job by its keys, for `sqldeid.build`.

    Raises
    ------
    JobError
        If it breaks the contract; one line for each problem, which names the part and its keys.
    """
    try:
        return part.model_validate(plain(given, part.__name__))
    except ValidationError as error:
        made = part.model_json_schema(schema_generator=JobSchema)
        raise refusal(part.__name__, translate(error, made)) from None


def schema() -> dict[str, object]:
    """The JSON schema (draft 2020-12) of the job file, for editors: types, bounds, words and a description of each key.

    It is necessary, not sufficient: rules across sections (names, roles, person) are checked by `Job.load` alone.
    """
    copied: dict[str, object] = json.loads(json.dumps(_schema()))
    return copied
