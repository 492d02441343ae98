"""Staging and publishing of releases: everything appears together, verified, or nothing does."""

from sqldeid.publish.existing import (
    held_notes,
    notes_there,
    open_target,
    others_in_file,
    others_in_folder,
    published,
    refuse_existing,
    refuse_forgotten,
)
from sqldeid.publish.notes import LEDGER_MARK, LEDGER_NOTE, LINKED_NOTE, SOURCE_NOTE, Note, key_of, ours, read_note
from sqldeid.publish.places import (
    OLD,
    TARGET,
    Destination,
    FreshFile,
    InPlace,
    ParquetFolder,
    Staging,
    parquet_relation,
)

__all__ = [
    "LEDGER_MARK",
    "LEDGER_NOTE",
    "LINKED_NOTE",
    "OLD",
    "SOURCE_NOTE",
    "TARGET",
    "Destination",
    "FreshFile",
    "InPlace",
    "Note",
    "ParquetFolder",
    "Staging",
    "held_notes",
    "key_of",
    "notes_there",
    "open_target",
    "others_in_file",
    "others_in_folder",
    "ours",
    "parquet_relation",
    "published",
    "read_note",
    "refuse_existing",
    "refuse_forgotten",
]
