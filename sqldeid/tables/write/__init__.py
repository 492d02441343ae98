"""A node written as a release: generalised values, suppressed rows, the codebook."""
