"""Random draws that depend on the secret seed and on what they are for, never on chunk, order or thread."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: int | bytes, purpose: str, *numbers: int) -> np.random.Generator:
    """Give a generator of its own to each (purpose, numbers): Philox under a keyed BLAKE2b hash of them.

    Parameters
    ----------
    seed
        The secret: an integer, or up to 64 bytes. Never written to a release, log or result.
    purpose
        What is drawn, so that two methods never share a stream.
    numbers
        What it is drawn for: person and variable, or feature class and variable.
    """
    key = seed if isinstance(seed, bytes) else str(seed).encode()
    text = ":".join([purpose, *map(str, numbers)]).encode()
    digest = hashlib.blake2b(text, key=hashlib.blake2b(key).digest(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))
