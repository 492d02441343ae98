"""The statements that put a release where it goes, and what another engine runs in the place of one of DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqldeid.errors import UnknownKindError
from sqldeid.sql import Statement
from sqldeid.sql.steps import LOCAL, as_needed, step
from sqldeid.stages import Step

_OWN = {
    "postgres": {
        "publish/create_schema": (
            *("publish/list_schemas", "publish/create_schema"),
            *("publish/list_rights", "publish/read_owner"),
        ),
        "tables/write/stage_rows": ("tables/write/stage_rows", "publish/copy_table"),
        "tables/write/stage_classes": ("tables/write/stage_classes", "publish/copy_table"),
        "tables/itemset/stage_nothing": ("tables/itemset/stage_nothing", "publish/copy_table"),
        "tables/itemset/stage_rows": ("tables/itemset/stage_rows", "publish/copy_table"),
        "tables/local/roll_up": ("tables/local/roll_up", "publish/copy_table"),
        "tables/local/write_hierarchies": ("tables/local/write_hierarchies", "publish/copy_table"),
    },
    "spark": {
        "publish/create_view": ("publish/flip_view",),
        "publish/comment_view": (),
        "publish/comment_column": (),
        "publish/copy_parquet": (
            *("publish/create_there", "publish/open_folder", "publish/read_claims", "publish/write_claim"),
            *("publish/create_schema", "publish/write_folder", "publish/count_files"),
            *("publish/compare_folder", "publish/write_note", "publish/drop_released", "publish/drop_schema"),
        ),
        "tables/write/stage_rows": ("tables/write/stage_rows", "publish/create_staged"),
        "tables/write/stage_classes": ("tables/write/stage_classes", "publish/create_staged"),
        "tables/itemset/stage_items": ("tables/itemset/stage_items", "publish/create_staged"),
        "tables/itemset/stage_nothing": ("tables/itemset/stage_nothing", "publish/create_staged"),
        "tables/itemset/stage_rows": ("tables/itemset/stage_rows", "publish/create_staged"),
        "tables/local/roll_up": ("tables/local/roll_up", "publish/create_staged"),
        "tables/local/write_hierarchies": ("tables/local/write_hierarchies", "publish/create_staged"),
    },
}
"""By engine: what it does in the place of a step, as often as it takes; only the step itself is sure to run."""

_LAST = {
    "postgres": (
        *("publish/list_domains", "publish/change_type"),
        *("publish/list_grants", "publish/drop_view", "publish/rename_table", "publish/grant_right"),
    ),
    "spark": ("publish/drop_view", "publish/rename_table"),
}
"""What an engine does with what is written, and last, where releases are staged under other names than their own."""


def putting(kind: str, columns: int, *written: Step, tables: int = 1) -> Iterator[Step]:
    """What `Staging.write` runs around the statement that writes a release.

    Parameters
    ----------
    kind
        What the release becomes: ``table``, ``view`` or ``parquet``.
    columns
        Of all `tables` together, for each of which a note is kept.
    written
        What writes the release itself.
    """
    if kind != "parquet":
        yield step("publish/create_schema")
    yield from written
    match kind:
        case "parquet":
            yield step("publish/copy_parquet", tables)
        case "view":
            yield step("publish/create_view", tables)
            yield from noting("publish/comment_table", columns, tables)
            yield from noting("publish/comment_view", columns, tables)
        case "table":
            yield from noting("publish/comment_table", columns, tables)
        case unknown:
            raise UnknownKindError(unknown, "kind of destination")


def noting(template: str, columns: int, tables: int = 1) -> Iterator[Step]:
    """What puts a note on a release and on its columns."""
    yield step(template, tables)
    yield step("publish/comment_column", columns)


def in_dialect(listed: Sequence[Step], dialect: str) -> tuple[Step, ...]:
    """The same steps with the texts that another engine runs; what is asked of folded classes runs in its workbench."""
    if dialect == LOCAL:
        return tuple(listed)
    own = tuple(found for one in listed for found in _of_engine(one, dialect))
    return (*own, *as_needed(*_LAST.get(dialect, ())))


def _of_engine(one: Step, dialect: str) -> Iterator[Step]:
    """A step as an engine takes it, with what it does around it."""
    for template in _OWN.get(dialect, {}).get(one.template, (one.template,)):
        if template == one.template:
            texts = (t.written_for(dialect) if isinstance(t, Statement) else t for t in one.statements)
            yield replace(one, statements=tuple(texts))
        else:
            yield step(template, None)
