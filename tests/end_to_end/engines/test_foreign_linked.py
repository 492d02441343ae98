"""Linked tables where they lie: both releases are those of DuckDB, row by row, and are checked alike on their join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from sqldeid import (
    Asked,
    Job,
    JobError,
    Options,
    VerificationError,
    anonymize,
    assess,
    plan,
    tradeoff,
    verify,
    verify_certificates,
)
from sqldeid.run import explain
from sqldeid.sql import literal, render
from tests.support.failing import rendering
from tests.support.foreign import InPostgres, bag, foreign, hold_listed, in_duckdb, running
from tests.support.foreign_tables import told
from tests.support.linked_tables import NAMES, PEOPLE, PERSON, STAYS, blanked, settled, stacked, tables, with_key
from tests.support.sources import job, release

__all__ = ["foreign", "settled"]


@dataclass
class Both:
    """The same tables on a server and in a DuckDB file, and the key of their pseudonyms."""

    server: InPostgres
    file: Path
    options: Options

    def here(self, table: str) -> list[tuple[Any, ...]]:
        return local(self.file, table)


def local(file: Path, table: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(file)) as c:
        return c.execute(f"FROM {table}").fetchall()


@pytest.fixture(scope="module")
def both(foreign: InPostgres, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """The persons of one table are of another collation than those of the other; a column has no equality."""
    folder = tmp_path_factory.mktemp("linked")
    for name, rows in tables().items():
        foreign.load(name, rows)
    foreign.run('ALTER TABLE stays ALTER COLUMN "per son" TYPE TEXT COLLATE "und-x-icu"')
    foreign.run("ALTER TABLE stays ALTER COLUMN remark TYPE JSON USING TO_JSON(remark)")
    return Both(foreign, in_duckdb(folder / "linked.duckdb", tables()), with_key(folder))


def assert_joined(people: Sequence[tuple[Any, ...]], stays: Sequence[tuple[Any, ...]]) -> None:
    """Rows with one pseudonym are one person's: what was released of who it is says so."""
    rows = {person: row for person, *_, row in people}
    assert len(people) > 90
    assert rows == {row[0]: row[4] for row in stays}


@pytest.mark.deep
def test_linked_releases_are_those_of_duckdb(both: Both, settled: None) -> None:
    """And all that goes with them: certificate, levels of other k, classes of the sources and of what was written."""
    wanted, databases = stacked(schema="stacked"), (both.server.database, both.file)
    options = Options(key_file=both.options.key_file, certificate=True, explain=True)
    [planned] = plan(wanted, both.server.database)
    with running() as ran:
        there = anonymize(wanted, both.server.database, options=options).releases
    ran.remove("tables/check/list_classes")  # of the comparison with other k
    hold_listed(explain(planned, wanted, both.server.database).statements or (), ran)
    here = anonymize(wanted, both.file, options=options).releases
    for name in NAMES:
        assert told(there[name]) == told(here[name])
        assert bag(both.server.read(f"stacked.{name}")) == bag(both.here(f"stacked.{name}"))
    assert here["stays"].suppressed > 0
    assert_joined(both.server.read("stacked.people"), both.server.read("stacked.stays"))
    for given in (both.options, Options()):
        assert dict(verify(wanted, databases[0], options=given)) == dict(verify(wanted, both.file, options=given))
    proofs = {name: there[name].certificate for name in NAMES}
    assert verify_certificates(wanted, databases[0], proofs) == verify_certificates(wanted, both.file, proofs)
    for released in (False, True):
        looks = [assess(wanted, d, release=released) for d in databases]
        assert looks[0] == looks[1]
    traded = [told(tradeoff(wanted, d, Asked((2, 5), (0.0, 0.1)), options=both.options)) for d in databases]
    assert traded[0] == traded[1]


@pytest.mark.deep
def test_no_more_goes_over_the_wire_than_of_their_join(both: Both) -> None:
    """Tables are joined, written and compared where they are; what comes here are keys, to be hashed, and classes."""
    query = "SELECT p.*, s.ward, s.los, s.same FROM people AS p JOIN stays AS s ON s.same = p.true_row"
    more = {name: role for name, role in STAYS.items() if name not in (*PERSON, "remark")}
    parts = {"people": PEOPLE, "stays": {**PERSON, **more}}
    pair = {name: release(c, source=name, k=4, limit=0.15, person="per son") for name, c in parts.items()}
    one = release({**PEOPLE, **more}, source={"query": query}, k=4, limit=0.15, person="per son")
    linked = job({"schema": "counted"}, people=pair["people"], stays={**pair["stays"], "link": "people"})
    found = anonymize(linked, both.server.database, options=both.options).releases["people"]
    whole = anonymize(job({"schema": "counted_join"}, r=one), both.server.database, options=both.options).releases["r"]
    assert found.linked is not None and found.rows == whole.rows == 160 - found.linked["left_out"]
    assert found.moved["rows"] <= whole.moved["rows"] + 5, "counts of what was joined"


@pytest.mark.deep
@pytest.mark.parametrize("as_", ["view", "parquet"])
def test_blanked_rows_of_a_query(both: Both, as_: str, settled: None, tmp_path: Path) -> None:
    """As a view there; into files here, which are read back into the server to be joined and verified."""
    into = {"into": str(tmp_path / "out")} if as_ == "parquet" else {}
    place = into or {"schema": "blanked"}
    wanted, same = blanked(**place, **{"as": as_}), blanked(schema=f"as_{as_}")
    there = anonymize(wanted, both.server.database, options=both.options).releases
    here = anonymize(same, both.file, options=both.options).releases
    assert here["people"].suppressed
    for name in NAMES:
        assert told({**there[name].to_dict(), "policy": 0}) == told({**here[name].to_dict(), "policy": 0})
        rows = duckdb.read_parquet(f"{tmp_path}/out/{name}.parquet").fetchall() if into else []
        rows = rows or [tuple(v.rstrip() if isinstance(v, str) else v for v in row) for row in read(both, name)]
        assert bag(rows) == bag(both.here(f"as_{as_}.{name}"))
    assert dict(verify(wanted, both.server.database)) == dict(verify(same, both.file))


def read(both: Both, name: str) -> list[tuple[Any, ...]]:
    return both.server.read(f"blanked.{name}")


ENDS = "SELECT MIN(same) FROM told.stays UNION ALL SELECT MAX(same) FROM told.stays"
TAMPERED = {
    "persons exchanged": f"""UPDATE told.stays AS s SET "per son" = o."per son" FROM told.stays AS o
                             WHERE s.same <> o.same AND s.same IN ({ENDS}) AND o.same IN ({ENDS})""",
    "a person of one table only": "DELETE FROM told.people WHERE true_row = (SELECT MIN(true_row) FROM told.people)",
    "another value": """UPDATE told.stays SET remark = TO_JSON('other'::TEXT)
                        WHERE same = (SELECT MAX(same) FROM told.stays)""",
    "another's note": "COMMENT ON TABLE told.stays IS '{note}'",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("what", TAMPERED)
def test_releases_that_were_tampered_with_are_refused(both: Both, what: str) -> None:
    """Each table may be as good as it was; the join is not."""
    wanted = stacked(schema="told")
    anonymize(
        wanted, both.server.database, options=Options(key_file=both.options.key_file, replace=True, without_ledger=True)
    )
    verify(wanted, both.server.database)
    note = "SELECT OBJ_DESCRIPTION('told.stays'::REGCLASS)"
    with both.server.connect() as c:
        (was,) = c.execute(note.encode()).fetchone() or ("",)
    both.server.run(TAMPERED[what].replace("{note}", was.replace('"pseudonym_run": "', '"pseudonym_run": "0')))
    with pytest.raises(VerificationError):
        verify(wanted, both.server.database)


def test_what_is_joined_wrongly_is_not_published(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second table's rows beside the wrong persons: JSON is compared, too."""
    before, wrong = both.server.catalogue(), []

    def mistaken(template: str, /, *dialect: str, **parameters: Any) -> str:
        if template == "tables/rows/join_linked" and not wrong:
            wrong.append(template)
            remark = next(c for c in parameters["columns"] if str(c["name"].this) == "stays/remark")
            remark["value"] = exp.cast(literal('"other"'), "JSON")
        return render(template, *dialect, **parameters)

    rendering(monkeypatch, mistaken)
    with pytest.raises(VerificationError, match=r"stays\.link: .* rows differ where the tables are joined once more"):
        anonymize(stacked(schema="wrong"), both.server.database, options=both.options)
    assert wrong and both.server.catalogue() == before


def test_a_name_that_is_cut_only_in_the_join(both: Both) -> None:
    """The release's name before the column's, and what else stands before that of a pseudonym."""
    wanted = stacked(schema="long")
    parts = {"people": wanted.tables["people"], "s" * 63: wanted.tables["stays"]}
    renamed = Job.parse({**wanted.model_dump(by_alias=True, exclude_unset=True), "tables": parts})
    with pytest.raises(JobError, match=r"columns\.per son: .* longer than the 63 bytes that Postgres keeps") as error:
        anonymize(renamed, both.server.database, options=both.options)
    assert error.value.key == f"tables.{'s' * 63}.columns.per son"
