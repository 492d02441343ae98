"""Rows go to Spark by portions, all of them, in their order."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sqldeid.engine.spark_rows import by_size, cut_off, register

SCHEMA = pa.schema([("n", pa.int64())])


def reader(*lengths: int) -> pa.RecordBatchReader:
    """Batches of these lengths, of 0, 1, 2, …"""
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    batches = [
        pa.record_batch([pa.array(range(at, at + n), pa.int64())], schema=SCHEMA)
        for at, n in zip(starts, lengths, strict=True)
    ]
    return pa.RecordBatchReader.from_batches(SCHEMA, iter(batches))


@pytest.mark.parametrize(
    ("lengths", "found"),
    [((3, 3, 3), [6, 3]), ((5, 5), [5, 5]), ((1, 1, 1, 1, 1), [5]), ((100,), [100]), ((), [0]), ((0, 0), [0])],
)
def test_a_portion_ends_where_it_is_large_enough(lengths: tuple[int, ...], found: list[int]) -> None:
    portions = list(by_size(reader(*lengths), 40))
    assert [p.num_rows for p in portions] == found and all(p.schema == SCHEMA for p in portions)
    assert [n for p in portions for n in p.column("n").to_pylist()] == list(range(sum(lengths)))


def test_a_reader_is_read_no_further_than_a_portion() -> None:
    rows = reader(5, 5, 5)
    first = next(by_size(rows, 40))
    assert first.num_rows == 5 and rows.read_all().num_rows == 10


def test_a_table_goes_as_it_is() -> None:
    table = pa.table({"n": range(100)})
    assert list(by_size(table, 8)) == [table]


class Frame:
    """Tells which session was active when it was kept."""

    def localCheckpoint(self) -> object:
        from pyspark.sql.connect.session import SparkSession

        return SparkSession.getActiveSession()


def test_what_connect_keeps_belongs_to_its_own_session() -> None:
    """Its client gives a checkpoint to the session that is active in the thread, which may be another."""
    from pyspark.sql.connect.session import SparkSession

    own, before = object.__new__(SparkSession), SparkSession.getActiveSession()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SparkSession, "is_stopped", False)
        assert cut_off(own, Frame()) is own
    assert SparkSession.getActiveSession() is before


def test_a_table_without_rows_has_its_columns_on_connect() -> None:
    """Its client asks Arrow for the types of columns only where there is a row."""
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.session import SparkSession

    types = {"n": pa.int64(), "word": pa.string(), "value": pa.float64(), "at": pa.timestamp("us")}
    made: list[DataFrame] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DataFrame, "createOrReplaceTempView", lambda frame, name: made.append(frame))
        register(object.__new__(SparkSession), pa.schema(list(types.items())).empty_table(), "v", kept=False)
    told = made[0]._plan._schema  # type: ignore[attr-defined]
    for name, type_ in {"n": "long", "word": "string", "value": "double", "at": "timestamp_ntz"}.items():
        assert f'"name":"{name}","nullable":true,"type":"{type_}"' in told
