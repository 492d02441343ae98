"""The mortality benchmark's 714 features and logistic regression, for series at hand (`sqldeid.series.outcome`)."""

from __future__ import annotations

from sqldeid.series.outcome import (
    STATISTICS,
    TRUST_SETTINGS,
    WINDOWS,
    TrustScore,
    feature_names,
    long_records,
    trust_settings,
    window_features,
)

__all__ = [
    "STATISTICS",
    "TRUST_SETTINGS",
    "WINDOWS",
    "TrustScore",
    "feature_names",
    "long_records",
    "trust_settings",
    "window_features",
]
