"""Staging and publishing of releases: everything appears together, verified, or nothing does."""

from sqldeid.publish.existing import open_target, others_in_file, others_in_folder, published, refuse_existing
from sqldeid.publish.notes import Note, ours, read_note
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
    "OLD",
    "TARGET",
    "Destination",
    "FreshFile",
    "InPlace",
    "Note",
    "ParquetFolder",
    "Staging",
    "open_target",
    "others_in_file",
    "others_in_folder",
    "ours",
    "parquet_relation",
    "published",
    "read_note",
    "refuse_existing",
]
