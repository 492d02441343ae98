"""Attacks on a table release that was written and verified, as its readers can make them; for the data holder alone.

Nothing here changes a release, and the re-check reaches none of it.
"""
