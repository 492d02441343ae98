"""A small Spark on this machine: one JVM for the tests of a worker, on loopback only, gone afterwards; or a server."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_PYSPARK = "Spark is not installed: no pyspark (make test installs it; else pip install 'sqldeid[spark]')"
NO_JAVA = "Spark needs Java 17 or later: none in JAVA_HOME or on PATH (apt-get install openjdk-17-jre-headless)"

PORT = "spark.connect.grpc.binding.port"

NO_LOG = "-Dderby.stream.error.file=/dev/null"
SETTINGS = {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:sqldeid;create=true",
    "spark.driver.extraJavaOptions": NO_LOG,
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
    "spark.buffer.pageSize": "1m",  # else each operator that groups or sorts takes 64 MB
}

_LEAN = (
    "-XX:+UseSerialGC -XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
QUICK = f"-XX:TieredStopAtLevel=1 {_LEAN}"
"""For a server of a few tests, which ends before more compiling, or collecting by several threads, would pay: half the
processor time. Spark's own classes need not be verified, either: that is three seconds of each JVM."""

LASTING: dict[str, str | None] = {
    "spark__driver__extraJavaOptions": f"{NO_LOG} {_LEAN}",
    "spark__driver__memory": "2g",
    "spark__sql__ui__explainMode": "simple",
}
"""For the session that most tests share, for a quarter of an hour: full compiling pays (a sixth of its time), and with
a heap of 1 GB one second in thirteen goes into collecting it."""


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


@dataclass(frozen=True)
class Server:
    """A Connect server in a process of its own, its executor in another one, each of which a test may kill."""

    process: subprocess.Popen[bytes]
    port: int
    folder: Path

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"sc://127.0.0.1:{self.port}"

    @property
    def executors(self) -> list[int]:
        """The processes that run tasks now."""
        found = []
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                parent = re.search(r"^PPid:\s*(\d+)", status.read_text(), re.MULTILINE)
                command = (status.parent / "cmdline").read_bytes()
            except OSError:
                continue
            if parent and int(parent[1]) == self.process.pid and b"CoarseGrainedExecutorBackend" in command:
                found.append(int(status.parent.name))
        return found

    def answers(self) -> bool:
        """Whether it listens by now."""
        assert self.process.poll() is None, (self.folder / "log").read_text()[-3000:]
        with socket.socket() as knock:
            return knock.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def server(**others: str | None) -> Iterator[Server]:
    """A Connect server with a catalogue on disk and one executor; a task that fails is not tried again.

    It is started, not waited for (`Server.answers`).
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    folder = Path(tempfile.mkdtemp(prefix="spark-"))
    port = free_port()
    own = {
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": f"{folder}/local",
        "spark.master": "local-cluster[1,1,512]",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": f"{NO_LOG} {QUICK}",
        "spark.executor.extraJavaOptions": QUICK,
        "spark.task.maxFailures": "1",
        "spark.plugins": None,
        PORT: str(port),
    }
    wanted = SETTINGS | own | {name.replace("__", "."): value for name, value in others.items()}
    settings = [f"--conf={name}={value}" for name, value in wanted.items() if value is not None]
    command = [home / "bin" / "spark-submit", "--class=org.apache.spark.sql.connect.service.SparkConnectServer"]
    here = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder / "work")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*map(str, command), *settings, "spark-internal"],
            cwd=folder,
            env={**os.environ, **here, "PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    found = Server(process, port, folder)
    try:
        yield found
    finally:
        left = found.executors
        process.kill()
        process.wait()
        for executor in left:
            with suppress(ProcessLookupError):
                os.kill(executor, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
