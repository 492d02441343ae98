"""Templates that stand between a source engine and its workbench."""

from __future__ import annotations

from sqldeid.sql import identifier, table_name
from tests.templates.cases import CLASSES_SETUP, Case

CASES = [
    Case(
        "engine/read_table",
        {"table": table_name("clas ses"), "columns": [identifier("n"), identifier("w0")]},
        [(2, 0), (1, 4), (1, 5), (2, 9)],
        CLASSES_SETUP,
    ),
]
