"""The zip archive of an ARX project, read as what a stranger wrote: nothing is unpacked to a path that it names.

What is read is named here and read into memory, so that a name such as ``../x`` in the archive leads nowhere. Each
entry has a most that it may unpack to, and XML may declare nothing, neither entities nor a DTD.
"""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from xml.parsers import expat

from sqldeid.errors import JobError

MOST_XML = 1 << 24
"""Bytes of an XML entry, unpacked; a project of a thousand attributes takes one."""
MOST_DATA = 1 << 30
"""Bytes of a CSV entry, unpacked."""
_MOST_DEPTH = 16
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
"""What `zipfile` raises of an archive that is damaged, locked by a password, or packed in a way that it cannot read."""


@dataclass(slots=True)
class Element:
    """An XML element: its name, its text (that of children apart) and its children, in order."""

    tag: str
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def child(self, tag: str) -> Element | None:
        """The only child of that name; None where there is none.

        Raises
        ------
        ValueError
            Where there are several, which contradict each other or not.
        """
        found = self.every(tag)
        if len(found) > 1:
            raise ValueError(tag)
        return found[0] if found else None

    def every(self, tag: str) -> list[Element]:
        """The children of that name."""
        return [child for child in self.children if child.tag == tag]


class Archive:
    """An ARX project file, opened for reading.

    Raises
    ------
    JobError
        If the file cannot be read, is no zip archive, or has two entries of one name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
            names = Counter(entry.filename for entry in self._zip.infolist())
        except OSError as error:
            raise self.error(f"it cannot be read ({error.strerror or 'unknown reason'})") from None
        except _BROKEN:
            raise self.error("it is not an ARX project (a zip archive); name a file that ARX saved as .deid") from None
        self._names = frozenset(names)
        if names and max(names.values()) > 1:
            self._zip.close()
            raise self.error("two entries of the archive have one name; open it in ARX and save it again")

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._zip.close()

    def error(self, text: str) -> JobError:
        """A refusal that names the file."""
        return JobError(f"{self._path}: {text}", key="project")

    def __contains__(self, entry: str) -> bool:
        return entry in self._names

    def read(self, entry: str, most: int = MOST_DATA) -> bytes:
        """The bytes of an entry.

        Raises
        ------
        JobError
            If it is missing or damaged, has a password, or unpacks to more than `most` bytes.
        """
        if entry not in self._names:
            raise self.error(f"it has no {entry}; open the project in ARX 3, save it, and import that")
        try:
            with self._zip.open(entry) as file:
                content = file.read(most + 1)
        except OSError as error:
            raise self.error(f"{entry} cannot be read ({error.strerror or 'unknown reason'})") from None
        except _BROKEN:
            raise self.error(f"{entry} is damaged or locked; save the project anew in ARX") from None
        if len(content) > most:
            raise self.error(
                f"{entry} is larger than {most >> 20} MB, which is not taken; load the data into a database and write "
                "the job by sqldeid init"
            )
        return content

    def xml(self, entry: str, root: str) -> Element:
        """The root element of an XML entry, which is to be called `root`.

        Raises
        ------
        JobError
            If it is no XML, declares a document type (entities, files), is nested too deep, or has another root.
        """
        found = _Parser().parse(self.read(entry, MOST_XML))
        if isinstance(found, str):
            raise self.error(f"{entry} {found}; open the project in ARX 3 and save it again")
        if found.tag != root:
            raise self.error(f"{entry} is not what ARX writes there; open the project in ARX 3 and save it again")
        return found


class _RefusedError(Exception):
    """What this reader does not take of XML."""


class _Parser:
    """XML to elements; whatever a document may declare for a parser to expand or fetch ends the reading."""

    def __init__(self) -> None:
        self._root: Element | None = None
        self._open: list[Element] = []
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._declared
        self._parser.EntityDeclHandler = self._declared

    def parse(self, content: bytes) -> Element | str:
        """The root, or why there is none."""
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            return f"is not XML (line {error.lineno})"
        except (ValueError, LookupError):
            return "is in an encoding that is not known"
        except _RefusedError as refused:
            return str(refused)
        return self._root or Element("")

    def _start(self, tag: str, _attributes: dict[str, str]) -> None:
        element = Element(tag)
        if len(self._open) >= _MOST_DEPTH:
            raise _RefusedError("is nested deeper than ARX writes it")
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, _tag: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        if self._open:
            self._open[-1].text += text

    def _declared(self, *_: object) -> None:
        raise _RefusedError("declares a document type or entities, which ARX never does")
