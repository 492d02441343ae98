"""Each way of forming classes, recounted in pandas: few layers, lattices too large to be visited, no time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqldeid import anonymize, verify
from sqldeid.run import Options, verify_certificates
from tests.support.local_tables import go_the_wide_way, local_job, lost, people, released, sizes, source

WAYS: dict[str, dict[str, Any]] = {
    "layers": {"layers": 2},
    "wide": {},
    "wide, layers": {"layers": 2},
    "wide, cut short": {"time_limit": 1e-6},
    "cut short": {"time_limit": 1e-6},
    "wide, prec": {"loss": "prec"},
}
PRIVACY: dict[str, dict[str, Any]] = {
    "k": {"k": 4},
    "k, some suppressed": {"k": 7, "suppression_limit": 0.05},
    "t": {"k": 4, "t_closeness": {"column": "illness", "t": 0.25}, "suppression_limit": 0.1},
    "m": {"k": 4, "m_concealing": {"m": 0.35, "known": {"illness": 0.5}}, "suppression_limit": 0.1},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("asked", PRIVACY)
@pytest.mark.parametrize("way", WAYS)
def test_a_release_is_what_pandas_counts(way: str, asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = source(tmp_path / "source.duckdb")
    if "wide" in way:
        go_the_wide_way(monkeypatch)
    job = local_job(tmp_path, privacy=PRIVACY[asked], search=WAYS[way], hierarchies=True)
    found = anonymize(job, there, options=Options(certificate=True)).releases["people"]
    rows, whole = released(tmp_path), people(there)
    assert found.suppressed == len(whole) - len(rows) <= len(whole) * PRIVACY[asked].get("suppression_limit", 0)
    assert sizes(rows).min() == found.k >= PRIVACY[asked]["k"]
    assert found.loss["loss"] == pytest.approx(lost(rows, whole))
    assert 0 <= found.bound <= found.loss[str(found.search["loss"])]
    assert len(found.layers) <= WAYS[way].get("layers", 999)
    assert found.search["stopped"] == ("cut short" in way)
    assert verify(job, there)["people"].k == found.k
    proof = found.certificate
    assert proof is not None
    monkeypatch.undo()
    proven = verify_certificates(job, there, {"people": proof})["people"]
    assert dict(proven.facts())["Proven"].startswith("no recoding of this kind loses less than")
