"""A classifier on the release, tested on rows of the same node: the split, the generalisation, and every refusal."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

import sqldeid
from sqldeid.insight.utility_model import Features, fit_and_score, most_frequent
from sqldeid.report.evaluated import print_classification
from tests.support.cli import run
from tests.support.sources import insert

COLUMNS = {
    "age": {"role": "quasi-identifying", "hierarchy": {"bands": [10, 50]}},
    "sex": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
    "score": {"role": "insensitive"},
    "ill": {"role": "sensitive"},
    "name": {"role": "identifying"},
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People whose illness follows their score, with NULLs everywhere but in the key."""
    draw, path = random.Random(4), tmp_path_factory.mktemp("evaluate") / "p.duckdb"
    rows = []
    for i in range(400):
        score = draw.gauss(0, 1)
        ill = "canary" if score + draw.gauss(0, 0.5) > 0 else "none"
        age = draw.choice([None, *range(20, 70)])
        rows.append(
            (i, f"n{i}", age, draw.choice("fm"), score if draw.random() > 0.1 else None, ill, draw.choice("abc"))
        )
    rows[3] = (*rows[3][:5], None, "a")
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE people (id INTEGER, name VARCHAR, age INTEGER, sex VARCHAR, score DOUBLE, ill VARCHAR, kind "
            "VARCHAR)"
        )
        insert(connection, "people", rows)
        connection.execute("CREATE TABLE shuffled AS SELECT * FROM people ORDER BY md5(name)")
        connection.execute("CREATE TABLE held AS SELECT * FROM people WHERE id % 4 = 0")
        connection.execute("CREATE TABLE rest AS SELECT * FROM people WHERE id % 4 > 0")
        connection.execute("CREATE TABLE few AS SELECT * FROM people LIMIT 3")
        connection.execute("CREATE TABLE same AS SELECT * REPLACE ('x' AS ill) FROM people")
        connection.execute("CREATE TABLE missing AS SELECT * REPLACE (CAST(NULL AS VARCHAR) AS ill) FROM people")
    return path


def job(source: str = "people", **part: object) -> sqldeid.Job:
    table = {
        "source": source,
        "person": "id",
        "columns": COLUMNS,
        "privacy": {"k": 3, "suppression_limit": 0.1},
        **part,
    }
    return sqldeid.Job.parse({"release": {"into": "nowhere.duckdb"}, "tables": {"people": table}})


def test_a_release_is_measured_and_nothing_is_published(database, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = database.read_bytes()
    found = sqldeid.evaluate.classification(job(), database, "ill")
    assert found.train + found.test == 399, "one row has no label"
    assert 80 < found.test < 160
    assert found.originals is not None and found.originals.accuracy > 0.7 > 0.62 > found.baseline
    assert found.anonymised.accuracy > 0.7, "score is released as it is"
    assert found.anonymised.rows - (found.train - found.suppressed) in (0, 1), "the row without a label"
    assert found.k >= 3 and found.classes == 2 and found.features == ("age", "sex", "score")
    assert list(tmp_path.iterdir()) == [] and database.read_bytes() == before
    assert "canary" not in json.dumps(found.to_dict())


@pytest.mark.deep
def test_a_seed_splits_the_same_persons_alike_whatever_their_order(database):
    one = sqldeid.evaluate.classification(job(), database, "ill", seed=5, originals=False)
    other = sqldeid.evaluate.classification(job("shuffled"), database, "ill", seed=5, originals=False)
    assert one.originals is None
    assert (one.test, one.node, one.anonymised) == (other.test, other.node, other.anonymised)
    third = sqldeid.evaluate.classification(job(), database, "ill", seed=6, originals=False)
    assert (third.test, third.anonymised) != (one.test, one.anonymised)
    nobody = {"person": None, "rows_are_persons": True}
    rows = [sqldeid.evaluate.classification(job(t, **nobody), database, "ill", seed=5) for t in ("people", "shuffled")]
    assert (rows[0].test, rows[0].anonymised) == (rows[1].test, rows[1].anonymised)


def test_held_out_rows_are_generalised_by_the_node_of_the_training_part(database):
    """The same numbers as a release that is published, read back, and met by test rows generalised by hand."""
    alone = {"columns": {n: c for n, c in COLUMNS.items() if n != "score"}, "privacy": {"k": 40}}
    found = sqldeid.evaluate.classification(job("rest", **alone), database, "ill", test="main.held")
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{database}' AS p (READ_ONLY)")
        connection.execute("CREATE TABLE people AS FROM p.rest")
        published = sqldeid.Job.parse(
            {
                "tables": {
                    "people": {
                        **job("people", **alone)
                        .tables["people"]
                        .model_dump(exclude_none=True, include={"source", "person"}),
                        "columns": alone["columns"],
                        "privacy": {"k": 40},
                    }
                }
            }
        )
        made = sqldeid.anonymize(published, connection).releases["people"]
        assert dict(made.node) == dict(found.node) and made.suppressed == found.suppressed
        train = connection.execute(
            "SELECT CAST(age AS VARCHAR), CAST(sex AS VARCHAR), ill FROM release.people WHERE ill IS NOT NULL"
        ).fetchall()
        test = connection.execute("SELECT age, sex, ill FROM p.held WHERE ill IS NOT NULL").fetchall()

    def band(age: int | None) -> str | None:
        width = {1: 10, 2: 50}.get(made.node["age"])
        if made.node["age"] == 3:
            return "*"
        if age is None or width is None:
            return None if age is None else str(age)
        low = age // width * width
        return f"[{low}, {low + width})"

    assert made.node["age"] > 0, "there is something to generalise"
    by_hand = [(band(a), "*" if made.node["sex"] else s, i) for a, s, i in test]
    assert {a for a, *_ in by_hand} <= {a for a, *_ in train} | {None}
    scores, _ = fit_and_score("logistic", features(train), features(by_hand))
    assert found.anonymised.accuracy == pytest.approx(scores.accuracy)
    assert found.anonymised.roc_auc == pytest.approx(scores.roc_auc)
    assert found.test == len(test) and found.seed is None


def features(rows: list[tuple[str | None, ...]]) -> Features:
    *columns, labels = zip(*rows, strict=True)
    return Features(
        tuple(f"c{i}" for i in range(len(columns))),
        tuple(pa.array(c, pa.string()) for c in columns),
        np.array(labels, dtype=object),
    )


def test_mixed_levels_tell_a_model_their_ancestors(database):
    """The same numbers as indicators that are made by hand of a release that is published, and of rows as they were."""
    part = {"columns": {n: c for n, c in COLUMNS.items() if n != "score"}, "search": {"method": "local", "layers": 3}}
    found = sqldeid.evaluate(job("rest", **part), database, "ill", test="main.held")
    assert found.node == {} and found.indicators == "ancestors"
    assert {n: sum(x > 0 for x in shares) for n, shares in found.levels.items()}["age"] > 1, "levels are mixed"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{database}' AS p (READ_ONLY)")
        connection.execute("CREATE TABLE people AS FROM p.rest")
        asked = job("people", **part).model_dump(exclude_unset=True)["tables"]
        sqldeid.anonymize(sqldeid.Job.parse({"tables": asked}), connection)
        shown = connection.execute("SELECT age, sex, ill FROM release.people WHERE ill IS NOT NULL").fetchall()
        rest = connection.execute("SELECT age, sex, ill FROM people WHERE ill IS NOT NULL").fetchall()
        held = connection.execute("SELECT age, sex, ill FROM p.held WHERE ill IS NOT NULL").fetchall()
    leaves = {age for age, *_ in rest + held}
    above = {str(age): [str(age), *ancestors(age)] for age in leaves} | {"*": ["*"]}
    above |= {labels[i]: labels[i:] for labels in map(ancestors, leaves) for i in range(len(labels))}
    names = sorted({(0, name) for of in above.values() for name in of} | {(1, s) for s in "fm*"})

    def indicators(rows: list[tuple[object, str, str]]) -> tuple[np.ndarray, list[str]]:
        said = [{*((0, name) for name in above[str(age)]), (1, sex), (1, "*")} for age, sex, _ in rows]
        return np.array([[name in of for name in names] for of in said], dtype=float), [ill for *_, ill in rows]

    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    test, ill = indicators(held)
    for rows, scores in ((shown, found.anonymised), (rest, found.originals)):
        model = LogisticRegression(max_iter=1000).fit(*indicators(rows))
        assert scores is not None and scores.rows == len(rows)
        chances = model.predict_proba(test)[:, list(model.classes_).index("none")]
        assert scores.roc_auc == pytest.approx(roc_auc_score([i == "none" for i in ill], chances), abs=1e-3)
    with io.StringIO() as written:
        print_classification(found, Console(file=written, width=200))
        assert "each tells the model itself and all its ancestors" in written.getvalue()
        assert "as they were" in written.getvalue() and "Levels of age" in written.getvalue()


def ancestors(age: int | None) -> list[str]:
    """The labels above an age, of which a missing one is under the top alone."""
    if age is None:
        return ["None", "None", "*"]
    return [*(f"[{age // w * w}, {age // w * w + w})" for w in (10, 50)), "*"]


@pytest.mark.parametrize("suppression", ["drop", "blank"])
def test_suppressed_rows_are_not_trained_on_and_blanked_ones_are(database, suppression):
    hard = {
        "privacy": {"k": 5, "suppression_limit": 0.9, "suppression": suppression},
        "search": {"loss": "prec"},
    }
    found = sqldeid.evaluate.classification(job(**hard), database, "ill")
    assert found.suppressed > 0
    if suppression == "blank":
        assert found.anonymised.rows == found.train
    else:
        assert found.anonymised.rows - (found.train - found.suppressed) in (0, 1), "the row without a label"
    assert found.originals is not None and found.originals.rows == found.train


def test_a_label_of_several_classes_beside_the_job(database):
    found = sqldeid.evaluate.classification(job(), database, "KIND")
    assert found.classes == 3 and found.label == "kind"
    assert found.anonymised.roc_auc is not None and 0.3 < found.anonymised.roc_auc < 0.7
    assert found.features == ("age", "sex", "score", "ill")


def test_an_open_connection_is_left_as_it_was(database):
    with duckdb.connect(str(database)) as connection:
        found = sqldeid.evaluate.classification(job(), connection, "ill")
        assert found.anonymised == sqldeid.evaluate.classification(job(), connection, "ill").anonymised
        left = connection.execute("SELECT COUNT(*) FROM duckdb_databases() WHERE NOT internal").fetchall()
        assert left == [(1,)]
        assert connection.execute("SELECT COUNT(*) FROM duckdb_tables() WHERE temporary").fetchall() == [(0,)]


def test_the_areas_of_several_classes_and_of_one():
    train = Features(("x",), (pa.array([0.0, 1.0, 2.0] * 8),), np.array(["a", "b", "c"] * 8, dtype=object))
    test = Features(("x",), (pa.array([0.0, 2.0, None]),), np.array(["a", "c", "new"], dtype=object))
    scores, told = fit_and_score("logistic", train, test)
    assert scores.accuracy == pytest.approx(2 / 3) and scores.roc_auc is not None and told == ()
    one = Features(("x",), (pa.array([1.0, 2.0]),), np.array(["a", "a"], dtype=object))
    scores, told = fit_and_score("logistic", one, test)
    assert (scores.accuracy, scores.roc_auc) == (pytest.approx(1 / 3), None) and "one class only" in told[0]
    assert most_frequent(train.labels, test.labels) == pytest.approx(1 / 3)


def test_numbers_that_cannot_be_standardised_count_as_missing():
    def rows(*values: float | None) -> Features:
        labels = np.array([*["a", "b"] * (len(values) // 2), *["a"] * (len(values) % 2)], dtype=object)
        return Features(("x",), (pa.array(values, pa.float64()),), labels)

    known = [0.0, 1.0, 0.1, 0.9, 0.2, 1.1]
    infinite, told = fit_and_score("logistic", rows(*known, float("inf"), float("-inf")), rows(*known))
    missing, _ = fit_and_score("logistic", rows(*known, None, None), rows(*known))
    assert infinite == missing and told == ("infinite numbers of x, and those beyond 1e+140, count as missing",)
    for huge in ([1.7e308, -1.7e308], [1.7e308, 5e-324] * 20):
        assert fit_and_score("logistic", rows(*known, *huge), rows(*known, *huge))[1] == told
    _, told = fit_and_score("logistic", rows(*known, 1e139, 1e139), rows(*known))
    assert not any("missing" in said for said in told)


def test_infinite_and_far_dates_are_no_internal_error(tmp_path):
    with duckdb.connect(str(tmp_path / "far.duckdb")) as c:
        c.execute(
            "CREATE TABLE people AS SELECT n AS id, "
            "CASE n % 9 WHEN 0 THEN DATE 'infinity' WHEN 1 THEN DATE '-infinity' "
            "WHEN 2 THEN NULL ELSE DATE '2020-01-01' + CAST(n AS INTEGER) END AS born, "
            "CASE WHEN n % 7 = 0 THEN TIMESTAMP 'infinity' ELSE TIMESTAMP '9999-01-01' END AS seen, "
            "n % 2 AS sex, CASE WHEN n % 3 = 0 THEN 'a' ELSE 'b' END AS ill FROM range(400) t(n)"
        )
    columns = {
        "born": {"role": "quasi-identifying", "hierarchy": {"suppress": True}},
        "seen": {"role": "insensitive"},
        "ill": {"role": "sensitive"},
    }
    part = {"source": "people", "person": "id", "columns": columns, "privacy": {"k": 5, "suppression_limit": 0.9}}
    asked = sqldeid.Job.parse({"tables": {"people": part}})
    found = sqldeid.evaluate.classification(asked, tmp_path / "far.duckdb", "ill")
    assert found.originals is not None and any("count as missing" in said for said in found.warnings)


@pytest.mark.parametrize(
    ("label", "part", "options", "said"),
    [
        ("shoe", {}, {}, '--label: people has no column "shoe"; it has id, name'),
        ("age", {}, {}, "--label: age is quasi-identifying in tables.people"),
        ("id", {}, {}, "--label: id is the person key"),
        ("name", {}, {}, "values, more than 100 classes"),
        ("ill", {"source": "same"}, {}, "--label: ill has one value in the training part"),
        ("ill", {"source": "missing"}, {}, "--label: ill has no value in the training part"),
        ("ill", {"source": "few"}, {"test_share": 0.0001}, "--label: ill has no value in the test part (0 rows)"),
        ("ill", {"where": "id < 0"}, {}, "has no rows"),
        ("ill", {}, {"test": "nobody"}, "there is no table or view nobody"),
        ("ill", {}, {"test_share": 1.0}, "--test-share: a share is above 0 and below 1"),
        (
            "ill",
            {
                "columns": {"age": COLUMNS["age"]},
                "search": {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.25, "epsilon": 1.0, "population": 400}},
            },
            {},
            "epsilon-safe release",
        ),
        ("ill", {"columns": {"ill": {"role": "sensitive"}}}, {}, "columns"),
    ],
)
def test_what_cannot_be_measured_is_refused(database, label, part, options, said):
    with pytest.raises(sqldeid.JobError) as refused:
        sqldeid.evaluate.classification(job(**part), database, label, **options)
    assert said in refused.value.message
    assert "canary" not in refused.value.message


def test_with_rows_of_its_own_to_test_on_what_is_measured_is_what_was_published(database, tmp_path):
    """`docs/evaluate.md`: without them the published release holds the test rows, and is not measured."""
    wanted = sqldeid.Job.parse(
        {
            "release": {"into": "out.duckdb"},
            "tables": {"people": job("rest").model_dump(exclude_unset=True)["tables"]["people"]},
        },
        folder=tmp_path,
    )
    published = sqldeid.anonymize(wanted, database).releases["people"]
    found = sqldeid.evaluate(wanted, database, "ill", test="held", originals=False)
    assert (found.node, found.k) == (published.node, published.k)
    assert found.suppressed == published.suppressed
    for measured, said in ((found, "the published one is the same where source and job are"), (None, "holds the test")):
        measured = measured or sqldeid.evaluate(wanted, database, "ill", originals=False)
        with io.StringIO() as written:
            print_classification(measured, Console(file=written, width=200))
            assert said in written.getvalue()


def test_the_command(database, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = '[release]\ninto = "out.duckdb"\n'
    for name in ("one", "two"):
        text += f'[tables.{name}]\nsource = "people"\nperson = "id"\n[tables.{name}.columns]\n'
        text += 'age = { role = "quasi-identifying", hierarchy = { bands = [10, 50] } }\nill = { role = "sensitive" }\n'
        text += f"[tables.{name}.privacy]\nk = 3\n"
    Path("job.toml").write_text(text, encoding="utf-8")
    ran = run(capsys, "evaluate", database, "--job", "job.toml", "--label", "ill")
    assert ran.code == 2 and "by --only; the job has one, two" in " ".join(ran.err.split())
    ran = run(capsys, "evaluate", database, "--job", "job.toml", "--label", "ill", "--only", "two", "--json", "x.json")
    assert ran.code == 0 and "the originals" in ran.out and "ROC-AUC" in ran.out, ran.err
    written = json.loads(Path("x.json").read_text())
    assert written["evaluated"]["release"] == "two" and "holder" in written["audience"]
    assert "canary" not in ran.out + json.dumps(written)
    assert not Path("out.duckdb").exists()


def test_a_missing_extra_is_named(database, monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(sqldeid.JobError, match=r"pip install 'sqldeid\[utility\]'"):
        sqldeid.evaluate.classification(job(), database, "ill")


KEYLESS = {"person": None, "rows_are_persons": True}


def refused(database: Path, source: str, test: str, **part: object) -> str:
    with pytest.raises(sqldeid.JobError) as raised:
        sqldeid.evaluate(job(source, **part), database, "ill", test=test, originals=False)
    assert "canary" not in raised.value.message
    return raised.value.message.removeprefix("job: tables.people: ").removeprefix("job: ")


@pytest.fixture(scope="module")
def held(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Test rows that are spelt otherwise than the training part, in one way each."""
    path = tmp_path_factory.mktemp("held") / "p.duckdb"
    path.write_bytes(database.read_bytes())
    changed = {
        "text_age": "CAST(age AS VARCHAR) AS age",
        "big_age": "CAST(age AS BIGINT) AS age, CAST(score AS FLOAT) AS score",
        "text_id": "CAST(id AS VARCHAR) AS id",
        "dotted": "ill || '.' AS ill",
        "half_dotted": "CASE WHEN ill = 'none' THEN 'none.' ELSE ill END AS ill",
        "true_ill": "ill = 'canary' AS ill",
        "other_way": "CAST(score AS VARCHAR) AS score",
    }
    with duckdb.connect(str(path)) as connection:
        for name, replaced in changed.items():
            connection.execute(f"CREATE TABLE {name} AS SELECT * REPLACE ({replaced}) FROM held")
        connection.execute("CREATE VIEW seen AS SELECT * FROM people WHERE id % 4 = 0")
        connection.execute("CREATE VIEW seen_through AS SELECT * FROM seen")
        connection.execute("CREATE VIEW first_part AS SELECT * FROM people WHERE id % 4 > 0")
        connection.execute("CREATE TABLE copied AS SELECT * FROM people WHERE id % 4 = 0")
        connection.execute("CREATE TABLE again AS SELECT * REPLACE (id // 4 AS id) FROM held")
    return path


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("text_age", "--test: age is of type VARCHAR in text_age, and of type INTEGER in rest: "),
        ("other_way", "--test: score is of type VARCHAR in other_way, and of type DOUBLE in rest: "),
        ("text_id", "--test: id is of type text in text_id, and of type integer in rest: "),
        ("true_ill", "--test: ill is of type BOOLEAN in true_ill, and of type VARCHAR in rest: "),
        ("dotted", "--test: no value of ill in dotted is one that rest has; write the labels alike in both"),
    ],
)
def test_rows_of_other_types_or_labels_are_no_test(held, test, said):
    assert refused(held, "rest", test).startswith(said)


def test_types_that_spell_values_alike_are_no_others(held):
    figures = [sqldeid.evaluate(job("rest"), held, "ill", test=t, originals=False) for t in ("held", "big_age")]
    assert figures[0].anonymised.accuracy == figures[1].anonymised.accuracy
    assert not figures[1].warnings


def test_labels_that_the_source_has_not_are_told(held):
    found = sqldeid.evaluate(job("rest"), held, "ill", test="half_dotted", originals=False)
    with duckdb.connect(str(held), read_only=True) as connection:
        lost, rows = connection.execute(
            "SELECT COUNT(*) FILTER (ill = 'none.'), COUNT(ill) FROM half_dotted"
        ).fetchone()
    assert found.warnings == (
        f"tables.people: {lost} of {rows} rows of half_dotted have a value of ill that rest has not, and no model can "
        "name it: 1 of 2 values are in both",
    )


@pytest.mark.parametrize("test", ["people", "seen", "seen_through", "copied"])
def test_persons_of_the_training_part_are_no_test(held, test):
    count = 400 if test == "people" else 100
    told = refused(held, "people", test)
    assert told.startswith(
        f"--test: {count} of {count} persons of {test} are in people by id: a model is not tested on"
    )
    assert "number those of one on from the other's last" in told
    assert refused(held, "people", test, where="id < 200").startswith(f"--test: {count // 2} of {count // 2} persons")


def test_persons_that_each_table_numbers_from_its_first_are_told(held):
    told = refused(held, "rest", "again")
    assert told.startswith("--test: 75 of 100 persons of again are in rest by id")


@pytest.mark.parametrize("test", ["people", "seen", "seen_through"])
def test_without_a_key_the_source_and_its_views_are_no_test(held, test):
    said = f"--test: {test} is people, or a view over it, and without a person key"
    assert refused(held, "people", test, **KEYLESS).startswith(said)
    assert refused(held, "main.people", test, where="id < 200", **KEYLESS).startswith(
        said.replace("people,", "main.people,")
    )


def test_without_a_key_equal_rows_are_told(held):
    asked = job("people", **KEYLESS)
    found = sqldeid.evaluate(asked, held, "ill", test="copied", originals=False)
    assert found.warnings[0].startswith("tables.people: 100 of 100 rows of copied are equal to rows of people in all")
    for source, test in (("rest", "held"), ("first_part", "seen")):
        assert not sqldeid.evaluate(job(source, **KEYLESS), held, "ill", test=test, originals=False).warnings
