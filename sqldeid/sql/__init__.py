"""The only place where a name or a value becomes SQL, and where a user's SQL is checked."""

from sqldeid.sql.guard import bind, outward, parse_expression, parse_query, tables_of
from sqldeid.sql.names import column, identifier, literal, parse_table, table_name
from sqldeid.sql.templates import Fixed, Statement, fix, load, made_by, render, template_names

__all__ = [
    "Fixed",
    "Statement",
    "bind",
    "column",
    "fix",
    "identifier",
    "literal",
    "load",
    "made_by",
    "outward",
    "parse_expression",
    "parse_query",
    "parse_table",
    "render",
    "table_name",
    "tables_of",
    "template_names",
]
