"""A release that is written from its classes by several threads has each row as often, in the order of the classes."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sqldeid.sql import column, identifier, table_name
from sqldeid.tables.write.stage import PIECES, from_classes

TARGET, KEPT = table_name("released"), table_name("kept")


def written(sizes: np.ndarray, rows: int) -> np.ndarray:
    """The places of the rows, in the order in which they were written."""
    with duckdb.connect(config={"threads": 4}) as connection:
        places = np.arange(len(sizes))
        random = np.random.default_rng(len(sizes)).permutation(len(sizes))
        kept = pa.table({"size": sizes[random], "place": places[random], "label": [f"class {p}" for p in random]})
        connection.register("made", kept)
        connection.execute("CREATE TABLE kept AS FROM made")
        columns = [{"name": identifier(name), "value": column(name, "e")} for name in ("label", "place")]
        connection.execute(from_classes(KEPT, columns, rows)(TARGET))
        read = connection.execute("SELECT place, label FROM released").fetchnumpy()
        assert (read["label"] == np.char.add("class ", read["place"].astype(str))).all()
        return read["place"]


@pytest.mark.parametrize("classes", [1, 2, 1000])
@pytest.mark.parametrize("rows", [1, PIECES // 2, PIECES, 2 * PIECES, 20 * PIECES])
def test_each_class_is_repeated_by_its_size_in_order(classes, rows):
    """Whatever number of rows the pieces are cut for."""
    sizes = np.random.default_rng(rows).geometric(0.02, size=classes)
    places = written(sizes, rows)
    assert (places == np.repeat(np.arange(classes), sizes)).all()


@pytest.mark.duckdb14
def test_the_order_holds_where_threads_share_the_rows():
    sizes = np.random.default_rng(1).geometric(0.01, size=7000)
    sizes[17] = 200_000
    places = written(sizes, int(sizes.sum()))
    assert (places == np.repeat(np.arange(len(sizes)), sizes)).all()
