"""The nightly examples: cron script, function, Dagster asset and dbt model run for three nights."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest

from sqldeid.errors import EngineError, VerificationError
from tests.support.foreign import in_postgres
from tests.support.hospital import hospitals
from tests.support.places import EXAMPLES

EXAMPLE = EXAMPLES / "nightly"
KEY = "".join(f"{i:02x}" for i in range(7, 39))
VISITS = """
    INSERT INTO visits
    SELECT i, CAST(18 + (i * 7919) % 70 AS INTEGER), CAST(10000 + (i * 104729) % 40 AS VARCHAR),
           DATE '2024-01-01' + CAST((i * 31) % 366 AS INTEGER), ['flu', 'gout', 'mumps'][1 + (i // 7) % 3]
    FROM RANGE(?, ?) AS r(i)
"""


SERVED = """
    CREATE TABLE visits AS
    SELECT i AS patient, CAST(18 + (i * 7919) % 70 AS INTEGER) AS age, CAST(10000 + (i * 104729) % 40 AS TEXT) AS zip,
           DATE '2024-01-01' + CAST((i * 31) % 366 AS INTEGER) AS admitted,
           (ARRAY['flu', 'gout', 'mumps'])[1 + (i / 7) % 3] AS diagnosis
    FROM GENERATE_SERIES(0, 1499) AS r(i)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "release"
    place.mkdir()
    shutil.copy(EXAMPLE / "job.toml", place)
    (place / "key").write_text(KEY)
    with duckdb.connect(tmp_path / "hospital.duckdb") as connection:
        connection.execute(
            "CREATE TABLE visits (patient BIGINT, age INTEGER, zip VARCHAR, admitted DATE, diagnosis VARCHAR)"
        )
        connection.execute(VISITS, [0, 1500])
    return tmp_path


def change(folder: Path, statement: str, *values: int) -> None:
    with duckdb.connect(folder / "hospital.duckdb") as connection:
        connection.execute(statement, list(values))


def module(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.deep
def test_the_cron_script(folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def night() -> subprocess.CompletedProcess[str]:
        command = ["sh", EXAMPLE / "nightly.sh", folder / "hospital.duckdb", folder / "release"]
        return subprocess.run(command, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)

    assert night().returncode == 0
    change(folder, VISITS, 1500, 1503)
    second = night()
    assert (second.returncode, second.stderr) == (0, "")
    result = json.loads((folder / "release" / "tonight.json").read_text())["releases"]["visits"]
    assert result["search"]["method"] == "policy"
    assert result["ledger"]["release"] == 2
    held = result["ledger"]["held_back"]
    assert 0 < held <= 3
    asked = ["verify", "../hospital.duckdb", "--job", "job.toml", "--ledger", "ledger.duckdb", "--key-file", "key"]
    checked = subprocess.run(
        [Path(sys.executable).with_name("sqldeid"), *asked],
        cwd=folder / "release", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert re.search(rf"Held back +{held} row", checked.stdout)
    change(folder, "UPDATE visits SET zip = CAST(patient AS VARCHAR), age = patient % 90")
    before = (folder / "release" / "visits.duckdb").read_bytes()
    third = night()
    assert third.returncode == 4
    assert "the last release stays" in third.stderr
    assert (folder / "release" / "visits.duckdb").read_bytes() == before


@pytest.mark.parametrize("share", ["0.0", "0.049", "1e-05", "1.05e-05", "0.05", "0.556", "1.0"])
def test_the_cron_script_says_that_many_rows_are_held_back(tmp_path: Path, share: str) -> None:
    """The program is a stand-in that writes a result: its own warnings are not printed at night."""
    stand_in = tmp_path / "bin" / "sqldeid"
    stand_in.parent.mkdir()
    result = json.dumps({"releases": {"visits": {"ledger": {"held_back_share": float(share)}}}}, indent=2)
    stand_in.write_text(f"#!/bin/sh\ncat > tonight.json <<'END'\n{result}\nEND\n")
    stand_in.chmod(0o755)
    path = f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", EXAMPLE / "nightly.sh", tmp_path, tmp_path],
        env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "many rows are held back" in done.stderr) == (0, float(share) >= 0.05), done.stderr


def test_a_second_cron_script_leaves_the_first_alone(tmp_path: Path) -> None:
    """The program is a stand-in that has written its result and not ended yet, as the second script begins."""
    stand_in = tmp_path / "bin" / "sqldeid"
    stand_in.parent.mkdir()
    stand_in.write_text(
        "#!/bin/sh\nmkdir working || exit 1\necho '{}' > tonight.json\ntouch written\n"
        "while [ ! -e go-on ]; do sleep 0.05; done\n"
    )
    stand_in.chmod(0o755)
    known = os.environ | {"PATH": f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["sh", EXAMPLE / "nightly.sh", tmp_path, tmp_path]
    with subprocess.Popen(command, env=known, stderr=subprocess.PIPE, text=True) as first:
        try:
            ends = time.monotonic() + 30
            while not (tmp_path / "written").exists() and time.monotonic() < ends:
                time.sleep(0.02)
            second = subprocess.run(command, env=known, capture_output=True, text=True, check=False, timeout=30)
        finally:
            (tmp_path / "go-on").touch()
        told = first.communicate(timeout=30)[1]
    assert second.returncode == 1 and "another run is at work here" in second.stderr
    assert (first.returncode, told) == (0, "")
    assert (tmp_path / "policy.json").read_text() == (tmp_path / "tonight.json").read_text() == "{}\n"
    (tmp_path / "working").rmdir()
    assert subprocess.run(command, env=known, check=False, timeout=30).returncode == 0, "the lock ends with the script"


@pytest.mark.deep
def test_the_cron_script_on_postgres(folder: Path, postgres_cluster: str) -> None:
    """The URL of a server is no path: the script hands it on as it is, and the ledger goes on from night to night."""
    with in_postgres(postgres_cluster) as server, duckdb.connect(folder / "hospital.duckdb") as connection:
        server.load("visits", connection.sql("FROM visits").to_arrow_table())
        host = server.database.partition("?")[2]
        known = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        url = f"postgresql://sqldeid@/{server.dbname}?{host}"
        for night in (1, 2):
            command = ["sh", EXAMPLE / "nightly.sh", url, folder / "release"]
            done = subprocess.run(command, env=known, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout + done.stderr) == (0, ""), done.stderr
            told = json.loads((folder / "release" / "tonight.json").read_text())["releases"]["visits"]
            assert told["ledger"]["release"] == night and told["released"] > 1400


@pytest.fixture
def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The visits in Postgres, found by the name of a service; the password stands in a file."""
    with hospitals() as hospital:
        hospital.run(
            SERVED,
            "GRANT SELECT ON visits TO worker",
        )
        port = hospital.server.port
        (folder / "services").write_text(f"[hospital]\nhost=127.0.0.1\nport={port}\nuser=worker\ndbname=postgres\n")
        (folder / "pass").write_text(f"127.0.0.1:{port}:postgres:worker:hidden-word\n")
        (folder / "pass").chmod(0o600)
        monkeypatch.delenv("PGPASSWORD", raising=False)
        monkeypatch.setenv("PGSERVICEFILE", str(folder / "services"))
        monkeypatch.setenv("PGPASSFILE", str(folder / "pass"))
        yield "postgresql:///?service=hospital"


@pytest.mark.deep
def test_a_server_by_cron_script_and_function(served: str, folder: Path) -> None:
    """The URL is no path, and holds no password; what is printed and kept does not, either."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["sh", EXAMPLE / "nightly.sh", served, folder / "release"]
    known = os.environ | {"PATH": path}
    done = subprocess.run(command, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    release: Callable[..., dict[str, int]] = module("release", EXAMPLE / "release.py").release
    found = release(served, folder / "release")
    assert found["rows"] == 1500 and found["k"] >= 5
    told = (folder / "release" / "tonight.json").read_text()
    assert "hidden-word" not in told + done.stdout + done.stderr and "worker" not in told


def test_the_function(folder: Path) -> None:
    release: Callable[..., dict[str, int]] = module("release", EXAMPLE / "release.py").release
    first = release(folder / "hospital.duckdb", folder / "release")
    assert first["rows"] == 1500
    assert (folder / "release" / "policy.json").stat().st_mode & 0o777 == 0o600
    change(folder, "DELETE FROM visits WHERE patient = 3")
    second = release(folder / "hospital.duckdb", folder / "release")
    assert second["rows"] == 1499
    assert second["k"] >= 5
    assert second["held_back"] > 0
    change(folder, "DELETE FROM visits WHERE patient > 3")
    with pytest.raises(VerificationError, match="cannot be applied"):
        release(folder / "hospital.duckdb", folder / "release")


def test_the_dagster_asset(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("dagster") is None:
        pytest.skip("not applicable: Dagster is not installed; its function is tested above")
    monkeypatch.setenv("DATABASE", str(folder / "hospital.duckdb"))
    monkeypatch.setenv("FOLDER", str(folder / "release"))
    monkeypatch.syspath_prepend(EXAMPLE)
    found = module("dagster_assets", EXAMPLE / "dagster_assets.py")
    assert found.dg.materialize([found.visits_release]).success


class Failure(Exception):
    """Stands for Dagster's, which says whether a step may be tried again."""

    def __init__(self, said: str, *, allow_retries: bool) -> None:
        super().__init__(said)
        self.allow_retries = allow_retries


def test_the_body_of_the_dagster_asset(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster stands in as a decorator, two records and an exception, for it does not go into our environment."""
    dagster = ModuleType("dagster")
    vars(dagster).update(
        asset=lambda **_: lambda function: function, MaterializeResult=dict, Definitions=dict, Failure=Failure
    )
    monkeypatch.setitem(sys.modules, "dagster", dagster)
    monkeypatch.setenv("DATABASE", str(folder / "hospital.duckdb"))
    monkeypatch.setenv("FOLDER", str(folder / "release"))
    monkeypatch.syspath_prepend(EXAMPLE)
    monkeypatch.delitem(sys.modules, "release", raising=False)
    found = module("dagster_assets", EXAMPLE / "dagster_assets.py")
    told = found.visits_release()["metadata"]
    assert told.keys() == {"rows", "released", "k"} and told["rows"] == 1500
    change(folder, "DELETE FROM visits WHERE patient > 3")
    with pytest.raises(Failure, match="cannot be applied") as failed:
        found.visits_release()
    assert not failed.value.allow_retries

    def locked(*_: object) -> None:
        raise EngineError("the database is locked")

    monkeypatch.setattr(found, "release", locked)
    with pytest.raises(Failure) as failed:
        found.visits_release()
    assert failed.value.allow_retries


class FailsAtOnce(Exception):
    """Stands for Airflow's exception that ends a task without a retry."""


def test_the_airflow_task(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow stands in as two decorators and an exception, for it does not go into our environment."""
    made: dict[str, Any] = {}

    def decorator(**settings: object) -> Callable[[Callable[[], object]], Callable[[], object]]:
        def keep(function: Callable[[], object]) -> Callable[[], object]:
            made[function.__name__] = (function, settings)
            return lambda: None

        return keep

    sdk, exceptions = ModuleType("airflow.sdk"), ModuleType("airflow.exceptions")
    vars(sdk).update(dag=decorator, task=decorator)
    vars(exceptions).update(AirflowFailException=FailsAtOnce)
    for name, stand_in in (
        ("airflow", ModuleType("airflow")),
        ("airflow.sdk", sdk),
        ("airflow.exceptions", exceptions),
    ):
        monkeypatch.setitem(sys.modules, name, stand_in)
    monkeypatch.setenv("DATABASE", str(folder / "hospital.duckdb"))
    monkeypatch.setenv("FOLDER", str(folder / "release"))
    monkeypatch.syspath_prepend(EXAMPLE)
    monkeypatch.delitem(sys.modules, "release", raising=False)
    module("airflow_dag", EXAMPLE / "airflow_dag.py")
    assert made["nightly"][1]["max_active_runs"] == 1
    assert made["nightly"][1]["catchup"] is False
    run = made["visits_release"][0]
    found = run()
    assert found.keys() == {"rows", "released", "k"}
    assert found["rows"] == 1500
    change(folder, "DELETE FROM visits WHERE patient > 3")
    with pytest.raises(FailsAtOnce, match="cannot be applied"):
        run()

    def locked(*_: object) -> None:
        raise EngineError("the database is locked")

    monkeypatch.setattr(sys.modules["release"], "release", locked)
    with pytest.raises(EngineError):
        run()


class Config:
    """What a model sees of dbt's settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, **_: object) -> None:
        return None

    def get(self, name: str) -> str:
        assert name == "release_folder"
        return str(self.folder)


class Dbt:
    """What a model sees of dbt, on a connection that is within a transaction as dbt's is."""

    def __init__(self, folder: Path, connection: duckdb.DuckDBPyConnection) -> None:
        self.config, self.connection = Config(folder), connection

    def ref(self, name: str) -> duckdb.DuckDBPyRelation:
        assert name == "tonight"
        return self.connection.table("visits")


def test_the_function_of_the_dbt_model(folder: Path) -> None:
    model = module("visits_release", EXAMPLE / "dbt" / "models" / "visits_release.py").model
    for night in range(2):
        with duckdb.connect(folder / "hospital.duckdb") as connection:
            connection.execute("BEGIN")
            released = model(Dbt(folder / "release", connection), connection)
            connection.execute("COMMIT")
        assert released.column_names == ["age", "zip", "admitted", "diagnosis"]
        assert {str(t) for t in released.schema.types} == {"string"}
        assert released.num_rows > 1400 - 10 * night
        change(folder, "DELETE FROM visits WHERE patient = 3")


def test_the_dbt_project(folder: Path) -> None:
    if find_spec("dbt") is None:
        pytest.skip("not applicable: dbt-duckdb is not installed; its model is tested above")
    project = shutil.copytree(EXAMPLE / "dbt", folder / "dbt")
    command = [Path(sys.executable).with_name("dbt"), "run", "--project-dir", project, "--profiles-dir", project]
    known = os.environ | {"DATABASE": str(folder / "hospital.duckdb"), "RELEASE_FOLDER": str(folder / "release")}
    done = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    with duckdb.connect(folder / "hospital.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT COUNT(*) > 1000 FROM visits_release").fetchone() == (True,)
