"""Look whether the program works here: packages, extras, engines, surroundings, and a database if one is named.

It is asked when something is missing, so nothing but the standard library is loaded before that is known. Nothing of a
database but its catalogue is read, and no secret is told.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from sqldeid.errors import SqldeidError, listed
from sqldeid.findings import FAIL, NOTE, OK, Looked
from sqldeid.version import own_version

if TYPE_CHECKING:
    from sqldeid.engine.settings import Settings

EXTRAS = {
    "report": "charts, --report, explore --plot",
    "utility": "sqldeid evaluate, and utility figures of series",
    "dp": 'differential privacy: events with method = "laplace", epsilon-safe',
    "postgres": "sources in Postgres",
    "spark": "sources on Spark",
    "docs": "make docs, the site of the documentation",
}
"""What each extra of the distribution is for."""

LEAST_PYTHON = (3, 11)
SHOWN = 50
"""Tables of a database that are named."""

_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;(.*))?$")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_JAVA_SECONDS = 20


def examine(database: str | None, job_file: str | None, settings: Settings) -> list[Looked]:
    """What was found, in the order in which one thing rests on another.

    Parameters
    ----------
    database, job_file
        A source that is opened, reading only; a job whose target is looked at. None for neither.
    """
    found = [*_program(), *_packages(), *_extras()]
    if not any(one.state == FAIL for one in found):
        found += _engines(settings)
    found += [*_surroundings(settings), *_variables()]
    if not any(one.state == FAIL for one in found):
        found += [*_target(job_file), *_database(database, settings)]
    return found


def _program() -> Iterator[Looked]:
    here = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info[:2] >= LEAST_PYTHON:
        yield Looked("program", "Python", OK, here)
    else:
        yield Looked("program", "Python", FAIL, here, "take Python 3.11 or later")
    folder = Path(__file__).resolve().parents[1]
    said = f"{own_version()}, in {folder}, is no installed package"
    if (own := _installed("sqldeid")) is not None:
        yield Looked("program", "sqldeid", OK, f"{own}, in {folder}")
    elif _checkout() is not None:
        said += "; what it needs is read from pyproject.toml"
        yield Looked("program", "sqldeid", NOTE, said, f"pip install -e {quote(str(folder.parent))}")
    else:
        said += ", so that nothing can say what it needs"
        yield Looked(
            "program", "sqldeid", FAIL, said, "pip install . in the folder of the repository, where README lies"
        )


def _needed() -> Iterator[tuple[str, str, str]]:
    """Name, wanted versions and extra (empty for none) of what the distribution requires."""
    for line in (requires("sqldeid") if _installed("sqldeid") is not None else _checkout()) or ():
        found = _REQUIREMENT.match(line.strip())
        if found is not None:
            extra = _EXTRA.search(found[3] or "")
            yield found[1], found[2].strip(), extra[1] if extra else ""


def _checkout() -> list[str] | None:
    """What pyproject.toml of a checkout says that it needs, as metadata would; None where this is none."""
    try:
        found = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
        of = found["project"]
        if of["name"] != "sqldeid":
            return None
        extras = of["optional-dependencies"].items()
        return [*of["dependencies"], *(f"{line}; extra == '{extra}'" for extra, lines in extras for line in lines)]
    except (OSError, ValueError, LookupError):
        return None


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _packages() -> Iterator[Looked]:
    """What every run needs."""
    there: list[str] = []
    for name, wanted, extra in _needed():
        if extra:
            continue
        if (one := _installed(name)) is None:
            yield Looked("program", name, FAIL, "not installed", f"pip install '{name}{wanted}'")
        else:
            there.append(f"{name} {one}")
    yield Looked("program", "packages", OK, ", ".join(sorted(there)))


def _extras() -> Iterator[Looked]:
    """What only some ways need."""
    of: dict[str, list[str]] = {}
    for name, _, extra in _needed():
        of.setdefault(extra, []).append(name)
    for extra, purpose in EXTRAS.items():
        names = of.get(extra, [])
        missing = [name for name in names if _installed(name) is None]
        if missing or not names:
            said = f"not installed ({', '.join(missing) or 'unknown to this distribution'}); for {purpose}"
            yield Looked("extras", extra, NOTE, said, f"pip install {_with(extra)}")
        else:
            there = ", ".join(f"{name} {_installed(name)}" for name in names)
            yield Looked("extras", extra, OK, f"{there}; for {purpose}")


def _with(extra: str) -> str:
    """What pip takes for an extra: by name only where the package is installed, for no index has it."""
    if _installed("sqldeid") is None:
        return f"-e {quote(f'{Path(__file__).resolve().parents[2]}[{extra}]')}"
    return f"'sqldeid[{extra}]'"


def _engines(settings: Settings) -> Iterator[Looked]:
    """DuckDB runs a statement and spills; what Postgres and Spark need beside their packages."""
    yield _tried("engines", "DuckDB", lambda: _duckdb(settings), "pip install --force-reinstall duckdb")
    yield _tried("engines", "templates", _templates, "install sqldeid again; files of it are missing")
    if _installed("psycopg") is not None:
        yield _softly("engines", "Postgres driver", _psycopg, "pip install 'psycopg[binary]'")
    if _installed("pyspark") is not None:
        yield _java()


def _duckdb(settings: Settings) -> str:
    from sqldeid.engine.opening import own_settings

    with tempfile.TemporaryDirectory(prefix="sqldeid-doctor-", dir=settings.temp_dir) as spill:
        took = own_settings(Path(spill), settings)
    return f"{version('duckdb')}: {took['threads']} threads, {took['memory_limit']} of memory; it runs statements"


def _templates() -> str:
    from sqldeid.hierarchy import shipped
    from sqldeid.sql import render

    render("engine/commit_transaction")
    return f"statements and {len(shipped())} hierarchies are there"


def _psycopg() -> str:
    from importlib import import_module

    import_module("sqldeid.engine.postgres")
    return "psycopg loads, with its library of Postgres"


def _java() -> Looked:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    mend = "install Java 17 or later (Debian: apt-get install openjdk-17-jre-headless); sc:// servers need none here"
    if java is None:
        return Looked("engines", "Java", NOTE, "not found in JAVA_HOME or on PATH; for Spark in this process", mend)
    try:
        done = subprocess.run(  # noqa: S603  # the Java that Spark would start
            [java, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return Looked("engines", "Java", NOTE, f"{java} does not start", mend)
    told = re.search(r'version "(\d+)[^"]*"', done.stderr + done.stdout)
    if told is None or int(told[1]) < 17:
        return Looked("engines", "Java", NOTE, f"{java} is older than 17, or tells no version", mend)
    return Looked("engines", "Java", OK, f"{told[0].removeprefix('version ').strip(chr(34))}, {java}")


def _surroundings(settings: Settings) -> Iterator[Looked]:
    yield _spill(settings)
    yield _writable("current folder", Path.cwd(), NOTE, "results and releases must then be written elsewhere")
    yield _memory()
    encoding = (sys.stdout.encoding or "none").lower()
    if encoding.replace("-", "") == "utf8":
        yield Looked("surroundings", "terminal", OK, f"encoding {encoding}")
    else:
        said = f"encoding {encoding}: letters that it has not are written as escapes"
        yield Looked("surroundings", "terminal", NOTE, said, "export PYTHONUTF8=1, or a locale with UTF-8")
    yield _clock()


def _spill(settings: Settings) -> Looked:
    mend = "name another folder by --temp-dir, or set TMPDIR"
    try:
        folder = settings.temp_dir or Path(tempfile.gettempdir())
    except FileNotFoundError:
        return Looked("surroundings", "spill files", FAIL, "no folder for temporary files can be written", mend)
    return _writable("spill files", folder, FAIL, mend)


def _writable(name: str, folder: Path, bad: str, mend: str) -> Looked:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 16))
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Looked("surroundings", name, bad, f"{folder} cannot be written ({error.strerror})", mend)
    return Looked("surroundings", name, OK, f"{folder} can be written; {free / 2**30:,.1f} GB free")


def _memory() -> Looked:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return Looked("surroundings", "machine", OK, f"{os.cpu_count()} processors")
    return Looked("surroundings", "machine", OK, f"{os.cpu_count()} processors, {total / 2**30:,.1f} GB of memory")


def _clock() -> Looked:
    """A clock before the program was installed is wrong: results and exceptions of house rules go by it."""
    now = datetime.now(UTC)
    installed = datetime.fromtimestamp(Path(__file__).stat().st_mtime, UTC)
    said = f"{now.isoformat(timespec='seconds')} (UTC)"
    if now < installed:
        return Looked("surroundings", "clock", NOTE, f"{said}, before this program was installed", "set the clock")
    return Looked("surroundings", "clock", OK, said)


def _variables() -> Iterator[Looked]:
    """What the environment says to runs; never a secret."""
    if os.environ.get("SQLDEID_KEY"):
        yield _softly("surroundings", "SQLDEID_KEY", _key, "make one with: openssl rand -hex 32")
    if "SQLDEID_HOUSE_RULES" in os.environ:
        yield _softly("surroundings", "SQLDEID_HOUSE_RULES", _rules, "every run is refused until this is mended")


def _key() -> str:
    from sqldeid.keys import read_key

    read_key()
    return "holds a key of pseudonyms"


def _rules() -> str:
    from sqldeid.house_rules import load
    from sqldeid.run.held import files_of

    rules = [load(file) for file in files_of(None)]
    return "; ".join(f"rules of {one.organisation} in {one.name} bind every run" for one in rules)


def _target(job_file: str | None) -> Iterator[Looked]:
    if job_file is None:
        return
    from sqldeid.job import Job
    from sqldeid.run.places import destination

    job = Job.load(job_file)
    releases = len(job.tables) + len(job.series) + len(job.events)
    yield Looked("job", job.name, OK, f"valid; {releases} {'release' if releases == 1 else 'releases'}")
    if job.release.into is None:
        yield Looked("job", "target", OK, "the source database itself; whether it can be written is seen by a run")
        return
    try:
        into = destination(job).into or job.folder
    except SqldeidError as error:
        yield Looked("job", "target", FAIL, error.message, "name another place by release.into")
        return
    looked = _writable("target", into.parent, NOTE, "name another place by release.into, or make the folder writable")
    there = f"; {into.name} is there, so that a run needs --replace" if into.exists() else ""
    yield Looked("job", "target", looked.state, f"{looked.said}{there}", looked.mend)


def _database(database: str | None, settings: Settings) -> Iterator[Looked]:
    """Open it as a run does, reading only; names of its tables, nothing in them."""
    if database is None:
        return
    from sqldeid.engine.choosing import dialect_of, shown
    from sqldeid.engine.offers import NAMES
    from sqldeid.engine.opening import is_connection, path_of
    from sqldeid.run.places import reading

    path = None if is_connection(database) else path_of(database)
    with reading(database, path, settings, command="doctor") as engine:
        relations = engine.relations()
    views = sum(r.is_view for r in relations)
    kinds = f"tables: {len(relations) - views}, views: {views}"
    yield Looked("database", shown(database), OK, f"{NAMES[dialect_of(database)]}, opened for reading; {kinds}")
    names = sorted(".".join(r.parts[-2:]) for r in relations)
    yield Looked("database", "tables", OK, listed(names, SHOWN) or "none")


def _tried(group: str, name: str, look: Callable[[], str], mend: str, *, bad: str = FAIL) -> Looked:
    """What a look finds, or why it fails."""
    try:
        return Looked(group, name, OK, look())
    except SqldeidError as error:
        return Looked(group, name, bad, error.message, mend)
    except (ImportError, OSError) as error:
        return Looked(group, name, bad, f"does not load ({type(error).__name__})", mend)


def _softly(group: str, name: str, look: Callable[[], str], mend: str) -> Looked:
    """The same of what only some runs need."""
    return _tried(group, name, look, mend, bad=NOTE)
