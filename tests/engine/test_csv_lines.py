"""What is said of a CSV file that is not read: the flaw that it has, on the line where it is, and no value."""

from __future__ import annotations

import gzip
import random

import pytest

import sqldeid
from sqldeid.engine.csv_lines import MALFORMED, flaw

ROWS = [f"P{i},SECRET{i % 7},{i % 5}" for i in range(200)]
HEADER = "id,x,y"
JOB = {
    "tables": {
        "t": {
            "source": "main.t",
            "person": "id",
            "privacy": {"k": 2},
            "columns": {"y": {"role": "quasi-identifying", "hierarchy": {"suppress": True}}},
        }
    }
}


def refused(path) -> str:
    with pytest.raises(sqldeid.JobError) as told:
        sqldeid.plan(sqldeid.Job.parse(JOB), path)
    assert "SECRET" not in told.value.message
    return str(told.value.message)


def lines(*rows: str, end: str = "\r\n") -> bytes:
    return "".join(f"{row}{end}" for row in (HEADER, *rows)).encode()


@pytest.mark.parametrize("wanted", [2, 3, 99, 201])
def test_one_line_that_ends_otherwise_is_named(tmp_path, wanted):
    parts = lines(*ROWS).split(b"\r\n")
    content = b"\r\n".join(parts[:wanted]) + b"\n" + b"\r\n".join(parts[wanted:])
    (tmp_path / "t.csv").write_bytes(content)
    assert f"1 of 201 lines end otherwise than the header (CRLF and LF), the first of them is line {wanted};" in flaw(
        tmp_path / "t.csv"
    )


def test_a_run_says_that_line_ends_are_mixed(tmp_path):
    (tmp_path / "t.csv").write_bytes(lines(*ROWS) + b"P200,1,2\nP201,1,3\n")
    said = refused(tmp_path / "t.csv")
    assert "2 of 203 lines end otherwise" in said and "first of them is line 202" in said and "sed -i" in said


def test_a_line_end_within_quotes_is_none(tmp_path):
    (tmp_path / "t.csv").write_bytes(lines('P1,"a\nb",1', "P2,c,2"))
    assert flaw(tmp_path / "t.csv") == MALFORMED


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_utf_16_is_told_with_the_command(tmp_path, encoding, packed):
    content = lines(*ROWS).decode().encode(encoding)
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    said = refused(path)
    assert "the file is in UTF-16" in said and "iconv -f UTF-16" in said and "line" not in said.partition(": ")[2]


def test_an_open_quote_is_found_on_its_line(tmp_path):
    draw = random.Random(3)
    for _ in range(5):
        rows, at = list(ROWS), draw.randrange(len(ROWS))
        rows[at] = f'P{at},"SECRET,1'
        (tmp_path / "t.csv").write_bytes(lines(*rows, end="\n"))
        assert f"line {at + 2}: a quote begins and does not end" in flaw(tmp_path / "t.csv")


@pytest.mark.parametrize(("row", "said"), [("P,1", "line 12 has more or"), ('P,"a"b,1', "line 12: a quote ends")])
def test_a_line_that_is_wrong_is_named(tmp_path, row, said):
    (tmp_path / "t.csv").write_bytes(lines(*ROWS[:10], row, *ROWS[10:]))
    assert said in flaw(tmp_path / "t.csv")
