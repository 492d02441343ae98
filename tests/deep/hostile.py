"""What is hostile: names, file names, texts, types and their values, senseless settings; and how often."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

CANARY = "CANARY"
KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0"


class Random(random.Random):
    """A generator of one case."""

    wild = 0.0
    """From 0, where what is asked fits together, so that jobs run, to 1, where anything goes."""

    def often(self, wildly: float, tamely: float) -> bool:
        """True in this share of cases."""
        return self.random() < tamely + self.wild * (wildly - tamely)

    def odd(self) -> bool:
        """Whether to do without what would make it fit."""
        return self.random() < self.wild


Make = Callable[[Random], Any]

NAMES = (
    *("age", "sex", "zip code", "sel;ect", 'qu"ote', "apo'strophe", "select", "naïve 患者", "a.b", "%s", "{x}", "[1]"),
    *("*", "-v", "new\nline", "tab\t", "__snapshot", "x" * 63, "ROWID", "Ünï", "$1", ":p", "null", "k=v", "🙂", "_"),
    *(
        "{{ x }}",
        "{% raw %}",
        "%(x)s",
        "<b>&amp;",
        "</script>",
        "back\\slash",
        "--",
        "/* c",
        "?",
        "$$",
        "`tick`",
        " a ",
    ),
    *("e\u0301", "é", "İ", "ß", "\u202egnp.exe", "zero\u200bwidth", "\x01", "y" * 300, "0", "1e5", "true", "n", "k"),
    *("position", "person_number", "step", "variable", "value", "count", "class", "level", "rows", "from", "sum(1)"),
    *(
        "id_1",
        "code_1",
        "illness_2",
        "main.people",
        "release.one",
        "t",
        "'; DROP TABLE people; --",
        "Infinity",
        "#",
        "=",
    ),
)
FILES = (
    *("s", "a[1]", "p?", "*", "it's", "x;y", "naïve 患者", "-rf", "k=v", "s3:x", "%20", "a b", "new\nline", "{a,b}"),
    *("e\u0301", "$HOME", "~", "a.b.c", "<b>", "#1", "&", "back\\slash", "main", "temp", "z" * 120, "{{x}}", '"'),
)
TEXTS = (
    *(
        "",
        " ",
        "a",
        "A",
        "ä",
        "*",
        "NULL",
        "0",
        "007",
        "'",
        '"',
        ";",
        "a,b",
        "\\",
        "\n",
        "患者",
        "1e5",
        "x" * 300,
        "nan",
    ),
    *(
        "a ",
        " a",
        "e\u0301",
        "é",
        "İ",
        "i",
        "ß",
        "ss",
        "\t",
        "\r",
        "\u00a0",
        "\u200b",
        "=1+1",
        "<script>",
        "{{x}}",
        "*1",
    ),
    *("[5, 10)", "≥ 90", "-0", "+5", "true", "2020-02-30", "1'000", "\x01", "\U0010ffff", "𝒳", "-", "%"),
)

TYPES: dict[str, str] = {
    "INTEGER": "CAST(h(i, {n}) % {d} AS INTEGER)",
    "TINYINT": "CAST(h(i, {n}) % {d} - 9 AS TINYINT)",
    "BIGINT": "CAST(h(i, {n}) % {d} AS BIGINT) * 3000000000",
    "far BIGINT": "[-9223372036854775808, 9223372036854775807, 0, -1, 1][1 + h(i, {n}) % 5]",
    "UBIGINT": "CAST([18446744073709551615, 9223372036854775808, 0, 1][1 + h(i, {n}) % 4] AS UBIGINT)",
    "HUGEINT": "CAST(h(i, {n}) % {d} AS HUGEINT) * 300000000000000000000",
    "UHUGEINT": "CAST('340282366920938463463374607431768211455' AS UHUGEINT) - CAST(h(i, {n}) % {d} AS UHUGEINT)",
    "UTINYINT": "CAST(h(i, {n}) % {d} AS UTINYINT)",
    "DOUBLE": "CASE h(i, {n}) % {d} WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN 'inf'::DOUBLE ELSE h(i, {n}) % {d} / 7e0 END",
    "far DOUBLE": "[1.7e308, -1.7e308, 5e-324, -0e0, 0e0, 1e22, 0.1][1 + h(i, {n}) % 7]::DOUBLE",
    "FLOAT": "CAST(h(i, {n}) % {d} / 3e0 AS FLOAT)",
    "DECIMAL": "CAST(h(i, {n}) % {d} / 8e0 AS DECIMAL(18, 3))",
    "wide DECIMAL": "CAST(repeat('9', 36) || '.' || (h(i, {n}) % {d}) % 10 AS DECIMAL(38, 1))",
    "VARCHAR": "({t})[1 + h(i, {n}) % {d}]",
    "many VARCHAR": "({t})[1 + h(i, {n}) % len({t})]",
    "DATE": "DATE '2000-01-01' + CAST(h(i, {n}) % {d} * 37 AS INTEGER)",
    "far DATE": "[DATE 'infinity', '-infinity', '0001-01-01', '5874897-12-31', '2020-02-29', '290000-01-01 (BC)'][1 + h(i, {n}) % 6]",
    "TIMESTAMP": "TIMESTAMP '2000-01-01' + to_hours(CAST(h(i, {n}) % {d} * 31 AS BIGINT))",
    "far TIMESTAMP": "[TIMESTAMP 'infinity', '-infinity', '0001-01-01', '9999-12-31', '2020-02-29', '290000-01-01'][1 + h(i, {n}) % 6]",
    "TIMESTAMP_S": "CAST(TIMESTAMP '1969-12-31 23:59:59' + to_days(CAST(h(i, {n}) % {d} AS INTEGER)) AS TIMESTAMP_S)",
    "TIMESTAMP_NS": "CAST(TIMESTAMP '2000-01-01' + to_hours(CAST(h(i, {n}) % {d} AS BIGINT)) AS TIMESTAMP_NS)",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2000-01-01 00:00:00+00' + to_hours(CAST(h(i, {n}) % {d} * 31 AS BIGINT))",
    "far TIMESTAMPTZ": "[TIMESTAMPTZ 'infinity', '-infinity', '0001-01-01 00:00:00+00', '2021-03-28 01:30:00+00'][1 + h(i, {n}) % 4]",
    "TIME": "TIME '00:00:00' + to_minutes(CAST(h(i, {n}) % {d} AS BIGINT))",
    "TIMETZ": "CAST(TIME '00:00:00' + to_minutes(CAST(h(i, {n}) % {d} AS BIGINT)) AS TIMETZ)",
    "BOOLEAN": "h(i, {n}) % 2 = 0",
    "UUID": "CAST(md5(CAST(h(i, {n}) % {d} AS VARCHAR)) AS UUID)",
    "ENUM": "CAST(['lo', 'mid', 'hi'][1 + h(i, {n}) % 3] AS ENUM('lo', 'mid', 'hi', 'CANARY never'))",
    "only NULL": "CAST(NULL AS VARCHAR)",
    "one value": "CAST(7 AS SMALLINT)",
    "each its own": "'v' || i",
    "JSON": "CAST('{{\"a\": ' || h(i, {n}) % {d} || '}}' AS JSON)",
    "BLOB": "CAST(chr(97 + CAST(h(i, {n}) % 9 AS INTEGER)) AS BLOB)",
    "INTERVAL": "to_days(CAST(h(i, {n}) % {d} AS INTEGER))",
    "LIST": "[h(i, {n}) % {d}, 1]",
    "ARRAY": "array_value(h(i, {n}) % {d}, 1)",
    "STRUCT": "{{'a': h(i, {n}) % {d}}}",
    "MAP": "MAP {{'a': h(i, {n}) % {d}}}",
    "UNION": "union_value(num := h(i, {n}) % {d})",
    "BIT": "CAST('10' || CAST(h(i, {n}) % 2 AS VARCHAR) AS BIT)",
}

UNFIT = ("BLOB", "INTERVAL", "LIST", "ARRAY", "STRUCT", "MAP", "UNION", "BIT")
"""Types that cannot be quasi-identifying."""

CUT = ("INTEGER", "TINYINT", "BIGINT", "far BIGINT", "UBIGINT", "HUGEINT", "UTINYINT", "DOUBLE", "far DOUBLE", "FLOAT")
CUT += ("DECIMAL", "wide DECIMAL", "DATE", "far DATE", "TIMESTAMP", "far TIMESTAMP", "TIMESTAMPTZ", "one value")
"""Types that have medians."""

JUNK: tuple[Any, ...] = (
    *([], {}, -1, 0, 10**18, "", "x", 1e308, float("inf"), float("nan"), True, [[]], {"x": 1}, ["p"], "\u0007"),
    *(0.1 + 0.2, 5e-324, -(2**63), "CON", "x" * 5000, [1, "a", 2.5], {"": 1}, {"query": ""}, {"query": "SELECT 1;"}),
)
