"""Templates that roll up and count classes where the source is, before any of them travels."""

from __future__ import annotations

from sqldeid.sql import identifier, table_name
from tests.templates.cases import CLASSES_SETUP, FOLDED_SETUP, Case

ROLLED = table_name("rol led")
READ = 'SELECT * FROM "rol led"'


def _groups(*masks: int) -> list[dict[str, object]]:
    return [{"word": identifier(w), "mask": m} for w, m in zip(("w0", "s0", "s1"), masks, strict=False)]


CASES = [
    Case(
        "tables/check/roll_up",
        {"rolled": ROLLED, "classes": table_name("clas ses"), "groups": _groups(12)},
        [(0, 2), (4, 2), (8, 2)],
        CLASSES_SETUP,
        read=READ,
        ordered=False,
        note="to classes without ages",
    ),
    Case(
        "tables/check/roll_up",
        {"rolled": ROLLED, "classes": table_name("fol ded"), "groups": _groups(0, -1, -1)},
        [(0, 0, 0, 2), (0, 1, 0, 1), (0, 0, 1, 1), (0, 3, None, 4)],
        FOLDED_SETUP,
        read=READ,
        ordered=False,
        note="sensitive codes stay whole, NULL too",
    ),
    Case(
        "tables/check/histogram_nodes",
        {
            "nodes": [
                {"id": 0, "classes": table_name("clas ses"), "groups": _groups(13)},
                {"id": 1, "classes": table_name("clas ses"), "groups": _groups(0)},
            ]
        },
        [(0, 1, 2), (0, 2, 2), (1, 6, 1)],
        CLASSES_SETUP,
    ),
]
