"""Compiled templates that are kept render as their sources do, whatever became of the files that keep them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import jinja2
import pytest

from sqldeid.sql import compiled
from sqldeid.sql.compiled import compiled_in

SOURCES = {"one": "SELECT {{ a }} AS a", "other": "{% for i in a %}{{ i }};{% endfor %}"}


@pytest.fixture(autouse=True)
def _keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)


def render(folder: Path, sources: dict[str, str], *makers: str, dialect: str = "duckdb") -> list[str]:
    """Every source rendered by an environment that has just been made."""
    cache = compiled_in(folder, dialect, *makers)
    environment = jinja2.Environment(loader=jinja2.DictLoader(sources), bytecode_cache=cache)
    return [environment.get_template(name).render(a=[1, 2]) for name in sources]


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "__pycache__").glob("*.jinja"))


def test_second_environment_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = render(tmp_path, SOURCES)
    assert len(kept(tmp_path)) == 2
    monkeypatch.setattr(jinja2.Environment, "compile", None)  # whoever compiles now fails
    assert render(tmp_path, SOURCES) == first == ["SELECT [1, 2] AS a", "1;2;"]


def test_changed_source_is_compiled_anew(tmp_path: Path) -> None:
    render(tmp_path, SOURCES)
    assert render(tmp_path, {"one": "SELECT {{ a }} AS b"}) == ["SELECT [1, 2] AS b"]


def test_another_dialect_or_maker_has_its_own(tmp_path: Path) -> None:
    maker = tmp_path / "maker.py"
    maker.write_text("a = 1")
    render(tmp_path, SOURCES, str(maker))
    render(tmp_path, SOURCES, str(maker), dialect="spark")
    assert len(kept(tmp_path)) == 4
    maker.write_text("a = 2")
    stamp = maker.stat().st_mtime_ns + 1
    os.utime(maker, ns=(stamp, stamp))
    render(tmp_path, SOURCES, str(maker))
    assert len(kept(tmp_path)) == 6


@pytest.mark.parametrize("damage", [b"", b"j2", b"\x80\x04garbage", None])
def test_damaged_file_is_compiled_anew(tmp_path: Path, damage: bytes | None) -> None:
    first = render(tmp_path, SOURCES)
    for path in kept(tmp_path):
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert render(tmp_path, SOURCES) == first
    assert render(tmp_path, SOURCES) == first


def test_full_disk_costs_the_kept_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiled.FileSystemBytecodeCache, "dump_bytecode", full)
    assert render(tmp_path, SOURCES) == ["SELECT [1, 2] AS a", "1;2;"]
    assert not kept(tmp_path)


def test_nothing_is_kept_where_python_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert compiled_in(tmp_path, "duckdb") is None
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    assert compiled_in(tmp_path, "duckdb") is None
    assert not (tmp_path / "__pycache__").exists()


def test_nothing_is_kept_in_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled.os, "access", lambda *_: False)
    assert compiled_in(tmp_path, "duckdb") is None
    assert not (tmp_path / "__pycache__").exists()
    (tmp_path / "file").write_text("")
    assert compiled_in(tmp_path / "file", "duckdb") is None


@pytest.mark.parametrize("told", [True, False])
def test_what_is_there_is_read_where_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    first = render(tmp_path, SOURCES)
    there = kept(tmp_path)
    if told:
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
    else:
        monkeypatch.setattr(compiled.os, "access", lambda *_: False)
    render(tmp_path, {"other": "SELECT {{ a }} AS other"})
    assert kept(tmp_path) == there
    monkeypatch.setattr(jinja2.Environment, "compile", None)  # whoever compiles now fails
    assert render(tmp_path, SOURCES) == first
