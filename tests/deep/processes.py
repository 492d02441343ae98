"""Commands in processes of their own: forked from a server that has imported the program, or truly new.

A process that waits for a busy machine is not hung: what counts is its own time on a processor, and that it gets on.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.deep.hostile import KEY
from tests.support.places import ROOT

MOST_SECONDS = 60
"""Of a processor's time that a command may take; and how long it may stand still without any."""
LEAST_PROGRESS = 0.05
"""Seconds of a processor in `MOST_SECONDS` below which a command stands still."""
RENEWED = 1000
"""Commands after which another server is begun, with another seed of hashes."""
SERVER = Path(__file__).with_name("server.py")


class Hang(Exception):
    """A command took longer than it may; with what it said, and where it was if that is known."""


@dataclass(frozen=True)
class Ran:
    """A command's end: its code, what it wrote, and seconds of a processor's time."""

    code: int
    out: str
    err: str
    cpu: float = 0.0


def cpu(pid: int, began: float) -> float:
    """Seconds of a processor that a process has had; where that is not told, those since it began."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic() - began
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Process:
    """A command that runs. `code` is None until it has ended; then `spent` is what it took."""

    forked = False

    def __init__(self, out: Path, err: Path) -> None:
        self._files = out, err
        self.pid = 0
        self.code: int | None = None
        self.spent = 0.0
        self._began = time.monotonic()

    def poll(self, seconds: float) -> int | None:
        """Wait that long at most; the exit code if it has ended."""
        raise NotImplementedError

    def end(self, after: float = 0.0, sent: signal.Signals | None = None) -> Ran:
        """Wait for the end, with a signal after some seconds of a processor's time.

        Raises
        ------
        Hang
            If it takes longer than it may.
        """
        if sent is not None:
            while self.poll(0.002) is None and cpu(self.pid, self._began) < after:
                pass
            if self.code is None:
                with suppress(ProcessLookupError):  # it has ended since, and its server has not yet said so
                    os.kill(self.pid, sent)
        had, since = 0.0, time.monotonic()
        while self.poll(0.5) is None:
            now = cpu(self.pid, self._began)
            if now - had > LEAST_PROGRESS:
                had, since = now, time.monotonic()
            if now > MOST_SECONDS or time.monotonic() - since > MOST_SECONDS:
                self._stop(f"{now:.0f} s of a processor, none for {time.monotonic() - since:.0f} s")
        assert self.code is not None
        return Ran(self.code, *(path.read_text(errors="replace") for path in self._files), self.spent)

    def _stop(self, what: str) -> None:
        if self.forked:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGUSR1)  # the server had it tell where it is
            self.poll(1)
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            while self.poll(1) is None:
                pass
        raise Hang(f"{what}: {self._files[1].read_text(errors='replace')[-4000:]}")


class New(Process):
    """What a shell starts: the program as it is installed."""

    def __init__(self, command: list[str], folder: Path, out: Path, err: Path, *, limit: int = 0) -> None:
        super().__init__(out, err)
        self._before = _of_children()
        with out.open("wb") as told, err.open("wb") as said:
            self._child = subprocess.Popen(
                [*_program(), *command],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=told, stderr=said, start_new_session=True,
                env=_environment() | {"SQLDEID_KEY": KEY},
                preexec_fn=lambda: _hearing(limit),
            )  # fmt: skip
        self.pid = self._child.pid

    def poll(self, seconds: float) -> int | None:
        try:
            self.code = self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self.spent = _of_children() - self._before
        return self.code


class Forked(Process):
    """A child of the server."""

    forked = True

    def __init__(self, line: Line, asked: dict[str, Any], out: Path, err: Path) -> None:
        super().__init__(out, err)
        self._line = line
        for path in (out, err):
            path.write_bytes(b"")  # it may be stopped before it has opened them
        line.say(asked | {"out": str(out), "err": str(err), "environment": {"SQLDEID_KEY": KEY}})
        self.pid = line.hear()["pid"]

    def poll(self, seconds: float) -> int | None:
        if self.code is None and self._line.has(seconds):
            ended = self._line.hear()
            self.code, self.spent = ended["code"], ended["cpu"]
        return self.code


class Line:
    """A server, and the line to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._server = subprocess.Popen(
            [sys.executable, str(SERVER), str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=_environment(),
            preexec_fn=_hearing,
        )  # fmt: skip
        theirs.close()
        self._rest = b""
        self.asked = 0

    def say(self, request: dict[str, Any]) -> None:
        """Ask for a command."""
        self.asked += 1
        self._socket.sendall(f"{json.dumps(request)}\n".encode())

    def has(self, seconds: float) -> bool:
        """Whether an answer comes within this time, or came with the one before: a short command's two come at once."""
        return b"\n" in self._rest or bool(select.select([self._socket], [], [], seconds)[0])

    def hear(self) -> dict[str, Any]:
        """The next answer."""
        while b"\n" not in self._rest:
            part = self._socket.recv(65_536)
            if not part:
                raise EOFError("the server has ended")
            self._rest += part
        answer, _, self._rest = self._rest.partition(b"\n")
        return dict(json.loads(answer))

    def close(self) -> None:
        """End the server."""
        self._socket.close()
        self._server.wait()


class Processes:
    """Starts commands, one at a time; what they write goes to files in `scratch`."""

    def __init__(self, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        self._scratch = scratch
        self._line: Line | None = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            self._line.close()

    def start(self, command: list[str], folder: Path, *, new: bool = False, limit: int = 0) -> Process:
        """Start a command in `folder`.

        Parameters
        ----------
        new
            In a process that has imported nothing; else in one that is forked.
        limit
            Bytes that a file may have (RLIMIT_FSIZE); 0 for none.
        """
        out, err = self._scratch / "out", self._scratch / "err"
        if new:
            return New(command, folder, out, err, limit=limit)
        if self._line is not None and self._line.asked >= RENEWED:
            self._line.close()
            self._line = None
        self._line = self._line or Line()
        return Forked(self._line, {"command": command, "folder": str(folder), "limit": limit}, out, err)

    def run(self, command: list[str], folder: Path, *, new: bool = False) -> Ran:
        """Run a command to its end."""
        return self.start(command, folder, new=new).end()


def _program() -> list[str]:
    script = Path(sys.executable).with_name("sqldeid")
    return [str(script)] if script.exists() else [sys.executable, "-m", "sqldeid"]


def _environment() -> dict[str, str]:
    """That of this process, but with the program of this checkout."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


def _hearing(limit: int = 0) -> None:
    """Before a program begins: it hears SIGINT, which a shell lets what it starts in the background ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
