"""What is measured on: databases made from the real data, and jobs for them."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from benchmarks.scale import scale_adult

ROOT = Path(__file__).resolve().parents[1]
MILLION = 1_000_000
FILES = {
    "adult": ("adult.csv", "adult_hierarchy_{}.csv"),
    "wide": ("mach2019_int.csv", "mach2019_int_hierarchy_{}.csv"),
}


def data_folder() -> Path:
    """Folder of the real data sets: SQLDEID_TEST_DATA, else `shared/data` beside the checkout."""
    return Path(os.environ.get("SQLDEID_TEST_DATA") or ROOT.parent / "shared" / "data")


@dataclass(frozen=True, slots=True)
class Bench:
    """Where the data is, where databases are kept, and whether the short form is wanted."""

    data: Path
    cache: Path
    quick: bool

    def database(self, name: str, millions: int) -> Path:
        """The database of a data set, made where it is not there yet; 0 millions is the file as it is."""
        path = self.cache / (f"a{millions}.duckdb" if millions else f"{name}.duckdb")
        if path.exists():
            return path
        unfinished = path.with_suffix(f".{os.getpid()}")
        if millions:
            scale_adult(self.data, unfinished, millions * MILLION)
        else:
            self._load(name, unfinished)
        return unfinished.rename(path)

    def _load(self, name: str, path: Path) -> None:
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                f"CREATE TABLE {name} AS SELECT row_number() OVER () AS id, * "
                "FROM read_csv(?, delim = ';', header = true)",
                [str(self.data / name / FILES[name][0])],
            )

    def columns(self, name: str) -> list[str]:
        """The attributes of a data set, in the order of its file."""
        with (self.data / name / FILES[name][0]).open(encoding="utf-8", newline="") as file:
            return next(csv.reader(file, delimiter=";"))

    def hierarchy(self, name: str, column: str) -> str:
        """The hierarchy file of an attribute."""
        return str(self.data / name / FILES[name][1].format(column))


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked of which data.

    Parameters
    ----------
    data
        `adult` or `wide`.
    millions
        Rows of the scaled database, in millions; 0 for the file as it is.
    attributes
        How many quasi-identifying columns, from the first; 0 for all.
    sensitive
        A column that is sensitive instead.
    criteria
        Further entries of the job's `privacy`.
    repeats
        Runs, of which the one with the median time is reported.
    attacks
        Whether the release is attacked, too; what it is compared with attacks nothing.
    """

    data: str
    millions: int = 0
    attributes: int = 0
    k: int = 5
    limit: float = 0.05
    loss: str = "loss"
    method: str = "frontier"
    time_limit: float | None = None
    max_loss: float | None = None
    sensitive: str = ""
    criteria: Mapping[str, object] = field(default_factory=dict)
    memory_limit: str = ""
    repeats: int = 1
    attacks: bool = False

    def job(self, bench: Bench, into: Path | None = None) -> dict[str, object]:
        """The job, as its file would have it."""
        names = bench.columns(self.data)
        columns: dict[str, object] = {
            c: {"role": "quasi-identifying", "hierarchy": bench.hierarchy(self.data, c)}
            for c in names[: self.attributes or len(names)]
        }
        if self.sensitive:
            columns[self.sensitive] = {"role": "sensitive"}
        search = {"method": self.method, "loss": self.loss, "time_limit": self.time_limit, "max_loss": self.max_loss}
        table = {
            "source": self.data,
            "person": "id",
            "attacks": self.attacks,
            "columns": columns,
            "privacy": {"k": self.k, "suppression_limit": self.limit, **self.criteria},
            "search": {key: value for key, value in search.items() if value is not None},
        }
        release = {"into": str(into)} if into is not None else {}
        return {"release": release, "tables": {self.data: table}}


def toml(job: Mapping[str, object]) -> str:
    """A job as the text of its file."""
    return "".join(f"{key} = {_inline(value)}\n" for key, value in job.items())


def _inline(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_inline(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)
