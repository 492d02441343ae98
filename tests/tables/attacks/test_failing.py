"""An attack that fails is left out by name, and costs no release; what is a fault of ours, or Ctrl-C, ends the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid import Listener, Options, VerificationError
from sqldeid.attacked import ATTACKS, CONTROLLED
from sqldeid.engine.settings import Settings
from sqldeid.errors import EngineError, Interrupted, JobError
from sqldeid.job import Job
from sqldeid.tables.attacks import run
from sqldeid.tables.attacks.base import Attacked
from sqldeid.tables.local import remade
from tests.support.foreign import in_postgres
from tests.support.sources import job, qi

HUNGRY = "SELECT LIST(r.range) AS x FROM RANGE(40000000) AS r"
"""It does not spill, so that no memory limit below half a gigabyte is enough."""


def released(search: str = "frontier", **release: Any) -> Job:
    columns = {
        "id": {"role": "identifying"},
        "a": qi({"bands": [4]}),
        "b": qi(),
        "s": {"role": "sensitive"},
    }
    part = {
        "source": "t",
        "person": "id",
        "columns": columns,
        "privacy": {"k": 3, "suppression_limit": 0.2},
        "search": {"method": search},
    }
    return job({"into": "out.duckdb", **release}, Path(), t=part)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("db.duckdb") as c:
        c.execute("CREATE TABLE t AS SELECT i AS id, i % 12 AS a, i % 2 AS b, i % 3 AS s FROM RANGE(200) AS r(i)")
    return Path("db.duckdb")


def rows() -> list[tuple[Any, ...]]:
    with duckdb.connect("out.duckdb", read_only=True) as c:
        return sorted(c.execute("SELECT * FROM release.t").fetchall())


def planted(monkeypatch: pytest.MonkeyPatch, fail: Callable[[Attacked], object], attack: str = "disclosure") -> None:
    """Have an attack do something first."""
    every = list(run.attacks())

    def make(attacked: Attacked) -> Any:
        fail(attacked)
        return next(a for a in every if a.name == attack).make(attacked)

    changed = [a if a.name != attack else type(a)(a.name, a.left_out, make, a.steps) for a in every]
    monkeypatch.setattr(run, "attacks", lambda: iter(changed))


def made(wanted: Job, source: Any, **settings: Any) -> tuple[dict[str, str], Any, list[str]]:
    """What was left out, what was found, and the stages that began."""
    heard: list[str] = []
    options = Options(settings=Settings(**settings))
    result = sqldeid.anonymize(wanted, source, options=options, listener=Listener(lambda _, step: heard.append(step)))
    attacks = result.releases["t"].attacks
    return {one.attack: one.reason for one in attacks.left_out if not one.column}, attacks, heard


def begun(heard: Sequence[str]) -> int:
    return sum(step == "folding the source" for step in heard)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("search", ["frontier", "local"])
@pytest.mark.usefixtures("attacks_may_fail", "control_groups")
def test_the_release_is_made_where_an_attack_has_too_little_memory(
    search: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(released(search), source)
    expected = rows()
    Path("out.duckdb").unlink()
    planted(monkeypatch, lambda attacked: attacked.engine.bench.query(HUNGRY))
    left_out, attacks, heard = made(released(search), source, memory_limit="100MB")
    assert rows() == expected and begun(heard) == 2
    assert "ran out of memory" in left_out["disclosure"]
    assert left_out.keys() == {"disclosure", "composition", "minimality"}
    assert attacks.singling_out is not None and attacks.downcoding is not None and attacks.groups is not None
    sqldeid.verify(released(search), source)


@pytest.mark.deep
@pytest.mark.parametrize("search", ["frontier", "local"])
@pytest.mark.usefixtures("attacks_may_fail", "control_groups")
def test_what_shares_its_work_with_what_failed_is_left_out_with_it(
    search: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(released(search), source)
    expected = rows()
    Path("out.duckdb").unlink()
    planted(monkeypatch, lambda attacked: attacked.engine.bench.query("SELECT ERROR('x')"), "linkability")
    left_out, attacks, heard = made(released(search), source)
    assert rows() == expected and begun(heard) == 2
    assert {*CONTROLLED} <= left_out.keys() and "not shown" in left_out["linkability"]
    assert all("of whom linkability failed" in left_out[n] for n in {*CONTROLLED} - {"linkability"})
    assert attacks.disclosure is not None and attacks.order is not None
    sqldeid.verify(released(search), source)


@pytest.mark.usefixtures("attacks_may_fail", "control_groups")
def test_persons_who_cannot_be_held_out_cost_no_release(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By local recoding that is done before classes are formed, long before anything is attacked."""

    def fail(planned: Any, folded: Any, engine: Any) -> None:
        engine.bench.query("SELECT ERROR('x')")

    made(released("local"), source)
    expected = rows()
    Path("out.duckdb").unlink()
    monkeypatch.setattr(remade, "Remade", fail)
    left_out, attacks, heard = made(released("local"), source)
    assert rows() == expected and begun(heard) == 2
    assert "not shown" in left_out["singling_out"] and {*CONTROLLED} <= left_out.keys()
    assert attacks.disclosure is not None and attacks.downcoding is not None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("search", ["frontier", "local"])
@pytest.mark.usefixtures("attacks_may_fail", "control_groups")
def test_where_a_second_attack_fails_none_is_made(search: str, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for attack in ("downcoding", "disclosure", "order"):
        planted(monkeypatch, lambda attacked: attacked.engine.bench.query("SELECT ERROR('x')"), attack)
    left_out, attacks, heard = made(released(search), source)
    assert rows() and begun(heard) == 3 and left_out.keys() == {*ATTACKS}
    assert "not shown" in left_out["downcoding"] and "not shown" in left_out["disclosure"]
    assert all(
        "made once more without attacks, for disclosure failed" in left_out[n]
        for n in {*ATTACKS} - {"downcoding", "disclosure", "composition"}
    )
    assert "not shown" in dict(attacks.facts())["Attacks"]
    sqldeid.verify(released(search), source)


@pytest.mark.usefixtures("attacks_may_fail", "control_groups")
def test_other_attacks_stand_where_the_transaction_does(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Attacked) -> None:
        raise MemoryError

    planted(monkeypatch, fail)
    left_out, attacks, heard = made(released(), source)
    assert begun(heard) == 1 and rows()
    assert "disclosure" in left_out and "ran out of memory" in left_out["disclosure"]
    assert attacks.singling_out is not None and attacks.downcoding is not None and attacks.groups is not None


@pytest.mark.usefixtures("attacks_may_fail", "control_groups")
def test_work_that_attacks_share_is_not_tried_again(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def fail(*_: object) -> None:
        tried.append(1)
        raise MemoryError

    monkeypatch.setattr(run, "control_of", fail)
    left_out, attacks, _ = made(released(), source)
    assert len(tried) == 1 and attacks.disclosure is not None
    assert all("ran out of memory" in left_out[name] for name in ("singling_out", "linkability", "inference", "groups"))


@pytest.mark.parametrize(
    "error", [JobError("changed"), VerificationError("x"), ValueError("x"), Interrupted("stopped")]
)
@pytest.mark.usefixtures("attacks_may_fail")
def test_what_is_no_failure_of_the_engine_ends_the_run(
    error: Exception, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Attacked) -> None:
        raise error

    planted(monkeypatch, fail)
    with pytest.raises(type(error)):
        made(released(), source)
    assert not Path("out.duckdb").exists()


@pytest.mark.usefixtures("attacks_may_fail")
def test_ctrl_c_ends_the_run(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Attacked) -> None:
        raise KeyboardInterrupt

    planted(monkeypatch, fail)
    with pytest.raises(Interrupted):
        made(released(), source)
    assert not Path("out.duckdb").exists()


def test_tests_see_what_the_engine_says(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement of ours that fails is no attack left out here."""
    planted(monkeypatch, lambda attacked: attacked.engine.bench.query("SELECT ERROR('x')"))
    with pytest.raises(EngineError):
        made(released(), source)


@pytest.mark.usefixtures("attacks_may_fail")
def test_a_release_in_the_source_itself_is_made_once_more(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a connection of the user's, whose transaction the failure ends."""
    wanted = job({"schema": "anon"}, Path(), t=released().tables["t"].model_dump(exclude_unset=True, by_alias=True))
    planted(monkeypatch, lambda attacked: attacked.engine.bench.query("SELECT ERROR('x')"))
    with duckdb.connect(str(source)) as connection:
        before = connection.execute("SELECT current_setting('TimeZone')").fetchall()
        left_out, _, heard = made(wanted, connection)
        assert begun(heard) == 2 and "not shown" in left_out["disclosure"]
        assert connection.execute("SELECT COUNT(*) > 150 FROM anon.t").fetchall() == [(True,)]
        assert connection.execute("SELECT current_setting('TimeZone')").fetchall() == before


@pytest.mark.parametrize("where", ["server", "bench"])
@pytest.mark.usefixtures("attacks_may_fail", "control_groups")
def test_in_postgres(where: str, postgres_cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure at the server ends its transaction; one of the workbench beside it costs the attack alone."""

    def fail(attacked: Attacked) -> None:
        if where == "server":
            attacked.engine.query("SELECT CAST('x' || r.id AS INTEGER) / 0 AS x FROM t AS r")
        attacked.engine.bench.query("SELECT ERROR('x')")

    planted(monkeypatch, _as_engine_error(fail))
    with in_postgres(postgres_cluster) as server:
        server.run(
            "CREATE TABLE t AS SELECT i AS id, i % 12 AS a, i % 2 AS b, i % 3 AS s FROM generate_series(1, 200) AS r(i)"
        )
        part = released().tables["t"].model_dump(exclude_unset=True, by_alias=True)
        left_out, attacks, heard = made(job({"schema": "anon"}, Path(), t=part), server.database)
        assert begun(heard) == (2 if where == "server" else 1)
        assert "could not be made" in left_out["disclosure"]
        assert attacks.downcoding is not None and attacks.singling_out is not None
        assert len(server.read("anon.t")) > 150


def _as_engine_error(fail: Callable[[Attacked], object]) -> Callable[[Attacked], None]:
    """A fault of the job's SQL is no engine's; a server's lack of memory, which it stands for here, is."""

    def failing(attacked: Attacked) -> None:
        try:
            fail(attacked)
        except JobError as error:
            raise EngineError(error.message) from None

    return failing
