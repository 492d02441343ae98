"""Keys: read from file or environment, never shown; the keyed hash is the standard library's; days are uniform."""

from __future__ import annotations

import copy
import hashlib
import hmac
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from sqldeid.errors import JobError
from sqldeid.keys import VARIABLE, Key, key_warnings, read_key
from sqldeid.tables.criteria.mechanism import SeededRandomness, SystemRandomness
from sqldeid.tables.disguise.pseudonyms import scope
from sqldeid.tables.disguise.shift import SHIFT_DAYS, draw_days

SECRET = bytes(range(32))


def test_the_keyed_hash_is_the_standard_librarys() -> None:
    for length in (32, 63, 64, 65, 200):
        secret = os.urandom(length)
        digest = Key(secret).hasher(b"scope")
        for message in (b"", b"1", "ü😀".encode(), b"x" * 1000):
            assert digest(message) == hmac.new(secret, b"scope" + message, hashlib.sha256).hexdigest()


def test_the_published_test_vector() -> None:
    """RFC 4231, test case 7: a key longer than a block."""
    data = b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
    data += b"hashed before being used by the HMAC algorithm."
    expected = "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"
    assert Key(b"\xaa" * 131).hasher(b"")(data) == expected


def test_no_two_scopes_read_alike() -> None:
    runs = ["00" * 16, "01" * 16]
    names = [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc")]
    made = {scope(run, *name) for run in runs for name in names}
    assert len(made) == len(runs) * len(names)
    assert not any(a != b and b.startswith(a) for a in made for b in made)


def test_a_key_shows_itself_to_nobody() -> None:
    key = Key(SECRET)
    assert SECRET.hex() not in repr(key) + str(key) and repr(SECRET) not in repr(key)
    for write in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            write(key)


@pytest.mark.parametrize("text", [SECRET.hex(), SECRET.hex().upper() + "\n", f"  {SECRET.hex()}\r\n"])
def test_read_from_a_file_and_from_the_environment(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    expected = Key(SECRET).hasher(b"")(b"x")
    monkeypatch.delenv(VARIABLE, raising=False)
    assert read_key() is None
    assert read_key(file).hasher(b"")(b"x") == expected
    monkeypatch.setenv(VARIABLE, text)
    assert read_key().hasher(b"")(b"x") == expected
    file.write_text(bytes(range(100, 132)).hex())
    assert read_key(file).hasher(b"")(b"x") != expected, "a file goes before the environment"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        SECRET.hex()[:-2],
        SECRET.hex()[:-1],
        "password" * 8,
        "00" * 32,
        "ab" * 64,
        SECRET.hex() + " x",
        "ü" * 64,
    ],
)
def test_what_is_no_key_is_refused_and_not_told(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    with pytest.raises(JobError) as raised:
        read_key(file)
    assert raised.value.key == "--key-file" and "openssl rand -hex 32" in raised.value.message
    assert not text.strip() or text.strip() not in raised.value.message
    if text:
        monkeypatch.setenv(VARIABLE, text)
        with pytest.raises(JobError) as raised:
            read_key()
        assert raised.value.key == VARIABLE


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for file in (tmp_path / "none", tmp_path):
        with pytest.raises(JobError, match="cannot be read"):
            read_key(file)


def counted(days: np.ndarray) -> np.ndarray:
    return np.bincount(days + SHIFT_DAYS, minlength=2 * SHIFT_DAYS + 1)


@pytest.mark.skipif(os.name != "posix", reason="not applicable: files have no such modes")
@pytest.mark.parametrize(("mode", "told"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True)])
def test_a_key_that_others_may_read_is_told(tmp_path: Path, mode: int, told: bool) -> None:
    file = tmp_path / "key"
    file.write_text("ab" * 32)
    file.chmod(mode)
    assert [str(file) in text and "chmod 600" in text for text in key_warnings(file)] == [True] * told
    assert key_warnings(None) == key_warnings(tmp_path / "none") == []


def test_days_are_uniform_without_zero() -> None:
    counts = counted(draw_days(400_000, SeededRandomness(1)))
    assert len(counts) == 2 * SHIFT_DAYS + 1 and counts[SHIFT_DAYS] == 0
    assert chisquare(np.delete(counts, SHIFT_DAYS)).pvalue > 0.001
    biased = draw_days(400_000, SeededRandomness(1))
    biased[:4000] = 17
    assert chisquare(np.delete(counted(biased), SHIFT_DAYS)).pvalue < 1e-9, "the test would see one in a hundred"


def test_late_words_are_drawn_again() -> None:
    class Late:
        secret = False

        def __init__(self) -> None:
            self.asked: list[int] = []

        def words(self, count: int) -> np.ndarray:
            self.asked.append(count)
            first = np.full(count, 2**64 - 1, dtype=np.uint64)
            return first if len(self.asked) == 1 else np.arange(count, dtype=np.uint64)

    late = Late()
    assert draw_days(3, late).tolist() == [-365, -364, -363]
    assert late.asked == [3, 3]
    assert draw_days(0, SystemRandomness()).tolist() == []
