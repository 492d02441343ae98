"""The job on a MIMIC-like schema in Postgres: its commands, its pipeline, and the same release as in DuckDB."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import sqldeid
from sqldeid import demo
from tests.support.cli import run
from tests.support.foreign import InPostgres, bag, in_postgres
from tests.support.places import EXAMPLES
from tests.support.studies import module_of

FOLDER = EXAMPLES / "postgres"


@pytest.fixture(scope="module")
def server(postgres_cluster: str) -> Iterator[InPostgres]:
    """A generated hospital, as the example loads it."""
    with in_postgres(postgres_cluster) as database:
        module_of(FOLDER / "load.py").load(database.address, 300)
        yield database


@pytest.mark.deep
def test_commands_and_pipeline(
    server: InPostgres, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(FOLDER / "job.toml", tmp_path / "job.toml")
    planned = run(capsys, "anonymize", server.database, "--job", "job.toml", "--plan", "-v")
    assert "DISTINCT ON" in planned.out and "STRUCT_PACK" not in planned.out
    done = run(capsys, "anonymize", server.database, "--job", "job.toml", "--json", "-")
    verified = run(capsys, "verify", server.database, "--job", "job.toml")
    assert not any("hidden-word" in text for one in (planned, done, verified) for text in (one.out, one.err))
    assert done.json["releases"]["patients"]["moved"]["rows"] > 0
    server.run("CREATE ROLE researchers", "GRANT SELECT ON deidentified.patients TO researchers")
    first = bag(server.read("deidentified.patients"))
    module_of(FOLDER / "pipeline.py").run(server.address)
    assert "over the wire" in capsys.readouterr().out
    assert bag(server.read("deidentified.patients")) == first
    with server.connect() as c:
        kept = c.execute("SELECT has_table_privilege('researchers', 'deidentified.patients', 'SELECT')").fetchone()
    assert kept == (True,)
    server.run("DROP OWNED BY researchers", "DROP ROLE researchers")


@pytest.mark.deep
def test_the_release_is_that_of_duckdb(server: InPostgres, tmp_path: Path) -> None:
    job = sqldeid.Job.load(FOLDER / "job.toml")
    path = demo.mimic(tmp_path / "mimic.duckdb", patients=300, seed=1).database
    here = sqldeid.anonymize(job, path).releases["patients"]
    there = sqldeid.anonymize(
        job, server.database, options=sqldeid.Options(replace=True, without_ledger=True)
    ).releases["patients"]
    assert (there.node, there.loss, there.suppressed) == (here.node, here.loss, here.suppressed)
    with duckdb.connect(str(path), read_only=True) as c:
        assert bag(server.read("deidentified.patients")) == bag(c.execute("FROM deidentified.patients").fetchall())


@pytest.mark.deep
@pytest.mark.parametrize("name", ["ola.toml", "chapters.toml", "inverse_ola.toml"])
def test_the_study_on_the_mimic_demo(name: str, demo_server: InPostgres, study_file: Path) -> None:
    """The jobs of examples/mimic_study, but for where the release goes, on real data."""
    content = tomllib.loads((EXAMPLES / "mimic_study" / name).read_text(encoding="utf-8"))
    schema = f"of_{name.removesuffix('.toml')}"
    job = sqldeid.Job.parse({**content, "release": {"schema": schema}}, folder=EXAMPLES / "mimic_study")
    here = sqldeid.anonymize(job, study_file).releases["patients"]
    there = sqldeid.anonymize(job, demo_server.database).releases["patients"]
    assert (there.node, there.loss, there.suppressed, there.k) == (here.node, here.loss, here.suppressed, here.k)
    with duckdb.connect(str(study_file), read_only=True) as c:
        assert bag(demo_server.read(f"{schema}.patients")) == bag(c.execute(f"FROM {schema}.patients").fetchall())


@pytest.fixture(scope="module")
def study_file(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The MIMIC-III demo, as the study loads it."""
    path = tmp_path_factory.mktemp("mimic") / "mimic.duckdb"
    module_of(EXAMPLES / "mimic_study" / "study.py").load(shared_data / "mimic3demo", path)
    return path


@pytest.fixture(scope="module")
def demo_server(postgres_cluster: str, study_file: Path) -> Iterator[InPostgres]:
    """The same tables in Postgres."""
    with in_postgres(postgres_cluster) as database:
        module_of(FOLDER / "load.py").copy(study_file, database.address)
        yield database
