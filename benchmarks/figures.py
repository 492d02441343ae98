"""Figures of others, to stand beside the measured ones; nothing else here is typed in.

ARX 3.9 with k = 5 and its model "Loss" (arithmetic mean, gsFactor 0.5), on one core of a machine like the one that the
limits are meant for; taken down with the data sets that the benchmark reads, in the README of their folder.
"""

ARX = {
    "adult 0 %": "170 checks",
    "adult 5 %": "400–1,050 checks, 0.53–1.5 s",
    "adult ×33": "about 14 s",
    "adult ×330": "about 85 s and output, 3.5 GB",
    "wide 9": "1,036 checks, 4.9 s",
    "wide 10": "3,886 checks, 21.4 s",
    "wide 11": "unproven in 200 s, 0.397049 after 60 s",
    "wide 12": "unproven, 0.446929 after 60 s",
    "wide 16": "unproven, 0.585138 after 60 s",
}

ARX_SECONDS = {
    "adult 5 %": 3.0,
    "adult 0 %": 2.6,
    "adult 20 %": 3.1,
    "adult l 3": 2.6,
    "adult t 0.3, 5 %": 4.5,
    "adult t 0.3, 20 %": 5.7,
    "adult 1 M": 7.0,
    "adult 10 M": 36.0,
    "wide 9": 6.0,
    "wide 10": 24.7,
}
"""Seconds of a whole process of ARX 3.9 on two cores, medians of three turns; k = 5 and 5 % where nothing is said."""

ARX_BARE = {"GROUP BY": 1.3, "CREATE TABLE AS SELECT": 5.9}
"""Seconds of DuckDB on that machine for nine columns of ten million rows, taken down in the same turns."""

OPTIMA = {9: 0.2635584187, 10: 0.33720257683}
"""Least `loss` of the first attributes of `wide`, k = 5, limit 5 %, to 1e-8; found by ARX, too."""
