"""The only place where a name or a value becomes SQL."""

from sqldeid.sql.names import column, identifier, literal, parse_table, table_name
from sqldeid.sql.templates import load, render, template_names

__all__ = ["column", "identifier", "literal", "load", "parse_table", "render", "table_name", "template_names"]
