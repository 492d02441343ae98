"""Find the malformed line of a CSV file, which DuckDB does not always name."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

SEPARATORS = ",;\t|"
MALFORMED = "the file is no CSV: a line has more or fewer fields than the header, or a quote does not end"


def first_ragged(path: Path) -> int | None:
    """The number of the first line that has not as many fields as the header; None where that is not the flaw.

    Cost: one reading of the file up to that line. Nothing of the line is returned, for it holds data.
    """
    opened = gzip.open if path.suffix.casefold() == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", errors="replace", newline="") as file:
            header = file.readline()
            separator = max(SEPARATORS, key=header.count)
            wanted = len(next(csv.reader([header], delimiter=separator)))
            reader = csv.reader(file, delimiter=separator)
            return next((reader.line_num + 1 for row in reader if row and len(row) != wanted), None)
    except (OSError, csv.Error, StopIteration):
        return None
