"""The lattice of generalisations, what a check of a node returns, and the information losses. Pure."""
