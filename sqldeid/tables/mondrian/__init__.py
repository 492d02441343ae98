"""Releases by Mondrian: multi-dimensional recoding by medians on a public grid."""
