"""The values of a column in source and population together, so that one hierarchy holds both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqldeid.arrays import Ints


@dataclass(frozen=True, slots=True)
class Joined:
    """Distinct values of the source, in their order, then those that the population alone has.

    Parameters
    ----------
    n
        Rows of the source per value: none of the last ones; shape (values,).
    place
        Of each of the population's values among these; shape (the population's values,).
    """

    values: pa.Array
    n: Ints
    place: Ints


def join_values(source: pa.Array, n: Ints, population: pa.Array) -> Joined:
    """Put distinct values together; NULL is one."""
    seen = pc.index_in(population, value_set=source)
    new = pc.is_null(seen).to_numpy(zero_copy_only=False)
    place = np.zeros(len(population), dtype=np.int64)
    place[~new] = pc.drop_null(seen).to_numpy().astype(np.int64)
    place[new] = len(source) + np.arange(int(new.sum()))
    values = pa.concat_arrays([source, population.filter(pa.array(new))])
    return Joined(values, np.append(n, np.zeros(int(new.sum()), dtype=np.int64)), place)
