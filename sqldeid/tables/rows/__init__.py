"""The source as one row per person: stacks computed, linked tables joined, hierarchies bound to values."""
