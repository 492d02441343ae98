"""The files that options name: none is what the run reads or another option's; results and failures as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqldeid.cli.targets import JSON, PAGE, check_output, is_stdout, is_stream, refuse_kind, write_text
from sqldeid.errors import EngineError, JobError, SqldeidError
from sqldeid.files import read_json, read_limited
from sqldeid.keys import is_key

if TYPE_CHECKING:
    from sqldeid.job import Job


HOUSE_RULES = "SQLDEID_HOUSE_RULES"
"""The environment variable that names a file which runs read."""

_KINDS = {"--report": PAGE, "--html": PAGE, "--public": JSON | PAGE}
"""What options write; the others write JSON."""


def check_outputs(
    outputs: Mapping[str, str | None], job: Job, database: str, reads: Sequence[str] = (), *, results: bool = False
) -> None:
    """Refuse, before anything is done, what cannot be written later or would overwrite what the run reads.

    Parameters
    ----------
    outputs
        Option → the file it names, `-` (not for the certificate) or None.
    reads
        Other files that the run reads.
    results
        Whether `--json` is for a release's result, which may take the place of an earlier one.

    Raises
    ------
    JobError
        If a folder is missing, or the file is one that is read, or in the release, or holds a release's result.
    """
    if is_stdout(outputs.get("--certificate") or ""):
        raise JobError.at("--certificate", "name a file; standard output is for --json")
    into = job.locate(job.release.into) if job.release.into is not None else None
    asked = {option: file for option, file in outputs.items() if file is not None and file != os.devnull}
    given = {option: file for option, file in asked.items() if not is_stdout(file)}
    if len(asked) - len(given) > 1:
        options = " and ".join(o for o in asked if o not in given)
        raise JobError(f"{options} both name standard output; give one a file", key="--public")
    read = [database, *([str(job.path)] if job.path else []), *reads]
    for option, file in given.items():
        check_found(option, file, read, kinds=_KINDS.get(option, JSON), results=results and option == "--json")
        if into is not None and Path(os.path.realpath(file)).is_relative_to(os.path.realpath(into)):
            raise JobError.at(option, f"{file} lies in the release; name a file elsewhere")
    if len({os.path.realpath(f) for f in given.values()}) < len(given):
        raise JobError(f"{' and '.join(given)} name one file; give each its own", key=next(iter(given)))


def check_found(
    option: str,
    target: str | None,
    reads: Sequence[str] = (),
    *,
    kinds: frozenset[str] = JSON,
    results: bool = False,
) -> None:
    """Refuse, before anything is done, a file that cannot be written, or by which something would be lost.

    Parameters
    ----------
    reads
        What the command reads. The house rules that bind every run are among it.
    kinds
        The endings that are right.
    results
        Whether it is for a release's result, which may take the place of an earlier one.

    Raises
    ------
    JobError
        If its folder is missing, or the file is one that is read, holds a key or a release's result or certificate, or
        is another's.
    """
    if target is None or is_stdout(target):
        return
    refuse_kind(option, target, kinds)
    check_output(option, target)
    refuse_over_result(option, target, own="result" if results else option.removeprefix("--"))
    bound = [os.environ[HOUSE_RULES]] if os.environ.get(HOUSE_RULES) else []
    if os.path.realpath(target) in [os.path.realpath(read) for read in (*reads, *bound)]:
        raise JobError.at(option, f"{target} is what the run reads; name another file")
    refuse_over_key(option, target)
    if kinds >= PAGE and Path(target).suffix.casefold() not in JSON:
        refuse_over_others(option, target, "page", is_page)
    else:
        refuse_over_others(option, target, "JSON", is_ours)


def refuse_over_result(option: str, target: str | None, own: str = "") -> None:
    """Refuse a file that holds a release's result or certificate: neither can be found again once the source changes.

    The result may be the policy of later runs.

    Parameters
    ----------
    own
        ``result`` or ``certificate``, which may take the place of an earlier one, where that is what is written.

    Raises
    ------
    JobError
        If it does.
    """
    if target is None or is_stdout(target) or is_stream(target):
        return
    found = _object(Path(target)).keys()
    for kept, what in zip(_KEPT, ("result", "certificate"), strict=True):
        if found >= kept and what != own:
            raise JobError.at(option, f"{target} holds the {what} of a release, which would be lost; name another file")


def refuse_over_key(option: str, target: str | None) -> None:
    """Refuse a file that holds a secret key, without which neither pseudonyms nor a ledger can be gone on with.

    Raises
    ------
    JobError
        If it does.
    """
    if target is not None and not is_stdout(target) and is_key(Path(target)):
        raise JobError.at(option, f"{target} holds a secret key, which would be lost; name another file")


def refuse_over_others(option: str, target: str, what: str, ours: Callable[[Path], bool]) -> None:
    """Refuse to write where a file stands that is none of ours of its kind: ours can be made again, another's cannot.

    An empty file loses nothing: `mktemp` makes one.

    Parameters
    ----------
    what
        What we write there, in a word.
    ours
        Whether a file is one that we wrote.

    Raises
    ------
    JobError
        If it is another's.
    """
    path = Path(target)
    if is_stream(target) or not path.is_file() or not path.stat().st_size:
        return
    if not ours(path):
        said = f"{target} exists already and is no {what} that sqldeid wrote; remove it, or name another file"
        raise JobError.at(option, said)


def is_page(path: Path) -> bool:
    """Whether a file is a page of ours."""
    head = head_of(path)
    return any(sign in head for sign in _PAGE_SIGNS)


def is_ours(path: Path) -> bool:
    """Whether a file is JSON of ours: a result, a finding, a plan, a failure, or what goes with a release."""
    found = _object(path).keys()
    return bool(_OURS & found) or found >= _PUBLIC


def head_of(path: Path) -> bytes:
    """The beginning of a file; nothing of one that cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_PAGE_HEAD)
    except OSError:
        return b""


def write_json(target: str, content: Mapping[str, object]) -> None:
    """Write JSON where a target says; to standard output in its encoding. A failure that lies beside it is over.

    Raises
    ------
    EngineError
        If it cannot be written.
    """
    _put(target, content)
    if not (is_stdout(target) or is_stream(target)):
        _remove_error(beside(target))


def _put(target: str, content: Mapping[str, object]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False, default=str)
    if is_stdout(target):
        print_json(text)
    else:
        write_text(target, _ascii(text, "utf-8") + "\n")


def read_certificates(path: Path) -> dict[str, object]:
    """The certificates of a file that `anonymize --certificate` wrote, by release; what is in them is not looked at.

    Raises
    ------
    JobError
        If there is no such file, or it is something else.
    """
    option = "--certificate"
    try:
        found = read_json(read_limited(path))
    except OSError as error:
        raise JobError.at(option, f"{path} cannot be read ({error.strerror})") from None
    except ValueError:
        raise JobError.at(option, f"{path} is not JSON, or holds a key twice") from None
    certificates = found.get("certificates") if isinstance(found, dict) else None
    if not isinstance(certificates, dict):
        raise JobError.at(option, f"{path} is not a certificate; `sqldeid anonymize --certificate` writes one")
    return certificates


def write_error(target: str, error: SqldeidError) -> str:
    """Write a failure where `--json` says; beside a release's result that stands there, and never over another's file.

    That result may be the policy of every later run. What other commands found can be found again: there the failure
    takes its place, so that nobody takes an older finding for this one. A run can also fail before it is known what the
    arguments name: the file may be the database itself.

    Returns
    -------
    str
        The file where the failure is, if it is another than the target; else nothing.

    Raises
    ------
    EngineError
        If what stands in its place is another's, or it cannot be written.
    """
    content = {"error": error.to_dict()}
    if is_stdout(target) or is_stream(target) or not os.path.lexists(target):
        write_json(target, content)
        return ""
    found = _object(Path(target)).keys()
    if not _OURS & found:
        raise EngineError(f"{target} exists and is not a result of sqldeid; the failure was not written there")
    if "error" in found or not any(kept <= found for kept in _KEPT):
        write_json(target, content)
        return ""
    aside = beside(target)
    if os.path.lexists(aside) and not _is_error(aside):
        raise EngineError(
            f"{target} holds an earlier release's result and stays, and {aside} is not a failure of sqldeid; the "
            "failure was not written"
        )
    _put(aside, content)
    return aside


def beside(target: str) -> str:
    """The file for a failure where a target holds a result: `first.json` has `first.error.json`."""
    path = Path(target)
    return str(path.with_name(f"{path.stem}.error{path.suffix}"))


def _remove_error(aside: str) -> None:
    """Remove an earlier run's failure, so that there is one exactly where the last run failed; nothing else."""
    if os.path.lexists(aside) and _is_error(aside):
        with suppress(OSError):
            os.unlink(aside)


def _is_error(file: str) -> bool:
    """Whether a file is a failure as we write it, and nothing else."""
    found = _object(Path(file))
    told = found.get("error")
    return found.keys() == {"error"} and isinstance(told, dict) and {"code", "kind", "key", "message"} <= told.keys()


def _object(path: Path) -> dict[str, object]:
    """What a file holds that is a JSON object; nothing of any other."""
    try:
        found = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


_OURS = {"audience", "error", "plan", "shifts"}
_PUBLIC = {"releases", "sqldeid"}
_KEPT = ({"audience", "releases", "job_sha256"}, {"audience", "certificates"})
"""Keys of what a release leaves: its result, which is a policy and evidence, and its certificates."""
_PAGE_HEAD = 1024
"""Bytes at the beginning of a page in which it says whose it is."""
_PAGE_SIGNS = (
    b'<meta name="generator" content="sqldeid">',
    b"style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'",
)
"""What our pages say there; the second, their content policy, those of versions that did not name themselves, too."""


def print_json(text: str) -> None:
    """Print JSON in the encoding of standard output."""
    sys.stdout.write(_ascii(text, sys.stdout.encoding or "utf-8") + "\n")
    sys.stdout.flush()


def _ascii(text: str, encoding: str) -> str:
    """The text, with escapes for everything beyond ASCII where the encoding has not all of it."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), indent=2)
    return text
