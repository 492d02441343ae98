"""On Spark: pseudonyms, shifted dates, policies, and releases as Parquet that the cluster writes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sqldeid import (
    Interrupted,
    JobError,
    Listener,
    Options,
    SqldeidError,
    VerificationError,
    anonymize,
    assess,
    plan,
    verify,
)
from sqldeid.run import explain
from sqldeid.tables.disguise import disguise
from tests.support.foreign import bag, hold_listed, running
from tests.support.foreign_tables import KEYED, RELEASES, asked, people, told
from tests.support.on_spark import Both, load
from tests.support.sources import INSENSITIVE, job, qi, release
from tests.support.spark_rows import HOSTILE, rows
from tests.support.spark_tables import both

__all__ = ["both"]

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def key(tmp_path: Path) -> Options:
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    return Options(key_file=tmp_path / "key")


def test_pseudonyms_and_shifted_dates(both: Both, key: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets are fresh at each publication; what they leave as it is, is the same. In many parts, too."""
    monkeypatch.setattr("sqldeid.tables.disguise.pseudonyms.PART_VALUES", 130)
    wanted = job({"schema": "keyed"}, r=KEYED)
    there, here = (anonymize(wanted, d, options=key).releases["r"] for d in (both.url, both.file))
    assert told(there) == told(here)
    assert told(verify(wanted, both.spark, options=key)["r"]) == told(verify(wanted, both.file, options=key)["r"])
    assert verify(wanted, both.spark)["r"].released == there.released
    rows = both.there("keyed.r")
    assert len({row[0] for row in rows}) == len(rows)
    days = Counter((seen.date() - born).days for _, _, seen, born in rows if seen and born)
    assert days == Counter((seen.date() - born).days for _, _, seen, born in both.here("keyed.r") if seen and born)


@pytest.mark.deep
def test_what_tells_the_shift_is_refused_and_found(both: Both) -> None:
    """Written dates before the search; what stands beside shifted dates, and is given to whom has these, by verify."""
    moved = asked({"select": qi(), "seen": {**INSENSITIVE, "shift": "person"}}, k=3)
    query = {"query": "SELECT p.*, CAST(p.born AS VARCHAR(10)) AS noted FROM people AS p"}
    apart = asked({"select": qi(), "noted": INSENSITIVE}, k=3, source=query)
    with running() as ran, pytest.raises(JobError, match="most of its values are written like dates"):
        anonymize(job({"schema": "noted"}, moved=moved, apart=apart), both.spark)
    assert "run/count_written" in ran and not any(name.startswith("tables/") for name in ran)
    anonymize(job({"schema": "noted"}, moved=moved, apart=apart | {"never_with": ["moved"]}), both.spark)
    with pytest.raises(VerificationError, match="most of its values are written like dates") as found:
        verify(job({"schema": "noted"}, moved=moved, apart=apart), both.spark)
    assert found.value.key == "tables.apart.columns.noted"


def test_no_person_gets_the_pseudonym_of_another(both: Both, key: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    """One person leaves and another comes once the pseudonyms are drawn: by their places all others' would be wrong."""
    load(both.spark, "moving", people().slice(0, 40))
    draw, before = disguise.draw_secrets, both.catalogue()

    def drawn(*given: Any, **named: Any) -> Any:
        made = draw(*given, **named)
        both.spark.createDataFrame(people().slice(1, 40)).createOrReplaceTempView("moved")
        both.spark.sql("INSERT OVERWRITE TABLE moving SELECT * FROM moved")
        both.spark.sql("DROP VIEW moved")
        return made

    monkeypatch.setattr(disguise, "draw_secrets", drawn)
    columns = {"id": {"role": "identifying", "pseudonym": True}, "select": qi()}
    wanted = job({"schema": "swapped"}, r=release(columns, source="moving", k=2, limit=0.5, person="id"))
    with pytest.raises(VerificationError, match="failed its re-check"):
        anonymize(wanted, both.spark, options=key)
    assert {entry for entry in both.catalogue() if entry[0] != "folder"} == {e for e in before if e[0] != "folder"}
    both.spark.sql("DROP TABLE moving")


def test_a_policy_of_duckdb_is_applied(both: Both) -> None:
    found = anonymize(job({"schema": "earlier"}, r=RELEASES["l distinct"]), both.file)
    again = job({"schema": "again"}, r=RELEASES["l distinct"])
    there = anonymize(again, both.spark, options=Options(policy=found.to_dict())).releases["r"]
    assert there.node == found.releases["r"].node
    assert there.search.method == "policy"
    assert bag(both.there("again.r")) == bag(both.here("earlier.r"))


def test_parquet_is_written_by_the_cluster(both: Both, tmp_path: Path) -> None:
    folder = tmp_path / HOSTILE
    asked = {"a": RELEASES["only quasi-identifiers"], "b": RELEASES["types"]}
    wanted, before = job({"as": "parquet", "into": str(folder)}, **asked), both.catalogue()
    here_job = job({"schema": "parquet"}, **asked)
    planned = plan(wanted, both.url)
    with running() as ran:
        there = anonymize(wanted, both.url)
    hold_listed([step for p in planned for step in explain(p, wanted, both.url).statements or ()], ran)
    here = anonymize(here_job, both.file)
    for name in asked:
        same = [told(found.releases[name]) for found in (there, here)]
        assert len({str(found.pop("policy")["node"]) for found in same}) == 1, "the rest of it is the job's"
        assert same[0] == same[1]
        assert there.releases[name].written == (f"{folder}/{name}.parquet",)
        assert bag(rows(folder, name)) == bag(both.here(f"parquet.{name}"))
    assert there.releases["a"].moved["rows"] < 300, "no row travels"
    assert dict(verify(wanted, both.url)) == dict(verify(here_job, both.file))
    assert told(assess(wanted, both.spark, release=True)) == told(assess(here_job, both.file, release=True))
    assert both.catalogue() == before, "the tables of the run are gone, and the schema that it made"
    assert {path.name for path in folder.iterdir()} == {"_sqldeid", "a.parquet", "b.parquet"}
    assert not list((folder / "_sqldeid").iterdir())

    with pytest.raises(JobError, match="not empty; allow releases there to be replaced with --replace"):
        anonymize(wanted, both.spark)
    with pytest.raises(VerificationError, match="not there, or sqldeid did not make it"):
        verify(job({"as": "parquet", "into": str(folder)}, c=asked["a"]), both.spark)
    both.spark.read.parquet(f"{folder}/a.parquet").limit(9).createOrReplaceTempView("few")
    few = f"{folder}/a.parquet".replace("'", "\\'")
    both.spark.sql("CREATE TABLE kept_few AS SELECT * FROM few")
    note = next((folder / "a.parquet/_sqldeid").glob("*.parquet")).read_bytes()
    both.spark.sql(f"INSERT OVERWRITE DIRECTORY '{few}' USING parquet SELECT * FROM kept_few")
    both.spark.sql("DROP TABLE kept_few")
    with pytest.raises(VerificationError, match="not there, or sqldeid did not make it"):
        verify(wanted, both.spark)
    (folder / "a.parquet/_sqldeid").mkdir()
    (folder / "a.parquet/_sqldeid/note.parquet").write_bytes(note)
    with pytest.raises(VerificationError, match="failed its re-check"):
        verify(wanted, both.spark)


def test_what_a_failed_run_wrote_is_emptied_and_told(both: Both, tmp_path: Path) -> None:
    """The second release's staged table is dropped by somebody else just before it would be written."""
    asked = dict.fromkeys("ab", RELEASES["only quasi-identifiers"])
    wanted, before = (
        job({"as": "parquet", "into": str(tmp_path / "out"), "schema": "staged"}, **asked),
        both.catalogue(),
    )

    def step(name: str, what: str) -> None:
        if what == "publishing" and name == "b":
            for row in both.spark.sql("SHOW TABLES IN staged LIKE 'b__*'").toArrow().to_pylist():
                both.spark.sql(f"DROP TABLE staged.{row['tableName']}")

    with pytest.raises(SqldeidError, match=r"a\.parquet was emptied, which is all that Spark's SQL can do: remove it"):
        anonymize(wanted, both.spark, listener=Listener(step=step))
    assert both.catalogue() == before
    assert rows(tmp_path / "out", "a") == [] and not (tmp_path / "out/b.parquet").exists()
    with pytest.raises(VerificationError, match="not there, or sqldeid did not make it"):
        verify(wanted, both.spark)

    def interrupts(name: str, what: str) -> None:
        if what == "publishing":
            raise KeyboardInterrupt

    wanted = job({"as": "parquet", "into": str(tmp_path / "two")}, a=asked["a"])
    with pytest.raises(Interrupted):
        anonymize(wanted, both.url, listener=Listener(step=interrupts))
    assert both.catalogue() == before and not [path for path in (tmp_path / "two").rglob("*") if path.is_file()]


def test_a_place_that_spark_cannot_have_is_refused_first(both: Both, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for place, told_so in (
        ("out", "write it from the root"),
        (f"{tmp_path}/out[1]", "as a pattern; name another"),
        (f"{tmp_path}/full", "not empty"),
        (f"{tmp_path}/full/mine.txt", "must be a folder, not a file"),
    ):
        with pytest.raises(JobError, match=told_so):
            anonymize(job({"as": "parquet", "into": place}, r=RELEASES["k"]), both.spark)
    for name in ("[pq]", "p*", "p?", "{a,b}"):
        with pytest.raises(JobError, match="letters, digits and _ alone"):
            anonymize(job({"as": "parquet", "into": f"{tmp_path}/out"}, **{name: RELEASES["k"]}), both.spark)
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "mine.txt"]
