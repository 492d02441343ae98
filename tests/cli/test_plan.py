"""Each stage of a run renders the statements that it names and `--plan` shows, as often as it says."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import duckdb
import pytest

import sqldeid
import sqldeid.sql.templates
from sqldeid.run import explain
from sqldeid.sql.steps import purpose
from sqldeid.stages import Step, Target
from tests.support.cli import JOB, run
from tests.support.stages import Watched, watched

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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("certificate", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_stages_run_what_they_name(kind, certificate, folder):
    job = job_for(kind)
    hold(job, sqldeid.Options(certificate=certificate))


def hold(job: sqldeid.Job, options: sqldeid.Options) -> None:
    """Run a job, and check its certificates: what each stage runs is what it names, and what the plan shows."""
    (plan,) = sqldeid.plan(job, "db.duckdb")
    shown = explain(plan, job, "db.duckdb")
    with watched() as watch:
        result = sqldeid.anonymize(job, "db.duckdb", options=options)
    target = Target(job.release.kind, "duckdb", str)
    for stage, ran in watch.ran:
        compare(tuple(stage.statements(target)), ran)
    named = [step for stage, _ in watch.ran for step in stage.statements(target)]
    assert named == list(shown.statements or ())
    if options.certificate and shown.certificate is not None:
        ran = certificate_statements(job, result)
        compare(shown.certificate, ran)


def certificate_statements(job: sqldeid.Job, result: sqldeid.Result) -> list[str]:
    """What the check of all certificates renders."""
    watch = Watched()
    watch._open.append([])
    proofs = {name: release.certificate for name, release in result.releases.items()}
    with pytest.MonkeyPatch.context() as patched:
        load = sqldeid.sql.templates.load
        patched.setattr(sqldeid.sql.templates, "load", lambda name, *d: (watch.note(name), load(name, *d))[1])
        sqldeid.verify_certificates(job, "db.duckdb", proofs)
    return watch._open[0]


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
def test_stages_of_linked_tables_run_what_they_name(kind, folder, monkeypatch):
    monkeypatch.setenv("SQLDEID_KEY", "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0")
    job_for(kind)
    text = Path("job.toml").read_text().replace("[tables.people.columns]", f"[tables.people.columns]\n{PSEUDONYM}")
    # `criteria` asks for the income's closeness: a column has one role in all linked tables
    Path("job.toml").write_text(text + (LINKED.replace("income", "sex") if kind == "criteria" else LINKED))
    hold(sqldeid.Job.load("job.toml"), sqldeid.Options(certificate=True))


PSEUDONYM = 'id = { role = "identifying", pseudonym = true }'


def compare(named: tuple[Step, ...], ran: list[str]) -> None:
    """What ran is named, in the order of its first time; what is named as often as so many ran so often."""
    times, counted = Counter[str](), Counter(ran)
    for step in named:
        times[step.template] += MANY if step.times is None else step.times
    assert set(ran) <= set(times)
    exact = {name: n for name, n in times.items() if n < MANY and name not in REPEATED}
    assert {name: counted[name] for name in exact} == exact
    order = [ran.index(name) for name in dict.fromkeys(s.template for s in named) if name in ran]
    assert order == sorted(order)


MANY = 1000
REPEATED = {
    "tables/check/histogram_nodes",
    "tables/check/check_nodes",
    "publish/comment_table",
    "tables/write/stage_rows",  # of linked tables: rendered for a table, then once more for the temporary one
}


def test_fixed_statements_run_as_they_are_printed(folder):
    """Printed SQL is the run's but for the names of its temporary tables: it runs on the same database."""
    job = job_for("query")
    (plan,) = sqldeid.plan(job, "db.duckdb")
    statements = list(itertools.chain.from_iterable(s.statements for s in explain(plan, job, "db.duckdb").statements))
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
