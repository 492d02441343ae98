"""Record what a release of series tells of each person, so that later releases can be compared with it.

What is published of a person is a function of the person's *group* (feature class, length and the variables released)
as a whole: each target, window and shape is computed from the series of all its members. Whoever compares two releases
computes differences of such sums, variable by variable. A person's trace is therefore the group in each release and,
for each variable, which release was the first to tell of the same shortened series: two persons of one trace are in the
same sums of the same releases, with the same series (see `sqldeid.ledger` for what follows from that).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sqldeid.arrays import Flags, Floats, Ints
from sqldeid.engine.base import Engine
from sqldeid.series.features import Measured
from sqldeid.series.link import combine
from sqldeid.series.shape import Shaped

AT_ONCE = 4_000_000
"""Values that are read at once to be compared."""

_DIGITS = 30
"""Bits of a value that are compared: a sum of floats may differ in its last ones when the same rows come in another
order, and a change below a billionth of a value tells nothing of it."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a release would tell.

    Parameters
    ----------
    there
        (persons,): who would be released with any variable.
    group
        (persons,): feature class and variables; persons of one group are released alike.
    variables
        Names of the variables released.
    series
        By variable, (persons,): a digest of the shortened series; None where the variable is not released.
    """

    there: Flags
    group: Ints
    variables: tuple[str, ...]
    series: tuple[NDArray[np.object_], ...]


def told(shaped: Shaped, engine: Engine) -> Told:
    """What a release of the series would tell of each measured person.

    Cost: one pass over the shortened series.
    """
    measured, classes = shaped.measured, shaped.classes
    there = persons_left(measured, classes.dropped)
    rows = np.flatnonzero(~classes.dropped)
    digests = np.full(len(classes.dropped), None, dtype=object)
    for block, found in _digests(shaped, engine):
        digests[block] = found
    numbers = np.unique(measured.features.variable_number[rows])
    series = []
    for number in numbers:
        mine = rows[measured.features.variable_number[rows] == number]
        column = np.full(len(measured.persons), None, dtype=object)
        column[measured.person_at[mine]] = digests[mine]
        series.append(column)
    names = tuple(shaped.prepared.variables.names[n] for n in numbers)
    return Told(there, combine(measured, classes), names, tuple(series))


def persons_left(measured: Measured, dropped: Flags) -> Flags:
    """(persons,): who is released with any variable."""
    there: Flags = np.zeros(len(measured.persons), dtype=np.bool_)
    there[measured.person_at[~dropped]] = True
    return there


def _digests(shaped: Shaped, engine: Engine) -> Iterator[tuple[Ints, list[str]]]:
    """Rows of the features, some at a time, each with a digest of its positions and values."""
    measured, bench = shaped.measured, engine.bench
    features = measured.features
    held = np.bincount(measured.person_at, weights=features.n, minlength=len(measured.persons))
    of_person = (np.cumsum(held) // AT_ONCE).astype(np.int64)
    of_person = np.unique(of_person, return_inverse=True)[1].reshape(-1).astype(np.int64)
    blocks = bench.put("told_blocks", pa.table({"person_number": measured.persons, "block": of_person}))
    for block in range(int(of_person.max(initial=-1)) + 1):
        read = bench.ask("series/read_block", series=shaped.carried, blocks=blocks, block=block)
        rows = np.flatnonzero(of_person[measured.person_at] == block)
        ends = np.cumsum(features.n[rows])
        packed = _packed(read.column("position").to_numpy(), read.column("value").to_numpy())
        starts = ends - features.n[rows]
        yield (
            rows,
            [
                blake2b(packed[first:last].tobytes(), digest_size=16).hexdigest()
                for first, last in zip(starts.tolist(), ends.tolist(), strict=True)
            ],
        )
    bench.drop(blocks)


def _packed(position: Ints, value: Floats) -> Ints:
    """(values, 3): position, leading bits and exponent of each value."""
    mantissa, exponent = np.frexp(value + 0.0)
    leading = np.round(np.ldexp(mantissa, _DIGITS)).astype(np.int64)
    carried = np.abs(leading) == 1 << _DIGITS
    leading = np.where(carried, leading // 2, leading)
    return np.stack([position.astype(np.int64), leading, exponent.astype(np.int64) + carried], axis=1)
