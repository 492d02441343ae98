"""What a table release will do, resolved from the job and the catalogue; no row is read."""
