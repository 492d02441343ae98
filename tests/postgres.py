"""A throw-away Postgres cluster: made in a second, reached by a Unix socket only, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
        settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off -c full_page_writes=off"
        run("pg_ctl", "-D", data, "-w", "-s", "-l", str(folder / "log"), "-o", settings, "start")
        try:
            yield f"host={folder} user=sqldeid dbname=postgres"
        finally:
            run("pg_ctl", "-D", data, "-w", "-s", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def _owner() -> pwd.struct_passwd | None:
    """Who runs the server: Postgres refuses root, so there it is postgres, or nobody; else ourselves (None)."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name: user for user in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]
