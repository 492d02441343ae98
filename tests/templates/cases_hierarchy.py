"""Cases of the templates that read hierarchies from the database: hostile names, NULLs, equal rows, far codes."""

from __future__ import annotations

from sqldeid.sql import column, identifier, table_name
from tests.templates.cases import Case

LEVELS = table_name("le vels")
LEVELS_SETUP = (
    'CREATE TABLE "le vels" ("select" INTEGER, "gro up" VARCHAR(20))',
    """INSERT INTO "le vels" VALUES (7, 'a'), (7, 'a'), (8, ''), (NULL, 'it''s'), (9, NULL)""",
)
LINKS = table_name("li nks")
LINKS_SETUP = (
    'CREATE TABLE "li nks" ("select" BIGINT, "up" BIGINT, steps INTEGER)',
    """INSERT INTO "li nks" VALUES (1, 10, 1), (1, 10, 1), (1, 11, 1), (1, 20, 2), (1, 1, 0), (2, NULL, NULL),
       (10, 20, 1), (3, 20, 2), (NULL, 20, 1)""",
    "CREATE TABLE asked (code BIGINT)",
    "INSERT INTO asked VALUES (1), (2), (3), (11), (99)",
)
LINKED = {
    "source": LINKS,
    "asked": table_name("asked"),
    "child": column("select", "s"),
    "parent": column("up", "s"),
}

CASES = (
    Case(
        "tables/plan/read_levels",
        {
            "source": LEVELS,
            "levels": [
                {"name": identifier("l0"), "column": column("select", "s")},
                {"name": identifier("l1"), "column": column("gro up", "s")},
            ],
            "limit": 100,
        },
        [("7", "a"), ("8", ""), (None, "it's"), ("9", None)],
        LEVELS_SETUP,
        ordered=False,
    ),
    Case(
        "tables/plan/read_links",
        {**LINKED, "separation": column("steps", "s")},
        [("1", "10"), ("1", "11")],
        LINKS_SETUP,
        ordered=False,
        note="of one step",
    ),
    Case(
        "tables/plan/read_links",
        {**LINKED, "separation": None},
        [("1", "10"), ("1", "11"), ("1", "20"), ("1", "1"), ("3", "20")],
        LINKS_SETUP,
        ordered=False,
        note="all",
    ),
    Case(
        "tables/plan/add_versions",
        {
            "source": LEVELS,
            "joined": [{"version": column("select", "s"), "codes": column("gro up", "s"), "name": identifier("x:y")}],
        },
        [(7, "a", "7:a"), (7, "a", "7:a"), (8, "", "8:"), (None, "it's", ":it's"), (9, None, None)],
        LEVELS_SETUP,
        ordered=False,
    ),
    Case("tables/plan/read_known", LINKED, [("1",), ("2",), ("3",), ("11",)], LINKS_SETUP, ordered=False),
)
