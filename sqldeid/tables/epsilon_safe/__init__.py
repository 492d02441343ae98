"""Releases by `epsilon-safe`: a secret random sample, and a node drawn at random."""
