"""A small Spark on this machine: one JVM for the tests of a worker, on loopback only, gone afterwards."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_PYSPARK = "Spark is not installed: no pyspark (make test installs it; else pip install 'sqldeid[spark]')"
NO_JAVA = "Spark needs Java 17 or later: none in JAVA_HOME or on PATH (apt-get install openjdk-17-jre-headless)"

PORT = "spark.connect.grpc.binding.port"

SETTINGS = {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:sqldeid;create=true",
    "spark.driver.extraJavaOptions": "-Dderby.stream.error.file=/dev/null",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",  # a Connect server in the same JVM
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.master": "local[1]",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",  # as the engine has it
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",  # a fixture has five rows: compiling for them takes most of the time
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def missing() -> str:
    """Why Spark cannot run here; empty where it can."""
    if find_spec("pyspark") is None:
        return NO_PYSPARK
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else shutil.which("java")
    return "" if java and Path(java).exists() else NO_JAVA


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def session(**others: str | None) -> Iterator[SparkSession]:
    """A classic session with a warehouse of its own, and a Connect server beside it.

    Parameters
    ----------
    others
        Settings that differ, their dots written as two underscores; None leaves Spark's own.
    """
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="spark-")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    own = {"spark.local.dir": f"{folder}/local", PORT: str(free_port())}
    wanted = SETTINGS | own | {name.replace("__", "."): value for name, value in others.items()}
    for name, value in wanted.items():
        builder = builder if value is None else builder.config(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of pandas 3, which nobody uses here
            spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        logging.getLogger("SQLQueryContextLogger").disabled = True
        yield spark
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
