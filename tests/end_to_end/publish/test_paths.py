"""A path names exactly one file, whatever its name looks like to DuckDB: sources, releases, folders, ledgers."""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqldeid.engine import mark
from sqldeid.engine.opening import Settings
from sqldeid.errors import EngineError, JobError, SqldeidError
from sqldeid.files import without_parents
from sqldeid.findings import FAIL
from sqldeid.job import Job
from sqldeid.result import Risk
from sqldeid.run import Options, anonymize, assess, doctor, verify
from sqldeid.run.profiles import init
from tests.support.sources import everything, listed, qi, release

NAMES = {
    "class": "a[1]",
    "range": "a[0-9]",
    "not": "a[!b]",
    "opening": "a[",
    "star": "*",
    "question": "a?",
    "braces": "{a1,ab}",
    "quote": "a'b",
    "quotes": 'a"b',
    "backslash": "a\\1",
    "backslash and class": "a\\[1]",
    "newline": "a\nb",
    "percent": "a%20b",
    "scheme": "s3:x",
    "file scheme": "file:a1",
    "hive": "k=v",
    "unicode": "naïve 患者",
    "dash": "-rf",
    "home": "~",
    "space": " a ",
}
BESIDE = ("a1", "a2", "ab", "b", "x")
"""Files that a pattern would find: each has a row of its own, which must not be released."""

DECOY, WANTED = "decoy", "wanted"


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return NAMES[request.param]


def rows(which: str) -> str:
    return f"SELECT '{which}' AS kind, CAST(30 + i % 4 AS INTEGER) AS age, i AS id FROM RANGE(40) AS r(i)"


def write(path: Path, which: str) -> None:
    """A CSV (perhaps compressed), Parquet or DuckDB file of that name, made under a plain one."""
    plain = Path(tempfile.gettempdir()) / f"being-made-{os.getpid()}"
    with duckdb.connect() as c:
        if ".csv" in path.name:
            text = "\n".join(
                ",".join(map(str, row)) for row in [("kind", "age", "id"), *c.execute(rows(which)).fetchall()]
            )
            plain.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
        elif path.suffix == ".parquet":
            c.execute(f"COPY ({rows(which)}) TO '{plain}' (FORMAT PARQUET)")
        else:
            c.execute(f"ATTACH '{plain}' AS d")
            c.execute(f"CREATE TABLE d.t AS {rows(which)}")
            c.execute("DETACH d")
    shutil.move(plain, path)


def job(folder: Path, into: str, source: str, kind: str = "parquet", name: str = "r") -> Job:
    columns = {"kind": qi({"suppress": True}), "age": qi({"bands": [5]})}
    part = release(columns, source=source, k=5, person="id")
    return Job.parse({"release": {"into": into, "as": kind}, "tables": {name: part}}, folder=folder)


def released(file: Path, folder: Path, name: str = "r") -> set[str]:
    """The kinds that a release has, read under a plain name."""
    plain = folder / "to-be-read"
    shutil.copyfile(file / f"{name}.parquet" if file.is_dir() else file, plain)
    try:
        with duckdb.connect() as c:
            if file.is_dir():
                return {str(kind) for (kind,) in c.execute(f"SELECT kind FROM read_parquet('{plain}')").fetchall()}
            c.execute(f"ATTACH '{plain}' AS d (READ_ONLY)")
            return {str(kind) for (kind,) in c.execute(f'SELECT kind FROM d.release."{name}"').fetchall()}
    finally:
        plain.unlink()


def counted(risk: Risk) -> int:
    """Rows in the classes."""
    return sum(size * number for size, number in risk.class_sizes)


def table_of(path: Path) -> str:
    return '"' + path.name.split(".")[0].replace('"', '""') + '"'


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_a_source_is_the_file_of_that_name(tmp_path: Path, name: str, ending: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for other in BESIDE:
        write(data / f"{other}{ending}", DECOY)
    source = data / f"{name}{ending}"
    write(source, WANTED)
    before = listed(data)
    made = anonymize(job(tmp_path, "out", table_of(source)), source)
    assert made.tables["r"].rows == 40
    assert released(tmp_path / "out", tmp_path) == {WANTED}
    assert verify(job(tmp_path, "out", table_of(source)), source)["r"].k >= 5
    assert counted(assess(job(tmp_path, "out", table_of(source)), source)["r"]) == 40
    assert "kind" in init(source, table_of(source))
    assert listed(data) == before
    with pytest.raises(SqldeidError):  # and what was released is checked against that file alone
        source.unlink()
        verify(job(tmp_path, "out", table_of(source)), source)
    assert listed(tmp_path) == ["data", "out"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".duckdb"])
def test_a_source_in_a_folder_of_that_name(tmp_path: Path, name: str, ending: str) -> None:
    for other in (*BESIDE, name):
        (tmp_path / other).mkdir(exist_ok=True)
        write(tmp_path / other / f"s{ending}", WANTED if other == name else DECOY)
    source, table = tmp_path / name / f"s{ending}", "t" if ending == ".duckdb" else "s"
    if ending == ".duckdb" and "\\" in name:
        with pytest.raises(JobError, match="rename it, or the folder"):
            anonymize(job(tmp_path, "out", table), source)
        return
    made = anonymize(job(tmp_path, "out", table), source)
    assert made.tables["r"].rows == 40
    assert released(tmp_path / "out", tmp_path) == {WANTED}
    assert verify(job(tmp_path, "out", table), source)["r"].k >= 5
    assert listed(tmp_path / name) == [f"s{ending}"]
    columns = tomllib.loads(init(source, table))["tables"]
    assert not any("k" in part["columns"] for part in columns.values()), "a folder became a column"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["parquet", "table"])
def test_a_release_into_that_name(tmp_path: Path, name: str, kind: str) -> None:
    """The name is that of the folder or file, and of the folder above it."""
    write(tmp_path / "s.csv", WANTED)
    source = tmp_path / "s.csv"
    for other in (*BESIDE, name):
        (tmp_path / other).mkdir(exist_ok=True)
    into = f"{name}/{name}" + ("" if kind == "parquet" else ".duckdb")
    wanted = job(tmp_path, into, "s", kind)
    if kind != "parquet" and "\\" in name:
        with pytest.raises(JobError, match=r"release\.into: DuckDB cannot open a database whose path"):
            anonymize(wanted, source)
        assert listed(tmp_path / name) == []
        return
    anonymize(wanted, source)
    assert released(tmp_path / into, tmp_path) == {WANTED}
    assert verify(wanted, source)["r"].k >= 5
    assert counted(assess(wanted, source, release=True)["r"]) == 40
    before = everything(tmp_path / into) if kind == "parquet" else ""
    with pytest.raises(JobError, match="exists already"):
        anonymize(wanted, source)
    anonymize(wanted, source, options=Options(replace=True, without_ledger=True))
    assert verify(wanted, source)["r"].k >= 5
    assert listed(tmp_path / name) == [Path(into).name]
    assert not before or everything(tmp_path / into)


@pytest.mark.sampled(2)
def test_a_release_of_that_name(tmp_path: Path, name: str) -> None:
    """Parquet: each release is read under its own name, beside others that a pattern would find."""
    write(tmp_path / "s.csv", WANTED)
    write(tmp_path / "other.csv", DECOY)
    content: dict[str, Any] = {"release": {"into": "out", "as": "parquet"}, "tables": {}}
    columns = {"kind": qi({"suppress": True}), "age": qi({"bands": [5]})}
    if "\\" in name:
        with pytest.raises(JobError, match="may not hold"):
            job(tmp_path, "out", "s", name=name)
        return
    for each in ("a1", "a2", "ab", name):
        where = {"where": "age < 33"} if each != name else {}
        content["tables"][each] = {**release(columns, source="s", k=5, person="id"), **where}
    wanted = Job.parse(content, folder=tmp_path)
    made = anonymize(wanted, tmp_path / "s.csv")
    assert {n: r.rows for n, r in made.tables.items()} == {"a1": 30, "a2": 30, "ab": 30, name: 40}
    checked = verify(wanted, tmp_path / "s.csv")
    assert set(checked) == {"a1", "a2", "ab", name} and not checked.beside
    assert counted(assess(wanted, tmp_path / "s.csv", release=True)[name]) == 40
    again = anonymize(wanted, tmp_path / "s.csv", options=Options(replace=True, without_ledger=True, only=(name,)))
    assert list(again.releases) == [name]
    assert listed(tmp_path / "out") == sorted(f"{n}.parquet" for n in ("a1", "a2", "ab", name))


@pytest.mark.sampled(1)
def test_in_place_in_a_folder_of_that_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    source = folder / f"{name}.duckdb"
    write(source, WANTED)
    part = {"kind": qi({"suppress": True}), "age": qi({"bands": [5]})}
    wanted = Job.parse({"tables": {"r": release(part, source="t", k=5, person="id")}}, folder=tmp_path)
    if "\\" in name or "?" in name:
        before = source.read_bytes()
        with pytest.raises(JobError, match="rename it, or the folder"):
            anonymize(wanted, source)
        assert source.read_bytes() == before and listed(folder) == [source.name]
        return
    anonymize(wanted, source)
    assert verify(wanted, source)["r"].k >= 5
    assert listed(folder) == [source.name]


@pytest.mark.sampled(2)
def test_temporary_files_and_a_ledger_there(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLDEID_KEY", secrets.token_hex(32))
    folder = tmp_path / name
    folder.mkdir()
    write(tmp_path / "s.duckdb", WANTED)
    wanted = job(tmp_path, f"{name}/out", "t")
    options = Options(settings=Settings(temp_dir=folder), replace=True, without_ledger=True)
    if "\\" in name:
        with pytest.raises(JobError, match="--temp-dir"):
            anonymize(wanted, tmp_path / "s.duckdb", options=options)
    else:
        anonymize(wanted, tmp_path / "s.duckdb", options=options)
        shutil.rmtree(folder / "out")
    noted = job(tmp_path, "out.duckdb", "t", "table")
    for replace in (False, True):
        held = Options(ledger=folder / f"{name}.ledger", replace=replace)
        anonymize(noted, tmp_path / "s.duckdb", options=held)
    assert verify(noted, tmp_path / "s.duckdb", options=held)["r"].k >= 5
    assert set(listed(folder)) <= {f"{name}.ledger", f"{name}.ledger.lock"}


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_path_that_is_not_utf8(tmp_path: Path, ending: str) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    folder.mkdir()
    source = folder / os.fsdecode(b"p\xff" + ending.encode())
    write(tmp_path / f"s{ending}", WANTED)
    (tmp_path / f"s{ending}").rename(source)
    wanted = job(folder, "out", '"p\ufffd"')
    anonymize(wanted, source)
    assert released(folder / "out", tmp_path) == {WANTED}
    assert verify(wanted, source)["r"].k >= 5


def test_a_database_whose_path_is_not_utf8(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    folder.mkdir()
    write(tmp_path / "s.duckdb", WANTED)
    shutil.copyfile(tmp_path / "s.duckdb", folder / "s.duckdb")
    for source, into in ((folder / "s.duckdb", "out"), (tmp_path / "s.duckdb", "out.duckdb")):
        wanted = job(folder, into, "t", "parquet" if into == "out" else "table")
        with pytest.raises(JobError, match="not UTF-8"):
            anonymize(wanted, source)
    assert listed(folder) == ["s.duckdb"]


def test_no_place_for_temporary_files_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container whose disks are read-only but one a run of a file works, and one that needs a place says so."""

    def nowhere() -> str:
        raise FileNotFoundError

    folder = tmp_path / "t[1]"
    folder.mkdir()
    write(folder / "a[1].csv", WANTED)
    wanted = job(tmp_path, "out", table_of(Path("a[1].csv")))
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.gettempdir", nowhere)
        with pytest.raises(EngineError, match="name one with --temp-dir, or set TMPDIR"):
            anonymize(wanted, folder / "a[1].csv")
        anonymize(wanted, folder / "a[1].csv", options=Options(settings=Settings(temp_dir=tmp_path)))
        mark.Mark("0000ffff").close()
        assert not mark.is_dead("0000ffff")
        looked = {one.name: one for one in doctor.examine(None, None, Settings())}
    assert released(tmp_path / "out", tmp_path) == {WANTED}
    assert (looked["spill files"].state, looked["DuckDB"].state) == (FAIL, FAIL)


@pytest.mark.parametrize("kind", ["table", "parquet"])
@pytest.mark.parametrize("place", ["/", "/usr/.."])
def test_the_root_of_all_folders_is_no_place(tmp_path: Path, kind: str, place: str) -> None:
    """It ended as an internal error."""
    with duckdb.connect(str(tmp_path / "d.duckdb")) as c:
        c.execute("CREATE TABLE people AS SELECT i AS id, i % 2 AS a FROM RANGE(20) AS r(i)")
    part = release({"a": qi()}, source="people", k=2, person="id")
    asked = Job.parse({"tables": {"r": part}, "release": {"into": place, "as": kind}})
    with pytest.raises(JobError, match=r"release\.into: / is the root of all folders|release\.into: /usr/\.\. is"):
        anonymize(asked, tmp_path / "d.duckdb", options=Options(replace=True))


def test_no_plain_place_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where temporary files lie under such a name, too, the message says what to do, and doing it helps."""
    folder = tmp_path / "t[1]"
    folder.mkdir()
    write(folder / "a[1].csv", WANTED)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    wanted = job(tmp_path, "out", table_of(Path("a[1].csv")))
    with pytest.raises(JobError, match="--temp-dir"):
        anonymize(wanted, folder / "a[1].csv")
    (tmp_path / "temp").mkdir()
    anonymize(wanted, folder / "a[1].csv", options=Options(settings=Settings(temp_dir=tmp_path / "temp")))
    assert released(tmp_path / "out", tmp_path) == {WANTED}
    assert listed(tmp_path / "temp") == []


def test_paths_without_the_way_to_them(tmp_path: Path) -> None:
    """What is shown is what the system opens: past a link, and past a folder that is not there, `..` is no text."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "a" / "link").symlink_to(tmp_path / "far" / "away")
    (tmp_path / "a" / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    shown = {
        "a/b/../x": "a/x",
        "a/b/../../x": "x",
        "a/../a/b/..": "a",
        "a/link/../x": "far/x",
        "a/link/x": "a/link/x",
        "a/b/../link/../../x": "x",
        "none/../x": "none/../x",
        "a/b/../none/../x": "a/none/../x",
        "file/../x": "file/../x",
        "a/loop/../x": "a/loop/../x",
    }
    for path, wanted in shown.items():
        assert without_parents(tmp_path / path) == tmp_path / wanted, path
        assert os.path.realpath(tmp_path / path) == os.path.realpath(tmp_path / wanted)
    assert without_parents(Path("/../../x")) == Path("/x")


def test_relative_paths_without_the_way_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a")
    shown = {"b/../x": "x", "../x": "../x", "../../x": "../../x", "b/../../a/x": "../a/x", "x": "x", ".": "."}
    assert {path: str(without_parents(Path(path))) for path in shown} == shown
