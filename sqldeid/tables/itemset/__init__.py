"""Child tables, of many rows per person: items released so that a few known ones do not single anybody out."""
