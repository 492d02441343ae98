"""How long each study takes: CPU seconds of its default command, on generated data and on real data.

    python cpu.py                        every command as its README has it, without folders: generated data
    python cpu.py --data FOLDER          and on real data; FOLDER has adult, adult_uci, mimic3demo, physionet2012, wide
    python cpu.py --only series_study    the commands with this word; other results are kept
    python cpu.py --kind real --keep DIR only on real data, and what the commands write stays in folders of DIR

CPU seconds are user and system time of the command and of all that it starts, so that other work on the machine
hardly changes them; a quiet machine of one core needs as long. Without --keep a command's folder goes again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE))
import gallery  # noqa: E402

COMMANDS = {
    "adult_study/study.py": "--data {data}/adult_uci",
    "adult_study/ola.py": "--data {data}/adult_uci",
    "epsilon_safe/good_nodes.py": "{data}/adult/adult.csv --table adult --population 30162",
    "epsilon_safe/parameters.py": "",
    "events_study/study.py": "--csv {data}/mimic3demo",
    "events_study/factors.py": "",
    "local_study/queries.py": "",
    "m_concealing/models.py": "--csv {data}/mimic3demo",
    "m_concealing/diversity.py": "--data {data}/adult_uci",
    "mimic_study/study.py": "{data}/mimic3demo out",
    "mimic_study/weighted.py": "",
    "notes_study/notes.py": "",
    "prune_study/study.py": "--data {data}",
    "series_study/study.py": "{data}/physionet2012 --mimic {data}/mimic3demo",
    "series_study/width.py": "--challenge {data}/physionet2012 --mimic {data}/mimic3demo",
    "series_study/deep.py": "--challenge {data}/physionet2012",
    "series_study/tuning.py": "--challenge {data}/physionet2012",
}
"""By script: what makes it run on real data; nothing where it needs none."""

KINDS = ("generated", "real")
Row = dict[str, object]


def measured(script: str, arguments: str, folder: Path) -> tuple[float, float]:
    """CPU seconds and GiB of a command in a folder, its processes included.

    Raises
    ------
    click.ClickException
        If it fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log.txt"
    with log.open("wb") as out:
        command = [sys.executable, str(HERE / script), *arguments.split()]
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)  # noqa: S603 - ours
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise click.ClickException(f"{script} {arguments}: {log.read_text(errors='replace')[-2000:]}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20


def runs(data: Path | None, only: str, kinds: tuple[str, ...], keep: Path) -> Iterator[Row]:
    """A row a command; each runs in a folder of its own."""
    for script, given in COMMANDS.items():
        if only not in script:
            continue
        for kind, arguments in (("generated", ""), ("real", given.format(data=data))):
            if kind not in kinds or (kind == "real" and (data is None or not given)):
                continue
            seconds, memory = measured(script, arguments, keep / kind / script.replace("/", "_").removesuffix(".py"))
            click.echo(f"{script} {arguments}: {seconds:.0f} s of processor", err=True)
            yield {"script": script, "data": kind, "cpu_seconds": round(seconds, 1), "gib": round(memory, 2)}


def table(rows: list[Mapping[str, object]]) -> str:
    """A line a command: CPU seconds and memory on generated and on real data."""
    lines: dict[str, Row] = {}
    for script in COMMANDS:
        line = lines.setdefault(script, {"command": f"`{script}`"})
        for row in (row for row in rows if row["script"] == script):
            line[f"CPU s, {row['data']} data"] = f"{float(str(row['cpu_seconds'])):.0f}"
            line[f"GiB, {row['data']} data"] = f"{float(str(row['gib'])):.1f}"
    heads = [f"{what}, {kind} data" for kind in KINDS for what in ("CPU s", "GiB")]
    return gallery.markdown([{name: line.get(name, "") for name in ("command", *heads)} for line in lines.values()])


@click.command(help=__doc__)
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), default=Path())
@click.option("--page", type=click.Path(exists=True, path_type=Path), help="A page that the table is put into.")
@click.option("--again", is_flag=True, help="Print the results that are in --into; run nothing.")
@click.option("--only", default="", help="Rerun the commands with this word, keep the others.")
@click.option("--kind", "kinds", multiple=True, default=KINDS, type=click.Choice(KINDS), help="Of data.")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="What the commands write stays there.")
def main(
    data: Path | None,
    into: Path,
    page: Path | None,
    again: bool,
    only: str,
    kinds: tuple[str, ...],
    keep: Path | None,
) -> None:
    """Run it; each result is written when it is there."""
    file = into / "cpu.csv"
    rows: list[Mapping[str, object]] = []
    if (again or only) and file.exists():
        rows += gallery.read_rows(file)
    with tempfile.TemporaryDirectory() as scratch:
        real = data.resolve() if data is not None else None
        for row in () if again else runs(real, only, kinds, keep.resolve() if keep is not None else Path(scratch)):
            rows = [old for old in rows if (old["script"], old["data"]) != (row["script"], row["data"])] + [row]
            gallery.write_rows(file, rows)
    gallery.tell({"studies/cpu": table(rows)}, page)


if __name__ == "__main__":
    main()
