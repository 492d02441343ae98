"""Pseudonyms: HMAC-SHA-256(key, run ‖ release ‖ column ‖ value), fresh in every publication.

The hashing is done in this process, part by part, and not in SQL: a key in a statement would stand in the query logs of
a server, one in a table in its files. A part is two hundred thousand values, whatever the size of the table.

Guarantee
    Without the key nobody can tell a value from its pseudonym, nor the pseudonyms of two publications, of two releases
    or of two columns from each other: to whoever lacks the key they are random functions of the value.
Assumes
    That the key is secret and random. Its holder can compute every pseudonym again: the run's number is in the release.
Does not protect
    Against anything else in the row. A release with pseudonyms is pseudonymised, not anonymous (GDPR, article 4(5)).
Source
    RFC 2104 (§5 on keeping the first 128 bits); soundness.md 7.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from sqlglot import exp

from sqldeid.engine.base import Engine
from sqldeid.tables.criteria.mechanism import SystemRandomness
from sqldeid.tables.disguise.shift import draw_days

DIGITS = 32
"""Hexadecimal digits of a pseudonym: the first 128 bits of the hash."""

RUN_BYTES = 16
PART_VALUES = 200_000
"""Values hashed at a time."""

_PURPOSE = b"sqldeid pseudonym 1"


def fresh_run() -> str:
    """The public number of a publication, 32 hexadecimal digits; it makes its pseudonyms others than the last time."""
    return secrets.token_hex(RUN_BYTES)


def scope(run: str, release: str, column: str) -> bytes:
    """What is hashed before the value: each part after its length, so that no two scopes read alike."""
    parts = (_PURPOSE, bytes.fromhex(run), release.encode(), column.encode())
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


Digest = Callable[[bytes], str]
"""Makes digits of a value's bytes, by the custodian's key."""


def draw_secrets(
    name: str,
    column: exp.Expr,
    source: exp.Expr,
    engine: Engine,
    *,
    digest: Digest | None,
    shifted: bool,
) -> exp.Table:
    """A table of a column's distinct values, with the pseudonym of each and the days of each.

    Parameters
    ----------
    name
        For the temporary tables.
    digest
        Makes a pseudonym of a value's bytes; None where none is wanted, and they are NULL then.
    shifted
        Whether days are drawn; else they are 0.

    Cost: one scan of the column; the distinct values travel once to Python and, as numbers or `by_text`, back.
    """
    numbered, made = engine.workbench(f"{name}_numbered"), engine.workbench(f"{name}_secrets")
    texts = by_text(engine)
    asked = {"numbered": numbered, "column": column, "source": source, "text": digest is not None or texts}
    engine.run("tables/disguise/number_values", **asked)
    for number, part in enumerate(_parts(numbered, engine, digest, shifted)):
        there = engine.put(f"{name}_part", part)
        template = "tables/disguise/append_secrets" if number else "tables/disguise/create_secrets"
        engine.run(template, secrets=made, numbered=None if texts else numbered, part=there)
        engine.drop(there)
    engine.drop(numbered)
    return made


def by_text(engine: Engine) -> bool:
    """Whether secrets are kept with the texts of their values, for numbers mean others once the source has changed.

    Where there is no snapshot, a table that is read again may be another one. A value that came later has no secret
    then, and the re-check refuses the release; but no value ever gets another's.
    """
    return not engine.capabilities.snapshot_reads


def _parts(numbered: exp.Table, engine: Engine, digest: Digest | None, shifted: bool) -> Iterator[pa.Table]:
    """Secrets of the numbered values, a part at a time; one empty part where there is no value."""
    randomness = SystemRandomness()
    first = 0
    while True:
        read = engine.ask("tables/disguise/read_numbered", numbered=numbered, first=first, past=first + PART_VALUES)
        if first and not read.num_rows:
            return
        texts = read.column("shown").to_pylist() if digest is not None else [None] * read.num_rows
        made = [None if digest is None else digest(str(text).encode())[:DIGITS] for text in texts]
        days = draw_days(read.num_rows, randomness) if shifted else np.zeros(read.num_rows, dtype=np.int64)
        named = "shown" if by_text(engine) else "number"
        yield pa.table({named: read.column(named), "pseudonym": pa.array(made, pa.string()), "days": days})
        if read.num_rows < PART_VALUES:
            return
        first += PART_VALUES
