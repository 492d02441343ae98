"""The archive: a zip of few flat files whose bytes depend on their contents alone.

An archive is accepted only if packing its members again gives the same bytes: so there is no place for another member,
a path, a comment, a link or anything before or behind it.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping

from sqldeid.errors import VerificationError

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip can tell: files in it have no time."""

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,60}")
_MOST = 64
"""Members of an archive."""


def pack(members: Mapping[str, bytes]) -> bytes:
    """A zip of the members, by name, stored as they are: the same members give the same bytes on every machine."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            if not _NAME.fullmatch(name):
                raise ValueError("a member's name is flat, in small letters")
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system, info.external_attr = 3, 0o600 << 16
            archive.writestr(info, members[name])
    return made.getvalue()


def unpack(content: bytes) -> dict[str, bytes]:
    """The members of an archive, by name.

    Raises
    ------
    VerificationError
        If it is none that `pack` made.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            _refuse_odd(infos, len(content))
            members = {info.filename: archive.read(info) for info in infos}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OSError, OverflowError):
        raise VerificationError("the archive is damaged, or no archive of evidence; it is not to be used") from None
    if pack(members) != content:
        raise VerificationError("the archive was packed again by somebody else; it is not to be used")
    return members


def _refuse_odd(infos: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse what `pack` does not make, before anything is read from it."""
    names = [info.filename for info in infos]
    if len(names) > _MOST or len(set(names)) < len(names):
        raise VerificationError("the archive has a member twice, or too many; it is not to be used")
    for info in infos:
        if not _NAME.fullmatch(info.filename):
            raise VerificationError("the archive has a member whose name is a path, or strange; it is not to be used")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits or info.file_size > size:
            raise VerificationError("the archive has a member that is packed in another way; it is not to be used")
