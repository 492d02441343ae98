"""A project file in; a job, its hierarchies and a database with its data out: all of them, or nothing."""

from __future__ import annotations

import csv
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.arguments import place, text
from sqldeid.arx.archive import Archive
from sqldeid.arx.database import write_database
from sqldeid.arx.jobtext import JobOf, hierarchy_files, job_of, job_text
from sqldeid.arx.project import Project, read_project
from sqldeid.engine.folder import PrivateFolder
from sqldeid.errors import EngineError, HierarchyError, JobError
from sqldeid.hierarchy import open_source
from sqldeid.job import Job

TABLE = "data"
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
_NUMBER = re.compile(r"\d+(\.\d+)?(E-?\d+)?")


@dataclass(frozen=True, slots=True)
class Imported:
    """What `import_arx` made.

    Parameters
    ----------
    job, database, hierarchies
        The job file, the DuckDB file with the project's rows as ``main.data``, and the folder of the hierarchies; None
        where the project has none.
    rows, columns
        Of the data.
    undecided
        What the project asks for and the job does not; while there is any, the job is refused.
    notes
        What else is different, in a sentence each.
    """

    job: Path
    database: Path
    hierarchies: Path | None
    rows: int
    columns: int
    undecided: tuple[str, ...]
    notes: tuple[str, ...]


def import_arx(project: str | Path, job: str | Path, *, encoding: str = "utf-8-sig") -> Imported:
    """Take an ARX project as a job, with its data and hierarchies beside it.

    Columns keep ARX's roles and hierarchies; criteria are taken where the job's mean the same or more, with weights,
    suppression limit and metric. A criterion that cannot be taken, or a bound on what may be released, is written into
    the job as `privacy.undecided`, by which the job is refused until the custodian decides; the rest need not be typed
    again. Nothing that is there is overwritten.

    Parameters
    ----------
    project
        A file that ARX saved (``.deid``). Its XML and CSV are read, its Java objects never.
    job
        The job file to write, ending in ``.toml``. Beside it come ``STEM.duckdb`` and the folder ``STEM_hierarchies``.
    encoding
        Of the project's CSV entries, which ARX writes in the encoding of the machine it runs on.

    Raises
    ------
    JobError
        If the project is damaged, of another version, contradicts itself, or cannot be a job; or if something is in
        the way. Nothing is left behind then.
    EngineError
        If the database or a file cannot be written.
    """
    target, source, encoding = place("job", job), place("project", project), text("encoding", encoding)
    stem = target.name.removesuffix(".toml")
    database, folder = target.with_name(f"{stem}.duckdb"), target.with_name(f"{stem}_hierarchies")
    _check_targets(target, database, folder, stem)
    with Archive(source) as archive:
        found = read_project(archive, encoding)
        _check_numbers(archive, found)
    whole = frozenset(a.name for a in found.attributes if a.datatype == "Integer" and _is_whole(found.rows[a.name]))
    files = hierarchy_files(found.attributes, folder.name)
    made = job_of(found, TABLE, f"{stem}_release.duckdb", files, whole)
    told = job_text(made, source.name, database.name, target.name)
    _check_job(made, source, target)
    try:
        _write(found, told, whole, files, (target, database, folder), source)
    except OSError as error:
        raise EngineError(f"{target.parent}: cannot be written ({error.strerror or 'unknown reason'})") from None
    return Imported(
        job=target,
        database=database,
        hierarchies=folder if files else None,
        rows=found.rows.num_rows,
        columns=found.rows.num_columns,
        undecided=tuple(made.undecided),
        notes=tuple(made.notes),
    )


def _check_targets(target: Path, database: Path, folder: Path, stem: str) -> None:
    if target.suffix != ".toml" or not stem or not target.name.isprintable():
        raise JobError("-o: name a job file that ends in .toml; the data come beside it", key="output")
    if not target.parent.is_dir():
        raise JobError(f"-o: there is no folder {target.parent}; make it first", key="output")
    for path in (target, database, folder):
        if os.path.lexists(path):
            raise JobError(f"-o: {path} exists already; remove it, or name another job file", key="output")


def _check_numbers(archive: Archive, project: Project) -> None:
    """Refuse a limit or weight that is no number, which a share or weight would be made of."""
    for given in (project.config.limit, *project.config.weights.values()):
        if not _NUMBER.fullmatch(given):
            raise archive.error("input/config.xml: the suppression limit or a weight is no number; set it in ARX")
    if not 0 <= float(project.config.limit) <= 1:
        raise archive.error("input/config.xml: the suppression limit is not between 0 and 1; set it in ARX")


def _is_whole(column: pa.ChunkedArray) -> bool:
    """Whether every text is a whole number in the one way to write it, so that numbers differ where texts do."""
    return bool(pc.all(pc.match_substring_regex(column, _WHOLE)).as_py())


def _check_job(made: JobOf, source: Path, target: Path) -> None:
    """Refuse now what would be refused of the job later."""
    try:
        Job.parse(made.content, folder=target.parent, name=target.name)
    except JobError as error:
        first = error.message.splitlines()[0]
        raise JobError(f"{source}: it cannot be a job: {first}; change that in ARX", key="project") from None


def _write(
    project: Project,
    text: str,
    whole: frozenset[str],
    files: dict[str, str],
    targets: tuple[Path, Path, Path],
    source: Path,
) -> None:
    """Make everything aside, then rename it into place, the job last; take back what stands if that fails.

    All of it holds values of persons, and is for its owner alone.
    """
    target, database, folder = targets
    with _aside(target) as aside:
        within = aside.path
        (within / folder.name).mkdir(mode=0o700)
        for attribute in project.attributes:
            if attribute.hierarchy and attribute.name in files:
                _write_hierarchy(within / files[attribute.name], attribute.hierarchy, source, folder.name)
        made = write_database(within / "data.duckdb", TABLE, _typed(project.rows, whole))
        made.chmod(0o600)
        (within / target.name).write_text(text, encoding="utf-8")
        (within / target.name).chmod(0o600)
        moves = [(made, database), (within / target.name, target)]
        _place([(within / folder.name, folder), *moves] if files else moves)


def _aside(target: Path) -> PrivateFolder:
    """A folder that the next import to the same job removes where this one is killed."""
    try:
        return PrivateFolder(target)
    except EngineError:
        raise EngineError(f"{target.parent}: cannot be written; name a job file in another folder") from None


def _typed(rows: pa.Table, whole: frozenset[str]) -> pa.Table:
    """Whole numbers as numbers, where order matters; all else stays the text that ARX has."""
    types = [(name, pa.int64() if name in whole else pa.string()) for name in rows.column_names]
    return rows.cast(pa.schema(types))


def _write_hierarchy(file: Path, lines: list[list[str]], source: Path, folder: str) -> None:
    """Write a hierarchy as ARX has it, and read it as a job would."""
    file.touch(mode=0o600)
    with file.open("w", encoding="utf-8", newline="") as out:
        # With every field in quotes no other delimiter than this one splits a line.
        csv.writer(out, delimiter=";", lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(lines)
    try:
        open_source(f"{folder}/{file.name}", file.parent.parent)
    except HierarchyError as error:
        raise JobError(f"{source}: {error.message}; mend it in ARX and save the project", key="project") from None


def _place(moves: list[tuple[Path, Path]]) -> None:
    placed: list[Path] = []
    try:
        for made, place in moves:
            if os.path.lexists(place):
                raise JobError(f"-o: {place} exists already; remove it, or name another job file", key="output")
            made.rename(place)
            placed.append(place)
    except BaseException:
        for place in placed:
            _take_back(place)
        raise


def _take_back(place: Path) -> None:
    with suppress(OSError):
        if place.is_dir():
            for file in place.iterdir():
                file.unlink()
            place.rmdir()
        else:
            place.unlink()
