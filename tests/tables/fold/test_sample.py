"""Samples of persons by a secret key: whom they hold, that they stay the same, and who refuses them."""

from __future__ import annotations

import hashlib
import hmac
import json
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqldeid
from sqldeid.errors import JobError, VerificationError
from sqldeid.keys import Key
from sqldeid.run import explain
from sqldeid.tables.fold.sample import chooser
from tests.support.foreign import hold_listed, running
from tests.support.sources import INSENSITIVE, job, qi, release

PAGE = Path(__file__).parents[3] / "docs/sample.md"
AGAIN: dict[str, Any] = {"replace": True, "without_ledger": True}
KEY, OTHER = (hashlib.sha256(word).hexdigest() for word in (b"sample", b"other sample"))
"""Fixed keys: of drawn ones, some name hardly anybody beyond a share, or the same persons as another."""


def example() -> dict[str, Any]:
    """The job of the page."""
    found: dict[str, Any] = tomllib.loads(PAGE.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0])
    return found


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(KEY)
    path.chmod(0o600)
    return path


@pytest.fixture
def register(tmp_path: Path) -> Path:
    path = tmp_path / "register.duckdb"
    with duckdb.connect(str(path)) as c:
        c.execute(
            "CREATE TABLE residents AS SELECT i AS id, CAST(20 + (i * 7) % 60 AS INTEGER) AS age, "
            "['f', 'm'][1 + i % 2] AS sex, CAST(i % 3 AS TEXT) AS illness, 'n' || i AS name FROM RANGE(3000) AS r(i)"
        )
        c.execute("CREATE TABLE visits AS SELECT id, j, j + id % 4 AS days FROM residents, RANGE(2) AS q(j)")
    return path


def chosen(key: Path, share: Fraction, persons: range) -> set[int]:
    """By the page's words, with the standard library."""
    secret, scope = bytes.fromhex(key.read_text()), b"\x00\x00\x00\x10sqldeid sample 1"
    digests = {i: hmac.digest(secret, scope + str(i).encode(), "sha256") for i in persons}
    return {i for i, d in digests.items() if int.from_bytes(d[:16], "big") < share * 2**128}


def names(path: Path, table: str) -> list[int]:
    with duckdb.connect(str(path), read_only=True) as c:
        return [int(n[1:]) for (n,) in c.execute(f"SELECT name FROM release.{table}").fetchall()]


def asked(share: float, **more: Any) -> sqldeid.Job:
    columns = {"age": qi({"bands": [20, 60]}), "sex": qi(), "name": INSENSITIVE}
    table = release(columns, source="residents", person="id", k=2, limit=0.2, sample=share)
    return job({}, part={"attacks": False} | table | more)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_who_is_in_it_is_who_the_keyed_hash_names(register: Path, key: Path, share: float) -> None:
    options = sqldeid.Options(key_file=key)
    made = sqldeid.anonymize(asked(share), register, options=options).releases["part"]
    wanted = chosen(key, Fraction(repr(share)), range(3000))
    assert made.rows == len(wanted)
    assert abs(len(wanted) - 3000 * share) < 6 * (3000 * share * (1 - share)) ** 0.5 + 1
    there = names(register, "part")
    assert len(there) == made.released and set(there) <= wanted
    assert sqldeid.verify(asked(share), register, options=options)["part"].rows == len(wanted)
    again = sqldeid.anonymize(asked(share), register, options=sqldeid.Options(key_file=key, **AGAIN))
    assert again.releases["part"].rows == made.rows and sorted(names(register, "part")) == sorted(there)
    assert any("another key draws another sample" in w for w in made.warnings)


def test_shares_are_nested_and_another_key_is_another_sample() -> None:
    first, second = Key(bytes(range(32))), Key(bytes(range(1, 33)))
    persons = [str(i).encode() for i in range(20_000)]
    told = {share: [chooser(first, Fraction(share))(p) for p in persons] for share in ("1/100", "1/10", "1/2")}
    assert all(b == "1" for a, b in zip(told["1/100"], told["1/10"], strict=True) if a == "1")
    assert all(b == "1" for a, b in zip(told["1/10"], told["1/2"], strict=True) if a == "1")
    other = [chooser(second, Fraction(1, 10))(p) for p in persons]
    both = sum(a == b == "1" for a, b in zip(told["1/10"], other, strict=True))
    assert 120 < both < 280, "as many as two draws of a tenth share by chance"


def test_tables_of_a_job_hold_the_same_persons(register: Path, key: Path) -> None:
    columns = {"days": qi({"bands": [2]}), "name": INSENSITIVE}
    source = {"query": "SELECT v.id, v.days, r.name FROM visits AS v JOIN residents AS r ON r.id = v.id WHERE v.j = 1"}
    visits = release(columns, source=source, person="id", k=2, limit=0.3, attacks=False, sample=0.2)
    people = asked(0.2).model_dump(mode="json", by_alias=True, exclude_unset=True)["tables"]["part"]
    both = job({}, part=people, seen=visits)
    made = sqldeid.anonymize(both, register, options=sqldeid.Options(key_file=key))
    assert made.releases["part"].rows == made.releases["seen"].rows
    wanted = chosen(key, Fraction(1, 5), range(3000))
    for table in ("part", "seen"):
        suppressed = made.releases[table].suppressed
        assert len(wanted - set(names(register, table))) == suppressed and set(names(register, table)) <= wanted
    assert set(sqldeid.verify(both, register, options=sqldeid.Options(key_file=key))) == {"part", "seen"}


def test_all_rows_of_a_person_are_in_it_or_none(register: Path, key: Path) -> None:
    columns = {"days": qi({"bands": [2]}), "illness": INSENSITIVE}
    source = {"query": "SELECT v.id, v.days, r.illness FROM visits AS v JOIN residents AS r ON r.id = v.id"}
    many = job({}, seen=release(columns, source=source, person="id", rows="many", k=3, limit=0.3, sample=0.1))
    made = sqldeid.anonymize(many, register, options=sqldeid.Options(key_file=key)).releases["seen"]
    assert made.rows == 2 * len(chosen(key, Fraction(1, 10), range(3000)))
    sqldeid.verify(many, register, options=sqldeid.Options(key_file=key))


def test_verify_needs_the_key_and_the_share(register: Path, key: Path, tmp_path: Path) -> None:
    options = sqldeid.Options(key_file=key)
    sqldeid.anonymize(asked(0.3), register, options=options)
    with pytest.raises(JobError, match=r"tables\.part\.sample: needs a secret key"):
        sqldeid.verify(asked(0.3), register)
    with pytest.raises(VerificationError, match="of another share of persons"):
        sqldeid.verify(asked(0.4), register, options=options)
    other = tmp_path / "other"
    other.write_text(OTHER)
    other.chmod(0o600)
    with pytest.raises(VerificationError, match="or the key is another than the one it was made with"):
        sqldeid.verify(asked(0.3), register, options=sqldeid.Options(key_file=other))
    with duckdb.connect(str(register)) as c:
        c.execute("UPDATE release.part SET sex = 'f'")
    with pytest.raises(VerificationError):
        sqldeid.verify(asked(0.3), register, options=options)


def test_who_has_no_key_refuses(register: Path) -> None:
    with pytest.raises(JobError, match=r"tables\.part\.sample: needs a secret key, by which persons are chosen"):
        sqldeid.anonymize(asked(0.3), register)
    others: list[Callable[[], object]] = [
        lambda: sqldeid.assess(asked(0.3), register),
        lambda: sqldeid.tradeoff(asked(0.3), register, sqldeid.Asked((2, 3), (0.1,))),
        lambda: sqldeid.evaluate(asked(0.3), register, "illness"),
    ]
    for ask in others:
        with pytest.raises(JobError, match=r"tables\.part\.sample: is drawn by anonymize and verify"):
            ask()


def test_a_certificate_of_a_sample_is_not_checked_without_the_key(register: Path, key: Path) -> None:
    options = sqldeid.Options(key_file=key, certificate=True)
    made = sqldeid.anonymize(asked(0.3), register, options=options).releases["part"]
    assert made.certificate is not None
    with pytest.raises(JobError, match=r"tables\.part\.sample: is drawn by anonymize and verify"):
        sqldeid.verify_certificates(asked(0.3), register, {"part": json.loads(json.dumps(made.certificate))})


def test_a_sample_beside_all_is_compared_with_it(register: Path, key: Path) -> None:
    """Sampled persons are in classes of their own beside all: where few of a class are not, the two tell them."""
    keys = (f"{i:064x}" for i in range(1, 99))
    while len(chosen(key, Fraction("0.999"), range(3000))) == 3000:  # this key leaves nobody out: nothing to tell
        key.write_text(next(keys))
    part = asked(0.999).model_dump(mode="json", by_alias=True, exclude_unset=True)["tables"]["part"]
    whole = {name: value for name, value in part.items() if name != "sample"}
    with pytest.raises(JobError, match="never_with"):
        sqldeid.anonymize(job({}, part=part, whole=whole), register, options=sqldeid.Options(key_file=key))


def test_a_sample_is_attacked_as_any_release(register: Path, key: Path) -> None:
    found = sqldeid.anonymize(asked(0.2, attacks=True), register, options=sqldeid.Options(key_file=key))
    assert found.releases["part"].attacks is not None


def test_a_repeated_person_and_a_missing_one_are_refused_before_the_draw(register: Path, key: Path) -> None:
    options = sqldeid.Options(key_file=key)
    for change, text in (
        ("INSERT INTO residents SELECT * FROM residents WHERE id = 7", "3001 rows but 3000 values"),
        ("UPDATE residents SET id = NULL WHERE id = 7", "id is NULL in 2 rows"),
    ):
        with duckdb.connect(str(register)) as c:
            c.execute(change)
        with pytest.raises(JobError, match=text):
            sqldeid.anonymize(asked(0.3), register, options=options)


def test_a_ledger_holds_a_sample_to_its_releases(register: Path, key: Path, tmp_path: Path) -> None:
    """The same persons by the same key, so that a night's release changes as the source does."""
    options = sqldeid.Options(key_file=key, ledger=tmp_path / "book.ledger", replace=True)
    first = sqldeid.anonymize(asked(0.3), register, options=options).releases["part"]
    with duckdb.connect(str(register)) as c:
        c.execute("INSERT INTO residents SELECT id + 3000, age, sex, illness, 'n' || (id + 3000) FROM residents")
    second = sqldeid.anonymize(asked(0.3), register, options=options).releases["part"]
    assert first.rows == len(chosen(key, Fraction(3, 10), range(3000)))
    assert second.rows == len(chosen(key, Fraction(3, 10), range(6000)))
    assert sqldeid.verify(asked(0.3), register, options=options)["part"].released == second.released


def test_the_example_of_the_page_runs_and_its_plan_is_what_runs(register: Path, key: Path) -> None:
    wanted = sqldeid.Job.parse(example())
    [planned] = sqldeid.plan(wanted, register)
    with running() as ran:
        made = sqldeid.anonymize(wanted, register, options=sqldeid.Options(key_file=key)).releases["tenth"]
    hold_listed(explain(planned, wanted, register).statements or (), ran)
    mapped = {c.name: c for c in made.criteria}["k-map"]
    assert mapped.achieved >= 20
    assert sqldeid.verify(wanted, register, options=sqldeid.Options(key_file=key))["tenth"].released == made.released
    assert key.read_text() not in str(made)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "nobody": ({"person": None, "rows_are_persons": True}, "is of persons"),
    "epsilon-safe": (
        {"search": {"method": "epsilon-safe", "epsilon_safe": {"beta": 0.1, "epsilon": 1.0, "delta": 0.1}}},
        "draws its own sample",
    ),
    "mondrian": ({"search": {"method": "mondrian"}}, "reads the whole source"),
    "local": ({"search": {"method": "local"}}, "reads the whole source"),
    "view": ({"view": "computed"}, "whose text would tell who is in it"),
    "link": ({"link": "others"}, "does not go with link"),
    "stack": ({"stack": {"x": {}}}, "does not go with stack"),
    "decimals": ({"sample": 0.1234567891}, "more than 9 decimals"),
    "all": ({"sample": 1.0}, "sample"),
    "none": ({"sample": 0.0}, "sample"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_where_there_is_no_sample_it_is_refused(name: str) -> None:
    content, (change, text) = example(), REFUSED[name]
    table = content["tables"]["tenth"]
    for part, value in change.items():
        if value is None:
            del table[part]
        else:
            table[part] = value
    with pytest.raises(JobError, match=text):
        sqldeid.Job.parse(content)


@pytest.mark.parametrize(
    ("share", "inclusion", "key"),
    [
        (float("nan"), 0.5, r"tables\.part\.sample: must be a number, greater than 0 and less than 1"),
        (0.5, 0.25, r"tables\.part\.privacy\.m_concealing\.inclusion: is below sample, .* write 0\.5, or more"),
    ],
)
def test_a_share_is_a_number_and_no_less_than_what_is_claimed_of_it(share: float, inclusion: float, key: str) -> None:
    """Who is in the source is in the release by the share: a risk that takes them for rarer is too low."""
    asked(0.5, privacy={"k": 2, "m_concealing": {"m": 0.5, "inclusion": 0.5}})
    with pytest.raises(JobError, match=key):
        asked(share, privacy={"k": 2, "m_concealing": {"m": 0.5, "inclusion": inclusion}})


def test_a_sample_of_nobody_is_called_one(register: Path, key: Path) -> None:
    with pytest.raises(JobError, match=r"tables\.part\.sample: no person of residents was drawn"):
        sqldeid.anonymize(asked(0.000000001), register, options=sqldeid.Options(key_file=key))


def test_another_share_or_key_beside_a_sample_or_in_its_place_is_refused(register: Path, key: Path) -> None:
    """The source is the same, and so are its sums: of a half and of 0.501 somebody is in one alone."""
    other = key.with_name("other")
    other.write_text(OTHER)
    other.chmod(0o600)
    part, more = asked(0.5).model_dump(mode="json", exclude_unset=True, by_alias=True)["tables"]["part"], 0.501
    whole = {k: v for k, v in part.items() if k != "sample"}

    def run(name: str, table: dict[str, Any], file: Path = key, **beside: Any) -> sqldeid.Result:
        options = sqldeid.Options(key_file=file, replace=True, only=(name,))
        return sqldeid.anonymize(job({}, **{name: table}, **beside), register, options=options)

    first = run("part", part)
    assert run("part", part).releases["part"].rows == first.releases["part"].rows
    fewer = part | {"columns": {n: c for n, c in part["columns"].items() if n != "name"}}
    for name, table, file in (
        ("part", part | {"sample": more}, key),
        ("part", part, other),
        ("part", whole, key),
        ("other", part | {"sample": more}, key),
        ("other", part, other),
        ("other", whole, key),
        ("other", fewer | {"sample": more}, key),
    ):
        with pytest.raises(JobError, match=r"tables\.part: the release that is there is not .* another sample"):
            run(name, table, file)
    with pytest.raises(JobError, match="Make the releases in one run"):
        run("other", part | {"sample": more}, key, part=part)
    assert run("other", part, key, part=part).releases["other"].rows == first.releases["part"].rows
