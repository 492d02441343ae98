"""Jobs of a table and its series that every engine releases alike."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from sqldeid.job import Job
from tests.support.linked_series import CHOICES, SERIES, STAYS, TABLE, charted, people

KEYS = "aBäC"


LINKED = [
    (table, series) for number, (table, series) in enumerate(CHOICES) if number in (0, 2, 3)
]  # as they are, l-diversity, t-closeness


def tables() -> dict[str, pa.Table]:
    """Persons and their series by keys of text, which a language sorts otherwise than bytes."""
    frames = {"stays": people(range(STAYS), 6), "charted": charted(range(20, STAYS + 20), 5)}
    return {name: keyed(frame) for name, frame in frames.items()}


def keyed(frame: pd.DataFrame) -> pa.Table:
    texts = {name: frame[name].astype(object) for name in ("sex", "died") if name in frame}
    keys = [f"{KEYS[stay % 4]}{stay}" for stay in frame.stay]
    return pa.Table.from_pandas(frame.assign(stay=pd.Series(keys, dtype=object), **texts), preserve_index=False)


def job(schema: str, table: dict[str, Any], series: dict[str, Any]) -> Job:
    asked = {"people": {**TABLE, **table}}
    followed = {"vitals": {**SERIES, "perturb": {"seed": 5}, **series}}
    return Job.parse({"release": {"schema": schema}, "tables": asked, "series": followed})
