"""What do notes tell about patients? Table 3.1 and section 3.3 of Mazzone (2019) on invented notes, or on yours.

    python notes.py                                         on invented notes of nurses and doctors
    python notes.py DATABASE --table mimiciii.noteevents    on notes of yours: columns `subject_id` and `text`

Keywords are counted twice: as letters anywhere in the text, the "naive string search" of the source, and as words, as
`sqldeid explore --text … --keywords keywords.toml` does it. Of invented notes it is known what they tell.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import duckdb

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gallery import Row, markdown, put, show_figure, write_rows  # noqa: E402
from generate import Notes, write_notes  # noqa: E402

import sqldeid  # noqa: E402
from sqldeid.report.charts import Bar, bars, render  # noqa: E402

SOURCE_NOTES = 2_083_180
SOURCE = {"age": 564_491, "sex": 1_823_400, "ethnicity": 4_226, "religion": 722, "orientation": 445}
"""Table 3.1: notes with a keyword, among all."""

SOURCE_FIRST = 0.495
"""Of 45,089 patients with notes of nurses those whom the first 20 characters of one single out."""


def substrings(database: Path, table: str, keywords: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Notes with the letters of a keyword anywhere in them, whatever their case."""
    with duckdb.connect(str(database), read_only=True) as connection:
        return {g: counted(connection, table, letters(words), words)[0] for g, words in keywords.items()}


def confused(database: Path, table: str, keywords: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, int]]:
    """By attribute, invented notes that match as letters and tell nothing, and that tell it and do not match."""
    found = {}
    with duckdb.connect(str(database), read_only=True) as connection:
        for group, words in keywords.items():
            hit = letters(words)
            false = counted(connection, table, f"({hit}) AND NOT tells_{group}", words)[0]
            found[group] = (false, counted(connection, table, f"NOT ({hit}) AND tells_{group}", words)[0])
    return found


def letters(words: Sequence[str]) -> str:
    """SQL: whether a text holds the letters of one of so many words."""
    return " OR ".join(["contains(lower(text), ?)"] * len(words))


def counted(connection: duckdb.DuckDBPyConnection, table: str, condition: str, words: Sequence[str]) -> tuple[int, ...]:
    """How many notes meet a condition on words."""
    asked = f"SELECT COUNT(*) FROM {table} WHERE {condition}"  # noqa: S608
    return connection.execute(asked, [w.lower() for w in words]).fetchone() or (0,)


def table_3_1(database: Path, table: str, notes: Notes | None, keywords: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """The source's table: notes by attribute, as it counts and as words; beside them what is known to be told."""
    every = sqldeid.explore_text(database, table, "text", first=(20,), keywords=keywords, person="subject_id")
    own = sqldeid.explore_text(database, table, "text", first=(), person="subject_id")
    mine = {g.group: g.rows for g in own.keywords}
    anywhere = substrings(database, table, keywords)
    wrong = confused(database, table, keywords) if notes else {}
    for group in every.keywords:
        row: dict[str, object] = {
            "attribute": group.group,
            "letters, source's list": share(anywhere[group.group], every.rows),
            "words, source's list": share(group.rows, every.rows),
            "words, sqldeid's list": share(mine[group.group], every.rows),
        }
        if notes:
            false, missed = wrong[group.group]
            row |= {
                "told": share(notes.told[group.group], every.rows),
                "letters: matched, not told": share(false, every.rows),
                "letters: told, not matched": share(missed, every.rows),
            }
        yield {**row, "source (letters)": f"{SOURCE[group.group]:,} ({share(SOURCE[group.group], SOURCE_NOTES)})"}


def first_characters(database: Path, table: str) -> Iterator[Row]:
    """Patients whom the first characters of a note single out, by kind of note."""
    with duckdb.connect(str(database), read_only=True) as connection:
        kinds = [k for (k,) in connection.execute(f"SELECT DISTINCT category FROM {table} ORDER BY 1").fetchall()]  # noqa: S608
    with tempfile.TemporaryDirectory() as scratch:
        for kind in kinds:
            path = Path(scratch) / "kind.duckdb"
            path.unlink(missing_ok=True)
            with duckdb.connect(str(path)) as connection:
                connection.execute("ATTACH '" + str(database).replace("'", "''") + "' AS given (READ_ONLY)")
                name = table.partition(".")
                chosen = f"SELECT * FROM given.{name[0]}.{name[2]} WHERE category = ?"  # noqa: S608
                connection.execute(f"CREATE TABLE main.notes AS {chosen}", [kind])
            found = sqldeid.explore_text(path, "main.notes", "text", first=(20,), keywords={}, person="subject_id")
            yield {
                "notes of": kind,
                "notes": f"{found.rows:,}",
                "patients": f"{found.persons:,}",
                "singled out by the first 20 characters": f"{found.prefixes[0].alone:.1%}",
                "source": f"{SOURCE_FIRST:.1%} of 45,089" if kind.startswith("Nursing") else "",
            }


def share(part: int, whole: int) -> str:
    """Per cent."""
    return f"{100 * part / whole:.2f} %" if whole else "–"


def draw(database: Path, table: str, keywords: Mapping[str, Sequence[str]], file: Path) -> None:
    """Shares of notes by attribute: letters, words, the source."""
    words = sqldeid.explore_text(database, table, "text", first=(), keywords=keywords, person="subject_id")
    anywhere, rows = substrings(database, table, keywords), []
    for group in words.keywords:
        rows += [
            Bar(f"{group.group}: letters", (anywhere[group.group] / words.rows,)),
            Bar(f"{group.group}: words", (group.rows / words.rows,)),
            Bar(f"{group.group}: source, letters", (SOURCE[group.group] / SOURCE_NOTES,)),
        ]
    made = bars(rows, ["notes"], title="Notes that hold a keyword (table 3.1)", xlabel="% of notes")
    file.write_bytes(render(made, "png"))


@click.command()
@click.argument("database", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
@click.option("--table", default="main.noteevents", show_default=True, help="Schema and table of the notes.")
@click.option("--patients", default=4_500, show_default=True, type=click.IntRange(1), help="Invented.")
@click.option("--notes", "count", default=50_000, show_default=True, type=click.IntRange(1), help="Invented.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the invented notes.")
@click.option(
    "--into", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", help="Output folder."
)
@click.option("--page", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Put the tables there.")
def main(
    database: Path | None, table: str, patients: int, count: int, seed: int, into: Path, page: Path | None
) -> None:
    """Redo table 3.1 and the search by first characters: tables, CSV files and a figure."""
    keywords = tomllib.loads((HERE / "keywords.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        try:
            invented = None if database else write_notes(Path(scratch) / "notes.duckdb", patients, count, seed)
            path = database or Path(scratch) / "notes.duckdb"
            tables = {
                "table-3-1": list(table_3_1(path, table, invented, keywords)),
                "first-characters": list(first_characters(path, table)),
            }
            draw(path, table, keywords, into / "notes.png")
        except (sqldeid.SqldeidError, duckdb.Error) as error:
            raise click.ClickException(str(error)) from None
    for name, rows in tables.items():
        click.echo(f"{markdown(rows)}\n")
        write_rows(into / f"{name}.csv", rows)
        if page is not None:
            put(page, f"notes_study/{name}", markdown(rows))

    if page is not None:
        show_figure(page, into / "notes.png")


if __name__ == "__main__":
    main()
