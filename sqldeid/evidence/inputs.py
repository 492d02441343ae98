"""What evidence is made from, and is compared with later: files, each by its SHA-256."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqldeid.errors import JobError
from sqldeid.files import read_limited
from sqldeid.hierarchy import shipped_file
from sqldeid.job import Job
from sqldeid.job.fields import HierarchyRule
from sqldeid.job.problems import dotted

_MOST = 1 << 28
"""Bytes of a file that is taken into the archive."""

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Given:
    """The files that a caller names beside the result.

    Parameters
    ----------
    job, certificate
        None where they are not given.
    house_rules
        As many as the run was held to.
    releases
        Files, or folders of files, that the run wrote.
    """

    job: Path | None = None
    certificate: Path | None = None
    house_rules: Sequence[Path] = ()
    releases: Sequence[Path] = ()


def content_of(option: str, path: Path) -> bytes:
    """The content of a file.

    Raises
    ------
    JobError
        If it cannot be read.
    """
    try:
        return read_limited(path, _MOST)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "its name is no path"
        raise JobError.at(option, f"{path} cannot be read ({why})") from None


def sha256(content: bytes) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def canonical(value: object) -> bytes:
    """JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str).encode()


def pretty(value: object) -> bytes:
    """JSON for people, with a line end."""
    return (json.dumps(value, indent=2, ensure_ascii=True) + "\n").encode()


def releases_of(paths: Sequence[Path]) -> list[dict[str, object]]:
    """Name, bytes and SHA-256 of each released file; of a folder, those of all files in it.

    Raises
    ------
    JobError
        If one cannot be read, or two have one name.
    """
    found: dict[str, dict[str, object]] = {}
    for path in paths:
        for name, file in _files(path):
            if name in found:
                raise JobError.at("--release", f"{path}: another released file has this name; make evidence of each")
            found[name] = {"name": name, **_hashed(file)}
    return [found[name] for name in sorted(found)]


def refuse_others(result: Mapping[str, Any], paths: Sequence[Path]) -> None:
    """Refuse what the run cannot have written: the database that it read, and files of other kinds.

    Raises
    ------
    JobError
        For the first of them.
    """
    written = {Path(place).name for place in _written(result)}
    wrote = f"name what it wrote: {', '.join(sorted(written))}" if written else "it wrote no file; leave --release out"
    source = str((result.get("source") or {}).get("database", ""))
    for path in paths:
        if source and _same(path, Path(source), written):
            raise JobError.at("--release", f"{path} is the database that the run read, with its source; {wrote}")
        if path.is_dir() and not any(path.rglob("*.parquet")):
            raise JobError.at("--release", f"{path} is a folder without a file of Parquet, and no release; {wrote}")
        if path.is_file() and not _is_release(path):
            raise JobError.at("--release", f"{path} is no file of DuckDB or Parquet, and no release; {wrote}")


def _written(result: Mapping[str, Any]) -> Iterator[str]:
    """Files and folders that a run wrote; a release within the source, or on a server, has none."""
    for release in result["releases"].values():
        for place in release.get("written", ()):
            file, _, table = str(place).partition(": ")
            if table or file.endswith(".parquet"):
                yield file


def _same(path: Path, source: Path, written: set[str]) -> bool:
    """Whether a path is the source, which may have been moved since: it has its name, and no release has."""
    with suppress(OSError):
        if path.samefile(source):
            return True
    return path.name == source.name and source.name not in written


def _is_release(path: Path) -> bool:
    """Whether a file begins as DuckDB or Parquet writes them."""
    try:
        with path.open("rb") as file:
            head = file.read(12)
    except OSError as error:
        raise JobError.at("--release", f"{path} cannot be read ({error.strerror})") from None
    return head[8:12] == b"DUCK" or head[:4] == b"PAR1"


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    """The file; or of a folder the files in it, by their paths from it."""
    if not path.is_dir():
        yield path.name, path
        return
    inside = sorted(file for file in path.rglob("*") if not file.is_dir())
    if not inside:
        raise JobError.at("--release", f"{path} is an empty folder")
    for file in inside:
        yield f"{path.resolve().name}/{file.relative_to(path).as_posix()}", file


def _hashed(path: Path) -> dict[str, object]:
    """Bytes and SHA-256 of a file of any size, read once."""
    digest, size = hashlib.sha256(), 0
    try:
        if not path.is_file():
            raise JobError.at("--release", f"{path} is not there, or is no file")
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise JobError.at("--release", f"{path} cannot be read ({error.strerror})") from None
    return {"bytes": size, "sha256": digest.hexdigest()}


def hierarchies_of(result: Mapping[str, Any], job: Job | None) -> list[dict[str, object]]:
    """Hierarchies by where they are asked for: as the run used them, and as their files are now.

    Parameters
    ----------
    job
        None where it is not given: then only what the result holds of them is told.
    """
    found: list[dict[str, object]] = [
        {
            "key": dotted(("tables", name, "columns", column)),
            "of": "as the run used it",
            "sha256": sha256(canonical(one)),
        }
        for name, release in sorted(result["releases"].items())
        for column, one in sorted(((release.get("policy") or {}).get("hierarchies") or {}).items())
    ]
    return found + ([] if job is None else list(_named(job)))


def _named(job: Job) -> Iterator[dict[str, object]]:
    for key, spec in _specs(job):
        if isinstance(spec, HierarchyRule):
            yield {"key": key, "of": "rule in the job", "sha256": sha256(canonical(spec.to_mapping()))}
        elif (comes := shipped_file(spec)) is not None:
            yield {"key": key, "of": f"shipped {spec}", "sha256": sha256(comes.read_bytes())}
        elif (file := job.locate(spec)).is_file():
            yield {"key": key, "of": f"file {spec}", "sha256": sha256(content_of("--job", file))}
        else:
            yield {"key": key, "of": f"file {spec}, which was not there", "sha256": None}


def _specs(job: Job) -> Iterator[tuple[str, Any]]:
    """What a job names by a file or a rule: hierarchies, maps of variables, lists of states."""
    for name, table in job.tables.items():
        for column, asked in table.every_column.items():
            if asked.hierarchy is not None:
                yield dotted(("tables", name, "columns", column, "hierarchy")), asked.hierarchy
        for entry in table.privacy.t_closeness:
            if entry.hierarchy is not None:
                yield dotted(("tables", name, "privacy", "t_closeness", "hierarchy")), entry.hierarchy
    for name, series in job.series.items():
        if isinstance(series.variables, str):
            yield dotted(("series", name, "variables")), series.variables
    for name, events in job.events.items():
        if events.privacy.states is not None:
            yield dotted(("events", name, "privacy", "states")), events.privacy.states
