"""Resolve the hierarchies by which t-closeness takes distances: the values that they name, and the groups of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sqldeid.errors import JobError
from sqldeid.hierarchy import open_source
from sqldeid.hierarchy.files import FileSource


def grouped(entry: Mapping[str, Any], folder: Path, key: str) -> dict[str, Any]:
    """An entry of the job with the values that its hierarchy names, and their groups.

    Parameters
    ----------
    folder
        The job file's.

    Returns
    -------
    With `order`, the values in the order of the file, and `groups`: for each level below the top, the original's first,
    the group of each value, at last that of NULL, which is one of its own unless the file has a line for it.

    Raises
    ------
    JobError
        If there is no such hierarchy, or it is a rule, which names no values.
    """
    try:
        source = open_source(entry["hierarchy"], folder)
    except JobError as error:
        raise type(error).at(key, error.message) from None
    if not isinstance(source, FileSource):
        raise JobError.at(
            key, f"hierarchy {entry['hierarchy']} is a rule, which names no values; write a CSV file with a line each"
        )
    tree = source.tree
    named = np.array([leaf is not None for leaf in tree.leaves])
    order = [str(leaf) for leaf in tree.leaves if leaf is not None]
    levels = [tuple(range(len(order) + 1))]
    for group in tree.groups[:-1]:
        of_null = group[~named][0] if (~named).any() else group.max() + 1
        levels.append(tuple(int(g) for g in [*group[named], of_null]))
    return {**entry, "hierarchy": source_name(source.name), "order": order, "groups": tuple(levels)}


def source_name(name: str) -> str:
    """A hierarchy's name as it may be told: a file's own name, without its folders."""
    return Path(name).name if Path(name).suffix.lower() in (".csv", ".tsv", ".txt") else name
