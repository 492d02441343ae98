"""The wing of numeric time series: vital signs and laboratory values, released as series."""
