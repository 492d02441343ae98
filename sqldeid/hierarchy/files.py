"""Hierarchies from CSV files: one line a leaf, `original;level 1;…;top`, no header; and from rows of a database."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from sqldeid.arrays import Ints
from sqldeid.errors import HierarchyError
from sqldeid.files import read_limited
from sqldeid.hierarchy.column import Column, keys
from sqldeid.hierarchy.model import Hierarchy, Labels, label_array, nesting_message, torn_groups
from sqldeid.hierarchy.tree import Tree, Uncovered, assemble, find

DELIMITERS = (";", ",", "\t")
SAMPLE = 200
"""Records by which the delimiter is found."""
CHUNK = 50_000
TOP = "*"
_JAVA = b"\xac\xed"
"""How every stream of serialised Java objects begins; no text in UTF-8 does."""


@dataclass(frozen=True, slots=True, eq=False)
class FileSource:
    """A hierarchy read from a file or a table of the database; its leaves are those, whatever the data holds.

    Parameters
    ----------
    tree
        The file's leaves and their ancestors. The empty leaf stands for NULL.
    lines
        Line of each leaf, for messages; None where it was read from the database, whose rows have no order.
    data_derived
        Whether it was read from the rows that are released, so that its leaves are the data's.
    """

    tree: Tree
    lines: Ints | None
    data_derived: bool = False

    @property
    def name(self) -> str:
        """Name of the hierarchy."""
        return self.tree.name

    @property
    def height(self) -> int:
        """Number of levels, level 0 and the top included."""
        return len(self.tree.level_names)

    @property
    def level_names(self) -> tuple[str, ...]:
        """Readable name of each level."""
        return self.tree.level_names

    def bind(self, values: pa.Array, *, numeric: bool = False, uncovered: Uncovered = "refuse") -> Hierarchy:
        """Match the file's leaves to the data values by type; leaves that no value has stay.

        The line with an empty leaf is NULL's; in a text column '' has that line's ancestors too, as a leaf of its own.

        Raises
        ------
        UncoveredValues
            If values are neither in the file nor placed by `uncovered`.
        HierarchyError
            If two leaves mean one value of this type and differ in their ancestors.
        """
        column = Column.of(values, numeric=numeric)
        tree = self._merged(column)
        leaf = find(keys(column.texts, column.kind), keys(pa.array(tree.leaves, pa.string()), column.kind))
        nulls = np.flatnonzero([leaf is None for leaf in tree.leaves])
        if len(nulls):
            leaf[column.null] = nulls[0]
            if column.kind == "text":
                tree = _with_empty_text(tree, int(nulls[0]), leaf, column)
        return assemble(tree, column, leaf, uncovered)

    def _merged(self, column: Column) -> Tree:
        """Make one leaf of leaves such as `7` and `07` that are equal in this column's type."""
        if column.kind == "text":
            return self.tree
        coded = keys(pa.array(self.tree.leaves, pa.string()), column.kind).dictionary_encode()
        code = coded.indices.fill_null(-1).to_numpy().astype(np.int64)
        known = np.flatnonzero(code >= 0)
        _, first, which = np.unique(code[known], return_index=True, return_inverse=True)
        if len(first) == len(known):
            return self.tree
        _refuse_clashes(self.name, self.tree.groups, known[first][which], known, self.lines)
        keep = np.union1d(known[first], np.flatnonzero(code < 0))
        groups = tuple(g[keep] for g in self.tree.groups)
        return Tree(self.name, self.level_names, self.tree.leaves[keep], groups, self.tree.labels)


def _with_empty_text(tree: Tree, null_leaf: int, leaf: Ints, column: Column) -> Tree:
    """Give the data value '' a leaf beside NULL's; `leaf` is told of it."""
    at = np.flatnonzero((column.texts.to_numpy(zero_copy_only=False) == "") & (leaf < 0))
    if not len(at):
        return tree
    leaf[at] = len(tree.leaves)
    groups = tuple(np.append(g, g[null_leaf]) for g in tree.groups)
    return Tree(tree.name, tree.level_names, np.append(tree.leaves, ""), groups, tree.labels)


def load_file(path: Path, name: str) -> FileSource:
    """Read a hierarchy file; the delimiter (`;`, `,` or tab) is found by itself.

    A top `*` is added where the last column has more than one label.

    Raises
    ------
    HierarchyError
        If the file is missing, empty, not UTF-8, not CSV or ragged, if a leaf has two lines that differ, or if the
        levels do not nest; with line numbers and counts, without values.
    """
    text = _decode(path, name)
    delimiter = _delimiter(text)
    columns, lines = _columns(text, delimiter, name)
    return _source(name, [_encode(column) for column in columns], lines)


def from_rows(name: str, columns: Sequence[pa.Array], *, data_derived: bool = False) -> FileSource:
    """A hierarchy of rows that were read from a database: the value's text, then its label on each level.

    Unlike in a file NULL is NULL and the empty text is one. A top `*` is added where the last column has more than one
    label.

    Raises
    ------
    HierarchyError
        If there is no row, if a value has two rows that differ, or if the levels do not nest; without values.
    """
    if not len(columns[0]):
        raise HierarchyError(f"hierarchy {name}: it has no rows. It needs one for each value: value, level 1, …, top")
    order = pc.sort_indices(
        pa.table(list(columns), names=[str(i) for i in range(len(columns))]),
        sort_keys=[(str(i), "ascending") for i in range(len(columns))],
    )
    encoded = [_numbered(column.take(order)) for column in columns]
    if len(encoded) > 1 and len(encoded[-1][1]) == 1 and encoded[-1][1][0] is None:
        raise HierarchyError(f"hierarchy {name}: the last column is NULL throughout. Leave it out by columns = [...]")
    return _source(name, encoded, None, data_derived)


def _numbered(column: pa.Array) -> tuple[Ints, Labels]:
    """Number a column's labels from 0 in the order of the rows; NULL is one of them."""
    coded = column.dictionary_encode(null_encoding="encode")
    return coded.indices.to_numpy().astype(np.int64), label_array(coded.dictionary.to_pylist())


def _decode(path: Path, name: str) -> str:
    """The file as text."""
    try:
        data = read_limited(path)
    except OSError as error:
        raise HierarchyError(f"hierarchy {name}: it cannot be read ({error.strerror or 'unknown reason'})") from None
    if data.startswith(_JAVA):
        raise HierarchyError(
            f"hierarchy {name}: it holds Java objects (as a hierarchy's wizard in ARX saves them, .ahs), which are not "
            "read. Save the ARX project and take its hierarchies by sqldeid import-arx, or export this one as CSV there"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise HierarchyError(f"hierarchy {name}: line {line} is not UTF-8. Save the file as UTF-8") from None


def _records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line number (the last, where a quoted field spans several) and fields of each record; no blank lines."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    return ((reader.line_num, record) for record in reader if record)


def _delimiter(text: str) -> str:
    """The delimiter that splits the first records evenly, to one top if any does, into the most columns."""

    def quality(delimiter: str) -> tuple[bool, bool, int]:
        try:
            records = [record for _, record in islice(_records(text, delimiter), SAMPLE)]
        except csv.Error:
            return False, False, 0
        widths = {len(record) for record in records}
        even = len(widths) == 1 and widths != {1}
        return even, even and len({record[-1] for record in records}) == 1, max(widths, default=0)

    return max(DELIMITERS, key=quality)


def _columns(text: str, delimiter: str, name: str) -> tuple[list[pa.Array], Ints]:
    """The fields by column, and each record's line."""
    columns = _plain_columns(text, delimiter)
    if columns is None:
        return _quoted_columns(text, delimiter, name)
    return columns, np.arange(1, len(columns[0]) + 1, dtype=np.int64)


def _plain_columns(text: str, delimiter: str) -> list[pa.Array] | None:
    """The fields by column of a text that Arrow splits as `csv` does: a tenth of the time.

    None where it might not, or where something is wrong, which `csv` tells line by line: for quotes, blank lines, lone
    carriage returns, NUL, fields beyond what `csv` takes, and lines of different length.
    """
    text = text.replace("\r\n", "\n").rstrip("\n")
    if not text or text.startswith("\n") or any(odd in text for odd in ('"', "\r", "\0", "\n\n")):
        return None
    names = [str(i) for i in range(text.partition("\n")[0].count(delimiter) + 1)]
    try:
        table = arrow_csv.read_csv(
            pa.py_buffer(text.encode()),
            read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    longest = max(pc.max(pc.binary_length(column)).as_py() for column in table.columns)
    if longest > csv.field_size_limit():
        return None
    return [column.combine_chunks() for column in table.columns]


def _quoted_columns(text: str, delimiter: str, name: str) -> tuple[list[pa.Array], Ints]:
    """The same for any text, row by row; only a chunk is ever held as Python objects."""
    records = _records(text, delimiter)
    chunks: list[list[pa.Array]] = []
    lines: list[Ints] = []
    line = 0
    try:
        while chunk := list(islice(records, CHUNK)):
            width = len(chunks[0]) if chunks else len(chunk[0][1])
            for line, record in chunk:
                if len(record) != width:
                    fields = "1 field" if len(record) == 1 else f"{len(record)} fields"
                    raise HierarchyError(
                        f"hierarchy {name}: line {line} has {fields}, the first has {width}. "
                        "Every line needs the value and its label on every level"
                    )
            chunks.append([pa.array(c, pa.string()) for c in zip(*(record for _, record in chunk), strict=True)])
            lines.append(np.array([line for line, _ in chunk], dtype=np.int64))
    except csv.Error:
        place = f"after line {line}" if line else "from its first line on"
        raise HierarchyError(
            f"hierarchy {name}: {place} the file is not CSV: a quote is not closed, or text follows it"
        ) from None
    if not chunks:
        raise HierarchyError(f"hierarchy {name}: the file is empty. Write one line a value: original;level 1;…;top")
    return [pa.concat_arrays(parts) for parts in zip(*chunks, strict=True)], np.concatenate(lines)


def _encode(column: pa.Array) -> tuple[Ints, Labels]:
    """Number a column's labels from 0 in the order of the file; the empty field is NULL (None)."""
    coded = column.dictionary_encode()
    labels = [label or None for label in coded.dictionary.to_pylist()]
    return coded.indices.to_numpy().astype(np.int64), label_array(labels)


def _source(
    name: str, encoded: list[tuple[Ints, Labels]], lines: Ints | None, data_derived: bool = False
) -> FileSource:
    """Check the columns and make a tree of them."""
    (leaf, leaves), levels = encoded[0], encoded[1:]
    if levels and len(levels[-1][1]) == 1 and levels[-1][1][0] is None:
        raise HierarchyError(f"hierarchy {name}: the last column is empty. Remove the delimiter that ends the lines")
    first = np.unique(leaf, return_index=True)[1].astype(np.int64)
    _refuse_clashes(name, tuple(g for g, _ in levels), first[leaf], np.arange(len(leaf)), lines)
    groups, labels = [g[first] for g, _ in levels], [names for _, names in levels]
    if not labels or len(labels[-1]) > 1:
        groups.append(np.zeros(len(leaves), dtype=np.int64))
        labels.append(label_array([TOP]))
    kept = None if lines is None else lines[first]
    _refuse_torn(name, groups, labels, kept)
    names = ("original", *(f"level {x}" for x in range(1, len(labels))), TOP)
    return FileSource(Tree(name, names, leaves, tuple(groups), tuple(labels)), kept, data_derived)


def _refuse_clashes(name: str, groups: tuple[Ints, ...], one: Ints, other: Ints, lines: Ints | None) -> None:
    """Raise if lines of the same leaf (`one`, `other`) differ in their ancestors."""
    differ = np.zeros(len(one), dtype=bool)
    for group in groups:
        differ |= group[one] != group[other]
    at = np.flatnonzero(differ)
    if len(at) and lines is None:
        raise HierarchyError(
            f"hierarchy {name}: {len(at)} row{' has' if len(at) == 1 else 's have'} a value that another row has with "
            "other labels (in this column's type 7 and 07 may be one value). Keep one row for each value"
        )
    if len(at) and lines is not None:
        raise HierarchyError(
            f"hierarchy {name}: {len(at)} line{' repeats' if len(at) == 1 else 's repeat'} a value with other labels, "
            f"the first is line {lines[other[at[0]]]} (like line {lines[one[at[0]]]}). Keep one line for each value"
        )


def _refuse_torn(name: str, groups: list[Ints], labels: list[Labels], lines: Ints | None) -> None:
    """Raise if a label has different parents, with two lines that show it."""
    for x in range(len(groups) - 1):
        lower, upper = groups[x], groups[x + 1]
        torn = torn_groups(lower, upper, len(labels[x]))
        if len(torn):
            leaves = np.flatnonzero(lower == torn[0])
            other = leaves[np.argmax(upper[leaves] != upper[leaves[0]])]
            where = "" if lines is None else f" (see lines {lines[leaves[0]]} and {lines[other]})"
            raise HierarchyError(nesting_message(name, x + 1, len(torn), where))
