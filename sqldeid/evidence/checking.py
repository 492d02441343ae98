"""Check evidence without a database: every hash in the archive, and files against what it says of them.

Guarantee
    An archive that passes holds exactly the members that its manifest lists, each with the hash that it states, packed
    as `pack` packs; its job, rules and certificate are those that the manifest names as inputs; and its texts are what
    this version writes of its findings. A file that is given is the one that the evidence was made of.
Assumes
    SHA-256. That the archive is the one that was made: whoever may change it may make another one that is as whole. So
    its own SHA-256, which is printed when it is made, is to be kept where others cannot change it, and given here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqldeid.errors import JobError, VerificationError
from sqldeid.evidence.agreeing import differing
from sqldeid.evidence.archive import unpack
from sqldeid.evidence.frameworks import Run
from sqldeid.evidence.inputs import Given, content_of, releases_of, sha256
from sqldeid.evidence.making import FINDINGS, FORMAT, MANIFEST
from sqldeid.evidence.text import texts
from sqldeid.files import read_json
from sqldeid.job import Job
from sqldeid.job.reading import read_toml
from sqldeid.report.html import UNSHOWN
from sqldeid.report.shape import releases_of as shaped
from sqldeid.version import OTHER_FORM, own_version

_REFUSED = "the archive is not to be used"


@dataclass(frozen=True, slots=True)
class Checked:
    """Evidence that holds.

    Parameters
    ----------
    sha256
        Of the archive.
    members
        Their names.
    compared, not_compared
        Files outside that were given and are the same; and those that the archive names and nobody gave.
    """

    sha256: str
    members: tuple[str, ...]
    compared: tuple[str, ...]
    not_compared: tuple[str, ...]


def check(archive_file: Path, given: Given, *, result: Path | None = None, expected: str | None = None) -> Checked:
    """Check an archive of evidence.

    Parameters
    ----------
    given
        Files that it was made of, which are compared with it.
    result
        The result that it was made of.
    expected
        The SHA-256 that was noted when it was made.

    Raises
    ------
    VerificationError
        If anything in it, or a file, is not what it was.
    JobError
        If a file cannot be read.
    """
    content = content_of("archive", archive_file)
    if expected is not None and expected.lower() != sha256(content):
        raise VerificationError(f"{archive_file}: its SHA-256 is another than was given; {_REFUSED}", key="--sha256")
    try:
        members = unpack(content)
        inputs, maker = _whole(members)
        _refuse_other_texts(members, inputs, maker)
    except UNSHOWN as error:
        what = f"its manifest or findings are not what is written there ({type(error).__name__})"
        raise VerificationError(f"{archive_file}: {what}; {_REFUSED}") from None
    except (VerificationError, JobError) as error:
        raise VerificationError(f"{archive_file}: {error.message}") from None
    compared = tuple(_compare(inputs, given, result))
    left = tuple(name for name in _outside(inputs) if name not in compared)
    return Checked(sha256(content), tuple(sorted(members)), compared, left)


def _whole(members: Mapping[str, bytes]) -> tuple[dict[str, Any], str]:
    """The inputs that the manifest names, and the version that made it, when each member is what it says."""
    if MANIFEST not in members or FINDINGS not in members:
        raise VerificationError(f"it has no manifest or no findings; {_REFUSED}")
    manifest = read_json(members[MANIFEST])
    if manifest["format"] != FORMAT:
        raise VerificationError(f"it {OTHER_FORM}")
    listed = manifest["members"]
    if missing := sorted(set(listed) - set(members)):
        raise VerificationError(f"{missing[0]} is missing in it; {_REFUSED}")
    if more := sorted(set(members) - set(listed) - {MANIFEST}):
        raise VerificationError(f"{more[0]} is in it and not in its manifest; {_REFUSED}")
    for name, told in listed.items():
        if told["sha256"] != sha256(members[name]) or told["bytes"] != len(members[name]):
            raise VerificationError(f"{name} in it was changed; {_REFUSED}")
    _inputs_are_members(manifest["inputs"], members)
    return manifest["inputs"], str(manifest["made_by"]["sqldeid"])


def _inputs_are_members(inputs: Mapping[str, Any], members: Mapping[str, bytes]) -> None:
    """The job, rules and certificate that are in it are those that it was made of, and the findings' own."""
    taken = _taken(inputs)
    if set(members) != {MANIFEST, FINDINGS, "evidence.md", "evidence.html"} | set(taken):
        raise VerificationError(f"it holds other members than evidence has; {_REFUSED}")
    for name, digest in taken.items():
        if sha256(members[name]) != digest:
            raise VerificationError(f"{name} in it is another file than it was made of; {_REFUSED}")
    if inputs["findings"]["sha256"] != sha256(members[FINDINGS]):
        raise VerificationError(f"its findings are others than it was made with; {_REFUSED}")
    findings = read_json(members[FINDINGS])
    held = [one["sha256"] for one in findings.get("house_rules") or ()]
    if inputs["job"]["sha256"] != findings["job_sha256"] or [r["sha256"] for r in inputs["house_rules"]] != held:
        raise VerificationError(f"its findings are of another job, or of other house rules; {_REFUSED}")


def _taken(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Name and hash of the given files that are in it."""
    taken: dict[str, str] = {}
    if inputs["job"]["given"]:
        taken["job.toml"] = inputs["job"]["sha256"]
    if inputs["certificate"] is not None:
        taken["certificate.json"] = inputs["certificate"]["sha256"]
    for number, rules in enumerate(inputs["house_rules"], 1):
        if rules["given"]:
            taken[f"house-rules-{number}.toml"] = rules["sha256"]
    return taken


def _refuse_other_texts(members: Mapping[str, bytes], inputs: dict[str, Any], maker: str) -> None:
    """Refuse texts that are not what this version writes of the findings.

    Also where the manifest names another version, which may spell them otherwise: whoever forges a text can name any.
    """
    findings = read_json(members[FINDINGS])
    if "job.toml" in members:
        job = Job.parse(read_toml(members["job.toml"], "job.toml"), name="job.toml")
        if key := differing(job, findings):
            raise VerificationError(f"{key} of the job in it is not what its findings say was asked; {_REFUSED}")
    written, _ = texts(Run(findings, shaped(findings, public=False), inputs))
    for name, content in written.items():
        if members[name] != content:
            raise VerificationError(f"{name} in it is not what this version writes of its findings: {_why(maker)}")


def _why(maker: str) -> str:
    """Why a text may be another, and what to do; a version that is not released yet has many builds."""
    if maker == own_version():
        return (
            f"it was changed, or another build of sqldeid {maker} made the archive; check it with that build, and do "
            "not use it until then"
        )
    return (
        f"the archive names another version, sqldeid {maker}, as what made it, whose page cannot be compared; check it "
        "with that version, and do not use it until then"
    )


def _outside(inputs: Mapping[str, Any]) -> Iterator[str]:
    """Files that the archive names and does not hold."""
    yield str(inputs["result"]["name"])
    yield from (str(one["name"]) for one in inputs["releases"])


def _compare(inputs: Mapping[str, Any], given: Given, result: Path | None) -> Iterator[str]:
    """Hold given files to what the archive says of them; the names of those that are the same."""
    certificate = inputs["certificate"]
    single = [
        ("--result", result, inputs["result"]["sha256"]),
        ("--job", given.job, inputs["job"]["sha256"]),
        ("--certificate", given.certificate, certificate["sha256"] if certificate else ""),
    ]
    for option, file, digest in single:
        if file is not None:
            _hold(option, file, [digest])
            yield inputs["result"]["name"] if option == "--result" else file.name
    for file in given.house_rules:
        _hold("--house-rules", file, [one["sha256"] for one in inputs["house_rules"]])
        yield file.name
    yield from _compare_releases(inputs, given)


def _hold(option: str, file: Path, digests: list[str]) -> None:
    if sha256(content_of(option, file)) not in digests:
        raise VerificationError(f"{option}: {file} is not what the evidence was made of", key=option)


def _compare_releases(inputs: Mapping[str, Any], given: Given) -> Iterator[str]:
    """Released files, by their names; a folder must have all the files that it had, and no other."""
    known = {one["name"]: one for one in inputs["releases"]}
    found = releases_of(given.releases)
    for one in found:
        name = str(one["name"])
        if name not in known or known[name]["sha256"] != one["sha256"]:
            raise VerificationError(f"--release: {name} is not what the evidence was made of", key="--release")
        yield name
    names = {str(one["name"]) for one in found}
    for path in given.releases:
        inside = f"{path.resolve().name}/"
        if path.is_dir() and (gone := [name for name in known if name.startswith(inside) and name not in names]):
            raise VerificationError(f"--release: {gone[0]} is missing", key="--release")
