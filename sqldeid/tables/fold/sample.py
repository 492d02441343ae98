"""A release of a random sample of the source's persons, chosen by a keyed hash of each.

Guarantee
    Each person is in the sample with the probability that the job states, independently of the others and of all data:
    to whoever lacks the key, HMAC-SHA-256 of the person key under it is a random function. So a reader cannot tell from
    the release's making who is in it. By one key the same persons are chosen in every table, run and job that states
    the same share, and those of a smaller share are among those of a greater one; there is no second sample to compare.
Assumes
    That the key is secret and random, and that it stays the same. Persons are spelt alike where tables shall agree.
Does not protect
    Who is known to be in the release, or is seen to be by a value that is released as it stands: then criteria of the
    sample's own classes hold, and nothing else. Two samples by two keys are two releases of some of the same persons.
Source
    RFC 2104; soundness.md 7 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.errors import JobError
from sqldeid.keys import VARIABLE, Key
from sqldeid.sql import table_name
from sqldeid.sql.steps import as_needed, step
from sqldeid.stages import Step
from sqldeid.tables.disguise.pseudonyms import by_text, draw_secrets
from sqldeid.tables.plan.plan import TablePlan
from sqldeid.tables.rows.shape import count_persons, keep, kept_columns

_PURPOSE = b"sqldeid sample 1"
_BITS = 128


def chooser(key: Key, share: Fraction) -> Callable[[bytes], str]:
    """What says of a person, as text: "1" is in the sample, "0" is not."""
    digest, below = key.hasher(len(_PURPOSE).to_bytes(4, "big") + _PURPOSE), share * 2**_BITS
    return lambda person: "1" if int(digest(person)[: _BITS // 4], 16) < below else "0"


def draw_sample(plan: TablePlan, engine: Engine, read: Callable[[], Key | None]) -> TablePlan:
    """The plan of a release of the sample: its source is a temporary table of the sampled persons' rows.

    Parameters
    ----------
    read
        Reads the custodian's key.

    Raises
    ------
    JobError
        If there is no key, or the source does not tell its persons.

    Cost: one scan of the person key, and one of the source; the distinct keys travel to Python, and back.
    """
    if plan.sample is None or plan.drawn:
        return plan
    key = read()
    if key is None:
        raise JobError.at(
            f"{plan.key}.sample",
            f"needs a secret key, by which persons are chosen; name a file that holds one with --key-file, or set the "
            f"environment variable {VARIABLE} (openssl rand -hex 32 makes one), and keep it: another key draws another "
            "sample",
        )
    whole = replace(plan, drawn=True)
    source = keep(whole, engine)
    count_persons(whole, engine, source)
    chosen = draw_secrets(
        f"{plan.name}_sample", _person(plan), source, engine, digest=chooser(key, plan.sample), shifted=False
    )
    sampled = engine.make(
        "tables/fold/sample_source",
        f"{plan.name}_sampled",
        source=source,
        columns=kept_columns(plan),
        person=_person(plan),
        chosen=chosen,
        text=by_text(engine),
    )
    engine.drop(chosen)
    return as_drawn(plan, sampled)


def _person(plan: TablePlan) -> exp.Expr:
    if plan.person_column is None:
        raise ValueError("a sample is of persons, and the plan names none")
    return plan.person_column


def as_drawn(plan: TablePlan, sampled: exp.Table | None = None) -> TablePlan:
    """The plan of the sample's rows; where none is drawn, its table has the name by which a plan shows it."""
    source = table_name(f"{plan.name}_sampled") if sampled is None else sampled
    return replace(plan, source=source, joined=False, numbered=False, drawn=True)


def sampling() -> Iterator[Step]:
    """The statements that draw the sample."""
    yield from as_needed("tables/rows/keep_source", "tables/rows/check_person", "tables/rows/check_keys")
    yield step("tables/disguise/number_values", None)
    yield from as_needed("tables/disguise/read_numbered", "tables/disguise/create_secrets")
    yield from as_needed("tables/disguise/append_secrets", "tables/fold/sample_source")
