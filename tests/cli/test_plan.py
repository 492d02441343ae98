"""The statements that `--plan` lists are those that a run renders, in their order."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import duckdb
import pytest

import sqldeid
import sqldeid.sql.templates
from sqldeid.tables.release.linked_steps import linked_certificate_steps, linked_steps
from sqldeid.tables.release.release import no_certificate
from sqldeid.tables.release.steps import Step, certificate_steps, purpose, steps
from tests.support.cli import JOB, run

KINDS = {
    "table": "",
    "view": 'as = "view"',
    "parquet": 'as = "parquet"',
    "query": "",
    "all quasi-identifying": "",
    "computed view": 'as = "view"',
    "computed, frozen view": 'as = "view"',
    "criteria": "",
    "criteria, blanked": "",
    "m-concealing": "",
    "stacks": "",
    "many rows": "",
    "many rows, criteria": "",
}
CRITERIA = """
l_diversity = [{ column = "illness", l = 2 }, { column = "illness", l = 2, kind = "entropy" }]
t_closeness = [{ column = "illness", t = 0.9 }, { column = "income", t = 0.8, distance = "ordered" }]
"""


def job_for(kind: str) -> sqldeid.Job:
    text = JOB.partition("[tables.all]")[0].replace(
        'into = "out.duckdb"', f'into = "out.{kind[:5].strip()}"\n{KINDS[kind]}'
    )
    if kind == "query":
        text = text.replace('source = "main.people"', 'source = { query = "SELECT * FROM main.people" }')
    if kind == "all quasi-identifying":
        text = text.replace('illness = { role = "sensitive" }\n', "")
    if "criteria" in kind:
        text = text.replace("k = 3\n", "k = 3\n" + CRITERIA).replace("[tables.people.privacy]", INCOME)
    if kind == "criteria, blanked":
        text = text.replace("k = 3\n", 'k = 3\nsuppression = "blank"\n')
    if kind == "m-concealing":
        text = text.replace("k = 3\n", "k = 3\nm_concealing = { m = 0.5, known = { illness = 0.1 } }\n")
    if "many rows" in kind:
        text = text.replace('person = "id"', 'person = "id"\nrows = "many"')
    if kind == "stacks":
        text += STACKS
    if "computed" in kind:
        text = text.replace('illness = { role = "sensitive" }\n', "").replace('into = "out.compu"\n', "")
        frozen = "frozen = true\n" if "frozen" in kind else ""
        text = text.replace("[tables.people.columns]", f'view = "computed"\n{frozen}\n[tables.people.columns]')
    Path("job.toml").write_text(text)
    return sqldeid.Job.load("job.toml")


STACKS = """
[tables.people.stack.first]
from = "main.people"
on = "id"
through = "main.people"
through_on = "id"
value = "sex"
order = "id"
first = 2
role = "insensitive"

[tables.people.stack.rows]
from = "main.people"
on = "id"
aggregate = "count"
role = "insensitive"
"""
INCOME = """income = { role = "sensitive" }

[tables.people.privacy]"""


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The templates that are loaded from now on."""
    names: list[str] = []
    load = sqldeid.sql.templates.load

    def recording(name: str, dialect: str = "duckdb"):
        names.append(name)
        return load(name, dialect)

    monkeypatch.setattr(sqldeid.sql.templates, "load", recording)
    return names


@pytest.mark.sampled(8)
@pytest.mark.parametrize("certificate", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_those_of_a_run(kind, certificate, folder, rendered):
    job = job_for(kind)
    (plan,) = sqldeid.plan(job, "db.duckdb")
    listed, checking = steps(plan, job.release.kind), certificate_steps(plan)
    rendered.clear()
    result = sqldeid.anonymize(job, "db.duckdb", options=sqldeid.Options(certificate=certificate))
    compare(listed, [name for name in rendered if not name.startswith("engine/") or name == "engine/count_rows"])
    if certificate and not no_certificate(plan):
        rendered.clear()
        sqldeid.verify_certificates(job, "db.duckdb", {"people": result.releases["people"].certificate})
        compare(checking, [name for name in rendered if not name.startswith("engine/") or name == "engine/count_rows"])


LINKED = """
[tables.more]
source = "main.people"
person = "id"
link = "people"
privacy = { k = 3 }

[tables.more.columns]
id = { role = "identifying", pseudonym = true }
income = { role = "quasi-identifying", hierarchy = { suppress = true } }
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["table", "view", "parquet", "query", "criteria", "stacks"])
def test_steps_of_linked_tables_are_those_of_a_run(kind, folder, rendered, monkeypatch):
    monkeypatch.setenv("SQLDEID_KEY", "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0")
    job_for(kind)
    text = Path("job.toml").read_text().replace("[tables.people.columns]", f"[tables.people.columns]\n{PSEUDONYM}")
    # `criteria` asks for the income's closeness: a column has one role in all linked tables
    Path("job.toml").write_text(text + (LINKED.replace("income", "sex") if kind == "criteria" else LINKED))
    job = sqldeid.Job.load("job.toml")
    (plan,) = sqldeid.plan(job, "db.duckdb")
    listed, checking = linked_steps(plan, job.release.kind), linked_certificate_steps(plan)
    rendered.clear()
    result = sqldeid.anonymize(job, "db.duckdb", options=sqldeid.Options(certificate=True))
    rendered.remove("tables/write/stage_rows")  # rendered for a table, then once more for the temporary one that is run
    compare(listed, [name for name in rendered if not name.startswith("engine/") or name == "engine/count_rows"])
    proofs = {name: release.certificate for name, release in result.releases.items()}
    rendered.clear()
    sqldeid.verify_certificates(job, "db.duckdb", proofs)
    compare(checking, [name for name in rendered if not name.startswith("engine/") or name == "engine/count_rows"])


PSEUDONYM = 'id = { role = "identifying", pseudonym = true }'


def compare(listed: tuple[Step, ...], ran: list[str]) -> None:
    """What ran is listed, in the order of its first time; what is listed once or more ran as often."""
    assert set(ran) <= {s.template for s in listed}
    for step in listed:
        if step.times is not None:
            assert step.template in ran, step
    first = {name: ran.index(name) for name in ran}
    order = [first[s.template] for s in listed if s.template in first]
    firsts = list(dict.fromkeys(order))
    assert firsts == sorted(firsts)
    known = Counter()
    for step in listed:
        known[step.template] += step.times if step.times is not None else 1000
    assert {n: c for n, c in Counter(ran).items() if known[n] < 1000 and n not in REPEATED} == {
        n: c for n, c in known.items() if c < 1000 and n not in REPEATED
    }


REPEATED = {"tables/check/histogram_nodes", "tables/check/check_nodes", "publish/comment_table"}


def test_fixed_statements_run_as_they_are_printed(folder):
    """Printed SQL is the run's but for the names of its temporary tables: it runs on the same database."""
    job = job_for("query")
    (plan,) = sqldeid.plan(job, "db.duckdb")
    statements = list(itertools.chain.from_iterable(s.statements for s in steps(plan, "table")))
    assert len(statements) == 4
    with duckdb.connect("db.duckdb") as connection:
        for statement in statements:
            connection.execute(statement).fetchall()
        assert connection.execute("SELECT COUNT(*) FROM people_source").fetchone() == (60,)
        assert connection.execute("SELECT SUM(n) FROM people_values_0").fetchone() == (60,)


def test_purpose_is_one_sentence_of_every_template():
    for name in sqldeid.sql.template_names():
        sentence = purpose(name.partition(".")[0])
        assert sentence.endswith("."), name
        assert "parameters" not in sentence


def test_plan_as_json(folder, capsys):
    plan = run(capsys, "anonymize", "db.duckdb", "--job", "job.toml", "--plan", "--json", "-").json["plan"]["people"]
    assert plan["lattice_size"] == 8
    assert plan["columns"]["age"]["height"] == 4
    assert plan["columns"]["name"] == {"role": "identifying"}
    assert plan["statements"][0]["template"] == "tables/rows/check_person"
