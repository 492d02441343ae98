"""Say of DuckDB's types as what values reach Python."""

from __future__ import annotations

from sqldeid.engine.base import Kind

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"], "integer"),
    **dict.fromkeys(["UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM", "DECIMAL"], "number"),
    **dict.fromkeys(["FLOAT", "DOUBLE"], "float"),
    **dict.fromkeys(["BOOLEAN"], "boolean"),
    **dict.fromkeys(["DATE"], "date"),
    **dict.fromkeys(["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"], "timestamp"),
    **dict.fromkeys(["VARCHAR", "ENUM", "UUID", "TIME", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"], "text"),
    **dict.fromkeys(["TIME WITH TIME ZONE", "BIT"], "text"),
}


def kind_of(type_: str) -> Kind:
    """How values of a DuckDB type travel; nested types, BLOB, INTERVAL (30 days equal a month) do not ("other")."""
    if type_.endswith("]"):
        return "other"
    return _KINDS.get(type_.split("(")[0].strip(), "other")
