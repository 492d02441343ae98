"""A throw-away Postgres cluster: made in a second, reached by a Unix socket only, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

NUMBERS = count()
"""Of schemas and databases that tests make, so that no two have one name."""

MISSING = "Postgres is not installed: no initdb on PATH or in /usr/lib/postgresql (apt-get install postgresql)"


def binaries() -> Path | None:
    """The folder of initdb and pg_ctl, the newest version first; None where Postgres is not installed."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    found = shutil.which("initdb")
    on_path = [Path(found).resolve().parent] if found else []
    return next((p for p in [*on_path, *debian] if (p / "initdb").exists() and (p / "pg_ctl").exists()), None)


@contextmanager
def cluster(programs: Path) -> Iterator[str]:
    """Make, start, and in the end stop and remove a cluster; yields its connection string.

    Its superuser is ``sqldeid``; names and text sort by their bytes; nothing is synced to disk.
    """
    with server(programs) as found:
        yield found.address


@dataclass(frozen=True)
class Server:
    """A cluster that a test may stop and start.

    Parameters
    ----------
    run
        Runs one of Postgres' programs as who owns the cluster.
    settings
        Of the server's start.
    """

    folder: Path
    run: Callable[..., None]
    settings: str
    port: int | None

    @property
    def address(self) -> str:
        """The connection string of its superuser."""
        port = f" port={self.port}" if self.port else ""
        return f"host={self.folder}{port} user=sqldeid dbname=postgres"

    @property
    def data(self) -> Path:
        """The folder of its data."""
        return self.folder / "data"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = str(self.folder / "log")
        self.run("pg_ctl", "-D", str(self.data), "-w", "-s", "-l", log, "-o", self.settings, "start")

    def stop(self) -> None:
        """Stop it as a crash would; where it is down already, nothing is done."""
        if (self.data / "postmaster.pid").exists():
            self.run("pg_ctl", "-D", str(self.data), "-w", "-s", "-m", "immediate", "stop")


@contextmanager
def server(programs: Path, port: int | None = None) -> Iterator[Server]:
    """The same, to be stopped and started; with a port it listens on loopback, too."""
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path must stay below 107 bytes
    owner = _owner()
    if owner:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    data = str(folder / "data")

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(programs / program), *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            **({"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner else {}),
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed:\n{done.stdout}{done.stderr}")

    try:
        run("initdb", "-D", data, "-U", "sqldeid", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        where = "-c listen_addresses=" + (f"127.0.0.1 -c port={port}" if port else "")
        settings = f"{where} -c unix_socket_directories={folder} -c fsync=off -c full_page_writes=off"
        found = Server(folder, run, settings, port)
        found.start()
        try:
            yield found
        finally:
            found.stop()
    finally:
        shutil.rmtree(folder)


def _owner() -> pwd.struct_passwd | None:
    """Who runs the server: Postgres refuses root, so there it is postgres, or nobody; else ourselves (None)."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name: user for user in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]
