"""A process that has imported the program, and forks a child for each command: a new process but for its imports.

The server opens no database and starts no thread of its own, so that a child begins as a process of its own would. The
threads that imports start are those of OpenBLAS and of Arrow's jemalloc, and both see to forks themselves. A child does
what Python does when a program ends, but for taking imported modules down, which takes six times as long as a command;
the new processes among the commands do that. `processes.Forked` speaks to it.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import importlib
import json
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

IMPORTED = (
    *("sqldeid.cli.app", "sqldeid.run", "sqldeid.run.evaluating", "sqldeid.run.exploring", "sqldeid.run.profiles"),
    *("sqldeid.engine.duckdb", "sqldeid.tables", "sqldeid.series", "sqldeid.events", "sqldeid.insight"),
    *("sqldeid.report.page", "sqldeid.report.html", "duckdb", "pyarrow", "pyarrow.parquet", "sqlglot", "jinja2"),
    *("scipy.stats", "scipy.optimize", "sklearn.linear_model", "sklearn.compose", "sklearn.impute", "sklearn.pipeline"),
    *("sklearn.preprocessing", "sklearn.metrics", "opendp.measurements", "plotly.graph_objects", "matplotlib.figure"),
)
"""What commands import when they need it; a module that an extra brings may be missing."""


def main() -> None:
    """Serve requests from the socket whose number is the argument, one after the other, until it is closed."""
    root = str(Path(__file__).parents[2])
    sys.path[0] = root  # not this folder, whose modules no program sees
    for name in IMPORTED:
        try:
            importlib.import_module(name)
        except ImportError as missing:
            print(f"not imported beforehand: {missing}", file=sys.stderr)
    gc.collect()
    gc.freeze()  # else the collector of each child would copy every page of what was imported
    asked = _asked(socket.socket(fileno=int(sys.argv[1])))
    if asked is not None:
        _become(asked)
        from sqldeid.cli import main as program

        _run(program)
    os._exit(0)  # the server itself has nothing to take down


def _asked(line: socket.socket) -> dict[str, Any] | None:
    """In each child what it is to do; in the server None, at the end."""
    with line, line.makefile("rw", encoding="utf-8") as held:
        for request in held:
            child = os.fork()
            if child == 0:
                return dict(json.loads(request))
            print(json.dumps({"pid": child}), file=held, flush=True)
            _, status, used = os.wait4(child, 0)
            ended = {"code": os.waitstatus_to_exitcode(status), "cpu": used.ru_utime + used.ru_stime}
            print(json.dumps(ended), file=held, flush=True)
    return None


def _become(asked: dict[str, Any]) -> None:
    """Be a process as a shell would have started it."""
    os.setsid()
    for path, stream in ((asked["out"], 1), (asked["err"], 2)):
        file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(file, stream)
        os.close(file)
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)  # where a hang is
    os.chdir(asked["folder"])
    os.environ.update(asked["environment"])
    if asked["limit"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["limit"], asked["limit"]))
    sys.argv = ["sqldeid", *asked["command"]]


def _run(program: Callable[[], object]) -> NoReturn:
    """Run it as `sys.exit(program())` at the end of a script does."""
    try:
        code = _code(program())
    except SystemExit as end:
        code = _code(end.code)
    except BaseException as error:  # noqa: BLE001 - what Python itself does with it
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = 120
    os._exit(code & 0xFF)


def _code(given: object) -> int:
    if given is None or isinstance(given, int):
        return int(given or 0)
    print(given, file=sys.stderr)
    return 1


if __name__ == "__main__":
    main()
