"""Sources, filters and columns of a job, resolved against the catalogue of its database; no data is read."""
