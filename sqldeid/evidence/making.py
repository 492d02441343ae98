"""Make evidence of a run: its result and the files around it become one archive. Nothing is read but these files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqldeid.errors import JobError
from sqldeid.evidence.agreeing import differing, of_other_terms
from sqldeid.evidence.archive import pack
from sqldeid.evidence.frameworks import Run
from sqldeid.evidence.inputs import Given, content_of, hierarchies_of, pretty, refuse_others, releases_of, sha256
from sqldeid.evidence.text import texts
from sqldeid.files import read_json
from sqldeid.job import Job
from sqldeid.report.html import UNSHOWN
from sqldeid.report.shape import releases_of as shaped
from sqldeid.result import HOLDER
from sqldeid.version import OTHER_FORM, is_known, own_version

FORMAT = "sqldeid evidence 1"
MANIFEST = "manifest.json"
FINDINGS = "findings.json"


@dataclass(frozen=True, slots=True)
class Made:
    """Evidence.

    Parameters
    ----------
    archive
        The bytes of the file; the same inputs give the same ones.
    sha256
        Their hash: whoever keeps it elsewhere can see later that nothing was changed.
    still_open
        How many places the text leaves to a person.
    """

    archive: bytes
    sha256: str
    still_open: int


def make(result_file: Path, given: Given) -> Made:
    """Evidence of the run that wrote a result.

    Raises
    ------
    JobError
        If the result is none, or a file is not the one that the run read or wrote.
    """
    content = content_of("result", result_file)
    result = read_result(content, str(result_file))
    try:
        inputs, members = _inputs(result, given)
        inputs["result"] = {"name": result_file.name, "bytes": len(content), "sha256": sha256(content)}
        members[FINDINGS] = pretty(findings_of(result))
        inputs["findings"] = {"name": FINDINGS, "sha256": sha256(members[FINDINGS])}
        findings = json.loads(members[FINDINGS])
        written, still_open = texts(Run(findings, shaped(findings, public=False), inputs))
    except UNSHOWN as error:
        raise JobError(
            f"{result_file}: no evidence can be made of this result ({type(error).__name__}); it was changed after it "
            "was written, or is of another version: make it anew with `sqldeid anonymize --json FILE`",
            key="result",
        ) from None
    members |= written
    members[MANIFEST] = pretty(_manifest(inputs, members))
    archive = pack(members)
    return Made(archive, sha256(archive), still_open)


def read_result(content: bytes, name: str) -> dict[str, Any]:
    """What `--json` wrote.

    Raises
    ------
    JobError
        If it is something else.
    """
    try:
        found = read_json(content)
    except ValueError:
        text = f"{name}: is not JSON, or holds a key twice; `sqldeid anonymize --json FILE` writes a result"
        raise JobError(text, key="result") from None
    if not isinstance(found, dict) or not found.get("releases") or not found.get("job_sha256"):
        raise JobError(f"{name}: is not the result of a run; `sqldeid anonymize --json FILE` writes one", key="result")
    try:
        shaped(found, public=False)
    except JobError as error:
        raise JobError(f"{name}: {error.message}", key="result") from None
    return found


def findings_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """The result without what `--policy` uses again: hierarchies with the values of the source."""
    releases = {name: {k: v for k, v in one.items() if k != "policy"} for name, one in result["releases"].items()}
    return {**result, "releases": releases}


def _inputs(result: Mapping[str, Any], given: Given) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Hashes of what was given, and those files that are taken in; each is held to the result."""
    members: dict[str, bytes] = {}
    job, asked = None, {"name": result.get("job"), "sha256": result["job_sha256"], "given": given.job is not None}
    if given.job is not None:
        members["job.toml"] = content_of("--job", given.job)
        if sha256(members["job.toml"]) != asked["sha256"]:
            raise JobError.at(
                "--job", f"{given.job} is not the job of this result, or was changed since; give that one"
            )
        job = Job.load(given.job)
        if key := differing(job, result):
            raise JobError.at(
                "result", f"{key} of {given.job} is not what this result says was asked; it was changed, make it anew"
            )
    certificate = None
    if given.certificate is not None:
        members["certificate.json"] = content_of("--certificate", given.certificate)
        _refuse_other_proof(members["certificate.json"], result, given.certificate)
        certificate = {"name": given.certificate.name, "sha256": sha256(members["certificate.json"])}
    refuse_others(result, given.releases)
    return {
        "job": asked,
        "certificate": certificate,
        "house_rules": _rules(result, given, members),
        "hierarchies": hierarchies_of(result, job),
        "releases": releases_of(given.releases),
    }, members


def _rules(result: Mapping[str, Any], given: Given, members: dict[str, bytes]) -> list[dict[str, object]]:
    """The house rules that the run was held to; those that are given are taken in."""
    asked = [{"name": one["file"], "sha256": one["sha256"]} for one in result.get("house_rules") or ()]
    contents = {sha256(content): (file, content) for file in given.house_rules for content in [_rule(file)]}
    for digest, (file, _) in contents.items():
        if digest not in [one["sha256"] for one in asked]:
            raise JobError.at("--house-rules", f"{file} is not what the run was held to, or was changed since")
    for number, one in enumerate(asked, 1):
        if one["sha256"] in contents:
            members[f"house-rules-{number}.toml"] = contents[one["sha256"]][1]
    return [{**one, "given": one["sha256"] in contents} for one in asked]


def _rule(file: Path) -> bytes:
    return content_of("--house-rules", file)


def _refuse_other_proof(content: bytes, result: Mapping[str, Any], file: Path) -> None:
    """A certificate of another run proves nothing of this one."""
    try:
        found = read_json(content)
    except ValueError:
        found = None
    proofs = found.get("certificates") if isinstance(found, dict) else None
    if not isinstance(proofs, dict) or not proofs:
        raise JobError.at("--certificate", f"{file} holds no certificate; `sqldeid anonymize --certificate` writes one")
    for name, proof in proofs.items():
        if isinstance(proof, dict) and not is_known(proof):
            raise JobError.at("--certificate", f"{file} {OTHER_FORM}")
        release = result["releases"].get(name)
        if release is None or not isinstance(proof, dict) or not _same_node(proof, release):
            raise JobError.at("--certificate", f"{file} is of another run: its proof is not of this result's node")
        if of_other_terms(proof, release):
            raise JobError.at(
                "--certificate", f"{file} is of another run: k or suppression_limit are not this result's"
            )


def _same_node(proof: Mapping[str, Any], release: Mapping[str, Any]) -> bool:
    """Whether a proof is of a release's levels, where both have them: by local recoding there is no one node."""
    levels, columns, node = proof.get("node"), proof.get("columns"), release.get("node")
    if not isinstance(levels, list) or not isinstance(columns, Mapping) or not isinstance(node, Mapping):
        return proof.get("release", "") != "" and levels is None and node is None
    proven = dict(zip(columns, levels, strict=False))
    return len(columns) == len(levels) and all(proven[name] == node[name] for name in set(proven) & set(node))


def _manifest(inputs: Mapping[str, Any], members: Mapping[str, bytes]) -> dict[str, object]:
    """What the archive holds, by hash; the manifest itself is not in it."""
    return {
        "format": FORMAT,
        "audience": HOLDER,
        "made_by": {"sqldeid": own_version()},
        "inputs": dict(inputs),
        "members": {name: {"bytes": len(one), "sha256": sha256(one)} for name, one in sorted(members.items())},
    }
