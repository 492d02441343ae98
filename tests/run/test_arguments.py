"""What a caller of the Python API gives of a wrong type is refused by the name of the argument, never by its value."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import sqldeid
from sqldeid import Asked, EngineError, Job, JobError, Options, Settings
from tests.run.test_cohorts import PEOPLE, part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

JOB = Job.parse({"release": {"into": "out.duckdb"}, "tables": {"a": part(), "b": part(), "ab": part()}})
ONE = Job.parse({"release": {"into": "out.duckdb"}, "tables": {"a": part()}})
THINGS: tuple[Any, ...] = (
    *(None, 3, 3.5, True, b"canary", "canary", "", ["canary"], [7], {"canary": 1}, (), object(), -1, float("nan")),
    *(np.int64(3), np.float64(0.5), np.str_("canary"), pd.Timestamp("1999-12-31"), Path("canary"), len, ONE),
)
"""What may stand for any argument by mistake."""

FLAG, WHOLE, TEXT, TEXTS, PATH = "flag whole text texts path".split()
OPTIONS = {
    **dict.fromkeys(["replace", "certificate", "explain", "without_ledger", "new_persons"], FLAG),
    **dict.fromkeys(["only", "new_values"], TEXTS),
    **dict.fromkeys(["key_file", "ledger", "house_rules", "policy"], PATH),
    "settings": "",
}
SETTINGS = {"memory_limit": TEXT, "threads": WHOLE, "temp_dir": PATH}
FITS: Mapping[str, Callable[[Any], bool]] = {
    FLAG: lambda v: v is True,
    WHOLE: lambda v: type(v) in (int, np.int64),
    TEXT: lambda v: isinstance(v, str) and v != "",
    TEXTS: lambda v: isinstance(v, list | tuple) and all(isinstance(name, str) for name in v),
    PATH: lambda v: isinstance(v, str | Path) and v != "",
    "": lambda v: False,
}


def taken(make: Callable[[Any], object], value: Any) -> str:
    """The key of the refusal; empty where the value is taken."""
    try:
        make(value)
    except JobError as refused:
        assert "canary" not in refused.message and "1999" not in refused.message
        assert refused.message.startswith(f"{refused.key}: is ")
        return refused.key
    return ""


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.exists", lambda _: True)  # a key file that is not there is another fault
    for value in THINGS:
        left_out = value is None and OPTIONS[name] == PATH
        given = isinstance(value, dict) and name == "policy"
        fits = left_out or given or FITS[OPTIONS[name]](value) is True
        assert taken(lambda v: Options(**{name: v}), value) == ("" if fits else name), value


@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name: str) -> None:
    for value in THINGS:
        fits = value is None or FITS[SETTINGS[name]](value) is True
        assert taken(lambda v: Settings(**{name: v}), value) == ("" if fits else name), value


def test_all_options_and_settings_are_tried() -> None:
    assert {f.name for f in dataclasses.fields(Options)} == OPTIONS.keys()
    assert {f.name for f in dataclasses.fields(Settings)} == SETTINGS.keys()


def test_one_name_is_not_its_letters() -> None:
    """`only="ab"` made the releases a, b and ab."""
    with pytest.raises(JobError, match=r'^only: is of type str; give a list of names, such as \["people"\]$'):
        Options(only="ab")  # type: ignore[arg-type]
    assert Options(only=np.array(["ab"])).only == ("ab",)  # type: ignore[arg-type]
    assert Options(only=(n for n in ["a", "b"])).only == ("a", "b")  # type: ignore[arg-type]


def test_what_is_taken_becomes_what_it_is(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("k")
    options = Options(replace=np.bool_(True), key_file=str(key), settings=Settings(threads=np.int64(2)))  # type: ignore[arg-type]
    assert (options.replace, options.key_file, options.settings.threads) == (True, key, 2)
    assert type(options.replace) is bool and type(options.settings.threads) is int
    asked = Asked(ks=np.array([3, 5]), limits=[np.float32(0.5), 0])  # type: ignore[arg-type]
    assert asked == Asked((3, 5), (0.5, 0.0)) and type(asked.ks[0]) is int


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("p.duckdb") as c:
        c.execute(PEOPLE)
    return "p.duckdb"


WRONG = [3, 3.5, b"canary", "", ["canary"], object(), pd.Timestamp("1999-12-31")]
CALLS: Mapping[str, Callable[[str, Any], object]] = {
    **{
        f"{f.__name__} job": lambda db, v, f=f: f(v, db)  # type: ignore[misc]
        for f in (sqldeid.anonymize, sqldeid.plan, sqldeid.verify, sqldeid.assess)
    },
    **{
        f"{f.__name__} options": lambda db, v, f=f: f(ONE, db, options=v)  # type: ignore[misc]
        for f in (sqldeid.anonymize, sqldeid.plan, sqldeid.verify, sqldeid.assess, sqldeid.explore_job)
    },
    "anonymize listener": lambda db, v: sqldeid.anonymize(ONE, db, listener=v),
    "assess release": lambda db, v: sqldeid.assess(ONE, db, release=v),
    "verify_certificates certificates": lambda db, v: sqldeid.verify_certificates(ONE, db, v),
    "tradeoff asked": lambda db, v: sqldeid.tradeoff(ONE, db, v),
    "Asked ks": lambda db, v: Asked(v, (0.1,)),
    "Asked limits": lambda db, v: Asked((3,), v),
    "Asked local": lambda db, v: Asked((3,), (0.1,), local=v),
    "evaluate label": lambda db, v: sqldeid.evaluate(ONE, db, v),
    "evaluate test": lambda db, v: sqldeid.evaluate(ONE, db, "diag", test=v),
    "evaluate originals": lambda db, v: sqldeid.evaluate(ONE, db, "diag", originals=v),
    "explore table": lambda db, v: sqldeid.explore(db, v),
    "explore person": lambda db, v: sqldeid.explore(db, "p", person=v),
    "explore borders": lambda db, v: sqldeid.explore(db, "p", borders=v),
    "explore settings": lambda db, v: sqldeid.explore(db, "p", settings=v),
    "explore_sequences value": lambda db, v: sqldeid.explore_sequences(db, "p", per=["q"], value=v, order=["seq"]),
    "explore_text column": lambda db, v: sqldeid.explore_text(db, "p", v),
    "explore_text keywords": lambda db, v: sqldeid.explore_text(db, "p", "diag", keywords=v),
    "init table": lambda db, v: sqldeid.init(db, v),
    "init part": lambda db, v: sqldeid.init(db, "p", part=v),
    "safe_harbor table": lambda db, v: sqldeid.safe_harbor(db, v),
    "hold settings": lambda db, v: sqldeid.hold({"p": pd.DataFrame({"x": [1]})}, v),
    "load path": lambda db, v: Job.load(v),
    "parse folder": lambda db, v: Job.parse({}, folder=None if v == "" else v),  # empty: the current folder
    "parse name": lambda db, v: Job.parse({}, name=v),
    "import_arx project": lambda db, v: sqldeid.import_arx(v, "made.toml"),
    "import_arx job": lambda db, v: sqldeid.import_arx("made.deid", v),
    "import_arx encoding": lambda db, v: sqldeid.import_arx("made.deid", "made.toml", encoding=v),
}
"""A call of each public function with something in the place of one argument."""


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_argument_is_named(call: str, source: str) -> None:
    argument = call.split()[1]
    for value in WRONG:
        assert taken(lambda v: CALLS[call](source, v), value) == argument, value
    assert not Path("out.duckdb").exists()


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        *(("per", given) for given in ("q", 3, b"q", {"q": 1}, [3])),
        *(("order", given) for given in ("seq", 3, [None])),
        *(("places", given) for given in ("12", 3, [3], [[1.5]], [[True]], ["1"])),
    ],
)
def test_lists_of_sequences(argument: str, given: object, source: str) -> None:
    asked: dict[str, Any] = {"per": ["q"], "value": "diag", "order": ["seq"], argument: given}
    assert taken(lambda _: sqldeid.explore_sequences(source, "p", **asked), None) == argument


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        *(("columns", given) for given in ("q", 3, b"q", {"q": 1}, [3], [["q"], 3])),
        *(("max_size", given) for given in ("3", 2.0, True, 0, np.float64(2))),
        *(("enough", given) for given in ("0.5", True, None, float("inf"))),
    ],
)
def test_what_is_explored(argument: str, given: Any, source: str) -> None:
    assert taken(lambda _: sqldeid.explore(source, "p", **{argument: given}), None) == argument
    assert taken(lambda _: sqldeid.explore_job(ONE, source, **{argument: given}), None) == argument


@pytest.mark.parametrize(
    ("argument", "given"),
    [*(("seed", given) for given in ("3", 2.0, True, None)), *(("test_share", given) for given in ("0.5", True, None))],
)
def test_numbers_of_evaluate(argument: str, given: Any, source: str) -> None:
    assert taken(lambda _: sqldeid.evaluate(ONE, source, "diag", **{argument: given}), None) == argument


def test_a_model_that_is_none_is_refused_before_anything_is_searched(source: str) -> None:
    with pytest.raises(JobError, match=r"^--model: must be logistic$"):
        sqldeid.evaluate(ONE, "not there.duckdb", "diag", model="forest")  # type: ignore[arg-type]


def changed_column(job: Job) -> Job:
    job.tables["a"].columns["q"] = job.tables["a"].columns["q"].model_copy(update={"role": "insensitive"})
    return job


@pytest.mark.parametrize(
    "change",
    [
        lambda job: job.model_copy(update={"tables": {"a": job.tables["a"].model_copy(update={"person": None})}}),
        lambda job: Job.model_construct(**dict(job)),
        lambda job: Job(**dict(job)),
        changed_column,
    ],
)
def test_a_job_that_was_changed_past_its_rules_is_refused(change: Callable[[Job], Job], source: str) -> None:
    """It ran as it was, under the hash of what had been read."""
    made = Job.parse({"release": {"into": "out.duckdb"}, "tables": {"a": part()}})
    for same in (made, made.model_copy(deep=True), copy.copy(made), pickle.loads(pickle.dumps(made))):
        assert sqldeid.plan(same, source)
    other = change(made)
    for call in (sqldeid.anonymize, sqldeid.plan, sqldeid.verify, sqldeid.assess):
        with pytest.raises(JobError, match=r"^job: was made or changed past Job.load and Job.parse"):
            call(other, source)
    assert not Path("out.duckdb").exists()


def test_a_listener_is_no_class_to_derive_from() -> None:
    """Its methods were never called, without a word."""
    with pytest.raises(JobError, match=r"^listener: .*Listener\(step=…, search=…\)$"):

        class Mine(sqldeid.Listener):
            def step(self, release: str, step: str) -> None: ...


def test_a_closed_connection_is_told() -> None:
    with duckdb.connect() as connection:
        pass
    with pytest.raises(EngineError, match=r"the connection to the database is closed; give one that is open"):
        sqldeid.plan(ONE, connection)


def test_a_job_of_numpy_pandas_and_paths_is_the_job_of_their_values() -> None:
    plain = {
        "release": {"into": "x.duckdb"},
        "about": {"date": date(2020, 1, 2)},
        "tables": {"a": part(columns={"age": {"role": "quasi-identifying", "hierarchy": {"bands": [5, 10]}}})},
    }
    age = {"role": "quasi-identifying", "hierarchy": {"bands": np.array([5, 10])}}
    given = {
        "release": {"into": Path("x.duckdb")},
        "about": {"date": pd.Timestamp("2020-01-02")},
        "tables": {"a": part(columns={"age": age}, k=np.int64(5))},  # type: ignore[arg-type]
    }
    assert Job.parse(given).sha256 == Job.parse(plain).sha256
    with pytest.raises(JobError, match=r"tables\.a\.privacy\.k: must be a whole number"):
        Job.parse({"tables": {"a": part(k=np.bool_(True))}})  # type: ignore[arg-type]


def test_a_path_is_called_what_it_is(source: str) -> None:
    """A database that was given as pathlib.Path was called a connection in the result."""
    options = Options(replace=True, without_ledger=True)
    for given in (source, Path(source)):
        told = sqldeid.anonymize(ONE, given, options=options).to_dict()["source"]
        assert told == {"database": "p.duckdb", "engine": "duckdb"}
