"""De-identify inside a Spark job: `spark-submit pipeline.py`, or `python pipeline.py sc://host:15002`.

The session is left as it was, its settings, too; the release lies in its catalogue; only classes came to the driver.
"""

import sys
import tempfile
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

import sqldeid
from sqldeid import demo


def load(spark: SparkSession, rows: int = 20_000) -> None:
    """A census of nobody, where there is none; a real job reads its own table."""
    with tempfile.TemporaryDirectory() as folder:
        made = demo.adult(Path(folder) / "adult.duckdb", rows=rows)
        with duckdb.connect(str(made.database), read_only=True) as source:
            spark.createDataFrame(source.sql("SELECT * FROM adult").to_arrow_table()).createOrReplaceTempView("made")
    spark.sql("CREATE TABLE adult AS SELECT * FROM made")
    spark.sql("DROP VIEW made")


def run(spark: SparkSession) -> sqldeid.Result:
    """Replace the nightly release, and say what went over the wire."""
    job = sqldeid.Job.load(Path(__file__).with_name("job.toml"))
    result = sqldeid.anonymize(job, spark, options=sqldeid.Options(replace=True))
    release = result.releases["census"]
    print(f"{release.released} of {release.rows} people in {release.written[0]}, k = {release.k}")  # noqa: T201
    print(f"over the wire: {release.moved['rows']} rows, {release.moved['bytes']:,} bytes")  # noqa: T201
    return result


if __name__ == "__main__":
    builder = SparkSession.builder.appName("de-identify")
    builder = builder.remote(sys.argv[1]) if len(sys.argv) > 1 else builder.enableHiveSupport()
    session = builder.getOrCreate()
    if not session.catalog.tableExists("adult"):
        load(session)
    run(session)
